#include "predict/launch/formats.h"

#include "base/arena.h"

#include <string.h>

#define FRAMEWORK_OF_UNREAD_FORMAT LAUNCH_FRAMEWORK_COUNT

/* The columns are the members of struct launch_format: name, framework, keys, arguments, programs, advice_instead.
 * Formats that are not read come first, since some of them have keys of Trainer besides their own. Sources: the
 * configuration classes and examples of each program, in 2026: axolotl/utils/schemas, verl/trainer/config,
 * llamafactory/hparams, swift/arguments, openrlhf/cli, torchtune/config, litgpt/finetune, nemo and nemo_rl
 * (examples/configs), megatron/neox_arguments of GPT-NeoX, nanotron/config, MaxText/configs/base.yml,
 * levanter/main/train_lm.py, examples/configs of prime-rl. */
/* clang-format off */
static const struct launch_format formats[] = {
    {"torchtune", FRAMEWORK_OF_UNREAD_FORMAT,
     "tokenizer._component_ model._component_ optimizer._component_", NULL, "tune torchtune",
     "give its settings as options: the model's config.json as --model, tokenizer.max_seq_len as --seq, batch_size as "
     "--micro-batch, with --profile torchtitan --weights zero3"},
    {"LitGPT", FRAMEWORK_OF_UNREAD_FORMAT,
     "train.micro_batch_size train.global_batch_size", NULL, "litgpt",
     "give its settings as options: the model as --model, train.max_seq_length as --seq, train.micro_batch_size as "
     "--micro-batch, train.global_batch_size as --batch, with --profile hf --weights zero3"},
    {"NeMo", FRAMEWORK_OF_UNREAD_FORMAT,
     "trainer.devices trainer.num_nodes model.micro_batch_size model.tensor_model_parallel_size policy.train_micro_batch_size "
     "cluster.gpus_per_node",
     NULL, "nemo_rl nemo_automodel",
     "give its settings as options: the model as --model, the length as --seq, micro_batch_size as --micro-batch, "
     "global_batch_size as --batch, tensor_model_parallel_size as --tp, pipeline_model_parallel_size as --pp, "
     "context_parallel_size as --cp, with --profile megatron"},
    {"GPT-NeoX", FRAMEWORK_OF_UNREAD_FORMAT,
     "pipe_parallel_size pipe-parallel-size model_parallel_size model-parallel-size", NULL, "deepy.py gpt-neox",
     "give its settings as options: num_layers, hidden_size and the like as --model layers=...,hidden=..., seq_length as "
     "--seq, train_micro_batch_size_per_gpu as --micro-batch, pipe_parallel_size as --pp, model_parallel_size as --tp, "
     "with --profile deepspeed"},
    {"MaxText", FRAMEWORK_OF_UNREAD_FORMAT,
     "base_emb_dim base_num_decoder_layers ici_fsdp_parallelism dcn_data_parallelism max_target_length", NULL, "MaxText maxtext",
     "give its settings as options: base_emb_dim and the like as --model layers=...,hidden=..., max_target_length as "
     "--seq, per_device_batch_size as --micro-batch, with --weights zero3"},
    {"Levanter", FRAMEWORK_OF_UNREAD_FORMAT,
     "trainer.train_batch_size trainer.mp", NULL, "levanter",
     "give its settings as options: model as --model, the length as --seq, trainer.train_batch_size as --batch, with "
     "--weights zero3"},
    {"ColossalAI", FRAMEWORK_OF_UNREAD_FORMAT, NULL, NULL, "colossalai colossal_llama",
     "give its settings as options: --model, --seq, --micro-batch, --tp, --pp, --zero"},
    {"xtuner", FRAMEWORK_OF_UNREAD_FORMAT, NULL, NULL, "xtuner",
     "give its settings as options: --model, --seq, --micro-batch, with --profile hf or deepspeed"},
    {"Composer", FRAMEWORK_OF_UNREAD_FORMAT, NULL, NULL, "composer", "give the YAML file that the command names"},
    {"Kubernetes", FRAMEWORK_OF_UNREAD_FORMAT, "apiVersion", NULL, NULL,
     "give the command that its container runs, between quotes, or the script"},
    {"SkyPilot", FRAMEWORK_OF_UNREAD_FORMAT, "resources.accelerators", NULL, NULL,
     "give the command under run, between quotes, or the script"},
    {"Docker Compose", FRAMEWORK_OF_UNREAD_FORMAT, "services.", NULL, NULL,
     "give the command that the service runs, between quotes, or the script"},

    {"Accelerate", LAUNCH_ACCELERATE, "distributed_type compute_environment", NULL, NULL, NULL},
    {"llm-foundry", LAUNCH_FOUNDRY, "device_train_microbatch_size global_train_batch_size", NULL, NULL, NULL},
    {"torchtitan", LAUNCH_TORCHTITAN,
     "training.seq_len training.local_batch_size training.batch_size training.global_batch_size training.steps "
     "training.data_parallel_* training.tensor_parallel_degree training.compile training.dtype training.dataset "
     "training.enable_cpu_offload training.mixed_precision_* parallelism. activation_checkpoint. experimental. model.flavor "
     "job.dump_folder job.description job.config_file",
     "--training.* --parallelism.* --model.flavor --job.* --activation_checkpoint.* --experimental.*", "torchtitan run_train.sh", NULL},
    {"Megatron-LM", LAUNCH_MEGATRON, NULL,
     "--num-layers --seq-length --tensor-model-parallel-size --pipeline-model-parallel-size --micro-batch-size "
     "--global-batch-size --hidden-size --context-parallel-size",
     NULL, NULL},
    {"TRL or Trainer", LAUNCH_TRAINER,
     "model_name_or_path per_device_train_batch_size num_train_epochs",
     "--model_name_or_path --per_device_train_batch_size --num_train_epochs --model-name-or-path "
     "--per-device-train-batch-size --num-train-epochs",
     NULL, NULL},
    {"DeepSpeed", LAUNCH_DEEPSPEED_JSON,
     "train_batch_size train_micro_batch_size_per_gpu zero_optimization. fp16.enabled bf16.enabled bfloat16.enabled",
     NULL, NULL, NULL},
    {"a program under DeepSpeed", LAUNCH_LAUNCHER_PROGRAM, NULL, "--deepspeed_config --deepspeed", NULL, NULL},
};
/* clang-format on */

const struct launch_format *launch_formats(size_t *count)
{
    *count = ARRAY_LEN(formats);
    return formats;
}

enum status launch_format_error_unread(const struct launch_format *format, struct loc at,
                                       struct diag *diag)
{
    if (format != NULL)
        return diag_error(diag, at, STATUS_BAD_INPUT, "this is of %s, which is not read; %s",
                          format->name, format->advice_instead);
    return diag_error(
        diag, at, STATUS_BAD_INPUT,
        "this is of no program that is read: torchtitan's files have training.seq_len "
        "or parallelism, Accelerate's distributed_type, TRL's and Trainer's "
        "model_name_or_path or per_device_train_batch_size, llm-foundry's "
        "global_train_batch_size, DeepSpeed's zero_optimization or "
        "train_micro_batch_size_per_gpu, and arguments of Megatron-LM --num-layers or "
        "--seq-length");
}
