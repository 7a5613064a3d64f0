/* predict/reproduce/block_tensors.h: the sizes of a Transformer block's tensors, as multiples of its
 * input's.
 *
 * The size of the input is the tokens of a rank times the hidden width. In the forward a step of the block holds the
 * tensors that it makes: the input (`hidden`), q with k and v (`qkv`), the sum of what all all-to-alls receive
 * (`exchange`), the operands of attention (`attention`), and the widest tensor between the products of the feed-forward
 * part (`ffn`). In the backward it holds these and their gradients, except that `exchange` is the sum of the received
 * gradients only. FPDT's Table 2 counts so. Operands of attention in another data type than that of computation
 * (log-sum-exps, statistics) are not counted.
 *
 * The folder predict/reproduce/ reproduces figures and tables of papers from a catalogue, and judges the claims that
 * they make. */
#ifndef PREDICT_REPRODUCE_BLOCK_TENSORS_H
#define PREDICT_REPRODUCE_BLOCK_TENSORS_H

#include "schedule/ir/ir.h"

struct block_tensor_to_input_ratios {
    /* elements, divided by those of the input; 0: the schedule has no such tensor */
    double hidden, qkv, exchange, attention, ffn;
};

/* Finds the largest tensors in a schedule of one layer, for its forward and its backward. */
void block_tensors_find(struct block_tensor_to_input_ratios *forward,
                        struct block_tensor_to_input_ratios *backward, const struct ir *ir);

#endif
