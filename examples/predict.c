/* examples/predict.c: a step of Llama 3 8B over 128K tokens on eight H100s, predicted with longhaul as a library.
 *
 * The tests build it (`ninja -C build/release example_predict`) and compare what it prints. */
#include "predict/longhaul.h"

#include <stdio.h>

static void print_prediction(const struct prediction_result *r)
{
    const double gib = 0x1p30;
    printf("%s: device memory needs %.1f GiB of %.1f GiB, tensors take %.1f GiB at most\n",
           r->verdict.fits ? "fits" : "does not fit",
           (double)r->verdict.needed_bytes[LIMIT_DEVICE] / gib,
           (double)r->verdict.available_bytes[LIMIT_DEVICE] / gib, (double)r->peak_bytes / gib);
    printf("a step takes %.2f s: %.0f tokens/s/GPU, MFU %.1f %%, of which\n", r->step_s,
           r->tokens_per_s_gpu, 100 * r->mfu[MFU_LONGHAUL]);
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (r->cause_s[i] > 0.01 * r->step_s)
            printf("  %6.2f s  %s\n", r->cause_s[i], cause_label((enum cause)i));
}

int main(void)
{
    struct setup setup = {0};
    struct prediction prediction = {0};
    struct prediction_result result;
    struct diag diag = {0};

    enum status status = setup_load_model(&setup, "llama3-8b", NULL, NULL, &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "dgx-h100", 1, 8, &diag);
    if (status == STATUS_OK) {
        setup_leave_request_open(&setup);
        setup.request.strategy = "ulysses"; /* 8 ranks share a sequence by heads, ZeRO-3 */
        setup.request.profile = "neutral";
        setup.request.seq = 128 * 1024;
        setup.request.activations = CHOICE_ACTIVATIONS_SELECTIVE;
        const struct prediction_question question = {.setup = &setup};
        status = prediction_make(&prediction, &question, &diag);
    }
    if (status == STATUS_OK) {
        prediction_fill_result(&result, &prediction);
        print_prediction(&result);
    } else {
        fputs(diag.text, stderr);
    }

    prediction_release(&prediction);
    setup_release(&setup);
    diag_release(&diag);
    return status == STATUS_OK ? 0 : 2;
}
