#include "predict/reproduce/catalogue_claims.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum status catalogue_read_text(struct json_node object, const char *key, const char **out,
                                struct diag *diag)
{
    if (json_find_member(object, key).value == NULL)
        return STATUS_OK;
    return json_get_string(object, key, out, diag);
}

enum status catalogue_read_flag(struct json_node object, const char *key, bool *out,
                                struct diag *diag)
{
    if (json_find_member(object, key).value == NULL)
        return STATUS_OK;
    return json_get_bool(object, key, out, diag);
}

enum status catalogue_read_texts(struct json_node object, const char *key, const char **list,
                                 size_t *count, struct diag *diag)
{
    struct json_node node = json_find_member(object, key);
    enum status status = STATUS_OK;
    *count = 0;
    if (json_is_string(node))
        status = json_as_string(node, &list[(*count)++], diag);
    if (json_element_count(node) > CATALOGUE_LIST_MAX)
        return json_error(node, diag, "has more than %d values", CATALOGUE_LIST_MAX);
    for (size_t i = 0; status == STATUS_OK && i < json_element_count(node); i++)
        status = json_as_string(json_element_at(node, i), &list[(*count)++], diag);
    return status;
}

static enum status read_selector(struct point_selector *of, struct json_node node,
                                 struct diag *diag)
{
    static const char *const known[] = {"entry", "panel", "series", "x", "lowest", "each"};
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "entry", &of->entry, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "panel", &of->panel, diag);
    if (status == STATUS_OK)
        status = catalogue_read_texts(node, "series", of->series, &of->series_count, diag);
    if (status == STATUS_OK)
        status = catalogue_read_texts(node, "x", of->x, &of->x_count, diag);
    if (status == STATUS_OK)
        status = catalogue_read_flag(node, "lowest", &of->takes_lowest, diag);
    return status == STATUS_OK
               ? catalogue_read_flag(node, "each", &of->compares_each_series_or_x, diag)
               : status;
}

static enum status read_number(struct json_node node, const char *key, double *out,
                               struct diag *diag)
{
    *out = NAN;
    if (json_find_member(node, key).value == NULL)
        return STATUS_OK;
    return json_get_double(node, key, -DBL_MAX, DBL_MAX, out, diag);
}

static enum status read_ratio(struct catalogue_claim *claim, struct json_node node,
                              struct diag *diag)
{
    struct json_node right = json_find_member(node, "right");
    enum status status = STATUS_OK;
    claim->kind = CLAIM_RATIO;
    claim->is_right_side_number = json_is_number(right);
    if (claim->is_right_side_number)
        status = json_as_double(right, -DBL_MAX, DBL_MAX, &claim->right_side_number, diag);
    else
        status = read_selector(&claim->right, right, diag);
    const struct {
        const char *key;
        double *value;
    } ends[] = {{"at_least", &claim->at_least},
                {"at_most", &claim->at_most},
                {"more", &claim->wider_low},
                {"less", &claim->wider_high}};
    for (size_t i = 0; status == STATUS_OK && i < ARRAY_LEN(ends); i++)
        status = read_number(node, ends[i].key, ends[i].value, diag);
    if (status == STATUS_OK && isnan(claim->at_least) && isnan(claim->at_most))
        status = json_error(node, diag, "a ratio has at_least, at_most or both");
    return status;
}

static enum status read_best(struct catalogue_claim *claim, struct json_node node,
                             struct diag *diag)
{
    const char *moves = NULL;
    enum status status = catalogue_read_text(node, "best", &moves, diag);
    claim->kind = CLAIM_BEST;
    if (status == STATUS_OK)
        status = catalogue_read_flag(node, "lowest_is_best", &claim->lowest_is_best, diag);
    if (status == STATUS_OK)
        status = catalogue_read_texts(node, "is", claim->expected_best_series_names,
                                      &claim->expected_best_series_count, diag);
    if (status != STATUS_OK)
        return status;
    if (claim->expected_best_series_count > 0 && strcmp(moves, "is") == 0)
        claim->direction = CLAIM_IS;
    else if (strcmp(moves, "rises") == 0 || strcmp(moves, "falls") == 0)
        claim->direction = strcmp(moves, "rises") == 0 ? CLAIM_RISES : CLAIM_FALLS;
    else
        return json_error(node, diag, "best is 'rises', 'falls', or 'is' with a member 'is'");
    return STATUS_OK;
}

static enum status read_trend(struct catalogue_claim *claim, struct json_node node,
                              struct diag *diag)
{
    const char *moves = NULL;
    enum status status = catalogue_read_text(node, "ratio", &moves, diag);
    claim->kind = CLAIM_TREND;
    if (status == STATUS_OK && strcmp(moves, "rises") != 0 && strcmp(moves, "falls") != 0)
        return json_error(node, diag, "a ratio 'rises' or 'falls'");
    if (status != STATUS_OK)
        return status;
    claim->direction = strcmp(moves, "rises") == 0 ? CLAIM_RISES : CLAIM_FALLS;
    return read_selector(&claim->right, json_find_member(node, "right"), diag);
}

enum status catalogue_read_claim(struct catalogue *catalogue, struct catalogue_claim *claim,
                                 struct json_node node, struct diag *diag)
{
    static const char *const known[] = {"says", "left",           "right", "at_least", "at_most",
                                        "more", "less",           "from",  "to",       "best",
                                        "is",   "lowest_is_best", "ratio"};
    (void)catalogue;
    enum status status = json_reject_unknown_keys(node, known, ARRAY_LEN(known), diag);
    if (status == STATUS_OK)
        status = json_get_string(node, "says", &claim->statement, diag);
    if (status == STATUS_OK)
        status = read_selector(&claim->left, json_find_member(node, "left"), diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "from", &claim->crossover_from, diag);
    if (status == STATUS_OK)
        status = catalogue_read_text(node, "to", &claim->crossover_to, diag);
    if (status != STATUS_OK)
        return status;
    if (json_find_member(node, "best").value != NULL)
        return read_best(claim, node, diag);
    if (json_find_member(node, "ratio").value != NULL)
        return read_trend(claim, node, diag);
    if (claim->crossover_from == NULL)
        return read_ratio(claim, node, diag);
    claim->kind = CLAIM_CROSSOVER;
    if (claim->crossover_to == NULL)
        claim->crossover_to = claim->crossover_from;
    return read_selector(&claim->right, json_find_member(node, "right"), diag);
}
