/*
 * zstd: compresses a buffer at level 3 or 9 in turn, decompresses it three times, checks and sums the result.
 *
 * usage: zstd FILE ROUNDS SIZE      SIZE limits the bytes taken from FILE
 */
#include "bench.h"
#include "zstd.h"

enum { DECOMPRESSIONS_PER_ROUND = 3 };

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: zstd FILE ROUNDS SIZE");
    size_t size;
    char *input = read_file(argv[1], &size);
    size_t rounds = parse_number(argv[2]);
    size_t limit = parse_number(argv[3]);
    if (size > limit)
        size = limit;

    size_t capacity = ZSTD_compressBound(size);
    char *packed = allocate(capacity);
    char *unpacked = allocate(size);
    static const int levels[] = {3, 9};

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++) {
        size_t packed_size = ZSTD_compress(packed, capacity, input, size, levels[round % 2]);
        if (ZSTD_isError(packed_size))
            die("compression failed: %s", ZSTD_getErrorName(packed_size));
        sum = checksum_bytes(sum, packed, packed_size);
        for (int pass = 0; pass < DECOMPRESSIONS_PER_ROUND; pass++) {
            size_t unpacked_size = ZSTD_decompress(unpacked, size, packed, packed_size);
            if (unpacked_size != size)
                die("decompression failed: %s", ZSTD_getErrorName(unpacked_size));
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
