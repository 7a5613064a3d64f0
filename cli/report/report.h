/* cli/report/report.h: what `predict` prints: one screen, the same with every detail (--all), or JSON.
 *
 * The screen has the verdict, the figures, where the step goes and what fills memory as bars, how sure that is, and
 * commands to try next (summary.c, next.c); details.c has what --all adds. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "base/text.h"
#include "cli/common/json_out.h"
#include "cli/common/options.h"
#include "cli/common/screen.h"
#include "models/mfu.h"
#include "predict/alternatives.h"
#include "predict/documents/batches.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"

struct report {
    const struct prediction *prediction;  /* simulated */
    const char *profile;                  /* as asked for: "published" */
    const struct alternative *best;       /* NULL: nothing else was tried */
    const struct packed_batch *documents; /* of the step; NULL: none were given */
    const struct batch_times
        *batches; /* of more steps, of which `documents` is the first; NULL: of none */
    const struct packed_batch *packed;   /* [batches->count] */
    const struct operator_times *part;   /* of a part of the model; NULL: a whole step */
    double total_tokens;                 /* of a whole training; 0: not asked for */
    double price;                        /* of a GPU-hour; 0: not given */
    const char *warning;                 /* of what was filled in, a line; NULL: none */
    const char *command;                 /* that made it; NULL: none */
    const char *plan_command;            /* that searches all layouts; NULL: none */
    enum mfu_convention mfu;             /* by which the screen shows MFU */
    bool all;                            /* the screen has every detail */
    const char *model, *cluster, *costs; /* what the options named; NULL: nothing */
};

void report_print(const struct screen *screen, const struct report *report);

/* The parts of a screen. */
/* The sentence "A measured step takes 5.82 to 7.65 s in 9 of 10 cases, to judge by 10 runs of ...", where there is an
 * interval. */
void report_print_sure_of(const struct screen *screen, const struct intervals *intervals,
                          enum residual_of of, double value);
/* What was packed, and the times of all batches. */
void report_print_documents(const struct screen *screen, const struct report *report);
void report_json_documents(struct json_out *json, const struct report *report);
void report_print_training(const struct screen *screen, const struct report *report);
void report_print_details(const struct screen *screen, const struct report *report);
void report_print_next(const struct screen *screen, const struct report *report);

/* Appends "llama3-8b, 1 sequence of 128K tokens a step, 8 GPUs of dgx-h100". */
void report_put_workload(struct text *line, const struct report *report);
/* Appends every choice to an empty line: "ulysses hp=8 dp=1, weights zero3, ...". */
void report_put_layout(struct text *line, const struct report *report);
/* Appends the times of a part of the model to an empty line. */
void report_put_part(struct text *line, const struct report *report);
/* Appends ", " and a piece to a line, and empties the piece. */
void report_put_piece(struct text *line, struct text *piece);

/* Appends a command with options added, in place of those that set the same. */
void report_put_command_with(struct text *out, const char *command, const char *options);

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
