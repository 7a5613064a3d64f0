/* tests/schedule/test_reserved.c: the device memory that a published framework reserves for a schedule: its parts add
 * up, and each constant has a source. */
#include "schedule/reserved/reserved.h"

#include "base/diag.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/ir_text.h"
#include "schedule/reserved/replay.h"
#include "schedule/step/build.h"
#include "tests/check.h"

#include <stdlib.h>

struct fixture {
    struct arena arena;
    struct transformer model;
    struct cluster cluster;
    struct ir ir;
};

static void fixture_init(struct fixture *f, const char *cluster, int64_t gpus, int64_t seq)
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
    CHECK_INT("choices", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK);
    CHECK_INT("built", step_build(&f->ir, &choices, &diag), STATUS_OK);
    diag_release(&diag);
}

static void fixture_release(struct fixture *f)
{
    ir_release(&f->ir);
    arena_release(&f->arena);
}

static void reserved_parts_add_up(void)
{
    struct fixture f;
    fixture_init(&f, "dgx-a100", 4, 1024);
    struct reserved r;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    uint64_t sum = 0;
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        sum += r.bytes[i];
    CHECK_INT("sum", (int64_t)r.total_bytes, (int64_t)sum);
    CHECK_INT("context", (int64_t)r.bytes[RESERVED_CONTEXT],
              (int64_t)f.cluster.device.cuda_context_bytes);
    CHECK("fits", r.fits);
    CHECK("nccl", r.bytes[RESERVED_NCCL] > 0);
    CHECK_CLOSE("available", (double)r.available_bytes,
                f.cluster.device.memory_bytes - f.cluster.device.driver_bytes, 1e-9);
    fixture_release(&f);
}

/* The tensors that are live at one time under reference counting exceed the arena only by rounding, at most by 5 %
 * here: the arena also keeps buffers apart whose ops have no fixed order. */
static void refcounted_tensors_fit_the_arena(void)
{
    struct fixture f;
    fixture_init(&f, "ideal", 4, 1024);
    struct reserved r;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    CHECK("tensors",
          (double)r.bytes[RESERVED_TENSORS] <= 1.05 * (double)f.ir.planned_bytes[MEMORY_HBM]);
    CHECK_INT("nccl", (int64_t)r.bytes[RESERVED_NCCL], 0);
    CHECK_INT("context", (int64_t)r.bytes[RESERVED_CONTEXT], 0);
    CHECK("infinite", r.available_bytes == UINT64_MAX);
    fixture_release(&f);
}

static void one_rank_needs_no_nccl_memory(void)
{
    struct fixture f;
    fixture_init(&f, "dgx-a100", 1, 1024);
    struct reserved r;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    CHECK_INT("nccl", (int64_t)r.bytes[RESERVED_NCCL], 0);
    CHECK_INT("communicators", r.communicator_count, 0);
    fixture_release(&f);
}

static void a_too_small_device_is_reported(void)
{
    struct fixture f;
    fixture_init(&f, "dgx-a100", 4, 1024);
    struct reserved r;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    double before = (double)r.total_bytes;
    f.cluster.device.usable_bytes = before / 2;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    CHECK("does not fit", !r.fits);
    CHECK("more than there is", r.total_bytes > r.available_bytes);
    fixture_release(&f);
}

/* Checks `is_tight` over device sizes from too small to ample: it means that the step fits, but would not if the device
 * had the fraction RESERVED_VERDICT_MARGIN_SHARE less memory. */
static void a_tight_step_would_not_fit_slightly_less_memory(void)
{
    struct fixture f;
    fixture_init(&f, "dgx-a100", 4, 1024);
    struct reserved r, less;
    reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    double all = (double)r.total_bytes, context = f.cluster.device.cuda_context_bytes;
    int tight = 0, roomy = 0, unfit = 0;
    for (int percent = 50; percent < 110; percent++) {
        f.cluster.device.usable_bytes = percent / 100.0 * all - context;
        reserved_compute(&r, &f.ir, &f.cluster, 80, (struct reserved_options){0});
        f.cluster.device.usable_bytes =
            (1 - RESERVED_VERDICT_MARGIN_SHARE) * (double)r.available_bytes - context;
        reserved_compute(&less, &f.ir, &f.cluster, 80, (struct reserved_options){0});
        CHECK("tight", r.is_tight == (r.fits && !less.fits));
        tight += r.is_tight;
        roomy += r.fits && !r.is_tight;
        unfit += !r.fits;
    }
    CHECK("some of each", tight > 0 && roomy > 0 && unfit > 0);
    fixture_release(&f);
}

/* Tensors of 40, 20, 30 and 20 MiB; the first is freed before the others are made, which are then live together. In
 * the first step the second and the fourth share the segment of 40. In the second step the second tensor takes the
 * smallest free segment, that of 30, so the third takes that of 40, and the fourth needs a segment of its own. */
