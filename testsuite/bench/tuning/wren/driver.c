/*
 * Wren: runs a script, then calls its method Bench.run(_,_) with a seed and a list of items, and sums the string returned.
 *
 * usage: wren SCRIPT SEED ITEMS
 */
#include "bench.h"
#include "wren.h"

static void write_text(WrenVM *vm, const char *text)
{
    (void)vm;
    fputs(text, stdout);
}

static void report(WrenVM *vm, WrenErrorType type, const char *module, int line, const char *message)
{
    (void)vm;
    (void)type;
    fprintf(stderr, "%s:%d: %s\n", module ? module : "", line, message);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: wren SCRIPT SEED ITEMS");
    WrenConfiguration configuration;
    wrenInitConfiguration(&configuration);
    configuration.writeFn = write_text;
    configuration.errorFn = report;
    WrenVM *vm = wrenNewVM(&configuration);
    size_t size;
    char *script = read_file(argv[1], &size);
    if (wrenInterpret(vm, script) != WREN_RESULT_SUCCESS)
        die("%s is wrong", argv[1]);

    WrenHandle *run = wrenMakeCallHandle(vm, "run(_,_)");
    wrenEnsureSlots(vm, 3);
    wrenGetVariable(vm, "main", "Bench", 0);
    wrenSetSlotDouble(vm, 1, (double)parse_number(argv[2]));
    wrenSetSlotString(vm, 2, argv[3]);
    if (wrenCall(vm, run) != WREN_RESULT_SUCCESS)
        die("the script failed");
    const char *result = wrenGetSlotString(vm, 0);
    puts(result);
    print_checksum(checksum_bytes(CHECKSUM_START, result, strlen(result)));
    wrenReleaseHandle(vm, run);
    wrenFreeVM(vm);
    free(script);
    return 0;
}
