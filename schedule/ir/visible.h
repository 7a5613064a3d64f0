/* schedule/ir/visible.h: which keys the queries of an attention op see on a rank, for the masks DOCUMENTS, CHUNKS and
 * PLAN.
 *
 * The rows of an op's q, k and v are tokens of a packed sequence. Which tokens, and of which sequence, depends on the
 * rank: on its data-parallel index and its context index. From these the functions here make pieces (models/work.h),
 * from which costs, flops and kernels follow. In every layout that visible_why_schedule_unfit() accepts, rows are in
 * ascending order of their positions, so a query sees a range of key rows, and a document takes one piece, or a few if
 * a layout or a window cuts it. */
#ifndef SCHEDULE_VISIBLE_H
#define SCHEDULE_VISIBLE_H

#include "schedule/ir/row_use.h"

/* True if a shape's visible pairs depend on the rank: it is attention with mask DOCUMENTS, CHUNKS or PLAN. */
static inline bool work_pairs_depend_on_rank(const struct work *work)
{
    return (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD) &&
           work->attention.mask >= MASK_DOCUMENTS;
}

/* Returns why the schedule cannot have an op that work_pairs_depend_on_rank() accepts, in words that may follow
 * "which"; NULL: it can. */
const char *visible_why_schedule_unfit(const struct ir *ir);
/* Returns why the parameters of an op do not fit the schedule, in words that may follow "and"; NULL: they fit. Call it
 * only if visible_why_schedule_unfit() returns NULL, and only for an op that work_pairs_depend_on_rank() or
 * row_use_if_work_moves_rows() accepts. */
const char *visible_why_work_unfit(const struct ir *ir, const struct work *work);

/* A list of pieces that grows; all-zero is empty, and visible_release() frees it. */
struct visible_pieces {
    struct attention_piece *piece; /* in ascending order of rows; no row is in two pieces */
    uint32_t count;
    size_t capacity;
};

/* Fills *pieces with the pieces of attention that the work computes on a rank; its old content is dropped.
 * work_pairs_depend_on_rank() must accept the work, and the schedule must have passed the verifier's rule
 * `documents`. */
void visible_find_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                         struct visible_pieces *pieces);
/* Does what visible_pieces() does, as if the sequence were one document. */
void visible_find_pieces_as_one_document(const struct ir *ir, const struct work *work,
                                         uint32_t rank, struct visible_pieces *pieces);
void visible_release(struct visible_pieces *pieces);

/* The place (of ranks) whose attention has the most visible pairs in the step, recomputation included. Only ops count
 * that work_pairs_depend_on_rank() accepts. rank: the lowest rank of the place. pairs_over_mean: the pairs of the
 * place, divided by the mean over all places. If there are no pairs, it is place 0, and pairs_over_mean is 1. */
struct visible_fullest_place {
    uint32_t rank;
    double pairs_over_mean;
};
/* Returns the fullest place of a schedule. Call it only if visible_why_schedule_unfit() returns NULL. */
struct visible_fullest_place visible_find_fullest_place(const struct ir *ir);

/* ir_work_flops_on_rank() returns the flops of a work with any mask on a rank. ir_flops_by_shape_on_rank() returns
 * those of all shapes of the ir, [shape_count], as an array that the caller frees. */
double ir_work_flops_on_rank(const struct ir *ir, const struct work *work, uint32_t rank);
double *ir_flops_by_shape_on_rank(const struct ir *ir, uint32_t rank);

#endif
