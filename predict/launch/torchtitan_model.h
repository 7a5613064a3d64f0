/* predict/launch/torchtitan_model.h: the models that torchtitan knows by flavors, and its recipes. */
#ifndef PREDICT_LAUNCH_TORCHTITAN_MODEL_H
#define PREDICT_LAUNCH_TORCHTITAN_MODEL_H

#include "predict/launch/launch_parts.h"

/* Sets the fields that name a model. launch_check_torchtitan_has_flavor() must have accepted it. */
void torchtitan_set_model_fields(struct launch *launch, const struct transformer *model);

/* Sets the fields that the recipe of --config gives, except those that settings give. Does nothing without --config.
 * Fails if the recipe is not known. */
enum status torchtitan_set_recipe_fields(struct launch *launch, struct diag *diag);

/* Adds the option "model" for the flavor that the fields name, or a remark if there is none or its sizes are not known.
 * Does nothing if the model is given otherwise. */
void torchtitan_add_model_options(struct launch *launch, struct launch_known_facts given);

#endif
