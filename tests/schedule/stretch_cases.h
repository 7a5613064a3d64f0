/* tests/schedule/stretch_cases.h: schedules that are replicated from a few layers and micro-batches are those
 * that are emitted whole, and what they record as repeating does repeat.
 *
 * Each check builds a number of random worlds in both ways and compares rows, waits, free sets, offsets and
 * what an allocator reserves. The everyday test takes a few of each, the nightly one many. Included by test
 * files only. */
#ifndef TESTS_SCHEDULE_STRETCH_CASES_H
#define TESTS_SCHEDULE_STRETCH_CASES_H

#include "schedule/compose.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/repeats.h"
#include "schedule/reserved/reserved.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_LIST = 10000 /* buffers */ };

/* The first line that differs, for the label of a failure. */
static inline void first_difference(const struct text *a, const struct text *b, char *out,
                                    size_t size)
{
    size_t at = 0, line = 0;
    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        if (a->data[at++] == '\n')
            line = at;
    snprintf(out, size, "%.*s | %.*s", (int)strcspn(a->data + line, "\n"), a->data + line,
             (int)strcspn(b->data + line, "\n"), b->data + line);
}

static inline void check_same(const char *label, const struct ir *stretched, const struct ir *whole)
{
    struct text a = {0}, b = {0};
    ir_print(&a, stretched);
    ir_print(&b, whole);
    bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    CHECK(label, same);
    if (!same) {
        char difference[600];
        first_difference(&a, &b, difference, sizeof difference);
        CHECK(difference, same);
    }
    text_release(&a);
    text_release(&b);
}

static inline void check_same_offsets(const char *label, const struct ir *stretched,
                                      const struct ir *whole)
{
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(label, (int64_t)stretched->arena_bytes[m], (int64_t)whole->arena_bytes[m]);
    CHECK(label, stretched->buffer.count == whole->buffer.count &&
                     memcmp(stretched->buffer.offset, whole->buffer.offset,
                            whole->buffer.count * sizeof *whole->buffer.offset) == 0);
}

/* Long lists are packed by periods: other offsets, which are as good. */
static inline void check_good_offsets(const char *label, const struct ir *stretched,
                                      const struct ir *whole)
{
    struct diag diag = {0};
    CHECK(label, verify(stretched, NULL, "stretched", NULL, &diag) == STATUS_OK);
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK(label, (double)stretched->arena_bytes[m] <= 1.07 * (double)whole->arena_bytes[m]);
    diag_release(&diag);
}

/* Takes the offsets out. */
static inline void forget_offsets(struct ir *ir)
{
    memset(ir->buffer.offset, 0xff, ir->buffer.count * sizeof *ir->buffer.offset);
    memset(ir->arena_bytes, 0, sizeof ir->arena_bytes);
}

/* ---- repeats ---- */

static inline bool strides(uint64_t first, uint64_t second, uint64_t before, uint64_t now)
{
    return now - before == second - first;
}

static inline bool op_repeats(const struct ir *ir, uint32_t first, uint32_t by, uint32_t now)
{
    const struct op_table *t = &ir->op;
    uint32_t second = first + by, before = now - by;
    bool same = t->shape[now] == t->shape[before] && t->stream[now] == t->stream[before] &&
                t->phase[now] == t->phase[before] && t->region[now] == t->region[before] &&
                t->reads[now] == t->reads[before] && t->writes[now] == t->writes[before] &&
                t->chunk[now] == t->chunk[before] && t->step[now] == t->step[before] &&
                strides(t->micro[first], t->micro[second], t->micro[before], t->micro[now]) &&
                t->guard[now] == t->guard[before] && t->wait_count[now] == t->wait_count[before] &&
                strides(t->layer[first], t->layer[second], t->layer[before], t->layer[now]);
    for (uint32_t k = 0; same && k < (uint32_t)t->reads[now] + t->writes[now]; k++) {
        struct view a = ir_read(ir, first, k), b = ir_read(ir, second, k);
        struct view x = ir_read(ir, before, k), y = ir_read(ir, now, k);
        same = strides(a.begin, b.begin, x.begin, y.begin) && x.count == y.count &&
               ir->buffer.memory[x.buffer.i] == ir->buffer.memory[y.buffer.i] &&
               strides(a.buffer.i, b.buffer.i, x.buffer.i, y.buffer.i);
    }
    for (uint32_t k = 0; same && k < t->wait_count[now]; k++)
        same = strides(ir->wait[t->wait_begin[first] + k].i, ir->wait[t->wait_begin[second] + k].i,
                       ir->wait[t->wait_begin[before] + k].i, ir->wait[t->wait_begin[now] + k].i);
    return same;
}

