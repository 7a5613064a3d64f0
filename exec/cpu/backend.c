#include "exec/cpu/comm.h"
#include "exec/cpu/cpu.h"
#include "exec/cpu/kernels.h"
#include "exec/poison.h"

#include <cblas.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, LINE = 64 };

/* ---- OpenBLAS without threads of its own ---- */

/* Replaces OpenBLAS's reader of the variable OPENBLAS_NUM_THREADS, which OpenBLAS calls when it is loaded, before
 * main(). With the library's own reader, OpenBLAS would start a thread for each core, which spins for 25 ms. Products
 * run on the calling thread, so this function makes OpenBLAS start none. A BLAS that does not call it is set to one
 * thread when a run opens. */
int openblas_num_threads_env(void);
int openblas_num_threads_env(void)
{
    return 1;
}

/* ---- the kernel of each kind of work ---- */

static bool run_compute(void *context, struct call *call)
{
    struct cpu_worker *worker = context;
    const char *fault_text = cpu_compute_call(call, worker->scratch);
    if (fault_text != NULL)
        run_record_failure(worker->run, call->rank, call->op, "%s", fault_text);
    return fault_text == NULL;
}

bool cpu_copy(void *context, struct call *call)
{
    struct cpu_worker *worker = context;
    struct emulated_link *link =
        call->work->kind == WORK_D2H ? &worker->rank->d2h_link : &worker->rank->h2d_link;
    double ready_s = run_now_s();
    uint64_t bytes = call->write[0].element_count * dtype_bytes(call->write[0].dtype);
    memmove(call->write[0].data, call->read[0].data, bytes);
    cpu_sleep_until(cpu_link_send_and_get_arrival_s(link, ready_s, (double)bytes),
                    &worker->run->must_stop);
    return true;
}

static backend_kernel *const kernels[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = run_compute,
    [WORK_QUANTISE] = run_compute,
    [WORK_DEQUANTISE] = run_compute,
    [WORK_ATTENTION] = run_compute,
    [WORK_ATTENTION_BACKWARD] = run_compute,
    [WORK_MERGE] = run_compute,
    [WORK_SINK] = run_compute,
    [WORK_SINK_BACKWARD] = run_compute,
    [WORK_RMSNORM] = run_compute,
    [WORK_RMSNORM_BACKWARD] = run_compute,
    [WORK_LAYERNORM] = run_compute,
    [WORK_LAYERNORM_BACKWARD] = run_compute,
    [WORK_ROPE] = run_compute,
    [WORK_ROPE_BACKWARD] = run_compute,
    [WORK_LATENT_KEYS] = run_compute,
    [WORK_LATENT_KEYS_BACKWARD] = run_compute,
    [WORK_SWIGLU] = run_compute,
    [WORK_SWIGLU_BACKWARD] = run_compute,
    [WORK_GELU] = run_compute,
    [WORK_GELU_BACKWARD] = run_compute,
    [WORK_ROUTE] = run_compute,
    [WORK_ROUTE_BACKWARD] = run_compute,
    [WORK_PERMUTE] = run_compute,
    [WORK_UNPERMUTE] = run_compute,
    [WORK_UNPERMUTE_BACKWARD] = run_compute,
    [WORK_PERMUTE_WEIGHTS] = run_compute,
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = run_compute,
    [WORK_EMBEDDING] = run_compute,
    [WORK_EMBEDDING_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY] = run_compute,
    [WORK_CROSS_ENTROPY_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL] = run_compute,
    [WORK_CROSS_ENTROPY_FINISH] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = run_compute,
    [WORK_ADD] = run_compute,
    [WORK_CAST] = run_compute,
    [WORK_FILL] = run_compute,
    [WORK_PACK] = run_compute,
    [WORK_UNPACK] = run_compute,
    [WORK_HEAD_EXPAND] = run_compute,
    [WORK_HEAD_REDUCE] = run_compute,
    [WORK_TAKE_ROWS] = run_compute,
    [WORK_ADD_ROWS] = run_compute,
    [WORK_MERGE_ROWS] = run_compute,
    [WORK_ROW_DOT] = run_compute,
    [WORK_COLUMN_SUM] = run_compute,
    [WORK_ADAMW] = run_compute,
    [WORK_SQUARE_SUM] = run_compute,
    [WORK_CLIP] = run_compute,
    [WORK_ALL_TO_ALL] = cpu_collective,
    [WORK_ALL_GATHER] = cpu_collective,
    [WORK_REDUCE_SCATTER] = cpu_collective,
    [WORK_ALL_REDUCE] = cpu_collective,
    [WORK_REDUCE] = cpu_collective,
    [WORK_BROADCAST] = cpu_collective,
    [WORK_SCATTER] = cpu_collective,
    [WORK_EXCHANGE] = cpu_collective,
    [WORK_SHIFT] = cpu_collective,
    [WORK_SEND] = cpu_send,
    [WORK_RECV] = cpu_recv,
    [WORK_H2D] = cpu_copy,
    [WORK_D2H] = cpu_copy,
};

