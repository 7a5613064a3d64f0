/* cli/manual.h: prints the manual page, longhaul(1), from the tables of commands and options. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "base/text.h"

void manual_print(struct text *out);

#endif
