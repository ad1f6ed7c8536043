/*
 * harfbuzz: shapes the lines of a text with a font, and sums the glyphs and where they go.
 *
 * usage: harfbuzz FONT TEXT ROUNDS LINES
 */
#include "bench.h"
#include "hb.h"

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: harfbuzz FONT TEXT ROUNDS LINES");
    size_t font_size, size;
    char *font_data = read_file(argv[1], &font_size), *text = read_file(argv[2], &size);
    hb_blob_t *blob = hb_blob_create(font_data, (unsigned)font_size, HB_MEMORY_MODE_READONLY, NULL, NULL);
    hb_face_t *face = hb_face_create(blob, 0);
    hb_font_t *font = hb_font_create(face);
    hb_buffer_t *buffer = hb_buffer_create();
    checksum_t sum = checksum_number(CHECKSUM_START, hb_face_get_glyph_count(face));
    for (size_t rounds = parse_number(argv[3]); rounds; rounds--) {
        size_t lines = parse_number(argv[4]);
        for (const char *line = text; *line && lines; lines--) {
            size_t length = strcspn(line, "\n");
            hb_buffer_clear_contents(buffer);
            hb_buffer_add_utf8(buffer, line, (int)length, 0, (int)length);
            hb_buffer_guess_segment_properties(buffer);
            hb_shape(font, buffer, NULL, 0);
            unsigned count;
            hb_glyph_info_t *glyphs = hb_buffer_get_glyph_infos(buffer, &count);
            hb_glyph_position_t *positions = hb_buffer_get_glyph_positions(buffer, NULL);
            int x = 0;
            for (unsigned i = 0; i < count; i++) {
                sum = checksum_number(sum, (uint64_t)glyphs[i].codepoint << 32 | (uint32_t)(x + positions[i].x_offset));
                x += positions[i].x_advance;
            }
            line += length + (line[length] != 0);
        }
    }
    hb_buffer_destroy(buffer);
    hb_font_destroy(font);
    hb_face_destroy(face);
    hb_blob_destroy(blob);
    print_checksum(sum);
    return 0;
}
