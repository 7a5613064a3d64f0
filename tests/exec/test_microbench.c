/* Microbenchmarks: every kind can be timed, a point says what was timed, and links are as slow as
 * they were asked to be. How fast anything is, no test says. */
#include "exec/microbench.h"
#include "exec/number.h"
#include "models/calibrate_links.h"
#include "tests/check.h"

#include <string.h>

static const struct microbench_options brief = {
    .seconds = 1e-4, .rounds = 1, .rotate_bytes = 1, .dtype = DTYPE_F32};

/* The smallest work of a kind that its shape allows. */
static struct work smallest(enum work_kind kind)
{
    const struct work_kind_info *info = work_kind_info(kind);
    struct work work = {.kind = (uint8_t)kind};
    for (size_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        bool bytes = strcmp(param->name, "bytes") == 0, dim = strcmp(param->name, "dim") == 0;
        work.p[i] = param->is_group   ? (param->optional ? 0 : 2)
                    : bytes           ? 64
                    : dim             ? 4
                    : param->optional ? 0
                                      : 2;
        if (param->values)
            work.p[i] = 0;
    }
    if (kind == WORK_SHIFT)
        work.p2p.by = 1;
    if (kind == WORK_PACK || kind == WORK_UNPACK)
        work.pack.w[1] = 3;
    return work;
}

static bool is_alone(enum work_kind kind)
{
    return kind != WORK_SEND && kind != WORK_RECV && kind != WORK_BARRIER;
}

static void every_kind_can_be_timed(void)
{
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const char *name = work_kind_info((enum work_kind)kind)->name;
        struct microbench_case wanted = {
            .role = kind == WORK_HOST_SYNC ? POINT_ISSUE : POINT_WORK,
            .impl = kind <= WORK_MERGE && kind != WORK_MATMUL ? ATTENTION_CPU : POINT_NO_IMPL,
            .work = smallest((enum work_kind)kind),
        };
        struct point point;
        struct diag diag = {0};
        enum status status = microbench_run(&wanted, &brief, &point, &diag);
        if (!is_alone((enum work_kind)kind)) {
            CHECK_INT(name, status, STATUS_BAD_INPUT);
            diag_release(&diag);
            continue;
        }
        CHECK_TEXT(name, diag.text ? diag.text : "", "");
        if (CHECK_INT(name, status, STATUS_OK)) {
            CHECK_INT(name, point.work.kind, kind);
            CHECK(name, memcmp(point.work.p, wanted.work.p, sizeof point.work.p) == 0);
            CHECK(name, point.p10_s > 0 && point.p10_s <= point.median_s &&
                            point.median_s <= point.p90_s && point.p90_s < 60);
            CHECK(name, point.repeats >= 3);
        }
        diag_release(&diag);
    }
}

/* However busy the machine is, an op that reads megabytes takes longer than any memory can be read in;
 * one that leaves its operands out does not. */
