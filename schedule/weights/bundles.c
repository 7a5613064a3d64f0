/* Weights as bundles: tensors laid end to end, gathered, reduced and updated together.
 *
 * The embedding is a bundle, the head is one, and each layer is one. If weights_have_root_unit() says so, embedding and
 * head are one bundle. Where weights stay whole, a bundle has as many consecutive layers as fit into the profile's
 * bucket size. Three kinds of weights have bundles of their own, beside the main bundle of their layers: experts that
 * are spread over ranks, adapters, and stored weights (frozen ones in 4 or 8 bits, --frozen-weights).
 *
 * A bundle that several ranks hold or update in parts is padded so that every rank's part is a multiple of 8 elements
 * (16 bytes in bf16); where stages hold parts of each other's weights, every stage's part is as well.
 * docs/strategies/weights.md. */
#include "schedule/weights/bundles.h"
#include "models/frozen_storage.h"
#include "schedule/choices/kept.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/emit/emit.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/weights/quantised.h"
#include "schedule/weights/remote_weights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SHARD_ALIGNMENT = 8 };

static const char *const weight_names[WEIGHT_COUNT] = {
#define WEIGHT(symbol, name) name,
#include "schedule/emit/weights.def"
#undef WEIGHT
};

static enum weight weight_of_name(const char *name)
{
    for (int i = 0; i < WEIGHT_COUNT; i++)
        if (strcmp(weight_names[i], name) == 0)
            return (enum weight)i;
    bool bias = strcmp(name, "w1.bias") == 0;
    assert((bias || strcmp(name, "w1.weight") == 0) && "a tensor that emission does not know");
    return bias ? WEIGHT_UP_BIAS : WEIGHT_UP;
}

enum {
    TENSOR_NAME_SIZE = 112,
    /* The most bundles of a part of the model: the main one, and two of those with stored weights, adapters or
     * experts. */
    BUNDLES_PER_PART_MAX = 3,
};

/* Adds one tensor to the ir, or each of its blocks if tensor ranks cut these separately, and sets the tensor's slot.
 * *offset: where the tensor starts, in elements of one rank from the start of the model part; it becomes the tensor's
 * end. experts: the part is a layer with experts. */
static void add_tensor(struct emit *e, bool experts, const char *prefix,
                       const struct tensor_spec *spec, const struct tensor_cut *cut,
                       uint64_t *offset)
{
    uint32_t copied = e->tensor.axes & ~e->tensor.kv_head_copy_axes;
    int64_t rows = 0, cols = cut->cuts_columns ? spec->cols / (int64_t)e->tensor.size : spec->cols;
    int64_t first = 0;
    char name[TENSOR_NAME_SIZE];
    for (int i = 0; i < cut->block_count; i++) {
        const struct tensor_row_block *block = &cut->block[i];
        int64_t parts = (int64_t)e->tensor.size;
        if (block->has_kv_heads)
            parts /= tensor_kv_copies(e->whole_model, parts);
        int64_t padded = cut->is_embedding_or_head ? e->choices->model->vocab * parts : 0;
        /* A cut into parts of ceil(rows / parts) rows has up to parts - 1 rows of padding by itself. Only more than
         * that is stated. */
        if (padded < block->rows + parts)
            padded = 0;
        int size = snprintf(name, sizeof name, "%s%s%s%s", prefix, spec->name,
                            block->name ? ":" : "", block->name ? block->name : "");
        assert(size < TENSOR_NAME_SIZE);
        ir_add_tensor(
            e->ir,
            (struct tensor){.name = name,
                            .rows = block->rows,
                            .cols = spec->cols,
                            .axes_that_cut_rows_and_columns =
                                {cut->cuts_rows ? block->has_kv_heads ? copied : e->tensor.axes : 0,
                                 cut->cuts_columns ? e->tensor.axes : 0},
                            .first_row = first,
                            .padded_rows = padded});
        first += block->rows;
        rows += padded > 0       ? padded / parts
                : cut->cuts_rows ? (block->rows + parts - 1) / parts
                                 : block->rows;
    }
    const enum weight weight = weight_of_name(spec->name);
    e->weights.slot[experts][weight] =
        (struct weight_offset_and_shape){.offset = *offset, .rows = rows, .cols = cols};
    *offset += (uint64_t)(rows * cols);
}

/* True if a tensor lies in a bundle of experts that are spread over ranks. */
static bool is_tensor_of_spread_experts(const struct emit *e, const struct tensor_spec *spec)
{
    return e->choices->ep > 1 && weight_is_of_experts(weight_of_name(spec->name));
}

/* Adds the tensors of a layer's experts that are spread over ranks. Each rank's own experts lie in the bundle of
 * experts from element *used on; *used becomes their end. */
