/* tests/traces/test_compare.c: errors of a predicted trace against a measured one: by kind, stream, phase and rank, and
 * the verdict. Recordings are aligned with the prediction first. */
#include "base/text.h"
#include "tests/check.h"
#include "traces/align.h"
#include "traces/compare.h"
#include "traces/csv.h"
#include "traces/kineto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS "rank,stream,op,kind,phase,region,layer,chunk,step,start_s,end_s,bytes,flops\n"

struct fixture {
    struct trace predicted, measured;
    struct comparison comparison;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    comparison_release(&f->comparison);
    trace_release(&f->predicted);
    trace_release(&f->measured);
    diag_release(&f->diag);
}

/* Reads two traces from CSV rows and compares them. */
static enum status compare_text(struct fixture *f, const char *predicted, const char *measured)
{
    struct text text = {0};
    *f = (struct fixture){0};
    text_printf(&text, "%s%s", COLUMNS, predicted);
    CHECK_INT("predicted", trace_parse_ops(&f->predicted, "p.csv", text.data, text.size, NULL),
              STATUS_OK);
    text.size = 0;
    text_printf(&text, "%s%s", COLUMNS, measured);
    CHECK_INT("measured", trace_parse_ops(&f->measured, "m.csv", text.data, text.size, NULL),
              STATUS_OK);
    text_release(&text);
    return compare_with_longhaul_trace(&f->comparison, &f->predicted, &f->measured, "m.csv",
                                       &f->diag);
}

/* Rows of traces, here and below, have the values of COLUMNS. Two matmuls are predicted as 1 s and
 * 3 s and take 2 s each; attention is predicted exactly; both traces have a copy. */
#define PREDICTED                                                                                  \
    "0,compute,0,matmul,forward,linear,0,-1,-1,0,1,0,0\n"                                          \
    "0,compute,1,attention,forward,attention,0,-1,-1,1,5,0,0\n"                                    \
    "0,compute,2,matmul,backward,linear,0,-1,-1,5,8,0,0\n"                                         \
    "0,h2d,3,h2d,backward,offload,0,-1,-1,5,6,0,0\n"
#define MEASURED                                                                                   \
    "0,compute,0,matmul,forward,linear,0,-1,-1,10,12,0,0\n"                                        \
    "0,compute,1,attention,forward,attention,0,-1,-1,12,16,0,0\n"                                  \
    "0,compute,2,matmul,backward,linear,0,-1,-1,16,18,0,0\n"                                       \
    "0,h2d,3,h2d,backward,offload,0,-1,-1,16,17,0,0\n"

/* Checks the i-th group of the comparison by kind, stream, phase or rank. Groups without a name are
 * checked for their seconds only. off_s: the sum of the absolute errors of the group's ops. */
static void check_group(const struct comparison *c, enum compare_grouping by, size_t i,
                        const char *name, double predicted_s, double measured_s, double off_s)
{
    struct compare_group *group;
    size_t count = compare_list_groups(c, by, &group);
    if (CHECK(name, i < count)) {
        if (group[i].name != NULL)
            CHECK_TEXT(compare_grouping_name(by), group[i].name, name);
        CHECK_CLOSE(name, group[i].predicted_s, predicted_s, 1e-12);
        CHECK_CLOSE(name, group[i].measured_s, measured_s, 1e-12);
        CHECK_CLOSE(name, group[i].absolute_error_s, off_s, 1e-12);
    }
    free(group);
}

