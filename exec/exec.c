#include "exec/exec.h"

#include "base/c_locale.h"
#include "exec/bootstrap.h"
#include "exec/executor.h"
#include "exec/machine_memory.h"
#include "exec/measure.h"
#include "exec/parallel.h"
#include "exec/poison.h"
#include "schedule/ir/id_map.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/ir_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of bindings that are filled again before later steps, unless these run back to back, and those that hold
 * sums and are zeroed. */
static const uint32_t INPUTS =
    1u << BINDING_TOKENS | 1u << BINDING_LABELS | 1u << BINDING_POSITIONS;
static const uint32_t ZEROED = 1u << BINDING_GRAD | 1u << BINDING_LOSS;

/* ---- filling and reading bound buffers ---- */

typedef enum status visit_function(struct exec_run *run, const struct exec_io *io,
                                   struct exec_buffer *buffer, struct diag *diag);

/* Zeroes a bound buffer in the backend's memory. */
static void zero_bound_buffer(struct exec_run *run, const struct exec_buffer *buffer)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t b = buffer->buffer;
    enum memory memory = (enum memory)table->memory[b];
    uint64_t bytes = ir_buffer_bytes(run->ir, (buffer_id){b});
    if (run->backend->clear != NULL)
        run->backend->clear(run, buffer->rank, memory, table->offset[b], bytes);
    else
        memset((char *)run->backend->memory(run, buffer->rank, memory) + table->offset[b], 0,
               bytes);
}

/* The bound buffer that draw_into_buffer() fills with random numbers. */
struct bound_buffer_draw {
    struct exec_run *run;
    const struct exec_buffer *buffer;
};

/* Fills a block of a bound buffer, from element `at` on, with seeded numbers in the backend's memory: the backend does
 * it, or else threads of the host. */
static void draw_into_buffer(void *context, uint64_t at, const struct draw *draw)
{
    const struct bound_buffer_draw *d = context;
    const struct buffer_table *table = &d->run->ir->buffer;
    uint32_t b = d->buffer->buffer, rank = d->buffer->rank;
    enum memory memory = (enum memory)table->memory[b];
    enum dtype dtype = (enum dtype)table->dtype[b];
    uint64_t offset = table->offset[b] + at * dtype_bytes(dtype);
    const struct backend *backend = d->run->backend;
    if (backend->draw == NULL || !backend->draw(d->run, rank, memory, offset, dtype, draw))
        draw_fill((char *)backend->memory(d->run, rank, memory) + offset, (uint8_t)dtype, draw,
                  d->run->threads_per_rank);
}

static enum status fill_bound_buffer(struct exec_run *run, const struct exec_io *io,
                                     struct exec_buffer *buffer, struct diag *diag)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t b = buffer->buffer;
    uint64_t bytes = ir_buffer_bytes(run->ir, (buffer_id){b});
    struct bound_buffer_draw drawing = {run, buffer};
    if (!run_has_rank(run, buffer->rank))
        return STATUS_OK;
    if (ZEROED >> buffer->buffer_binding->kind & 1) {
        if (run->step_number == 0 || run->must_zero_before_step[b])
            zero_bound_buffer(run, buffer);
        return STATUS_OK;
    }
    bool drawn = io->draw != NULL || io->fill == NULL;
    if (drawn)
        zero_bound_buffer(run, buffer);
    if (io->draw != NULL && io->draw(io->user, buffer, draw_into_buffer, &drawing))
        return STATUS_OK;
    if (io->fill == NULL)
        return STATUS_OK;
    memset(buffer->data, 0, bytes);
    enum status status = io->fill(io->user, buffer, diag);
    run->backend->put(run, buffer->rank, table->memory[b], table->offset[b], buffer->data, bytes);
    return status;
}

static enum status read_bound_buffer(struct exec_run *run, const struct exec_io *io,
                                     struct exec_buffer *buffer, struct diag *diag)
{
    const struct buffer_table *table = &run->ir->buffer;
    uint32_t b = buffer->buffer;
    uint64_t bytes = ir_buffer_bytes(run->ir, (buffer_id){b});
    if (run_has_rank(run, buffer->rank))
        run->backend->get(run, buffer->rank, table->memory[b], table->offset[b], buffer->data,
                          bytes);
    enum status status = run->world != NULL ? bootstrap_broadcast(run->world, buffer->rank,
                                                                  buffer->data, bytes, diag)
                                            : STATUS_OK;
    return status == STATUS_OK ? io->read(io->user, buffer, diag) : status;
}

