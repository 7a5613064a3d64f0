/* Runs the cases of a test program through CUnit, and prints what a check got and wanted (tests/check.h). */
#define _XOPEN_SOURCE 700 /* mkdtemp(), nftw() */
#include "tests/check.h"

#include "base/file_set.h"
#include "base/text.h"

#include <assert.h>
#include <CUnit/Basic.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct arena kept; /* paths that were returned; released at the end */
static char *temp_dir;
static bool random_used, day_used;
static uint64_t random_seed, day;

/* The lists of cases from which check_is_sampled_today() has chosen. Lists with the same number of days count as
 * one. */
enum { SAMPLES_MAX = 64 };
static struct {
    size_t days; /* each day has every days-th case of the list */
    size_t end;  /* one more than the largest index that was asked for */
} sample[SAMPLES_MAX];
static size_t samples;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

/* Returns whether a case runs: its name contains one of the arguments, or there are no arguments. */
static bool chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]))
            return true;
    }
    return argc < 2;
}

/* Returns how many lists have fewer cases than days, so that some day has no case, and prints them. */
static unsigned count_case_lists_with_caseless_days(void)
{
    unsigned lists_with_caseless_days = 0;
    for (size_t i = 0; i < samples; i++)
        if (sample[i].end < sample[i].days) {
            printf("\n    a list of %zu cases has no case on some of %zu days", sample[i].end,
                   sample[i].days);
            lists_with_caseless_days++;
        }
    return lists_with_caseless_days;
}

