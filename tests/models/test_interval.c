/* tests/models/test_interval.c: intervals of predictions that follow from measured runs equal those
 * computed by hand. */
#include "models/interval.h"
#include "tests/check.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#define HEAD                                                                                       \
    "source,laboratory,run,set,device,framework,attention,context,activations,optimizer,nodes,tp," \
    "pp,gpus,seq_len,sequences,parameters,layer_s,time,memory,first\n"

/* Laboratory A runs profile x on a100 with tensor parallelism and with rings, B profile y on h100.
 * C's run is off by a factor of two: the model does not explain it, so it measures no feature.
 * A's second run belongs to a later set of rows, and counts like the others. */
static const char rows[] =
    HEAD "A,A,1,,a100,x,fa2,none,full,device,one,2,1,8,4096,8,1000000,1,0.1,0.1,\n"
         "A,A,2,later,a100,x,fa2,ring,full,device,one,1,1,8,4096,8,1000000,1,-0.1,,\n"
         "B,B,1,,h100,y,fa3,none,full,device,several,1,1,8,4096,8,1000000,1,0.1,,\n"
         "C,C,1,,b200,z,fa2,none,full,host,one,1,1,8,4096,8,1000000,1,0.7,0.7,\n";

static const char table[] =
    "figure,feature,deviation,rows,reason\n"
    "time,base,0.05,1,t\ntime,profile,0.1,1,t\ntime,neutral,0.09,1,t\n"
    "time,mechanism,0.12,1,t\ntime,elsewhere,0.06,1,t\n"
    "time,together,0.11,1,t\ntime,kernel,0.07,1,t\ntime,far,0.08,1,t\n"
    "time,small,0.2,1,t\ntime,exchange,0.4,1,t\nmemory,base,0.12,1,t\nmemory,profile,0.09,1,t\n"
    "memory,mechanism,0.14,1,t\n";

static struct evidence parse_test_evidence(void)
{
    struct evidence e = {0};
    CHECK_INT("rows", residuals_parse(&e.runs, "rows", rows, sizeof rows - 1, NULL), STATUS_OK);
    CHECK_INT(
        "table",
        deviations_parse(&e.feature_standard_deviations, "table", table, sizeof table - 1, NULL),
        STATUS_OK);
    evidence_mark_explained_runs(&e);
    return e;
}

/* Returns a run like row 1. The tests change it into other runs. */
static struct residual make_residual_run(void)
{
    return (struct residual){.source = "",
                             .laboratory = "",
                             .run = "",
                             .set = "",
                             .device = "a100",
                             .framework = "x",
                             .attention = "fa2",
                             .context = "none",
                             .activations = "full",
                             .tp = 2,
                             .pp = 1,
                             .gpus = 8,
                             .seq_len = 4096,
                             .sequences = 8,
                             .parameters = 1000000,
                             .layer_s = 1,
                             .log_ratio = {NAN, NAN},
                             .log_ratio_at_first_prediction = NAN};
}

static const struct {
    const char *label;
    const char *device, *framework, *attention, *context;
    int64_t tp, pp, gpus;
    bool host;
    double layer_s;
    /* what the run's unmeasured features add to .05^2; without the feature of short layers if layer_s is 1 */
    double variance;
    /* the words for the unmeasured feature of the largest variance; "": no feature is notable */
    const char *named_unmeasured_feature;
} runs[] = {
    /* label, device, framework, attention, context, tp, pp, gpus, host, layer_s, variance, named */
    {"all measured", "a100", "x", "fa2", "none", 2, 1, 8, false, 1, 0, ""},
    {"another size", "a100", "x", "fa2", "none", 2, 1, 72, false, 1, .08 * .08,
     "a run of about this size"},
    {"just as large", "a100", "x", "fa2", "none", 2, 1, 64, false, 1, 0, ""},
    {"a mechanism", "a100", "x", "fa2", "none", 2, 2, 8, false, 1, .12 * .12, "pipelines with x"},
    {"two mechanisms", "a100", "x", "fa2", "ulysses", 2, 2, 8, false, 1, 2 * .12 * .12,
     "pipelines with x"},
    {"not together", "a100", "x", "fa2", "ring", 2, 1, 8, false, 1, .11 * .11,
     "these parallelisms together"},
    {"plain", "a100", "x", "fa2", "none", 1, 1, 8, false, 1, .12 * .12,
     "plain data parallelism with x"},
    {"a kernel", "a100", "x", "fa3", "none", 2, 1, 8, false, 1, .07 * .07, "fa3 on a100"},
    {"a device", "gb200", "x", "fa2", "none", 2, 1, 8, false, 1, .07 * .07, "fa2 on gb200"},
    {"a profile and its mechanism", "a100", "w", "fa2", "none", 2, 1, 8, false, 1,
     .1 * .1 + .12 * .12, "tensor parallelism with w"},
    {"neutral on its device", "a100", "neutral", "fa2", "ring", 1, 1, 8, false, 1, .09 * .09,
     "profile neutral"},
    {"neutral elsewhere", "h100", "neutral", "fa3", "ring", 1, 1, 8, false, 1,
     .09 * .09 + .06 * .06, "profile neutral"},
    {"neutral nowhere", "a100", "neutral", "fa2", "fpdt", 1, 1, 8, false, 1, .09 * .09 + .12 * .12,
     "fpdt"},
    {"what C measured counts for nothing", "a100", "z", "fa2", "none", 1, 1, 8, true, 1,
     .1 * .1 + .12 * .12, "the optimizer on the host with z"},
    {"experts in a node", "a100", "x", "fa2", "experts", 2, 1, 8, false, 1, .12 * .12,
     "experts with x"},
    {"experts between nodes", "a100", "x", "fa2", "experts between nodes", 2, 1, 8, false, 1,
     .4 * .4, "experts between nodes with x"},
    {"short layers", "a100", "x", "fa2", "none", 2, 1, 8, false, .125, .2 * .2 * .008 * .008, ""},
    {"layers of half a millisecond", "a100", "x", "fa2", "none", 2, 1, 8, false, .0005,
     .2 * .2 + .08 * .08, "layers as short as these"},
};

