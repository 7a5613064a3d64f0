/* Builds the plan of a fused attention from its graph (fused_graph.c), and runs it. */
#include "exec/cuda/fused_graph.h"

#ifdef HAVE_CUDNN
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

/* TENSORS: the most tensors in memory that a call binds. CONFIGS: the most configurations of engines that are tried for
 * one heuristic. ALIGNMENT: that of arrays in the scratch memory, in bytes. */
enum { TENSORS = 20, CONFIGS = 16, ALIGNMENT = 256 };

/* ---- the plan of a graph ---- */

static bool finalize_plan(struct fused *g, descriptor config, cudnnHandle_t handle,
                          descriptor device)
{
    int64_t workspace = 0, count = 0;
    descriptor plan = fused_make_descriptor(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    fused_set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    if (device != NULL)
        fused_set_descriptor(g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    else
        fused_set_attribute(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                            (const void *)&handle);
    if (g->has_failed || g->dnn->cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS)
        return false;
    g->dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &workspace);
    g->plan = plan;
    g->workspace_bytes = (size_t)workspace;
    return true;
}

/* Makes a plan from the first configuration, in the list that a heuristic of cuDNN proposes, for which cuDNN can make
 * one. Returns false if there is no such configuration. */
static bool choose_engine(struct fused *g, descriptor graph, cudnnBackendHeurMode_t mode,
                          cudnnHandle_t handle, descriptor device)
{
    int64_t count = 0;
    descriptor config[CONFIGS],
        list = fused_make_descriptor(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    fused_set_descriptor(g, list, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    fused_set_attribute(g, list, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device != NULL)
        fused_set_descriptor(g, list, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    if (g->has_failed || g->dnn->cudnnBackendFinalize(list) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int i = 0; i < CONFIGS; i++)
        config[i] = fused_make_descriptor(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->has_failed || g->dnn->cudnnBackendGetAttribute(
                             list, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                             CONFIGS, &count, (void *)config) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < count && i < CONFIGS; i++)
        if (finalize_plan(g, config[i], handle, device))
            return true;
    return false;
}

/* Adds an array of `count` floats to the scratch memory, and returns the offset at which it begins. */
static size_t reserve_fused_scratch(struct fused *g, int64_t count)
{
    const size_t begin = g->scratch_bytes, bytes = (size_t)count * sizeof(float);
    g->scratch_bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return begin;
}

static void lay_out_scratch(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    const int64_t rows = s->heads * (s->documents > 0 ? s->all_q : s->q);
    g->scratch_bytes = (g->workspace_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!s->is_backward)
        return;
    g->delta_offset = reserve_fused_scratch(g, rows);
    g->dq_sum_offset = reserve_fused_scratch(g, rows * s->dim);
    if (s->documents > 0 && s->heads > s->kv_heads) { /* as much as cudnn-frontend gives them */
        g->dk_each_offset = reserve_fused_scratch(g, s->all_kv * s->heads * s->dim);
        g->dv_each_offset = reserve_fused_scratch(g, s->all_kv * s->heads * s->vdim);
    }
}

bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                 char *words, size_t size)
{
    struct fused *g = fused;
    fused_add_operations(g);
    descriptor graph = fused_make_descriptor(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    fused_set_attribute(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        g->operation_count, (const void *)g->operation);
    if (device == NULL)
        fused_set_attribute(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                            (const void *)&handle);
    fused_finalize(g, graph);
    if (!choose_engine(g, graph, CUDNN_HEUR_MODE_A, handle, device) &&
        !choose_engine(g, graph, CUDNN_HEUR_MODE_FALLBACK, handle, device))
        fused_record_refusal(g, "no engine takes this attention", CUDNN_STATUS_NOT_SUPPORTED);
    if (g->plan == NULL) {
        snprintf(words, size, "%s", g->refusal_text);
        return false;
    }
    lay_out_scratch(g);
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
    while (fused->descriptor_count > 0)
        fused->dnn->cudnnBackendDestroyDescriptor(fused->descriptors[--fused->descriptor_count]);
    free(fused);
}

size_t fused_scratch_bytes(const struct fused *fused)
{
    return fused->scratch_bytes;
}

/* ---- running a plan ---- */

struct binding_list {
    int64_t uid[TENSORS + FUSED_SCALARS];
    void *data[TENSORS + FUSED_SCALARS];
    int64_t count;
};

static void bind_pointer(struct binding_list *list, int64_t uid, const void *data)
{
    list->uid[list->count] = uid;
    list->data[list->count++] = (void *)(uintptr_t)data;
}

static void bind_documents(struct binding_list *list, const struct fused_documents *d)
{
    if (d == NULL)
        return;
    bind_pointer(list, UID_Q_ROWS, d->q_rows);
    bind_pointer(list, UID_KV_ROWS, d->kv_rows);
    bind_pointer(list, UID_Q_OFFSET, d->q_offset);
    bind_pointer(list, UID_K_OFFSET, d->k_offset);
    bind_pointer(list, UID_V_OFFSET, d->v_offset);
    bind_pointer(list, UID_O_OFFSET, d->o_offset);
    bind_pointer(list, UID_STATS_OFFSET, d->stats_offset);
}

static const char *execute(const struct fused *f, cudnnHandle_t handle, struct binding_list *list,
                           void *scratch)
{
    const struct cudnn *dnn = f->dnn;
    descriptor pack = NULL;
    for (int i = 0; i < f->scalar_count; i++)
        bind_pointer(list, f->scalar[i].uid, &f->scalar[i].f);
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
                          const void *k, const void *v, void *o, float *stats, void *scratch,
                          const struct fused_documents *documents)
{
    struct binding_list list = {.count = 0};
    bind_documents(&list, documents);
    bind_pointer(&list, UID_Q, q);
    bind_pointer(&list, UID_K, k);
    bind_pointer(&list, UID_V, v);
    bind_pointer(&list, UID_O, o);
    bind_pointer(&list, UID_STATS, stats);
    return execute(fused, handle, &list, scratch);
}

const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *scratch,
                           const struct fused_documents *documents)
{
    struct binding_list list = {.count = 0};
    bind_documents(&list, documents);
    bind_pointer(&list, UID_Q, q);
    bind_pointer(&list, UID_K, k);
    bind_pointer(&list, UID_V, v);
    bind_pointer(&list, UID_O, o);
    bind_pointer(&list, UID_D_O, d_o);
    bind_pointer(&list, UID_STATS, stats);
    bind_pointer(&list, UID_DQ, dq);
    bind_pointer(&list, UID_DK, dk);
    bind_pointer(&list, UID_DV, dv);
    bind_pointer(&list, UID_DELTA, (char *)scratch + fused->delta_offset);
    bind_pointer(&list, UID_DQ_SUM, (char *)scratch + fused->dq_sum_offset);
    if (fused->dk_each_offset > 0) {
        bind_pointer(&list, UID_DK_OF_QUERY_HEADS, (char *)scratch + fused->dk_each_offset);
        bind_pointer(&list, UID_DV_OF_QUERY_HEADS, (char *)scratch + fused->dv_each_offset);
    }
    return execute(fused, handle, &list, scratch);
}
#endif
