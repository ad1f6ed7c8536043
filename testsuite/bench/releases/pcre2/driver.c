/*
 * PCRE2: searches a text for every match of each regular expression in a file, one a line, without its JIT compiler.
 *
 * usage: pcre2 PATTERNS TEXT ROUNDS SIZE      SIZE limits the bytes taken from TEXT
 */
#include "bench.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include "pcre2.h"

static pcre2_code *compile_pattern(const char *pattern)
{
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &error, &offset, NULL);
    if (!code)
        die("pattern '%s' does not compile: %d at %zu", pattern, error, (size_t)offset);
    return code;
}

/* Counts the non-overlapping matches, their bytes, and those of their last group. */
static checksum_t sum_matches(pcre2_code *code, PCRE2_SPTR text, size_t size, checksum_t sum)
{
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(match);
    uint64_t matches = 0, bytes = 0, refused = 0;
    size_t from = 0;
    while (from < size) {
        int groups = pcre2_match(code, text, size, from, 0, match, NULL);
        if (groups == PCRE2_ERROR_NOMATCH)
            break;
        if (groups == PCRE2_ERROR_MATCHLIMIT || groups == PCRE2_ERROR_HEAPLIMIT) {
            refused++;
            break;
        }
        if (groups < 0)
            die("search failed: %d", groups);
        matches++;
        bytes += bounds[2 * groups - 1] - bounds[0];
        from = bounds[1] + (bounds[1] == bounds[0]); /* behind an empty match: the next byte */
    }
    pcre2_match_data_free(match);
    return checksum_number(checksum_number(checksum_number(sum, matches), bytes), refused);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: pcre2 PATTERNS TEXT ROUNDS SIZE");
    size_t unused;
    char *patterns = read_file(argv[1], &unused);
    size_t size;
    char *text = read_file(argv[2], &size);
    size_t rounds = parse_number(argv[3]);
    size_t limit = parse_number(argv[4]);
    if (size > limit)
        size = limit;

    checksum_t sum = CHECKSUM_START;
    for (char *pattern = strtok(patterns, "\n"); pattern; pattern = strtok(NULL, "\n")) {
        pcre2_code *code = compile_pattern(pattern);
        for (size_t round = 0; round < rounds; round++)
            sum = sum_matches(code, (PCRE2_SPTR)text, size, sum);
        pcre2_code_free(code);
    }
    print_checksum(sum);
    free(text);
    free(patterns);
    return 0;
}
