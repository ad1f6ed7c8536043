// A library that the program loads while it runs; its initialiser runs before anybody can call it.
volatile int initialised;
__attribute__((noinline)) static int in_initialiser(int n) {
    initialised = n;
    return n + 7;
}
__attribute__((constructor)) static void initialise(void) { initialised = in_initialiser(initialised); }
int library_function(int n) {
    if (n > 1)
        return n * initialised;
    return n - initialised;
}
int library_absent(int n) { return n ? n * 3 : initialised; }
