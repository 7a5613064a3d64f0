/* cli/figure/lane.h: one lane of a timeline: what a stream does over the time of a window, as boxes.
 *
 * If a lane has few spans, they are drawn as they are. If it has more than a page can show, the window is cut into
 * bins, and the height of a bin is shared by the colours in proportion to their time; what is left is idle. So a lane
 * that repeats looks repeated however many of its periods fall into a bin. */
#ifndef CLI_FIGURE_LANE_H
#define CLI_FIGURE_LANE_H

#include "cli/figure/window.h"

enum { LANE_COLOURS = 9 }; /* colours are numbered from 1 */

/* All-zero is empty. */
struct lane {
    struct lane_span {
        double start_s, end_s;
        uint8_t colour;
    } * span; /* on the heap, in the order of time */
    size_t span_count, capacity;
};
void lane_release(struct lane *lane);

/* Adds the part of a span that is inside the window and after the end of the span before. If the span before has the
 * same colour, and almost no time lies between the two, that span is made longer instead. Spans must be added in the
 * order of their starts. */
void lane_add_span(struct lane *lane, const struct figure_window *window, double start_s,
                   double end_s, uint8_t colour);

/* Appends a row of CSV for each box of the lane: `lane_number`, its colour, its start and end in the window's unit, and
 * the lower and upper end of the part of the lane's height that it takes, from 0 to 1. Sets found[colour] for each
 * colour that occurs. */
void lane_put_boxes(struct text *out, const struct lane *lane, size_t lane_number,
                    const struct figure_window *window, bool found[LANE_COLOURS]);

#endif
