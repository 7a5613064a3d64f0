/* predict/launch/torchtitan_model.h: the models that torchtitan knows by flavors, and its recipes. */
#ifndef PREDICT_LAUNCH_TORCHTITAN_MODEL_H
#define PREDICT_LAUNCH_TORCHTITAN_MODEL_H

#include "predict/launch/launch_parts.h"

/* Sets the fields of a model. The caller has checked that there is a flavor of it. */
void torchtitan_set_model_fields(struct launch *launch, const struct transformer *model);

/* Sets the fields that the recipe of --config gives, unless settings give them. Fails if the recipe is not known. */
enum status torchtitan_set_recipe_fields(struct launch *launch, struct diag *diag);

/* Adds the option "model" of a flavor, or a remark if its sizes are not known. */
enum status torchtitan_add_model_options(struct launch *launch, struct launch_given given,
                                         struct diag *diag);

#endif
