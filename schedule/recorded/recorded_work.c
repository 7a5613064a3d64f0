/* Makes the work of recorded events. What an operator costs follows from its sizes if it is a product, a convolution or
 * an attention, else from its bytes. */
#include "schedule/recorded/recorded_parts.h"

#include <math.h>
#include <string.h>

const struct step_tensor *recorded_tensor_read_by_event(const struct recorded_schedule_builder *m,
                                                        const struct step_event *event, uint32_t i)
{
    return i < event->in_count ? &m->recording->tensor[event->in_begin + i] : NULL;
}

const struct step_tensor *
recorded_tensor_written_by_event(const struct recorded_schedule_builder *m,
                                 const struct step_event *event, uint32_t i)
{
    return i < event->out_count ? &m->recording->tensor[event->out_begin + i] : NULL;
}

static bool operator_name_contains(const struct step_event *event, const char *part)
{
    return strstr(event->op_name, part) != NULL;
}

/* True if the operator's name is `name`, with or without an overload: "addmm", "addmm.default". */
static bool operator_name_is(const struct step_event *event, const char *name)
{
    const size_t size = strlen(name);
    return strncmp(event->op_name, name, size) == 0 &&
           (event->op_name[size] == '\0' || event->op_name[size] == '.');
}

static double count_elements(const struct step_tensor *t)
{
    double count = 1;
    for (uint32_t i = 0; i < t->dim_count; i++)
        count *= (double)t->size[i];
    return count;
}

/* Returns the size of dimension i, counted from the innermost, which is 0. */
static int64_t size_of_dim_from_innermost(const struct step_tensor *t, uint32_t i)
{
    return t->size[t->dim_count - 1 - i];
}

static enum dtype dtype_of(const struct step_tensor *t)
{
    static const uint8_t dtypes[] = {
        [STEP_DTYPE_BF16] = DTYPE_BF16, [STEP_DTYPE_F16] = DTYPE_F16,
        [STEP_DTYPE_F32] = DTYPE_F32,   [STEP_DTYPE_F64] = DTYPE_F64,
        [STEP_DTYPE_E4M3] = DTYPE_E4M3, [STEP_DTYPE_E5M2] = DTYPE_E5M2};
    return t->dtype < ARRAY_LEN(dtypes) ? (enum dtype)dtypes[t->dtype] : DTYPE_U8;
}

/* ---- products ---- */

static enum status find_work_of_matrix_product(const struct recorded_schedule_builder *m,
                                               uint32_t number, struct work *work)
{
    const struct step_event *event = &m->recording->event[number];
    const bool adds = operator_name_is(event, "addmm") || operator_name_is(event, "baddbmm") ||
                      operator_name_is(event, "_addmm_activation");
    const struct step_tensor *a = recorded_tensor_read_by_event(m, event, adds),
                             *b = recorded_tensor_read_by_event(m, event, adds + 1);
    const struct step_tensor *y = recorded_tensor_written_by_event(m, event, 0);
    if (a == NULL || b == NULL || y == NULL || a->dim_count < 2 || b->dim_count < 2 ||
        y->dim_count < 2)
        return recorded_report_event_error(m, number,
                                           "a product reads two matrices and writes one");
    const bool groups = operator_name_contains(event, "grouped_mm");
    work->opaque.as = OPAQUE_MATMUL;
    work->opaque.dtype = dtype_of(a);
    work->opaque.out_dtype = dtype_of(y);
    work->opaque.n = size_of_dim_from_innermost(y, 0);
    work->opaque.k = size_of_dim_from_innermost(a, 0);
    work->opaque.m =
        (int64_t)(count_elements(y) / (double)(work->opaque.n > 0 ? work->opaque.n : 1));
    if (groups && y->dim_count == 3 &&
        a->dim_count == 2) { /* gradients of the experts' weights: a (m, tokens) */
        work->opaque.as = OPAQUE_MATMUL_TN;
        work->opaque.m = size_of_dim_from_innermost(y, 1);
        work->opaque.groups = y->size[0];
    } else if (groups && b->dim_count == 3)
        work->opaque.groups = b->size[0];
    else if (y->dim_count == 3 && a->dim_count == 3 && b->dim_count == 3) /* a batch of products */
        work->opaque.groups = y->size[0];
    if (work->opaque.groups == 1)
        work->opaque.groups = 0;
    if (operator_name_contains(event,
                               "_scaled")) { /* number and dtype of scales say how they lie */
        const struct step_tensor *scale = recorded_tensor_read_by_event(m, event, 2);
        const double count = scale != NULL ? count_elements(scale) : 1;
        work->opaque.scaling = count <= 1                                          ? SCALING_TENSOR
                               : scale->dtype == STEP_DTYPE_OTHER                  ? SCALING_MX
                               : count == (double)size_of_dim_from_innermost(a, 1) ? SCALING_ROW
                                                                                   : SCALING_BLOCK;
    }
    if (work->opaque.m < 1 || work->opaque.n < 1 || work->opaque.k < 1)
        /* a product without elements launches no kernel */
        *work = (struct work){.kind = WORK_OPAQUE};
    return STATUS_OK;
}