/* ---- sleep and wake-up of a rank's threads, under the rank's lock ---- */

static bool has_ended(const struct cpu_rank *rank, struct awaited_end need)
{
    uint32_t ended = need.stream == CPU_HOST ? rank->sync_ops_passed_by_host
                                             : rank->workers[need.stream].ended_ops;
    return ended > need.last_list_position;
}

/* Sleeps on `wake` until the ops that `until` names have ended. Meanwhile *need shows for what the thread waits.
 * Returns false if the run fails or closes before that. */
static bool sleep_until_ended(const struct exec_run *run, struct cpu_rank *rank,
                              struct awaited_end *need, pthread_cond_t *wake,
                              struct awaited_end until)
{
    *need = until;
    while (!has_ended(rank, until) && !run_must_stop(run) && !rank->must_quit)
        pthread_cond_wait(wake, &rank->lock);
    need->stream = CPU_NOTHING;
    return has_ended(rank, until);
}

/* Wakes those threads of the rank that wait for ops which have ended by now. */
static void wake_sleepers(const struct exec_run *run, struct cpu_rank *rank)
{
    for (uint32_t s = 0; s < run->ir->stream_count; s++) {
        struct cpu_worker *worker = &rank->workers[s];
        if (worker->awaited.stream != CPU_NOTHING && has_ended(rank, worker->awaited))
            pthread_cond_signal(&worker->wakeup);
    }
    if (rank->host_awaited.stream != CPU_NOTHING && has_ended(rank, rank->host_awaited))
        pthread_cond_signal(&rank->host_wakeup);
}

static struct awaited_end awaited_end_of_op(const struct exec_run *run, const struct cpu_rank *rank,
                                            uint32_t op)
{
    bool sync = work_kind_info(run->ir->op.kind[op])->stream == STREAM_SYNC;
    return (struct awaited_end){
        sync ? (uint8_t)CPU_HOST : run->ir->op.stream[op],
        rank->list_position[op - assignment_first_op(&run->assignment, rank->rank)],
    };
}

/* ---- the thread of a stream ---- */

/* Waits until all ops for which the op waits have ended. The rank's lock is held before and after. Returns false if the
 * run has failed or closes. */
static bool wait_until_startable(struct cpu_worker *worker, uint32_t op)
{
    const struct ir *ir = worker->run->ir;
    for (uint32_t k = 0; k < ir->op.wait_count[op]; k++) {
        uint32_t wait = ir->wait[ir->op.wait_begin[op] + k].i;
        if (!sleep_until_ended(worker->run, worker->rank, &worker->awaited, &worker->wakeup,
                               awaited_end_of_op(worker->run, worker->rank, wait)))
            return false;
    }
    return true;
}

static bool run_op(struct cpu_worker *worker, uint32_t op)
{
    struct exec_run *run = worker->run;
    uint32_t rank = worker->rank->rank;
    struct op_time *time = run_op_time(run, rank, op);
    bool has_passed = true;
    time->start_s = time->end_s = run_now_s() - run->step_release_time_s;
    if (assignment_op_works_on_rank(&run->assignment, rank, op)) {
        struct call call;
        run_fill_call(run, rank, op, &call);
        atomic_fetch_add(&run->running_op_count, 1);
        has_passed = (run->poison == NULL || poison_check_reads(run, &call)) &&
                     kernels[run->ir->op.kind[op]](worker, &call) &&
                     (run->poison == NULL || poison_check_and_record_writes(run, &call));
        atomic_fetch_sub(&run->running_op_count, 1);
        time->end_s = run_now_s() - run->step_release_time_s;
    }
    atomic_fetch_add(&run->ended_ops, 1);
    return has_passed;
}

