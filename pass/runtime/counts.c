// The runtime of instrumented programs: it maps counters into a file, and counts the partial paths of activations that
// end early. build.rs compiles this to bitcode; the pass links it into every instrumented module, and the linker keeps
// one copy per executable or shared library. The file's layout is described in feedback/src/counts.rs.
//
// Only raw system calls are used, except for registering handlers of exit, fork and thread end, and to find the stack:
// the program may replace any function of its C library by one that counts, and counting may begin in a signal handler.
#include "layout.h"
#include "linux.h"

typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#define RUNTIME __attribute__((weak, visibility("hidden")))
// Called from hot code, which must not spill registers for the call.
#define COLD RUNTIME __attribute__((preserve_most, cold, noinline))

enum {
  PAGE = 4096,
  BLOCK_MAGIC = 0x4b424c50, // "PLBK"
  KIND_UNIT = 1,
  KIND_COUNTERS = 2,
  KIND_TABLE = 3,
  FIRST_SEGMENT = 64 << 10,
  MAX_SEGMENT = 1 << 20,
  FIRST_TABLE = 1024,
  LARGE_TABLE = 16384,
  // Maximum size of a thread's stack. If the stack pointer is farther from its end, the program uses a stack of its
  // own.
  MAX_STACK = 1 << 30,
  // Maximum distance of frames that are assumed to be on one stack.
  NEAR = 64 << 10,
  MAX_MARKS = 128,
};
#define FILE_MAGIC 0x3143484341454c50UL    // "PLEACHC1"
#define SEGMENT_MAGIC 0x31544d4745534c50UL // "PLSEGMT1"

struct segment_header {
  u64 magic, length, used;
  u32 process, reserved;
  u64 padding[4];
};

struct block {
  u32 magic, kind;
  u64 length, unit, function, size, reserved[2], in_use;
};

struct pair {
  u64 key, count;
};

// One thread's counters of one unit.
struct counters {
  struct counters *next; // in the thread, or in the unit's free list
  struct unit *unit;
  u64 **slot; // the thread's variable that points to the words
  u64 *words;
};

struct segment {
  struct segment *next;
  u8 *address;
  u64 length;
  u64 offset; // in the file
};

// setjmp calls whose frames are alive, innermost last.
struct marks {
  u32 count;
  struct {
    void *environment, *frame;
  } mark[MAX_MARKS];
};

RUNTIME u32 __pleach_lock;
RUNTIME u32 __pleach_started;
RUNTIME u32 __pleach_process;
RUNTIME u32 __pleach_warned;
RUNTIME u32 __pleach_key;
RUNTIME struct unit *__pleach_units;
RUNTIME struct segment *__pleach_segments;
RUNTIME u8 *__pleach_private, *__pleach_private_end;
RUNTIME char __pleach_pattern[PAGE + 512];
RUNTIME __thread struct counters *__pleach_thread;
RUNTIME __thread struct marks *__pleach_marks;

extern int atexit(void (*)(void));
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
extern int pthread_key_create(u32 *, void (*)(void *));
extern int pthread_setspecific(u32, const void *);
extern char **environ;
extern unsigned long getauxval(unsigned long);

#define CALL(name, a, b, c, d) \
  call6(CALL_##name, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline u8 *map(u64 length, int flags, int file, u64 offset) {
  long at = call6(CALL_mmap, 0, (long)length, PROT_READ | PROT_WRITE, flags, file, (long)offset);
  return at < 0 && at > -PAGE ? NULL : (u8 *)at;
}

static inline u64 up(u64 value, u64 to) { return (value + to - 1) & ~(to - 1); }