/* Sets the work of a convolution to that of the equivalent product, whose input is unfolded. If each result is the sum
 * of few terms, as in a depthwise convolution, *work does not change: its bytes then decide the cost. */
static void set_work_of_convolution(const struct recorded_schedule_builder *m,
                                    const struct step_event *event, struct work *work)
{
    enum { FEW = 16 };
    const bool backward = operator_name_contains(event, "backward");
    const struct step_tensor *y = backward ? recorded_tensor_read_by_event(m, event, 0)
                                           : recorded_tensor_written_by_event(m, event, 0);
    if (y == NULL || y->dim_count < 2 || !(count_elements(y) > 0))
        return;
    const double terms = event->flops / (2 * count_elements(y));
    if (terms < FEW || terms > (double)INT32_MAX)
        return;
    work->opaque = (__typeof__(work->opaque)){
        .as = OPAQUE_MATMUL,
        .m = (int64_t)(count_elements(y) / (double)y->size[1]),
        .n = y->size[1],
        .k = llround(terms),
        .dtype = dtype_of(y),
        .out_dtype = dtype_of(y),
    };
}

/* ---- attention ---- */

static enum attention_impl attention_impl_of_event(const struct step_event *event)
{
    return operator_name_contains(event, "cudnn") ? ATTENTION_CUDNN : ATTENTION_FA2;
}

static enum status set_work_of_attention_event(const struct recorded_schedule_builder *m,
                                               uint32_t number, struct work *work)
{
    const struct step_event *event = &m->recording->event[number];
    const bool backward = operator_name_contains(event, "backward");
    const struct step_tensor *q = recorded_tensor_read_by_event(m, event, backward),
                             *k = recorded_tensor_read_by_event(m, event, backward + 1);
    if (q == NULL || k == NULL || q->dim_count != 4 || k->dim_count != 4)
        return recorded_report_event_error(
            m, number,
            "attention of this form is not priced: q and k of (batch, heads, "
            "tokens, width) are expected");
    /* aten's own kernels, which SDPA calls, have tokens before heads */
    const bool tokens_first = strncmp(event->op_name, "_flash_attention_", 17) == 0 ||
                              strncmp(event->op_name, "_efficient_attention_", 21) == 0;
    const int heads = tokens_first ? 2 : 1, tokens = tokens_first ? 1 : 2;
    work->opaque.as = backward ? OPAQUE_ATTENTION_BACKWARD : OPAQUE_ATTENTION;
    work->opaque.m = q->size[tokens];
    work->opaque.n = k->size[tokens];
    work->opaque.k = q->size[3];
    work->opaque.heads = q->size[0] * q->size[heads];
    work->opaque.kv_heads = k->size[0] * k->size[heads];
    work->opaque.causal = event->is_causal;
    work->opaque.kernels = attention_impl_of_event(event);
    work->opaque.dtype = work->opaque.out_dtype = dtype_of(q);
    if (work->opaque.kv_heads < 1 || work->opaque.heads % work->opaque.kv_heads != 0)
        return recorded_report_event_error(
            m, number, "%lld heads of queries and %lld of keys do not go together",
            (long long)work->opaque.heads, (long long)work->opaque.kv_heads);
    return STATUS_OK;
}

/* ---- operators that are neither products nor attention ---- */

static bool copies_strided_elements(const struct recorded_schedule_builder *m,
                                    const struct step_event *event)
{
    for (uint32_t i = 0; i < event->in_count; i++)
        if (m->recording->tensor[event->in_begin + i].is_strided)
            return true;
    for (uint32_t i = 0; i < event->out_count; i++)
        if (m->recording->tensor[event->out_begin + i].is_strided)
            return true;
    return false;
}

