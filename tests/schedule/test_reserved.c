#include "schedule/reserved/reserved.h"

#include "base/diag.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/check.h"

#include <stdlib.h>

struct fixture {
    struct arena arena;
    struct transformer model;
    struct cluster cluster;
    struct ir ir;
};

static void init(struct fixture *f, const char *cluster, int64_t gpus, int64_t seq)
{
    struct diag diag = {0};
    struct choices choices;
    *f = (struct fixture){0};
    CHECK_INT("model", transformer_load(&f->model, &f->arena, "gpt2", NULL, &diag), STATUS_OK);
    CHECK_INT("cluster", cluster_load(&f->cluster, &f->arena, cluster, &diag), STATUS_OK);
    CHECK_INT("gpus", cluster_resize(&f->cluster, &f->arena, 0, gpus, &diag), STATUS_OK);
    struct request request = {.model = &f->model,
                              .weights = -1,
                              .activations = -1,
                              .optimizer = -1,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = f->cluster.gpus,
                              .seq = seq,
                              .sm = 80,
                              .gpus_per_node = f->cluster.gpus_per_node};
    CHECK_INT("choices", compose_resolve(&choices, &request, NULL, &diag), STATUS_OK);
    CHECK_INT("built", compose_build(&f->ir, &choices, &diag), STATUS_OK);
    diag_release(&diag);
}

static void release(struct fixture *f)
{
    ir_release(&f->ir);
    arena_release(&f->arena);
}

static void parts_add_up(void)
{
    struct fixture f;
    init(&f, "dgx-a100", 4, 1024);
    struct reserved r;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    uint64_t sum = 0;
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        sum += r.bytes[i];
    CHECK_INT("sum", (int64_t)r.total, (int64_t)sum);
    CHECK_INT("context", (int64_t)r.bytes[RESERVED_CONTEXT],
              (int64_t)f.cluster.device.context_bytes);
    CHECK("fits", r.fits);
    CHECK("nccl", r.bytes[RESERVED_NCCL] > 0);
    CHECK_CLOSE("available", (double)r.available,
                f.cluster.device.memory_bytes - f.cluster.device.driver_bytes, 1e-9);
    release(&f);
}

/* The tensors that are live at one time under reference counting exceed the arena only by rounding, here under
 * 5 %: the arena also keeps buffers apart whose ops have no fixed order. */
static void tensors_are_no_more_than_the_arena(void)
{
    struct fixture f;
    init(&f, "ideal", 4, 1024);
    struct reserved r;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    CHECK("tensors",
          (double)r.bytes[RESERVED_TENSORS] <= 1.05 * (double)f.ir.arena_bytes[MEMORY_HBM]);
    CHECK_INT("nccl", (int64_t)r.bytes[RESERVED_NCCL], 0);
    CHECK_INT("context", (int64_t)r.bytes[RESERVED_CONTEXT], 0);
    CHECK("infinite", r.available == UINT64_MAX);
    release(&f);
}

static void one_rank_talks_to_nobody(void)
{
    struct fixture f;
    init(&f, "dgx-a100", 1, 1024);
    struct reserved r;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    CHECK_INT("nccl", (int64_t)r.bytes[RESERVED_NCCL], 0);
    CHECK_INT("communicators", r.communicators, 0);
    release(&f);
}

static void a_device_that_is_too_small_is_told(void)
{
    struct fixture f;
    init(&f, "dgx-a100", 4, 1024);
    struct reserved r;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    double before = (double)r.total;
    f.cluster.device.usable_bytes = before / 2;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    CHECK("does not fit", !r.fits);
    CHECK("more than there is", r.total > r.available);
    release(&f);
}

/* Over device sizes from too small to ample: `tight` means that the step would not fit with RESERVED_ERROR less
 * memory. */
static void tight_is_what_a_little_less_would_not_hold(void)
{
    struct fixture f;
    init(&f, "dgx-a100", 4, 1024);
    struct reserved r, less;
    reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
    double all = (double)r.total, context = f.cluster.device.context_bytes;
    int tight = 0, roomy = 0, unfit = 0;
    for (int percent = 50; percent < 110; percent++) {
        f.cluster.device.usable_bytes = percent / 100.0 * all - context;
        reserved_make(&r, &f.ir, &f.cluster, 80, (struct reserved_held){0});
        f.cluster.device.usable_bytes = (1 - RESERVED_ERROR) * (double)r.available - context;
        reserved_make(&less, &f.ir, &f.cluster, 80, (struct reserved_held){0});
        CHECK("tight", r.tight == (r.fits && !less.fits));
        tight += r.tight;
        roomy += r.fits && !r.tight;
        unfit += !r.fits;
    }
    CHECK("some of each", tight > 0 && roomy > 0 && unfit > 0);
    release(&f);
}

static void every_constant_has_a_source(void)
{
    size_t count;
    const struct reserved_constant *table = reserved_constants(&count);
    CHECK("there are some", count > 0);
    for (size_t i = 0; i < count; i++)
        CHECK(table[i].name, table[i].value[0] != '\0' && table[i].source[0] != '\0');
}

static const struct check_case cases[] = {
    {"parts add up", parts_add_up},
    {"tensors are no more than the arena", tensors_are_no_more_than_the_arena},
    {"one rank talks to nobody", one_rank_talks_to_nobody},
    {"a device that is too small is told", a_device_that_is_too_small_is_told},
    {"tight is what a little less would not hold", tight_is_what_a_little_less_would_not_hold},
    {"every constant has a source", every_constant_has_a_source},
};
CHECK_MAIN("reserved", cases)
