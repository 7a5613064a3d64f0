/* tests/exec/test_cpu_kernels.c: every backend has a kernel for each kind of work but sync and opaque ops, and the CPU
 * backend converts operands to and from fp32. */
#include "exec/cpu/cpu.h"
#include "exec/number.h"
#include "tests/exec/plain.h"

static void every_kind_has_a_kernel(void)
{
    size_t count;
    const struct backend *const *all = backend_all(&count);
    for (size_t b = 0; b < count; b++)
        for (int kind = 0; kind < WORK_KIND_COUNT && all[b]->kernel != NULL; kind++) {
            /* a backend that was not built has no kernels */
            const struct work_kind_info *info = work_kind_info((enum work_kind)kind);
            bool sync = info->stream == STREAM_SYNC;
            CHECK(info->name, (all[b]->kernel[kind] == NULL) == (sync || kind == WORK_OPAQUE));
        }
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)kind);
        CHECK(info->name, (cpu_math_rows[kind].run != NULL) ==
                              (info->stream == STREAM_COMPUTE && kind != WORK_OPAQUE));
    }
    CHECK("the first is found by name", backend_find("cpu") == &cpu_backend);
    CHECK("others are not", backend_find("tpu") == NULL);
}

/* A sum of numbers of another type is the fp32 sum of their values, converted back once. */
static void narrow_operands_are_converted(void)
{
    enum { COUNT = 37 };
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F64};
    struct check_random random = check_random_make();
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct work work = {.kind = WORK_ADD, .reads = 2, .writes = 1, .elements = {COUNT}};
        double a[COUNT], b[COUNT], y[COUNT], want[COUNT]; /* room for any of the types */
        struct call call = {.work = &work, .read_count = 2, .write_count = 1};
        call.read[0] = (struct operand){a, COUNT, (uint8_t)types[t]};
        call.read[1] = (struct operand){b, COUNT, (uint8_t)types[t]};
        call.write[0] = (struct operand){y, COUNT, (uint8_t)types[t]};
        for (uint64_t i = 0; i < COUNT; i++) {
            number_write_element(a, types[t], i, check_random_double(&random));
            number_write_element(b, types[t], i, check_random_double(&random));
            float sum = (float)number_read_element(a, types[t], i) +
                        (float)number_read_element(b, types[t], i);
            number_write_element(want, types[t], i, sum);
        }
        float *scratch = heap_alloc(4 * COUNT + 64, sizeof *scratch);
        CHECK(dtype_name(types[t]), cpu_compute_call(&call, scratch) == NULL);
        CHECK(dtype_name(types[t]), memcmp(y, want, COUNT * dtype_bytes(types[t])) == 0);
        free(scratch);
    }
}

static const struct check_case cases[] = {
    {"every kind has a kernel", every_kind_has_a_kernel},
    {"narrow operands are converted", narrow_operands_are_converted},
};
CHECK_MAIN("cpu kernels", cases)
