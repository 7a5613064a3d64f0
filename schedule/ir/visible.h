/* schedule/ir/visible.h: which keys the queries of an attention op see on a rank, for mask DOCUMENTS.
 *
 * The rows of an op's q, k and v are tokens of a packed sequence. Which tokens, and of which sequence, depends on the
 * rank: on its data-parallel index and its context index. From these the functions here make pieces
 * (models/work.h), from which costs, flops and kernels follow. In every layout that visible_why_unfit() accepts, rows
 * are in ascending order of their positions, so a query sees a range of key rows, and a document takes one piece, or a
 * few if a layout or a window cuts it. */
#ifndef SCHEDULE_VISIBLE_H
#define SCHEDULE_VISIBLE_H

#include "schedule/ir/ir.h"
#include "schedule/ir/needed.h"

/* ir_axes_named() returns, as a mask, the axes called `name`, or `name` followed by '_' and more. ir_index_along()
 * returns the combined coordinate of a rank along the axes of a mask, the first of which is the slowest, and sets
 * *size to the product of their sizes. */
uint32_t ir_axes_named(const struct ir *ir, const char *name);
uint32_t ir_index_along(const struct ir *ir, uint32_t rank, uint32_t axes, uint32_t *size);

/* Returns the context index of a rank: its index in the group `cp` if that group has all axes of that name, since a
 * ring may visit ranks in another order than the mesh's; else its index along these axes. */
uint32_t ir_context_of(const struct ir *ir, uint32_t rank);

/* Return the place of a rank, and the number of places. Ranks with the same data-parallel index and context index
 * have one place: the same pairs are visible to them in every op. */
uint32_t ir_place_of(const struct ir *ir, uint32_t rank);
uint32_t ir_places(const struct ir *ir);

/* Returns the number, in the batch, of a rank's n-th sequence. */
uint32_t ir_sequence_of(const struct ir *ir, uint32_t rank, int64_t n);

/* True if a shape's visible pairs depend on the rank. */
static inline bool work_has_documents(const struct work *work)
{
    return (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD) &&
           work->attention.mask >= MASK_DOCUMENTS;
}

/* Names the rows of a rank's sequence that ranks need of each other under a window. With round 0 they are all keys that
 * a rank's own queries see (schedule/ir/needed.h). Else they are the keys or queries of the tiles of one round of a
 * pass, and `round` is 1 + the number of that round (schedule/ir/tile_plan.h). */
struct row_use {
    int64_t sequence, window, round;
    enum plan_pass pass;
    enum plan_what what;
};
/* True if a work moves such rows; fills *use. False for attention, which reads such rows but moves none. */
bool work_needs(const struct work *work, struct row_use *use);

/* Returns the most rows that a rank has, sends and receives, over all data-parallel ranks. */
struct plan_room visible_room(const struct ir *ir, const struct row_use *use);
/* Returns the most rounds of a pass of the tiles that a rank's n-th sequence has; 0: it has no tiles. */
uint32_t visible_rounds(const struct ir *ir, int64_t n, enum plan_pass pass);

/* True if the packed rows of every rank are all of its own, in their order. */
bool visible_is_own(const struct ir *ir, const struct row_use *use);

/* Fills rows (cp, cp) with the rows that each context rank (first index) receives of each other one, for the sequence
 * of a rank. */
void visible_row_pairs(const struct ir *ir, const struct row_use *use, uint32_t rank,
                       int64_t *rows);
/* List the rows of a rank; the caller releases the lists. held is empty for round 0. */
void visible_list_rows(const struct ir *ir, const struct row_use *use, uint32_t rank,
                       struct needed_rows *sent, struct needed_rows *received,
                       struct held_rows *held);

/* Returns the documents of the n-th sequence of a rank; if it is one document, *whole, which is filled. */
const struct document_list *ir_documents_of(const struct ir *ir, uint32_t rank, int64_t n,
                                            struct document_list *whole);

/* Returns why the schedule can have no op with mask DOCUMENTS, in words that may follow "which"; NULL: it can. */
const char *visible_why_unfit(const struct ir *ir);
/* Returns why the parameters of an op with mask DOCUMENTS or PLAN, or of one that work_needs(), do not fit the
 * schedule, in words that may follow "and"; NULL: they fit. visible_why_unfit() must have accepted the schedule. */
const char *visible_why_unfit_work(const struct ir *ir, const struct work *work);

/* A list of pieces that grows; all-zero is empty, and visible_release() frees it. */
struct visible_pieces {
    struct attention_piece *piece; /* in ascending order of rows; no row is in two pieces */
    uint32_t count;
    size_t capacity;
};

/* Fills *pieces, dropping its old content, with the pieces of attention that the work computes on a rank. The work's
 * mask must be DOCUMENTS or PLAN, and the schedule must have passed the verifier's rule `documents`. */
void visible_pieces(const struct ir *ir, const struct work *work, uint32_t rank,
                    struct visible_pieces *pieces);
/* Does what visible_pieces() does, as if the sequence were one document. */
void visible_pieces_whole(const struct ir *ir, const struct work *work, uint32_t rank,
                          struct visible_pieces *pieces);
void visible_release(struct visible_pieces *pieces);

/* The ranks of one place whose attention over packed documents has the most visible pairs in the step, recomputation
 * included. rank: the lowest of them. over_mean: their pairs over the mean of all places; 1 if there are no pairs. */
struct visible_fullest {
    uint32_t rank;
    double over_mean;
};
/* visible_why_unfit() must have accepted the schedule. */
struct visible_fullest visible_find_fullest(const struct ir *ir);

/* ir_op_flops() returns the flops of a work on a rank, whatever its mask; ir_flops() returns those of every shape, in
 * an array on the heap. */
double ir_op_flops(const struct ir *ir, const struct work *work, uint32_t rank);
double *ir_flops(const struct ir *ir, uint32_t rank);

#endif
