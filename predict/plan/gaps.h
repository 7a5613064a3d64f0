/* predict/plan/gaps.h: the tables of predict/plan/expressible.h: choices and models that frameworks have no settings
 * for, or only settings that mean something else. Each source has the rows of one subject, and the functions that
 * recognise them. */
#ifndef PREDICT_PLAN_GAPS_H
#define PREDICT_PLAN_GAPS_H

#include "base/arena.h"
#include "predict/plan/expressible.h"

#include <stddef.h>

enum {
    TITAN = 1 << FRAMEWORK_TORCHTITAN,
    MEGATRON = 1 << FRAMEWORK_MEGATRON,
    SPEED = 1 << FRAMEWORK_DEEPSPEED,
    AXOLOTL = 1 << FRAMEWORK_AXOLOTL,
    FACTORY = 1 << FRAMEWORK_LLAMA_FACTORY,
    TRL = 1 << FRAMEWORK_TRL,
    TRAINER = AXOLOTL | FACTORY | TRL,
    ALL = TITAN | MEGATRON | SPEED | TRAINER
};

struct expression_gap {
    unsigned frameworks; /* those that cannot express what is_chosen() recognises */
    bool (*is_chosen)(const struct choices *c);
    const char *description;
};

struct expression_gaps {
    const struct expression_gap *row;
    size_t count;
};
/* ---- rows about choices; gaps_of_models: about models ---- */
extern const struct expression_gaps gaps_of_sequence, gaps_of_weights, gaps_of_work;
extern const struct expression_gaps gaps_of_models;

/* ---- what rows of several subjects depend on ---- */
bool gaps_has_ring(const struct choices *c);
bool gaps_has_head_ranks(const struct choices *c);
bool gaps_has_tensor_ranks(const struct choices *c);
bool gaps_has_fpdt_chunks(const struct choices *c);
bool gaps_has_host_optimizer(const struct choices *c);
bool gaps_has_zero2(const struct choices *c);
bool gaps_has_bf16_states(const struct choices *c);
/* True if parameters stay in bf16 when neither FSDP nor DeepSpeed is used; Axolotl loads all models in the type in
 * which it computes. */
bool gaps_has_bf16_parameters(const struct choices *c);

#endif
