/* schedule/choices/tensor_share.h: the part of a model that one tensor-parallel rank holds, and the way in which
 * tensors are cut (Megatron-LM: Shoeybi et al., arXiv 1909.08053). */
#ifndef SCHEDULE_CHOICES_TENSOR_SHARE_H
#define SCHEDULE_CHOICES_TENSOR_SHARE_H

#include "models/transformer.h"
#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* True if tensor-parallel layers are PyTorch's DTensor, in any plan, and not Megatron-LM's own. */
bool tensor_uses_dtensor(const struct choices *choices);
/* True if the inputs that tensor ranks gather for products are kept for the backward; false: the backward gathers them
 * again, or there is one tensor rank. */
bool tensor_keeps_gathered(const struct choices *choices);

/* True if tp ranks can share the layers of a model: tp divides heads and ffn, and it divides the number of key and
 * value heads or is a multiple of it. If tp is above 1, no norm of q and k may go over all heads (qk_norm_wide). */
bool tensor_share_fits(const struct transformer *model, int64_t tp);
/* Returns the part of the model that one of tp ranks has: heads, feed-forward width and vocabulary are divided by tp;
 * if there are fewer key and value heads than ranks, each rank has one of them. unit: the vocabulary is rounded up to a
 * multiple of tp * unit rows before it is divided; 0: it is not divided. */
struct transformer tensor_share_of_model(const struct transformer *model, int64_t tp, int64_t unit);
/* Returns the `unit` of tensor_share_of_model() for the choices; 0: each rank has the whole vocabulary. */
int64_t tensor_vocabulary_unit(const struct choices *choices);
/* Returns the number of ranks that hold the same key and value heads. */
int64_t tensor_kv_copies(const struct transformer *model, int64_t tp);

/* Consecutive rows of a tensor that are divided over the ranks separately from its other rows. */
struct tensor_row_block {
    const char *name; /* NULL: the tensor has no blocks */
    int64_t rows;
    /* the block is one of key or value heads; it is divided only over ranks that hold different heads
     * (tensor_kv_copies()) */
    bool has_kv_heads;
};
/* The way in which tensor ranks divide a tensor: by rows, each block by itself, or by columns. */
struct tensor_cut {
    bool cuts_rows, cuts_columns; /* neither: every rank has the whole tensor */
    struct tensor_row_block block[3];
    int block_count;
    /* the tensor is the embedding or the head: the ranks together may have more rows than the tensor, because of
     * padding */
    bool is_embedding_or_head;
};
/* Returns how tensor ranks cut a tensor of the whole model with `rows` rows. name: as in a layer ("wqkv.weight"). */
struct tensor_cut tensor_cut_of(const struct transformer *whole, const char *name, int64_t rows);
/* True if every tensor rank has the whole tensor and computes its whole gradient. Such is the embedding or the head if
 * --vocabulary does not cut it. */
bool tensor_is_complete(const struct choices *choices, const char *name);

#endif
