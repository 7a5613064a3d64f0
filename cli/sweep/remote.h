/* cli/sweep/remote.h: sends points of a sweep to processes on other nodes, and collects their rows.
 *
 * Rank 0 has the journal. The other ranks ask it for points before they need them, so that their workers do not
 * wait, and send rows back. A message from rank 0 ends them. */
#ifndef CLI_SWEEP_REMOTE_H
#define CLI_SWEEP_REMOTE_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/sweep/launcher.h"
#include "cli/sweep/predictor.h"

#include <stdbool.h>
#include <stddef.h>

/* The state of rank 0. If the launcher started one process, all members but `launcher` are zero, and no point is
 * remote. */
struct sweep_remote {
    const struct launcher *launcher;
    int *waiting_ranks; /* ranks that have asked for a point and not got one yet */
    size_t waiting_count, waiting_capacity;
    /* number of points that other ranks have and whose rows have not arrived */
    size_t outstanding_point_count;
};

struct sweep_remote_row {
    size_t point;
    enum sweep_status outcome;
    struct text row;
};

void sweep_remote_release(struct sweep_remote *remote);

/* Returns whether another rank waits for a point. */
bool sweep_remote_has_waiting_rank(struct sweep_remote *remote);
/* Sends a point to the rank that has waited longest for one. */
void sweep_remote_send_point(struct sweep_remote *remote, size_t point);
/* Receives messages until one of them is a row, which it stores in *row in place of the one before. Notes the ranks
 * that ask for a point. Returns false if no row has arrived. */
bool sweep_remote_receive_row(struct sweep_remote *remote, struct sweep_remote_row *row);
/* Tells all other ranks to stop, and ends MPI. */
void sweep_remote_finish_mpi(struct sweep_remote *remote);

/* Predicts the points that rank 0 sends, until rank 0 sends the message to stop. Every rank but
 * rank 0 calls this function. */
enum status sweep_predict_points_for_rank_0(const struct sweep_grid *grid, size_t jobs,
                                            struct launcher *launcher, struct diag *diag);

#endif