static void add_experts(struct emit *e, uint32_t layer, const char *prefix,
                        const struct tensor_spec *spec, size_t count, uint64_t *used)
{
    const uint32_t axes = group_axis_mask(&e->ir->group[e->group.ep]);
    char name[TENSOR_NAME_SIZE];
    uint64_t offset = 0;
    e->weights.part[layer].experts_bundle = e->weights.bundle_count;
    e->weights.part[layer].first_expert_element_in_bundle = *used;
    for (size_t i = 0; i < count; i++) {
        if (!is_tensor_of_spread_experts(e, &spec[i]))
            continue;
        const int64_t rows = spec[i].rows / (int64_t)e->choices->ep;
        snprintf(name, sizeof name, "%s%s", prefix, spec[i].name);
        ir_add_tensor(e->ir, (struct tensor){.name = name,
                                             .rows = spec[i].rows,
                                             .cols = spec[i].cols,
                                             .axes_that_cut_rows_and_columns = {axes, 0}});
        e->weights.slot[1][weight_of_name(spec[i].name)] =
            (struct weight_offset_and_shape){.offset = offset, .rows = rows, .cols = spec[i].cols};
        offset += (uint64_t)(rows * spec[i].cols);
    }
    *used += offset;
}

/* Adds the tensors of a part that lie in the main bundle, from element *used on; *used becomes their end. First come
 * the tensors whose gradients are not summed over tensor ranks: those that are cut, and those whose gradient is
 * complete on each rank. */
static void add_main_bundle_tensors_of_part(struct emit *e, uint32_t part, const char *prefix,
                                            const struct tensor_spec *spec, size_t count,
                                            uint64_t *used)
{
    struct model_part *p = &e->weights.part[part];
    const bool experts = part < (uint32_t)e->whole_model->layers &&
                         transformer_layer_has_experts(e->whole_model, part);
    uint64_t offset = 0;
    *p = (struct model_part){.bundle = e->weights.bundle_count,
                             .first_element = *used,
                             .experts_bundle = IR_NONE,
                             .adapters_bundle = IR_NONE,
                             .stored_bundle = IR_NONE};
    for (int whole = 0; whole < 2; whole++) {
        p->whole_begin = offset;
        for (size_t i = 0; i < count; i++) {
            struct tensor_cut cut = {.block = {{NULL, spec[i].rows, false}}, .block_count = 1};
            bool complete = tensor_is_complete(e->choices, spec[i].name);
            if (e->tensor.size > 1 && !complete)
                cut = tensor_cut_of(e->whole_model, spec[i].name, spec[i].rows);
            if ((cut.cuts_rows || cut.cuts_columns || complete) == (bool)whole ||
                is_tensor_of_spread_experts(e, &spec[i]) ||
                weight_is_of_adapter(weight_of_name(spec[i].name)) ||
                weight_is_stored(e, weight_of_name(spec[i].name)))
                continue;
            add_tensor(e, experts, prefix, &spec[i], &cut, &offset);
            p->tp_replicated_tensor_count += (uint32_t)whole;
        }
    }
    p->whole_count = offset - p->whole_begin;
    *used += offset;
}

/* Returns the number of parts into which a bundle is cut: `parts` or, if stages hold parts of weights, the smallest
 * multiple of `parts` that every number of stages which share a unit of the chunk divides. So a bundle divides evenly
 * over each of these groups of stages. */
static uint64_t bundle_part_count(const struct choices *c, uint32_t chunk, uint64_t parts)
{
    for (uint32_t s = 0; pipeline_shards_weights(c) && s < c->subsequences; s++) {
        uint64_t multiple = parts;
        while (multiple % multiplex_stages_sharing_subsequence(c, chunk, s).count != 0)
            multiple += parts;
        parts = multiple;
    }
    return parts;
}

/* Adds a bundle to a chunk, with the tensors that were added to the ir since the previous bundle: `used` elements in
 * all. storage: the form in which they are stored. experts: they are experts that are spread over ranks. */
