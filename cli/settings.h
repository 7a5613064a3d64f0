/* cli/settings.h: a configuration as the settings of a training framework, with what the framework
 * cannot express. docs/planning.md names the versions and where each setting is defined. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "base/text.h"
#include "schedule/compose.h"

enum framework {
    FRAMEWORK_TORCHTITAN, /* a TOML file */
    FRAMEWORK_MEGATRON,   /* arguments of pretrain_gpt.py */
    FRAMEWORK_DEEPSPEED,  /* the JSON configuration, and arguments of Megatron-DeepSpeed */
    FRAMEWORK_COUNT
};
extern const char *const framework_names[FRAMEWORK_COUNT];

/* Appends the settings; lines that begin with '#' say what is left out. */
void settings_print(struct text *out, enum framework framework, const struct choices *choices);

#endif