static void unmeasured_features_widen_interval(void)
{
    struct evidence e = parse_test_evidence();
    const double q = 2.015048; /* the quantile 0.95 of Student's t with 5 degrees of freedom */
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        struct residual run = make_residual_run();
        struct text named = {0};
        run.device = runs[i].device;
        run.framework = runs[i].framework;
        run.attention = runs[i].attention;
        run.context = runs[i].context;
        run.tp = runs[i].tp;
        run.pp = runs[i].pp;
        run.gpus = runs[i].gpus;
        run.host_optimizer = runs[i].host;
        run.layer_s = runs[i].layer_s;
        const struct interval t = interval_of_run(&e, RESIDUAL_TIME, &run, NULL);
        const double s2 = .05 * .05 + runs[i].variance + (run.layer_s >= 1 ? .2e-3 * .2e-3 : 0);
        CHECK_CLOSE(runs[i].label, t.log_standard_deviation, sqrt(s2), 1e-9);
        CHECK_CLOSE(runs[i].label, interval_low(&t, 10), 10 * exp(-q * sqrt(s2)), 1e-6);
        CHECK_CLOSE(runs[i].label, interval_high(&t, 10),
                    10 * exp(q * sqrt(s2) * (2 - .05 * .05 / s2)), 1e-6);
        if (t.unmeasured_count > 0 &&
            t.unmeasured[0].variance >= INTERVAL_NOTABLE_DEVIATION * INTERVAL_NOTABLE_DEVIATION)
            interval_put_unmeasured(&named, &t.unmeasured[0], &run);
        CHECK_TEXT(runs[i].label, named.data != NULL ? named.data : "",
                   runs[i].named_unmeasured_feature);
        text_release(&named);
    }
    evidence_release(&e);
}

/* A framework without a profile is unmeasured, though the profile that stands for it is measured. */
static void unprofiled_framework_is_unmeasured(void)
{
    struct evidence e = parse_test_evidence();
    struct residual run = make_residual_run();
    struct text named = {0};
    run.real_framework = "lightning";
    const struct interval t = interval_of_run(&e, RESIDUAL_TIME, &run, NULL);
    CHECK_CLOSE("deviation", t.log_standard_deviation, sqrt(.05 * .05 + .1 * .1 + .2e-3 * .2e-3),
                1e-9);
    if (CHECK("a feature", t.unmeasured_count > 0))
        interval_put_unmeasured(&named, &t.unmeasured[0], &run);
    CHECK_TEXT("named", named.data != NULL ? named.data : "", "lightning, described by profile x");
    text_release(&named);
    evidence_release(&e);
}

static void interval_can_leave_out_a_laboratory(void)
{
    struct evidence e = parse_test_evidence();
    const struct residual run = make_residual_run();
    const struct interval t = interval_of_run(&e, RESIDUAL_TIME, &run, "A");
    /* only A measured the profile, tensor parallelism and fa2 on a100 */
    CHECK_CLOSE("without A", t.log_standard_deviation * t.log_standard_deviation,
                .05 * .05 + .1 * .1 + .12 * .12 + .07 * .07 + .2e-3 * .2e-3, 1e-9);
    CHECK("no row is left of the device", !t.device_is_measured);
    struct evidence empty = {0};
    const struct interval none = interval_of_run(&empty, RESIDUAL_TIME, &run, NULL);
    CHECK("no table, no interval", !interval_is_known(&none));
    evidence_release(&e);
}

