#include "sim/scheduler/sm_interference.h"

/* ---- a heap of ranks, ordered by the end of their kernels; heap_index of a rank is its index in the heap ---- */

static bool kernel_ends_before(const struct scheduler *s, uint32_t a, uint32_t b)
{
    double a_s = s->rank_state[a].kernel_overlap.end_s, b_s = s->rank_state[b].kernel_overlap.end_s;
    return a_s < b_s || (a_s == b_s && a < b);
}

static void set_kernel_end_heap_place(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    s->rank_heap_by_kernel_end[place] = rank_index;
    s->rank_state[rank_index].kernel_overlap.heap_index = place;
}

static void sift_up(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    while (place > 0 &&
           kernel_ends_before(s, rank_index, s->rank_heap_by_kernel_end[(place - 1) / 2])) {
        set_kernel_end_heap_place(s, place, s->rank_heap_by_kernel_end[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    set_kernel_end_heap_place(s, place, rank_index);
}

static void sift_down(struct scheduler *s, uint32_t place, uint32_t rank_index)
{
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below + 1 < s->rank_count_in_kernel_end_heap &&
            kernel_ends_before(s, s->rank_heap_by_kernel_end[below + 1],
                               s->rank_heap_by_kernel_end[below]))
            below++;
        if (below >= s->rank_count_in_kernel_end_heap ||
            !kernel_ends_before(s, s->rank_heap_by_kernel_end[below], rank_index))
            break;
        set_kernel_end_heap_place(s, place, s->rank_heap_by_kernel_end[below]);
        place = below;
    }
    set_kernel_end_heap_place(s, place, rank_index);
}

/* Returns the speed of the kernel as a fraction of its speed without messages: the share that messages leave of the
 * resource that limits the kernel. The speed is at least a half: messages that took more than half of the resource
 * would themselves have to wait for the kernel. */
static double kernel_speed_fraction(const struct kernel_overlap *b)
{
    double taken = b->is_memory_bound ? b->taken_resources.memory_bandwidth_share
                                      : b->taken_resources.sms_share;
    return taken < 0.5 ? 1 - taken : 0.5;
}

static void update_kernel_end(struct scheduler *s, uint32_t rank_index)
{
    struct kernel_overlap *b = &s->rank_state[rank_index].kernel_overlap;
    double before_s = b->end_s;
    b->end_s = b->remaining_work_date_s + b->remaining_work_s / kernel_speed_fraction(b);
    if (b->end_s < before_s)
        sift_up(s, b->heap_index, rank_index);
    else
        sift_down(s, b->heap_index, rank_index);
}

/* ---- kernels ---- */

void interference_start_kernel(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s,
                               double seconds, bool by_memory)
{
    struct kernel_overlap *b = &s->rank_state[rank_index].kernel_overlap;
    b->op = op;
    b->is_memory_bound = by_memory;
    b->remaining_work_s = seconds;
    b->remaining_work_date_s = date_s;
    b->end_s = date_s + seconds / kernel_speed_fraction(b);
    sift_up(s, s->rank_count_in_kernel_end_heap++, rank_index);
}

void interference_add_taken_resources(struct scheduler *s, uint32_t rank_index,
                                      struct interference_share taken, double sign, double held_s)
{
    struct kernel_overlap *b = &s->rank_state[rank_index].kernel_overlap;
    if (b->op != IR_NONE && s->now_s > b->remaining_work_date_s) {
        b->remaining_work_s -= (s->now_s - b->remaining_work_date_s) * kernel_speed_fraction(b);
        b->remaining_work_s = b->remaining_work_s > 0 ? b->remaining_work_s : 0;
        b->remaining_work_date_s = s->now_s;
    }
    if (b->op != IR_NONE && !b->is_memory_bound)
        b->remaining_work_s += taken.sms_share * held_s;
    b->taken_resources.sms_share += sign * taken.sms_share;
    b->taken_resources.memory_bandwidth_share += sign * taken.memory_bandwidth_share;
    if (b->op != IR_NONE)
        update_kernel_end(s, rank_index);
}

bool interference_end_earliest_kernel(struct scheduler *s, double until_s, uint32_t *rank_state,
                                      uint32_t *op)
{
    if (s->rank_count_in_kernel_end_heap == 0 ||
        s->rank_state[s->rank_heap_by_kernel_end[0]].kernel_overlap.end_s > until_s)
        return false;
    struct kernel_overlap *b = &s->rank_state[s->rank_heap_by_kernel_end[0]].kernel_overlap;
    *rank_state = s->rank_heap_by_kernel_end[0];
    *op = b->op;
    b->op = IR_NONE;
    s->now_s = b->end_s;
    if (--s->rank_count_in_kernel_end_heap > 0)
        sift_down(s, 0, s->rank_heap_by_kernel_end[s->rank_count_in_kernel_end_heap]);
    return true;
}