/* Calls visit() for each bound buffer, of any rank, that has an offset and whose kind of binding is in the mask
 * `kinds`; stops at the first failure. buffer->data is memory that is large enough for each of them; visit() provides
 * its content. */
static enum status for_each_bound_buffer(struct exec_run *run, const struct exec_io *io,
                                         uint32_t kinds, visit_function *visit, struct diag *diag)
{
    const struct ir *ir = run->ir;
    enum status status = STATUS_OK;
    uint64_t largest = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.binding[b] != IR_NONE16 && ir_buffer_bytes(ir, (buffer_id){b}) > largest)
            largest = ir_buffer_bytes(ir, (buffer_id){b});
    void *copy = heap_alloc(largest + 1, 1);
    for (uint32_t rank = 0; rank < run->assignment.ranks; rank++)
        for (uint32_t b = 0; b < ir->buffer.count && status == STATUS_OK; b++) {
            if (ir->buffer.binding[b] == IR_NONE16 || ir->buffer.offset[b] == UINT64_MAX ||
                ir->buffer.role[b] != run->assignment.role_of_rank[rank])
                continue;
            const struct binding *binding = &ir->binding[ir->buffer.binding[b]];
            struct exec_buffer buffer = {
                .ir = ir,
                .buffer_binding = binding,
                .rank = rank,
                .buffer = b,
                .step = run->step_number,
                .dtype = ir->buffer.dtype[b],
                .element_count = ir_buffer_elements(ir, (buffer_id){b}),
                .data = copy,
            };
            if (kinds >> binding->kind & 1)
                status = visit(run, io, &buffer, diag);
        }
    free(copy);
    return status;
}

/* ---- warm-up and measured steps ---- */

struct measured_steps {
    double *step_s; /* (measured_count) */
    /* (measured_count) when each step began, by run_now_s() of this process */
    double *step_begin_s;
    struct op_time *op_times; /* (measured_count, op_times_per_step); only with records_trace */
    size_t op_times_per_step;
    uint32_t warmup_count, measured_count;
};

/* Runs a step that begins on all processes together. *seconds receives the time of the slowest process, or a negative
 * number if the step has failed in this one. If it has failed only in another process, the status is STATUS_NO. */
static enum status run_step_on_all_processes(struct exec_run *run, struct executor *executor,
                                             double *seconds, struct diag *diag)
{
    uint32_t size = bootstrap_process_count(run->world);
    double *all = heap_zalloc(size, sizeof *all), here = 0;
    enum status status = bootstrap_all_gather(run->world, &here, all, sizeof *all, diag);
    if (status == STATUS_OK) {
        struct diag unread = {0};
        here = executor_run_step(executor);
        if (here < 0) /* the run has its message, and another process may be stopped */
            bootstrap_announce_end(run->world);
        status =
            bootstrap_all_gather(run->world, &here, all, sizeof *all, here < 0 ? &unread : diag);
        diag_release(&unread);
    }
    *seconds = here;
    for (uint32_t i = 0; i < size && status == STATUS_OK && here >= 0; i++) {
        if (all[i] < 0)
            status = diag_error(diag, (struct loc){run->schedule_name, 0, 0}, STATUS_NO,
                                "rank %" PRIu32 " has failed; its own message says why", i);
        *seconds = all[i] > *seconds ? all[i] : *seconds;
    }
    free(all);
    return here < 0 ? STATUS_OK : status;
}

/* Returns the number of the measured step with the median time; for an even number of steps, the lower of the two. */
static uint32_t find_median_step(const double *step_s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < count; k++)
            before += step_s[k] < step_s[i] || (step_s[k] == step_s[i] && k < i);
        if (before == (count - 1) / 2)
            return i;
    }
    return 0;
}

/* The state of check_gpu_clock_is_steady(): when the first step began, when the current window began, and the mean
 * clock of the window before it (0: there is none). */
