/* models/nccl_tests.h: the tables that NVIDIA's nccl-tests print (all_reduce_perf and the like).
 *
 * A row becomes a point (models/points.h): the collective, as many members as the header lists
 * ranks, over as many nodes as it names hosts, and the out-of-place time. nccl-tests give the size
 * of the larger buffer; a point has what one rank sends. Rows with no bytes or a time of 0 are
 * skipped; a size that several tables repeat becomes a point for each.
 *
 * The prefixes that mpirun --tag-output, mpiexec -prepend-rank or srun --label put before each line are skipped. The
 * output of several runs may follow one another; lines of two runs that are mixed are refused, because a row does not
 * say to which list of ranks it belongs. */
#ifndef MODELS_NCCL_TESTS_H
#define MODELS_NCCL_TESTS_H

#include "models/points.h"

/* True if a text looks like the output of nccl-tests, and not like a file of points. */
bool nccl_tests_recognise(const char *data, size_t size);

/* Adds the rows of data[0..size) whose size is at least min_bytes. test: the name of the program that printed the
 * output ("all_reduce_perf"), for versions that do not print it; NULL: the text contains it. name: the text's name in
 * messages. */
enum status nccl_tests_parse(struct points *points, const char *name, const char *data, size_t size,
                             const char *test, int64_t min_bytes, struct diag *diag);
enum status nccl_tests_load(struct points *points, const char *path, const char *test,
                            int64_t min_bytes, struct diag *diag);

#endif
