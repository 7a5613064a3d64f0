#include "predict/bounds.h"

#include "predict/document_costs.h"
#include "predict/two_layers.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/pipeline/ratios.h"
#include "schedule/step/build.h"

#include <math.h>
#include <stdlib.h>

/* ---- time ---- */

/* Returns the flop/s of the largest products whose operands have scales of this kind. Products of every other shape are
 * as fast or slower. */
static double product_flop_per_s(const struct device_cost *cost, const struct choices *c,
                                 enum scaling scaling)
{
    return cost_product_flop_per_s(cost, c->dtype == DTYPE_F32 ? DTYPE_F32 : DTYPE_BF16, scaling);
}

static double attention_flop_per_s(const struct device_cost *cost, const struct choices *c,
                                   enum attention_direction pass)
{
    const enum attention_impl impls[] = {(enum attention_impl)c->attention_impl,
                                         products_core_impl(c)};
    double most = 0;
    for (size_t k = 0; k < ARRAY_LEN(impls); k++)
        for (size_t i = 0; i < cost->attention[impls[k]][pass].dim_count; i++)
            most = fmax(most, cost_attention_flop_per_s(cost, impls[k], pass, i));
    return most > 0 ? most : cost->device_peak_flop_per_s;
}

/* The least seconds that a device takes for a flop. layer_product_s_per_flop, head_product_s_per_flop: for one flop of
 * a product of a layer, whose operands may have 8 or 4 bits, and of the head. attention_s_per_flop: for forward and
 * backward of attention together, for each flop of the forward; the backward has 2.5 times the flops of the forward. */
struct min_s_per_flop {
    double layer_product_s_per_flop, head_product_s_per_flop, attention_s_per_flop;
};

/* Returns the rates for a device's work. forwards: how often the forward of attention counts. */
static struct min_s_per_flop min_s_per_flop_of(const struct setup *setup, const struct choices *c,
                                               double forwards)
{
    const struct device_cost *cost = &setup->cost;
    const double peak = setup->cluster.device.peak_bf16_flop_per_s;
    if (cost->is_ideal)
        return (struct min_s_per_flop){1 / peak, 1 / peak, (forwards + 2.5) / peak};
    return (struct min_s_per_flop){
        1 / product_flop_per_s(cost, c, (enum scaling)products_recipe(c)->scaling),
        1 / product_flop_per_s(cost, c, SCALING_NONE),
        forwards / attention_flop_per_s(cost, c, ATTENTION_FORWARD_PASS) +
            2.5 / attention_flop_per_s(cost, c, ATTENTION_BACKWARD_PASS)};
}

/* Returns how often a step computes the forward of attention: twice if whole layers are recomputed (`full`, `offload`).
 * No other recomputation counts, since a framework could leave some of it out. */
static double attention_forwards(const struct choices *c)
{
    return c->activations == CHOICE_ACTIVATIONS_FULL || c->activations == CHOICE_ACTIVATIONS_OFFLOAD
               ? 2
               : 1;
}

/* Returns the seconds that one device takes for tokens [0, end) of a sequence in all layers, forward and backward.
 * Products count three times their forward, or twice if weights are frozen. seen: the flops of attention in the forward
 * of these tokens in one layer, as the mean over the layers. */
static double layers_compute_s(const struct choices *c, const struct min_s_per_flop *rates,
                               int64_t end, double seen)
{
    const struct transformer *t = c->model;
    return (double)t->layers * (transformer_step_products_per_weight(t) * (double)end *
                                    (double)transformer_layer_linear_flops_per_token(t) *
                                    rates->layer_product_s_per_flop +
                                seen * rates->attention_s_per_flop);
}

static double head_compute_s(const struct choices *c, const struct min_s_per_flop *rates)
{
    return transformer_step_products_per_weight(c->model) * (double)c->global_batch *
           (double)c->seq * (double)transformer_head_flops_per_token(c->model) *
           rates->head_product_s_per_flop;
}

