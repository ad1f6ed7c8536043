/*
 * bzip2: compresses a buffer in memory, decompresses it again and compares.
 *
 * usage: bzip2 FILE ROUNDS SIZE      SIZE limits the bytes taken from FILE
 */
#include "bench.h"
#include "bzlib.h"

/* Called by the library, which is built without stdio, when it finds itself inconsistent. */
void bz_internal_error(int code)
{
    die("bzip2 internal error %d", code);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: bzip2 FILE ROUNDS SIZE");
    size_t size;
    char *input = read_file(argv[1], &size);
    size_t rounds = parse_number(argv[2]);
    size_t limit = parse_number(argv[3]);
    if (size > limit)
        size = limit;

    /* The manual's bound: one per cent and 600 bytes more than the input. */
    unsigned capacity = (unsigned)(size + size / 50 + 1000);
    char *packed = allocate(capacity);
    char *unpacked = allocate(size);
    static const int block_sizes[] = {9, 5, 1}; /* in units of 100 kB */

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++) {
        unsigned packed_size = capacity;
        unsigned unpacked_size = (unsigned)size;
        int status = BZ2_bzBuffToBuffCompress(packed, &packed_size, input, (unsigned)size, block_sizes[round % 3], 0, 0);
        if (status != BZ_OK)
            die("compression failed: %d", status);
        sum = checksum_bytes(sum, packed, packed_size);
        status = BZ2_bzBuffToBuffDecompress(unpacked, &unpacked_size, packed, packed_size, 0, 0);
        if (status != BZ_OK)
            die("decompression failed: %d", status);
        if (unpacked_size != size || memcmp(unpacked, input, size))
            die("decompressed data differ from the input");
    }
    print_checksum(sum);
    free(unpacked);
    free(packed);
    free(input);
    return 0;
}
