#include "cli/plan/report.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "cli/json_out.h"
#include "cli/report/kernels.h"
#include "cli/report/report.h"
#include "cli/setup/request_options.h"
#include "predict/result_names.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- families ---- */

struct family {
    const struct outcome *best, *nearest; /* that was simulated; of those that do not fit */
    const struct outcome *cut; /* of those that were not asked about longer lengths, the longest */
    size_t members, slower, left;
    double most; /* tokens/s/GPU that no member exceeds */
};

static struct family family_of(const struct best *best, uint8_t strategy)
{
    struct family f = {0};
    for (size_t i = 0; i < best->count; i++) {
        const struct outcome *o = &best->row[i];
        if (o->strategy != strategy)
            continue;
        f.members++;
        if (o->kind == OUTCOME_TIMED && f.best == NULL)
            f.best = o;
        if (o->kind == OUTCOME_TIMED || o->kind == OUTCOME_SLOWER || o->kind == OUTCOME_LEFT)
            f.most = fmax(f.most, o->most);
        f.slower += o->kind == OUTCOME_SLOWER;
        f.left += o->kind == OUTCOME_LEFT;
        if (o->cut && (f.cut == NULL || ladder_end(&o->ladder) > ladder_end(&f.cut->ladder)))
            f.cut = o;
        if ((o->kind == OUTCOME_UNFIT || o->kind == OUTCOME_NO_ROOM) &&
            (f.nearest == NULL || o->missing_bytes < f.nearest->missing_bytes))
            f.nearest = o;
    }
    return f;
}

static enum status find_splits(struct plan_report *r, struct diag *diag)
{
    size_t count;
    const struct outcome *winner = &r->best->row[0], *loser[PLAN_FAMILIES] = {NULL};
    compose_strategies(&count);
    assert(count <= PLAN_FAMILIES);
    if (r->best->goal == GOAL_LONGEST)
        return STATUS_OK;
    for (size_t s = 0; s < count; s++)
        if (s != winner->strategy)
            loser[s] = family_of(r->best, (uint8_t)s).best;
    return splits_find(r->split, loser, count, winner, r->setup, diag);
}

enum status plan_report_make(struct plan_report *r, struct diag *diag)
{
    if (r->best->count == 0 || r->best->row[0].kind != OUTCOME_TIMED)
        return STATUS_OK;
    enum status status =
        sensitivities_find(r->sensitivity, r->setup, &r->best->row[0].request, diag);
    return status == STATUS_OK ? find_splits(r, diag) : status;
}

/* The cause that takes most longer than in the winner's step, for each sequence: steps may hold different
 * numbers of them, all on the same GPUs. */
static enum cause slower_cause(const struct outcome *o, const struct outcome *winner, double *by_s)
{
    enum cause most = CAUSE_OTHER;
    *by_s = 0;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        double more_s = o->cause_s[c] / o->sequences - winner->cause_s[c] / winner->sequences;
        if (more_s > *by_s) {
            *by_s = more_s;
            most = (enum cause)c;
        }
    }
    return most;
}

/* ---- text ---- */

/* ", stages idle 7.6 %, waiting for copies 0.1 %" of the step. */
static void put_idle(struct text *out, const struct outcome *o)
{
    if (o->request.pp > 1)
        text_printf(out, ", stages idle %.1f %%", 100 * o->bubble);
    if (o->exposed >= 0.0005)
        text_printf(out, ", waiting for copies %.1f %%", 100 * o->exposed);
}

/* " (-3.2 %; pipeline fill takes 1.2 s longer per sequence)", " (as fast)" below what is printed */
static void put_loss(struct text *out, const struct outcome *o, const struct outcome *winner)
{
    double by_s, loss = 100 * (o->most / winner->most - 1);
    enum cause cause = slower_cause(o, winner, &by_s);
    if (fabs(loss) < 0.05) {
        text_puts(out, " (as fast)");
        return;
    }
    text_printf(out, " (%+.1f %%", loss);
    if (by_s > 0) {
        text_printf(out, "; %s takes ", cause_name(cause));
        report_put_time(out, by_s, by_s);
        text_puts(out, " longer per sequence");
    }
    text_putc(out, ')');
}