static void close_bundle_in_frozen_storage(struct emit *e, const char *name, uint32_t chunk,
                                           bool experts, enum frozen_storage storage, uint64_t used)
{
    struct ir *ir = e->ir;
    const struct weight_ranks *ranks = experts ? &e->group.experts : &e->group.dense;
    uint64_t parts = bundle_part_count(e->choices, chunk, ranks->shard_size);
    if (chunk == 0 &&
        pipeline_ends_share_embedding(e->choices)) /* the last chunk's stages hold it, too */
        parts = bundle_part_count(e->choices, pipeline_chunk_count(e->choices) - 1, parts);
    uint64_t unit = parts > 1 ? parts * SHARD_ALIGNMENT : 1;
    uint64_t elements = (used + unit - 1) / unit * unit;
    uint32_t row =
        ir_find_by_name(ir, IR_BUNDLE, name, strlen(name)); /* another stage may have added it */
    if (row == IR_NONE) {
        uint32_t begin = 0;
        if (ir->bundle_count > 0) {
            const struct bundle *before = &ir->bundle[ir->bundle_count - 1];
            begin = before->tensor_begin + before->tensor_count;
        }
        row = ir_add_bundle(ir, (struct bundle){.name = name,
                                                .tensor_begin = begin,
                                                .tensor_count = ir->tensor_count - begin,
                                                .elements = elements,
                                                .storage = (uint8_t)storage});
    }
    e->weights.bundle[e->weights.bundle_count] =
        (struct weight_bundle_state){.ir_bundle_row = (uint16_t)row,
                                     .main_bundle_of_same_layers = e->weights.bundle_count,
                                     .storage = (uint8_t)storage,
                                     .has_spread_experts = experts,
                                     .is_frozen = e->choices->model->adapter_rank > 0,
                                     .ranks = ranks,
                                     .chunk = chunk,
                                     .elements = elements,
                                     .unpadded_elements = used};
    e->weights.bundle_count++;
}

static void close_bundle(struct emit *e, const char *name, uint32_t chunk, bool experts,
                         uint64_t used)
{
    close_bundle_in_frozen_storage(e, name, chunk, experts, FROZEN_STORAGE_16BIT, used);
}

static void add_head_tensors(struct emit *e, uint64_t *used)
{
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    size_t count = transformer_list_head_tensors(e->whole_model, spec, ARRAY_LEN(spec));
    add_main_bundle_tensors_of_part(e, part_index_of_embedding_or_head(e, PART_HEAD), "", spec,
                                    count, used);
}

/* Lays out the bundle of the embedding and of the learned positions; if `root`, the final norm and the head are in it,
 * too. A tied embedding that two stages hold is a bundle of its own, the same on both; the positions then have another
 * bundle, which the last stage does not hold unless stages share subsequences. */
static void lay_out_embedding_bundle(struct emit *e, bool root)
{
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    uint64_t used = 0;
    size_t count = transformer_list_embedding_tensors(e->whole_model, spec, ARRAY_LEN(spec));
    add_main_bundle_tensors_of_part(e, part_index_of_embedding_or_head(e, PART_EMBEDDING), "", spec,
                                    1, &used);
    if (pipeline_ends_share_embedding(e->choices)) {
        close_bundle(e, "embedding", 0, false, used);
        e->weights.bundle[e->weights.bundle_count - 1].is_on_first_and_last_stage = true;
        used = 0;
        bool first = pipeline_of_choices(e->choices)->is_multiplexed || e->stage == 0;
        if (!first || count == 1)
            return;
    }
    if (count > 1)
        add_main_bundle_tensors_of_part(e, part_index_of_embedding_or_head(e, PART_POSITIONS), "",
                                        spec + 1, count - 1, &used);
    if (root)
        add_head_tensors(e, &used);
    close_bundle(e,
                 root                                        ? "root"
                 : pipeline_ends_share_embedding(e->choices) ? "positions"
                                                             : "embedding",
                 0, false, used);
}

/* True if a tensor lies in the bundle of its layer's adapters (if `adapters`) or of its layer's stored weights (if
 * not). */
static bool is_in_adapter_or_stored_bundle(const struct emit *e, const struct tensor_spec *spec,
                                           bool adapters)
{
    const enum weight weight = weight_of_name(spec->name);
    return adapters ? weight_is_of_adapter(weight) : weight_is_stored(e, weight);
}

/* Adds the tensors of a layer's adapters (if `adapters`) or of its stored weights (if not). They lie in their bundle
 * from element *used on; *used becomes their end. */
static void add_adapter_or_stored_tensors(struct emit *e, uint32_t layer, bool adapters,
                                          uint64_t *used)
{
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    const size_t count =
        transformer_list_layer_tensors(e->whole_model, layer, spec, ARRAY_LEN(spec));
    const bool experts = transformer_layer_has_experts(e->whole_model, layer);
    struct model_part *p = &e->weights.part[layer];
    char prefix[64];
    uint64_t offset = 0;
    snprintf(prefix, sizeof prefix, "layers.%u.", layer);
    *(adapters ? &p->adapters_bundle : &p->stored_bundle) = e->weights.bundle_count;
    *(adapters ? &p->first_adapter_element_in_bundle : &p->first_stored_element_in_bundle) = *used;
    for (size_t i = 0; i < count; i++) {
        const struct tensor_cut uncut = {.block = {{NULL, spec[i].rows, false}}, .block_count = 1};
        if (is_in_adapter_or_stored_bundle(e, &spec[i], adapters))
            add_tensor(e, experts, prefix, &spec[i], &uncut, &offset);
    }
    *used += offset;
}

