/* tests/schedule/test_remote_weights.c: weights and gradients that stages send each other when they share subsequences,
 * counted by hand for 4 stages of 2 layers and 6 subsequences. The first 3 - i subsequences of chunk i are
 * shared by stages i to 3, its last i by stages 0 to i. */
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/check.h"

static const struct transformer model = {.name = "eight layers",
                                         .layers = 8,
                                         .hidden = 64,
                                         .heads = 4,
                                         .kv_heads = 4,
                                         .head_dim = 16,
                                         .ffn = 96,
                                         .vocab = 101,
                                         .rope_theta = 1e4,
                                         .norm_eps = 1e-5};

enum { STAGES = 4, SUBSEQUENCES = 6 };

/* Returns a request for pipeline msp with one or more layers per stage and otherwise the plainest choices. */
static struct request request_of(const struct transformer *m, int64_t stages, int64_t subsequences,
                                 int64_t tokens)
{
    return (struct request){.model = m,
                            .strategy = "ulysses",
                            .profile = "megatron",
                            .weights = CHOICE_WEIGHTS_REPLICATED,
                            .activations = CHOICE_ACTIVATIONS_KEEP,
                            .optimizer = CHOICE_OPTIMIZER_DEVICE,
                            .attention_impl = ATTENTION_CPU,
                            .dtype = DTYPE_BF16,
                            .ranks = stages,
                            .pp = stages,
                            .hp = 1,
                            .pipeline = CHOICE_PIPELINE_MSP,
                            .subsequences = subsequences,
                            .seq = tokens * subsequences,
                            .gpus_per_node = 8};
}

static bool build_schedule(struct ir *ir, enum msp_weights helpers)
{
    struct request request = request_of(&model, STAGES, SUBSEQUENCES, 12);
    request.helpers = (int)helpers;
    struct choices choices;
    struct diag diag = {0};
    bool is_built =
        CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK);
    if (is_built)
        is_built = CHECK_INT("build", step_build(ir, &choices, &diag), STATUS_OK);
    CHECK_TEXT("no message", diag.text ? diag.text : "", "");
    diag_release(&diag);
    return is_built;
}

struct op_count_and_bytes {
    int64_t ops, bytes;
};

/* Counts a stage's ops of a kind on weights, and their bytes, in groups whose names start with `group`. */
static struct op_count_and_bytes count_weight_ops(const struct ir *ir, uint32_t stage,
                                                  enum work_kind kind, const char *group)
{
    const struct role *role = &ir->role[stage];
    struct op_count_and_bytes op_count_and_bytes = {0, 0};
    for (uint32_t op = role->op_begin; op < role->op_begin + role->op_count; op++) {
        const struct work *work = ir_work(ir, op);
        if (work->kind != kind || ir->op.region[op] != REGION_WEIGHT_COLLECTIVES ||
            strncmp(ir->group[work_comm_group(work)].name, group, strlen(group)) != 0)
            continue;
        op_count_and_bytes.ops++;
        op_count_and_bytes.bytes += work_payload_bytes(work);
    }
    return op_count_and_bytes;
}

/* Returns the number of bundles of a chunk: its two layers, and the embedding in the first or the
 * head in the last. */
static int64_t bundle_count_of_chunk(uint32_t chunk)
{
    return chunk == 0 || chunk == STAGES - 1 ? 3 : 2;
}

/* Returns the elements of a chunk; each of its bundles is padded for the chunk's stages. */
static int64_t elements(const struct ir *ir, uint32_t chunk)
{
    int64_t first = chunk == 0 ? 0 : 1 + 2 * chunk, sum = 0;
    for (int64_t b = first; b < first + bundle_count_of_chunk(chunk); b++)
        sum += (int64_t)ir->bundle[b].elements;
    return sum;
}

/* The communication in which one stage takes part. */
struct expected {
    int64_t bundles_of_all_groups;        /* bundles, over all its groups */
    int64_t summed_bundles_of_all_groups; /* bundles times shared units, over all its groups */
    int64_t sent_elements;                /* elements that it sends to others */
    int64_t received_elements;            /* elements that others send to it */
};

