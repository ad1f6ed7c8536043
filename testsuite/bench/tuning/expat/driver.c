/*
 * Expat: generates XML documents, parses each several times in pieces, and sums the events.
 *
 * usage: expat KINDS SEED SIZE ROUNDS      KINDS, separated by commas: records (elements, short texts, namespaces), prose
 *                                          (mixed content, entities, comments), drawing (attributes, numbers), config
 *                                          (deep nesting, CDATA, UTF-8, a DTD with default attributes)
 */
#include "bench.h"
#include "expat.h"

struct text {
    char *bytes;
    size_t size, capacity;
    struct random random;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text->size += (size_t)vsnprintf(text->bytes + text->size, text->capacity - text->size, format, arguments);
    va_end(arguments);
    if (text->size + 1 >= text->capacity)
        die("a document is too large");
}

static unsigned below(struct text *text, unsigned bound)
{
    return (unsigned)((next_random(&text->random) >> 20) % bound);
}

static void add_word(struct text *text)
{
    static const char *const syllables[] = {"ka", "lo", "mer", "ti", "an", "dro", "sul", "pe", "vi", "nth", "o", "gra", "cu", "es"};
    for (unsigned n = 1 + below(text, 4); n; n--)
        add(text, "%s", syllables[below(text, sizeof syllables / sizeof *syllables)]);
}

static void add_words(struct text *text, unsigned most)
{
    for (unsigned n = 1 + below(text, most); n; n--) {
        add_word(text);
        add(text, n > 1 ? " " : "");
    }
}

static void records(struct text *text, size_t size)
{
    add(text, "<?xml version=\"1.0\"?>\n<s:store xmlns:s=\"urn:store\" xmlns:p=\"urn:person\">\n");
    for (unsigned id = 1; text->size < size; id++) {
        add(text, "  <p:person id=\"p%u\"%s>\n    <p:name>", id, below(text, 3) ? "" : " active='no'");
        add_words(text, 3);
        add(text, "</p:name>\n    <p:born>%u-%02u-%02u</p:born>\n", 1930 + below(text, 80), 1 + below(text, 12), 1 + below(text, 28));
        for (unsigned n = below(text, 4); n; n--)
            add(text, "    <s:order s:sku='%06u' count=\"%u\"><s:price unit=\"EUR\">%u.%02u</s:price></s:order>\n", below(text, 1000000), 1 + below(text, 9), below(text, 500), below(text, 100));
        if (!below(text, 4)) {
            add(text, "    <p:note>");
            add_words(text, 12);
            add(text, " &lt;%u&gt; &amp; ", below(text, 100));
            add_words(text, 5);
            add(text, "</p:note>\n");
        }
        add(text, "  </p:person>\n");
    }
    add(text, "</s:store>\n");
}

static void prose(struct text *text, size_t size)
{
    static const char *const inlines[] = {"em", "b", "code", "a", "span"};
    add(text, "<?xml version='1.0'?>\n<!DOCTYPE book [<!ENTITY pub \"The Publisher &#38;#38; Sons\"><!ENTITY dash \"&#x2014;\">]>\n<book>\n");
    while (text->size < size) {
        add(text, "<chapter><title>");
        add_words(text, 6);
        add(text, "</title>\n");
        for (unsigned paragraphs = 2 + below(text, 9); paragraphs; paragraphs--) {
            add(text, "<p>");
            for (unsigned parts = 3 + below(text, 14); parts; parts--) {
                add_words(text, 18);
                switch (below(text, 8)) {
                case 0:
                    add(text, " &dash; ");
                    break;
                case 1:
                    add(text, " &pub;, ");
                    break;
                case 2:
                    add(text, "\n<!-- ");
                    add_words(text, 9);
                    add(text, " -->\n");
                    break;
                case 3:
                    add(text, "&#%u;", 192 + below(text, 400));
                    break;
                default: {
                    const char *name = inlines[below(text, 5)];
                    add(text, " <%s%s>", name, *name == 'a' ? " href=\"#x\"" : "");
                    add_words(text, 3);
                    add(text, "</%s>,\n", name);
                }
                }
            }
            add(text, "</p>\n");
        }
        add(text, "</chapter>\n");
    }
    add(text, "</book>\n");
}

