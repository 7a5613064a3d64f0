/* tests/predict/test_documents.c: laws of the time and the MFU of steps over packed documents. */
#include "predict/bounds.h"
#include "predict/document_costs.h"
#include "predict/longhaul.h"
#include "schedule/ir/documents.h"
#include "schedule/ir/visible.h"
#include "sim/waterfall.h"
#include "tests/sim/machine.h"

#include <stdio.h>

enum { SEQ = 65536, BATCH = 4 };

/* Predicts Llama 3 8B on 16 GPUs: two replicas of two micro-batches. length: up to four document lengths for each
 * sequence, then zeros; NULL: no documents. fields: fields of the model that are set; NULL: none. *late (may be NULL)
 * tells which rank is late. */
static struct prediction_result predict(const char *fields, const char *strategy, int layout,
                                        const int64_t (*length)[4], bool exact,
                                        struct document_lateness_of_ranks *late)
{
    struct setup setup = {0};
    struct prediction prediction = {0};
    struct prediction_result result = {0};
    struct arena arena = {0};
    struct documents documents;
    struct diag diag = {0};
    enum status status = setup_load_model(&setup, "llama3-8b", NULL, fields, &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "dgx-h100", 2, 16, &diag);
    documents_init(&documents, &arena, BATCH);
    for (uint32_t s = 0; s < BATCH && length != NULL; s++) {
        uint32_t count = 0;
        while (count < 4 && length[s][count] > 0)
            count++;
        documents_set_lengths(&documents, &arena, s, length[s], count);
    }
    if (status == STATUS_OK) {
        setup_leave_request_open(&setup);
        setup.request.strategy = strategy;
        setup.request.profile = "ideal";
        setup.request.ring_layout = layout;
        setup.request.dp = 2;
        setup.request.seq = SEQ;
        setup.request.global_batch = BATCH;
        setup.request.activations = CHOICE_ACTIVATIONS_FULL;
        if (length != NULL)
            setup.request.documents = &documents;
        const struct prediction_question question = {.setup = &setup, .is_exact = exact};
        status = prediction_make(&prediction, &question, &diag);
    }
    if (CHECK_INT(strategy, status, STATUS_OK)) {
        prediction_fill_result(&result, &prediction);
        if (late != NULL)
            *late = prediction.lateness;
        CHECK("what plan takes for the least",
              bound_step_s(&setup, &prediction.choices) <= result.step_s);
        CHECK("the busiest kernels", prediction_step_lower_bound_s(&prediction) <= result.step_s);
    } else {
        fputs(diag.text, stderr);
    }
    prediction_release(&prediction);
    setup_release(&setup);
    arena_release(&arena);
    diag_release(&diag);
    return result;
}

static struct prediction_result predict_step_of_documents(const char *strategy, int layout,
                                                          const int64_t (*length)[4])
{
    return predict(NULL, strategy, layout, length, false, NULL);
}

static const int64_t whole[BATCH][4] = {{SEQ}, {SEQ}, {SEQ}, {SEQ}};
static const int64_t packed[BATCH][4] = {{32768, 16384, 8192, 8192},
                                         {8192, 8192, 32768, 16384},
                                         {16384, 8192, 8192, 32768},
                                         {32768, 8192, 16384, 8192}};
static const int64_t ordered[BATCH][4] = {{32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192},
                                          {32768, 16384, 8192, 8192}};
/* The sequences of the first replica are packed; those of the second are one document each. */
static const int64_t uneven[BATCH][4] = {
    {16384, 16384, 16384, 16384}, {16384, 16384, 16384, 16384}, {SEQ}, {SEQ}};

static void document_step_times_obey_laws(void)
{
    double none = predict_step_of_documents("ulysses", RING_ZIGZAG, NULL).step_s;
    double step_s = predict_step_of_documents("ulysses", RING_ZIGZAG, ordered).step_s;
    CHECK_CLOSE("one document is causal",
                predict_step_of_documents("ulysses", RING_ZIGZAG, whole).step_s, none, 1e-12);
    CHECK("documents take less", step_s < 0.9 * none);
    /* kernels sum the same blocks in another order */
    CHECK_CLOSE("order is nothing",
                predict_step_of_documents("ulysses", RING_ZIGZAG, packed).step_s, step_s, 1e-9);
    CHECK_CLOSE("the slowest replica decides",
                predict_step_of_documents("ulysses", RING_ZIGZAG, uneven).step_s, none, 0.01);
}

