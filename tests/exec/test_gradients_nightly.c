/* Every legal product of the registries, models, ranks and degrees computes exact gradients; sizes
 * and numbers of pieces turn with each product. CHECK_SEED gives other turns. */
#include "tests/exec/matrix.h"

/* The next product of the first `count` factors; false after the last. */
static bool next_product(struct product *product, const struct factors *factors, int count)
{
    for (int f = 0; f < count; f++) {
        if (++product->level[f] < factors->levels[f])
            return true;
        product->level[f] = 0;
    }
    return false;
}

static void every_product_of_choices_computes_the_reference(void)
{
    const struct factors factors = factors_all();
    struct check_random random = check_random_make();
    struct product product = {{0}};
    struct diag why = {0};
    size_t legal = 0, refused = 0;
    do {
        struct product row = draw_product(&factors, &random);
        memcpy(row.level, product.level, FACTOR_SHARD);
        struct choices choices;
        int draws = 0;
        /* some turns do not fit: a shard that does not divide, a shard without HSDP */
        while (!product_legal(&row, &choices, &why) && ++draws < 40) {
            row = draw_product(&factors, &random);
            memcpy(row.level, product.level, FACTOR_SHARD);
        }
        if (draws == 40) {
            refused++;
            continue;
        }
        check_choices(&choices, legal % 4 == 0);
        legal++;
    } while (next_product(&product, &factors, FACTOR_SHARD));
    diag_release(&why);
    printf("%zu products are legal and exact, %zu are not legal\n", legal, refused);
}

static const struct check_case cases[] = {
    {"every product of choices computes the reference",
     every_product_of_choices_computes_the_reference},
};
CHECK_MAIN("gradients_nightly", cases)
