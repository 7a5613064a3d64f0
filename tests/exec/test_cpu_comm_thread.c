/* tests/exec/test_cpu_comm_thread.c: every communication op over 1 to 8 ranks computes what its definition
 * says. */
#include "tests/exec/comm_cases.h"

CHECK_MAIN("cpu comm", comm_cases)
