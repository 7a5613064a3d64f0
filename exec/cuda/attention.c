#include "exec/cuda/attention.h"

#include "exec/cuda/fused.h"
#include "exec/cuda/versions.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 16, FUSED_ALIGNMENT = 16 };

#ifndef HAVE_CUDNN
struct cudnn {
    int absent;
};
struct fused_shape {
    int64_t absent;
};
#endif

/* A plan for cuDNN's fused attention. All ops with its shape share it. */
struct fused_plan {
    struct fused_shape shape;
    struct fused *fused;    /* NULL: cuDNN refused the plan */
    char refusal_text[512]; /* why it was refused */
    struct fused_plan *next;
};

struct attention {
    struct call planned_for_call; /* the call for which it was planned */
    struct attention_fused_part part;
    /* count 0: there are no documents, or tiles compute them */
    struct attention_documents documents;
    struct fused_plan *fused_plan; /* NULL: tiles compute it */
    struct attention_tiles *tiles; /* NULL: the fused plan computes it */
    struct attention *next;
};

struct attentions {
    struct products *products;
    enum exec_attention requested_attention_kernels;
    const struct cudnn *dnn;     /* NULL: tiles compute everything */
    char not_fused_reason[1024]; /* why cuDNN cannot be used, or does not compute an op */
    struct attention *attention_list_head;
    struct fused_plan *fused_plan_list_head;
    /* the handles with which plans were built. They stay open, since a plan may refer to its handle. */
    void *builder_handles[THREADS_MAX + 1];
    uint32_t builder_count;
    uint32_t fused_count, tiles_count;
};

#ifdef HAVE_CUDNN
/* Copies the first line of a message without "error: ", as "cuDNN: version ...", to be quoted in another message. */
static void copy_first_line_of_message(char *why, size_t size, const struct diag *diag)
{
    static const char mark[] = ": error: ";
    const char *text = diag->text, *error = strstr(text, mark);
    int name = error != NULL ? (int)(error - text) : 0;
    const char *rest = error != NULL ? error + sizeof mark - 1 : text;
    snprintf(why, size, "%.*s%s%.*s", name, text, error != NULL ? ": " : "",
             (int)strcspn(rest, "\n"), rest);
}
#endif

struct attentions *attentions_new(struct products *products, enum exec_attention wanted,
                                  struct diag *diag)
{
    struct attentions *all = heap_zalloc(1, sizeof *all);
#ifdef HAVE_CUDNN
    struct diag words = {0};
#endif
    all->products = products;
    all->requested_attention_kernels = wanted;
#ifdef HAVE_CUDNN
    if (wanted == EXEC_ATTENTION_FUSED) {
        all->dnn = cudnn_open(diag);
    } else if (wanted == EXEC_ATTENTION_AUTO) {
        all->dnn = cudnn_open(&words);
        if (all->dnn == NULL)
            copy_first_line_of_message(all->not_fused_reason, sizeof all->not_fused_reason, &words);
    }
    diag_release(&words);
#else
    snprintf(all->not_fused_reason, sizeof all->not_fused_reason,
             "this program was built without cuDNN");
    if (wanted == EXEC_ATTENTION_FUSED)
        diag_error(diag, (struct loc){.name = "cuDNN"}, STATUS_BAD_INPUT, "%s",
                   all->not_fused_reason);
#endif
    if (wanted == EXEC_ATTENTION_FUSED && all->dnn == NULL) {
        free(all);
        return NULL;
    }
    return all;
}

void attentions_free(struct attentions *all)
{
    if (all == NULL)
        return;
    while (all->attention_list_head != NULL) {
        struct attention *next = all->attention_list_head->next;
        attention_tiles_free(all->attention_list_head->tiles);
        free(all->attention_list_head);
        all->attention_list_head = next;
    }
    while (all->fused_plan_list_head != NULL) {
        struct fused_plan *next = all->fused_plan_list_head->next;
#ifdef HAVE_CUDNN
        fused_free(all->fused_plan_list_head->fused);
#endif
        free(all->fused_plan_list_head);
        all->fused_plan_list_head = next;
    }
#ifdef HAVE_CUDNN
    while (all->builder_count > 0)
        all->dnn->cudnnDestroy(all->builder_handles[--all->builder_count]);
#endif
    free(all);
}

/* Finds the queries and keys of a tile that are visible, and the fused mask for them. Returns false if no fused mask
 * equals the tile's. */
