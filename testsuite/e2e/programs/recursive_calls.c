// A test of an entry that rarely looks into another list, and the search that makes the test for each entry.
#include <stdio.h>

enum { LISTS = 64, ENTRIES = 32 };

struct entry {
  unsigned key, low, high, other;
};

static struct entry lists[LISTS][ENTRIES];

static int search(unsigned list, unsigned key, unsigned depth);

static int elsewhere(const struct entry *entry, unsigned key, unsigned depth) {
  if (depth > 3)
    return 0;
  return search(entry->other, key * 3 + 1, depth + 1) || search((entry->other + 1) % LISTS, key + 7, depth + 1);
}

static int possible(const struct entry *entry, unsigned key, unsigned depth) {
  if ((entry->key ^ key) % 16 != 0)
    return 0;
  if (entry->low > key || entry->high < key)
    return 0;
  if ((entry->key + depth) % 4 == 0)
    return entry->key / 64 == key / 64;
  return elsewhere(entry, key, depth);
}

static int search(unsigned list, unsigned key, unsigned depth) {
  for (unsigned i = 0; i < ENTRIES; i++)
    if (possible(&lists[list][i], key, depth))
      return 1;
  return 0;
}

int main(void) {
  unsigned state = 1, found = 0;
  for (unsigned i = 0; i < LISTS; i++)
    for (unsigned j = 0; j < ENTRIES; j++) {
      state = state * 1103515245 + 12345;
      lists[i][j] = (struct entry){state >> 20, state >> 25, 4096 - (state >> 24), (state >> 8) % LISTS};
    }
  for (unsigned i = 0; i < 20000; i++) {
    state = state * 1103515245 + 12345;
    found += search((state >> 10) % LISTS, state >> 20, 0);
  }
  printf("%u\n", found);
}
