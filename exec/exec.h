/* exec/exec.h: runs a schedule on real hardware, by exec_run().
 *
 * exec_run() allocates the planned arenas of every rank, lets the caller fill bound buffers, walks the schedule and
 * passes it op by op to a backend, and lets the caller read the results. It knows no strategy and no costs: numbers are
 * checked through bindings (exec/bindings.h), and times are measured. Ranks are threads of the calling process; on GPUs
 * a launcher may start one process per rank instead (exec/bootstrap.h).
 *
 * If an op fails, a rank stalls, members of a collective do not agree about it, or a backend whose kernels run on the
 * host finds a read of unwritten bytes (options.finds_unwritten_reads), all ranks are stopped and each process has one
 * message. docs/execution.md describes the details.
 *
 * The folder exec/ runs schedules on real hardware, measures them, and checks their numbers against an unsharded
 * reference. */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "base/diag.h"
#include "exec/exec_options.h"
#include "schedule/ir/ir.h"
#include "traces/trace.h"

#include <stdbool.h>
#include <stdint.h>

struct exec_result {
    uint32_t ranks, steps;
    uint32_t warmup_steps; /* steps that were run before those that were measured */
    /* mean clock over the measured steps, with records_trace or waits_for_steady_clock; 0: unknown */
    double clock_mhz;
    double *step_s;       /* (steps) seconds from the first issue to the last end, per step */
    uint32_t median_step; /* the measured step whose time is the (lower) median */
    double median_s;
    uint64_t planned_bytes[MEMORY_COUNT]; /* allocated per rank: the plan's */
    /* with records_trace: the most bytes that were live at once in the median step, on the rank with the most */
    uint64_t peak_bytes[MEMORY_COUNT];
    struct trace trace; /* ops that did work, ordered by (start, rank, op), and live bytes */
};

/* Runs the warm-up steps, then the measured steps. Returns STATUS_BAD_INPUT if the schedule cannot be run, for example
 * if operands do not fit their op's shape or the backend is unknown. Returns STATUS_NO if a step failed; the message
 * names the rank, the op and the fault, or says which op waits for which. Returns STATUS_SYSTEM if the system refused
 * memory or threads, or if options.ended_by() ended the run. name: the schedule's name in messages. io: NULL if there
 * is nothing to fill or read. *result must be all-zero, and stays so unless STATUS_OK is returned; release it in either
 * case. */
enum status exec_run(const struct ir *ir, const char *name, const struct exec_options *options,
                     const struct exec_io *io, struct exec_result *result, struct diag *diag);

void exec_result_release(struct exec_result *result);

#endif
