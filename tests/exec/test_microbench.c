/* tests/exec/test_microbench.c: every kind can be timed, except send, recv, barrier, opaque and those that need rows of
 * other ranks; a point describes what was timed, emulated links are as slow as requested, and a set of benchmarks can
 * be stopped. No test checks how fast anything is. */
#include "exec/microbench.h"
#include "exec/number.h"
#include "models/calibrate_links.h"
#include "models/frozen_storage.h"
#include "schedule/ir/visible.h"
#include "tests/check.h"

#include <string.h>

static const struct microbench_options brief_options = {
    .round_s = 1e-4, .most_rounds = 1, .min_bytes_of_all_operand_sets = 1, .dtype = DTYPE_F32};

/* Returns a work of a kind with small sizes. */
static struct work small_work_of_kind(enum work_kind kind)
{
    const struct work_kind_info *info = work_kind_info(kind);
    struct work work = {.kind = (uint8_t)kind};
    for (size_t i = 0; i < info->param_count; i++) {
        const struct work_param *param = &info->param[i];
        bool bytes = strcmp(param->name, "bytes") == 0, dim = strcmp(param->name, "dim") == 0;
        work.p[i] = param->is_value_group_id ? (param->optional ? 0 : 2)
                    : bytes                  ? 64
                    : dim                    ? 4
                    : param->optional        ? 0
                                             : 2;
        if (param->value_names)
            work.p[i] = 0;
    }
    if (kind == WORK_SHIFT)
        work.p2p.by = 1;
    if (kind == WORK_PACK || kind == WORK_UNPACK)
        work.pack.w[1] = 3;
    if (kind == WORK_DEQUANTISE)
        work.dequantise.storage = FROZEN_STORAGE_NF4_DOUBLE;
    return work;
}

/* True if a kind can be timed by itself. An opaque op is never executed, a send, receive or barrier needs another
 * rank's op, and the rows that context ranks send each other follow from the sequences of a schedule. */
static bool can_be_timed_alone(enum work_kind kind)
{
    const struct work work = {.kind = (uint8_t)kind};
    struct row_use use;
    return kind != WORK_SEND && kind != WORK_RECV && kind != WORK_BARRIER && kind != WORK_OPAQUE &&
           !row_use_if_work_moves_rows(&work, &use);
}

