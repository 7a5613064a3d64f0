#include "predict/reproduce/reproduction.h"

#include "base/data_path.h"
#include "base/units.h"
#include "predict/reproduce/placement.h"
#include "predict/validate/subsequence_row.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct validated_run) <= REPRODUCTION_ANSWER_MAX, "an answer fits");
_Static_assert(sizeof(struct cell_answer) <= REPRODUCTION_ANSWER_MAX, "an answer fits");

void reproduction_release(struct reproduction *r)
{
    validation_release(&r->validation);
    external_release(&r->rows);
    catalogue_release(&r->catalogue);
    free(r->job);
    free(r->cell_answer);
    free(r->point);
    arena_release(&r->arena);
    *r = (struct reproduction){0};
}

/* ---- the plan: points and the jobs that they need ---- */

static size_t add_job(struct reproduction *r, const struct reproduction_job *job)
{
    for (size_t i = 0; i < r->job_count; i++)
        if (strcmp(r->job[i].key, job->key) == 0)
            return i;
    r->job = heap_grow(r->job, &r->job_capacity, r->job_count + 1, sizeof *r->job);
    r->job[r->job_count] = *job;
    if (job->kind == JOB_PREDICT_CELL)
        r->job[r->job_count].index_among_jobs_of_kind = r->cell_count++;
    return r->job_count++;
}

static struct reproduction_point *add_point(struct reproduction *r, size_t entry,
                                            const struct place_in_figure *at)
{
    int64_t tokens;
    r->point = heap_grow(r->point, &r->point_capacity, r->point_count + 1, sizeof *r->point);
    struct reproduction_point *point = &r->point[r->point_count++];
    *point = (struct reproduction_point){.entry = entry,
                                         .panel = at->panel,
                                         .series = at->series,
                                         .x = at->x,
                                         .x_value = NAN,
                                         .published = NAN,
                                         .predicted = NAN,
                                         .error = NAN,
                                         .outcome = OUTCOME_OK,
                                         .row = SIZE_MAX};
    if (!parse_double(at->x, strlen(at->x), &point->x_value) &&
        units_parse_tokens(at->x, strlen(at->x), &tokens, (struct loc){0}, NULL) == STATUS_OK)
        point->x_value = (double)tokens;
    return point;
}

static bool selects_row(const struct catalogue_row_selector *rows, const struct external_run *row)
{
    if (strcmp(row->cells[EXTERNAL_SOURCE], rows->source) != 0 ||
        strcmp(row->cells[EXTERNAL_PLACE], rows->paper_table) != 0 ||
        (rows->framework != NULL && strcmp(row->cells[EXTERNAL_FRAMEWORK], rows->framework) != 0))
        return false;
    for (size_t i = 0; i < rows->metric_count; i++)
        if (strcmp(rows->metric[i], row->cells[EXTERNAL_METRIC]) == 0)
            return true;
    return rows->metric_count == 0;
}

/* Returns the key of a run: its options and the question about it. A run that two tables show has the same key in
 * both. */
static const char *job_key_of_run(struct reproduction *r, size_t run)
{
    const struct external_run *row = &r->rows.rows[r->validation.first_row_of_each_run[run]];
    struct text key = {0};
    text_printf(&key, "rows %s%s|%s", r->validation.does_run_need_times[run] ? "timed " : "",
                row->cells[EXTERNAL_ARGS], row->cells[EXTERNAL_AGAINST]);
    if (row->metric == METRIC_MAX_SEQ_LEN || row->metric == METRIC_SPEEDUP ||
        subsequence_predicts_metric(row->metric))
        text_printf(&key, "|%s %s", row->cells[EXTERNAL_METRIC], row->cells[EXTERNAL_COUNTS]);
    const char *kept = arena_text(&r->arena, key.data, key.size);
    text_release(&key);
    return kept;
}

