/* Prints which documents the sequences of a step hold, how attention is divided over ranks, and the times of steps
 * with other documents. */
#include "base/units.h"
#include "cli/report/report.h"
#include "predict/attention_division.h"

#include <string.h>

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column late_columns[] = {
    {"rank", NULL, NULL, COLUMN_COUNT, 0, "The rank whose attention takes longest in the most micro-batches; the lowest of those with the same documents and context index."},
    {"micro_batches", NULL, NULL, COLUMN_COUNT, 0, "Micro-batches in which it is the slowest."},
    {"of", NULL, NULL, COLUMN_COUNT, 0, "Micro-batches of a data-parallel rank."},
    {"slowest_over_mean", NULL, NULL, COLUMN_NUMBER, 0, "Seconds of attention of each micro-batch's slowest rank over the mean of ranks, summed over micro-batches."},
};

/* Columns of a packed step: its time, and how its sequences are packed. The table of the step that the report is
 * about lacks the time, which is a member of the whole report. */
static const struct column batch_columns[] = {
    {"step_s", NULL, NULL, COLUMN_SECONDS, 0, "common.json"},
    {"documents", NULL, NULL, COLUMN_COUNT, 0, "Documents of the step; pieces of one that was cut count one by one."},
    {"document_tokens", NULL, NULL, COLUMN_COUNT, 0, "Tokens of documents: those that tokens_per_s_gpu counts."},
    {"padding_tokens", NULL, NULL, COLUMN_COUNT, 0, "The other tokens of the step's sequences."},
    {"padding_share", NULL, NULL, COLUMN_NUMBER, 0, "Padding over all tokens."},
    {"cut_documents", NULL, NULL, COLUMN_COUNT, 0, "How often a document lost its end or was cut in two."},
    {"dropped_tokens", NULL, NULL, COLUMN_COUNT, 0, "Tokens of ends that were lost."},
    {"visible_share", NULL, NULL, COLUMN_NUMBER, 0, "Pairs that attention computes, over those of causal attention over whole sequences."},
    {"squares_share", NULL, NULL, COLUMN_NUMBER, 0, "Sum of squared lengths of documents over that of sequences."},
    {"latest_rank", NULL, NULL, COLUMN_COUNT, 0, "The data-parallel rank with the most visible pairs."},
    {"latest_over_mean", NULL, NULL, COLUMN_NUMBER, 0, "Its pairs over the mean of data-parallel ranks."},
    {"late", NULL, NULL, COLUMN_NESTED_ROW | COLUMN_OPTIONAL, 0, "late"},
};
/* clang-format on */

const struct row_table report_document_tables[REPORT_DOCUMENT_TABLE_COUNT] = {
    [REPORT_PACKED] = {"predict_packed", batch_columns + 1, ARRAY_LEN(batch_columns) - 1},
    [REPORT_BATCH] = {"predict_batch", batch_columns, ARRAY_LEN(batch_columns)},
    [REPORT_LATE] = {"late", late_columns, ARRAY_LEN(late_columns)},
};

