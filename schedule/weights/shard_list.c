/* The list of ops that a sharded step is made of. */
#include "schedule/weights/shard.h"

op_id shard_list_emitted(struct shard *s)
{
    for (; s->first_unlisted_op < s->ir->op.count; s->first_unlisted_op++)
        op_list_push(&s->new_list, (op_id){s->first_unlisted_op});
    return (op_id){s->new_list.count > 0 ? s->new_list.op[s->new_list.count - 1] : IR_NONE};
}
