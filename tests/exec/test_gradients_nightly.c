/* tests/exec/test_gradients_nightly.c: each combination of the factors from strategy to subsequences (matrix.h)
 * computes exact gradients, unless none of 40 draws of the other factors (model, tp, sizes) makes it legal, or another
 * combination covers it. CHECK_SEED changes the draws. */
#include "tests/exec/matrix.h"

/* Advances to the next product of the factors from strategy to subsequences. Returns false after the last. */
static bool advance_product_of_choices(struct matrix_row *product,
                                       const struct factor_level_counts *factors)
{
    for (int f = FACTOR_STRATEGY; f < FACTOR_HSDP_SHARD; f++) {
        if (++product->level[f] < factors->levels[f])
            return true;
        product->level[f] = 0;
    }
    return false;
}

/* Draws the other factors of a product until it is legal, up to 40 times: some draws do not fit (a shard that
 * does not divide, a shard without HSDP). Returns false when none is legal. */
static bool turn(struct choices *choices, const struct matrix_row *product,
                 const struct factor_level_counts *factors, struct check_random *random)
{
    struct diag why = {0};
    bool legal = false;
    for (int draws = 0; draws < 40 && !legal; draws++) {
        struct matrix_row row = draw_configuration(factors, random);
        memcpy(&row.level[FACTOR_STRATEGY], &product->level[FACTOR_STRATEGY],
               FACTOR_HSDP_SHARD - FACTOR_STRATEGY);
        legal = configuration_is_legal(&row, choices, &why);
    }
    diag_release(&why);
    return legal;
}

static bool is_level_of_factor(int factor, uint32_t value)
{
    for (size_t i = 0; i < ARRAY_LEN(factor_values[factor]); i++)
        if (factor_values[factor][i] == value)
            return true;
    return false;
}

/* True if hp or cp was left open and the value that it was given is one of the factor's other levels: then the
 * product with that level covers this one. */
static bool is_covered_by_other_product(const struct matrix_row *product,
                                        const struct choices *choices)
{
    return (product->level[FACTOR_HP] == 0 && is_level_of_factor(FACTOR_HP, choices->hp)) ||
           (product->level[FACTOR_CP] == 0 && is_level_of_factor(FACTOR_CP, choices->cp));
}

static void every_product_of_choices_computes_the_reference(void)
{
    const struct factor_level_counts factors = factors_with_all_levels();
    struct check_random random = check_random_make();
    struct matrix_row product = {{0}};
    size_t exact = 0, refused = 0;
    do {
        struct choices choices;
        if (!turn(&choices, &product, &factors, &random))
            refused++;
        else if (!is_covered_by_other_product(&product, &choices))
            exact += check_choices(&choices, exact % 4 == 0);
    } while (advance_product_of_choices(&product, &factors));
    printf("%zu products are exact, %zu are not legal\n", exact, refused);
}

static const struct check_case cases[] = {
    {"every product of choices computes the reference",
     every_product_of_choices_computes_the_reference},
};
CHECK_MAIN("gradients_nightly", cases)
