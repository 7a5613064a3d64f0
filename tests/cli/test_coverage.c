/* tests/cli/test_coverage.c: 90 % intervals contain the measured value for most of the measured
 * runs that ship. */
#include "base/data_path.h"
#include "cli/validate/coverage.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

/* Adds the runs of a file of residuals to *runs. */
static void add_runs_of_residual_file(struct residuals *runs, const char *file)
{
    struct text path = {0}, text = {0};
    CHECK_INT(file, data_path(&path, file, NULL), STATUS_OK);
    CHECK_INT(file, text_read(&text, path.data, NULL), STATUS_OK);
    CHECK_INT(file, residuals_parse(runs, file, text.data, text.size, NULL), STATUS_OK);
    text_release(&text);
    text_release(&path);
}

/* At least 85 % of the runs lie inside their intervals, also as a mean over laboratories, and at least 75 % of every
 * class of ten runs or more. The median half-width of intervals for today's errors is at most 25 %, or 30 % with the
 * runs that have experts: they are a quarter, and no interval is made from them, so theirs are wide. For errors at
 * first sight, by the rows of other laboratories (cli/validate/coverage.h), it is at most 60 %. */
static void measured_runs_lie_in_intervals(void)
{
    static const struct {
        bool experts, first;
        double median_half_width_share;
    } sights[] = {{false, false, 0.25}, {true, false, 0.30}, {true, true, 0.60}};
    struct evidence evidence = {0};
    CHECK_INT("loads", evidence_load_shipped(&evidence, NULL), STATUS_OK);
    for (size_t s = 0; s < ARRAY_LEN(sights); s++) {
        struct residuals unseen = {0}, *const runs = &unseen;
        add_runs_of_residual_file(runs, "traces/published/residuals.csv");
        add_runs_of_residual_file(runs, "traces/published/residuals-fp8.csv");
        if (sights[s].experts)
            add_runs_of_residual_file(runs, "traces/published/residuals-moe.csv");
        struct coverage *c = heap_zalloc(coverage_max_class_count(runs), sizeof *c);
        const size_t count = coverage_make(c, runs, &evidence, sights[s].first);
        CHECK("there are classes", count > 10 && strcmp(c[0].name, "all") == 0);
        CHECK("85 % of the runs", (double)c[0].inside_count >= 0.85 * (double)c[0].run_count);
        CHECK("85 % of laboratories", c[0].mean_laboratory_share >= 0.85);
        CHECK("the width", c[0].median_half_width_share <= sights[s].median_half_width_share);
        for (size_t i = 1; i < count; i++)
            if (c[i].run_count >= 10)
                CHECK(c[i].name, (double)c[i].inside_count >= 0.75 * (double)c[i].run_count);
        free(c);
        residuals_release(&unseen);
    }
    evidence_release(&evidence);
}

static const struct check_case cases[] = {
    {"intervals hold", measured_runs_lie_in_intervals},
};
CHECK_MAIN("coverage", cases)
