#include "exec/run.h"

#include "base/c_locale.h"
#include "models/work_operands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

double run_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void run_op_text(const struct ir *ir, uint32_t op, char *text, size_t size)
{
    char layer[32] = "";
    if (ir->op.layer[op] != IR_NONE16)
        snprintf(layer, sizeof layer, ", layer %" PRIu16, ir->op.layer[op]);
    snprintf(text, size, "op %" PRIu32 " (%s, stream %s%s)", op,
             work_kind_info(ir->op.kind[op])->name, ir->stream[ir->op.stream[op]].name, layer);
}

static void fail_run(struct exec_run *run, enum status status, const char *words)
{
    pthread_mutex_lock(&run->lock);
    bool first = run->status == STATUS_OK;
    if (first) {
        run->status = status;
        snprintf(run->failure, sizeof run->failure, "%s", words);
        atomic_store(&run->must_stop, true);
        pthread_cond_broadcast(&run->state_changed);
    }
    pthread_mutex_unlock(&run->lock);
    if (first)
        run->backend->stop(run);
}

void run_failed(struct exec_run *run, uint32_t rank, uint32_t op, const char *format, ...)
{
    char what[640], where[96] = "", words[sizeof run->failure];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (op != IR_NONE)
        run_op_text(run->ir, op, where, sizeof where);
    if (rank == IR_NONE)
        snprintf(words, sizeof words, "%s", what);
    else
        snprintf(words, sizeof words, "rank %" PRIu32 ": %s%s%s", rank, where,
                 op == IR_NONE ? "" : " ", what);
    fail_run(run, STATUS_NO, words);
}

void run_refused(struct exec_run *run, const char *format, ...)
{
    char words[640];
    va_list args;
    va_start(args, format);
    c_vsnprintf(words, sizeof words, format, args);
    va_end(args);
    fail_run(run, STATUS_SYSTEM, words);
}

bool run_ended(struct exec_run *run)
{
    const char *by = run->options->ended_by != NULL ? run->options->ended_by() : NULL;
    if (by != NULL)
        run_refused(run, "ended by %s", by);
    return by != NULL;
}

static struct operand operand_of(struct exec_run *run, uint32_t rank, struct view view)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t buffer = view.buffer.i;
    char *base = run->backend->memory(run, rank, table->memory[buffer]);
    return (struct operand){base + table->offset[buffer] +
                                view.begin * dtype_bytes(table->dtype[buffer]),
                            view.count, table->dtype[buffer]};
}

/* Gives the operands of work on the rows of experts the counts of the rank's real rows. */
static void take_real_counts(struct call *call)
{
    const struct work *work = call->work;
    struct work_operand want[WORK_OPERANDS_MAX];
    if (work->kind == WORK_ALL_TO_ALL) {
        struct operand *uneven = work->all_to_all.ahead > 0 ? &call->write[0] : &call->read[0];
        uneven->count = (uint64_t)(call->dealt->rows * work->all_to_all.cols);
        return;
    }
    work_operands(work, WORK_READS, 1, want);
    for (uint32_t k = 0; k < call->read_count; k++)
        call->read[k].count = want[k].count;
    work_operands(work, WORK_WRITES, 1, want);
    for (uint32_t k = 0; k < call->write_count; k++)
        call->write[k].count = want[k].count;
    if (work_permutes(work)) { /* the kind takes to=0 for rows that are not listed */
        struct operand *copies = work->kind == WORK_PERMUTE     ? &call->write[0]
                                 : work->kind == WORK_UNPERMUTE ? &call->read[0]
                                                                : &call->read[1];
        copies->count = (uint64_t)(work->permute.to * work->permute.cols);
        if (work->kind == WORK_UNPERMUTE_BACKWARD)
            call->write[0].count = copies->count;
    }
}

void run_call(struct exec_run *run, uint32_t rank, uint32_t op, struct call *call)
{
    const struct ir *ir = run->ir;
    call->work = ir_work(ir, op);
    call->rank = rank;
    call->op = op;
    call->softmax = run->assignment.softmax[op];
    int64_t part = work_part_group(call->work);
    call->part = part < 0 ? 0 : assignment_index(&run->assignment, rank, (uint32_t)part);
    call->share = NULL;
    call->share_count = 0;
    if (run->assignment.share_row[op] != IR_NONE) {
        const struct assignment_shares *shares =
            &run->assignment
                 .shares[(size_t)run->assignment.share_row[op] * run->assignment.ranks + rank];
        call->share = shares->share;
        call->share_count = shares->count;
    }
    call->piece = NULL;
    call->pieces = 0;
    if (run->assignment.pieces_row[ir->op.shape[op]] != IR_NONE) {
        const struct assignment_pieces *pieces =
            &run->assignment.pieces[(size_t)run->assignment.pieces_row[ir->op.shape[op]] *
                                        run->assignment.ranks +
                                    rank];
        call->piece = pieces->piece;
        call->pieces = pieces->count;
    }
    call->rows = NULL;
    if (run->assignment.rows_row[ir->op.shape[op]] != IR_NONE)
        call->rows =
            &run->assignment
                 .rows[(size_t)run->assignment.rows_row[ir->op.shape[op]] * run->assignment.ranks +
                       rank];
    const uint32_t dealt = run->assignment.dealt_row[ir->op.shape[op]];
    call->dealt = NULL;
    if (dealt != IR_NONE) {
        call->dealt = &run->assignment.dealt[(size_t)dealt * run->assignment.ranks + rank];
        call->work = &call->dealt->work;
    }
    call->model = run->options->model;
    call->adamw = run->options->adamw;
    call->adamw.step = (call->adamw.step > 0 ? call->adamw.step : 1) + run->step;
    call->read_count = ir->op.read_count[op];
    call->write_count = ir->op.write_count[op];
    for (uint32_t k = 0; k < call->read_count; k++)
        call->read[k] = operand_of(run, rank, ir_read(ir, op, k));
    for (uint32_t k = 0; k < call->write_count; k++)
        call->write[k] = operand_of(run, rank, ir_write(ir, op, k));
    if (call->dealt != NULL)
        take_real_counts(call);
}
