/* exec/exec_options.h: the options of a run, and the caller's functions for bound buffers. */
#ifndef EXEC_EXEC_OPTIONS_H
#define EXEC_EXEC_OPTIONS_H

#include "base/diag.h"
#include "exec/draw.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>

/* Constants of the model and of the optimizer, which ops do not carry. */
struct exec_model {
    double norm_eps;   /* added to the mean square, or to the variance, under the root */
    double rope_theta; /* column pair j of dim turns by position * theta^(-2 j / dim) */
};

struct exec_adamw {
    double lr, beta1, beta2, eps, weight_decay;
    int64_t step_number; /* number of the first step that is run, from 1; 0: 1 */
    double max_norm; /* limit of the norm of all gradients, for schedules that clip; 0: no limit */
};

/* An emulated link: an op that moves n bytes over it takes at least latency_s + n / bytes_per_s seconds, and ops that
 * share the link run one after another. Threads sleep while they wait. */
struct exec_emulated_link_limits {
    double bytes_per_s; /* 0: as fast as the machine is */
    double latency_s;
};

/* A fault that tests ask for. When the host of `rank` is about to issue `op`, it stops issuing (STALL) or fails
 * (FAIL). */
enum exec_fault_kind { EXEC_FAULT_NONE, EXEC_FAULT_STALL, EXEC_FAULT_FAIL };
struct exec_fault {
    enum exec_fault_kind kind;
    uint32_t rank, op;
};

/* The kernels that compute attention, on backends that have a choice. */
enum exec_attention {
    /* the library's fused kernels for the ops that they support, but not for packed documents; else as TILES */
    EXEC_ATTENTION_AUTO,
    EXEC_ATTENTION_FUSED, /* only fused kernels; the run fails where they do not support an op */
    EXEC_ATTENTION_TILES, /* matrix products around kernels of our own */
    EXEC_ATTENTION_COUNT
};

struct exec_options {
    const char *backend; /* a row of exec/backend.c; NULL: "cpu" */
    struct exec_model model;
    struct exec_adamw adamw;
    uint32_t warmup_steps;   /* steps run and not measured */
    uint32_t measured_steps; /* steps measured; 0: 1 */
    /* a step starts as soon as the one before has ended, and all steps read the inputs of the first */
    bool runs_back_to_back;
    /* the warm-up, if there is one, goes on, with steps that are not measured, until the clock is steady or for 30 s */
    bool waits_for_steady_clock;
    bool finds_unwritten_reads; /* find reads of elements that nothing has written (slow) */
    bool records_trace;         /* fill result.trace with the ops and memory of the median step */
    /* the run fails if, for this many seconds, no op ends and no op is running on any process; 0: 10 s, or 60 s with
     * several processes */
    double stall_limit_s;
    /* The run fails if a step, the connection of the processes or that of one NCCL communicator takes longer than this.
     * 0: a step has no limit, processes have 120 s to connect, and an NCCL communicator has 60 s. */
    double step_limit_s;
    /* on a GPU, with records_trace: the times of ops come from CUPTI's records; false: from CUDA events */
    bool times_by_cupti;
    enum exec_attention attention;
    /* on a GPU: one call or kernel computes neighbouring ops, where it can: a product with the GELU of its result or
     * with the gradient of a bias, a residual sum with the norm after it, RoPE with the pack or unpack beside it
     * (exec/cuda/epilogues.h); false: each op has kernels of its own, as predictions assume */
    bool uses_epilogues;
    /* with several processes and NCCL: NCCL allocates the device memory, which is registered with every communicator
     * that carries data */
    bool registers_nccl_memory;
    /* the emulated link of each rank for copies in each direction between host and device */
    struct exec_emulated_link_limits copy_link;
    /* the emulated link of each rank over which it sends messages */
    struct exec_emulated_link_limits message_link;
    /* Called between steps and, during a step, at least ten times a second. Returns why the run must end ("an
     * interrupt"), or NULL to let it continue. The pointer may be NULL. */
    const char *(*ended_by)(void);
    /* receives notes about a run that succeeds, such as why a library is not used; NULL: notes are dropped. With
     * several processes only rank 0 writes notes. */
    struct diag *notes;
    /* a digest of what the caller's functions fill buffers with; it must be the same in all processes of a run */
    uint64_t input_digest;
    struct exec_fault fault;
    /* on a GPU: the number of multiprocessors that another kernel occupies during every measured step while it copies
     * memory, as a library's communication does; 0: there is no such kernel. It needs a warm-up step, so that CUDA has
     * loaded the kernels of the step before: the first launch of a kernel may have to wait until the device is idle. */
    uint32_t hogged_sm_count;
};

/* A bound buffer of one rank, as functions of struct exec_io get it. */
struct exec_buffer {
    const struct ir *ir;
    const struct binding *buffer_binding;
    uint32_t rank, buffer;
    uint32_t step; /* number of the step in this run, from 0; warm-up steps count */
    uint8_t dtype; /* enum dtype */
    uint64_t element_count;
    void *data; /* (elements) of dtype, in the program's own memory */
};

typedef enum status exec_io_function(void *user, const struct exec_buffer *buffer,
                                     struct diag *diag);

/* Receives the numbers for the block that begins at element `at` of a bound buffer. */
typedef void exec_draw_function(void *context, uint64_t at, const struct draw *draw);

/* The caller's functions for bound buffers. The thread that called exec_run() calls them, with ranks in ascending
 * order.
 *
 * Gradients and losses are zeroed before the first step, and before a later step if the schedule may read them before
 * it writes them. Every other bound buffer of this process's ranks is filled before the first step. `draw` is asked
 * first: if it is not NULL and returns true, the backend has made the numbers of the blocks that draw passed to
 * block(). Else `fill` writes a copy of the buffer, which is zero before. Before each later step, tokens, labels and
 * positions are filled again in this way, unless options.runs_back_to_back is set.
 *
 * `read` is called, for all ranks of all processes, after each step for the kinds in read_each_step, and after the last
 * step also for those in read_after_last_step. */
struct exec_io {
    void *user;
    exec_io_function *fill;                        /* NULL: what is not drawn stays zero */
    exec_io_function *read;                        /* NULL: no buffer is read */
    uint32_t read_each_step, read_after_last_step; /* masks of 1u << enum binding_kind */
    bool (*draw)(void *user, const struct exec_buffer *buffer, exec_draw_function *block,
                 void *context);
};

#endif
