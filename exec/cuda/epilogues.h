/* exec/cuda/epilogues.h: ops that the call of the op before them may compute, too.
 *
 * cuBLASLt can do more with a product before the call ends (an epilogue): apply GELU to the result, and store the
 * result without it, too; or sum the rows of a factor. A schedule has separate ops for this, which read from memory
 * what the product had in registers: the GELU of a product; and the gradient of a bias, after the product for the
 * gradient of its weight. Kernels of ours do the same with an addition and the norm after it, and with RoPE and the
 * pack or unpack beside it. exec_options.uses_epilogues asks for one call for both. The ops, waits and memory of the
 * schedule stay as they are. */
#ifndef EXEC_CUDA_EPILOGUES_H
#define EXEC_CUDA_EPILOGUES_H

#include "exec/cuda/matmul.h"
#include "schedule/ir/ir.h"

/* Returns what the call of a product may compute of the next op in its role's list; PRODUCT_NO_EPILOGUE: nothing. The
 * product's call then writes the results of that op, which is earlier than the schedule says. That is right under these
 * conditions: the two ops are neighbours on one stream with the same guard, the second waits for no other stream, and
 * it does not write what the product reads or writes. The library is not asked here; it may have no algorithm. */
enum product_epilogue epilogue_for_product(const struct ir *ir, uint32_t product);

/* True if one kernel (cuda_add_norm()) may compute both op `sum`, an addition of two tensors, and the next op, a norm
 * of its result. The conditions are those of epilogue_for_product(), but the norm may write over a term of the
 * addition, and its statistics may overlap what the addition reads. */
bool epilogue_addition_can_compute_norm(const struct ir *ir, uint32_t sum);

/* RoPE and the pack or unpack beside it, which one kernel (cuda_rotated_pack()) may compute. They are consecutive ops
 * from `first` on, in one of four orders: rope, pack; unpack, rope_backward; pack, rope, rope; rope_backward,
 * rope_backward, unpack. The tensors between the rope and the pack are then not written at all. */
struct epilogue_rotated_pack {
    uint32_t first, op_count;
    uint32_t pack; /* the pack or unpack */
    /* with two ropes, rope[i] rotates block i; a single rope rotates the first columns of whole rows */
    uint32_t rope[2];
    uint32_t rope_count;
    /* the ops are those of the forward, with a pack; false: those of the backward, with an unpack */
    bool is_forward;
};
/* True if one kernel may compute the ops from `first` on; *found then describes them. The conditions of
 * epilogue_for_product() hold, cuda_rotated_pack() takes the shapes, and no other op reads the tensors that are not
 * written. */
bool epilogue_find_rotated_pack(const struct ir *ir, uint32_t first,
                                struct epilogue_rotated_pack *found);

#endif