static inline bool buffer_repeats(const struct ir *ir, uint32_t first, uint32_t by, uint32_t now)
{
    const struct buffer_table *t = &ir->buffer;
    uint32_t second = first + by, before = now - by;
    bool same = t->memory[now] == t->memory[before] && t->dtype[now] == t->dtype[before] &&
                t->category[now] == t->category[before] && t->flags[now] == t->flags[before] &&
                t->role[now] == t->role[before] && t->binding[now] == t->binding[before] &&
                t->dims[now] == t->dims[before] && t->stem[now] == t->stem[before] &&
                t->free_count[now] == t->free_count[before] &&
                strides(t->layer[first], t->layer[second], t->layer[before], t->layer[now]);
    for (uint32_t k = 0; same && k < t->free_count[now]; k++)
        same = strides(ir_free_set(ir, first)[k].i, ir_free_set(ir, second)[k].i,
                       ir_free_set(ir, before)[k].i, ir_free_set(ir, now)[k].i);
    return same;
}

/* Buffers of a repeat are born in its periods, in the order of their rows. */
static inline bool are_born_there(const struct ir *ir, const struct ir_repeat *r)
{
    uint32_t born = r->buffer;
    for (uint32_t op = r->op; op < r->op + r->ops; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.reads[op] + ir->op.writes[op]; k++)
            born += ir_read(ir, op, k).buffer.i == born;
    return born == r->buffer + r->buffers;
}

/* Ops of each shape, visited one by one and with those that repeat visited once. */
static inline void check_walk(const char *label, const struct ir *ir)
{
    int64_t *count = heap_zalloc(ir->shape_count + 1u, sizeof *count), visited = 0;
    for (uint32_t r = 0; r < ir->role_count; r++) {
        struct repeats_walk walk = repeats_begin(ir, ir->role[r].op_begin, ir->role[r].op_count);
        while (repeats_next(&walk))
            for (uint32_t op = walk.begin; op < walk.end; op++, visited++)
                count[ir->op.shape[op]] += walk.times;
    }
    for (uint32_t op = 0; op < ir->op.count; op++)
        count[ir->op.shape[op]]--;
    for (uint32_t shape = 0; shape < ir->shape_count; shape++)
        CHECK_INT(label, count[shape], 0);
    CHECK(label, (visited < ir->op.count) == (ir->repeat_count > 0));
    free(count);
}

static inline void check_repeats(const char *label, const struct ir *ir)
{
    uint32_t behind = 0;
    for (uint32_t i = 0; i < ir->repeat_count; i++) {
        const struct ir_repeat *r = &ir->repeat[i];
        const struct role *role = &ir->role[r->role];
        bool right = true;
        CHECK(label, r->op >= behind && r->op >= role->op_begin &&
                         r->op + r->ops * r->periods <= role->op_begin + role->op_count);
        behind = r->op + r->ops * r->periods;
        for (uint32_t k = r->ops; right && k < r->ops * r->periods; k++)
            right = op_repeats(ir, r->op + k % r->ops, r->ops, r->op + k);
        for (uint32_t k = r->buffers; right && k < r->buffers * r->periods; k++)
            right = buffer_repeats(ir, r->buffer + k % r->buffers, r->buffers, r->buffer + k);
        CHECK(label, right && are_born_there(ir, r));
    }
    check_walk(label, ir);
}

/* An allocator holds the same whether periods of the list may be left out or not, when there is plenty
 * of memory, when there is hardly enough and when there is too little. */
