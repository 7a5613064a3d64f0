/* schedule/choices/tensor_share.h: the part of a model that one tensor-parallel rank holds, and how its
 * tensors are cut (Megatron-LM: Shoeybi et al., arXiv 1909.08053). */
#ifndef SCHEDULE_CHOICES_TENSOR_SHARE_H
#define SCHEDULE_CHOICES_TENSOR_SHARE_H

#include "models/transformer.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* True if tensor-parallel layers are PyTorch's DTensor, in any of its plans, and not Megatron-LM's own. */
bool tensor_uses_dtensor(const struct choices *choices);
/* True if the inputs of products that tensor ranks gather are kept for the backward. Otherwise the backward gathers
 * them again. */
bool tensor_keeps_gathered(const struct choices *choices);

/* True if tp ranks can share the layers of a model: tp divides heads and ffn, and it divides the number of key and
 * value heads or is a multiple of it. If tp is above 1, no norm of q and k may go over all heads (qk_norm_wide). */
bool tensor_share_fits(const struct transformer *model, int64_t tp);
/* Returns the transformer that one of tp ranks has. Heads (of keys and values at least one), feed-forward width and
 * vocabulary are divided by tp. unit: the vocabulary is first rounded up to a multiple of tp * unit rows; 0: it is not
 * divided. */
struct transformer tensor_share_of_model(const struct transformer *model, int64_t tp, int64_t unit);
/* Returns the unit to which the vocabulary rows of a tensor rank are rounded up; 0: each rank has the whole
 * vocabulary. */
int64_t tensor_vocabulary_unit(const struct choices *choices);
/* Returns how many ranks hold the same key and value heads. */
int64_t tensor_kv_copies(const struct transformer *model, int64_t tp);

/* Consecutive rows of a tensor that are divided over the ranks separately from its other rows. */
struct tensor_block {
    const char *name; /* NULL: the tensor has no blocks */
    int64_t rows;
    /* the block is key or value heads, which several ranks may hold (tensor_kv_copies()): it is divided only over ranks
     * that hold different heads */
    bool is_copied;
};
/* The way in which tensor ranks divide a tensor: by rows, block after block, or by columns. */
struct tensor_cut {
    bool cuts_rows, cuts_columns; /* neither: every rank has the whole tensor */
    struct tensor_block block[3];
    int block_count;
    /* embedding or head: the rows of all ranks may be more than the tensor's, because of padding */
    bool is_vocabulary;
};
/* Returns the cut of a tensor with `rows` rows of the whole model, named as in a layer ("wqkv.weight"). */
struct tensor_cut tensor_cut_of(const struct transformer *whole, const char *name, int64_t rows);
/* True if every tensor rank has the whole tensor and its whole gradient, as of an embedding or a head that is not
 * cut. */
bool tensor_is_complete(const struct choices *choices, const char *name);

#endif
