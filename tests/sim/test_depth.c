#include "tests/sim/machine.h"

#include "base/text.h"
#include "sim/plan/depth.h"

enum { BACK_MAX = 16 };

/* A list of ops for one rank or four: micro-batches of layers, each a kernel of a given number of milliseconds,
 * then a copy out that may overlap the next kernels. */
struct list {
    const char *label;
    int micros, layers;
    int kernel_ms[2]; /* of even and odd layers */
    int first_ms;     /* before the layers */
    double copy_s;
    int waits;         /* distance to the earlier layer whose copy is awaited; 0: none */
    const char *meets; /* op of all ranks, a layer ahead; NULL: none */
    enum sim_depth_outcome outcome;
    struct sim_depth_fold layers_fold;
    int hasty;       /* additional layers, whose kernels take half as long */
    double queued_s; /* of copies before those of the layers */
};

static const char head[] = "longhaul schedule 1\n"
                           "mesh g=4\n"
                           "group g axes=g\n"
                           "stream compute compute\n"
                           "stream comm comm\n"
                           "stream d2h d2h\n"
                           "buffer a0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer b0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer c0 hbm u8 [100000000000] workspace persistent\n"
                           "buffer p0 pinned u8 [100000000000] workspace persistent\n\n";

static void put_list(struct text *out, const struct list *l)
{
    int op = 0, copy[BACK_MAX], gathered = -1, kernel = -1, layer = 0;
    text_puts(out, head);
    if (l->first_ms > 0)
        text_printf(out, "op %d fill compute count=%d000000 writes a0\n", op++, l->first_ms);
    if (l->queued_s > 0)
        text_printf(out, "op %d d2h d2h bytes=%.0f reads c0 writes p0\n", op++, l->queued_s * 20e9);
    for (int m = 0; m < l->micros; m++)
        for (int i = 0; i < l->layers + l->hasty; i++, layer++) {
            int next = op, behind = l->waits > 0 && layer >= l->waits ? layer - l->waits : -1;
            if (l->meets) {
                text_printf(out, "op %d %s bytes=1000000000 ", op++, l->meets);
                if (l->waits > 0 && kernel >= 0)
                    text_printf(out, "waits %d ", kernel);
                text_printf(out, "reads a0 writes b0 layer=%d micro=%d\n", i, m);
            }
            kernel = op;
            text_printf(out, "op %d fill compute count=%d000000", op++,
                        l->kernel_ms[i % 2] / (i < l->layers ? 1 : 2));
            if (gathered >= 0 || behind >= 0)
                text_puts(out, " waits ");
            if (behind >= 0)
                text_printf(out, "%d%s", copy[behind % BACK_MAX], gathered >= 0 ? "," : "");
            if (gathered >= 0)
                text_printf(out, "%d", gathered);
            text_printf(out, " writes c0 layer=%d micro=%d\n", i, m);
            text_printf(out,
                        "op %d d2h d2h bytes=%.0f waits %d reads c0 writes p0 layer=%d micro=%d\n",
                        op, l->copy_s * 20e9, op - 1, i, m);
            copy[layer % BACK_MAX] = op++;
            gathered = l->meets ? next : -1;
        }
    text_printf(out, "op %d fill compute count=1000000 waits %d writes a0\n", op, op - 1);
}

static const char gather[] = "all_gather comm group=g", shift[] = "shift comm group=g by=+1";

/* clang-format off */
static const struct list lists[] = {
    {"equal layers", 1, 20, {100, 100}, 0, 0.05, 0, NULL, SIM_DEPTH_FOLDED, {1, 5, 19, 0}, 0, 0},
    {"layers in pairs", 1, 24, {100, 200}, 7, 0.05, 0, NULL, SIM_DEPTH_FOLDED, {2, 10, 22, 0}, 0, 0},
    {"gathers one layer ahead", 1, 20, {100, 100}, 0, 0.05, 2, gather, SIM_DEPTH_FOLDED, {1, 6, 19, 0}, 0, 0},
    {"copies that set the pace", 1, 20, {100, 100}, 0, 0.15, 2, NULL, SIM_DEPTH_FOLDED, {1, 6, 19, 0}, 0, 0},
    /* the gathers of all layers run as soon as they are issued */
    {"gathers far ahead", 1, 20, {100, 100}, 0, 0.05, 0, gather, SIM_DEPTH_UNSTEADY, {0}, 0, 0},
    /* each copy ends 50 ms later after its kernel than the copy before */
    {"copies that fall behind", 1, 20, {100, 100}, 0, 0.15, 0, NULL, SIM_DEPTH_UNSTEADY, {0}, 0, 0},
    /* the layers of all micro-batches are equal */
    {"micro-batches", 12, 3, {100, 100}, 0, 0.05, 0, NULL, SIM_DEPTH_FOLDED, {1, 5, 35, 0}, 0, 0},
    {"copies that fall behind later on", 1, 20, {200, 200}, 0, 0.15, 0, NULL, SIM_DEPTH_FOLDED, {1, 5, 20, 11}, 12, 0},
    {"messages", 1, 20, {100, 100}, 0, 0.05, 2, shift, SIM_DEPTH_FOLDED, {1, 6, 19, 0}, 0, 0},
    /* the copy before the layers keeps the first one waiting for 30 ms, which the others make up for by 2 each */
    {"messages that settle late", 1, 40, {100, 100}, 0, 0.0735, 3, shift, SIM_DEPTH_FOLDED, {1, 22, 39, 0}, 0, 0.0975},
    {"too late", 1, 16, {100, 100}, 0, 0.0735, 3, shift, SIM_DEPTH_UNSTEADY, {0}, 0, 0.0975},
    {"messages of micro-batches", 12, 3, {100, 100}, 0, 0.05, 2, shift, SIM_DEPTH_FOLDED, {1, 6, 35, 0}, 0, 0},
    {"messages of copies that fall behind later on", 1, 20, {200, 200}, 0, 0.15, 2, shift, SIM_DEPTH_FOLDED, {1, 8, 20, 0}, 12, 0},
    /* hosts that wait for layers to end delay messages, which must be noticed */
    {"messages far ahead", 1, 20, {100, 100}, 0, 0.05, 0, shift, SIM_DEPTH_UNSTEADY, {0}, 0, 0},
    {"few layers", 1, 8, {100, 100}, 0, 0.05, 0, NULL, SIM_DEPTH_NO_PERIOD, {0}, 0, 0},
};
/* clang-format on */

