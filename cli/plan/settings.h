/* cli/plan/settings.h: prints a configuration as the settings of a training framework, and the choices that the
 * framework cannot express (predict/plan/expressible.h). The settings are the rows of predict/launch, which can read
 * them again. docs/planning.md names the versions and where each setting is defined. */
#ifndef CLI_PLAN_SETTINGS_H
#define CLI_PLAN_SETTINGS_H

#include "base/text.h"
#include "predict/plan/expressible.h"
#include "schedule/choices/choices.h"

/* Appends the settings of a framework. torchtitan, Megatron and DeepSpeed: choices that they cannot express are named
 * in lines that begin with '#', and the nearest settings are written. Fails if Axolotl, LLaMA-Factory or TRL cannot
 * express a choice. */
enum status settings_print(struct text *out, enum framework framework,
                           const struct choices *choices, struct diag *diag);

#endif
