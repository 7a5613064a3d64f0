/* The same as test_matrix.c, with enough products to meet nearly every pair and triple. */
#define PRODUCTS 4000
#include "tests/exec/test_matrix.c"
