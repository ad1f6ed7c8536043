// Signals, threads, processes. The first argument says which.
#define _GNU_SOURCE
#include "count_marks.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// Both the handlers and the main code count its paths.
NOINLINE static unsigned work(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 8; ++i) {
    MARK(0);
    if (x >> i & 1) {
      MARK(1);
      r += i;
    }
    if (x % 3 == 0 && i > 4)
      MARK(2);
  }
  MARK(3);
  return r;
}
// Shells have one of their own: the runtime starts before the program does, and must not call it.
char *getenv(const char *name) {
  size_t length = strlen(name);
  for (char **variable = environ; variable && *variable; ++variable)
    if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=')
      return *variable + length + 1;
  return NULL;
}
// Without a call, so that its counters live in registers.
NOINLINE static unsigned spin(unsigned x, int n) {
  unsigned r = x;
  for (int i = 0; i < n; ++i)
    if ((r = r * 1664525 + 1013904223) >> 31)
      r ^= i;
  return r;
}
// Hash counters.
NOINLINE static unsigned wide(unsigned x) {
  volatile unsigned r = 0;
  x *= 2654435761u;
#define BIT(i) if (x >> i & 1) r = r + i;
  BIT(0) BIT(1) BIT(2) BIT(3) BIT(4) BIT(5) BIT(6) BIT(7) BIT(8) BIT(9) BIT(10) BIT(11) BIT(12) BIT(13) BIT(14) BIT(15)
  BIT(16) BIT(17) BIT(18) BIT(19)
  MARK(4);
  return r;
}
static void handler(int s) {
  MARK(5);
  static unsigned seed;
  count_sink = work(seed += 77) + wide(seed * 40503u >> 3) + spin(seed, 3);
}

static void timers(void) {
  signal(SIGALRM, handler);
  struct itimerval every = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &every, 0);
  unsigned sum = 0;
  for (unsigned i = 0; i < 300000; ++i) {
    sum += work(i) + wide(i * 2654435761u >> 7) + spin(i, 10);
    if (i % 65536 == 0)
      MARK(6);
  }
  every = (struct itimerval){{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, 0);
  count_sink = sum;
}
static void raises(void) {
  signal(SIGUSR2, handler);
  for (int i = 0; i < 2000; ++i) {
    MARK(7);
    if (i % 3)
      raise(SIGUSR2);
    count_sink = work(i);
  }
}

static pthread_key_t key;
static void at_thread_end(void *p) {
  MARK(10);
  count_sink = work((unsigned)(long)p);
}
static void *thread(void *p) {
  long n = (long)p;
  MARK(11);
  pthread_setspecific(key, p);
  for (long i = 0; i < n; ++i)
    count_sink = work(i) + wide(i * 40503u);
  return p;
}
static void *endless(void *p) {
  for (;;)
    pause();
}
static void threads(int count, int at_once, long n) {
  pthread_t t[16];
  for (int i = 0; i < count; i += at_once) {
    for (int j = 0; j < at_once; ++j)
      pthread_create(&t[j], 0, thread, (void *)n);
    for (int j = 0; j < at_once; ++j)
      pthread_join(t[j], 0);
  }
}

NOINLINE static void child_begins(void) { MARK(20); }
NOINLINE static void parent_begins(void) { MARK(21); }
static void forks(void) {
  parent_begins();
  work(7);
  for (int i = 0; i < 3; ++i) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      count_next_region();
      child_begins();
      work(255);
      wide(3);
      if (i == 2) { // and on
        child = fork();
        if (child == 0)
          for (int j = 0; j < 10; ++j) {
            work(1);
            if (j == 9)
              _exit(0);
          }
        waitpid(child, 0, 0);
      }
      exit(i);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    work(1);
    wide(i);
  }
}
static void spawns(char **environment) {
  pid_t child;
  char *args[] = {"/bin/true", 0};
  int status;
  posix_spawn(&child, args[0], 0, 0, args, environment);
  waitpid(child, &status, 0);
  work(1);
  printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 3")));
  FILE *f = popen("echo read", "r");
  char text[16];
  printf("%s", fgets(text, sizeof text, f));
  pclose(f);
  work(2);
}
static void daemonises(void) {
  work(1);
  int ends[2];
  pipe(ends);
  if (fork() == 0) {
    setsid();
    if (fork() == 0) {
      chdir("/");
      count_next_region();
      close(ends[0]);
      for (int i = 0; i < 100; ++i)
        work(i);
      write(ends[1], "x", 1);
      exit(0);
    }
    _exit(0);
  }
  close(ends[1]);
  char c;
  while (read(ends[0], &c, 1) > 0)
    ;
  usleep(100000);
}

int main(int argc, char **argv, char **environment) {
  const char *how = argv[1];
  if (!strcmp(how, "timers")) timers();
  if (!strcmp(how, "raises")) raises();
  pthread_key_create(&key, at_thread_end);
  if (!strcmp(how, "threads")) threads(8, 8, 40000);
  if (!strcmp(how, "sequence")) threads(2000, 1, 3);
  if (!strcmp(how, "running")) {
    threads(4, 4, 1000);
    pthread_t t;
    pthread_create(&t, 0, endless, 0);
  }
  if (!strcmp(how, "forks")) forks();
  if (!strcmp(how, "spawns")) spawns(environment);
  if (!strcmp(how, "daemon")) daemonises();
  if (!strcmp(how, "chdir")) {
    chdir("/");
    for (unsigned i = 0; i < 70000; ++i)
      wide(i);
  }
  if (!strcmp(how, "killed")) {
    for (int i = 0; i < 500; ++i) {
      work(i);
      wide(i);
    }
    write(1, "ready\n", 6);
    for (;;)
      pause();
  }
  if (!strcmp(how, "closes")) {
    for (int i = 0; i < 100; ++i)
      close(i);
    for (unsigned i = 0; i < 5000; ++i)
      work(i), wide(i);
    int f = open("/dev/null", O_RDWR);
    if (f != 0)
      return 9;
  }
  if (!strcmp(how, "limited")) {
    signal(SIGXFSZ, SIG_DFL);
    struct rlimit limit = {100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (unsigned i = 0; i < 70000; ++i)
      work(i), wide(i);
    puts("done");
  }
  if (!strcmp(how, "descriptors")) {
    struct rlimit limit = {3, 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned i = 0; i < 70000; ++i)
      work(i), wide(i);
    puts("done");
  }
  if (!strcmp(how, "some")) {
    for (unsigned i = 0; i < 3000; ++i)
      work(i), wide(i);
    puts("done");
    return 6;
  }
  return 0;
}
