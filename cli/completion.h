/* cli/completion.h: completion scripts for bash and zsh, made from the tables of commands and options. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "base/text.h"

void completion_print_bash(struct text *out);
void completion_print_zsh(struct text *out);

#endif
