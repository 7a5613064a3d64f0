#include "cli/validate/pages.h"

#include "base/c_locale.h"
#include "base/file_set.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/validate/open_table.h"
#include "predict/validate/error_means.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct accuracy_page_inputs {
    const struct validation *figures;
    const struct external_validation *steps;
    const struct residuals *runs;
    const struct evidence *interval_evidence;
};

/* Appends a text to a cell of a Markdown table. It escapes '|', and replaces line ends by blanks, since either would
 * end the cell. */
static void put_cell(struct text *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '|')
            text_puts(out, "\\|");
        else
            text_putc(out, *c == '\n' ? ' ' : *c);
}

/* ---- blocks ---- */

static const char block_begin[] = "<!-- generated: ", block_end[] = "<!-- end -->\n";

/* Replaces the block `name` of the document of `path`, or adds it at the end. Refuses a block without an end mark,
 * since it is not known which text after it was written by hand. */
static enum status replace_or_add_block(struct text *document, const char *path, const char *name,
                                        const struct text *content, struct diag *diag)
{
    struct text head = {0}, whole = {0};
    text_printf(&head, "%s%s -->\n", block_begin, name);
    const char *data = document->data == NULL ? "" : document->data;
    const char *begin = strstr(data, head.data);
    const char *end = begin == NULL ? NULL : strstr(begin, block_end);
    size_t before = begin == NULL ? document->size : (size_t)(begin - data);
    const char *next = begin == NULL ? NULL : strstr(begin + head.size, block_begin);
    if (begin != NULL && (end == NULL || (next != NULL && next < end))) {
        enum status status =
            diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                       "the block '%s' has no end; put the line '%.*s' after its last line", name,
                       (int)(sizeof block_end - 2), block_end);
        text_release(&head);
        return status;
    }
    text_append(&whole, data, before);
    if (begin == NULL && before > 0)
        text_putc(&whole, '\n');
    text_append(&whole, head.data, head.size);
    text_append(&whole, content->data, content->size);
    text_puts(&whole, block_end);
    if (end != NULL)
        text_puts(&whole, end + sizeof block_end - 1);
    text_release(&head);
    text_release(document);
    *document = whole;
    return STATUS_OK;
}

/* ---- figures ---- */

static bool is_row_of_source(const struct validation *v, size_t i, const char *source)
{
    return strcmp(v->rows->rows[i].cells[EXTERNAL_SOURCE], source) == 0;
}

static void put_means(struct text *out, const struct validation *v, const char *source)
{
    bool *done = heap_zalloc(v->rows->row_count + 1, sizeof *done);
    text_puts(out, "| place | metric | values | mean | worst |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < v->rows->row_count; i++) {
        if (done[i] || !v->row[i].counts_in_means || !is_row_of_source(v, i, source))
            continue;
        const struct error_means means = validation_table_means(v, i, done);
        text_printf(out, "| %s | %s | %zu | %.1f %% | %+.1f %% |\n",
                    v->rows->rows[i].cells[EXTERNAL_PLACE], v->rows->rows[i].cells[EXTERNAL_METRIC],
                    means.count, 100 * error_means_mean_absolute(&means), 100 * means.worst_error);
    }
    free(done);
}

static void put_figure(struct text *out, const struct validation *v, size_t i)
{
    const struct external_run *row = &v->rows->rows[i];
    const struct validated_row *judged = &v->row[i];
    text_printf(out, "| %s | %s, %s", row->cells[EXTERNAL_PLACE], row->cells[EXTERNAL_FRAMEWORK],
                row->cells[EXTERNAL_MODEL]);
    if (row->gpus > 0)
        text_printf(out, ", %lld GPU%s", (long long)row->gpus, row->gpus == 1 ? "" : "s");
    if (row->seq_len > 0) {
        text_puts(out, ", ");
        units_put_tokens(out, row->seq_len);
    }
    text_puts(out, " | ");
    put_cell(out, row->cells[EXTERNAL_ARGS]);
    text_printf(out, " | %s ", row->cells[EXTERNAL_METRIC]);
    if (row->is_number)
        text_printf(out, "%.7g | ", row->value);
    else
        text_printf(out, "%s | ", row->cells[EXTERNAL_VALUE]);
    if (judged->result.predicted_text != NULL)
        put_cell(out, judged->result.predicted_text);
    else if (!isnan(judged->result.predicted))
        text_printf(out, row->metric == METRIC_MAX_SEQ_LEN ? "%.0f" : "%.4g",
                    judged->result.predicted);
    text_puts(out, " | ");
    if (isnan(judged->result.relative_error))
        text_puts(out, measurement_outcome_name(judged->result.outcome));
    else
        text_printf(out, judged->counts_in_means ? "%+.1f %%" : "(%+.1f %%)",
                    100 * judged->result.relative_error);
    text_puts(out, " | ");
    const char *note =
        judged->result.status_reason != NULL ? judged->result.status_reason : judged->remark;
    put_cell(out, note != NULL ? note : "");
    text_puts(out, " |\n");
}

