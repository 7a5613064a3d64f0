/* Finds the rows of the tables of predict/plan/gaps.h that apply to a configuration, and prints them. */
#include "predict/plan/gaps.h"

/* The tables of choices, in the order in which their rows are printed. */
static const struct expression_gaps *const of_choices[] = {&gaps_of_sequence, &gaps_of_weights,
                                                           &gaps_of_work};
static const struct expression_gaps *const of_models[] = {&gaps_of_models};

/* Returns the next row of the tables, from row *row of table *table on, that applies to the framework and the choices,
 * and sets *table and *row to the position after it. Returns NULL if there is none. */
static const struct expression_gap *next_gap(const struct expression_gaps *const *tables,
                                             size_t count, size_t *table, size_t *row,
                                             enum framework framework, const struct choices *c)
{
    for (; *table < count; ++*table, *row = 0)
        while (*row < tables[*table]->count) {
            const struct expression_gap *gap = &tables[*table]->row[(*row)++];
            if ((gap->frameworks >> framework & 1u) != 0 && gap->is_chosen(c))
                return gap;
        }
    return NULL;
}

static void put_gap_rows(struct text *out, enum framework framework, const struct choices *c,
                         const struct expression_gaps *const *tables, size_t count,
                         const char *head)
{
    size_t table = 0, row = 0;
    for (const struct expression_gap *gap;
         (gap = next_gap(tables, count, &table, &row, framework, c)) != NULL; head = "")
        text_printf(out, "%s#   %s\n", head, gap->description);
}

bool expressible_by_framework(enum framework framework, const struct choices *c)
{
    size_t table = 0, row = 0;
    return next_gap(of_choices, ARRAY_LEN(of_choices), &table, &row, framework, c) == NULL;
}

enum status expressible_check(enum framework framework, const struct choices *c, struct diag *diag)
{
    struct text list = {0};
    size_t table = 0, row = 0;
    for (const struct expression_gap *gap;
         (gap = next_gap(of_choices, ARRAY_LEN(of_choices), &table, &row, framework, c)) != NULL;)
        text_printf(&list, "%s%s", list.size > 0 ? "; " : "", gap->description);
    enum status status = STATUS_OK;
    if (list.size > 0)
        status = diag_error(diag, (struct loc){.name = "--emit"}, STATUS_BAD_INPUT,
                            "%s has no settings for this configuration: %s",
                            framework_names[framework], list.data);
    text_release(&list);
    return status;
}

void expressible_put_gaps(struct text *out, enum framework framework, const struct choices *c)
{
    put_gap_rows(out, framework, c, of_choices, ARRAY_LEN(of_choices),
                 "# not expressed, so that the prediction is of something else:\n");
    put_gap_rows(out, framework, c, of_models, ARRAY_LEN(of_models),
                 "# no settings make this model; those below are of what comes nearest:\n");
}
