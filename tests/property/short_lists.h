/* tests/property/short_lists.h: checks over random schedules that a short list, expanded, is the whole list of ops and
 * predicts the same figures. Included by test files only. */
#ifndef TESTS_PROPERTY_SHORT_LISTS_H
#define TESTS_PROPERTY_SHORT_LISTS_H

#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/reserved/reserved.h"
#include "schedule/step/build.h"
#include "sim/jitter.h"
#include "sim/stages.h"
#include "sim/waterfall.h"
#include "tests/property/world.h"

#include <math.h>

/* True if copy `copy` of an op of the short list equals the op that the whole list has at its place. */
static inline bool is_op_copy_equal_in_whole_list(const struct ir *short_list, uint32_t op,
                                                  uint32_t copy, const struct ir *whole)
{
    const struct repeats *r = &short_list->repeats;
    uint32_t at = repeats_whole_list_op_id_of_ref(r, op, copy, op);
    const struct op_table *s = &short_list->op, *w = &whole->op;
    if (at >= w->count || s->wait_count[op] != w->wait_count[at] ||
        memcmp(ir_work(short_list, op), ir_work(whole, at), sizeof(struct work)) != 0 ||
        s->stream[op] != w->stream[at] || s->guard[op] != w->guard[at] ||
        s->phase[op] != w->phase[at] || s->region[op] != w->region[at] ||
        s->read_count[op] != w->read_count[at] || s->write_count[op] != w->write_count[at])
        return false;
    for (uint32_t k = 0; k < s->wait_count[op]; k++)
        if (repeats_whole_list_op_id_of_ref(r, op, copy, ir_waits(short_list, op)[k].i) !=
            ir_waits(whole, at)[k].i)
            return false;
    for (uint32_t k = 0; k < (uint32_t)s->read_count[op] + s->write_count[op]; k++) {
        uint32_t a = ir_touched_buffer(short_list, op, k), b = ir_touched_buffer(whole, at, k);
        if (!r->iterations_are_units &&
            ir_buffer_bytes(short_list, (buffer_id){a}) != ir_buffer_bytes(whole, (buffer_id){b}))
            return false;
        if (short_list->buffer.free_count[a] != whole->buffer.free_count[b])
            return false;
    }
    return true;
}

/* True if the copies of the ops of the short list are ops of the whole list, which has no other
 * op. */
static inline bool does_short_list_repeat_to_whole(const struct ir *short_list,
                                                   const struct ir *whole)
{
    for (uint32_t op = 0; op < short_list->op.count; op++) {
        uint32_t times = repeats_occurrence_count(&short_list->repeats, op);
        for (uint32_t copy = 0; copy < times; copy++)
            if (!is_op_copy_equal_in_whole_list(short_list, op, copy, whole))
                return false;
    }
    return repeats_whole_op_count(&short_list->repeats, IR_NONE, short_list->op.count) ==
           whole->op.count;
}

/* Checks that both lists have equally large arenas and reserved memory. */
static inline void check_memory_of_short_list(const struct property_world *w,
                                              const struct ir *short_list)
{
    struct reserved a, b;
    struct reserved_options held = {0};
    reserved_compute(&a, short_list, &w->cluster, 80, held);
    reserved_compute(&b, &w->ir, &w->cluster, 80, held);
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(w->label, (int64_t)short_list->planned_bytes[m], (int64_t)w->ir.planned_bytes[m]);
    CHECK_INT(w->label, (int64_t)a.total_bytes, (int64_t)b.total_bytes);
    CHECK_INT(w->label, (int64_t)a.pinned_bytes, (int64_t)b.pinned_bytes);
    CHECK_INT(w->label, a.fits, b.fits);
    CHECK_INT(w->label, a.is_tight, b.is_tight);
}

/* Computes the costs of the list's own shapes: kernels take `factor` times as long as on an A100. */
static inline void compute_costs_of_list(struct property_world *w, double factor)
{
    w->work_s = heap_alloc(w->ir.shape_count, sizeof *w->work_s);
    w->issue_s = heap_alloc(w->ir.shape_count, sizeof *w->issue_s);
    for (uint32_t i = 0; i < w->ir.shape_count; i++) {
        w->work_s[i] = factor * cost_work_s(&w->device, ATTENTION_FA2, &w->ir.shape[i]);
        w->issue_s[i] = cost_host_issue_s(&w->device, &w->ir.shape[i]);
    }
    w->costs = (struct sim_costs){.work_s = w->work_s, .issue_s = w->issue_s};
}

