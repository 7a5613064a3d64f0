/* predict/reproduce/block_tensors.h: the sizes of a Transformer block's tensors, as multiples of its input's.
 *
 * The size of the input is the tokens of a rank times the hidden width. In the forward a step of the block holds the
 * tensors that it makes: the input, q with k and v, what all-to-alls receive (the sum over all of them), the operands
 * of attention, the widest tensor between the products of the feed-forward part. In the backward it holds these and
 * their gradients, but of what all-to-alls receive only the gradients count. FPDT's Table 2 counts so. Tensors in
 * another data type than that of computation (log-sum-exps, statistics) are not counted.
 *
 * The folder predict/reproduce/ reproduces figures and tables of papers from a catalogue, and judges the claims that
 * they make. */
#ifndef PREDICT_REPRODUCE_BLOCK_TENSORS_H
#define PREDICT_REPRODUCE_BLOCK_TENSORS_H

#include "schedule/ir/ir.h"

struct block_tensors {
    /* elements, divided by those of the input; 0: the schedule has no such tensor */
    double hidden, qkv, exchange, attention, ffn;
};

/* Finds the largest tensors in a schedule of one layer, for its forward and its backward. In the backward, `exchange`
 * is only about gradients. */
void block_tensors_of(struct block_tensors *forward, struct block_tensors *backward,
                      const struct ir *ir);

#endif
