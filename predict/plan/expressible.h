/* predict/plan/expressible.h: which of the modelled choices a training framework has settings for.
 *
 * Tables (predict/plan/gaps.h) have a row for each choice that a framework cannot express, with the reason. The rows
 * that apply to a configuration are printed as comments above its settings, and a search may be restricted to
 * configurations to which no row applies. The rows of gaps_models.c restrict no search: most are about the model, which
 * no choice changes. docs/planning.md names the versions and the source of each rule. */
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

/* True if the framework has settings that mean these choices. Rows of gaps_models.c do not count. */
bool expressible_by_framework(enum framework framework, const struct choices *choices);

/* Fails if the framework cannot express the choices. The error names each choice that it cannot express. */
enum status expressible_check(enum framework framework, const struct choices *choices,
                              struct diag *diag);

/* Appends the choices, and the properties of the model, that the framework cannot express, as lines that begin with
 * '#'. Appends nothing if there are none. */
void expressible_put_gaps(struct text *out, enum framework framework,
                          const struct choices *choices);

/* Returns the name of the profile that models how a framework runs a strategy, for use if the user names no profile. */
const char *expressible_default_profile(enum framework framework, const struct strategy *strategy);

/* ---- facts about choices that settings and rules both need ---- */
/* Returns over how many ranks the same weights may be shared: the ranks of a stage divided by its tensor ranks. */
uint32_t expressible_weight_sharing_ranks(const struct choices *choices);
/* True if activations are recomputed in the backward: for all choices of activations but `keep` and `ratio`. */
bool expressible_choices_recompute(const struct choices *choices);
/* True if Trainer's family (Axolotl, LLaMA-Factory, TRL) runs the choices under DDP: every rank holds all weights, the
 * optimizer is on the device, and ranks share only the batch. */
bool expressible_is_ddp(const struct choices *choices);
/* True if Trainer's family runs the choices by DeepSpeed, and not by FSDP or DDP. */
bool expressible_needs_deepspeed(const struct choices *choices);
/* True if HSDP shards over a number of ranks that is no multiple of those that share a sequence (cp x hp), for example
 * over fewer. FSDP cannot do that. */
bool expressible_hsdp_cuts_sequence_ranks(const struct choices *choices);

#endif
