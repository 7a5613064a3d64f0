/* tests/schedule/test_recompute.c: what a step repeats and what it keeps if attention, single ops or modules are
 * recomputed in the backward. */
#include "schedule/analysis/liveness.h"
#include "schedule/choices/products.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/schedule/composed.h"

#include <stdlib.h>
#include <string.h>

/* Counts the attention forwards, and all other ops, of the layers in a phase. */
static void count_ops(const struct ir *ir, enum phase phase, uint32_t *attention, uint32_t *others)
{
    *attention = *others = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.phase[op] == phase && ir->op.layer[op] != IR_NONE16)
            *(ir->op.kind[op] == WORK_ATTENTION ? attention : others) += 1;
}

static uint64_t largest(const struct ir *ir)
{
    return ir->planned_bytes[MEMORY_HBM];
}

/* Only the attention of each layer is recomputed, and with Ulysses its exchanges. Its inputs and outputs stay until
 * the backward, so hardly any memory is saved. */
static void attention_alone_is_repeated(void)
{
    static const char *const strategies[] = {"local", "ulysses"};
    for (size_t s = 0; s < ARRAY_LEN(strategies); s++) {
        struct request request = composed_request(1, s + 1);
        struct choices c;
        struct ir keep, core, full;
        uint32_t attention, others, forwards, rest;
        request.strategy = strategies[s];
        request.profile = "ideal";
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&keep, &c, &request, strategies[s]);
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE_CORE;
        composed_build(&core, &c, &request, strategies[s]);
        request.activations = CHOICE_ACTIVATIONS_FULL;
        composed_build(&full, &c, &request, strategies[s]);
        count_ops(&core, PHASE_RECOMPUTE, &attention, &others);
        count_ops(&core, PHASE_FORWARD, &forwards, &rest);
        CHECK_INT("attention", attention, shapes[1].layers);
        CHECK_INT("as often as in the forward", attention, forwards);
        CHECK_INT("and what it exchanges, and nothing else", others == 0, s == 0);
        CHECK("little is saved", largest(&core) > largest(&full) &&
                                     (double)largest(&core) > 0.95 * (double)largest(&keep));
        ir_release(&keep);
        ir_release(&core);
        ir_release(&full);
    }
}

/* The weight gradient of the output projection reads the output of the forward; the backward of attention reads
 * the recomputed one. */
static void recompute_keeps_first_core_output(void)
{
    struct request request = composed_request(1, 1);
    struct choices c;
    struct ir ir;
    uint32_t again = 0, wrong = 0;
    request.strategy = "local";
    request.profile = "ideal";
    request.activations = CHOICE_ACTIVATIONS_SELECTIVE_CORE;
    composed_build(&ir, &c, &request, "local");
    bool *repeated = heap_zalloc(ir.buffer.count + 1u, sizeof *repeated);
    for (uint32_t op = 0; op < ir.op.count; op++) {
        uint32_t reads = ir.op.read_count[op];
        for (uint32_t k = 0; k < reads; k++) {
            bool of_core = ir.op.kind[op] == WORK_ATTENTION_BACKWARD;
            again += of_core && repeated[ir_touched_buffer(&ir, op, k)];
            wrong += !of_core && repeated[ir_touched_buffer(&ir, op, k)];
        }
        for (uint32_t k = reads; k < reads + ir.op.write_count[op]; k++)
            repeated[ir_touched_buffer(&ir, op, k)] |= ir.op.phase[op] == PHASE_RECOMPUTE;
    }
    CHECK_INT("output and log-sum-exp of each layer", again, 2 * shapes[1].layers);
    CHECK_INT("others", wrong, 0);
    free(repeated);
    ir_release(&ir);
}

/* With context or head ranks the exchanges are repeated. The step needs no more memory than without recomputation,
 * except for the tensors of one layer's recomputed attention. */
