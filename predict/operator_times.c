#include "predict/operator_times.h"

#include <stdlib.h>

/* Returns whether the op belongs to the part of the model that is predicted. Ops of REGION_NONE only make inputs of
 * that part. */
static bool is_op_of_predicted_part(const struct prediction *p, uint32_t op)
{
    uint8_t scope = p->choices.scope, region = p->ir.op.region[op];
    if (scope == SCOPE_ONE_LAYER || scope >= SCOPE_ALL_LAYERS)
        return region != REGION_NONE;
    if (scope == SCOPE_CHUNK_FETCHES_FROM_HOST)
        return region == REGION_OFFLOAD;
    return region == REGION_ATTENTION &&
           (scope != SCOPE_ATTENTION_OPERATOR_BACKWARD || p->ir.op.phase[op] == PHASE_BACKWARD);
}

/* Returns whether the op passes keys, values or their gradients around a ring. */
static bool is_ring_message(const struct prediction *p, uint32_t op)
{
    enum work_kind kind = (enum work_kind)p->ir.op.kind[op];
    return p->ir.op.region[op] == REGION_ATTENTION &&
           (kind == WORK_SHIFT || kind == WORK_ALL_GATHER || kind == WORK_REDUCE_SCATTER);
}

/* Returns whether a kind of work is an all-to-all, or one of the kernels around it: they pack and unpack, and copy or
 * sum heads. */
static bool is_all_to_all_or_its_kernel(enum work_kind kind)
{
    return kind == WORK_ALL_TO_ALL || kind == WORK_PACK || kind == WORK_UNPACK ||
           kind == WORK_HEAD_EXPAND || kind == WORK_HEAD_REDUCE;
}

static bool is_host_fetch_in_phase(const struct prediction *p, uint32_t op, enum phase phase)
{
    return p->ir.op.kind[op] == WORK_H2D && p->ir.op.phase[op] == phase;
}

/* Cuts rank 0's step into pieces at the ends of the host's synchronisations. Returns the seconds of all pieces in which
 * an exchange runs or, with `fetches`, in which a fetch of the phase runs. Ops after the last synchronisation do not
 * count. */
static double s_between_syncs_with_exchange(const struct prediction *p,
                                            const struct sim_result *sim, bool fetches,
                                            enum phase phase)
{
    const struct sim_class *class = &sim->classes[sim->class_of_rank[0]];
    const double *end = sim_op_ends_of_rank_s(sim, 0);
    double since = 0, sum = 0;
    bool exchanges = false;
    for (uint32_t k = 0; k < class->op_count; k++) {
        uint32_t op = class->op_begin + k;
        exchanges |= fetches ? is_host_fetch_in_phase(p, op, phase)
                             : is_all_to_all_or_its_kernel((enum work_kind)p->ir.op.kind[op]);
        if (p->ir.op.kind[op] != WORK_HOST_SYNC)
            continue;
        sum += exchanges ? end[k] - since : 0;
        since = end[k];
        exchanges = false;
    }
    return sum;
}

/* Returns the seconds of the part, over all ranks: from the end of the last op that makes its inputs (for a layer, from
 * the start of its first op) to the end of its last op. For SCOPE_ALL_LAYERS and SCOPE_ALL_LAYERS_FORWARD these are the
 * seconds of the whole simulated step. */
static double elapsed_s(const struct prediction *p, const struct sim_result *sim)
{
    bool layer = p->choices.scope == SCOPE_ONE_LAYER;
    if (p->choices.scope >= SCOPE_ALL_LAYERS)
        return sim->step_s;
    double begin = layer ? sim->step_s : 0, end = 0;
    for (uint32_t c = 0; c < sim->class_count; c++) {
        const struct sim_class *class = &sim->classes[c];
        for (uint32_t k = 0; k < class->op_count; k++) {
            uint32_t op = class->op_begin + k;
            double from = sim->start_s[class->first_row + k],
                   done = sim->end_s[class->first_row + k];
            if (is_op_of_predicted_part(p, op))
                end = done > end ? done : end;
            if (layer && is_op_of_predicted_part(p, op))
                begin = from < begin ? from : begin;
            else if (!layer && p->ir.op.region[op] == REGION_NONE)
                begin = done > begin ? done : begin;
        }
    }
    return end - begin;
}

struct busy_span {
    double start_s, end_s;
};