/* Lays out a bundle with the adapters of layers first .. end - 1 (if `adapters`) or with their stored weights (if not).
 * Adds no bundle if there are none. main_bundle: the bundle of most weights of these layers. */
static void lay_out_adapter_or_stored_bundle(struct emit *e, uint32_t first, uint32_t end,
                                             uint32_t chunk, bool adapters, uint32_t main_bundle)
{
    char name[64];
    uint64_t used = 0;
    if (adapters ? e->choices->model->adapter_rank == 0
                 : e->choices->frozen_weights == FROZEN_STORAGE_16BIT)
        return;
    for (uint32_t l = first; l < end; l++)
        add_adapter_or_stored_tensors(e, l, adapters, &used);
    snprintf(name, sizeof name, "layers.%u.%s", first, adapters ? "adapters" : "stored");
    if (used == 0)
        return;
    close_bundle_in_frozen_storage(
        e, name, chunk, false,
        adapters ? FROZEN_STORAGE_16BIT : (enum frozen_storage)e->choices->frozen_weights, used);
    struct weight_bundle_state *bundle = &e->weights.bundle[e->weights.bundle_count - 1];
    bundle->main_bundle_of_same_layers = main_bundle;
    bundle->has_adapters = adapters;
    bundle->is_frozen = !adapters;
}

/* True if --primary-weights is quantised and all layers first .. end - 1 multiply in 8 or 4 bits. */
static bool quantises_layers(const struct emit *e, uint32_t first, uint32_t end)
{
    bool all = e->choices->primary_weights == PRIMARY_WEIGHTS_QUANTISED;
    for (uint32_t l = first; all && l < end; l++)
        all = products_layer_is_narrow(e->choices, l);
    return all;
}

/* Lays out the experts of layers first .. end - 1 in a bundle of their own, if they are spread over ranks. */
static void lay_out_expert_bundle(struct emit *e, uint32_t first, uint32_t end, uint32_t chunk,
                                  uint32_t main_bundle)
{
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    char name[64];
    uint64_t used = 0;
    for (uint32_t l = first; l < end && e->choices->ep > 1; l++) {
        if (!transformer_layer_has_experts(e->whole_model, l))
            continue;
        size_t count = transformer_list_layer_tensors(e->whole_model, l, spec, ARRAY_LEN(spec));
        snprintf(name, sizeof name, "layers.%u.", l);
        add_experts(e, l, name, spec, count, &used);
    }
    snprintf(name, sizeof name, "layers.%u.experts", first);
    if (used == 0)
        return;
    close_bundle(e, name, chunk, true, used);
    e->weights.bundle[e->weights.bundle_count - 1].main_bundle_of_same_layers = main_bundle;
    e->weights.bundle[e->weights.bundle_count - 1].has_only_quantised_weights =
        quantises_layers(e, first, end);
}

static void lay_out_layer_bundles(struct emit *e, uint32_t chunk)
{
    struct layer_range layers = pipeline_layers_of_chunk(e->choices, chunk);
    const struct transformer *model = e->whole_model;
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    uint32_t together = (uint32_t)weights_layers_per_bundle(e->choices);
    char name[64];
    for (uint32_t first = layers.first; first < layers.end; first += together) {
        uint32_t end = first + together < layers.end ? first + together : layers.end;
        uint64_t used = 0;
        for (uint32_t l = first; l < end; l++) {
            size_t count = transformer_list_layer_tensors(model, l, spec, ARRAY_LEN(spec));
            snprintf(name, sizeof name, "layers.%u.", l);
            add_main_bundle_tensors_of_part(e, l, name, spec, count, &used);
        }
        if (end > first + 1)
            snprintf(name, sizeof name, "layers.%u.", first);
        name[strlen(name) - 1] = '\0'; /* the name of a bundle ends without a dot */
        close_bundle(e, name, chunk, false, used);
        const uint32_t main_bundle = e->weights.bundle_count - 1;
        e->weights.bundle[main_bundle].has_only_quantised_weights = quantises_layers(e, first, end);
        lay_out_adapter_or_stored_bundle(e, first, end, chunk, false, main_bundle);
        lay_out_adapter_or_stored_bundle(e, first, end, chunk, true, main_bundle);
        lay_out_expert_bundle(e, first, end, chunk, main_bundle);
    }
}

static void lay_out_head_bundle(struct emit *e)
{
    uint64_t used = 0;
    add_head_tensors(e, &used);
    close_bundle(e, "head", pipeline_chunk_count(e->choices) - 1, false, used);
}

/* Lays out the bundles of all parts that the stage has, in the order of its chunks. If the scope is not a whole step,
 * there is no embedding and no head. */
