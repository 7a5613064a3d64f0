/* schedule/choices/tensor_share.h: what one tensor-parallel rank sees of a model, and how its tensors are cut
 * (Megatron-LM: Shoeybi et al., arXiv 1909.08053). */
#ifndef SCHEDULE_CHOICES_TENSOR_SHARE_H
#define SCHEDULE_CHOICES_TENSOR_SHARE_H

#include "models/transformer.h"
#include "schedule/choices/profile.h"

#include <stdbool.h>
#include <stdint.h>

/* True if tp ranks can share the layers of a model: heads and ffn divide, key and value heads do or are copied. */
bool tensor_share_fits(const struct transformer *model, int64_t tp);
/* Returns the transformer that each of tp ranks sees: its part of the vocabulary is rounded up to a multiple of
 * `unit` rows. */
struct transformer tensor_share(const struct transformer *model, int64_t tp, int64_t unit);
/* Returns the unit that an implementation rounds the vocabulary to. */
int64_t tensor_vocabulary_unit(const struct profile *profile);
/* Returns how many ranks hold the same key and value heads. */
int64_t tensor_kv_copies(const struct transformer *model, int64_t tp);

/* How a tensor of the whole model is cut, by its name in a part ("wqkv.weight"): into blocks of rows, each cut over
 * all tensor ranks or over those that do not hold copies; or by columns. */
struct tensor_block {
    const char *name; /* NULL: the tensor has no blocks */
    int64_t rows;
    bool copied; /* cut over tp / copies ranks */
};
struct tensor_cut {
    bool rows, cols; /* neither: whole on every rank */
    struct tensor_block block[3];
    int blocks;
    bool vocabulary; /* rows are as many as the share's, times tp */
};
struct tensor_cut tensor_cut_of(const struct transformer *whole, const char *name, int64_t rows);

#endif
