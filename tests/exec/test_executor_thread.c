/* tests/exec/test_executor_thread.c: the cases of executor_cases.h, of how runs end, on the CPU backend. They are in a
 * file with the label `thread`, so that the thread sanitizer runs them too. */
#include "tests/exec/executor_cases.h"

CHECK_MAIN("executor", executor_cases)
