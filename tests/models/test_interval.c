/* tests/models/test_interval.c: intervals from residuals, computed by hand. */
#include "models/interval.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define REST "1,1,8,2048,1,1000000,0.01,"

/* Returns residuals of three runs: source A measured two, B one; and one of another set, which is no part of any
 * class. */
static struct residuals two_sources(void)
{
    static const char rows[] =
        "source,laboratory,run,set,device,framework,attention,context,activations,optimizer,nodes,"
        "tp,pp,gpus,seq_len,sequences,parameters,layer_s,time,memory,first\n"
        "A,A,1,,a100,x,fa2,none,full,device,one," REST "0.1,,\n"
        "A,A,2,,a100,x,fa2,none,full,device,one," REST "-0.1,0.2,\n"
        "B,B,1,,h100,y,fa2,none,full,device,several," REST "0.3,,\n"
        "C,C,1,later,a100,x,fa2,none,full,device,one," REST "2,2,2\n";
    struct residuals residuals = {0};
    CHECK_INT("rows", residuals_parse(&residuals, "rows", rows, sizeof rows - 1, NULL), STATUS_OK);
    return residuals;
}

/* t(0.95, 2) = 2.919986. Mean squares: A 0.01, B 0.09, so all runs have v = 0.05. */
static void of_a_class(void)
{
    struct residuals residuals = two_sources();
    struct interval_run run = {"a100", "x", false};
    struct interval i = interval_make(&residuals, RESIDUAL_TIME, run, NULL);
    /* on a100 (0.01 + 2 x 0.05) / 3 = 0.036667, by x 0.027778, on one node 0.021852 */
    CHECK_CLOSE("spread", i.spread, 2.919986 * sqrt(0.0218519), 1e-5);
    CHECK_INT("runs", (int64_t)i.runs, 2);
    CHECK_INT("sources", (int64_t)i.sources, 1);
    CHECK_CLOSE("centre", interval_low(&i, 10) * interval_high(&i, 10), 100, 1e-9);
    CHECK_CLOSE("high", interval_high(&i, 10), 10 * exp(i.spread), 1e-9);
    residuals_release(&residuals);
}

/* Means of 0 on a100 and 0.3 on h100 have a variance of 0.045 between them. */
static void of_a_new_device(void)
{
    struct residuals residuals = two_sources();
    struct interval_run run = {"b200", "x", true};
    struct interval i = interval_make(&residuals, RESIDUAL_TIME, run, NULL);
    struct text from = {0};
    /* by x (0.01 + 2 x 0.05) / 3; none of x was on several nodes, but others were */
    CHECK_CLOSE("spread", i.spread, 2.919986 * sqrt(0.0366667 + 0.045), 1e-5);
    interval_put_from(&from, &i, run);
    CHECK_TEXT("from", from.data,
               "2 runs of 1 source with profile x, none of them on several nodes, and nothing was "
               "measured on b200");
    text_release(&from);
    residuals_release(&residuals);
}

/* One source is not enough for an interval: time without A has only B, and only A measured memory. */
static void of_one_source(void)
{
    struct residuals residuals = two_sources();
    struct interval_run run = {"a100", "x", false};
    CHECK("without A", isnan(interval_make(&residuals, RESIDUAL_TIME, run, "A").spread));
    CHECK("memory", isnan(interval_make(&residuals, RESIDUAL_MEMORY, run, NULL).spread));
    CHECK("no rows", isnan(interval_make(&(struct residuals){0}, RESIDUAL_TIME, run, NULL).spread));
    residuals_release(&residuals);
}

/* The shipped residuals: an interval made without a row's source contains the row in at least 85 of 100 runs. */
static void of_what_ships(void)
{
    struct residuals residuals = {0};
    size_t held = 0, count = 0;
    CHECK_INT("load", residuals_load_shipped(&residuals, NULL), STATUS_OK);
    for (size_t i = 0; i < residuals.count; i++) {
        const struct residual *row = &residuals.row[i];
        struct interval_run run = {row->device, row->framework, row->several};
        if (row->set[0] != '\0')
            continue;
        struct interval without = interval_make(&residuals, RESIDUAL_TIME, run, row->source);
        count++;
        held += fabs(row->value[RESIDUAL_TIME]) <= without.spread;
    }
    CHECK("runs", count > 200);
    CHECK("held", (double)held >= 0.85 * (double)count);
    residuals_release(&residuals);
}

static const struct check_case cases[] = {
    {"a class keeps part of the wider one", of_a_class},
    {"a new device adds what devices differ by", of_a_new_device},
    {"one source has no interval", of_one_source},
    {"shipped residuals are inside intervals without their source", of_what_ships},
};
CHECK_MAIN("interval", cases)
