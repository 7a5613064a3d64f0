#include "predict/documents/lengths.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/units.h"
#include "traces/records.h"

#include <assert.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct loc here = {.name = "--documents"};

void lengths_release(struct lengths *l)
{
    free(l->length_or_upto);
    free(l->batch_or_from);
    if (l->rng != NULL)
        gsl_rng_free(l->rng);
    if (l->table != NULL)
        gsl_ran_discrete_free(l->table);
    *l = (struct lengths){0};
}

/* ---- files ---- */

struct lengths_file_reader {
    struct lengths *lengths;
    size_t row_count, capacity;
};

static void add_length(struct lengths_file_reader *reading, int64_t batch, int64_t length)
{
    struct lengths *l = reading->lengths;
    if (l->length_count == reading->capacity) {
        reading->capacity = reading->capacity > 0 ? 2 * reading->capacity : 1024;
        l->length_or_upto =
            heap_realloc(l->length_or_upto, reading->capacity, sizeof *l->length_or_upto);
        l->batch_or_from =
            heap_realloc(l->batch_or_from, reading->capacity, sizeof *l->batch_or_from);
    }
    l->length_or_upto[l->length_count] = length;
    l->batch_or_from[l->length_count++] = batch;
}

static bool is_heading(struct lengths *l, const struct record *record)
{
    if (record->field_count == 2 && strcmp(record->fields[0], "batch") == 0 &&
        strcmp(record->fields[1], "length") == 0) {
        l->kind = LENGTHS_BY_BATCH_IN_FILE;
        return true;
    }
    return record->field_count == 1 && strcmp(record->fields[0], "length") == 0;
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct lengths_file_reader *reading = context;
    struct lengths *l = reading->lengths;
    int64_t batch = 0, length = 0;
    if (reading->row_count++ == 0 && is_heading(l, record))
        return STATUS_OK;
    size_t last = l->kind == LENGTHS_BY_BATCH_IN_FILE ? 1 : 0;
    if (record->field_count != last + 1)
        return diag_error(
            diag, record->place, STATUS_BAD_INPUT, "%zu fields; a line has %s (docs/documents.md)",
            record->field_count,
            last > 0 ? "a batch and a length"
                     : "a length, or, under the heading batch,length, a batch and a length");
    if (!parse_i64(record->fields[last], record->field_sizes[last], &length) || length < 1 ||
        length > LENGTH_TOKENS_MAX)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "'%s' is not a document's length in tokens, a whole number from 1 to "
                          "%lld",
                          record->fields[last], (long long)LENGTH_TOKENS_MAX);
    if (last > 0 && !parse_i64(record->fields[0], record->field_sizes[0], &batch))
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "'%s' is not the number of a batch", record->fields[0]);
    if (last > 0 && l->length_count > 0 && batch < l->batch_or_from[l->length_count - 1])
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "batch %lld comes after batch %lld; batches are in ascending order",
                          (long long)batch, (long long)l->batch_or_from[l->length_count - 1]);
    add_length(reading, batch, length);
    return STATUS_OK;
}

static enum status skip_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    (void)context, (void)at, (void)text, (void)size, (void)diag;
    return STATUS_OK;
}

static enum status read_length_file(struct lengths *l, const char *path, struct diag *diag)
{
    struct text text = {0};
    struct lengths_file_reader reading = {.lengths = l};
    const struct record_handler handler = {&reading, read_row, skip_comment};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = records_parse(path, text.data != NULL ? text.data : "", text.size, &handler, diag);
    if (status == STATUS_OK && l->length_count == 0)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "has no length of a document");
    text_release(&text);
    return status;
}

/* ---- distributions ---- */

/* Reads a number and a count of tokens: with tokens_first "MEDIAN,SIGMA", else "S,MAX". Returns false if the text is
 * not of that form. */
static bool parse_number_and_tokens(const char *text, bool tokens_first, double *number,
                                    int64_t *tokens)
{
    const char *comma = strchr(text, ',');
    if (comma == NULL)
        return false;
    size_t first = (size_t)(comma - text), second = strlen(comma + 1);
    const char *word = tokens_first ? comma + 1 : text;
    struct diag dropped_messages = {0};
    bool ok = parse_double(word, tokens_first ? second : first, number) && isfinite(*number) &&
              units_parse_tokens(tokens_first ? text : comma + 1, tokens_first ? first : second,
                                 tokens, here, &dropped_messages) == STATUS_OK;
    diag_release(&dropped_messages);
    return ok;
}