/* The checks print their own failures; CUnit counts them and lists each case under its name. */
int check_run(const char *suite, const struct check_case *cases, size_t count, int argc,
              char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that messages on stderr appear with their case */
    if (CU_initialize_registry() != CUE_SUCCESS) {
        fprintf(stderr, "%s\n", CU_get_error_msg());
        return 2;
    }
    CU_pSuite registered = CU_add_suite(suite, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        if (chosen(cases[i].name, argc, argv) &&
            !CU_add_test(registered, cases[i].name, cases[i].run))
            fprintf(stderr, "%s: %s\n", cases[i].name, CU_get_error_msg());
    }
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned run = CU_get_number_of_tests_run();
    unsigned failed = CU_get_number_of_tests_failed();
    if (argc < 2) /* all cases ran */
        failed += count_case_lists_with_caseless_days();
    if (failed > 0 && random_used)
        printf("\nseed %llu (set CHECK_SEED to repeat it)\n", (unsigned long long)random_seed);
    if (failed > 0 && day_used)
        printf("\nday %llu (set CHECK_DAY to repeat it)\n", (unsigned long long)day);
    printf("\n%u cases, %u failed\n", run, failed);
    CU_cleanup_registry();
    if (temp_dir)
        nftw(temp_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    arena_release(&kept);
    return run == 0 ? 2 : failed > 0;
}

static bool report(bool holds, const char *label, const char *file, int line, const char *what)
{
    if (!holds)
        printf("\n    %s:%d: %s: %s", file, line, label, what);
    CU_assertImplementation(holds ? CU_TRUE : CU_FALSE, (unsigned)line, label, file, "", CU_FALSE);
    return holds;
}

bool check_true(const char *label, const char *condition, bool holds, const char *file, int line)
{
    struct text what = {0};
    if (!holds)
        text_printf(&what, "does not hold: %s", condition);
    report(holds, label, file, line, what.data);
    text_release(&what);
    return holds;
}

bool check_int(const char *label, int64_t got, int64_t want, const char *file, int line)
{
    char what[80];
    snprintf(what, sizeof what, "got %lld, want %lld", (long long)got, (long long)want);
    return report(got == want, label, file, line, what);
}

bool check_close(const char *label, double got, double want, double tolerance, const char *file,
                 int line)
{
    double limit = want == 0 ? tolerance : tolerance * fabs(want);
    bool holds = got == want || fabs(got - want) <= limit; /* false for a NaN */
    char what[160];
    snprintf(what, sizeof what, "got %.17g, want %.17g (relative %.3g, at most %.3g)", got, want,
             want == 0 ? got : (got - want) / want, tolerance);
    return report(holds, label, file, line, what);
}

static void put_line(struct text *out, const char *mark, const char *line)
{
    size_t size = strcspn(line, "\n");
    text_printf(out, "\n      %s '%.*s'%s", mark, (int)(size < 400 ? size : 400), line,
                line[size] == '\n' ? "" : " (no line end)");
}

bool check_text(const char *label, const char *got, const char *want, const char *file, int line)
{
    got = got ? got : "";
    want = want ? want : "";
    bool holds = strcmp(got, want) == 0;
    struct text what = {0};
    if (!holds) {
        size_t at = 0, number = 1;
        while (got[at] == want[at])
            number += got[at++] == '\n';
        while (at > 0 && got[at - 1] != '\n')
            at--;
        text_printf(&what, "line %zu differs", number);
        put_line(&what, "got ", got + at);
        put_line(&what, "want", want + at);
    }
    report(holds, label, file, line, what.data);
    text_release(&what);
    return holds;
}

bool check_golden(const char *path, const char *text, const char *file, int line)
{
    const char *full = check_path(path);
    const char *update = getenv("UPDATE_GOLDEN");
    struct diag diag = {0};
    bool holds;
    if (update && strcmp(update, "1") == 0) {
        holds = file_set_write_single_file(full, text, strlen(text), &diag) == STATUS_OK;
        report(holds, path, file, line, diag.text);
    } else {
        struct text want = {0};
        holds = text_read(&want, full, &diag) == STATUS_OK;
        if (holds)
            holds = check_text(path, text, want.data, file, line);
        else
            report(false, path, file, line, diag.text);
        text_release(&want);
    }
    diag_release(&diag);
    return holds;
}

const char *check_path(const char *relative)
{
    return arena_printf(&kept, "%s/%s", TESTS_DIR, relative);
}

const char *check_json_from_single_quotes(const char *text)
{
    char *copy = arena_text(&kept, text, strlen(text));
    for (char *c = copy; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    return copy;
}

const char *check_temp_dir(void)
{
    if (!temp_dir) {
        const char *parent = getenv("TMPDIR");
        temp_dir = arena_printf(&kept, "%s/longhaul-test-XXXXXX", parent ? parent : "/tmp");
        if (!mkdtemp(temp_dir)) {
            perror(temp_dir);
            exit(2);
        }
    }
    return temp_dir;
}

/* Sets *number to the number in an environment variable. Without the variable, *number does not
 * change. A value that is no number ends the program. */
static void number_of_environment(const char *name, uint64_t *number)
{
    const char *text = getenv(name);
    if (text && !parse_u64(text, strlen(text), number)) {
        fprintf(stderr, "%s: error: '%s' is no number\n", name, text);
        exit(2);
    }
}

uint64_t check_day_number_of_sample(void)
{
    day_used = true;
    day = (uint64_t)time(NULL) / 86400;
    number_of_environment("CHECK_DAY", &day);
    return day;
}

bool check_is_sampled_today(size_t i, size_t count, size_t days)
{
    size_t s = 0;
    if (getenv("CHECK_ALL") != NULL)
        return true;
#ifdef __SANITIZE_ADDRESS__
    days *= 4;
#endif
    days = days < count ? days : count;
    while (s < samples && sample[s].days != days)
        s++;
    assert(s < SAMPLES_MAX && i < count);
    samples += s == samples;
    sample[s].days = days;
    sample[s].end = i < sample[s].end ? sample[s].end : i + 1;
    return (i + check_day_number_of_sample()) % days == 0;
}

struct check_random check_random_make(void)
{
    random_used = true;
    random_seed = 1;
    number_of_environment("CHECK_SEED", &random_seed);
    return (struct check_random){.state = random_seed};
}

/* Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
uint64_t check_random_u64(struct check_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t check_random_i64(struct check_random *random, int64_t low, int64_t high)
{
    uint64_t range = (uint64_t)high - (uint64_t)low + 1; /* 0: all 2^64 values */
    uint64_t pick = check_random_u64(random);
    return (int64_t)((uint64_t)low + (range ? pick % range : pick));
}

double check_random_double(struct check_random *random)
{
    return (double)(check_random_u64(random) >> 11) * 0x1p-53;
}
