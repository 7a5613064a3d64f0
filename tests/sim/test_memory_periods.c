#include "sim/memory/memory.h"
#include "tests/sim/machine.h"

#include "base/text.h"

/* Lists of one rank, of 1 ns a byte. A layer's forward makes what it keeps, then what it needs for itself
 * alone, and copies to the host what stays there; it waits for the copy of the layer before the last.
 * Its backward makes its own, and gives back what was kept. */
struct list {
    const char *label;
    int micros, layers;
    int first;      /* MB that the layer after the first gives back */
    int kept, own;  /* MB of a layer's forward */
    int copy_ms;    /* 0: no copies */
    int back;       /* MB of its backward; 0: there is none, and what is kept stays */
    bool stays;     /* what is kept does so in spite of a backward */
    int last;       /* MB of a kernel behind all layers */
    int64_t hbm_op; /* that comes with the peak */
    bool told;      /* from few periods */
};

/* clang-format off */
static const struct list lists[] = {
    {"the last layer is the fullest",               1, 20,    0, 100, 700,   0,   0, false,   0,  39,  true},
    {"and something comes behind it",               1, 20,    0, 100, 700,   0,   0, false,   1,  39,  true},
    {"what comes behind is the fullest",            1, 20,    0, 100, 200,   0,   0, false, 900,  40,  true},
    {"what a layer of the run gives back",          1, 20, 9000, 100, 700,   0,   0, false,   0,   4, false},
    {"copies beside kernels",                       1, 20,    0, 100, 100, 150,   0, false,   0,  58,  true},
    {"copies that set the pace",                    1, 20,    0, 100, 100, 250,   0, false,   0,  58,  true},
    {"all layers are as full",                      1, 20,    0,   0, 700,   0,   0, false,   0,   0,  true},
    {"the forward's last layer",                    1, 20,    0, 100, 700,   0, 100, false,   0,  39,  true},
    {"the backward's first layer",                  1, 20,    0, 100, 300,   0, 900, false,   0,  40,  true},
    {"the backward's first layer, behind copies",   1, 20,    0, 100, 300, 300, 900, false,   0,  60,  true},
    {"micro-batches that are as full",             12, 20,    0, 100, 300,   0, 900, false,   0,  40,  true},
    {"micro-batches whose copies stay",            12, 20,    0, 100, 300, 300, 900, false,   0,  60,  true},
    {"micro-batches that keep, of few layers",     12,  4,    0, 100, 300,   0, 900,  true,   0, 140,  true},
    {"micro-batches whose layers are one run",     12, 20,    0, 100, 300,   0,   0, false,   0, 479, false},
    {"micro-batches that keep",                    12, 20,    0, 100, 300,   0, 900,  true,   0, 700,  true},
    {"micro-batches that keep, and a last kernel", 12, 20,    0, 100, 300,   0, 900,  true,   1, 700,  true},
};
/* clang-format on */

/* Buffers and ops, as text. */
struct making {
    const struct list *list;
    struct text buffers, ops;
    int op, copy[2]; /* the next op; the last copies */
};

static void put_buffer(struct making *m, const char *name, int of, const char *memory, int mb,
                       int free_op)
{
    text_printf(&m->buffers, "buffer %s%d %s u8 [%d000000] activation", name, of, memory, mb);
    if (free_op >= 0)
        text_printf(&m->buffers, " free=%d", free_op);
    text_putc(&m->buffers, '\n');
}

static void put_fill(struct making *m, int mb, const char *name, int of, const char *labels)
{
    text_printf(&m->ops, "op %d fill compute count=%d000000", m->op++, mb);
    if (m->copy[0] >= 0)
        text_printf(&m->ops, " waits %d", m->copy[0]);
    text_printf(&m->ops, " writes %s%d %s\n", name, of, labels);
}

static void put_forward(struct making *m, int of, int free_op, const char *labels)
{
    const struct list *l = m->list;
    if (l->kept > 0) {
        put_buffer(m, "kept", of, "hbm", l->kept, free_op);
        put_fill(m, l->kept, "kept", of, labels);
    }
    put_buffer(m, "own", of, "hbm", l->own, m->op);
    put_fill(m, l->own, "own", of, labels);
    if (l->copy_ms == 0)
        return;
    put_buffer(m, "host", of, "pinned", 20 * l->copy_ms, -1);
    text_printf(&m->ops,
                "op %d d2h d2h bytes=%d000000 waits %d reads a0[0:%d000000] writes host%d %s\n",
                m->op, 20 * l->copy_ms, m->op - 1, 20 * l->copy_ms, of, labels);
    m->copy[0] = m->copy[1];
    m->copy[1] = m->op++;
}

static void put_layers(struct making *m, int micro)
{
    const struct list *l = m->list;
    int ops = 1 + (l->kept > 0) + (l->copy_ms > 0), behind = m->op + ops * l->layers;
    char labels[64];
    for (int i = 0; i < l->layers; i++) {
        snprintf(labels, sizeof labels, "layer=%d micro=%d", i, micro);
        put_forward(m, micro * l->layers + i,
                    l->back > 0 && !l->stays ? behind + l->layers - 1 - i : -1, labels);
    }
    for (int i = l->layers - 1; i >= 0 && l->back > 0; i--) {
        snprintf(labels, sizeof labels, "phase=backward layer=%d micro=%d", i, micro);
        put_buffer(m, "back", micro * l->layers + i, "hbm", l->back, m->op);
        put_fill(m, l->back, "back", micro * l->layers + i, labels);
    }
}

