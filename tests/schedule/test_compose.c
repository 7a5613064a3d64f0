/* tests/schedule/test_compose.c: schedules made from choices: random legal combinations verify, and the flops of the
 * forward do not depend on the strategy. */
#include "base/text.h"
#include "schedule/analysis/liveness.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/resolve_config.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/verify/verify.h"
#include "tests/schedule/composed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void random_schedules_verify(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 300; i++) {
        struct request request = shapes_random_request(&random, 8, i % 2 == 0);
        char label[256];
        shapes_request_label(&request, label, sizeof label);
        struct ir ir;
        struct choices choices;
        struct diag diag = {0};
        if (composed_build(&ir, &choices, &request, label)) {
            verify(&ir, NULL, "schedule", NULL, &diag);
            CHECK_TEXT(label, diag.text ? diag.text : "", "");
        }
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* True if ops read or write every buffer. A part of the model must not bind buffers that it does
 * not use, since they take memory. */
static bool all_buffers_are_touched(const struct ir *ir)
{
    bool *touched = heap_zalloc((size_t)ir->buffer.count + 1, sizeof *touched), all = true;
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++)
            touched[ir_touched_buffer(ir, op, k)] = true;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        all = all && touched[b];
    free(touched);
    return all;
}

static void all_schedule_choices_verify(void)
{
    size_t strategies, profiles;
    const struct strategy *strategy = strategies_list(&strategies);
    const struct profile *profile = profiles_list(&profiles);
    for (size_t i = 0; i < strategies * profiles * SCOPE_COUNT; i++) {
        struct request request = composed_request(1, 4);
        struct ir ir;
        struct choices choices;
        struct diag diag = {0};
        char label[96];
        request.scope = (int)(i % SCOPE_COUNT);
        request.profile = profile[i / SCOPE_COUNT % profiles].name;
        request.strategy = strategy[i / SCOPE_COUNT / profiles].name;
        uint8_t attention = strategy[i / SCOPE_COUNT / profiles].attention;
        if (attention == CHOICE_ATTENTION_UPIPE) {
            request.hp = 2; /* as many as the model has key and value heads */
            if (request.scope >= SCOPE_ATTENTION_OPERATOR &&
                request.scope <= SCOPE_ATTENTION_EXCHANGES)
                continue; /* its stages contain the projection */
        }
        if (attention == CHOICE_ATTENTION_FPDT)
            request.chunk_tokens = 16;
        else if (request.scope == SCOPE_CHUNK_FETCHES_FROM_HOST)
            continue; /* there are no fetches from the host */
        snprintf(label, sizeof label, "%s %s %s", request.strategy, request.profile,
                 scope_names[request.scope]);
        if (composed_build(&ir, &choices, &request, label)) {
            verify(&ir, NULL, "schedule", NULL, &diag);
            CHECK_TEXT(label, diag.text ? diag.text : "", "");
            CHECK(label, request.scope == SCOPE_WHOLE_STEP || all_buffers_are_touched(&ir));
        }
        diag_release(&diag);
        ir_release(&ir);
    }
}

static void forward_flops_are_the_models(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 100; i++) {
        struct request request = shapes_random_request(&random, 8, false);
        char label[256];
        shapes_request_label(&request, label, sizeof label);
        struct ir ir;
        struct choices c;
        if (composed_build(&ir, &c, &request, label)) {
            /* With tensor ranks the flops are tp times those of one rank's share: its vocabulary is rounded up, in
             * some profiles to a multiple of a unit, and it may hold a copy of a key and value head. */
            const struct transformer share = tensor_share_of_model(
                                         c.model, c.tp, c.tp > 1 ? tensor_vocabulary_unit(&c) : 1),
                                     *m = &share;
            double tokens = (double)c.global_batch * (double)c.seq, products, attention;
            double pairs = (double)c.seq * ((double)c.seq + 1) / 2; /* j <= i, the diagonal too */
            composed_forward_flops(&ir, &products, &attention);
            CHECK_CLOSE(
                label, products,
                tokens * c.tp *
                    ((double)m->layers * (double)transformer_layer_linear_flops_per_token(m) +
                     (double)transformer_head_flops_per_token(m)),
                1e-12);
            CHECK_CLOSE(label, attention,
                        (double)c.global_batch * (double)m->layers * 4 * pairs *
                            (double)(c.tp * m->heads * m->head_dim),
                        1e-12);
        }
        ir_release(&ir);
    }
}

