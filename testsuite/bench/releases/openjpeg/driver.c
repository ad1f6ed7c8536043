/*
 * OpenJPEG: draws an RGB picture, encodes it as JPEG 2000 once without loss and once with, and decodes each twice.
 *
 * usage: openjpeg WIDTH KIND LOSSY_FIRST      KIND: 0 rings with inserts, 1 waves on a noisy checkerboard
 */
#include "bench.h"
#include "openjpeg.h"
#include <math.h>

enum { COMPONENTS = 3, MODES = 2, DECODINGS = 2 };

/* A file in memory. */
struct buffer {
    unsigned char *bytes;
    size_t position;
    size_t length;
    size_t capacity;
};

static OPJ_SIZE_T write_bytes(void *bytes, OPJ_SIZE_T count, void *user)
{
    struct buffer *buffer = user;
    if (buffer->position + count > buffer->capacity) {
        buffer->capacity = (buffer->position + count) * 2;
        buffer->bytes = realloc(buffer->bytes, buffer->capacity);
        if (!buffer->bytes)
            die("out of memory");
    }
    memcpy(buffer->bytes + buffer->position, bytes, count);
    buffer->position += count;
    if (buffer->position > buffer->length)
        buffer->length = buffer->position;
    return count;
}

static OPJ_SIZE_T read_bytes(void *bytes, OPJ_SIZE_T count, void *user)
{
    struct buffer *buffer = user;
    if (buffer->position >= buffer->length)
        return (OPJ_SIZE_T)-1;
    if (count > buffer->length - buffer->position)
        count = buffer->length - buffer->position;
    memcpy(bytes, buffer->bytes + buffer->position, count);
    buffer->position += count;
    return count;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *user)
{
    ((struct buffer *)user)->position += (size_t)count;
    return count;
}

static OPJ_BOOL seek_bytes(OPJ_OFF_T position, void *user)
{
    ((struct buffer *)user)->position = (size_t)position;
    return OPJ_TRUE;
}

static opj_stream_t *open_stream(struct buffer *buffer, OPJ_BOOL for_reading)
{
    opj_stream_t *stream = opj_stream_create(1 << 16, for_reading);
    if (!stream)
        die("no stream");
    opj_stream_set_write_function(stream, write_bytes);
    opj_stream_set_read_function(stream, read_bytes);
    opj_stream_set_skip_function(stream, skip_bytes);
    opj_stream_set_seek_function(stream, seek_bytes);
    opj_stream_set_user_data(stream, buffer, NULL);
    if (for_reading)
        opj_stream_set_user_data_length(stream, buffer->length);
    buffer->position = 0;
    return stream;
}

static double rings(int x, int y, int component, struct random *random)
{
    int in_insert = x % 64 < 20 && y % 48 < 10;
    return 128 + 50 * sin((x * x + y * y) * 0.0007 + component) + 30 * cos(x * 0.11) + (double)(next_random(random) % 6) +
           (in_insert ? 40 : 0);
}

static double waves(int x, int y, int component, struct random *random)
{
    int dark = (x / 17 + y / 23) & 1;
    return 128 + 60 * sin(x * 0.031 * (component + 1) + y * 0.017) + 40 * dark + (double)(next_random(random) % 20);
}

static opj_image_t *draw(int width, int kind)
{
    opj_image_cmptparm_t parameters[COMPONENTS];
    memset(parameters, 0, sizeof parameters);
    for (int i = 0; i < COMPONENTS; i++) {
        parameters[i].dx = parameters[i].dy = 1;
        parameters[i].w = parameters[i].h = (OPJ_UINT32)width;
        parameters[i].prec = 8;
    }
    opj_image_t *image = opj_image_create(COMPONENTS, parameters, OPJ_CLRSPC_SRGB);
    if (!image)
        die("no image");
    image->x1 = image->y1 = (OPJ_UINT32)width;

    struct random random = {12345 + (uint64_t)kind};
    for (int component = 0; component < COMPONENTS; component++)
        for (int y = 0; y < width; y++)
            for (int x = 0; x < width; x++) {
                double value = kind ? waves(x, y, component, &random) : rings(x, y, component, &random);
                int level = value < 0 ? 0 : value > 255 ? 255 : (int)value;
                image->comps[component].data[y * width + x] = level;
            }
    return image;
}

static void encode(opj_image_t *image, int lossy, float rate, struct buffer *buffer)
{
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.cp_disto_alloc = 1;
    parameters.tcp_rates[0] = lossy ? rate : 0;
    parameters.irreversible = lossy;
    parameters.tcp_mct = 1;

    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
    if (!codec || !opj_setup_encoder(codec, &parameters, image))
        die("the encoder refuses its parameters");
    buffer->length = 0;
    opj_stream_t *stream = open_stream(buffer, OPJ_FALSE);
    if (!opj_start_compress(codec, image, stream) || !opj_encode(codec, stream) || !opj_end_compress(codec, stream))
        die("encoding failed");
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
}

static checksum_t decode(struct buffer *buffer, checksum_t sum)
{
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_J2K);
    if (!codec || !opj_setup_decoder(codec, &parameters))
        die("the decoder refuses its parameters");
    opj_stream_t *stream = open_stream(buffer, OPJ_TRUE);
    opj_image_t *image = NULL;
    if (!opj_read_header(stream, codec, &image) || !opj_decode(codec, stream, image))
        die("decoding failed");
    const opj_image_comp_t *green = &image->comps[1];
    sum = checksum_bytes(sum, green->data, sizeof(OPJ_INT32) * green->w * green->h);
    opj_image_destroy(image);
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: openjpeg WIDTH KIND LOSSY_FIRST");
    int width = (int)parse_number(argv[1]);
    int kind = (int)parse_number(argv[2]);
    int lossy = (int)parse_number(argv[3]) != 0;

    static const float rates[MODES] = {6, 12};
    struct buffer buffer = {0};
    checksum_t sum = CHECKSUM_START;
    for (int mode = 0; mode < MODES; mode++, lossy = !lossy) {
        opj_image_t *image = draw(width, kind);
        encode(image, lossy, rates[mode], &buffer);
        opj_image_destroy(image);
        sum = checksum_bytes(sum, buffer.bytes, buffer.length);
        for (int decoding = 0; decoding < DECODINGS; decoding++)
            sum = decode(&buffer, sum);
    }
    free(buffer.bytes);
    print_checksum(sum);
    return 0;
}
