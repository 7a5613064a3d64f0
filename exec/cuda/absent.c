/* The CUDA backend of a build without CUDA: it refuses to run, and says why. */
#include "exec/backend.h"
#include "exec/run.h"

static enum status absent_open(struct exec_run *run, struct diag *diag);

static enum status absent_describe(backend_header_function *say, void *user, struct diag *diag)
{
    (void)say;
    (void)user;
    return absent_open(NULL, diag);
}

static enum status absent_open(struct exec_run *run, struct diag *diag)
{
    (void)run;
    return diag_error(diag, (struct loc){.name = "cuda"}, STATUS_BAD_INPUT,
                      "this program was built without CUDA; build it with -DLONGHAUL_CUDA=ON where "
                      "nvcc is in PATH");
}

static void absent_close(struct exec_run *run)
{
    (void)run;
}

const struct backend cuda_backend = {
    .name = "cuda",
    .summary = "NVIDIA GPUs; not in this build",
    .describe = absent_describe,
    .open = absent_open,
    .close = absent_close,
};
