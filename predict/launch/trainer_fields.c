/* Expresses choices by settings of Axolotl, LLaMA-Factory and TRL: the reverse of launch_add_trainer_options(). */
#include "predict/launch/launch_parts.h"

#include "schedule/choices/profile.h"

#include <string.h>

/* Adds an option to l->table_option, which a row of a table file expresses directly, without a field. */
static void add_table_option(struct launch *l, const char *name, const char *value)
{
    l->table_option[l->table_option_count++] =
        (struct launch_option){.name = name, .value = arena_text(&l->arena, value, strlen(value))};
}

static void add_table_count_option(struct launch *l, const char *name, int64_t value)
{
    add_table_option(l, name, arena_printf(&l->arena, "%lld", (long long)value));
}

/* Returns the number of copies of the weights, each sharded over a group of ranks; only HSDP has several. */
static uint32_t weight_copy_count(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_HSDP ? expressible_weight_sharing_ranks(c) / c->shard : 1;
}

/* Sets the fields of FSDP2, and whether weights are gathered again for the backward. */
static void set_fsdp_fields(struct launch *l, const struct choices *c)
{
    launch_set_count(l, LAUNCH_FSDP, 1);
    launch_set_count(l, LAUNCH_FSDP_VERSION, 2);
    launch_set_text(l, LAUNCH_RESHARD, c->reshard == RESHARD_NEVER ? "false" : "true");
}

/* Sets the degrees of Accelerate's device mesh, whose product is the number of ranks. */
static void set_accelerate_mesh_fields(struct launch *l, const struct choices *c)
{
    uint32_t copies = weight_copy_count(c);
    launch_set_count(l, LAUNCH_DP_SHARD, c->dp / copies);
    launch_set_count(l, LAUNCH_DP_REPLICATE, copies);
    if (c->cp > 1)
        launch_set_count(l, LAUNCH_CP, c->cp);
    if (c->tp > 1)
        launch_set_count(l, LAUNCH_TP, c->tp);
}

/* Sets the fields that Axolotl, LLaMA-Factory and TRL have in common. */
static void set_common_trainer_fields(struct launch *l, const struct choices *c)
{
    const struct profile *p = c->profile;
    bool usual =
        c->attention_impl == (c->sm >= 90 ? p->attention_impl_since_hopper : p->attention_impl);
    launch_set_text(l, LAUNCH_MODEL, launch_hub_path(c->model));
    launch_set_count(l, LAUNCH_SEQ, c->seq);
    launch_set_count(l, LAUNCH_MICRO_BATCH, c->micro_batch);
    launch_set_count(l, LAUNCH_ACCUMULATION, c->accumulation);
    launch_set_count(l, LAUNCH_CHECKPOINTS, expressible_choices_recompute(c));
    if (c->activations == CHOICE_ACTIVATIONS_OFFLOAD)
        launch_set_count(l, LAUNCH_CHECKPOINTS_HOST, 1);
    launch_set_count(l, LAUNCH_BF16, c->dtype == DTYPE_BF16);
    if (c->dtype == DTYPE_F16)
        launch_set_count(l, LAUNCH_FP16, 1);
    launch_set_text(l, LAUNCH_ATTENTION,
                    usual                                ? "sdpa"
                    : c->attention_impl == ATTENTION_FA3 ? "flash_attention_3"
                                                         : "flash_attention_2");
    launch_set_text(l, LAUNCH_OPTIMIZER,
                    states_have_8bit_moments((enum states)c->states) ? "adamw_8bit"
                                                                     : "adamw_torch_fused");
    if (c->kernels == KERNELS_COMPILED)
        launch_set_count(l, LAUNCH_COMPILE, 1);
}