static bool find_visible_part_of_tile(const struct work *work, struct attention_fused_part *part)
{
    const int64_t q = work->attention.q, kv = work->attention.kv, offset = work->attention.offset;
    bool window = work->attention.mask == MASK_WINDOW && work->attention.window < q + offset;
    *part = (struct attention_fused_part){0, q, kv, window ? work->attention.window : 0,
                                          FUSED_MASK_NONE};
    if (work->attention.mask >= MASK_DOCUMENTS)
        return false;
    if (work->attention.mask == MASK_FULL || offset >= kv - 1)
        return !window;
    if (offset <= 0) { /* the first queries see nothing; the next one sees one key */
        part->first_query = -offset < q ? -offset : q;
        part->query_count = q - part->first_query;
        part->key_count = kv < part->query_count ? kv : part->query_count;
        part->mask = FUSED_MASK_CAUSAL_FROM_START;
        return true;
    }
    part->key_count = q + offset;
    part->mask = FUSED_MASK_CAUSAL_TO_END;
    return part->key_count <= kv;
}

bool attention_find_fused_part(const struct work *work, struct attention_fused_part *part)
{
    bool is_supported = find_visible_part_of_tile(work, part);
    /* The last queries of a window over more queries than keys may see no key, which cuDNN does not take. A single
     * query gets no mask (below), and a window needs one. */
    if (part->window > 0 && (part->query_count < 2 || part->query_count > part->key_count))
        return false;
    /* A single query sees all keys of the part, and cuDNN's release notes (9.18.1) warn of causal masks for one
     * query. */
    if (part->query_count == 1)
        part->mask = FUSED_MASK_NONE;
    return is_supported;
}

#ifdef HAVE_CUDNN
static bool is_backward(const struct call *call)
{
    return call->work->kind == WORK_ATTENTION_BACKWARD;
}

/* Returns why fused kernels do not support the operands of a call: what they are, their types, addresses or head
 * dimensions. NULL: they support them. */
static const char *why_operands_unsupported(const struct call *call)
{
    const uint8_t dtype = call->read[0].dtype;
    if (is_backward(call) && call->work->attention.delta)
        return "cuDNN's backward reads the output, and this one its product with the gradient";
    if (dtype != DTYPE_BF16 && dtype != DTYPE_F16)
        return "cuDNN's attention takes bf16 and f16 only";
    for (uint32_t k = 0; k < call->read_count + (uint32_t)call->write_count; k++) {
        bool read = k < call->read_count;
        const struct operand *o = read ? &call->read[k] : &call->write[k - call->read_count];
        if (o->dtype == DTYPE_U8 ||
            (read ? k == 4 : !is_backward(call) && k - call->read_count == 1))
            continue; /* a workspace, or the statistics, which are f32 */
        if (o->dtype != dtype)
            return "its operands have different types";
        if ((uintptr_t)o->data % FUSED_ALIGNMENT != 0)
            return "an operand is not aligned to 16 bytes";
    }
    return call->work->attention.dim % 8 == 0 && work_attention_vdim(call->work) % 8 == 0
               ? NULL
               : "its heads' dimension is no multiple of 8";
}

/* Returns why cuDNN computes no backward whose documents or tile have at most `most_q` queries and `most_kv` keys;
 * NULL: it computes one. whole_tiles: the number of keys is a multiple of VERSION_TILE. */
static const char *why_backward_unsupported(const struct attentions *all, int64_t most_q,
                                            int64_t most_kv, bool whole_tiles)
{
    if (most_q == 1 && most_kv == 1)
        return "cuDNN has no backward of one query and one key";
    const struct version_rule *rule = version_find_rule(
        NVIDIA_CUDNN, VERSION_BACKWARD_NEEDS_WHOLE_TILES, (int)all->dnn->cudnnGetVersion());
    return rule != NULL && !whole_tiles ? rule->fault : NULL;
}

/* Returns why cuDNN does not compute the packed documents of a call; NULL: it does. Unless the caller asks for cuDNN it
 * does not, because no comparison on a GPU has shown that its kernels compute documents right. */
