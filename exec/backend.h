/* exec/backend.h: the functions that a kind of hardware must provide to run schedules, and the list of backends.
 *
 * The executor walks a role's list of ops on one host thread per rank and calls the functions below; it knows no
 * hardware. A backend owns the memory pools, the streams and the connections between ranks. Each kind of work that
 * streams run has one function. On the CPU, the worker of a stream calls it when the op may start; for a device, a host
 * thread calls it to enqueue the op.
 *
 * A function that waits returns false if the run is stopped meanwhile (a thread has called run_record_failure()). Its
 * caller then returns at once. */
#ifndef EXEC_BACKEND_H
#define EXEC_BACKEND_H

#include "exec/bindings.h"
#include "exec/exec_options.h"
#include "models/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_run;
struct assignment_exchanged_rows;
struct routed_rows;

enum { CALL_OPERANDS_MAX = 11 };

struct operand {
    void *data; /* address in the backend's memory */
    uint64_t element_count;
    uint8_t dtype; /* enum dtype */
};

/* One op on one rank, with the addresses of its operands. */
struct call {
    const struct work *work;
    uint32_t rank, op;
    /* the rank's index in work_sharding_group(); 0 if there is no such group */
    int64_t index_in_sharding_group;
    bool reads_softmax; /* CROSS_ENTROPY_BACKWARD: the first read is the softmax, not the logits */
    /* SQUARE_SUM: the runs of the first operand that are added, each with the number of ranks that hold it; NULL: the
     * whole operand is added, and only this rank holds it */
    const struct copied_run *square_sum_runs;
    uint32_t square_sum_run_count;
    /* for attention over documents (work_pairs_depend_on_rank()): the pieces of keys that the rank sees. NULL: it sees
     * none, or this is other work. */
    const struct attention_piece *visible_attention_pieces;
    uint32_t visible_attention_piece_count;
    /* for TAKE_ROWS, ADD_ROWS, MERGE_ROWS and EXCHANGE: the rows that this rank exchanges with other context ranks;
     * NULL for other work */
    const struct assignment_exchanged_rows *exchanged_rows;
    /* for work on rows of experts (exec/assignment.h), if routing is not even: the rank's rows; else NULL */
    const struct routed_rows *routed_rows;
    struct exec_model model;
    struct exec_adamw adamw; /* step_number: that of the current step */
    uint8_t read_count, write_count;
    struct operand read[CALL_OPERANDS_MAX], write[CALL_OPERANDS_MAX];
};

/* Runs one op, or enqueues it on a device. Returns false if the run has failed. context is the backend's own. */
typedef bool backend_kernel(void *context, struct call *call);

/* The state of an op, for the message about a stall. */
enum op_state {
    OP_NOT_ISSUED,
    OP_QUEUED,        /* issued; its stream or its waits hold it back */
    OP_AT_RENDEZVOUS, /* communication that this rank has reached and that waits for other ranks */
    OP_RUNNING,
    OP_DONE
};

/* A caller's function that receives a key and a value for the header of a trace or of a file of points. */
typedef void backend_header_function(void *user, const char *key, const char *value);

struct backend {
    const char *name, *summary;
    /* True if kernels run on the host and can address the pools' memory. options.finds_unwritten_reads then uses
     * exec/poison.h. If false, that option makes begin_step() fill all memory that is not bound with NaNs. */
    bool kernels_run_on_host;
    bool supports_processes; /* a launcher may start it once per rank (exec/bootstrap.h) */
    /* [WORK_KIND_COUNT] the function that runs each kind. NULL for SYNC kinds, which functions below run, and for
     * opaque work, which cannot be executed. */
    backend_kernel *const *kernel;