static void every_kind_can_be_timed(void)
{
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const char *name = work_kind_info((enum work_kind)kind)->name;
        struct microbench_case wanted = {
            .point_role = kind == WORK_HOST_SYNC ? POINT_ISSUE : POINT_WORK,
            .attention_impl =
                kind <= WORK_MERGE && kind != WORK_MATMUL ? ATTENTION_CPU : POINT_NO_IMPL,
            .work = small_work_of_kind((enum work_kind)kind),
        };
        struct point point;
        struct diag diag = {0};
        enum status status = microbench_measure_case(&wanted, &brief_options, &point, &diag);
        if (!can_be_timed_alone((enum work_kind)kind)) {
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

/* However busy the machine is, an op that reads megabytes takes longer than the fastest memory needs for them;
 * an op that skipped its operands would not. */
static void work_on_megabytes_takes_its_time(void)
{
    static const double BYTES_PER_S_MAX = 1e12; /* for one core */
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
        struct microbench_options options = {
            .round_s = 0.005, .most_rounds = 1, .dtype = DTYPE_F32};
        struct diag diag = {0};
        struct point point;
        if (CHECK_INT(name, microbench_measure_case(&wanted, &options, &point, &diag), STATUS_OK))
            CHECK(name, point.p10_s * BYTES_PER_S_MAX > work_memory_bytes(&point.work));
        diag_release(&diag);
    }
}

static void bench_set_holds_every_kind_of_work(void)
{
    struct arena arena = {0};
    const struct microbench_case *cases;
    for (int quick = 0; quick < 2; quick++) {
        bool there[WORK_KIND_COUNT] = {false}, role[POINT_ROLE_COUNT] = {false};
        bool small_tile = false;
        size_t count = microbench_list_cases(&cases, &arena, quick, 2, NULL);
        struct points points = {0}, again = {0};
        for (size_t i = 0; i < count; i++) {
            struct point point = {.role = cases[i].point_role,
                                  .attention_impl = cases[i].attention_impl,
                                  .nodes = 1,
                                  .work = cases[i].work,
                                  .median_s = 1,
                                  .p10_s = 1,
                                  .p90_s = 1,
                                  .repeats = 1};
            there[cases[i].work.kind] = true;
            small_tile |= cases[i].work.kind == WORK_ATTENTION && cases[i].work.attention.q < 256;
            role[cases[i].point_role] = true;
            points_add(&points, &point);
        }
        CHECK("a tile of attention as small as rings over short sequences have", small_tile);
        for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
            CHECK(work_kind_info((enum work_kind)kind)->name,
                  there[kind] || !can_be_timed_alone((enum work_kind)kind) ||
                      kind == WORK_CROSS_ENTROPY_FINISH || kind == WORK_ROW_DOT);
        for (int i = 0; i <= POINT_HOST; i++) /* others are of a GPU, or of recorded steps */
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
    size_t count = microbench_list_cases(&cases, &arena, true, 2, kinds);
    for (size_t i = 0; i < count; i++)
        CHECK_INT("only what was asked for", cases[i].work.kind, WORK_ADD);
    arena_release(&arena);
}

/* Roles that time work while other work runs: a kind that each role accepts, and one that it refuses. */
static const struct {
    enum point_role role;
    enum work_kind kind, is_not;
} company[] = {
    {POINT_PAGEABLE, WORK_D2H, WORK_ADD},       {POINT_PAGEABLE, WORK_H2D, WORK_SHIFT},
    {POINT_BOTH_WAYS, WORK_H2D, WORK_MATMUL},   {POINT_BOTH_WAYS, WORK_D2H, WORK_ADD},
    {POINT_BESIDE, WORK_MATMUL, WORK_H2D},      {POINT_SM_HOG, WORK_ADD, WORK_ALL_REDUCE},
    {POINT_SUSTAINED, WORK_MATMUL, WORK_SHIFT},
};

static void work_is_timed_beside_other_kernels(void)
{
    for (size_t i = 0; i < ARRAY_LEN(company); i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            enum work_kind kind = wrong ? company[i].is_not : company[i].kind;
            const struct microbench_case wanted = {(uint8_t)company[i].role, POINT_NO_IMPL,
                                                   small_work_of_kind(kind)};
            const char *label = point_role_name(company[i].role);
            struct point point = {.role = POINT_ROLE_COUNT};
            struct diag diag = {0};
            enum status status = microbench_measure_case(&wanted, &brief_options, &point, &diag);
            CHECK_INT(label, status, wrong ? STATUS_BAD_INPUT : STATUS_OK);
            CHECK_INT(label, point.role, wrong ? POINT_ROLE_COUNT : company[i].role);
            CHECK(label, wrong || (point.p10_s > 0 && point.p10_s <= point.median_s &&
                                   point.median_s <= point.p90_s && point.p90_s < 60));
            CHECK(label, wrong || point.repeats >= 3);
            diag_release(&diag);
        }
}

/* A link that is slower than the machine takes at least the requested time, since a sleep never ends early. */
static void emulated_links_take_their_time(void)
{
    struct microbench_options options = brief_options;
    options.copy_link = options.message_link =
        (struct exec_emulated_link_limits){.bytes_per_s = 100e6, .latency_s = 1e-3};
    static const enum work_kind kinds[] = {WORK_H2D, WORK_D2H, WORK_SHIFT};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct microbench_case wanted = {.attention_impl = POINT_NO_IMPL,
                                         .work = small_work_of_kind(kinds[i])};
        struct point point;
        if (kinds[i] == WORK_SHIFT)
            wanted.work.p2p.bytes = 100000;
        else
            wanted.work.copy.bytes = 100000;
        struct diag diag = {0};
        CHECK_INT("measured", microbench_measure_case(&wanted, &options, &point, &diag), STATUS_OK);
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
         "error: send is not measured, since it involves more than one op; measure a shift\n",
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
         "error: all_to_all cannot be measured at these sizes: an operand would be empty, too "
         "large or not a whole number of elements\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_ALL_TO_ALL, .collective = {3, 64, 0, 0}}},
         NULL},
        {"no such backend",
         "error: there is no backend 'abacus' in this build; 'cpu' would do\n",
         {POINT_WORK, POINT_NO_IMPL, {.kind = WORK_ADD, .elements = {8}}},
         "abacus"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct microbench_options options = brief_options;
        struct point point;
        struct diag diag = {0};
        options.backend = rows[i].backend;
        CHECK_INT(rows[i].label, microbench_measure_case(&rows[i].wanted, &options, &point, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].message);
        diag_release(&diag);
    }
}

/* ---- sets, also stopped ones, their limit of time, and operands ---- */

static const struct case_set {
    const char *label, *device;
    size_t (*make)(const struct microbench_case **cases, struct arena *arena, bool quick,
                   uint32_t ranks, const bool *kinds);
    enum dtype dtype;
} sets[] = {{"cpu", "cpu-generic", microbench_list_cases, DTYPE_F32},
            {"gpu", "h200", microbench_list_gpu_cases, DTYPE_BF16}};

static void full_bench_set_begins_with_quick_set(void)
{
    for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
        struct arena arena = {0};
        const struct microbench_case *quick, *whole;
        size_t few = sets[s].make(&quick, &arena, true, 2, NULL);
        size_t all = sets[s].make(&whole, &arena, false, 2, NULL), same = 0, twice = 0, late = 0;
        for (size_t i = 0; i < all; i++) {
            bool in_quick = false;
            for (size_t k = 0; k < few && !in_quick; k++)
                in_quick = quick[k].point_role == whole[i].point_role &&
                           memcmp(&quick[k].work, &whole[i].work, sizeof quick[k].work) == 0;
            same += in_quick;
            late += in_quick && i > few; /* for example the sustained product */
            for (size_t k = 0; k < i; k++)
                twice += whole[k].point_role == whole[i].point_role &&
                         whole[k].attention_impl == whole[i].attention_impl &&
                         memcmp(&whole[k].work, &whole[i].work, sizeof whole[k].work) == 0;
        }
        CHECK(sets[s].label, few < all);
        CHECK_INT(sets[s].label, (int64_t)same, (int64_t)few);
        CHECK_INT(sets[s].label, (int64_t)late, 0);
        CHECK_INT(sets[s].label, (int64_t)twice, 0);
        arena_release(&arena);
    }
}

