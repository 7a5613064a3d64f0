/* exec/cuda/epilogues.h: ops that the call of the op before them may compute, too.
 *
 * cuBLASLt can work on a result before it writes it (an epilogue): apply GELU, and keep the result before it; or sum up
 * the rows of a factor. Schedules have these as ops of their own, which read from memory what the product had at hand:
 * the GELU of a product, and the gradient of a bias after that of its weight. Kernels of ours do the same with a
 * residual sum and the norm after it, and with RoPE and the pack or unpack beside it. exec_options.uses_epilogues asks
 * for one call; ops, waits and memory stay those of the schedule. */
#ifndef EXEC_CUDA_EPILOGUES_H
#define EXEC_CUDA_EPILOGUES_H

#include "exec/cuda/matmul.h"
#include "schedule/ir/ir.h"

/* Returns what the call of a product may compute of the next op in its role's list; PRODUCT_ALONE: nothing. The results
 * of that op are then written early, by the product's call. This is right if the two are neighbours on one stream with
 * the same guard, if the second waits for no other stream, and if it does not write what the product reads. The library
 * is not asked here; it may have no algorithm. */
enum product_epilogue epilogue_for_product(const struct ir *ir, uint32_t product);

/* True if one kernel (cuda_add_norm()) may compute both an op that adds two tensors and the next op, a norm of the sum,
 * under the conditions of epilogue_for_product(). The norm's statistics may overlap what the addition reads. */
bool epilogue_can_be_norm(const struct ir *ir, uint32_t sum);

/* RoPE and the pack or unpack beside it, which one kernel (cuda_rotated_pack()) may compute: consecutive ops from
 * `first` on, in one of four orders: rope, pack; unpack, rope_backward; pack, rope, rope; rope_backward,
 * rope_backward, unpack. What the first of two writes for the second is then not written at all. */
struct epilogue_rotated_pack {
    uint32_t first, op_count;
    uint32_t pack; /* the pack or unpack */
    /* rope[i] rotates block i; with one rope, it rotates the first columns of whole rows */
    uint32_t rope[2];
    uint32_t rope_count;
    /* the ops of the forward, with a pack; false: those of the backward, with an unpack */
    bool packs;
};
/* True if one kernel may compute the ops from `first` on: the conditions of epilogue_for_product() hold, the kernel
 * takes the shapes, and no other op reads what is left unwritten. Then *found describes the ops. */
bool epilogue_find_rotated_pack(const struct ir *ir, uint32_t first,
                                struct epilogue_rotated_pack *found);

#endif
