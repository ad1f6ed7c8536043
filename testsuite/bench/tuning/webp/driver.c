/*
 * webp: draws pictures, encodes each with loss and without, decodes what came out, and sums it.
 *
 * usage: webp KIND SEED WIDTH ROUNDS      KIND: photo (smooth colours and grain), drawing (flat shapes), text (small glyphs)
 */
#include "bench.h"
#include "webp/decode.h"
#include "webp/encode.h"

static int below(struct random *random, int bound)
{
    return (int)(next_random(random) >> 40) % bound;
}

static void draw(const char *kind, struct random *random, uint8_t *pixels, int width, int height)
{
    for (int i = 0; i < width * height * 3; i++)
        pixels[i] = strcmp(kind, "photo") ? 250 : 0;
    if (!strcmp(kind, "photo")) {
        int phase[12];
        for (int i = 0; i < 12; i++)
            phase[i] = 1 + (int)(next_random(random) >> 50) % 61;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                for (int c = 0; c < 3; c++) {
                    int wave = (x * phase[c] + y * phase[c + 3]) / 17 % 256;
                    int dx = x - phase[c + 6] * 9, dy = y - phase[c + 9] * 7, hill = dx * dx / 90 + dy * dy / 110;
                    int grain = (int)(next_random(random) >> 60) - 8;
                    int value = (wave < 128 ? wave : 255 - wave) + (hill < 200 ? 200 - hill : 0) / 2 + grain;
                    pixels[(y * width + x) * 3 + c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
                }
        return;
    }
    int text = !strcmp(kind, "text");
    if (!text && strcmp(kind, "drawing"))
        die("'%s' is no kind of picture", kind);
    for (int shape = 0; shape < (text ? width * height / 90 : 60); shape++) {
        int w = text ? 2 + below(random, 6) : 4 + below(random, width / 3);
        int h = text ? 1 + below(random, 9) : 4 + below(random, height / 3);
        int left = below(random, width), top = below(random, height);
        if (text)
            top = top / 12 * 12;
        uint32_t colour = text ? 0x202028 : (uint32_t)(next_random(random) >> 30);
        int round = next_random(random) >> 63;
        for (int y = top; y < top + h && y < height; y++)
            for (int x = left; x < left + w && x < width; x++) {
                long dx = 2 * (x - left) - w, dy = 2 * (y - top) - h;
                if (round && dx * dx * h * h + dy * dy * w * w > (long)w * w * h * h)
                    continue;
                uint8_t *pixel = pixels + ((size_t)y * width + x) * 3;
                pixel[0] = (uint8_t)colour, pixel[1] = (uint8_t)(colour >> 8), pixel[2] = (uint8_t)(colour >> 16);
            }
    }
}

static checksum_t decode(checksum_t sum, const uint8_t *packed, size_t size)
{
    int width, height;
    uint8_t *pixels = WebPDecodeRGB(packed, size, &width, &height);
    if (!pixels)
        die("decoding failed");
    sum = checksum_bytes(sum, pixels, (size_t)width * height * 3);
    WebPFree(pixels);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: webp KIND SEED WIDTH ROUNDS");
    struct random random = {parse_number(argv[2]) * 2 + 1};
    int width = (int)parse_number(argv[3]), height = width * 3 / 4;
    uint8_t *pixels = allocate((size_t)width * height * 3);
    checksum_t sum = CHECKSUM_START;
    for (size_t rounds = parse_number(argv[4]); rounds; rounds--) {
        draw(argv[1], &random, pixels, width, height);
        uint8_t *packed;
        size_t size = WebPEncodeRGB(pixels, width, height, width * 3, 60 + 5 * (float)(rounds % 6), &packed);
        if (!size)
            die("encoding failed");
        sum = checksum_bytes(sum, packed, size);
        for (int pass = 0; pass < 6; pass++)
            sum = decode(sum, packed, size);
        WebPFree(packed);
        if (rounds % 3)
            continue;
        size = WebPEncodeLosslessRGB(pixels, width, height, width * 3, &packed);
        if (!size)
            die("encoding failed");
        sum = checksum_bytes(sum, packed, size);
        for (int pass = 0; pass < 6; pass++)
            sum = decode(sum, packed, size);
        WebPFree(packed);
    }
    print_checksum(sum);
    return 0;
}