static void put_part(struct text *out, const char *what, double seconds)
{
    text_printf(out, "%s %s", what, seconds <= -5e-10 ? "-" : "");
    report_put_time(out, fabs(seconds), fabs(seconds));
}

/* "           of it layout 1.2 s, kernels 0 s, framework 30 ms": a line below a family's */
static void put_split(struct text *out, const struct split *split)
{
    if (!split->known)
        return;
    text_printf(out, "\n%-11s", "");
    put_part(out, "per sequence: layout", split->layout_s);
    put_part(out, ", kernels", split->kernels_s);
    put_part(out, ", framework", split->framework_s);
}

/* "78.8 GiB (9.80 GiB of it cache)": what a device holds, and what that says where it is nearly full. */
static void put_device(struct text *out, const struct verdict *v)
{
    units_put_gib(out, (double)v->needed[LIMIT_DEVICE]);
    if (verdict_close(v)) {
        text_puts(out, " (too close to call)");
    } else if (verdict_is_cached(v)) {
        text_puts(out, " (");
        units_put_gib(out, (double)v->cache);
        text_puts(out, " of it cache)");
    }
}

/* Those of a prediction; the length is one of them where it was looked for. */
static void put_options(struct text *out, const struct plan_report *r, const struct outcome *o)
{
    request_put_options(out, &o->request);
    if (r->best->goal != GOAL_LONGEST)
        return;
    text_puts(out, " --seq ");
    units_put_tokens(out, o->tokens);
}

/* The command that the options of a row complete. */
static void put_command(struct text *out, const struct plan_report *r)
{
    text_puts(out, r->given);
    if (r->best->goal == GOAL_GPUS)
        text_printf(out, " --gpus %zu", r->best->gpus);
}

static void put_row(struct text *out, const struct plan_report *r, size_t i)
{
    const struct outcome *o = &r->best->row[i];
    char rank[24];
    snprintf(rank, sizeof rank, "%zu", i + 1);
    text_printf(out, "%-11s", rank);
    if (r->best->goal == GOAL_LONGEST) {
        units_put_tokens(out, o->tokens);
        text_puts(out, o->cut ? " tokens at least, " : " tokens, ");
    }
    text_printf(out, "%.1f tokens/s/GPU, step ", o->most);
    report_put_time(out, o->step_s, o->step_s);
    intervals_put_beside(out, " (90 %: ", &o->intervals.of[RESIDUAL_TIME], o->step_s,
                         report_time_for(o->step_s).unit_s);
    text_puts(out, ", ");
    put_device(out, &o->verdict);
    put_idle(out, o);
    text_puts(out, ": ");
    put_options(out, r, o);
    if (i > 0 && r->best->goal != GOAL_LONGEST)
        put_loss(out, o, &r->best->row[0]);
    text_putc(out, '\n');
}

/* ---- one family's splits ---- */

static bool same_split(const struct request *a, const struct request *b)
{
    return a->tp == b->tp && a->pp == b->pp && a->dp == b->dp && a->cp == b->cp && a->hp == b->hp;
}

/* Whether a says more of its split than b: the faster of those simulated, else what is nearest to it. */
static bool tells_more(const struct outcome *a, const struct outcome *b)
{
    if (a->kind != b->kind)
        return b->kind == OUTCOME_LEFT || (a->kind > b->kind && a->kind != OUTCOME_LEFT);
    if (a->kind == OUTCOME_TIMED || a->kind == OUTCOME_SLOWER)
        return a->most > b->most;
    return a->missing_bytes < b->missing_bytes;
}

