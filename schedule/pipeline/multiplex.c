#include "schedule/pipeline/multiplex.h"

#include "base/arena.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/strategies.h"
#include "schedule/pipeline/orders.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

struct stages_sharing_subsequence
multiplex_stages_sharing_subsequence(const struct choices *c, uint32_t chunk, uint32_t subsequence)
{
    if (!pipeline_of_choices(c)->is_multiplexed)
        return (struct stages_sharing_subsequence){pipeline_stage_of_chunk(c, chunk), 1};
    if (subsequence < multiplex_front_subsequence_count(c, chunk))
        return (struct stages_sharing_subsequence){chunk, c->pp - chunk};
    if (subsequence >= multiplex_first_of_back_subsequences(c, chunk))
        return (struct stages_sharing_subsequence){0, chunk + 1};
    return (struct stages_sharing_subsequence){chunk, 1};
}

uint32_t multiplex_front_subsequence_count(const struct choices *c, uint32_t chunk)
{
    return at_most(c->pp - 1 - chunk, c->shared_units.first);
}

uint32_t multiplex_first_of_back_subsequences(const struct choices *c, uint32_t chunk)
{
    return c->subsequences - at_most(chunk, c->shared_units.last);
}

bool multiplex_stage_takes_part(const struct choices *c, uint32_t stage, uint32_t chunk)
{
    return stage == chunk ||
           (stage > chunk ? multiplex_front_subsequence_count(c, chunk) > 0
                          : multiplex_first_of_back_subsequences(c, chunk) < c->subsequences);
}

/* ---- the conditions under which stages can share subsequences ---- */

/* The largest number of stages. Each stage needs two streams for its messages; 24 streams of a schedule are left for
 * all else. */
enum { STAGES_MAX = (IR_STREAMS_MAX - 24) / 2 };

static const char *list_separator(const struct text *out)
{
    return out->size > 0 ? "; " : "";
}

/* Returns the smallest number of tokens, at least `tokens`, such that none of `count` pieces of them is empty on any of
 * `ranks` tensor ranks. */
static int64_t min_tokens_to_cut(int64_t tokens, int64_t ranks, uint32_t count)
{
    int64_t rows = (tokens + ranks - 1) / ranks;
    while (piece_of_rows(rows, count, count - 1).rows == 0)
        rows++;
    return rows * ranks;
}

/* Appends the condition that each stage that shares a subsequence gets at least one token for each tensor rank. It
 * names the first subsequence that does not meet it; nothing is appended if all do. */
static void append_min_tokens_condition(struct text *out, const struct choices *c)
{
    for (uint32_t i = 0; i < c->subsequences; i++) {
        int64_t tokens = pipeline_tokens_before_subsequence(c, i + 1) -
                         pipeline_tokens_before_subsequence(c, i),
                would = tokens;
        for (uint32_t chunk = 0; chunk < c->pp; chunk++) {
            int64_t cut = min_tokens_to_cut(
                tokens, c->tp, multiplex_stages_sharing_subsequence(c, chunk, i).count);
            would = cut > would ? cut : would;
        }
        if (would == tokens)
            continue;
        text_printf(out, "%s%lld tokens or more of subsequence %u, which has %lld and is shared",
                    list_separator(out), (long long)would, i, (long long)tokens);
        return;
    }
}

void multiplex_append_unmet_conditions(struct text *out, const struct choices *c, bool lengths)
{
    if (c->subsequences < c->pp)
        text_printf(out, "--subsequences %u or more (as many as stages), not %u", c->pp,
                    c->subsequences);
    if (c->pp > STAGES_MAX)
        text_printf(out, "%s--pp %d or less, not %u", list_separator(out), STAGES_MAX, c->pp);
    if (c->hp != 1)
        text_printf(out, "%s--hp 1, not %u", list_separator(out), c->hp);
    if (c->micro_batch != 1)
        text_printf(out, "%s--micro-batch 1, not %lld", list_separator(out),
                    (long long)c->micro_batch);
    if (c->weights > CHOICE_WEIGHTS_ZERO1)
        text_printf(out, "%s--weights replicated or zero1, not %s", list_separator(out),
                    weights_names[c->weights]);
    if (c->subsequences >= c->pp && lengths)
        append_min_tokens_condition(out, c);
}

/* ---- the order of all stages together ---- */

/* The state while all tasks are put in order. Times are in flops of a layer or, if all subsequences are equally long,
 * in times of a subsequence on one stage. */
struct greedy_state {
    const struct choices *c;
    double *stage_free_at; /* [stages] the time at which each becomes free */
    uint32_t *next;        /* [chunks] the next subsequence of each */
    double *task_ended_at; /* (chunks, subsequences) the time at which each ended */
};

/* Returns the time at which the chunk's next subsequence can start; negative: the chunk has none left, or it must wait
 * for the chunk before it. */
static double earliest_start_of_next_task(const struct greedy_state *g, uint32_t chunk)
{
    uint32_t n = g->c->subsequences, s = g->next[chunk];
    if (s == n || (chunk > 0 && g->next[chunk - 1] <= s))
        return -1;
    struct stages_sharing_subsequence share = multiplex_stages_sharing_subsequence(g->c, chunk, s);
    double start = s > 0 ? g->task_ended_at[chunk * n + s - 1] : 0;
    if (chunk > 0 && g->task_ended_at[(chunk - 1) * n + s] > start)
        start = g->task_ended_at[(chunk - 1) * n + s];
    for (uint32_t i = share.first_stage; i < share.first_stage + share.count; i++)
        start = g->stage_free_at[i] > start ? g->stage_free_at[i] : start;
    return start;
}

