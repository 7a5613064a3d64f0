/* exec/microbench.h: times one kind of work on a backend, which gives calibration its input.
 *
 * A point is measured by running a small schedule that repeats the same op, and reading the times from its trace. The
 * cost model predicts the time of an op in a schedule, from its start on its stream to its end, and a trace has just
 * these times. Nothing here depends on the hardware. Operands hold random numbers, and several sets of operands take
 * turns, so that large operands are no longer in a cache. docs/measuring.md says what lies inside each interval. */
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
     * takes most of the time. Role ISSUE takes three times as many rounds, and role SUSTAINED one. */
    uint32_t most_rounds;
    /* the least bytes of all sets of operands together; 0: 64 MiB, or 256 MiB on a GPU */
    uint64_t min_bytes_of_all_operand_sets;
    uint8_t dtype;     /* enum dtype of operands whose kind of work does not determine it */
    uint32_t sm_count; /* multiprocessors of the device, by which products are sized; 0: 132 */
    struct exec_emulated_link_limits copy_link, message_link; /* emulated, as in exec_options */
};

/* One point to measure. `work` has its kind and parameters. If the kind has a group, the group's parameter is the
 * number of members, 1 to 64, each of which is a rank. work.reads and work.writes are the numbers of operands; 0: as
 * few as the kind allows, but ADAMW then also writes its copy for compute.
 *
 * Only copies have the roles PAGEABLE and BOTH_WAYS, and only compute has the roles from BESIDE on. In role SM_HOG
 * another kernel runs at the same time; only the backend cuda has such a kernel. */
struct microbench_case {
    uint8_t point_role;     /* enum point_role */
    uint8_t attention_impl; /* enum attention_impl, or POINT_NO_IMPL */
    struct work work;
};

/* Measures one point. Returns STATUS_BAD_INPUT if the shape does not fit its kind, if such a point cannot be measured,
 * or if the backend is unknown. A point whose median is still unstable after the last round is returned as well; the
 * distance between its p10 and p90 shows this. */
enum status microbench_measure_case(const struct microbench_case *wanted,
                                    const struct microbench_options *options, struct point *point,
                                    struct diag *diag);

/* Writes to the header of the points what the backend knows about the device, such as its name and the number of its
 * multiprocessors. Calibration need not fit what the header gives. Returns STATUS_BAD_INPUT if the backend is
 * unknown. */
enum status microbench_describe(const char *backend, struct points *points, struct diag *diag);

/* The bytes of all sets of operands together on a GPU, for other programs that measure as points are measured. */
enum { MICROBENCH_ROTATE_GPU = 256 << 20 };
/* Fills data with random numbers. Those of 16 bits have a normal distribution, as activations and weights do: a product
 * of positive numbers draws less power, and so runs up to a tenth faster under a power limit (docs/costs.md, "What the
 * power limit leaves"). Those of other types are in [0.25, 1), since variances and moments must be positive; but any
 * four bytes of dtype u8 are an fp32 number between 0.01 and 0.26. */
void microbench_fill(void *data, enum dtype dtype, uint64_t elements, uint64_t seed);
/* Fills data with random indices below the limit and below 2^20. */
void microbench_fill_indices(int32_t *data, uint64_t elements, uint64_t limit, uint64_t seed);
/* Returns how many runs that do not count precede `repeats` runs that do. */
uint32_t microbench_warmup_runs(uint32_t repeats);

/* Sets *cases to the cases that calibrate needs, which live in `arena`, and returns their number. They are kinds of
 * work that can be measured by themselves, over sizes that determine the numbers of the cost model, the roles START and
 * ISSUE, AdamW on a host stream, and copies; if `ranks` is more than 1, also collectives of that many ranks. quick:
 * only the fewest cases that suffice. The whole set begins with these, so that a caller who leaves out cases at its end
 * makes fits less exact, but none impossible. kinds[kind]: the kinds that are wanted; NULL: all. */
size_t microbench_list_cases(const struct microbench_case **cases, struct arena *arena, bool quick,
                             uint32_t ranks, const bool *kinds);
/* Does what microbench_list_cases() does for a GPU: with sizes that occupy it, with the roles that only a GPU or its
 * copies have (SUSTAINED only without `quick`), and without AdamW on a host stream. */
size_t microbench_list_gpu_cases(const struct microbench_case **cases, struct arena *arena,
                                 bool quick, uint32_t ranks, const bool *kinds);

/* A limit on the time that all cases take; limit_s 0: there is no limit. A case is expected to take a rough time of its
 * ops plus most_overhead_s: the most by which any case so far exceeded its rough time, for plans, operands and wrong
 * estimates. */
struct microbench_time_budget {
    double limit_s, spent_s, most_overhead_s;
};
/* True if a case whose ops take roughly guess_s seconds is expected to end within the limit. */
bool microbench_fits_time_budget(const struct microbench_time_budget *budget, double guess_s);
/* Adds a finished case to the budget: took_s seconds in all, where guess_s was the rough time of its ops. */
void microbench_record_spent_time(struct microbench_time_budget *budget, double guess_s,
                                  double took_s);
/* Returns a rough estimate of the seconds that the ops of a case take. */
double microbench_estimated_s(const struct microbench_case *wanted,
                              const struct microbench_options *options);

#endif