static void lay_out_all_bundles(struct emit *e)
{
    const struct choices *c = e->choices;
    uint32_t chunks = pipeline_chunk_count(c),
             parts = part_index_of_embedding_or_head(e, END_PARTS);
    bool all = pipeline_of_choices(c)->is_multiplexed, ends = c->scope == SCOPE_WHOLE_STEP;
    bool first = ends && (all || e->stage == pipeline_stage_of_chunk(c, 0));
    bool last = ends && (all || e->stage == pipeline_stage_of_chunk(c, chunks - 1));
    e->weights.part = arena_array(&e->arena, parts, sizeof *e->weights.part);
    e->weights.bundle =
        arena_array(&e->arena, BUNDLES_PER_PART_MAX * (size_t)parts, sizeof *e->weights.bundle);
    e->weights.bundle_count = 0;
    for (uint32_t p = 0; p < parts; p++)
        e->weights.part[p].bundle = e->weights.part[p].experts_bundle =
            e->weights.part[p].adapters_bundle = e->weights.part[p].stored_bundle = IR_NONE;
    bool root = weights_have_root_unit(c);
    if (first)
        lay_out_embedding_bundle(e, root);
    for (uint32_t v = 0; v < pipeline_count_chunks_of_stage(c); v++)
        lay_out_layer_bundles(e, pipeline_chunk_of_stage(c, e->stage, v));
    if (last && !root)
        lay_out_head_bundle(e);
    if (last && !first && c->model->tied_head)
        lay_out_embedding_bundle(e, false);
}

/* True if there are bundles whose gradients are reduced in every micro-batch. */
static bool reduces_each_micro_batch(const struct emit *e)
{
    return weights_reduce_each_micro_batch(e->choices) && e->group.dense.shard_size > 1;
}

/* True if a bundle has a whole gradient for each micro-batch, since that gradient is reduced in the micro-batch. */
static bool has_gradient_per_micro_batch(const struct emit *e, uint32_t b)
{
    return weights_reduce_each_micro_batch(e->choices) &&
           e->weights.bundle[b].ranks->shard_size > 1;
}

/* True if autocast casts the parameters that products read. That is modelled where parameters are whole and in fp32,
 * and AdamW updates them in place on the device. */
static bool autocast_casts_parameters(const struct emit *e)
{
    const struct choices *c = e->choices;
    return kept_layer_runs_under_autocast(c) && c->dtype != DTYPE_F32 &&
           !weights_are_own_master_copies(c) && c->optimizer == CHOICE_OPTIMIZER_DEVICE &&
           !pipeline_has_remote_weights(c) &&
           (c->weights == CHOICE_WEIGHTS_REPLICATED || e->group.dense.shard_size == 1) &&
           (c->scope == SCOPE_WHOLE_STEP || c->scope == SCOPE_ONE_LAYER);
}

/* Returns a new buffer that is bound to a bundle, with room for all its elements or, if `shard`, for this rank's part;
 * for stored weights, their scales and 8-bit moments, it has as many bytes as these take. The optimizer's states are in
 * the memory where AdamW runs, and so are sharded parameters with PARAMETERS_HOST. It is persistent, unless it is a
 * gradient and gradients are allocated in the backward. */
static buffer_id make_persistent_bundle_buffer(struct emit *e, uint32_t bundle, const char *stem,
                                               enum binding_kind kind, enum category category,
                                               enum dtype dtype, bool shard)
{
    const struct weight_ranks *ranks = e->weights.bundle[bundle].ranks;
    const enum frozen_storage storage = (enum frozen_storage)e->weights.bundle[bundle].storage;
    int64_t count = (int64_t)(e->weights.bundle[bundle].elements / (shard ? ranks->shard_size : 1));
    if (storage != FROZEN_STORAGE_16BIT)
        count = (int64_t)ir_stored_weight_bytes(
            e->ir,
            &(struct binding){.kind = (uint8_t)kind,
                              .bundle = e->weights.bundle[bundle].ir_bundle_row},
            (uint64_t)count);
    else if (dtype == DTYPE_U8)
        count = (int64_t)states_moment_elements(STATES_8BIT, (uint64_t)count);
    struct binding binding = {.kind = (uint8_t)kind,
                              .bundle = e->weights.bundle[bundle].ir_bundle_row,
                              .shard_group = shard ? ranks->shard_group : IR_NONE16,
                              .gathered_group = IR_NONE16};
    if (kind == BINDING_GRAD && !shard && weight_bundle_update_is_sharded(e, bundle))
        binding.partial_axes = ranks->partial_axes;
    buffer_id buffer = emit_bound_buffer(e, stem, binding, category, dtype, count);
    bool with_optimizer = kind == BINDING_PARAM ? shard && e->choices->parameters == PARAMETERS_HOST
                                                : kind != BINDING_GRAD;
    bool host = with_optimizer && e->choices->optimizer == CHOICE_OPTIMIZER_HOST;
    e->ir->buffer.memory[buffer.i] = host ? MEMORY_PINNED : MEMORY_HBM;
    if (kind == BINDING_GRAD && weights_allocate_gradients_in_backward(e->choices))
        e->ir->buffer.flags[buffer.i] &= (uint8_t)~BUFFER_PERSISTENT;
    return buffer;
}

