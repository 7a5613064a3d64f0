/* exec/bootstrap.h: connects several processes that run one schedule, one rank each: it finds their ranks, and
 * carries small messages between them over TCP.
 *
 * A process learns its rank from the variables that torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
 * MASTER_PORT) or Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_LAUNCH_NODE_IPADDR). Rank 0 listens; all
 * messages go through it. Nothing here depends on devices: the messages are the ids that NCCL needs to start, and
 * results. */
#ifndef EXEC_BOOTSTRAP_H
#define EXEC_BOOTSTRAP_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bootstrap_place {
    uint32_t rank, size, local; /* local: index among the processes of its machine */
    char host[256];             /* of rank 0 */
    uint16_t port;
};

/* Reads the place from the environment; size 1 if no such variable is set. */
enum status bootstrap_place_read(struct bootstrap_place *place, struct diag *diag);

struct bootstrap;

/* Connects all processes; waits at most timeout_s for them, which is also the time limit of every later message. */
struct bootstrap *bootstrap_open(const struct bootstrap_place *place, double timeout_s,
                                 struct diag *diag);
void bootstrap_close(struct bootstrap *bootstrap);

uint32_t bootstrap_rank(const struct bootstrap *bootstrap);
uint32_t bootstrap_size(const struct bootstrap *bootstrap);
uint32_t bootstrap_local(const struct bootstrap *bootstrap);

/* Sends root's data to all processes. All processes must make the same calls in the same order. STATUS_SYSTEM: a
 * process is gone, or has not answered in time; every later call fails, too. */
enum status bootstrap_broadcast(struct bootstrap *bootstrap, uint32_t root, void *data,
                                size_t bytes, struct diag *diag);
/* Collects the data `mine` of every process in `all`, (size, bytes). */
enum status bootstrap_gather(struct bootstrap *bootstrap, const void *mine, void *all, size_t bytes,
                             struct diag *diag);

/* Returns the processes that this one was started with, connected at the first call and kept until it ends; *world is
 * NULL if there are no others. */
enum status bootstrap_world(struct bootstrap **world, struct diag *diag);
/* True if this process is the one that prints: the only one, or rank 0. */
bool bootstrap_speaks(void);

#endif
