#include "exec/cuda/fused.h"

#ifdef HAVE_CUDNN
#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DESCRIPTORS = 192, OPERATIONS = 32, SCALARS = 6, TENSORS = 12, CONFIGS = 16 };
enum { ALIGNMENT = 256 };

/* Names of the tensors that have memory, and of numbers given by value. */
enum uid {
    UID_Q = 1,
    UID_K,
    UID_V,
    UID_O,
    UID_STATS,
    UID_D_O,
    UID_DQ,
    UID_DK,
    UID_DV,
    UID_DELTA,  /* rowsum(dO o O), (heads, q): cuDNN wants it in memory */
    UID_DQ_SUM, /* fp32 (heads, q, dim): blocks of keys add to it */
    UID_SCALE,
    UID_HIDDEN,
    UID_ONE,
    UID_ROWS,
    UID_COLS,
    UID_INNER = 100 /* values within the kernel: from here on */
};

typedef cudnnBackendDescriptor_t descriptor;

struct scalar {
    int64_t uid;
    union {
        float f;
        int32_t i;
    };
};

struct fused {
    const struct cudnn *dnn;
    struct fused_shape shape;
    descriptor made[DESCRIPTORS], operation[OPERATIONS], plan;
    int64_t made_count, operations, inner;
    struct scalar scalar[SCALARS];
    int scalars;
    size_t workspace, delta_at, dq_at, scratch;
    bool failed;
    char words[400];
};

/* ---- descriptors ---- */

static void refuse(struct fused *g, const char *call, cudnnStatus_t status)
{
    char more[256] = "";
    if (g->failed)
        return;
    g->failed = true;
    g->dnn->cudnnGetLastErrorString(more, sizeof more);
    snprintf(g->words, sizeof g->words, "%s: %s (%s)", call, g->dnn->cudnnGetErrorString(status),
             more);
}

static descriptor make(struct fused *g, cudnnBackendDescriptorType_t type)
{
    descriptor d = NULL;
    if (g->failed)
        return NULL;
    cudnnStatus_t status = g->made_count < DESCRIPTORS
                               ? g->dnn->cudnnBackendCreateDescriptor(type, &d)
                               : CUDNN_STATUS_INTERNAL_ERROR;
    if (status != CUDNN_STATUS_SUCCESS) {
        refuse(g, "cudnnBackendCreateDescriptor", status);
        return NULL;
    }
    g->made[g->made_count++] = d;
    return d;
}

static void set(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    if (g->failed)
        return;
    cudnnStatus_t status = g->dnn->cudnnBackendSetAttribute(d, name, type, count, value);
    if (status != CUDNN_STATUS_SUCCESS)
        refuse(g, "cudnnBackendSetAttribute", status);
}

