// What programs do that could meet breakpoints at a bad moment. Each case prints what it computed, and runs code that is
// executed here for the first time. `absent` functions are never called.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <spawn.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define OWN __attribute__((noinline))
extern char **environ;
static volatile int sink;

OWN static int fresh(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            sum += i;
        else if (i % 7 == 1)
            sum -= 2;
    }
    return sum;
}

OWN static void absent(int n) {
    if (n)
        puts("never");
    sink = n;
}

OWN static int in_handler(int n) {
    sink = n;
    return n * 5 + 1;
}
static volatile sig_atomic_t handled;
static void on_signal(int signal) {
    handled += in_handler(signal);
}

OWN static int while_blocked(int n) {
    sink = n;
    return n * 7 + 2;
}
static void blocked(void) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int result = while_blocked(3);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &old, &now);
    printf("blocked %d %d\n", result, sigismember(&now, SIGTRAP));
}

OWN static int in_own_trap(int n) {
    sink = n;
    return n + 11;
}
static volatile sig_atomic_t traps;
static void on_trap(int signal) { traps += in_own_trap(signal); }
static void own_traps(void) {
    struct sigaction action = {.sa_handler = on_trap}, old;
    sigfillset(&action.sa_mask);
    sigaction(SIGTRAP, &action, &old);
    __asm__ volatile("int3");
    raise(SIGTRAP);
    sigaction(SIGTRAP, &old, NULL);
    printf("own traps %d\n", (int)traps);
}

OWN static int in_thread(int n) {
    sink = n;
    return n * n + 3;
}
static void *thread(void *argument) {
    long sum = 0;
    for (long i = 0; i < 1000; i++)
        sum += in_thread((int)(i % 17)) + (long)argument;
    return (void *)sum;
}
static void threads(void) {
    pthread_t ids[8];
    long sum = 0;
    for (long i = 0; i < 8; i++)
        pthread_create(&ids[i], NULL, thread, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(ids[i], &result);
        sum += (long)result;
    }
    printf("threads %ld\n", sum);
}

OWN static int in_child(int n) {
    sink = n;
    return n + 40;
}
OWN static int in_grandchild(int n) {
    sink = n;
    return n + 4;
}
static void forks(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t second = fork();
        if (second == 0)
            _exit(in_grandchild(1));
        int status;
        waitpid(second, &status, 0);
        _exit(in_child(WEXITSTATUS(status)));
    }
    int status;
    waitpid(pid, &status, 0);
    pid_t raw = (pid_t)syscall(SYS_fork);
    if (raw == 0)
        _exit(fresh(30) & 63);
    int other;
    waitpid(raw, &other, 0);
    pid_t shared = vfork();
    if (shared == 0)
        _exit(in_child(9));
    int third;
    waitpid(shared, &third, 0);
    printf("forks %d %d %d\n", WEXITSTATUS(status), WEXITSTATUS(other), WEXITSTATUS(third));
}

static void spawns(const char *self) {
    fflush(stdout);
    char *arguments[] = {(char *)self, "spawned", NULL};
    pid_t pid;
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t mask;
    sigfillset(&mask);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int status = posix_spawn(&pid, self, NULL, &attributes, arguments, environ);
    waitpid(pid, &status, 0);
    printf("spawns %d\n", WEXITSTATUS(status));
}
OWN static int in_spawned(int n) {
    sink = n;
    return n + 21;
}

static ucontext_t back, there;
OWN static int in_context(int n) {
    sink = n;
    return n - 8;
}
static void context(void) {
    sink = in_context(50);
    setcontext(&back);
}
static void contexts(void) {
    static char stack[1 << 16];
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = NULL;
    sigfillset(&there.uc_sigmask);
    makecontext(&there, context, 0);
    swapcontext(&back, &there);
    printf("contexts %d\n", sink);
}

OWN static int in_suspended(int n) {
    sink = n;
    return n + 2;
}
static void on_suspended(int signal) { handled += in_suspended(signal); }
static void suspends(void) {
    signal(SIGUSR2, on_suspended);
    sigset_t usr2, old, all;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &usr2, &old);
    raise(SIGUSR2);
    sigfillset(&all);
    sigdelset(&all, SIGUSR2);
    sigsuspend(&all);
    raise(SIGUSR2);
    struct timespec none = {1, 0};
    ppoll(NULL, 0, &none, &all);
    raise(SIGUSR2);
    pselect(0, NULL, NULL, NULL, &none, &all);
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("suspends %d\n", (int)handled);
}

static sigjmp_buf fault;
OWN static int before_fault(int n) {
    sink = n;
    return n + 90;
}
OWN static int after_fault(int n) {
    sink = n;
    return n + 91;
}
static void on_fault(int signal) {
    (void)signal;
    siglongjmp(fault, 1);
}
static void faults(void) {
    struct sigaction action = {.sa_handler = on_fault}, old;
    sigaction(SIGSEGV, &action, &old);
    int sum = before_fault(1);
    if (sigsetjmp(fault, 1) == 0)
        sum += *(volatile int *)8;
    else
        sum += after_fault(2);
    sigaction(SIGSEGV, &old, NULL);
    printf("faults %d\n", sum);
}

static void libraries(const char *path) {
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) {
            puts(dlerror());
            return;
        }
        int (*function)(int) = (int (*)(int))dlsym(library, "library_function");
        printf("library %d\n", function(i));
        dlclose(library);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "spawned"))
        return in_spawned(count);
    if (count > 99)
        absent(count);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    printf("handled %d, fresh %d\n", (int)handled, fresh(100));
    blocked();
    threads();
    forks();
    spawns(arguments[0]);
    contexts();
    suspends();
    if (count > 2) {
        faults();
        own_traps();
    }
    if (count > 1)
        libraries(arguments[1]);
    return 0;
}
