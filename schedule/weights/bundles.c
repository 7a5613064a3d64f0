/* Weights as bundles: tensors laid end to end, gathered, reduced and updated together.
 *
 * The embedding is a bundle, each layer (or, where weights stay whole, a run of layers of at least
 * the profile's bucket size) is one, the head is one. A bundle is padded so that every rank's part
 * is a multiple of 8 elements (16 bytes in bf16). docs/strategies.md, "Weights". */
#include "schedule/weights/weights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SHARD_ALIGNMENT = 8 };

/* Text names of models/transformer.h -> what a weight is for; both spellings of the up projection. */
static const struct {
    const char *name;
    enum weight weight;
} weight_names[] = {
    {"norm1.weight", WEIGHT_NORM1},
    {"norm1.bias", WEIGHT_NORM1_BIAS},
    {"wqkv.weight", WEIGHT_QKV},
    {"wqkv.bias", WEIGHT_QKV_BIAS},
    {"q_norm.weight", WEIGHT_Q_NORM},
    {"k_norm.weight", WEIGHT_K_NORM},
    {"wo.weight", WEIGHT_O},
    {"wo.bias", WEIGHT_O_BIAS},
    {"norm2.weight", WEIGHT_NORM2},
    {"norm2.bias", WEIGHT_NORM2_BIAS},
    {"w13.weight", WEIGHT_UP},
    {"w13.bias", WEIGHT_UP_BIAS},
    {"w1.weight", WEIGHT_UP},
    {"w1.bias", WEIGHT_UP_BIAS},
    {"w2.weight", WEIGHT_DOWN},
    {"w2.bias", WEIGHT_DOWN_BIAS},
    {"embedding.weight", WEIGHT_EMBEDDING},
    {"positions.weight", WEIGHT_POSITIONS},
    {"norm.weight", WEIGHT_FINAL_NORM},
    {"norm.bias", WEIGHT_FINAL_NORM_BIAS},
    {"head.weight", WEIGHT_HEAD},
};

static enum weight weight_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(weight_names); i++)
        if (strcmp(weight_names[i].name, name) == 0)
            return weight_names[i].weight;
    assert(!"a tensor of models/transformer.h that emission does not know");
    return WEIGHT_COUNT;
}

static bool sharded_params(const struct choices *c)
{
    return c->weights == CHOICE_WEIGHTS_ZERO3 || c->weights == CHOICE_WEIGHTS_HSDP;
}

bool weights_reduce_each_micro_batch(const struct choices *c)
{
    return sharded_params(c) || c->weights == CHOICE_WEIGHTS_ZERO2;
}

bool weights_sharded_params(const struct choices *c)
{
    return sharded_params(c);
}

/* Adds a part's tensors to the ir and lays them out from *used on. */
static void add_part(struct emit *e, uint32_t part, const char *prefix,
                     const struct tensor_spec *spec, size_t count, uint32_t bundle, uint64_t *used)
{
    char name[96];
    e->part[part] =
        (struct part){.bundle = bundle, .base = *used, .tensor_begin = e->ir->tensor_count};
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, spec[i].name);
        ir_add_tensor(e->ir,
                      (struct tensor){.name = name, .rows = spec[i].rows, .cols = spec[i].cols});
        e->slot[weight_of(spec[i].name)] = (struct weight_slot){
            .offset = offset, .rows = spec[i].rows, .cols = spec[i].cols, .index = (uint8_t)i};
        offset += (uint64_t)(spec[i].rows * spec[i].cols);
    }
    *used += offset;
}

static void close_bundle(struct emit *e, uint32_t bundle, const char *name, uint32_t tensor_begin,
                         uint64_t used)
{
    uint64_t unit = e->shard_size > 1 ? (uint64_t)e->shard_size * SHARD_ALIGNMENT : 1;
    uint64_t elements = (used + unit - 1) / unit * unit;
    e->bundle[bundle] = (struct bundle_state){.elements = elements, .used = used};
    ir_add_bundle(e->ir, (struct bundle){.name = name,
                                         .tensor_begin = tensor_begin,
                                         .tensor_count = e->ir->tensor_count - tensor_begin,
                                         .elements = elements});
}

/* Layers per bundle. */
static int64_t layers_together(const struct choices *c)
{
    int64_t layer = transformer_layer_parameters(c->model);
    if (sharded_params(c) || c->profile->bucket_elements <= layer)
        return 1;
    int64_t together = c->profile->bucket_elements / layer;
    return together < c->model->layers ? together : c->model->layers;
}

static void lay_out(struct emit *e)
{
    const struct transformer *model = e->choices->model;
    struct tensor_spec spec[TRANSFORMER_MAX_TENSORS];
    int64_t together = layers_together(e->choices);
    uint32_t bundle = 0;
    char name[64];

    e->part = arena_array(&e->arena, (size_t)model->layers + 2, sizeof *e->part);
    e->touched = arena_array(&e->arena, (size_t)model->layers + 2, sizeof *e->touched);
    e->bundle_count = 2 + (uint32_t)((model->layers + together - 1) / together);
    e->bundle = arena_array(&e->arena, e->bundle_count, sizeof *e->bundle);

    uint64_t used = 0;
    uint32_t begin = e->ir->tensor_count;
    size_t count = transformer_embedding_tensors(model, spec, ARRAY_LEN(spec));
    add_part(e, part_embedding(e), "", spec, count, bundle, &used);
    close_bundle(e, bundle++, "embedding", begin, used);

    count = transformer_layer_tensors(model, spec, ARRAY_LEN(spec));
    for (int64_t first = 0; first < model->layers; first += together) {
        int64_t end = first + together < model->layers ? first + together : model->layers;
        used = 0;
        begin = e->ir->tensor_count;
        for (int64_t l = first; l < end; l++) {
            snprintf(name, sizeof name, "layers.%lld.", (long long)l);
            add_part(e, (uint32_t)l, name, spec, count, bundle, &used);
        }
        snprintf(name, sizeof name, "layers.%lld", (long long)first);
        close_bundle(e, bundle++, name, begin, used);
    }

    used = 0;
    begin = e->ir->tensor_count;
    count = transformer_head_tensors(model, spec, ARRAY_LEN(spec));
    add_part(e, part_head(e), "", spec, count, bundle, &used);
    close_bundle(e, bundle++, "head", begin, used);
    assert(bundle == e->bundle_count);
}

