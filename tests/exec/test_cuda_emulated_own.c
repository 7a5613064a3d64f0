/* tests/exec/test_cuda_emulated_own.c: a process fills the buffers of its own rank and no others, and numbers are drawn
 * on the device as on the processor. The processes are forked from the test, which has no threads yet. */
#include "exec/cuda/cuda.h"
#include "exec/draw.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/emulator/order.h"
#include "tests/exec/hand.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void devices_draw_what_processors_draw(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    static const struct draw draws[] = {
        {.seed = 3, .rows = 1, .cols = 5000, .first_element = 17, .centre = 0, .scale = 1e-6f},
        {.seed = 4,
         .rows = 37,
         .cols = 64,
         .first_element = 8,
         .row_stride = 100,
         .centre = 0,
         .scale = 1e-7f},
        {.seed = 4,
         .rows = 5,
         .cols = 13,
         .first_element = 0,
         .row_stride = 13,
         .centre = 1,
         .scale = 0},
    };
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (size_t i = 0; i < ARRAY_LEN(draws); i++)
            for (int backwards = 0; backwards < 2; backwards++) {
                _Alignas(16) char want[5000 * 4] = {0}, got[5000 * 4] = {0};
                emulator_backwards = backwards;
                draw_fill(want, (uint8_t)types[t], &draws[i], 2);
                CHECK_INT("launched",
                          cuda_draw((struct cuda_array){got, (uint8_t)types[t]}, &draws[i], NULL),
                          0);
                emulator_device_synchronize();
                CHECK(dtype_name(types[t]), memcmp(want, got, sizeof got) == 0);
            }
    emulator_backwards = 0;
}

/* Calls of fill() for buffers of `rank`, the process's own, and of other ranks. */
struct fill_counts {
    uint32_t own, others, rank;
};

static enum status fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    struct fill_counts *fill_counts = user;
    (void)diag;
    *(buffer->rank == fill_counts->rank ? &fill_counts->own : &fill_counts->others) += 1;
    return STATUS_OK;
}

/* Runs a rank and returns its exit code: 0 if fill() was called for its own two buffers, once each, and for no
 * others. */
static int process(uint32_t rank, int port)
{
    static const char text[] =
        "longhaul schedule 1\nmesh dp=4\n"
        "tokens layout=contiguous cp=1 hp=1 seq=4 batch=4 micro_batch=1 dtype=f32\n"
        "stream compute compute\n"
        "buffer tokens hbm i32 [4] input bind=tokens\n"
        "buffer labels hbm i32 [4] input bind=labels\n"
        "buffer a0 hbm f32 [4] activation persistent\n"
        "op 0 fill compute count=4 writes a0\n";
    struct fill_counts fill_counts = {.rank = rank};
    struct hand h;
    char words[16];
    snprintf(words, sizeof words, "%u", rank);
    setenv("RANK", words, 1);
    setenv("WORLD_SIZE", "4", 1);
    snprintf(words, sizeof words, "%d", port);
    setenv("LONGHAUL_PORT", words, 1);
    emulator_devices = 4;
    if (!hand_load(&h, text))
        return 1;
    h.options.runs_back_to_back = true;
    h.options.measured_steps = 3;
    h.options.stall_limit_s = 60;
    h.io = (struct exec_io){.user = &fill_counts, .fill = fill_buffer};
    if (hand_run(&h) != STATUS_OK) {
        fputs(h.diag.text, stderr);
        return 2;
    }
    hand_release(&h);
    return fill_counts.own == 2 && fill_counts.others == 0 ? 0 : 3;
}

static void a_process_fills_its_own_buffers(void)
{
    enum { COUNT = 4 };
    pid_t child[COUNT];
    int port = 20000 + getpid() % 20000;
    for (uint32_t r = 0; r < COUNT; r++) {
        child[r] = fork();
        if (child[r] == 0)
            exit(process(r, port));
    }
    for (uint32_t r = 0; r < COUNT; r++) {
        int status = -1;
        waitpid(child[r], &status, 0);
        CHECK_INT("rank", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    }
}

static const struct check_case cases[] = {
    {"a process fills its own buffers", a_process_fills_its_own_buffers},
    {"devices draw what processors draw", devices_draw_what_processors_draw},
};

int main(int argc, char **argv)
{
    hand_backend = "cuda";
    emulator_use();
    return check_run("cuda emulated own", cases, ARRAY_LEN(cases), argc, argv);
}
