/* cli/report/report_tables.c: the columns of the tables of `predict --json`. The screen prints none of them as a table,
 * so the columns have no label and no width for text (struct column). */
#include "cli/report/report.h"

/* A column has: key, label, label in a page, kind, width in text, description (cli/common/rows.h). */
/* clang-format off */
static const struct column machine[] = {
    {"part", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"measured", NULL, NULL, COLUMN_FLAG, 0, "Whether figures of this part were measured on the machine."},
    {"spread", NULL, NULL, COLUMN_NUMBER, 0, "Largest relative standard deviation of the measured ones."},
    {"moves_step", NULL, NULL, COLUMN_NUMBER, 0, "Logarithm of the quotient: the step with the measured figures of this part slower by their spreads / the predicted step."},
    {"unmeasured_share", NULL, NULL, COLUMN_NUMBER, 0, "Share of the step that goes with figures of this part that were not measured."},
    {"estimate_error", NULL, NULL, COLUMN_NUMBER, 0, "Relative error that the device's file gives them; 0: they are no estimates."},
};

static const struct column links[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"measured", NULL, NULL, COLUMN_FLAG, 0, "Whether it was measured on this machine."},
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "Where its number is from."},
};

static const struct column never_measured[] = {
    {"figure", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "time or memory."},
    {"feature", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "profile, neutral, mechanism, elsewhere, together, kernel, far or small."},
    {"what", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "In words: tensor parallelism with torchtitan."},
    {"adds", NULL, NULL, COLUMN_NUMBER, 0, "Standard deviation that it adds to log(measured / predicted)."},
};

static const struct column modules[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "Empty: what belongs to no module."},
    {"forward_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"recompute_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"backward_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
    {"optimizer_s", NULL, NULL, COLUMN_SECONDS, 0, NULL},
};

static const struct column operators[] = {
    {"rank", NULL, NULL, COLUMN_COUNT, 0, "The recorded rank."},
    {"operator", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "As the recording names it: mm, add.Tensor."},
    {"inputs", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The shapes of its inputs that have one: [1024,640][640,256]."},
    {"dtype", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "PyTorch's name of the dtype of the first of them; other: integers."},
    {"calls", NULL, NULL, COLUMN_COUNT, 0, "How often it runs in a step."},
    {"seconds", NULL, NULL, COLUMN_SECONDS, 0, "Sum over these calls, as predicted."},
};

static const struct column guesses[] = {
    {"what", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "What the program asked for."},
    {"times", NULL, NULL, COLUMN_COUNT, 0, "How often."},
};

static const struct column products[] = {
    {"narrow_products_s", NULL, NULL, COLUMN_SECONDS, 0, "common.json"},
    {"wide_products_s", NULL, NULL, COLUMN_SECONDS, 0, "common.json"},
    {"casts_s", NULL, NULL, COLUMN_SECONDS, 0, "common.json"},
};
/* clang-format on */

const struct row_table report_tables[REPORT_TABLE_COUNT] = {
    [REPORT_TABLE_MACHINE] = {"predict_machine", machine, ARRAY_LEN(machine)},
    [REPORT_TABLE_LINKS] = {"predict_link", links, ARRAY_LEN(links)},
    [REPORT_TABLE_NEVER_MEASURED] = {"predict_never_measured", never_measured,
                                     ARRAY_LEN(never_measured)},
    [REPORT_TABLE_MODULES] = {"predict_module", modules, ARRAY_LEN(modules)},
    [REPORT_TABLE_OPERATORS] = {"predict_operator", operators, ARRAY_LEN(operators)},
    [REPORT_TABLE_ASSUMPTIONS] = {"predict_guess", guesses, ARRAY_LEN(guesses)},
    [REPORT_TABLE_PRODUCTS] = {"narrow_products", products, ARRAY_LEN(products)},
};
