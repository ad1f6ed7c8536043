/*
 * glslang: translates shaders to SPIR-V, lists the code, and sums all that comes out, messages included.
 *
 * usage: glslang ROUNDS STEP ARCHIVE      takes every STEPth shader of an archive: a line `NAME SIZE` stands before each
 */
#include "bench.h"
#include "translate.h"

static void add_output(void *sum, const void *data, size_t size)
{
    checksum_t *own = sum;
    *own = checksum_bytes(*own, data, size);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: glslang ROUNDS STEP ARCHIVE");
    size_t rounds = parse_number(argv[1]);
    size_t step = parse_number(argv[2]);
    if (!step)
        die("a step is one at least");
    size_t size;
    char *archive = read_file(argv[3], &size);
    size_t translated = 0, refused = 0;
    checksum_t sum = CHECKSUM_START;

    start_translator();
    for (size_t round = 0; round < rounds; round++) {
        size_t at = 0;
        for (size_t shader = 0; at < size; shader++) {
            char name[256], *end;
            size_t name_size = strcspn(archive + at, " ");
            if (name_size >= sizeof name)
                die("%s is damaged at byte %zu", argv[3], at);
            memcpy(name, archive + at, name_size);
            name[name_size] = 0;
            size_t length = strtoull(archive + at + name_size, &end, 10);
            const char *source = end + 1;
            at = (size_t)(source - archive);
            if (*end != '\n' || length > size - at)
                die("%s is damaged at byte %zu", argv[3], at);
            at += length;
            if (shader % step)
                continue;
            int outcome = translate_shader(name, source, length, add_output, &sum);
            if (outcome < 0)
                die("%s has no stage", name);
            translated += outcome;
            refused += !outcome;
        }
    }
    stop_translator();
    free(archive);
    printf("%zu translated, %zu refused\n", translated, refused);
    sum = checksum_number(sum, translated);
    print_checksum(sum);
    return 0;
}
