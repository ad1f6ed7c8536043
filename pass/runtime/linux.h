// What counts.c needs of Linux, without headers of a C library: those of another architecture need not be installed.
// The constants are the same on x86-64 and AArch64 (Linux, include/uapi).
#ifndef PLEACH_LINUX_H
#define PLEACH_LINUX_H

#include <stddef.h>

enum {
  AT_FDCWD = -100,
  O_RDWR = 2,
  O_CREAT = 0100,
  O_CLOEXEC = 02000000,
  SEEK_END = 2,
  LOCK_EX = 2,
  LOCK_NB = 4,
  LOCK_UN = 8,
  PROT_READ = 1,
  PROT_WRITE = 2,
  MAP_SHARED = 1,
  MAP_PRIVATE = 2,
  MAP_ANONYMOUS = 32,
  MREMAP_MAYMOVE = 1,
  MREMAP_FIXED = 2,
  RLIMIT_FSIZE = 1,
  SIG_BLOCK = 0,
  SIG_SETMASK = 2,
  SS_ONSTACK = 1,
  AT_RANDOM = 25,
  EFAULT = 14,
  EFBIG = 27,
  ENOSYS = 38,
  EOPNOTSUPP = 95,
};

struct timespec {
  long seconds, nanoseconds;
};

struct iovec {
  void *base;
  size_t length;
};

// `stack_t`.
struct signal_stack {
  void *start;
  int flags;
  size_t size;
};

#if defined(__x86_64__)

enum {
  // Segments begin at multiples of this in the file: a multiple of the system's pages.
  FILE_PAGE = 4096,
  CALL_read = 0,
  CALL_write = 1,
  CALL_close = 3,
  CALL_lseek = 8,
  CALL_mmap = 9,
  CALL_rt_sigprocmask = 14,
  CALL_pread64 = 17,
  CALL_pwrite64 = 18,
  CALL_sched_yield = 24,
  CALL_mremap = 25,
  CALL_nanosleep = 35,
  CALL_getpid = 39,
  CALL_flock = 73,
  CALL_ftruncate = 77,
  CALL_getcwd = 79,
  CALL_sigaltstack = 131,
  CALL_gettid = 186,
  CALL_openat = 257,
  CALL_unlinkat = 263,
  CALL_fallocate = 285,
  CALL_pipe2 = 293,
  CALL_prlimit64 = 302,
  CALL_process_vm_readv = 310,
};

static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static inline void *thread_pointer(void) {
  void *control;
  __asm__("mov %%fs:0, %0" : "=r"(control));
  return control;
}

#elif defined(__aarch64__)

enum {
  // Kernels have pages of 4, 16 or 64 KiB.
  FILE_PAGE = 65536,
  CALL_getcwd = 17,
  CALL_flock = 32,
  CALL_unlinkat = 35,
  CALL_ftruncate = 46,
  CALL_fallocate = 47,
  CALL_openat = 56,
  CALL_close = 57,
  CALL_pipe2 = 59,
  CALL_lseek = 62,
  CALL_read = 63,
  CALL_write = 64,
  CALL_pread64 = 67,
  CALL_pwrite64 = 68,
  CALL_nanosleep = 101,
  CALL_sched_yield = 124,
  CALL_sigaltstack = 132,
  CALL_rt_sigprocmask = 135,
  CALL_getpid = 172,
  CALL_gettid = 178,
  CALL_mremap = 216,
  CALL_mmap = 222,
  CALL_prlimit64 = 261,
  CALL_process_vm_readv = 270,
};

static inline long call6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

static inline void *thread_pointer(void) {
  void *control;
  __asm__("mrs %0, tpidr_el0" : "=r"(control));
  return control;
}

#else
#error "the runtime is for x86-64 and AArch64"
#endif

#endif
