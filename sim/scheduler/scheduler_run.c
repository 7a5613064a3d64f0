#include "sim/scheduler/engine.h"
#include "sim/scheduler/event_queue.h"
#include "sim/scheduler/scheduler.h"
#include "sim/scheduler/scheduler_state.h"
#include "sim/scheduler/sm_interference.h"
#include "sim/scheduler/uncontended.h"

/* ---- issue and ends of ops ---- */

/* Puts an op whose dependencies have all ended on the stack of ready ops. */
static void push_ready_op(struct scheduler *s, uint32_t rank_index, uint32_t op)
{
    s->ready_ops =
        heap_grow(s->ready_ops, &s->ready_capacity, s->ready_count + 1, sizeof *s->ready_ops);
    s->ready_ops[s->ready_count++] = (struct ready){rank_index, op};
}

static void issue_ops(struct scheduler *s, uint32_t rank_index);

/* Stores the known end of an op, and passes it on to the ops that depend on it. If the op blocked the host, the host
 * goes on issuing. */
static void finish_op(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s)
{
    struct rank_state *r = &s->rank_state[rank_index];
    const struct role_program *program = &s->program_by_role[r->role];
    struct schedule_times *times = s->times;
    times->end_s[r->first_row + op] = date_s;
    s->unended_dependencies_by_op[r->first_row + op] = OP_ENDED;
    r->ended_op_count++;
    if (date_s > times->step_s)
        times->step_s = date_s;
    const struct index *after = &program->successors;
    for (uint32_t i = after->begin[op]; i < after->begin[op + 1]; i++) {
        size_t row = r->first_row + after->value[i];
        if (times->start_s[row] < date_s)
            times->start_s[row] = date_s;
        if (--s->unended_dependencies_by_op[row] == 0)
            push_ready_op(s, rank_index, after->value[i]);
    }
    if (r->blocking_op == op) {
        const double *return_s = s->traffic->costs->host_return_s_by_shape;
        uint32_t shape = s->traffic->ir->op.shape[program->op_begin + op];
        bool runs = traffic_rank_runs_op(s->traffic, r->rank, program->op_begin + op);
        r->blocking_op = IR_NONE;
        r->host_busy_until_s = date_s + (return_s && runs ? return_s[shape] : 0);
        issue_ops(s, rank_index);
    }
}

/* Lets the host of a rank issue ops until an op blocks it. An op can start once the host has spent its issue time on
 * it. A sync op spends its issue time after what it waits for has ended. An op that a guard leaves out takes no time,
 * but blocks the host as if it ran. */
static void issue_ops(struct scheduler *s, uint32_t rank_index)
{
    struct rank_state *r = &s->rank_state[rank_index];
    const struct ir *ir = s->traffic->ir;
    const struct role_program *program = &s->program_by_role[r->role];
    const double *cost_s = s->traffic->costs->issue_s;
    double host_busy_until_s = r->host_busy_until_s;
    bool held = false;
    while (!held && r->issued_op_count < program->op_count) {
        uint32_t row = r->issued_op_count++, op = program->op_begin + row;
        bool sync = traffic_is_sync(ir, op);
        held = ir_blocks_host(ir, op);
        if (cost_s && !sync && traffic_rank_runs_op(s->traffic, r->rank, op))
            host_busy_until_s += cost_s[ir->op.shape[op]];
        if (held)
            r->blocking_op = row;
        double *start_s = &s->times->start_s[r->first_row + row];
        if (*start_s < host_busy_until_s)
            *start_s = host_busy_until_s;
        if (--s->unended_dependencies_by_op[r->first_row + row] == 0)
            push_ready_op(s, rank_index, row);
    }
    r->host_busy_until_s = host_busy_until_s;
}

/* ---- rendezvous ---- */

/* Takes the multiprocessors and the memory bandwidth that an event's messages occupy from the kernels of each rank
 * (sign 1), or gives them back (sign -1). held_s: seconds for which the event's own kernels already occupied
 * multiprocessors while they waited for the first bytes. */
static void apply_interference_of_event(struct scheduler *s, const struct channel_state *channel,
                                        double sign, double held_s)
{
    for (uint32_t i = 0; channel->taken_resources.sms_share > 0 && i < channel->channel_side_count;
         i++)
        interference_add_taken_resources(s, s->side[channel->side_begin + i].rank_index,
                                         channel->taken_resources, sign, held_s);
}

static const struct channel_state *channel_of_transfer(const struct scheduler *s, uint32_t transfer)
{
    return &s->channel[s->fold->class_by_channel[s->traffic->transfer[transfer].channel]];
}

