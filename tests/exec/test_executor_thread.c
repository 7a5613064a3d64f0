/* tests/exec/test_executor_thread.c: every run ends, in a result or in a message; the message of a stall says which
 * rank waits for which. */
#include "tests/exec/executor_cases.h"

CHECK_MAIN("executor", executor_cases)