bool weights_are_own_master_copies(const struct choices *choices)
{
    return states_master_dtype((enum states)choices->states) == (enum dtype)choices->dtype &&
           (choices->optimizer != CHOICE_OPTIMIZER_HOST || choices->parameters == PARAMETERS_HOST);
}

/* Makes the buffers that the optimizer updates and keeps for a bundle, in the dtypes of --states: the masters and two
 * moments. If one_copy, the masters are bundle->param_shard. If the parameters are masters themselves
 * (weights_are_own_master_copies()) and each rank updates all of them, the masters are bundle->param. Else they have a
 * buffer of their own; if the parameters are masters, it stands for this rank's part of them (BUFFER_PART). */
static void make_optimizer_states(struct emit *e, uint32_t b, bool one_copy)
{
    const struct choices *c = e->choices;
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    enum states states = (enum states)c->states;
    enum dtype moment = states_moment_dtype(states);
    bool shard = weight_bundle_update_is_sharded(e, b);
    bool no_master = weights_are_own_master_copies(c);
    if (one_copy)
        bundle->master = bundle->param_shard;
    else if (no_master && !shard)
        bundle->master = bundle->param;
    else
        bundle->master = make_persistent_bundle_buffer(
            e, b, "master", BINDING_MASTER, no_master ? CATEGORY_PARAMETER : CATEGORY_OPTIMIZER,
            states_master_dtype(states), shard);
    if (no_master && bundle->master.i != bundle->param.i && !one_copy)
        e->ir->buffer.flags[bundle->master.i] |= BUFFER_PART;
    bundle->moment1 = make_persistent_bundle_buffer(e, b, "moment1_", BINDING_MOMENT1,
                                                    CATEGORY_OPTIMIZER, moment, shard);
    bundle->moment2 = make_persistent_bundle_buffer(e, b, "moment2_", BINDING_MOMENT2,
                                                    CATEGORY_OPTIMIZER, moment, shard);
}

/* Returns the dtype of the buffer by which forward and backward ops name a bundle's parameters: bytes for stored
 * weights, else the dtype of computation. */
static enum dtype param_dtype(const struct emit *e, const struct weight_bundle_state *bundle)
{
    return bundle->storage == FROZEN_STORAGE_16BIT ? (enum dtype)e->choices->dtype : DTYPE_U8;
}

/* Makes the buffers of a bundle's parameters, if ranks hold them whole. An implementation that keeps only quantised
 * weights has no 16-bit parameters, so their buffer does not count as its memory (BUFFER_PART). With
 * PARAM_GATHER_OVERLAP, if each rank updates a part of the bundle, that part has a buffer of its own, from which the
 * step begins to gather the whole; the implementation has the part inside the whole (BUFFER_PART). */
static void make_whole_params(struct emit *e, uint32_t b)
{
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    const enum dtype dtype = param_dtype(e, bundle);
    const bool narrow = bundle->has_only_quantised_weights && products_gather_quantised(e->choices);
    if (narrow || e->choices->param_gather == PARAM_GATHER_END ||
        !weight_bundle_update_is_sharded(e, b))
        bundle->param = make_persistent_bundle_buffer(e, b, "param", BINDING_PARAM,
                                                      CATEGORY_PARAMETER, dtype, false);
    else {
        bundle->param_shard = make_persistent_bundle_buffer(e, b, "param_shard", BINDING_PARAM,
                                                            CATEGORY_PARAMETER, dtype, true);
        bundle->param =
            emit_buffer(e, "param", CATEGORY_PARAMETER, dtype, (int64_t)bundle->elements, 0);
        e->ir->buffer.flags[bundle->param_shard.i] |= BUFFER_PART;
        e->ir->buffer.flags[bundle->param.i] |= BUFFER_PERSISTENT;
    }
    if (bundle->has_only_quantised_weights)
        e->ir->buffer.flags[bundle->param.i] |= BUFFER_PART;
    if (narrow)
        quantised_make_buffers(e, b);
}

/* Makes the buffers of a bundle's sharded parameters. If they are gathered in 8 bits, the implementation keeps no
 * 16-bit shards, so their buffer does not count as its memory (BUFFER_PART), unless it holds the masters (one_copy). */
