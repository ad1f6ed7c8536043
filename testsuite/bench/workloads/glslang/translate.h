/* The part of the driver that speaks C++. */
#ifndef PLEACH_GLSLANG_TRANSLATE_H
#define PLEACH_GLSLANG_TRANSLATE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called with what a translation leaves: SPIR-V words, its disassembly, reflection, or messages. */
typedef void (*output_sink)(void *context, const void *data, size_t size);

/*
 * Translates one shader; its name tells the stage (the extension) and the language (`hlsl.…`).
 * Returns whether there is SPIR-V, 0 where the shader has errors, and -1 where the name has no stage.
 */
int translate_shader(const char *name, const char *source, size_t size, output_sink sink, void *context);

void start_translator(void);
void stop_translator(void);

#ifdef __cplusplus
}
#endif

#endif
