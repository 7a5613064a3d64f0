#include "cli/sweep/point.h"

#include "cli/idle_options.h"
#include "cli/setup/read_setup.h"
#include "predict/longhaul.h"
#include "traces/records.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *const sweep_status_names[SWEEP_STATUS_COUNT] = {"fits", "does not fit", "refused",
                                                            "failed"};

static const struct option rows[] = {
    {.name = "exact",
     .kind = OPTION_FLAG,
     .help = "simulate every rank: no folding, no even rings"},
    {.name = "unfit-too",
     .kind = OPTION_FLAG,
     .help = "simulate points that do not fit too: times as if there were memory"},
};
const struct option_set sweep_point_options = {"points", rows, ARRAY_LEN(rows)};

void sweep_predictor_release(struct sweep_predictor *predictor)
{
    setup_release(&predictor->setup);
    text_release(&predictor->loaded);
    *predictor = (struct sweep_predictor){0};
}

/* ---- cells ---- */

/* A row, or the names of its columns: the same calls make both. */
struct cells {
    struct text *out;
    bool names, first;
};

static void next_cell(struct cells *cells)
{
    if (!cells->first)
        text_putc(cells->out, ',');
    cells->first = false;
}

/* value NULL: not known */
static void put_text(struct cells *cells, const char *name, const char *value)
{
    next_cell(cells);
    if (cells->names)
        records_put_field(cells->out, name);
    else if (value != NULL && value[0] != '\0')
        records_put_field(cells->out, value);
}

static void put_number(struct cells *cells, const char *name, bool known, double value)
{
    next_cell(cells);
    if (cells->names)
        records_put_field(cells->out, name);
    else if (known)
        text_put_double(cells->out, value);
}

/* UINT64_MAX stands for no end, and leaves the cell empty. */
static void put_bytes(struct cells *cells, const char *name, bool known, uint64_t value)
{
    put_number(cells, name, known && value != UINT64_MAX, (double)value);
}

/* "all-to-all" as a part of a column's name: all_to_all. */
static const char *column(char *buffer, size_t size, const char *before, const char *name,
                          const char *after)
{
    snprintf(buffer, size, "%s%s%s", before, name, after);
    for (char *c = buffer; *c != '\0'; c++)
        if (strchr(" -/", *c) != NULL)
            *c = '_';
    return buffer;
}

static void put_choices(struct cells *cells, const struct prediction *p, bool known)
{
    const struct choices *c = &p->choices;
    size_t count;
    put_text(cells, "chosen_strategy", known ? compose_strategies(&count)[c->strategy].name : NULL);
    put_text(cells, "chosen_profile", known ? c->profile->name : NULL);
    put_number(cells, "chosen_gpus", known, c->ranks);
    put_number(cells, "chosen_tokens", known, (double)c->seq);
    put_number(cells, "chosen_sequences", known, (double)c->global_batch);
    put_number(cells, "chosen_dp", known, c->dp);
    put_number(cells, "chosen_cp", known, c->cp);
    put_number(cells, "chosen_hp", known, c->hp);
    put_text(cells, "chosen_weights", known ? weights_names[c->weights] : NULL);
    put_text(cells, "chosen_activations", known ? activations_names[c->activations] : NULL);
    put_text(cells, "chosen_attention",
             known ? attention_impl_name((enum attention_impl)c->attention_impl) : NULL);
    put_text(cells, "chosen_optimizer", known ? optimizer_names[c->optimizer] : NULL);
}

/* Of a part of the model (--scope) neither MFU nor HFU is known. */
static void put_times(struct cells *cells, const struct prediction *p,
                      const struct prediction_result *r)
{
    char name[64];
    const struct interval *interval = &r->intervals.of[RESIDUAL_TIME];
    bool has_interval = r->whole && intervals_known(&r->intervals, RESIDUAL_TIME);
    put_number(cells, "step_s", r->timed, r->step_s);
    put_number(cells, "step_low_s", has_interval, interval_low(interval, r->step_s));
    put_number(cells, "step_high_s", has_interval, interval_high(interval, r->step_s));
    put_number(cells, "tokens_per_s_gpu", r->timed, r->tokens_per_s_gpu);
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
        put_number(cells, column(name, sizeof name, "mfu_", mfu_table[i].name, ""), r->whole,
                   r->mfu[i]);
    put_number(cells, "hfu", r->whole, r->hfu);
    put_number(cells, "extrapolated", r->timed, p->extrapolated_share);
    for (int i = 0; i < CAUSE_COUNT; i++)
        put_number(cells, column(name, sizeof name, "", cause_name((enum cause)i), "_s"),
                   r->has_causes, r->cause_s[i]);
}