static int earlier_start_first(const void *a, const void *b)
{
    const struct busy_span *x = a, *y = b;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

/* Returns the length of the union of the intervals, in seconds. */
static double union_length_s(struct busy_span *interval, size_t count)
{
    double sum = 0, until = 0;
    qsort(interval, count, sizeof *interval, earlier_start_first);
    for (size_t i = 0; i < count; i++) {
        double from = interval[i].start_s > until ? interval[i].start_s : until;
        if (interval[i].end_s > from)
            sum += interval[i].end_s - from;
        until = interval[i].end_s > until ? interval[i].end_s : until;
    }
    return sum;
}

struct operator_times operator_times_of(const struct prediction *p)
{
    const double *start = sim_op_starts_of_rank_s(&p->sim, 0),
                 *end = sim_op_ends_of_rank_s(&p->sim, 0);
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[0]];
    struct operator_times times = {.elapsed_s = elapsed_s(p, &p->sim)};
    struct busy_span *exchange = heap_alloc((size_t) class->op_count + 1, sizeof *exchange);
    double ring[IR_STREAMS_MAX] = {0};
    size_t exchanges = 0, rotations = 0;
    for (uint32_t k = 0; k < class->op_count; k++) {
        uint32_t op = class->op_begin + k;
        enum work_kind kind = (enum work_kind)p->ir.op.kind[op];
        uint8_t stream = p->ir.op.stream[op];
        double seconds = end[k] - start[k];
        if (!is_op_of_predicted_part(p, op))
            continue;
        if (is_ring_message(p, op) && p->ir.op.phase[op] == PHASE_FORWARD) {
            times.mean_rotation_message_s += seconds;
            rotations++;
        }
        times.has_all_to_all |= kind == WORK_ALL_TO_ALL;
        if (is_all_to_all_or_its_kernel(kind)) {
            exchange[exchanges++] = (struct busy_span){start[k], end[k]};
            times.kernels_around_all_to_alls_s += kind != WORK_ALL_TO_ALL ? seconds : 0;
        } else if (is_ring_message(p, op))
            ring[stream] += seconds;
        else if (work_kind_info(kind)->stream == STREAM_COMPUTE)
            times.compute_s += seconds;
    }
    for (size_t i = 0; i < IR_STREAMS_MAX; i++)
        times.ring_s = ring[i] > times.ring_s ? ring[i] : times.ring_s;
    times.all_to_all_and_its_kernels_s =
        p->choices.scope == SCOPE_ATTENTION_EXCHANGES
            ? s_between_syncs_with_exchange(p, &p->sim, false, PHASE_FORWARD)
            : union_length_s(exchange, exchanges);
    if (p->choices.scope == SCOPE_ATTENTION_EXCHANGES) /* the exchange is the whole part */
        times.elapsed_s = times.all_to_all_and_its_kernels_s;
    else if (!times.has_all_to_all)
        times.all_to_all_and_its_kernels_s = 0;
    if (p->choices.scope == SCOPE_CHUNK_FETCHES_FROM_HOST) {
        times.fetch_keys_and_values_s =
            s_between_syncs_with_exchange(p, &p->sim, true, PHASE_FORWARD);
        times.fetch_all_inputs_s = s_between_syncs_with_exchange(p, &p->sim, true, PHASE_BACKWARD);
        times.elapsed_s = times.fetch_keys_and_values_s + times.fetch_all_inputs_s;
    }
    if (rotations > 0)
        times.mean_rotation_message_s /= (double)rotations;
    free(exchange);
    return times;
}

/* Returns whether the part has an op that communicates. */
static bool does_predicted_part_communicate(const struct prediction *p)
{
    for (uint32_t op = 0; op < p->ir.op.count; op++)
        if (is_op_of_predicted_part(p, op) &&
            work_kind_info((enum work_kind)p->ir.op.kind[op])->stream == STREAM_COMM)
            return true;
    return false;
}

enum status operator_times_find_communication(struct operator_times *times,
                                              const struct prediction *p, struct diag *diag)
{
    struct sim_result sim = {0};
    if (p->choices.scope == SCOPE_CHUNK_FETCHES_FROM_HOST) { /* the part has no kernels */
        times->communication_s = times->elapsed_s;
        return STATUS_OK;
    }
    if (!does_predicted_part_communicate(
            p)) { /* without kernels, only the host's time to issue them would be left */
        times->communication_s = 0;
        return STATUS_OK;
    }
    enum status status = prediction_simulate_without_kernels(&sim, p, diag);
    if (status == STATUS_OK)
        times->communication_s = p->choices.scope == SCOPE_ATTENTION_EXCHANGES
                                     ? s_between_syncs_with_exchange(p, &sim, false, PHASE_FORWARD)
                                     : elapsed_s(p, &sim);
    sim_result_release(&sim);
    return status;
}
