#include "cli/reproduce/run.h"

#include "base/interrupt.h"
#include "base/pool.h"
#include "cli/folder/traces_out.h"
#include "cli/validate/external_setup.h"
#include "predict/operator_times.h"
#include "predict/progress.h"
#include "sim/scheduler/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reproduce_put_name_as_file_name(struct text *out, const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        text_putc(out, *c == ':' || *c == '/' ? '-' : *c);
}

void reproduce_put_trace_folder(struct text *out, const struct reproduction *r, size_t job,
                                const char *folder)
{
    text_printf(out, "%s/", folder);
    reproduce_put_name_as_file_name(out, r->catalogue.entry[r->job[job].entry].name[0]);
    text_printf(out, "-trace-%zu", r->job[job].index_among_jobs_of_kind + 1);
}

struct reproduction_run {
    struct reproduction *r;
    struct answers *answers;
    const char *folder;
    struct pool pool;
};

/* ---- worker processes ---- */

static enum status write_trace(const struct prediction *p, const char *args, const char *folder,
                               struct diag *diag)
{
    struct operator_times part = {0};
    struct diag note = {0};
    struct text command = {0};
    text_printf(&command, "longhaul predict %s --profile published", args);
    struct report report = {.prediction = p, .profile = "published", .command = command.data};
    if (p->choices.scope != SCOPE_WHOLE_STEP) {
        part = operator_times_of(p);
        report.times_of_model_part = &part;
    }
    enum status status =
        traces_write(&report, folder, (struct traces_requested_files){0}, &note, diag);
    text_release(&command);
    diag_release(&note);
    return status;
}

/* Predicts the step of a timeline and writes its trace. Leaves *answer empty, or appends the message if that fails. */
static void predict_and_write_trace(const struct reproduction_run *run, size_t job,
                                    struct text *answer)
{
    const char *args = run->r->job[job].args;
    struct setup setup = {0};
    struct prediction prediction = {0};
    const struct prediction_question question = {.setup = &setup,
                                                 .builds_whole_list = true}; /* all ops are drawn */
    struct diag diag = {0};
    struct text folder = {0};
    enum mfu_convention unused;
    enum status status = external_setup_read_args(&setup, &unused, args, "reproduce", &diag);
    if (status == STATUS_OK)
        status = prediction_make(&prediction, &question, &diag);
    reproduce_put_trace_folder(&folder, run->r, job, run->folder);
    if (status == STATUS_OK)
        status = write_trace(&prediction, args, folder.data, &diag);
    if (status != STATUS_OK) {
        size_t size = 0;
        const char *message = diag_first_message(&diag, &size);
        text_append(answer, message, size);
    }
    text_release(&folder);
    prediction_release(&prediction);
    setup_release(&setup);
    diag_release(&diag);
}

static void answer_job(void *context, uint64_t job, struct text *answer)
{
    struct reproduction_run *run = context;
    char bytes[REPRODUCTION_ANSWER_MAX] = {0};
    progress_set_watcher(NULL); /* a job's own searches do not report progress */
    if (run->r->job[job].kind == JOB_TRACE) {
        predict_and_write_trace(run, (size_t)job, answer);
        return;
    }
    reproduction_do_job(run->r, (size_t)job, bytes);
    text_append(answer, bytes, reproduction_answer_size(run->r, (size_t)job));
}

/* ---- the process that starts the workers ---- */

static enum status report_trace_failure(const struct reproduction_run *run, size_t job,
                                        const char *why, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = "reproduce"}, STATUS_SYSTEM,
                      "the timeline of %s cannot be made: %s",
                      run->r->catalogue.entry[run->r->job[job].entry].name[0], why);
}

static void handle_worker_death(struct reproduction_run *run, size_t job, const char *why)
{
    if (run->r->job[job].kind == JOB_PREDICT_VALIDATION_RUN) {
        struct validated_run answer = {0};
        snprintf(answer.error, sizeof answer.error, "%s", why);
        reproduction_store_answer(run->r, job, &answer);
    } else {
        struct cell_answer answer = {0};
        snprintf(answer.error, sizeof answer.error, "%s", why);
        reproduction_store_answer(run->r, job, &answer);
    }
}

static enum status handle_pool_event(struct reproduction_run *run, const struct pool_event *event,
                                     struct diag *diag)
{
    size_t job = (size_t)event->job;
    if (event->kind == POOL_NO_EVENT)
        return STATUS_OK;
    if (run->r->job[job].kind == JOB_TRACE) {
        if (event->answer->size > 0)
            return report_trace_failure(run, job, event->answer->data, diag);
        reproduction_store_answer(run->r, job, NULL);
        return STATUS_OK;
    }
    if (event->kind == POOL_DEATH) {
        handle_worker_death(run, job, event->answer->data);
        return STATUS_OK;
    }
    reproduction_store_answer(run->r, job, event->answer->data);
    return answers_append_to_file(run->answers, run->r, job, event->answer->data, diag);
}

static enum status run_jobs(struct reproduction_run *run, const size_t *job, size_t count,
                            size_t before, struct diag *diag)
{
    struct progress progress;
    enum status status = STATUS_OK;
    size_t next = 0, done = 0;
    progress_begin(&progress, before + count, before);
    while (status == STATUS_OK && interrupt_caught_signal_number() == 0 && done < count) {
        struct pool_event event;
        while (status == STATUS_OK && next < count &&
               run->pool.busy_workers < run->pool.worker_count)
            status = pool_submit_job(&run->pool, job[next++], diag);
        if (status == STATUS_OK)
            status = pool_wait(&run->pool, 1000, &event, diag);
        if (status == STATUS_OK && interrupt_caught_signal_number() == 0) {
            done += event.kind != POOL_NO_EVENT;
            status = handle_pool_event(run, &event, diag);
        }
        progress_update(&progress, before + done, "");
    }
    progress_end();
    return status;
}

enum status reproduce_run_pending_jobs(struct reproduction *r, struct answers *answers,
                                       const char *folder, size_t jobs, struct diag *diag)
{
    struct reproduction_run run = {.r = r, .answers = answers, .folder = folder};
    struct interrupt interrupt;
    size_t *job = heap_alloc(r->job_count + 1, sizeof *job), count = 0, before = 0;
    for (size_t i = 0; i < r->job_count; i++)
        if (r->job[i].is_wanted && !r->job[i].is_done)
            job[count++] = i;
        else
            before += r->job[i].is_wanted;
    jobs = jobs > 0 ? jobs : pool_count_usable_cores();
    interrupt_catch(&interrupt);
    enum status status = STATUS_OK;
    if (count > 0)
        status = engine_load(diag);
    if (status == STATUS_OK && count > 0)
        status = pool_start(&run.pool, jobs < count ? jobs : count, answer_job, &run, diag);
    if (status == STATUS_OK && count > 0)
        status = run_jobs(&run, job, count, before, diag);
    pool_release(&run.pool);
    interrupt_release(&interrupt);
    if (status == STATUS_OK && interrupt_caught_signal_number() != 0)
        status = diag_error(diag, (struct loc){.name = "reproduce"}, STATUS_SYSTEM,
                            "ended by %s: what was predicted is kept in %s, and the same command "
                            "continues",
                            interrupt_describe_signal(), folder);
    free(job);
    return status;
}
