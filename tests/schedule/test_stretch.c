/* Deep schedules made from few layers are those that are emitted layer by layer, and those of many
 * micro-batches those that are emitted one by one: rows, waits, free sets and offsets alike; and what they
 * say repeats does. */
#include "schedule/compose.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/repeats.h"
#include "schedule/reserved/reserved.h"
#include "schedule/stretch/tenants.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS = 100, UNIT_WORLDS = 48, LONG_WORLDS = 12, LONG_LIST = 10000 /* buffers */ };

/* The first line that differs, for the label of a failure. */
static void first_difference(const struct text *a, const struct text *b, char *out, size_t size)
{
    size_t at = 0, line = 0;
    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        if (a->data[at++] == '\n')
            line = at;
    snprintf(out, size, "%.*s | %.*s", (int)strcspn(a->data + line, "\n"), a->data + line,
             (int)strcspn(b->data + line, "\n"), b->data + line);
}

static void check_same(const char *label, const struct ir *stretched, const struct ir *whole)
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

static void check_same_offsets(const char *label, const struct ir *stretched,
                               const struct ir *whole)
{
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(label, (int64_t)stretched->arena_bytes[m], (int64_t)whole->arena_bytes[m]);
    CHECK(label, stretched->buffer.count == whole->buffer.count &&
                     memcmp(stretched->buffer.offset, whole->buffer.offset,
                            whole->buffer.count * sizeof *whole->buffer.offset) == 0);
}