static void put_list(struct text *out, const struct list *l)
{
    struct making m = {.list = l, .copy = {-1, -1}};
    if (l->first > 0) {
        put_buffer(&m, "first", 0, "hbm", l->first, 4);
        put_fill(&m, l->first, "first", 0, "");
    }
    for (int i = 0; i < l->micros; i++)
        put_layers(&m, i);
    if (l->last > 0) {
        put_buffer(&m, "last", 0, "hbm", l->last, m.op);
        put_fill(&m, l->last, "last", 0, "");
    }
    text_puts(out, "longhaul schedule 1\n"
                   "stream compute compute\n"
                   "stream d2h d2h\n"
                   "buffer a0 hbm u8 [10000000000] workspace persistent\n");
    text_append(out, m.buffers.data, m.buffers.size);
    text_append(out, m.ops.data, m.ops.size);
    text_release(&m.buffers);
    text_release(&m.ops);
}

static void check_same_peak(const char *label, const struct sim_peak *got,
                            const struct sim_peak *want)
{
    CHECK_INT(label, (int64_t)got->bytes, (int64_t)want->bytes);
    CHECK_CLOSE(label, got->time_s, want->time_s, 1e-12);
    CHECK_INT(label, got->op, want->op);
    CHECK_INT(label, got->top_count, want->top_count);
    for (int k = 0; k < CATEGORY_COUNT; k++)
        CHECK_INT(label, (int64_t)got->category_bytes[k], (int64_t)want->category_bytes[k]);
    for (uint32_t i = 0; i < got->top_count && i < want->top_count; i++)
        CHECK_INT(label, got->top[i].buffer, want->top[i].buffer);
}

/* Compares folded with exact; returns whether peaks were told from few periods. */
static bool check_list(const struct list *l, struct sim_result *folded, struct sim_result *exact)
{
    struct text text = {0};
    struct ir ir = {0};
    struct cluster cluster = machine_make(1);
    bool told = false;
    put_list(&text, l);
    if (machine_parse(&ir, l->label, text.data)) {
        struct machine_costs costs = machine_costs_make(&ir, 1e-5);
        if (machine_run(l->label, &ir, &cluster, &costs.costs, (struct sim_options){0}, folded) &&
            machine_run(l->label, &ir, &cluster, &costs.costs, (struct sim_options){.exact = true},
                        exact)) {
            for (int m = 0; m < MEMORY_COUNT; m++) {
                check_same_peak(l->label, &folded->peak[0][m], &exact->peak[0][m]);
                CHECK_INT(l->label, (int64_t)folded->host[m].bytes, (int64_t)exact->host[m].bytes);
            }
            told = 2 * folded->counts.changes < exact->counts.changes;
        }
        machine_costs_release(&costs);
    }
    ir_release(&ir);
    text_release(&text);
    return told;
}

static void peaks_are_those_of_the_whole_list(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const struct list *l = &lists[i];
        struct sim_result folded = {0}, exact = {0};
        CHECK_INT(l->label, check_list(l, &folded, &exact), l->told);
        CHECK_INT(l->label, folded.depth.outcome, SIM_DEPTH_FOLDED);
        CHECK(l->label, exact.peak != NULL && exact.peak[0][MEMORY_HBM].op == l->hbm_op);
        sim_result_release(&folded);
        sim_result_release(&exact);
    }
}

enum { RANDOM_LISTS = 200 };

/* 0 as often as not. */
static int some(struct check_random *random, int most)
{
    return check_random_i64(random, 0, 1) ? (int)check_random_i64(random, 1, most) : 0;
}

static void peaks_of_random_lists_are_too(void)
{
    struct check_random random = check_random_make();
    int told = 0;
    for (int i = 0; i < RANDOM_LISTS; i++) {
        char label[96];
        struct list l = {.label = label};
        l.micros = (int)check_random_i64(&random, 1, 14);
        l.layers = (int)check_random_i64(&random, 4, 24);
        l.first = some(&random, 9000);
        l.kept = some(&random, 300);
        l.own = (int)check_random_i64(&random, 1, 500);
        l.copy_ms = check_random_i64(&random, 0, 3) ? some(&random, 400) : l.own; /* ties in time */
        l.back = check_random_i64(&random, 0, 3) ? some(&random, 900) : l.own;
        l.stays = check_random_i64(&random, 0, 1) == 0;
        l.last = some(&random, 3000);
        snprintf(label, sizeof label,
                 "%d x %d layers: first %d kept %d own %d copy %d back %d%s last %d", l.micros,
                 l.layers, l.first, l.kept, l.own, l.copy_ms, l.back,
                 l.stays ? ", which stays," : "", l.last);
        struct sim_result folded = {0}, exact = {0};
        told += check_list(&l, &folded, &exact);
        sim_result_release(&folded);
        sim_result_release(&exact);
    }
    CHECK("a quarter is told from few periods", 4 * told > RANDOM_LISTS);
}

static const struct check_case cases[] = {
    {"peaks are those of the whole list", peaks_are_those_of_the_whole_list},
    {"peaks of random lists are too", peaks_of_random_lists_are_too},
};
CHECK_MAIN("memory_periods", cases)
