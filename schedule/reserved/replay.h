/* schedule/reserved/replay.h: replays the allocations of a role's buffers in a caching allocator, in list order.
 *
 * A buffer takes memory when the host issues the first op that touches it, and gives it back when the host has issued
 * the last op of its free set. Persistent buffers are allocated first and stay; the moments of AdamW may be allocated
 * when the first step reaches its first update, as torch.optim does (torch/optim/adam.py, _init_group()). They then lie
 * where activations lay, so that the next step's large tensors need new segments. */
#ifndef SCHEDULE_REPLAY_H
#define SCHEDULE_REPLAY_H

#include "schedule/ir/ir.h"
#include "schedule/reserved/caching_allocator.h"

/* The ops at which each buffer of a role is allocated and freed. They are counted from the role's first op; of a short
 * list (schedule/ir/repeats.h), in the whole list. All-zero: no buffers. */
struct replayed_buffer_lifetimes {
    const struct ir *ir;
    uint32_t role, first_op; /* first_op: the role's first op */
    uint32_t op_count, row_count;
    struct replay_stay {
        uint32_t buffer, first_op, last_op; /* last_op IR_NONE: the buffer is not freed */
        /* first_op is an all-gather that writes parameters to the buffer */
        bool is_gathered;
        uint64_t bytes;
    } * row; /* in the order of allocation */
};

/* The way in which a framework allocates parameters, gradients and optimizer states. */
struct replay_options {
    /* all moments are allocated at the first op that uses one */
    bool moments_allocated_in_step;
    /* Each tensor of a bundle is allocated in a block of its own: parameters, their casts, moments and whole gradients.
     * A rank's part of a gradient is one block, since one reduce-scatter writes it. */
    bool allocates_each_tensor_alone;
};

/* Lists the buffers of a role that ops use. They lie in all memories. */
void replay_list_buffers_of_role(struct replayed_buffer_lifetimes *replay, const struct ir *ir,
                                 const struct role *role, struct replay_options how);
void replay_release(struct replayed_buffer_lifetimes *replay);

/* Two steps are replayed. In the second one the allocator still has the segments that the first has cut for other
 * sizes, so a large tensor may need a new segment. A third step changed nothing in the schedules that were tried. */
enum { REPLAY_STEPS = 2 };

/* Allocates and frees the buffers of one memory for REPLAY_STEPS steps, and stops after a step that exceeds the
 * allocator's limit. Only the first step allocates persistent buffers. Iterations in which the allocator would repeat
 * what it did in earlier ones are left out. allocates_gathers_in_own_pool: gathered parameters are allocated on the
 * stream of gathers. */
void replay_steps_in_allocator(const struct replayed_buffer_lifetimes *replay, enum memory memory,
                               bool allocates_gathers_in_own_pool,
                               struct caching_allocator *allocator);

#endif
