// What follows a recursive call: of the nodes of trees, some end the traversal, and some keep it from their right subtree.
#include <stdio.h>
#include <stdlib.h>

struct node {
  int low, key;
  struct node *left, *right;
};

static unsigned state = 1;

static int draw(int limit) {
  state = state * 1664525u + 1013904223u;
  return (int)(state >> 9) % limit;
}

__attribute__((noinline)) int visit(const struct node *node, int high) {
  if (!node)
    return 0;
  const int left = visit(node->left, high);
  if (left < 0)
    return left;
  if (node->low > high)
    return left;
  if (node->key > 96)
    return -1;
  const int right = visit(node->right, high);
  return right < 0 ? right : left + right + 1;
}

static struct node *make(int depth) {
  if (!depth)
    return NULL;
  struct node *node = malloc(sizeof *node);
  node->low = draw(1000);
  node->key = draw(100);
  node->left = make(depth - 1);
  node->right = make(depth - 1);
  return node;
}

int main(int argc, char **argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 400000;
  struct node *trees[64];
  long sum = 0;
  for (int i = 0; i < 64; i++)
    trees[i] = make(5);
  for (long i = 0; i < rounds; i++)
    sum += visit(trees[i & 63], 700);
  printf("%ld\n", sum);
  return 0;
}
