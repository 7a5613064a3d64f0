/* exec/bootstrap_state.h: the state of a connection between processes, which the sources of exec/bootstrap.h share. */
#ifndef EXEC_BOOTSTRAP_STATE_H
#define EXEC_BOOTSTRAP_STATE_H

#include "exec/bootstrap.h"

#include <pthread.h>
#include <stdatomic.h>

#define BOOTSTRAP_GREETING_S                                                                       \
    5.0 /* in which a program that listens or connects must have said who it is */

/* The connections that every process makes to rank 0. */
enum connection_kind { MESSAGES, PROGRESS, CHANNELS };

/* A process's own progress, and what rank 0 sends of all. */
struct heartbeat {
    uint64_t ended_ops;
    uint32_t busy_processes, failed_rank;
};

struct bootstrap {
    struct bootstrap_place place;
    uint64_t schedule, host;
    uint32_t local_size;
    double timeout_s;
    int *peer[CHANNELS]; /* rank 0: (size) sockets; others: only peer[][0] is one */
    bool is_broken;

    pthread_t thread; /* exchanges beats */
    bool has_thread;
    atomic_bool must_quit;
    pthread_mutex_t lock; /* guards the fields below */
    struct heartbeat own_beat, all_beats;
    double moved_s; /* when progress was last heard of */
};

/* Returns the seconds of the monotonic clock. */
double bootstrap_now_s(void);
/* Sets the time after which a call on a socket returns with EAGAIN. */
void bootstrap_set_timeout(int fd, double timeout_s);
void bootstrap_hang_up(int *fd);

/* Connects this process: rank 0 waits for all others (exec/bootstrap_meet.c), which connect to it. On rank 0 host[r],
 * r > 0, receives the number of rank r's machine. */
enum status bootstrap_meet(struct bootstrap *b, uint64_t *host, struct diag *diag);

/* Exchanges progress until b->quit is set; the function of b->thread (exec/bootstrap_progress.c). */
void *bootstrap_exchange(void *bootstrap);

#endif
