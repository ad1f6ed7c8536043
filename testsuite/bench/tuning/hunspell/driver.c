/*
 * hunspell: makes a dictionary with affixes of one text's words, checks another's, and sums suggestions for what is wrong.
 *
 * usage: hunspell DICTIONARY TEXT WORDS SUGGESTIONS SEED
 */
#include "bench.h"
#include "hunspell/hunspell.h"
#include <ctype.h>
#include <unistd.h>

static const char *affixes =
    "SET UTF-8\nTRY esianrtolcdugmphbyfvkwz\nREP 4\nREP f ph\nREP ph f\nREP ei ie\nREP tion sion\n"
    "PFX U Y 1\nPFX U 0 un .\nPFX R Y 1\nPFX R 0 re .\n"
    "SFX S Y 4\nSFX S y ies [^aeiou]y\nSFX S 0 s [aeiou]y\nSFX S 0 es [sxzh]\nSFX S 0 s [^sxzhy]\n"
    "SFX D Y 4\nSFX D 0 d e\nSFX D y ied [^aeiou]y\nSFX D 0 ed [^ey]\nSFX D 0 ed [aeiou]y\n"
    "SFX G Y 2\nSFX G e ing e\nSFX G 0 ing [^e]\n"
    "SFX L Y 1\nSFX L 0 ly .\n";

static size_t next_word(const char **at, char *word)
{
    const char *p = *at;
    while (*p && !isalpha((unsigned char)*p))
        p++;
    size_t length = 0;
    while (isalpha((unsigned char)*p) && length < 40)
        word[length++] = (char)*p++;
    word[length] = 0;
    *at = p;
    return length;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(content, file) < 0 || fclose(file))
        die("cannot write %s", path);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        die("usage: hunspell DICTIONARY TEXT WORDS SUGGESTIONS SEED");
    size_t size;
    const char *at = read_file(argv[1], &size), *text = read_file(argv[2], &size);
    size_t words = parse_number(argv[3]), suggestions = parse_number(argv[4]);
    struct random random = {parse_number(argv[5]) * 2 + 1};
    char **list = allocate(sizeof *list * 400000), word[64];
    size_t count = 0;
    while (count < 400000 && next_word(&at, word))
        if (strlen(word) > 2) {
            for (char *c = word; *c; c++)
                *c = (char)tolower(*c);
            list[count++] = strdup(word);
        }
    qsort(list, count, sizeof *list, by_text);
    char *content = allocate(count * 64 + 64);
    size_t used = (size_t)sprintf(content, "%zu\n", count), kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && !strcmp(list[i], list[i - 1]))
            continue;
        static const char *const flags[] = {"", "/S", "/SD", "/SDG", "/UL", "/RSDG", "/SL", "/SGU"};
        used += (size_t)sprintf(content + used, "%s%s\n", list[i], flags[next_random(&random) >> 61]);
        kept++;
    }
    char folder[] = "/tmp/spell-XXXXXX", aff[64], dic[64];
    if (!mkdtemp(folder))
        die("no folder for the dictionary");
    sprintf(aff, "%s/d.aff", folder);
    sprintf(dic, "%s/d.dic", folder);
    write_file(aff, affixes);
    write_file(dic, content);
    Hunhandle *checker = Hunspell_create(aff, dic);
    unlink(aff), unlink(dic), rmdir(folder);
    checksum_t sum = checksum_number(CHECKSUM_START, kept);
    const char *from = text;
    while (words--) {
        size_t length = next_word(&from, word);
        if (!length) {
            from = text;
            continue;
        }
        unsigned change = (unsigned)(next_random(&random) >> 40);
        if (change % 16 == 0)
            word[change / 16 % length] = (char)('a' + change / 1024 % 26);
        else if (change % 16 == 1)
            strcat(word, "s");
        else if (change % 16 == 2)
            strcat(word, "ing");
        int good = Hunspell_spell(checker, word);
        sum = checksum_number(sum, (uint64_t)good);
        if (!good && suggestions && change % 7 == 0) {
            suggestions--;
            char **out;
            int n = Hunspell_suggest(checker, &out, word);
            for (int i = 0; i < n; i++)
                sum = checksum_bytes(sum, out[i], strlen(out[i]));
            Hunspell_free_list(checker, &out, n);
        }
    }
    Hunspell_destroy(checker);
    print_checksum(sum);
    return 0;
}
