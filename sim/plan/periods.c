#include "sim/plan/periods.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>

void periods_release(struct periods *p)
{
    free(p->part);
    free(p->gap);
    *p = (struct periods){0};
}

/* ---- from one list to the next ---- */

/* Where an op, or the end of the list, comes to lie behind a cut; false when it is left out. */
static bool behind_cut(const struct depth_cut *cut, uint32_t op, uint32_t *to)
{
    *to = op;
    for (uint32_t r = 0; r < cut->run_count && cut->run[r].begin < op; r++) {
        const struct depth_run *run = &cut->run[r];
        uint32_t out = run->periods - run->kept, period = (op - run->begin) / run->ops;
        if (period < run->first_kept)
            continue;
        if (period < run->first_kept + out && op != run->begin + run->first_kept * run->ops)
            return false;
        *to -= period < run->first_kept + out ? 0 : out * run->ops;
    }
    return true;
}

/* Where an op of a cut list came from. */
static uint32_t before_cut(const struct depth_cut *cut, uint32_t op)
{
    uint32_t from = op;
    for (uint32_t r = 0; r < cut->run_count; r++)
        if (op >= cut->run[r].cut_begin + cut->run[r].first_kept * cut->run[r].ops)
            from += (cut->run[r].periods - cut->run[r].kept) * cut->run[r].ops;
    return from;
}

/* ---- gaps ---- */

static uint32_t behind_gap(const struct periods_gap *gap)
{
    return gap->begin + gap->before * gap->ops;
}

static int compare_gaps(const void *left, const void *right)
{
    const struct periods_gap *a = left, *b = right;
    if (behind_gap(a) + a->ops != behind_gap(b) + b->ops)
        return behind_gap(a) + a->ops < behind_gap(b) + b->ops ? -1 : 1;
    return a->level == b->level ? 0 : a->level > b->level ? -1 : 1;
}

/* The gap of a run of cut[level], when all its kept periods look alike in the short list. */
static bool gap_of(struct periods_gap *gap, const struct depth_cut *cut, int cuts, int level,
                   const struct depth_run *run)
{
    uint32_t begin = run->begin, end = begin + run->ops * run->periods;
    *gap = (struct periods_gap){.level = cut[level].level,
                                .left_out = run->periods - run->kept,
                                .before = run->first_kept,
                                .whole_begin = begin,
                                .whole_ops = run->ops};
    for (int i = level; i-- > 0;) {
        gap->whole_begin = before_cut(&cut[i], begin);
        if (before_cut(&cut[i], end - 1) - gap->whole_begin != end - 1 - begin)
            return false;
    }
    for (uint32_t p = 0, last = 0; p <= run->kept; p++) {
        uint32_t at = run->cut_begin + p * run->ops;
        for (int i = level + 1; i < cuts; i++)
            if (!behind_cut(&cut[i], at, &at))
                return false;
        if (p == 0)
            gap->begin = at;
        else if (p == 1)
            gap->ops = at - last;
        else if (at - last != gap->ops)
            return false;
        last = at;
    }
    return gap->ops > 0;
}

/* ---- parts ---- */

static void add_part(struct periods *p, uint32_t op, uint32_t ops)
{
    struct periods_part *last = p->part_count > 0 ? &p->part[p->part_count - 1] : NULL;
    if (last && last->op + last->ops == op)
        last->ops += ops;
    else if (ops > 0)
        p->part[p->part_count++] = (struct periods_part){op, ops, p->ops};
    p->ops += ops;
}

/* Cuts the parts of the list before; the ops are of that list until all cuts are made. */
static void cut_parts(struct periods *p, const struct depth_cut *cut)
{
    struct periods old = *p;
    *p =
        (struct periods){.part = heap_alloc(old.part_count + cut->run_count + 1u, sizeof *p->part)};
    uint32_t r = 0;
    for (uint32_t i = 0; i < old.part_count; i++) {
        uint32_t at = old.part[i].image, end = at + old.part[i].ops;
        while (at < end) {
            const struct depth_run *run = r < cut->run_count ? &cut->run[r] : NULL;
            uint32_t gap = run ? run->begin + run->first_kept * run->ops : UINT32_MAX;
            uint32_t behind = run ? gap + (run->periods - run->kept) * run->ops : UINT32_MAX;
            uint32_t until = end < gap ? end : gap;
            if (at < until)
                add_part(p, old.part[i].op + (at - old.part[i].image), until - at);
            at = at > until ? at : until;
            if (at == end)
                break;
            at = end < behind ? end : behind; /* what is left out may go on in the next part */
            if (at == behind)
                r++;
        }
    }
    free(old.part);
}

bool periods_make(struct periods *p, const struct depth_cut *cut, int cuts)
{
    uint32_t runs = 0;
    for (int i = 0; i < cuts; i++)
        runs += cut[i].run_count;
    *p = (struct periods){.ops = 0, .gap = heap_alloc(runs + 1u, sizeof *p->gap)};
    for (int i = 0; i < cuts; i++)
        for (uint32_t r = 0; r < cut[i].run_count; r++)
            if (!gap_of(&p->gap[p->gap_count++], cut, cuts, i, &cut[i].run[r])) {
                periods_release(p);
                return false;
            }
    qsort(p->gap, p->gap_count, sizeof *p->gap, compare_gaps);
    struct periods parts = {.part = heap_alloc(1, sizeof *parts.part)};
    add_part(&parts, 0, cuts > 0 ? cut[0].whole->op.count : 0);
    for (int i = 0; i < cuts; i++)
        cut_parts(&parts, &cut[i]);
    p->part = parts.part;
    p->part_count = parts.part_count;
    p->ops = parts.ops;
    return true;
}

bool periods_steady(const struct periods_gap *gap, const double *start_s, const double *end_s,
                    double same_s, uint32_t *first, double *period_s)
{
    uint32_t at = behind_gap(gap), last = at + gap->ops - 1;
    *period_s = end_s[last] - end_s[last - gap->ops];
    for (*first = gap->before; *first > 0; --*first) {
        at -= gap->ops;
        for (uint32_t op = at; op < at + gap->ops; op++)
            if (fabs(start_s[op] + *period_s - start_s[op + gap->ops]) > same_s ||
                fabs(end_s[op] + *period_s - end_s[op + gap->ops]) > same_s)
                return *first < gap->before;
    }
    return true;
}