/* Returns a lower bound of the step in seconds. all_s, head_s: seconds of all layers, and of the head, summed over all
 * devices. unit_s: the part of all_s for one unit, forward and backward. */
static double step_lower_bound_from_work_s(const struct choices *c, double all_s, double head_s,
                                           double unit_s)
{
    double ranks = (double)c->ranks;
    if (!pipeline_is_plain(c))
        return (all_s + head_s) / ranks;
    /* The bound is the time of the last stage, which has the head. This stage starts when the others have done the
     * forward of the first unit. When it ends, the others still have the backward of the last unit. If a sequence is
     * cut, both units are the first subsequence of a micro-batch, since the backward takes subsequences in reverse
     * order. With packed documents, the attention of that subsequence does not count, since it may have hardly any
     * pairs. */
    struct layer_range last = pipeline_layers_of_chunk(c, c->pp - 1);
    double share = (double)(last.end - last.first) / (double)c->model->layers;
    return (all_s * share + head_s + unit_s * (1 - share)) * c->pp / ranks;
}

/* Returns the seconds of step_lower_bound_from_work_s()'s unit, without recomputation: a stage can recompute while it
 * waits for the gradient of its last unit. */
static double first_unit_lower_bound_s(const struct setup *setup, const struct choices *c)
{
    const struct min_s_per_flop rates = min_s_per_flop_of(setup, c, 1);
    int64_t end = pipeline_tokens_before_subsequence(c, 1);
    double seen = c->documents == NULL ? transformer_visible_attention_flops(c->model, end) : 0;
    return (double)c->micro_batch * (double)c->dp * layers_compute_s(c, &rates, end, seen);
}

double bound_step_s(const struct setup *setup, const struct choices *c)
{
    struct min_s_per_flop rates = min_s_per_flop_of(setup, c, attention_forwards(c));
    double seen = document_visible_flops(c->documents, c->model, c->seq);
    double all_s = (double)c->global_batch * layers_compute_s(c, &rates, c->seq, seen);
    return step_lower_bound_from_work_s(c, all_s, head_compute_s(c, &rates),
                                        first_unit_lower_bound_s(setup, c));
}

double bound_step_from_layer_s(const struct setup *setup, const struct choices *c,
                               const struct layer_lower_bound *layer)
{
    struct min_s_per_flop rates = min_s_per_flop_of(setup, c, attention_forwards(c));
    double unit = (double)c->model->layers * (double)c->ranks / (double)c->pp;
    double head = 2 * layer->issue_s < layer->step_s ? head_compute_s(c, &rates) : 0;
    return step_lower_bound_from_work_s(c, (double)c->accumulation * unit * layer->step_s, head,
                                        c->subsequences == 1 ? unit * layer->kernels_s
                                                             : first_unit_lower_bound_s(setup, c));
}

/* ---- memory ---- */

/* Returns the number of data-parallel and context ranks over which a state is sharded: 1 if it is not. `from`: the
 * least stage of ZeRO that shards this state. */
static double shard_count_of_weights_state(const struct choices *c, enum weights_choice from)
{
    double all = (double)c->ranks / c->tp / c->pp;
    if (c->weights == CHOICE_WEIGHTS_HSDP)
        return c->shard;
    if (c->weights == CHOICE_WEIGHTS_ZERO1 && from <= CHOICE_WEIGHTS_ZERO1 && c->shard < all)
        return c->shard;
    bool cut = c->weights != CHOICE_WEIGHTS_REPLICATED && c->weights >= from;
    return cut ? all : 1;
}

/* Returns the number of parameters of a rank if one copy is cut over `shards` ranks, in addition to tensor and pipeline
 * ranks. */
static double parameters_of_rank(const struct choices *c, double shards)
{
    const struct transformer *m = c->model;
    double experts = (double)(transformer_count_expert_layers(m) * m->experts) * 3 *
                     (double)m->hidden * (double)m->expert_ffn;
    double others = (double)transformer_parameters(m) - experts;
    return (others / (shards * c->tp) + experts / fmax(shards * c->tp, c->ep)) / c->pp;
}

