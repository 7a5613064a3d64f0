#include "sim/jitter.h"

#include "sim/traffic/traffic.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

double jitter_expected_max_of_normals(uint32_t n)
{
    return n > 1 ? gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25)) : 0;
}

/* Returns the number of ranks that wait for each other in an op; 1: the op waits for no other rank. */
static uint32_t op_member_count(const struct ir *ir, uint32_t op)
{
    enum work_kind kind = (enum work_kind)ir->op.kind[op];
    int64_t group = work_comm_group(ir_work(ir, op));
    if (kind == WORK_SHIFT || kind == WORK_SEND || kind == WORK_RECV)
        return 2;
    return group < 0 ? 1 : group_rank_count(&ir->mesh, &ir->group[group]);
}

/* Returns on the heap, for each op of the class, the start of the first kernel that waits for it; infinite: none
 * waits. */
static double *find_first_waiting_kernel_starts_s(const struct ir *ir,
                                                  const struct sim_class *class,
                                                  const double *start_s)
{
    double *first = heap_alloc((size_t) class->op_count + 1, sizeof *first);
    for (uint32_t k = 0; k < class->op_count; k++)
        first[k] = INFINITY;
    for (uint32_t k = 0; k < class->op_count; k++) {
        uint32_t op = class->op_begin + k;
        if (!traffic_is_kernel(ir, op))
            continue;
        for (uint32_t w = 0; w < ir->op.wait_count[op]; w++) {
            uint32_t other = ir->wait[ir->op.wait_begin[op] + w].i - class->op_begin;
            first[other] = fmin(first[other], start_s[k]);
        }
    }
    return first;
}

struct jitter_state {
    const struct ir *ir;
    const struct sim_class *class;
    const double *start_s, *end_s;
    double *first_waiter_start_s, relative_deviation;
    double variance_s2, added_s; /* variance since the last rendezvous; seconds added so far */
};

/* Walks the ops begin .. end - 1 in list order, and adds the delays of their rendezvous. */
static void add_rendezvous_delays(struct jitter_state *w, uint32_t begin, uint32_t end)
{
    const struct ir *ir = w->ir;
    for (uint32_t op = begin; op < end; op++) {
        uint32_t k = op - w->class->op_begin, met;
        double spread = w->relative_deviation * (w->end_s[k] - w->start_s[k]);
        if (traffic_is_kernel(ir, op)) {
            w->variance_s2 += spread * spread;
            continue;
        }
        if ((met = op_member_count(ir, op)) < 2)
            continue;
        double late = jitter_expected_max_of_normals(met) * sqrt(w->variance_s2);
        double hidden =
            ir->op.kind[op] == WORK_BARRIER ? 0 : fmax(w->first_waiter_start_s[k] - w->end_s[k], 0);
        if (late > hidden) {
            w->added_s += late - hidden;
            w->variance_s2 = 0;
        }
    }
}

double jitter_s(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                double relative)
{
    if (!(relative > 0))
        return 0;
    const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
    const double *start_s = sim_op_starts_of_rank_s(result, rank),
                 *end_s = sim_op_ends_of_rank_s(result, rank);
    struct jitter_state w = {
        ir,       class, start_s, end_s, find_first_waiting_kernel_starts_s(ir, class, start_s),
        relative, 0,     0};
    const struct repeats *r = &ir->repeats;
    uint32_t done = class->op_begin, end = class->op_begin + class->op_count;
    for (uint32_t i = 0; i < r->run_count; i++) {
        const struct repeat_run *run = &r->run[i];
        uint32_t gap = run->first_op + run->gap_before_iteration * run->ops_per_iteration;
        if (run->role != class->role)
            continue;
        add_rendezvous_delays(&w, done, gap);
        /* The whole list has further iterations at this gap; each takes the times of the iteration before the gap. */
        for (uint32_t copy = 0; copy < r->copies_per_gap; copy++)
            add_rendezvous_delays(&w, gap - run->ops_per_iteration, gap);
        done = gap;
    }
    add_rendezvous_delays(&w, done, end);
    free(w.first_waiter_start_s);
    return w.added_s + jitter_expected_max_of_normals(result->rank_count) * sqrt(w.variance_s2);
}
