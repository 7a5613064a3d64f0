/* predict/reproduce/catalogue.h: the figures and tables that `reproduce` names, as data.
 *
 * traces/published/reproduce.json has an entry for each; docs/reproducing.md describes its members. The points of an
 * entry come from two places: rows of measurements.csv, which have a published value, and grids of configurations,
 * which may have one. A point has a place in its figure: a panel, a series and an x. Each is a text that a pattern
 * makes from the row's columns and options ("{model} on {gpus}") or from the grid's values.
 *
 * Claims are statements about points: what a paper concludes from its figure. */
#ifndef PREDICT_REPRODUCE_CATALOGUE_H
#define PREDICT_REPRODUCE_CATALOGUE_H

#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "predict/reproduce/cell.h"
#include "predict/sweep/axes.h"

#include <stdbool.h>
#include <stddef.h>

enum { CATALOGUE_NAMES_MAX = 16, CATALOGUE_LIST_MAX = 12 };

enum entry_kind {
    ENTRY_POINTS, /* published values, each beside a predicted one */
    /* a chart whose numbers were not published: it has only predictions and claims */
    ENTRY_CHART,
    ENTRY_DRAWING,       /* a schematic drawing, reproduced as timelines of the same schedule */
    ENTRY_NOT_SIMULABLE, /* it has nothing that can be simulated */
    ENTRY_KIND_COUNT
};
extern const char *const entry_kind_names[ENTRY_KIND_COUNT];

/* The place of a point in its figure: patterns of its panel, its series and its x. */
struct pattern_of_place_in_figure {
    const char *panel, *series, *x;
};

/* Selects rows of measurements.csv. */
struct catalogue_row_selector {
    const char *source, *paper_table;
    const char *metric[CATALOGUE_LIST_MAX]; /* metrics to select; none: all metrics */
    const char *framework;                  /* framework to select; NULL: all */
    size_t metric_count;
    struct pattern_of_place_in_figure placement;
};

/* A grid of configurations: every combination of a case and of the values of the axes, case after case. A combination
 * gives options of `predict`. */
struct catalogue_grid {
    const char *args; /* the options that all combinations have */
    const char *name[CATALOGUE_LIST_MAX],
        *name_args[CATALOGUE_LIST_MAX]; /* names and options of the cases */
    size_t case_count;                  /* 0: there is one case, which has no name */
    struct grid_axes axes;
    enum measure measure;
    bool simulates_unfit; /* a step that does not fit in memory is simulated, too */
    /* a value for each combination; NULL: the paper gives no values */
    double *published_value_of_each_point;
    /* [cases] for tokens per second: the share of the tokens that each case has in a step that does all cases one after
     * another. combined_series names the series with the rate of that step. NULL: there is no such series */
    double *token_share;
    const char *combined_series;
    struct pattern_of_place_in_figure placement;
};

/* Selects points by their places. A member that is not set selects all points. */
struct point_selector {
    const char *entry; /* name of the entry; NULL: the entry of the claim */
    const char *panel;
    const char *series[CATALOGUE_LIST_MAX], *x[CATALOGUE_LIST_MAX];
    size_t series_count, x_count;
    /* if several series or xs are selected: the one with the lowest value counts; false: the one with the highest
     * value */
    bool takes_lowest;
    bool compares_each_series_or_x; /* each series or x counts by itself */
};

enum claim_kind {
    CLAIM_RATIO, /* left / right lies where the paper says, at every place that has both */
    CLAIM_CROSSOVER, /* the first x at which left is at most right lies between crossover_from and crossover_to */
    CLAIM_BEST,  /* at each x, a named series is best; or the best series moves along x */
    CLAIM_TREND, /* left / right rises or falls along x */
    CLAIM_KIND_COUNT
};

/* The direction in which a ratio, or the index of the best series, moves along x. CLAIM_IS: the best series is the
 * named one, or one of several named ones, at every x. */
enum claim_direction { CLAIM_RISES, CLAIM_FALLS, CLAIM_IS };

struct catalogue_claim {
    const char *statement;
    enum claim_kind kind;
    struct point_selector left, right; /* CLAIM_BEST uses only `left` */
    bool is_right_side_number;
    /* CLAIM_RATIO: if is_right_side_number, the number that stands for `right` */
    double right_side_number;
    /* CLAIM_RATIO: the ends of the range that the paper states; NAN: it has no such end */
    double at_least, at_most;
    /* CLAIM_RATIO: the ends of a wider range, in which the claim holds by less; NAN: it has no such end */
    double wider_low, wider_high;
    /* CLAIM_CROSSOVER: the values of x between which it lies */
    const char *crossover_from, *crossover_to;
    enum claim_direction direction; /* CLAIM_BEST, CLAIM_TREND */
    /* CLAIM_BEST with CLAIM_IS: [expected_best_series_count] series of which one is best */
    const char *expected_best_series_names[CATALOGUE_LIST_MAX];
    size_t expected_best_series_count;
    /* CLAIM_BEST: the series with the lowest value is best; false: the highest */
    bool lowest_is_best;
};

struct catalogue_timeline {
    const char *title, *args;
    const char *op_window_text; /* the part of the step that is shown; NULL: all of it */
    bool shows_memory;          /* it shows memory over time instead of streams */
};

struct catalogue_entry {
    /* the entry's names, such as "fpdt:fig11"; its files are named after the first */
    const char *name[CATALOGUE_NAMES_MAX];
    size_t name_count;
    const char *subject;
    enum entry_kind kind;
    /* why the entry cannot be simulated, or why its predictions are wrong; NULL: no reason is known */
    const char *reason;
    const char *note;              /* what the predictions assume; NULL: nothing */
    const char *x_label, *y_label; /* labels of the axes */
    /* the factor by which values are multiplied on the y axis: 100 if the axis is in percent */
    double y_scale;
    bool is_y_log;
    struct catalogue_row_selector *rows;
    struct catalogue_grid *grid;
    struct catalogue_claim *claim;
    struct catalogue_timeline *timeline;
    size_t row_selection_count, grid_count, claim_count, timeline_count;
};

struct catalogue {
    struct arena arena;
    struct text text;
    struct json json;
    struct catalogue_entry *entry;
    size_t entry_count;
};

/* Reads the catalogue at `path`; NULL: the one that ships. Release *catalogue in either case. */
enum status catalogue_load(struct catalogue *catalogue, const char *path, struct diag *diag);
void catalogue_release(struct catalogue *catalogue);

/* Finds the entry that has a name. If there is none, the error proposes the most similar name. */
enum status catalogue_find(const struct catalogue *catalogue, const char *name, size_t *entry,
                           struct diag *diag);

#endif