/* Long lists are packed by periods: other offsets, which are as good. */
static void check_good_offsets(const char *label, const struct ir *stretched,
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
static void forget_offsets(struct ir *ir)
{
    memset(ir->buffer.offset, 0xff, ir->buffer.count * sizeof *ir->buffer.offset);
    memset(ir->arena_bytes, 0, sizeof ir->arena_bytes);
}

/* ---- repeats ---- */

static bool strides(uint64_t first, uint64_t second, uint64_t before, uint64_t now)
{
    return now - before == second - first;
}

static bool op_repeats(const struct ir *ir, uint32_t first, uint32_t by, uint32_t now)
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

static bool buffer_repeats(const struct ir *ir, uint32_t first, uint32_t by, uint32_t now)
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
static bool are_born_there(const struct ir *ir, const struct ir_repeat *r)
{
    uint32_t born = r->buffer;
    for (uint32_t op = r->op; op < r->op + r->ops; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.reads[op] + ir->op.writes[op]; k++)
            born += ir_read(ir, op, k).buffer.i == born;
    return born == r->buffer + r->buffers;
}

/* Ops of each shape, visited one by one and with those that repeat visited once. */
static void check_walk(const char *label, const struct ir *ir)
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

static void check_repeats(const char *label, const struct ir *ir)
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
static void check_reserved(const char *label, const struct ir *stretched, const struct ir *whole)
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

/* Of what fewer were emitted than there are. */
struct fewer {
    bool layers, micro_batches;
};

/* Builds a request both ways. */
static struct fewer both_ways(const struct request *request, const char *label)
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

/* As wide as models are, for the sake of buckets. */
static struct transformer deep_model(const struct transformer *of, int64_t layers)
{
    struct transformer deep = *of;
    deep.layers = layers;
    deep.hidden *= 64;
    deep.head_dim *= 8;
    deep.ffn *= 64;
    return deep;
}

static void stretched_is_emitted(void)
{
    struct check_random random = check_random_make();
    int fewer = 0;
    for (int i = 0; i < WORLDS; i++) {
        struct request request = shapes_request(&random, 8, false);
        struct transformer deep = deep_model(request.model, check_random_i64(&random, 12, 48));
        request.model = &deep;
        char label[320], shape[256];
        snprintf(label, sizeof label, "layers %lld %s", (long long)deep.layers,
                 shapes_label(&request, shape, sizeof shape));
        fewer += both_ways(&request, label).layers;
    }
    CHECK("half of them are stretched", 2 * fewer > WORLDS);
}

/* So many layers that offsets are those of one period of each run. */
static void long_lists_are_packed_by_periods(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < LONG_WORLDS; i++) {
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
static void stretched_stages_are_emitted(void)
{
    struct check_random random = check_random_make();
    int fewer = 0, worlds = 0;
    for (int i = 0; i < WORLDS / 4; i++) {
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
    CHECK("some of them are stretched", 6 * fewer > worlds);
}

/* Stages of chunks of a sequence, of which an allocator leaves out fewer periods than buffers live for. */
static void buffers_outlive_what_is_left_out(void)
{
    struct arena arena = {0};
    struct diag diag = {0};
    struct transformer model;
    CHECK_INT("model", transformer_load(&model, &arena, "gpt-7b", NULL, &diag), STATUS_OK);
    for (int64_t layers = 26; layers <= 38; layers += 2) {
        struct request request = {
            .model = &model,
            .strategy = "fpdt",
            .ranks = 8,
            .pp = 2,
            .seq = 256 << 10,
            .chunk = 64 << 10,
            .sm = 80,
            .gpus_per_node = 8,
            .weights = -1,
            .activations = -1,
            .optimizer = -1,
            .attention_impl = -1,
            .dtype = -1,
        };
        model.layers = layers;
        char label[64];
        snprintf(label, sizeof label, "chunks on stages, layers %lld", (long long)layers);
        both_ways(&request, label);
    }
    diag_release(&diag);
    arena_release(&arena);
}

/* Many micro-batches: without stages, and with stages in each order. Layers are few, or many. */
static void stretched_units_are_emitted(void)
{
    struct check_random random = check_random_make();
    int fewer[CHOICE_PIPELINE_MSP] = {0}, worlds[CHOICE_PIPELINE_MSP] = {0};
    for (int i = 0; i < UNIT_WORLDS; i++) {
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

/* One rank whose ops are all of one stream. */
static void lists_without_waits_are_emitted(void)
{
    struct request request = {.model = &shapes[0],
                              .weights = CHOICE_WEIGHTS_REPLICATED,
                              .activations = CHOICE_ACTIVATIONS_KEEP,
                              .optimizer = CHOICE_OPTIMIZER_DEVICE,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = 1,
                              .seq = 32,
                              .global_batch = 32,
                              .micro_batch = 1,
                              .sm = 80};
    CHECK("units are left out", both_ways(&request, "without waits").micro_batches);
}

/* Planners change offsets for others of the same room: what a shorter list needs is not less. */
static void tenants_keep_the_room_they_had(void)
{
    enum { MANY = 10 };
    struct ir in = {.op = {.count = 1}}, out = {0};
    struct stretch_block block = {.ops = 1, .run = IR_NONE, .like = IR_NONE};
    uint32_t nobody = 0;
    struct stretch s = {.in = &in,
                        .out = &out,
                        .block = &block,
                        .block_count = 1,
                        .block_of_op = &nobody,
                        .op_count = 1};
    struct tenants one = {.ops = 1, .classes = 1}, of_long = {0};
    tenants_reserve(&one, 1);
    one.count = 1;
    one.birth[0] = one.buffer[0] = one.class_of[0] = 0;
    one.size[0] = 512;
    one.end = heap_alloc(1, sizeof *one.end);
    one.end[0] = 1;
    tenants_reserve(&of_long, MANY);
    CHECK("told", stretch_tenants(&of_long, &one, &s));
    CHECK_INT("tenants", of_long.count, 1);
    CHECK_INT("room", of_long.capacity, MANY);
    tenants_release(&one);
    tenants_release(&of_long);
}

static const struct check_case cases[] = {
    {"stretched is emitted", stretched_is_emitted},
    {"long lists are packed by periods", long_lists_are_packed_by_periods},
    {"stretched stages are emitted", stretched_stages_are_emitted},
    {"buffers outlive what is left out", buffers_outlive_what_is_left_out},
    {"stretched units are emitted", stretched_units_are_emitted},
    {"lists without waits are emitted", lists_without_waits_are_emitted},
    {"tenants keep the room they had", tenants_keep_the_room_they_had},
};
CHECK_MAIN("stretch", cases)
