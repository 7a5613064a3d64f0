/* predict/launch/megatron_model.h: the arguments that Megatron-LM and Megatron-DeepSpeed share: the model, the batch,
 * and those without an effect on a step. */
#ifndef PREDICT_LAUNCH_MEGATRON_MODEL_H
#define PREDICT_LAUNCH_MEGATRON_MODEL_H

#include "predict/launch/launch_parts.h"

/* Sets the fields of a model that both frameworks call by the same name: sizes, SwiGLU, biases, the head, the base of
 * rotary embeddings. */
void megatron_model_fields(struct launch *launch, const struct transformer *model);
/* Sets the fields of length, batch, tensor ranks and stages. */
void megatron_batch_fields(struct launch *launch, const struct choices *choices);

/* Adds the option "model"; settings that no file gives have the defaults of the two frameworks. */
enum status megatron_model_options(struct launch *launch, struct launch_given given,
                                   struct diag *diag);
/* Adds the options seq, batch and micro-batch. */
void megatron_batch_options(struct launch *launch);
/* Fails unless every degree is at least 1 and their product divides the number of GPUs. */
enum status megatron_check_degrees(const struct launch *launch, struct launch_given given,
                                   const struct launch_degrees *degrees, struct diag *diag);

/* Rows of arguments that have no effect on a predicted step: data, learning rates, checkpoints on disk, evaluation
 * and logs; also clipping and the like, whose cost is the same in every configuration. */
#define MEGATRON_ROW(name)                                                                         \
    {                                                                                              \
        name, LAUNCH_IGNORED, LAUNCH_TEXT, LAUNCH_FIELDS, NULL, NULL                               \
    }
#define MEGATRON_IGNORED                                                                           \
    MEGATRON_ROW("--train-*"), MEGATRON_ROW("--lr*"), MEGATRON_ROW("--min-lr"),                    \
        MEGATRON_ROW("--override-*"), MEGATRON_ROW("--weight-decay*"), MEGATRON_ROW("--adam-*"),   \
        MEGATRON_ROW("--clip-grad"), MEGATRON_ROW("--init-method-*"), MEGATRON_ROW("--seed"),      \
        MEGATRON_ROW("--data-*"), MEGATRON_ROW("--vocab-file"), MEGATRON_ROW("--tokenizer-*"),     \
        MEGATRON_ROW("--split"), MEGATRON_ROW("--num-workers"), MEGATRON_ROW("--num-dataset-*"),   \
        MEGATRON_ROW("--log-*"), MEGATRON_ROW("--tensorboard-*"), MEGATRON_ROW("--wandb-*"),       \
        MEGATRON_ROW("--timing-*"), MEGATRON_ROW("--save*"), MEGATRON_ROW("--load*"),              \
        MEGATRON_ROW("--eval-*"), MEGATRON_ROW("--exit-*"), MEGATRON_ROW("--distributed-*"),       \
        MEGATRON_ROW("--initial-loss-scale"), MEGATRON_ROW("--loss-scale*"),                       \
        MEGATRON_ROW("--min-loss-scale"), MEGATRON_ROW("--hysteresis"),                            \
        MEGATRON_ROW("--no-query-key-layer-scaling"), MEGATRON_ROW("--apply-query-key-*"),         \
        MEGATRON_ROW("--make-vocab-size-divisible-by"),                                            \
        MEGATRON_ROW("--no-masked-softmax-fusion"), MEGATRON_ROW("--no-bias-*"),                   \
        MEGATRON_ROW("--accumulate-*"), MEGATRON_ROW("--no-mmap-*"), MEGATRON_ROW("--mmap-*"),     \
        MEGATRON_ROW("--no-load-optim"), MEGATRON_ROW("--finetune"), MEGATRON_ROW("--sft"),        \
        MEGATRON_ROW("--dataloader-type"), MEGATRON_ROW("--eod-mask-loss"),                        \
        MEGATRON_ROW("--reset-position-ids"), MEGATRON_ROW("--async-save"),                        \
        MEGATRON_ROW("--no-async-tensor-model-parallel-allreduce"),                                \
        MEGATRON_ROW("--extra-vocab-size")

#endif