static enum status open_lognormal(struct lengths *l, const char *text, struct diag *diag)
{
    int64_t median = 0;
    l->kind = LENGTHS_LOGNORMAL;
    if (!parse_number_and_tokens(text, true, &l->sigma, &median) ||
        !(l->sigma >= 0 && l->sigma <= 10) || median > LENGTH_TOKENS_MAX)
        return diag_error(diag, here, STATUS_BAD_INPUT,
                          "'%s' is not lognormal:MEDIAN,SIGMA with the median in tokens, at most "
                          "1024G, and sigma from 0 to 10, such as lognormal:2K,1.5",
                          l->source_text);
    l->median = (double)median;
    return STATUS_OK;
}

static enum status open_zipf(struct lengths *l, const char *text, struct diag *diag)
{
    double s = 0;
    int64_t most = 0;
    l->kind = LENGTHS_ZIPF;
    if (!parse_number_and_tokens(text, false, &s, &most) || !(s > 0 && s <= 10) || most > ZIPF_MAX)
        return diag_error(diag, here, STATUS_BAD_INPUT,
                          "'%s' is not zipf:S,MAX with S above 0, at most 10, and MAX at most 4M "
                          "tokens, such as zipf:1.2,128K",
                          l->source_text);
    double *weight = heap_alloc((size_t)most, sizeof *weight);
    for (int64_t i = 0; i < most; i++)
        weight[i] = pow((double)(i + 1), -s);
    l->table = gsl_ran_discrete_preproc((size_t)most, weight);
    free(weight);
    return STATUS_OK;
}

/* ---- histograms ---- */

struct histogram_bins {
    struct lengths *lengths;
    double *document_share_of_each_bin; /* heap, [capacity] */
    size_t row_count, capacity;         /* row_count: rows of the file so far, with the heading */
};

static enum status read_histogram_row(void *context, const struct record *record, struct diag *diag)
{
    static const char *const heading[] = {"from", "upto", "share"};
    struct histogram_bins *bins = context;
    struct lengths *l = bins->lengths;
    bool is_heading = record->field_count == ARRAY_LEN(heading);
    for (size_t i = 0; i < ARRAY_LEN(heading) && is_heading; i++)
        is_heading = strcmp(record->fields[i], heading[i]) == 0;
    if (bins->row_count++ == 0)
        return is_heading ? STATUS_OK
                          : diag_error(diag, record->place, STATUS_BAD_INPUT,
                                       "a histogram begins with the heading from,upto,share");
    int64_t from = 0, upto = 0;
    double share = 0;
    if (record->field_count != ARRAY_LEN(heading) ||
        !parse_i64(record->fields[0], record->field_sizes[0], &from) ||
        !parse_i64(record->fields[1], record->field_sizes[1], &upto) ||
        !parse_double(record->fields[2], record->field_sizes[2], &share) || from < 1 ||
        upto < from || upto > LENGTH_TOKENS_MAX || !(share >= 0) || !isfinite(share))
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "a row of a histogram is FROM,UPTO,SHARE: lengths in tokens with 1 <= "
                          "FROM <= UPTO <= %lld, and the share of documents between them, 0 or "
                          "more",
                          (long long)LENGTH_TOKENS_MAX);
    if (l->length_count == bins->capacity) {
        bins->capacity = bins->capacity > 0 ? 2 * bins->capacity : 32;
        l->length_or_upto =
            heap_realloc(l->length_or_upto, bins->capacity, sizeof *l->length_or_upto);
        l->batch_or_from = heap_realloc(l->batch_or_from, bins->capacity, sizeof *l->batch_or_from);
        bins->document_share_of_each_bin =
            heap_realloc(bins->document_share_of_each_bin, bins->capacity,
                         sizeof *bins->document_share_of_each_bin);
    }
    bins->document_share_of_each_bin[l->length_count] = share;
    l->batch_or_from[l->length_count] = from;
    l->length_or_upto[l->length_count++] = upto;
    return STATUS_OK;
}