static inline void check_reserved(const char *label, const struct ir *stretched,
                                  const struct ir *whole)
{
    static const double room[] = {1e6, 1.2, 0.8};
    for (size_t i = 0; i < ARRAY_LEN(room); i++) {
        struct cluster cluster = {
            .ideal = true,
            .device = {.usable_bytes = room[i] * (double)whole->arena_bytes[MEMORY_HBM]}};
        struct reserved a, b;
        reserved_make(&a, stretched, &cluster, 80, (struct reserved_held){.buckets = 1 << 20});
        reserved_make(&b, whole, &cluster, 80, (struct reserved_held){.buckets = 1 << 20});
        CHECK_INT(label, (int64_t)a.total, (int64_t)b.total);
        CHECK_INT(label, (int64_t)a.bytes[RESERVED_TENSORS], (int64_t)b.bytes[RESERVED_TENSORS]);
        CHECK_INT(label, (int64_t)a.pinned, (int64_t)b.pinned);
        CHECK_INT(label, a.fits, b.fits);
    }
}

/* The repeated parts of which fewer were emitted than the model has. */
struct fewer {
    bool layers, micro_batches;
};

/* Builds a request both ways. */
static inline struct fewer both_ways(const struct request *request, const char *label)
{
    struct choices choices = {0};
    struct diag diag = {0};
    struct ir stretched = {0}, whole = {0};
    struct compose_emitted emitted = {0}, all = {0};
    bool built = compose_resolve(&choices, request, NULL, &diag) == STATUS_OK &&
                 compose_build_counted(&stretched, &choices, false, &emitted, &diag) == STATUS_OK &&
                 compose_build_counted(&whole, &choices, true, &all, &diag) == STATUS_OK;
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    if (built) {
        check_repeats(label, &stretched);
        check_reserved(label, &stretched, &whole);
        if (whole.buffer.count <= LONG_LIST)
            check_same_offsets(label, &stretched, &whole);
        else
            check_good_offsets(label, &stretched, &whole);
        forget_offsets(&stretched);
        forget_offsets(&whole);
        check_same(label, &stretched, &whole);
        bool fewer = emitted.layers < all.layers || emitted.micro_batches < all.micro_batches;
        CHECK(label, (stretched.repeat_count > 0) == fewer);
        CHECK_INT(label, all.layers, request->model->layers);
        CHECK_INT(label, (int64_t)whole.repeat_count, 0);
    }
    diag_release(&diag);
    ir_release(&stretched);
    ir_release(&whole);
    return (struct fewer){emitted.layers < all.layers, emitted.micro_batches < all.micro_batches};
}

/* Widths are those of real models, so that buckets fill. */
static inline struct transformer deep_model(const struct transformer *of, int64_t layers)
{
    struct transformer deep = *of;
    deep.layers = layers;
    deep.hidden *= 64;
    deep.head_dim *= 8;
    deep.ffn *= 64;
    return deep;
}

/* Many layers. */
static inline void check_deep_worlds(int worlds)
{
    struct check_random random = check_random_make();
    int fewer = 0;
    for (int i = 0; i < worlds; i++) {
        struct request request = shapes_request(&random, 8, false);
        struct transformer deep = deep_model(request.model, check_random_i64(&random, 12, 48));
        request.model = &deep;
        char label[320], shape[256];
        snprintf(label, sizeof label, "layers %lld %s", (long long)deep.layers,
                 shapes_label(&request, shape, sizeof shape));
        fewer += both_ways(&request, label).layers;
    }
    /* profiles deepspeed and ideal keep as many gathered layers of this size as there are: none is left out */
    CHECK("a third of them are stretched", 3 * fewer > worlds);
}

/* So many layers that offsets are those of one period of each run. */
static inline void check_long_worlds(int worlds)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < worlds; i++) {
        struct request request = shapes_request(&random, 8, false);
        struct transformer deep = deep_model(request.model, check_random_i64(&random, 250, 300));
        request.model = &deep;
        request.global_batch = request.dp * request.micro_batch;
        char label[320], shape[256];
        snprintf(label, sizeof label, "long: layers %lld %s", (long long)deep.layers,
                 shapes_label(&request, shape, sizeof shape));
        both_ways(&request, label);
    }
}

