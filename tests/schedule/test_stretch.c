/* Deep schedules made from few layers are those that are emitted layer by layer, and those of many
 * micro-batches those that are emitted one by one: rows, waits, free sets and offsets alike; and what they
 * record as repeating does repeat. Many more worlds are test_stretch_nightly.c's. */
#include "schedule/stretch/tenants.h"
#include "tests/schedule/stretch_cases.h"

static void stretched_is_emitted(void)
{
    check_deep_worlds(40);
}

static void long_lists_are_packed_by_periods(void)
{
    check_long_worlds(6);
}

static void stretched_stages_are_emitted(void)
{
    check_stage_worlds(16);
}

static void stretched_units_are_emitted(void)
{
    check_unit_worlds(24);
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