static enum opaque_cost_formula
opaque_cost_of_memory_operator(const struct recorded_schedule_builder *m,
                               const struct step_event *event)
{
    switch ((enum step_event_kind)event->kind) {
    case STEP_REDUCTION:
        return OPAQUE_REDUCE;
    case STEP_INDEXING:
        return operator_name_contains(event, "scatter") ||
                       operator_name_contains(event, "index_put") ||
                       operator_name_contains(event, "index_add") ||
                       operator_name_contains(event, "embedding_dense_backward")
                   ? OPAQUE_SCATTER
                   : OPAQUE_GATHER;
    case STEP_COPY:
        return copies_strided_elements(m, event) ? OPAQUE_PERMUTE : OPAQUE_STREAM;
    default:
        return OPAQUE_STREAM;
    }
}

/* True if kernels of PyTorch walk over both tensors as over one row of elements: they have the same elements in the
 * same order, without gaps. */
static bool have_same_layout(const struct step_tensor *a, const struct step_tensor *b)
{
    double reach = 1;
    for (uint32_t i = 1; i <= a->dim_count || i <= b->dim_count; i++) { /* from the innermost */
        const int64_t size = i <= a->dim_count ? a->size[a->dim_count - i] : 1;
        if (size != (i <= b->dim_count ? b->size[b->dim_count - i] : 1))
            return false;
        if (size == 1)
            continue;
        if (a->stride[a->dim_count - i] != b->stride[b->dim_count - i])
            return false;
        reach += (double)(size - 1) * (double)a->stride[a->dim_count - i];
    }
    return reach == count_elements(a);
}

/* Returns the number of elements that an elementwise kernel accesses one by one: all elements if it broadcasts, strides
 * or mixes floating-point dtypes; else 0, since it then accesses several at once. The result is also 0 for kernels over
 * lists of tensors, which do not stride, and for kernels that Inductor writes (triton_). */
static double elements_accessed_one_by_one(const struct recorded_schedule_builder *m,
                                           const struct step_event *event)
{
    const struct step_tensor *y = recorded_tensor_written_by_event(m, event, 0);
    if (y == NULL || strncmp(event->op_name, "_f", 2) == 0 || /* _foreach_, _fused_ */
        strncmp(event->op_name, "triton_", 7) == 0)
        return 0;
    for (uint32_t i = 0; i < event->in_count; i++) {
        const struct step_tensor *x = recorded_tensor_read_by_event(m, event, i);
        const bool mixed =
            x->dtype != y->dtype && x->dtype != STEP_DTYPE_OTHER && y->dtype != STEP_DTYPE_OTHER;
        if (x->storage >= 0 && (mixed || !have_same_layout(x, y)))
            return count_elements(y);
    }
    return 0;
}

/* Returns the number of elements that a kernel processes more slowly than memory moves them, multiplied by the number
 * of its passes over them (docs/costs.md); 0: memory limits the kernel. */
static double slow_elements_times_passes(const struct recorded_schedule_builder *m,
                                         const struct step_event *event)
{
    /* a longer row of a softmax does not fit into the shared memory of a block */
    enum { ROW_KEPT_BYTES = 48 << 10 };
    const struct step_tensor *x = recorded_tensor_read_by_event(m, event, 0),
                             *y = recorded_tensor_written_by_event(m, event, 0);
    if (event->kind == STEP_ELEMENTWISE)
        return elements_accessed_one_by_one(m, event);
    if (event->kind == STEP_COPY && operator_name_is(event, "cat") && y != NULL)
        return copies_strided_elements(m, event) ? count_elements(y) : 0;
    if (event->kind == STEP_REDUCTION && operator_name_contains(event, "_softmax") && x != NULL &&
        x->dim_count > 0 &&
        (double)size_of_dim_from_innermost(x, 0) * (double)dtype_bytes(dtype_of(x)) >
            ROW_KEPT_BYTES)
        return count_elements(x) * (operator_name_contains(event, "backward") ? 1.15 : 1);
    return 0;
}

/* ---- any operator ---- */