/* In both micro-batches the ranks of the second replica, 8 to 15, see the pairs of a whole sequence, and the others a
 * quarter of them: 1 over a mean of 0.625. */
static void the_late_rank_is_named(void)
{
    struct document_lateness_of_ranks late = {0};
    predict(NULL, "ulysses", RING_ZIGZAG, uneven, false, &late);
    CHECK_INT("rank", late.rank_late_most_often, 8);
    CHECK_INT("late", late.late_unit_count, 2);
    CHECK_INT("units", late.unit_count, 2);
    CHECK_CLOSE("slowest over mean", late.slowest_over_mean, 1 / 0.625, 0.02);
    predict(NULL, "ulysses", RING_ZIGZAG, whole, false, &late);
    CHECK_INT("equal ranks", late.unit_count, 0);
}

/* A ring whose ranks compute different numbers of pairs waits for the slowest; a ring that cuts each document
 * over its ranks does not. */
static void ring_cutting_documents_has_no_waits(void)
{
    static const int64_t skewed[BATCH][4] = {{49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096},
                                             {49152, 8192, 4096, 4096}};
    double cut = predict_step_of_documents("ring", RING_ZIGZAG_DOCUMENTS, skewed).step_s;
    CHECK("contiguous",
          predict_step_of_documents("ring", RING_CONTIGUOUS, skewed).step_s > 1.1 * cut);
    CHECK("zigzag of the whole",
          predict_step_of_documents("ring", RING_ZIGZAG, skewed).step_s > cut);
}

/* Documents of 1/2, 1/4, 1/8 and 1/8 of a sequence have 1/4 + 1/16 + 2/64 = 11/32 of its causal pairs. */
static void mfu_counts_visible_pairs(void)
{
    struct prediction_result causal = predict_step_of_documents("ulysses", RING_ZIGZAG, NULL);
    struct prediction_result seen = predict_step_of_documents("ulysses", RING_ZIGZAG, packed);
    /* flops of a forward per token: 2 x 7.5 billion weights, and 32 layers x 4 x 4096 for each of
     * SEQ / 2 pairs */
    double linear = 2.0 * (8030261248.0 - 128256.0 * 4096 - 65 * 4096),
           core = 32.0 * 4096 * 2 * SEQ;
    double want = (linear + 11.0 / 32 * core) / (linear + core);
    CHECK_CLOSE("flops of a step",
                seen.mfu[MFU_LONGHAUL] * seen.step_s / (causal.mfu[MFU_LONGHAUL] * causal.step_s),
                want, 1e-6);
}

/* Folding ranks, or leaving out repeated parts of a schedule, changes neither times nor flops. */
static void folding_changes_no_document_time(void)
{
    static const char *const strategies[] = {"ulysses", "ring"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(strategies); i++) {
        const int64_t(*length)[4] = i % 2 == 0 ? uneven : ordered;
        struct prediction_result exact =
            predict(NULL, strategies[i / 2], RING_ZIGZAG, length, true, NULL);
        struct prediction_result folded =
            predict(NULL, strategies[i / 2], RING_ZIGZAG, length, false, NULL);
        CHECK_CLOSE(strategies[i / 2], folded.step_s, exact.step_s, 1e-9);
        CHECK_CLOSE(strategies[i / 2], folded.hfu, exact.hfu, 1e-9);
    }
}

/* Simulates a schedule of two ranks in which an op with documents takes seconds[shape][place] and other computation
 * takes no time. Fills waterfall[rank] for each rank. */
