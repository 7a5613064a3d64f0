/* schedule/step/combined.h: the forward of one micro-batch and the backward of another, emitted one after the other and
 * listed together (--expert-overlap).
 *
 * Layer i of the forward runs beside the i-th layer of the backward, which goes through its layers from the last one
 * on. Each layer's ops are in parts, and the parts of both are listed in the order of enum combined_part (Megatron-Core,
 * models/common/model_chunk_schedule_plan.py, TransformerLayerSchedulePlan.run()): an exchange of one pass then has
 * computation of the other on its stream's side. What is emitted before the first layer comes first, the forward's
 * before the backward's; what is emitted after the last layer follows the last layer's parts. */
#ifndef SCHEDULE_STEP_COMBINED_H
#define SCHEDULE_STEP_COMBINED_H

#include "schedule/emit/op_list.h"

/* The parts of a layer, in the order in which those of both passes are listed. */
enum combined_part {
    BACKWARD_FIRST,          /* up to the exchange of the gradients of results, included */
    FORWARD_FIRST,           /* attention and the router, up to the first exchange */
    BACKWARD_EXPERTS,        /* the experts, or the dense feed-forward part */
    FORWARD_EXCHANGE,        /* the exchange of tokens */
    BACKWARD_EXPERT_WEIGHTS, /* the gradients of the experts' weights, if they are delayed */
    BACKWARD_EXCHANGE,       /* the exchange of the gradients of tokens */
    FORWARD_EXPERTS,         /* the experts and the exchange of results, or the dense part */
    BACKWARD_LAST,           /* the router and attention */
    LAYER_PARTS,
    FORWARD_NEXT = LAYER_PARTS + FORWARD_FIRST /* FORWARD_FIRST of the next layer */
};

/* Begins two passes that are listed together: ops emitted from now on are of the forward. */
void combined_begin_forward(struct emit *e);
/* Ends the ops of the forward: those emitted from now on are of the backward. */
void combined_begin_backward(struct emit *e);
/* Ends the ops of the backward: those emitted from now on are of neither pass. */
void combined_end(struct emit *e);

/* Begins a part of the layer: ops emitted from now on are of that part. FORWARD_NEXT begins after a forward's second
 * exchange. Does nothing unless two passes are listed together. */
void combined_begin_part(struct emit *e, enum combined_part part);

/* Puts the ops of a new list, of all passes of the role, in the order of their parts, and forgets the passes. */
void combined_order_list(struct emit *e, struct op_list *list);

#endif
