/* Makes the options of the settings that were read, by the framework that they are of. */
#include "predict/launch/launch_parts.h"

#include <string.h>

void launch_degree_options(struct launch *launch, struct launch_degrees d)
{
    bool ring = d.cp > 1, heads = d.hp > 1;
    const char *strategy = d.fpdt          ? "fpdt"
                           : ring && heads ? "2d"
                           : ring          ? "ring"
                           : heads         ? "ulysses"
                           : d.tp > 1      ? "megatron-sp"
                                           : "local";
    launch_option(launch, LAUNCH_FIELDS, "strategy", strategy);
    if (d.tp > 1)
        launch_option_count(launch, LAUNCH_TP, "tp", d.tp);
    if (d.pp > 1)
        launch_option_count(launch, LAUNCH_PP, "pp", d.pp);
    if (ring)
        launch_option_count(launch, LAUNCH_CP, "cp", d.cp);
    if (heads || d.fpdt)
        launch_option_count(launch, launch_said(launch, LAUNCH_SP) ? LAUNCH_SP : LAUNCH_CP, "hp",
                            d.hp);
}

void launch_remark_config(struct launch *launch)
{
    if (launch_said(launch, LAUNCH_DEEPSPEED_CONFIG) && !launch->has[LAUNCH_DEEPSPEED_JSON] &&
        launch_text(launch, LAUNCH_DEEPSPEED_CONFIG)[0] != '\0')
        launch_remark_on(launch, REMARK_OPEN, LAUNCH_DEEPSPEED_CONFIG,
                         "this file is not read by itself: give it with --from");
}

/* Adds remarks if neither a file nor an option gives the model, or the tokens of a sequence. */
static void remark_missing(struct launch *launch, struct launch_given given)
{
    if (!given.model && !launch_has_option(launch, "model") && !launch_said(launch, LAUNCH_MODEL) &&
        !launch_said(launch, LAUNCH_FLAVOR) && !launch->has[LAUNCH_TORCHTITAN])
        launch_remark(launch, REMARK_OPEN, "the model", (struct loc){0},
                      "no file says it: give its config.json with --from, or --model");
    if (!given.length && !launch_has_option(launch, "seq"))
        launch_remark(launch, REMARK_OPEN, "the length", (struct loc){0},
                      "no file says it: give the tokens of a sequence with --seq");
}

enum status launch_options(struct launch *launch, struct launch_given given, struct diag *diag)
{
    enum status status = STATUS_OK;
    int64_t gpus = launch_gpus(launch);
    if (given.gpus <= 0)
        given.gpus = gpus;
    if (launch->has[LAUNCH_TORCHTITAN])
        status = launch_torchtitan_options(launch, given, diag);
    else if (launch->has[LAUNCH_MEGATRON])
        status = launch_megatron_options(launch, given, diag);
    else if (launch->has[LAUNCH_FOUNDRY])
        status = launch_foundry_options(launch, given, diag);
    else if (launch->has[LAUNCH_TRAINER] || launch->has[LAUNCH_ACCELERATE])
        status = launch_trainer_options(launch, given, diag);
    else if (launch->has[LAUNCH_MEGATRON_DEEPSPEED] || launch->has[LAUNCH_DEEPSPEED_JSON] ||
             launch->has[LAUNCH_LAUNCHER])
        status = launch_deepspeed_options(launch, given, diag);
    if (status == STATUS_OK)
        remark_missing(launch, given);
    if (status == STATUS_OK && gpus == 0 && launch_said(launch, LAUNCH_DEVICES))
        launch_remark_on(launch, REMARK_OPEN, LAUNCH_DEVICES,
                         "how many GPUs these are depends on the machine: give --gpus");
    static const enum launch_field counts[] = {LAUNCH_PROCESSES, LAUNCH_DEVICES, LAUNCH_GPUS_A_NODE,
                                               LAUNCH_TASKS, LAUNCH_VISIBLE};
    size_t from = 0;
    while (from + 1 < ARRAY_LEN(counts) && !launch_said(launch, counts[from]))
        from++;
    if (status == STATUS_OK && gpus > 0)
        launch_option_count(launch, counts[from], "gpus", gpus);
    return status;
}
