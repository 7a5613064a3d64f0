/* A run ends: in a result, or in a message that says who waits for whom. */
#include "tests/exec/executor_cases.h"

CHECK_MAIN("executor", executor_cases)
