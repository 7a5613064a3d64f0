/* tests/exec/test_gradients_thread.c: runs the pairs of choices on at most four ranks, a sixteenth of them a day, for
 * the thread sanitizer. What they compute is checked by test_gradients.c. */
#include "tests/exec/matrix.h"

static void no_pair_of_choices_races(void)
{
    struct factor_level_counts factors = factors_with_all_levels();
    factors.levels[FACTOR_MODEL] = 3;
    factors.levels[FACTOR_RANKS] = 4;
    factors.levels[FACTOR_HP] = 4;
    factors.levels[FACTOR_CP] = 1;
    factors.levels[FACTOR_HSDP_SHARD] = 3;
    factors.levels[FACTOR_SEQ] = 1;
    factors.levels[FACTOR_ACCUMULATION] = 2;
    factors.levels[FACTOR_LOSS_CHUNKS] = 2;
    factors.levels[FACTOR_FFN_CHUNKS] = 2;
    struct matrix_rows *rows = rows_covering_pairs(&factors, 1);
    check_rows(rows, false, 16);
    rows_free(rows);
}

static const struct check_case cases[] = {
    {"no pair of choices races", no_pair_of_choices_races},
};
CHECK_MAIN("gradients_thread", cases)
