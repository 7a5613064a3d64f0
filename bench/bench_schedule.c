/* Measures how fast schedules are built, planned and verified, and how tightly arenas are packed. Times are medians of
 * processor seconds. */
#include "bench/repeat.h"
#include "predict/longhaul.h"
#include "schedule/analysis/liveness.h"
#include "schedule/config/resolve_config.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"

#include <stdio.h>
#include <time.h>

static const struct {
    const char *name, *model, *strategy;
    int64_t ranks, hp, seq, batch;
    int weights, activations;
} rows[] = {
    {"ulysses sp 32 x dp 2, 512K", "gpt-7b", "ulysses", 64, 32, 524288, 0, -1, -1},
    {"ulysses, 256 micro-batches", "gpt-7b", "ulysses", 8, 8, 65536, 256, -1, -1},
    {"local, zero1", "gpt-7b", "local", 8, 1, 4096, 512, CHOICE_WEIGHTS_ZERO1,
     CHOICE_ACTIVATIONS_FULL},
    {"ulysses, zero3, offload", "llama3-8b", "ulysses", 8, 8, 524288, 0, CHOICE_WEIGHTS_ZERO3,
     CHOICE_ACTIVATIONS_OFFLOAD},
    {"fpdt, 4M tokens", "llama3-8b", "fpdt", 8, 8, 4194304, 0, -1, -1},
};

/* One line of the table: its name, counts, speeds, sizes. */
#define TABLE_LINE_FORMAT(count, speed, size)                                                      \
    "%-28s %" count " %" count " %" speed " %" speed " %" speed " %" size " %" size " %" size "\n"

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum status resolve_row(size_t row, struct setup *setup, struct choices *choices,
                               struct diag *diag)
{
    struct request *request = &setup->request;
    enum status status = setup_load_model(setup, rows[row].model, NULL, NULL, diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(setup, "dgx-a100", 0, rows[row].ranks, diag);
    if (status != STATUS_OK)
        return status;
    setup_leave_request_open(setup);
    request->strategy = rows[row].strategy;
    request->weights = rows[row].weights;
    request->activations = rows[row].activations;
    request->hp = rows[row].hp;
    request->seq = rows[row].seq;
    request->global_batch = rows[row].batch;
    return resolve_choices(choices, request, NULL, diag);
}

struct phase_seconds {
    struct repeat build, plan, verify;
};

static bool needs_more_rounds(const struct phase_seconds *t)
{
    return t->build.round_count < REPEAT_MAX &&
           (repeat_needs_more(&t->build) || repeat_needs_more(&t->plan) ||
            repeat_needs_more(&t->verify));
}

static enum status measure_and_print_row(size_t row, struct diag *diag)
{
    struct setup setup = {0};
    struct choices choices;
    struct phase_seconds times = {0};
    enum status status = resolve_row(row, &setup, &choices, diag);
    struct ir ir = {0};
    struct offsets_memory_figures figures;
    while (status == STATUS_OK && needs_more_rounds(&times)) {
        ir_release(&ir);
        double begin_s = processor_s();
        status = step_build(&ir, &choices, diag);
        repeat_add(&times.build, processor_s() - begin_s);
        begin_s = processor_s();
        offsets_plan(&ir, &figures);
        repeat_add(&times.plan, processor_s() - begin_s);
        begin_s = processor_s();
        if (status == STATUS_OK)
            status = verify(&ir, NULL, rows[row].name, NULL, diag);
        repeat_add(&times.verify, processor_s() - begin_s);
    }
    if (status == STATUS_OK)
        printf(TABLE_LINE_FORMAT("9u", "9.2f", "9.3f"), rows[row].name, ir.op.count,
               ir.buffer.count, ir.op.count / repeat_median_s(&times.build) / 1e6,
               ir.buffer.count / repeat_median_s(&times.plan) / 1e6,
               ir.op.count / repeat_median_s(&times.verify) / 1e6,
               (double)figures.planned_bytes[MEMORY_HBM] / 1e9,
               (double)figures.max_live_bytes[MEMORY_HBM] / 1e9,
               (double)figures.live_bytes[MEMORY_HBM] / 1e9);
    ir_release(&ir);
    setup_release(&setup);
    return status;
}

int main(void)
{
    printf(TABLE_LINE_FORMAT("9s", "9s", "9s"), "", "ops", "buffers", "made", "planned", "verified",
           "arena", "held", "live");
    printf(TABLE_LINE_FORMAT("9s", "9s", "9s"), "", "", "", "Mop/s", "Mbuffer/s", "Mop/s", "GB",
           "GB", "GB");
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        struct diag diag = {0};
        if (measure_and_print_row(row, &diag) != STATUS_OK) {
            fputs(diag.text, stderr);
            return 2;
        }
        diag_release(&diag);
    }
    return 0;
}