enum status recorded_set_work_of_operator(const struct recorded_schedule_builder *m,
                                          uint32_t number, struct work *work)
{
    const struct step_event *event = &m->recording->event[number];
    *work = (struct work){.kind = WORK_OPAQUE};
    if (event->kind == STEP_PRODUCT)
        return find_work_of_matrix_product(m, number, work);
    if (event->kind == STEP_ATTENTION)
        return set_work_of_attention_event(m, number, work);
    work->opaque.bytes = llround(event->read_bytes + event->written_bytes);
    work->opaque.as = opaque_cost_of_memory_operator(m, event);
    work->opaque.slow = llround(slow_elements_times_passes(m, event));
    if (event->kind == STEP_CONVOLUTION)
        set_work_of_convolution(m, event, work);
    return STATUS_OK;
}

/* ---- collectives ---- */

enum dtype recorded_dtype_of_collective(const struct recorded_schedule_builder *m,
                                        const struct step_event *event, enum work_kind kind)
{
    const struct step_tensor *x = recorded_tensor_read_by_event(m, event, 0);
    if (kind != WORK_REDUCE_SCATTER && kind != WORK_ALL_REDUCE && kind != WORK_REDUCE)
        return DTYPE_U8;
    return x != NULL && x->dtype <= STEP_DTYPE_F64 ? dtype_of(x) : DTYPE_F32;
}

bool recorded_only_joins_collective(const struct step_event *event)
{
    return event->kind == STEP_COLLECTIVE && operator_name_contains(event, "wait_tensor");
}

enum status recorded_set_work_of_collective(const struct recorded_schedule_builder *m,
                                            uint32_t number, struct work *work)
{
    static const struct {
        const char *part;
        enum work_kind kind;
    } names[] = {
        {"allgather", WORK_ALL_GATHER},
        {"all_gather", WORK_ALL_GATHER},
        {"reduce_scatter", WORK_REDUCE_SCATTER},
        {"allreduce", WORK_ALL_REDUCE},
        {"all_reduce", WORK_ALL_REDUCE},
        {"alltoall", WORK_ALL_TO_ALL},
        {"all_to_all", WORK_ALL_TO_ALL},
        {"broadcast", WORK_BROADCAST},
        {"reduce", WORK_REDUCE},
        {"barrier", WORK_BARRIER},
    };
    const struct step_event *event = &m->recording->event[number];
    size_t i = 0;
    if (recorded_is_message(event))
        return recorded_set_work_of_message(m, number, work);
    while (i < ARRAY_LEN(names) && !operator_name_contains(event, names[i].part))
        i++;
    if (i == ARRAY_LEN(names))
        return recorded_report_event_error(
            m, number,
            "this collective is not predicted from a recording: gathers, "
            "reductions, all-to-alls, broadcasts and barriers are");
    if (event->group == UINT32_MAX)
        return recorded_report_event_error(m, number, "has no member 'g', the group of its ranks");
    const int64_t group = m->schedule_group_by_program_group[event->group],
                  ranks = m->recording->group[event->group].rank_count;
    int64_t bytes = llround(event->full_tensor_bytes);
    *work = (struct work){.kind = (uint8_t)names[i].kind};
    work->p[0] = group;
    if (work->kind == WORK_BARRIER)
        return STATUS_OK;
    if (work->kind == WORK_ALL_TO_ALL &&
        event->group_index_of_only_receiver >= 0) { /* a step of a ring */
        const int64_t own =
            recorded_index_of_rank_in_group(&m->recording->group[event->group], m->recording->rank);
        *work = (struct work){.kind = WORK_SHIFT};
        work->p2p.group = group;
        work->p2p.by = (event->group_index_of_only_receiver - own + ranks) % ranks;
        work->p2p.bytes = llround(event->most_bytes_sent_to_one_rank);
        return STATUS_OK;
    }
    if (work->kind == WORK_ALL_TO_ALL &&
        event->most_bytes_sent_to_one_rank > 0) /* the largest piece decides */
        bytes = ranks * llround(event->most_bytes_sent_to_one_rank);
    /* full_tensor_bytes are what all members gather; `bytes` becomes the part of one */
    if (work->kind == WORK_ALL_GATHER)
        bytes = (bytes + ranks - 1) / ranks;
    /* bytes are rounded to whole elements, which divide evenly over the members */
    const bool cut = work->kind == WORK_REDUCE_SCATTER || work->kind == WORK_ALL_TO_ALL;
    const int64_t piece =
        (int64_t)dtype_bytes(recorded_dtype_of_collective(m, event, (enum work_kind)work->kind)) *
        (cut ? ranks : 1);
    bytes = (bytes + piece - 1) / piece * piece;
    work->p[1] = bytes > 0 ? bytes : piece;
    return STATUS_OK;
}
