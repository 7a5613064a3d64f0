/* tests/predict/test_claims.c: judges claims on points that the test makes; no prediction is run. */
#include "predict/reproduce/claims.h"
#include "predict/reproduce/outcome.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* The points: series a and b over three lengths, in one panel of one entry. */
static struct reproduction_point points[6];
static struct catalogue_entry entry;
static struct reproduction r;

static void make_chart_of_two_series(const double a[3], const double b[3])
{
    static const char *const xs[] = {"64K", "128K", "256K"};
    static const char *const names[] = {"a", "b"};
    entry = (struct catalogue_entry){.kind = ENTRY_CHART, .name = {"test:fig1"}, .name_count = 1};
    for (size_t i = 0; i < 6; i++) {
        double value = i < 3 ? a[i] : b[i - 3];
        points[i] = (struct reproduction_point){.panel = "",
                                                .series = names[i / 3],
                                                .x = xs[i % 3],
                                                .x_value = NAN,
                                                .published = NAN,
                                                .predicted = value,
                                                .predicted_text = isnan(value) ? "OOM" : NULL,
                                                .error = NAN,
                                                .row = SIZE_MAX,
                                                .measure = MEASURE_TOKENS,
                                                .is_done = true};
    }
    r = (struct reproduction){.catalogue = {.entry = &entry, .entry_count = 1},
                              .point = points,
                              .point_count = ARRAY_LEN(points)};
}

static enum claim_verdict judge_claim(const struct catalogue_claim *claim, const char *holds_word)
{
    struct text numbers = {0};
    enum claim_verdict verdict = claim_judge(&numbers, &r, 0, claim);
    if (holds_word != NULL)
        CHECK(holds_word, numbers.size > 0 && strstr(numbers.data, holds_word) != NULL);
    text_release(&numbers);
    return verdict;
}

static const struct catalogue_claim ratio = {.statement = "a is twice b",
                                             .left = {.series = {"a"}, .series_count = 1},
                                             .right = {.series = {"b"}, .series_count = 1},
                                             .at_least = 2,
                                             .at_most = NAN,
                                             .wider_low = 1,
                                             .wider_high = NAN};

static void ratio_claim_needs_all_places(void)
{
    make_chart_of_two_series((double[]){20, 30, 40}, (double[]){10, 15, 20});
    CHECK_INT("all", judge_claim(&ratio, "3 places"), CLAIM_HOLDS);
    make_chart_of_two_series((double[]){20, 30, 30}, (double[]){10, 15, 20});
    CHECK_INT("one is less", judge_claim(&ratio, "1.5 (256K: 30 to 20)"), CLAIM_HOLDS_BY_LESS);
    make_chart_of_two_series((double[]){20, 30, 19}, (double[]){10, 15, 20});
    CHECK_INT("one is the other way round", judge_claim(&ratio, NULL), CLAIM_DOES_NOT_HOLD);
}

static void not_fitting_memory_counts_as_worst(void)
{
    make_chart_of_two_series((double[]){20, 30, 40}, (double[]){10, 15, NAN});
    CHECK_INT("the right one does not fit", judge_claim(&ratio, NULL), CLAIM_HOLDS);
    make_chart_of_two_series((double[]){20, 30, NAN}, (double[]){10, 15, 20});
    CHECK_INT("the left one does not fit", judge_claim(&ratio, "does not fit"),
              CLAIM_DOES_NOT_HOLD);
    make_chart_of_two_series((double[]){20, 30, NAN}, (double[]){10, 15, NAN});
    CHECK_INT("neither fits: no place", judge_claim(&ratio, NULL), CLAIM_HOLDS);
}

static void predictions_that_are_missing_give_no_verdict(void)
{
    make_chart_of_two_series((double[]){20, 30, 40}, (double[]){10, 15, 20});
    for (size_t i = 0; i < ARRAY_LEN(points); i++)
        points[i].is_done = false;
    CHECK_INT("none is known", judge_claim(&ratio, NULL), CLAIM_NOT_KNOWN);
}

static void a_crossover_lies_where_the_paper_says_or_beside(void)
{
    struct catalogue_claim claim = ratio;
    claim.kind = CLAIM_CROSSOVER;
    claim.crossover_from = claim.crossover_to = "128K";
    make_chart_of_two_series((double[]){30, 10, 5}, (double[]){20, 20, 20});
    CHECK_INT("at 128K", judge_claim(&claim, "crosses at 128K"), CLAIM_HOLDS);
    make_chart_of_two_series((double[]){30, 30, 5}, (double[]){20, 20, 20});
    CHECK_INT("one later", judge_claim(&claim, "crosses at 256K"), CLAIM_HOLDS_BY_LESS);
    make_chart_of_two_series((double[]){30, 30, 30}, (double[]){20, 20, 20});
    CHECK_INT("never", judge_claim(&claim, "does not cross"), CLAIM_DOES_NOT_HOLD);
}