static void put_published_figures(struct text *out, const struct validation *v, const char *source)
{
    put_means(out, v, source);
    text_puts(out, "\n| place | run | options | printed | predicted | error | note |\n"
                   "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < v->rows->row_count; i++)
        if (is_row_of_source(v, i, source) && v->row[i].result.outcome != OUTCOME_NOT_COMPARABLE)
            put_figure(out, v, i);
}

/* ---- training steps ---- */

static void put_step_row(struct text *out, const struct external_run *row,
                         const struct external_prediction *result)
{
    text_printf(out, "| %s | %s on %s %s, ", row->cells[EXTERNAL_ID], row->cells[EXTERNAL_MODEL],
                row->cells[EXTERNAL_GPUS], row->cells[EXTERNAL_GPU]);
    units_put_tokens(out, row->seq_len);
    text_printf(out,
                row->is_counted ? " | %.4g | %.4g | %+.1f %% | " : " | %.4g | %.4g | (%+.1f %%) | ",
                row->step_s, result->step_s, 100 * result->relative_error);
    if (!isnan(result->memory_error))
        text_printf(out, "%s %s: %+.1f %%", row->cells[EXTERNAL_SECOND_METRIC],
                    row->cells[EXTERNAL_SECOND_VALUE], 100 * result->memory_error);
    text_puts(out, " | ");
    put_cell(out, external_is_run_as_described(row) ? "" : row->cells[EXTERNAL_AS_RUN]);
    if (!row->is_counted) {
        text_puts(out, external_is_run_as_described(row) ? "not counted: " : "; not counted: ");
        put_cell(out, row->cells[EXTERNAL_COUNTS]);
    }
    text_puts(out, " |\n");
}

static void put_step_table(struct text *out, const struct external_validation *v,
                           const char *source)
{
    text_puts(out, "| row | run | measured s | predicted s | error of speed | memory | nearest |\n"
                   "| --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < v->runs->row_count; i++)
        if (strcmp(v->runs->rows[i].cells[EXTERNAL_SOURCE], source) == 0)
            put_step_row(out, &v->runs->rows[i], &v->result[i]);
}

static void put_mean_and_worst_error(struct text *out, const char *by, const char *name,
                                     const struct error_means *means)
{
    if (means->count > 0)
        text_printf(out, "| %s | %s | %zu | %.1f %% | %+.1f %% | %+.1f %% |\n", by, name,
                    means->count, 100 * error_means_mean_absolute(means),
                    100 * error_means_mean_signed(means), 100 * means->worst_error);
}

/* Appends a line with the errors of the training steps of a set. device, framework: only steps on this device, or
 * with this framework, are taken; NULL: all are. */
static void put_errors_of_step_group(struct text *out, const struct external_validation *v,
                                     const char *set, const char *by, const char *name,
                                     const char *device, const char *framework)
{
    struct error_means means = {0};
    for (size_t i = 0; i < v->runs->row_count; i++) {
        const struct external_run *row = &v->runs->rows[i];
        double error = external_row_time_error_if_counted(v, i);
        if (v->result[i].outcome == OUTCOME_PREDICTION_FAILED || isnan(error) ||
            !external_is_in_set(row, set) ||
            (device != NULL && !external_row_is_of_gpu(row, device)) ||
            (framework != NULL && strcmp(row->cells[EXTERNAL_FRAMEWORK], framework) != 0))
            continue;
        error_means_add(&means, error);
    }
    put_mean_and_worst_error(out, by, name, &means);
}

/* Appends the errors of memory for a source that says which memory it prints. */
static void put_memory(struct text *out, const struct external_validation *v, const char *source)
{
    struct error_means means = {0};
    for (size_t i = 0; i < v->runs->row_count; i++) {
        double error = external_row_memory_error_if_counted(v, i);
        if (strcmp(v->runs->rows[i].cells[EXTERNAL_SOURCE], source) == 0 && !isnan(error))
            error_means_add(&means, error);
    }
    put_mean_and_worst_error(out, "memory", source, &means);
}

/* Appends the errors of the memory of a set, by what its sources call the memory: all that is allocated, or reserved.
 * Appends then those of reserved memory that is at least 0.4 of the device's. */
static void put_errors_by_memory_kind(struct text *out, const struct external_validation *v,
                                      const char *set)
{
    struct error_means means[MEMORY_KIND_COUNT] = {0}, large = {0};
    for (size_t i = 0; i < v->runs->row_count; i++) {
        const struct external_run *row = &v->runs->rows[i];
        double error = external_row_memory_error_if_counted(v, i);
        if (!external_is_in_set(row, set) || isnan(error))
            continue;
        error_means_add(&means[external_metric_memory_kind(row->second_metric)], error);
        if (!isnan(external_row_large_reserved_error(v, i)))
            error_means_add(&large, error);
    }
    put_mean_and_worst_error(out, "memory", "all that is allocated", &means[MEMORY_KIND_ALLOCATED]);
    put_mean_and_worst_error(out, "memory", "all that is reserved", &means[MEMORY_KIND_RESERVED]);
    put_mean_and_worst_error(out, "memory", "of which at least 0.4 of the device's", &large);
}

/* Returns whether an earlier row has the same text in a column. */
static bool earlier_row_has_text(const struct external_validation *v, size_t i,
                                 enum external_column column)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(v->runs->rows[k].cells[column], v->runs->rows[i].cells[column]) == 0)
            return true;
    return false;
}

