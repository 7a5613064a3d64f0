/* schedule/ir/row_use.h: which sequences a rank has, which rows of them context ranks need from each other, and whether
 * the ops that move these rows have room for them. */
#ifndef SCHEDULE_ROW_USE_H
#define SCHEDULE_ROW_USE_H

#include "schedule/ir/ir.h"
#include "schedule/ir/needed.h"

/* ir_mask_of_axes_named() returns, as a bit mask, the axes called `name`, or `name` followed by '_' and more.
 * ir_rank_index_along_axes() returns the index of a rank among all combinations of its coordinates along the axes of a
 * mask, where the first axis changes slowest, and sets *size to the number of combinations. */
uint32_t ir_mask_of_axes_named(const struct ir *ir, const char *name);
uint32_t ir_rank_index_along_axes(const struct ir *ir, uint32_t rank, uint32_t axes,
                                  uint32_t *size);

/* Returns the context index of a rank: its index in the group `cp` if that group has all axes of that name (a ring may
 * visit ranks in another order than the mesh), else its index along these axes. */
uint32_t ir_context_index(const struct ir *ir, uint32_t rank);

/* Returns the number of data-parallel indices. */
uint32_t ir_replica_count(const struct ir *ir);

/* ir_place_of_rank() returns the place of a rank, ir_place_count() the number of places. Ranks with the same
 * data-parallel index and context index have the same place: the same pairs are visible to them in every op. */
uint32_t ir_place_of_rank(const struct ir *ir, uint32_t rank);
uint32_t ir_place_count(const struct ir *ir);

/* Returns the number, in the batch, of a rank's n-th sequence. */
uint32_t ir_batch_sequence_of_rank(const struct ir *ir, uint32_t rank, int64_t n);

/* Return the documents of the n-th sequence of a rank, or of a data-parallel index. If the sequence has no list of
 * documents, *whole is filled in with one document and returned. */
const struct document_list *ir_documents_of_rank(const struct ir *ir, uint32_t rank, int64_t n,
                                                 struct document_list *whole);
const struct document_list *ir_replica_documents(const struct ir *ir, uint32_t replica, int64_t n,
                                                 struct document_list *whole);

/* The rows that context ranks need from each other of their n-th sequence (n: `sequence`), under a window (0: none).
 * round 0: all keys that a rank's own queries see (schedule/ir/needed.h). Else round is 1 + the number of a round of
 * `pass`, and the rows are the keys or queries (`what`) of that round's tiles (schedule/ir/tile_plan.h). */
struct row_use {
    int64_t sequence, window, round;
    enum plan_pass pass;
    enum plan_keys_or_queries what;
};
/* True, with *use filled, if the work moves rows that ranks need of each other. False for attention, which reads such
 * rows but moves none. */
bool row_use_if_work_moves_rows(const struct work *work, struct row_use *use);

/* Returns the most rows that any rank reads, sends and receives, over all data-parallel ranks. */
struct max_rows_of_any_rank_in_round row_use_max_rows_of_any_rank(const struct ir *ir,
                                                                  const struct row_use *use);
/* Returns the number of rounds of a pass in the tiles of the n-th sequence of data-parallel ranks, the most over these;
 * 0: there are no tiles. */
uint32_t row_use_round_count(const struct ir *ir, int64_t n, enum plan_pass pass);

/* True if every rank's packed rows in the round are its own rows, all of them and in their order; false with round
 * 0. */
bool row_use_has_own_rows_only(const struct ir *ir, const struct row_use *use);

/* Fills rows (cp, cp) with the number of rows that each context rank (first index) receives from each other one (second
 * index), for the sequence of `rank`. */
void row_use_rows_of_all_pairs(const struct ir *ir, const struct row_use *use, uint32_t rank,
                               int64_t *rows);
/* Lists the rows that a rank sends and those that it receives. held: the packed rows that the rank owns itself; empty
 * with round 0. The caller releases the lists. */
void row_use_list_sent_and_received(const struct ir *ir, const struct row_use *use, uint32_t rank,
                                    struct needed_rows *sent, struct needed_rows *received,
                                    struct own_packed_rows *held);

/* Returns what a context rank reads in the round of *use, whose round must not be 0. NULL: the sequence has fewer
 * rounds, or no tiles. */
const struct plan_round_data_of_rank *
row_use_plan_part(const struct row_use *use, const struct document_list *list, uint32_t context);

/* Both return NULL if all is well. row_use_why_round_is_missing() returns why there are no tiles for the round, or only
 * tiles of a plan that was made for a narrower window. row_use_why_unfit() returns why an op that moves rows does not
 * fit: its buffers are too small for the rows that ranks need from each other, or its parameters contradict each
 * other. */
const char *row_use_why_round_is_missing(const struct ir *ir, const struct row_use *use);
const char *row_use_why_unfit(const struct ir *ir, const struct work *work,
                              const struct row_use *use);

#endif
