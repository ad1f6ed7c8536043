/*
 * SQLite: runs a script on a database in memory, a fresh one each round, and sums every value of every result row.
 *
 * usage: sqlite SCRIPT N ROUNDS      each `$N` in the script becomes N
 */
#include "bench.h"
#include "sqlite3.h"

static int sum_row(void *context, int columns, char **values, char **names)
{
    (void)names;
    checksum_t *sum = context;
    for (int i = 0; i < columns; i++) {
        const char *value = values[i] ? values[i] : "~"; /* NULL differs from the empty string */
        *sum = checksum_bytes(*sum, value, strlen(value) + 1);
    }
    return 0;
}

/* Replaces each `$N`; the result is the caller's. */
static char *substitute(const char *script, size_t size, const char *number)
{
    static const char placeholder[] = "$N";
    size_t most = size + size / 2 * strlen(number) + 1;
    char *expanded = allocate(most);
    char *end = expanded;
    while (*script) {
        if (!strncmp(script, placeholder, 2)) {
            size_t length = strlen(number);
            memcpy(end, number, length);
            end += length;
            script += 2;
        } else {
            *end++ = *script++;
        }
    }
    *end = 0;
    return expanded;
}

static checksum_t run_script(const char *statements, checksum_t sum)
{
    sqlite3 *database;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        die("cannot open a database in memory");
    char *error = NULL;
    if (sqlite3_exec(database, statements, sum_row, &sum, &error) != SQLITE_OK)
        die("%s", error);
    sqlite3_close(database);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: sqlite SCRIPT N ROUNDS");
    parse_number(argv[2]);
    size_t rounds = parse_number(argv[3]);
    size_t size;
    char *script = read_file(argv[1], &size);
    char *statements = substitute(script, size, argv[2]);

    checksum_t sum = CHECKSUM_START;
    for (size_t round = 0; round < rounds; round++)
        sum = run_script(statements, sum);
    print_checksum(sum);
    free(statements);
    free(script);
    return 0;
}
