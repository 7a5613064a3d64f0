/* Functions that the readers of several frameworks share: they add the degrees of the parallel groups, and a remark. */
#include "predict/launch/launch_parts.h"

void launch_add_degree_options(struct launch *launch, struct launch_degrees d)
{
    bool ring = d.cp > 1, heads = d.hp > 1;
    const char *strategy = d.has_fpdt      ? "fpdt"
                           : ring && heads ? "2d"
                           : ring          ? "ring"
                           : heads         ? "ulysses"
                           : d.tp > 1      ? "megatron-sp"
                                           : "local";
    launch_add_option(launch, LAUNCH_FIELD_COUNT, "strategy", strategy);
    if (d.tp > 1)
        launch_add_count_option(launch, LAUNCH_TP, "tp", d.tp);
    if (d.pp > 1)
        launch_add_count_option(launch, LAUNCH_PP, "pp", d.pp);
    if (ring)
        launch_add_count_option(launch, LAUNCH_CP, "cp", d.cp);
    if (heads || d.has_fpdt)
        launch_add_count_option(launch, launch_has_field(launch, LAUNCH_SP) ? LAUNCH_SP : LAUNCH_CP,
                                "hp", d.hp);
}

void launch_remark_unread_config(struct launch *launch)
{
    /* a known name of a DeepSpeed configuration implies the ZeRO stage, and a remark on that was added then */
    bool is_stage_implied = launch->field_value[LAUNCH_ZERO].is_implied;
    if (launch_has_field(launch, LAUNCH_DEEPSPEED_CONFIG) &&
        !launch->has_read_framework_file[LAUNCH_DEEPSPEED_JSON] && !is_stage_implied &&
        launch_field_text(launch, LAUNCH_DEEPSPEED_CONFIG)[0] != '\0')
        launch_remark_on_field(launch, REMARK_KNOWN_IN_RUN_ONLY, LAUNCH_DEEPSPEED_CONFIG,
                               "this file is not read by itself: give it with --from");
}