struct gpu_clock_steadiness {
    double first_begin_s, window_begin_s, last_window_mhz;
    /* consecutive windows whose clock was within 1 % of the one before */
    uint32_t steady_window_count;
};

/* Called after a step. Sets *steady if the clock is steady: its mean over three consecutive windows, each of at least
 * 0.2 s of steps, changed by less than 1 % from one window to the next. *steady is also set after 30 s, and at once if
 * the clock is unknown. The clock is the mean over all processes, which must call this together and all get the same
 * answer. */
static enum status check_gpu_clock_is_steady(struct exec_run *run, struct gpu_clock_steadiness *s,
                                             bool *steady, struct diag *diag)
{
    const double window_s = 0.2, most_s = 30, change = 0.01;
    enum { ALIKE = 2 };
    double now_s = run_now_s(), mine[2] = {now_s - s->window_begin_s, 0}, mhz = 0;
    uint32_t size = run->world != NULL ? bootstrap_process_count(run->world) : 1;
    double(*all)[2] = heap_zalloc(size, sizeof *all);
    enum status status = STATUS_OK;
    if (run->backend->clock_mhz != NULL)
        mine[1] = run->backend->clock_mhz(run, s->window_begin_s, now_s);
    if (run->world != NULL)
        status = bootstrap_all_gather(run->world, mine, all, sizeof mine, diag);
    else
        memcpy(all[0], mine, sizeof mine);
    for (uint32_t i = 0; i < size; i++)
        mhz += all[i][1] / size;
    bool whole = all[0][0] >= window_s;
    free(all);
    *steady = mhz == 0 || now_s - s->first_begin_s > most_s;
    if (status != STATUS_OK || *steady || !whole)
        return status;
    s->steady_window_count = s->last_window_mhz > 0 && fabs(mhz / s->last_window_mhz - 1) < change
                                 ? s->steady_window_count + 1
                                 : 0;
    s->last_window_mhz = mhz;
    s->window_begin_s = now_s;
    *steady = s->steady_window_count >= ALIKE;
    return status;
}

/* Sends the times of every rank's ops in the median step to all processes. The median step is the same on all, since
 * they have the same step times. Does nothing in a single process or without a trace. */
static enum status exchange_op_times(struct exec_run *run, const struct measured_steps *steps,
                                     struct diag *diag)
{
    if (run->world == NULL || steps->op_times == NULL)
        return STATUS_OK;
    struct op_time *time =
        steps->op_times +
        find_median_step(steps->step_s, steps->measured_count) * steps->op_times_per_step;
    return bootstrap_all_gather(run->world,
                                time + run->first_rank * run->assignment.max_op_count_of_role, time,
                                run->assignment.max_op_count_of_role * sizeof *time, diag);
}

/* Returns STATUS_OK, or reports the first failure of the run. */
static enum status report_first_failure(const struct exec_run *run, struct diag *diag)
{
    return run->failure_status == STATUS_OK
               ? STATUS_OK
               : diag_error(diag, (struct loc){run->schedule_name, 0, 0}, run->failure_status, "%s",
                            run->failure_text);
}

