/* tests/exec/test_cuda_emulated_documents.c: the cases of document_cases.h by the CUDA backend on the emulated device:
 * its attention takes the keys that each row sees from a table. */
#include "tests/exec/document_cases.h"
#include "tests/exec/emulator/emulator.h"

static const struct check_case cases[] = {
    {"windows in tiles compute the reference", windows_in_tiles_compute_the_reference},
    {"documents compute the reference", documents_compute_the_reference},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated documents", cases, ARRAY_LEN(cases), argc, argv);
}
