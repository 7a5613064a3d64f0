/* tests/predict/test_kernel_classes.c: each kind of work but the recorded operator has a class by which it is compared
 * with a measured trace (traces/kernel_class.h, which knows kinds by their names only). */
#include "models/work.h"
#include "tests/check.h"
#include "traces/kernel_class.h"

/* A kind without a class would have no measured work to be compared with. Only a recorded operator
 * has none, since its own name tells its class. */
static void every_kind_of_work_has_a_class(void)
{
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const char *name = work_kind_info((enum work_kind)kind)->name;
        CHECK(name, (kernel_class_of_kind(name) == CLASS_OTHER) == (kind == WORK_OPAQUE));
    }
}

static const struct check_case cases[] = {
    {"every kind of work has a class", every_kind_of_work_has_a_class},
};
CHECK_MAIN("kernel_classes", cases)
