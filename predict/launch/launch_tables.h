/* predict/launch/launch_tables.h: the tables in C of the frameworks' settings. Each is defined in its framework's
 * source. */
#ifndef PREDICT_LAUNCH_LAUNCH_TABLES_H
#define PREDICT_LAUNCH_LAUNCH_TABLES_H

#include "predict/launch/launch.h"

/* Words for the rows of the tables. The columns are the members of struct launch_row; IGNORED stands for all columns
 * but the first, UNMODELLED for the second to the fourth. */
#define SETS LAUNCH_SETS_FIELD
#define SETS_AS_ALIAS LAUNCH_ALIAS_OF_FIELD
#define IGNORED LAUNCH_IGNORED, LAUNCH_TEXT, LAUNCH_FIELD_COUNT, NULL, NULL
#define UNMODELLED LAUNCH_UNMODELLED, LAUNCH_TEXT, LAUNCH_FIELD_COUNT

extern const struct launch_table launch_torchtitan_table, launch_megatron_table,
    launch_deepspeed_json_table, launch_megatron_deepspeed_table, launch_accelerate_table,
    launch_trainer_table, launch_foundry_table,
    launch_megatron_shared_table; /* of Megatron-LM and Megatron-DeepSpeed */

#endif
