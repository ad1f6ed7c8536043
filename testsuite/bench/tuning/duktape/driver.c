/*
 * Duktape: runs a script, with its arguments in the global `args`, and sums the string that it evaluates to.
 *
 * usage: duktape SCRIPT ARGUMENT…
 */
#define _GNU_SOURCE
#include "bench.h"
#include "duktape.h"
#include <sys/mman.h>

/* String hashes are seeded with the heap's address, so the first block, which is the heap, always has the same one. */
static void *fixed_heap;

static void *allocate_block(void *unused, duk_size_t size)
{
    (void)unused;
    if (fixed_heap)
        return malloc(size);
    if (size > 1 << 16)
        die("the heap does not come first");
    fixed_heap = mmap((void *)0x200000000000, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return fixed_heap;
}

static void *reallocate_block(void *unused, void *block, duk_size_t size)
{
    (void)unused;
    return realloc(block, size);
}

static void free_block(void *unused, void *block)
{
    (void)unused;
    if (block != fixed_heap)
        free(block);
}

static void fatal(void *unused, const char *message)
{
    (void)unused;
    die("%s", message);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("usage: duktape SCRIPT ARGUMENT…");
    duk_context *context = duk_create_heap(allocate_block, reallocate_block, free_block, NULL, fatal);
    if (!context)
        die("no heap");
    duk_push_array(context);
    for (int i = 2; i < argc; i++) {
        duk_push_string(context, argv[i]);
        duk_put_prop_index(context, -2, (duk_uarridx_t)i - 2);
    }
    duk_put_global_string(context, "args");

    size_t size;
    char *script = read_file(argv[1], &size);
    if (duk_peval_lstring(context, script, size))
        die("%s", duk_safe_to_string(context, -1));
    duk_size_t length;
    const char *result = duk_safe_to_lstring(context, -1, &length);
    puts(result);
    print_checksum(checksum_bytes(CHECKSUM_START, result, length));
    duk_destroy_heap(context);
    free(script);
    return 0;
}
