/* schedule/weights/shard.h: what gathering (shard.c) and reducing (reduce.c) share. Private to schedule/weights/. */
#ifndef SCHEDULE_SHARD_H
#define SCHEDULE_SHARD_H

#include "schedule/emit/op_list.h"
#include "schedule/weights/remote_weights.h"

/* Uses of one bundle's parameters, with no use of a bundle of other layers in between. Members with `position` in their
 * names are positions in the list. */
struct weight_use_run {
    uint32_t bundle, first_position, end_position;
    /* if the weights are sent to other stages: the pass of the shared unit that uses them */
    struct unit_chunk_pass pass_that_uses_weights;
    /* the position after the core of attention in a forward or its recomputation; equal to first_position if the run
     * has none */
    uint32_t position_after_attention_core;
    /* the earlier run whose gathered parameters this run uses; IR_NONE: the run has a gather of its own */
    uint32_t earlier_gather_run;
    buffer_id gathered_buffer;
    /* with the profile's switch gathers_to_flat_buffer: the buffer into which parameters are gathered, and from which
     * they are copied to `gathered_buffer`; IR_NONE: they are gathered there directly */
    buffer_id flat_gather_buffer;
};

/* The gradient of one bundle in one micro-batch or in one shared unit, or, in a buffer for several of them, their
 * sum. */
struct bundle_gradient {
    buffer_id buffer;
    uint32_t bundle, first_position, last_position;
    bool is_last_reduced_of_bundle; /* no gradient of its bundle is reduced later */
    bool adds_to_reduced_gradients; /* other gradients of its bundle have been reduced before */
    uint32_t remote_grad;           /* row of e->weights.remote_grad, or IR_NONE */
    op_id last_op_of_reduction;     /* the last op of its reduction; IR_NONE: none yet */
    /* this rank's reduced part, until it has been cast to, or added to, the kept part; IR_NONE: nothing is left to
     * do */
    buffer_id reduced_part_to_add;
};

/* The bundle whose parameters, or whose gradient, a buffer holds. The members that do not apply are IR_NONE; all of
 * them if the buffer holds neither. */
struct bundle_of_weight_buffer {
    uint32_t param; /* the bundle of the parameters */
    uint32_t grad;  /* the bundle of the gradient */
    /* the gradient's row of shard.gradient, once an op writes it */
    uint32_t row_of_written_gradient;
    uint32_t remote_grad; /* the gradient's row of e->weights.remote_grad */
};

struct shard {
    struct emit *e;
    struct ir *ir;
    struct arena arena;
    struct op_list new_list;    /* the list with gathers and reductions */
    uint32_t first_unlisted_op; /* ops from this id on are not listed yet */
    bool gathers_params, has_remote_weights;
    /* [buffer_count] what each buffer holds that existed before this pass; later buffers hold no parameters and no
     * gradients */
    struct bundle_of_weight_buffer *buffer;
    uint32_t buffer_count;
    /* ---- gathers (shard.c) ---- */
    struct weight_use_run *run;
    uint32_t run_count;
    size_t run_capacity;
    uint32_t first_run_without_gather; /* the first run that has not been gathered for */
    /* the flat buffer of the last copy in the current forward; IR_NONE: none */
    buffer_id flat_buffer_of_last_copy;
    /* ---- reductions (reduce.c) ---- */
    struct bundle_gradient *gradient; /* in the order of their first writes */
    uint32_t gradient_count;
    size_t gradient_capacity;
    /* rows of e->weights.remote_grad: [0] the gradient before the last one that was summed, [1] the last one; IR_NONE:
     * there is none, or its sum has been added */
    uint32_t last_two_summed_gradients[2];
    uint32_t next_gradient_to_add; /* no gradient before it is left to add */
    /* [bundles] the numbers of gradients that have been reduced, and that are still to be reduced */
    uint32_t *reduced_gradients, *gradients_left;
    /* the last op so far that reduces a gradient or adds its reduced part */
    op_id last_op_that_finishes_gradient;
};

/* Appends the ops that have been emitted since the last call to the new list. Returns the last op of the list; IR_NONE:
 * the list is empty. */
static inline op_id shard_append_emitted_ops(struct shard *s)
{
    for (; s->first_unlisted_op < s->ir->op.count; s->first_unlisted_op++)
        op_list_push(&s->new_list, (op_id){s->first_unlisted_op});
    return (op_id){s->new_list.count > 0 ? s->new_list.op[s->new_list.count - 1] : IR_NONE};
}

/* --- functions of schedule/weights/reduce.c --- */
/* Emits the work of a framework's host thread between backward and optimizer, if the profile has any
 * (host_before_optimizer_s), there are several ranks, and a gradient has been reduced. To read the norm of all
 * gradients, the host waits for the stream of the last reduction; then all ranks meet in a barrier. */
void shard_wait_between_backward_and_step(struct shard *s);
/* True if the first write to the gradient in this row waits for the reduction of the gradient two rows before it. */
bool shard_has_write_wait_for_reduction(const struct shard *s, uint32_t row);
/* Emits zeros in the padding of a gradient, which no other op writes, if the sum cuts the gradient into parts. Does
 * nothing for a persistent gradient, whose padding stays 0. */
void shard_zero_padding(struct shard *s, uint32_t row, uint32_t op);
/* Casts the reduced parts of gradients in rows before `end`, and adds them to the kept parts, if the gradient's last op
 * comes before position i of the list; skips the others. After the last part of a bundle, sums the kept part over the
 * replicas. A tied embedding's gradient begins first and ends last, so gradients after it must not wait for it. */
void shard_add_reduced_parts_to_kept(struct shard *s, uint32_t end, uint32_t i);
/* Sums the gradient of a tied embedding that two stages hold over the first and the last stage. Call it after all other
 * reductions, since these stages finish their parts at very different times. */
void shard_reduce_tied_embedding(struct shard *s);
/* Adds the sum of the gradient last_two_summed_gradients[k] to the stage's own gradient, if this stage is to add it
 * (gradient_sum_to_add), and sets last_two_summed_gradients[k] to IR_NONE. Call it once computation need not wait for
 * the sum. */
void shard_add_remote_sum(struct shard *s, uint32_t k);
/* Returns the last op that adds to a gradient of units which this stage does not share; IR_NONE: there is none. */
op_id shard_last_op_on_unshared_gradient(const struct shard *s, const struct op_list *list);
/* Reduces the gradients to which `op`, at position i, is the last to add; each once, even if the op writes several
 * parts of it. Gradients of shared units are summed over the unit's stages. Others are left for
 * shard_reduce_in_bundle_order() if all are reduced at the end. */
void shard_emit_reductions_due_at_op(struct shard *s, uint32_t i, uint32_t op);
/* True if all stages must reduce and update in the order of the bundles. Stages that share subsequences must: they use
 * weights in different orders, and add to gradients until the end. */
bool shard_reduces_in_bundle_order(const struct shard *s);
/* True if gradients are reduced only after the whole backward. */
bool shard_reduces_at_end(const struct shard *s);
/* Reduces all gradients but those of shared units, in the order of their bundles, after all ops listed so far. Unless
 * stages share subsequences, the first of these reductions waits for the last op of the compute stream. */
void shard_reduce_in_bundle_order(struct shard *s, const struct op_list *list);

#endif