static void errors_add_up_by_kind_stream_phase_and_rank(void)
{
    struct fixture f;
    CHECK_INT("compare", compare_text(&f, PREDICTED, MEASURED), STATUS_OK);
    const struct comparison *c = &f.comparison;
    check_group(c, BY_KIND, 0, "attention", 4, 4, 0);
    check_group(c, BY_KIND, 1, "matmul", 4, 4, 2); /* one is a second too short, one too long */
    check_group(c, BY_KIND, 2, "h2d", 1, 1, 0);
    check_group(c, BY_STREAM, 0, "compute", 8, 8, 2);
    check_group(c, BY_PHASE, 0, "forward", 5, 6, 1);
    check_group(c, BY_PHASE, 1, "backward", 4, 3, 1);
    check_group(c, BY_RANK, 0, "rank", 9, 9, 2);
    CHECK_CLOSE("step predicted", c->predicted.step_s, 8, 1e-12);
    CHECK_CLOSE("step measured", c->measured.step_s, 8, 1e-12);
    CHECK_CLOSE("all matched", c->matched_time_share, 1, 0);

    struct compare_op *op;
    CHECK_INT("ops", (int64_t)compare_list_ops(c, &op), 4);
    CHECK_INT("first of equals", op[0].pair_of_lowest_rank->op, 0);
    CHECK_CLOSE("share", op[0].share_of_total_error, 0.5, 1e-12);
    CHECK_INT("second", op[1].pair_of_lowest_rank->op, 2);
    CHECK_CLOSE("no error, no share", op[3].share_of_total_error, 0, 0);
    free(op);
    fixture_release(&f);
}

static void rows_without_a_partner_are_counted(void)
{
    struct fixture f;
    compare_text(&f, PREDICTED "0,compute,9,add,forward,linear,0,-1,-1,8,9,0,0\n",
                 MEASURED "0,compute,7,add,forward,linear,0,-1,-1,18,20,0,0\n"
                          "0,compute,8,add,forward,linear,0,-1,-1,20,21,0,0\n");
    CHECK_INT("predicted", (int64_t)f.comparison.predicted.unmatched_rows, 1);
    CHECK_INT("measured", (int64_t)f.comparison.measured.unmatched_rows, 2);
    CHECK_CLOSE("measured time", f.comparison.measured.unmatched_s, 3, 1e-12);
    CHECK_CLOSE("the smaller share", f.comparison.matched_time_share, 0.75, 1e-12);
    CHECK_INT("no verdict", compare_verdict_of(&f.comparison, 10), VERDICT_NONE);
    fixture_release(&f);
    compare_text(&f, "0,compute,0,matmul,forward,linear,0,-1,-1,0,1,0,0\n",
                 "0,compute,0,attention,forward,linear,0,-1,-1,0,1,0,0\n");
    CHECK_INT("another kind is another op", (int64_t)f.comparison.pair_count, 0);
    CHECK_CLOSE("nothing matched", f.comparison.matched_time_share, 0, 0);
    fixture_release(&f);
}

static void compared_steps_give_their_median(void)
{
    struct fixture f;
    compare_text(&f, "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n",
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,1,0,0\n"
                 "0,compute,0,matmul,forward,linear,0,-1,-1,20,29,0,0\n"
                 "0,compute,0,matmul,forward,linear,0,-1,-1,10,12,0,0\n");
    CHECK_INT("steps", (int64_t)f.comparison.measured_steps, 3);
    CHECK_CLOSE("median op", f.comparison.pairs[0].measured_s, 2, 1e-12);
    CHECK_CLOSE("median step", f.comparison.measured.step_s, 2, 1e-12);
    CHECK_CLOSE("fastest", f.comparison.shortest_step_s, 1, 1e-12);
    CHECK_CLOSE("slowest", f.comparison.longest_step_s, 9, 1e-12);
    CHECK_CLOSE("busy a step", f.comparison.measured.busy_s, 4, 1e-12);
    CHECK_INT("verdict", compare_verdict_of(&f.comparison, 0.01), VERDICT_WITHIN);
    fixture_release(&f);
}

