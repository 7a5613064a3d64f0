/* tests/predict/test_rings.c: rings in predictions: which rotation is faster on how many hosts, and which
 * buffers are in memory when. */
#include "predict/prediction.h"
#include "sim/memory/memory.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static struct setup *load_setup(const char *model, const char *fields, const char *cluster,
                                int64_t gpus)
{
    struct setup *setup = heap_zalloc(1, sizeof *setup);
    struct diag diag = {0};
    enum status status = setup_load_model(setup, model, NULL, fields, &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(setup, cluster, 0, gpus, &diag);
    CHECK_TEXT(cluster, diag.error_count > 0 ? diag.text : "", "");
    CHECK_INT(cluster, status, STATUS_OK);
    setup_leave_request_open(setup);
    diag_release(&diag);
    return setup;
}

static bool predict(struct prediction *p, const struct setup *setup, const char *label)
{
    struct diag diag = {0};
    enum status status = prediction_make(p, &(struct prediction_question){.setup = setup}, &diag);
    CHECK_TEXT(label, diag.error_count > 0 ? diag.text : "", "");
    diag_release(&diag);
    return CHECK_INT(label, status, STATUS_OK);
}

static void unload(struct prediction *p, struct setup *setup)
{
    prediction_release(p);
    setup_release(setup);
    free(setup);
}

/* ---- torchtitan's two rotations ---- */

static double torchtitan_step_s(int64_t gpus, int64_t seq, int rotate)
{
    struct setup *setup = load_setup("llama3-8b", "layers=2", "torchtitan-h100", gpus);
    struct prediction p = {0};
    setup->request.strategy = "ring";
    setup->request.profile = "torchtitan";
    setup->request.rotation = rotate;
    setup->request.kernels = KERNELS_COMPILED;
    setup->request.seq = seq;
    double seconds = predict(&p, setup, "torchtitan") ? p.sim.step_s : 0;
    unload(&p, setup);
    return seconds;
}

/* On one host the messages of a ring are hidden, but the gather before the first tile is not. On several hosts,
 * messages leave a host through one NIC in every step, and the gather leaves through all NICs at once. */
static void ring_rotation_cost_by_host_count(void)
{
    static const struct {
        const char *label;
        int64_t gpus, seq;
        bool gather_wins;
    } rows[] = {
        {"256K on 8", 8, 262144, false},
        {"512K on 16", 16, 524288, true},
        {"1M on 32", 32, 1048576, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double to_all = torchtitan_step_s(rows[i].gpus, rows[i].seq, ROTATE_ALL_TO_ALL);
        double gather = torchtitan_step_s(rows[i].gpus, rows[i].seq, ROTATE_ALL_GATHER);
        CHECK(rows[i].label, rows[i].gather_wins ? gather < to_all : to_all < gather);
    }
}

/* ---- memory over time ---- */

/* Returns a setup of a ring over 8 GPUs in windows of 2 that keeps the outputs of attention. */
static struct setup *load_setup_of_double_ring(void)
{
    struct setup *setup = load_setup("internlm-7b-mha", "layers=4", "loongtrain-a100", 8);
    setup->request.strategy = "ring";
    setup->request.ring_window = 2;
    setup->request.activations = CHOICE_ACTIVATIONS_SELECTIVE;
    setup->request.seq = 65536;
    return setup;
}

/* Returns the time in seconds at which a buffer of rank 0 is allocated (born) or freed; -1: never. */
static double buffer_event_s(const struct memory_event *event, size_t count, uint32_t buffer,
                             bool born)
{
    for (size_t i = 0; i < count; i++)
        if (event[i].buffer == buffer && (event[i].added_bytes > 0) == born)
            return event[i].time_s;
    return -1;
}

/* Finds when the first op of a layer's attention in a phase starts, and when the last one ends, on rank 0. */
static void attention_interval_of_layer(const struct prediction *p, uint32_t layer,
                                        enum phase phase, double *from_s, double *to_s)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[0]];
    const double *start = sim_op_starts_of_rank_s(&p->sim, 0),
                 *end = sim_op_ends_of_rank_s(&p->sim, 0);
    *from_s = 1e300;
    *to_s = 0;
    for (uint32_t k = 0; k < class->op_count; k++) {
        uint32_t op = class->op_begin + k;
        if (p->ir.op.region[op] != REGION_ATTENTION || p->ir.op.phase[op] != phase ||
            p->ir.op.layer[op] != layer)
            continue;
        *from_s = start[k] < *from_s ? start[k] : *from_s;
        *to_s = end[k] > *to_s ? end[k] : *to_s;
    }
}

/* Selective recomputation keeps the output of attention (2 s h bytes, in 16 bits) and its log-sum-exp (4 s a bytes, a:
 * heads) of each layer, both divided by the ranks that share the sequence. They are live from the layer's attention in
 * the forward to the end of its last tile in the backward. */