void launch_set_axolotl_fields(struct launch *l, const struct choices *c)
{
    bool gathers_keys = c->cp > 1 && c->rotation == ROTATE_ALL_GATHER;
    set_common_trainer_fields(l, c);
    text_puts(
        &l->comments_to_print,
        "# add datasets, output_dir and the schedule of the learning rate; start it with `axolotl "
        "train FILE`\n");
    if (expressible_needs_deepspeed(c)) {
        launch_set_text(l, LAUNCH_DEEPSPEED_CONFIG,
                        c->weights == CHOICE_WEIGHTS_ZERO1 ? "deepspeed_configs/zero1.json"
                                                           : "deepspeed_configs/zero2.json");
    } else if (!expressible_is_ddp(c)) {
        set_fsdp_fields(l, c);
        set_accelerate_mesh_fields(l, c);
    }
    if (c->cp > 1)
        launch_set_text(l, LAUNCH_ROTATE, gathers_keys ? "allgather" : "p2p");
    if (gathers_keys)
        launch_set_count(l, LAUNCH_PACKING, 1); /* varlen_llama3 takes only packed sequences */
    if (c->kernels == KERNELS_LIGER)
        add_table_option(l, "kernels", "liger");
    if (c->loss == LOSS_FUSED) {
        add_table_option(l, "loss", "fused");
    } else if (c->loss_chunks > 1) {
        add_table_option(l, "loss", "chunked");
        add_table_count_option(l, "loss-chunks", c->loss_chunks);
    }
    if (c->ffn_chunks > 1)
        add_table_count_option(l, "ffn-chunks", c->ffn_chunks);
}

void launch_set_llama_factory_fields(struct launch *l, const struct choices *c)
{
    set_common_trainer_fields(l, c);
    text_puts(&l->comments_to_print,
              "# add stage, dataset, template and output_dir; start it with `FORCE_TORCHRUN=1 "
              "llamafactory-cli train FILE`\n");
    launch_set_text(l, LAUNCH_ADAPTER, "full");
    launch_set_count(l, LAUNCH_PACKING, 1);
    if (c->optimizer == CHOICE_OPTIMIZER_HOST) {
        launch_set_text(l, LAUNCH_DEEPSPEED_CONFIG, "examples/deepspeed/ds_z2_offload_config.json");
    } else if (expressible_needs_deepspeed(c)) {
        launch_set_text(l, LAUNCH_DEEPSPEED_CONFIG, "examples/deepspeed/ds_z2_config.json");
    } else if (!expressible_is_ddp(c)) {
        set_fsdp_fields(l, c);
        launch_set_text(l, LAUNCH_SHARDING, "full_shard auto_wrap");
    }
    if (c->states == STATES_BF16) {
        add_table_option(l, "states", "bf16");
        l->field_value[LAUNCH_BF16].is_given =
            false; /* LLaMA-Factory refuses bf16 beside pure_bf16 */
    }
    if (c->kernels == KERNELS_LIGER)
        add_table_option(l, "kernels", "liger");
}

void launch_set_trl_fields(struct launch *l, const struct choices *c)
{
    static const int zero_stages[CHOICE_WEIGHTS_COUNT] = {0, 1, 2, 3, 3};
    set_common_trainer_fields(l, c);
    text_puts(&l->comments_to_print, "# add --dataset_name and --output_dir\n");
    launch_set_count(l, LAUNCH_PROCESSES, c->ranks);
    if (c->gpus_per_node > 0 && c->ranks > c->gpus_per_node)
        launch_set_count(l, LAUNCH_NODES, c->ranks / c->gpus_per_node);
    launch_set_count(l, LAUNCH_PACKING, 1);
    launch_set_text(l, LAUNCH_LOADED_DTYPE,
                    states_are_bf16((enum states)c->states) ? "bfloat16" : "float32");
    if (expressible_needs_deepspeed(c)) {
        launch_set_count(l, LAUNCH_DEEPSPEED, 1);
        launch_set_count(l, LAUNCH_ZERO, zero_stages[c->weights]);
        if (c->optimizer == CHOICE_OPTIMIZER_HOST)
            launch_set_text(l, LAUNCH_OPTIMIZER_DEVICE, "cpu");
    } else if (!expressible_is_ddp(c)) {
        set_fsdp_fields(l, c);
        if (c->cp > 1 || c->tp > 1 || weight_copy_count(c) > 1) {
            launch_set_count(l, LAUNCH_MESH, 1);
            set_accelerate_mesh_fields(l, c);
        }
    }
    if (c->cp > 1)
        launch_set_text(l, LAUNCH_ROTATE,
                        c->rotation == ROTATE_ALL_GATHER ? "allgather" : "alltoall");
    if (c->kernels == KERNELS_LIGER)
        launch_set_count(l, LAUNCH_LIGER, 1);
}
