/* tests/exec/test_documents.c: the cases of document_cases.h on the processor. */
#include "tests/exec/document_cases.h"

static const struct check_case cases[] = {
    {"windows in tiles compute the reference", windows_in_tiles_compute_the_reference},
    {"documents compute the reference", documents_compute_the_reference},
};
CHECK_MAIN("documents", cases)
