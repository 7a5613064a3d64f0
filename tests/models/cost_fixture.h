/* tests/models/cost_fixture.h: the JSON text of a device "toy" whose costs can be computed by hand, and helpers that
 * the tests of costs share: they make a work and ask for its seconds. A test puts the text of its device together:
 *
 *     TOY_COST_JSON_BEGIN TOY_DEVICE_JSON("10", "\"0 s\"") TOY_MATMUL_JSON(...) TOY_REMAINING_JSON("0")
 *
 * Included by test files only. */
#ifndef TESTS_MODELS_COST_FIXTURE_H
#define TESTS_MODELS_COST_FIXTURE_H

#include "models/cost.h"
#include "tests/check.h"

#include <string.h>

/* A number as a device file writes it, with its source. */
#define N(value) "{\"value\": " value ", \"source\": \"test\"}"

/* clang-format off */
#define TOY_ATTENTION_PASS_JSON                                                                                   \
    "{\"tile\": " N("10") ", \"step\": " N("10") ", \"ramp_s\": " N("\"1 ms\"") ","                  \
    " \"rates\": {\"100\": " N("\"4 GFLOP/s\"") ", \"200\": " N("\"4 GFLOP/s\"") "},"                \
    " \"calibrated\": {\"residual\": 0.01, \"source\": \"test\", \"sizes\": {\"kv\": [50, 100]}}}"
#define TOY_COST_JSON_BEGIN "{\"longhaul_device_cost\": 1, \"name\": \"toy\","
#define TOY_DEVICE_JSON(sm_count, start)                                                                \
    "\"device\": {\"sm_count\": " N(sm_count) ", \"peak_flop_per_s\": " N("\"8 GFLOP/s\"") ","         \
    " \"memory_bytes_per_s\": " N("\"1 GB/s\"") ", \"kernel_start_s\": " N(start) ","                \
    " \"power\": " N("\"500 W\"") ", \"tensor_power\": " N("\"400 W\"") ", \"memory_power\": " N("\"0 W\"") ", \"clock_mhz\": " N("1000") ", \"jitter\": " N("0") "},"
#define TOY_MATMUL_JSON(rate, side, ramp)                                                               \
    "\"matmul\": {\"flop_per_s\": " N(rate) ", \"f32_flop_per_s\": " N("\"2 GFLOP/s\"") ","            \
    " \"f64_flop_per_s\": " N("\"1 GFLOP/s\"") ","                                                   \
    " \"tile\": " N(side) ", \"small_tile\": " N(side) ", \"small_tile_rate\": " N("1") ","            \
    " \"ramp_s\": " N(ramp) ", \"memory_fraction\": " N("1") ","                                     \
    " \"calibrated\": {\"residual\": 0.02, \"source\": \"test\", \"sizes\": {\"k\": [512, 32768]}}},"
#define TOY_REMAINING_JSON(ramp)                                                                             \
    "\"memory\": {\"stream_fraction\": " N("1") ", \"reduce_fraction\": " N("0.5") ","                 \
    " \"permute_fraction\": " N("0.25") ", \"gather_fraction\": " N("0.2") ","                       \
    " \"scatter_fraction\": " N("0.1") ", \"ramp_bytes\": " N(ramp) ", \"element_rate\": " N("0") ", \"start_s\": " N("\"0 s\"") ","                              \
    " \"estimated\": {\"residual\": 0.1, \"source\": \"nobody measured\"}},"                         \
    "\"host\": {\"op_s\": " N("\"6 us\"") ", \"kernel_s\": " N("\"4 us\"") ","                         \
    " \"collective_s\": " N("\"30 us\"") ", \"copy_s\": " N("\"8 us\"") ", \"sync_s\": " N("\"15 us\"") "," \
    " \"estimated\": {\"residual\": 0.1, \"source\": \"test\"}},"                                    \
    "\"cpu\": {\"stream_fraction\": " N("0.5") ", \"start_s\": " N("\"1 ms\"") ","                     \
    " \"estimated\": {\"residual\": 0.1, \"source\": \"test\"}},"                                    \
    "\"attention\": {\"fa2\": {\"merge_bytes\": " N("26") ","                                        \
    " \"forward\": " TOY_ATTENTION_PASS_JSON ", \"backward\": " TOY_ATTENTION_PASS_JSON "}}}"
/* clang-format on */

struct cost_fixture {
    struct arena arena;
    struct diag diag;
    struct device_cost cost;
};

static inline void fixture_release(struct cost_fixture *f)
{
    diag_release(&f->diag);
    arena_release(&f->arena);
}

/* Reads a device from JSON text. Returns false, and fails a check with the message, if it is wrong. */
static inline bool cost_fixture_parse_device(struct cost_fixture *f, const char *text)
{
    *f = (struct cost_fixture){0};
    enum status status = cost_parse(&f->cost, &f->arena, "toy.json", text, strlen(text), &f->diag);
    return CHECK(f->diag.text ? f->diag.text : "parses", status == STATUS_OK);
}

/* Reads the device of this name that ships, as cost_fixture_parse_device() does. */
static inline bool cost_fixture_load_device(struct cost_fixture *f, const char *name)
{
    *f = (struct cost_fixture){0};
    enum status status = cost_load(&f->cost, &f->arena, name, &f->diag);
    return CHECK(f->diag.text ? f->diag.text : name, status == STATUS_OK);
}

/* Returns the product of bf16 matrices (m, k) and (k, n). */
static inline struct work product(int64_t m, int64_t n, int64_t k)
{
    return (struct work){.kind = WORK_MATMUL,
                         .in = DTYPE_BF16,
                         .out = DTYPE_BF16,
                         .matmul = {.m = m, .n = n, .k = k}};
}

static inline struct work attention(enum work_kind kind, int64_t q, int64_t kv, int64_t heads,
                                    int64_t kv_heads, int64_t dim, enum mask mask)
{
    return (struct work){
        .kind = (uint8_t)kind,
        .in = DTYPE_BF16,
        .out = DTYPE_BF16,
        .attention = {
            .q = q, .kv = kv, .heads = heads, .kv_heads = kv_heads, .dim = dim, .mask = mask}};
}

/* Returns a work whose first four parameters are a to d, in the order of its kind's row in models/work_kinds.def. */
static inline struct work flat(enum work_kind kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct work){
        .kind = (uint8_t)kind, .in = DTYPE_BF16, .out = DTYPE_BF16, .p = {a, b, c, d}};
}

/* Returns the seconds of a work, with FlashAttention 2 where it is attention. */
static inline double seconds(const struct device_cost *cost, struct work work)
{
    return cost_work_s(cost, ATTENTION_FA2, &work);
}

#endif
