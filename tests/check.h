/* tests/check.h: the test framework of every test file, built on CUnit.
 *
 *     static void two_gflop_take_two_seconds(void)
 *     {
 *         CHECK_CLOSE("2 Gflop at 1 Gflop/s", seconds, 2.0, 1e-12);
 *     }
 *
 *     static const struct check_case cases[] = {
 *         {"2 Gflop at 1 Gflop/s take 2 s", two_gflop_take_two_seconds},
 *     };
 *     CHECK_MAIN("cost", cases)
 *
 * A check that fails prints its label and what it got and wanted (CHECK prints its condition), and the case goes on.
 * CUnit's own CU_ASSERT macros can be used as well. Arguments of the program select cases: only those
 * whose name contains one of the arguments run. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "base/arena.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_case {
    const char *name; /* what the case shows */
    void (*run)(void);
};

/* Runs the cases and prints the counts. Returns 0 when all hold, 1 when a case fails or a list of
 * check_is_sampled_today() is too short, 2 when no case ran. */
int check_run(const char *suite, const struct check_case *cases, size_t count, int argc,
              char **argv);

#define CHECK_MAIN(suite, cases)                                                                   \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return check_run(suite, cases, ARRAY_LEN(cases), argc, argv);                              \
    }

/* Each check returns true if it holds, so that a case can stop where it makes no sense to go on. */
#define CHECK(label, condition) check_true(label, #condition, condition, __FILE__, __LINE__)
#define CHECK_TEXT(label, got, want) check_text(label, got, want, __FILE__, __LINE__)
#define CHECK_INT(label, got, want) check_int(label, got, want, __FILE__, __LINE__)

/* Checks that |got - want| <= tolerance * |want|; with want 0, that |got| <= tolerance. */
#define CHECK_CLOSE(label, got, want, tolerance)                                                   \
    check_close(label, got, want, tolerance, __FILE__, __LINE__)

/* Compares text with the file at path below tests/ ("schedule/golden/ring.ir").
 * With UPDATE_GOLDEN=1 in the environment it writes the file instead. */
#define CHECK_GOLDEN(path, text) check_golden(path, text, __FILE__, __LINE__)

bool check_true(const char *label, const char *condition, bool holds, const char *file, int line);
bool check_text(const char *label, const char *got, const char *want, const char *file, int line);
bool check_int(const char *label, int64_t got, int64_t want, const char *file, int line);
bool check_close(const char *label, double got, double want, double tolerance, const char *file,
                 int line);
bool check_golden(const char *path, const char *text, const char *file, int line);

/* Returns the path of a file below tests/ in the source tree. The text is kept until the program ends. */
const char *check_path(const char *relative);

/* Returns a copy of the text with " in place of each ', as JSON wants it. The copy is kept until the program ends. */
const char *check_json_from_single_quotes(const char *text);

/* Returns the path of a folder for this program's files. The first call makes it; check_run() removes it with
 * all its files at the end. */
const char *check_temp_dir(void);

/* Returns the number of the day (days since 1970, UTC), by which an everyday test picks its sample of a set that the
 * nightly tests check whole. CHECK_DAY of the environment replaces it. It is printed at the end if a case failed. */
uint64_t check_day_number_of_sample(void);

/* True if case i of a list is in the sample of the day: one case of `days`, or of four times as
 * many under the address sanitizer, which makes runs some five times slower and is there for memory
 * faults rather than numbers. `count` is how many cases the list has, or SIZE_MAX if that is not
 * known. If `days` is larger than `count`, it counts as `count`, so that every day has a case.
 * check_run() fails if a list turns out to have fewer cases than days. With CHECK_ALL in the
 * environment, as at night, every case is in the sample. */
bool check_is_sampled_today(size_t i, size_t count, size_t days);

/* A small seeded generator (splitmix64) for property tests. Its seed is CHECK_SEED of the environment, or 1;
 * the seed is printed at the end if a case failed and a generator was made. */
struct check_random {
    uint64_t state;
};
struct check_random check_random_make(void);
uint64_t check_random_u64(struct check_random *random);
/* Returns one of low..high, both included. */
int64_t check_random_i64(struct check_random *random, int64_t low, int64_t high);
/* Returns a number in [0, 1). */
double check_random_double(struct check_random *random);

#endif