static const char *why_documents_unsupported(const struct attentions *all, const struct call *call,
                                             const struct attention_documents *documents)
{
    int device = 0, major = 0;
    const struct operand *stats = is_backward(call) ? &call->read[4] : &call->write[1];
    if (documents->why_unsupported != NULL)
        return documents->why_unsupported;
    if (all->requested_attention_kernels != EXEC_ATTENTION_FUSED)
        return "cuDNN is given documents only with --attention-by fused";
    if ((uintptr_t)stats->data % FUSED_ALIGNMENT != 0)
        return "its statistics are not aligned to 16 bytes";
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        major < 9)
        return "cuDNN takes documents on GPUs of compute capability 9.0 or later";
    return is_backward(call) ? why_backward_unsupported(all, documents->most_q, documents->most_kv,
                                                        documents->has_whole_kv_tiles)
                             : NULL;
}

/* Returns why cuDNN's fused kernels cannot compute a call. NULL: they can; without documents, *part is then the part of
 * the call's tile that they compute. */
static const char *why_not_fused(const struct attentions *all, const struct call *call,
                                 const struct attention_documents *documents,
                                 struct attention_fused_part *part)
{
    const char *why = why_operands_unsupported(call);
    if (why != NULL)
        return why;
    if (documents != NULL)
        return why_documents_unsupported(all, call, documents);
    if (!attention_find_fused_part(call->work, part))
        return "cuDNN has no mask that is its window, or its offset";
    if (part->query_count == 0)
        return "no query of it sees any key";
    return is_backward(call) ? why_backward_unsupported(all, part->query_count, part->key_count,
                                                        part->key_count % VERSION_TILE == 0)
                             : NULL;
}

static struct fused_plan *find_or_add_plan(struct attentions *all, const struct attention *a)
{
    const struct work *w = a->planned_for_call.work;
    const struct attention_documents *d = &a->documents;
    struct fused_shape shape = {
        .q = a->part.query_count,
        .kv = a->part.key_count,
        .heads = w->attention.heads,
        .kv_heads = w->attention.kv_heads,
        .dim = w->attention.dim,
        .vdim = work_attention_vdim(w),
        .window = a->part.window,
        .mask = a->part.mask,
        .is_backward = is_backward(&a->planned_for_call),
        .is_f16 = a->planned_for_call.read[0].dtype == DTYPE_F16,
    };
    if (d->count > 0) {
        shape.q = d->most_q;
        shape.kv = d->most_kv;
        shape.mask = d->mask;
        shape.documents = d->count;
        shape.all_q = w->attention.q;
        shape.all_kv = w->attention.kv;
    }
    for (struct fused_plan *p = all->fused_plan_list_head; p != NULL; p = p->next)
        if (memcmp(&p->shape, &shape, sizeof shape) == 0)
            return p;
    struct fused_plan *p = heap_zalloc(1, sizeof *p);
    p->shape = shape;
    p->next = all->fused_plan_list_head;
    all->fused_plan_list_head = p;
    return p;
}
#endif

struct attention *attention_new(struct attentions *all, const struct call *call,
                                const struct attention_documents *documents, struct diag *diag)
{
    struct attention *a = heap_zalloc(1, sizeof *a);
    a->planned_for_call = *call;
    a->next = all->attention_list_head;
    all->attention_list_head = a;
#ifdef HAVE_CUDNN
    const char *why = all->dnn != NULL ? why_not_fused(all, call, documents, &a->part) : NULL;
    if (all->dnn != NULL && why == NULL) {
        if (documents != NULL)
            a->documents = *documents;
        a->fused_plan = find_or_add_plan(all, a);
        return a;
    }
    if (why != NULL)
        snprintf(all->not_fused_reason, sizeof all->not_fused_reason, "op %" PRIu32 ": %s",
                 call->op, why);
#endif
#ifndef HAVE_CUDNN
    (void)documents;
#endif
    if (all->requested_attention_kernels != EXEC_ATTENTION_FUSED) {
        a->tiles = attention_tiles_new(all->products, call, diag);
        return a->tiles != NULL ? a : NULL;
    }
    diag_error(diag, (struct loc){.name = "cuDNN"}, STATUS_BAD_INPUT,
               "does not take the attention of %s; --attention-by tiles would do",
               all->not_fused_reason);
    return NULL;
}

/* ---- building plans, and reports of what computes attention ---- */

#ifdef HAVE_CUDNN
struct plan_builders {
    struct attentions *all;
    int device;
    pthread_mutex_t lock;
    struct fused_plan *next_plan_to_build;
};

/* Adds to a plan's message, if cuDNN's compiler cannot be opened, why it cannot: no plan can be built without it. */
static void add_compiler_error(struct fused_plan *plan)
{
    const char *missing = cudnn_why_no_compiler();
    size_t used = strlen(plan->refusal_text);
    if (missing != NULL)
        snprintf(plan->refusal_text + used, sizeof plan->refusal_text - used, "; %s", missing);
}