static void set_descriptor(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                           descriptor value)
{
    set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

static void set_type(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type)
{
    set(g, d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void finalize(struct fused *g, descriptor d)
{
    if (g->failed)
        return;
    cudnnStatus_t status = g->dnn->cudnnBackendFinalize(d);
    if (status != CUDNN_STATUS_SUCCESS)
        refuse(g, "cudnnBackendFinalize", status);
}

/* ---- tensors: (batch = 1, heads, rows, columns) ---- */

struct dims {
    int64_t size[4], step[4];
};

/* Packed in the order of the sizes. */
static struct dims packed(int64_t heads, int64_t rows, int64_t cols)
{
    return (struct dims){{1, heads, rows, cols}, {heads * rows * cols, rows * cols, cols, 1}};
}

/* A tensor (rows, heads, dim) in memory. */
static struct dims tokens(int64_t rows, int64_t heads, int64_t dim)
{
    return (struct dims){{1, heads, rows, dim}, {rows * heads * dim, dim, heads * dim, 1}};
}

static struct dims turned(struct dims d)
{
    return (struct dims){{d.size[0], d.size[1], d.size[3], d.size[2]},
                         {d.step[0], d.step[1], d.step[3], d.step[2]}};
}

static descriptor tensor(struct fused *g, int64_t uid, cudnnDataType_t type, struct dims dims,
                         cudnnBackendAttributeName_t flag)
{
    const int64_t alignment = 16;
    const bool yes = true;
    descriptor d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.size);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, dims.step);
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (flag != CUDNN_ATTR_TENSOR_DATA_TYPE)
        set(g, d, flag, CUDNN_TYPE_BOOLEAN, 1, &yes);
    finalize(g, d);
    return d;
}

static descriptor in_memory(struct fused *g, enum uid uid, cudnnDataType_t type, struct dims dims)
{
    return tensor(g, uid, type, dims, CUDNN_ATTR_TENSOR_DATA_TYPE);
}

static descriptor inner(struct fused *g, cudnnDataType_t type, struct dims dims)
{
    return tensor(g, UID_INNER + g->inner++, type, dims, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static descriptor number(struct fused *g, struct scalar value, cudnnDataType_t type)
{
    g->scalar[g->scalars++] = value;
    return tensor(g, value.uid, type, packed(1, 1, 1), CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

static descriptor real(struct fused *g, enum uid uid, float value)
{
    return number(g, (struct scalar){.uid = uid, .f = value}, CUDNN_DATA_FLOAT);
}

static descriptor whole(struct fused *g, enum uid uid, int64_t value)
{
    return number(g, (struct scalar){.uid = uid, .i = (int32_t)value}, CUDNN_DATA_INT32);
}

/* ---- operations ---- */

static void add_operation(struct fused *g, descriptor operation)
{
    finalize(g, operation);
    if (!g->failed)
        g->operation[g->operations++] = operation;
}

/* y = mode(x, b), or with t: where t holds x, elsewhere b. axis: of GEN_INDEX. */
static void pointwise(struct fused *g, cudnnPointwiseMode_t mode, cudnnDataType_t type,
                      int64_t axis, descriptor x, descriptor b, descriptor t, descriptor y)
{
    descriptor how = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, type);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finalize(g, how);
    descriptor op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (b != NULL)
        set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t != NULL)
        set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    add_operation(g, op);
}

/* A new inner value in fp32. */
static descriptor apply(struct fused *g, cudnnPointwiseMode_t mode, descriptor x, descriptor b,
                        struct dims dims)
{
    descriptor y = inner(g, CUDNN_DATA_FLOAT, dims);
    pointwise(g, mode, CUDNN_DATA_FLOAT, 0, x, b, NULL, y);
    return y;
}

static void multiply(struct fused *g, descriptor a, descriptor b, descriptor c)
{
    descriptor how = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finalize(g, how);
    descriptor op = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_operation(g, op);
}

static void reduce(struct fused *g, cudnnReduceTensorOp_t mode, descriptor x, descriptor y)
{
    descriptor how = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    finalize(g, how);
    descriptor op = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add_operation(g, op);
}

static void reshape(struct fused *g, descriptor x, descriptor y)
{
    descriptor op = make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add_operation(g, op);
}

/* x where the query sees the key, -inf elsewhere. */
static descriptor masked(struct fused *g, descriptor x)
{
    const struct fused_shape *s = &g->shape;
    const struct dims scores = packed(s->heads, s->q, s->kv);
    if (s->mask == FUSED_ALL)
        return x;
    descriptor row = inner(g, CUDNN_DATA_INT32, scores), col = inner(g, CUDNN_DATA_INT32, scores);
    pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2, x, NULL, NULL, row);
    pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3, x, NULL, NULL, col);
    if (s->mask == FUSED_TO_END) {
        descriptor more = inner(g, CUDNN_DATA_INT32, scores);
        descriptor shifted = inner(g, CUDNN_DATA_INT32, scores);
        pointwise(g, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, 0, row, whole(g, UID_COLS, s->kv), NULL,
                  more);
        pointwise(g, CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, 0, more, whole(g, UID_ROWS, s->q), NULL,
                  shifted);
        row = shifted;
    }
    descriptor seen = inner(g, CUDNN_DATA_BOOLEAN, scores), y = inner(g, CUDNN_DATA_FLOAT, scores);
    pointwise(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0, row, col, NULL, seen);
    pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0, x,
              real(g, UID_HIDDEN, -INFINITY), seen, y);
    return y;
}

static cudnnDataType_t type_of(const struct fused_shape *s)
{
    return s->f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

static float scale_of(const struct fused_shape *s)
{
    return 1 / sqrtf((float)s->dim);
}

/* S = Q K^T scale; m = max; e = exp(S - m); l = sum; O = (e / l) V; stats = m + log l */
static void forward(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    const cudnnDataType_t T = type_of(s), F = CUDNN_DATA_FLOAT;
    const struct dims q = tokens(s->q, s->heads, s->dim), kv = tokens(s->kv, s->kv_heads, s->dim);
    const struct dims scores = packed(s->heads, s->q, s->kv), rows = packed(s->heads, s->q, 1);
    descriptor Q = in_memory(g, UID_Q, T, q), KT = in_memory(g, UID_K, T, turned(kv));
    descriptor V = in_memory(g, UID_V, T, kv), O = in_memory(g, UID_O, T, q);
    descriptor stats = in_memory(g, UID_STATS, F, rows);
    descriptor S = inner(g, F, scores), top = inner(g, F, rows), sum = inner(g, F, rows);
    multiply(g, Q, KT, S);
    descriptor X =
        masked(g, apply(g, CUDNN_POINTWISE_MUL, S, real(g, UID_SCALE, scale_of(s)), scores));
    reduce(g, CUDNN_REDUCE_TENSOR_MAX, X, top);
    descriptor E =
        apply(g, CUDNN_POINTWISE_EXP, apply(g, CUDNN_POINTWISE_SUB, X, top, scores), NULL, scores);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, E, sum);
    descriptor log_sum = apply(g, CUDNN_POINTWISE_LOG, sum, NULL, rows);
    pointwise(g, CUDNN_POINTWISE_ADD, F, 0, top, log_sum, NULL, stats);
    descriptor P = inner(g, T, scores); /* what a product reads is of the tensors' type */
    pointwise(g, CUDNN_POINTWISE_DIV, F, 0, E, sum, NULL, P);
    multiply(g, P, V, O);
}

