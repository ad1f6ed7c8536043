/*
 * QuickJS: runs a script, with its arguments in the global `args`, and sums the string that it evaluates to.
 *
 * usage: quickjs SCRIPT ARGUMENT…
 */
#include "bench.h"
#include "quickjs.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        die("usage: quickjs SCRIPT ARGUMENT…");
    JSRuntime *runtime = JS_NewRuntime();
    JSContext *context = runtime ? JS_NewContext(runtime) : NULL;
    if (!context)
        die("no context");
    JSValue global = JS_GetGlobalObject(context);
    JSValue args = JS_NewArray(context);
    for (int i = 2; i < argc; i++)
        JS_SetPropertyUint32(context, args, (uint32_t)i - 2, JS_NewString(context, argv[i]));
    JS_SetPropertyStr(context, global, "args", args);

    size_t size;
    char *script = read_file(argv[1], &size);
    JSValue value = JS_Eval(context, script, size, argv[1], JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(value))
        value = JS_GetException(context), fputs("exception: ", stderr);
    size_t length;
    const char *result = JS_ToCStringLen(context, &length, value);
    if (!result || JS_IsError(context, value))
        die("%s", result ? result : "no string");
    puts(result);
    print_checksum(checksum_bytes(CHECKSUM_START, result, length));
    JS_FreeCString(context, result);
    JS_FreeValue(context, value);
    JS_FreeValue(context, global);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    free(script);
    return 0;
}