/* "tp 16 x pp 2, 64 of 4 numbers of subsequences: 310.2 tokens/s/GPU, ..." */
static void put_stages(struct text *out, const struct plan_report *r, const struct outcome *o,
                       size_t members)
{
    const struct outcome *winner = &r->best->row[0];
    text_printf(out, "%-11stp %lld x pp %lld", "split", (long long)o->request.tp,
                (long long)o->request.pp);
    if (o->request.dp > 1)
        text_printf(out, " x dp %lld", (long long)o->request.dp);
    text_printf(out, ", best of %zu with %lld subsequences: ", members,
                (long long)o->request.subsequences);
    switch (o->kind) {
    case OUTCOME_TIMED:
        text_printf(out, "%.1f tokens/s/GPU, ", o->most);
        put_device(out, &o->verdict);
        put_idle(out, o);
        if (o != winner && winner->kind == OUTCOME_TIMED)
            put_loss(out, o, winner);
        break;
    case OUTCOME_LEFT:
        text_puts(out, "not searched");
        break;
    case OUTCOME_SLOWER:
        text_printf(out, "no more than %.1f tokens/s/GPU", o->most);
        break;
    case OUTCOME_UNFIT:
    case OUTCOME_NO_ROOM:
        units_put_gib(out, o->missing_bytes);
        text_puts(out, o->kind == OUTCOME_UNFIT
                           ? " too much"
                           : " too much of states and what cannot leave alone");
        break;
    default:
        text_puts(out, "cannot be built");
    }
    text_putc(out, '\n');
}

/* Lists every product of tensor ranks and stages, where a strategy of subsequences was asked for or won. */
static void put_splits(struct text *out, const struct plan_report *r)
{
    size_t count;
    const struct best *best = r->best;
    for (size_t i = 0; i < best->count; i++) {
        const struct outcome *o = &best->row[i];
        size_t members = 0;
        bool seen = false;
        if (o->strategy != best->row[0].strategy ||
            !compose_strategies(&count)[o->strategy].subsequences)
            continue;
        for (size_t k = 0; k < best->count; k++) {
            if (best->row[k].strategy != o->strategy ||
                !same_split(&best->row[k].request, &best->row[i].request))
                continue;
            seen = seen || k < i;
            members++;
            o = tells_more(&best->row[k], o) ? &best->row[k] : o;
        }
        if (!seen)
            put_stages(out, r, o, members);
    }
}

/* What the winner's length is not, if its ladder ended before memory did. */
static void put_end(struct text *out, const struct plan_report *r)
{
    const struct outcome *winner = &r->best->row[0];
    if (r->best->count == 0 || !winner->cut || winner->kind != OUTCOME_TIMED)
        return;
    text_printf(out, "%-11snot asked about: %s\n", "next", ladder_why_end(&winner->ladder));
}

static void put_family(struct text *out, const struct plan_report *r, uint8_t strategy)
{
    size_t count;
    const struct outcome *winner = &r->best->row[0];
    struct family f = family_of(r->best, strategy);
    if (f.members == 0 || (winner->kind == OUTCOME_TIMED && winner->strategy == strategy))
        return;
    text_printf(out, "%-11s%s: ", "lost", compose_strategies(&count)[strategy].name);
    if (f.best != NULL && r->best->goal == GOAL_LONGEST) {
        units_put_tokens(out, f.best->tokens);
        text_puts(out, f.best->cut ? " tokens at least: " : " tokens at most: ");
        put_options(out, r, f.best);
    } else if (f.best != NULL) {
        text_printf(out, "%.1f tokens/s/GPU at most", f.best->most);
        put_loss(out, f.best, winner);
        text_puts(out, ": ");
        request_put_options(out, &f.best->request);
        put_split(out, &r->split[strategy]);
    } else if (f.left > 0) {
        text_printf(out, "%zu of its %zu configurations were not searched", f.left, f.members);
    } else if (f.cut != NULL) {
        text_puts(out, "not asked about beyond ");
        units_put_tokens(out, ladder_end(&f.cut->ladder));
        text_printf(out, " tokens: %s", ladder_why_end(&f.cut->ladder));
    } else if (f.slower > 0 && r->best->goal == GOAL_LONGEST) {
        text_puts(out, "no member reaches the winner's length");
    } else if (f.slower > 0) {
        text_printf(out, "no member exceeds %.1f tokens/s/GPU", f.most);
    } else if (f.nearest != NULL) {
        text_puts(out, "does not fit: ");
        units_put_gib(out, f.nearest->missing_bytes);
        text_puts(out, " too much with ");
        request_put_options(out, &f.nearest->request);
    } else {
        text_puts(out, "cannot be built here");
    }
    text_putc(out, '\n');
}