/* A persistent buffer bound to a bundle: whole, or this rank's part of it. */
static buffer_id state_buffer(struct emit *e, uint32_t bundle, const char *stem,
                              enum binding_kind kind, enum category category, enum dtype dtype,
                              enum memory memory, bool shard, uint32_t partial)
{
    shard = shard && e->shard_size > 1;
    struct buffer_desc desc = {
        .stem = stem,
        .number = IR_NONE,
        .memory = (uint8_t)memory,
        .dtype = (uint8_t)dtype,
        .category = (uint8_t)category,
        .flags = BUFFER_PERSISTENT,
        .layer = IR_NONE16,
        .binding =
            ir_add_binding(e->ir, (struct binding){.kind = (uint8_t)kind,
                                                   .bundle = (uint16_t)bundle,
                                                   .shard = shard ? e->shard_group : IR_NONE16,
                                                   .gathered = IR_NONE16,
                                                   .partial = partial}),
        .dims = {.count = 1,
                 .size = {(int64_t)(e->bundle[bundle].elements / (shard ? e->shard_size : 1))}},
    };
    return ir_add_buffer(e->ir, &desc);
}

static void make_states(struct emit *e, uint32_t b)
{
    const struct choices *c = e->choices;
    struct bundle_state *bundle = &e->bundle[b];
    bool shard_params = sharded_params(c);
    bool shard_optimizer = c->weights != CHOICE_WEIGHTS_REPLICATED;
    enum memory host = c->optimizer == CHOICE_OPTIMIZER_HOST ? MEMORY_PINNED : MEMORY_HBM;

    *bundle = (struct bundle_state){.elements = bundle->elements,
                                    .used = bundle->used,
                                    .param = {IR_NONE},
                                    .grad = {IR_NONE},
                                    .param_shard = {IR_NONE},
                                    .grad_shard = {IR_NONE}};
    if (shard_params && e->shard_size > 1)
        bundle->param_shard = state_buffer(e, b, "param_shard", BINDING_PARAM, CATEGORY_PARAMETER,
                                           c->dtype, MEMORY_HBM, true, 0);
    else
        bundle->param = state_buffer(e, b, "param", BINDING_PARAM, CATEGORY_PARAMETER, c->dtype,
                                     MEMORY_HBM, false, 0);
    /* reduced into grad_shard, or, where there is none, in place */
    if (!weights_reduce_each_micro_batch(c) || e->shard_size == 1)
        bundle->grad =
            state_buffer(e, b, "grad", BINDING_GRAD, CATEGORY_GRADIENT, e->grad_dtype, MEMORY_HBM,
                         false, shard_optimizer && e->shard_size > 1 ? e->all_axes : 0);
    if (shard_optimizer && e->shard_size > 1)
        bundle->grad_shard = state_buffer(e, b, "grad_shard", BINDING_GRAD, CATEGORY_GRADIENT,
                                          e->grad_dtype, MEMORY_HBM, true, 0);
    bundle->master = state_buffer(e, b, "master", BINDING_MASTER, CATEGORY_OPTIMIZER, DTYPE_F32,
                                  host, shard_optimizer, 0);
    bundle->moment1 = state_buffer(e, b, "moment1_", BINDING_MOMENT1, CATEGORY_OPTIMIZER, DTYPE_F32,
                                   host, shard_optimizer, 0);
    bundle->moment2 = state_buffer(e, b, "moment2_", BINDING_MOMENT2, CATEGORY_OPTIMIZER, DTYPE_F32,
                                   host, shard_optimizer, 0);
}

void weights_setup(struct emit *e)
{
    lay_out(e);
    for (uint32_t b = 0; b < e->bundle_count; b++) {
        make_states(e, b);
        /* what forward and backward name while parameters are whole; pass_weights() redirects it */
        if (e->bundle[b].param.i == IR_NONE)
            e->bundle[b].param = emit_buffer(e, "gathered", CATEGORY_PARAMETER, e->choices->dtype,
                                             (int64_t)e->bundle[b].elements, 0);
    }
}

void weights_begin_micro_batch(struct emit *e, uint32_t micro)
{
    bool each = weights_reduce_each_micro_batch(e->choices) && e->shard_size > 1;
    if (micro == 0)
        e->grad_buffer =
            arena_array(&e->arena, (size_t)e->bundle_count * (each ? e->choices->accumulation : 1),
                        sizeof *e->grad_buffer);
    if (!each) {
        for (uint32_t b = 0; micro == 0 && b < e->bundle_count; b++)
            e->grad_buffer[e->grad_buffer_count++] = e->bundle[b].grad;
        return;
    }
    memset(e->touched, 0, ((size_t)e->choices->model->layers + 2) * sizeof *e->touched);
    for (uint32_t b = 0; b < e->bundle_count; b++)
        e->grad_buffer[e->grad_buffer_count++] = e->bundle[b].grad = emit_buffer(
            e, "partial", CATEGORY_GRADIENT, e->grad_dtype, (int64_t)e->bundle[b].elements, 0);
}