static void *build_plans(void *argument)
{
    struct plan_builders *b = argument;
    const struct cudnn *dnn = b->all->dnn;
    cudnnHandle_t handle = NULL;
    cudaSetDevice(b->device);
    cudnnStatus_t status = dnn->cudnnCreate(&handle);
    for (;;) {
        pthread_mutex_lock(&b->lock);
        struct fused_plan *plan = b->next_plan_to_build;
        if (plan != NULL)
            b->next_plan_to_build = plan->next;
        pthread_mutex_unlock(&b->lock);
        if (plan == NULL)
            break;
        struct fused *fused = fused_new(dnn, &plan->shape);
        if (status != CUDNN_STATUS_SUCCESS)
            snprintf(plan->refusal_text, sizeof plan->refusal_text, "cudnnCreate: %s",
                     dnn->cudnnGetErrorString(status));
        else if (fused_build(fused, handle, NULL, plan->refusal_text, sizeof plan->refusal_text))
            plan->fused = fused;
        else
            add_compiler_error(plan);
        if (plan->fused == NULL)
            fused_free(fused);
    }
    if (handle != NULL) {
        pthread_mutex_lock(&b->lock);
        b->all->builder_handles[b->all->builder_count++] = handle;
        pthread_mutex_unlock(&b->lock);
    }
    return NULL;
}