static void recomputation_repeats_the_layers(void)
{
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct request request = composed_request(shape, 2);
        struct ir keep, full;
        struct choices c;
        request.strategy = "ulysses";
        request.profile = "deepspeed";
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&keep, &c, &request, shapes[shape].name);
        request.activations = CHOICE_ACTIVATIONS_FULL;
        composed_build(&full, &c, &request, shapes[shape].name);
        double head = 64.0 * (double)transformer_head_flops_per_token(&shapes[shape]) / 2;
        CHECK_CLOSE(shapes[shape].name, composed_phase_flops(&keep, PHASE_RECOMPUTE), 0, 0);
        CHECK_CLOSE(shapes[shape].name, composed_phase_flops(&full, PHASE_RECOMPUTE),
                    composed_phase_flops(&full, PHASE_FORWARD) - head, 1e-12);
        CHECK_CLOSE(shapes[shape].name, composed_phase_flops(&full, PHASE_BACKWARD),
                    composed_phase_flops(&keep, PHASE_BACKWARD), 1e-12);
        ir_release(&keep);
        ir_release(&full);
    }
}

static void what_the_backward_does_not_read_is_not_repeated(void)
{
    struct request request = composed_request(0, 2);
    struct ir ir;
    struct choices c;
    request.profile = "ideal";
    request.activations = CHOICE_ACTIVATIONS_FULL;
    composed_build(&ir, &c, &request, "ideal");
    const struct transformer *m = &shapes[0];
    double down = 2.0 * 32 * (double)(m->ffn * m->hidden) *
                  (double)m->layers; /* the last product of a layer */
    double head = 32.0 * (double)transformer_head_flops_per_token(m);
    CHECK_CLOSE("recomputed", composed_phase_flops(&ir, PHASE_RECOMPUTE),
                composed_phase_flops(&ir, PHASE_FORWARD) - head - down, 1e-12);
    ir_release(&ir);
}

/* Recomputed flops by hand. Of the products without a bias every second one is recomputed: of keys,
 * the output projection, and, with SwiGLU, half of the product of w1 and w3; if q, k and v have
 * biases, the output projection is the first without one, which is kept. If every second layer is
 * recomputed, each takes the flops that it takes with full recomputation, which leaves out what no
 * backward reads. */
static void every_second_product_or_layer_is_repeated(void)
{
    for (int shape = 0; shape < SHAPE_COUNT; shape++) {
        const struct transformer *m = &shapes[shape];
        struct request request = composed_request(shape, 2);
        struct ir op, layer, full;
        struct choices c;
        int64_t recomputed = m->layers / 2;
        double rows = 64, h = (double)m->hidden, f = (double)m->ffn;
        double wk = m->bias_qkv ? 0 : 2 * rows * h * (double)transformer_kv_columns(m);
        double wo = m->bias_o || m->bias_qkv ? 0 : 2 * rows * h * (double)transformer_q_columns(m);
        double w3 = transformer_has_gate(m) ? 2 * rows * h * f : 0;
        request.strategy = "local";
        request.profile = "torchtitan";
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE_OP;
        composed_build(&op, &c, &request, "op");
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE_LAYER;
        composed_build(&layer, &c, &request, "layer");
        request.activations = CHOICE_ACTIVATIONS_FULL;
        composed_build(&full, &c, &request, "full");
        CHECK_CLOSE(m->name, composed_phase_flops(&op, PHASE_RECOMPUTE),
                    (double)m->layers * (wk + wo + w3), 1e-12);
        CHECK_CLOSE(m->name, composed_phase_flops(&layer, PHASE_RECOMPUTE) * (double)m->layers,
                    composed_phase_flops(&full, PHASE_RECOMPUTE) * (double)recomputed, 1e-12);
        CHECK_CLOSE(m->name, composed_phase_flops(&layer, PHASE_BACKWARD),
                    composed_phase_flops(&full, PHASE_BACKWARD), 1e-12);
        ir_release(&op);
        ir_release(&layer);
        ir_release(&full);
    }
}

/* Forward, recomputation and backward each exchange q, k, v and o once: with MHA 2 n h bytes for
 * each, with n tokens on a rank. */
