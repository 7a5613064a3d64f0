/* cli/sweep/remote.h: points of a sweep handed to processes on other nodes, and their rows.
 *
 * Rank 0 has the journal. The others ask it for points, a few ahead of what their workers do, and
 * send rows back; an order to stop ends them. */
#ifndef CLI_SWEEP_REMOTE_H
#define CLI_SWEEP_REMOTE_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/sweep/launcher.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

/* Rank 0's side. All-zero with a launcher that is alone: nothing is remote. */
struct sweep_remote {
    const struct launcher *launcher;
    int *wanting; /* ranks that asked and have no answer yet */
    size_t wants, capacity;
    size_t away; /* points that others have */
};

struct sweep_remote_row {
    size_t point;
    enum sweep_status outcome;
    struct text row;
};

void sweep_remote_release(struct sweep_remote *remote);

/* Whether somebody waits for a point. */
bool sweep_remote_wants(struct sweep_remote *remote);
void sweep_remote_give(struct sweep_remote *remote, size_t point);
/* Takes a row that has come; false: none has. row->row is overwritten. */
bool sweep_remote_take(struct sweep_remote *remote, struct sweep_remote_row *row);
/* Tells all others to stop, and leaves MPI. */
void sweep_remote_stop(struct sweep_remote *remote);

/* What the other ranks do: predict what they are given until they are told to stop. */
enum status sweep_serve(const struct sweep_grid *grid, size_t jobs, struct launcher *launcher,
                        struct diag *diag);

#endif
