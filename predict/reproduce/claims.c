#include "predict/reproduce/claims.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* If another series is best, a claim that a series is best still holds, by less, if the named series is within this
 * share of the best. */
#define NEARLY_BEST_SHARE 0.02

const char *const claim_verdict_names[CLAIM_VERDICT_COUNT] = {"holds", "holds by less",
                                                              "does not hold", "not known"};

/* ---- values ---- */

static bool higher_is_better(const struct reproduction *r, const struct reproduction_point *point)
{
    static const enum measure rates[] = {MEASURE_TOKENS,         MEASURE_MFU,
                                         MEASURE_MFU_LOONGTRAIN, MEASURE_MFU_TORCHTITAN,
                                         MEASURE_MFU_FPDT,       MEASURE_LONGEST};
    if (point->row != SIZE_MAX) {
        enum measurement_metric metric = r->rows.rows[point->row].metric;
        return metric == METRIC_TGS || metric == METRIC_MFU || metric == METRIC_VERDICT ||
               metric == METRIC_MAX_SEQ_LEN || metric == METRIC_SPEEDUP;
    }
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i] == point->measure)
            return true;
    return false;
}

/* Returns the predicted value of a point. A value that is missing because the step does not fit is the worst possible,
 * 0 or infinite. NAN: the value is not known. */
static double predicted_value(const struct reproduction *r, const struct reproduction_point *point)
{
    if (!point->is_done || point->outcome == OUTCOME_PREDICTION_FAILED ||
        point->outcome == OUTCOME_NOT_COMPARABLE)
        return NAN;
    if (isnan(point->predicted) && point->predicted_text != NULL &&
        strcmp(point->predicted_text, "fits") != 0)
        return higher_is_better(r, point) ? 0 : INFINITY;
    return point->predicted;
}

static double published_value(const struct reproduction *r, const struct reproduction_point *point)
{
    if (isnan(point->published) && point->published_text != NULL)
        return higher_is_better(r, point) ? 0 : INFINITY;
    return point->published;
}

/* ---- selections ---- */

/* True if the list has the text, or is empty. */
static bool is_in_list(const char *const *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return count == 0;
}

static size_t entry_of_selector(const struct reproduction *r, size_t entry,
                                const struct point_selector *of)
{
    if (of->entry != NULL)
        catalogue_find(&r->catalogue, of->entry, &entry, NULL);
    return entry;
}

static bool selects_point(const struct point_selector *of, size_t entry,
                          const struct reproduction_point *point)
{
    return point->entry == entry && (of->panel == NULL || strcmp(of->panel, point->panel) == 0) &&
           is_in_list(of->series, of->series_count, point->series) &&
           is_in_list(of->x, of->x_count, point->x);
}

/* Returns whether two points of a selection agree in all coordinates that the selection does not fix. With
 * of->compares_each_series_or_x, it fixes neither series nor x. */
static bool are_points_in_same_group(const struct point_selector *of,
                                     const struct reproduction_point *a,
                                     const struct reproduction_point *b)
{
    return (of->panel != NULL || strcmp(a->panel, b->panel) == 0) &&
           ((of->series_count > 0 && !of->compares_each_series_or_x) ||
            strcmp(a->series, b->series) == 0) &&
           ((of->x_count > 0 && !of->compares_each_series_or_x) || strcmp(a->x, b->x) == 0);
}

struct claim_side_values {
    double predicted, published;
    /* the point that has the value; NULL: no point was selected */
    const struct reproduction_point *point;
};

static double larger_or_lower_value(double one, double other, bool lowest)
{
    if (isnan(one) || isnan(other))
        return isnan(one) ? other : one;
    return lowest ? fmin(one, other) : fmax(one, other);
}

/* Takes the points of the selection that are in the group of `like` (are_points_in_same_group()). Returns the highest
 * of their predicted values and the highest of their published values; with of->takes_lowest, the lowest ones. */
static struct claim_side_values best_values_of_claim_side(const struct reproduction *r,
                                                          size_t entry,
                                                          const struct point_selector *of,
                                                          const struct reproduction_point *like)
{
    struct claim_side_values best_values = {NAN, NAN, NULL};
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (!selects_point(of, entry, point) || !are_points_in_same_group(of, point, like))
            continue;
        double value = predicted_value(r, point), before = best_values.predicted;
        best_values.predicted = larger_or_lower_value(before, value, of->takes_lowest);
        best_values.published = larger_or_lower_value(best_values.published,
                                                      published_value(r, point), of->takes_lowest);
        if (best_values.point == NULL || (isnan(before) && !isnan(value)) ||
            best_values.predicted != before)
            best_values.point = point;
    }
    return best_values;
}

