#include "sim/scheduler/sm_interference.h"

/* ---- a heap of ranks by the end of their kernels; each rank knows its place in it ---- */

static bool ends_before(const struct scheduler *s, uint32_t a, uint32_t b)
{
    double a_s = s->rank_state[a].beside.end_s, b_s = s->rank_state[b].beside.end_s;
    return a_s < b_s || (a_s == b_s && a < b);
}

static void put_in_heap(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    s->ending_ops[place] = rank_index;
    s->rank_state[rank_index].beside.ending_place = place;
}

static void move_up(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    while (place > 0 && ends_before(s, rank_index, s->ending_ops[(place - 1) / 2])) {
        put_in_heap(s, place, s->ending_ops[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_in_heap(s, place, rank_index);
}

static void move_down(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below + 1 < s->ending_count &&
            ends_before(s, s->ending_ops[below + 1], s->ending_ops[below]))
            below++;
        if (below >= s->ending_count || !ends_before(s, s->ending_ops[below], rank_index))
            break;
        put_in_heap(s, place, s->ending_ops[below]);
        place = below;
    }
    put_in_heap(s, place, rank_index);
}

/* Returns the rate at which the kernel advances: the share of the resource that limits it. It is at least a half,
 * because messages would have to wait themselves if they took more. */
static double kernel_speed(const struct host_kernel_overlap *b)
{
    double taken = b->by_memory ? b->taken_resources.memory : b->taken_resources.sms;
    return taken < 0.5 ? 1 - taken : 0.5;
}

static void set_end(struct scheduler *s, uint32_t rank_index)
{
    struct host_kernel_overlap *b = &s->rank_state[rank_index].beside;
    double before_s = b->end_s;
    b->end_s = b->since_s + b->left_s / kernel_speed(b);
    if (b->end_s < before_s)
        move_up(s, b->ending_place, rank_index);
    else
        move_down(s, b->ending_place, rank_index);
}

/* ---- kernels ---- */

void interference_start(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                        double seconds, bool by_memory)
{
    struct host_kernel_overlap *b = &s->rank_state[rank_index].beside;
    b->op = op;
    b->by_memory = by_memory;
    b->left_s = seconds;
    b->since_s = date_s;
    b->end_s = date_s + seconds / kernel_speed(b);
    move_up(s, s->ending_count++, rank_index);
}

void interference_take(struct scheduler *s, uint32_t rank_index, struct interference_share taken,
                       double sign, double held_s)
{
    struct host_kernel_overlap *b = &s->rank_state[rank_index].beside;
    if (b->op != IR_NONE && s->now_s > b->since_s) {
        b->left_s -= (s->now_s - b->since_s) * kernel_speed(b);
        b->left_s = b->left_s > 0 ? b->left_s : 0;
        b->since_s = s->now_s;
    }
    if (b->op != IR_NONE && !b->by_memory)
        b->left_s += taken.sms * held_s;
    b->taken_resources.sms += sign * taken.sms;
    b->taken_resources.memory += sign * taken.memory;
    if (b->op != IR_NONE)
        set_end(s, rank_index);
}

bool interference_end(struct scheduler *s, double until_s, uint32_t *rank_state, uint32_t *op)
{
    if (s->ending_count == 0 || s->rank_state[s->ending_ops[0]].beside.end_s > until_s)
        return false;
    struct host_kernel_overlap *b = &s->rank_state[s->ending_ops[0]].beside;
    *rank_state = s->ending_ops[0];
    *op = b->op;
    b->op = IR_NONE;
    s->now_s = b->end_s;
    if (--s->ending_count > 0)
        move_down(s, 0, s->ending_ops[s->ending_count]);
    return true;
}
