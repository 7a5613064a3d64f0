#include "predict/plan/longest.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "predict/plan/room.h"
#include "schedule/config/resolve_config.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_STEP_TOKENS 1024
#define LENGTH_TOKENS_MAX_SEARCHED ((int64_t)1 << 32)

int64_t ladder_tokens_of_rung(const struct length_ladder *ladder, uint32_t rung)
{
    return ladder->do_lengths_double ? ladder->first_length_or_step_tokens << rung
                                     : ladder->first_length_or_step_tokens *
                                           ((int64_t)ladder->too_short_multiple_count + rung + 1);
}

int64_t ladder_longest_tokens(const struct length_ladder *ladder)
{
    return ladder_tokens_of_rung(ladder, ladder->length_count - 1);
}

const char *ladder_end_reason(const struct length_ladder *ladder)
{
    return ladder->ends_with_chunk_limit ? "more than 32 chunks; a larger --chunk goes on"
                                         : "more than 4G tokens";
}

_Static_assert(LONGEST_CHUNKS == 32, "ladder_end_reason()");

/* ---- the lengths that are tried ---- */

/* True if the request's choices allow a sequence of `seq` tokens; they may require, for example, that a degree divides
 * it. The length of a table of learned positions is not checked here. */
static bool choices_allow_length(const struct request *request, int64_t seq)
{
    struct transformer model = *request->model;
    struct request asked = *request;
    struct choices choices;
    model.max_positions = INT64_MAX;
    asked.model = &model;
    asked.seq = seq;
    return resolve_choices(&choices, &asked, NULL, NULL) == STATUS_OK;
}

static void set_open_degrees_from_choices(struct request *request, const struct choices *c)
{
    request->dp = c->dp;
    request->cp = c->cp;
    request->hp = c->hp;
    request->tp = c->tp;
    request->pp = c->pp;
    request->ep = c->ep;
}

int64_t longest_length_all_degrees_divide(int64_t ranks)
{
    return 1024 * LENGTH_STEP_TOKENS * 2 * ranks;
}

/* Returns the fewest tokens with which each of the pieces of the loss, and of the feed-forward part, for which the
 * request asks has a token on every rank. */
static int64_t least_tokens_for_pieces(const struct request *request, const struct choices *c)
{
    int64_t ranks = (int64_t)c->cp * c->hp, loss = request->loss_chunks * ranks,
            ffn = request->ffn_chunks * ranks * c->tp;
    return loss > ffn ? loss : ffn;
}

enum status ladder_make(struct length_ladder *ladder, struct request *request, struct diag *diag)
{
    enum { STEPS_MAX = 4096 };
    static const int64_t prime = 10007; /* a factor, so that no degree divides a length by chance */
    struct choices choices;
    struct transformer model = *request->model;
    struct request asked = *request;
    model.max_positions = INT64_MAX;
    asked.model = &model;
    asked.seq = longest_length_all_degrees_divide(request->ranks);
    enum status status = resolve_choices(&choices, &asked, NULL, diag);
    if (status != STATUS_OK)
        return status;
    set_open_degrees_from_choices(request, &choices);
    int64_t steps = 1;
    while (steps < STEPS_MAX && !choices_allow_length(request, steps * LENGTH_STEP_TOKENS * prime))
        steps++;
    /* If no smaller number of steps gives an allowed length, STEPS_MAX is taken. If its length is not allowed either,
     * predicting it fails, and the message says why. */
    int64_t step = steps * LENGTH_STEP_TOKENS;
    /* a sequence in chunks has at most LONGEST_CHUNKS, since the number of ops grows with their square */
    bool has_chunks = choices.chunk_count > 1;
    uint32_t below = has_chunks ? (uint32_t)((choices.chunk_tokens - 1) / step) : 0;
    int64_t least = least_tokens_for_pieces(request, &choices);
    if (least > step && (least - 1) / step > (int64_t)below && least < LENGTH_TOKENS_MAX_SEARCHED)
        below = (uint32_t)((least - 1) / step);
    int64_t most = has_chunks ? LONGEST_CHUNKS * choices.chunk_tokens : LENGTH_TOKENS_MAX_SEARCHED;
    /* if all lengths are too short, the longest is left; predicting it fails, and the message says why */
    if (below >= most / step)
        below = (uint32_t)(most / step) - 1;
    *ladder = (struct length_ladder){.first_length_or_step_tokens = step,
                                     .length_count = (uint32_t)(most / step) - below,
                                     .too_short_multiple_count = below,
                                     .ends_with_chunk_limit = has_chunks};
    return STATUS_OK;
}

/* ---- the search ---- */

struct length_search {
    const struct setup *setup;
    const struct request *request;
    const struct length_ladder *ladder;
    struct longest *longest;
    struct progress *progress;
};

/* Reports progress: the number of lengths that were tried, and how many will be tried in all. Bisection tries one more
 * length each time that it halves the range between the longest that fits and the shortest that does not. */
