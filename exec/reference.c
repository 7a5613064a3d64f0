#include "exec/reference.h"

#include "base/arena.h"
#include "base/digest.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reference_memory {
    struct arena arena; /* names and the table of tensors */
    double *elements;   /* params, grads, m and v of all tensors */
};

static void add_tensors(struct reference *r, const struct tensor_spec *specs, size_t count,
                        const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        struct reference_tensor *tensor = &r->tensors[r->tensor_count++];
        tensor->name = arena_printf(&r->memory->arena, "%s%s", prefix, specs[i].name);
        tensor->rows = specs[i].rows;
        tensor->cols = specs[i].cols;
        tensor->count = (size_t)specs[i].rows * (size_t)specs[i].cols;
    }
}

struct reference *reference_new(const struct transformer *t)
{
    assert(transformer_check(t, (struct loc){0}, NULL) == STATUS_OK);
    struct tensor_spec embedding_specs[TRANSFORMER_MAX_TENSORS],
        layer_specs[TRANSFORMER_MAX_TENSORS];
    struct tensor_spec head_specs[TRANSFORMER_MAX_TENSORS];
    const size_t embedding_tensor_count =
        transformer_list_embedding_tensors(t, embedding_specs, ARRAY_LEN(embedding_specs));
    const size_t head_tensor_count =
        transformer_list_head_tensors(t, head_specs, ARRAY_LEN(head_specs));

    struct reference *r = heap_zalloc(1, sizeof *r);
    r->memory = heap_zalloc(1, sizeof *r->memory);
    struct arena *arena = &r->memory->arena;
    r->transformer = *t;
    r->transformer.name = r->transformer.source = r->transformer.note = NULL;
    r->tensors = arena_array(arena,
                             embedding_tensor_count + (size_t)t->layers * TRANSFORMER_MAX_TENSORS +
                                 head_tensor_count,
                             sizeof *r->tensors);
    add_tensors(r, embedding_specs, embedding_tensor_count, "");
    for (int64_t i = 0; i < t->layers; i++) {
        const size_t per_layer =
            transformer_list_layer_tensors(t, i, layer_specs, ARRAY_LEN(layer_specs));
        add_tensors(r, layer_specs, per_layer, arena_printf(arena, "layers.%" PRId64 ".", i));
    }
    add_tensors(r, head_specs, head_tensor_count, "");

    size_t parameters = 0;
    for (size_t i = 0; i < r->tensor_count; i++)
        parameters += r->tensors[i].count;
    double *next = r->memory->elements = heap_zalloc(4 * parameters, sizeof *next);
    for (size_t i = 0; i < r->tensor_count; i++) {
        struct reference_tensor *tensor = &r->tensors[i];
        tensor->param = next;
        tensor->grad = tensor->param + tensor->count;
        tensor->m = tensor->grad + tensor->count;
        tensor->v = tensor->m + tensor->count;
        next = tensor->v + tensor->count;
    }
    assert(next == r->memory->elements + 4 * parameters);
    return r;
}

void reference_free(struct reference *r)
{
    if (r == NULL)
        return;
    free(r->memory->elements);
    arena_release(&r->memory->arena);
    free(r->memory);
    free(r);
}

struct reference_tensor *reference_find_tensor(const struct reference *r, const char *name)
{
    for (size_t i = 0; i < r->tensor_count; i++)
        if (strcmp(r->tensors[i].name, name) == 0)
            return &r->tensors[i];
    return NULL;
}

/* ---- initial values ---- */

/* Returns output number i, from 0, of the generator splitmix64 (Steele, Lea and Flood 2014) that starts at `state`. */
static uint64_t splitmix64(uint64_t state, uint64_t i)
{
    uint64_t z = state + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool reference_is_bias(const char *name)
{
    return strstr(name, ".bias") != NULL;
}

bool reference_is_norm(const char *name)
{
    return !reference_is_bias(name) && strstr(name, "norm") != NULL;
}

void reference_init_weights(struct reference *r, uint64_t seed)
{
    for (size_t n = 0; n < r->tensor_count; n++) {
        struct reference_tensor *tensor = &r->tensors[n];
        const bool bias = reference_is_bias(tensor->name);
        const bool norm = reference_is_norm(tensor->name);
        const double centre = norm ? 1 : 0;
        const double width = norm || bias ? 0.1 : sqrt(3 / (double)tensor->cols);
        const uint64_t state =
            seed + digest_add(DIGEST_OF_NO_BYTES, tensor->name, strlen(tensor->name));
        for (size_t i = 0; i < tensor->count; i++) {
            const double u = (double)(splitmix64(state, i) >> 11) * 0x1p-53;
            tensor->param[i] = (float)(centre + width * (2 * u - 1));
        }
        memset(tensor->m, 0, tensor->count * sizeof *tensor->m);
        memset(tensor->v, 0, tensor->count * sizeof *tensor->v);
    }
}

/* ---- the norm of the gradients, by which they are clipped ---- */

double reference_gradient_norm(const struct reference *r)
{
    double squares = 0;
    for (size_t n = 0; n < r->tensor_count; n++)
        for (size_t i = 0; i < r->tensors[n].count; i++)
            squares += r->tensors[n].grad[i] * r->tensors[n].grad[i];
    return sqrt(squares);
}

double reference_clip_factor(const struct reference *r, double max_norm)
{
    double factor = max_norm / (reference_gradient_norm(r) + 1e-6);
    return max_norm > 0 && factor < 1 ? factor : 1;
}

void reference_scale_gradients(struct reference *r, double factor)
{
    for (size_t n = 0; n < r->tensor_count; n++)
        for (size_t i = 0; i < r->tensors[n].count; i++)
            r->tensors[n].grad[i] *= factor;
}

/* ---- the update by AdamW ---- */

void reference_adamw_step(struct reference *r, const struct reference_adamw *a, int64_t step)
{
    assert(step >= 1);
    const double correct1 = 1 - pow(a->beta1, (double)step);
    const double correct2 = 1 - pow(a->beta2, (double)step);
    for (size_t n = 0; n < r->tensor_count; n++) {
        struct reference_tensor *tensor = &r->tensors[n];
        if (!transformer_is_tensor_trained(&r->transformer, tensor->name))
            continue;
        for (size_t i = 0; i < tensor->count; i++) {
            const double g = tensor->grad[i];
            const double m = a->beta1 * tensor->m[i] + (1 - a->beta1) * g;
            const double v = a->beta2 * tensor->v[i] + (1 - a->beta2) * g * g;
            tensor->m[i] = m;
            tensor->v[i] = v;
            tensor->param[i] -= a->lr * a->weight_decay * tensor->param[i];
            tensor->param[i] -= a->lr / correct1 * m / (sqrt(v / correct2) + a->eps);
        }
    }
}