/* Returns the seconds of a transfer between two ranks that share a node (docs/measuring.md, "Links"). */
static double modelled_transfer_s(const struct microbench_case *wanted)
{
    const struct work *work = &wanted->work;
    bool half = work->kind == WORK_REDUCE_SCATTER || work->kind == WORK_ALL_TO_ALL ||
                work->kind == WORK_SCATTER;
    double ways = wanted->point_role == POINT_BOTH_WAYS ? 2 : half ? 0.5 : 1;
    return (work->kind == WORK_ALL_REDUCE ? 2 : 1) * 5e-6 +
           ways * (double)work_payload_bytes(work) / 5e10;
}

/* Returns the seconds that a device with these costs takes for a case. */
static double modelled_case_s(const struct device_cost *cost, const struct microbench_case *wanted)
{
    const struct work *work = &wanted->work;
    enum attention_impl impl = wanted->attention_impl < POINT_NO_IMPL
                                   ? (enum attention_impl)wanted->attention_impl
                                   : (enum attention_impl)0;
    enum calibrate_link_class link;
    const struct point point = {.role = wanted->point_role, .work = *work, .nodes = 1};
    if (calibrate_find_link_class_of_point(&point, &link))
        return modelled_transfer_s(wanted);
    switch ((enum point_role)wanted->point_role) {
    case POINT_START:
        return cost->device_kernel_start_s;
    case POINT_ISSUE:
        return cost_host_issue_s(cost, work);
    case POINT_HOST:
        return cost_host_work_s(cost, 20e9, work);
    case POINT_SUSTAINED:
        return 1.2 * cost_work_s(cost, impl, work);
    default:
        return cost_work_s(cost, impl, work);
    }
}

/* Fits the first points of a set, few or many. The base gives the numbers that they do not determine, so the device
 * file can always be read. More points than the quick set has determine every number. */
static void points_of_a_set_that_was_stopped_are_fitted(void)
{
    for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
        struct arena arena = {0};
        struct diag diag = {0};
        struct device_cost base;
        const struct microbench_case *cases;
        size_t few = sets[s].make(&cases, &arena, true, 2, NULL);
        size_t all = sets[s].make(&cases, &arena, false, 2, NULL), before = 0;
        if (!CHECK_INT("base", cost_load(&base, &arena, sets[s].device, &diag), STATUS_OK))
            return;
        const size_t counts[] = {1, few / 16, few / 8, few / 4, few / 2, 3 * few / 4, few + 1, all};
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            struct points points = {0};
            struct calibration device = {0};
            struct link_calibration links = {0};
            struct text out = {0};
            struct device_cost again;
            struct calibrate_options options = {.host_memory_bytes_per_s = 20e9};
            for (size_t k = 0; k < counts[i] && k < all; k++) {
                struct point point = {.role = cases[k].point_role,
                                      .attention_impl = cases[k].attention_impl,
                                      .nodes = 1,
                                      .work = cases[k].work,
                                      .repeats = 20};
                point.work.in = point.work.out = (uint8_t)sets[s].dtype;
                const struct microbench_case wanted = {cases[k].point_role, cases[k].attention_impl,
                                                       point.work};
                struct device_cost unlimited = base; /* without a power limit, as in short runs */
                unlimited.device_power = 0;
                point.median_s = point.p10_s = point.p90_s = modelled_case_s(&unlimited, &wanted);
                points_add(&points, &point);
            }
            enum status status = calibrate_device(&device, &points, &base, &options, &diag);
            enum status linked = calibrate_links(&links, &points, &options, &diag);
            CHECK(sets[s].label, status == STATUS_OK || status == STATUS_NO);
            CHECK(sets[s].label, linked == STATUS_OK || linked == STATUS_NO);
            CHECK(sets[s].label, device.family_count >= before);
            before = device.family_count;
            if (counts[i] > few) {
                CHECK_INT(sets[s].label, status, STATUS_OK);
                CHECK_INT(sets[s].label, linked, STATUS_OK);
                CHECK_TEXT(sets[s].label, diag.text ? diag.text : "", "");
            }
            calibration_print_device(&device, "part", sets[s].device, NULL, &out);
            diag_clear(&diag);
            CHECK_INT(sets[s].label, cost_parse(&again, &arena, "part", out.data, out.size, &diag),
                      STATUS_OK);
            diag_clear(&diag);
            text_release(&out);
            calibration_release(&device);
            link_calibration_release(&links);
            points_release(&points);
        }
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* If no case has a larger overhead than the first one, the time spent stays within the limit. Cheap cases still run
 * when expensive ones no longer fit. */
