/* The tables of all kinds of launch files, and that of launchers. */
#include "predict/launch/launch_tables.h"

#include "base/arena.h"

#define ALSO LAUNCH_ALSO_SETS

/* clang-format off */
static const struct launch_row launcher_rows[] = {
    {"--nproc_per_node",   ALSO, LAUNCH_COUNT, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--nproc-per-node",   ALSO, LAUNCH_COUNT, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--num_gpus",         ALSO, LAUNCH_COUNT, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--gpus-per-node",    ALSO, LAUNCH_COUNT, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--ntasks-per-node",  ALSO, LAUNCH_COUNT, LAUNCH_GPUS_A_NODE, NULL, NULL},
    {"--nnodes",           ALSO, LAUNCH_COUNT, LAUNCH_NODES, NULL, NULL},
    {"--num_nodes",        ALSO, LAUNCH_COUNT, LAUNCH_NODES, NULL, NULL},
    {"--nodes",            ALSO, LAUNCH_COUNT, LAUNCH_NODES, NULL, NULL},
    {"--num_processes",    ALSO, LAUNCH_COUNT, LAUNCH_PROCESSES, NULL, NULL},
    {"--num_machines",     ALSO, LAUNCH_COUNT, LAUNCH_NODES, NULL, NULL},
    {"--mixed_precision",  ALSO, LAUNCH_TEXT,  LAUNCH_DTYPE, NULL, NULL},
    {"--zero_stage",       ALSO, LAUNCH_COUNT, LAUNCH_ZERO, NULL, NULL},
    {"--config_file",      LAUNCH_UNMODELLED, LAUNCH_TEXT, LAUNCH_FIELDS, "this file is not read by itself: give it with --from", NULL},
};
/* clang-format on */

const struct launch_table *launch_table(enum launch_framework framework)
{
    static const struct launch_table launchers = {launcher_rows, ARRAY_LEN(launcher_rows)};
    static const struct launch_table *const tables[LAUNCH_FRAMEWORKS] = {
        [LAUNCH_TORCHTITAN] = &launch_torchtitan_table,
        [LAUNCH_MEGATRON] = &launch_megatron_table,
        [LAUNCH_DEEPSPEED_JSON] = &launch_json_table,
        [LAUNCH_MEGATRON_DEEPSPEED] = &launch_argument_table,
        [LAUNCH_ACCELERATE] = &launch_accelerate_table,
        [LAUNCH_TRAINER] = &launch_trainer_table,
        [LAUNCH_FOUNDRY] = &launch_foundry_table,
        [LAUNCH_LAUNCHER] = &launchers,
    };
    return tables[framework];
}
