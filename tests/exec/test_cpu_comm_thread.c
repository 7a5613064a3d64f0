/* tests/exec/test_cpu_comm_thread.c: every communication op but WORK_EXCHANGE computes over 1 to 8 ranks what its
 * definition says. */
#include "tests/exec/comm_cases.h"

CHECK_MAIN("cpu comm", comm_cases)
