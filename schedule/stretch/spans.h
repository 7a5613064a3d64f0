/* schedule/stretch/spans.h: which blocks of a run two periods of it stand for, and when its tenants live
 * then.
 *
 * The two are the blocks next to the copies. Blocks beside them whose tenants are those of the period, but
 * for a few at their end, belong to the run's span with the copies. Times in the span are told as times of
 * the two; who lives in the span and who meets whom there is then the same, or more, never less. */
#ifndef SCHEDULE_STRETCH_SPANS_H
#define SCHEDULE_STRETCH_SPANS_H

#include "schedule/passes/tenants.h"
#include "schedule/stretch/stretch.h"

#define SPANS_APART (-1)

/* How an end lies to the block of the tenant's birth. */
struct lie {
    int32_t periods; /* blocks further; SPANS_APART: outside the span */
    uint32_t slot;   /* op of the block */
};

struct stretch_span {
    uint32_t run;
    uint32_t a, b;      /* the two */
    uint32_t low, high; /* blocks of the short list; high is behind the last */
    uint32_t tenants;   /* of the period */
    uint32_t between;   /* first op of b */
    uint32_t behind;    /* op behind b */
};

/* All-zero is empty. */
struct stretch_spans {
    const struct stretch *s;
    const struct tenants *in;  /* of the short list */
    struct stretch_span *span; /* per run */
    uint32_t *first; /* per block of the short list, and behind the last: its first tenant */
    uint32_t *alike_tenants; /* per block of a span: its first ones are those of the period */
    uint32_t *alike_ops;     /* before the first that is not, or the first that is missing */
};

void spans_release(struct stretch_spans *spans);

/* Finds them for some tenants of the short list; both are held on to. False: the two are not alike. */
bool spans_find(struct stretch_spans *spans, const struct tenants *in, const struct stretch *s);

static inline uint32_t spans_tenants(const struct stretch_spans *p, uint32_t block)
{
    return p->first[block + 1] - p->first[block];
}

static inline bool spans_alike(const struct stretch_span *span, uint32_t block)
{
    return block >= span->low && block < span->high;
}

/* The end of a tenant of the short list that is born in block `from`: no sooner than that of the long
 * list's, when copies' times are told so too. */
uint32_t spans_end(const struct stretch_spans *spans, uint32_t from, uint32_t end);

/* The same of an end in the long list. */
uint32_t spans_end_of_copy(const struct stretch_spans *spans, uint32_t op);

/* An op of the long list: its block of the short one and its slot there; true: it is of a copy of that. */
bool spans_is_copied(const struct stretch *s, uint32_t op, uint32_t *block, uint32_t *slot);

struct lie spans_lie_apart(const struct stretch_spans *spans, const struct stretch_span *span,
                           uint32_t from, uint32_t end);

/* Most lie in the block of the birth, which is of the span. */
static inline struct lie spans_lie(const struct stretch_spans *p, const struct stretch_span *span,
                                   uint32_t from, uint32_t end)
{
    const struct stretch_block *block = &p->s->block[from];
    uint32_t slot = end - block->op;
    if (slot < block->ops && slot <= p->alike_ops[from])
        return (struct lie){0, slot};
    return spans_lie_apart(p, span, from, end);
}

/* Which period of the run a block of the span is in the long list. */
uint32_t spans_period(const struct stretch_spans *spans, const struct stretch_span *span,
                      uint32_t block);

static inline bool lie_no_later(struct lie x, struct lie y)
{
    if (x.periods == SPANS_APART || y.periods == SPANS_APART)
        return y.periods == SPANS_APART;
    return x.periods < y.periods || (x.periods == y.periods && x.slot <= y.slot);
}

static inline uint32_t spans_later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

#endif