/* Returns whether point i was handled before: an earlier point of the selection is in the same group. */
static bool was_group_of_point_handled(const struct reproduction *r, size_t entry,
                                       const struct point_selector *of, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (selects_point(of, entry, &r->point[k]) &&
            are_points_in_same_group(of, &r->point[k], &r->point[i]))
            return true;
    return false;
}

/* ---- ratios ---- */

static void put_value(struct text *out, const struct reproduction_point *at, double value)
{
    if (value == 0 || isinf(value))
        text_puts(out, "does not fit");
    else if (at->row == SIZE_MAX && at->measure == MEASURE_LONGEST)
        units_put_tokens(out, (int64_t)value);
    else
        text_printf(out, "%.4g", value);
}

/* Returns whether the points of an entry are in several panels. */
static bool has_entry_several_panels(const struct reproduction *r,
                                     const struct reproduction_point *at)
{
    for (size_t i = 0; i < r->point_count; i++)
        if (r->point[i].entry == at->entry && strcmp(r->point[i].panel, at->panel) != 0)
            return true;
    return false;
}

/* Appends the coordinates of a point that the selection does not fix: "6.7B, fpdt, 128K". */
static void put_point_coordinates(struct text *out, const struct reproduction *r,
                                  const struct point_selector *of,
                                  const struct reproduction_point *at)
{
    const struct {
        bool shown;
        const char *text;
    } parts[] = {{of->panel == NULL && has_entry_several_panels(r, at), at->panel},
                 {of->series_count == 0 || of->compares_each_series_or_x, at->series},
                 {of->x_count == 0 || of->compares_each_series_or_x, at->x}};
    const char *between = "";
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].shown && parts[i].text[0] != '\0') {
            text_printf(out, "%s%s", between, parts[i].text);
            between = ", ";
        }
}

struct point_ratio {
    double ratio, left, right;
    const struct reproduction_point *point;
};

static void put_ratio(struct text *out, const struct reproduction *r,
                      const struct catalogue_claim *claim, const struct point_ratio *ratio)
{
    size_t before;
    if (isinf(ratio->ratio) || ratio->ratio == 0)
        text_putc(out, '-');
    else
        text_printf(out, "%.3g", ratio->ratio);
    text_puts(out, " (");
    before = out->size;
    put_point_coordinates(out, r, &claim->left, ratio->point);
    text_puts(out, out->size > before ? ": " : "");
    put_value(out, ratio->point, ratio->left);
    if (!claim->is_right_side_number) {
        text_puts(out, " to ");
        put_value(out, ratio->point, ratio->right);
    }
    text_putc(out, ')');
}

static bool is_within(double value, double low, double high)
{
    return (isnan(low) || value >= low) && (isnan(high) || value <= high);
}

static enum claim_verdict judge_ratio(struct text *out, const struct reproduction *r, size_t entry,
                                      const struct catalogue_claim *claim)
{
    size_t left_entry = entry_of_selector(r, entry, &claim->left),
           right_entry = entry_of_selector(r, entry, &claim->right), pairs = 0, published = 0;
    struct point_ratio low = {.ratio = INFINITY}, high = {.ratio = -INFINITY};
    double paper_low = INFINITY, paper_high = -INFINITY;
    bool holds = true, weakly = true,
         has_weak = !isnan(claim->wider_low) || !isnan(claim->wider_high);
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (!selects_point(&claim->left, left_entry, point) ||
            was_group_of_point_handled(r, left_entry, &claim->left, i))
            continue;
        struct claim_side_values left =
            best_values_of_claim_side(r, left_entry, &claim->left, point);
        struct claim_side_values right = {claim->right_side_number, claim->right_side_number,
                                          point};
        if (!claim->is_right_side_number)
            right = best_values_of_claim_side(r, right_entry, &claim->right, point);
        double ratio = left.predicted / right.predicted, paper = left.published / right.published;
        if (!isnan(paper) && isfinite(paper) && paper > 0) {
            paper_low = fmin(paper_low, paper);
            paper_high = fmax(paper_high, paper);
            published++;
        }
        if (isnan(ratio)) /* one side is not known, or neither step fits */
            continue;
        pairs++;
        const struct point_ratio this = {ratio, left.predicted, right.predicted, left.point};
        if (ratio <= low.ratio)
            low = this;
        if (ratio >= high.ratio)
            high = this;
        holds &= is_within(ratio, claim->at_least, claim->at_most);
        weakly &= has_weak && is_within(ratio, claim->wider_low, claim->wider_high);
    }
    if (pairs == 0)
        return CLAIM_NOT_KNOWN;
    put_ratio(out, r, claim, &low);
    if (pairs > 1) {
        text_puts(out, pairs > 2 ? " to " : " and ");
        put_ratio(out, r, claim, &high);
        text_printf(out, ", %zu places", pairs);
    }
    if (published > 0)
        text_printf(out, "; the paper's own values: %.3g", paper_low);
    if (published > 1)
        text_printf(out, " to %.3g", paper_high);
    return holds ? CLAIM_HOLDS : weakly ? CLAIM_HOLDS_BY_LESS : CLAIM_DOES_NOT_HOLD;
}