static double percent_of(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static double padding_percent(const struct packed_batch *b)
{
    return percent_of((double)b->padding_tokens, (double)(b->document_tokens + b->padding_tokens));
}

/* Appends a rank with its indices on the data-parallel and context axes that have more than one
 * rank: "rank 5 (dp=1 cp=2)". */
static void put_rank_and_indices(struct text *line, const struct mesh *mesh, uint32_t rank)
{
    uint32_t coordinate_by_axis[MESH_AXES_MAX];
    const char *before = " (";
    mesh_coordinates(mesh, rank, coordinate_by_axis);
    text_printf(line, "rank %u", rank);
    for (uint32_t a = 0; a < mesh->axis_count; a++) {
        const char *name = mesh->axis[a].name;
        if (mesh->axis[a].size == 1 || (strncmp(name, "dp", 2) != 0 && strncmp(name, "cp", 2) != 0))
            continue;
        text_printf(line, "%s%s=%u", before, name, coordinate_by_axis[a]);
        before = " ";
    }
    text_puts(line, before[1] == '(' ? "" : ")");
}

static void put_latest_rank_and_unit_count(struct text *line, const struct report *r,
                                           struct document_lateness_of_ranks late)
{
    put_rank_and_indices(line, &r->prediction->ir.mesh, late.rank_late_most_often);
    text_printf(line, " has the longest attention of all ranks in %u of %u micro-batches",
                late.late_unit_count, late.unit_count);
}

/* Prints how unevenly attention is divided over ranks: the visible pairs of the rank that has the most, the rows of
 * keys and values that ranks receive, and lower bounds of these rows. Prints nothing if the division is not known. */
static void print_attention_division(struct sheet *sheet, const struct report *r)
{
    struct attention_division d;
    struct text line = {0};
    if (!attention_division(&d, r->prediction))
        return;
    text_printf(&line,
                "the fullest rank sees %.3f times the mean pairs; ranks receive keys and values of "
                "%.2f times their own tokens on average, %.2f at most",
                d.pairs_over_mean, d.mean_rows_received, d.most_rows_received);
    text_printf(&line, "; with queries at home at least %.2f on average",
                d.mean_rows_received_lower_bound);
    if (d.mean_rows_received_lower_bound > 0)
        text_printf(&line, ", which this is %.2f times",
                    d.mean_rows_received / d.mean_rows_received_lower_bound);
    text_printf(&line, "; in any division some rank at least %.2f",
                d.most_rows_received_lower_bound);
    if (d.step_to_even_step_ratio > 0)
        text_printf(&line, "; step %.3f times that of even pairs and no wait for keys",
                    d.step_to_even_step_ratio);
    sheet_put_line(sheet, "division", line.data);
    text_release(&line);
}

static void put_attention_division(struct json_out *w, const struct report *r)
{
    struct attention_division d;
    if (!attention_division(&d, r->prediction))
        return;
    json_begin_object(w, "division");
    json_put_number(w, "pairs_over_mean", d.pairs_over_mean);
    json_put_number(w, "mean_rows", d.mean_rows_received);
    json_put_number(w, "most_rows", d.most_rows_received);
    json_put_number(w, "least_mean_rows", d.mean_rows_received_lower_bound);
    json_put_number(w, "least_rows", d.most_rows_received_lower_bound);
    if (d.step_to_even_step_ratio > 0)
        json_put_number(w, "step_over_least", d.step_to_even_step_ratio);
    json_end_object(w);
}

void report_print_documents(struct sheet *sheet, const struct report *r)
{
    const struct packed_batch *b = r->packed_batch;
    const struct batch_times *t = r->batch_times;
    struct text line = {0};
    if (b == NULL) { /* a core plan has documents of its own */
        print_attention_division(sheet, r);
        return;
    }
    text_printf(&line, "%llu, of %lld tokens together; padding %.1f %%; ",
                (unsigned long long)b->document_count, (long long)b->document_tokens,
                padding_percent(b));
    if (b->truncated_or_cut_documents > 0)
        text_printf(&line, "%llu cut", (unsigned long long)b->truncated_or_cut_documents);
    if (b->truncated_or_cut_documents > 0)
        text_puts(&line, "; ");
    text_printf(
        &line, "visible pairs %.2f %% of causal, sum of squared lengths %.2f %% of the sequences'",
        percent_of(b->visible_pairs, b->causal_pairs), 100 * b->document_to_sequence_square_ratio);
    if (r->prediction->choices.dp > 1)
        text_printf(&line, "; data-parallel rank %u has the most pairs, %.2f times the mean",
                    b->fullest_rank, b->fullest_over_mean);
    sheet_put_line(sheet, "documents", line.data);
    if (r->prediction->lateness.unit_count > 0) {
        line.size = 0;
        put_latest_rank_and_unit_count(&line, r, r->prediction->lateness);
        text_printf(&line, "; the slowest rank of a micro-batch takes %.2f times the mean for it",
                    r->prediction->lateness.slowest_over_mean);
        sheet_put_line(sheet, "late ranks", line.data);
    }
    print_attention_division(sheet, r);
    if (t != NULL) {
        line.size = 0;
        text_printf(&line, "%zu steps: median ", t->batch_count);
        report_put_time(&line, t->spread.median_s, t->spread.longest_s);
        text_puts(&line, ", 90 % at most ");
        report_put_time(&line, t->spread.percentile_90_s, t->spread.longest_s);
        text_puts(&line, ", worst ");
        report_put_time(&line, t->spread.longest_s, t->spread.longest_s);
        text_printf(&line, " (batch %zu", t->slowest_batch);
        if (r->prediction->choices.dp > 1)
            text_printf(&line, ", where data-parallel rank %u has %.2f times the mean of pairs",
                        r->packed_batches[t->slowest_batch].fullest_rank,
                        r->packed_batches[t->slowest_batch].fullest_over_mean);
        if (t->lateness[t->slowest_batch].unit_count > 0) {
            text_puts(&line, ", ");
            put_latest_rank_and_unit_count(&line, r, t->lateness[t->slowest_batch]);
        }
        text_printf(&line, "); %.1f tokens/s/GPU, padding %.1f %%",
                    t->tokens_per_s / prediction_gpus(r->prediction), 100 * t->padding_share);
        if (t->simulated_layers > 0)
            text_printf(&line,
                        "; how much the others differ from the first was simulated on %lld of %lld "
                        "layers",
                        (long long)t->simulated_layers,
                        (long long)r->prediction->choices.model->layers);
        sheet_put_line(sheet, "batches", line.data);
    }
    text_release(&line);
}

static void put_late_rank(struct rows *rows, struct document_lateness_of_ranks late)
{
    struct rows one;
    if (late.unit_count == 0) {
        rows_skip_column(rows);
        return;
    }
    rows_begin_nested_row(&one, rows, &report_document_tables[REPORT_LATE]);
    rows_put_number(&one, late.rank_late_most_often);
    rows_put_number(&one, late.late_unit_count);
    rows_put_number(&one, late.unit_count);
    rows_put_number(&one, late.slowest_over_mean);
    rows_end(&one);
}

static void put_packed_batch(struct rows *rows, const struct packed_batch *b,
                             struct document_lateness_of_ranks late)
{
    rows_put_number(rows, (double)b->document_count);
    rows_put_number(rows, (double)b->document_tokens);
    rows_put_number(rows, (double)b->padding_tokens);
    rows_put_number(rows, padding_percent(b) / 100);
    rows_put_number(rows, (double)b->truncated_or_cut_documents);
    rows_put_number(rows, (double)b->dropped_tokens);
    rows_put_number(rows, b->visible_pairs / b->causal_pairs);
    rows_put_number(rows, b->document_to_sequence_square_ratio);
    rows_put_number(rows, b->fullest_rank);
    rows_put_number(rows, b->fullest_over_mean);
    put_late_rank(rows, late);
}

void report_json_documents(struct json_out *w, const struct report *r)
{
    const struct batch_times *t = r->batch_times;
    put_attention_division(w, r);
    if (r->packed_batch == NULL)
        return;
    struct rows rows = {.json = w};
    rows_begin_single_row(&rows, "packed", &report_document_tables[REPORT_PACKED]);
    put_packed_batch(&rows, r->packed_batch, r->prediction->lateness);
    rows_end(&rows);
    if (t == NULL)
        return;
    json_begin_object(w, "batches");
    json_put_number(w, "median_step_s", t->spread.median_s);
    json_put_number(w, "high_step_s", t->spread.percentile_90_s);
    json_put_number(w, "worst_step_s", t->spread.longest_s);
    json_put_count(w, "worst_batch", t->slowest_batch);
    json_put_number(w, "mean_tokens_per_s_gpu", t->tokens_per_s / prediction_gpus(r->prediction));
    json_put_number(w, "mean_padding_share", t->padding_share);
    if (t->simulated_layers > 0)
        json_put_count(w, "layers", (uint64_t)t->simulated_layers);
    rows_begin(&rows, "by_batch", NULL, &report_document_tables[REPORT_BATCH]);
    for (size_t i = 0; i < t->batch_count; i++) {
        rows_put_number(&rows, t->step_s[i]);
        put_packed_batch(&rows, &r->packed_batches[i], t->lateness[i]);
    }
    rows_end(&rows);
    json_end_object(w);
}