static enum status run_steps(struct exec_run *run, struct executor *executor,
                             const struct exec_io *io, struct measured_steps *steps,
                             struct diag *diag)
{
    struct gpu_clock_steadiness settling = {.first_begin_s = run_now_s(),
                                            .window_begin_s = run_now_s()};
    for (run->step_number = 0; run->step_number < steps->warmup_count + steps->measured_count;
         run->step_number++) {
        double begin_s = run_now_s();
        if (run_is_ended_by_caller(run))
            return report_first_failure(run, diag);
        uint32_t inputs = run->options->runs_back_to_back ? 0 : INPUTS;
        enum status status = for_each_bound_buffer(
            run, io, run->step_number == 0 ? UINT32_MAX : inputs | ZEROED, fill_bound_buffer, diag);
        if (status != STATUS_OK)
            return status;
        double seconds = 0;
        if (run->world != NULL)
            status = run_step_on_all_processes(run, executor, &seconds, diag);
        else
            seconds = executor_run_step(executor);
        if (status != STATUS_OK)
            return status;
        if (seconds < 0)
            return report_first_failure(run, diag);
        uint32_t kinds = io->read_each_step |
                         (run->step_number + 1 == steps->warmup_count + steps->measured_count
                              ? io->read_after_last_step
                              : 0);
        if (io->read != NULL)
            status = for_each_bound_buffer(run, io, kinds, read_bound_buffer, diag);
        if (status == STATUS_OK)
            status = report_first_failure(run, diag);
        if (status != STATUS_OK)
            return status;
        if (run->step_number + 1 == steps->warmup_count && run->options->waits_for_steady_clock) {
            bool steady;
            status = check_gpu_clock_is_steady(run, &settling, &steady, diag);
            if (status != STATUS_OK)
                return status;
            steps->warmup_count += !steady;
        }
        if (run->step_number < steps->warmup_count)
            continue;
        uint32_t i = run->step_number - steps->warmup_count;
        steps->step_s[i] = seconds;
        steps->step_begin_s[i] = begin_s;
        if (steps->op_times != NULL)
            memcpy(steps->op_times + i * steps->op_times_per_step, run->op_times,
                   steps->op_times_per_step * sizeof *steps->op_times);
    }
    return exchange_op_times(run, steps, diag);
}

static void add_header_to_trace(void *user, const char *key, const char *value)
{
    trace_set_key(user, key, value);
}

static void fill_trace_header(struct exec_run *run, const struct measured_steps *steps,
                              double median_s, struct trace *trace)
{
    char text[64];
    trace_set_key(trace, "made_by", "longhaul run");
    trace_set_key(trace, "schedule", run->schedule_name);
    trace_set_key(trace, "backend", run->backend->name);
    trace_set_key(trace, "dtype", dtype_name(run->ir->dtype));
    snprintf(text, sizeof text, "%" PRIu32, run->assignment.ranks);
    trace_set_key(trace, "ranks", text);
    snprintf(text, sizeof text, "%" PRIu32, steps->warmup_count);
    trace_set_key(trace, "warmup_steps", text);
    snprintf(text, sizeof text, "%" PRIu32, steps->measured_count);
    trace_set_key(trace, "measured_steps", text);
    c_snprintf(text, sizeof text, "%.9g", median_s);
    trace_set_key(trace, "step_s", text);
    struct diag nobody = {0}; /* errors are dropped: the device was open during the steps */
    if (run->backend->describe != NULL)
        (void)run->backend->describe(add_header_to_trace, trace, &nobody);
    if (run->backend->describe_run != NULL)
        run->backend->describe_run(run, add_header_to_trace, trace);
    diag_release(&nobody);
    double low_s = steps->step_s[0], high_s = low_s;
    for (uint32_t i = 0; i < steps->measured_count; i++) {
        low_s = steps->step_s[i] < low_s ? steps->step_s[i] : low_s;
        high_s = steps->step_s[i] > high_s ? steps->step_s[i] : high_s;
    }
    uint32_t median = find_median_step(steps->step_s, steps->measured_count);
    if (run->backend->describe_step != NULL)
        run->backend->describe_step(run, steps->step_begin_s[median],
                                    steps->step_begin_s[median] + steps->step_s[median],
                                    add_header_to_trace, trace);
    c_snprintf(text, sizeof text, "%.9g to %.9g", low_s, high_s);
    trace_set_key(trace, "step_s_range", text);
    if (run->options->finds_unwritten_reads)
        trace_set_key(trace, "poison", "yes: times are those of a check, not of a run");
    for (int m = 0; m < MEMORY_COUNT; m++) {
        char key[32];
        snprintf(key, sizeof key, "arena_bytes.%s", memory_names[m]);
        snprintf(text, sizeof text, "%" PRIu64, run->ir->planned_bytes[m]);
        trace_set_key(trace, key, text);
    }
}

