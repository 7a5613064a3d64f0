/* predict/prediction.h: one configuration, or one schedule from a file, predicted on a cluster.
 *
 * Memory follows from the schedule, and is cheap; times take a simulation. A prediction has three figures of a device's
 * memory: the live bytes at their peak, the arena into which buffers were planned, and `reserved`, which a framework's
 * allocator would take. The verdict uses `reserved` for recorded steps, and with every profile but `ideal`; with that
 * profile, and for schedules from files, it uses `arena` plus the process' context. docs/commands.md says more. */
#ifndef PREDICT_PREDICTION_H
#define PREDICT_PREDICTION_H

#include "base/diag.h"
#include "base/text.h"
#include "models/mfu.h"
#include "predict/document_costs.h"
#include "predict/setup/resolved.h"
#include "predict/setup/setup.h"
#include "predict/spreads.h"
#include "predict/verdict.h"
#include "schedule/ir/ir.h"
#include "schedule/reserved/reserved.h"
#include "schedule/schedule_file.h"
#include "sim/sim.h"
#include "sim/stages.h"
#include "sim/waterfall.h"

#include <stdbool.h>
#include <stdint.h>

/* The parameters of a prediction. All-zero but for the setup asks for every figure of the whole step. */
struct prediction_question {
    const struct setup *setup;
    const struct request *request; /* NULL: the setup's */

    /* ---- what is built and simulated ---- */
    bool is_exact; /* simulate every rank and every flow (struct sim_options), and the whole list */
    bool builds_whole_list; /* build the whole list, not a short list that represents it */
    /* the number of layers to build in place of the model's; 0: all layers of the model */
    int64_t layer_count;
    /* Index of the first short list length to try. The prediction of a similar step has it in its
     * short_list_length_index. */
    size_t short_list_length_index;
    /* for a recorded step: the path of a recording of the PyTorch profiler that has the times of its kernels; NULL:
     * none */
    const char *kernel_times_path;
    double slow_factor; /* as in struct sim_options; it needs is_exact */
    uint32_t slow_rank;

    /* ---- figures that are left out to save time ---- */
    /* only the seconds of the step: memory, arenas and causes are left out */
    bool wants_step_time_only;
    /* CAUSE_DOCUMENT_IMBALANCE is not separated, which saves a second simulation */
    bool skips_cause_of_documents;
    /* Arenas that do not affect the verdict are not planned, which saves half of the time, and have 0 bytes. */
    bool skips_offsets;
    /* A rate in tokens/s/GPU; 0: no limit. If the step cannot exceed this rate even at its lower bound, memory is not
     * predicted: then prediction.is_slower_than_rate_to_exceed is set, and tokens_per_s_gpu is the rate at the
     * bound. */
    double rate_to_exceed;
};

/* All-zero is empty. Borrows the setup and the request of its question. */
struct prediction {
    /* ---- the question and its choices ---- */
    struct prediction_question question;
    const struct setup *setup; /* question.setup */
    bool has_choices;          /* false: the schedule came from a file */
    struct resolved resolved;  /* the resolved request; empty for a file's schedule */
    /* the choices of the step that is predicted, which has question.layer_count layers (0: all layers of the model) */
    struct choices choices;
    /* the profile whose times are used; NULL: none, as for a schedule from a file without --profile */
    const struct profile *profile;
    /* the model with question.layer_count layers, to which choices.model points; unused if that count is 0 */
    struct transformer model_of_few_layers_of_step;

    /* ---- the schedule and its memory ---- */
    struct ir ir;
    struct schedule_recordings recorded; /* the recorded step that ir was made of; all-zero: none */
    /* for a recorded step without --attention: attention kernels (enum attention_impl) that it ran and for which the
     * device has no costs, so that others are priced in their place; of several kinds, one. -1: there are none */
    int recorded_attention_without_costs;
    /* the kernels of a recorded step whose time was measured (recorded_operators.h) */
    struct prediction_measured {
        const char *file; /* the recording that has them; NULL: none is asked for */
        size_t measured_kernels, kernel_total;
        bool is_device_unknown; /* the recording does not say on which GPU they ran */
    } measured;
    /* index of the short list length that ir has, if ir is a short list */
    size_t short_list_length_index;
    struct reserved reserved;
    struct verdict verdict;
    bool is_slower_than_rate_to_exceed; /* the memory was not judged: see question.rate_to_exceed */

    /* ---- times, once simulated ---- */
    bool is_simulated;
    struct sim_result sim;
    struct waterfall waterfall; /* the time of rank 0 by cause */
    /* the seconds of each stage of a pipeline by cause; empty if there is no pipeline */
    struct stages stages;
    /* rank 0's seconds of products in 8 or 4 bits, of the same products in the schedule's dtype, and of the casts; 0:
     * there are none */
    struct prediction_products {
        double narrow_s, wide_s, casts_s;
        uint8_t dtype; /* enum dtype, of the schedule */
    } products;
    /* with packed documents: the rank whose attention takes longest in the largest number of micro-batches */
    struct document_lateness_of_ranks lateness;
    /* if all ranks of a ring are taken as the fullest (sim/uniform/uniform.h): the visible pairs of that rank over the
     * mean; else 0 */
    double fullest_pairs_over_mean;
    /* seconds of the step as they would be if every rank had the mean number of visible pairs, without rank 0's waits
     * for keys and values (CAUSE_RING); 0: not simulated */
    double even_step_s;
    double tokens_per_s_gpu;
    double jitter_s; /* seconds that measured jitter adds; the step's time contains them */
    /* the times contain the profile's host_per_checkpoint_copy_s */
    bool times_have_checkpoint_costs;

