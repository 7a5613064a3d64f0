/* predict/setup/core_plan_option.h: --core-plan: the name of a rule, or the file of a plan. */
#ifndef PREDICT_SETUP_CORE_PLAN_OPTION_H
#define PREDICT_SETUP_CORE_PLAN_OPTION_H

#include "predict/setup/setup.h"

/* Reads the text of --core-plan (NULL: none) into the request. Fails if it is neither a rule, nor `all`, nor a file. A
 * file's plan is verified; the request then gets the documents of its sequences, with the owners of their tokens and
 * the plan's tiles, and, if it has no number of sequences, the plan's. */
enum status core_plan_option_read(struct setup *setup, const char *text, struct diag *diag);

/* True for the text `all`, which asks for a search of all rules. */
bool core_plan_option_is_all(const char *text);

#endif
