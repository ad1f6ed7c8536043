// A daemon: the parent ends as soon as the child is ready, which goes on, and works when it is told to.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned sink;

__attribute__((noinline)) static void prepare(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        sink += i;
}

__attribute__((noinline)) static void serve(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        sink ^= i;
}

int main(void) {
    int ready[2];
    char byte = 1;
    prepare(1000000);
    if (pipe(ready))
        return 1;
    pid_t child = fork();
    if (child) {
        printf("%d\n", child);
        return read(ready[0], &byte, 1) != 1;
    }
    setsid();
    // Who reads the parent's output is not to wait for the child.
    fclose(stdout);
    fclose(stderr);
    if (write(ready[1], &byte, 1) != 1)
        return 1;
    // Until the test has read the profile.
    alarm(60);
    pause();
    serve(1000000);
    return 0;
}
