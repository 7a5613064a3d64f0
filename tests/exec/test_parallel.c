/* tests/exec/test_parallel.c: loops that several threads share, and AdamW of host streams, which is such a loop. */
#include "exec/cpu/kernels.h"
#include "exec/number.h"
#include "exec/parallel.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000, THREADS = 4 };

struct visit_counts {
    pthread_mutex_t lock;
    uint32_t parts, seen[COUNT];
    bool parts_begin_aligned;
    uint64_t least_part_size;
    pthread_barrier_t *barrier_of_parts; /* NULL: parts do not wait for each other */
};

static void count_visits(void *context, uint64_t begin, uint64_t end)
{
    struct visit_counts *v = context;
    if (v->barrier_of_parts != NULL)
        pthread_barrier_wait(v->barrier_of_parts);
    pthread_mutex_lock(&v->lock);
    v->parts++;
    v->parts_begin_aligned = v->parts_begin_aligned && begin % v->least_part_size == 0;
    for (uint64_t i = begin; i < end; i++)
        v->seen[i]++;
    pthread_mutex_unlock(&v->lock);
}

static void parts_cover_a_loop_once(void)
{
    static const struct {
        const char *label;
        uint32_t threads;
        uint64_t count, least_part_size;
        uint32_t parts;
    } rows[] = {
        {"nothing", 4, 0, 1, 0},         {"one", 4, 1, 1, 1},
        {"one thread", 1, 1000, 7, 1},   {"even", 4, 1000, 1, 4},
        {"few grains", 8, 1000, 400, 3}, {"a last part", 3, 999, 64, 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct visit_counts v = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .parts_begin_aligned = true,
                                 .least_part_size = rows[i].least_part_size};
        parallel_for(rows[i].threads, rows[i].count, rows[i].least_part_size, count_visits, &v);
        CHECK_INT(rows[i].label, v.parts, rows[i].parts);
        CHECK(rows[i].label, v.parts_begin_aligned);
        uint32_t wrong = 0;
        for (uint64_t k = 0; k < COUNT; k++)
            wrong += v.seen[k] != (k < rows[i].count);
        CHECK_INT(rows[i].label, wrong, 0);
    }
}

static void parts_of_loop_run_in_parallel(void)
{
    pthread_barrier_t barrier_of_parts;
    pthread_barrier_init(&barrier_of_parts, NULL, THREADS);
    struct visit_counts v = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .parts_begin_aligned = true,
                             .least_part_size = 1,
                             .barrier_of_parts = &barrier_of_parts};
    parallel_for(THREADS, COUNT, 1, count_visits,
                 &v); /* never returns if they come one after the other */
    CHECK_INT("parts", v.parts, THREADS);
    pthread_barrier_destroy(&barrier_of_parts);
}

/* The processors are divided among ranks, and each rank has one thread at least. */
static void every_rank_gets_a_thread(void)
{
    CHECK("one rank", parallel_threads_per_rank(1, 1) >= 1);
    CHECK_INT("more ranks than processors", parallel_threads_per_rank(100000, 1), 1);
    CHECK("no more than all", parallel_threads_per_rank(2, 1) <= parallel_threads_per_rank(1, 1));
}

/* Operands of an AdamW op. */
struct adamw_operands {
    enum dtype grad, param;
    size_t count;
    void *data[6]; /* gradient, master, m, v, parameters, squares */
};

static void adamw_operands_init(struct adamw_operands *s)
{
    for (int k = 0; k < 6; k++) {
        enum dtype dtype = k == 0 ? s->grad : k == 4 ? s->param : DTYPE_F32;
        s->data[k] = calloc(s->count, 8);
        for (size_t i = 0; i < s->count; i++)
            number_write_element(s->data[k], dtype, i,
                                 k == 5 ? 100 : 0.01 * (double)((i * 7 + k) % 13));
    }
}

static void adamw_operands_release(struct adamw_operands *s)
{
    for (int k = 0; k < 6; k++)
        free(s->data[k]);
}

static struct call adamw_call_of(const struct adamw_operands *s, const struct work *work)
{
    struct operand f32[4];
    for (int k = 0; k < 4; k++)
        f32[k] = (struct operand){s->data[k], s->count, (uint8_t)(k == 0 ? s->grad : DTYPE_F32)};
    return (struct call){
        .work = work,
        .read_count = 5,
        .write_count = 4,
        .adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 3},
        .read = {f32[0], f32[1], f32[2], f32[3], {s->data[5], 1, DTYPE_F32}},
        .write = {f32[1], f32[2], f32[3], {s->data[4], s->count, (uint8_t)s->param}}};
}

static void adamw_is_the_same_on_any_number_of_threads(void)
{
    static const size_t counts[] = {1, 15, 2048, 100003};
    for (size_t n = 0; n < ARRAY_LEN(counts); n++)
        for (uint32_t threads = 1; threads <= 5; threads += 2) {
            const struct work work = {.kind = WORK_ADAMW, .elements.count = (int64_t)counts[n]};
            struct adamw_operands whole = {DTYPE_BF16, DTYPE_BF16, counts[n], {0}}, parts = whole;
            adamw_operands_init(&whole);
            adamw_operands_init(&parts);
            struct call a = adamw_call_of(&whole, &work), b = adamw_call_of(&parts, &work);
            float *scratch = calloc(counts[n] + 32, 2 * sizeof *scratch);
            CHECK("in one", cpu_compute_call(&a, scratch) == NULL);
            CHECK("in parts", cpu_compute_call_threaded(&b, NULL, threads) == NULL);
            for (int k = 0; k < 6; k++)
                CHECK("the same bits", memcmp(whole.data[k], parts.data[k], 8 * counts[n]) == 0);
            CHECK("something was updated",
                  number_read_element(parts.data[4], DTYPE_BF16, 0) != 0.04);
            free(scratch);
            adamw_operands_release(&whole);
            adamw_operands_release(&parts);
        }
}

static const struct check_case cases[] = {
    {"parts cover a loop once", parts_cover_a_loop_once},
    {"parts run at once", parts_of_loop_run_in_parallel},
    {"every rank has a share", every_rank_gets_a_thread},
    {"AdamW is the same on any number of threads", adamw_is_the_same_on_any_number_of_threads},
};
CHECK_MAIN("parallel", cases)
