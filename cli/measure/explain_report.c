#include "cli/measure/explain_report.h"

#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "traces/compare.h"

#include <math.h>

/* LABEL: the width of the label of the first line. CAUSE: the width of the columns before a cause's name. CAUSE_NAME:
 * the width of that name. */
enum { CAUSES_SHOWN = 10, RANKS_SHOWN = 8, LABEL = 11, CAUSE = 23, CAUSE_NAME = 19 };

static double difference_s(const struct explanation *e)
{
    return e->measured_s - e->predicted_s;
}

/* Returns the sum of the absolute seconds of all causes. */
static double all_of(const struct explanation *e)
{
    double all_s = 0;
    for (size_t i = 0; i < e->causes; i++)
        all_s += fabs(e->cause[i].seconds);
    return all_s;
}

size_t explain_report_shown(const struct explanation *e, double *rest_s)
{
    size_t shown = 0;
    double all_s = all_of(e);
    *rest_s = 0;
    while (shown < e->causes && shown < CAUSES_SHOWN &&
           fabs(e->cause[shown].seconds) >= EXPLAIN_REST * all_s)
        shown++;
    for (size_t i = shown; i < e->causes; i++)
        *rest_s += e->cause[i].seconds;
    return shown;
}

static void print_causes(struct text *out, const struct explanation *e, size_t width)
{
    double rest_s, all_s = all_of(e);
    size_t shown = explain_report_shown(e, &rest_s);
    text_printf(out, "\n%12s %8s  cause\n", "more ms", "share");
    for (size_t i = 0; i < shown; i++) {
        const struct explain_cause *cause = &e->cause[i];
        text_printf(out, "%+12.3f %6.0f %%  %-18s ", 1e3 * cause->seconds,
                    100 * fabs(cause->seconds) / all_s, cause->name);
        screen_wrap(out, cause->text, CAUSE, CAUSE + CAUSE_NAME, width);
    }
    text_printf(out, "%+12.3f %8s  rest\n", fabs(rest_s) < 5e-7 ? 0 : 1e3 * rest_s, "");
}

/* Returns whether the table shows rank i. It shows all ranks or, if there are too many, the first ones and the slowest
 * one. */
static bool is_shown(const struct explanation *e, size_t i)
{
    return e->ranks <= RANKS_SHOWN || i == e->slowest ||
           i < RANKS_SHOWN - (e->slowest >= RANKS_SHOWN ? 1 : 0);
}

/* Appends a cell of the table. A negative number that rounds to 0 is printed as "+0.000", like a positive one. */
static void put_more(struct text *out, double seconds)
{
    double ms = 1e3 * seconds;
    text_printf(out, " %+10.3f", fabs(ms) < 5e-4 ? 0 : ms);
}

static void print_ranks(struct text *out, const struct explanation *e)
{
    static const char *const heads[EXPLAIN_PART_COUNT] = {
        [EXPLAIN_PRODUCTS] = "products",   [EXPLAIN_ATTENTION] = "attention",
        [EXPLAIN_MEMORY_BOUND] = "memory", [EXPLAIN_OPTIMIZER] = "optimizer",
        [EXPLAIN_STRAY] = "stray",         [EXPLAIN_MESSAGES] = "messages",
        [EXPLAIN_COPIES] = "copies",       [EXPLAIN_WAITS] = "waits",
        [EXPLAIN_IDLE] = "idle",
    };
    text_printf(out, "\n%-12s", "more ms of");
    for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
        text_printf(out, " %10s", heads[part]);
    text_putc(out, '\n');
    for (size_t i = 0; i < e->ranks; i++) {
        if (!is_shown(e, i))
            continue;
        text_printf(out, "rank %-7u", e->rank[i].rank);
        for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
            put_more(out, e->rank[i].measured_s[part] - e->rank[i].predicted_s[part]);
        text_putc(out, '\n');
    }
    if (e->ranks > RANKS_SHOWN)
        text_printf(out, "%zu more ranks; --json has them\n", e->ranks - RANKS_SHOWN);
}

void explain_report_print(struct text *out, const struct explanation *e, size_t width)
{
    double more_s = difference_s(e);
    struct text line = {0};
    text_printf(&line, "explain    measured %.3f ms", 1e3 * e->measured_s);
    if (e->steps > 1)
        text_printf(&line, " (mean of %zu steps)", e->steps);
    text_printf(&line, ", predicted %.3f ms: %.3f ms %s", 1e3 * e->predicted_s, 1e3 * fabs(more_s),
                more_s >= 0 ? "longer" : "shorter");
    if (e->ranks > 1)
        text_printf(&line, ", on rank %u, for which the others wait", e->rank[e->slowest].rank);
    screen_wrap_labelled(out, line.data, LABEL, width);
    line.size = 0;
    if (e->match_rate < COMPARE_MATCH_MIN) {
        text_printf(
            &line,
            "matched    %.1f %% of the time, too little for a verdict: is it the same model, "
            "sequence and schedule? The causes below may be those of unlike work",
            100 * e->match_rate);
        screen_wrap_labelled(out, line.data, LABEL, width);
    }
    text_release(&line);
    print_causes(out, e, width);
    print_ranks(out, e);
}

/* ---- JSON ---- */

static void put_parts(struct json_out *json, const char *key, const double *part_s)
{
    json_begin_object(json, key);
    for (int part = 0; part < EXPLAIN_PART_COUNT; part++)
        json_put_number(json, explain_part_name((enum explain_part)part), part_s[part]);
    json_end_object(json);
}

void explain_report_print_json(struct json_out *json, const struct explanation *e)
{
    command_begin_json(json, "explain");
    json_put_number(json, "predicted_s", e->predicted_s);
    json_put_number(json, "measured_s", e->measured_s);
    json_put_number(json, "match_rate", e->match_rate);
    json_put_count(json, "steps", e->steps);
    json_put_count(json, "rank", e->rank[e->slowest].rank);
    json_begin_array(json, "causes");
    for (size_t i = 0; i < e->causes; i++) {
        json_begin_object(json, NULL);
        json_put_text(json, "cause", e->cause[i].name);
        json_put_text(json, "text", e->cause[i].text);
        json_put_count(json, "rank",
                       e->cause[i].rank >= 0 ? (uint64_t)e->cause[i].rank : UINT64_MAX);
        json_put_number(json, "more_s", e->cause[i].seconds);
        json_end_object(json);
    }
    json_end_array(json);
    json_begin_array(json, "ranks");
    for (size_t i = 0; i < e->ranks; i++) {
        json_begin_object(json, NULL);
        json_put_count(json, "rank", e->rank[i].rank);
        put_parts(json, "predicted_s", e->rank[i].predicted_s);
        put_parts(json, "measured_s", e->rank[i].measured_s);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
    text_putc(json->out, '\n');
}
