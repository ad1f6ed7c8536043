// Children made by vfork reset signal actions and block signals before they exec, as CPython's subprocess does. What
// they execute then is executed nowhere else.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int input = 3;

__attribute__((noinline)) static int rarely(int how) {
    if (how == 0) return input * 2;
    if (how == 1) return input + 40;
    if (how == 2) return input - 1;
    return input ^ how;
}

__attribute__((noinline)) static int reset(int how) {
    sigset_t all, now;
    sigfillset(&all);
    int reset = 0;
    for (int s = 1; s < 65; s++) {
        struct sigaction action;
        if (sigaction(s, 0, &action) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
        memset(&action, 0, sizeof action);
        sigaction(s, &action, 0);
        reset += s == SIGUSR1 || s == SIGTRAP;
    }
    // A plain child may lose its handlers of SIGTRAP thrice.
    struct sigaction none = {.sa_handler = SIG_DFL};
    sigaction(SIGTRAP, &none, 0);
    signal(SIGTRAP, SIG_DFL);
    int before = rarely(how);
    if (how & 1) sigprocmask(SIG_SETMASK, &all, 0);
    else sigprocmask(SIG_BLOCK, &all, 0);
    int blocked = rarely(how + 1);
    sigprocmask(SIG_SETMASK, 0, &now);
    return before + blocked + reset + (sigismember(&now, SIGTRAP) ? 50 : 0);
}

static void handle(int signal) { (void)signal; }

int main(int count, char **arguments) {
    if (count > 1) {
        sigset_t now;
        sigprocmask(SIG_SETMASK, 0, &now);
        return 20 + sigismember(&now, SIGTRAP) + 2 * sigismember(&now, SIGUSR2);
    }
    signal(SIGUSR1, handle);
    for (int how = 0; how < 6; how++) {
        pid_t child = vfork();
        if (!child) {
            int result = reset(how);
            if (how < 3) _exit(result);
            sigset_t none;
            sigemptyset(&none);
            if (how == 4) sigprocmask(SIG_SETMASK, &none, 0);
            execl("/proc/self/exe", arguments[0], "leaf", (char *)0);
            _exit(99);
        }
        int status;
        waitpid(child, &status, 0);
        struct sigaction action;
        sigaction(SIGUSR1, 0, &action);
        sigset_t now;
        sigprocmask(SIG_SETMASK, 0, &now);
        printf("%d: %s %d, handler %d, blocked %d\n", how, WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), action.sa_handler == handle,
               sigismember(&now, SIGTRAP));
    }
    return 0;
}
