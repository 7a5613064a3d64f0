/* cli/sweep/remote.h: sends points of a sweep to processes on other nodes and collects their rows.
 *
 * Rank 0 has the journal. The other ranks ask it for points, a few more than their workers are computing, and send
 * rows back; a message to stop ends them. */
#ifndef CLI_SWEEP_REMOTE_H
#define CLI_SWEEP_REMOTE_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/sweep/launcher.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

/* Rank 0's state. With a launcher of one process all but `launcher` is zero, and no point is remote. */
struct sweep_remote {
    const struct launcher *launcher;
    int *wanting; /* ranks that asked and have no answer yet */
    size_t wants, capacity;
    size_t away; /* points given to other ranks whose rows have not come */
};

struct sweep_remote_row {
    size_t point;
    enum sweep_status outcome;
    struct text row;
};

void sweep_remote_release(struct sweep_remote *remote);

/* True if another rank waits for a point. */
bool sweep_remote_wants(struct sweep_remote *remote);
/* Sends a point to the rank that has waited longest. */
void sweep_remote_give(struct sweep_remote *remote, size_t point);
/* Receives a row if one has arrived; else returns false. row->row is overwritten. */
bool sweep_remote_take(struct sweep_remote *remote, struct sweep_remote_row *row);
/* Tells all others to stop, and leaves MPI. */
void sweep_remote_stop(struct sweep_remote *remote);

/* Runs on the other ranks: predicts the points that rank 0 sends until it sends the message to stop. */
enum status sweep_serve(const struct sweep_grid *grid, size_t jobs, struct launcher *launcher,
                        struct diag *diag);

#endif