double bound_state_bytes(const struct setup *setup, const struct choices *c)
{
    double here =
        c->parameters == PARAMETERS_HOST
            ? 0
            : parameters_of_rank(c, shard_count_of_weights_state(c, CHOICE_WEIGHTS_ZERO3));
    return here * (double)dtype_bytes((enum dtype)c->dtype) +
           setup->cluster.device.cuda_context_bytes;
}

/* The bound counts the copy of the parameters that AdamW updates, and two moments. Where the optimizer updates the
 * sharded parameters in place (torchtitan), there is no such copy; the bound is right nevertheless, since gradients
 * exist when AdamW runs, and have at least as many bytes as the copy would. */
double bound_optimizer_bytes(const struct choices *c)
{
    if (c->optimizer == CHOICE_OPTIMIZER_HOST || c->model->adapter_rank > 0)
        return 0;
    return states_bytes_per_parameter((enum states)c->states, (enum dtype)c->dtype) *
           parameters_of_rank(c, shard_count_of_weights_state(c, CHOICE_WEIGHTS_ZERO1));
}

enum { ROWS_MAX = 64 };

/* The tensors that one layer saves for its backward and that may be offloaded, each as bytes per token: the bytes on
 * one rank, divided by the number of tokens that all tensor-parallel and head-parallel ranks have together. They are
 * found by building a small step. */
struct saved_bytes_per_token {
    double bytes_per_token_of_each_tensor[ROWS_MAX];
    uint32_t count;
};

static void find_saved_bytes_per_token(struct saved_bytes_per_token *kept, const struct choices *c)
{
    enum { TOKENS = 128 };
    int64_t ranks = (int64_t)c->tp * c->hp;
    size_t count;
    struct activation_row *row;
    uint32_t rows;
    struct request request = {.model = c->model,
                              .strategy = strategies_list(&count)[c->strategy].name,
                              .profile = c->profile->name,
                              .attention_impl = c->attention_impl,
                              .dtype = c->dtype,
                              .ranks = ranks,
                              .tp = c->tp,
                              .hp = c->hp,
                              .pp = 1,
                              .subsequences = 2,
                              .seq = 2 * TOKENS * ranks,
                              .sm = c->sm,
                              .gpus_per_node = ranks};
    kept->count = 0;
    /* if the request is refused, there are no rows */
    (void)two_layers_make_activation_table(&row, &rows, &request, NULL);
    for (uint32_t i = 0; i < rows && kept->count < ROWS_MAX; i++)
        if (row[i].class == ACTIVATION_FOR_OWN_BACKWARD)
            kept->bytes_per_token_of_each_tensor[kept->count++] =
                (double)row[i].bytes / (double)(TOKENS * ranks);
    free(row);
}

/* Returns the bytes that one layer saves for `tokens` tokens, in those tensors that then have `least` bytes or more. */
static double saved_bytes_of_tokens(const struct saved_bytes_per_token *kept, double tokens,
                                    double least)
{
    double bytes = 0;
    for (uint32_t i = 0; i < kept->count; i++)
        bytes += kept->bytes_per_token_of_each_tensor[i] * tokens >= least
                     ? kept->bytes_per_token_of_each_tensor[i] * tokens
                     : 0;
    return bytes;
}

/* The bytes that are saved of all subsequences of one sequence in the last stage, when the forward of the last
 * subsequence ends: on the device (keys and values included), and in host memory. */
struct saved_sequence_bytes {
    double device_bytes, host_bytes;
};

/* Returns the share of the `bytes` of subsequence i that is offloaded to the host. It is 0 for the last subsequence if
 * its backward follows at once, and for all subsequences with activations other than `ratio`. */
