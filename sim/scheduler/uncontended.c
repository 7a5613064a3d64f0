#include "sim/scheduler/uncontended.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double flow_bytes(const struct scheduler *s, uint32_t flow)
{
    return s->traffic->flows.bytes[flow];
}

/* ---- a transfer's flows when nothing else moves ---- */

static double uncontended_rate_bytes_per_s(const struct scheduler *s, const uint32_t *crossing,
                                           uint32_t flow)
{
    const struct fold *fold = s->fold;
    double rate = DBL_MAX;
    for (uint32_t i = fold->link_begin[flow]; i < fold->link_begin[flow + 1]; i++)
        rate = fmin(rate, fold->bytes_per_s[fold->link[i]] / crossing[fold->link[i]]);
    return rate;
}

/* Returns the seconds until the last flow of a transfer ends if no other transfer moves, and sets the rate of each of
 * its flows; returns a negative number if that is not known. It is known if flows that share a link have equal rates
 * and equal sizes: then each flow crosses a full link on which no flow is faster, as max-min sharing demands, and no
 * flow ends early and leaves its bandwidth to others. */
static double find_uncontended_s(struct scheduler *s, uint32_t t, uint32_t *crossing,
                                 uint32_t *first)
{
    const struct fold *fold = s->fold;
    const uint32_t *flow = fold->flow + fold->flow_begin_by_transfer[t];
    uint32_t count = fold->flow_begin_by_transfer[t + 1] - fold->flow_begin_by_transfer[t];
    double longest_s = 0;
    bool uniform = true;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = fold->link_begin[flow[k]]; i < fold->link_begin[flow[k] + 1]; i++)
            if (crossing[fold->link[i]]++ == 0)
                first[fold->link[i]] = flow[k];
    for (uint32_t k = 0; k < count; k++) {
        s->uncontended_bytes_per_s_by_flow[flow[k]] =
            uncontended_rate_bytes_per_s(s, crossing, flow[k]);
        longest_s =
            fmax(longest_s, flow_bytes(s, flow[k]) / s->uncontended_bytes_per_s_by_flow[flow[k]]);
    }
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = fold->link_begin[flow[k]]; i < fold->link_begin[flow[k] + 1]; i++) {
            uint32_t other = first[fold->link[i]];
            uniform = uniform &&
                      s->uncontended_bytes_per_s_by_flow[other] ==
                          s->uncontended_bytes_per_s_by_flow[flow[k]] &&
                      flow_bytes(s, other) == flow_bytes(s, flow[k]);
            crossing[fold->link[i]] = 0;
        }
    return uniform ? longest_s : -1;
}

void uncontended_init(struct scheduler *s)
{
    const struct traffic *traffic = s->traffic;
    uint32_t links = traffic->platform.link_count;
    s->event_by_held_link = arena_array(&s->arena, links + 1u, sizeof *s->event_by_held_link);
    memset(s->event_by_held_link, 0xff, (links + 1u) * sizeof *s->event_by_held_link);
    s->engine_flows_on_link = arena_array(&s->arena, links + 1u, sizeof *s->engine_flows_on_link);
    s->uncontended_s_by_transfer =
        arena_array(&s->arena, traffic->transfer_count + 1u, sizeof *s->uncontended_s_by_transfer);
    s->uncontended_bytes_per_s_by_flow = arena_array(&s->arena, traffic->flows.flow_count + 1u,
                                                     sizeof *s->uncontended_bytes_per_s_by_flow);
    uint32_t *crossing = heap_zalloc(links + 1u, sizeof *crossing);
    uint32_t *first = heap_alloc(links + 1u, sizeof *first);
    for (uint32_t t = 0; t < traffic->transfer_count; t++)
        if (s->fold->flow_begin_by_transfer[t] < s->fold->flow_begin_by_transfer[t + 1])
            s->uncontended_s_by_transfer[t] = find_uncontended_s(s, t, crossing, first);
    free(crossing);
    free(first);
}

/* ---- events ---- */

