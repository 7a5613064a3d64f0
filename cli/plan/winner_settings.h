/* cli/plan/winner_settings.h: prints the settings of the configuration that `plan --emit` writes, and how far it is
 * from the best of all. */
#ifndef CLI_PLAN_WINNER_SETTINGS_H
#define CLI_PLAN_WINNER_SETTINGS_H

#include "base/text.h"
#include "predict/plan/best.h"
#include "predict/plan/expressible.h"

/* Prints the settings of a request: a line with the number of GPUs, and then those of cli/plan/settings.h. */
enum status plan_print_settings_of_request(struct text *out, enum framework framework,
                                           const struct request *request, struct diag *diag);

/* Prints the framework's settings for the best configuration that the framework can express: the winner in `all` if it
 * can, else the best of a second search among such configurations. Returns STATUS_NO if none of these fits; the text
 * then names the winner in `all`, which must have one. */
enum status plan_print_best_expressible_settings(struct text *out, enum framework framework,
                                                 const struct best *all, struct setup *setup,
                                                 struct space_open open, struct diag *diag);

/* Prints the settings of the winner itself, after comment lines with what it reaches and its prediction. */
enum status plan_print_settings_of_winner(struct text *out, enum framework framework,
                                          const struct best *all, struct diag *diag);

/* Prints the settings of the best configuration that a search had found when a signal or --within ended it, and a line
 * that says so. It is the best of all if `winner`, else the best of those that the framework can express. Returns
 * STATUS_NO if none had been found that fits. */
enum status plan_print_settings_if_interrupted(struct text *out, enum framework framework,
                                               const struct best *all, struct space_open open,
                                               bool winner, struct diag *diag);

#endif