static void add_rows_jobs(struct reproduction *r, size_t entry,
                          const struct catalogue_row_selector *rows)
{
    for (size_t i = 0; i < r->rows.row_count; i++) {
        const struct external_run *row = &r->rows.rows[i];
        if (!selects_row(rows, row))
            continue;
        struct place_in_figure at;
        placement_in_figure_of_row(&at, &rows->placement, row, &r->arena);
        struct reproduction_point *point = add_point(r, entry, &at);
        point->row = i;
        point->job = SIZE_MAX;
        if (row->is_number)
            point->published = row->value;
        else
            point->published_text = row->cells[EXTERNAL_VALUE];
        size_t run = r->validation.row[i].run_index;
        if (run == SIZE_MAX)
            continue;
        const struct reproduction_job job = {.kind = JOB_PREDICT_VALIDATION_RUN,
                                             .key = job_key_of_run(r, run),
                                             .index_among_jobs_of_kind = run};
        size_t added = add_job(r, &job);
        r->point[r->point_count - 1].job = added;
        r->job_index_of_each_run[run] = added;
    }
}

static void add_cell_jobs(struct reproduction *r, size_t entry, const struct catalogue_grid *grid,
                          size_t which, size_t cell)
{
    struct text args = {0};
    struct place_in_figure at;
    enum cell_question question = measure_needed_question(grid->measure);
    text_puts(&args, grid->args);
    if (grid->case_count > 0)
        text_printf(&args, " %s", grid->name_args[which]);
    for (size_t a = 0; a < grid->axes.axis_count; a++)
        text_printf(&args, " --%s %s", grid->axes.axis[a].key,
                    grid_value_text(&grid->axes, cell, a));
    placement_in_figure_of_cell(&at, grid, which, cell, &r->arena);
    const struct reproduction_job job = {
        .kind = JOB_PREDICT_CELL,
        .key = arena_printf(&r->arena, "%s%s %s", cell_question_names[question],
                            grid->simulates_unfit ? " unfit too" : "", args.data),
        .args = arena_text(&r->arena, args.data, args.size),
        .question = question,
        .simulates_unfit = grid->simulates_unfit};
    size_t added = add_job(r, &job);
    struct reproduction_point *point = add_point(r, entry, &at);
    point->job = added;
    point->measure = grid->measure;
    if (grid->published_value_of_each_point != NULL)
        point->published =
            grid->published_value_of_each_point[which * grid_point_count(&grid->axes) + cell];
    text_release(&args);
}

static void add_grid_jobs(struct reproduction *r, size_t entry, const struct catalogue_grid *grid)
{
    size_t cases = grid->case_count > 0 ? grid->case_count : 1, first = r->point_count;
    for (size_t which = 0; which < cases; which++)
        for (size_t cell = 0; cell < grid_point_count(&grid->axes); cell++)
            add_cell_jobs(r, entry, grid, which, cell);
    for (size_t cell = 0; grid->token_share != NULL && cell < grid_point_count(&grid->axes);
         cell++) {
        struct place_in_figure at;
        placement_in_figure_of_cell(&at, grid, 0, cell, &r->arena);
        at.series = grid->combined_series;
        struct reproduction_point *point = add_point(r, entry, &at);
        point->job = SIZE_MAX;
        point->measure = grid->measure;
        point->grid_of_combined_series = grid;
        point->point_of_first_case = first + cell;
    }
}

static void add_entry_jobs(struct reproduction *r, size_t e)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    for (size_t i = 0; i < entry->row_selection_count; i++)
        add_rows_jobs(r, e, &entry->rows[i]);
    for (size_t i = 0; i < entry->grid_count; i++)
        add_grid_jobs(r, e, &entry->grid[i]);
    for (size_t i = 0; i < entry->timeline_count; i++) {
        const struct reproduction_job job = {.kind = JOB_TRACE,
                                             .key = arena_printf(&r->arena, "trace %s %zu %s",
                                                                 entry->name[0], i + 1,
                                                                 entry->timeline[i].args),
                                             .args = entry->timeline[i].args,
                                             .index_among_jobs_of_kind = i,
                                             .entry = e};
        add_job(r, &job);
    }
}