static void *worker_main(void *argument)
{
    struct cpu_worker *worker = argument;
    struct cpu_rank *rank = worker->rank;
    struct exec_run *run = worker->run;
    pthread_mutex_lock(&rank->lock);
    for (;;) {
        while (worker->ended_ops == worker->issued_ops && !rank->must_quit && !run_must_stop(run))
            pthread_cond_wait(&worker->wakeup, &rank->lock);
        if (rank->must_quit || run_must_stop(run))
            break;
        uint32_t op = worker->op_list.ops[worker->ended_ops];
        if (!wait_until_startable(worker, op))
            break;
        worker->is_running_op = true;
        pthread_mutex_unlock(&rank->lock);
        bool has_passed = run_op(worker, op);
        pthread_mutex_lock(&rank->lock);
        if (!has_passed)
            break;
        worker->is_running_op = false;
        worker->ended_ops++;
        wake_sleepers(run, rank);
    }
    pthread_mutex_unlock(&rank->lock);
    return NULL;
}

/* ---- opening and closing the backend ---- */

static enum status report_no_memory(const struct exec_run *run, const char *what, uint64_t bytes,
                                    struct diag *diag)
{
    return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_SYSTEM,
                      "the system refuses %" PRIu64 " bytes of memory for %s", bytes, what);
}

static enum status open_memory(struct exec_run *run, struct cpu_rank *rank, struct diag *diag)
{
    for (int m = 0; m < MEMORY_COUNT; m++) {
        uint64_t bytes = (run->ir->planned_bytes[m] + PAGE - 1) / PAGE * PAGE;
        if (bytes == 0)
            bytes = PAGE;
        if (posix_memalign(&rank->memory[m], PAGE, bytes) != 0) {
            rank->memory[m] = NULL;
            return report_no_memory(run, "an arena", bytes, diag);
        }
        /* so that the system provides the pages before the first step */
        memset(rank->memory[m], 0, bytes);
    }
    return STATUS_OK;
}

static enum status open_worker(struct cpu_worker *worker, struct diag *diag)
{
    struct exec_run *run = worker->run;
    size_t floats = cpu_most_scratch_floats(run->ir, worker->op_list.ops, worker->op_list.op_count);
    void *scratch = NULL;
    if (floats > 0 && posix_memalign(&scratch, LINE, floats * sizeof(float)) != 0)
        return report_no_memory(run, "scratch", floats * sizeof(float), diag);
    worker->scratch = scratch;
    if (floats > 0)
        memset(scratch, 0, floats * sizeof(float));
    int error = pthread_create(&worker->thread, NULL, worker_main, worker);
    if (error != 0)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_SYSTEM,
                          "cannot start a thread for stream %s of rank %" PRIu32 ": %s",
                          run->ir->stream[worker->stream].name, worker->rank->rank,
                          strerror(error));
    worker->is_started = true;
    return STATUS_OK;
}

static void list_ops(struct exec_run *run, struct cpu_rank *rank)
{
    struct assignment_stream_ops list[IR_STREAMS_MAX] = {0};
    assignment_list_ops_by_stream(&run->assignment, rank->rank, list, &rank->list_position);
    for (uint32_t s = 0; s < run->ir->stream_count; s++)
        rank->workers[s].op_list = list[s];
}

static enum status open_rank(struct exec_run *run, struct cpu_rank *rank, struct diag *diag)
{
    const struct ir *ir = run->ir;
    list_ops(run, rank);
    enum status status = open_memory(run, rank, diag);
    for (uint32_t s = 0; s < ir->stream_count && status == STATUS_OK; s++)
        if (rank->workers[s].op_list.op_count > 0)
            status = open_worker(&rank->workers[s], diag);
    return status;
}