static void make_sharded_params(struct emit *e, uint32_t b, enum dtype dtype, bool one_copy)
{
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    bundle->param_shard = make_persistent_bundle_buffer(e, b, "param_shard", BINDING_PARAM,
                                                        CATEGORY_PARAMETER, dtype, true);
    if (!bundle->has_only_quantised_weights || !products_gather_quantised(e->choices))
        return;
    if (!one_copy)
        e->ir->buffer.flags[bundle->param_shard.i] |= BUFFER_PART;
    bundle->param = make_persistent_bundle_buffer(e, b, "param", BINDING_PARAM, CATEGORY_PARAMETER,
                                                  (enum dtype)e->choices->dtype, false);
    e->ir->buffer.flags[bundle->param.i] |= BUFFER_PART;
    quantised_make_sharded_buffers(e, b);
}

/* Makes the buffers of a bundle's parameters, gradients and optimizer states; none for a bundle that another stage owns
 * (has_states_elsewhere), only parameters for a frozen one. param, grad, their shards, and the narrow members are
 * IR_NONE if they are not made. */
static void make_bundle_buffers(struct emit *e, uint32_t b)
{
    const struct choices *c = e->choices;
    struct weight_bundle_state *bundle = &e->weights.bundle[b];
    bool shard_params = weights_shard_params(c) && bundle->ranks->shard_size > 1;
    /* parameters and optimizer states are in the same memory */
    bool params_beside_states =
        c->optimizer != CHOICE_OPTIMIZER_HOST || c->parameters == PARAMETERS_HOST;
    /* the optimizer updates the parameters themselves */
    bool one_copy = !bundle->is_frozen && shard_params && params_beside_states &&
                    (c->profile->sharded_params_f32 || weights_are_own_master_copies(c));
    enum dtype shard_dtype =
        one_copy ? states_master_dtype((enum states)c->states) : param_dtype(e, bundle);

    bundle->has_states_elsewhere = pipeline_has_remote_weights(c) && bundle->chunk != e->stage &&
                                   !(bundle->is_on_first_and_last_stage && e->stage + 1 == c->pp);
    bundle->param.i = bundle->grad.i = bundle->param_shard.i = bundle->grad_shard.i = IR_NONE;
    bundle->narrow.i = bundle->narrow_scales.i = bundle->own_part_in_8_bits.i = IR_NONE;
    if (bundle->has_states_elsewhere)
        return;
    if (shard_params)
        make_sharded_params(e, b, shard_dtype, one_copy);
    else if (e->weights.uses_autocast) /* the whole parameters in fp32, which AdamW updates */
        bundle->param_shard =
            make_persistent_bundle_buffer(e, b, "param", BINDING_PARAM, CATEGORY_PARAMETER,
                                          states_master_dtype((enum states)c->states), false);
    else
        make_whole_params(e, b);
    if (bundle->storage != FROZEN_STORAGE_16BIT)
        bundle->scales = make_persistent_bundle_buffer(e, b, "scales", BINDING_SCALES,
                                                       CATEGORY_PARAMETER, DTYPE_U8, false);
    if (bundle->is_frozen)
        return;
    /* This gradient is reduced to grad_shard, or in place if there is no grad_shard. Gradients of single micro-batches
     * are made in weights_choose_grads_of_micro_batch(). */
    if (!has_gradient_per_micro_batch(e, b))
        bundle->grad = make_persistent_bundle_buffer(e, b, "grad", BINDING_GRAD, CATEGORY_GRADIENT,
                                                     e->weights.grad_dtype, false);
    if (weight_bundle_update_is_sharded(e, b)) {
        bundle->grad_shard = make_persistent_bundle_buffer(
            e, b, "grad_shard", BINDING_GRAD, CATEGORY_GRADIENT, e->weights.grad_part_dtype, true);
        if (c->profile->reduces_gradients_in_place && bundle->grad.i != IR_NONE)
            e->ir->buffer.flags[bundle->grad_shard.i] |= BUFFER_PART;
    }
    make_optimizer_states(e, b, one_copy || e->weights.uses_autocast);
}

/* Emits zeros in gradients before the step, if stages share subsequences. If stages use each other's weights, these are
 * the stage's own gradients, to which sums over stages are added. If all stages hold all weights, these are the
 * gradients of chunks on which this stage does not compute: all stages take part in the reduction of all gradients. */
static void zero_gradients(struct emit *e)
{
    bool remote = pipeline_has_remote_weights(e->choices);
    weights_set_op_labels(e, PHASE_BACKWARD, REGION_WEIGHT_COLLECTIVES, IR_NONE);
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        const struct weight_bundle_state *bundle = &e->weights.bundle[b];
        if (remote ? !bundle->has_states_elsewhere
                   : !multiplex_stage_takes_part(e->choices, e->stage, bundle->chunk))
            emit_zeros(e, view_whole(e, bundle->grad));
    }
    for (uint32_t p = 0; remote && p < part_index_of_embedding_or_head(e, END_PARTS); p++)
        e->weights.written_weight_masks_by_micro_batch[p] = UINT64_MAX;
}

