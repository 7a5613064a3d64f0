/* tests/exec/test_cuda_kernels_launch.c: the emulated device refuses the launches that a real one refuses, and
 * the CUDA backend launches its kernels within these limits, for sequences of up to 16 Mi tokens. */
#include "exec/cuda/compute.h"
#include "exec/microbench_operands.h"
#include "tests/check.h"
#include "tests/exec/emulator/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Values of cudaError_t. */
enum { INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, OUT_OF_RESOURCES = 701 };

static void launches_beyond_device_limits_fail(void)
{
    static const struct {
        const char *label, *kernel;
        unsigned blocks[3], threads;
        size_t shared;
        int error;
    } rows[] = {
        /* label, kernel, blocks, threads, shared, error */
        {"the longest grid", "add_kernel", {0x7fffffff, 65535, 65535}, 256, 0, 0},
        {"no block", "add_kernel", {0, 1, 1}, 256, 0, INVALID_CONFIGURATION},
        {"too long along x", "add_kernel", {0x80000000, 1, 1}, 256, 0, INVALID_CONFIGURATION},
        {"too long along y", "add_kernel", {1, 65536, 1}, 256, 0, INVALID_CONFIGURATION},
        {"too long along z", "add_kernel", {1, 1, 65536}, 256, 0, INVALID_CONFIGURATION},
        {"no thread", "add_terms_kernel", {1, 1, 1}, 0, 0, INVALID_CONFIGURATION},
        {"the largest block", "add_terms_kernel", {1, 1, 1}, 1024, 0, 0},
        {"too large a block", "add_terms_kernel", {1, 1, 1}, 1056, 0, INVALID_CONFIGURATION},
        {"more than are known to have registers",
         "rope_kernel",
         {1, 1, 1},
         1024,
         0,
         OUT_OF_RESOURCES},
        {"48 KiB", "norm_backward_kernel<true>", {1, 1, 1}, 512, 49152 - 128, 0},
        {"static memory counts",
         "norm_backward_kernel<true>",
         {1, 1, 1},
         512,
         49152,
         INVALID_VALUE},
        {"48 KiB without static memory", "(pack_kernel<a, b>)", {1, 1, 1}, 256, 49152, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(
            rows[i].label,
            emulator_launch_error(rows[i].kernel, rows[i].blocks, rows[i].threads, rows[i].shared),
            rows[i].error);
}

static void more_shared_memory_must_be_asked_for(void)
{
    static const unsigned one[3] = {1, 1, 1};
    const char *kernel = "norm_kernel";
    CHECK_INT("not asked for", emulator_launch_error(kernel, one, 512, 60000), INVALID_VALUE);
    CHECK_INT("more than there is", emulator_allow_shared(kernel, 99 << 10), INVALID_VALUE);
    CHECK_INT("ask", emulator_allow_shared(kernel, 60000), 0);
    CHECK_INT("asked for", emulator_launch_error(kernel, one, 512, 60000), 0);
    CHECK_INT("more than that", emulator_launch_error(kernel, one, 512, 60001), INVALID_VALUE);
}

/* True if the copy ends without a fault. It runs in a child process, since an unaligned address ends the
 * program. */
static bool copy_ends_without_fault(void *to, const void *from)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        emulator_copy_16_bytes(to, from);
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void unaligned_16_byte_copies_fail(void)
{
    _Alignas(16) char memory[64] = {0};
    CHECK("aligned", copy_ends_without_fault(memory, memory + 32));
    CHECK("loaded from 8 bytes behind", !copy_ends_without_fault(memory, memory + 40));
    CHECK("stored 4 bytes behind", !copy_ends_without_fault(memory + 4, memory + 32));
}

/* ---- long sequences ---- */

enum { TOKENS = 1 << 24, WIDTH = 16384 };

static int64_t parameter_of_long_sequences(const char *name)
{
    static const struct {
        const char *name;
        int64_t value;
    } parameters[] = {
        {"rows", TOKENS},  {"cols", WIDTH},  {"heads", 128}, {"dim", 128}, {"vocab", 256000},
        {"parts", 8},      {"copies", 8},    {"w0", 2048},   {"w1", 1024}, {"w2", 1024},
        {"q", TOKENS},     {"kv", TOKENS},   {"first", 0},   {"total", 0}, {"accumulate", 1},
        {"count", TOKENS}, {"experts", 256}, {"sinks", 128},
    };
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
        if (strcmp(parameters[i].name, name) == 0)
            return parameters[i].value;
    return 0;
}

/* Launches are checked but not run, so operands need no memory. */
static void every_kind_takes_long_sequences(void)
{
    int launched = 0;
    emulator_dry = 1;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)kind);
        struct work work = {.kind = (uint8_t)kind};
        struct bench_operands o;
        struct call call = {.work = &work, .model = {1e-5, 10000}};
        struct cuda_launch_context place = {.scratch = (void *)(uintptr_t)256};
        for (uint32_t i = 0; i < info->param_count; i++)
            work.p[i] = parameter_of_long_sequences(info->param[i].name);
        if (kind == WORK_DEQUANTISE) /* of a weight, which has less than 2^32 elements */
            work.dequantise.rows = WIDTH;
        if (cuda_compute_rows[kind].run == NULL || !bench_list_operands(&work, DTYPE_BF16, &o))
            continue;
        call.read_count = (uint8_t)o.read_count;
        call.write_count = (uint8_t)o.write_count;
        for (uint32_t k = 0; k < o.write_count; k++)
            call.write[k] = (struct operand){(void *)(uintptr_t)256, o.write[k].element_count,
                                             o.write[k].dtype};
        for (uint32_t k = 0; k < o.read_count; k++)
            call.read[k] =
                (struct operand){(void *)(uintptr_t)256, o.read[k].element_count, o.read[k].dtype};
        CHECK_INT(info->name, cuda_compute_rows[kind].run(&call, &place), 0);
        launched++;
    }
    emulator_dry = 0;
    CHECK("most kinds are launched", launched > 20);
}

