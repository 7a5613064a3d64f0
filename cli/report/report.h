/* cli/report/report.h: what `predict` prints: at most 16 lines, or the same as JSON. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "base/text.h"
#include "cli/json_out.h"
#include "models/mfu.h"
#include "predict/alternatives.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"

struct report {
    const struct prediction *prediction; /* simulated */
    const char *profile;                 /* as asked for: "published" */
    const struct alternative *best;      /* NULL: nothing else was tried */
    const struct operator_times *part;   /* of a part of the model; NULL: a whole step */
    double total_tokens;                 /* of a whole training; 0: not asked for */
    double price;                        /* of a GPU-hour; 0: not given */
    const char *warning;                 /* of what was filled in, a line; NULL: none */
    const char *command;                 /* that made it; NULL: none */
    const char *model, *cluster, *costs; /* what the options named; NULL: nothing */
};

void report_print(struct text *out, const struct report *report);
/* The line "what": model, sequences, cluster and every choice. */
void report_print_choices(struct text *out, const struct report *report);
/* The lines "interval", "beware", "training" and "next", those of them that there is something to say in. */
void report_print_notes(struct text *out, const struct report *report);

/* Appends to an empty text what a reader should not take the figures for; nothing: leaves it empty. */
void report_put_beware(struct text *out, const struct report *report);
void report_print_json(struct text *out, const struct report *report);
/* step_low_s and step_high_s of an object that is open, where there is an interval. */
void report_json_step_ends(struct json_out *json, const struct intervals *intervals, double step_s);
/* A verdict's members, of an object that is open. */
void report_json_verdict(struct json_out *json, const struct verdict *verdict);

/* Seconds in a unit that fits, as many decimals as make five digits of `whole`. */
struct report_time {
    double unit_s;
    int decimals;
    const char *name;
};
struct report_time report_time_for(double whole_s);
/* Appends "12.345 s", with the decimals of `whole_s`. */
void report_put_time(struct text *out, double seconds, double whole_s);

/* Rounds parts to the unit's last decimal so that their sum is the rounded whole: rounded[i] counts
 * last decimals. */
void report_round(const double *part_s, size_t count, double whole_s, struct report_time time,
                  long long *rounded);

#endif
