/* sim/waterfall.h: the seconds of one rank's step, divided among causes.
 *
 * While a compute stream works, the causes follow from the purpose of its kernel and from the kernel's time at the
 * device's peak; kernels that run at once share the time equally. While none works, the cause is the dependency of
 * the next compute op that ended last; before the start of that dependency it is the last dependency of that one, and
 * so on until the gap is filled. After the last compute op the cause is the op that the rank ended last, and from the
 * end of that op on the cause is the drain of a pipeline, or the other ranks. The intervals tile [0, step], so the
 * causes add up to the step. docs/simulation.md, "Waterfall", has the rules. */
#ifndef SIM_WATERFALL_H
#define SIM_WATERFALL_H

#include "schedule/ir/ir.h"
#include "sim/sim.h"

enum cause {
    /* the time that the flops of the model take at the device's peak. Its mean over all ranks, divided by the step, is
     * MFU by convention longhaul */
    CAUSE_USEFUL,
    /* flops on pairs that the mask hides. It is always 0: work_flops() counts only visible pairs, so the time that a
     * kernel spends on others is part of CAUSE_INEFFICIENCY */
    CAUSE_MASKED_PAIRS,
    /* all kernels of phase recompute; and, at peak, flops that are computed twice: the scores in attention's backward,
     * what several tensor ranks duplicate, and padding rows of the vocabulary */
    CAUSE_RECOMPUTE,
    CAUSE_INEFFICIENCY, /* for kinds of work that have flops: the time beyond flops / peak */
    CAUSE_MEMORY_BOUND, /* kinds without flops */
    CAUSE_OPTIMIZER,    /* kernels of phase optimizer; waiting for an optimizer step on the host */
    CAUSE_ALL_TO_ALL,   /* all-to-alls. In this cause and those after it no compute op runs */
    CAUSE_RING,         /* shifts and exchanges of rows; sends and receives inside attention */
    CAUSE_WEIGHT_COLLECTIVES, /* gathers, reductions, broadcasts and scatters of parameters, gradients */
    CAUSE_OTHER_COLLECTIVES, /* other gathers, reductions, broadcasts and scatters between devices */
    CAUSE_PIPELINE_FILL,     /* other sends and receives, before the first backward kernel */
    /* sends and receives of pipelines after the last forward kernel, and the wait of stages that finish early */
    CAUSE_PIPELINE_DRAIN,
    /* sends and receives of pipelines between those of CAUSE_PIPELINE_FILL and CAUSE_PIPELINE_DRAIN: stages are not
     * equally loaded */
    CAUSE_PIPELINE_IMBALANCE,
    /* waiting because other ranks' documents have more visible pairs (waterfall_attribute_documents()); 0 unless that
     * was called */
    CAUSE_DOCUMENT_IMBALANCE,
    CAUSE_OFFLOAD, /* copies between device and host, collectives on such data, host work */
    CAUSE_HOST,    /* the host issues ops; host_sync and barrier ops */
    /* for a rank that is in no pipeline: waiting for other ranks after its own last op. For all ranks: the seconds that
     * jitter adds (sim/jitter.h) */
    CAUSE_OTHER,
    CAUSE_COUNT
};

struct waterfall {
    double step_s;
    double cause_s[CAUSE_COUNT];
};

/* The device's peak, and the shares of a kernel's flops that the model does not need. */
struct waterfall_peak {
    double flop_per_s; /* the device's, finite and above 0 */
    /* The shares of the flops of matrix products in layers, and in the head, that the model does not need: tensor ranks
     * that hold the same key and value heads all project them, and padding rows of the vocabulary stand for no token
     * (step_redundant_product_shares()). */
    double layers_repeated_share, head_repeated_share;
};

/* Fills the waterfall of one rank from a simulated step. */
void waterfall_make(struct waterfall *waterfall, const struct ir *ir,
                    const struct sim_result *result, struct waterfall_peak peak, uint32_t rank);

/* Moves to CAUSE_DOCUMENT_IMBALANCE the time by which the rank waits longer than in `uniform`, the waterfall of the
 * same rank and schedule with equally many visible pairs on all ranks. The time is taken proportionally from those
 * causes of waiting that are longer than in `uniform`. Nothing moves if the rank does not wait longer. */
void waterfall_attribute_documents(struct waterfall *waterfall, const struct waterfall *uniform);

/* True if the causes add up to the step. In a short list they may not; then they are not valid for the whole list. */
bool waterfall_adds_up(const struct waterfall *waterfall);

/* Returns the name of a cause: "all-to-all". CSV and JSON have it with underlines (result_name_of_cause()). */
const char *cause_name(enum cause cause);

/* Returns the label of a cause in all output for people: "waiting for all-to-all". */
const char *cause_label(enum cause cause);

#endif
