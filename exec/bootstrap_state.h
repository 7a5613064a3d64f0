/* exec/bootstrap_state.h: the state of a connection between processes, which the sources of exec/bootstrap.h share. */
#ifndef EXEC_BOOTSTRAP_STATE_H
#define EXEC_BOOTSTRAP_STATE_H

#include "exec/bootstrap.h"

#include <pthread.h>
#include <stdatomic.h>

/* The most seconds that rank 0 waits for the greeting on a new connection. A process waits twice as long for the first
 * answer. */
#define BOOTSTRAP_GREETING_TIMEOUT_S 5.0

/* The connections that every other process makes to rank 0: for messages and for heartbeats. CHANNELS is their
 * number. */
enum connection_kind { MESSAGES, PROGRESS, CHANNELS };

/* The progress of one process or, in what rank 0 sends, of all processes together. */
struct heartbeat {
    uint64_t ended_ops;
    uint32_t busy_processes, failed_rank_plus_1;
    uint32_t silent_rank_plus_1; /* 1 + the rank of a process that sends no heartbeats; 0: none */
    uint32_t unused;
};

/* The limits after which a process that sends no heartbeats, because it is stopped or its machine is gone, is treated
 * as idle or as lost. */
struct silence_limits {
    double silence_until_counted_idle_s; /* after this time no op counts as running there */
    double silence_until_failure_s;      /* after this time no process waits for its messages */
};

struct bootstrap {
    struct bootstrap_place place;
    uint64_t request_digest, machine_id;
    uint32_t local_process_count;
    double timeout_s; /* the most seconds that a call waits for a message */
    /* sockets[channel]: on rank 0 (process_count) sockets, one for each rank; on other ranks one socket, to rank 0 */
    int *sockets[CHANNELS];
    bool is_broken;         /* a call has lost a connection: every later call fails */
    atomic_bool is_leaving; /* bootstrap_announce_end() was called */

    pthread_t progress_thread; /* exchanges heartbeats */
    bool has_progress_thread;
    atomic_bool must_quit; /* the progress thread must end */
    pthread_mutex_t lock;  /* guards the members below */
    struct heartbeat own_progress, total_progress;
    double last_progress_s; /* when a heartbeat last showed progress */
    struct silence_limits limits;
};

/* Returns the seconds of the monotonic clock. */
double bootstrap_now_s(void);
/* Limits the time of a send or receive on a socket, which then fails with EAGAIN, and of a connect (EINPROGRESS). */
void bootstrap_set_timeout(int fd, double timeout_s);
void bootstrap_close_socket(int *fd);

/* Connects the processes (exec/bootstrap_meet.c): all other ranks connect to rank 0. On rank 0, host[r] for r > 0
 * receives the machine id of rank r. */
enum status bootstrap_connect_processes(struct bootstrap *b, uint64_t *host, struct diag *diag);

/* Exchanges heartbeats until `must_quit` is set: the function of progress_thread (exec/bootstrap_progress.c). */
void *bootstrap_progress_thread_main(void *bootstrap);

#endif
