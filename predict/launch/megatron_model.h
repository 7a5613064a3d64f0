/* predict/launch/megatron_model.h: the arguments that Megatron-LM and Megatron-DeepSpeed share: those of the model and
 * of the batch, those that are not modelled, and those without an effect on a step. */
#ifndef PREDICT_LAUNCH_MEGATRON_MODEL_H
#define PREDICT_LAUNCH_MEGATRON_MODEL_H

#include "predict/launch/launch_parts.h"

/* Sets the fields of a model that Megatron-LM and Megatron-DeepSpeed call by the same name: sizes, SwiGLU, biases, the
 * head, the epsilon of norms, and the base of rotary embeddings. */
void megatron_set_model_fields(struct launch *launch, const struct transformer *model);
/* Sets the fields of length, batch, tensor ranks and stages. */
void megatron_set_size_fields(struct launch *launch, const struct choices *choices);

/* Adds the option "model", if files give the layers or the hidden size of a model. Then they must also give the other
 * one of the two, and the heads; all else that no file gives has the defaults of Megatron-LM and Megatron-DeepSpeed. */
enum status megatron_add_model_options(struct launch *launch, struct launch_known_facts given,
                                       struct diag *diag);
/* Adds the options seq, batch and micro-batch, as far as files give them; micro-batch only if it is above 1. The batch
 * counts each answer to a prompt (LAUNCH_ANSWERS) as a sequence. */
void megatron_add_batch_options(struct launch *launch);
/* Fails unless every degree and their product are from 1 to 2^20, and the product divides the number of GPUs, if that
 * is known. */
enum status megatron_check_degrees(const struct launch *launch, struct launch_known_facts given,
                                   const struct launch_degrees *degrees, struct diag *diag);

#endif
