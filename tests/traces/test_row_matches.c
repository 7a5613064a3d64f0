/* tests/traces/test_row_matches.c: the rows of a recording are matched with predicted rows, or are stray; no predicted
 * row is matched twice in a step. */
#include "base/text.h"
#include "tests/check.h"
#include "traces/csv.h"
#include "traces/kineto.h"
#include "traces/row_matches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct trace predicted, measured;
    struct row_matches found_matches;
    struct diag diag;
};

static void fixture_release(struct fixture *f)
{
    row_matches_release(&f->found_matches);
    trace_release(&f->predicted);
    trace_release(&f->measured);
    diag_release(&f->diag);
}

static enum status match(struct fixture *f, const char *name)
{
    char path[64];
    struct text text = {0};
    *f = (struct fixture){0};
    snprintf(path, sizeof path, "data/kineto/%s.predicted.csv", name);
    CHECK_INT(path, trace_load_ops(&f->predicted, check_path(path), &f->diag), STATUS_OK);
    snprintf(path, sizeof path, "data/kineto/%s.json", name);
    CHECK_INT(path, text_read(&text, check_path(path), &f->diag), STATUS_OK);
    CHECK_INT(path, kineto_parse(&f->measured, path, text.data, text.size, &f->diag), STATUS_OK);
    text_release(&text);
    return row_matches_find(&f->found_matches, &f->predicted, &f->measured, path, &f->diag);
}

/* No recorded second is lost or counted twice: matches and strays add up to the time of all recorded rows. */
static void recorded_time_is_matched_or_stray(void)
{
    static const char *const names[] = {"llama", "gpt", "gpt-steps"};
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        struct fixture f;
        CHECK_INT(names[n], match(&f, names[n]), STATUS_OK);
        double all_s = 0, found_s = 0;
        for (size_t i = 0; i < f.measured.ops.count; i++)
            all_s += f.measured.ops.end_s[i] - f.measured.ops.start_s[i];
        for (size_t i = 0; i < f.found_matches.match_count; i++)
            found_s += f.found_matches.matches[i].measured_s;
        CHECK("nearly all is matched", found_s > 0.99 * all_s);
        for (size_t i = 0; i < f.found_matches.stray_count; i++)
            found_s += f.found_matches.strays[i].seconds;
        CHECK_CLOSE(names[n], found_s, all_s, 1e-9);
        fixture_release(&f);
    }
}

/* Each predicted row is in exactly one match of each step. */
static void a_predicted_row_is_in_one_match_of_a_step(void)
{
    struct fixture f;
    CHECK_INT("match", match(&f, "gpt-steps"), STATUS_OK);
    CHECK_INT("steps", (int64_t)f.found_matches.step_count, 3);
    size_t rows = f.predicted.ops.count;
    uint8_t *seen = heap_zalloc(3 * rows, 1);
    size_t twice = 0, missing = 0;
    for (size_t i = 0; i < f.found_matches.match_count; i++)
        for (uint32_t k = 0; k < f.found_matches.matches[i].row_count; k++) {
            uint32_t row = f.found_matches.rows[f.found_matches.matches[i].row_begin + k];
            twice += seen[f.found_matches.matches[i].step * rows + row]++ > 0;
        }
    for (size_t i = 0; i < 3 * rows; i++)
        missing += seen[i] == 0;
    CHECK_INT("twice", (int64_t)twice, 0);
    CHECK_INT("missing", (int64_t)missing, 0);
    for (size_t s = 0; s < f.found_matches.step_count; s++)
        CHECK("a step is idle for part of its span",
              f.found_matches.recorded_steps[s].idle_s > 0 &&
                  f.found_matches.recorded_steps[s].idle_s <
                      f.found_matches.recorded_steps[s].span_s);
    free(seen);
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"recorded time is matched or stray", recorded_time_is_matched_or_stray},
    {"a predicted row is in one match of a step", a_predicted_row_is_in_one_match_of_a_step},
};
CHECK_MAIN("row_matches", cases)
