#include "cli/figure/lane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* BINS: the number of bins of a lane, so that a bin is about two pixels wide on a page. SPANS_MAX: a lane with more
 * spans is drawn in bins. */
enum { BINS = 500, SPANS_MAX = 400 };
/* A box with a smaller share of the window than this would be invisible, so it is widened to this,
 * as far as idle time follows it. */
#define BOX_WIDTH_MIN_SHARE (1.0 / 900)
/* A colour with a smaller share of a bin would be invisible, so it is drawn as high as this. */
#define COLOUR_HEIGHT_MIN 0.08
/* Neighbouring bins are drawn as one if they have the same colours and no share differs by more than this. */
#define EQUAL_SHARES_TOLERANCE 0.03

void lane_release(struct lane *lane)
{
    free(lane->span);
    *lane = (struct lane){0};
}

void lane_add_span(struct lane *lane, const struct figure_window *window, double start_s,
                   double end_s, uint8_t colour)
{
    const double joined_gap_s = (window->to_s - window->from_s) / BINS / 100;
    start_s = fmax(start_s, window->from_s);
    end_s = fmin(end_s, window->to_s);
    struct lane_span *last = lane->span_count > 0 ? &lane->span[lane->span_count - 1] : NULL;
    if (last != NULL) /* rows of a recording may overlap; only the rest of the row is added */
        start_s = fmax(start_s, last->end_s);
    if (!(start_s < end_s))
        return;
    if (last != NULL && last->colour == colour && start_s - last->end_s < joined_gap_s) {
        last->end_s = fmax(last->end_s, end_s);
        return;
    }
    if (lane->span_count == lane->capacity) {
        lane->capacity = heap_next_capacity(lane->capacity, lane->span_count + 1);
        lane->span = heap_realloc(lane->span, lane->capacity, sizeof *lane->span);
    }
    lane->span[lane->span_count++] = (struct lane_span){start_s, end_s, colour};
}

/* Appends a row of the CSV that plots/timeline.gp reads. lane_number: the place of the lane, from 0 at the bottom. low,
 * high: the ends of the part of the lane's height that the box takes, from 0 to 1. */
static void put_box_row(struct text *out, size_t lane_number, const struct figure_window *window,
                        struct lane_span box, double low, double high)
{
    text_printf(out, "%zu,%u,%.9g,%.9g,%.4g,%.4g\n", lane_number, box.colour,
                box.start_s / window->time_format.seconds_per_unit,
                box.end_s / window->time_format.seconds_per_unit, low, high);
}

/* Appends each span as a box. Narrow boxes are widened until they can be seen, but only into idle time. */
static void put_span_boxes(struct text *out, const struct lane *lane, size_t lane_number,
                           const struct figure_window *window)
{
    const double least_s = (window->to_s - window->from_s) * BOX_WIDTH_MIN_SHARE;
    for (size_t i = 0; i < lane->span_count; i++) {
        struct lane_span box = lane->span[i];
        const double room_s = i + 1 < lane->span_count ? lane->span[i + 1].start_s : window->to_s;
        box.end_s = fmax(box.end_s, fmin(box.start_s + least_s, room_s));
        put_box_row(out, lane_number, window, box, 0, 1);
    }
}

/* The share of a bin's time that each colour has. */
struct lane_bin {
    double share[LANE_COLOURS];
};

static struct lane_bin *make_lane_bins(const struct lane *lane, const struct figure_window *window)
{
    struct lane_bin *bin = heap_zalloc(BINS, sizeof *bin);
    const double bin_s = (window->to_s - window->from_s) / BINS;
    for (size_t i = 0; i < lane->span_count; i++) {
        const struct lane_span *span = &lane->span[i];
        const double first = (span->start_s - window->from_s) / bin_s,
                     last = (span->end_s - window->from_s) / bin_s;
        for (size_t k = (size_t)first; k < BINS && (double)k < last; k++)
            bin[k].share[span->colour] += fmin(last, (double)k + 1) - fmax(first, (double)k);
    }
    return bin;
}

static bool have_bins_similar_colour_shares(const struct lane_bin *a, const struct lane_bin *b)
{
    for (int c = 1; c < LANE_COLOURS; c++)
        if (fabs(a->share[c] - b->share[c]) > EQUAL_SHARES_TOLERANCE ||
            (a->share[c] > 0) != (b->share[c] > 0))
            return false;
    return true;
}

/* Appends boxes for the bins [begin, end), whose shares are alike: one box for each colour, stacked, whose height is
 * the mean share of that colour, but at least COLOUR_HEIGHT_MIN. If the heights exceed 1 in sum, all are scaled down to
 * 1. */
static void put_share_boxes(struct text *out, size_t lane_number,
                            const struct figure_window *window, const struct lane_bin *bin,
                            size_t begin, size_t end)
{
    const double bin_s = (window->to_s - window->from_s) / BINS;
    double share[LANE_COLOURS] = {0}, all = 0, low = 0;
    for (int c = 1; c < LANE_COLOURS; c++) {
        for (size_t k = begin; k < end; k++)
            share[c] += bin[k].share[c] / (double)(end - begin);
        share[c] = share[c] > 1e-9 ? fmax(share[c], COLOUR_HEIGHT_MIN) : 0;
        all += share[c];
    }
    for (int c = 1; c < LANE_COLOURS; c++) {
        const double high = low + share[c] / fmax(all, 1);
        if (high > low)
            put_box_row(out, lane_number, window,
                        (struct lane_span){window->from_s + (double)begin * bin_s,
                                           window->from_s + (double)end * bin_s, (uint8_t)c},
                        low, high);
        low = high;
    }
}

void lane_put_boxes(struct text *out, const struct lane *lane, size_t lane_number,
                    const struct figure_window *window, bool found[LANE_COLOURS])
{
    for (size_t i = 0; i < lane->span_count; i++)
        found[lane->span[i].colour] = true;
    if (lane->span_count <= SPANS_MAX) {
        put_span_boxes(out, lane, lane_number, window);
        return;
    }
    struct lane_bin *bin = make_lane_bins(lane, window);
    for (size_t begin = 0, end; begin < BINS; begin = end) {
        for (end = begin + 1;
             end < BINS && have_bins_similar_colour_shares(&bin[begin], &bin[end]);)
            end++;
        put_share_boxes(out, lane_number, window, bin, begin, end);
    }
    free(bin);
}
