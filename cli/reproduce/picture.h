/* cli/reproduce/picture.h: the pictures of a reproduced entry: its points in the layout of the paper, and its
 * timelines. */
#ifndef CLI_REPRODUCE_PICTURE_H
#define CLI_REPRODUCE_PICTURE_H

#include "cli/figure/figure.h"
#include "predict/reproduce/reproduction.h"

/* Returns whether an entry has points that can be drawn. */
bool picture_has_points(const struct reproduction *r, size_t entry);

/* Fills an all-zero *figure with the entry's points. */
void picture_make_points_figure(struct figure *figure, const struct reproduction *r, size_t entry);

/* Fills an all-zero *figure with a timeline. It is drawn from the trace that the timeline's job wrote below
 * `folder`. */
enum status picture_make_timeline_figure(struct figure *figure, const struct reproduction *r,
                                         size_t job, const char *folder, struct diag *diag);

#endif
