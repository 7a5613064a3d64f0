/* predict/reproduce/cell.h: one configuration of a reproduced figure, and the numbers that figures show of it.
 *
 * A cell is predicted once, even if several figures show it: its answer holds every measure that the prediction
 * gives. Which measures these are depends on what is asked about the cell: its memory, its memory and time, or the
 * longest sequence that fits (lengths double from the one that the options give). */
#ifndef PREDICT_REPRODUCE_CELL_H
#define PREDICT_REPRODUCE_CELL_H

#include "base/diag.h"
#include "predict/setup/setup.h"

#include <stdbool.h>

enum cell_question { CELL_MEMORY, CELL_TIME, CELL_LONGEST, CELL_QUESTION_COUNT };
extern const char *const cell_question_names[CELL_QUESTION_COUNT];

/* MEASURE(symbol, name, question, needs_fit). question: the question that a prediction must answer to give the measure.
 * needs_fit: the measure has no value if the step does not fit in memory. bubble_s: seconds in which a pipeline fills,
 * drains or is unbalanced. exposed_share: the share of the step in which rings and collectives are exposed.
 * slowest_of_4: the slowest of four packed steps over their mean. */
#define CELL_MEASURES(MEASURE)                                                                     \
    MEASURE(STEP_S, "step_s", TIME, true)                                                          \
    MEASURE(TOKENS, "tokens_per_s_gpu", TIME, true)                                                \
    MEASURE(MFU, "mfu", TIME, true) /* convention longhaul */                                      \
    MEASURE(MFU_LOONGTRAIN, "mfu_loongtrain", TIME, true)                                          \
    MEASURE(MFU_TORCHTITAN, "mfu_torchtitan", TIME, true)                                          \
    MEASURE(MFU_FPDT, "mfu_fpdt", TIME, true)                                                      \
    MEASURE(BILLION_HOURS, "hours_per_billion_tokens", TIME, true)                                 \
    MEASURE(BUBBLE_S, "bubble_s", TIME, true) /* filling, draining and imbalance of a pipeline */  \
    MEASURE(BUBBLE_SHARE, "bubble_share", TIME, true)                                              \
    MEASURE(EXPOSED_SHARE, "exposed_share", TIME, true) /* of rings and collectives */             \
    MEASURE(ELAPSED_MS, "elapsed_ms", TIME, true)                                                  \
    MEASURE(SLOWEST_OF_4, "slowest_of_4", TIME, true) /* packed steps: by the mean of the four */  \
    MEASURE(EXCHANGE_MS, "exchange_ms", TIME, true)                                                \
    MEASURE(COMPUTE_MS, "compute_ms", TIME, true)                                                  \
    MEASURE(RING_MS, "ring_ms", TIME, true)                                                        \
    MEASURE(RING_OVER_COMPUTE, "ring_over_compute", TIME, true)                                    \
    MEASURE(EXCHANGE_OVER_COMPUTE, "exchange_over_compute", TIME, true)                            \
    MEASURE(FETCH_PAIR_MS, "fetch_pair_ms", TIME, true)                                            \
    MEASURE(FETCH_SET_MS, "fetch_set_ms", TIME, true)                                              \
    MEASURE(DEVICE_GIB, "device_gib", MEMORY, false)                                               \
    MEASURE(TENSORS_GIB, "tensors_gib", MEMORY, false)                                             \
    MEASURE(HOST_GIB, "host_gib", MEMORY, false)                                                   \
    MEASURE(HIDDEN, "hidden_units", MEMORY, false) /* of a layer: block_tensors.h */               \
    MEASURE(QKV, "qkv_units", MEMORY, false)                                                       \
    MEASURE(EXCHANGE, "exchange_units", MEMORY, false)                                             \
    MEASURE(ATTENTION, "attention_units", MEMORY, false)                                           \
    MEASURE(FFN, "ffn_units", MEMORY, false)                                                       \
    MEASURE(HIDDEN_BACKWARD, "hidden_backward_units", MEMORY, false)                               \
    MEASURE(QKV_BACKWARD, "qkv_backward_units", MEMORY, false)                                     \
    MEASURE(ATTENTION_BACKWARD, "attention_backward_units", MEMORY, false)                         \
    MEASURE(FFN_BACKWARD, "ffn_backward_units", MEMORY, false)                                     \
    MEASURE(FITS, "fits", MEMORY, false) /* 1 or 0 */                                              \
    MEASURE(LONGEST, "longest_tokens", LONGEST, false)

enum measure {
#define MEASURE(symbol, name, question, needs_fit) MEASURE_##symbol,
    CELL_MEASURES(MEASURE)
#undef MEASURE
        MEASURE_COUNT
};

bool measure_find(const char *name, enum measure *measure);
enum cell_question measure_needed_question(enum measure measure);
/* Returns whether the measure has a value only if the step fits in memory. */
bool measure_needs_fit(enum measure measure);
/* Appends the names of all measures for a message: "step_s, tokens_per_s_gpu, ...". */
void measure_put_names(struct text *out);

/* The answer of a cell. It has no pointers, because it is passed between processes. */
struct cell_answer {
    bool has_succeeded;
    char error[200]; /* the message, if has_succeeded is false */
    bool fits;
    char missing_memory_name[96]; /* if it does not fit: the memory that does not suffice */
    double value[MEASURE_COUNT];  /* NAN: the value is not known */
};

/* Answers the question about the setup's request. unfit_too: a step that does not fit in memory is simulated, too. */
void cell_predict(struct cell_answer *answer, const struct setup *setup,
                  enum cell_question question, bool unfit_too);

/* Sets *answer to a failure, with the first message of diag as its error. */
void cell_set_error(struct cell_answer *answer, const struct diag *diag);

#endif