/* ---- the coordinates of selected points ---- */

/* The distinct texts of one coordinate among the selected points of an entry, in order of appearance. */
struct distinct_coordinate_texts {
    const char **text;
    size_t distinct_count;
};

enum point_coordinate { OF_PANEL, OF_SERIES, OF_X };

static const char *coordinate_of_point(const struct reproduction_point *point,
                                       enum point_coordinate of)
{
    return of == OF_PANEL ? point->panel : of == OF_SERIES ? point->series : point->x;
}

static void distinct_coordinate_texts_of(struct distinct_coordinate_texts *d,
                                         const struct reproduction *r, size_t entry,
                                         const struct point_selector *of,
                                         enum point_coordinate coordinate)
{
    d->text = heap_alloc(r->point_count + 1, sizeof *d->text);
    d->distinct_count = 0;
    for (size_t i = 0; i < r->point_count; i++)
        if (selects_point(of, entry, &r->point[i]) &&
            (d->distinct_count == 0 || !is_in_list(d->text, d->distinct_count,
                                                   coordinate_of_point(&r->point[i], coordinate))))
            d->text[d->distinct_count++] = coordinate_of_point(&r->point[i], coordinate);
}

static size_t index_of_text(const struct distinct_coordinate_texts *d, const char *text)
{
    size_t i = 0;
    while (i < d->distinct_count && strcmp(d->text[i], text) != 0)
        i++;
    return i;
}

/* Returns the first selected point with that panel, series (NULL: any) and x; NULL: there is none. */
static const struct reproduction_point *
find_selected_point(const struct reproduction *r, size_t entry, const struct point_selector *of,
                    const char *panel, const char *series, const char *x)
{
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (selects_point(of, entry, point) && strcmp(point->panel, panel) == 0 &&
            (series == NULL || strcmp(point->series, series) == 0) && strcmp(point->x, x) == 0)
            return point;
    }
    return NULL;
}

/* ---- crossovers ---- */

static enum claim_verdict crossover_verdict(size_t at, size_t from, size_t to, size_t count)
{
    if (at < count && at >= from && at <= to)
        return CLAIM_HOLDS;
    bool near = at < count && at + 1 >= from && at <= to + 1;
    return near ? CLAIM_HOLDS_BY_LESS : CLAIM_DOES_NOT_HOLD;
}

static enum claim_verdict judge_crossover(struct text *out, const struct reproduction *r,
                                          size_t entry, const struct catalogue_claim *claim)
{
    size_t e = entry_of_selector(r, entry, &claim->left);
    struct distinct_coordinate_texts panels, xs;
    enum claim_verdict worst = CLAIM_NOT_KNOWN;
    distinct_coordinate_texts_of(&panels, r, e, &claim->left, OF_PANEL);
    distinct_coordinate_texts_of(&xs, r, e, &claim->left, OF_X);
    for (size_t p = 0; p < panels.distinct_count; p++) {
        size_t at = 0, known = 0;
        for (; at < xs.distinct_count; at++) {
            const struct reproduction_point *left = find_selected_point(r, e, &claim->left,
                                                                        panels.text[p], NULL,
                                                                        xs.text[at]),
                                            *right = find_selected_point(r, e, &claim->right,
                                                                         panels.text[p], NULL,
                                                                         xs.text[at]);
            if (left == NULL || right == NULL || isnan(predicted_value(r, left)) ||
                isnan(predicted_value(r, right)))
                continue;
            known++;
            if (predicted_value(r, left) <= predicted_value(r, right))
                break;
        }
        if (known == 0)
            continue;
        enum claim_verdict verdict =
            crossover_verdict(at, index_of_text(&xs, claim->crossover_from),
                              index_of_text(&xs, claim->crossover_to), xs.distinct_count);
        worst = worst == CLAIM_NOT_KNOWN || verdict > worst ? verdict : worst;
        text_printf(out, "%s%s%s%s%s", out->size > 0 ? "; " : "", panels.text[p],
                    panels.text[p][0] != '\0' ? ": " : "",
                    at < xs.distinct_count ? "crosses at " : "does not cross",
                    at < xs.distinct_count ? xs.text[at] : "");
    }
    free((void *)panels.text);
    free((void *)xs.text);
    return worst;
}