/* the relative difference up to which two start times count as equal */
#define START_TIME_TOLERANCE 1e-9

/* True if the next task of `chunk`, which can start at `start`, comes before that of chunk `best`: it starts earlier;
 * if both can start at the same time, more stages share it; if as many do, its subsequence is an earlier one. */
static bool is_better_next_task(const struct greedy_state *g, uint32_t chunk, double start,
                                uint32_t best, double best_start)
{
    uint32_t count = multiplex_stages_sharing_subsequence(g->c, chunk, g->next[chunk]).count;
    uint32_t best_count = multiplex_stages_sharing_subsequence(g->c, best, g->next[best]).count;
    if (fabs(start - best_start) > START_TIME_TOLERANCE * best_start)
        return start < best_start;
    if (count != best_count)
        return count > best_count;
    return g->next[chunk] < g->next[best];
}

/* Returns the time of the last piece of a subsequence, which takes longest since it sees the most keys. If all
 * subsequences have equal lengths, the unit of time is a subsequence on one stage, as in the paper's figure 8. Else it
 * is a flop of a layer: then lengths were chosen so that whole subsequences take equally long, but their pieces do
 * not. */
static double duration_of_last_piece(const struct choices *c, uint32_t subsequence,
                                     struct stages_sharing_subsequence share)
{
    if (c->subsequence_tokens == NULL)
        return 1.0 / share.count;
    int64_t begin = pipeline_tokens_before_subsequence(c, subsequence),
            end = pipeline_tokens_before_subsequence(c, subsequence + 1);
    int64_t from = end - (end - begin) / share.count;
    return (double)((end - from) * transformer_layer_linear_flops_per_token(c->model)) +
           transformer_layer_attention_flops(c->model, end, true) -
           transformer_layer_attention_flops(c->model, from, true);
}

void multiplex_put_tasks_in_order(const struct choices *c, struct chunk_task *task)
{
    uint32_t n = c->subsequences, all = c->pp * n;
    struct greedy_state g = {.c = c,
                             .stage_free_at = heap_zalloc(c->pp, sizeof(double)),
                             .next = heap_zalloc(c->pp, sizeof(uint32_t)),
                             .task_ended_at = heap_zalloc(all, sizeof(double))};
    for (uint32_t t = 0; t < all; t++) {
        uint32_t best = c->pp;
        double best_start = 0;
        for (uint32_t chunk = 0; chunk < c->pp; chunk++) {
            double start = earliest_start_of_next_task(&g, chunk);
            if (start < 0 ||
                (best < c->pp && !is_better_next_task(&g, chunk, start, best, best_start)))
                continue;
            best = chunk;
            best_start = start;
        }
        assert(best < c->pp && "the lowest chunk with subsequences left can start");
        struct stages_sharing_subsequence share =
            multiplex_stages_sharing_subsequence(c, best, g.next[best]);
        double end = best_start + duration_of_last_piece(c, g.next[best], share);
        for (uint32_t i = share.first_stage; i < share.first_stage + share.count; i++)
            g.stage_free_at[i] = end;
        g.task_ended_at[best * n + g.next[best]] = end;
        task[t] = (struct chunk_task){best, g.next[best]++};
    }
    free(g.stage_free_at);
    free(g.next);
    free(g.task_ended_at);
}

/* Adds the actions of a stage for a task. If the stage computes a part of the subsequence, that is its forward or
 * backward. If stages share the chunk's last subsequences, and this stage is the chunk's owner or before it, there is
 * also an exchange: in the forward of a subsequence that is not one of the last ones, its keys and values are sent
 * (ACTION_SEND_KV); in the backward of these subsequences and of the first of the last ones, gradients of keys and
 * values of earlier subsequences are summed at the owner (ACTION_RETURN_KV). */
static void add_actions_of_task(struct actions *actions, const struct choices *c, uint32_t stage,
                                const struct chunk_task *t, uint32_t unit, bool forward)
{
    struct stages_sharing_subsequence share =
        multiplex_stages_sharing_subsequence(c, t->chunk, t->subsequence);
    bool takes_part = stage - share.first_stage < share.count;
    /* the first of the last subsequences, which the stages before the owner share */
    uint32_t last = multiplex_first_of_back_subsequences(c, t->chunk);
    if (takes_part)
        actions_add(actions, forward ? ACTION_FORWARD : ACTION_BACKWARD, t->chunk, unit);
    if (last == c->subsequences || stage > t->chunk)
        return;
    if (forward && t->subsequence < last)
        actions_add(actions, ACTION_SEND_KV, t->chunk, unit);
    if (!forward && t->subsequence <= last)
        actions_add(actions, ACTION_RETURN_KV, t->chunk, unit);
}

void order_multiplexed(struct actions *actions, const struct choices *c, uint32_t stage)
{
    uint32_t n = c->subsequences, all = c->pp * n;
    struct chunk_task *task = heap_alloc(all, sizeof *task);
    multiplex_put_tasks_in_order(c, task);
    for (uint32_t micro = 0; micro < c->accumulation; micro++)
        for (uint32_t i = 0; i < 2 * all; i++) {
            const struct chunk_task *t = &task[i < all ? i : 2 * all - 1 - i];
            add_actions_of_task(actions, c, stage, t, micro * n + t->subsequence, i < all);
        }
    free(task);
}
