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
    ENTRY_POINTS,  /* published values beside predicted ones */
    ENTRY_CHART,   /* drawn without numbers: only predictions and claims */
    ENTRY_DRAWING, /* a schematic: it is reproduced by timelines of the same schedule */
    ENTRY_NOTHING, /* nothing that can be simulated */
    ENTRY_KIND_COUNT
};
extern const char *const entry_kind_names[ENTRY_KIND_COUNT];

/* Where a point stands in its figure, as patterns. */
struct placement_pattern {
    const char *panel, *series, *x;
};

/* Rows of measurements.csv. */
struct catalogue_rows {
    const char *source, *table;
    const char *metric[CATALOGUE_LIST_MAX]; /* none: all */
    const char *system;                     /* NULL: all */
    size_t metrics;
    struct placement_pattern at;
};

/* Every combination of a case and the values of the axes, as options of `predict`, case after case. */
struct catalogue_grid {
    const char *args;
    const char *name[CATALOGUE_LIST_MAX], *name_args[CATALOGUE_LIST_MAX]; /* cases */
    size_t cases; /* 0: one without a name */
    struct grid_axes axes;
    enum measure measure;
    bool unfit_too;
    double *published; /* of each combination; NULL: the paper gives no values */
    struct placement_pattern at;
};

/* Selects points by their place; a member that is not set selects any. */
struct point_selector {
    const char *entry; /* a name; NULL: the claim's own */
    const char *panel;
    const char *series[CATALOGUE_LIST_MAX], *x[CATALOGUE_LIST_MAX];
    size_t series_count, xs;
    bool lowest; /* of several series or xs the lowest value counts, else the highest */
    bool each;   /* every one of several series or xs is compared */
};

enum claim_kind {
    CLAIM_RATIO,     /* left / right lies where the paper says, wherever both are */
    CLAIM_CROSSOVER, /* the first x at which left is at most right lies between two */
    CLAIM_BEST,      /* which series is best at each x */
    CLAIM_TREND,     /* left / right rises or falls along x */
    CLAIM_KIND_COUNT
};

/* How the best series, in the order of the series, or a ratio moves along x. */
enum claim_moves { CLAIM_RISES, CLAIM_FALLS, CLAIM_IS };

struct catalogue_claim {
    const char *says;
    enum claim_kind kind;
    struct point_selector left, right; /* BEST: left */
    bool right_is_number;
    double number;            /* RATIO, of right */
    double at_least, at_most; /* RATIO: what the paper says; NAN: no such end */
    double more, less;        /* RATIO: the weaker statement: between these; NAN: no such end */
    const char *from, *to;    /* CROSSOVER: x */
    enum claim_moves moves;   /* BEST, TREND */
    const char *is[CATALOGUE_LIST_MAX];
    size_t is_count;
    bool lowest_is_best; /* BEST */
};

struct catalogue_timeline {
    const char *title, *args;
    const char *window; /* NULL: all of it */
    bool memory;        /* memory over time instead of streams */
};

struct catalogue_entry {
    const char *name[CATALOGUE_NAMES_MAX]; /* "fpdt:fig11"; the first names its files */
    size_t names;
    const char *shows;
    enum entry_kind kind;
    const char *why;   /* not simulable or off: the reason; NULL: none is known */
    const char *note;  /* what is assumed; NULL: nothing */
    const char *x, *y; /* labels of the axes */
    double y_scale;    /* of values, for the label: 100 for percent */
    bool y_log;
    struct catalogue_rows *rows;
    struct catalogue_grid *grid;
    struct catalogue_claim *claim;
    struct catalogue_timeline *timeline;
    size_t rows_count, grids, claims, timelines;
};

struct catalogue {
    struct arena arena;
    struct text text;
    struct json json;
    struct catalogue_entry *entry;
    size_t count;
};

/* Reads a catalogue; path NULL: the one that ships. Release it in either case. */
enum status catalogue_load(struct catalogue *catalogue, const char *path, struct diag *diag);
void catalogue_release(struct catalogue *catalogue);

/* The entry that has the name; an error gives the nearest. */
enum status catalogue_find(const struct catalogue *catalogue, const char *name, size_t *entry,
                           struct diag *diag);

#endif