/* ---- the best series ---- */

struct predicted_and_published_best_series {
    /* indices, into the distinct series, of the best predicted one and the best published one; SIZE_MAX: not known */
    size_t predicted_series, published;
    double value;
};

static struct predicted_and_published_best_series
best_series_at(const struct reproduction *r, size_t e, const struct catalogue_claim *claim,
               const struct distinct_coordinate_texts *series, const char *panel, const char *x)
{
    struct predicted_and_published_best_series best = {SIZE_MAX, SIZE_MAX, NAN};
    double published = NAN;
    for (size_t s = 0; s < series->distinct_count; s++) {
        const struct reproduction_point *point =
            find_selected_point(r, e, &claim->left, panel, series->text[s], x);
        if (point == NULL)
            continue;
        double value = predicted_value(r, point), paper = published_value(r, point);
        if (!isnan(value) && (isnan(best.value) ||
                              (claim->lowest_is_best ? value < best.value : value > best.value))) {
            best.value = value;
            best.predicted_series = s;
        }
        if (!isnan(paper) &&
            (isnan(published) || (claim->lowest_is_best ? paper < published : paper > published))) {
            published = paper;
            best.published = s;
        }
    }
    return best;
}

/* Returns by how much the best series that the claim names is worse than the best of all series, as a share of `best`,
 * the value of the latter. 0: a named series is the best. Infinite: no named series has a value. */
static double shortfall_of_named_series(const struct reproduction *r, size_t e,
                                        const struct catalogue_claim *claim, const char *panel,
                                        const char *x, double best)
{
    double nearest = INFINITY;
    for (size_t i = 0; i < claim->expected_best_series_count; i++) {
        const struct reproduction_point *point =
            find_selected_point(r, e, &claim->left, panel, claim->expected_best_series_names[i], x);
        double value = point == NULL ? (double)NAN : predicted_value(r, point);
        if (!isnan(value))
            nearest = fmin(nearest, fabs(value / best - 1));
    }
    return nearest;
}

static enum claim_verdict judge_best(struct text *out, const struct reproduction *r, size_t entry,
                                     const struct catalogue_claim *claim)
{
    size_t e = entry_of_selector(r, entry, &claim->left);
    struct distinct_coordinate_texts panels, series, xs;
    enum claim_verdict worst = CLAIM_NOT_KNOWN;
    distinct_coordinate_texts_of(&panels, r, e, &claim->left, OF_PANEL);
    distinct_coordinate_texts_of(&series, r, e, &claim->left, OF_SERIES);
    distinct_coordinate_texts_of(&xs, r, e, &claim->left, OF_X);
    for (size_t p = 0; p < panels.distinct_count; p++) {
        size_t first = SIZE_MAX, last = SIZE_MAX;
        enum claim_verdict verdict = CLAIM_NOT_KNOWN;
        text_printf(out, "%s%s%s", out->size > 0 ? "; " : "", panels.text[p],
                    panels.text[p][0] != '\0' ? ": " : "");
        for (size_t i = 0; i < xs.distinct_count; i++) {
            struct predicted_and_published_best_series best =
                best_series_at(r, e, claim, &series, panels.text[p], xs.text[i]);
            if (best.predicted_series == SIZE_MAX)
                continue;
            enum claim_verdict here = CLAIM_HOLDS;
            double shortfall =
                shortfall_of_named_series(r, e, claim, panels.text[p], xs.text[i], best.value);
            if (claim->direction == CLAIM_IS)
                here = shortfall == 0                   ? CLAIM_HOLDS
                       : shortfall <= NEARLY_BEST_SHARE ? CLAIM_HOLDS_BY_LESS
                                                        : CLAIM_DOES_NOT_HOLD;
            else if (last != SIZE_MAX &&
                     (claim->direction == CLAIM_RISES ? best.predicted_series < last
                                                      : best.predicted_series > last))
                here = CLAIM_DOES_NOT_HOLD;
            verdict = verdict == CLAIM_NOT_KNOWN || here > verdict ? here : verdict;
            text_printf(out, "%s%s %s", first != SIZE_MAX ? ", " : "", xs.text[i],
                        series.text[best.predicted_series]);
            if (best.published != SIZE_MAX && best.published != best.predicted_series)
                text_printf(out, " (paper: %s)", series.text[best.published]);
            first = first == SIZE_MAX ? best.predicted_series : first;
            last = best.predicted_series;
        }
        /* the best series never moved against the claim, but it did not move as claimed either */
        if (claim->direction != CLAIM_IS && verdict == CLAIM_HOLDS && first == last)
            verdict = CLAIM_HOLDS_BY_LESS;
        if (verdict != CLAIM_NOT_KNOWN)
            worst = worst == CLAIM_NOT_KNOWN || verdict > worst ? verdict : worst;
    }
    free((void *)panels.text);
    free((void *)series.text);
    free((void *)xs.text);
    return worst;
}