/* A gradient of keys or values: of every query head, summed over the group of a key head. */
static void key_gradient(struct fused *g, descriptor a, descriptor b, descriptor gradient)
{
    const struct fused_shape *s = &g->shape;
    if (s->heads == s->kv_heads) {
        multiply(g, a, b, gradient);
        return;
    }
    descriptor each = inner(g, type_of(s), packed(s->heads, s->kv, s->dim));
    multiply(g, a, b, each);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, each, gradient);
}

/* delta = rowsum(dO o O); P = exp(mask(S scale - stats)); dV = P^T dO;
 * dS = (dO V^T - delta) o P scale; dK = dS^T Q; dQ = dS K. dS stays in fp32: only what is seen of it
 * transposed is of the tensors' type, or the pattern is not recognised. */
static void backward(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    const cudnnDataType_t T = type_of(s), F = CUDNN_DATA_FLOAT;
    const struct dims q = tokens(s->q, s->heads, s->dim), kv = tokens(s->kv, s->kv_heads, s->dim);
    const struct dims scores = packed(s->heads, s->q, s->kv), rows = packed(s->heads, s->q, 1);
    descriptor Q = in_memory(g, UID_Q, T, q), KT = in_memory(g, UID_K, T, turned(kv));
    descriptor VT = in_memory(g, UID_V, T, turned(kv)), O = in_memory(g, UID_O, T, q);
    descriptor dO = in_memory(g, UID_D_O, T, q), stats = in_memory(g, UID_STATS, F, rows);
    descriptor dQ = in_memory(g, UID_DQ, T, q), dK = in_memory(g, UID_DK, T, kv);
    descriptor dV = in_memory(g, UID_DV, T, kv), scale = real(g, UID_SCALE, scale_of(s));

    descriptor dot = inner(g, F, rows), delta = in_memory(g, UID_DELTA, F, rows);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD,
           apply(g, CUDNN_POINTWISE_MUL, dO, O, packed(s->heads, s->q, s->dim)), dot);
    pointwise(g, CUDNN_POINTWISE_MUL, F, 0, dot, real(g, UID_ONE, 1), NULL, delta);

    descriptor S = inner(g, F, scores);
    multiply(g, Q, KT, S);
    S = apply(g, CUDNN_POINTWISE_MUL, S, scale, scores);
    S = masked(g, apply(g, CUDNN_POINTWISE_SUB, S, stats, scores));
    descriptor P = apply(g, CUDNN_POINTWISE_EXP, S, NULL, scores);
    descriptor PT = inner(g, T, turned(scores));
    reshape(g, P, PT);
    key_gradient(g, PT, dO, dV);

    descriptor dP = inner(g, F, scores);
    multiply(g, dO, VT, dP);
    dP = apply(g, CUDNN_POINTWISE_SUB, dP, delta, scores);
    dP = apply(g, CUDNN_POINTWISE_MUL, dP, P, scores);
    descriptor dS = apply(g, CUDNN_POINTWISE_MUL, dP, scale, scores);
    descriptor dST = inner(g, T, turned(scores));
    reshape(g, dS, dST);
    key_gradient(g, dST, Q, dK);

    descriptor K = inner(g, T, kv);
    reshape(g, KT, K);
    descriptor sum = in_memory(g, UID_DQ_SUM, F, packed(s->heads, s->q, s->dim));
    multiply(g, dS, K, sum);
    pointwise(g, CUDNN_POINTWISE_IDENTITY, F, 0, sum, NULL, NULL, dQ);
}

/* ---- from the graph to a plan ---- */

static bool finalize_plan(struct fused *g, descriptor config, cudnnHandle_t handle,
                          descriptor device)
{
    int64_t workspace = 0, count = 0;
    descriptor plan = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (device != NULL)
        set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    else
        set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&handle);
    if (g->failed || g->dnn->cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
        return false;
    g->dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &workspace);
    g->plan = plan;
    g->workspace = (size_t)workspace;
    return true;
}

