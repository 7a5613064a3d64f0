/* cli/report/report.h: what `predict` prints: one screen, the same with every detail (--all), or JSON.
 *
 * The screen has the verdict, the figures, where the step goes and what fills memory as bars, how sure that is, and
 * commands to try next (summary.c, next.c; recorded.c and recorded_next.c for recorded programs); documents.c,
 * routing.c and part.c add lines, notes.c the warning and the whole training, details.c what --all adds. json.c has the
 * report as JSON, report_tables.c the tables. configuration.c and report.c have texts and times that screens and pages
 * share.
 *
 * The folder cli/report/ prints a prediction as text and as JSON. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "base/json_write.h"
#include "base/text.h"
#include "cli/common/options.h"
#include "cli/common/rows.h"
#include "cli/common/sheet.h"
#include "models/mfu.h"
#include "predict/alternatives.h"
#include "predict/documents/batches.h"
#include "predict/intervals.h"
#include "predict/operator_times.h"
#include "predict/prediction.h"
#include "predict/result_names.h"
#include "predict/routing/routing_draws.h"

/* The indices of report_tables[], the tables of `predict --json` that the screen does not print as tables. */
enum {
    REPORT_TABLE_MACHINE,
    REPORT_TABLE_LINKS,
    REPORT_TABLE_NEVER_MEASURED,
    REPORT_TABLE_MODULES,
    REPORT_TABLE_OPERATORS,
    REPORT_TABLE_ASSUMPTIONS,
    REPORT_TABLE_PRODUCTS,
    REPORT_TABLE_COUNT
};
extern const struct row_table report_tables[REPORT_TABLE_COUNT];

/* The indices of report_document_tables[], the tables of `predict --json --documents`. REPORT_PACKED: the packed step
 * that the report is about; REPORT_BATCH: each of several packed steps; REPORT_LATE: in a packed step, the rank whose
 * attention most often takes longest. */
enum { REPORT_PACKED, REPORT_BATCH, REPORT_LATE, REPORT_DOCUMENT_TABLE_COUNT };
extern const struct row_table report_document_tables[REPORT_DOCUMENT_TABLE_COUNT];

/* The columns of the table of pipeline stages: the stage's role, and its seconds by cause. */
struct report_stage_columns {
    struct result_name key[CAUSE_COUNT];
    struct column column[1 + CAUSE_COUNT];
};
/* Fills the columns and returns their table, which is valid as long as *columns. */
struct row_table report_make_stage_row_table(struct report_stage_columns *columns);

struct report {
    /* ---- the contents of the report ---- */
    const struct prediction *prediction; /* must have been simulated */
    /* times of a part of the model; NULL: the report is about a whole step */
    const struct operator_times *times_of_model_part;
    /* the options that would help most, if any would; NULL: they were not searched for */
    const struct alternative *best_alternative;

    /* ---- packed documents ---- */
    const struct packed_batch *packed_batch; /* the documents of the step; NULL: none were given */
    /* the times of several packed steps, the first of which has the documents of packed_batch; NULL: only one step was
     * predicted */
    const struct batch_times *batch_times;
    const struct packed_batch *packed_batches; /* [batch_times->batch_count] */

    /* ---- uneven routing ---- */
    const struct routing_draws *uneven_routing_cost; /* NULL, or not is_uneven: routing is even */

    /* ---- a whole training run ---- */
    double training_run_tokens; /* 0: not given */
    double price_per_gpu_hour;  /* 0: not given */

    /* ---- texts ---- */
    const char *profile;                 /* the profile's name in the request: "published" */
    const char *model, *cluster, *costs; /* names that the options gave; NULL: none */
    /* a line about options that were filled in; NULL: none */
    const char *filled_in_options_warning;
    const char *command;      /* the command that made the report; NULL: none */
    const char *plan_command; /* a command that searches all layouts; NULL: none */

    /* ---- the form in which the report is printed ---- */
    enum mfu_convention mfu; /* how the MFU on the screen counts flops */
    bool shows_all;          /* the screen has every detail */
};

/* ---- the screen ---- */

/* Prints the screen: the sections that the functions below print, and those of summary.c. */
void report_print(const struct screen *screen, const struct report *report);

/* Writes the member "sheet" into the open object: the screen with all details, from which its page is made. */
void report_json_sheet(struct json_out *json, const struct report *report);

/* Prints the sentences "A measured step takes 5.82 to 7.65 s in 9 of 10 cases; never measured: ..." and "A GPU needs
 * ..."; and, for a configuration that fits although its interval exceeds the device's memory, how much of it is cache.
 * Prints nothing if there is no interval. */
void report_print_intervals(struct sheet *sheet, const struct intervals *intervals, double step_s,
                            const struct verdict *verdict);

/* Prints the line "products" of a step of step_s seconds: by how much products in 8 or 4 bits are
 * shorter or longer, and which share of the step their casts take. recipe: the value of --products;
 * NULL: not known. Prints nothing if the step has no such products. */
void report_print_products(struct sheet *sheet, const struct prediction_products *products,
                           const char *recipe, double step_s);

/* Prints how the documents were packed and the times of all batches, if documents were given. Prints how attention
 * is divided over ranks, also for the documents of a core plan. */
void report_print_documents(struct sheet *sheet, const struct report *report);

/* Prints the MFU of a recorded program, if its flops are known. */
void report_print_recorded_mfu(struct sheet *sheet, const struct prediction *prediction);
/* Prints how long the kernels of each module of a recorded program take, the longest first. */
void report_print_modules(struct sheet *sheet, const struct report *report);

