/* A run ends: in a result, or in a message that says who waits for whom. */
#include "tests/exec/runner_cases.h"

CHECK_MAIN("runner", runner_cases)
