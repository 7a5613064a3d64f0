/* The table of launchers' arguments, and the function that returns the table in C of a framework's settings. */
#include "predict/launch/launch_tables.h"

#include "base/arena.h"

static const char config_file[] = "this file is not read by itself: give it with --from";
static const char on_host[] =
    "parameters on the host: they stay on the device here, which needs more memory; "
    "--parameters host --optimizer host keeps them there";
static const char wrapping[] =
    "FSDP gathers a layer at a time here: larger units need more memory for gathered weights";

/* The arguments of launchers, which stand before the program. A '-' within a name is '_' here. Sources:
 * torch/distributed/run.py, deepspeed/launcher/runner.py, accelerate/commands/launch.py, and the manuals of srun and
 * mpirun. */
/* clang-format off */
static const struct launch_row launcher_rows[] = {
    {"--nproc_per_node",   SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--num_gpus",         SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--num_accelerators", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--gpus_per_node",    SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--ntasks_per_node",  SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--nnodes",           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_NODES, NULL, NULL},
    {"--num_nodes",        SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_NODES, NULL, NULL},
    {"--nodes",            SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_NODES, NULL, NULL},
    {"-N",                 SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_NODES, NULL, NULL},
    {"--num_machines",     SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_NODES, NULL, NULL},
    {"--num_processes",    SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_PROCESSES, NULL, NULL},
    {"--ntasks",           SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_TASKS, NULL, NULL},
    {"-n",                 SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_TASKS, NULL, NULL},
    {"-np",                SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_TASKS, NULL, NULL},
    {"--include",          SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_DEVICES, NULL, NULL},
    {"-i",                 SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_DEVICES, NULL, NULL},
    {"CUDA_VISIBLE_DEVICES", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_VISIBLE, NULL, NULL},
    {"--mixed_precision",  SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_DTYPE, NULL, NULL},
    {"--zero_stage",       SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_ZERO, NULL, NULL},
    {"--use_deepspeed",    SETS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED, NULL, NULL},
    {"--deepspeed",        SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED, NULL, NULL},
    {"--deepspeed_config", SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},
    {"--deepspeed_config_file", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_DEEPSPEED_CONFIG, NULL, NULL},
    {"--offload_optimizer_device", SETS, LAUNCH_TEXT, LAUNCH_OPTIMIZER_DEVICE, NULL, NULL},
    {"--gradient_accumulation_steps", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_ACCUMULATION, NULL, NULL},
    {"--use_fsdp",         SETS, LAUNCH_SWITCH, LAUNCH_FSDP, NULL, NULL},
    {"--fsdp_version",     SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_FSDP_VERSION, NULL, NULL},
    {"--fsdp_sharding_strategy", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_SHARDING, NULL, NULL},
    {"--fsdp_reshard_after_forward", SETS, LAUNCH_TEXT, LAUNCH_RESHARD, NULL, NULL},
    {"--fsdp_activation_checkpointing", SETS_AS_ALIAS, LAUNCH_SWITCH, LAUNCH_DEEPSPEED_CHECKPOINTS, NULL, NULL},
    {"--use_parallelism_config", SETS, LAUNCH_SWITCH, LAUNCH_MESH, NULL, NULL},
    {"--parallelism_config_dp_replicate_size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_REPLICATE, NULL, NULL},
    {"--parallelism_config_dp_shard_size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_DP_SHARD, NULL, NULL},
    {"--parallelism_config_tp_size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_TP, NULL, NULL},
    {"--parallelism_config_cp_size", SETS, LAUNCH_WHOLE_NUMBER, LAUNCH_CP, NULL, NULL},
    {"--parallelism_config_sp_size", SETS_AS_ALIAS, LAUNCH_WHOLE_NUMBER, LAUNCH_SP, NULL, NULL},
    {"--parallelism_config_cp_comm_strategy", SETS, LAUNCH_TEXT, LAUNCH_ROTATE, NULL, NULL},
    {"--parallelism_config_cp_backend", IGNORED}, {"--parallelism_config_sp_backend", IGNORED}, {"--parallelism_config_sp_seq_length*", IGNORED},
    {"--parallelism_config_sp_attn_implementation", SETS_AS_ALIAS, LAUNCH_TEXT, LAUNCH_ATTENTION, NULL, NULL},
    {"--fsdp_auto_wrap_policy", UNMODELLED, wrapping, "TRANSFORMER_BASED_WRAP"},
    {"--fsdp_min_num_params", UNMODELLED, wrapping, NULL},
    {"--fsdp_backward_prefetch*", UNMODELLED, "the next layer's weights are gathered ahead here, as FSDP2 always does", "BACKWARD_PRE"},
    {"--fsdp_forward_prefetch", UNMODELLED, "gathers are issued in the order of the layers here", NULL},

    {"--exclude",          UNMODELLED, "GPUs that are left out are not counted: give the number of GPUs with --gpus", NULL},
    {"-e",                 UNMODELLED, "GPUs that are left out are not counted: give the number of GPUs with --gpus", NULL},
    {"--hostfile",         UNMODELLED, "the nodes are in this file: give the GPUs with --gpus", NULL},
    {"-H",                 UNMODELLED, "the nodes are in this file: give the GPUs with --gpus", NULL},
    {"--machinefile",      UNMODELLED, "the nodes are in this file: give the GPUs with --gpus", NULL},
    {"--deepspeed_hostfile", UNMODELLED, "the nodes are in this file: give the GPUs with --gpus", NULL},
    {"--config_file",      UNMODELLED, config_file, NULL},
    {"--fsdp_offload_params", UNMODELLED, on_host, NULL},
    {"--offload_param_device", UNMODELLED, on_host, NULL},
    {"--dynamo_backend",   SETS_AS_ALIAS, LAUNCH_TEXT,  LAUNCH_COMPILER, NULL, NULL},
    {"--use_megatron_lm",  UNMODELLED, "Megatron-LM within Accelerate: give its arguments instead", NULL},
    {"--cpu",              UNMODELLED, "training on the CPU: GPUs are predicted", NULL},
    {"--tpu",              UNMODELLED, "training on TPUs: GPUs are predicted", NULL},
    {"--autotuning",       UNMODELLED, "DeepSpeed searches for the settings: those of the file are predicted", NULL},
    {"--elastic_training", UNMODELLED, "the batch follows from the number of GPUs: give it as --batch", NULL},
    {"-m", IGNORED}, {"--module", IGNORED}, {"--standalone", IGNORED}, {"--rdzv*", IGNORED}, {"--master_*", IGNORED}, {"--node_rank", IGNORED},
    {"--max_restarts", IGNORED}, {"--monitor_interval", IGNORED}, {"--role", IGNORED}, {"--local_addr", IGNORED}, {"--log*", IGNORED}, {"--tee", IGNORED},
    {"--redirects", IGNORED}, {"--start_method", IGNORED}, {"--no_python", IGNORED}, {"--run_path", IGNORED}, {"--multi_gpu", IGNORED},
    {"--machine_rank", IGNORED}, {"--main_*", IGNORED}, {"--same_network", IGNORED}, {"--num_cpu_threads_per_process", IGNORED}, {"--quiet", IGNORED},
    {"--gpu_ids", IGNORED}, {"--gradient_clipping", IGNORED}, {"--launcher*", IGNORED}, {"--no_ssh*", IGNORED}, {"--ssh_port", IGNORED},
    {"--force_multi", IGNORED}, {"--save_pid", IGNORED}, {"--enable_each_rank_log", IGNORED}, {"--bind_core*", IGNORED}, {"--no_local_rank", IGNORED},
    {"--job_name", IGNORED}, {"--output", IGNORED}, {"--error", IGNORED}, {"--partition", IGNORED}, {"--time", IGNORED}, {"--account", IGNORED},
    {"--mem", IGNORED}, {"--cpus_per_task", IGNORED}, {"--container_*", IGNORED}, {"-l", IGNORED}, {"-u", IGNORED}, {"-c", IGNORED},
    {"--fsdp_transformer_layer_cls_to_wrap", IGNORED}, {"--fsdp_state_dict_type", IGNORED}, {"--fsdp_use_orig_params", IGNORED},
    {"--fsdp_sync_module_states", IGNORED}, {"--fsdp_cpu_ram_efficient_loading", IGNORED},
};
/* clang-format on */

const struct launch_table *launch_table(enum launch_framework framework)
{
    static const struct launch_table launchers = {.row = launcher_rows,
                                                  .row_count = ARRAY_LEN(launcher_rows)};
    static const struct launch_table *const tables[LAUNCH_FRAMEWORK_COUNT] = {
        [LAUNCH_TORCHTITAN] = &launch_torchtitan_table,
        [LAUNCH_MEGATRON] = &launch_megatron_table,
        [LAUNCH_DEEPSPEED_JSON] = &launch_deepspeed_json_table,
        [LAUNCH_MEGATRON_DEEPSPEED] = &launch_megatron_deepspeed_table,
        [LAUNCH_ACCELERATE] = &launch_accelerate_table,
        [LAUNCH_TRAINER] = &launch_trainer_table,
        [LAUNCH_FOUNDRY] = &launch_foundry_table,
        [LAUNCH_LAUNCHER_PROGRAM] = &launchers,
    };
    return tables[framework];
}
