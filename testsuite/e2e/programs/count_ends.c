// Every way in which activations end early. The first argument says which.
#define _GNU_SOURCE
#include "count_marks.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

// Leaves the stack full of what used to be there.
NOINLINE static int dig(int n) {
  volatile char room[2048];
  MARK(60);
  if (n > 0 && count_yes)
    room[0] = (char)dig(n - 1);
  AFTER(61);
  return room[0] = 1;
}

static void (*volatile ending)(int);
static volatile int status = 7;

NOINLINE static void deep(int n) {
  volatile char room[256]; // not initialised
  MARK(1);
  if (n == 0) {
    MARK(2);
    ending(status);
  } else if (n & 1) {
    MARK(3);
    deep(n - 1);
  } else {
    MARK(4);
    for (int i = 0; i < 3; ++i) {
      MARK(5);
      if (i == 2)
        deep(n - 1);
      AFTER(6);
    }
  }
  AFTER(7);
  (void)room[0];
}

static void do_exit(int s) { MARK(8); exit(s); }
static void do_abort(int s) { MARK(8); abort(); }
static void do__exit(int s) { MARK(8); _exit(s); }
static void do__Exit(int s) { MARK(8); _Exit(s); }
static void do_quick_exit(int s) { MARK(8); quick_exit(s); }
static void do_assert(int s) { MARK(8); fclose(stderr); extern void __assert_fail(const char *, const char *, unsigned, const char *) __attribute__((noreturn)); __assert_fail("", "", 1, ""); }
static void do_pthread_exit(int s) { MARK(8); pthread_exit(0); }
static void do_return(int s) { MARK(8); }

static int handlers;
static void handler(void) {
  MARK(10);
  if (++handlers < 3) {
    dig(3);
    AFTER(11);
  }
}

// --- longjmp
static jmp_buf outer, inner;
static jmp_buf *volatile target;
NOINLINE static void jump(int n) {
  MARK(20);
  if (n == 0) {
    MARK(21);
    longjmp(*target, 1);
  }
  jump(n - 1);
  AFTER(22);
}
NOINLINE static int in_loop(void) {
  volatile int times = 0, sum = 0;
  for (volatile int i = 0; i < 10; ++i) {
    MARK(23);
    if (!count_yes) // what returns twice is in a block of its own, which its second return counts again
      break;
    if (setjmp(outer) == 0) {
      MARK(24);
      target = &outer;
      if (i % 3)
        jump(i);
      AFTER(25);
    } else {
      MARK(26);
      ++times;
    }
    sum += dig(2);
  }
  return times + sum;
}
NOINLINE static int once(void) {
  volatile int again = 0;
  int value = setjmp(outer);
  if (value) {
    MARK(27);
  } else {
    MARK(28);
  }
  target = &outer;
  if (++again < 6) {
    MARK(29);
    jump(again);
  }
  MARK(30);
  return again;
}
NOINLINE static int nest_inner(int n) {
  if (setjmp(inner) == 0) {
    MARK(31);
    target = n & 1 ? &inner : &outer;
    jump(2);
  } else {
    MARK(32);
    return 1;
  }
  AFTER(33);
  return 2;
}
NOINLINE static int nest(void) {
  volatile int i, landed = 0;
  for (i = 0; i < 8; ++i) {
    if (setjmp(outer) == 0) {
      MARK(34);
      landed += nest_inner(i);
      AFTER(35);
    } else {
      MARK(36);
      landed += 100;
    }
  }
  return landed;
}

// --- signals
static sigjmp_buf point;
static void on_signal(int s) { MARK(40); siglongjmp(point, s); }
NOINLINE static void crash(volatile int *p) { MARK(41); *p = 1; AFTER(42); }
NOINLINE static void raising(int n) {
  MARK(43);
  if (n)
    raising(n - 1);
  else
    raise(SIGUSR1);
  AFTER(44);
}
NOINLINE static int recover(int alternate, int times) {
  static char room[65536];
  stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  if (alternate)
    sigaltstack(&stack, 0);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = alternate ? SA_ONSTACK : 0};
  sigaction(SIGUSR1, &action, 0);
  volatile int landed = 0;
  for (volatile int i = 0; i < times; ++i) {
    if (sigsetjmp(point, 1) == 0) {
      MARK(45);
      raising(i);
    } else {
      MARK(46);
      ++landed;
    }
    dig(3);
  }
  return landed;
}