static void put_memory(struct cells *cells, const struct prediction_result *r, bool known)
{
    static const char *const limits[LIMIT_COUNT] = {"device", "host"};
    char name[64];
    for (int i = 0; i < LIMIT_COUNT; i++) {
        put_bytes(cells, column(name, sizeof name, limits[i], "_needed", "_bytes"), known,
                  r->verdict.needed[i]);
        put_bytes(cells, column(name, sizeof name, limits[i], "_available", "_bytes"), known,
                  r->verdict.available[i]);
    }
    put_bytes(cells, "arena_bytes", known, r->arena_bytes);
    put_bytes(cells, "reserved_bytes", known, r->reserved_bytes);
    put_bytes(cells, "peak_bytes", r->timed, r->peak_bytes);
    for (int i = 0; i < CATEGORY_COUNT; i++)
        put_bytes(cells,
                  column(name, sizeof name, "peak_", category_name((enum category)i), "_bytes"),
                  r->timed, r->peak_category_bytes[i]);
}

static void put_point(struct cells *cells, const struct sweep_grid *grid, size_t point)
{
    cells->first = true;
    for (size_t a = 0; a < grid->axis_count; a++)
        put_text(cells, grid->axis[a].key, cells->names ? "" : sweep_grid_value(grid, point, a));
}

static void put_rest(struct cells *cells, const struct prediction *p, bool resolved,
                     enum sweep_status status, const char *reason)
{
    struct prediction_result result;
    prediction_read(&result, p);
    put_text(cells, "status", sweep_status_names[status]);
    put_text(cells, "reason", reason);
    put_times(cells, p, &result);
    put_memory(cells, &result, resolved);
    put_choices(cells, p, resolved);
}

void sweep_put_columns(struct text *out, const struct sweep_grid *grid)
{
    struct cells cells = {.out = out, .names = true};
    struct prediction nothing = {0};
    put_point(&cells, grid, 0);
    put_rest(&cells, &nothing, false, SWEEP_FITS, NULL);
}

void sweep_put_failed(struct text *row, const struct sweep_grid *grid, size_t point,
                      const char *reason)
{
    struct cells cells = {.out = row};
    struct prediction nothing = {0};
    put_point(&cells, grid, point);
    put_rest(&cells, &nothing, false, SWEEP_FAILED, reason);
}

/* ---- predicting ---- */

/* Whether what an option says is loaded: the model and the cluster, not the choices. */
static const char *const loaded_options[] = {"model", "ignore", "set",      "cluster",
                                             "nodes", "gpus",   "loopback", "costs"};

static enum status load(struct sweep_predictor *predictor, const struct options *options,
                        struct diag *diag)
{
    struct text wanted = {0};
    for (size_t i = 0; i < ARRAY_LEN(loaded_options); i++) {
        const char *text = options_text(options, loaded_options[i]);
        text_printf(&wanted, "%s\n", text == NULL ? "" : text);
    }
    bool same = predictor->loaded.size == wanted.size &&
                memcmp(predictor->loaded.data, wanted.data, wanted.size) == 0;
    if (same && options_given(options, "seq")) {
        text_release(&wanted);
        return setup_choose(&predictor->setup, options, diag);
    }
    setup_release(&predictor->setup);
    predictor->loaded.size = 0;
    enum status status = setup_load(&predictor->setup, options, false, diag);
    if (status == STATUS_OK)
        text_append(&predictor->loaded, wanted.data, wanted.size);
    text_release(&wanted);
    return status;
}

