/* tests/exec/hand.h: loads, plans and runs schedules that are written by hand. Included by test files only. */
#ifndef TESTS_EXEC_HAND_H
#define TESTS_EXEC_HAND_H

#include "exec/exec.h"
#include "schedule/analysis/liveness.h"
#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char *hand_backend; /* backend of the runs; NULL: the CPU */

struct hand {
    struct ir ir;
    struct exec_options options;
    struct exec_io io;
    struct exec_result result;
    struct diag diag;
};

/* Reads a schedule from text and, if the text has no arena, plans free sets and offsets. Returns false, with a
 * failed check, when the text has a fault. */
static inline bool hand_load(struct hand *h, const char *text)
{
    *h = (struct hand){
        .options = {.backend = hand_backend, .model = {1e-5, 10000}, .stall_limit_s = 0.4}};
    if (!CHECK_INT(text, ir_parse(&h->ir, "hand.ir", text, strlen(text), &h->diag), STATUS_OK)) {
        fputs(h->diag.text, stderr);
        return false;
    }
    if (h->ir.planned_bytes[MEMORY_HBM] == 0) {
        liveness_compute_free_sets(&h->ir);
        offsets_plan(&h->ir, NULL);
    }
    return true;
}

static inline enum status hand_run(struct hand *h)
{
    return exec_run(&h->ir, "hand.ir", &h->options, &h->io, &h->result, &h->diag);
}

static inline void hand_release(struct hand *h)
{
    exec_result_release(&h->result);
    ir_release(&h->ir);
    diag_release(&h->diag);
}

/* Runs the loaded schedule and checks the status and the messages; a run that fails must leave no result. */
static inline void hand_run_and_check_message(const char *label, struct hand *h, enum status status,
                                              const char *message)
{
    enum status got = hand_run(h);
    CHECK_INT(label, got, status);
    CHECK_TEXT(label, h->diag.text ? h->diag.text : "", message);
    if (status != STATUS_OK)
        CHECK("nothing is presented as a result",
              h->result.steps == 0 && h->result.trace.ops.count == 0);
}

#endif