/* The position of next_link() among the links that the flows of an event cross, one flow after the other. flow:
 * row of fold->flow; link: row of fold->link. */
struct link_iterator {
    uint32_t flow, flow_end, link, link_end;
};

static struct link_iterator crossed_links_of_event(const struct scheduler *s, size_t e)
{
    uint32_t t = s->event[e].transfer;
    return (struct link_iterator){.flow = s->fold->flow_begin_by_transfer[t],
                                  .flow_end = s->fold->flow_begin_by_transfer[t + 1]};
}

static bool next_link(const struct scheduler *s, struct link_iterator *c, uint32_t *link)
{
    const struct fold *fold = s->fold;
    while (c->link == c->link_end) {
        if (c->flow == c->flow_end)
            return false;
        uint32_t flow = fold->flow[c->flow++];
        c->link = fold->link_begin[flow];
        c->link_end = fold->link_begin[flow + 1];
    }
    *link = fold->link[c->link++];
    return true;
}

bool uncontended_try_start_flows(struct scheduler *s, size_t e, double *end_s)
{
    struct event *event = &s->event[e];
    struct link_iterator c = crossed_links_of_event(s, e);
    uint32_t link;
    if (s->fold->is_exact || s->uncontended_s_by_transfer[event->transfer] < 0)
        return false;
    while (next_link(s, &c, &link))
        if (s->event_by_held_link[link] != IR_NONE || s->engine_flows_on_link[link] > 0)
            return false;
    for (c = crossed_links_of_event(s, e); next_link(s, &c, &link);)
        s->event_by_held_link[link] = (uint32_t)e;
    event->is_uncontended = true;
    event->last_arrival_or_start_s = s->now_s;
    *end_s = s->now_s + s->uncontended_s_by_transfer[event->transfer];
    return true;
}

static void free_links_of_event(struct scheduler *s, size_t e)
{
    struct link_iterator c = crossed_links_of_event(s, e);
    for (uint32_t link; next_link(s, &c, &link);)
        s->event_by_held_link[link] = IR_NONE;
    s->event[e].is_uncontended = false;
}

/* Hands the remaining bytes of an event's flows to the engine. */
static void move_flows_to_engine(struct scheduler *s, size_t e)
{
    const struct fold *fold = s->fold;
    struct event *event = &s->event[e];
    struct link_iterator c = crossed_links_of_event(s, e);
    free_links_of_event(s, e);
    for (uint32_t link; next_link(s, &c, &link);)
        s->engine_flows_on_link[link]++;
    for (uint32_t i = fold->flow_begin_by_transfer[event->transfer];
         i < fold->flow_begin_by_transfer[event->transfer + 1]; i++) {
        uint32_t flow = fold->flow[i];
        double left = flow_bytes(s, flow) - s->uncontended_bytes_per_s_by_flow[flow] *
                                                (s->now_s - event->last_arrival_or_start_s);
        if (left <= 0 && s->uncontended_s_by_transfer[event->transfer] >
                             flow_bytes(s, flow) / s->uncontended_bytes_per_s_by_flow[flow])
            continue; /* this flow has ended, but another flow of the event continues */
        event->sides_or_flows_left++;
        scheduler_start_flow(s, e, flow, left);
    }
}

void uncontended_move_rivals_to_engine(struct scheduler *s, size_t e)
{
    struct link_iterator c = crossed_links_of_event(s, e);
    if (s->fold->is_exact)
        return;
    for (uint32_t link; next_link(s, &c, &link);) {
        if (s->event_by_held_link[link] != IR_NONE)
            move_flows_to_engine(s, s->event_by_held_link[link]);
        s->engine_flows_on_link[link]++;
    }
}

void uncontended_free_links(struct scheduler *s, size_t e)
{
    struct link_iterator c = crossed_links_of_event(s, e);
    if (s->fold->is_exact)
        return;
    if (s->event[e].is_uncontended)
        free_links_of_event(s, e);
    else
        for (uint32_t link; next_link(s, &c, &link);)
            s->engine_flows_on_link[link]--;
}
