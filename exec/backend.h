/* exec/backend.h: what hardware must provide to run schedules, and which hardware there is.
 *
 * The executor walks a role's list of ops on one host thread per rank and calls the functions below;
 * it knows no hardware. A backend owns the memory pools, the streams and what connects ranks. Work
 * is one function per kind: the CPU's are called by the worker of a stream when the op may start,
 * a device's by the host thread to enqueue it.
 *
 * Functions that wait return false when the run has been stopped (run_failed() was called, by
 * whomever): the caller then leaves at once. */
#ifndef EXEC_BACKEND_H
#define EXEC_BACKEND_H

#include "exec/bindings.h"
#include "exec/exec.h"
#include "models/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_run;

enum { CALL_OPERANDS_MAX = 8 };

struct operand {
    void *data; /* address in the backend's memory */
    uint64_t count;
    uint8_t dtype; /* enum dtype */
};

/* One op on one rank, its operands at their addresses. */
struct call {
    const struct work *work;
    uint32_t rank, op;
    int64_t part; /* the rank's index in work_part()'s group; 0 where there is none */
    bool softmax; /* CROSS_ENTROPY_BACKWARD: the first read is the softmax, not the logits */
    /* SQUARE_SUM: what of its first read counts, and how often others count it too; NULL: all, once */
    const struct share *share;
    uint32_t share_count;
    /* Attention with mask DOCUMENTS: what the rank sees; NULL: another mask, or nothing. */
    const struct attention_piece *piece;
    uint32_t pieces;
    struct exec_model model;
    struct exec_adamw adamw; /* step: of the step at hand */
    uint8_t reads, writes;
    struct operand read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
};

/* Does one op. context is the backend's own. */
typedef bool backend_kernel(void *context, struct call *call);

/* The state of an op, for the message about a stall. */
enum op_state {
    OP_NOT_ISSUED,
    OP_QUEUED,     /* issued; its stream or its waits hold it back */
    OP_RENDEZVOUS, /* communication that has been reached here and waits for others */
    OP_RUNNING,
    OP_DONE
};

/* Takes a key and a value of a header. */
typedef void backend_say(void *user, const char *key, const char *value);

struct backend {
    const char *name, *summary;
    /* Kernels run on the host, which can address their memory: options.poison is exec/poison.h. If
     * not, begin_step() fills what is not bound with NaNs. */
    bool host_memory;
    bool processes; /* a launcher may start it once per rank (exec/bootstrap.h) */
    /* One function for each kind; NULL only for SYNC kinds, which the functions below do. */
    backend_kernel *const *kernel; /* [WORK_KIND_COUNT] */

    /* Describes the device, independently of a run; NULL: exec/microbench_describe.c knows. */
    enum status (*describe)(backend_say *say, void *user, struct diag *diag);
    /* Describes an open run: libraries, clocks, how ranks communicate. NULL: nothing to say. */
    void (*describe_run)(struct exec_run *run, backend_say *say, void *user);

    /* Memory pools (run->ir->arena_bytes each), streams and communication of all ranks; the state
     * goes into run->state. close() takes it all back, also after a failed open(). */
    enum status (*open)(struct exec_run *run, struct diag *diag);
    void (*close)(struct exec_run *run);

    /* The pool of a rank as kernels address it. */
    void *(*memory)(struct exec_run *run, uint32_t rank, enum memory memory);
    /* Bytes into and out of a pool; nothing runs meanwhile. */
    void (*put)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset,
                const void *from, uint64_t bytes);
    void (*get)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset, void *to,
                uint64_t bytes);

    /* Before each step: all streams are empty. */
    void (*begin_step)(struct exec_run *run);
    /* After each step, outside of its time: writes the times of ops that are read from the device
     * (with a trace). NULL: enqueue() has. */
    void (*end_step)(struct exec_run *run);
    /* Issues an op to its stream: it starts after the op before it there and the ops it
     * waits for. A guarded-out op keeps its place and does nothing. Writes its times in the end. */
    bool (*enqueue)(struct exec_run *run, uint32_t rank, uint32_t op);
    /* The host waits: for all that was issued on a stream; for one op; for all ranks of a
     * barrier's group; for everything, at the end of the step. */
    bool (*wait_stream)(struct exec_run *run, uint32_t rank, uint8_t stream);
    bool (*wait_op)(struct exec_run *run, uint32_t rank, uint32_t op);
    bool (*barrier)(struct exec_run *run, uint32_t rank, uint32_t op);
    bool (*finish)(struct exec_run *run, uint32_t rank);
    /* The host has passed a SYNC op (others may wait for that). */
    void (*pass)(struct exec_run *run, uint32_t rank, uint32_t op);

    /* Called by the watcher before it judges whether a run stands still: counts what has ended, where only somebody who
     * looks sees it. NULL: it is always known. */
    void (*watch)(struct exec_run *run);
    /* Wakes everything that waits; called once run->stop is set. */
    void (*stop)(struct exec_run *run);
    enum op_state (*state)(struct exec_run *run, uint32_t rank, uint32_t op);
    /* Whether a rank has come to its part of a communication op or barrier. */
    bool (*arrived)(struct exec_run *run, uint32_t rank, uint32_t op);
};

/* The backend of that name, or NULL; all of them for `list`. */
const struct backend *backend_find(const char *name);
const struct backend *const *backend_all(size_t *count);

#endif
