/* tests/sim/test_engine.c: checks the properties of SimGrid on which we rely: a flow takes exactly
 * bytes / rate, links are shared max-min, timers fire at their time. Each engine runs in a child
 * process of its own, since a process can have only one. */
#include "sim/scheduler/engine.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_LINKS = 3, MOST_FLOWS = 4 };

static const struct {
    const char *label;
    double width[MOST_LINKS]; /* 0: no link */
    struct {
        unsigned links; /* bit mask; 0: no flow */
        double start_s, bytes, end_s;
    } flow[MOST_FLOWS];
} table[] = {
    /* label, width of each link, {links, start_s, bytes, end_s} of each flow */
    {"alone", {100e9}, {{1, 0, 1e9, 0.01}}},
    {"a part of a byte is not lost", {1}, {{1, 0, 0.25, 0.25}, {1, 1, 1e-9, 1 + 1.0 / 1024}}},
    {"latency is the caller's", {100e9}, {{1, 5e-6, 1e9, 0.010005}}},
    {"two share", {100e9}, {{1, 0, 1e9, 0.02}, {1, 0, 1e9, 0.02}}},
    {"the shorter frees its share", {100e9}, {{1, 0, 1e9, 0.02}, {1, 0, 2e9, 0.03}}},
    {"a cap leaves the rest to others", {50e9, 10e9}, {{3, 0, 1e9, 0.1}, {1, 0, 1e9, 0.025}}},
    {"max-min over a line of links",
     {10e9, 10e9, 10e9},
     {{7, 0, 1e9, 0.2}, {1, 0, 1e9, 0.2}, {2, 0, 1e9, 0.2}, {4, 0, 1e9, 0.2}}},
    {"late comers share what is left", {100e9}, {{1, 0, 2e9, 0.03}, {1, 0.01, 1e9, 0.03}}},
    {"one path, several flows", {100e9, 50e9}, {{3, 0, 1e9, 0.04}, {3, 0, 1e9, 0.04}}},
};

struct run {
    size_t row;
    uint32_t link[MOST_FLOWS][MOST_LINKS], links[MOST_FLOWS];
    double end_s[MOST_FLOWS];
};

/* Handles an event: flow k starts at tag 2k and ends at tag 2k + 1. */
static void done(void *context, int64_t tag)
{
    struct run *run = context;
    int64_t k = tag / 2;
    if (tag % 2 == 0)
        engine_start_flow(run->link[k], run->links[k], table[run->row].flow[k].bytes, tag + 1);
    else
        run->end_s[k] = engine_now_s();
}

static void run_flows_in_child(struct run *run, int out)
{
    engine_init(done, NULL, run, table[run->row].width, MOST_LINKS);
    for (int k = 0; k < MOST_FLOWS; k++)
        for (uint32_t l = 0; l < MOST_LINKS; l++)
            if (table[run->row].flow[k].links >> l & 1)
                run->link[k][run->links[k]++] = l;
    for (int k = 0; k < MOST_FLOWS; k++)
        if (run->links[k] > 0)
            engine_set_timer(table[run->row].flow[k].start_s, 2 * k);
    const char *fault = engine_run();
    if (fault)
        fputs(fault, stderr);
    _exit(!fault && write(out, run->end_s, sizeof run->end_s) == sizeof run->end_s ? 0 : 1);
}

static void the_module_is_loaded_once(void)
{
    struct diag diag = {0};
    struct text path = {0};
    CHECK("loads", engine_load(&diag) == STATUS_OK && engine_load(&diag) == STATUS_OK);
    CHECK_INT("messages", diag.error_count, 0);
    engine_append_simgrid_module_path(&path);
    CHECK("file", access(path.data, R_OK) == 0);
    int major = 0, minor = -1, patch = -1;
    engine_version(&major, &minor, &patch);
    CHECK("version", major >= 3 && minor >= 0 && patch >= 0);
    text_release(&path);
    diag_release(&diag);
}

static void flows_take_what_max_min_says(void)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct run run = {.row = i};
        int channel[2];
        if (!CHECK(table[i].label, pipe(channel) == 0))
            return;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            run_flows_in_child(&run, channel[1]);
        close(channel[1]);
        CHECK(table[i].label, read(channel[0], run.end_s, sizeof run.end_s) == sizeof run.end_s);
        close(channel[0]);
        waitpid(child, NULL, 0);
        for (int k = 0; k < MOST_FLOWS; k++)
            if (table[i].flow[k].links)
                CHECK_CLOSE(table[i].label, run.end_s[k], table[i].flow[k].end_s, 1e-12);
    }
}

static void simgrid_faults_become_messages(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static const uint32_t missing = 7;
        engine_init(done, NULL, NULL, NULL, 0);
        engine_start_flow(&missing, 1, 1, 1);
        _exit(engine_run() != NULL ? 0 : 1);
    }
    int state = -1;
    CHECK("child", waitpid(child, &state, 0) == child && state == 0);
}

/* The test's events: six events outside the engine, at 1 to 6 s, of which the third sets a timer at 3.5 s, and a flow
 * that ends at 5 s. */
struct events_ahead {
    int done, until[6]; /* events so far; for each, the time (ms) to which the clock may advance */
    double ended_s, fired_s;
};

static bool run_next_outside_event(void *context, double until_s)
{
    struct events_ahead *a = context;
    double date_s = a->done + 1;
    if (a->done == 6 || date_s > until_s)
        return false;
    a->until[a->done++] = until_s < 100 ? (int)(until_s * 1e3) : -1;
    if (a->done == 3)
        engine_set_timer(3.5, 2);
    return true;
}

static void record_end_of_flow_or_timer(void *context, int64_t tag)
{
    struct events_ahead *a = context;
    if (tag == 2)
        a->fired_s = engine_now_s();
    else
        a->ended_s = engine_now_s();
}

static void events_outside_the_engine_know_its_next_date(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct events_ahead a = {0};
        static const double bytes_per_s = 1e9;
        static const uint32_t link = 0;
        engine_init(record_end_of_flow_or_timer, run_next_outside_event, &a, &bytes_per_s, 1);
        engine_start_flow(&link, 1, 5e9, 1);
        bool ran = engine_run() == NULL;
        static const int until[6] = {5000, 5000, 5000, 5000, 5000, -1};
        _exit(ran && a.done == 6 && memcmp(a.until, until, sizeof until) == 0 &&
                      fabs(a.fired_s - 3.5) < 1e-12 && fabs(a.ended_s - 5) < 1e-12
                  ? 0
                  : 1);
    }
    int state = -1;
    CHECK("child", waitpid(child, &state, 0) == child && state == 0);
}

static const struct check_case cases[] = {
    {"the module is loaded once", the_module_is_loaded_once},
    {"flows take what max-min says", flows_take_what_max_min_says},
    {"a fault of the library is words", simgrid_faults_become_messages},
    {"what runs ahead knows how far", events_outside_the_engine_know_its_next_date},
};
CHECK_MAIN("sim/engine", cases)
