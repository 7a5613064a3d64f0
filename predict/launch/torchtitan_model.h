/* predict/launch/torchtitan_model.h: the models that torchtitan knows by flavors, and its recipes. */
#ifndef PREDICT_LAUNCH_TORCHTITAN_MODEL_H
#define PREDICT_LAUNCH_TORCHTITAN_MODEL_H

#include "predict/launch/launch_parts.h"

/* Sets the fields of a model. The caller has checked that there is a flavor of it. */
void torchtitan_model_fields(struct launch *launch, const struct transformer *model);

/* Sets what the recipe of --config gives; settings stand above it. Fails if the recipe is not known. */
enum status torchtitan_model_recipe(struct launch *launch, struct diag *diag);

/* Adds the option "model" of a flavor, or a remark if its sizes are not known. */
enum status torchtitan_model_options(struct launch *launch, struct launch_given given,
                                     struct diag *diag);

#endif