static void waterfalls_of_two_ranks(const struct ir *ir, const double *const *seconds,
                                    struct waterfall *waterfall)
{
    struct cluster cluster = make_round_number_cluster(1);
    struct toy_sim_costs machine = {.work_s = heap_zalloc(ir->shape_count + 1u, sizeof(double))};
    struct sim_result result = {0};
    machine.costs = (struct sim_costs){.work_s = machine.work_s, .work_s_by_place = seconds};
    if (simulate_or_fail_check("two ranks", ir, &cluster, &machine.costs, (struct sim_options){0},
                               &result))
        for (uint32_t rank = 0; rank < 2; rank++)
            waterfall_make(&waterfall[rank], ir, &result,
                           (struct waterfall_peak){.flop_per_s = 1e12}, rank);
    sim_result_release(&result);
    free(machine.work_s);
}

static double **attention_s_by_shape_and_place(const struct ir *ir)
{
    double **seconds = heap_zalloc(ir->shape_count + 1u, sizeof *seconds);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        if (!work_pairs_depend_on_rank(&ir->shape[s]))
            continue;
        seconds[s] = heap_zalloc(ir_place_count(ir), sizeof **seconds);
        for (uint32_t r = 0; r < mesh_rank_count(&ir->mesh); r++)
            seconds[s][ir_place_of_rank(ir, r)] = ir_work_flops_on_rank(ir, &ir->shape[s], r) / 4;
    }
    return seconds;
}

/* A document of 3 tokens has 6 pairs, three of 1 token have 3. So in the first row rank 0 takes 6 s, and rank 1 takes
 * 3 s and waits for 3 s; if both took the mean of 4.5 s, neither would wait. The all-reduce that follows takes as long
 * in both cases: the wait counts as CAUSE_DOCUMENT_IMBALANCE and not as communication. */
