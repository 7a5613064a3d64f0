/* models/nccl_tests.h: the tables that NVIDIA's nccl-tests print (all_reduce_perf and the like).
 *
 * A row becomes a point (models/points.h). The header of the output lists ranks and their hosts: the
 * point's collective has as many members as there are ranks, on as many nodes as there are hosts. Its
 * time is the out-of-place time. nccl-tests print the size of the larger buffer; a point has the bytes
 * that one rank sends. Rows with no bytes or a time of 0 are skipped. A size that several tables have
 * becomes a point for each.
 *
 * The prefixes that mpirun --tag-output, mpiexec -prepend-rank or srun --label put before each line are skipped. The
 * outputs of several runs may follow each other in one text. If lines of two runs are mixed, the text is refused,
 * because a row does not say to which list of ranks it belongs. */
#ifndef MODELS_NCCL_TESTS_H
#define MODELS_NCCL_TESTS_H

#include "models/points.h"

/* True if a text looks like the output of nccl-tests, and not like a file of points. */
bool nccl_tests_recognise(const char *data, size_t size);

/* Adds the rows of data[0..size) whose size is at least min_bytes, and fails if there are none.
 * test: the name of the program that printed the output ("all_reduce_perf"), for versions that do
 * not print it; NULL: the text contains it. name: the text's name in messages. nccl_tests_load() reads the text
 * from a file. */
enum status nccl_tests_parse(struct points *points, const char *name, const char *data, size_t size,
                             const char *test, int64_t min_bytes, struct diag *diag);
enum status nccl_tests_load(struct points *points, const char *path, const char *test,
                            int64_t min_bytes, struct diag *diag);

#endif