static enum status cpu_open(struct exec_run *run, struct diag *diag)
{
    struct cpu *cpu = heap_zalloc(1, sizeof *cpu);
    const struct exec_options *options = run->options;
    run->backend_state = cpu;
    cpu->run = run;
    cpu->rank_count = run->assignment.ranks;
    cpu->comm = comm_new(run);
    cpu->rank_states = heap_zalloc(cpu->rank_count, sizeof *cpu->rank_states);
    openblas_set_num_threads(1);
    for (uint32_t r = 0; r < cpu->rank_count; r++) {
        struct cpu_rank *rank = &cpu->rank_states[r];
        rank->rank = r;
        rank->host_awaited.stream = CPU_NOTHING;
        pthread_mutex_init(&rank->lock, NULL);
        pthread_cond_init(&rank->host_wakeup, NULL);
        cpu_link_init(&rank->send_link, options->message_link);
        cpu_link_init(&rank->h2d_link, options->copy_link);
        cpu_link_init(&rank->d2h_link, options->copy_link);
        rank->workers = heap_zalloc(run->ir->stream_count, sizeof *rank->workers);
        for (uint32_t s = 0; s < run->ir->stream_count; s++) {
            struct cpu_worker *worker = &rank->workers[s];
            worker->run = run;
            worker->rank = rank;
            worker->stream = (uint8_t)s;
            worker->awaited.stream = CPU_NOTHING;
            pthread_cond_init(&worker->wakeup, NULL);
        }
    }
    enum status status = STATUS_OK;
    for (uint32_t r = 0; r < cpu->rank_count && status == STATUS_OK; r++)
        status = open_rank(run, &cpu->rank_states[r], diag);
    return status;
}

static void wake_all(struct exec_run *run, bool quit)
{
    struct cpu *cpu = cpu_of_run(run);
    for (uint32_t r = 0; r < cpu->rank_count; r++) {
        struct cpu_rank *rank = &cpu->rank_states[r];
        pthread_mutex_lock(&rank->lock);
        rank->must_quit = rank->must_quit || quit;
        for (uint32_t s = 0; s < run->ir->stream_count; s++)
            pthread_cond_broadcast(&rank->workers[s].wakeup);
        pthread_cond_broadcast(&rank->host_wakeup);
        pthread_mutex_unlock(&rank->lock);
    }
    comm_stop(cpu->comm);
}

