/* Describes a predicted configuration in words: the model, its sequences and the choices. */
#include "cli/report/report.h"

#include "base/name_set.h"
#include "base/units.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/partition_option.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/derived.h"

#include <string.h>

/* Appends how sequences are cut into subsequences. With the pipeline msp, appends also how many of the first and of the
 * last subsequences the stages share, and how they get each other's weights for these. */
static void put_subsequences(struct text *out, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    text_printf(out, "%u subsequences (partition %s", c->subsequences,
                partition_option_names[c->length_rule]);
    if (c->pipeline != CHOICE_PIPELINE_MSP) {
        text_putc(out, ')');
        return;
    }
    text_puts(out, "; shared:");
    if (c->shared_units.first > 0)
        text_printf(out, " first %u", c->shared_units.first);
    if (c->shared_units.last > 0)
        text_printf(out, "%s last %u", c->shared_units.first > 0 ? "," : "", c->shared_units.last);
    text_printf(out, "; helper weights %s)", helper_names[c->helpers]);
}

void report_put_workload(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct cluster *cluster = &p->setup->cluster;
    uint32_t ranks = mesh_rank_count(&p->ir.mesh);
    long long sequences = (long long)prediction_sequences(p);
    if (p->has_choices)
        text_printf(out, "%s, ", p->choices.model->name);
    if (prediction_is_recorded(p)) {
        report_put_torch_version_and_rank(out, p);
        text_puts(out, ", ");
    } else {
        text_printf(out, "%lld sequence%s of ", sequences, sequences == 1 ? "" : "s");
        units_put_tokens(out, p->ir.layout.sequence_tokens);
        text_puts(out, " tokens a step, ");
    }
    if (cluster->fabric.kind == FABRIC_LOOPBACK)
        text_printf(out, "%u rank%s on one GPU of %s", ranks, ranks == 1 ? "" : "s", cluster->name);
    else
        text_printf(out, "%u GPU%s of %s", ranks, ranks == 1 ? "" : "s", cluster->name);
}

void report_put_strategy(struct text *line, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    struct text piece = {0};
    size_t count;
    text_printf(&piece, "%s", strategies_list(&count)[c->strategy].name);
    if (c->cp > 1)
        text_printf(&piece, " cp=%u", c->cp);
    if (c->ring_window > 1)
        text_printf(&piece, " in windows of %u", c->ring_window);
    if (c->tp > 1)
        text_printf(&piece, " tp=%u", c->tp);
    if (c->cp > 1 && c->rotation != ROTATE_P2P)
        text_printf(&piece, " by %s", rotation_names[c->rotation]);
    text_printf(&piece, " hp=%u dp=%u", c->hp, c->dp);
    if (c->ep > 1)
        text_printf(&piece, " ep=%u", c->ep);
    if (c->cp > 1 && c->hp > 1)
        text_printf(&piece, ", %s", placement_names[c->placement]);
    report_put_piece_after_comma(line, &piece);
    if (c->pp > 1) {
        text_printf(&piece, "pp=%u %s", c->pp, pipeline_names[c->pipeline]);
        if (c->virtual_stages > 1)
            text_printf(&piece, " x %u", c->virtual_stages);
        if (c->dp > 1 && c->stage_placement == STAGES_INNER)
            text_puts(&piece, ", stages inside dp");
        report_put_piece_after_comma(line, &piece);
    }
    text_release(&piece);
}

/* Appends, after "activations keep", the modules whose activations are dropped and recomputed: " but those of modules
 * mlp+moe" or, if `mla_up_proj` is the only one, " but what latent attention expands"; nothing if there are none.
 * `core_attn` is left out: with it, the name of the activations is selective-core already. */
static void put_recomputed_modules(struct text *line, const struct choices *c)
{
    const uint32_t modules = c->recompute_modules & ~(1u << RECOMPUTE_CORE_ATTN);
    if (modules == 1u << RECOMPUTE_MLA_UP_PROJ) {
        text_puts(line, " but what latent attention expands");
        return;
    }
    if (modules != 0)
        text_puts(line, " but those of modules ");
    name_set_append_to_text(line, modules, recompute_module_names, RECOMPUTE_MODULE_COUNT, "+");
}

/* Appends the choices beyond the strategy and its degrees: weights, activations, optimizer, micro-batches, number
 * formats and, where they are not the default, others. */
