#include "traces/deviations.h"

#include "base/c_locale.h"
#include "base/data_path.h"
#include "traces/records.h"

#include <math.h>
#include <string.h>

const char *const interval_feature_names[FEATURE_COUNT] = {
#define FEATURE_ROW(symbol, name) [FEATURE_##symbol] = (name),
    INTERVAL_FEATURES(FEATURE_ROW)
#undef FEATURE_ROW
};

static const char *const figure_names[RESIDUAL_COUNT] = {"time", "memory"};

enum { FIGURE, NAME, DEVIATION, ROWS, REASON, COLUMN_COUNT };
static const char *const names[COLUMN_COUNT] = {"figure", "feature", "deviation", "rows", "reason"};
static const struct record_columns columns = {names, COLUMN_COUNT, .has_any_order = false};

/* Returns the index of a word in a table of names, or `count` if it is not there. */
static size_t index_of_word_in_table(const char *word, const char *const *table, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(table[i], word) != 0)
        i++;
    return i;
}

static enum status read_row(void *context, const struct record *record, struct diag *diag)
{
    struct deviations *deviations = context;
    size_t figure = index_of_word_in_table(record->fields[FIGURE], figure_names, RESIDUAL_COUNT);
    size_t feature =
        index_of_word_in_table(record->fields[NAME], interval_feature_names, FEATURE_COUNT);
    double value;
    if (figure == RESIDUAL_COUNT)
        return records_report_expected(record, &columns, FIGURE, "time or memory", diag);
    if (feature == FEATURE_COUNT)
        return records_report_field(record, names[NAME], diag, "no feature has the name '%s'",
                                    record->fields[NAME]);
    if (!parse_double(record->fields[DEVIATION], record->field_sizes[DEVIATION], &value) ||
        !(value > 0 && value < 1))
        return records_report_expected(record, &columns, DEVIATION, "a number between 0 and 1",
                                       diag);
    if (deviations->log_deviation[figure][feature] > 0)
        return records_report_field(record, names[NAME], diag, "'%s' has a row already",
                                    record->fields[NAME]);
    if (record->field_sizes[REASON] == 0)
        return records_report_field(record, names[REASON], diag,
                                    "is empty: say why the deviation has this value");
    deviations->log_deviation[figure][feature] = value;
    return STATUS_OK;
}

enum status deviations_parse(struct deviations *deviations, const char *name, const char *data,
                             size_t size, struct diag *diag)
{
    *deviations = (struct deviations){0};
    enum status status =
        records_parse_table(name, data, size, &columns, read_row, deviations, diag);
    for (size_t i = 0; i < RESIDUAL_COUNT && status == STATUS_OK; i++)
        if (!(deviations->log_deviation[i][FEATURE_BASE] > 0))
            status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                "%s has no row of the feature base", figure_names[i]);
    return status;
}

enum status deviations_load_shipped(struct deviations *deviations, struct diag *diag)
{
    struct text path = {0}, text = {0};
    struct diag unread = {0};
    enum status status = STATUS_OK;
    *deviations = (struct deviations){0};
    if (data_path(&path, "traces/published/intervals.csv", &unread) == STATUS_OK) {
        status = text_read(&text, path.data, diag);
        if (status == STATUS_OK)
            status = deviations_parse(deviations, path.data, text.data, text.size, diag);
    }
    diag_release(&unread);
    text_release(&text);
    text_release(&path);
    return status;
}
