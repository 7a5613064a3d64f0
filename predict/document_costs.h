/* predict/document_costs.h: seconds of attention over packed documents, which differ from rank to rank. */
#ifndef PREDICT_DOCUMENT_COSTS_H
#define PREDICT_DOCUMENT_COSTS_H

#include "models/cost.h"
#include "models/transformer.h"
#include "schedule/ir/ir.h"

/* What an op's seconds are multiplied by, and the peak that an ideal device reaches. */
struct document_costs_options {
    enum attention_impl impl;
    double slowdown, peak_flop_per_s;
};

/* For every shape of the schedule NULL, or seconds by place (schedule/ir/visible.h) where its mask is DOCUMENTS; NULL
 * when there is no such shape. From heap_alloc(), to be freed with document_costs_free(). */
double **document_costs(const struct ir *ir, const struct device_cost *cost,
                        const struct document_costs_options *options);
void document_costs_free(double **seconds, uint32_t shapes);

/* Flops of attention's core, forward, over one layer and one sequence, on average over the sequences of a step: those of the
 * pairs that documents and the model's windows let through, in the convention of transformer_seen_flops(). documents:
 * NULL, or of no sequences: each is one. */
double document_seen_flops(const struct documents *documents, const struct transformer *model,
                           int64_t seq);

#endif