static void work_on_megabytes_takes_its_time(void)
{
    static const double BYTES_PER_S_MAX = 1e12; /* of one core */
    static const struct work rows[] = {
        {.kind = WORK_ADD, .elements = {1 << 20, 0}},
        {.kind = WORK_CLIP, .elements = {1 << 20, 0}},
        {.kind = WORK_ADAMW, .elements = {1 << 20, 0}},
        {.kind = WORK_SQUARE_SUM, .square_sum = {1 << 20, 0, 0}},
        {.kind = WORK_SQUARE_SUM, .square_sum = {1 << 20, 1, 0}},
        {.kind = WORK_COLUMN_SUM, .rows = {1 << 10, 1 << 10, 0}},
        {.kind = WORK_EMBEDDING, .embedding = {1 << 10, 1 << 10, 64, 0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *name = work_kind_info((enum work_kind)rows[i].kind)->name;
        const struct microbench_case wanted = {POINT_WORK, POINT_NO_IMPL, rows[i]};
        struct microbench_options options = {.seconds = 0.005, .rounds = 1, .dtype = DTYPE_F32};
        struct diag diag = {0};
        struct point point;
        if (CHECK_INT(name, microbench_run(&wanted, &options, &point, &diag), STATUS_OK))
            CHECK(name, point.p10_s * BYTES_PER_S_MAX > work_memory_bytes(&point.work));
        diag_release(&diag);
    }
}

static void the_set_holds_every_kind_and_its_points_are_read_back(void)
{
    struct arena arena = {0};
    const struct microbench_case *cases;
    for (int quick = 0; quick < 2; quick++) {
        bool there[WORK_KIND_COUNT] = {false}, role[POINT_ROLE_COUNT] = {false};
        bool small_tile = false;
        size_t count = microbench_set(&cases, &arena, quick, 2, NULL);
        struct points points = {0}, again = {0};
        for (size_t i = 0; i < count; i++) {
            struct point point = {.role = cases[i].role,
                                  .impl = cases[i].impl,
                                  .nodes = 1,
                                  .work = cases[i].work,
                                  .median_s = 1,
                                  .p10_s = 1,
                                  .p90_s = 1,
                                  .repeats = 1};
            there[cases[i].work.kind] = true;
            small_tile |= cases[i].work.kind == WORK_ATTENTION && cases[i].work.attention.q < 256;
            role[cases[i].role] = true;
            points_add(&points, &point);
        }
        CHECK("a tile of attention as small as rings over short sequences have", small_tile);
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            CHECK(work_kind_info((enum work_kind)kind)->name,
                  there[kind] || !is_alone((enum work_kind)kind) ||
                      kind == WORK_CROSS_ENTROPY_FINISH);
        for (int i = 0; i <= POINT_HOST; i++) /* the others are of a GPU's set */
            CHECK(point_role_name((enum point_role)i), role[i]);
        struct text out = {0};
        struct diag diag = {0};
        points_print(&points, &out);
        CHECK_INT("read back", points_parse(&again, "set.csv", out.data, out.size, &diag),
                  STATUS_OK);
        CHECK_TEXT("no message", diag.text ? diag.text : "", "");
        CHECK_INT("rows", (int64_t)again.count, (int64_t)count);
        text_release(&out);
        diag_release(&diag);
        points_release(&points);
        points_release(&again);
    }
    bool kinds[WORK_KIND_COUNT] = {[WORK_ADD] = true};
    size_t count = microbench_set(&cases, &arena, true, 2, kinds);
    for (size_t i = 0; i < count; i++)
        CHECK_INT("only what was asked for", cases[i].work.kind, WORK_ADD);
    arena_release(&arena);
}

/* In company: each role on the work it is of, and refused on the other. */
static const struct {
    enum point_role role;
    enum work_kind kind, not ;
} company[] = {
    {POINT_PAGEABLE, WORK_D2H, WORK_ADD},       {POINT_PAGEABLE, WORK_H2D, WORK_SHIFT},
    {POINT_BOTH_WAYS, WORK_H2D, WORK_MATMUL},   {POINT_BOTH_WAYS, WORK_D2H, WORK_ADD},
    {POINT_BESIDE, WORK_MATMUL, WORK_H2D},      {POINT_ROBBED, WORK_ADD, WORK_ALL_REDUCE},
    {POINT_SUSTAINED, WORK_MATMUL, WORK_SHIFT},
};

static void work_is_timed_in_company(void)
{
    for (size_t i = 0; i < ARRAY_LEN(company); i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            enum work_kind kind = wrong ? company[i].not : company[i].kind;
            const struct microbench_case wanted = {(uint8_t)company[i].role, POINT_NO_IMPL,
                                                   smallest(kind)};
            const char *label = point_role_name(company[i].role);
            struct point point = {.role = POINT_ROLE_COUNT};
            struct diag diag = {0};
            enum status status = microbench_run(&wanted, &brief, &point, &diag);
            CHECK_INT(label, status, wrong ? STATUS_BAD_INPUT : STATUS_OK);
            CHECK_INT(label, point.role, wrong ? POINT_ROLE_COUNT : company[i].role);
            CHECK(label, wrong || (point.p10_s > 0 && point.p10_s <= point.median_s &&
                                   point.median_s <= point.p90_s && point.p90_s < 60));
            CHECK(label, wrong || point.repeats >= 3);
            diag_release(&diag);
        }
}

/* Sleeping never ends early: links that are slower than the machine take what they say at least. */
static void emulated_links_take_their_time(void)
{
    struct microbench_options options = brief;
    options.copies = options.messages = (struct exec_link){.bytes_per_s = 100e6, .latency_s = 1e-3};
    static const enum work_kind kinds[] = {WORK_H2D, WORK_D2H, WORK_SHIFT};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct microbench_case wanted = {.impl = POINT_NO_IMPL, .work = smallest(kinds[i])};
        struct point point;
        if (kinds[i] == WORK_SHIFT)
            wanted.work.p2p.bytes = 100000;
        else
            wanted.work.copy.bytes = 100000;
        struct diag diag = {0};
        CHECK_INT("measured", microbench_run(&wanted, &options, &point, &diag), STATUS_OK);
        CHECK_TEXT("no message", diag.text ? diag.text : "", "");
        CHECK("1 ms of latency and 1 ms of bytes", point.p10_s > 1.9e-3);
        diag_release(&diag);
    }
}

static void what_cannot_be_timed_is_refused(void)
{
    static const struct {
        const char *label, *message;
        struct microbench_case wanted;
        const char *backend;
    } rows[] = {
        {"a send",
         "error: send is no work of one op; measure a shift\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_SEND, .p2p = {2, 1, 64, 0}}},
         NULL},
        {"a crowd",
         "error: shift of 65 ranks; 1 to 64 can be measured\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_SHIFT, .p2p = {65, 1, 64, 0}}},
         NULL},
        {"an add of the host",
         "error: add does not run on the host\n",
         {POINT_HOST, POINT_NO_IMPL, {.kind = WORK_ADD, .elements = {8}}},
         NULL},
        {"parts that do not divide",
         "error: all_to_all cannot be measured at these sizes\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_ALL_TO_ALL, .collective = {3, 64, 0, 0}}},
         NULL},
        {"no such backend",
         "error: there is no backend 'abacus' in this build; 'cpu' would do\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_ADD, .elements = {8}}},
         "abacus"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct microbench_options options = brief;
        struct point point;
        struct diag diag = {0};
        options.backend = rows[i].backend;
        CHECK_INT(rows[i].label, microbench_run(&rows[i].wanted, &options, &point, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].message);
        diag_release(&diag);
    }
}

/* What else measures a GPU takes the same numbers (bench/gpu/attention_alone.c). */
static void operands_are_random_and_not_zero(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_F64};
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        enum { COUNT = 6000 };
        static double data[COUNT];
        double sum = 0, least = 2, most = 0;
        microbench_fill(data, dtypes[d], COUNT, 3);
        for (uint64_t i = 0; i < COUNT; i++) {
            double value = number_get(data, dtypes[d], i);
            sum += value;
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
        CHECK(dtype_name(dtypes[d]), least >= 0.25 && least < 0.26 && most > 0.98 && most <= 1);
        CHECK_CLOSE(dtype_name(dtypes[d]), sum / COUNT, 0.5625, 0.05);
    }
}

static const struct check_case cases[] = {
    {"operands are random and not zero", operands_are_random_and_not_zero},
    {"every kind can be timed", every_kind_can_be_timed},
    {"work on megabytes takes its time", work_on_megabytes_takes_its_time},
    {"the set holds every kind and its points are read back",
     the_set_holds_every_kind_and_its_points_are_read_back},
    {"work is timed in company", work_is_timed_in_company},
    {"emulated links take their time", emulated_links_take_their_time},
    {"what cannot be timed is refused", what_cannot_be_timed_is_refused},
};
CHECK_MAIN("microbench", cases)