static void the_rank_with_fewer_pairs_waits(void)
{
    static const struct {
        const char *label, *documents;
        double waits_s[2];
    } rows[] = {
        {"twice the pairs", "documents of=0 lengths=3\ndocuments of=1 lengths=1,1,1\n", {0, 3}},
        {"half the pairs", "documents of=0 lengths=1,1,1\ndocuments of=1 lengths=3\n", {3, 0}},
        {"as many pairs", "documents of=0 lengths=2,1\ndocuments of=1 lengths=1,2\n", {0, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        struct ir ir = {0};
        struct waterfall is[2] = {{0}}, even[2] = {{0}};
        text_printf(&text,
                    "longhaul schedule 1\nmesh dp=2\n"
                    "tokens layout=contiguous cp=1 hp=1 seq=3 batch=2 micro_batch=1 dtype=f32\n"
                    "%sgroup dp axes=dp\nstream compute compute\nstream comm comm\n"
                    "buffer q0 hbm f32 [3] activation persistent\n"
                    "buffer o0 hbm f32 [3] activation persistent\n"
                    "buffer l0 hbm f32 [3] activation persistent\n"
                    "op 0 attention compute q=3 kv=3 heads=1 kv_heads=1 dim=1 mask=documents reads "
                    "q0 q0 q0 writes o0 l0\n"
                    "op 1 all_reduce comm group=dp bytes=12 waits 0 reads o0 writes o0 "
                    "region=weights\n"
                    "op 2 fill compute count=3 waits 1 writes o0\n",
                    rows[i].documents);
        if (parse_schedule_or_fail_check(&ir, rows[i].label, text.data)) {
            double **seconds = attention_s_by_shape_and_place(&ir);
            double **means = document_costs_with_equal_pairs(&ir, (const double *const *)seconds);
            CHECK(rows[i].label, (means == NULL) == (i == 2));
            waterfalls_of_two_ranks(&ir, (const double *const *)seconds, is);
            if (means != NULL)
                waterfalls_of_two_ranks(&ir, (const double *const *)means, even);
            for (uint32_t rank = 0; rank < 2 && means != NULL; rank++) {
                double reduces_s = even[rank].cause_s[CAUSE_WEIGHT_COLLECTIVES];
                waterfall_attribute_documents(&is[rank], &even[rank]);
                CHECK_CLOSE(rows[i].label, even[rank].step_s - reduces_s, 4.5, 1e-9);
                CHECK_CLOSE(rows[i].label, is[rank].cause_s[CAUSE_WEIGHT_COLLECTIVES], reduces_s,
                            1e-9);
                CHECK_CLOSE(rows[i].label, is[rank].cause_s[CAUSE_DOCUMENT_IMBALANCE],
                            rows[i].waits_s[rank], 1e-9);
                CHECK(rows[i].label, waterfall_adds_up(&is[rank]));
            }
            document_costs_free(means, ir.shape_count);
            document_costs_free(seconds, ir.shape_count);
        }
        text_release(&text);
        ir_release(&ir);
    }
}

/* A step has waits for documents only if its ranks see different numbers of pairs because of
 * them. */
static void equal_documents_cause_no_waits(void)
{
    static const int64_t alike[BATCH][4] = {
        {SEQ / 2, SEQ / 2}, {SEQ / 4, SEQ - SEQ / 4}, {SEQ / 2, SEQ / 2}, {SEQ / 4, SEQ - SEQ / 4}};
    static const int64_t halves[BATCH][4] = {
        {SEQ / 2, SEQ / 2}, {SEQ / 2, SEQ / 2}, {SEQ / 2, SEQ / 2}, {SEQ / 2, SEQ / 2}};
    static const int64_t fewer_on_rank_0[BATCH][4] = {
        {SEQ / 2, SEQ / 2}, {SEQ / 2, SEQ / 2}, {SEQ}, {SEQ}};
    struct prediction_result most = predict_step_of_documents("ulysses", RING_ZIGZAG, NULL),
                             same = predict_step_of_documents("ulysses", RING_ZIGZAG, alike),
                             less =
                                 predict_step_of_documents("ulysses", RING_ZIGZAG, fewer_on_rank_0),
                             ring = predict_step_of_documents("ring", RING_ZIGZAG, alike),
                             cut = predict_step_of_documents("ring", RING_ZIGZAG_DOCUMENTS, alike);
    /* Without documents, ranks whose windows differ wait for the ring. */
    struct prediction_result window =
        predict("attention_window=4096", "ring", RING_ZIGZAG, NULL, false, NULL);
    double sum_s = 0;
    CHECK("windows of whole sequences", window.cause_s[CAUSE_DOCUMENT_IMBALANCE] == 0);
    CHECK("windows wait for the ring", window.cause_s[CAUSE_RING] > 1e-2 * window.step_s);
    CHECK("whole sequences", most.cause_s[CAUSE_DOCUMENT_IMBALANCE] == 0);
    CHECK("replicas alike", same.cause_s[CAUSE_DOCUMENT_IMBALANCE] == 0);
    /* Ranks have as many pairs each, in pieces whose last waves differ. */
    CHECK("cut documents", cut.cause_s[CAUSE_DOCUMENT_IMBALANCE] < 2e-3 * cut.step_s);
    CHECK("rings of cut sequences", ring.cause_s[CAUSE_DOCUMENT_IMBALANCE] > 1e-2 * ring.step_s);
    /* The first replica, with rank 0, sees half of the pairs that the second replica sees, and waits while the second
     * computes its other half. Communication that runs during the wait is not part of it, and slows kernels, and where
     * there is less attention the power limit leaves a higher clock: together 6 %. */
    double half_s = most.step_s - predict_step_of_documents("ulysses", RING_ZIGZAG, halves).step_s;
    CHECK_CLOSE("half of attention", less.cause_s[CAUSE_DOCUMENT_IMBALANCE], half_s, 0.07);
    for (int c = 0; c < CAUSE_COUNT; c++)
        sum_s += less.cause_s[c];
    CHECK_CLOSE("all causes", sum_s, less.step_s, 1e-9);
}

static const struct check_case cases[] = {
    {"the rank with fewer pairs waits", the_rank_with_fewer_pairs_waits},
    {"only different documents are waited for", equal_documents_cause_no_waits},
    {"folded is exact", folding_changes_no_document_time},
    {"laws of time", document_step_times_obey_laws},
    {"the late rank is named", the_late_rank_is_named},
    {"cut documents are even", ring_cutting_documents_has_no_waits},
    {"MFU counts visible pairs", mfu_counts_visible_pairs},
};
CHECK_MAIN("predicted documents", cases)