static void all_to_alls_move_what_ulysses_says(void)
{
    struct request request = composed_request(0, 4);
    struct ir ir;
    struct choices c;
    request.profile = "internevo";
    composed_build(&ir, &c, &request, "mha");
    int64_t tensor = 2 * (64 / 4) * 64;
    CHECK_INT("all-to-alls", composed_op_count_of_kind(&ir, WORK_ALL_TO_ALL, PHASE_COUNT),
              2 * (4 + 4 + 4));
    CHECK_INT("bytes", composed_payload_bytes(&ir, WORK_ALL_TO_ALL), 2 * 12 * tensor);
    ir_release(&ir);

    request = composed_request(1, 4); /* 2 kv heads on 4 ranks: copied to 4, half of q's 8 */
    request.profile = "internevo";
    composed_build(&ir, &c, &request, "gqa");
    CHECK_INT("bytes, kv copied to the ranks", composed_payload_bytes(&ir, WORK_ALL_TO_ALL),
              3 * 3 * (tensor + tensor + 2 * tensor / 2));
    ir_release(&ir);
    request.profile = "deepspeed";
    composed_build(&ir, &c, &request, "gqa");
    CHECK_INT("bytes, kv copied to all heads", composed_payload_bytes(&ir, WORK_ALL_TO_ALL),
              3 * 3 * 4 * tensor);
    ir_release(&ir);
}

static void saving_fewer_activations_needs_less(void)
{
    static const int order[] = {CHOICE_ACTIVATIONS_KEEP,
                                CHOICE_ACTIVATIONS_SELECTIVE_LAYER,
                                CHOICE_ACTIVATIONS_SELECTIVE_OP,
                                CHOICE_ACTIVATIONS_SELECTIVE,
                                CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD,
                                CHOICE_ACTIVATIONS_FULL,
                                CHOICE_ACTIVATIONS_OFFLOAD};
    struct choices c;
    uint64_t before = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int a = order[i];
        struct transformer deep = shapes[0];
        deep.layers = 16;
        struct request request = composed_request(0, 2);
        struct ir ir;
        request.model = &deep;
        request.seq = 4096;
        request.activations = a;
        composed_build(&ir, &c, &request, activations_names[a]);
        struct offsets_memory_figures figures;
        offsets_plan(&ir, &figures);
        CHECK(activations_names[a], figures.live_bytes[MEMORY_HBM] < before);
        before = figures.live_bytes[MEMORY_HBM];
        CHECK(activations_names[a],
              (ir.planned_bytes[MEMORY_PAGEABLE] > 0) == (a == CHOICE_ACTIVATIONS_OFFLOAD));
        ir_release(&ir);
    }
}

/* The computation of a layer (or chunk) waits for the copies to the host of the layer (or chunk) before the previous
 * one, so a buffer that is copied to the host is not live for longer when there are more layers. */
