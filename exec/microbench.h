/* exec/microbench.h: times one kind of work on a backend, which gives calibration its input.
 *
 * A point is measured by running a small schedule that repeats the same op and reading the trace, as any run is
 * measured: the cost model predicts the time of an op in a schedule, from its start on its stream to its end. Nothing
 * here depends on the hardware. Operands hold random numbers, and sets of them rotate so that none is still in a
 * cache. docs/measuring.md says what lies inside each interval. */
#ifndef EXEC_MICROBENCH_H
#define EXEC_MICROBENCH_H

#include "exec/exec.h"
#include "models/points.h"

#include <stddef.h>
#include <stdint.h>

struct microbench_options {
    const char *backend; /* NULL: "cpu" */
    double round_s;      /* seconds of work per round, without the set-up of operands; 0: 0.06 */
    /* the most rounds; there are fewer if the median is stable earlier. 0: 2 rounds, or 1 on a GPU, where setting up
     * takes longest */
    uint32_t most_rounds;
    /* the sets of operands, through which runs rotate, together have at least these bytes; 0: 64 MiB, on a GPU 256
     * MiB */
    uint64_t operand_set_bytes;
    uint8_t dtype;     /* enum dtype of floating-point operands that may be either */
    uint32_t sm_count; /* multiprocessors of the device, for the sizes that occupy it; 0: 132 */
    struct exec_link copy_link, message_link; /* emulated, as in exec_options */
};

/* One point to measure. work: kind and parameters; where the kind has a group, work has its number of members (1 to
 * 64), each of which is a rank. Of in, out, reads and writes, those that are 0 are filled in: as few operands as the
 * kind allows, but ADAMW also writes its copy for compute. Roles PAGEABLE and BOTH_WAYS exist only for copies, those
 * from BESIDE on only for compute. In role SM_HOG another kernel runs at the same time, which only the cuda backend
 * has. */
struct microbench_case {
    uint8_t point_role;     /* enum point_role */
    uint8_t attention_impl; /* enum attention_impl, or POINT_NO_IMPL */
    struct work work;
};

/* Measures one point. Returns STATUS_BAD_INPUT if the shape does not fit its kind, or if the backend is unknown. A
 * point whose median is still unstable after the last round is returned, too; its p10 and p90 show it. */
enum status microbench_run(const struct microbench_case *wanted,
                           const struct microbench_options *options, struct point *point,
                           struct diag *diag);

/* Writes to the header of the points what the backend knows about the device, such as its name and its number of
 * multiprocessors, which then need not be fitted. */
enum status microbench_describe(const char *backend, struct points *points, struct diag *diag);

/* Constants and functions for other programs that measure on a GPU as points are measured. Sets of operands rotate
 * through MICROBENCH_ROTATE_GPU bytes, and microbench_warmup_runs() runs precede those that count. microbench_fill()
 * writes random numbers. 16-bit ones have a normal distribution, as activations and weights do: a product of positive
 * numbers draws less power, and so runs up to a tenth faster under a power limit (docs/costs.md, "What the power limit
 * leaves"). Wider ones are in [0.25, 1), since variances and moments must be positive. */
enum { MICROBENCH_ROTATE_GPU = 256 << 20 };
void microbench_fill(void *data, enum dtype dtype, uint64_t elements, uint64_t seed);
/* Fills data with random indices below the limit and below 2^20. */
void microbench_fill_indices(int32_t *data, uint64_t elements, uint64_t limit, uint64_t seed);
uint32_t microbench_warmup_runs(uint32_t repeats);

/* Sets *cases to the cases that calibrate needs, which live in `arena`, and returns their number: every kind of work
 * over sizes that determine its numbers, start and issue, host streams, and copies and messages of `ranks` ranks.
 * quick: only the fewest cases that suffice. The whole set begins with these, too, so that leaving out cases at its end
 * makes fits less exact, but none impossible. kinds[kind]: the kinds that are wanted; NULL: all. */
size_t microbench_list_cases(const struct microbench_case **cases, struct arena *arena, bool quick,
                             uint32_t ranks, const bool *kinds);
/* Makes the set of cases for a GPU; the arguments are those of microbench_list_cases(). */
size_t microbench_list_gpu_cases(const struct microbench_case **cases, struct arena *arena,
                                 bool quick, uint32_t ranks, const bool *kinds);

/* A limit on the time that all cases take. The expected time of a case is a rough time of its ops plus
 * `most_overhead_s`: the most by which any case so far exceeded its rough time, for plans, operands and wrong
 * estimates. limit_s 0: there is no limit. */
struct microbench_budget {
    double limit_s, spent_s, most_overhead_s;
};
/* True if a case whose ops are guessed to take guess_s will end within the limit. */
bool microbench_fits_budget(const struct microbench_budget *budget, double guess_s);
/* Counts a finished case, which took took_s seconds in all. */
void microbench_spend_budget(struct microbench_budget *budget, double guess_s, double took_s);
/* Estimates the time that the ops of a case take. */
double microbench_rough_s(const struct microbench_case *wanted,
                          const struct microbench_options *options);

#endif
