#include "sim/scheduler/uncontended.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double bytes_of(const struct scheduler *s, uint32_t flow)
{
    return s->traffic->flows.bytes[flow];
}

/* ---- a transfer's flows when nothing else moves ---- */

static double rate_of(const struct scheduler *s, const uint32_t *crossing, uint32_t flow)
{
    const struct fold *fold = s->fold;
    double rate = DBL_MAX;
    for (uint32_t i = fold->link_begin[flow]; i < fold->link_begin[flow + 1]; i++)
        rate = fmin(rate, fold->bytes_per_s[fold->link[i]] / crossing[fold->link[i]]);
    return rate;
}

/* Returns the seconds until the last flow of a transfer ends if no other flow runs, and sets s->rate of each flow;
 * negative: not known. It is known if all flows that share a link have one rate and one size: then each flow crosses
 * a full link on which no flow is faster, as max-min sharing demands, and no flow ends early and leaves its bandwidth
 * to others. */
static double uncontended_s(struct scheduler *s, uint32_t t, uint32_t *crossing, uint32_t *first)
{
    const struct fold *fold = s->fold;
    const uint32_t *flow = fold->flow + fold->flow_begin[t];
    uint32_t count = fold->flow_begin[t + 1] - fold->flow_begin[t];
    double longest_s = 0;
    bool uniform = true;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = fold->link_begin[flow[k]]; i < fold->link_begin[flow[k] + 1]; i++)
            if (crossing[fold->link[i]]++ == 0)
                first[fold->link[i]] = flow[k];
    for (uint32_t k = 0; k < count; k++) {
        s->rate[flow[k]] = rate_of(s, crossing, flow[k]);
        longest_s = fmax(longest_s, bytes_of(s, flow[k]) / s->rate[flow[k]]);
    }
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = fold->link_begin[flow[k]]; i < fold->link_begin[flow[k] + 1]; i++) {
            uint32_t other = first[fold->link[i]];
            uniform = uniform && s->rate[other] == s->rate[flow[k]] &&
                      bytes_of(s, other) == bytes_of(s, flow[k]);
            crossing[fold->link[i]] = 0;
        }
    return uniform ? longest_s : -1;
}

void uncontended_init(struct scheduler *s)
{
    const struct traffic *traffic = s->traffic;
    uint32_t links = traffic->platform.link_count;
    s->holder = arena_array(&s->arena, links + 1u, sizeof *s->holder);
    memset(s->holder, 0xff, (links + 1u) * sizeof *s->holder);
    s->flows_on_link = arena_array(&s->arena, links + 1u, sizeof *s->flows_on_link);
    s->uncontended_s =
        arena_array(&s->arena, traffic->transfer_count + 1u, sizeof *s->uncontended_s);
    s->rate = arena_array(&s->arena, traffic->flows.count + 1u, sizeof *s->rate);
    uint32_t *crossing = heap_zalloc(links + 1u, sizeof *crossing);
    uint32_t *first = heap_alloc(links + 1u, sizeof *first);
    for (uint32_t t = 0; t < traffic->transfer_count; t++)
        if (s->fold->flow_begin[t] < s->fold->flow_begin[t + 1])
            s->uncontended_s[t] = uncontended_s(s, t, crossing, first);
    free(crossing);
    free(first);
}

/* ---- events ---- */

/* Rows of fold->link that the flows of an event cross, one flow after the other. */
struct crossed {
    uint32_t flow, flow_end, link, link_end;
};

static struct crossed links_of(const struct scheduler *s, size_t e)
{
    uint32_t t = s->event[e].transfer;
    return (struct crossed){.flow = s->fold->flow_begin[t], .flow_end = s->fold->flow_begin[t + 1]};
}

static bool next_link(const struct scheduler *s, struct crossed *c, uint32_t *link)
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

bool uncontended_begin(struct scheduler *s, size_t e, double *end_s)
{
    struct event *event = &s->event[e];
    struct crossed c = links_of(s, e);
    uint32_t link;
    if (s->fold->exact || s->uncontended_s[event->transfer] < 0)
        return false;
    while (next_link(s, &c, &link))
        if (s->holder[link] != IR_NONE || s->flows_on_link[link] > 0)
            return false;
    for (c = links_of(s, e); next_link(s, &c, &link);)
        s->holder[link] = (uint32_t)e;
    event->is_uncontended = true;
    event->date_s = s->now_s;
    *end_s = s->now_s + s->uncontended_s[event->transfer];
    return true;
}

static void leave_links(struct scheduler *s, size_t e)
{
    struct crossed c = links_of(s, e);
    for (uint32_t link; next_link(s, &c, &link);)
        s->holder[link] = IR_NONE;
    s->event[e].is_uncontended = false;
}

/* Hands the remaining bytes of an event's flows to the engine. */
static void hand_over(struct scheduler *s, size_t e)
{
    const struct fold *fold = s->fold;
    struct event *event = &s->event[e];
    struct crossed c = links_of(s, e);
    leave_links(s, e);
    for (uint32_t link; next_link(s, &c, &link);)
        s->flows_on_link[link]++;
    for (uint32_t i = fold->flow_begin[event->transfer]; i < fold->flow_begin[event->transfer + 1];
         i++) {
        uint32_t flow = fold->flow[i];
        double left = bytes_of(s, flow) - s->rate[flow] * (s->now_s - event->date_s);
        if (left <= 0 && s->uncontended_s[event->transfer] > bytes_of(s, flow) / s->rate[flow])
            continue; /* this flow has ended, but another flow of the event continues */
        event->sides_left++;
        scheduler_flow(s, e, flow, left);
    }
}

void uncontended_hand_over(struct scheduler *s, size_t e)
{
    struct crossed c = links_of(s, e);
    if (s->fold->exact)
        return;
    for (uint32_t link; next_link(s, &c, &link);) {
        if (s->holder[link] != IR_NONE)
            hand_over(s, s->holder[link]);
        s->flows_on_link[link]++;
    }
}

void uncontended_leave(struct scheduler *s, size_t e)
{
    struct crossed c = links_of(s, e);
    if (s->fold->exact)
        return;
    if (s->event[e].is_uncontended)
        leave_links(s, e);
    else
        for (uint32_t link; next_link(s, &c, &link);)
            s->flows_on_link[link]--;
}
