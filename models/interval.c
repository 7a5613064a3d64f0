#include "models/interval.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The wider class counts as this many sources of the narrower one. */
#define WIDER 2

/* Returns a trait of a run as a word. */
static const char *trait_of(const struct residual *row, enum interval_trait trait)
{
    return trait == TRAIT_DEVICE      ? row->device
           : trait == TRAIT_FRAMEWORK ? row->framework
           : row->several             ? "several nodes"
                                      : "one node";
}

/* The rows of one kind of residual, without those of one source. */
struct rows {
    const struct residuals *all;
    enum residual_of of;
    const char *without;
    struct residual like;
};

static bool is_row(const struct rows *rows, size_t i)
{
    const struct residual *row = &rows->all->row[i];
    return row->set[0] == '\0' && !isnan(row->value[rows->of]) &&
           (rows->without == NULL || strcmp(row->source, rows->without) != 0);
}

static bool has_trait(const struct rows *rows, size_t i, enum interval_trait trait)
{
    return strcmp(trait_of(&rows->all->row[i], trait), trait_of(&rows->like, trait)) == 0;
}

static bool in_class(const struct rows *rows, size_t i, const bool *like)
{
    for (int t = 0; t < TRAIT_COUNT; t++)
        if (like[t] && !has_trait(rows, i, (enum interval_trait)t))
            return false;
    return is_row(rows, i);
}

/* Runs and sources of a class, and the sum over sources of the mean squares of their residuals. */
struct class
{
    size_t runs, sources;
    double squares;
};

static struct class class_of(const struct rows *rows, const bool *like)
{
    struct class class = {0};
    size_t count = rows->all->count;
    bool *done = heap_zalloc(count + 1, sizeof *done);
    for (size_t i = 0; i < count; i++) {
        double squares = 0;
        size_t runs = 0;
        if (done[i] || !in_class(rows, i, like))
            continue;
        for (size_t k = i; k < count; k++) {
            const struct residual *row = &rows->all->row[k];
            if (strcmp(row->source, rows->all->row[i].source) != 0 || !in_class(rows, k, like))
                continue;
            done[k] = true;
            squares += row->value[rows->of] * row->value[rows->of];
            runs++;
        }
        class.runs += runs;
        class.sources++;
        class.squares += squares / (double)runs;
    }
    free(done);
    return class;
}

/* Returns the mean over sources of their mean residual in the rows that share a trait with row i. */
static double mean_of(const struct rows *rows, size_t i, enum interval_trait trait, bool *done)
{
    const char *word = trait_of(&rows->all->row[i], trait);
    size_t count = rows->all->count, sources = 0;
    double sum = 0;
    bool *seen = heap_zalloc(count + 1, sizeof *seen);
    for (size_t a = i; a < count; a++) {
        double of_source = 0;
        size_t runs = 0;
        if (seen[a] || !is_row(rows, a) || strcmp(trait_of(&rows->all->row[a], trait), word) != 0)
            continue;
        for (size_t b = a; b < count; b++) {
            const struct residual *row = &rows->all->row[b];
            if (!is_row(rows, b) || strcmp(row->source, rows->all->row[a].source) != 0 ||
                strcmp(trait_of(row, trait), word) != 0)
                continue;
            seen[b] = done[b] = true;
            of_source += row->value[rows->of];
            runs++;
        }
        sum += of_source / (double)runs;
        sources++;
    }
    free(seen);
    return sum / (double)sources;
}

/* Returns the variance of the means between devices, frameworks or scales; 0 where there are not two. */
static double between(const struct rows *rows, enum interval_trait trait)
{
    size_t count = rows->all->count, classes = 0;
    double sum = 0, squares = 0;
    bool *done = heap_zalloc(count + 1, sizeof *done);
    for (size_t i = 0; i < count; i++) {
        if (done[i] || !is_row(rows, i))
            continue;
        double mean = mean_of(rows, i, trait, done);
        sum += mean;
        squares += mean * mean;
        classes++;
    }
    free(done);
    return classes < 2 ? 0 : fmax(squares - sum * sum / (double)classes, 0) / (double)(classes - 1);
}

struct interval interval_make(const struct residuals *residuals, enum residual_of of,
                              struct interval_run run, const char *without)
{
    struct rows rows = {residuals,
                        of,
                        without,
                        {.device = run.device, .framework = run.framework, .several = run.several}};
    struct interval interval = {.spread = NAN};
    struct class all = class_of(&rows, interval.is_like);
    if (all.sources < 2)
        return interval;
    double variance = all.squares / (double)all.sources, added = 0;
    interval.runs = all.runs;
    interval.sources = all.sources;
    for (int t = 0; t < TRAIT_COUNT; t++) {
        bool alone[TRAIT_COUNT] = {false};
        interval.is_like[t] = alone[t] = true;
        struct class class = class_of(&rows, interval.is_like);
        if (class.sources == 0) {
            interval.is_like[t] = false;
            interval.is_new[t] = class_of(&rows, alone).sources == 0;
            added += interval.is_new[t] ? between(&rows, (enum interval_trait)t) : 0;
            continue;
        }
        variance = (class.squares + WIDER * variance) / (double)(class.sources + WIDER);
        interval.runs = class.runs;
        interval.sources = class.sources;
    }
    interval.spread = gsl_cdf_tdist_Pinv(0.95, (double)all.sources) * sqrt(variance + added);
    return interval;
}

double interval_low(const struct interval *interval, double predicted)
{
    return predicted * exp(-interval->spread);
}

double interval_high(const struct interval *interval, double predicted)
{
    return predicted * exp(interval->spread);
}

/* Appends "on a100", "with profile deepspeed" or "on one node". */
static void put_trait(struct text *out, const struct residual *like, enum interval_trait trait)
{
    text_printf(out, "%s %s", trait == TRAIT_FRAMEWORK ? "with profile" : "on",
                trait_of(like, trait));
}

void interval_put_from(struct text *out, const struct interval *interval, struct interval_run run)
{
    const struct residual like = {
        .device = run.device, .framework = run.framework, .several = run.several};
    size_t alike = 0, others = 0, new = 0;
    text_printf(out, "%zu run%s of %zu source%s", interval->runs, interval->runs == 1 ? "" : "s",
                interval->sources, interval->sources == 1 ? "" : "s");
    for (int t = 0; t < TRAIT_COUNT; t++) {
        if (!interval->is_like[t])
            continue;
        text_puts(out, alike++ == 0 ? " " : ", ");
        put_trait(out, &like, (enum interval_trait)t);
    }
    for (int t = 0; t < TRAIT_COUNT; t++) {
        if (interval->is_like[t] || interval->is_new[t])
            continue;
        text_puts(out, others++ == 0 ? ", none of them " : " or ");
        put_trait(out, &like, (enum interval_trait)t);
    }
    for (int t = 0; t < TRAIT_COUNT; t++) {
        if (!interval->is_new[t])
            continue;
        text_puts(out, new ++ == 0 ? ", and nothing was measured " : " or ");
        put_trait(out, &like, (enum interval_trait)t);
    }
}
