/*
 * METIS: partitions a mesh k ways, bisects it recursively, and orders it by nested dissection.
 *
 * usage: metis WIDTH KIND PARTS      KIND: 0 plane grid with random diagonals, 1 cubic grid with random short-cuts
 */
#include "bench.h"
#include "metis.h"

struct edges {
    idx_t *from;
    idx_t *to;
    idx_t *degree; /* of each vertex */
    idx_t count;
    idx_t capacity;
};

static void add_edge(struct edges *edges, idx_t from, idx_t to)
{
    if (from == to || edges->count == edges->capacity)
        return;
    edges->from[edges->count] = from;
    edges->to[edges->count] = to;
    edges->count++;
    edges->degree[from]++;
    edges->degree[to]++;
}

static void plane_grid(struct edges *edges, idx_t width, struct random *random)
{
    for (idx_t y = 0; y < width; y++)
        for (idx_t x = 0; x < width; x++) {
            idx_t here = y * width + x;
            if (x + 1 < width)
                add_edge(edges, here, here + 1);
            if (y + 1 < width)
                add_edge(edges, here, here + width);
            if (x + 1 < width && y + 1 < width && next_random(random) % 3 == 0)
                add_edge(edges, here, here + width + 1);
        }
}

static void cubic_grid(struct edges *edges, idx_t width, struct random *random)
{
    for (idx_t z = 0; z < width; z++)
        for (idx_t y = 0; y < width; y++)
            for (idx_t x = 0; x < width; x++) {
                idx_t here = (z * width + y) * width + x;
                if (x + 1 < width)
                    add_edge(edges, here, here + 1);
                if (y + 1 < width)
                    add_edge(edges, here, here + width);
                if (z + 1 < width)
                    add_edge(edges, here, here + width * width);
                if (x + 2 < width && y + 1 < width && next_random(random) % 4 == 0)
                    add_edge(edges, here, here + width + 2);
            }
}

/* Compressed adjacency lists, as METIS wants them. */
struct graph {
    idx_t vertices;
    idx_t *start;
    idx_t *adjacent;
};

static struct graph build_graph(idx_t width, int kind)
{
    idx_t vertices = kind ? width * width * width : width * width;
    struct edges edges = {.capacity = vertices * 8};
    edges.from = allocate(sizeof(idx_t) * (size_t)edges.capacity);
    edges.to = allocate(sizeof(idx_t) * (size_t)edges.capacity);
    edges.degree = calloc((size_t)vertices + 1, sizeof(idx_t));
    if (!edges.degree)
        die("out of memory");
    struct random random = {777 + (uint64_t)kind};
    if (kind)
        cubic_grid(&edges, width, &random);
    else
        plane_grid(&edges, width, &random);

    struct graph graph = {.vertices = vertices};
    graph.start = allocate(sizeof(idx_t) * ((size_t)vertices + 1));
    graph.adjacent = allocate(sizeof(idx_t) * 2 * (size_t)edges.count);
    idx_t *next = allocate(sizeof(idx_t) * (size_t)vertices);
    graph.start[0] = 0;
    for (idx_t i = 0; i < vertices; i++) {
        next[i] = graph.start[i];
        graph.start[i + 1] = graph.start[i] + edges.degree[i];
    }
    for (idx_t i = 0; i < edges.count; i++) {
        graph.adjacent[next[edges.from[i]]++] = edges.to[i];
        graph.adjacent[next[edges.to[i]]++] = edges.from[i];
    }
    free(next);
    free(edges.degree);
    free(edges.to);
    free(edges.from);
    return graph;
}

static void expect_ok(int status, const char *what)
{
    if (status != METIS_OK)
        die("%s failed: %d", what, status);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: metis WIDTH KIND PARTS");
    struct graph graph = build_graph((idx_t)parse_number(argv[1]), (int)parse_number(argv[2]));
    idx_t parts = (idx_t)parse_number(argv[3]);
    idx_t constraints = 1;
    idx_t cut;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 5;

    size_t bytes = sizeof(idx_t) * (size_t)graph.vertices;
    idx_t *partition = allocate(bytes);
    idx_t *inverse = allocate(bytes);
    checksum_t sum = CHECKSUM_START;

    expect_ok(METIS_PartGraphKway(&graph.vertices, &constraints, graph.start, graph.adjacent, NULL, NULL, NULL, &parts, NULL,
                                  NULL, options, &cut, partition),
              "k-way partitioning");
    sum = checksum_bytes(sum, partition, bytes);
    printf("k-way cut %d\n", (int)cut);

    parts /= 4;
    expect_ok(METIS_PartGraphRecursive(&graph.vertices, &constraints, graph.start, graph.adjacent, NULL, NULL, NULL, &parts,
                                       NULL, NULL, options, &cut, partition),
              "recursive bisection");
    sum = checksum_bytes(sum, partition, bytes);
    printf("recursive cut %d\n", (int)cut);

    expect_ok(METIS_NodeND(&graph.vertices, graph.start, graph.adjacent, NULL, options, partition, inverse),
              "nested dissection");
    sum = checksum_bytes(sum, partition, bytes);
    print_checksum(sum);

    free(inverse);
    free(partition);
    free(graph.adjacent);
    free(graph.start);
    return 0;
}