static void add_group(struct expected *e, const struct ir *ir, uint32_t chunk, uint32_t units,
                      uint32_t stages, bool owns)
{
    if (units == 0)
        return;
    e->bundles_of_all_groups += bundle_count_of_chunk(chunk);
    e->summed_bundles_of_all_groups += bundle_count_of_chunk(chunk) * units;
    if (owns)
        e->received_elements += elements(ir, chunk) * (stages - 1) / stages;
    else
        e->sent_elements += elements(ir, chunk) / stages;
}

static struct expected expected_of_stage(const struct ir *ir, uint32_t stage)
{
    struct expected e = {0};
    for (uint32_t chunk = 0; chunk < STAGES; chunk++) {
        if (stage >= chunk)
            add_group(&e, ir, chunk, STAGES - 1 - chunk, STAGES - chunk, stage == chunk);
        if (stage <= chunk)
            add_group(&e, ir, chunk, chunk, chunk + 1, stage == chunk);
    }
    return e;
}

static void remote_weight_policies_send_as_named(void)
{
    struct ir broadcast = {0}, shard = {0};
    if (!build_schedule(&broadcast, MSP_WEIGHTS_BROADCAST) ||
        !build_schedule(&shard, MSP_WEIGHTS_SHARD))
        return;
    for (uint32_t stage = 0; stage < STAGES; stage++) {
        char label[32];
        snprintf(label, sizeof label, "stage %u", stage);
        struct expected e = expected_of_stage(&shard, stage);
        int64_t uses = count_weight_ops(&broadcast, stage, WORK_BROADCAST, "weights").ops;
        CHECK_INT(label, count_weight_ops(&broadcast, stage, WORK_REDUCE, "sums").ops,
                  e.bundles_of_all_groups);
        /* the first use in a step broadcasts whole bundles, later uses gather parts */
        CHECK_INT(label, count_weight_ops(&shard, stage, WORK_BROADCAST, "weights").ops,
                  e.bundles_of_all_groups);
        CHECK_INT(label, count_weight_ops(&shard, stage, WORK_ALL_GATHER, "weights").ops,
                  uses - e.bundles_of_all_groups);
        CHECK_INT(label, count_weight_ops(&shard, stage, WORK_REDUCE_SCATTER, "sums").ops,
                  e.summed_bundles_of_all_groups);
        /* gradients are sent in fp32 */
        CHECK_INT(label, count_weight_ops(&shard, stage, WORK_SEND, "pp").bytes,
                  4 * e.sent_elements);
        CHECK_INT(label, count_weight_ops(&shard, stage, WORK_RECV, "pp").bytes,
                  4 * e.received_elements);
    }
    ir_release(&broadcast);
    ir_release(&shard);
}

/* Each stage needs two streams; more stages than there are streams for are refused. */
static void stages_are_limited_by_streams(void)
{
    enum { BUILT = 30, TOO_MANY = 85 };
    struct transformer deep = model;
    deep.layers = TOO_MANY;
    for (int64_t pp = BUILT; pp <= TOO_MANY; pp += TOO_MANY - BUILT) {
        struct request request = request_of(&deep, pp, pp, pp * pp);
        request.shared_units = &(struct shared_units){.first = 1};
        struct choices choices;
        struct diag diag = {0};
        struct ir ir = {0};
        bool ok = resolve_choices(&choices, &request, NULL, &diag) == STATUS_OK &&
                  step_build(&ir, &choices, &diag) == STATUS_OK;
        CHECK_INT("built", ok, pp == BUILT);
        CHECK("streams",
              !ok || (ir.stream_count >= 2 * BUILT && ir.stream_count <= IR_STREAMS_MAX));
        CHECK_TEXT("message", diag.text ? diag.text : "",
                   ok ? "" : "--pipeline: error: msp takes --pp 84 or less, not 85\n");
        ir_release(&ir);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"each policy sends what it says", remote_weight_policies_send_as_named},
    {"as many stages as there are streams for", stages_are_limited_by_streams},
};
CHECK_MAIN("remote_weights", cases)
