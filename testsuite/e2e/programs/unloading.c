// Loads and unloads a library again and again.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        void *library = dlopen(arguments[count - 1], RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return 1;
        }
        int (*function)(int) = (int (*)(int))dlsym(library, "library_function");
        sum += function(i % 3);
        dlclose(library);
    }
    printf("%ld\n", sum);
    return 0;
}
