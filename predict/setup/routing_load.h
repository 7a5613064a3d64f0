/* predict/setup/routing_load.h: reads from the text of option --routing which share of all copies each expert gets. */
#ifndef PREDICT_ROUTING_LOAD_H
#define PREDICT_ROUTING_LOAD_H

#include "base/diag.h"
#include "models/transformer.h"
#include "schedule/ir/routing.h"

/* Reads one of: "dirichlet:ALPHA" or "dirichlet:ALPHA,SEED", a symmetric Dirichlet distribution that is drawn once for
 * all layers (the seed is 1 unless given); or the name of a CSV file with the columns layer,expert,share, where layer *
 * stands for all layers. Shares are numbers of at least 0; an expert without a row has share 0. The result lives in the
 * arena. */
enum status routing_load(struct routing *routing, struct arena *arena,
                         const struct transformer *model, const char *text, struct diag *diag);

/* Draws the shares of the experts once, and gives them to all layers. alpha is above 0. */
void routing_draw(struct routing *routing, struct arena *arena, const struct transformer *model,
                  double alpha, uint64_t seed);

/* True if a text names a distribution with parameters that are allowed; then *alpha and *seed are these. */
bool routing_is_drawn(const char *text, double *alpha, uint64_t *seed);

#endif
