/* cli/plan/winner_settings.h: which configuration plan --emit writes, and how far it is from the best of all. */
#ifndef CLI_PLAN_WINNER_SETTINGS_H
#define CLI_PLAN_WINNER_SETTINGS_H

#include "base/text.h"
#include "predict/plan/best.h"
#include "predict/plan/expressible.h"

/* Settings of a request: a line with the number of GPUs, then cli/plan/settings.h. */
enum status plan_settings_print(struct text *out, enum framework framework,
                                const struct request *request, struct diag *diag);

/* Settings of the best configuration that the framework expresses: of all's winner where that is one, else
 * of a search of its own. STATUS_NO: none fits; the text says what the winner is. all has a winner. */
enum status plan_settings_of_best(struct text *out, enum framework framework,
                                  const struct best *all, struct setup *setup,
                                  struct space_open open, struct diag *diag);

/* Settings of the winner itself, with what it reaches. */
enum status plan_settings_of_winner(struct text *out, enum framework framework,
                                    const struct best *all, struct diag *diag);

#endif