static void exchanges_are_recomputed(void)
{
    static const struct {
        const char *strategy, *profile;
        enum work_kind kind;
    } rows[] = {{"ring", "neutral", WORK_SHIFT},
                {"ring", "megatron-te", WORK_SHIFT},
                {"ulysses", "neutral", WORK_ALL_TO_ALL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct transformer deep = shapes[1];
        struct request request = composed_request(1, 4);
        struct choices c;
        struct ir keep, core;
        deep.layers = 8;
        request.model = &deep;
        request.seq = 4096;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&keep, &c, &request, rows[i].profile);
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE_CORE;
        composed_build(&core, &c, &request, rows[i].profile);
        CHECK(rows[i].profile, composed_op_count_of_kind(&core, rows[i].kind, PHASE_RECOMPUTE) > 0);
        struct offsets_memory_figures a, b;
        offsets_plan(&keep, &a);
        offsets_plan(&core, &b);
        CHECK(rows[i].profile,
              (double)b.live_bytes[MEMORY_HBM] <= 1.05 * (double)a.live_bytes[MEMORY_HBM]);
        ir_release(&keep);
        ir_release(&core);
    }
}

/* torchtitan saves the output of the down projection until the projection's backward, although no backward reads
 * it. */
static void unread_down_projection_stays_saved(void)
{
    struct request request = composed_request(1, 1);
    struct choices c;
    struct ir ir;
    uint32_t found = 0, late = 0;
    request.strategy = "local";
    request.profile = "torchtitan";
    request.activations = CHOICE_ACTIVATIONS_SELECTIVE_OP;
    composed_build(&ir, &c, &request, "local");
    for (uint32_t b = 0; b < ir.buffer.count; b++) {
        if (strcmp(ir.word[ir.buffer.stem[b]], "ffn") != 0)
            continue;
        const op_id *set = ir_free_set(&ir, b);
        found++;
        for (uint32_t k = 0; k < ir.buffer.free_count[b]; k++)
            late += ir.op.phase[set[k].i] == PHASE_BACKWARD;
    }
    CHECK_INT("of each layer", found, shapes[1].layers);
    CHECK_INT("until its backward", late, found);
    ir_release(&ir);
}

/* A module that is computed again quantises its input and, if it is gathered, its weight again. The backward reads
 * these copies, and makes no third one of a weight where one copy serves both products (Blackwell). */
static void a_repeated_module_quantises_once_more(void)
{
    static const struct {
        const char *label;
        enum weights_choice weights;
        enum products_choice products;
        uint32_t more; /* of each layer, in two products */
    } rows[] = {
        {"gathered weights", CHOICE_WEIGHTS_ZERO3, PRODUCTS_FP8_TENSOR, 2},
        {"with transposed copies", CHOICE_WEIGHTS_ZERO3, PRODUCTS_MXFP8, 4},
        {"whole weights", CHOICE_WEIGHTS_ZERO1, PRODUCTS_FP8_TENSOR, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 4);
        struct choices c;
        struct ir keep, again;
        request.strategy = "local";
        request.profile = "megatron-te";
        request.sm = 100;
        request.weights = (int)rows[i].weights;
        request.products = (int)rows[i].products;
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&keep, &c, &request, rows[i].label);
        request.recompute_modules = 1 << RECOMPUTE_MLP;
        composed_build(&again, &c, &request, rows[i].label);
        CHECK_INT(rows[i].label,
                  composed_op_count_of_kind(&again, WORK_QUANTISE, PHASE_COUNT) -
                      composed_op_count_of_kind(&keep, WORK_QUANTISE, PHASE_COUNT),
                  rows[i].more * shapes[1].layers);
        ir_release(&keep);
        ir_release(&again);
    }
}

static const struct check_case cases[] = {
    {"attention alone is repeated", attention_alone_is_repeated},
    {"the first output stays", recompute_keeps_first_core_output},
    {"exchanges are repeated", exchanges_are_recomputed},
    {"an unread product stays", unread_down_projection_stays_saved},
    {"a repeated module quantises once more", a_repeated_module_quantises_once_more},
};
CHECK_MAIN("recompute", cases)