static void a_limit_of_time_is_kept(void)
{
    struct microbench_time_budget budget = {.limit_s = 100};
    double spent_s = 0;
    size_t taken = 0;
    CHECK("no limit",
          microbench_fits_time_budget(&(struct microbench_time_budget){.spent_s = 1e9}, 1e9));
    CHECK("all of it", microbench_fits_time_budget(&budget, 100) &&
                           !microbench_fits_time_budget(&budget, 100.1));
    for (unsigned i = 0; i < 400; i++) {
        double guess_s = i % 40 == 20 ? 30 : 0.07, besides_s = i == 0 ? 2 : i * 37 % 20 * 0.1;
        if (!microbench_fits_time_budget(&budget, guess_s))
            continue;
        taken++;
        spent_s += guess_s + besides_s;
        microbench_record_spent_time(&budget, guess_s, guess_s + besides_s);
    }
    CHECK("within it", spent_s <= 100 && spent_s > 97);
    CHECK("most of them cheap", taken > 60);
    const struct microbench_options options = {.backend = "cpu", .dtype = DTYPE_F32};
    const struct work work = {.kind = WORK_MATMUL, .matmul = {512, 512, 512, MATMUL_NT, 0, 0}};
    const struct microbench_case once = {POINT_WORK, POINT_NO_IMPL, work};
    const struct microbench_case long_ = {POINT_SUSTAINED, POINT_NO_IMPL, work};
    CHECK("a point", microbench_estimated_s(&once, &options) > 0.05 &&
                         microbench_estimated_s(&once, &options) < 1);
    CHECK("seconds of it", microbench_estimated_s(&long_, &options) > 5);
}

/* Operands of benchmarks are random numbers; other GPU benchmarks use the same (bench/gpu/attention_alone.c). */
static void operands_are_random_and_not_zero(void)
{
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32, DTYPE_F64};
    for (size_t d = 0; d < ARRAY_LEN(dtypes); d++) {
        enum { COUNT = 70000, ROW = 4096 };
        static double data[COUNT];
        double sum = 0, squares = 0, least = 2, most = 0;
        microbench_fill(data, dtypes[d], COUNT, 3);
        for (uint64_t i = 0; i < COUNT; i++) {
            double value = number_read_element(data, dtypes[d], i);
            sum += value;
            squares += value * value;
            least = value < least ? value : least;
            most = value > most ? value : most;
        }
        const char *name = dtype_name(dtypes[d]);
        size_t bytes = dtype_bytes(dtypes[d]);
        CHECK(name, memcmp(data, (char *)data + ROW * bytes, ROW * bytes) != 0); /* two rows */
        if (bytes == 2) {                                                        /* normal */
            CHECK(name, fabs(sum / COUNT) < 0.02 && most > 3 && least < -3);
            CHECK_CLOSE(name, squares / COUNT, 1, 0.02);
        } else { /* what is wider must be positive */
            CHECK(name, least >= 0.25 && least < 0.26 && most > 0.98 && most <= 1);
            CHECK_CLOSE(name, sum / COUNT, 0.625, 0.01);
        }
    }
}

static const struct check_case cases[] = {
    {"operands are random and not zero", operands_are_random_and_not_zero},
    {"the whole set begins with the quick one", full_bench_set_begins_with_quick_set},
    {"points of a set that was stopped are fitted", points_of_a_set_that_was_stopped_are_fitted},
    {"a limit of time is kept", a_limit_of_time_is_kept},
    {"every kind can be timed", every_kind_can_be_timed},
    {"work on megabytes takes its time", work_on_megabytes_takes_its_time},
    {"the set holds every kind and its points are read back", bench_set_holds_every_kind_of_work},
    {"work is timed in company", work_is_timed_beside_other_kernels},
    {"emulated links take their time", emulated_links_take_their_time},
    {"what cannot be timed is refused", what_cannot_be_timed_is_refused},
};
CHECK_MAIN("microbench", cases)
