/*
 * tree-sitter: parses JavaScript files, walks each whole tree and sums node kinds and positions.
 *
 * usage: treesitter ROUNDS SIZE FILE…      SIZE limits the bytes taken from each file
 */
#include "bench.h"
#include "tree_sitter/api.h"

const TSLanguage *tree_sitter_javascript(void);

/* Visits every node in pre-order. */
static checksum_t sum_tree(const TSTree *tree, checksum_t sum)
{
    TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
    for (;;) {
        TSNode node = ts_tree_cursor_current_node(&cursor);
        sum = checksum_number(sum, (uint64_t)ts_node_symbol(node) << 32 | ts_node_end_byte(node));
        if (ts_tree_cursor_goto_first_child(&cursor))
            continue;
        while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
            if (!ts_tree_cursor_goto_parent(&cursor)) {
                ts_tree_cursor_delete(&cursor);
                return sum;
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        die("usage: treesitter ROUNDS SIZE FILE…");
    size_t rounds = parse_number(argv[1]);
    size_t limit = parse_number(argv[2]);
    TSParser *parser = ts_parser_new();
    if (!ts_parser_set_language(parser, tree_sitter_javascript()))
        die("the grammar does not fit this tree-sitter");

    checksum_t sum = CHECKSUM_START;
    for (int file = 3; file < argc; file++) {
        size_t size;
        char *source = read_file(argv[file], &size);
        if (size > limit)
            size = limit;
        for (size_t round = 0; round < rounds; round++) {
            TSTree *tree = ts_parser_parse_string(parser, NULL, source, (uint32_t)size);
            if (!tree)
                die("no tree for %s", argv[file]);
            sum = sum_tree(tree, sum);
            ts_tree_delete(tree);
        }
        free(source);
    }
    ts_parser_delete(parser);
    print_checksum(sum);
    return 0;
}
