/* tests/schedule/composed.h: builds the schedules of small requests and counts their ops, flops and bytes, for tests of
 * what choices make of a step. Included by test files only. */
#ifndef TESTS_SCHEDULE_COMPOSED_H
#define TESTS_SCHEDULE_COMPOSED_H

#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/visible.h"
#include "schedule/step/build.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

/* Resolves the choices of a request and builds its schedule. Returns false, and fails a check with the messages, if
 * that is not possible. */
static inline bool composed_build(struct ir *ir, struct choices *choices,
                                  const struct request *request, const char *label)
{
    struct diag diag = {0};
    *ir = (struct ir){0};
    bool ok = resolve_choices(choices, request, NULL, &diag) == STATUS_OK &&
              step_build(ir, choices, &diag) == STATUS_OK;
    CHECK_TEXT(label, diag.error_count > 0 ? diag.text : "", "");
    diag_release(&diag);
    return ok;
}

/* Returns a request that leaves all choices open: a model of shapes[], sequences of 64 tokens, nodes of 4 GPUs. */
static inline struct request composed_request(size_t shape, int64_t ranks)
{
    return (struct request){.model = &shapes[shape],
                            .weights = -1,
                            .activations = -1,
                            .optimizer = -1,
                            .attention_impl = -1,
                            .dtype = -1,
                            .ranks = ranks,
                            .seq = 64,
                            .sm = 80,
                            .gpus_per_node = 4};
}

/* Returns the number of ranks that do an op's work: those that pass its guard, or all. */
static inline double ranks_that_run_op(const struct ir *ir, uint32_t op)
{
    uint32_t ranks = mesh_rank_count(&ir->mesh), count = 0;
    if (ir->op.guard[op] == IR_NONE16)
        return ranks;
    for (uint32_t rank = 0; rank < ranks; rank++)
        count += guard_passes(&ir->mesh, ir->group, &ir->guard[ir->op.guard[op]], rank);
    return count;
}

/* Adds up the flops of the forward over all ranks: of matrix products in *products, of attention in *attention. */
static inline void composed_forward_flops(const struct ir *ir, double *products, double *attention)
{
    *products = *attention = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (ir->op.phase[op] != PHASE_FORWARD)
            continue;
        double flops = 0;
        if (!work_pairs_depend_on_rank(ir_work(ir, op)))
            flops = work_flops(ir_work(ir, op)) * ranks_that_run_op(ir, op);
        for (uint32_t rank = 0;
             work_pairs_depend_on_rank(ir_work(ir, op)) && rank < mesh_rank_count(&ir->mesh);
             rank++)
            flops += ir_work_flops_on_rank(ir, ir_work(ir, op), rank);
        if (ir->op.kind[op] == WORK_MATMUL)
            *products += flops;
        if (ir->op.kind[op] == WORK_ATTENTION)
            *attention += flops;
    }
}

/* Returns the flops of products and attention of a phase; each op counts once, however many ranks
 * do it. */
static inline double composed_phase_flops(const struct ir *ir, enum phase phase)
{
    double flops = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.phase[op] == phase &&
            (ir->op.kind[op] == WORK_MATMUL || ir->op.kind[op] == WORK_ATTENTION ||
             ir->op.kind[op] == WORK_ATTENTION_BACKWARD))
            flops += work_flops(ir_work(ir, op));
    return flops;
}

/* Returns the number of ops of the kind in the phase, or in all phases if it is PHASE_COUNT. */
static inline uint32_t composed_op_count_of_kind(const struct ir *ir, enum work_kind kind,
                                                 enum phase phase)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        n += ir->op.kind[op] == kind && (phase == PHASE_COUNT || ir->op.phase[op] == phase);
    return n;
}

/* Returns the payload of all ops of the kind. */
static inline int64_t composed_payload_bytes(const struct ir *ir, enum work_kind kind)
{
    int64_t n = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind)
            n += work_payload_bytes(ir_work(ir, op));
    return n;
}

#endif
