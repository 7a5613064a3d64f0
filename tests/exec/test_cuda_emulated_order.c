/* tests/exec/test_cuda_emulated_order.c: the CUDA backend waits where it must. CUDA does not order work of the legacy
 * stream, or copies from pageable memory, with the streams of a step, so the emulated device does such work in the
 * middle of the step unless the backend has waited for it. */
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/hand.h"
#include "tests/exec/one_op.h"

/* The first op of a step reads what the host copied to the device before the step. */
static void operands_are_there_before_the_step(void)
{
    const struct work work = {.kind = WORK_ADD, .reads = 2, .elements = {1000, 0}};
    one_op_compare("add", work, DTYPE_F32, EXEC_ATTENTION_AUTO, 0);
}

static enum status record_loss(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)diag;
    *(float *)user = ((const float *)buffer->data)[0];
    return STATUS_OK;
}

/* Runs two steps: the NaNs of the second overwrite the results of the first. */
static void poison_is_there_before_the_step(void)
{
    struct hand h;
    float loss = -1;
    if (hand_load(&h, "longhaul schedule 1\nmesh g=1\nstream compute compute\n"
                      "buffer a hbm f32 [4] activation\n"
                      "buffer loss hbm f32 [1] activation bind=loss\n"
                      "op 0 fill compute count=4 writes a\n"
                      "op 1 cast compute count=1 reads a[0:1] writes loss\n")) {
        h.options.finds_unwritten_reads = true;
        h.options.measured_steps = 2;
        h.io = (struct exec_io){
            .user = &loss, .read = record_loss, .read_after_last_step = UINT32_MAX};
        hand_run_and_check_message("poison", &h, STATUS_OK, "");
        CHECK_CLOSE("what op 0 wrote is still there when op 1 reads it", loss, 0, 0);
    }
    hand_release(&h);
}

static const struct check_case cases[] = {
    {"operands are there before the step", operands_are_there_before_the_step},
    {"poison is there before the step", poison_is_there_before_the_step},
};

int main(int argc, char **argv)
{
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated order", cases, ARRAY_LEN(cases), argc, argv);
}