static void a_rank_that_stands_for_all_is_held_against_each(void)
{
    struct fixture f;
    compare_text(&f, "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n",
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                 "3,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n");
    CHECK_INT("pairs", (int64_t)f.comparison.pair_count, 2);
    CHECK_INT("rank", f.comparison.pairs[1].rank, 3);
    CHECK_INT("absent", (int64_t)f.comparison.unpredicted_rank_count, 0);
    fixture_release(&f);
    compare_text(&f,
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                 "4,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n",
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                 "3,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n");
    CHECK_INT("pairs of two", (int64_t)f.comparison.pair_count, 1);
    CHECK_INT("absent of two", (int64_t)f.comparison.unpredicted_rank_count, 1);
    fixture_release(&f);
    enum status status = compare_text(&f,
                                      "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                                      "1,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n",
                                      "3,compute,0,matmul,forward,linear,0,-1,-1,0,4,0,0\n");
    CHECK_INT("none in common", status, STATUS_BAD_INPUT);
    CHECK_TEXT("message", f.diag.text,
               "m.csv: error: none of its 1 ranks is in the prediction; predict with --exact to "
               "have all\n");
    fixture_release(&f);
    compare_text(&f, PREDICTED, MEASURED "2,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n");
    comparison_release(&f.comparison);
    trace_set_key(&f.predicted, "ranks", "2");
    CHECK_INT(
        "more ranks",
        compare_with_longhaul_trace(&f.comparison, &f.predicted, &f.measured, "m.csv", &f.diag),
        STATUS_BAD_INPUT);
    CHECK_TEXT("more ranks", f.diag.text,
               "m.csv: error: has rows of rank 2, but the prediction is for 2 ranks\n");
    fixture_release(&f);
    CHECK_INT("no rows", compare_text(&f, PREDICTED, ""), STATUS_BAD_INPUT);
    CHECK_TEXT("no rows", f.diag.text,
               "m.csv: error: nothing to compare: the measured trace has no rows\n");
    fixture_release(&f);
}

static void add_memory(struct trace *trace, double bytes)
{
    size_t row = trace_add_memory(trace);
    trace->memory.memory[row] = trace_intern_label(trace, "hbm");
    trace->memory.category[row] = trace_intern_label(trace, "activation");
    trace->memory.bytes[row] = bytes;
}

static void the_verdict_is_about_the_step_and_memory(void)
{
    static const struct {
        const char *label, *predicted_step, *predicted_arena;
        double predicted_peak;
        enum compare_verdict verdict;
    } rows[] = {
        /* label, predicted_step, predicted_arena, predicted_peak, verdict */
        {"all equal", "8", "1000", 100, VERDICT_WITHIN},
        {"step within", "8.7", "1000", 100, VERDICT_WITHIN},
        {"step beyond", "8.9", "1000", 100, VERDICT_BEYOND},
        {"peak within", "8", "1000", 91, VERDICT_WITHIN},
        {"peak beyond", "8", "1000", 89, VERDICT_BEYOND},
        {"arena a byte short", "8", "999", 100, VERDICT_BEYOND},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;
        compare_text(&f, PREDICTED, MEASURED);
        comparison_release(&f.comparison);
        trace_set_key(&f.predicted, "step_s", rows[i].predicted_step);
        trace_set_key(&f.predicted, "arena_bytes.hbm", rows[i].predicted_arena);
        trace_set_key(&f.measured, "arena_bytes.hbm", "1000");
        add_memory(&f.predicted, rows[i].predicted_peak);
        add_memory(&f.measured, 100);
        CHECK_INT(
            rows[i].label,
            compare_with_longhaul_trace(&f.comparison, &f.predicted, &f.measured, "m.csv", &f.diag),
            STATUS_OK);
        CHECK_INT(rows[i].label, compare_verdict_of(&f.comparison, 0.1), rows[i].verdict);
        fixture_release(&f);
    }
}

/* --- recordings --- */

static enum status compare_files(struct fixture *f, const char *predicted, const char *measured)
{
    struct text text = {0};
    *f = (struct fixture){0};
    CHECK_INT(predicted, trace_load_ops(&f->predicted, check_path(predicted), &f->diag), STATUS_OK);
    CHECK_INT(measured, text_read(&text, check_path(measured), &f->diag), STATUS_OK);
    enum status status = kineto_parse(&f->measured, measured, text.data, text.size, &f->diag);
    text_release(&text);
    if (CHECK_INT(measured, status, STATUS_OK))
        status = compare_with_profiler_trace(&f->comparison, &f->predicted, &f->measured, measured,
                                             &f->diag);
    return status;
}