static void best_series_claim_is_monotonic(void)
{
    struct catalogue_claim claim = {.kind = CLAIM_BEST, .direction = CLAIM_RISES};
    make_chart_of_two_series((double[]){30, 10, 5}, (double[]){20, 20, 20});
    CHECK_INT("from a to b", judge_claim(&claim, "64K a, 128K b, 256K b"), CLAIM_HOLDS);
    make_chart_of_two_series((double[]){30, 30, 30}, (double[]){20, 20, 20});
    CHECK_INT("it stays", judge_claim(&claim, NULL), CLAIM_HOLDS_BY_LESS);
    make_chart_of_two_series((double[]){10, 30, 30}, (double[]){20, 20, 20});
    CHECK_INT("from b to a", judge_claim(&claim, NULL), CLAIM_DOES_NOT_HOLD);
    claim.direction = CLAIM_IS;
    claim.expected_best_series_names[0] = "a";
    claim.expected_best_series_count = 1;
    make_chart_of_two_series((double[]){19.8, 30, 30}, (double[]){20, 20, 20});
    CHECK_INT("a is best, or within 2 %", judge_claim(&claim, NULL), CLAIM_HOLDS_BY_LESS);
}

static void a_trend_rises_or_falls(void)
{
    struct catalogue_claim claim = ratio;
    claim.kind = CLAIM_TREND;
    claim.direction = CLAIM_FALLS;
    make_chart_of_two_series((double[]){30, 25, 21}, (double[]){20, 20, 20});
    CHECK_INT("falls", judge_claim(&claim, "64K 1.5, 128K 1.25, 256K 1.05"), CLAIM_HOLDS);
    make_chart_of_two_series((double[]){30, 35, 21}, (double[]){20, 20, 20});
    CHECK_INT("falls in the end", judge_claim(&claim, NULL), CLAIM_HOLDS_BY_LESS);
    make_chart_of_two_series((double[]){30, 35, 40}, (double[]){20, 20, 20});
    CHECK_INT("rises", judge_claim(&claim, NULL), CLAIM_DOES_NOT_HOLD);
}

/* Returns the outcome of an entry with two published values, whose predictions have these errors. */
static struct entry_outcome outcome(double one, double other)
{
    make_chart_of_two_series((double[]){1, 1, 1}, (double[]){1, 1, 1});
    entry.kind = ENTRY_POINTS;
    const double errors[] = {one, other};
    for (size_t i = 0; i < 2; i++) {
        points[i].row = i;
        points[i].counts_in_means = true;
        points[i].error = errors[i];
    }
    return outcome_of_entry(&r, 0);
}

static void a_table_matches_within_its_tolerance(void)
{
    CHECK_INT("mean 5 %", outcome(0.05, -0.05).state, STATE_MATCHED);
    CHECK_INT("mean 5.5 %", outcome(0.05, -0.06).state, STATE_NOT_MATCHED);
    CHECK_INT("worst 16 %", outcome(0.16, 0).state, STATE_NOT_MATCHED);
    CHECK_CLOSE("the worst keeps its sign", outcome(-0.16, 0.1).worst_error, -0.16, 1e-12);
    CHECK_CLOSE("bias", outcome(-0.16, 0.1).mean_signed_error, -0.03, 1e-12);
}

static void wrong_verdict_fails_its_entry(void)
{
    outcome(0.01, 0.01);
    points[1].outcome = OUTCOME_WRONG;
    struct entry_outcome o = outcome_of_entry(&r, 0);
    CHECK_INT("off", o.state, STATE_NOT_MATCHED);
    CHECK_INT("one verdict", o.verdict_count, 1);
    points[1].outcome = OUTCOME_RIGHT;
    CHECK_INT("matched", outcome_of_entry(&r, 0).state, STATE_MATCHED);
}

static const struct check_case cases[] = {
    {"a ratio holds where all places do", ratio_claim_needs_all_places},
    {"what does not fit is worst", not_fitting_memory_counts_as_worst},
    {"predictions that are missing give no verdict", predictions_that_are_missing_give_no_verdict},
    {"a crossover lies where the paper says, or beside",
     a_crossover_lies_where_the_paper_says_or_beside},
    {"the best series moves one way", best_series_claim_is_monotonic},
    {"a trend rises or falls", a_trend_rises_or_falls},
    {"a table matches within its tolerance", a_table_matches_within_its_tolerance},
    {"a wrong verdict is off", wrong_verdict_fails_its_entry},
};
CHECK_MAIN("claims", cases)