static void put_choices_beyond_strategy(struct text *line, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    struct text piece = {0};
    text_printf(&piece, "weights %s", weights_names[c->weights]);
    if (c->weights == CHOICE_WEIGHTS_HSDP ||
        (c->weights == CHOICE_WEIGHTS_ZERO1 && c->shard < c->ranks / c->pp / c->tp))
        text_printf(&piece, " over %u", c->shard);
    if (c->param_gather == PARAM_GATHER_OVERLAP)
        text_puts(&piece, ", gathered in the next step");
    report_put_piece_after_comma(line, &piece);
    text_printf(&piece, "activations %s", activations_names[c->activations]);
    if (c->activations == CHOICE_ACTIVATIONS_RATIO) {
        text_putc(&piece, ' ');
        choices_put_offload_ratio(&piece, c->offload_hidden_bytes > 0, c->offload_ratio);
    }
    if (c->host_layers > 0)
        text_printf(&piece, ", of the first %u layer%s on the host", c->host_layers,
                    c->host_layers == 1 ? "" : "s");
    put_recomputed_modules(&piece, c);
    if (derived_sends_latents(c))
        text_puts(&piece, ", latents exchanged");
    report_put_piece_after_comma(line, &piece);
    if (c->cuda_graphs != CUDA_GRAPHS_NONE) {
        text_printf(&piece, "CUDA graphs of %s",
                    c->cuda_graphs == CUDA_GRAPHS_STEP    ? "the step"
                    : c->cuda_graphs == CUDA_GRAPHS_LAYER ? "layers"
                                                          : "routers");
        report_put_piece_after_comma(line, &piece);
    }
    if (c->expert_overlap != EXPERT_OVERLAP_NONE) {
        text_puts(&piece, "exchanges of experts beside another micro-batch");
        if (c->expert_overlap == EXPERT_OVERLAP_DELAYED_WGRAD)
            text_puts(&piece, " and gradients of weights");
        report_put_piece_after_comma(line, &piece);
    }
    if (c->model->adapter_rank > 0) {
        text_printf(&piece, "adapters of rank %lld beside frozen weights",
                    (long long)c->model->adapter_rank);
        if (c->frozen_weights != FROZEN_STORAGE_16BIT)
            text_printf(&piece, " in %s", frozen_storage_names[c->frozen_weights]);
        report_put_piece_after_comma(line, &piece);
    }
    text_printf(&piece, "optimizer on %s", optimizer_names[c->optimizer]);
    if (c->states != STATES_FP32)
        text_printf(&piece, " in %s", states_names[c->states]);
    report_put_piece_after_comma(line, &piece);
    if (c->attention_dropout) {
        text_puts(&piece, "attention dropout");
        report_put_piece_after_comma(line, &piece);
    }
    if (c->loss_chunks > 1 || c->ffn_chunks > 1) {
        text_printf(&piece, "loss in %u chunk%s, FFN in %u", c->loss_chunks,
                    c->loss_chunks == 1 ? "" : "s", c->ffn_chunks);
        report_put_piece_after_comma(line, &piece);
    }
    if (c->accumulation > 1 || c->micro_batch > 1) {
        text_printf(&piece, "%u micro-batch%s of %lld", c->accumulation,
                    c->accumulation == 1 ? "" : "es", (long long)c->micro_batch);
        report_put_piece_after_comma(line, &piece);
    }
    text_printf(&piece, "%s", dtype_name((enum dtype)c->dtype));
    report_put_piece_after_comma(line, &piece);
    if (c->products != PRODUCTS_BF16) {
        text_printf(&piece, "products %s", products_names[c->products]);
        if (c->primary_weights == PRIMARY_WEIGHTS_QUANTISED)
            text_puts(&piece, " of quantised weights");
        if (c->bf16_layers > 0)
            text_printf(&piece, " but in the first and the last %u layers", c->bf16_layers);
        report_put_piece_after_comma(line, &piece);
        if (c->attention_products == ATTENTION_PRODUCTS_FP8) {
            text_puts(&piece, "attention's core in 8 bits");
            report_put_piece_after_comma(line, &piece);
        }
    }
    text_release(&piece);
}

void report_put_choices(struct text *line, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct choices *c = &p->choices;
    struct text piece = {0};
    if (p->has_choices) {
        report_put_strategy(line, p);
        if (c->subsequences > 1) {
            put_subsequences(&piece, p);
            report_put_piece_after_comma(line, &piece);
        }
        put_choices_beyond_strategy(line, p);
    }
    if (prediction_has_attention(p)) {
        text_printf(&piece, "attention %s",
                    attention_impl_name((enum attention_impl)c->attention_impl));
        if (prediction_is_recorded(p) && p->recorded_attention_without_costs >= 0)
            text_printf(
                &piece, " in place of the recorded %s, of which %s has no costs",
                attention_impl_name((enum attention_impl)p->recorded_attention_without_costs),
                p->setup->cluster.device.name);
        report_put_piece_after_comma(line, &piece);
    }
    if (p->has_choices) {
        bool published = r->profile != NULL && strcmp(r->profile, "published") == 0;
        text_printf(&piece, "profile %s%s", c->profile->name, published ? " (published)" : "");
    } else if (p->profile != NULL) {
        text_printf(&piece, "times of profile %s", p->profile->name);
    } else {
        text_puts(&piece, prediction_is_recorded(p) ? "operators as recorded" : "no profile");
    }
    report_put_piece_after_comma(line, &piece);
    text_release(&piece);
}