static void put_sensitivities(struct text *out, const struct plan_report *r)
{
    const struct outcome *winner = &r->best->row[0];
    bool first = true;
    if (interrupted() != 0) /* no time for them */
        return;
    text_printf(out, "%-11s", "if");
    for (int i = 0; i < SENSITIVITIES; i++) {
        if (!(r->sensitivity[i].step_s > 0))
            continue;
        text_printf(out, "%s%s: %+.1f %%", first ? "" : ", ", sensitivity_machine(i),
                    100 * (winner->step_s / r->sensitivity[i].step_s - 1));
        first = false;
    }
    text_puts(out, " tokens/s\n");
}

static void put_question(struct text *out, const struct plan_report *r)
{
    static const char *const goals[GOAL_COUNT] = {"most tokens/s/GPU", "fewest GPUs",
                                                  "longest sequence"};
    const struct best *best = r->best;
    text_printf(out, "%-11s%s: %s", "goal", goals[best->goal], r->setup->model.name);
    if (best->goal != GOAL_LONGEST) {
        text_puts(out, ", ");
        units_put_tokens(out, r->setup->request.seq);
        text_puts(out, " tokens");
        if (r->setup->request.global_batch > 0)
            text_printf(out, " x %lld", (long long)r->setup->request.global_batch);
    }
    text_printf(out, ", %zu GPU%s of %s", best->gpus, best->gpus == 1 ? "" : "s",
                r->setup->cluster.name);
    if (r->only != NULL)
        text_printf(out, ", of what %s expresses", r->only);
    text_putc(out, '\n');
    text_printf(out,
                "%-11s%zu configurations: %zu have no room for states and layer inputs, %zu do not "
                "fit, %zu cannot be better, %zu simulated, %zu cannot be built\n",
                "searched", best->count, best->kinds[OUTCOME_NO_ROOM], best->kinds[OUTCOME_UNFIT],
                best->kinds[OUTCOME_SLOWER], best->kinds[OUTCOME_TIMED],
                best->kinds[OUTCOME_REFUSED]);
    if (best->kinds[OUTCOME_LEFT] > 0)
        text_printf(out, "%-11s%zu of them were not searched: %s ended the search\n", "left",
                    best->kinds[OUTCOME_LEFT], interrupt_name());
}

/* The answer leaves this open: the best that the remaining candidates could be. */
static void put_proof(struct text *out, const struct best *best, size_t members)
{
    double most = 0, left = 0;
    for (size_t i = 0; i < best->count; i++) {
        if (best->row[i].kind == OUTCOME_SLOWER)
            most = fmax(most, best->row[i].most);
        if (best->row[i].kind == OUTCOME_LEFT)
            left = fmax(left, best->row[i].most);
    }
    if (left > best->row[0].most)
        text_printf(out, "%-11snone: one that was not searched may reach %.1f tokens/s/GPU\n",
                    "proof", left);
    else if (most > 0)
        text_printf(out,
                    "%-11sno configuration that was not simulated exceeds %.1f tokens/s/GPU; the "
                    "winner's family has %zu\n",
                    "proof", fmax(most, left), members);
}