/* Prints what uneven routing costs; nothing if routing is even. */
void report_print_routing(struct sheet *sheet, const struct report *report);

/* Prints how long a whole training of report->training_run_tokens takes and, if report->price_per_gpu_hour
 * is not 0, what it costs; nothing if training_run_tokens is 0. */
void report_print_training_run(struct sheet *sheet, const struct report *report);

/* Prints what --all adds to the screen. */
void report_print_details(struct sheet *sheet, const struct report *report);

/* Prints the commands that the user may try next. */
void report_print_commands_to_try(struct sheet *sheet, const struct report *report);
/* Prints what would help a recorded program, by the causes of its time and memory. */
void report_print_recorded_next(struct sheet *sheet, const struct report *report);

/* ---- JSON ---- */

/* Appends the whole report as one JSON object. */
void report_print_json(struct text *out, const struct report *report);

/* Fills a row of the table REPORT_TABLE_PRODUCTS: the seconds of products in 8 or 4 bits, of the same products in the
 * dtype of the step, and of the casts. */
void report_fill_products(struct rows *rows, const struct prediction_products *products);

/* Writes into the open object the members "division", how attention is divided over ranks, "packed", the packed
 * step, and "batches", the times of several packed steps. Leaves out those that are not known. */
void report_json_documents(struct json_out *json, const struct report *report);
/* Writes the object "uneven_routing": what uneven routing costs. Writes nothing if routing is even. */
void report_json_routing(struct json_out *json, const struct report *report);

/* Writes the object "recording" of a recorded step: where it comes from, its modules, and what was guessed. */
void report_json_recording(struct json_out *json, const struct prediction *prediction);

/* Writes the object "run", the features by which a measured run is compared with others, if the prediction has them. */
void report_json_run_features(struct json_out *json, const struct prediction *prediction);

/* Writes the members `step_low_s` and `step_high_s` into the open object, if there is an interval. */
void report_json_step_interval(struct json_out *json, const struct intervals *intervals,
                               double step_s);

/* Writes the members of a verdict into the open object. */
void report_json_verdict(struct json_out *json, const struct verdict *verdict);

/* ---- texts and numbers that screens and pages share ---- */

/* If at least this share of the compute time has costs outside of the calibrated sizes, a report says so, unless steps
 * were measured on the device. It says, too, if kernels of which only the bytes are known take at least this share of
 * the time of all kernels of a recorded step. */
#define REPORT_EXTRAPOLATED_SHARE 0.005

/* The number of steps of a training on training_run_tokens tokens, and how long they take. If several packed steps were
 * predicted, both follow from the means of their tokens and of their seconds. */
struct report_training_run {
    double step_count, seconds, gpu_hours;
};
struct report_training_run report_make_training_run(const struct report *report);

/* Appends to an empty text a warning of how the numbers could be misread; nothing if there is no such warning. */
void report_put_warnings_in_one_line(struct text *out, const struct report *report);
/* Appends what a step computes and on which GPUs: "llama3-8b, 1 sequence of 128K tokens a step, 8
 * GPUs of dgx-h100". The model is left out if a schedule file does not give it; a recorded step has
 * report_put_torch_version_and_rank() in place of the sequences. */
void report_put_workload(struct text *line, const struct report *report);
/* Appends where a recorded step comes from: "recorded with PyTorch 2.15.0: rank 0 of 64, 5599
 * events" or, for several stages, "recorded with PyTorch 2.15.0: 2 stages, ranks 0, 8 of 16, 9000
 * events". */
void report_put_torch_version_and_rank(struct text *line, const struct prediction *prediction);
/* Appends how sure the prediction of a recorded step is: which recorded steps were compared with a GPU, how many
 * kernels have no known flops or have measured times, and what the recording guessed. */
void report_put_recorded_warning(struct text *out, const struct prediction *prediction);
/* Appends the strategy, its degrees of parallelism and its pipeline to an empty line: "ulysses hp=2 dp=1, pp=4
 * 1f1b". */
void report_put_strategy(struct text *line, const struct prediction *prediction);
/* Appends the choices that are known to an empty line: "ulysses hp=8 dp=1, weights zero3, ...". */
void report_put_choices(struct text *line, const struct report *report);
/* Appends the times of a part of the model to an empty line. */
void report_put_times_of_model_part(struct text *line, const struct report *report);
/* Appends a piece to a line, after ", " unless the line is empty, and empties the piece. */
void report_put_piece_after_comma(struct text *line, struct text *piece);

/* Appends a command with further options. Options of the command that have the name of a further one, or contradict
 * one, are left out. */
void report_put_command_with_options(struct text *out, const char *command, const char *options);

/* ---- times ---- */

/* The format of a group of times: the largest unit of which their sum has at least 1 (else us), and as many decimals,
 * at most 3, as leave the sum up to five digits: 1.234 s, 12.345 s, 123.45 s. */
struct report_time_format {
    double seconds_per_unit; /* 1e-3 for ms */
    int decimals;            /* how many decimals are printed */
    const char *name;        /* the unit: "s", "ms" or "us" */
};
struct report_time_format report_time_format_for(double whole_s);
/* Appends seconds such as "12.345 s", in the unit and with the decimals that suit `whole_s`. */
void report_put_time(struct text *out, double seconds, double whole_s);

/* Rounds each part up or down to a multiple of the last decimal that `time` prints, so that the parts add up to the
 * rounded whole. rounded[i]: the part as the number of such multiples. */
void report_round_parts(const double *part_s, size_t count, double whole_s,
                        struct report_time_format time, long long *rounded);

#endif