static void end_comm_event(struct scheduler *s, size_t e, double date_s)
{
    const struct channel_state *channel = channel_of_transfer(s, s->event[e].transfer);
    uint32_t place = (uint32_t)(e - channel->first_event_of_class);
    if (s->event[e].has_started_flows) {
        apply_interference_of_event(s, channel, -1, 0);
        uncontended_free_links(s, e);
    }
    s->times->times_each_transfer_ended[s->event[e].transfer] +=
        repeats_occurrence_count(&s->traffic->ir->repeats, s->side[channel->side_begin].ops[place]);
    for (uint32_t i = 0; i < channel->channel_side_count; i++) {
        const struct channel_side *side = &s->side[channel->side_begin + i];
        const struct rank_state *r = &s->rank_state[side->rank_index];
        uint32_t op = side->ops[place] - s->program_by_role[r->role].op_begin;
        double *end_s = &s->times->end_s[r->first_row + op];
        if (*end_s < date_s)
            *end_s = date_s;
        if (--s->unended_dependencies_by_op[r->first_row + op] == OP_ARRIVED)
            finish_op(s, side->rank_index, op, *end_s);
    }
}

static void start_event_flows(struct scheduler *s, size_t e)
{
    uint32_t t = s->event[e].transfer;
    const struct channel_state *channel = channel_of_transfer(s, t);
    s->event[e].has_started_flows = true;
    apply_interference_of_event(
        s, channel, 1,
        channel->taken_resources.holds_sms_from_start ? s->traffic->transfer[t].latency_s : 0);
    s->times->flows_started +=
        s->fold->flow_begin_by_transfer[t + 1] - s->fold->flow_begin_by_transfer[t];
}

static bool try_start_event_flows_uncontended(struct scheduler *s, size_t e)
{
    double end_s;
    if (!uncontended_try_start_flows(s, e, &end_s))
        return false;
    start_event_flows(s, e);
    event_queue_add(s, end_s, e, false);
    return true;
}

/* Starts an event's flows now that the engine's clock has reached their date: outside the engine if that is possible
 * (sim/scheduler/uncontended.h), else in the engine. */
static void start_flows_of_due_event(struct scheduler *s, size_t e)
{
    const struct fold *fold = s->fold;
    uint32_t t = s->event[e].transfer;
    uint32_t begin = fold->flow_begin_by_transfer[t], end = fold->flow_begin_by_transfer[t + 1];
    if (try_start_event_flows_uncontended(s, e))
        return;
    start_event_flows(s, e);
    uncontended_move_rivals_to_engine(s, e);
    s->event[e].sides_or_flows_left = end - begin;
    for (uint32_t i = begin; i < end; i++)
        scheduler_start_flow(s, e, fold->flow[i], s->traffic->flows.bytes[fold->flow[i]]);
}

/* Begins an event, all sides of which have arrived. Without flows it ends after its latency; else its flows start
 * then. */
static void begin_comm_event(struct scheduler *s, size_t e)
{
    uint32_t t = s->event[e].transfer;
    double date_s = s->event[e].last_arrival_or_start_s + s->traffic->transfer[t].latency_s;
    if (s->fold->flow_begin_by_transfer[t] == s->fold->flow_begin_by_transfer[t + 1]) {
        end_comm_event(s, e, date_s);
    } else if (date_s > s->now_s || s->is_ahead_of_engine_clock) {
        s->times->timer_set_count++;
        if (s->fold->is_exact)
            engine_set_timer(date_s, (int64_t)(2 * e));
        else
            event_queue_add(s, date_s, e, true);
    } else {
        start_flows_of_due_event(s, e);
    }
}

static void arrive_at_event(struct scheduler *s, uint32_t k, uint32_t place, uint32_t variant,
                            double date_s)
{
    const struct channel_state *channel = &s->channel[k];
    struct event *event = &s->event[channel->first_event_of_class + place];
    uint32_t transfer =
        s->traffic->channel[s->fold->lowest_channel_by_class[k]].first_transfer_of_channel +
        variant;
    if (event->transfer == IR_NONE) {
        event->transfer = transfer;
        event->sides_or_flows_left = channel->channel_side_count;
    }
    if (event->transfer != transfer && s->reason->size == 0)
        mismatch_explain_send_and_receive(s, k, place, s->reason);
    if (event->last_arrival_or_start_s < date_s)
        event->last_arrival_or_start_s = date_s;
    if (--event->sides_or_flows_left == 0 && s->reason->size == 0)
        begin_comm_event(s, channel->first_event_of_class + place);
}

/* ---- starts of ops, and what the engine reports ---- */

static void start_event_op(struct scheduler *s, uint32_t rank_index, uint32_t op, double date_s)
{
    const struct rank_state *r = &s->rank_state[rank_index];
    const struct traffic *traffic = s->traffic;
    uint32_t id = s->program_by_role[r->role].op_begin + op;
    uint16_t comm = traffic->comm_class_by_op[id], variant = traffic->comm_variant_by_op[id];
    uint32_t place = scheduler_op_number_in_channel(s, r, op);
    if (traffic->comm[comm].kind == COMM_SHIFT) {
        s->unended_dependencies_by_op[r->first_row + op] = OP_ARRIVED + 2;
        arrive_at_event(s, r->send_channel_by_comm[comm], place, variant, date_s);
        arrive_at_event(s, r->receive_channel_by_comm[comm], place, variant, date_s);
        return;
    }
    s->unended_dependencies_by_op[r->first_row + op] = OP_ARRIVED + 1;
    arrive_at_event(s, r->send_channel_by_comm[comm], place, variant, date_s);
}