enum status reproduction_open(struct reproduction *r, const char *path, run_setup_function *load,
                              struct diag *diag)
{
    struct text rows = {0};
    *r = (struct reproduction){.setup_loader = load};
    enum status status = catalogue_load(&r->catalogue, path, diag);
    if (status == STATUS_OK)
        status = data_path(&rows, "traces/published/measurements.csv", diag);
    if (status == STATUS_OK)
        status = external_load(&r->rows, arena_text(&r->arena, rows.data, rows.size), diag);
    text_release(&rows);
    if (status != STATUS_OK)
        return status;
    r->validation.setup_loader = load;
    validation_plan_runs(&r->validation, &r->rows);
    r->job_index_of_each_run =
        arena_array(&r->arena, r->validation.run_count + 1, sizeof *r->job_index_of_each_run);
    for (size_t i = 0; i < r->validation.run_count; i++)
        r->job_index_of_each_run[i] = SIZE_MAX;
    for (size_t e = 0; e < r->catalogue.entry_count; e++)
        add_entry_jobs(r, e);
    r->cell_answer = heap_zalloc(r->cell_count + 1, sizeof *r->cell_answer);
    return STATUS_OK;
}

/* ---- jobs ---- */

static void mark_jobs_of_points(struct reproduction *r, size_t entry)
{
    for (size_t i = 0; i < r->point_count; i++)
        if (r->point[i].entry == entry && r->point[i].job != SIZE_MAX)
            r->job[r->point[i].job].is_wanted = true;
}

enum status reproduction_mark_entry_jobs_wanted(struct reproduction *r, size_t e, struct diag *diag)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    mark_jobs_of_points(r, e);
    for (size_t i = 0; i < entry->claim_count; i++) {
        const struct point_selector *of[] = {&entry->claim[i].left, &entry->claim[i].right};
        for (size_t k = 0; k < ARRAY_LEN(of); k++) {
            size_t other = e;
            if (of[k]->entry == NULL)
                continue;
            enum status status = catalogue_find(&r->catalogue, of[k]->entry, &other, diag);
            if (status != STATUS_OK)
                return status;
            mark_jobs_of_points(r, other);
        }
    }
    for (size_t i = 0; i < r->job_count; i++)
        if (r->job[i].kind == JOB_TRACE && r->job[i].entry == e)
            r->job[i].is_wanted = true;
    return STATUS_OK;
}

size_t reproduction_answer_size(const struct reproduction *r, size_t job)
{
    static const size_t sizes[] = {[JOB_PREDICT_VALIDATION_RUN] = sizeof(struct validated_run),
                                   [JOB_PREDICT_CELL] = sizeof(struct cell_answer),
                                   [JOB_TRACE] = 0};
    return sizes[r->job[job].kind];
}

void reproduction_do_job(const struct reproduction *r, size_t j, void *answer)
{
    const struct reproduction_job *job = &r->job[j];
    assert(job->kind != JOB_TRACE);
    if (job->kind == JOB_PREDICT_VALIDATION_RUN) {
        validation_predict(&r->validation, job->index_among_jobs_of_kind, answer);
        return;
    }
    struct setup setup = {0};
    struct diag diag = {0};
    enum mfu_convention unused;
    if (r->setup_loader(&setup, &unused, job->args, "reproduce", &diag) == STATUS_OK)
        cell_predict(answer, &setup, job->question, job->simulates_unfit);
    else
        cell_set_error(answer, &diag);
    setup_release(&setup);
    diag_release(&diag);
}

void reproduction_store_answer(struct reproduction *r, size_t j, const void *answer)
{
    struct reproduction_job *job = &r->job[j];
    job->is_done = true;
    for (size_t i = 0; job->kind == JOB_PREDICT_VALIDATION_RUN && i < r->validation.run_count; i++)
        if (r->job_index_of_each_run[i] == j)
            memcpy(&r->validation.answer[i], answer, sizeof(struct validated_run));
    if (job->kind == JOB_PREDICT_CELL)
        memcpy(&r->cell_answer[job->index_among_jobs_of_kind], answer, sizeof(struct cell_answer));
}

/* ---- the judgement of points ---- */

