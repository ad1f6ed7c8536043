/*
 * xz: compresses a buffer with LZMA2 at preset 1 or 4 in turn, decompresses it twice, checks and sums the result.
 *
 * usage: xz FILE ROUNDS SIZE      SIZE limits the bytes taken from FILE
 */
#include "bench.h"
#include "lzma.h"

enum { DECOMPRESSIONS_PER_ROUND = 2 };

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: xz FILE ROUNDS SIZE");
    size_t size;
    char *input = read_file(argv[1], &size);
    size_t rounds = parse_number(argv[2]);
    size_t limit = parse_number(argv[3]);
    if (size > limit)
        size = limit;

    size_t capacity = lzma_stream_buffer_bound(size);
    char *packed = allocate(capacity);
    char *unpacked = allocate(size);
    static const uint32_t presets[] = {1, 4};

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++) {
        size_t packed_size = 0;
        if (lzma_easy_buffer_encode(presets[round % 2], LZMA_CHECK_CRC32, NULL, (uint8_t *)input, size, (uint8_t *)packed, &packed_size, capacity) != LZMA_OK)
            die("compression failed");
        sum = checksum_bytes(sum, packed, packed_size);
        for (int pass = 0; pass < DECOMPRESSIONS_PER_ROUND; pass++) {
            uint64_t memory = UINT64_MAX;
            size_t read = 0, unpacked_size = 0;
            if (lzma_stream_buffer_decode(&memory, 0, NULL, (uint8_t *)packed, &read, packed_size, (uint8_t *)unpacked, &unpacked_size, size) != LZMA_OK || unpacked_size != size)
                die("decompression failed");
        }
        if (memcmp(unpacked, input, size))
            die("decompressed data differ from the input");
    }
    print_checksum(sum);
    return 0;
}
