/* exec/bootstrap.h: several processes that run one schedule, a rank each: who they are, and small
 * messages between them over TCP.
 *
 * Who they are is what torchrun sets (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) or
 * Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_LAUNCH_NODE_IPADDR). Rank 0 listens; all
 * messages go through it. Nothing here knows devices: it carries what NCCL needs to begin, and
 * results. */
#ifndef EXEC_BOOTSTRAP_H
#define EXEC_BOOTSTRAP_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bootstrap_place {
    uint32_t rank, size, local; /* local: among the processes of its machine */
    char host[256];             /* of rank 0 */
    uint16_t port;
};

/* Reads the place from the environment; size 1 if it says nothing. */
enum status bootstrap_place_read(struct bootstrap_place *place, struct diag *diag);

struct bootstrap;

/* Waits until all have come, timeout_s at most; that is also how long any message may take. */
struct bootstrap *bootstrap_open(const struct bootstrap_place *place, double timeout_s,
                                 struct diag *diag);
void bootstrap_close(struct bootstrap *bootstrap);

uint32_t bootstrap_rank(const struct bootstrap *bootstrap);
uint32_t bootstrap_size(const struct bootstrap *bootstrap);
uint32_t bootstrap_local(const struct bootstrap *bootstrap);

/* Everybody calls the same ones in the same order. STATUS_SYSTEM: somebody has gone; every later
 * call fails, too. */
enum status bootstrap_broadcast(struct bootstrap *bootstrap, uint32_t root, void *data,
                                size_t bytes, struct diag *diag);
/* all: (size, bytes) */
enum status bootstrap_gather(struct bootstrap *bootstrap, const void *mine, void *all, size_t bytes,
                             struct diag *diag);

/* Returns the processes that this one was started with, connected at the first call and kept until it ends; *world is
 * NULL if there are no others. */
enum status bootstrap_world(struct bootstrap **world, struct diag *diag);
/* Whether this process is the one that prints: the only one, or rank 0. */
bool bootstrap_speaks(void);

#endif
