/* tests/exec/test_executor_thread.c: the cases of executor_cases.h, of how runs end, by the CPU backend, also under the
 * thread sanitizer. */
#include "tests/exec/executor_cases.h"

CHECK_MAIN("executor", executor_cases)
