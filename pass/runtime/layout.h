// The interface between counted modules and the runtime: included by counts.c and by cpp/count/.
#ifndef PLEACH_LAYOUT_H
#define PLEACH_LAYOUT_H

#include <stdint.h>

// Multiplier of the hash function.
#define PLEACH_HASH_FACTOR 0x9e3779b97f4a7c15UL
// The top byte of every record's tag. No pointer, small number or common floating-point number has it. `TAG_BYTE` in
// src/instrument.rs.
#define PLEACH_TAG_BYTE 0x9e
// Flag of a record whose number is a hash table's key: the key is in the next word, and the low half names the
// function.
#define PLEACH_RECORD_HASH 0x80000000UL

// The place of a hash-counted function's three words: `Hashed` in src/ffi.rs.
struct hashed {
  uint64_t function; // position in the unit
  uint64_t word;     // of the array: [pairs of the table, mask of their byte offsets, pair used last]
};

// One per instrumented module, emitted by the pass (cpp/count/unit.cpp).
struct unit {
  uint64_t id;
  const uint8_t *description;
  uint64_t description_size;
  uint64_t words;
  uint64_t tag; // of its records
  const struct hashed *hashed;
  uint64_t hashed_count;
  uint64_t *lost; // spare counters, used if memory cannot be mapped
  // The fields below belong to the runtime.
  struct unit *next;
  struct counters *free; // of threads that have ended
  uint64_t registered, described;
};

#endif