void weights_make_bundles(struct emit *e)
{
    lay_out_all_bundles(e);
    e->weights.uses_autocast = autocast_casts_parameters(e);
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        make_bundle_buffers(e, b);
        /* Parameters that do not exist throughout the step get a buffer by which ops of forward and backward name them.
         * pass_weights() replaces it by the gathered parameters, pass_autocast() by their 16-bit copy. */
        struct weight_bundle_state *bundle = &e->weights.bundle[b];
        const uint64_t elements =
            bundle->storage == FROZEN_STORAGE_16BIT
                ? bundle->elements
                : frozen_storage_code_bytes((enum frozen_storage)bundle->storage, bundle->elements);
        if (bundle->param.i == IR_NONE)
            bundle->param = emit_buffer(e, "gathered", CATEGORY_PARAMETER, param_dtype(e, bundle),
                                        (int64_t)elements, 0);
    }
    bool each = reduces_each_micro_batch(e);
    uint32_t times = each ? e->choices->accumulation : 1;
    e->weights.written_weight_masks_by_micro_batch =
        arena_array(&e->arena, (size_t)part_index_of_embedding_or_head(e, END_PARTS) * times,
                    sizeof *e->weights.written_weight_masks_by_micro_batch);
    e->weights.written = e->weights.written_weight_masks_by_micro_batch;
    e->weights.grad_buffer_count = e->weights.bundle_count * times;
    e->weights.grad_buffer =
        arena_array(&e->arena, e->weights.grad_buffer_count, sizeof *e->weights.grad_buffer);
    for (uint32_t i = 0; i < e->weights.grad_buffer_count; i++)
        e->weights.grad_buffer[i] = each ? (buffer_id){IR_NONE} : e->weights.bundle[i].grad;
    e->weights.remote_grad_count = e->weights.stage_bundle_part_count = 0;
    struct op_tags before = e->op_tags;
    if (pipeline_of_choices(e->choices)->is_multiplexed)
        zero_gradients(e);
    e->op_tags = before;
}

void weights_set_op_labels(struct emit *e, enum phase phase, enum region region, uint32_t like)
{
    uint16_t layer = like == IR_NONE ? IR_NONE16 : e->ir->op.layer[like];
    uint16_t micro = like == IR_NONE ? IR_NONE16 : e->ir->op.micro[like];
    e->op_tags =
        (struct op_tags){(uint8_t)phase, (uint8_t)region, layer, IR_NONE16, IR_NONE16, micro};
}

void weights_choose_grads_of_micro_batch(struct emit *e, uint32_t micro)
{
    if (!reduces_each_micro_batch(e))
        return;
    e->weights.written = e->weights.written_weight_masks_by_micro_batch +
                         (size_t)micro * part_index_of_embedding_or_head(e, END_PARTS);
    buffer_id *grad = e->weights.grad_buffer + (size_t)micro * e->weights.bundle_count;
    for (uint32_t b = 0; b < e->weights.bundle_count; b++) {
        if (grad[b].i == IR_NONE && !has_gradient_per_micro_batch(e, b))
            grad[b] = e->weights.bundle[b].grad;
        if (grad[b].i == IR_NONE && !e->weights.bundle[b].is_frozen)
            grad[b] = emit_buffer(e, "partial", CATEGORY_GRADIENT, e->weights.grad_dtype,
                                  (int64_t)e->weights.bundle[b].elements, 0);
        e->weights.bundle[b].grad = grad[b];
    }
}

buffer_id weights_gradient_of_optimizer(const struct emit *e, uint32_t b)
{
    const struct weight_bundle_state *bundle = &e->weights.bundle[b];
    return bundle->grad_shard.i != IR_NONE ? bundle->grad_shard : bundle->grad;
}

op_id weights_emit_collective(struct emit *e, uint8_t stream, enum work_kind kind, uint16_t group,
                              buffer_id from, buffer_id to)
{
    struct view x = view_whole(e, from), y = view_whole(e, to);
    /* group and bytes are the first two parameters of every collective */
    struct work work = {.kind = (uint8_t)kind, .p = {group, bytes_of_view(e, x)}};
    return emit_op(e, stream, &work, &x, 1, &y, 1);
}

buffer_id weights_new_shard_buffer(struct emit *e, uint32_t bundle, const char *stem,
                                   enum category category, enum dtype dtype)
{
    return emit_buffer(
        e, stem, category, dtype,
        (int64_t)(e->weights.bundle[bundle].elements / e->weights.bundle[bundle].ranks->shard_size),
        0);
}
