/* exec/cpu/cpu.h: the CPU backend: each rank has a host thread and a thread for each of its streams, all in one
 * process.
 *
 * The thread of a stream, its worker, runs the stream's ops one after the other. It sleeps until the host has issued
 * the next op and the ops for which that op waits have ended. No thread spins. Device, pinned and pageable memory are
 * three pools of ordinary memory. Everything here is private to exec/cpu/, except cpu_backend.
 *
 * The folder exec/cpu/ is the backend whose ranks, streams and links are threads of one process. */
#ifndef EXEC_CPU_CPU_H
#define EXEC_CPU_CPU_H

#include "exec/backend.h"
#include "exec/cpu/link.h"
#include "exec/run.h"

#include <pthread.h>
#include <stdatomic.h>

extern const struct backend cpu_backend;

struct comm;
struct cpu_rank;

/* The ops for which a sleeping worker or host waits: all ops of a stream's list up to last_list_position, which must
 * have ended. */
struct awaited_end {
    uint8_t stream; /* row of ir.stream; CPU_HOST: the host's SYNC ops; CPU_NOTHING: no op */
    uint32_t last_list_position; /* index in the stream's list */
};

enum { CPU_HOST = IR_STREAMS_MAX, CPU_NOTHING = UINT8_MAX };

/* One stream of one rank. The rank's lock guards issued_ops, ended_ops, is_running_op and awaited. */
struct cpu_worker {
    struct exec_run *run;
    struct cpu_rank *rank;
    uint8_t stream;
    pthread_t thread;
    bool is_started;
    pthread_cond_t wakeup;
    struct assignment_stream_ops op_list;
    /* how many ops have been issued in the current step, and how many have ended */
    uint32_t issued_ops, ended_ops;
    /* op_list.ops[ended_ops] has started: its waits are over */
    bool is_running_op;
    /* what the worker awaits before it starts the next op; stream CPU_NOTHING: it awaits no other op */
    struct awaited_end awaited;
    atomic_bool waits_for_ranks; /* the running op waits for other ranks */
    float *scratch;              /* for the running kernel, and for operands that are not fp32 */
};

struct cpu_rank {
    uint32_t rank;
    pthread_mutex_t lock;
    struct cpu_worker *workers; /* (stream_count); those without ops have no thread */
    /* (ops of the role) the index of each op in its stream's list; for a SYNC op, its index among the host's SYNC
     * ops */
    uint32_t *list_position;
    uint32_t sync_ops_passed_by_host; /* SYNC ops that the host has passed */
    pthread_cond_t host_wakeup;       /* the rank's host thread sleeps on it */
    struct awaited_end host_awaited;  /* what the host thread waits for */
    bool must_quit;                   /* the threads of the rank must end */
    void *memory[MEMORY_COUNT];
    struct emulated_link send_link, h2d_link, d2h_link;
};

struct cpu {
    struct exec_run *run;
    uint32_t rank_count;
    struct cpu_rank *rank_states;
    struct comm *comm;
};

static inline struct cpu *cpu_of_run(const struct exec_run *run)
{
    return run->backend_state;
}

/* Kernels of copies and communication. Their context is a struct cpu_worker. */
backend_kernel cpu_copy, cpu_collective, cpu_send, cpu_recv;

#endif