/* The first configuration of the heuristic's list whose plan can be finalized. */
static bool choose(struct fused *g, descriptor graph, cudnnBackendHeurMode_t mode,
                   cudnnHandle_t handle, descriptor device)
{
    int64_t count = 0;
    descriptor config[CONFIGS], list = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(g, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(g, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device != NULL)
        set_descriptor(g, list, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    if (g->failed || g->dnn->cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int i = 0; i < CONFIGS; i++)
        config[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->failed || g->dnn->cudnnBackendGetAttribute(
                         list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                         CONFIGS, &count, (void *)config) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < count && i < CONFIGS; i++)
        if (finalize_plan(g, config[i], handle, device))
            return true;
    return false;
}

static void lay_out(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    size_t rows = (size_t)(s->heads * s->q);
    g->scratch = (g->workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!s->backward)
        return;
    g->delta_at = g->scratch;
    g->scratch += (rows * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    g->dq_at = g->scratch;
    g->scratch += (rows * (size_t)s->dim * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size)
{
    struct fused *g = fused;
    if (g->shape.backward)
        backward(g);
    else
        forward(g);
    descriptor graph = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operations,
        (const void *)g->operation);
    if (device == NULL)
        set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
            (const void *)&handle);
    finalize(g, graph);
    if (!choose(g, graph, CUDNN_HEUR_MODE_A, handle, device) &&
        !choose(g, graph, CUDNN_HEUR_MODE_FALLBACK, handle, device))
        refuse(g, "no engine takes this attention", CUDNN_STATUS_NOT_SUPPORTED);
    if (g->plan == NULL) {
        snprintf(words, size, "%s", g->words);
        return false;
    }
    lay_out(g);
    return true;
}

struct fused *fused_new(const struct cudnn *dnn, const struct fused_shape *shape)
{
    struct fused *fused = heap_zalloc(1, sizeof *fused);
    fused->dnn = dnn;
    fused->shape = *shape;
    return fused;
}

void fused_free(struct fused *fused)
{
    if (fused == NULL)
        return;
    while (fused->made_count > 0)
        fused->dnn->cudnnBackendDestroyDescriptor(fused->made[--fused->made_count]);
    free(fused);
}

size_t fused_scratch(const struct fused *fused)
{
    return fused->scratch;
}

/* ---- running ---- */

struct binding_list {
    int64_t uid[TENSORS + SCALARS];
    void *data[TENSORS + SCALARS];
    int64_t count;
};

static void bind(struct binding_list *list, int64_t uid, const void *data)
{
    list->uid[list->count] = uid;
    list->data[list->count++] = (void *)(uintptr_t)data;
}

static const char *execute(const struct fused *f, cudnnHandle_t handle, struct binding_list *list,
                           void *scratch)
{
    const struct cudnn *dnn = f->dnn;
    descriptor pack = NULL;
    for (int i = 0; i < f->scalars; i++)
        bind(list, f->scalar[i].uid, &f->scalar[i].f);
    cudnnStatus_t status =
        dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                               CUDNN_TYPE_INT64, list->count, list->uid);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                               CUDNN_TYPE_VOID_PTR, list->count,
                                               (const void *)list->data);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                               CUDNN_TYPE_VOID_PTR, 1, (const void *)&scratch);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendFinalize(pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn->cudnnBackendExecute(handle, f->plan, pack);
    if (pack != NULL)
        dnn->cudnnBackendDestroyDescriptor(pack);
    return status == CUDNN_STATUS_SUCCESS ? NULL : dnn->cudnnGetErrorString(status);
}

const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *scratch)
{
    struct binding_list list = {.count = 0};
    bind(&list, UID_Q, q);
    bind(&list, UID_K, k);
    bind(&list, UID_V, v);
    bind(&list, UID_O, o);
    bind(&list, UID_STATS, stats);
    return execute(fused, handle, &list, scratch);
}

const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch)
{
    struct binding_list list = {.count = 0};
    bind(&list, UID_Q, q);
    bind(&list, UID_K, k);
    bind(&list, UID_V, v);
    bind(&list, UID_O, o);
    bind(&list, UID_D_O, d_o);
    bind(&list, UID_STATS, stats);
    bind(&list, UID_DQ, dq);
    bind(&list, UID_DK, dk);
    bind(&list, UID_DV, dv);
    bind(&list, UID_DELTA, (char *)scratch + fused->delta_at);
    bind(&list, UID_DQ_SUM, (char *)scratch + fused->dq_at);
    return execute(fused, handle, &list, scratch);
}
#endif