static void show_progress(const struct length_search *s)
{
    const struct longest *l = s->longest;
    struct text note = {0};
    int64_t end = l->shortest_unfit_tokens > 0
                      ? l->shortest_unfit_tokens
                      : ladder_longest_tokens(s->ladder) + s->ladder->first_length_or_step_tokens;
    int64_t between = (end - l->tokens) / s->ladder->first_length_or_step_tokens;
    if (s->progress == NULL)
        return;
    s->progress->job_count = l->built_length_count;
    for (; between > 1; between /= 2)
        s->progress->job_count++;
    if (l->tokens > 0) {
        units_put_tokens(&note, l->tokens);
        text_puts(&note, " tokens fit");
    }
    progress_update(s->progress, l->built_length_count, note.data != NULL ? note.data : "");
    text_release(&note);
}

static void set_refusal_of_shortest_unfit(struct longest *longest, const struct diag *diag)
{
    size_t size = 0;
    const char *text = diag_first_message(diag, &size);
    snprintf(longest->refusal_of_shortest_unfit, sizeof longest->refusal_of_shortest_unfit, "%.*s",
             (int)size, text != NULL ? text : "cannot be built");
}

/* Builds and judges the length of a rung, and returns whether it fits. If it does, stores it in s->longest as the
 * longest length (tokens, verdict, reserved); else as the next one (shortest_unfit_tokens, verdict_of_shortest_unfit,
 * refusal_of_shortest_unfit). With rung 0 a length that cannot be built is also an error in diag. */
static bool judge_length_of_rung(struct length_search *s, uint32_t rung, struct diag *diag)
{
    struct longest *l = s->longest;
    struct request request = *s->request;
    const struct prediction_question question = {
        .setup = s->setup, .request = &request, .skips_offsets = true};
    struct prediction p = {0};
    struct diag own = {0};
    request.seq = ladder_tokens_of_rung(s->ladder, rung);
    if (request.chunk_tokens > request.seq) /* then it is one chunk */
        request.chunk_tokens = 0;
    enum status status = prediction_memory(&p, &question, NULL, &own);
    bool fits = status == STATUS_OK && room_fits_asked_probability(s->setup, &p.verdict);
    l->built_length_count++;
    if (fits) {
        l->tokens = request.seq;
        l->verdict = p.verdict;
        l->reserved = p.reserved;
    } else {
        l->shortest_unfit_tokens = request.seq;
        l->verdict_of_shortest_unfit = p.verdict;
        l->refusal_of_shortest_unfit[0] = '\0';
        if (status != STATUS_OK)
            set_refusal_of_shortest_unfit(l, &own);
        if (status != STATUS_OK && rung == 0 && diag != NULL)
            diag_error(diag, (struct loc){0}, status, "%s", l->refusal_of_shortest_unfit);
    }
    prediction_release(&p);
    diag_release(&own);
    show_progress(s);
    return fits;
}

static uint32_t rung_index_of_length(const struct length_ladder *ladder, int64_t length)
{
    uint32_t rung = 0;
    if (!ladder->do_lengths_double && length >= ladder_tokens_of_rung(ladder, 0))
        rung = (uint32_t)(length / ladder->first_length_or_step_tokens - 1) -
               ladder->too_short_multiple_count;
    while (ladder->do_lengths_double && rung + 1 < ladder->length_count &&
           ladder_tokens_of_rung(ladder, rung) < length)
        rung++;
    return rung < ladder->length_count ? rung : ladder->length_count - 1;
}

enum status longest_find(struct longest *longest, const struct setup *setup,
                         const struct request *request, const struct length_ladder *ladder,
                         int64_t guess, struct progress *progress, struct diag *diag)
{
    struct length_search s = {setup, request, ladder, longest, progress};
    uint32_t at = rung_index_of_length(ladder, guess), low, high,
             stride = 1; /* low fits, high does not */
    *longest = (struct longest){0};
    if (judge_length_of_rung(&s, at, diag)) {
        for (low = at, high = ladder->length_count;
             low + stride < high && interrupt_caught_signal_number() == 0; stride *= 2)
            if (judge_length_of_rung(&s, low + stride, diag))
                low += stride;
            else
                high = low + stride;
    } else {
        high = at;
        do {
            if (high == 0)
                return longest->refusal_of_shortest_unfit[0] != '\0' ? STATUS_BAD_INPUT : STATUS_OK;
            longest->is_interrupted = interrupt_caught_signal_number() != 0;
            if (longest->is_interrupted)
                return STATUS_OK;
            low = high > stride ? high - stride : 0;
            stride *= 2;
            if (judge_length_of_rung(&s, low, diag))
                break;
            high = low;
        } while (true);
    }
    while (high - low > 1 && interrupt_caught_signal_number() == 0) {
        uint32_t middle = low + (high - low) / 2;
        if (judge_length_of_rung(&s, middle, diag))
            low = middle;
        else
            high = middle;
    }
    longest->is_interrupted = high - low > 1;
    if (high == ladder->length_count)
        longest->shortest_unfit_tokens = 0;
    return STATUS_OK;
}
