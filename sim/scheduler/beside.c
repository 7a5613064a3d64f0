#include "sim/scheduler/beside.h"

/* ---- the ends by date: a heap of runners, each of which knows its place ---- */

static bool ends_before(const struct scheduler *s, uint32_t a, uint32_t b)
{
    double a_s = s->runner[a].beside.end_s, b_s = s->runner[b].beside.end_s;
    return a_s < b_s || (a_s == b_s && a < b);
}

static void put(struct scheduler *s, uint32_t place, uint32_t runner)
{
    s->ending[place] = runner;
    s->runner[runner].beside.place = place;
}

static void move_up(struct scheduler *s, uint32_t place, uint32_t runner)
{
    while (place > 0 && ends_before(s, runner, s->ending[(place - 1) / 2])) {
        put(s, place, s->ending[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(s, place, runner);
}

static void move_down(struct scheduler *s, uint32_t place, uint32_t runner)
{
    for (;;) {
        uint32_t below = 2 * place + 1;
        if (below + 1 < s->ending_count && ends_before(s, s->ending[below + 1], s->ending[below]))
            below++;
        if (below >= s->ending_count || !ends_before(s, s->ending[below], runner))
            break;
        put(s, place, s->ending[below]);
        place = below;
    }
    put(s, place, runner);
}

/* Messages never have more than half: they would wait for multiprocessors themselves. */
static double speed(const struct beside *b)
{
    return b->taken < 0.5 ? 1 - b->taken : 0.5;
}

static void set_end(struct scheduler *s, uint32_t runner)
{
    struct beside *b = &s->runner[runner].beside;
    double before_s = b->end_s;
    b->end_s = b->since_s + b->left_s / speed(b);
    if (b->end_s < before_s)
        move_up(s, b->place, runner);
    else
        move_down(s, b->place, runner);
}

/* ---- kernels ---- */

void beside_start(struct scheduler *s, uint32_t runner, uint32_t op, double date_s, double seconds)
{
    struct beside *b = &s->runner[runner].beside;
    b->op = op;
    b->left_s = seconds;
    b->since_s = date_s;
    b->end_s = date_s + seconds / speed(b);
    move_up(s, s->ending_count++, runner);
}

void beside_take(struct scheduler *s, uint32_t runner, double share)
{
    struct beside *b = &s->runner[runner].beside;
    if (b->op != IR_NONE && s->now_s > b->since_s) {
        b->left_s -= (s->now_s - b->since_s) * speed(b);
        b->left_s = b->left_s > 0 ? b->left_s : 0;
        b->since_s = s->now_s;
    }
    b->taken += share;
    if (b->op != IR_NONE)
        set_end(s, runner);
}

bool beside_end(struct scheduler *s, double until_s, uint32_t *runner, uint32_t *op)
{
    if (s->ending_count == 0 || s->runner[s->ending[0]].beside.end_s > until_s)
        return false;
    struct beside *b = &s->runner[s->ending[0]].beside;
    *runner = s->ending[0];
    *op = b->op;
    b->op = IR_NONE;
    s->now_s = b->end_s;
    if (--s->ending_count > 0)
        move_down(s, 0, s->ending[s->ending_count]);
    return true;
}