/* Stages, with one chunk of layers or two. */
static inline void check_stage_worlds(int count)
{
    struct check_random random = check_random_make();
    int fewer = 0, worlds = 0;
    for (int i = 0; i < count; i++) {
        struct request request = shapes_request(&random, 4, false);
        struct transformer deep = deep_model(request.model, check_random_i64(&random, 24, 80));
        if (request.chunk > 0) /* fpdt has its own pieces of a sequence */
            continue;
        request.model = &deep;
        request.pp = 2;
        request.ranks *= 2;
        request.pipeline =
            (int)check_random_i64(&random, CHOICE_PIPELINE_GPIPE, CHOICE_PIPELINE_INTERLEAVED);
        request.global_batch = 4 * request.dp * request.micro_batch;
        if (i % 2 == 1 && request.cp == 1 && (request.tp == 1 || request.hp == 1)) {
            request.subsequences = 2; /* of units that are cut in two */
            request.pipeline += CHOICE_PIPELINE_SEQ1F1B - CHOICE_PIPELINE_1F1B;
            if (request.pipeline > CHOICE_PIPELINE_SEQ1F1B)
                request.pipeline = CHOICE_PIPELINE_INTERLEAVED;
        }
        request.weights = (int)check_random_i64(&random, 0, CHOICE_WEIGHTS_ZERO1);
        request.optimizer = CHOICE_OPTIMIZER_DEVICE;
        request.shard = 0;
        char label[320], shape[256];
        snprintf(label, sizeof label, "stages %s layers %lld %s", pipeline_names[request.pipeline],
                 (long long)deep.layers, shapes_label(&request, shape, sizeof shape));
        fewer += both_ways(&request, label).layers;
        worlds++;
    }
    /* buckets of most profiles hold all layers of a model as small as these */
    CHECK("some of them are stretched", 12 * fewer > worlds);
}

/* Many micro-batches: without stages, and with stages in each order. Layers are few, or many. */
static inline void check_unit_worlds(int count)
{
    struct check_random random = check_random_make();
    int fewer[CHOICE_PIPELINE_MSP] = {0}, worlds[CHOICE_PIPELINE_MSP] = {0};
    for (int i = 0; i < count; i++) {
        struct request request = shapes_request(&random, 4, false);
        int pipeline = i % CHOICE_PIPELINE_MSP;
        int64_t pp = pipeline != CHOICE_PIPELINE_NONE ? check_random_i64(&random, 2, 3) : 1;
        struct transformer deep = deep_model(
            request.model, i % 3 == 0 ? 16 * pp : check_random_i64(&random, 2 * pp, 3 * pp));
        if (request.chunk > 0 && pp > 1) /* fpdt has its own pieces of a sequence */
            continue;
        request.model = &deep;
        request.pp = pp;
        request.ranks *= pp;
        request.pipeline = pipeline;
        request.global_batch =
            request.dp * request.micro_batch *
            (pipeline == CHOICE_PIPELINE_INTERLEAVED ? pp * check_random_i64(&random, 14, 20)
                                                     : check_random_i64(&random, 16, 40));
        request.subsequences = 1;
        if (pp > 1) {
            bool cut = request.cp == 1 && (request.tp == 1 || request.hp == 1);
            if (pipeline == CHOICE_PIPELINE_TERAPIPE || pipeline == CHOICE_PIPELINE_SEQ1F1B)
                request.subsequences = cut ? 2 : 1;
            request.weights = (int)check_random_i64(&random, 0, CHOICE_WEIGHTS_ZERO1);
            request.optimizer = CHOICE_OPTIMIZER_DEVICE;
            request.shard = 0;
        }
        char label[320], shape[256];
        snprintf(label, sizeof label, "%s pp %lld batch %lld layers %lld %s",
                 pipeline_names[pipeline], (long long)pp, (long long)request.global_batch,
                 (long long)deep.layers, shapes_label(&request, shape, sizeof shape));
        fewer[pipeline] += both_ways(&request, label).micro_batches;
        worlds[pipeline]++;
    }
    for (int p = 0; p < CHOICE_PIPELINE_MSP; p++) {
        bool steady = p != CHOICE_PIPELINE_GPIPE && p != CHOICE_PIPELINE_TERAPIPE;
        CHECK(pipeline_names[p], worlds[p] > 0 && (fewer[p] > 0) == steady);
    }
}

#endif