/* The kernels around products and fused attention accept tiles of 16 Mi queries or keys, as (rows, heads) or
 * (heads, rows). */
static void attention_takes_long_tiles(void)
{
    enum { HEADS = 64, DIM = 128, KEYS = 4096 };
    float x = 0;
    struct cuda_array a = {&x, CUDA_BF16}, f = {&x, CUDA_F32};
    struct cuda_mask mask = {.offset = 0};
    emulator_dry = 1;
    CHECK_INT("row by row", cuda_transpose(&x, &x, TOKENS, HEADS, NULL), 0);
    CHECK_INT("head by head", cuda_transpose(&x, &x, HEADS, TOKENS, NULL), 0);
    CHECK_INT("softmax", cuda_softmax(f, &x, 1, &x, 0, TOKENS, KEYS, mask, 1, NULL), 0);
    CHECK_INT("its gradient",
              cuda_softmax_backward(a, a, &x, &x, &x, 1, &x, 0, TOKENS, KEYS, mask, 1, NULL), 0);
    CHECK_INT("delta", cuda_row_dot(&x, a, a, (int64_t)TOKENS * HEADS, DIM, DIM, NULL), 0);
    CHECK_INT("rows", cuda_copy_rows(a, DIM, a, DIM, (int64_t)TOKENS * HEADS, DIM, NULL), 0);
    CHECK_INT("merge", cuda_merge(&x, &x, a, &x, (int64_t)TOKENS * HEADS, DIM, NULL), 0);
    CHECK_INT("set", cuda_fill_f32(&x, 0, (int64_t)TOKENS * HEADS, NULL), 0);
    emulator_dry = 0;
}

static const struct check_case cases[] = {
    {"limits of a launch are those of a device", launches_beyond_device_limits_fail},
    {"more shared memory must be asked for", more_shared_memory_must_be_asked_for},
    {"16 bytes at once are aligned", unaligned_16_byte_copies_fail},
    {"every kind takes long sequences", every_kind_takes_long_sequences},
    {"attention takes long tiles", attention_takes_long_tiles},
};
CHECK_MAIN("cuda launches", cases)
