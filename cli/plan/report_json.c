/* cli/plan/report_json.c: prints the result of a search as JSON. */
#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/plan/ranking.h"
#include "cli/report/report.h"
#include "predict/result_names.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

#include <math.h>

/* Puts what plan_put_loss() appends: by how much an outcome is slower than the winner, and why. */
static void json_loss(struct json_out *w, const struct outcome *o, const struct outcome *winner)
{
    double by_s;
    enum cause cause = plan_slower_cause(o, winner, &by_s);
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

/* Puts the spread of the steps over packed batches. */
static void json_batches(struct json_out *w, const struct outcome *o)
{
    const struct step_spread *s = &o->spread;
    if (s->steps == 0)
        return;
    json_begin_object(w, "batches");
    json_put_count(w, "steps", s->steps);
    json_put_number(w, "median_step_s", s->median_s);
    json_put_number(w, "high_step_s", s->high_s);
    json_put_number(w, "worst_step_s", s->worst_s);
    json_put_count(w, "faster_than_best", o->won);
    json_end_object(w);
}

static void json_outcome(struct json_out *w, const char *key, const struct plan_report *r,
                         const struct outcome *o)
{
    static const char *const kinds[OUTCOME_KIND_COUNT] = {
        "no room", "refused", "does not fit", "cannot be better", "simulated", "not searched"};
    const struct outcome *winner = &r->best->row[0];
    struct text options = {0}, command = {0};
    size_t count;
    plan_put_options(&options, r, o);
    plan_put_command(&command, r);
    text_printf(&command, " %s", options.data);
    json_begin_object(w, key);
    json_put_text(w, "outcome", kinds[o->kind]);
    json_put_text(w, "strategy", strategies_list(&count)[o->strategy].name);
    json_put_text(w, "options", options.data);
    json_put_text(w, "command", command.data);
    json_put_count(w, "tokens", (uint64_t)o->tokens);
    if (o->open_ended)
        json_put_count(w, "asked_tokens", (uint64_t)ladder_end(&o->ladder));
    if (o->kind == OUTCOME_TIMED) {
        json_put_number(w, "tokens_per_s_gpu", o->most);
        json_put_number(w, "step_s", plan_step_s(o));
        report_json_step_ends(w, &o->intervals, plan_step_s(o));
        json_batches(w, o);
        json_put_count(w, "sequences", (uint64_t)o->sequences);
        if (o != winner && r->best->goal != GOAL_LONGEST)
            json_loss(w, o, winner);
        report_json_products(w, &o->products);
        json_put_number(w, "stages_idle", o->bubble);
        json_put_number(w, "waiting_for_copies", o->exposed);
        json_put_count(w, "device_needed_bytes", o->verdict.needed[LIMIT_DEVICE]);
        json_put_count(w, "device_cache_bytes", o->verdict.cache);
        json_put_number(w, "fits_probability", o->verdict.fits_probability);
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
    const struct strategy *table = strategies_list(&strategies);
    command_begin_json(&w, "plan");
    json_put_text(&w, "goal", goals[best->goal]);
    json_put_count(&w, "gpus", best->gpus);
    json_put_text(&w, "only", r->only);
    json_put_count(&w, "configurations", best->count);
    json_put_count(&w, "simulated", best->kinds[OUTCOME_TIMED]);
    json_put_count(&w, "not_searched", best->kinds[OUTCOME_LEFT]);
    if (best->count > 0 && best->row[0].kind == OUTCOME_TIMED && best->goal != GOAL_LONGEST)
        json_put_number(&w, "proved_gap", best_gap(best));
    json_put_number(&w, "asked_probability", r->safe->asked);
    json_put_number(&w, "taken_probability", r->safe->taken);
    if (r->safe->gamble.kind == OUTCOME_TIMED)
        json_outcome(&w, "gamble", r, &r->safe->gamble);
    json_begin_array(&w, "ranking");
    for (size_t i = 0; i < best->count && i < r->shown && best->row[i].kind == OUTCOME_TIMED; i++)
        json_outcome(&w, NULL, r, &best->row[i]);
    json_end_array(&w);
    json_begin_array(&w, "families");
    for (size_t s = 0; s < strategies; s++) {
        struct family f = plan_family_of(best, (uint8_t)s);
        const struct outcome *o = f.best != NULL ? f.best : f.nearest;
        if (f.members == 0)
            continue;
        json_begin_object(&w, NULL);
        json_put_text(&w, "strategy", table[s].name);
        json_put_count(&w, "configurations", f.members);
        json_put_number(&w, "most_tokens_per_s_gpu", f.most);
        if (f.open_ended != NULL)
            json_put_count(&w, "asked_tokens", (uint64_t)ladder_end(&f.open_ended->ladder));
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