static void judge_row(struct reproduction *r, struct reproduction_point *point)
{
    const struct external_run *row = &r->rows.rows[point->row];
    const struct validated_row *judged = &r->validation.row[point->row];
    point->outcome = judged->result.outcome;
    point->predicted = judged->result.predicted;
    point->predicted_text = judged->result.predicted_text;
    point->error = judged->result.relative_error;
    point->counts_in_means = judged->counts_in_means;
    point->reason =
        judged->result.status_reason != NULL ? judged->result.status_reason : judged->remark;
    if (row->metric == METRIC_PEAK_HBM && !external_is_run_as_described(row)) {
        point->counts_in_means = false;
        point->reason = row->cells[EXTERNAL_AS_RUN];
    }
}

/* Compares a predicted value with a published one. Lengths and verdicts are right or wrong. Other values are wrong if
 * the step is predicted not to fit; else they have a relative error, unless the published value is 0. */
static void judge_published(struct reproduction_point *point)
{
    bool exact = point->measure == MEASURE_LONGEST || point->measure == MEASURE_FITS;
    if (exact || point->predicted_text != NULL) {
        bool right = exact && point->predicted == point->published;
        point->outcome = right ? OUTCOME_RIGHT : OUTCOME_WRONG;
        return;
    }
    point->counts_in_means = point->published > 0;
    if (point->counts_in_means)
        point->error = point->predicted / point->published - 1;
    else
        point->outcome = OUTCOME_PUBLISHED_ZERO;
}

static void judge_cell(struct reproduction *r, struct reproduction_point *point)
{
    const struct cell_answer *answer = &r->cell_answer[r->job[point->job].index_among_jobs_of_kind];
    if (!answer->has_succeeded) {
        point->outcome = OUTCOME_PREDICTION_FAILED;
        point->reason = answer->error;
        return;
    }
    point->predicted = answer->value[point->measure];
    if (!answer->fits && measure_needs_fit(point->measure)) {
        point->predicted_text = "OOM";
        point->reason = answer->missing_memory_name;
    }
    if (!isnan(point->published))
        judge_published(point);
}

/* Gives a point of a combined series the rate of its cases, one after another, once all of them are done. If a case
 * does not fit or failed, the point gets the outcome of the first such case. */
static void fill_point_of_combined_series(const struct reproduction *r,
                                          struct reproduction_point *point)
{
    const struct catalogue_grid *grid = point->grid_of_combined_series;
    double per_token = 0;
    point->is_done = true;
    for (size_t i = 0; i < grid->case_count; i++)
        point->is_done &=
            r->point[point->point_of_first_case + i * grid_point_count(&grid->axes)].is_done;
    for (size_t i = 0; i < grid->case_count && point->is_done; i++) {
        const struct reproduction_point *part =
            &r->point[point->point_of_first_case + i * grid_point_count(&grid->axes)];
        if (part->predicted_text != NULL || part->outcome == OUTCOME_PREDICTION_FAILED) {
            point->predicted_text = part->predicted_text;
            point->outcome = part->outcome;
            point->reason = part->reason;
            return;
        }
        assert(part->predicted > 0 && "a rate");
        per_token += grid->token_share[i] / part->predicted;
    }
    if (point->is_done)
        point->predicted = 1 / per_token;
}

void reproduction_judge_points(struct reproduction *r)
{
    for (size_t run = 0; run < r->validation.run_count; run++)
        if (!r->validation.answer[run].has_succeeded && r->validation.answer[run].error[0] == '\0')
            strcpy(r->validation.answer[run].error, "not predicted");
    validation_judge(&r->validation);
    for (size_t i = 0; i < r->point_count; i++) {
        struct reproduction_point *point = &r->point[i];
        if (point->grid_of_combined_series != NULL) { /* its cases come before it */
            fill_point_of_combined_series(r, point);
            continue;
        }
        if (point->job != SIZE_MAX && !r->job[point->job].is_done)
            continue;
        point->is_done = true;
        if (point->row != SIZE_MAX)
            judge_row(r, point);
        else
            judge_cell(r, point);
    }
}
