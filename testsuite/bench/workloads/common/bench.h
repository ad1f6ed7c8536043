/*
 * What every driver needs: reading a file, a checksum of the work done, and reproducible random numbers.
 *
 * The last line of a driver's output is `checksum <16 hexadecimal digits>`; the bench compares it with the committed one.
 */
#ifndef PLEACH_BENCH_H
#define PLEACH_BENCH_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a message and leaves with a status that no driver uses for success. */
__attribute__((noreturn, format(printf, 1, 2), unused)) static void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("driver: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

__attribute__((unused)) static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        die("out of memory (%zu bytes)", size);
    return memory;
}

/* Reads a whole file; a zero byte follows the contents, so that text can be used as a string. */
__attribute__((unused)) static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    if (length < 0)
        die("cannot tell the size of %s", path);
    char *contents = allocate((size_t)length + 1);
    if (fread(contents, 1, (size_t)length, file) != (size_t)length)
        die("cannot read %s", path);
    contents[length] = 0;
    fclose(file);
    *size = (size_t)length;
    return contents;
}

/* Parses a non-negative decimal argument. */
__attribute__((unused)) static size_t parse_number(const char *text)
{
    char *end = NULL;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < 0)
        die("'%s' is not a number", text);
    return (size_t)value;
}

/* FNV-1a over 8-byte words, then bytes: the checksum must not show up beside the work that it sums. */
typedef uint64_t checksum_t;

#define CHECKSUM_START ((checksum_t)1469598103934665603ULL)
#define CHECKSUM_PRIME ((checksum_t)1099511628211ULL)

__attribute__((unused)) static checksum_t checksum_bytes(checksum_t sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        sum = (sum ^ word) * CHECKSUM_PRIME;
        sum ^= sum >> 29; /* lets high bits reach low ones, which byte-wise FNV gets from its eight rounds */
    }
    for (; size; size--, bytes++)
        sum = (sum ^ *bytes) * CHECKSUM_PRIME;
    return sum;
}

__attribute__((unused)) static checksum_t checksum_number(checksum_t sum, uint64_t value)
{
    return checksum_bytes(sum, &value, sizeof value);
}

__attribute__((unused)) static void print_checksum(checksum_t sum)
{
    printf("checksum %016llx\n", (unsigned long long)sum);
}

/* Marsaglia's xorshift: the same numbers on every machine. */
struct random {
    uint64_t state;
};

__attribute__((unused)) static uint64_t next_random(struct random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

#endif