static void close_rank(struct exec_run *run, struct cpu_rank *rank)
{
    for (uint32_t s = 0; s < run->ir->stream_count; s++) {
        pthread_cond_destroy(&rank->workers[s].wakeup);
        free(rank->workers[s].op_list.ops);
        free(rank->workers[s].scratch);
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        free(rank->memory[m]);
    pthread_mutex_destroy(&rank->lock);
    pthread_cond_destroy(&rank->host_wakeup);
    cpu_link_release(&rank->send_link);
    cpu_link_release(&rank->h2d_link);
    cpu_link_release(&rank->d2h_link);
    free(rank->workers);
    free(rank->list_position);
}

static void cpu_close(struct exec_run *run)
{
    struct cpu *cpu = cpu_of_run(run);
    if (cpu == NULL)
        return;
    wake_all(run, true);
    /* all threads end before any memory is freed, since they read each other's memory */
    for (uint32_t r = 0; r < cpu->rank_count; r++)
        for (uint32_t s = 0; s < run->ir->stream_count; s++)
            if (cpu->rank_states[r].workers[s].is_started)
                pthread_join(cpu->rank_states[r].workers[s].thread, NULL);
    for (uint32_t r = 0; r < cpu->rank_count; r++)
        close_rank(run, &cpu->rank_states[r]);
    comm_free(cpu->comm);
    free(cpu->rank_states);
    free(cpu);
    run->backend_state = NULL;
}

/* ---- the other functions of struct backend ---- */

static void *cpu_memory_address(struct exec_run *run, uint32_t rank, enum memory memory)
{
    return cpu_of_run(run)->rank_states[rank].memory[memory];
}

static void cpu_write_memory(struct exec_run *run, uint32_t rank, enum memory memory,
                             uint64_t offset, const void *from, uint64_t bytes)
{
    memcpy((char *)cpu_memory_address(run, rank, memory) + offset, from, bytes);
}

static void cpu_read_memory(struct exec_run *run, uint32_t rank, enum memory memory,
                            uint64_t offset, void *to, uint64_t bytes)
{
    memcpy(to, (const char *)cpu_memory_address(run, rank, memory) + offset, bytes);
}

static void cpu_begin_step(struct exec_run *run)
{
    struct cpu *cpu = cpu_of_run(run);
    for (uint32_t r = 0; r < cpu->rank_count; r++) {
        struct cpu_rank *rank = &cpu->rank_states[r];
        pthread_mutex_lock(&rank->lock);
        rank->sync_ops_passed_by_host = 0;
        rank->send_link.idle_from_s = rank->h2d_link.idle_from_s = rank->d2h_link.idle_from_s = 0;
        for (uint32_t s = 0; s < run->ir->stream_count; s++)
            rank->workers[s].issued_ops = rank->workers[s].ended_ops = 0;
        pthread_mutex_unlock(&rank->lock);
    }
    comm_begin_step(cpu->comm);
}

static bool cpu_enqueue(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cpu_rank *rank = &cpu_of_run(run)->rank_states[r];
    struct cpu_worker *worker = &rank->workers[run->ir->op.stream[op]];
    pthread_mutex_lock(&rank->lock);
    bool idle = worker->ended_ops == worker->issued_ops++;
    if (idle)
        pthread_cond_signal(&worker->wakeup);
    pthread_mutex_unlock(&rank->lock);
    return !run_must_stop(run);
}

static bool host_sleep_until_ended(struct exec_run *run, struct cpu_rank *rank,
                                   struct awaited_end until)
{
    return sleep_until_ended(run, rank, &rank->host_awaited, &rank->host_wakeup, until);
}

static bool cpu_wait_stream(struct exec_run *run, uint32_t r, uint8_t stream)
{
    struct cpu_rank *rank = &cpu_of_run(run)->rank_states[r];
    pthread_mutex_lock(&rank->lock);
    uint32_t issued = rank->workers[stream].issued_ops;
    bool ended =
        issued == 0 || host_sleep_until_ended(run, rank, (struct awaited_end){stream, issued - 1});
    pthread_mutex_unlock(&rank->lock);
    return ended && !run_must_stop(run);
}

static bool cpu_wait_op(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cpu_rank *rank = &cpu_of_run(run)->rank_states[r];
    pthread_mutex_lock(&rank->lock);
    bool ended = host_sleep_until_ended(run, rank, awaited_end_of_op(run, rank, op));
    pthread_mutex_unlock(&rank->lock);
    return ended;
}

static bool cpu_barrier(struct exec_run *run, uint32_t rank, uint32_t op)
{
    return comm_wait_at_barrier(cpu_of_run(run)->comm, rank, op);
}

static bool cpu_finish(struct exec_run *run, uint32_t rank)
{
    for (uint32_t s = 0; s < run->ir->stream_count; s++)
        if (!cpu_wait_stream(run, rank, (uint8_t)s))
            return false;
    return true;
}

static void cpu_record_passed_sync(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cpu_rank *rank = &cpu_of_run(run)->rank_states[r];
    (void)op; /* SYNC ops are passed in list order */
    pthread_mutex_lock(&rank->lock);
    rank->sync_ops_passed_by_host++;
    wake_sleepers(run, rank);
    pthread_mutex_unlock(&rank->lock);
}

static void cpu_stop(struct exec_run *run)
{
    wake_all(run, false);
}

static enum op_state cpu_op_state(struct exec_run *run, uint32_t r, uint32_t op)
{
    struct cpu_rank *rank = &cpu_of_run(run)->rank_states[r];
    enum op_state state = OP_QUEUED;
    pthread_mutex_lock(&rank->lock);
    struct awaited_end need = awaited_end_of_op(run, rank, op);
    if (has_ended(rank, need)) {
        state = OP_DONE;
    } else if (need.stream == CPU_HOST ||
               rank->workers[need.stream].issued_ops <= need.last_list_position) {
        state = OP_NOT_ISSUED;
    } else if (rank->workers[need.stream].ended_ops == need.last_list_position &&
               rank->workers[need.stream].is_running_op) {
        state = atomic_load(&rank->workers[need.stream].waits_for_ranks) ? OP_AT_RENDEZVOUS
                                                                         : OP_RUNNING;
    }
    pthread_mutex_unlock(&rank->lock);
    return state;
}

static bool cpu_rank_has_arrived(struct exec_run *run, uint32_t rank, uint32_t op)
{
    return comm_rank_has_arrived(cpu_of_run(run)->comm, rank, op);
}

const struct backend cpu_backend = {
    .name = "cpu",
    .summary = "threads of this machine: a rank is a host thread and one per stream; fp32 inside",
    .kernels_run_on_host = true,
    .kernel = kernels,
    .open = cpu_open,
    .close = cpu_close,
    .memory = cpu_memory_address,
    .put = cpu_write_memory,
    .get = cpu_read_memory,
    .begin_step = cpu_begin_step,
    .enqueue = cpu_enqueue,
    .wait_stream = cpu_wait_stream,
    .wait_op = cpu_wait_op,
    .barrier = cpu_barrier,
    .finish = cpu_finish,
    .record_passed_sync = cpu_record_passed_sync,
    .stop = cpu_stop,
    .state = cpu_op_state,
    .arrived = cpu_rank_has_arrived,
};