    /* Describes the device of the run that the calling thread has opened; if it has opened none, the first device.
     * NULL: a trace does not describe the device, and exec/microbench_describe.c does it for measured points. */
    enum status (*describe)(backend_header_function *say, void *user, struct diag *diag);
    /* Describes an open run: its libraries, which kernels it uses and how its ranks communicate. NULL: there is nothing
     * to describe. */
    void (*describe_run)(struct exec_run *run, backend_header_function *say, void *user);

    /* clock_mhz() returns the mean clock of the device between two times of run_now_s(); 0: it is unknown.
     * describe_step() describes what else is known of the device between two such times. NULL: nothing is known. */
    double (*clock_mhz)(struct exec_run *run, double begin_s, double end_s);
    void (*describe_step)(struct exec_run *run, double begin_s, double end_s,
                          backend_header_function *say, void *user);

    /* open() makes the memory pools (run->ir->planned_bytes each), streams and communication of the ranks in this
     * process, and stores its state in run->backend_state. close() frees all of it, also after open() has failed. */
    enum status (*open)(struct exec_run *run, struct diag *diag);
    void (*close)(struct exec_run *run);

    /* Returns the address of a rank's pool, as kernels use it. */
    void *(*memory)(struct exec_run *run, uint32_t rank, enum memory memory);
    /* put() and get() copy bytes to and from a pool, while nothing else runs. */
    void (*put)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset,
                const void *from, uint64_t bytes);
    void (*get)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset, void *to,
                uint64_t bytes);

    /* clear() makes bytes of a pool zero. draw() fills elements of a pool with drawn numbers; it returns false if the
     * pool is host memory, which the caller must fill itself. Both are called while nothing else runs. NULL: all pools
     * are host memory. */
    void (*clear)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset,
                  uint64_t bytes);
    bool (*draw)(struct exec_run *run, uint32_t rank, enum memory memory, uint64_t offset,
                 enum dtype dtype, const struct draw *draw);

    /* Called before each step, when all streams are empty. */
    void (*begin_step)(struct exec_run *run);
    /* Called after each step that did not fail, outside of its measured time. In a run with a trace, it reads the times
     * of ops from the device and writes them. NULL: the ops' times are written already. */
    void (*end_step)(struct exec_run *run);
    /* Issues an op to its stream. The op starts after the op before it on that stream, and after all ops for which it
     * waits. An op that a guard leaves out keeps its place in the stream and does nothing. The op's times are written
     * when it ends, or by end_step(). */
    bool (*enqueue)(struct exec_run *run, uint32_t rank, uint32_t op);
    /* These functions block the host. wait_stream() waits until all ops issued on a stream have ended, wait_op() until
     * one op has, barrier() until all ranks of a barrier's group have arrived, and finish(), at the end of the step,
     * until everything has ended. */
    bool (*wait_stream)(struct exec_run *run, uint32_t rank, uint8_t stream);
    bool (*wait_op)(struct exec_run *run, uint32_t rank, uint32_t op);
    bool (*barrier)(struct exec_run *run, uint32_t rank, uint32_t op);
    bool (*finish)(struct exec_run *run, uint32_t rank);
    /* Called when the host has passed a SYNC op. Other ops may wait for it. */
    void (*record_passed_sync)(struct exec_run *run, uint32_t rank, uint32_t op);

    /* The watcher calls it before it decides whether a run has stalled. It counts the ops that have ended, for a
     * backend that must ask the device. NULL: the backend counts ops when they end. */
    void (*watch)(struct exec_run *run);
    /* Called once, after run->must_stop has been set: wakes everything that waits. */
    void (*stop)(struct exec_run *run);
    enum op_state (*state)(struct exec_run *run, uint32_t rank, uint32_t op);
    /* True if a rank has reached its part of a communication op or its barrier. */
    bool (*arrived)(struct exec_run *run, uint32_t rank, uint32_t op);
};

/* backend_find() returns the backend with that name, or NULL; backend_all() returns all backends. */
const struct backend *backend_find(const char *name);
const struct backend *const *backend_all(size_t *count);

#endif