/* Returns the bytes over all links of all replicas. */
static inline double total_link_bytes_of_replicas(const struct sim_result *result)
{
    double sum = 0;
    for (size_t i = 0; i < result->link_load_count; i++)
        sum += result->loads_by_link[i].bytes * result->equal_replica_count;
    return sum;
}

/* Checks that the simulations a, of the short list, and b have equal peaks of memory, at the same times and ops. */
static inline void check_equal_memory_peaks(const struct property_world *w, const struct repeats *r,
                                            const struct sim_result *a, const struct sim_result *b)
{
    for (uint32_t rank = 0; rank < b->rank_count; rank++)
        for (int m = 0; m < MEMORY_COUNT; m++) {
            const struct sim_peak *x = &a->peak[a->class_of_rank[rank]][m],
                                  *y = &b->peak[b->class_of_rank[rank]][m];
            CHECK_INT(w->label, (int64_t)x->bytes, (int64_t)y->bytes);
            CHECK(w->label, fabs(x->time_s - y->time_s) <= 1e-9 * b->step_s);
            for (int k = 0; k < CATEGORY_COUNT; k++)
                CHECK_INT(w->label, (int64_t)x->category_bytes[k], (int64_t)y->category_bytes[k]);
            if (y->op != IR_NONE)
                CHECK_INT(w->label, repeats_op_id_in_whole_list(r, x->op), y->op);
        }
    for (int m = 0; m < MEMORY_COUNT; m++) {
        CHECK_INT(w->label, (int64_t)a->highest_node_peak_by_memory[m].bytes,
                  (int64_t)b->highest_node_peak_by_memory[m].bytes);
        CHECK(w->label, fabs(a->highest_node_peak_by_memory[m].time_s -
                             b->highest_node_peak_by_memory[m].time_s) <= 1e-9 * b->step_s);
    }
}

/* Checks that both waterfalls agree. Returns false when the short list's waterfall does not add up, which means
 * that its times do not represent those of the whole list. */
static inline bool check_waterfalls(const struct property_world *w, const struct ir *short_list,
                                    const struct sim_result *a, const struct sim_result *b)
{
    const struct waterfall_peak peak = {.flop_per_s = 312e12};
    bool add_up = true;
    for (uint32_t c = 0; add_up && c < b->class_count; c++) {
        struct waterfall x, y;
        waterfall_make(&x, short_list, a, peak, b->classes[c].lowest_rank);
        waterfall_make(&y, &w->ir, b, peak, b->classes[c].lowest_rank);
        add_up = waterfall_adds_up(&x);
        for (int k = 0; add_up && k < CAUSE_COUNT; k++)
            CHECK(w->label, fabs(x.cause_s[k] - y.cause_s[k]) <= 1e-9 * b->step_s);
    }
    return add_up;
}

/* Simulates both lists and compares them. Returns false when the short list's times do not represent those of the
 * whole list. */
static inline bool check_times_of_short_list(struct property_world *w, const struct ir *short_list,
                                             double factor)
{
    struct property_world of_short_list = *w;
    struct sim_result a, b;
    of_short_list.ir = *short_list;
    free(w->work_s);
    free(w->issue_s);
    compute_costs_of_list(w, factor);
    compute_costs_of_list(&of_short_list, factor);
    bool represents_whole = simulate(&of_short_list, false, &a) && simulate(w, true, &b) &&
                            !a.has_unsteady_repeats && check_waterfalls(w, short_list, &a, &b);
    if (represents_whole) {
        CHECK_CLOSE(w->label, a.step_s, b.step_s, 1e-9);
        CHECK_CLOSE(w->label, total_link_bytes_of_replicas(&a), total_link_bytes_of_replicas(&b),
                    1e-9);
        CHECK_CLOSE(w->label, sim_flops(short_list, &a), sim_flops(&w->ir, &b), 1e-9);
        CHECK_CLOSE(w->label, jitter_s(short_list, &a, 0, 0.02), jitter_s(&w->ir, &b, 0, 0.02),
                    1e-7);
        CHECK_INT(w->label, (int64_t)a.counts.schedule_op_instances,
                  (int64_t)b.counts.schedule_op_instances);
        check_equal_memory_peaks(w, &short_list->repeats, &a, &b);
    }
    sim_result_release(&a);
    sim_result_release(&b);
    free(of_short_list.work_s);
    free(of_short_list.issue_s);
    return represents_whole;
}