static enum status open_histogram(struct lengths *l, const char *path, struct diag *diag)
{
    struct text text = {0};
    struct histogram_bins bins = {.lengths = l};
    const struct record_handler handler = {&bins, read_histogram_row, skip_comment};
    double all = 0;
    l->kind = LENGTHS_HISTOGRAM;
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = records_parse(path, text.data != NULL ? text.data : "", text.size, &handler, diag);
    for (size_t i = 0; i < l->length_count; i++)
        all += bins.document_share_of_each_bin[i];
    if (status == STATUS_OK && !(all > 0 && isfinite(all)))
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "has no row with a share above 0");
    if (status == STATUS_OK)
        l->table = gsl_ran_discrete_preproc(l->length_count, bins.document_share_of_each_bin);
    free(bins.document_share_of_each_bin);
    text_release(&text);
    return status;
}

/* ---- opening ---- */

enum status lengths_open(struct lengths *l, const char *text, uint64_t seed, struct diag *diag)
{
    enum status status;
    l->source_text = text;
    if (strncmp(text, "lognormal:", 10) == 0)
        status = open_lognormal(l, text + 10, diag);
    else if (strncmp(text, "zipf:", 5) == 0)
        status = open_zipf(l, text + 5, diag);
    else if (strncmp(text, "histogram:", 10) == 0)
        status = open_histogram(l, text + 10, diag);
    else
        status = read_length_file(l, text, diag);
    if (status == STATUS_OK && l->kind == LENGTHS_BY_BATCH_IN_FILE && seed > 0)
        status = diag_error(
            diag, (struct loc){.name = "--seed"}, STATUS_BAD_INPUT,
            "is for lengths that are drawn or shuffled, but %s gives the documents of each batch",
            text);
    if (status != STATUS_OK)
        return status;
    l->rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(l->rng, (unsigned long)(seed > 0 ? seed : 1));
    if (l->kind == LENGTHS_LIST_IN_FILE && seed > 0)
        gsl_ran_shuffle(l->rng, l->length_or_upto, l->length_count, sizeof *l->length_or_upto);
    return STATUS_OK;
}

/* ---- the next length ---- */

static int64_t draw_length(struct lengths *l)
{
    if (l->kind == LENGTHS_ZIPF)
        return (int64_t)gsl_ran_discrete(l->rng, l->table) + 1;
    if (l->kind == LENGTHS_HISTOGRAM) {
        const size_t row = gsl_ran_discrete(l->rng, l->table);
        const double low = (double)l->batch_or_from[row], high = (double)l->length_or_upto[row] + 1;
        const int64_t drawn = (int64_t)(low * pow(high / low, gsl_rng_uniform(l->rng)));
        return drawn < l->length_or_upto[row] ? drawn : l->length_or_upto[row];
    }
    double length = floor(l->median * exp(gsl_ran_gaussian(l->rng, l->sigma)) + 0.5);
    return length < 1                           ? 1
           : length > (double)LENGTH_TOKENS_MAX ? LENGTH_TOKENS_MAX
                                                : (int64_t)length;
}

int64_t lengths_take_next(struct lengths *l)
{
    int64_t length = l->put_back_length;
    if (length > 0) {
        l->put_back_length = 0;
        return length;
    }
    if (l->kind != LENGTHS_LIST_IN_FILE && l->kind != LENGTHS_BY_BATCH_IN_FILE)
        return draw_length(l);
    if (l->kind == LENGTHS_LIST_IN_FILE && l->next == l->length_count)
        l->next = 0;
    if (l->kind == LENGTHS_LIST_IN_FILE)
        return l->length_or_upto[l->next++];
    /* A sampled batch ends where the next length has another batch number. The first call there returns 0, which stands
     * for the end of the batch, and the second call returns that length. At the end of the array every call returns
     * 0. */
    if (l->next == l->length_count)
        return 0;
    if (l->next > 0 && l->batch_or_from[l->next] != l->batch_or_from[l->next - 1] &&
        !l->has_returned_batch_end) {
        l->has_returned_batch_end = true;
        return 0;
    }
    l->has_returned_batch_end = false;
    return l->length_or_upto[l->next++];
}

void lengths_put_back(struct lengths *l, int64_t length)
{
    assert(l->put_back_length == 0 && length > 0);
    l->put_back_length = length;
}

bool lengths_are_used_up(const struct lengths *l)
{
    return l->kind == LENGTHS_BY_BATCH_IN_FILE && l->put_back_length == 0 &&
           l->next == l->length_count;
}
