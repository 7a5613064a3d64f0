/* predict/document_costs.h: seconds of attention over packed documents, which differ from rank to rank. */
#ifndef PREDICT_DOCUMENT_COSTS_H
#define PREDICT_DOCUMENT_COSTS_H

#include "models/cost.h"
#include "models/transformer.h"
#include "schedule/ir/ir.h"

/* The parameters of the costs. slowdown: a factor on an op's seconds. peak_flop_per_s: the peak rate, which an ideal
 * device reaches. */
struct document_costs_options {
    enum attention_impl impl;
    double slowdown, peak_flop_per_s;
};

/* Returns an array with an element for each shape of the schedule: for a shape that work_pairs_depend_on_rank()
 * accepts, its seconds by place (schedule/ir/visible.h); for others NULL. Returns NULL if there is no such shape. Free
 * it with document_costs_free(). */
double **document_costs_by_place(const struct ir *ir, const struct device_cost *cost,
                                 const struct document_costs_options *options);
/* Returns the seconds of one shape, which work_pairs_depend_on_rank() accepts, on a rank. */
double document_cost_s(const struct ir *ir, const struct work *work, uint32_t rank,
                       const struct device_cost *cost,
                       const struct document_costs_options *options);
/* Returns costs like those of document_costs_by_place(), but as if all ranks had equally many visible pairs: each op
 * takes the mean of its seconds over the ranks that run it. Ops that different ranks run in the same step of a ring
 * share one mean (in a zigzag ring some ranks attend with half of their queries, others to half of the keys). Returns
 * NULL if every rank takes the mean time already. seconds: as document_costs_by_place() returned them, not NULL. */
double **document_costs_with_equal_pairs(const struct ir *ir, const double *const *seconds);

/* The rank whose attention delays the others most often. In each micro-batch the rank whose attention takes longest is
 * late; rank_late_most_often is the rank that is late in the largest number of micro-batches. The ranks of a place
 * (schedule/ir/visible.h) take equally long; rank_late_most_often is the lowest of them. All-zero: in every micro-batch
 * all ranks take equally long. */
struct document_lateness_of_ranks {
    uint32_t rank_late_most_often;
    /* the number of micro-batches in which rank_late_most_often is late, and the number of all micro-batches */
    uint32_t late_unit_count, unit_count;
    /* the seconds of attention of the late rank of each micro-batch, summed over micro-batches, divided by the sum of
     * the means over ranks */
    double slowest_over_mean;
};
struct document_lateness_of_ranks document_lateness_of_ranks(const struct ir *ir,
                                                             const double *const *seconds);

void document_costs_free(double **seconds, uint32_t shapes);

/* Returns the forward flops of attention's core in one layer for one sequence, as the mean over the layers and over the
 * sequences of a step. Only pairs that documents and the model's windows leave visible count, as in
 * transformer_visible_attention_flops(). documents: NULL, or without sequences: each sequence is one document. */
double document_visible_flops(const struct documents *documents, const struct transformer *model,
                              int64_t seq);

#endif