static double offloaded_share(const struct choices *c, uint32_t i, double bytes)
{
    uint32_t n = c->subsequences;
    if (c->activations != CHOICE_ACTIVATIONS_RATIO || (i + 1 == n && c->accumulation == 1))
        return 0;
    return c->offload_hidden_bytes_by_subsequence != NULL
               ? ratio_of_hidden_bytes(bytes, c->offload_hidden_bytes_by_subsequence[(i + 1) % n])
           : c->offload_hidden_bytes > 0 ? ratio_of_hidden_bytes(bytes, c->offload_hidden_bytes)
                                         : c->offload_ratio;
}

/* Returns lower bounds of the saved bytes on the device and in host memory. With activations other than `keep` and
 * `ratio`, only keys and values on the device count. Offloaded bytes are rounded up to grains
 * (profile->offload_multiple_of_bytes), so the device may keep one grain less of a subsequence than its share. In host
 * memory only tensors of a grain or more count, of all layers but one and of all subsequences but the last. */
static struct saved_sequence_bytes saved_bytes_of_subsequences(const struct choices *c)
{
    struct layer_range last = pipeline_layers_of_chunk(c, c->pp - 1);
    double layers = (double)(last.end - last.first),
           grain = (double)c->profile->offload_multiple_of_bytes;
    struct transformer share = tensor_share_of_model(c->model, c->tp, 1);
    double width = (double)(transformer_kv_columns(&share) + transformer_v_columns(&share));
    double kv = (double)c->seq / c->hp * width * (double)dtype_bytes((enum dtype)c->dtype) * layers;
    struct saved_sequence_bytes kept = {.device_bytes = kv};
    struct saved_bytes_per_token saved_per_token;
    if (c->activations != CHOICE_ACTIVATIONS_KEEP && c->activations != CHOICE_ACTIVATIONS_RATIO)
        return kept;
    find_saved_bytes_per_token(&saved_per_token, c);
    for (uint32_t i = 0; i < c->subsequences; i++) {
        double tokens = (double)(pipeline_tokens_before_subsequence(c, i + 1) -
                                 pipeline_tokens_before_subsequence(c, i));
        double bytes = layers * saved_bytes_of_tokens(&saved_per_token, tokens, 0);
        double leaves = offloaded_share(c, i, bytes);
        kept.device_bytes += fmax(0, (1 - leaves) * bytes - (leaves > 0 ? grain : 0));
        if (i + 1 == c->subsequences)
            continue;
        bytes = (layers - 1) * saved_bytes_of_tokens(&saved_per_token, tokens, grain);
        kept.host_bytes += bytes * offloaded_share(c, i, bytes);
    }
    return kept;
}

static bool are_subsequence_bytes_bounded(const struct choices *c)
{
    return c->subsequences > 1 && (c->pp == 1 || pipeline_is_plain(c));
}

/* Returns the bytes that one rank has of the inputs of `layers` layers for one micro-batch. */
static double layer_input_bytes_of_rank(const struct choices *c, double layers)
{
    double rows = (double)c->micro_batch * (double)c->seq / c->cp / c->hp / c->tp;
    return layers * rows * (double)c->model->hidden * (double)dtype_bytes((enum dtype)c->dtype);
}

double bound_saved_device_bytes(const struct choices *c)
{
    if (are_subsequence_bytes_bounded(c))
        return saved_bytes_of_subsequences(c).device_bytes;
    if (c->activations == CHOICE_ACTIVATIONS_OFFLOAD)
        return 0;
    /* no bound: with stages micro-batches may be cut, and stages drop inputs early; by a ratio inputs are offloaded,
     * too */
    if (c->pp > 1 || c->activations == CHOICE_ACTIVATIONS_RATIO)
        return 0;
    return layer_input_bytes_of_rank(c, (double)(c->model->layers - c->host_layers));
}

double bound_saved_host_bytes(const struct choices *c)
{
    if (are_subsequence_bytes_bounded(c))
        return saved_bytes_of_subsequences(c).host_bytes;
    if (c->activations != CHOICE_ACTIVATIONS_OFFLOAD || c->pp > 1)
        return 0;
    /* the last layer's backward follows its forward at once, so its input stays on the device */
    return layer_input_bytes_of_rank(c, (double)c->model->layers - 1);
}
