/* Every communication op over 1 to 8 ranks gives what its definition says. */
#include "tests/exec/comm_cases.h"

CHECK_MAIN("cpu comm", comm_cases)
