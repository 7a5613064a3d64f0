#include "predict/sweep/point.h"

#include "predict/longhaul.h"
#include "predict/recorded_modules.h"
#include "predict/result_names.h"
#include "predict/setup/choice_rows.h"
#include "traces/records.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const sweep_status_names[SWEEP_STATUS_COUNT] = {"fits", "may fit", "does not fit",
                                                            "refused", "failed"};

/* ---- cells, the header, and rows of failures ---- */

/* The destination of the cells of a row, or of the header with the names of the columns. The same calls make both, so
 * that they cannot disagree. */
struct sweep_row_writer {
    struct text *out;
    bool prints_names, is_first;
};

static void begin_csv_cell(struct sweep_row_writer *cells)
{
    if (!cells->is_first)
        text_putc(cells->out, ',');
    cells->is_first = false;
}

/* Puts a text cell. value NULL: it is not known, and the cell stays empty. */
static void put_text(struct sweep_row_writer *cells, const char *name, const char *value)
{
    begin_csv_cell(cells);
    if (cells->prints_names)
        records_append_field(cells->out, name);
    else if (value != NULL && value[0] != '\0')
        records_append_field(cells->out, value);
}

static void put_number(struct sweep_row_writer *cells, const char *name, bool known, double value)
{
    begin_csv_cell(cells);
    if (cells->prints_names)
        records_append_field(cells->out, name);
    else if (known)
        text_put_double(cells->out, value);
}

/* Puts a cell of bytes. For infinite memory, UINT64_MAX, the cell stays empty. */
static void put_bytes(struct sweep_row_writer *cells, const char *name, bool known, uint64_t value)
{
    put_number(cells, name, known && value != UINT64_MAX, (double)value);
}

/* Puts the cells of the choices. c NULL: they are not known, and the cells stay empty. */
static void put_choices(struct sweep_row_writer *cells, const struct choices *c)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        struct choice_value value[CHOICE_VALUES_MAX];
        const size_t count = choice_row_fill_values(&choice_rows[i], value, c);
        for (size_t k = 0; k < count; k++) {
            const struct choice_value *v = &value[k];
            char column[40];
            snprintf(column, sizeof column, "chosen_%s", v->key);
            if (v->form == CHOICE_NAMED || v->form == CHOICE_TRUTH)
                put_text(cells, column, v->has_value ? choice_value_name(v) : NULL);
            else
                put_number(cells, column, v->has_value,
                           v->form == CHOICE_NUMBER ? v->real_number : (double)v->whole_number);
        }
    }
}

/* Puts the cells of times. MFU and HFU are known only for a whole step, not for a part of the model (--scope). */
static void put_time_cells(struct sweep_row_writer *cells, const struct prediction *p,
                           const struct prediction_result *r)
{
    const struct interval *interval = &r->intervals.intervals_by_quantity[RESIDUAL_TIME];
    bool has_interval = r->is_whole_step && intervals_are_known(&r->intervals, RESIDUAL_TIME);
    put_number(cells, "step_s", r->has_times, r->step_s);
    put_number(cells, "step_low_s", has_interval, interval_low(interval, r->step_s));
    put_number(cells, "step_high_s", has_interval, interval_high(interval, r->step_s));
    /* The tokens of all ranks are not known for a recorded step. */
    put_number(cells, "tokens_per_s_gpu", r->has_times && !prediction_is_recorded(p),
               r->tokens_per_s_gpu);
    /* Of a recorded step only the MFU by convention longhaul is known, by the flops of its kernels. */
    const bool recorded = r->has_times && prediction_is_recorded(p);
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
        put_number(cells, result_name_of_mfu((enum mfu_convention)i).text,
                   r->is_whole_step && (p->has_choices || (recorded && i == MFU_LONGHAUL)),
                   recorded ? recorded_modules_mfu(p) : r->mfu[i]);
    put_number(cells, "hfu", r->is_whole_step, r->hfu);
    put_number(cells, "extrapolated_share", r->has_times, p->extrapolated_share);
    put_text(cells, "extrapolated_why", r->has_times ? p->extrapolation_reason.data : NULL);
    for (int i = 0; i < CAUSE_COUNT; i++)
        put_number(cells, result_name_of_cause((enum cause)i).text, r->has_causes, r->cause_s[i]);
    const bool narrow = r->products.narrow_s > 0;
    put_number(cells, "narrow_products_s", narrow, r->products.narrow_s);
    put_number(cells, "wide_products_s", narrow, r->products.wide_s);
    put_number(cells, "casts_s", narrow, r->products.casts_s);
}

