/*
 * zlib: deflates a buffer at several levels, inflates it three times each, checks and sums the result.
 *
 * usage: zlib FILE ROUNDS SIZE      SIZE limits the bytes taken from FILE
 */
#include "bench.h"
#include "zlib.h"

enum { INFLATIONS_PER_ROUND = 3 };

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: zlib FILE ROUNDS SIZE");
    size_t size;
    char *input = read_file(argv[1], &size);
    size_t rounds = parse_number(argv[2]);
    size_t limit = parse_number(argv[3]);
    if (size > limit)
        size = limit;

    uLong capacity = compressBound(size);
    Bytef *packed = allocate(capacity);
    Bytef *unpacked = allocate(size);
    static const int levels[] = {6, 9, 1, 4};

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++) {
        uLong packed_size = capacity;
        int status = compress2(packed, &packed_size, (const Bytef *)input, size, levels[round % 4]);
        if (status != Z_OK)
            die("deflate failed: %d", status);
        sum = checksum_bytes(sum, packed, packed_size);
        for (int pass = 0; pass < INFLATIONS_PER_ROUND; pass++) {
            uLong unpacked_size = size;
            status = uncompress(unpacked, &unpacked_size, packed, packed_size);
            if (status != Z_OK || unpacked_size != size)
                die("inflate failed: %d", status);
        }
        if (memcmp(unpacked, input, size))
            die("inflated data differ from the input");
        sum = checksum_number(sum, crc32(0, unpacked, (uInt)size));
    }
    print_checksum(sum);
    free(unpacked);
    free(packed);
    free(input);
    return 0;
}
