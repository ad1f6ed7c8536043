/*
 * meshopt: makes a mesh, indexes, simplifies, orders, packs and unpacks it, and sums what came out.
 *
 * usage: meshopt KIND SEED SIDE ROUNDS      KIND: grid (hills), torus, soup (triangles in no order)
 */
#include "bench.h"
#include "meshoptimizer.h"
#include <math.h>

struct vertex {
    float position[3];
    int16_t normal[4];
};

static float pseudo(struct random *random)
{
    return (float)(next_random(random) >> 40) / 16777216.0f;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: meshopt KIND SEED SIDE ROUNDS");
    struct random random = {parse_number(argv[2]) * 2 + 1};
    size_t side = parse_number(argv[3]);
    checksum_t sum = CHECKSUM_START;
    size_t triangles = 2 * side * side, corners = triangles * 3;
    struct vertex *soup = allocate(corners * sizeof *soup), *vertices = allocate(corners * sizeof *soup), *unpacked = allocate(corners * sizeof *soup);
    unsigned *remap = allocate(corners * sizeof(unsigned)), *indices = allocate(corners * sizeof(unsigned)), *other = allocate(corners * sizeof(unsigned)), *strip = allocate(2 * corners * sizeof(unsigned));
    for (size_t round = parse_number(argv[4]); round; round--) {
        float waves[6];
        for (int i = 0; i < 6; i++)
            waves[i] = 1 + pseudo(&random) * 9;
        size_t n = 0;
        for (size_t y = 0; y < side; y++)
            for (size_t x = 0; x < side; x++)
                for (int c = 0; c < 6; c++) {
                    static const int dx[] = {0, 1, 0, 1, 1, 0}, dy[] = {0, 0, 1, 0, 1, 1};
                    float u = (float)(x + (size_t)dx[c]) / (float)side, v = (float)(y + (size_t)dy[c]) / (float)side;
                    struct vertex *at = soup + n++;
                    memset(at, 0, sizeof *at);
                    if (!strcmp(argv[1], "torus")) {
                        int iu = (int)(u * 4096) % 4096, iv = (int)(v * 4096) % 4096;
                        float a = (float)iu / 4096 * 2 - 1, b = (float)iv / 4096 * 2 - 1, ring = 3 + (1 - b * b);
                        at->position[0] = ring * (1 - a * a), at->position[1] = ring * a, at->position[2] = b * (1 - b * b) * 2.6f;
                    } else {
                        float hill = (u * u * waves[0] - v * waves[1]) * (u - v * v) + (u * v * waves[2] - u * u * u * waves[3]);
                        at->position[0] = u * 10, at->position[1] = v * 10, at->position[2] = (float)(int)(hill * 64) / 64;
                    }
                    at->normal[2] = (int16_t)(at->position[2] * 100);
                }
        if (!strcmp(argv[1], "soup"))
            for (size_t t = triangles - 1; t; t--) {
                size_t with = (size_t)(next_random(&random) >> 20) % (t + 1);
                struct vertex swap[3];
                memcpy(swap, soup + 3 * t, sizeof swap);
                memcpy(soup + 3 * t, soup + 3 * with, sizeof swap);
                memcpy(soup + 3 * with, swap, sizeof swap);
            }
        size_t unique = meshopt_generateVertexRemap(remap, NULL, corners, soup, corners, sizeof *soup);
        meshopt_remapVertexBuffer(vertices, soup, corners, sizeof *soup, remap);
        meshopt_remapIndexBuffer(indices, NULL, corners, remap);
        float error = 0;
        size_t left = meshopt_simplify(other, indices, corners, vertices->position, unique, sizeof *vertices, corners / 3, 0.02f, 0, &error);
        sum = checksum_number(sum, left);
        meshopt_optimizeVertexCache(indices, indices, corners, unique);
        meshopt_optimizeOverdraw(indices, indices, corners, vertices->position, unique, sizeof *vertices, 1.05f);
        size_t used = meshopt_optimizeVertexFetch(vertices, indices, corners, vertices, unique, sizeof *vertices);
        size_t stripped = meshopt_stripify(strip, other, left, unique, ~0u);
        sum = checksum_bytes(sum, strip, stripped * sizeof *strip);
        size_t bound = meshopt_encodeIndexBufferBound(corners, unique), vbound = meshopt_encodeVertexBufferBound(used, sizeof *vertices);
        unsigned char *packed = allocate(bound), *vpacked = allocate(vbound);
        size_t size = meshopt_encodeIndexBuffer(packed, bound, indices, corners), vsize = meshopt_encodeVertexBuffer(vpacked, vbound, vertices, used, sizeof *vertices);
        sum = checksum_bytes(checksum_bytes(sum, packed, size), vpacked, vsize);
        for (int again = 0; again < 4; again++)
            if (meshopt_decodeIndexBuffer(other, corners, 4, packed, size) || meshopt_decodeVertexBuffer(unpacked, used, sizeof *vertices, vpacked, vsize))
                die("decoding failed");
        sum = checksum_bytes(sum, other, corners * sizeof *other);
        if (memcmp(unpacked, vertices, used * sizeof *vertices))
            die("decoded vertices differ");
        size_t meshlets_bound = meshopt_buildMeshletsBound(corners, 64, 96);
        struct meshopt_Meshlet *meshlets = allocate(meshlets_bound * sizeof *meshlets);
        unsigned *mv = allocate(corners * sizeof *mv);
        unsigned char *mt = allocate(corners + meshlets_bound * 4);
        size_t meshlet_count = meshopt_buildMeshlets(meshlets, mv, mt, indices, corners, vertices->position, used, sizeof *vertices, 64, 96, 0.25f);
        sum = checksum_bytes(sum, meshlets, meshlet_count * sizeof *meshlets);
        free(packed), free(vpacked), free(meshlets), free(mv), free(mt);
    }
    print_checksum(sum);
    return 0;
}
