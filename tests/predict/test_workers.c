/* tests/predict/test_workers.c: child processes give their results in the order of jobs; a child that ends early, or
 * gives none, is reported. */
#include "predict/workers.h"

#include "predict/longhaul.h"
#include "tests/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 100, LARGE = 100000 };

struct square {
    size_t job;
    char padding_beyond_pipe_buffer[LARGE]; /* larger than a pipe's buffer */
    double value;
};

static void square_job(void *context, size_t job, void *result)
{
    struct square *square = result;
    square->job = job;
    square->value = *(const double *)context * (double)job;
    square->padding_beyond_pipe_buffer[LARGE - 1] = (char)(job % 100);
}

static void results_stand_in_the_order_of_jobs(void)
{
    struct square *results = heap_alloc(JOBS, sizeof *results);
    struct diag diag = {0};
    double factor = 3;
    CHECK_INT("status",
              workers_run(JOBS, sizeof *results, square_job, &factor, results, NULL, &diag),
              STATUS_OK);
    for (size_t i = 0; i < JOBS; i++) {
        CHECK_INT("job", (int64_t)results[i].job, (int64_t)i);
        CHECK_CLOSE("value", results[i].value, 3.0 * (double)i, 0);
        CHECK_INT("filling", results[i].padding_beyond_pipe_buffer[LARGE - 1], (int64_t)i % 100);
    }
    free(results);
    diag_release(&diag);
}

static void no_job_is_no_work(void)
{
    CHECK_INT("status", workers_run(0, 8, square_job, NULL, NULL, NULL, NULL), STATUS_OK);
}

static void exit_with_7_at_job_two(void *context, size_t job, void *result)
{
    (void)context;
    if (job == 2)
        _exit(7);
    *(int *)result = 1;
}

static void early_exit_of_worker_is_reported(void)
{
    int results[4];
    struct diag diag = {0};
    CHECK_INT("status",
              workers_run(4, sizeof results[0], exit_with_7_at_job_two, NULL, results, NULL, &diag),
              STATUS_SYSTEM);
    CHECK_TEXT("message", diag.text, "longhaul: error: job 3: its process ended with code 7\n");
    CHECK_INT("others", results[0] + results[1] + results[3], 3);
    CHECK_INT("its result", results[2], 0);
    diag_release(&diag);
}

static void write_result_of_every_job(void *context, size_t job, void *result)
{
    (void)context, (void)job;
    *(int *)result = 1;
}

static void exit_with_0_at_job_two(void *context, size_t job, void *result)
{
    (void)context;
    if (job == 2)
        _exit(0);
    *(int *)result = 1;
}

static void a_job_without_result_is_reported(void)
{
    int results[4];
    struct diag diag = {0};
    CHECK_INT("status",
              workers_run(4, sizeof results[0], exit_with_0_at_job_two, NULL, results, NULL, &diag),
              STATUS_SYSTEM);
    CHECK_TEXT("message", diag.text, "longhaul: error: job 3: its process ended with code 0\n");
    CHECK_INT("its result", results[2], 0);
    diag_release(&diag);
}

static void reap_all_children(int number)
{
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

/* A program that ignores SIGCHLD, or waits for every child in its handler, takes the exit codes of
 * our children. */
static void workers_survive_a_reaping_caller(void)
{
    static const struct {
        const char *label;
        void (*handler)(int);
    } rows[] = {{"ignored", SIG_IGN}, {"reaped by the caller", reap_all_children}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct sigaction action = {.sa_handler = rows[i].handler}, before;
        int results[4];
        struct diag diag = {0};
        struct setup setup = {0};
        struct prediction prediction = {0};
        sigemptyset(&action.sa_mask);
        sigaction(SIGCHLD, &action, &before);
        CHECK_INT(rows[i].label,
                  workers_run(4, sizeof results[0], write_result_of_every_job, NULL, results, NULL,
                              &diag),
                  STATUS_OK);
        CHECK_INT("all results", results[0] + results[1] + results[2] + results[3], 4);
        CHECK_INT(
            rows[i].label,
            workers_run(4, sizeof results[0], exit_with_7_at_job_two, NULL, results, NULL, &diag),
            STATUS_SYSTEM);
        CHECK(rows[i].label, strstr(diag.text, "error: job 3: its process ended ") != NULL);
        CHECK_INT("model", setup_load_model(&setup, "gpt2", NULL, "layers=2", &diag), STATUS_OK);
        CHECK_INT("cluster", setup_load_cluster(&setup, "ideal", 1, 1, &diag), STATUS_OK);
        setup_leave_request_open(&setup);
        setup.request.strategy = "local";
        setup.request.seq = 1024;
        const struct prediction_question question = {.setup = &setup};
        CHECK_INT(rows[i].label, prediction_make(&prediction, &question, &diag), STATUS_OK);
        sigaction(SIGCHLD, &before, NULL);
        prediction_release(&prediction);
        setup_release(&setup);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"exit codes that the caller takes are not needed", workers_survive_a_reaping_caller},
    {"results stand in the order of jobs", results_stand_in_the_order_of_jobs},
    {"no job is no work", no_job_is_no_work},
    {"a child that ends early is told", early_exit_of_worker_is_reported},
    {"a job without a result is told", a_job_without_result_is_reported},
};
CHECK_MAIN("workers", cases)
