/*
 * HTML Tidy: cuts pages into pieces with broken edges, repairs and pretty-prints each, and sums the result.
 *
 * usage: tidy FILE SEED PIECE ROUNDS      PIECE: bytes of a page
 */
#include <tidy.h>
#include <tidybuffio.h>
#include "bench.h"

static Bool TIDY_CALL silent(TidyDoc document, TidyReportLevel level, uint line, uint column, ctmbstr message)
{
    (void)document, (void)level, (void)line, (void)column, (void)message;
    return no;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        die("usage: tidy FILE SEED PIECE ROUNDS");
    size_t size;
    char *text = read_file(argv[1], &size);
    struct random random = {parse_number(argv[2]) * 2 + 1};
    size_t piece = parse_number(argv[3]);
    if (piece >= size)
        die("pieces of %zu bytes of a file of %zu", piece, size);
    char *page = allocate(piece + 1);
    checksum_t sum = CHECKSUM_START;
    for (size_t rounds = parse_number(argv[4]); rounds; rounds--) {
        memcpy(page, text + (next_random(&random) >> 20) % (size - piece), piece);
        page[piece] = 0;
        TidyBuffer output = {0};
        TidyDoc document = tidyCreate();
        tidySetReportFilter(document, silent);
        tidyOptSetBool(document, TidyXhtmlOut, rounds % 2 ? yes : no);
        tidyOptSetBool(document, TidyForceOutput, yes);
        tidyOptSetBool(document, TidyMark, no);
        tidyOptSetBool(document, TidyMakeClean, rounds % 3 ? no : yes);
        tidyOptSetInt(document, TidyIndentContent, rounds % 4 ? TidyNoState : TidyYesState);
        tidyOptSetInt(document, TidyWrapLen, 100);
        if (tidyParseString(document, page) < 0 || tidyCleanAndRepair(document) < 0 || tidySaveBuffer(document, &output) < 0)
            die("cannot repair a page");
        sum = checksum_bytes(sum, output.bp, output.size);
        tidyBufFree(&output);
        tidyRelease(document);
    }
    print_checksum(sum);
    return 0;
}