/* Fills *profile with a copy of the named profile and returns it. Its buckets get a random size of 0 to 2.5 layers of
 * parameters, since a toy model fits entirely into the profile's own; prefetch_layers and param_reuse_distance_elements
 * are random in half of the calls each. */
static inline const struct profile *
copy_profile_with_random_buckets(struct profile *profile, const char *name,
                                 const struct transformer *model, struct check_random *random)
{
    size_t count;
    const struct profile *all = profiles_list(&count);
    int64_t layer = transformer_largest_layer_parameters(model);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            *profile = all[i];
    profile->most_elements_of_gradient_bucket = layer * check_random_i64(random, 0, 5) / 2;
    if (check_random_i64(random, 0, 1))
        profile->prefetch_layers = (uint32_t)check_random_i64(random, 0, 3);
    if (check_random_i64(random, 0, 1))
        profile->param_reuse_distance_elements = layer * check_random_i64(random, 0, 3);
    return profile;
}

/* Makes a world with many layers, many micro-batches or both, on two or four pipeline stages or without a
 * pipeline. */
static inline bool make_long_world(struct property_world *w, struct check_random *random)
{
    static struct profile profile;
    bool stages = check_random_i64(random, 0, 2) == 0;
    struct request request = shapes_random_request(random, stages ? 2 : 8, false);
    while (stages && request.chunk_tokens > 0)
        request = shapes_random_request(random, 2, false);
    *w = (struct property_world){.model = *request.model};
    w->model.layers = check_random_i64(random, 8, 40);
    if (stages) {
        request.pp = (int64_t)2 << check_random_i64(random, 0, 1);
        w->model.layers = 2 * request.pp * check_random_i64(random, 1, 2);
        request.stage_placement = (int)check_random_i64(random, 0, STAGE_PLACEMENT_COUNT - 1);
        request.ranks *= request.pp;
        request.pipeline =
            check_random_i64(random, 0, 3) > 0
                ? CHOICE_PIPELINE_1F1B
                : (int)check_random_i64(random, CHOICE_PIPELINE_GPIPE, CHOICE_PIPELINE_ZB_V);
        request.weights = (int)check_random_i64(random, 0, CHOICE_WEIGHTS_ZERO1);
        request.optimizer = CHOICE_OPTIMIZER_DEVICE;
        request.shard = 0;
        request.global_batch = request.dp * request.micro_batch * request.pp * 12;
    } else if (check_random_i64(random, 0, 2) == 0) {
        request.global_batch *= 32;
        w->model.layers = check_random_i64(random, 1, 4);
    }
    if (strcmp(request.strategy, "ulysses") == 0 || strcmp(request.strategy, "local") == 0) {
        w->model.attention_window = request.seq / 4;
        w->model.full_attention_every = check_random_i64(random, 0, 3);
    }
    request.model = &w->model;
    request.profile = check_random_i64(random, 0, 1) ? "deepspeed" : "internevo";
    return world_build(
        w, random_cluster_name(random), &request,
        copy_profile_with_random_buckets(&profile, request.profile, request.model, random));
}

/* Checks a short list of the world's schedule, if there is one. Returns whether there is; *represents_whole:
 * whether its times represent those of the whole list. */
static inline bool check_short_list(struct property_world *w, uint32_t length, double factor,
                                    bool *represents_whole)
{
    struct ir short_list = {0};
    const bool made = step_build_short(&short_list, &w->choices, length, OFFSETS_ALL_MEMORIES);
    if (made) {
        CHECK(w->label, does_short_list_repeat_to_whole(&short_list, &w->ir));
        check_memory_of_short_list(w, &short_list);
    }
    *represents_whole = made && check_times_of_short_list(w, &short_list, factor);
    ir_release(&short_list);
    return made;
}

static inline void check_short_lists(int worlds)
{
    struct check_random random = check_random_make();
    int samples = 0, steady = 0;
    for (int i = 0; i < worlds; i++) {
        struct property_world w;
        bool represents_whole = false;
        uint32_t length = (uint32_t)check_random_i64(&random, 7, 16);
        double factor = pow(10, (double)check_random_i64(&random, -1, 3));
        samples +=
            make_long_world(&w, &random) && check_short_list(&w, length, factor, &represents_whole);
        steady += represents_whole;
        world_release(&w);
    }
    CHECK("samples are found", 2 * samples >= worlds);
    CHECK("their times tell those of the whole list", 2 * steady >= samples);
}

#endif