// Blocks every signal and takes the lock, because signal handlers may count too. Returns the signal mask for
// `__pleach_leave`.
RUNTIME u64 __pleach_enter(void) {
  u64 all = ~0UL, before = 0;
  CALL(rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
  while (__atomic_exchange_n(&__pleach_lock, 1, __ATOMIC_ACQUIRE))
    CALL(sched_yield, 0, 0, 0, 0);
  return before;
}

RUNTIME void __pleach_leave(u64 before) {
  __atomic_store_n(&__pleach_lock, 0, __ATOMIC_RELEASE);
  CALL(rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
}

RUNTIME u64 __pleach_append(char *to, u64 at, u64 size, const char *text) {
  while (*text && at + 1 < size)
    to[at++] = *text++;
  to[at] = 0;
  return at;
}

// The name of this process's file.
RUNTIME void __pleach_file_name(char *name, u64 size) {
  u64 at = 0;
  for (const char *p = __pleach_pattern; *p && at + 1 < size; ++p) {
    if (p[0] == '%' && p[1] == 'p') {
      char digits[12];
      u64 i = sizeof digits - 1;
      digits[i] = 0;
      for (u32 process = __pleach_process; process || !digits[i]; process /= 10)
        digits[--i] = (char)('0' + process % 10);
      at = __pleach_append(name, at, size, digits + i);
      ++p;
    } else {
      name[at++] = *p;
    }
  }
  name[at] = 0;
}

RUNTIME void __pleach_warn(const char *name, const char *what) {
  if (__pleach_warned)
    return;
  __pleach_warned = 1;
  char text[PAGE + 1024];
  u64 at = __pleach_append(text, 0, sizeof text, "pleach: error: ");
  at = __pleach_append(text, at, sizeof text, name);
  at = __pleach_append(text, at, sizeof text, what);
  at = __pleach_append(text, at, sizeof text,
              "; paths counted from here on are lost: set PLEACH_COUNTS to a file that can be written "
              "(%p stands for the process)\n");
  CALL(write, 2, text, at, 0);
}

// Others hold the lock only while they add room; whoever holds it longer is not one of us.
RUNTIME int __pleach_lock_file(long file) {
  struct timespec pause = {0, 100000};
  for (int attempt = 0; attempt < 10000; ++attempt) {
    if (CALL(flock, file, LOCK_EX | LOCK_NB, 0, 0) == 0)
      return 1;
    CALL(nanosleep, &pause, 0, 0, 0);
  }
  return 0;
}

// Closes a file, unlocked before: a mapping keeps the lock of a file that is only closed.
RUNTIME void __pleach_close(long file) {
  CALL(flock, file, LOCK_UN, 0, 0);
  CALL(close, file, 0, 0, 0);
}

// Opens the process's file, locked and with its header. Another start of a program with the same file name is replaced,
// never overwritten: it may still be running.
RUNTIME long __pleach_open_file(const char *name) {
  const u64 *start = (const u64 *)getauxval(AT_RANDOM);
  u64 header[4] = {FILE_MAGIC, 1 | (u64)FILE_PAGE << 32, start ? start[0] : 0, start ? start[1] : 0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    long file = CALL(openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      return file;
    if (!__pleach_lock_file(file)) {
      __pleach_close(file);
      return -1;
    }
    u64 found[4] = {0};
    long got = CALL(pread64, file, found, sizeof found, 0);
    if (got == 0) {
      CALL(pwrite64, file, header, sizeof header, 0);
      if (CALL(ftruncate, file, FILE_PAGE, 0, 0) == 0)
        return file;
      __pleach_close(file);
      return -1;
    }
    int same = got == (long)sizeof found;
    for (int i = 0; i < 4; ++i)
      same &= found[i] == header[i];
    if (same)
      return file;
    // Only what is ours by its first bytes is replaced; anything else is the user's.
    if (got != (long)sizeof found || found[0] != FILE_MAGIC) {
      __pleach_close(file);
      return -2 * PAGE;
    }
    CALL(unlinkat, AT_FDCWD, name, 0, 0);
    __pleach_close(file);
  }
  return -1;
}

// Room at the end of the process's file, mapped. Where there is none, plain memory.
RUNTIME u8 *__pleach_map_segment(u64 length, u64 *offset) {
  char name[sizeof __pleach_pattern + 16];
  __pleach_file_name(name, sizeof name);
  u8 *at = NULL;
  long file = __pleach_open_file(name);
  if (file >= 0) {
    u64 end = up((u64)CALL(lseek, file, 0, SEEK_END, 0), FILE_PAGE);
    // Growth beyond the limit of file sizes would raise a fatal signal.
    u64 limit[2] = {~0UL, ~0UL};
    CALL(prlimit64, 0, RLIMIT_FSIZE, 0, limit);
    // Reserves blocks, so that a full disk fails here and does not raise a fatal signal when counting.
    long done = end + length > limit[0] ? -EFBIG : CALL(fallocate, file, 0, end, length);
    if (done == -EOPNOTSUPP || done == -ENOSYS)
      done = CALL(ftruncate, file, end + length, 0, 0);
    if (done == 0)
      at = map(length, MAP_SHARED, (int)file, end);
    *offset = end;
    __pleach_close(file);
    if (!at)
      __pleach_warn(name, ": no room for counters");
  } else {
    __pleach_warn(name, file == -2 * PAGE ? ": exists and is not a count file" : ": cannot be written");
  }
  if (!at)
    at = map(length, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at) {
    struct segment_header *header = (struct segment_header *)at;
    header->length = length;
    header->used = sizeof *header;
    header->process = __pleach_process;
    header->magic = SEGMENT_MAGIC;
  }
  return at;
}

// Zeroed private memory.
RUNTIME void *__pleach_private_memory(u64 size) {
  size = up(size, 16);
  if (!__pleach_private || (u64)(__pleach_private_end - __pleach_private) < size) {
    u64 length = up(size > FIRST_SEGMENT ? size : FIRST_SEGMENT, FILE_PAGE);
    u8 *at = map(length, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!at)
      return NULL;
    __pleach_private = at;
    __pleach_private_end = at + length;
  }
  void *result = __pleach_private;
  __pleach_private += size;
  return result;
}

// Allocates a zeroed block of the file; NULL if there is no memory.
RUNTIME struct block *__pleach_block(u32 kind, u64 unit, u64 size, u64 item) {
  u64 length = up(sizeof(struct block) + size * item, 64);
  struct segment *segment = __pleach_segments;
  struct segment_header *header = segment ? (struct segment_header *)segment->address : NULL;
  if (!header || header->used + length > segment->length) {
    u64 size = segment ? segment->length * 2 : FIRST_SEGMENT;
    if (size > MAX_SEGMENT)
      size = MAX_SEGMENT;
    u64 need = up(sizeof *header + length, FILE_PAGE);
    struct segment *next = __pleach_private_memory(sizeof *next);
    if (!next)
      return NULL;
    next->length = size > need ? size : need;
    next->address = __pleach_map_segment(next->length, &next->offset);
    if (!next->address)
      return NULL;
    next->next = segment;
    __pleach_segments = segment = next;
    header = (struct segment_header *)segment->address;
  }
  struct block *block = (struct block *)(segment->address + header->used);
  block->kind = kind;
  block->length = length;
  block->unit = unit;
  block->size = size;
  block->magic = BLOCK_MAGIC;
  // The file of a killed process is complete up to `used`.
  __atomic_store_n(&header->used, header->used + length, __ATOMIC_RELEASE);
  return block;
}

RUNTIME void __pleach_copy(u8 *to, const u8 *from, u64 size) {
  for (u64 i = 0; i < size; ++i)
    to[i] = from[i];
}

// Initialises a unit's hash counters with an empty table.
RUNTIME void __pleach_forget_tables(const struct unit *unit, u64 *words) {
  for (u64 i = 0; i < unit->hashed_count; ++i) {
    u64 *word = &words[unit->hashed[i].word];
    // A table of one free pair.
    word[0] = word[2] = (u64)unit->lost;
    word[1] = 0;
  }
}

// Finds or inserts the pair of a number in a thread's table. Only this thread and its signal handlers use the table, so
// no lock is needed. A full table is kept, and a larger one is added: readers of the file sum them.
RUNTIME struct pair *__pleach_find(struct unit *unit, u64 *words, const struct hashed *hashed, u64 key) {
  u64 *word = &words[hashed->word];
  for (;;) {
    u8 *pairs = (u8 *)word[0];
    struct block *table = pairs == (u8 *)unit->lost ? NULL : (struct block *)pairs - 1;
    if (table) {
      u64 mask = (table->size - 1) * sizeof(struct pair), at = key * PLEACH_HASH_FACTOR >> 32;
      for (;; at += sizeof(struct pair)) {
        struct pair *pair = (struct pair *)(pairs + (at & mask));
        if (pair->key == key + 1)
          return pair;
        if (pair->key)
          continue;
        // Sparse, because the hot code probes the first place only; large tables are denser to save cache.
        if (table->in_use * (table->size < LARGE_TABLE ? 8 : 2) >= table->size)
          break;
        u64 free = 0;
        if (__atomic_compare_exchange_n(&pair->key, &free, key + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
          ++table->in_use;
        if (pair->key == key + 1)
          return pair;
      }
    }
    u64 before = __pleach_enter();
    struct block *larger =
        __pleach_block(KIND_TABLE, unit->id, table ? table->size * 2 : FIRST_TABLE, sizeof(struct pair));
    if (larger) {
      larger->function = hashed->function;
      // A signal handler at this point probes only a part of the larger table, which is harmless.
      word[1] = 0;
      word[0] = (u64)(larger + 1);
      word[1] = (larger->size - 1) * sizeof(struct pair);
    }
    __pleach_leave(before);
    if (!larger)
      return (struct pair *)unit->lost; // counts are lost: the spare counters are never read
  }
}

// The counter of a number in a hash table. The hot code has already probed the first place, and possibly the last pair.
COLD struct pair *__pleach_count(struct unit *unit, u64 *words, u64 position, u64 key) {
  return __pleach_find(unit, words, &unit->hashed[position], key);
}

COLD u64 *__pleach_attach(struct unit *unit, u64 **slot);

// Counts and clears a record; ignores other words. A record is two 32-bit words in the frame of an activation that is
// inside a call: the number of the partial path, and the tag. The key in a hash table follows if `halves` is large
// enough.
//
// No copy of a whole record may remain on the stack, where it would be mistaken for another record. The tag is
// therefore loaded again for every comparison, because a live value might be spilled beside the number, and the buffer
// below is cleared.
RUNTIME void __pleach_count_record(u64 *record, const volatile u32 *halves, int has_key) {
  struct unit *unit = __pleach_units;
  while (unit && unit->tag != halves[1])
    unit = unit->next;
  if (!unit)
    return;
  struct counters *counters = __pleach_thread;
  while (counters && counters->unit != unit)
    counters = counters->next;
  if (!counters) {
    // This thread has no counts of this unit yet.
    u64 before = __pleach_enter();
    u64 **slot = __pleach_private_memory(sizeof *slot);
    __pleach_leave(before);
    if (!slot || __pleach_attach(unit, slot) == unit->lost)
      return;
    counters = __pleach_thread;
  }
  u64 low = halves[0];
  if (low & PLEACH_RECORD_HASH) {
    u64 position = low & ~PLEACH_RECORD_HASH;
    if (position >= unit->hashed_count || !has_key)
      return;
    u64 key = halves[2] | (u64)halves[3] << 32;
    ++__pleach_find(unit, counters->words, &unit->hashed[position], key)->count;
  } else {
    if (low >= unit->words)
      return;
    ++counters->words[low];
  }
  *record = 0;
}

// Counts the records in a part of the stack, or in a copy of it; `more` further words follow it.
RUNTIME void __pleach_count_copy(u64 *at, const volatile u32 *halves, u64 count, u64 more) {
  for (u64 i = 0; i < count; ++i)
    if (((const volatile u8 *)&halves[2 * i])[7] == PLEACH_TAG_BYTE)
      __pleach_count_record(at + i, &halves[2 * i], i + 1 < count + more);
}

// Has the kernel read at most a page of memory, which may be unmapped. Returns how many bytes it read.
RUNTIME long __pleach_read_memory(void *buffer, void *address, u64 size) {
  struct iovec to = {buffer, size}, from = {address, size};
  long process = CALL(getpid, 0, 0, 0, 0);
  long got = call6(CALL_process_vm_readv, process, (long)&to, 1, (long)&from, 1, 0);
  if (got >= 0 || got == -EFAULT)
    return got;
  // Containers may forbid this call, and emulators lack it.
  int ends[2];
  if (CALL(pipe2, ends, O_CLOEXEC, 0, 0) != 0)
    return got;
  got = CALL(write, ends[1], address, size, 0);
  if (got > 0)
    got = CALL(read, ends[0], buffer, got, 0);
  CALL(close, ends[0], 0, 0, 0);
  CALL(close, ends[1], 0, 0, 0);
  return got;
}

// Counts the records of at most a page of stack; returns false if it is unmapped.
RUNTIME int __pleach_count_piece(u8 *low, u64 size) {
  u32 halves[PAGE / 4 + 2];
  long got = __pleach_read_memory(halves, low, size + 8);
  if (got >= (long)size)
    __pleach_count_copy((u64 *)low, halves, size / 8, (u64)got > size);
  for (u64 i = 0; i < sizeof halves / sizeof *halves; ++i)
    ((volatile u32 *)halves)[i] = 0;
  return got >= (long)size;
}

// Counts the records from a frame to the outer end of its stack.
RUNTIME void __pleach_count_up(u8 *low, u8 *high) {
  for (low = (u8 *)up((u64)low, 8); low < high;) {
    u8 *end = (u8 *)up((u64)low + 8, PAGE);
    if (end > high)
      end = high;
    if (!__pleach_count_piece(low, (u64)(end - low) & ~7UL))
      return;
    low = end;
  }
}

// Counts records downwards, if the innermost frame is unknown. Activations that returned have cleared their records.
RUNTIME void __pleach_count_down(u8 *high) {
  high = (u8 *)((u64)high & ~7UL);
  for (u8 *limit = high - MAX_STACK; high > limit;) {
    u8 *start = (u8 *)(((u64)high - 8) & ~(u64)(PAGE - 1));
    if (!__pleach_count_piece(start, (u64)(high - start)))
      return;
    high = start;
  }
}

// The end of the alternate signal stack if this thread runs on it, else NULL.
RUNTIME u8 *__pleach_signal_stack_end(void) {
  struct signal_stack stack;
  if (CALL(sigaltstack, 0, &stack, 0, 0) != 0 || !(stack.flags & SS_ONSTACK))
    return NULL;
  return (u8 *)stack.start + stack.size;
}

// An upper bound of this thread's stack: the random bytes of the auxiliary vector are above every frame of the main
// thread, the thread control block above every frame of other threads.
RUNTIME u8 *__pleach_stack_end(void) {
  long thread = CALL(gettid, 0, 0, 0, 0), process = CALL(getpid, 0, 0, 0, 0);
  return thread == process ? (u8 *)getauxval(AT_RANDOM) : thread_pointer();
}

// Called before a call that ends the process or the thread, and at exit: counts all activations on this thread's stack.
// In a child of vfork they belong to the parent, where they continue.
RUNTIME void __pleach_ending(void) {
  if ((u32)CALL(getpid, 0, 0, 0, 0) != __pleach_process)
    return;
  u8 *here = __builtin_frame_address(0), *end = __pleach_stack_end(), *signal = __pleach_signal_stack_end();
  if (signal) {
    __pleach_count_up(here, signal);
    __pleach_count_down(end);
  } else if (here < end && end - here < MAX_STACK) {
    __pleach_count_up(here, end);
  }
}

// Called by std::terminate for an unhandled exception: the stack is still the one of the throw.
RUNTIME void (*__pleach_terminate_before)(void);
extern void (*_ZSt13set_terminatePFvvE(void (*)(void)))(void) __attribute__((weak));

RUNTIME void __pleach_terminate(void) {
  __pleach_ending();
  if (__pleach_terminate_before)
    __pleach_terminate_before();
}

// Counts the record of an activation through which an exception unwinds. Its tag is passed inverted.
RUNTIME void __pleach_abandon(u64 low, u64 inverted, u64 key) {
  u64 record;
  volatile u32 halves[4] = {(u32)low, 0, (u32)key, (u32)(key >> 32)};
  halves[1] = ~(u32)inverted;
  __pleach_count_copy(&record, halves, 1, 1);
  halves[1] = 0;
}

// Called before setjmp: remembers the frame to which a longjmp to this environment returns. Frames below it are gone.
RUNTIME void __pleach_mark(void *environment, u8 *frame) {
  struct marks *marks = __pleach_marks;
  if (!marks) {
    u64 before = __pleach_enter();
    __pleach_marks = marks = __pleach_private_memory(sizeof *marks);
    __pleach_leave(before);
    if (!marks)
      return;
  }
  while (marks->count && (u8 *)marks->mark[marks->count - 1].frame < frame)
    --marks->count;
  for (u32 i = 0; i < marks->count; ++i)
    if (marks->mark[i].environment == environment) {
      marks->mark[i].frame = frame;
      return;
    }
  if (marks->count == MAX_MARKS) { // drop the outermost
    for (u32 i = 1; i < MAX_MARKS; ++i)
      marks->mark[i - 1] = marks->mark[i];
    --marks->count;
  }
  marks->mark[marks->count].environment = environment;
  marks->mark[marks->count++].frame = frame;
}

// Called before longjmp: counts the activations from here to the frame to which it returns, and that frame's own path.
RUNTIME void __pleach_jump(void *environment) {
  struct marks *marks = __pleach_marks;
  for (u32 i = marks ? marks->count : 0; i-- > 0;)
    if (marks->mark[i].environment == environment) {
      u8 *here = __builtin_frame_address(0), *there = marks->mark[i].frame;
      if (__pleach_signal_stack_end())
        __pleach_count_down(there);
      else if (there - here > 0 && there - here < NEAR)
        __pleach_count_copy((u64 *)here, (const volatile u32 *)here, (u64)(there - here) / 8, 0);
      else if (there - here > 0 && there - here < MAX_STACK)
        __pleach_count_up(here, there);
      return;
    }
}

RUNTIME void __pleach_before_fork(void) {
  while (__atomic_exchange_n(&__pleach_lock, 1, __ATOMIC_ACQUIRE))
    CALL(sched_yield, 0, 0, 0, 0);
}

RUNTIME void __pleach_after_fork_in_parent(void) { __atomic_store_n(&__pleach_lock, 0, __ATOMIC_RELEASE); }

// Called in a child of fork: it counts from zero in its own file, mapped at the same addresses.
RUNTIME void __pleach_after_fork_in_child(void) {
  __pleach_process = (u32)CALL(getpid, 0, 0, 0, 0);
  __pleach_warned = 0;
  for (struct segment *s = __pleach_segments; s; s = s->next) {
    u64 offset = 0;
    u8 *fresh = __pleach_map_segment(s->length, &offset);
    if (!fresh)
      continue;
    struct segment_header *old = (struct segment_header *)s->address, *new = (struct segment_header *)fresh;
    for (u64 at = sizeof *old; at < old->used;) {
      struct block *block = (struct block *)(s->address + at), *twin = (struct block *)(fresh + at);
      __pleach_copy((u8 *)twin, (u8 *)block, block->kind == KIND_UNIT ? block->length : sizeof *block);
      twin->in_use = 0;
      at += block->length;
    }
    new->used = old->used;
    s->offset = offset;
    call6(CALL_mremap, (long)fresh, (long)s->length, (long)s->length, MREMAP_MAYMOVE | MREMAP_FIXED,
          (long)s->address, 0);
  }
  // Zeroed words of hash counters are no valid tables. Other threads do not exist in the child, and their arrays are
  // unused.
  for (struct counters *c = __pleach_thread; c; c = c->next)
    __pleach_forget_tables(c->unit, c->words);
  __atomic_store_n(&__pleach_lock, 0, __ATOMIC_RELEASE);
}

// Called at the end of a thread: the next thread continues with its arrays, because counts of threads are summed
// anyway.
RUNTIME void __pleach_thread_ends(void *unused) {
  (void)unused;
  u64 before = __pleach_enter();
  struct counters *c = __pleach_thread;
  __pleach_thread = NULL;
  while (c) {
    struct counters *next = c->next;
    *c->slot = NULL;
    c->next = c->unit->free;
    c->unit->free = c;
    c = next;
  }
  __pleach_leave(before);
}

// The value of an environment variable, whose name ends in '='.
RUNTIME const char *__pleach_variable(const char *name) {
  for (char **variable = environ; variable && *variable; ++variable) {
    u64 at = 0;
    while (name[at] && (*variable)[at] == name[at])
      ++at;
    if (!name[at])
      return *variable + at;
  }
  return NULL;
}

// Called with the lock held: functions that count must not be called.
RUNTIME void __pleach_start(void) {
  __pleach_process = (u32)CALL(getpid, 0, 0, 0, 0);
  const char *name = __pleach_variable("PLEACH_COUNTS=");
  if (!name || !*name)
    name = "default-%p.plcnt";
  u64 at = 0;
  if (*name != '/') {
    // The program may change its working directory before it maps another segment.
    long length = CALL(getcwd, __pleach_pattern, PAGE, 0, 0);
    at = length > 0 ? (u64)length - 1 : 0;
    if (at)
      __pleach_pattern[at++] = '/';
  }
  __pleach_append(__pleach_pattern, at, sizeof __pleach_pattern, name);
}

// Registers a unit. Called by a constructor, or by the unit's first count if an earlier constructor counts.
RUNTIME void __pleach_register(struct unit *unit) {
  u64 before = __pleach_enter();
  int first = !__pleach_started;
  if (first) {
    __pleach_start();
    __pleach_started = 1;
  }
  if (!unit->registered) {
    unit->registered = 1;
    unit->next = __pleach_units;
    __pleach_units = unit;
  }
  __pleach_leave(before);
  if (first) {
    // These may allocate and thereby run instrumented code, so the initialisation above is complete.
    pthread_key_create(&__pleach_key, __pleach_thread_ends);
    pthread_atfork(__pleach_before_fork, __pleach_after_fork_in_parent, __pleach_after_fork_in_child);
    atexit(__pleach_ending);
    if (_ZSt13set_terminatePFvvE)
      __pleach_terminate_before = _ZSt13set_terminatePFvvE(__pleach_terminate);
  }
}

// Called by the first count of a unit in a thread: returns the thread's array.
COLD u64 *__pleach_attach(struct unit *unit, u64 **slot) {
  if (!unit->registered)
    __pleach_register(unit);
  u64 before = __pleach_enter();
  if (*slot) { // a signal handler has just set it
    __pleach_leave(before);
    return *slot;
  }
  if (!unit->described) {
    unit->described = 1;
    struct block *description = __pleach_block(KIND_UNIT, unit->id, unit->description_size, 1);
    if (description)
      __pleach_copy((u8 *)(description + 1), unit->description, unit->description_size);
  }
  struct counters *counters = unit->free;
  if (counters) {
    unit->free = counters->next;
  } else {
    struct block *block = __pleach_block(KIND_COUNTERS, unit->id, unit->words, sizeof(u64));
    counters = block ? __pleach_private_memory(sizeof *counters) : NULL;
    if (!counters) {
      *slot = unit->lost;
      __pleach_leave(before);
      return unit->lost;
    }
    counters->unit = unit;
    counters->words = (u64 *)(block + 1);
    __pleach_forget_tables(unit, counters->words);
  }
  counters->slot = slot;
  counters->next = __pleach_thread;
  int first = !counters->next;
  __pleach_thread = counters;
  *slot = counters->words;
  __pleach_leave(before);
  if (first)
    pthread_setspecific(__pleach_key, counters);
  return counters->words;
}