static void fill_result(struct exec_run *run, struct measured_steps *steps,
                        struct exec_result *result)
{
    result->ranks = run->assignment.ranks;
    result->steps = steps->measured_count;
    result->warmup_steps = steps->warmup_count;
    uint32_t last = steps->measured_count - 1;
    if (run->backend->clock_mhz != NULL)
        result->clock_mhz = run->backend->clock_mhz(
            run, steps->step_begin_s[0], steps->step_begin_s[last] + steps->step_s[last]);
    result->step_s = steps->step_s;
    result->median_step = find_median_step(result->step_s, steps->measured_count);
    result->median_s = result->step_s[result->median_step];
    memcpy(result->planned_bytes, run->ir->planned_bytes, sizeof result->planned_bytes);
    if (steps->op_times != NULL) {
        fill_trace_header(run, steps, result->median_s, &result->trace);
        measure_fill_trace(run, steps->op_times + result->median_step * steps->op_times_per_step,
                           &result->trace, result->peak_bytes);
        ir_trace_set_stage_header_keys(run->ir, &result->trace);
    }
    steps->step_s = NULL; /* the result has the array now */
}

/* ---- a run from its options to its result ---- */

static enum status find_backend(struct exec_run *run, struct diag *diag)
{
    const char *name = run->options->backend ? run->options->backend : "cpu";
    run->backend = backend_find(name);
    if (run->backend != NULL)
        return STATUS_OK;
    const char *names[8];
    size_t count;
    const struct backend *const *all = backend_all(&count);
    for (size_t i = 0; i < count && i < ARRAY_LEN(names); i++)
        names[i] = all[i]->name;
    const char *near = diag_nearest(name, names, count < ARRAY_LEN(names) ? count : 8);
    return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                      "there is no backend '%s' in this build; '%s' would do", name,
                      near ? near : names[0]);
}

/* Adds a part of the schedule's text to the digest, and empties the text. */
static void add_to_digest(struct text *text)
{
    uint64_t *digest = text->flush_context;
    *digest = hash_word(*digest, hash_text(text->data, text->size));
    text->size = 0;
}

/* Returns a digest of the text form of the schedule. */
static uint64_t schedule_digest(const struct ir *ir)
{
    uint64_t digest = 0;
    struct text text = {.flush = add_to_digest, .flush_context = &digest};
    ir_print(&text, ir);
    if (text.size > 0)
        add_to_digest(&text);
    text_release(&text);
    return digest;
}

/* Returns a digest of the schedule and the options, by which processes find out whether they do the same. Limits of
 * time are left out, since they may differ, and so are options that only the CPU backend reads. */
static uint64_t request_digest(const struct exec_run *run)
{
    const struct exec_options *o = run->options;
    const struct exec_adamw *a = &o->adamw;
    const uint64_t counts[] = {o->warmup_steps,          o->measured_steps,
                               o->runs_back_to_back,     o->waits_for_steady_clock,
                               o->finds_unwritten_reads, o->records_trace,
                               o->times_by_cupti,        (uint64_t)o->attention,
                               o->uses_epilogues,        o->registers_nccl_memory,
                               o->hogged_sm_count,       (uint64_t)a->step_number,
                               o->input_digest};
    const double numbers[] = {
        o->model.norm_eps, o->model.rope_theta, a->lr, a->beta1, a->beta2, a->eps,
        a->weight_decay,   a->max_norm};
    uint64_t digest =
        hash_word(schedule_digest(run->ir), hash_text((const char *)counts, sizeof counts));
    return hash_word(digest, hash_text((const char *)numbers, sizeof numbers));
}

/* Finds the ranks of this process, and how many threads each of them may use. If a launcher has started several
 * processes, and the backend supports this, the processes are connected and each has one rank; else this process has
 * all ranks. */
static enum status find_ranks_of_process(struct exec_run *run, struct diag *diag)
{
    run->rank_count = run->assignment.ranks;
    enum status status = run->backend->supports_processes
                             ? bootstrap_connect_at_first_call(&run->world, request_digest(run),
                                                               run->assignment.ranks,
                                                               run->options->step_limit_s, diag)
                             : STATUS_OK;
    run->threads_per_rank = parallel_threads_per_rank(run->rank_count, 1);
    if (status != STATUS_OK || run->world == NULL)
        return status;
    run->threads_per_rank = parallel_threads_per_rank(1, bootstrap_local_process_count(run->world));
    run->first_rank = bootstrap_rank(run->world);
    run->rank_count = 1;
    return STATUS_OK;
}

/* Refuses, on all processes, a run of several processes that needs more host memory than one of their machines has.
 * Each process checks before any of them allocates. */