static void build_plans_in_parallel(struct attentions *all)
{
    struct plan_builders b = {.all = all, .next_plan_to_build = all->fused_plan_list_head};
    pthread_t thread[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = 0, started = 0;
    for (const struct fused_plan *p = all->fused_plan_list_head; p != NULL; p = p->next)
        wanted++;
    wanted = wanted < processors ? wanted : (int)processors;
    cudaGetDevice(&b.device);
    pthread_mutex_init(&b.lock, NULL);
    while (started < wanted - 1 && started < THREADS_MAX &&
           pthread_create(&thread[started], NULL, build_plans, &b) == 0)
        started++;
    build_plans(&b); /* this thread, too */
    while (started > 0)
        pthread_join(thread[--started], NULL);
    pthread_mutex_destroy(&b.lock);
}
#endif

enum status attentions_build(struct attentions *all, struct diag *diag)
{
#ifdef HAVE_CUDNN
    if (all->fused_plan_list_head != NULL)
        build_plans_in_parallel(all);
#endif
    for (struct attention *a = all->attention_list_head; a != NULL; a = a->next) {
        if (a->fused_plan != NULL && a->fused_plan->fused == NULL) {
            if (all->requested_attention_kernels == EXEC_ATTENTION_FUSED)
                return diag_error(diag, (struct loc){.name = "cuDNN"}, STATUS_SYSTEM,
                                  "refuses the attention of op %" PRIu32 ": %s",
                                  a->planned_for_call.op, a->fused_plan->refusal_text);
            snprintf(all->not_fused_reason, sizeof all->not_fused_reason, "op %" PRIu32 ": %s",
                     a->planned_for_call.op, a->fused_plan->refusal_text);
            a->fused_plan = NULL;
            a->tiles = attention_tiles_new(all->products, &a->planned_for_call, diag);
            if (a->tiles == NULL)
                return STATUS_SYSTEM;
        }
        all->tiles_count += a->tiles != NULL;
        all->fused_count += a->tiles == NULL;
    }
    return STATUS_OK;
}

const char *attentions_why_not_fused(const struct attentions *all)
{
    return all->tiles_count > 0 && all->requested_attention_kernels == EXEC_ATTENTION_AUTO
               ? all->not_fused_reason
               : NULL;
}

void attentions_describe(const struct attentions *all, char *text, size_t size)
{
    const char *ways = all->fused_count == 0   ? all->tiles_count == 0 ? "none" : "tiles"
                       : all->tiles_count == 0 ? "cudnn"
                                               : "cudnn and tiles";
    const char *why = attentions_why_not_fused(all);
    snprintf(text, size, "%s%s%s%s", ways, why != NULL ? " (" : "", why != NULL ? why : "",
             why != NULL ? ")" : "");
}

int attentions_cudnn_version(const struct attentions *all)
{
#ifdef HAVE_CUDNN
    return all->dnn != NULL ? (int)all->dnn->cudnnGetVersion() : 0;
#else
    (void)all;
    return 0;
#endif
}

/* ---- running attention ---- */

#ifdef HAVE_CUDNN
static size_t round_up_to_alignment(size_t bytes)
{
    return (bytes + CUDA_SCRATCH_ALIGNMENT - 1) / CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
}

/* Returns the bytes at the beginning of the scratch memory for a copy of the log-sum-exps. The library stores these
 * head by head and the schedule row by row; documents need no copy. */
static size_t lse_copy_bytes(const struct attention *a)
{
    if (a->documents.count > 0) /* with documents the library stores them row by row, too */
        return 0;
    return round_up_to_alignment(
        (size_t)(a->part.query_count * a->planned_for_call.work->attention.heads) * sizeof(float));
}

static void *row_address(const struct operand *operand, int64_t row, int64_t heads, int64_t dim)
{
    return (char *)operand->data +
           (size_t)(row * heads * dim) * dtype_bytes((enum dtype)operand->dtype);
}

/* True if the schedule planned the library's workspace as an operand of the op, large enough and aligned. */
static bool has_workspace(const struct call *call, const struct fused *fused)
{
    return call->write_count > 3 && call->write[3].element_count >= fused_scratch_bytes(fused) &&
           (uintptr_t)call->write[3].data % CUDA_SCRATCH_ALIGNMENT == 0;
}

/* Sets rows begin .. end - 1 of a tensor (rows, heads, dim) to zero. */
static int zero_rows(const struct operand *operand, int64_t begin, int64_t end, int64_t heads,
                     int64_t dim, cudaStream_t stream)
{
    size_t bytes = (size_t)((end - begin) * heads * dim) * dtype_bytes((enum dtype)operand->dtype);
    return bytes == 0
               ? 0
               : (int)cudaMemsetAsync(row_address(operand, begin, heads, dim), 0, bytes, stream);
}

static const char *cuda_error_text(int error)
{
    return error == 0 ? NULL : cudaGetErrorString((cudaError_t)error);
}

static const char *run_forward(const struct attention *a, const struct call *call,
                               const struct cuda_launch_context *place, void *handle)
{
    const struct attention_fused_part *p = &a->part;
    const int64_t heads = call->work->attention.heads, dim = call->work->attention.dim;
    const int64_t vdim = work_attention_vdim(call->work);
    float *stats = place->scratch, *lse = call->write[1].data;
    int error = zero_rows(&call->write[0], 0, p->first_query, heads, vdim, place->stream);
    if (error == 0 && p->first_query > 0)
        error = cuda_fill_f32(lse, -INFINITY, p->first_query * heads, place->stream);
    if (error != 0)
        return cuda_error_text(error);
    const char *words =
        fused_forward(a->fused_plan->fused, handle,
                      row_address(&call->read[0], p->first_query, heads, dim), call->read[1].data,
                      call->read[2].data, row_address(&call->write[0], p->first_query, heads, vdim),
                      stats, (char *)place->scratch + lse_copy_bytes(a), NULL);
    return words != NULL ? words
                         : cuda_error_text(cuda_transpose(lse + p->first_query * heads, stats,
                                                          heads, p->query_count, place->stream));
}

static const char *run_backward(const struct attention *a, const struct call *call,
                                const struct cuda_launch_context *place, void *handle)
{
    const struct attention_fused_part *p = &a->part;
    const struct work *w = call->work;
    const int64_t heads = w->attention.heads, kv_heads = w->attention.kv_heads;
    const int64_t dim = w->attention.dim, kv = w->attention.kv, vdim = work_attention_vdim(w);
    const float *lse = call->read[4].data;
    float *stats = place->scratch;
    int error = zero_rows(&call->write[0], 0, p->first_query, heads, dim, place->stream);
    for (int i = 1; i < 3 && error == 0; i++)
        error = zero_rows(&call->write[i], p->key_count, kv, kv_heads, i == 1 ? dim : vdim,
                          place->stream);
    if (error == 0)
        error = cuda_transpose(stats, lse + p->first_query * heads, p->query_count, heads,
                               place->stream);
    if (error != 0)
        return cuda_error_text(error);
    return fused_backward(
        a->fused_plan->fused, handle, row_address(&call->read[0], p->first_query, heads, dim),
        call->read[1].data, call->read[2].data,
        row_address(&call->read[3], p->first_query, heads, vdim),
        row_address(&call->read[5], p->first_query, heads, vdim), stats,
        row_address(&call->write[0], p->first_query, heads, dim), call->write[1].data,
        call->write[2].data,
        has_workspace(call, a->fused_plan->fused) ? call->write[3].data
                                                  : (char *)place->scratch + lse_copy_bytes(a),
        NULL);
}

/* Runs the attention of all documents of the call in one call of cuDNN. Rows that are in no document see no key: their
 * output is 0 and their log-sum-exp minus infinity. */
static const char *run_all_documents_forward(const struct attention *a, const struct call *call,
                                             const struct cuda_launch_context *place, void *handle)
{
    const struct work *w = call->work;
    const int64_t heads = w->attention.heads, q = w->attention.q;
    int error = 0;
    if (!a->documents.cover_q)
        error = zero_rows(&call->write[0], 0, q, heads, work_attention_vdim(w), place->stream);
    if (!a->documents.cover_q && error == 0)
        error = cuda_fill_f32(call->write[1].data, -INFINITY, q * heads, place->stream);
    return error != 0 ? cuda_error_text(error)
                      : fused_forward(a->fused_plan->fused, handle, call->read[0].data,
                                      call->read[1].data, call->read[2].data, call->write[0].data,
                                      call->write[1].data, place->scratch, place->documents);
}

static const char *run_all_documents_backward(const struct attention *a, const struct call *call,
                                              const struct cuda_launch_context *place, void *handle)
{
    const struct work *w = call->work;
    const struct fused *fused = a->fused_plan->fused;
    const int64_t kv = w->attention.kv, kv_heads = w->attention.kv_heads;
    int error = 0;
    if (!a->documents.cover_q)
        error = zero_rows(&call->write[0], 0, w->attention.q, w->attention.heads, w->attention.dim,
                          place->stream);
    for (int i = 1; i < 3 && error == 0 && !a->documents.cover_kv; i++)
        error = zero_rows(&call->write[i], 0, kv, kv_heads,
                          i == 1 ? w->attention.dim : work_attention_vdim(w), place->stream);
    return error != 0
               ? cuda_error_text(error)
               : fused_backward(fused, handle, call->read[0].data, call->read[1].data,
                                call->read[2].data, call->read[3].data, call->read[5].data,
                                call->read[4].data, call->write[0].data, call->write[1].data,
                                call->write[2].data,
                                has_workspace(call, fused) ? call->write[3].data : place->scratch,
                                place->documents);
}
#endif

size_t attention_scratch_bytes(const struct attention *attention)
{
    if (attention->tiles != NULL)
        return attention_tiles_scratch_bytes(attention->tiles);
#ifdef HAVE_CUDNN
    const struct fused *fused = attention->fused_plan->fused;
    return lse_copy_bytes(attention) +
           (has_workspace(&attention->planned_for_call, fused) ? 0 : fused_scratch_bytes(fused));
#else
    return 0;
#endif
}

const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_launch_context *place, void *handle)
{
    if (attention->tiles != NULL)
        return attention_tiles_run(attention->tiles, call, place);
#ifdef HAVE_CUDNN
    if (attention->documents.count > 0)
        return is_backward(call) ? run_all_documents_backward(attention, call, place, handle)
                                 : run_all_documents_forward(attention, call, place, handle);
    return is_backward(call) ? run_backward(attention, call, place, handle)
                             : run_forward(attention, call, place, handle);
#else
    (void)handle;
    return "built without cuDNN";
#endif
}

enum status attentions_open_stream(const struct attentions *all, cudaStream_t stream, void **handle,
                                   struct diag *diag)
{
    *handle = NULL;
#ifdef HAVE_CUDNN
    if (all->fused_count == 0)
        return STATUS_OK;
    cudnnHandle_t made = NULL;
    cudnnStatus_t status = all->dnn->cudnnCreate(&made);
    if (status == CUDNN_STATUS_SUCCESS)
        status = all->dnn->cudnnSetStream(made, stream);
    *handle = made;
    if (status != CUDNN_STATUS_SUCCESS)
        return diag_error(diag, (struct loc){.name = "cudnnCreate"}, STATUS_SYSTEM, "%s",
                          all->dnn->cudnnGetErrorString(status));
#else
    (void)all;
    (void)stream;
    (void)diag;
#endif
    return STATUS_OK;
}

void attentions_close_stream(const struct attentions *all, void *handle)
{
#ifdef HAVE_CUDNN
    if (handle != NULL)
        all->dnn->cudnnDestroy(handle);
#else
    (void)all;
    (void)handle;
#endif
}
