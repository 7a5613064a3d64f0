/* predict/plan/expressible.h: what a training framework has settings for, as far as choices are modelled here.
 *
 * One table says which choices a framework cannot express, and why. Settings list its rows in comments, and
 * a search may be restricted to choices that break none. Rows about the model stand apart: no other choice
 * would express that either. docs/planning.md names the versions and where each rule is from. */
#ifndef PREDICT_PLAN_EXPRESSIBLE_H
#define PREDICT_PLAN_EXPRESSIBLE_H

#include "base/text.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

#include <stdbool.h>

enum framework {
    FRAMEWORK_TORCHTITAN, /* a TOML file */
    FRAMEWORK_MEGATRON,   /* arguments of pretrain_gpt.py */
    FRAMEWORK_DEEPSPEED,  /* the JSON configuration, and arguments of Megatron-DeepSpeed */
    FRAMEWORK_COUNT
};
extern const char *const framework_names[FRAMEWORK_COUNT];

/* Whether it has settings that mean these choices, whatever the model. */
bool expressible(enum framework framework, const struct choices *choices);

/* Appends what it cannot express, as lines that begin with '#'; nothing where there is nothing. */
void expressible_put_gaps(struct text *out, enum framework framework,
                          const struct choices *choices);

/* The implementation that a framework runs a strategy with: the profile that is predicted where none is
 * asked for. */
const char *expressible_profile(enum framework framework, const struct strategy *strategy);

/* ---- what settings and rules both ask ---- */

/* Ranks that hold the same weights of a stage and its tensor ranks. */
uint32_t expressible_sharing(const struct choices *choices);
/* Whether activations are recomputed, or else kept. */
bool expressible_recomputes(const struct choices *choices);
/* Whether FSDP's shards, which hold all ranks of a sequence at the least, cannot be so small. */
bool expressible_has_small_shards(const struct choices *choices);

#endif
