/* predict/plan/expressible.h: which of the modelled choices a training framework has settings for.
 *
 * One table says which choices a framework cannot express, and why. The printed settings list the rows that apply as
 * comments, and a search may be restricted to choices that no row excludes. Rows about the model are separate, since
 * no other choice could express the model either. docs/planning.md names the versions and the source of each rule. */
#ifndef PREDICT_PLAN_EXPRESSIBLE_H
#define PREDICT_PLAN_EXPRESSIBLE_H

#include "base/diag.h"
#include "base/text.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

#include <stdbool.h>

enum framework {
    FRAMEWORK_TORCHTITAN,    /* a TOML file */
    FRAMEWORK_MEGATRON,      /* arguments of pretrain_gpt.py */
    FRAMEWORK_DEEPSPEED,     /* the JSON configuration, and arguments of Megatron-DeepSpeed */
    FRAMEWORK_AXOLOTL,       /* a YAML file */
    FRAMEWORK_LLAMA_FACTORY, /* a YAML file */
    FRAMEWORK_TRL,           /* the command `accelerate launch` of its SFT script */
    FRAMEWORK_COUNT
};
extern const char *const framework_names[FRAMEWORK_COUNT];

/* True if the framework has settings that mean these choices, whatever the model. */
bool expressible_is(enum framework framework, const struct choices *choices);

/* Fails if the framework cannot express the choices, and names each that it cannot. */
enum status expressible_check(enum framework framework, const struct choices *choices,
                              struct diag *diag);

/* Appends the choices that the framework cannot express, as lines that begin with '#'. */
void expressible_put_gaps(struct text *out, enum framework framework,
                          const struct choices *choices);

/* Returns the name of the profile that models how a framework runs a strategy, for use if the user names no profile. */
const char *expressible_default_profile(enum framework framework, const struct strategy *strategy);

/* ---- facts about choices that settings and rules both need ---- */
/* Returns how many ranks hold the same weights: the ranks of a stage over its tensor ranks. */
uint32_t expressible_weight_sharing_ranks(const struct choices *choices);
/* True if activations are recomputed, false if they are saved. */
bool expressible_recomputes(const struct choices *choices);
/* True if Trainer's family runs the choices under DDP: every rank holds all weights, and nothing but the batch is
 * shared. */
bool expressible_is_ddp(const struct choices *choices);
/* True if Trainer's family runs the choices by DeepSpeed, and not by FSDP or DDP. */
bool expressible_needs_zero(const struct choices *choices);
/* True if HSDP shards over fewer ranks than share a sequence (cp x hp), or over a number that is not a multiple of it,
 * which FSDP cannot do. */
bool expressible_has_small_shards(const struct choices *choices);

#endif