static enum status check_memory_of_machines(struct exec_run *run, struct diag *diag)
{
    if (run->world == NULL)
        return STATUS_OK;
    uint32_t size = bootstrap_process_count(run->world),
             here = bootstrap_local_process_count(run->world);
    double rank_bytes = 0;
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (m != MEMORY_HBM || run->backend->kernels_run_on_host)
            rank_bytes += (double)run->ir->planned_bytes[m];
    enum status status = machine_memory_check(run->schedule_name, here, here * rank_bytes, diag);
    struct diag unread = {0};
    uint32_t refused = status != STATUS_OK, *all = heap_zalloc(size, sizeof *all);
    enum status gathered =
        bootstrap_all_gather(run->world, &refused, all, sizeof *all, refused ? &unread : diag);
    for (uint32_t i = 0; i < size && status == STATUS_OK && gathered == STATUS_OK; i++)
        if (all[i])
            status = diag_error(diag, (struct loc){.name = run->schedule_name}, STATUS_BAD_INPUT,
                                "the machine of rank %" PRIu32
                                " has too little memory; that rank's message says how much",
                                i);
    diag_release(&unread);
    free(all);
    return status != STATUS_OK ? status : gathered;
}

static void init_lock(struct exec_run *run)
{
    pthread_condattr_t monotonic_cond_attributes;
    pthread_condattr_init(&monotonic_cond_attributes);
    pthread_condattr_setclock(&monotonic_cond_attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->state_changed, &monotonic_cond_attributes);
    pthread_condattr_destroy(&monotonic_cond_attributes);
}

enum status exec_run(const struct ir *ir, const char *name, const struct exec_options *options,
                     const struct exec_io *io, struct exec_result *result, struct diag *diag)
{
    static const struct exec_io nothing = {0};
    struct exec_run run = {.ir = ir, .schedule_name = name, .options = options};
    struct measured_steps steps = {.warmup_count = options->warmup_steps,
                                   .measured_count =
                                       options->measured_steps > 0 ? options->measured_steps : 1};
    struct executor *executor = NULL;
    init_lock(&run);
    enum status status = find_backend(&run, diag);
    if (status == STATUS_OK)
        status = assignment_init(&run.assignment, ir, name, diag);
    if (status == STATUS_OK)
        status = find_ranks_of_process(&run, diag);
    if (status == STATUS_OK)
        status = check_memory_of_machines(&run, diag);
    if (status != STATUS_OK)
        goto out;
    steps.op_times_per_step = (size_t)run.assignment.ranks * run.assignment.max_op_count_of_role;
    steps.step_s = heap_zalloc(steps.measured_count, sizeof *steps.step_s);
    steps.step_begin_s = heap_zalloc(steps.measured_count, sizeof *steps.step_begin_s);
    if (options->records_trace)
        steps.op_times =
            heap_zalloc(steps.measured_count * steps.op_times_per_step, sizeof *steps.op_times);
    run.op_times = heap_zalloc(steps.op_times_per_step, sizeof *run.op_times);
    run.host_op = heap_zalloc(run.assignment.ranks, sizeof *run.host_op);
    run.must_zero_before_step = assignment_find_reads_before_writes(ir, ZEROED);
    if (options->finds_unwritten_reads && run.backend->kernels_run_on_host)
        run.poison = poison_new(&run);
    status = run.backend->open(&run, diag);
    if (status == STATUS_OK) {
        executor = executor_new(&run, diag);
        status = executor != NULL
                     ? run_steps(&run, executor, io != NULL ? io : &nothing, &steps, diag)
                     : STATUS_SYSTEM;
    }
    if (status == STATUS_OK)
        fill_result(&run, &steps, result);
    executor_free(executor);
    run.backend->close(&run);
    poison_free(run.poison);
out:
    free(steps.op_times);
    free(steps.step_s);
    free(steps.step_begin_s);
    free(run.op_times);
    free((void *)run.host_op);
    free(run.must_zero_before_step);
    assignment_release(&run.assignment);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.state_changed);
    return status;
}

void exec_result_release(struct exec_result *result)
{
    free(result->step_s);
    trace_release(&result->trace);
    *result = (struct exec_result){0};
}