static void drawing(struct text *text, size_t size)
{
    add(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height='800'>\n");
    while (text->size < size) {
        add(text, "<g id=\"g%u\" transform=\"translate(%u,%u) rotate(%u)\">\n", below(text, 100000), below(text, 999), below(text, 999), below(text, 360));
        for (unsigned shapes = 1 + below(text, 12); shapes; shapes--) {
            switch (below(text, 4)) {
            case 0:
                add(text, "<rect x='%u.%u' y='%u' width=\"%u\" height=\"%u\" fill=\"#%06x\"/>\n", below(text, 900), below(text, 10), below(text, 900), below(text, 90), below(text, 90), below(text, 1 << 24));
                break;
            case 1:
                add(text, "<circle cx=\"%u\" cy=\"%u\" r='%u' stroke-width = \"%u\"\n\tclass=\"k%u\"/>\n", below(text, 900), below(text, 900), below(text, 90), below(text, 9), below(text, 40));
                break;
            case 2:
                add(text, "<text x=\"%u\" y=\"%u\" font-size='%u'>", below(text, 900), below(text, 900), 8 + below(text, 30));
                add_words(text, 4);
                add(text, "</text>\n");
                break;
            default:
                add(text, "<path d=\"M%u %u", below(text, 900), below(text, 900));
                for (unsigned n = 2 + below(text, 30); n; n--)
                    add(text, " %c%d %d", "lLcQ"[below(text, 4)], (int)below(text, 400) - 200, (int)below(text, 400) - 200);
                add(text, "z\" style=\"fill:none;stroke:#%03x\"/>\n", below(text, 4096));
            }
        }
        add(text, "</g>\n");
    }
    add(text, "</svg>\n");
}

static void config_node(struct text *text, unsigned depth)
{
    add(text, "<node kind=\"%s\"", below(text, 2) ? "group" : "item");
    if (!below(text, 3))
        add(text, " label=\"\xc3\xa4%u \xe2\x82\xac &quot;%u&quot;\"", below(text, 100), below(text, 100));
    add(text, ">");
    if (!below(text, 4)) {
        add(text, "<![CDATA[ if (a < b && c[%u]) { ", below(text, 50));
        add_words(text, 10);
        add(text, " } ]]>");
    }
    if (!below(text, 6))
        add(text, "<?target n=%u?>", below(text, 1000));
    if (depth)
        for (unsigned n = below(text, 5); n; n--)
            config_node(text, depth - 1);
    else {
        add(text, "\xe6\x97\xa5\xe6\x9c\xac ");
        add_words(text, 4);
    }
    add(text, "</node>\n");
}

static void config(struct text *text, size_t size)
{
    add(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE config [\n<!ELEMENT config (node*)>\n<!ELEMENT node ANY>\n"
              "<!ATTLIST node kind (group|item) \"item\" label CDATA #IMPLIED level NMTOKEN \"normal\" enabled CDATA \"yes\">\n]>\n<config>\n");
    while (text->size < size)
        config_node(text, 8);
    add(text, "</config>\n");
}

static void XMLCALL start_element(void *data, const XML_Char *name, const XML_Char **attributes)
{
    checksum_t *sum = data;
    *sum = checksum_bytes(*sum, name, strlen(name));
    for (; *attributes; attributes += 2)
        *sum = checksum_bytes(*sum, attributes[1], strlen(attributes[1]));
}

static void XMLCALL end_element(void *data, const XML_Char *name)
{
    checksum_t *sum = data;
    *sum = checksum_number(*sum, (unsigned char)name[0]);
}

static void XMLCALL characters(void *data, const XML_Char *text, int length)
{
    checksum_t *sum = data;
    *sum = checksum_number(*sum, (uint64_t)length * 256 + (unsigned char)text[0]);
}

static void XMLCALL comment(void *data, const XML_Char *text)
{
    checksum_t *sum = data;
    *sum = checksum_number(*sum, (unsigned char)text[1]);
}

static checksum_t parse(const char *kind, const struct text *text, int namespaces, size_t piece, checksum_t sum)
{
    XML_Parser parser = namespaces ? XML_ParserCreateNS(NULL, '|') : XML_ParserCreate(NULL);
    if (!parser)
        die("no parser");
    XML_SetHashSalt(parser, 0x5eed);
    XML_SetUserData(parser, &sum);
    XML_SetElementHandler(parser, start_element, end_element);
    XML_SetCharacterDataHandler(parser, characters);
    XML_SetCommentHandler(parser, comment);
    for (size_t at = 0; at < text->size; at += piece) {
        size_t length = text->size - at < piece ? text->size - at : piece;
        if (XML_Parse(parser, text->bytes + at, (int)length, at + length == text->size) != XML_STATUS_OK)
            die("%s, line %lu: %s", kind, (unsigned long)XML_GetCurrentLineNumber(parser), XML_ErrorString(XML_GetErrorCode(parser)));
    }
    XML_ParserFree(parser);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: expat KINDS SEED SIZE ROUNDS");
    size_t seed = parse_number(argv[2]), size = parse_number(argv[3]), rounds = parse_number(argv[4]);
    checksum_t sum = CHECKSUM_START;
    for (char *kind = strtok(argv[1], ","); kind; kind = strtok(NULL, ",")) {
        struct text text = {.capacity = size + 200000, .random = {seed * 0x9e3779b97f4a7c15u | 1}};
        text.bytes = allocate(text.capacity);
        int namespaces = 0;
        if (!strcmp(kind, "records"))
            records(&text, size), namespaces = 1;
        else if (!strcmp(kind, "prose"))
            prose(&text, size);
        else if (!strcmp(kind, "drawing"))
            drawing(&text, size), namespaces = 1;
        else if (!strcmp(kind, "config"))
            config(&text, size);
        else
            die("no kind is called '%s'", kind);
        for (size_t round = 0; round < rounds; round++)
            sum = parse(kind, &text, namespaces, round % 2 ? 65536 : 4000, sum);
        free(text.bytes);
    }
    print_checksum(sum);
    return 0;
}
