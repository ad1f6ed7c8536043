// Loops whose next turn works on what a comparison decides.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE __attribute__((noinline)) static

struct node {
  struct node *ways[2];
  const char *key;
  unsigned value;
};

// A search tree: which child is next, takes long to tell, and a processor may guess it.
ALONE const struct node *at_least(const struct node *n, const char *key) {
  const struct node *found = NULL;
  while (n) {
    if (strcmp(n->key, key) < 0) {
      n = n->ways[1];
    } else {
      found = n;
      n = n->ways[0];
    }
  }
  return found;
}

// Here it does not take long, and a guess would be wrong every other time.
ALONE unsigned position(const unsigned *sorted, unsigned length, unsigned x) {
  const unsigned *from = sorted;
  while (length > 1) {
    unsigned half = length / 2;
    from = from[half - 1] < x ? from + half : from;
    length -= half;
  }
  return (unsigned)(from - sorted);
}

// The turns do not wait for one another.
ALONE unsigned longest(char **words, unsigned count) {
  unsigned sum = 0;
  for (unsigned i = 0; i < count; ++i)
    sum += strcmp(words[i], "k") < 0 ? 3 : i;
  return sum;
}

static struct node *insert(struct node *root, char *key, unsigned value) {
  struct node **at = &root;
  while (*at)
    at = &(*at)->ways[strcmp((*at)->key, key) < 0];
  *at = calloc(1, sizeof **at);
  (*at)->key = key;
  (*at)->value = value;
  return root;
}

// What no compiler knows.
static volatile unsigned words_in_all = 1000;

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 3000000, seed = 1, sum = 0;
  static char text[1000][8];
  static char *words[1000];
  static unsigned sorted[1000];
  struct node *root = NULL;
  for (unsigned i = 0; i < 1000; ++i) {
    seed = seed * 1103515245u + 12345u;
    snprintf(text[i], sizeof text[i], "%c%u", 'a' + (seed >> 16) % 26, (seed >> 8) % 10000);
    words[i] = text[i];
    sorted[i] = i * 7;
    root = insert(root, words[i], i);
  }
  for (unsigned i = 0; i < rounds; ++i) {
    seed = seed * 1103515245u + 12345u;
    const struct node *found = at_least(root, words[(seed >> 16) % 1000]);
    sum = sum * 31 + (found ? found->value : 7) + position(sorted, words_in_all, (seed >> 16) % 7000);
    if (i % 1000 == 0)
      sum += longest(words, words_in_all);
  }
  printf("%u\n", sum);
  return 0;
}