static void second_step_may_need_another_segment(void)
{
    static const char text[] = "longhaul schedule 1\n"
                               "mesh dp=1\n"
                               "stream compute compute\n"
                               "buffer a hbm f32 [10485760] activation free=0\n"
                               "buffer b hbm f32 [5242880] activation free=3\n"
                               "buffer c hbm f32 [7864320] activation free=3\n"
                               "buffer d hbm f32 [5242880] activation free=3\n"
                               "op 0 fill compute count=10485760 writes a\n"
                               "op 1 fill compute count=5242880 writes b\n"
                               "op 2 fill compute count=7864320 writes c\n"
                               "op 3 fill compute count=5242880 writes d\n";
    struct ir ir = {0};
    struct diag diag = {0};
    struct replayed_buffer_lifetimes replay;
    struct caching_allocator a = {0}, limited = {.limit_bytes = (uint64_t)60 << 20};
    CHECK_INT("parsed", ir_parse(&ir, "steps.ir", text, sizeof text - 1, &diag), STATUS_OK);
    CHECK_TEXT("parsed", diag.error_count > 0 ? diag.text : "", "");
    replay_list_buffers_of_role(&replay, &ir, &ir.role[0], (struct replay_options){0});
    replay_steps_in_allocator(&replay, MEMORY_HBM, false, &a);
    CHECK_INT("used", (int64_t)a.used_peak_bytes, INT64_C(70) << 20);
    CHECK_INT("reserved", (int64_t)a.reserved_peak_bytes, INT64_C(90) << 20);
    CHECK_INT("all is given back", (int64_t)a.used_bytes, 0);
    replay_steps_in_allocator(&replay, MEMORY_HBM, false, &limited);
    CHECK("exceeded", limited.has_exceeded_limit);
    CHECK_INT("in the first step", (int64_t)limited.reserved_bytes_at_first_excess,
              INT64_C(70) << 20);
    caching_release(&a);
    caching_release(&limited);
    replay_release(&replay);
    ir_release(&ir);
    diag_release(&diag);
}

/* An activation of 40 MiB and a moment of 20 MiB. A moment that exists before the first step has a segment of its own.
 * One that the first step's update makes takes half of the activation's segment, so that the second step's activation
 * needs another one. */
static void late_moments_take_the_place_of_activations(void)
{
    static const char text[] = "longhaul schedule 1\n"
                               "mesh dp=1\n"
                               "stream compute compute\n"
                               "buffer a hbm f32 [10485760] activation free=0\n"
                               "buffer m hbm f32 [5242880] optimizer persistent\n"
                               "op 0 fill compute count=10485760 writes a\n"
                               "op 1 fill compute count=5242880 writes m\n";
    struct ir ir = {0};
    struct diag diag = {0};
    CHECK_INT("parsed", ir_parse(&ir, "moments.ir", text, sizeof text - 1, &diag), STATUS_OK);
    CHECK_TEXT("parsed", diag.error_count > 0 ? diag.text : "", "");
    for (int late = 0; late < 2; late++) {
        struct replayed_buffer_lifetimes replay;
        struct caching_allocator a = {0};
        replay_list_buffers_of_role(&replay, &ir, &ir.role[0],
                                    (struct replay_options){.moments_allocated_in_step = late});
        replay_steps_in_allocator(&replay, MEMORY_HBM, false, &a);
        CHECK_INT("used", (int64_t)a.used_peak_bytes, INT64_C(60) << 20);
        CHECK_INT("reserved", (int64_t)a.reserved_peak_bytes, INT64_C(1) * (late ? 80 : 60) << 20);
        caching_release(&a);
        replay_release(&replay);
    }
    ir_release(&ir);
    diag_release(&diag);
}

/* If parameters are loaded whole before the step, each tensor has a block of its own. At 64 bytes
 * an element the blocks take more than the step, and count in its place; at 1 byte only the step
 * counts. A device may have room for the step and not for them. */
static void whole_parameter_load_bounds_the_peak(void)
{
    struct fixture f;
    fixture_init(&f, "dgx-a100", 4, 1024);
    struct reserved step, small, large, none;
    reserved_compute(&step, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    reserved_compute(&small, &f.ir, &f.cluster, 80,
                     (struct reserved_options){.bytes_per_whole_parameter = 1});
    reserved_compute(&large, &f.ir, &f.cluster, 80,
                     (struct reserved_options){.bytes_per_whole_parameter = 64});
    uint64_t loaded = 0, blocks = 0;
    for (uint32_t b = 0; b < f.ir.bundle_count; b++) {
        loaded += 64 * f.ir.bundle[b].elements;
        blocks += f.ir.bundle[b].tensor_count;
    }
    const uint64_t outside = large.bytes[RESERVED_CONTEXT] + large.bytes[RESERVED_NCCL];
    CHECK("more than a step", outside + loaded > step.total_bytes);
    CHECK("all of it", large.total_bytes >= outside + loaded);
    CHECK("rounded", large.total_bytes <= outside + loaded + blocks * (20 << 20));
    CHECK_INT("a step needs more", (int64_t)small.total_bytes, (int64_t)step.total_bytes);
    CHECK_INT("no cache, which could be given back", (int64_t)large.bytes[RESERVED_CACHE],
              (int64_t)step.bytes[RESERVED_CACHE]);
    uint64_t sum = 0;
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        sum += large.bytes[i];
    CHECK_INT("sum", (int64_t)large.total_bytes, (int64_t)sum);
    f.cluster.device.usable_bytes =
        (double)(step.total_bytes + large.total_bytes) / 2 - f.cluster.device.cuda_context_bytes;
    reserved_compute(&none, &f.ir, &f.cluster, 80,
                     (struct reserved_options){.bytes_per_whole_parameter = 64});
    CHECK("does not fit", !none.fits);
    reserved_compute(&none, &f.ir, &f.cluster, 80, (struct reserved_options){0});
    CHECK("the step would", none.fits);
    fixture_release(&f);
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
    {"parts add up", reserved_parts_add_up},
    {"tensors are no more than the arena", refcounted_tensors_fit_the_arena},
    {"one rank talks to nobody", one_rank_needs_no_nccl_memory},
    {"a device that is too small is told", a_too_small_device_is_reported},
    {"tight is what a little less would not hold", a_tight_step_would_not_fit_slightly_less_memory},
    {"a second step finds other segments", second_step_may_need_another_segment},
    {"late moments take the place of activations", late_moments_take_the_place_of_activations},
    {"whole parameters are a least peak", whole_parameter_load_bounds_the_peak},
    {"every constant has a source", every_constant_has_a_source},
};
CHECK_MAIN("reserved", cases)
