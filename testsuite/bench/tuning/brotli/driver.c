/*
 * Brotli: compresses a buffer at several qualities, decompresses it three times each, checks and sums the result.
 *
 * usage: brotli FILE ROUNDS SIZE      SIZE limits the bytes taken from FILE
 */
#include "bench.h"
#include "brotli/decode.h"
#include "brotli/encode.h"

enum { DECOMPRESSIONS_PER_ROUND = 3 };

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: brotli FILE ROUNDS SIZE");
    size_t size;
    uint8_t *input = (uint8_t *)read_file(argv[1], &size);
    size_t rounds = parse_number(argv[2]);
    size_t limit = parse_number(argv[3]);
    if (size > limit)
        size = limit;

    size_t capacity = BrotliEncoderMaxCompressedSize(size);
    uint8_t *packed = allocate(capacity);
    uint8_t *unpacked = allocate(size);
    static const int qualities[] = {5, 9, 3};

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++) {
        size_t packed_size = capacity;
        if (!BrotliEncoderCompress(qualities[round % 3], 20, BROTLI_MODE_GENERIC, size, input, &packed_size, packed))
            die("compression failed");
        sum = checksum_bytes(sum, packed, packed_size);
        for (int pass = 0; pass < DECOMPRESSIONS_PER_ROUND; pass++) {
            size_t unpacked_size = size;
            if (BrotliDecoderDecompress(packed_size, packed, &unpacked_size, unpacked) != BROTLI_DECODER_RESULT_SUCCESS)
                die("decompression failed");
            if (unpacked_size != size)
                die("decompression gives %zu bytes", unpacked_size);
        }
        if (memcmp(unpacked, input, size))
            die("decompressed data differ from the input");
    }
    print_checksum(sum);
    free(unpacked);
    free(packed);
    free(input);
    return 0;
}
