/* tests/exec/test_latent.c: the cases of latent_cases.h on the processor. */
#include "tests/exec/latent_cases.h"

static const struct check_case cases[] = {LATENT_CASES};

CHECK_MAIN("latent", cases)
