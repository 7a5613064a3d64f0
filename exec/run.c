#include "exec/run.h"

#include "base/c_locale.h"
#include "models/work_operands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

double run_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void run_op_to_text(const struct ir *ir, uint32_t op, char *text, size_t size)
{
    char layer[32] = "";
    if (ir->op.layer[op] != IR_NONE16)
        snprintf(layer, sizeof layer, ", layer %" PRIu16, ir->op.layer[op]);
    snprintf(text, size, "op %" PRIu32 " (%s, stream %s%s)", op,
             work_kind_info(ir->op.kind[op])->name, ir->stream[ir->op.stream[op]].name, layer);
}

static void record_first_failure(struct exec_run *run, enum status status, const char *words)
{
    pthread_mutex_lock(&run->lock);
    bool first = run->failure_status == STATUS_OK;
    if (first) {
        run->failure_status = status;
        snprintf(run->failure_text, sizeof run->failure_text, "%s", words);
        atomic_store(&run->must_stop, true);
        pthread_cond_broadcast(&run->state_changed);
    }
    pthread_mutex_unlock(&run->lock);
    if (first)
        run->backend->stop(run);
}

void run_record_failure(struct exec_run *run, uint32_t rank, uint32_t op, const char *format, ...)
{
    char what[640], where[96] = "", words[sizeof run->failure_text];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (op != IR_NONE)
        run_op_to_text(run->ir, op, where, sizeof where);
    if (rank == IR_NONE)
        snprintf(words, sizeof words, "%s", what);
    else
        snprintf(words, sizeof words, "rank %" PRIu32 ": %s%s%s", rank, where,
                 op == IR_NONE ? "" : " ", what);
    record_first_failure(run, STATUS_NO, words);
}

void run_record_system_failure(struct exec_run *run, const char *format, ...)
{
    char words[640];
    va_list args;
    va_start(args, format);
    c_vsnprintf(words, sizeof words, format, args);
    va_end(args);
    record_first_failure(run, STATUS_SYSTEM, words);
}

bool run_is_ended_by_caller(struct exec_run *run)
{
    const char *by = run->options->ended_by != NULL ? run->options->ended_by() : NULL;
    if (by != NULL)
        run_record_system_failure(run, "ended by %s", by);
    return by != NULL;
}

static struct operand make_operand_of_view(struct exec_run *run, uint32_t rank, struct view view)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t buffer = view.buffer.i;
    char *base = run->backend->memory(run, rank, table->memory[buffer]);
    return (struct operand){base + table->offset[buffer] +
                                view.begin * dtype_bytes(table->dtype[buffer]),
                            view.count, table->dtype[buffer]};
}

/* Sets the element counts of the operands that hold rows of experts, by the rank's real number of rows. */
static void set_operand_counts_of_routed_rows(struct call *call)
{
    const struct work *work = call->work;
    struct work_operand want[WORK_OPERANDS_MAX];
    if (work->kind == WORK_ALL_TO_ALL) {
        struct operand *uneven = work->all_to_all.ahead > 0 ? &call->write[0] : &call->read[0];
        uneven->element_count = (uint64_t)(call->routed_rows->row_count * work->all_to_all.cols);
        return;
    }
    work_operands(work, WORK_READS, 1, want);
    for (uint32_t k = 0; k < call->read_count; k++)
        call->read[k].element_count = want[k].count;
    work_operands(work, WORK_WRITES, 1, want);
    for (uint32_t k = 0; k < call->write_count; k++)
        call->write[k].element_count = want[k].count;
    /* `to` may be 0 here, which means no row; work_operands() would take it for even routing */
    if (work_is_permutation(work)) {
        const bool writes = work->kind == WORK_PERMUTE || work->kind == WORK_PERMUTE_WEIGHTS;
        struct operand *copies = writes                                  ? &call->write[0]
                                 : work->kind == WORK_UNPERMUTE_BACKWARD ? &call->read[1]
                                                                         : &call->read[0];
        copies->element_count = (uint64_t)(work->permute.to * work->permute.cols);
        if (work->kind == WORK_UNPERMUTE_BACKWARD)
            call->write[0].element_count = copies->element_count;
    }
}

void run_fill_call(struct exec_run *run, uint32_t rank, uint32_t op, struct call *call)
{
    const struct ir *ir = run->ir;
    call->work = ir_work(ir, op);
    call->rank = rank;
    call->op = op;
    call->reads_softmax = run->assignment.reads_softmax_by_op[op];
    int64_t part = work_sharding_group(call->work);
    call->index_in_sharding_group =
        part < 0 ? 0 : assignment_group_index(&run->assignment, rank, (uint32_t)part);
    call->square_sum_runs = NULL;
    call->square_sum_run_count = 0;
    if (run->assignment.square_sum_runs_index_by_op[op] != IR_NONE) {
        const struct assignment_square_sum_runs *shares =
            &run->assignment
                 .square_sum_runs[(size_t)run->assignment.square_sum_runs_index_by_op[op] *
                                      run->assignment.ranks +
                                  rank];
        call->square_sum_runs = shares->runs;
        call->square_sum_run_count = shares->run_count;
    }
    call->visible_attention_pieces = NULL;
    call->visible_attention_piece_count = 0;
    if (run->assignment.attention_pieces_index_by_shape[ir->op.shape[op]] != IR_NONE) {
        const struct assignment_attention_pieces *pieces =
            &run->assignment.attention_pieces
                 [(size_t)run->assignment.attention_pieces_index_by_shape[ir->op.shape[op]] *
                      run->assignment.ranks +
                  rank];
        call->visible_attention_pieces = pieces->pieces;
        call->visible_attention_piece_count = pieces->piece_count;
    }
    call->exchanged_rows = NULL;
    if (run->assignment.exchanged_rows_index_by_shape[ir->op.shape[op]] != IR_NONE)
        call->exchanged_rows =
            &run->assignment.exchanged_rows
                 [(size_t)run->assignment.exchanged_rows_index_by_shape[ir->op.shape[op]] *
                      run->assignment.ranks +
                  rank];
    const uint32_t routed = run->assignment.routed_rows_index_by_shape[ir->op.shape[op]];
    call->routed_rows = NULL;
    if (routed != IR_NONE) {
        call->routed_rows =
            &run->assignment.routed_rows[(size_t)routed * run->assignment.ranks + rank];
        call->work = &call->routed_rows->work_of_rank;
    }
    call->model = run->options->model;
    call->adamw = run->options->adamw;
    call->adamw.step_number =
        (call->adamw.step_number > 0 ? call->adamw.step_number : 1) + run->step_number;
    call->read_count = ir->op.read_count[op];
    call->write_count = ir->op.write_count[op];
    for (uint32_t k = 0; k < call->read_count; k++)
        call->read[k] = make_operand_of_view(run, rank, ir_read_view(ir, op, k));
    for (uint32_t k = 0; k < call->write_count; k++)
        call->write[k] = make_operand_of_view(run, rank, ir_write_view(ir, op, k));
    if (call->routed_rows != NULL)
        set_operand_counts_of_routed_rows(call);
}