static void put_memory(struct sweep_row_writer *cells, const struct prediction *p,
                       const struct prediction_result *r, bool known)
{
    const struct verdict *v = &r->verdict;
    put_bytes(cells, "device_needed_bytes", known, v->needed_bytes[LIMIT_DEVICE]);
    put_bytes(cells, "device_available_bytes", known, v->available_bytes[LIMIT_DEVICE]);
    put_bytes(cells, "host_needed_bytes", known, v->needed_bytes[LIMIT_HOST]);
    put_bytes(cells, "host_available_bytes", known, v->available_bytes[LIMIT_HOST]);
    put_number(cells, "fits_probability", known, v->fits_probability);
    put_bytes(cells, "arena_bytes", known && !prediction_is_recorded(p), r->arena_bytes);
    put_bytes(cells, "reserved_bytes", known, r->reserved_bytes);
    put_bytes(cells, "peak_bytes", r->has_times, r->peak_bytes);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        put_bytes(cells, result_name_of_peak((enum category)i).text, r->has_times,
                  r->peak_category_bytes[i]);
}

static void put_point(struct sweep_row_writer *cells, const struct grid_axes *axes, size_t point)
{
    cells->is_first = true;
    for (size_t a = 0; a < axes->axis_count; a++)
        put_text(cells, axes->axis[a].key,
                 cells->prints_names ? "" : grid_value_text(axes, point, a));
}

static void put_outcome_cells(struct sweep_row_writer *cells, const struct prediction *p,
                              bool resolved, enum sweep_status status, const char *reason)
{
    struct prediction_result result;
    prediction_fill_result(&result, p);
    put_text(cells, "status", sweep_status_names[status]);
    put_text(cells, "reason", reason);
    put_time_cells(cells, p, &result);
    put_memory(cells, p, &result, resolved);
    put_choices(cells, resolved && p->has_choices ? &p->choices : NULL);
}

void sweep_put_columns(struct text *out, const struct grid_axes *axes)
{
    struct sweep_row_writer cells = {.out = out, .prints_names = true};
    struct prediction nothing = {0};
    put_point(&cells, axes, 0);
    put_outcome_cells(&cells, &nothing, false, SWEEP_FITS, NULL);
}

void sweep_put_failed_row(struct text *row, const struct grid_axes *axes, size_t point,
                          const char *reason)
{
    struct sweep_row_writer cells = {.out = row};
    struct prediction nothing = {0};
    put_point(&cells, axes, point);
    put_outcome_cells(&cells, &nothing, false, SWEEP_FAILED, reason);
}

/* ---- the row of a point ---- */

/* Appends all messages of diag on one line, for the cell `reason`. */
static void put_all_messages_on_one_line(struct text *out, const struct diag *diag)
{
    size_t size = 0;
    const char *first = diag_first_message(diag, &size);
    for (size_t i = first != NULL ? (size_t)(first - diag->text) : 0; i < diag->size; i++)
        if (diag->text[i] != '\n')
            text_putc(out, diag->text[i]);
        else if (i + 1 < diag->size)
            text_puts(out, "; ");
}

void sweep_put_refused_row(struct text *row, const struct grid_axes *axes, size_t point,
                           enum sweep_status status, const struct diag *diag)
{
    struct sweep_row_writer cells = {.out = row};
    struct prediction nothing = {0};
    struct text reason = {0};
    put_all_messages_on_one_line(&reason, diag);
    put_point(&cells, axes, point);
    put_outcome_cells(&cells, &nothing, false, status, reason.data);
    text_release(&reason);
}

enum sweep_status sweep_status_of_failure(enum status status)
{
    return status == STATUS_SYSTEM ? SWEEP_FAILED : SWEEP_REFUSED;
}

enum sweep_status sweep_point_predict(struct text *row, const struct grid_axes *axes, size_t point,
                                      const struct setup *setup, struct point_options options)
{
    const struct prediction_question question = {.setup = setup, .is_exact = options.is_exact};
    struct prediction p = {0};
    struct diag diag = {0};
    struct text reason = {0};
    enum sweep_status outcome = SWEEP_FITS;
    enum status status =
        options.recording != NULL
            ? prediction_memory_of_file(&p, &question, &options.recording, 1, &diag)
            : prediction_memory(&p, &question, NULL, &diag);
    bool resolved = status == STATUS_OK;
    if (status == STATUS_OK && (p.verdict.fits || options.simulates_unfit))
        status = prediction_time(&p, &diag);
    if (status == STATUS_OK && p.is_simulated)
        status = spreads_find(&p.spreads, &p, &diag);
    if (status != STATUS_OK) {
        outcome = sweep_status_of_failure(status);
        put_all_messages_on_one_line(&reason, &diag);
    } else if (!p.verdict.fits) {
        outcome = setup->mask_of_reasons_run_does_less != 0 ? SWEEP_MAY_FIT : SWEEP_DOES_NOT_FIT;
        if (outcome == SWEEP_MAY_FIT)
            text_puts(&reason, "at most, ");
        text_printf(&reason, "%s ", prediction_limit_name(p.verdict.limiting_memory));
        verdict_print(&reason, &p.verdict, p.verdict.limiting_memory);
    }
    struct sweep_row_writer cells = {.out = row};
    put_point(&cells, axes, point);
    put_outcome_cells(&cells, &p, resolved, outcome, reason.data);
    text_release(&reason);
    diag_release(&diag);
    prediction_release(&p);
    return outcome;
}