static void memory_interval_gives_fit_chance(void)
{
    struct evidence e = parse_test_evidence();
    struct residual run = make_residual_run();
    struct interval m = interval_of_run(&e, RESIDUAL_MEMORY, &run, NULL);
    CHECK_CLOSE("all measured", m.log_standard_deviation, .12, 1e-9);
    CHECK_CLOSE("it is even", interval_low(&m, 1) * interval_high(&m, 1), 1, 1e-9);
    CHECK_CLOSE("at the limit", interval_fit_probability(&m, 77, 77), 0.5, 1e-9);
    CHECK_CLOSE("77.0 of 79.1 GiB", interval_fit_probability(&m, 77.0, 79.1),
                gsl_cdf_tdist_P(log(79.1 / 77.0) / .12, 5), 1e-9);
    CHECK("that is about 6 in 10", fabs(interval_fit_probability(&m, 77.0, 79.1) - 0.58) < 0.01);
    CHECK_CLOSE("nothing is needed", interval_fit_probability(&m, 0, 79.1), 1, 0);
    CHECK_CLOSE("infinite", interval_fit_probability(&m, 77, INFINITY), 1, 0);
    run.real_framework = "lightning"; /* what is measured of x does not count for its mechanisms */
    m = interval_of_run(&e, RESIDUAL_MEMORY, &run, NULL);
    CHECK_CLOSE("a framework without a profile",
                m.log_standard_deviation * m.log_standard_deviation,
                .12 * .12 + .09 * .09 + .14 * .14, 1e-9);
    run.real_framework = NULL;
    run.framework = "neutral";
    run.host_optimizer = true;
    m = interval_of_run(&e, RESIDUAL_MEMORY, &run, NULL);
    CHECK_CLOSE("neutral, a new mechanism", m.log_standard_deviation * m.log_standard_deviation,
                .12 * .12 + .09 * .09 + .14 * .14, 1e-9);
    m.low = NAN;
    CHECK_CLOSE("no interval: by the figures", interval_fit_probability(&m, 77, 76), 0, 0);
    evidence_release(&e);
}

/* One own run of the same features is 20 % slower than predicted. With the variance v of the error
 * of such a run, half of which own runs share, its weight is (v / 2) / v = 1 / 2. So the middle
 * moves by half of log 1.2, and the variance falls by (v / 2) / 2, a quarter. */
static void own_runs_move_and_narrow_interval(void)
{
    struct evidence e = parse_test_evidence();
    struct residual run = make_residual_run();
    run.pp = 2;
    const struct interval before = interval_of_run(&e, RESIDUAL_TIME, &run, NULL);
    run.log_ratio[RESIDUAL_TIME] = log(1.2);
    residuals_add(&e.own_runs, &run);
    struct interval after = interval_of_run(&e, RESIDUAL_TIME, &run, NULL);
    CHECK_INT("runs", after.own_run_count, 1);
    CHECK_CLOSE("shift", after.log_shift_by_own_runs, log(1.2) / 2, 1e-9);
    CHECK_CLOSE("variance", after.log_standard_deviation * after.log_standard_deviation,
                0.75 * before.log_standard_deviation * before.log_standard_deviation, 1e-9);
    CHECK_CLOSE("an end", log(interval_low(&after, 1)),
                after.log_shift_by_own_runs - 2.015048 * after.log_standard_deviation, 1e-6);
    struct residual other =
        make_residual_run(); /* shares only the base, and a little of short layers */
    other.framework = "w";
    other.device = "gb200";
    const struct interval far = interval_of_run(&e, RESIDUAL_TIME, &other, NULL);
    CHECK("a run that is unlike hardly counts",
          far.log_shift_by_own_runs < 0.2 * after.log_shift_by_own_runs &&
              far.log_shift_by_own_runs > 0);
    evidence_release(&e);
}

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"a figure", "figure,feature,deviation,rows,reason\nspeed,base,0.1,1,t\n",
     "t:2: error: column 'figure': expected time or memory, not 'speed'\n"},
    {"a feature", "figure,feature,deviation,rows,reason\ntime,luck,0.1,1,t\n",
     "t:2: error: column 'feature': no feature has the name 'luck'\n"},
    {"a deviation", "figure,feature,deviation,rows,reason\ntime,base,1.5,1,t\n",
     "t:2: error: column 'deviation': expected a number between 0 and 1, not '1.5'\n"},
    {"twice", "figure,feature,deviation,rows,reason\ntime,base,0.1,1,t\ntime,base,0.1,1,t\n",
     "t:3: error: column 'feature': 'base' has a row already\n"},
    {"no reason", "figure,feature,deviation,rows,reason\ntime,base,0.1,1,\n",
     "t:2: error: column 'reason': is empty: say why the deviation has this value\n"},
    {"no base", "figure,feature,deviation,rows,reason\ntime,base,0.1,1,t\n",
     "t: error: memory has no row of the feature base\n"},
};

static void wrong_tables_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct deviations d;
        struct diag diag = {0};
        CHECK_INT(wrong[i].label,
                  deviations_parse(&d, "t", wrong[i].text, strlen(wrong[i].text), &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text != NULL ? diag.text : "", wrong[i].message);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"of what was not measured", unmeasured_features_widen_interval},
    {"of a framework without a profile", unprofiled_framework_is_unmeasured},
    {"a laboratory is left out", interval_can_leave_out_a_laboratory},
    {"of memory", memory_interval_gives_fit_chance},
    {"own runs shift and narrow", own_runs_move_and_narrow_interval},
    {"wrong tables are refused", wrong_tables_are_refused},
};
CHECK_MAIN("interval", cases)