/* Those of the first member of every family that was simulated or bounded; returns the winner's. */
static enum attention_impl kernels_of(struct kernels *kernels, const struct best *best)
{
    size_t strategies;
    const struct strategy *table = compose_strategies(&strategies);
    bool *seen = heap_zalloc(strategies, sizeof *seen);
    enum attention_impl winners = ATTENTION_FA2;
    for (size_t i = 0; i < best->count; i++) {
        const struct outcome *o = &best->row[i];
        struct choices c;
        struct diag diag = {0};
        bool has_speed = o->kind == OUTCOME_TIMED || o->kind == OUTCOME_SLOWER;
        if (has_speed && !seen[o->strategy] &&
            compose_resolve(&c, &o->request, NULL, &diag) == STATUS_OK) {
            seen[o->strategy] = true;
            kernels_add(kernels, (enum attention_impl)c.attention_impl, table[o->strategy].name);
            winners = i == 0 ? (enum attention_impl)c.attention_impl : winners;
        }
        diag_release(&diag);
    }
    free(seen);
    return winners;
}

void plan_report_print(struct text *out, const struct plan_report *r)
{
    const struct best *best = r->best;
    bool found = best->count > 0 && best->row[0].kind == OUTCOME_TIMED;
    size_t strategies;
    compose_strategies(&strategies);
    put_question(out, r);
    if (!found && best->count == 0 && r->only != NULL)
        text_printf(out,
                    "%-11snothing: %s expresses none of what is left open; --emit %s --emit-winner "
                    "says why of the winner\n",
                    "fits", r->only, r->only);
    else if (!found)
        text_printf(out, "%-11snothing%s\n", "fits",
                    best->kinds[OUTCOME_LEFT] > 0 ? " so far" : "");
    if (found) {
        text_printf(out, "%-11s", "predict");
        put_command(out, r);
        text_puts(out, " with the options of a row:\n");
    }
    for (size_t i = 0; i < best->count && i < r->shown && best->row[i].kind == OUTCOME_TIMED; i++)
        put_row(out, r, i);
    if (found)
        intervals_put_line(out, &best->row[0].intervals);
    if (best->goal != GOAL_LONGEST)
        put_splits(out, r);
    put_end(out, r);
    for (size_t s = 0; s < strategies; s++)
        put_family(out, r, (uint8_t)s);
    if (!found)
        return;
    struct kernels kernels = {0};
    enum attention_impl winners = kernels_of(&kernels, best);
    kernels_print(out, &kernels, winners);
    kernels_release(&kernels);
    struct family f = family_of(best, best->row[0].strategy);
    if (best->goal != GOAL_LONGEST)
        put_proof(out, best, f.members);
    put_sensitivities(out, r);
}

/* ---- JSON ---- */

/* Prints as put_loss() does. */
static void json_loss(struct json_out *w, const struct outcome *o, const struct outcome *winner)
{
    double by_s;
    enum cause cause = slower_cause(o, winner, &by_s);
    if (by_s <= 0)
        return;
    json_put_text(w, "slower_cause", result_name_of_words(cause_name(cause)).text);
    json_put_number(w, "slower_cause_s_per_sequence", by_s);
}

static void json_split(struct json_out *w, const struct split *split)
{
    if (!split->known)
        return;
    json_put_number(w, "layout_s_per_sequence", split->layout_s);
    json_put_number(w, "kernels_s_per_sequence", split->kernels_s);
    json_put_number(w, "framework_s_per_sequence", split->framework_s);
}

