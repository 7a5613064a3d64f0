/* schedule/attention/fpdt_gradients.h: functions and state that the two orders of FPDT's backward share
 * (schedule/attention/fpdt_backward.c, fpdt_by_query.c). */
#ifndef SCHEDULE_ATTENTION_FPDT_GRADIENTS_H
#define SCHEDULE_ATTENTION_FPDT_GRADIENTS_H

#include "schedule/attention/fpdt.h"

/* The tensors of a chunk of queries that a tile's backward reads, and the sum of these queries' gradients so far; all
 * on the device. */
struct query_chunk_tensors {
    struct fpdt_queries queries;
    struct view d_o, dq;
};

struct stored_query_gradients {
    /* views that fpdt_store_tensor() has set, in host or device memory; empty: not stored yet */
    struct view d_o, dq;
};

struct fpdt_gradients {
    const struct fpdt *fpdt;
    buffer_id d_out;
    struct stored_query_gradients *stored; /* [chunks] */
};

/* Returns the gradient of chunk q's output, made from g->d_out by the all-to-all from tokens to heads. */
struct view fpdt_exchange_d_o(const struct fpdt_gradients *g, int64_t q);
/* fpdt_keys_values_for_backward() returns what fpdt_fetch_keys_values() returns for chunks q and k, and
 * fpdt_queries_for_backward() returns the queries of chunk q with their outputs and log-sum-exps, all on the device.
 * The first call for a chunk returns what the forward has fetched ahead, if it has. Else what is on the host is
 * fetched, no earlier than the end of op `after`. */
struct fpdt_keys_values fpdt_keys_values_for_backward(const struct fpdt *f, int64_t q, int64_t k,
                                                      op_id after);
struct fpdt_queries fpdt_queries_for_backward(const struct fpdt *f, int64_t q, op_id after);

/* Fetches the normed input of chunk i, which the gradient of the projection's weight reads. Returns an empty view if
 * the input is on the device, or if there is no projection. */
struct view fpdt_fetch_normed_input(const struct fpdt *f, int64_t i,
                                    struct fpdt_gradient_target to);

/* Emits the backward of the tile of chunk q's queries by chunk k's keys, and returns its dq, dk and dv in the compute
 * dtype. For q = k it first emits the gradient of the attention sinks. pair: as in fpdt_visible_part_of_keys(). */
struct qkv fpdt_tile_backward(const struct fpdt *f, int64_t q, int64_t k,
                              const struct query_chunk_tensors *set,
                              const struct fpdt_keys_values *pair);

/* Emits all chunks' gradients with queries in the outer loop (schedule/attention/fpdt_by_query.c). */
void fpdt_backward_by_query(struct fpdt_gradients *g, struct fpdt_gradient_target to);

#endif
