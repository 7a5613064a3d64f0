#include "cli/validate/check_rows.h"

#include "cli/validate/external_setup.h"
#include "predict/validate/validation.h"
#include "schedule/config/resolve_config.h"
#include "traces/external.h"
#include "traces/records.h"

#include <math.h>
#include <string.h>

/* Two numbers of a run, one of which follows from the other, agree if they differ by at most this share. */
#define AGREEING_NUMBERS_SHARE 0.02

struct row_checker {
    const char *path;
    struct text columns;
    struct text *out;
    /* the rows that can be read, to compare rows with each other */
    struct external_runs readable_rows;
    size_t row_count, faulty_count;
    size_t unchecked_steps; /* training steps for which published_step_s() is NAN */
    bool has_fault;         /* a fault was found in the current row */
};

static void report_fault(struct row_checker *c, struct loc at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report_fault(struct row_checker *c, struct loc at, const char *format, ...)
{
    struct diag diag = {0};
    va_list args;
    va_start(args, format);
    diag_verror(&diag, at, STATUS_BAD_INPUT, format, args);
    va_end(args);
    text_append(c->out, diag.text, diag.size);
    diag_release(&diag);
    c->has_fault = true;
}

/* Reports the first message of another module as a fault of the row. */
static void report_fault_of_diag(struct row_checker *c, struct loc at, const struct diag *diag)
{
    size_t size = 0;
    const char *first = diag_first_message(diag, &size);
    if (first != NULL)
        report_fault(c, at, "%.*s", (int)size, first);
}

static bool are_values_close(double one, double other)
{
    return fabs(one / other - 1) <= AGREEING_NUMBERS_SHARE;
}

/* ---- training steps ---- */

static double number_in_column(const struct external_run *row, enum external_column column)
{
    double value;
    const char *text = row->cells[column];
    return parse_double(text, strlen(text), &value) ? value : (double)NAN;
}

/* Returns the seconds of a step that follow from the published number. NAN: none follow from it. From flop/s they do
 * not follow, since sources count flops in different ways. */
static double published_step_s(const struct external_run *row)
{
    double value = row->value * row->si_factor;
    double sequences = (double)row->global_batch, tokens = sequences * (double)row->seq_len;
    switch (row->metric) {
    case METRIC_STEP_MS:
        return value;
    case METRIC_TGS:
        return tokens / ((double)row->gpus * value);
    case METRIC_TOKENS_PER_S:
        return tokens / value;
    case METRIC_SEQUENCES_PER_S:
        return sequences / value;
    default:
        return NAN;
    }
}

/* Checks that a row's seconds of a step agree with the figure that its source printed. If no
 * seconds follow from that figure, only counts the row in c->unchecked_steps. */
static void check_published_step(struct row_checker *c, const struct external_run *row)
{
    double step_s = published_step_s(row);
    c->unchecked_steps += isnan(step_s);
    if (!isnan(step_s) && !are_values_close(step_s, row->step_s))
        report_fault(
            c, row->place,
            "measured_step_s is %.4g, and %s %s of %lld x %lld tokens on %lld GPUs are %.4g s",
            row->step_s, row->cells[EXTERNAL_METRIC], row->cells[EXTERNAL_VALUE],
            (long long)row->global_batch, (long long)row->seq_len, (long long)row->gpus, step_s);
}

/* ---- figures ---- */

static const struct external_run *find_row_of_same_run(const struct row_checker *c,
                                                       const struct external_run *row,
                                                       enum measurement_metric metric)
{
    for (const struct external_run *other = c->readable_rows.rows; other < row; other++)
        if (other->metric == metric && other->is_number &&
            validation_are_rows_of_one_run(other, row))
            return other;
    return NULL;
}

/* Checks that the tokens per second and the MFU of one run agree, since they are the same measurement. */
static void check_mfu(struct row_checker *c, const struct external_run *row,
                      const struct setup *setup, const struct choices *choices,
                      enum mfu_convention convention)
{
    bool is_mfu = row->metric == METRIC_MFU;
    const struct external_run *other =
        find_row_of_same_run(c, row, is_mfu ? METRIC_TGS : METRIC_MFU);
    if (other == NULL || !row->is_number || (!is_mfu && row->metric != METRIC_TGS))
        return;
    double tgs = is_mfu ? other->value : row->value, mfu = is_mfu ? row->value : other->value;
    double step_s =
        (double)choices->global_batch * (double)choices->seq / ((double)choices->ranks * tgs);
    double mfu_from_step =
        mfu_fraction(convention, &setup->model, choices->seq, choices->global_batch,
                     choices->activations != CHOICE_ACTIVATIONS_KEEP, step_s, choices->ranks,
                     setup->cluster.device.peak_bf16_flop_per_s);
    if (!are_values_close(mfu_from_step, mfu))
        report_fault(c, row->place,
                     "mfu is %.4g, and %.4g tokens/s/GPU (line %u) are %.4g by convention %s", mfu,
                     tgs, is_mfu ? other->place.line : row->place.line, mfu_from_step,
                     mfu_names[convention]);
}

static void check_not_duplicate(struct row_checker *c, const struct external_run *row)
{
    for (const struct external_run *other = c->readable_rows.rows; other < row; other++)
        if (other->metric == row->metric && validation_are_rows_of_one_run(other, row) &&
            strcmp(other->cells[EXTERNAL_AGAINST], row->cells[EXTERNAL_AGAINST]) == 0)
            report_fault(c, row->place, "is the same run and metric as line %u", other->place.line);
}

/* ---- all rows ---- */

/* Checks that the options in a column can be resolved. Checks also, for EXTERNAL_ARGS, that they agree with columns
 * such as `gpus` and `seq_len`, and that the MFU of a figure agrees with its tokens per second. */
static void check_args_column(struct row_checker *c, const struct external_run *row,
                              enum external_column column)
{
    struct setup setup = {0};
    struct choices choices;
    struct diag diag = {0};
    enum mfu_convention convention;
    enum status status =
        external_setup_read_args(&setup, &convention, row->cells[column], row->place.name, &diag);
    if (status == STATUS_OK)
        status = resolve_choices(&choices, &setup.request, NULL, &diag);
    if (status != STATUS_OK) {
        report_fault_of_diag(c, row->place, &diag);
    } else if (column == EXTERNAL_ARGS) {
        const struct {
            const char *what;
            int64_t column, args;
        } both[] = {{"gpus", row->gpus, choices.ranks},
                    {"seq_len", row->seq_len, choices.seq},
                    {"global_batch", row->global_batch, choices.global_batch},
                    {"tp", (int64_t)number_in_column(row, EXTERNAL_TP), choices.tp},
                    {"pp", (int64_t)number_in_column(row, EXTERNAL_PP), choices.pp}};
        for (size_t i = 0; i < ARRAY_LEN(both); i++)
            if (both[i].column > 0 && both[i].column != both[i].args)
                report_fault(c, row->place, "column '%s' is %lld, and args give %lld", both[i].what,
                             (long long)both[i].column, (long long)both[i].args);
        if (row->step_s == 0)
            check_mfu(c, row, &setup, &choices, convention);
    }
    diag_release(&diag);
    setup_release(&setup);
}

static void check_fields(struct row_checker *c, const struct external_run *row)
{
    check_args_column(c, row, EXTERNAL_ARGS);
    if (row->metric == METRIC_SPEEDUP)
        check_args_column(c, row, EXTERNAL_AGAINST);
    if (row->step_s > 0)
        check_published_step(c, row);
    else
        check_not_duplicate(c, row);
}

/* ---- the file ---- */

/* Reads one row by itself. The reader of files gets a text with only the line of columns and this row; empty lines
 * between them make the row's line number that in the file. */
static enum status read_single_row(struct row_checker *c, const struct record *record,
                                   struct diag *diag)
{
    struct text text = {0};
    text_append(&text, c->columns.data, c->columns.size);
    for (uint32_t line = 2; line < record->place.line; line++)
        text_putc(&text, '\n');
    records_append_fields(&text, record->fields, record->field_count);
    enum status status = external_parse(&c->readable_rows, c->path, text.data, text.size, diag);
    text_release(&text);
    return status;
}

static enum status check_row(void *context, const struct record *record, struct diag *diag)
{
    struct row_checker *c = context;
    struct diag own = {0};
    if (c->columns.size == 0) {
        records_append_fields(&c->columns, record->fields, record->field_count);
        text_putc(&c->columns, '\n');
        return external_parse(&c->readable_rows, c->path, c->columns.data, c->columns.size, diag);
    }
    c->row_count++;
    c->has_fault = false;
    size_t before = c->readable_rows.row_count;
    if (read_single_row(c, record, &own) != STATUS_OK) {
        text_append(c->out, own.text, own.size);
        c->has_fault = true;
        if (c->readable_rows.row_count > before) /* the fault was found after the row was added */
            c->readable_rows.row_count--;
    } else {
        check_fields(c, &c->readable_rows.rows[c->readable_rows.row_count - 1]);
    }
    c->faulty_count += c->has_fault;
    diag_release(&own);
    return STATUS_OK;
}

enum status validation_check_rows(struct text *out, const char *path, struct diag *diag)
{
    struct text file = {0};
    struct row_checker c = {.path = path, .out = out};
    const struct record_handler handler = {.context = &c, .row = check_row};
    enum status status = text_read(&file, path, diag);
    if (status == STATUS_OK)
        status = records_parse(path, file.data, file.size, &handler, diag);
    if (status == STATUS_OK && c.row_count == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "holds no rows: traces/published/README.md has the columns");
    if (status == STATUS_OK) {
        text_printf(out, "%zu rows: %zu with a fault\n", c.row_count, c.faulty_count);
        if (c.unchecked_steps > 0)
            text_printf(out,
                        "%zu of them printed flop/s, by a count of their own: their "
                        "measured_step_s was not checked\n",
                        c.unchecked_steps);
        status = c.faulty_count > 0 ? STATUS_NO : STATUS_OK;
    }
    external_release(&c.readable_rows);
    text_release(&c.columns);
    text_release(&file);
    return status;
}
