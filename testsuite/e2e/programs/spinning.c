// A thread that spins beside one that works.
#include <pthread.h>
#include <sys/prctl.h>

static volatile unsigned long sink, spins;
static volatile int is_done;

__attribute__((noinline)) static void work(void) {
  for (unsigned long i = 0; i < 400000000; ++i)
    sink += i & 3 ? i : 1;
}

__attribute__((noinline)) static void spin(void) {
  while (!is_done)
    ++spins;
}

static void *spinner(void *unused) {
  prctl(PR_SET_NAME, "spinner");
  spin();
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, spinner, 0))
    return 1;
  work();
  is_done = 1;
  return pthread_join(thread, 0);
}