static void selective_saves_live_until_backward(void)
{
    struct setup *setup = load_setup_of_double_ring();
    struct prediction p = {0};
    if (predict(&p, setup, "selective")) {
        const struct sim_class *class = &p.sim.classes[p.sim.class_of_rank[0]];
        const double *end = sim_op_ends_of_rank_s(&p.sim, 0);
        struct memory_event *event;
        size_t events = memory_list_events(&p.ir, &p.sim, 0, &event);
        for (uint32_t layer = 0; layer < 4; layer++) {
            double first_s, last_s, back_s, done_s, last_tile_s = 0;
            int64_t bytes = 0;
            attention_interval_of_layer(&p, layer, PHASE_FORWARD, &first_s, &last_s);
            attention_interval_of_layer(&p, layer, PHASE_BACKWARD, &back_s, &done_s);
            for (uint32_t k = 0; k < class->op_count; k++)
                if (p.ir.op.kind[class->op_begin + k] == WORK_ATTENTION_BACKWARD &&
                    p.ir.op.layer[class->op_begin + k] == layer && end[k] > last_tile_s)
                    last_tile_s = end[k];
            for (uint32_t b = 0; b < p.ir.buffer.count; b++) {
                const char *stem = p.ir.word[p.ir.buffer.stem[b]];
                bool kept = strcmp(stem, "attention") == 0 || strcmp(stem, "lse") == 0;
                double born_s = buffer_event_s(event, events, b, true);
                double gone_s = buffer_event_s(event, events, b, false);
                if (!kept || p.ir.buffer.layer[b] != layer || gone_s < back_s)
                    continue;
                CHECK("born in the core", born_s >= first_s && born_s <= last_s);
                CHECK("gone behind its last tile's backward",
                      gone_s >= last_tile_s && gone_s <= done_s);
                bytes += (int64_t)ir_buffer_bytes(&p.ir, (buffer_id){b});
            }
            CHECK_INT("(2 s h + 4 s a) / ranks", bytes, (2 * 65536 * 4096 + 4 * 65536 * 32) / 8);
        }
        free(event);
    }
    unload(&p, setup);
}

/* The outer ring's block: a window starts with a block that the previous window sends a whole inner round ahead. The
 * buffer of the block is live from that message at least until the first tile of its own window ends. */
static void the_outer_rings_block_lives_for_two_rounds(void)
{
    struct setup *setup = load_setup_of_double_ring();
    struct prediction p = {0};
    if (predict(&p, setup, "outer ring")) {
        const struct sim_class *class = &p.sim.classes[p.sim.class_of_rank[0]];
        const double *start = sim_op_starts_of_rank_s(&p.sim, 0),
                     *end = sim_op_ends_of_rank_s(&p.sim, 0);
        struct memory_event *event;
        size_t events = memory_list_events(&p.ir, &p.sim, 0, &event), blocks = 0;
        for (uint32_t k = 0; k < class->op_count; k++) {
            uint32_t op = class->op_begin + k;
            const char *stream = p.ir.stream[p.ir.op.stream[op]].name;
            if (p.ir.op.kind[op] != WORK_SHIFT || strcmp(stream, "comm.cp") != 0 ||
                p.ir.op.phase[op] != PHASE_FORWARD)
                continue;
            uint32_t buffer = ir_write_view(&p.ir, op, 0).buffer.i, step = p.ir.op.step[op];
            double round_s = 0; /* the end of the round that begins with the block */
            for (uint32_t j = 0; j < class->op_count; j++) {
                uint32_t other = class->op_begin + j;
                if (p.ir.op.kind[other] == WORK_ATTENTION && p.ir.op.step[other] == step + 2 &&
                    p.ir.op.layer[other] == p.ir.op.layer[op] &&
                    p.ir.op.phase[other] == PHASE_FORWARD && end[j] > round_s)
                    round_s = end[j];
            }
            CHECK_INT("step", step % 2, 0);
            CHECK_INT("keys and values of a rank",
                      (int64_t)ir_buffer_bytes(&p.ir, (buffer_id){buffer}), 4 * 65536 * 4096 / 8);
            CHECK_CLOSE("from the message on", buffer_event_s(event, events, buffer, true),
                        start[k], 1e-12);
            CHECK("until its first tile is done",
                  buffer_event_s(event, events, buffer, false) >= round_s * (1 - 1e-12));
            blocks++;
        }
        CHECK_INT("cp / w - 1 of them in a layer", (int64_t)blocks, 4 * 3);
        free(event);
    }
    unload(&p, setup);
}

static const struct check_case cases[] = {
    {"rotations are in the order of their hosts", ring_rotation_cost_by_host_count},
    {"what selective keeps lives from core to core", selective_saves_live_until_backward},
    {"the outer ring's block lives for two rounds", the_outer_rings_block_lives_for_two_rounds},
};
CHECK_MAIN("rings", cases)