static void start_op(struct scheduler *s, uint32_t rank_index, uint32_t op)
{
    const struct rank_state *r = &s->rank_state[rank_index];
    const struct traffic *traffic = s->traffic;
    uint32_t id = s->program_by_role[r->role].op_begin + op, shape = traffic->ir->op.shape[id];
    double date_s = s->times->start_s[r->first_row + op];
    if (!traffic_rank_runs_op(traffic, r->rank, id)) {
        finish_op(s, rank_index, op, date_s);
        return;
    }
    switch ((enum op_duration_rule)traffic->op_duration_rule[id]) {
    case OP_HOST_SYNC: /* a HOST_SYNC lasts from the end of the awaited op until the host continues */
        finish_op(s, rank_index, op,
                  date_s + (traffic->costs->issue_s ? traffic->costs->issue_s[shape] : 0));
        break;
    case OP_OF_FIXED_DURATION:
        finish_op(s, rank_index, op, date_s + traffic_kernel_duration_s(traffic, r->rank, shape));
        break;
    case OP_SLOWED_BY_MESSAGES:
        if (s->has_engine_flows)
            interference_start_kernel(s, rank_index, op, date_s,
                                      traffic_kernel_duration_s(traffic, r->rank, shape),
                                      !traffic_is_compute_bound(&traffic->ir->shape[shape]));
        else
            finish_op(s, rank_index, op,
                      date_s + traffic_kernel_duration_s(traffic, r->rank, shape));
        break;
    case OP_HOST_WORK:
        finish_op(s, rank_index, op, date_s + traffic->host_duration_s[shape]);
        break;
    case OP_EVENT:
        start_event_op(s, rank_index, op, date_s);
        break;
    }
}

static void start_ready_ops(struct scheduler *s)
{
    while (s->ready_count > 0 && s->reason->size == 0) {
        struct ready next = s->ready_ops[--s->ready_count];
        start_op(s, next.rank_index, next.op);
    }
}

static void handle_engine_timer_or_flow_end(void *context, int64_t tag)
{
    struct scheduler *s = context;
    size_t e = (size_t)tag / 2;
    if (s->reason->size > 0)
        return;
    s->now_s = engine_now_s();
    if (tag % 2 == 0)
        start_flows_of_due_event(s, e);
    else if (--s->event[e].sides_or_flows_left == 0)
        end_comm_event(s, e, s->now_s);
    start_ready_ops(s);
}

/* Ends or starts the event of the earliest queued row. If uncontended_try_start_flows() does not take
 * the event's flows, a timer of the engine starts them at their date. */
static void handle_queued_event(struct scheduler *s, struct queued_event next)
{
    s->now_s = next.date_s;
    s->event_queue.count--; /* next is the last row */
    if (!next.is_start_of_flows)
        end_comm_event(s, next.event_index, next.date_s);
    else if (!try_start_event_flows_uncontended(s, next.event_index))
        engine_set_timer(next.date_s, (int64_t)(2 * next.event_index));
}

/* Ends the earliest kernel or handles the earliest queued event, whichever comes first, if that is
 * by until_s. Returns false if neither is, or after an error. */
static bool handle_earliest_event_before_date(void *context, double until_s)
{
    struct scheduler *s = context;
    if (s->reason->size > 0)
        return false;
    const struct queued_event *next = event_queue_earliest(s);
    double date_s = next && next->date_s < until_s ? next->date_s : until_s;
    uint32_t rank_index, op;
    s->is_ahead_of_engine_clock = true;
    bool ends = interference_end_earliest_kernel(s, date_s, &rank_index, &op),
         done = ends || (next && next->date_s <= until_s);
    if (ends)
        finish_op(s, rank_index, op, s->now_s);
    else if (done)
        handle_queued_event(s, *next);
    start_ready_ops(s);
    s->is_ahead_of_engine_clock = false;
    return done;
}

/* ---- the run ---- */

static bool all_ops_ended(const struct scheduler *s)
{
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        if (s->rank_state[r].ended_op_count < s->program_by_role[s->rank_state[r].role].op_count)
            return false;
    return true;
}

enum status scheduler_run(struct scheduler *s, struct schedule_times *times, struct text *why)
{
    const char *fault = NULL;
    enum status status = STATUS_OK;
    s->times = times;
    s->reason = why;
    scheduler_reset(s);
    if (s->has_engine_flows)
        engine_init(handle_engine_timer_or_flow_end, handle_earliest_event_before_date, s,
                    s->fold->bytes_per_s, s->traffic->platform.link_count);
    for (uint32_t r = 0; r < s->rank_state_count; r++)
        issue_ops(s, r);
    start_ready_ops(s);
    if (s->has_engine_flows && why->size == 0)
        fault = engine_run();
    if (fault) {
        text_printf(why, "SimGrid: %s", fault);
        status = STATUS_SYSTEM;
    } else if (why->size > 0) {
        status = STATUS_BAD_INPUT;
    } else if (!all_ops_ended(s)) {
        deadlock_explain(s, why);
        status = STATUS_BAD_INPUT;
    }
    return status;
}
