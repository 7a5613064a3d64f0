#include "schedule/pipeline/partition.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>
#include <math.h>

const char *const partition_names[PARTITION_RULE_COUNT] = {"length", "flops", "time"};

/* Returns the number of tokens at the front of the sequence that take i / N of its flops, where N is the number of
 * pieces. */
static double tokens_of_flops_share(const struct partition *p, int64_t i)
{
    const struct transformer *m = p->model;
    double l = (double)transformer_layer_linear_flops_per_token(m), s = (double)p->tokens;
    double square =
        transformer_layer_attention_flops(m, p->tokens, !p->assumes_full_attention) / (s * s);
    double share = (double)i / (double)p->piece_count;
    return (-l + sqrt(l * l + 4 * square * share * (l * s + square * s * s))) / (2 * square);
}

/* ---- pieces of equal time ---- */

/* the most steps of a search for a root */
enum { STEPS_MAX = 200 };

struct partition_search {
    const struct partition *p;
    /* the first token of a piece, and the seconds that the piece should take */
    double begin, target_s;
};

/* Returns a root of a function whose values at `low` and `high` have different signs. */
static double find_root_of_function(double (*function)(double, void *), void *context, double low,
                                    double high)
{
    gsl_function f = {function, context};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    gsl_root_fsolver_set(solver, &f, low, high);
    double at = low;
    for (int i = 0; i < STEPS_MAX; i++) {
        if (gsl_root_fsolver_iterate(solver) != GSL_SUCCESS)
            break;
        at = gsl_root_fsolver_root(solver);
        if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                   gsl_root_fsolver_x_upper(solver), 0, 1e-12) == GSL_SUCCESS)
            break;
    }
    gsl_root_fsolver_free(solver);
    return at;
}

static double piece_seconds_over_target(double end, void *context)
{
    const struct partition_search *search = context;
    return search->p->seconds(search->p->context, search->begin, end) - search->target_s;
}

/* Returns the end of the piece that begins at `begin` and takes target_s seconds; the end of the sequence if the rest
 * takes less. */
static double piece_end_after_seconds(const struct partition *p, double begin, double target_s)
{
    struct partition_search search = {p, begin, target_s};
    double all = (double)p->tokens;
    if (piece_seconds_over_target(all, &search) <= 0)
        return all;
    return find_root_of_function(piece_seconds_over_target, &search, begin, all);
}

/* Returns by how many seconds the last piece takes longer than target_s if each piece before it takes target_s. */
static double last_piece_excess_s(double target_s, void *context)
{
    const struct partition_search *search = context;
    double begin = 0;
    for (int64_t i = 0; i + 1 < search->p->piece_count; i++)
        begin = piece_end_after_seconds(search->p, begin, target_s);
    double all = (double)search->p->tokens;
    return (begin < all ? search->p->seconds(search->p->context, begin, all) : 0) - target_s;
}

static void find_lengths_by_time(const struct partition *p, int64_t *length)
{
    struct partition_search search = {.p = p};
    double all_s = p->seconds(p->context, 0, (double)p->tokens);
    double target_s = find_root_of_function(last_piece_excess_s, &search,
                                            all_s / (double)p->piece_count * 1e-3, all_s);
    double begin = 0;
    for (int64_t i = 0; i < p->piece_count; i++) {
        double end = i + 1 < p->piece_count ? piece_end_after_seconds(p, begin, target_s)
                                            : (double)p->tokens;
        length[i] = (int64_t)floor(end - begin);
        begin = end;
    }
}

/* ---- pieces by any rule ---- */

static void find_lengths_by_formula(const struct partition *p, int64_t *length)
{
    double begin = 0;
    for (int64_t i = 0; i < p->piece_count; i++) {
        double end = p->rule == PARTITION_LENGTH
                         ? (double)p->tokens * (double)(i + 1) / (double)p->piece_count
                         : tokens_of_flops_share(p, i + 1);
        length[i] = (int64_t)floor(end - begin + 1e-9);
        begin = end;
    }
}

enum status partition_find_lengths(int64_t *length, const struct partition *p, struct diag *diag)
{
    int64_t left = p->tokens;
    assert(p->piece_count >= 1 && p->token_unit >= 1 && p->tokens % p->token_unit == 0);
    if (p->piece_count > p->tokens / p->token_unit)
        return diag_error(
            diag, (struct loc){.name = "--subsequences"}, STATUS_BAD_INPUT,
            "%lld tokens do not make %lld subsequences, each a multiple of %lld tokens; at most "
            "%lld subsequences would do",
            (long long)p->tokens, (long long)p->piece_count, (long long)p->token_unit,
            (long long)(p->tokens / p->token_unit));
    if (p->piece_count == 1)
        length[0] = p->tokens;
    else if (p->rule == PARTITION_TIME)
        find_lengths_by_time(p, length);
    else
        find_lengths_by_formula(p, length);
    for (int64_t i = 0; i < p->piece_count; i++) {
        length[i] = length[i] / p->token_unit * p->token_unit;
        if (length[i] == 0)
            return diag_error(diag, (struct loc){.name = "--subsequences"}, STATUS_BAD_INPUT,
                              "subsequence %lld of %lld, balanced by %s, has fewer than %lld "
                              "tokens; fewer subsequences would do",
                              (long long)i, (long long)p->piece_count, partition_names[p->rule],
                              (long long)p->token_unit);
        left -= length[i];
    }
    length[0] += left;
    return STATUS_OK;
}