static void compare(const char *label, const struct ir *ir, const struct sim_result *folded,
                    const struct sim_result *exact)
{
    double worst = 0;
    CHECK_CLOSE(label, folded->step_s, exact->step_s, 1e-12);
    CHECK_INT(label, (int64_t)folded->load_count, (int64_t)exact->load_count);
    for (size_t i = 0; i < folded->load_count; i++)
        CHECK_CLOSE(label, folded->load[i].bytes, exact->load[i].bytes, 1e-12);
    for (uint32_t rank = 0; rank < exact->rank_count; rank++)
        for (uint32_t op = 0; op < ir->op.count; op++) {
            worst = fmax(worst, fabs(sim_start_s(folded, rank)[op] - sim_start_s(exact, rank)[op]));
            worst = fmax(worst, fabs(sim_end_s(folded, rank)[op] - sim_end_s(exact, rank)[op]));
        }
    CHECK(label, worst <= 1e-10);
}

static void check_fold(const char *label, const struct sim_depth_fold *got,
                       const struct sim_depth_fold *want)
{
    CHECK_INT(label, got->period, want->period);
    CHECK_INT(label, got->simulated, want->simulated);
    CHECK_INT(label, got->all, want->all);
    CHECK_INT(label, got->given_up, want->given_up);
}

static void what_repeats_is_simulated_a_few_times(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const struct list *l = &lists[i];
        struct text text = {0};
        struct ir ir = {0};
        struct sim_result folded = {0}, exact = {0};
        struct cluster cluster = machine_make(1);
        put_list(&text, l);
        if (machine_parse(&ir, l->label, text.data)) {
            struct machine_costs costs = machine_costs_make(&ir, 1e-5);
            if (machine_run(l->label, &ir, &cluster, &costs.costs, (struct sim_options){0},
                            &folded) &&
                machine_run(l->label, &ir, &cluster, &costs.costs,
                            (struct sim_options){.exact = true}, &exact))
                compare(l->label, &ir, &folded, &exact);
            CHECK_INT(l->label, folded.depth.outcome, l->outcome);
            check_fold(l->label, &folded.depth.layers, &l->layers_fold);
            CHECK_INT(l->label, exact.depth.outcome, SIM_DEPTH_OFF);
            machine_costs_release(&costs);
        }
        sim_result_release(&folded);
        sim_result_release(&exact);
        ir_release(&ir);
        text_release(&text);
    }
}

/* ---- times of the long list are checked ---- */

enum { LAYERS = 24, FRONT = LAYERS + 1, LATE = 10, OPS = FRONT + 2 * LAYERS };

/* Layers of a kernel and a copy out, each of which waits for an op before all layers. The times are right at first;
 * the cases then make the host issue more slowly, or an awaited op end later or earlier. */
struct times {
    const char *label;
    bool blocking;    /* copies */
    bool paced;       /* layers wait for their ops; else these have ended by then */
    double issue_s;   /* of each op */
    double claimed_s; /* of the layers' kernels, in the times that are checked */
    double end_s;     /* of layer LATE's op, in the times that are checked; 0: unchanged */
    bool right;
};

/* clang-format off */
static const struct times times[] = {
    {"nothing but kernels",                    false, false, 1e-3, 1e-3, 0,    true },
    {"copies that hold the host",              true,  false, 1e-3, 1e-3, 0,    true },
    {"a host that is late by the end",         false, false, 0.02, 0.165, 0,   false},
    {"a host that would be late behind it",    false, false, 0.02, 0.13, 0,    true },
    {"late where layers are left out",         false, false, 1e-3, 1e-3, 3.07, false},
    {"late, but not for the layer that waits", false, false, 1e-3, 1e-3, 3,    true },
    {"late while copies hold the host",        true,  false, 1e-3, 1e-3, 3.7,  false},
    {"layers that are held up",                false, true,  0,    0,    0,    true },
    {"a host that sets the pace",              false, true,  0.11, 0.11, 0,    true },
    {"one that nothing holds up",              false, true,  0,    0,    0.9,  false},
};
/* clang-format on */

