#include "cli/report/check_core_plan.h"

#include "base/json_write.h"
#include "cli/common/output.h"
#include "schedule/core_plan/coverage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The figures of one sequence that are printed: sums over all ranks, and those of the fullest rank. */
struct weights {
    double pairs, fullest; /* visible pairs of all ranks; of the fullest rank */
    uint32_t fullest_rank;
    int64_t keys, queries; /* rows that the rank receives that receives the most */
    double mean_keys;
    /* rows of keys that some rank receives at least if all queries stay where they are */
    double least_keys;
};

static struct weights weigh(const struct core_plan *plan, size_t sequence)
{
    const struct coverage_bytes rows = {.key = 1, .query = 1, .result = 1};
    const double own = (double)plan->sequence[sequence].tokens / plan->ranks;
    struct coverage_load *load = heap_alloc(plan->ranks, sizeof *load);
    struct weights w = {0};
    coverage_loads(plan, sequence, load);
    for (uint32_t r = 0; r < plan->ranks; r++) {
        w.pairs += load[r].pairs;
        if (load[r].pairs > w.fullest) {
            w.fullest = load[r].pairs;
            w.fullest_rank = r;
        }
        w.keys = load[r].keys > w.keys ? load[r].keys : w.keys;
        w.queries = load[r].queries > w.queries ? load[r].queries : w.queries;
        w.mean_keys += (double)load[r].keys / plan->ranks;
    }
    w.least_keys = ceil(coverage_least_bytes(w.pairs, plan->ranks, own, &rows, false));
    free(load);
    return w;
}

static double balance_of(const struct core_plan *plan, const struct weights *w)
{
    return w->pairs > 0 ? w->fullest * plan->ranks / w->pairs : 1;
}

static void put_text(struct text *out, const struct core_plan *plan)
{
    text_printf(out, "coverage           ok: %zu sequences, %u ranks\n", plan->sequences,
                plan->ranks);
    for (size_t i = 0; i < plan->sequences; i++) {
        struct weights w = weigh(plan, i);
        text_printf(out,
                    "sequence %-9zu %.0f visible pairs; rank %u has the most, %.0f, %.3f times the "
                    "mean\n",
                    i, w.pairs, w.fullest_rank, w.fullest, balance_of(plan, &w));
        text_printf(out,
                    "                   a rank receives at most %lld rows of keys (mean %.1f, at "
                    "least %.0f with queries at home) and %lld of queries\n",
                    (long long)w.keys, w.mean_keys, w.least_keys, (long long)w.queries);
    }
    text_puts(out, "right\n");
}

static void put_json(struct text *out, const struct core_plan *plan, bool right)
{
    struct json_out json = {.out = out};
    command_begin_json(&json, "check");
    json_put_bool(&json, "right", right);
    json_put_count(&json, "ranks", plan->ranks);
    json_begin_array(&json, "sequences");
    for (size_t i = 0; i < plan->sequences && right; i++) {
        struct weights w = weigh(plan, i);
        json_begin_object(&json, NULL);
        json_put_number(&json, "pairs", w.pairs);
        json_put_number(&json, "fullest_over_mean", balance_of(plan, &w));
        json_put_count(&json, "fullest_rank", w.fullest_rank);
        json_put_count(&json, "most_key_rows", (uint64_t)w.keys);
        json_put_number(&json, "mean_key_rows", w.mean_keys);
        json_put_number(&json, "least_key_rows", w.least_keys);
        json_put_count(&json, "most_query_rows", (uint64_t)w.queries);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    text_putc(out, '\n');
}

enum status check_core_plan(const char *name, const struct text *text,
                            const struct options *options, struct diag *diag)
{
    struct core_plan plan = {0};
    struct text out = {0};
    enum status status = core_plan_parse(&plan, name, text->data, text->size, diag);
    enum status verdict = STATUS_OK;
    if (status == STATUS_OK) {
        verdict = core_plan_check(&plan, name, diag);
        if (options_given(options, "json"))
            put_json(&out, &plan, verdict == STATUS_OK);
        else if (verdict == STATUS_OK)
            put_text(&out, &plan);
        else
            text_puts(&out, "wrong\n");
        if (!options_given(options, "quiet"))
            status = command_print(&out, diag);
    }
    text_release(&out);
    core_plan_release(&plan);
    return status == STATUS_OK ? verdict : status;
}
