// Loads and unloads a library again and again: unloading [TIMES] LIBRARY.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0, c;
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

int main(int count, char **arguments) {
    int times = count > 2 ? atoi(arguments[1]) : 50;
    long sum = 0;
    for (int i = 1; i <= times; i++) {
        void *library = dlopen(arguments[count - 1], RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return 1;
        }
        int (*function)(int) = (int (*)(int))dlsym(library, "library_function");
        sum += function(i == times ? 2 : i % 2);
        dlclose(library);
    }
    printf("%ld, %s mappings\n", sum, mappings() < 100 ? "few" : "many");
    return 0;
}