/* All messages on one line, for a cell. */
static void put_reason(struct text *out, const struct diag *diag)
{
    size_t size = 0;
    const char *first = diag_first(diag, &size);
    for (size_t i = first != NULL ? (size_t)(first - diag->text) : 0; i < diag->size; i++)
        if (diag->text[i] != '\n')
            text_putc(out, diag->text[i]);
        else if (i + 1 < diag->size)
            text_puts(out, "; ");
}

enum sweep_status sweep_predict(struct sweep_predictor *predictor, size_t point, struct text *row)
{
    struct arena arena = {0};
    struct options options = {0};
    struct prediction p = {0};
    struct diag diag = {0};
    struct text reason = {0};
    enum sweep_status outcome = SWEEP_FITS;
    bool resolved = false;
    enum status status = sweep_grid_options(predictor->grid, point, &arena, &options, &diag);
    if (status == STATUS_OK)
        status = load(predictor, &options, &diag);
    if (status == STATUS_OK)
        status = prediction_memory(&p, &predictor->setup, &predictor->setup.request, NULL, &diag);
    resolved = status == STATUS_OK;
    if (status == STATUS_OK && (p.verdict.fits || options_given(&options, "unfit-too"))) {
        status = prediction_time(&p, options_given(&options, "exact"), &diag);
    }
    if (status != STATUS_OK) {
        outcome = status == STATUS_SYSTEM ? SWEEP_FAILED : SWEEP_REFUSED;
        put_reason(&reason, &diag);
    } else if (!p.verdict.fits) {
        outcome = SWEEP_DOES_NOT_FIT;
        text_printf(&reason, "%s ", prediction_limit_name(p.verdict.limit));
        verdict_print(&reason, &p.verdict, p.verdict.limit);
    }
    struct cells cells = {.out = row};
    put_point(&cells, predictor->grid, point);
    put_rest(&cells, &p, resolved, outcome, reason.data);
    text_release(&reason);
    diag_release(&diag);
    prediction_release(&p);
    options_release(&options);
    arena_release(&arena);
    return outcome;
}

/* Adds a point's options; returns whether those of further points can tell more. */
static bool add_idle(struct idle_options *idle, struct sweep_predictor *predictor, size_t point)
{
    struct arena arena = {0};
    struct options options = {0};
    struct choices choices;
    struct diag unread = {0};
    bool given = false;
    if (sweep_grid_options(predictor->grid, point, &arena, &options, &unread) == STATUS_OK) {
        given = idle_options_given(&options);
        if (given && load(predictor, &options, &unread) == STATUS_OK &&
            compose_resolve(&choices, &predictor->setup.request, NULL, &unread) == STATUS_OK)
            idle_options_add(idle, &options, &predictor->setup.request, &choices);
    }
    diag_release(&unread);
    options_release(&options);
    arena_release(&arena);
    return given && (idle->given == 0 || !idle_options_none(idle));
}

void sweep_note_idle(const struct sweep_grid *grid, struct diag *note)
{
    struct idle_options idle = {0};
    struct sweep_predictor predictor = {.grid = grid};
    for (size_t point = 0; point < grid->points; point++)
        if (!add_idle(&idle, &predictor, point))
            break;
    idle_options_note(&idle, note);
    sweep_predictor_release(&predictor);
}

enum status sweep_check_setup(const struct sweep_grid *grid, struct diag *diag)
{
    bool varies = false;
    for (size_t a = 0; a < grid->axis_count; a++)
        for (size_t i = 0; i < ARRAY_LEN(loaded_options); i++)
            varies |= grid->axis[a].of_cluster || strcmp(grid->axis[a].key, loaded_options[i]) == 0;
    struct arena arena = {0};
    struct options options = {0};
    struct setup setup = {0};
    enum status status = sweep_grid_options(grid, 0, &arena, &options, diag);
    if (status == STATUS_OK)
        status = compose_check_names(options_text(&options, "strategy"),
                                     options_text(&options, "profile"), diag);
    if (status == STATUS_OK && !varies)
        status = setup_load(&setup, &options, false, diag);
    setup_release(&setup);
    options_release(&options);
    arena_release(&arena);
    return status;
}