static void json_outcome(struct json_out *w, const char *key, const struct plan_report *r,
                         const struct outcome *o)
{
    static const char *const kinds[OUTCOME_KIND_COUNT] = {
        "no room", "refused", "does not fit", "cannot be better", "simulated", "not searched"};
    const struct outcome *winner = &r->best->row[0];
    struct text options = {0}, command = {0};
    size_t count;
    put_options(&options, r, o);
    put_command(&command, r);
    text_printf(&command, " %s", options.data);
    json_begin_object(w, key);
    json_put_text(w, "outcome", kinds[o->kind]);
    json_put_text(w, "strategy", compose_strategies(&count)[o->strategy].name);
    json_put_text(w, "options", options.data);
    json_put_text(w, "command", command.data);
    json_put_count(w, "tokens", (uint64_t)o->tokens);
    if (o->cut)
        json_put_count(w, "asked_tokens", (uint64_t)ladder_end(&o->ladder));
    if (o->kind == OUTCOME_TIMED) {
        json_put_number(w, "tokens_per_s_gpu", o->most);
        json_put_number(w, "step_s", o->step_s);
        report_json_step_ends(w, &o->intervals, o->step_s);
        json_put_count(w, "sequences", (uint64_t)o->sequences);
        if (o != winner && r->best->goal != GOAL_LONGEST)
            json_loss(w, o, winner);
        json_put_number(w, "stages_idle", o->bubble);
        json_put_number(w, "waiting_for_copies", o->exposed);
        json_put_count(w, "device_needed_bytes", o->verdict.needed[LIMIT_DEVICE]);
        json_put_count(w, "device_cache_bytes", o->verdict.cache);
        json_put_bool(w, "too_close_to_call", verdict_close(&o->verdict));
        json_put_count(w, "host_needed_bytes", o->verdict.needed[LIMIT_HOST]);
    } else if (o->kind == OUTCOME_SLOWER || o->kind == OUTCOME_LEFT) {
        json_put_number(w, "most_tokens_per_s_gpu", o->most);
    } else {
        json_put_number(w, "missing_bytes", o->missing_bytes);
    }
    json_end_object(w);
    text_release(&options);
    text_release(&command);
}

void plan_report_print_json(struct text *out, const struct plan_report *r)
{
    static const char *const goals[GOAL_COUNT] = {"speed", "gpus", "longest"};
    const struct best *best = r->best;
    struct json_out w = {.out = out};
    size_t strategies;
    const struct strategy *table = compose_strategies(&strategies);
    json_begin_answer(&w, "plan");
    json_put_text(&w, "goal", goals[best->goal]);
    json_put_count(&w, "gpus", best->gpus);
    json_put_text(&w, "only", r->only);
    json_put_count(&w, "configurations", best->count);
    json_put_count(&w, "simulated", best->kinds[OUTCOME_TIMED]);
    json_put_count(&w, "not_searched", best->kinds[OUTCOME_LEFT]);
    json_begin_array(&w, "ranking");
    for (size_t i = 0; i < best->count && i < r->shown && best->row[i].kind == OUTCOME_TIMED; i++)
        json_outcome(&w, NULL, r, &best->row[i]);
    json_end_array(&w);
    json_begin_array(&w, "families");
    for (size_t s = 0; s < strategies; s++) {
        struct family f = family_of(best, (uint8_t)s);
        const struct outcome *o = f.best != NULL ? f.best : f.nearest;
        if (f.members == 0)
            continue;
        json_begin_object(&w, NULL);
        json_put_text(&w, "strategy", table[s].name);
        json_put_count(&w, "configurations", f.members);
        json_put_number(&w, "most_tokens_per_s_gpu", f.most);
        if (f.cut != NULL)
            json_put_count(&w, "asked_tokens", (uint64_t)ladder_end(&f.cut->ladder));
        if (o != NULL)
            json_outcome(&w, "best", r, o);
        json_split(&w, &r->split[s]);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_begin_object(&w, "sensitivities");
    for (int i = 0; i < SENSITIVITIES; i++)
        json_put_number(&w, sensitivity_key(i),
                        r->sensitivity[i].step_s > 0 ? r->sensitivity[i].step_s : NAN);
    json_end_object(&w);
    json_end_object(&w);
    text_putc(out, '\n');
}