static void put_times(struct text *out, const struct times *t)
{
    text_puts(out, head);
    text_puts(out, "stream second compute\nstream third compute\n");
    for (int i = 0; i < LAYERS; i++) {
        int turns = i == LATE ? LATE + 1 : i == LATE + 1 ? 2 : 1;
        text_printf(out, "op %d fill %s count=%d writes b0\n", i, i == LATE ? "third" : "second",
                    t->paced ? turns * 100000000 : 1000);
    }
    text_printf(out, "op %d fill compute count=%d writes a0\n", LAYERS,
                t->paced ? 1000 : 2000000000);
    for (int i = 0, op = FRONT; i < LAYERS; i++, op += 2) {
        text_printf(out, "op %d fill compute count=%d waits %d writes c0 layer=%d\n", op,
                    t->paced ? 50000000 : 100000000, i, i);
        text_printf(out, "op %d d2h d2h bytes=1000000000%s waits %d reads c0 writes p0 layer=%d\n",
                    op + 1, t->blocking ? " blocking=1" : "", op, i);
    }
}

/* Starts each op as soon as the host, its stream and its waits allow. */
static void start_all(const struct ir *ir, const struct sim_costs *costs, double *start_s,
                      double *end_s)
{
    double host_s = 0, stream_s[8] = {0};
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const double *before_s = &stream_s[ir->op.stream[op]];
        host_s += costs->issue_s[ir->op.shape[op]];
        start_s[op] = fmax(host_s, *before_s);
        for (uint32_t w = 0; w < ir->op.wait_count[op]; w++)
            start_s[op] = fmax(start_s[op], end_s[ir->wait[ir->op.wait_begin[op] + w].i]);
        end_s[op] =
            start_s[op] + (ir->op.kind[op] == WORK_D2H ? 0.05 : costs->work_s[ir->op.shape[op]]);
        stream_s[ir->op.stream[op]] = end_s[op];
        if (ir_blocks_host(ir, op))
            host_s = end_s[op];
    }
}

/* Removes the times of all layers but the first two and the last, and lets the folding fill them in again. */
static bool expand(const struct ir *ir, const struct sim_costs *costs, const double *start_s,
                   const double *end_s)
{
    static uint8_t op_class[OPS]; /* no op is an event */
    uint32_t zero[1] = {0}, ones[1] = {1}, runs;
    struct sim_plan plan = {
        .ir = ir, .costs = costs, .rank_count = 1, .role_of_rank = zero, .op_class = op_class};
    struct fold fold = {
        .class_count = 1, .class_of_rank = zero, .rank_of_class = zero, .class_ranks = ones};
    struct depth_run *run = depth_find_runs(ir, &runs);
    double filled_s[2][OPS];
    const double *of[2] = {start_s, end_s};
    if (!CHECK_INT("runs", runs, 1)) {
        free(run);
        return false;
    }
    run->kept = 3;
    run->first_kept = 2;
    uint32_t begin = run->begin + run->first_kept * run->ops;
    uint32_t end = run->begin + (run->periods - 1) * run->ops;
    double shift_s = (run->periods - run->kept) * (start_s[OPS - 2] - start_s[OPS - 4]);
    for (int i = 0; i < 2; i++)
        for (uint32_t op = 0; op < OPS; op++)
            filled_s[i][op] = op < begin ? of[i][op] : op < end ? 0 : of[i][op] - shift_s;
    bool right =
        depth_expand(&plan, &fold, run, runs, (struct steady_times){filled_s[0], filled_s[1]});
    for (uint32_t op = 0; right && op < OPS; op++)
        right = CHECK_CLOSE("time", filled_s[0][op], start_s[op], 1e-9) &&
                CHECK_CLOSE("time", filled_s[1][op], end_s[op], 1e-9);
    free(run);
    return right;
}

static void starts_of_layers_left_out_are_checked(void)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const struct times *t = &times[i];
        struct text text = {0};
        struct ir ir = {0};
        double start_s[OPS], end_s[OPS];
        put_times(&text, t);
        if (machine_parse(&ir, t->label, text.data)) {
            struct machine_costs costs = machine_costs_make(&ir, t->issue_s);
            struct machine_costs claimed = machine_costs_make(&ir, t->issue_s);
            claimed.issue_s[ir.op.shape[FRONT]] = t->claimed_s;
            start_all(&ir, &costs.costs, start_s, end_s);
            end_s[LATE] = t->end_s > 0 ? t->end_s : end_s[LATE];
            CHECK(t->label, expand(&ir, &claimed.costs, start_s, end_s) == t->right);
            machine_costs_release(&costs);
            machine_costs_release(&claimed);
        }
        ir_release(&ir);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"what repeats is simulated a few times", what_repeats_is_simulated_a_few_times},
    {"starts of layers left out are checked", starts_of_layers_left_out_are_checked},
};
CHECK_MAIN("depth", cases)