/* ---- trends ---- */

/* From one x to the next a ratio may move the other way by at most this share, and still counts as rising or falling
 * throughout. */
#define TREND_NOISE_SHARE 0.003

static enum claim_verdict trend_verdict(double first, double last, bool is_monotone, bool rises)
{
    bool moved = rises ? last > first : last < first;
    return !moved ? CLAIM_DOES_NOT_HOLD : is_monotone ? CLAIM_HOLDS : CLAIM_HOLDS_BY_LESS;
}

static enum claim_verdict judge_trend_of(struct text *out, const struct reproduction *r, size_t e,
                                         const struct catalogue_claim *claim, const char *panel,
                                         const struct distinct_coordinate_texts *xs)
{
    double first = NAN, last = NAN;
    bool is_monotone = true, rises = claim->direction == CLAIM_RISES;
    text_printf(out, "%s%s%s", out->size > 0 ? "; " : "", panel, panel[0] != '\0' ? ": " : "");
    for (size_t i = 0; i < xs->distinct_count; i++) {
        const struct reproduction_point *left = find_selected_point(r, e, &claim->left, panel, NULL,
                                                                    xs->text[i]),
                                        *right = find_selected_point(r, e, &claim->right, panel,
                                                                     NULL, xs->text[i]);
        double ratio = left == NULL || right == NULL
                           ? (double)NAN
                           : predicted_value(r, left) / predicted_value(r, right);
        if (!isfinite(ratio))
            continue;
        text_printf(out, "%s%s %.4g", isnan(first) ? "" : ", ", xs->text[i], ratio);
        if (!isnan(last))
            is_monotone &= rises ? ratio > last * (1 - TREND_NOISE_SHARE)
                                 : ratio < last * (1 + TREND_NOISE_SHARE);
        first = isnan(first) ? ratio : first;
        last = ratio;
    }
    return isnan(first) ? CLAIM_NOT_KNOWN : trend_verdict(first, last, is_monotone, rises);
}

static enum claim_verdict judge_trend(struct text *out, const struct reproduction *r, size_t entry,
                                      const struct catalogue_claim *claim)
{
    size_t e = entry_of_selector(r, entry, &claim->left);
    struct distinct_coordinate_texts panels, xs;
    enum claim_verdict worst = CLAIM_NOT_KNOWN;
    distinct_coordinate_texts_of(&panels, r, e, &claim->left, OF_PANEL);
    distinct_coordinate_texts_of(&xs, r, e, &claim->left, OF_X);
    for (size_t p = 0; p < panels.distinct_count; p++) {
        enum claim_verdict verdict = judge_trend_of(out, r, e, claim, panels.text[p], &xs);
        if (verdict != CLAIM_NOT_KNOWN)
            worst = worst == CLAIM_NOT_KNOWN || verdict > worst ? verdict : worst;
    }
    free((void *)panels.text);
    free((void *)xs.text);
    return worst;
}

/* ---- any claim ---- */

enum claim_verdict claim_judge(struct text *numbers, const struct reproduction *r, size_t entry,
                               const struct catalogue_claim *claim)
{
    static enum claim_verdict (*const judge[CLAIM_KIND_COUNT])(
        struct text *, const struct reproduction *, size_t, const struct catalogue_claim *) = {
        [CLAIM_RATIO] = judge_ratio,
        [CLAIM_CROSSOVER] = judge_crossover,
        [CLAIM_BEST] = judge_best,
        [CLAIM_TREND] = judge_trend,
    };
    return judge[claim->kind](numbers, r, entry, claim);
}
