/* cli/prediction.h: one configuration, or one schedule from a file, predicted on a cluster.
 *
 * Memory is known from the schedule alone, and is cheap; times take a simulation. Which of the
 * three memory figures decides depends on who would run the schedule: a framework's profile is
 * held to `reserved`, the profile `ideal` and schedules from files to `arena` and the process'
 * context. docs/commands.md says more. */
#ifndef CLI_PREDICTION_H
#define CLI_PREDICTION_H

#include "base/diag.h"
#include "base/text.h"
#include "cli/setup.h"
#include "schedule/ir.h"
#include "schedule/reserved.h"
#include "sim/sim.h"
#include "sim/stages.h"
#include "sim/waterfall.h"

#include <stdbool.h>
#include <stdint.h>

enum prediction_limit { LIMIT_DEVICE, LIMIT_HOST, LIMIT_COUNT };

/* Bytes needed and there: of one device, of one node's host. */
struct verdict {
    bool fits;
    enum prediction_limit limit; /* the one that fails, or the one nearer to its end */
    uint64_t needed[LIMIT_COUNT];
    uint64_t available[LIMIT_COUNT]; /* UINT64_MAX: infinite */
    bool by_reserved;                /* the device's figure is a framework's */
    bool tight;                      /* it fits, and would not with a little less device memory */
    uint64_t cache; /* bytes of the device's figure that hold nothing, and are given back where
                            memory would be refused */
};

/* All-zero is empty. Borrows the setup it was made with. */
struct prediction {
    const struct setup *setup;
    bool has_choices; /* false: the schedule came from a file */
    struct choices choices;
    int partition; /* enum partition_option: how their subsequences are cut */
    int64_t
        *lengths; /* of subsequences, and bytes that each hides: the choices borrow them; heap */
    double *hidden;
    const struct profile *profile; /* whose times count; NULL: a file's, and none was given */
    struct ir ir;
    struct reserved reserved;
    struct verdict verdict;

    bool simulated;
    struct sim_result sim;
    struct waterfall waterfall; /* of rank 0 */
    struct stages stages;       /* of a pipeline; none without */
    double tokens_per_s_gpu;
    bool checkpoints_cost_host; /* the profile's host_per_checkpoint_s is in the times */
    struct text extrapolated;   /* why, of the shape that takes longest; empty: nothing is */
    uint32_t extrapolated_shapes;
    double extrapolated_share; /* of the compute time of rank 0 */
    bool beyond_compared;      /* more ranks than any step of the strategy was compared on: */
    int64_t compared_ranks;    /* so many; 0: none was */
    double jitter_s;           /* which is then in the step: what measured jitter adds */
};

void prediction_release(struct prediction *prediction);

/* Resolves the request, builds the schedule and judges its memory. note may be NULL. */
enum status prediction_memory(struct prediction *prediction, const struct setup *setup,
                              const struct request *request, struct diag *note, struct diag *diag);

/* The same for a schedule from a file ("-": standard input). */
enum status prediction_memory_of_file(struct prediction *prediction, const struct setup *setup,
                                      const char *path, struct diag *diag);

/* Simulates what prediction_memory() built. */
enum status prediction_time(struct prediction *prediction, bool exact, struct diag *diag);

/* The same into *sim alone, as if kernels took no time: communication and the host. Release *sim. */
enum status prediction_without_kernels(struct sim_result *sim, const struct prediction *prediction,
                                       bool exact, struct diag *diag);

/* What prediction_memory() built cannot take less: the kernels of a rank's processors one after the
 * other, or the host's issue of all ops, whichever is more, of the first rank of each role. */
double prediction_bound_s(const struct prediction *prediction);

/* Both, without notes. */
enum status prediction_make(struct prediction *prediction, const struct setup *setup,
                            const struct request *request, bool exact, struct diag *diag);

/* The first of the ranks whose device memory is fullest at its peak; what it holds then. */
uint32_t prediction_fullest_rank(const struct prediction *prediction);
const struct sim_peak *prediction_peak(const struct prediction *prediction);

/* Sequences and tokens of one step, over all ranks. */
int64_t prediction_sequences(const struct prediction *prediction);
double prediction_tokens(const struct prediction *prediction);
/* Devices: one when ranks share it, else as many as ranks. */
double prediction_gpus(const struct prediction *prediction);
bool prediction_recomputes(const struct prediction *prediction);

/* Appends "needs 61.2 GiB of 79.1 GiB (17.9 GiB free)" of a limit. */
void verdict_print(struct text *out, const struct verdict *verdict, enum prediction_limit limit);
/* Whether what decides is nearer than the model of memory can tell: a memory that is nearly full, of
 * tensors and not of an allocator's cache alone, or what does not fit by little. */
bool verdict_close(const struct verdict *verdict);
/* Whether a device that fits seems full of what its allocator caches alone. */
bool verdict_is_cached(const struct verdict *verdict);
/* Appends "; too close to call", or how much of a device that seems full is cache, or nothing. */
void verdict_put_close(struct text *out, const struct verdict *verdict);
/* available - needed; DBL_MAX where there is no end. */
double verdict_margin(const struct verdict *verdict, enum prediction_limit limit);
/* Bytes that are not there, of all memories; 0: it fits. */
double verdict_missing(const struct verdict *verdict);

const char *prediction_limit_name(enum prediction_limit limit);

#endif
