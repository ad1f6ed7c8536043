/*
 * Oniguruma: searches a text for every match of each regular expression in a file, one a line.
 *
 * usage: onig PATTERNS TEXT ROUNDS SIZE      SIZE limits the bytes taken from TEXT; a pattern that starts with `(?i)` is
 *                                            compiled to ignore case
 */
#include "bench.h"
#include "oniguruma.h"

static regex_t *compile_pattern(const char *pattern)
{
    const UChar *start = (const UChar *)pattern;
    OnigOptionType options = strncmp(pattern, "(?i)", 4) ? ONIG_OPTION_NONE : ONIG_OPTION_IGNORECASE;
    OnigErrorInfo info;
    regex_t *regex;
    int status = onig_new(&regex, start, start + strlen(pattern), options, ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info);
    if (status != ONIG_NORMAL)
        die("pattern '%s' does not compile: %d", pattern, status);
    return regex;
}

/* Counts the non-overlapping matches and their bytes. */
static checksum_t sum_matches(regex_t *regex, const UChar *text, const UChar *end, checksum_t sum)
{
    OnigRegion *region = onig_region_new();
    uint64_t matches = 0;
    uint64_t bytes = 0;
    const UChar *from = text;
    while (from < end) {
        int at = onig_search(regex, text, end, from, end, region, ONIG_OPTION_NONE);
        if (at == ONIG_MISMATCH)
            break;
        if (at < 0)
            die("search failed: %d", at);
        matches++;
        bytes += (uint64_t)(region->end[0] - at);
        from = text + region->end[0];
        if (region->end[0] == at) /* an empty match: go on behind the next byte */
            from++;
    }
    onig_region_free(region, 1);
    return checksum_number(checksum_number(sum, matches), bytes);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: onig PATTERNS TEXT ROUNDS SIZE");
    size_t unused;
    char *patterns = read_file(argv[1], &unused);
    size_t size;
    char *text = read_file(argv[2], &size);
    size_t rounds = parse_number(argv[3]);
    size_t limit = parse_number(argv[4]);
    if (size > limit)
        size = limit;

    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    checksum_t sum = CHECKSUM_START;
    for (char *pattern = strtok(patterns, "\n"); pattern; pattern = strtok(NULL, "\n")) {
        regex_t *regex = compile_pattern(pattern);
        for (size_t round = 0; round < rounds; round++)
            sum = sum_matches(regex, (const UChar *)text, (const UChar *)text + size, sum);
        onig_free(regex);
    }
    onig_end();
    print_checksum(sum);
    free(text);
    free(patterns);
    return 0;
}