// --- what returns twice besides
static ucontext_t context;
NOINLINE static int get_context(void) {
  volatile int times = 0;
  getcontext(&context);
  MARK(47);
  ++times;
  if (times & 1) {
    MARK(48);
  }
  if (times < 1000) {
    MARK(49);
    setcontext(&context);
  }
  MARK(50);
  return times;
}
static void *builtin[5];
#ifdef __aarch64__ // which has no such builtin
#define __builtin_longjmp(environment, value) abort()
#define __builtin_setjmp(environment) 0
#endif
NOINLINE static void builtin_jump(void) { MARK(51); __builtin_longjmp(builtin, 1); }
NOINLINE static int builtin_setjmp(void) {
  volatile int times = 0;
  if (__builtin_setjmp(builtin)) {
    MARK(52);
  } else {
    MARK(53);
  }
  if (++times < 1000) {
    if (times & 1)
      MARK(54);
    builtin_jump();
  }
  MARK(55);
  return times;
}
NOINLINE static int vforks(void) {
  int sum = 0;
  for (int i = 0; i < 5; ++i) {
    MARK(56);
    if (!count_yes)
      break;
    pid_t child = vfork();
    if (child == 0) {
      MARK(57);
      if (i & 1) {
        MARK(58);
        _exit(3);
      }
      _exit(5);
    }
    MARK(59);
    int s;
    if (waitpid(child, &s, 0) == child)
      sum += WEXITSTATUS(s);
  }
  return sum;
}
// Another stack.
static ucontext_t back, there;
static char room[1 << 16];
NOINLINE static void coroutine(void) {
  MARK(12);
  for (int i = 0; i < 4; ++i) {
    MARK(13);
    swapcontext(&there, &back);
    AFTER(14);
  }
}
// Not counted: getcontext returns twice.
NOINLINE static void make(void) {
  getcontext(&there);
  there.uc_stack.ss_sp = room;
  there.uc_stack.ss_size = sizeof room;
  there.uc_link = &back;
  makecontext(&there, coroutine, 0);
}
NOINLINE static int coroutines(void) {
  make();
  int turns = 0;
  for (int i = 0; i < 5; ++i) {
    MARK(15);
    swapcontext(&back, &there);
    ++turns;
  }
  return turns;
}
static void *thread(void *unused) { dig(4); deep(6); return 0; }
static void *waits(void *unused) { MARK(16); for (;;) pause(); return 0; }

int main(int argc, char **argv) {
  const char *how = argv[1];
  dig(20);
  if (!strcmp(how, "exit")) ending = do_exit;
  if (!strcmp(how, "abort")) ending = do_abort;
  if (!strcmp(how, "_exit")) ending = do__exit;
  if (!strcmp(how, "_Exit")) ending = do__Exit;
  if (!strcmp(how, "quick_exit")) ending = do_quick_exit;
  if (!strcmp(how, "assert")) ending = do_assert;
  if (!strcmp(how, "pthread_exit")) ending = do_pthread_exit;
  if (!strcmp(how, "return")) ending = do_return;
  if (ending) {
    atexit(handler);
    at_quick_exit(handler);
    for (int i = 0;; ++i) {
      MARK(0);
      dig(i);
      if (i == 3) {
        MARK(9);
        deep(9);
        break;
      }
    }
    AFTER(17);
  }
  if (!strcmp(how, "main_exit"))
    for (int i = 0;; ++i) {
      MARK(0);
      if (dig(1) && i == 5)
        exit(4);
    }
  if (!strcmp(how, "jump")) {
    printf("%d\n", in_loop());
    for (int i = 0; i < 3; ++i)
      printf("%d\n", once());
    printf("%d\n", nest());
  }
  if (!strcmp(how, "jump_exit")) {
    printf("%d %d\n", in_loop(), nest());
    ending = do_exit;
    deep(4);
  }
  if (!strcmp(how, "signal")) printf("%d\n", recover(0, 6));
  if (!strcmp(how, "altstack")) printf("%d\n", recover(1, 6));
  if (!strcmp(how, "getcontext")) printf("%d\n", get_context());
  if (!strcmp(how, "builtin")) printf("%d\n", builtin_setjmp());
  if (!strcmp(how, "vfork")) printf("%d\n", vforks());
  if (!strcmp(how, "coroutines")) printf("%d\n", coroutines());
  if (!strcmp(how, "threads")) {
    ending = do_pthread_exit;
    for (int i = 0; i < 20; ++i) {
      pthread_t t;
      pthread_create(&t, 0, thread, 0);
      pthread_join(t, 0);
    }
  }
  if (!strcmp(how, "thread_exits")) {
    ending = do_exit;
    pthread_t t;
    pthread_create(&t, 0, thread, 0);
    waits(0);
  }
  if (!strcmp(how, "crash")) {
    dig(5);
    crash(0);
  }
  if (!strcmp(how, "kill")) {
    dig(5);
    kill(getpid(), SIGKILL);
  }
  return 0;
}
