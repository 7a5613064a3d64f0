/* The CUDA backend on a device that the processor emulates: streams are threads, kernels are the
 * real ones compiled for the processor, products are the processor's. What is shown here is
 * everything but NVIDIA's own code: which kernel an op becomes, what waits for what, communication
 * of ranks that share a GPU, scratch, times and messages. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/hand.h"
#include "tests/exec/matrix.h"

enum { EVERY = 16 }; /* of the schedules that hold all pairs; test_cuda_emulated_nightly.c: all */

static void schedules_compute_the_reference(void)
{
    const struct factors factors = factors_all();
    struct rows *rows = rows_covering_pairs(&factors, 1);
    size_t kept = 0;
    for (size_t r = 0; r < rows->count; r += EVERY)
        rows->row[kept++] = rows->row[r];
    rows->count = kept;
    check_rows(rows, false);
    rows_free(rows);
}

static void sixteen_bits_stay_within_their_tolerance(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16};
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++)
        for (int m = 0; m < SHAPE_COUNT; m++) {
            struct request request = {.model = &shapes[m],
                                      .profile = m % 2 == 0 ? "ideal" : NULL,
                                      .weights = m % CHOICE_WEIGHTS_COUNT,
                                      .activations = m % CHOICE_ACTIVATIONS_COUNT,
                                      .optimizer = -1,
                                      .attention_impl = ATTENTION_CUDNN,
                                      .dtype = (int)dtypes[d],
                                      .ranks = 4,
                                      .hp = 2,
                                      .seq = 32,
                                      .gpus_per_node = 2,
                                      .sm = 90};
            struct choices choices;
            struct diag diag = {0};
            if (CHECK_INT("resolve", compose_resolve(&choices, &request, NULL, &diag), STATUS_OK))
                check_choices(&choices, false);
            diag_release(&diag);
        }
}

static const struct check_case cases[] = {
    {"schedules compute the reference", schedules_compute_the_reference},
    {"16 bits stay within their tolerance", sixteen_bits_stay_within_their_tolerance},
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated", cases, ARRAY_LEN(cases), argc, argv);
}