    /* ---- how sure the times are: costs and ranks beyond the measured ones, and spreads ---- */
    /* the reason why a cost is extrapolated: that of the shape that takes longest of those with extrapolated costs;
     * empty: there are none */
    struct text extrapolation_reason;
    uint32_t extrapolated_shape_count; /* the number of shapes with extrapolated costs */
    double extrapolated_share;         /* their share of the compute time of rank 0 */
    /* the step has more ranks than max_compared_ranks; false for one rank, a part of a model and ideal hardware */
    bool exceeds_compared_ranks;
    /* if exceeds_compared_ranks is set: the most ranks on which a step of the strategy was compared with a measured
     * one; 0: none was */
    int64_t max_compared_ranks;
    struct spreads spreads; /* empty until a caller that shows intervals calls spreads_find() */
};

void prediction_release(struct prediction *prediction);

/* True if the schedule was made of a recorded step of a PyTorch program. */
bool prediction_is_recorded(const struct prediction *prediction);
/* True if some op of the schedule is attention. A recorded step may have none. */
bool prediction_has_attention(const struct prediction *prediction);

/* Resolves the question's request, builds the schedule and judges its memory, unless the question leaves that out
 * (wants_step_time_only, rate_to_exceed). note may be NULL. */
enum status prediction_memory(struct prediction *answer, const struct prediction_question *question,
                              struct diag *note, struct diag *diag);

/* Returns the probability that a configuration that is predicted to need `needed` bytes fits into `available` bytes, by
 * the interval of its memory; 0 or 1 if it has no interval. choices: not NULL. */
double prediction_fits_probability(const struct setup *setup, const struct choices *choices,
                                   double needed, double available);

/* Predicts the memory of a schedule from a file ("-": standard input), or of a step from the recordings of its
 * stages. */
enum status prediction_memory_of_file(struct prediction *answer,
                                      const struct prediction_question *question,
                                      const char *const *files, size_t count, struct diag *diag);

/* Simulates the schedule that prediction_memory() or prediction_memory_of_file() built. If that is a short list that
 * does not represent the whole list, it builds and simulates a longer one. */
enum status prediction_time(struct prediction *answer, struct diag *diag);

/* Simulates into *sim as if kernels took no time, which leaves communication and the host. Release *sim. */
enum status prediction_simulate_without_kernels(struct sim_result *sim,
                                                const struct prediction *prediction,
                                                struct diag *diag);

/* Returns a lower bound in seconds of the step that prediction_memory() built. It is the largest of the following times
 * over the first ranks of all roles: the sum of the rank's kernels; the time for which its host issues all ops; and, in
 * a plain pipeline (pipeline_is_plain()), the kernels of its units plus those of the stages before it for the forward
 * of the first unit and for the backward of the last unit. */
double prediction_step_lower_bound_s(const struct prediction *prediction);

/* The sums over all ops of the first rank of the first role: the seconds of its kernels, and the seconds for which its
 * host issues ops. */
struct prediction_kernel_and_issue_s {
    double kernels_s, issue_s;
};
struct prediction_kernel_and_issue_s
prediction_sum_kernel_and_issue_s(const struct prediction *prediction);

/* Does prediction_memory() and prediction_time(), without notes. */
enum status prediction_make(struct prediction *answer, const struct prediction_question *question,
                            struct diag *diag);

/* prediction_fullest_rank() returns the first of the ranks whose device memory has the highest peak;
 * prediction_device_memory_peak() returns that peak. */
uint32_t prediction_fullest_rank(const struct prediction *prediction);
const struct sim_peak *prediction_device_memory_peak(const struct prediction *prediction);

/* The loop that a short list has only in part. */
struct prediction_short_list {
    const char *name_of_shortened_loop; /* "layers" or "micro-batches"; NULL: the list is whole */
    /* iterations that the short list has, and iterations of the whole step */
    int64_t simulated_iterations, all_iterations;
};
struct prediction_short_list prediction_short_list(const struct prediction *prediction);

/* The id and the layer that an op of a short list has in the whole list. */
struct whole_list_op_id_and_layer {
    uint32_t id;
    uint16_t layer; /* IR_NONE16: the op belongs to no layer */
};
struct whole_list_op_id_and_layer
prediction_find_op_in_whole_list(const struct prediction *prediction, uint32_t op);

/* These two return the sequences and the tokens of one step, over all ranks; padding of packed documents is not
 * counted. */
int64_t prediction_sequences(const struct prediction *prediction);
double prediction_tokens(const struct prediction *prediction);
/* Returns the number of devices: 1 if all ranks share one, otherwise the number of ranks. */
double prediction_gpus(const struct prediction *prediction);
/* Returns whether the choice of activations is one that recomputes in the backward, or moves inputs of layers to the
 * host and recomputes from them: all but `keep` and `ratio`. */
bool prediction_recomputes(const struct prediction *prediction);

/* prediction_mfu() and prediction_hfu() return the utilisation of a simulated step as a fraction. prediction_mfu()
 * counts the model's flops and needs a prediction that has choices; prediction_hfu() counts the flops that all ranks
 * execute. */
double prediction_mfu(const struct prediction *prediction, enum mfu_convention convention);
double prediction_hfu(const struct prediction *prediction);

#endif
