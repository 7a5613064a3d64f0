/* schedule/step/combined.h: the forward of one micro-batch and the backward of another, emitted one after the other and
 * listed together (--expert-overlap).
 *
 * Layer i of the forward runs beside the i-th layer of the backward, which goes through its layers from the last one
 * on. Each layer's ops are in parts, and the parts of both layers are listed in the order of enum combined_part
 * (Megatron-Core, models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run()). So while an exchange
 * of one runs, the compute stream has ops of the other.
 *
 * Ops that are emitted before the first layer are listed first, those of the forward before those of the backward. Ops
 * that are emitted after the last layer follow that layer's parts. */
#ifndef SCHEDULE_STEP_COMBINED_H
#define SCHEDULE_STEP_COMBINED_H

#include "schedule/emit/op_list.h"

/* The parts of a layer of the forward and of one of the backward, in the order in which they are listed together. */
enum combined_part {
    COMBINED_BACKWARD_TO_EXCHANGE,  /* up to the exchange of the gradients of results, included */
    COMBINED_FORWARD_TO_EXCHANGE,   /* attention and the router, up to the first exchange */
    BACKWARD_EXPERTS,               /* the experts, or the dense feed-forward part */
    FORWARD_EXCHANGE,               /* the exchange of tokens */
    BACKWARD_EXPERT_WEIGHTS,        /* the gradients of the experts' weights, if they are delayed */
    BACKWARD_EXCHANGE,              /* the exchange of the gradients of tokens */
    FORWARD_EXPERTS,                /* the experts and the exchange of results, or the dense part */
    COMBINED_BACKWARD_OF_ATTENTION, /* the router and attention */
    COMBINED_PARTS_OF_LAYER,
    FORWARD_NEXT = COMBINED_PARTS_OF_LAYER +
                   COMBINED_FORWARD_TO_EXCHANGE /* COMBINED_FORWARD_TO_EXCHANGE of the next layer */
};

/* Begins a forward and a backward that are listed together: ops emitted from now on belong to the forward. */
void combined_begin_forward(struct emit *e);
/* Ops emitted from now on belong to the backward, no longer to the forward. */
void combined_begin_backward(struct emit *e);
/* Ops emitted from now on belong to neither. */
void combined_end(struct emit *e);

/* Begins a part of the layer e->combined.layer_index_in_emission_order: ops emitted from now on belong to that part.
 * FORWARD_NEXT begins after the second exchange of a forward. Does nothing outside of combined_begin_forward() ..
 * combined_end(). */
void combined_begin_part(struct emit *e, enum combined_part part);

/* Reorders a new list of the role: the ops of each forward and backward that are listed together are put in the order
 * of their parts. Forgets these parts. */
void combined_reorder_list_by_parts(struct emit *e, struct op_list *list);

#endif
