/* predict/plan/gaps.h: the tables of predict/plan/expressible.h. A row is a gap: a choice, or a property of a model,
 * that frameworks have no settings for, or only settings that mean something else. gaps_models.c, gaps_sequence.c,
 * gaps_weights.c and gaps_work.c each have the table of one subject, and functions that recognise the configurations to
 * which a row applies. The functions are named after what they recognise. */
#ifndef PREDICT_PLAN_GAPS_H
#define PREDICT_PLAN_GAPS_H

#include "base/arena.h"
#include "predict/plan/expressible.h"

#include <stddef.h>

enum {
    IN_TORCHTITAN = 1 << FRAMEWORK_TORCHTITAN,
    IN_MEGATRON = 1 << FRAMEWORK_MEGATRON,
    IN_DEEPSPEED = 1 << FRAMEWORK_DEEPSPEED,
    IN_AXOLOTL = 1 << FRAMEWORK_AXOLOTL,
    IN_LLAMA_FACTORY = 1 << FRAMEWORK_LLAMA_FACTORY,
    TRL = 1 << FRAMEWORK_TRL,
    IN_TRAINER_FAMILY = IN_AXOLOTL | IN_LLAMA_FACTORY | TRL,
    ALL = IN_TORCHTITAN | IN_MEGATRON | IN_DEEPSPEED | IN_TRAINER_FAMILY
};

struct expression_gap {
    unsigned frameworks; /* those that have the gap, as bits of the enum above */
    bool (*is_chosen)(const struct choices *c); /* whether the gap concerns a configuration */
    const char *description; /* what is not expressed, and what the settings mean instead */
};

struct expression_gaps {
    const struct expression_gap *row;
    size_t count;
};
/* The tables whose rows are about choices, and the one whose rows are mostly about models (gaps_models.c). */
extern const struct expression_gaps gaps_of_sequence, gaps_of_weights, gaps_of_work;
extern const struct expression_gaps gaps_of_models;

/* ---- functions that rows of several tables use ---- */
bool gaps_has_ring(const struct choices *c);
bool gaps_has_head_ranks(const struct choices *c);
bool gaps_has_tensor_ranks(const struct choices *c);
bool gaps_has_fpdt_chunks(const struct choices *c);
bool gaps_has_host_optimizer(const struct choices *c);
bool gaps_has_zero2(const struct choices *c);
bool gaps_has_bf16_states(const struct choices *c);
/* True if Axolotl would train bf16 parameters: it loads models in the dtype in which it computes, and under DDP they
 * stay so, while FSDP and DeepSpeed make them fp32. */
bool gaps_has_bf16_parameters(const struct choices *c);

#endif