static void offloaded_buffers_are_reused(void)
{
    static const struct {
        const char *strategy, *profile;
        int activations, fetch;
        int64_t chunks;
    } rows[] = {
        /* strategy, profile, activations, fetch, chunks */
        {"ulysses", "megatron", CHOICE_ACTIVATIONS_OFFLOAD, FETCH_EACH,
         0}, /* keeps no gathered weights */
        {"ring", "megatron", CHOICE_ACTIVATIONS_OFFLOAD, FETCH_EACH, 0},
        {"ulysses", "internevo", CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD, FETCH_EACH, 0},
        {"fpdt", "ideal", CHOICE_ACTIVATIONS_KEEP, FETCH_EACH, 2},
        {"fpdt", "ideal", CHOICE_ACTIVATIONS_KEEP, FETCH_EACH, 3},
        {"fpdt", "internevo", CHOICE_ACTIVATIONS_FULL, FETCH_EACH, 2},
        {"fpdt", "internevo", CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD, FETCH_EACH, 2},
        {"fpdt", "internevo", CHOICE_ACTIVATIONS_OFFLOAD, FETCH_ONE, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t waste[2]; /* arena beyond what is live: of few layers, of many */
        char label[96];
        snprintf(label, sizeof label, "%s %s %s %lld", rows[i].strategy, rows[i].profile,
                 activations_names[rows[i].activations], (long long)rows[i].chunks);
        for (int deep = 0; deep < 2; deep++) {
            struct transformer model = shapes[0];
            struct request request = composed_request(0, 2);
            struct offsets_memory_figures figures;
            struct choices c;
            struct ir ir;
            model.layers = deep ? 24 : 6;
            request.model = &model;
            request.strategy = rows[i].strategy;
            request.profile = rows[i].profile;
            request.activations = rows[i].activations;
            request.chunk_fetch = rows[i].fetch;
            request.seq = 6144;
            request.chunk_tokens = rows[i].chunks > 0 ? request.seq / rows[i].chunks : 0;
            composed_build(&ir, &c, &request, label);
            offsets_plan(&ir, &figures);
            waste[deep] = figures.planned_bytes[MEMORY_HBM] - figures.live_bytes[MEMORY_HBM];
            ir_release(&ir);
        }
        CHECK(label, waste[1] <= 2 * waste[0]); /* many are four times as many layers */
    }
}

/* A message that a stage receives proves that an earlier message of the stage has arrived, so that message's buffer is
 * free. So 96 micro-batches need hardly more memory (at most 10 %) than 16, which already fill the 4 stages. */
static void buffers_of_arrived_messages_are_reused(void)
{
    static const int pipelines[] = {CHOICE_PIPELINE_1F1B, CHOICE_PIPELINE_INTERLEAVED,
                                    CHOICE_PIPELINE_ZB_1P, CHOICE_PIPELINE_ZB_V,
                                    CHOICE_PIPELINE_SEQ1F1B};
    for (size_t i = 0; i < ARRAY_LEN(pipelines); i++) {
        const char *label = pipeline_names[pipelines[i]];
        uint64_t most[2];
        for (int many = 0; many < 2; many++) {
            struct transformer model = shapes[0];
            struct request request = composed_request(0, 4);
            struct choices c;
            struct ir ir;
            model.layers = 8;
            model.hidden *= 16; /* the tokens of all micro-batches stay */
            model.head_dim *= 16;
            model.ffn *= 16;
            request.model = &model;
            request.profile = "ideal";
            request.activations = CHOICE_ACTIVATIONS_FULL;
            request.pipeline = pipelines[i];
            request.pp = 4;
            request.seq = 4096;
            request.micro_batch = 1;
            request.global_batch = many ? 96 : 16;
            request.subsequences = pipelines[i] == CHOICE_PIPELINE_SEQ1F1B ? 4 : 1;
            composed_build(&ir, &c, &request, label);
            most[many] = ir.planned_bytes[MEMORY_HBM];
            ir_release(&ir);
        }
        CHECK(label, (double)most[1] <= 1.1 * (double)most[0]);
    }
}

static void print_parse_print_is_the_identity(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 60; i++) {
        struct request request = shapes_random_request(&random, 8, false);
        char label[256];
        shapes_request_label(&request, label, sizeof label);
        struct ir ir, again = {0};
        struct choices c;
        struct diag diag = {0};
        struct text first = {0}, second = {0};
        if (composed_build(&ir, &c, &request, label)) {
            ir_print(&first, &ir);
            CHECK(label, ir_parse(&again, "printed", first.data, first.size, &diag) == STATUS_OK);
            CHECK_TEXT(label, diag.text ? diag.text : "", "");
            ir_print(&second, &again);
            CHECK(label,
                  first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        }
        text_release(&first);
        text_release(&second);
        diag_release(&diag);
        ir_release(&ir);
        ir_release(&again);
    }
}

static void a_small_schedule_is_as_recorded(void)
{
    struct transformer one = shapes[1];
    one.layers = 1;
    struct request request = composed_request(1, 2);
    struct ir ir;
    struct choices c;
    struct text text = {0};
    request.model = &one;
    request.profile = "internevo";
    composed_build(&ir, &c, &request, "golden");
    ir_print(&text, &ir);
    CHECK_GOLDEN("schedule/golden/ulysses.ir", text.data);
    text_release(&text);
    ir_release(&ir);
}

static void wrong_requests_say_what_would_do(void)
{
    struct request base = composed_request(0, 4);
    static const struct {
        const char *label;
        int64_t ranks, seq;
        int64_t dp, hp, cp, batch, micro, shard; /* 0: left open */
        int weights;                             /* 0: left open */
        const char *strategy, *profile;          /* NULL: left open */
        const char *message;
    } rows[] = {
        {"unknown strategy", .ranks = 4, .seq = 64, .strategy = "ulises",
         .message = "--strategy: error: unknown strategy 'ulises', did you mean 'ulysses'? "
                    "(`longhaul list "
                    "strategies` names all)\n"},
        {"unknown profile", .ranks = 4, .seq = 64, .profile = "deepsped",
         .message = "--profile: error: unknown profile 'deepsped', did you mean 'deepspeed'? "
                    "(`longhaul list "
                    "profiles` names all)\n"},
        {"heads", .ranks = 8, .dp = 1, .hp = 8, .seq = 64,
         .message = "--hp: error: 4 heads do not divide over hp 8; hp 1, 2 or 4 would do\n"},
        {"tokens", .ranks = 4, .dp = 1, .hp = 4, .seq = 63,
         .message =
             "--seq: error: 63 tokens do not divide over 4 ranks; 60 or 64 tokens would do\n"},
        {"degrees", .ranks = 4, .dp = 3, .hp = 2, .seq = 64,
         .message = "--dp: error: dp 3 x hp 2 does not make 4 ranks; dp 2 would do\n"},
        {"head degree", .ranks = 8, .hp = 16, .seq = 64,
         .message = "--hp: error: hp 16 does not divide 8 ranks; hp 1, 2 or 4 would do\n"},
        {"data degree", .ranks = 8, .dp = 3, .seq = 64,
         .message = "--dp: error: dp 3 does not divide 8 ranks; dp 1, 2, 4 or 8 would do\n"},
        {"context", .ranks = 4, .cp = 2, .seq = 64,
         .message = "--cp: error: strategy 'ulysses' has no context-parallel axis: cp is 2; 1 "
                    "would do, or "
                    "one of the strategies that have context ranks: ring, 2d\n"},
        {"local", .ranks = 4, .hp = 4, .seq = 64, .strategy = "local",
         .message = "--hp: error: strategy 'local' keeps a sequence on one rank: hp is 4; 1 would "
                    "do, or one "
                    "of the strategies that have head ranks: ulysses, 2d, fpdt, upipe\n"},
        {"batch", .ranks = 4, .dp = 2, .hp = 2, .seq = 64, .batch = 5, .micro = 2,
         .message = "--batch: error: a batch of 5 sequences does not divide over dp 2 x "
                    "micro-batch 2; 4 or 8 "
                    "would do\n"},
        {"shard without hsdp", .ranks = 4, .seq = 64, .shard = 2, .weights = CHOICE_WEIGHTS_ZERO3,
         .message = "--shard: error: is for --weights hsdp and zero1; weights are 'zero3'\n"},
        {"shard", .ranks = 4, .seq = 64, .shard = 3, .weights = CHOICE_WEIGHTS_HSDP,
         .message = "--shard: error: weights cannot be sharded over runs of 3 of 4 ranks with hp "
                    "4; --shard "
                    "1, 2 or 4 "
                    "would do\n"},
        {"no ranks", .seq = 64,
         .message = "--gpus: error: the number of ranks is 0; 1 to 1048576 would do\n"},
        {"no tokens", .ranks = 4, .seq = -5,
         .message = "--seq: error: the sequence length is -5; 1 to 1099511627776 would do\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = base;
        struct choices c;
        struct diag diag = {0};
        request.ranks = rows[i].ranks;
        request.dp = rows[i].dp;
        request.hp = rows[i].hp;
        request.cp = rows[i].cp;
        request.seq = rows[i].seq;
        request.global_batch = rows[i].batch;
        request.micro_batch = rows[i].micro;
        request.shard = rows[i].shard;
        if (rows[i].weights != 0)
            request.weights = rows[i].weights;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        CHECK(rows[i].label, resolve_choices(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text ? diag.text : "", rows[i].message);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"random products verify", random_schedules_verify},
    {"every part of every strategy and profile verifies", all_schedule_choices_verify},
    {"forward flops are the model's, whatever the strategy", forward_flops_are_the_models},
    {"recomputation repeats the layers", recomputation_repeats_the_layers},
    {"what the backward does not read is not repeated",
     what_the_backward_does_not_read_is_not_repeated},
    {"all-to-alls move what Ulysses says", all_to_alls_move_what_ulysses_says},
    {"every second product or layer is repeated", every_second_product_or_layer_is_repeated},
    {"fewer kept activations take less memory", saving_fewer_activations_needs_less},
    {"copies to the host make room", offloaded_buffers_are_reused},
    {"messages that arrived make room", buffers_of_arrived_messages_are_reused},
    {"print, parse, print is the identity", print_parse_print_is_the_identity},
    {"a small schedule is as recorded", a_small_schedule_is_as_recorded},
    {"wrong requests say what would do", wrong_requests_say_what_would_do},
};
CHECK_MAIN("compose", cases)
