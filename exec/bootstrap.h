/* exec/bootstrap.h: connects several processes that run one schedule, one rank each: it finds their ranks, and carries
 * small messages between them over TCP.
 *
 * A process learns its rank from the variables that its launcher sets (the table `launchers` in exec/bootstrap_place.c:
 * torchrun, mpirun, Slurm's steps). Rank 0 listens; all messages go through it. Nothing here depends on devices: the
 * messages are the ids that NCCL needs to start, and results.
 *
 * Rank 0 answers every process that connects, and accepts it if both are of one version of the program, of one number
 * of processes, and about to run the same schedule with the same options. Unless LONGHAUL_PORT gives the port, it is
 * not MASTER_PORT, since torchrun's agent keeps its own store there. */
#ifndef EXEC_BOOTSTRAP_H
#define EXEC_BOOTSTRAP_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOTSTRAP_UNKNOWN UINT32_MAX

struct bootstrap_place {
    uint32_t rank, process_count;
    /* index among the processes of its machine; BOOTSTRAP_UNKNOWN: it becomes known when the processes connect */
    uint32_t local_rank;
    char rank0_host[256]; /* the host on which rank 0 listens */
    uint16_t rank0_port;
    /* number of processes on its machine; BOOTSTRAP_UNKNOWN: it is found when the processes connect */
    uint32_t local_process_count;
};

/* Reads this process's place from the environment. If no launcher has set its variables, there is one process. */
enum status bootstrap_place_read(struct bootstrap_place *place, struct diag *diag);

struct bootstrap;

/* Connects all processes and waits at most timeout_s seconds for them. Every later message has the same limit. request:
 * a digest of the schedule and of the options, which must be the same on all processes. Returns NULL after a message
 * (STATUS_SYSTEM) if a process did not connect in time, if another program uses the port, or if a process differs from
 * rank 0; every process gets a message. */
struct bootstrap *bootstrap_open(const struct bootstrap_place *place, uint64_t request,
                                 double timeout_s, struct diag *diag);
void bootstrap_close(struct bootstrap *bootstrap);

uint32_t bootstrap_rank(const struct bootstrap *bootstrap);
uint32_t bootstrap_process_count(const struct bootstrap *bootstrap);
/* bootstrap_local_rank() returns the index of this process among the processes of this machine;
 * bootstrap_local_process_count() returns how many these are. */
uint32_t bootstrap_local_rank(const struct bootstrap *bootstrap);
uint32_t bootstrap_local_process_count(const struct bootstrap *bootstrap);

/* Sends root's data to all processes. All processes must make the same calls in the same order. Returns STATUS_SYSTEM
 * if a process is gone, has not answered within the limit of bootstrap_open(), or has sent no heartbeat for a minute;
 * every later call then fails, too. The limit begins anew whenever a heartbeat shows progress. */
enum status bootstrap_broadcast(struct bootstrap *bootstrap, uint32_t root, void *data,
                                size_t bytes, struct diag *diag);
/* Gathers the `bytes` bytes at `mine` of every process into `all`, (processes, bytes), on every process. */
enum status bootstrap_all_gather(struct bootstrap *bootstrap, const void *mine, void *all,
                                 size_t bytes, struct diag *diag);
/* Fails on every process unless all processes pass the same `request`. */
enum status bootstrap_check_same_request(struct bootstrap *bootstrap, uint64_t request,
                                         struct diag *diag);

/* Says that this process is about to end: from then on each call waits at most two seconds for a message. */
void bootstrap_announce_end(struct bootstrap *bootstrap);

/* The progress of all processes during a step, as far as one of them knows it. Processes exchange it in heartbeats,
 * several times a second, on connections that carry nothing else. */
struct bootstrap_progress {
    uint64_t ended_ops;          /* ops that have ended, on all processes */
    uint32_t busy_processes;     /* processes on which an op is running */
    uint32_t failed_rank_plus_1; /* 1 + the rank of a process that has failed; 0: none */
};

/* Reports this process's progress: how many ops have ended, whether one is running, and whether the run has failed.
 * Returns the progress of all processes as far as this one knows it. Any thread may call it. */
struct bootstrap_progress bootstrap_report_progress(struct bootstrap *bootstrap, uint64_t ended,
                                                    bool busy, bool failed);

/* Sets *world to the connection to the processes that were started together with this one, or to NULL if there are
 * none. The first call connects them, for which it waits at most connect_s seconds (0: 120 s); later messages may take
 * 600 s. They stay connected until this process ends, and later calls return the same connection. If there are
 * several processes, each call fails unless their number is `ranks` and all of them pass the same `request`. */
enum status bootstrap_connect_at_first_call(struct bootstrap **world, uint64_t request,
                                            uint32_t ranks, double connect_s, struct diag *diag);
/* True if this process prints results and messages: it is the only one, it is rank 0, or its rank cannot be read. */
bool bootstrap_is_printing_process(void);

#endif