/* Counts the rows of one kind in the pairs of the comparison, on both sides. */
static void count_rows(const struct comparison *c, const char *kind, size_t *predicted,
                       size_t *measured)
{
    *predicted = *measured = 0;
    for (size_t i = 0; i < c->pair_count; i++)
        if (strcmp(c->pairs[i].kind, kind) == 0) {
            *predicted += c->pairs[i].predicted_rows;
            *measured += c->pairs[i].measured_rows;
        }
}

static void recordings_align_with_the_schedule_of_their_model(void)
{
    static const struct {
        const char *predicted, *measured;
        size_t steps, predicted_matmuls, measured_matmuls, attentions, layers;
    } rows[] = {
        /* predicted, measured, steps, predicted_matmuls, measured_matmuls, attentions, layers */
        {"data/kineto/llama.predicted.csv", "data/kineto/llama.json", 1, 27, 45, 4, 2},
        {"data/kineto/gpt.predicted.csv", "data/kineto/gpt.json", 1, 27, 27, 4, 2},
        {"data/kineto/gpt-steps.predicted.csv", "data/kineto/gpt-steps.json", 3, 15, 15, 2, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;
        const char *label = rows[i].measured;
        CHECK_INT(label, compare_files(&f, rows[i].predicted, label), STATUS_OK);
        const struct comparison *c = &f.comparison;
        size_t predicted, measured, attentions = 0;
        count_rows(c, "matmul", &predicted, &measured);
        CHECK_INT(label, (int64_t)predicted, (int64_t)rows[i].predicted_matmuls);
        CHECK_INT(label, (int64_t)measured, (int64_t)rows[i].measured_matmuls);
        for (size_t k = 0; k < c->pair_count; k++)
            attentions += strcmp(c->pairs[k].kind, "attention") == 0;
        CHECK_INT(label, (int64_t)attentions, (int64_t)rows[i].attentions);
        CHECK_INT(label, (int64_t)c->measured_steps, (int64_t)rows[i].steps);
        CHECK_INT(label, (int64_t)c->predicted_period.repeat_count, (int64_t)rows[i].layers);
        CHECK_INT(label, (int64_t)c->measured_period.repeat_count, (int64_t)rows[i].layers);
        CHECK(label, c->matched_time_share > 0.98);
        fixture_release(&f);
    }
}

static void another_model_gets_no_verdict(void)
{
    static const struct {
        const char *label, *predicted, *measured;
    } rows[] = {
        {"one layer of two", "data/kineto/gpt-steps.predicted.csv", "data/kineto/gpt.json"},
        {"two layers of one", "data/kineto/gpt.predicted.csv", "data/kineto/gpt-steps.json"},
        {"another family", "data/kineto/gpt.predicted.csv", "data/kineto/llama.json"},
        {"the other way", "data/kineto/llama.predicted.csv", "data/kineto/gpt.json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;
        CHECK_INT(rows[i].label, compare_files(&f, rows[i].predicted, rows[i].measured), STATUS_OK);
        CHECK(rows[i].label, f.comparison.matched_time_share < COMPARE_MATCHED_SHARE_MIN);
        CHECK_INT(rows[i].label, compare_verdict_of(&f.comparison, 10), VERDICT_NONE);
        fixture_release(&f);
    }
}

/* --- rows that the tests make --- */

static void add_row(struct trace *trace, const char *kind, const char *class, const char *phase,
                    double flops, double *now_s, double seconds)
{
    size_t row = trace_add_op(trace);
    trace->ops.op[row] = (uint32_t)row;
    trace->ops.stream[row] = trace_intern_label(trace, "compute");
    trace->ops.kind[row] = trace_intern_label(trace, kind);
    trace->ops.region[row] = trace_intern_label(trace, class);
    trace->ops.phase[row] = trace_intern_label(trace, phase);
    trace->ops.layer[row] = -1;
    trace->ops.start_s[row] = *now_s;
    trace->ops.flops[row] = flops;
    *now_s += seconds;
    trace->ops.end_s[row] = *now_s;
}

static void products_in_parts_find_the_whole(void)
{
    struct check_random random = check_random_make();
    for (int round = 0; round < 100; round++) {
        struct fixture f = {0};
        double truth[1024];
        size_t whole = 0;
        double p_s = 0, m_s = 0;
        int64_t layers = check_random_i64(&random, 1, 12);
        int64_t products = check_random_i64(&random, 1, 5);
        double size[5];
        for (int64_t k = 0; k < products; k++)
            size[k] = 1e9 * (double)check_random_i64(&random, 1, 40);
        for (int pass = 0; pass < 2; pass++) {
            const char *phase = pass == 0 ? "forward" : "backward";
            for (int64_t layer = 0; layer < layers; layer++) {
                add_row(&f.predicted, "attention", "", phase, 0, &p_s, 1);
                add_row(&f.measured, "aten::bmm", "attention", phase, 0, &m_s, 1);
                for (int64_t k = 0; k < products; k++) {
                    add_row(&f.predicted, "matmul", "", phase, size[k], &p_s, 1);
                    int64_t parts = check_random_i64(&random, 1, 3);
                    truth[whole] = 0;
                    for (int64_t part = 0; part < parts; part++) {
                        double seconds = 0.1 + check_random_double(&random);
                        truth[whole] += seconds;
                        add_row(&f.measured, "aten::mm", "matmul", phase, size[k] / (double)parts,
                                &m_s, seconds);
                        if (check_random_i64(&random, 0, 1) == 1)
                            add_row(&f.measured, "aten::add", "elementwise", phase, 0, &m_s, 1e-3);
                    }
                    whole++;
                }
            }
        }
        CHECK_INT("compare",
                  compare_with_profiler_trace(&f.comparison, &f.predicted, &f.measured, "m", NULL),
                  STATUS_OK);
        double got = 0, wanted = 0;
        size_t predicted, measured;
        count_rows(&f.comparison, "matmul", &predicted, &measured);
        CHECK_INT("every product", (int64_t)predicted, (int64_t)whole);
        for (size_t i = 0; i < f.comparison.pair_count; i++)
            if (strcmp(f.comparison.pairs[i].kind, "matmul") == 0)
                got += f.comparison.pairs[i].measured_s;
        for (size_t i = 0; i < whole; i++)
            wanted += truth[i];
        CHECK_CLOSE("all their time", got, wanted, 1e-9);
        fixture_release(&f);
    }
}

/* With grouped keys, dW and dX of q (4 Gflop), k (1) and v (1) match dW and dX of the fused
 * projection (6). */
static void a_pair_matches_the_backward_products_of_its_parts(void)
{
    static const struct {
        const char *label;
        double a[2];
        size_t blocks;
        int a_count, b_count; /* rows in the first block */
    } rows[] = {
        /* label, a, blocks, a_count, b_count */
        {"a pair of equal products", {6e9, 6e9}, 1, 2, 6},
        {"two that are not equal", {5e9, 7e9}, 1, 1, 4}, /* 7 = 4 + 1 + 1 + 1 */
        {"a pair of another sum", {20e9, 20e9}, 0, 0, 0},
    };
    static const double b[] = {4e9, 4e9, 1e9, 1e9, 1e9, 1e9};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct align_sequence one = {0}, other = {0};
        struct trace trace = {0};
        struct align_matched_items *block;
        double now_s = 0;
        for (uint32_t k = 0; k < 2 + ARRAY_LEN(b); k++) {
            add_row(&trace, "", "", "backward", k < 2 ? rows[i].a[k] : b[k - 2], &now_s, 1);
            align_add_row(k < 2 ? &one : &other, &trace, k, CLASS_MATMUL);
        }
        size_t count = align_blocks(&one, &other, &block);
        CHECK_INT(rows[i].label, (int64_t)count, (int64_t)rows[i].blocks);
        if (count > 0) {
            CHECK_INT(rows[i].label, block[0].a_count, rows[i].a_count);
            CHECK_INT(rows[i].label, block[0].b_count, rows[i].b_count);
        }
        free(block);
        align_release(&one);
        align_release(&other);
        trace_release(&trace);
    }
}

/* Sequences that are too long for the whole table are aligned within a band, with the same result. */
static void long_sequences_align_in_a_band(void)
{
    struct align_sequence a = {0}, b = {0};
    struct trace trace = {0};
    double now_s = 0;
    add_row(&trace, "matmul", "matmul", "forward", 1e9, &now_s, 1);
    add_row(&trace, "matmul", "matmul", "forward", 2e9, &now_s, 1);
    add_row(&trace, "matmul", "matmul", "forward", 1e13, &now_s, 1);
    for (uint32_t i = 0; i < 4200; i++) {
        align_add_row(&a, &trace, i % 3 == 0, CLASS_MATMUL);
        align_add_row(&b, &trace, i % 3 == 0, CLASS_MATMUL);
    }
    for (uint32_t i = 0; i < 30; i++) /* no partner */
        align_add_row(&b, &trace, 2, CLASS_MATMUL);
    struct align_matched_items *block;
    size_t count = align_blocks(&a, &b, &block);
    CHECK_INT("blocks", (int64_t)count, 4200);
    for (size_t i = 0; i < count; i++)
        if (block[i].a_begin != i || block[i].a_count != 1 || block[i].b_count != 1) {
            CHECK("in order, one by one", false);
            break;
        }
    free(block);
    align_release(&a);
    align_release(&b);
    trace_release(&trace);
}

/* One predicted rank represents two. Its copy of 3 s is hidden by a product for 1 s; the copy of the first
 * measured rank for 2 s of 3, that of the second not at all. */
static void exposed_time_is_the_mean_of_ranks(void)
{
    struct fixture f;
    compare_text(&f,
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,1,0,0\n"
                 "0,h2d,1,h2d,forward,offload,0,-1,-1,0,3,0,0\n",
                 "0,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                 "0,h2d,1,h2d,forward,offload,0,-1,-1,0,3,0,0\n"
                 "1,compute,0,matmul,forward,linear,0,-1,-1,0,2,0,0\n"
                 "1,h2d,1,h2d,forward,offload,0,-1,-1,2,7,0,0\n");
    const struct compare_exposed *copies = &f.comparison.exposed_time_by_stream_role[ROLE_H2D];
    CHECK_CLOSE("predicted, exposed", copies->predicted_exposed_s, 2, 1e-12);
    CHECK_CLOSE("predicted", copies->predicted_busy_s, 3, 1e-12);
    CHECK_CLOSE("measured, exposed", copies->measured_exposed_s, (1 + 5) / 2.0, 1e-12);
    CHECK_CLOSE("measured", copies->measured_busy_s, (3 + 5) / 2.0, 1e-12);
    CHECK_CLOSE("no messages", f.comparison.exposed_time_by_stream_role[ROLE_COMM].measured_busy_s,
                0, 0);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"errors add up by kind, stream, phase and rank", errors_add_up_by_kind_stream_phase_and_rank},
    {"rows without a partner are counted", rows_without_a_partner_are_counted},
    {"several steps give their median", compared_steps_give_their_median},
    {"a rank that stands for all is held against each",
     a_rank_that_stands_for_all_is_held_against_each},
    {"exposed time is the mean of ranks", exposed_time_is_the_mean_of_ranks},
    {"the verdict is about the step and memory", the_verdict_is_about_the_step_and_memory},
    {"recordings align with the schedule of their model",
     recordings_align_with_the_schedule_of_their_model},
    {"another model gets no verdict", another_model_gets_no_verdict},
    {"products in parts find the whole", products_in_parts_find_the_whole},
    {"a pair matches the backward products of its parts",
     a_pair_matches_the_backward_products_of_its_parts},
    {"long sequences align in a band", long_sequences_align_in_a_band},
};

CHECK_MAIN("compare", cases)