static void put_groups(struct text *out, const struct external_validation *v, const char *set)
{
    static const char *const devices[] = {"a100",  "h100",  "b200", "h200",
                                          "gb200", "gh200", "b300", "gb300"};
    text_puts(out, "| by | | runs | mean of absolute errors | mean | worst |\n"
                   "| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        put_errors_of_step_group(out, v, set, "device", devices[i], devices[i], NULL);
    for (size_t i = 0; i < v->runs->row_count; i++) {
        const char *framework = v->runs->rows[i].cells[EXTERNAL_FRAMEWORK];
        if (!earlier_row_has_text(v, i, EXTERNAL_FRAMEWORK))
            put_errors_of_step_group(out, v, set, "framework", framework, NULL, framework);
    }
    put_errors_of_step_group(out, v, set, "all", "all", NULL, NULL);
    for (size_t i = 0; i < v->runs->row_count; i++)
        if (!earlier_row_has_text(v, i, EXTERNAL_SOURCE) &&
            external_is_in_set(&v->runs->rows[i], set))
            put_memory(out, v, v->runs->rows[i].cells[EXTERNAL_SOURCE]);
    put_errors_by_memory_kind(out, v, set);
}

/* ---- documents ---- */

/* Adds a document, in which some blocks are replaced, to the files that are written. */
static enum status add_document(struct file_set *files, const char *folder, const char *name,
                                const char *title, const char *const *block,
                                const struct text *content, size_t blocks, struct diag *diag)
{
    struct text path = {0}, document = {0};
    enum status status = STATUS_OK;
    text_printf(&path, "%s/%s", folder, name);
    if (path_exists(path.data))
        status = text_read(&document, path.data, diag);
    else
        text_printf(&document, "# %s\n", title);
    for (size_t i = 0; status == STATUS_OK && i < blocks; i++)
        status = replace_or_add_block(&document, path.data, block[i], &content[i], diag);
    if (status == STATUS_OK)
        status = file_set_add(files, path.data, document.data, document.size, diag);
    text_release(&path);
    text_release(&document);
    return status;
}

/* Appends the file name of a source's page: "accuracy/fpdt.md" for "FPDT". Characters other than letters and digits
 * become '-'. */
static void put_page_file_name(struct text *out, const char *source)
{
    text_puts(out, "accuracy/");
    for (const char *c = source; *c != '\0'; c++)
        text_putc(out, c_is_alnum(*c) ? c_lower(*c) : '-');
    text_puts(out, ".md");
}

static enum status add_page(struct file_set *files, const char *folder,
                            const struct accuracy_page_inputs *p, const char *source,
                            bool is_figures, struct diag *diag)
{
    static const char *const block = "rows";
    struct text name = {0}, title = {0}, content = {0};
    put_page_file_name(&name, source);
    text_printf(&title, "Accuracy: %s", source);
    if (is_figures)
        put_published_figures(&content, p->figures, source);
    else
        put_step_table(&content, p->steps, source);
    enum status status =
        add_document(files, folder, name.data, title.data, &block, &content, 1, diag);
    text_release(&name);
    text_release(&title);
    text_release(&content);
    return status;
}

static enum status add_pages(struct file_set *files, const char *folder,
                             const struct accuracy_page_inputs *p, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct external_runs *rows = p->figures->rows;
    for (size_t i = 0; status == STATUS_OK && i < rows->row_count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= is_row_of_source(p->figures, k, rows->rows[i].cells[EXTERNAL_SOURCE]);
        if (!seen)
            status = add_page(files, folder, p, rows->rows[i].cells[EXTERNAL_SOURCE], true, diag);
    }
    const struct external_runs *runs = p->steps->runs;
    for (size_t i = 0; status == STATUS_OK && i < runs->row_count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= strcmp(runs->rows[k].cells[EXTERNAL_SOURCE],
                           runs->rows[i].cells[EXTERNAL_SOURCE]) == 0;
        if (!seen)
            status = add_page(files, folder, p, runs->rows[i].cells[EXTERNAL_SOURCE], false, diag);
    }
    return status;
}

/* Adds accuracy.md, with a block of sources, and one of training steps for each set of rows. */
static enum status add_overview(struct file_set *files, const char *folder,
                                const struct accuracy_page_inputs *p, struct diag *diag)
{
    enum { MOST = 8 };
    const struct external_runs *runs = p->steps->runs;
    struct text content[MOST] = {{0}}, name[MOST] = {{0}};
    const char *block[MOST] = {NULL};
    size_t blocks = 1;
    enum status status = STATUS_OK;
    text_puts(&name[0], "sources");
    open_table_print_accuracy(&content[0], p->runs, p->interval_evidence, true);
    for (size_t i = 0; i < runs->row_count; i++) {
        const char *set = runs->rows[i].cells[EXTERNAL_SET];
        if (!external_is_first_of_set(runs, i))
            continue;
        if (blocks == MOST) {
            status = diag_error(diag, runs->rows[i].place, STATUS_BAD_INPUT,
                                "column 'set': '%.100s' is one set more than the %d that a page "
                                "has tables for",
                                set, MOST - 1);
            break;
        }
        text_printf(&name[blocks], "training steps%s%s", set[0] == '\0' ? "" : " ", set);
        put_groups(&content[blocks++], p->steps, set);
    }
    for (size_t i = 0; i < blocks; i++)
        block[i] = name[i].data;
    if (status == STATUS_OK)
        status =
            add_document(files, folder, "accuracy.md", "Accuracy", block, content, blocks, diag);
    for (size_t i = 0; i < blocks; i++) {
        text_release(&content[i]);
        text_release(&name[i]);
    }
    return status;
}

enum status validation_write_pages(const char *folder, const struct validation *validation,
                                   const struct external_validation *external,
                                   const struct residuals *runs, const struct evidence *from,
                                   struct diag *diag)
{
    const struct accuracy_page_inputs pages = {validation, external, runs, from};
    struct file_set files = {0};
    struct text below = {0};
    text_printf(&below, "%s/accuracy", folder);
    enum status status = STATUS_OK;
    if (mkdir(below.data, 0777) != 0 && errno != EEXIST)
        status = diag_error(diag, (struct loc){.name = "--pages"}, STATUS_SYSTEM,
                            "cannot make the folder '%s': %s", below.data, strerror(errno));
    if (status == STATUS_OK)
        status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = add_overview(&files, folder, &pages, diag);
    if (status == STATUS_OK)
        status = add_pages(&files, folder, &pages, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    text_release(&below);
    return status;
}
