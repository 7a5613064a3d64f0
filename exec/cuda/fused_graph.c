/* Makes the composite graph of attention that cuDNN recognises: products, a softmax of pointwise operations and
 * reductions, and masks of generated indices (docs/execution.md). */
#include "exec/cuda/fused_graph.h"

#ifdef HAVE_CUDNN
#include <math.h>
#include <stdio.h>

/* ---- descriptors of cuDNN ---- */

void fused_record_refusal(struct fused *g, const char *call, cudnnStatus_t status)
{
    char more[256] = "";
    if (g->has_failed)
        return;
    g->has_failed = true;
    g->dnn->cudnnGetLastErrorString(more, sizeof more);
    snprintf(g->refusal_text, sizeof g->refusal_text, "%s: %s (%s)", call,
             g->dnn->cudnnGetErrorString(status), more);
}

descriptor fused_make_descriptor(struct fused *g, cudnnBackendDescriptorType_t type)
{
    descriptor d = NULL;
    if (g->has_failed)
        return NULL;
    cudnnStatus_t status = g->descriptor_count < FUSED_DESCRIPTORS
                               ? g->dnn->cudnnBackendCreateDescriptor(type, &d)
                               : CUDNN_STATUS_INTERNAL_ERROR;
    if (status != CUDNN_STATUS_SUCCESS) {
        fused_record_refusal(g, "cudnnBackendCreateDescriptor", status);
        return NULL;
    }
    g->descriptors[g->descriptor_count++] = d;
    return d;
}

void fused_set_attribute(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    if (g->has_failed)
        return;
    cudnnStatus_t status = g->dnn->cudnnBackendSetAttribute(d, name, type, count, value);
    if (status != CUDNN_STATUS_SUCCESS)
        fused_record_refusal(g, "cudnnBackendSetAttribute", status);
}

void fused_set_descriptor(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                          descriptor value)
{
    fused_set_attribute(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

static void set_type(struct fused *g, descriptor d, cudnnBackendAttributeName_t name,
                     cudnnDataType_t type)
{
    fused_set_attribute(g, d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

void fused_finalize(struct fused *g, descriptor d)
{
    if (g->has_failed)
        return;
    cudnnStatus_t status = g->dnn->cudnnBackendFinalize(d);
    if (status != CUDNN_STATUS_SUCCESS)
        fused_record_refusal(g, "cudnnBackendFinalize", status);
}

/* ---- tensors, whose dimensions are (documents, or 1; heads; rows; columns) ---- */

struct strided_dims {
    int64_t size[4], step[4];
    descriptor offset; /* where documents begin; NULL: at multiples of step[0] */
};

static int64_t cudnn_batch_size(const struct fused *g)
{
    return g->shape.documents > 0 ? g->shape.documents : 1;
}

/* Returns the dimensions of a tensor whose elements lie in memory in the order of its dimensions, without gaps. */
static struct strided_dims strided_dims_without_gaps(const struct fused *g, int64_t heads,
                                                     int64_t rows, int64_t cols)
{
    return (struct strided_dims){{cudnn_batch_size(g), heads, rows, cols},
                                 {heads * rows * cols, rows * cols, cols, 1},
                                 NULL};
}

/* Returns the dimensions of an array of `count` numbers, such as one for each document. */
static struct strided_dims strided_dims_of_vector(int64_t count)
{
    return (struct strided_dims){{count, 1, 1, 1}, {1, 1, 1, 1}, NULL};
}

/* Returns the dimensions of a tensor that is stored as (rows, heads, dim). offset: the tensor with the beginnings of
 * its documents; NULL: it has none. */
static struct strided_dims strided_dims_of_rows_heads_dim(const struct fused *g, int64_t rows,
                                                          int64_t heads, int64_t dim,
                                                          descriptor offset)
{
    return (struct strided_dims){
        {cudnn_batch_size(g), heads, rows, dim}, {rows * heads * dim, dim, heads * dim, 1}, offset};
}

/* Returns the dimensions of a tensor with one number for each row and head. The numbers are stored head by head or,
 * with documents, row by row. */
static struct strided_dims strided_dims_of_stats(const struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    return s->documents > 0 ? strided_dims_of_rows_heads_dim(g, s->q, s->heads, 1, g->stats_offset)
                            : strided_dims_without_gaps(g, s->heads, s->q, 1);
}

static struct strided_dims transposed_strided_dims(struct strided_dims d)
{
    return (struct strided_dims){{d.size[0], d.size[1], d.size[3], d.size[2]},
                                 {d.step[0], d.step[1], d.step[3], d.step[2]},
                                 d.offset};
}

static descriptor make_tensor(struct fused *g, int64_t uid, cudnnDataType_t type,
                              struct strided_dims dims, cudnnBackendAttributeName_t flag)
{
    const int64_t alignment = 16;
    const bool yes = true;
    descriptor d = fused_make_descriptor(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    fused_set_attribute(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.size);
    fused_set_attribute(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, dims.step);
    fused_set_attribute(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    fused_set_attribute(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (flag != CUDNN_ATTR_TENSOR_DATA_TYPE)
        fused_set_attribute(g, d, flag, CUDNN_TYPE_BOOLEAN, 1, &yes);
    if (dims.offset != NULL)
        fused_set_descriptor(g, d, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, dims.offset);
    fused_finalize(g, d);
    return d;
}

static descriptor make_memory_tensor(struct fused *g, enum uid uid, cudnnDataType_t type,
                                     struct strided_dims dims)
{
    return make_tensor(g, uid, type, dims, CUDNN_ATTR_TENSOR_DATA_TYPE);
}

static descriptor make_virtual_tensor(struct fused *g, cudnnDataType_t type,
                                      struct strided_dims dims)
{
    return make_tensor(g, UID_FIRST_VIRTUAL + g->inner_tensor_count++, type, dims,
                       CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static descriptor make_scalar_tensor(struct fused *g, struct scalar value, cudnnDataType_t type)
{
    g->scalar[g->scalar_count++] = value;
    return make_tensor(g, value.uid, type, strided_dims_of_vector(1),
                       CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}

static descriptor f32_scalar(struct fused *g, enum uid uid, float value)
{
    return make_scalar_tensor(g, (struct scalar){.uid = uid, .f = value}, CUDNN_DATA_FLOAT);
}

static descriptor i32_scalar(struct fused *g, enum uid uid, int64_t value)
{
    return make_scalar_tensor(g, (struct scalar){.uid = uid, .i = (int32_t)value},
                              CUDNN_DATA_INT32);
}

/* ---- operations of the graph ---- */

static void add_operation(struct fused *g, descriptor operation)
{
    fused_finalize(g, operation);
    if (!g->has_failed)
        g->operation[g->operation_count++] = operation;
}

/* Adds the operation y = mode(x, b). With t it is a selection: y = x where t is true, and b elsewhere. axis: that of
 * the index, for mode GEN_INDEX. */
static void add_pointwise(struct fused *g, cudnnPointwiseMode_t mode, cudnnDataType_t type,
                          int64_t axis, descriptor x, descriptor b, descriptor t, descriptor y)
{
    descriptor how = fused_make_descriptor(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    fused_set_attribute(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, type);
    if (mode == CUDNN_POINTWISE_GEN_INDEX)
        fused_set_attribute(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    fused_finalize(g, how);
    descriptor op = fused_make_descriptor(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (b != NULL)
        fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t != NULL)
        fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    add_operation(g, op);
}

/* Adds the operation mode(x, b), and returns its result: a new fp32 tensor that exists only within the kernel. */
static descriptor apply_pointwise(struct fused *g, cudnnPointwiseMode_t mode, descriptor x,
                                  descriptor b, struct strided_dims dims)
{
    descriptor y = make_virtual_tensor(g, CUDNN_DATA_FLOAT, dims);
    add_pointwise(g, mode, CUDNN_DATA_FLOAT, 0, x, b, NULL, y);
    return y;
}

/* Adds the product c = a b, where a is (m, k) and b (k, n). With documents, the arguments m, n and k are tensors with
 * each document's number of rows along that dimension; NULL: the dimension is the same for all documents. */
static void add_product(struct fused *g, descriptor a, descriptor b, descriptor c, descriptor m,
                        descriptor n, descriptor k)
{
    descriptor how = fused_make_descriptor(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    fused_finalize(g, how);
    descriptor op = fused_make_descriptor(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    if (m != NULL)
        fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m);
    if (n != NULL)
        fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, n);
    if (k != NULL)
        fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, k);
    add_operation(g, op);
}

static void add_reduction(struct fused *g, cudnnReduceTensorOp_t mode, descriptor x, descriptor y)
{
    descriptor how = fused_make_descriptor(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set_type(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    fused_set_attribute(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                        1, &mode);
    fused_finalize(g, how);
    descriptor op = fused_make_descriptor(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add_operation(g, op);
}

static void add_reshape(struct fused *g, descriptor x, descriptor y)
{
    descriptor op = fused_make_descriptor(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    fused_set_descriptor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add_operation(g, op);
}

/* Makes the tensors that say how many rows each document has and where it begins. Without documents there are none. */
static void make_document_tensors(struct fused *g)
{
    const int64_t count = g->shape.documents;
    if (count == 0)
        return;
    g->q_rows = make_memory_tensor(g, UID_Q_ROWS, CUDNN_DATA_INT32, strided_dims_of_vector(count));
    g->kv_rows =
        make_memory_tensor(g, UID_KV_ROWS, CUDNN_DATA_INT32, strided_dims_of_vector(count));
    g->q_offset =
        make_memory_tensor(g, UID_Q_OFFSET, CUDNN_DATA_INT64, strided_dims_of_vector(count + 1));
    g->k_offset =
        make_memory_tensor(g, UID_K_OFFSET, CUDNN_DATA_INT64, strided_dims_of_vector(count + 1));
    g->v_offset =
        make_memory_tensor(g, UID_V_OFFSET, CUDNN_DATA_INT64, strided_dims_of_vector(count + 1));
    g->o_offset =
        make_memory_tensor(g, UID_O_OFFSET, CUDNN_DATA_INT64, strided_dims_of_vector(count + 1));
    g->stats_offset = make_memory_tensor(g, UID_STATS_OFFSET, CUDNN_DATA_INT64,
                                         strided_dims_of_vector(count + 1));
}

/* The operands of a mask: the scores x, their row and column indices, the numbers of keys and queries (with documents,
 * those of each document), and minus infinity for hidden scores. */
struct mask_operands {
    descriptor x, row, col, keys, queries, hidden;
};

/* Adds the operations that make the row index and the column index of each score of x. */
static void add_indices(struct fused *g, struct mask_operands *m)
{
    const struct strided_dims scores =
        strided_dims_without_gaps(g, g->shape.heads, g->shape.q, g->shape.kv);
    m->row = make_virtual_tensor(g, CUDNN_DATA_INT32, scores);
    m->col = make_virtual_tensor(g, CUDNN_DATA_INT32, scores);
    add_pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2, m->x, NULL, NULL, m->row);
    add_pointwise(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3, m->x, NULL, NULL, m->col);
}

/* Adds mode(a, b) for each score, where a and b are indices, numbers or conditions, and returns its result, of the type
 * `type`. */
static descriptor add_index_pointwise(struct fused *g, cudnnPointwiseMode_t mode,
                                      cudnnDataType_t type, descriptor a, descriptor b)
{
    descriptor y = make_virtual_tensor(
        g, type, strided_dims_without_gaps(g, g->shape.heads, g->shape.q, g->shape.kv));
    add_pointwise(g, mode, type, 0, a, b, NULL, y);
    return y;
}

/* Adds index + by or index - by, as mode says, and returns its result. */
static descriptor add_shifted_index(struct fused *g, cudnnPointwiseMode_t mode, descriptor index,
                                    descriptor by)
{
    return add_index_pointwise(g, mode, CUDNN_DATA_INT32, index, by);
}

/* Adds a selection, and returns its result: x where the condition `seen` holds, and `hidden` elsewhere. */
static descriptor add_score_selection(struct fused *g, descriptor x, descriptor hidden,
                                      descriptor seen)
{
    descriptor y = make_virtual_tensor(
        g, CUDNN_DATA_FLOAT, strided_dims_without_gaps(g, g->shape.heads, g->shape.q, g->shape.kv));
    add_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0, x, hidden, seen, y);
    return y;
}

/* Adds a comparison of a with b, and returns the scores m->x where it holds, and minus infinity elsewhere. */
static descriptor masked_by_comparison(struct fused *g, const struct mask_operands *m,
                                       cudnnPointwiseMode_t mode, descriptor a, descriptor b)
{
    return add_score_selection(g, m->x, m->hidden,
                               add_index_pointwise(g, mode, CUDNN_DATA_BOOLEAN, a, b));
}

/* Returns x within the rows and keys that each document has, and minus infinity beyond them. Without documents returns
 * x itself. */
static descriptor scores_of_documents(struct fused *g, descriptor x)
{
    if (g->shape.documents == 0)
        return x;
    struct mask_operands m = {.x = x};
    add_indices(g, &m);
    const cudnnDataType_t B = CUDNN_DATA_BOOLEAN;
    descriptor row = add_index_pointwise(g, CUDNN_POINTWISE_CMP_LT, B, m.row, g->q_rows),
               col = add_index_pointwise(g, CUDNN_POINTWISE_CMP_LT, B, m.col, g->kv_rows),
               both = add_index_pointwise(g, CUDNN_POINTWISE_LOGICAL_AND, B, row, col);
    return add_score_selection(g, x, f32_scalar(g, UID_SCORE_BEYOND_DOCUMENT, -INFINITY), both);
}

/* Adds the masks. For FUSED_MASK_NONE the result is x. Otherwise it is x where row (+ kv - q) >= col and, with a
 * window, row < col + window (- kv + q); elsewhere it is minus infinity. Terms in parentheses are for
 * FUSED_MASK_CAUSAL_TO_END. cuDNN recognises the two conditions in this order only, each with index tensors of its own
 * (cudnn-frontend, node/diagonal_band_mask.h). */
static descriptor masked_scores(struct fused *g, descriptor x)
{
    const struct fused_shape *s = &g->shape;
    struct mask_operands m = {.x = x};
    if (s->mask == FUSED_MASK_NONE)
        return x;
    m.hidden = f32_scalar(g, UID_SCORE_OF_MASKED_PAIRS, -INFINITY);
    add_indices(g, &m);
    if (s->mask == FUSED_MASK_CAUSAL_TO_END) {
        m.keys = s->documents > 0 ? g->kv_rows : i32_scalar(g, UID_OF_KEY_COUNT, s->kv);
        m.queries = s->documents > 0 ? g->q_rows : i32_scalar(g, UID_QUERY_COUNT, s->q);
        m.row = add_shifted_index(g, CUDNN_POINTWISE_ADD, m.row, m.keys);
        m.row = add_shifted_index(g, CUDNN_POINTWISE_SUB, m.row, m.queries);
    }
    m.x = masked_by_comparison(g, &m, CUDNN_POINTWISE_CMP_GE, m.row, m.col);
    if (s->window == 0)
        return m.x;
    add_indices(g, &m);
    m.col = add_shifted_index(g, CUDNN_POINTWISE_ADD, m.col, i32_scalar(g, UID_WINDOW, s->window));
    if (s->mask == FUSED_MASK_CAUSAL_TO_END) {
        m.col = add_shifted_index(g, CUDNN_POINTWISE_SUB, m.col, m.keys);
        m.col = add_shifted_index(g, CUDNN_POINTWISE_ADD, m.col, m.queries);
    }
    return masked_by_comparison(g, &m, CUDNN_POINTWISE_CMP_GT, m.col, m.row);
}

static cudnnDataType_t cudnn_element_type_of(const struct fused_shape *s)
{
    return s->is_f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

static float softmax_scale_of(const struct fused_shape *s)
{
    return 1 / sqrtf((float)s->dim);
}

/* Makes the graph of the forward: S = Q K^T scale; m = max(S); e = exp(S - m); l = sum(e); O = (e / l) V; stats = m +
 * log(l), with max and sum over the keys of a row. */
static void build_forward(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    const cudnnDataType_t T = cudnn_element_type_of(s), F = CUDNN_DATA_FLOAT;
    const struct strided_dims q = strided_dims_of_rows_heads_dim(g, s->q, s->heads, s->dim,
                                                                 g->q_offset),
                              k = strided_dims_of_rows_heads_dim(g, s->kv, s->kv_heads, s->dim,
                                                                 g->k_offset),
                              v = strided_dims_of_rows_heads_dim(g, s->kv, s->kv_heads, s->vdim,
                                                                 g->v_offset),
                              o = strided_dims_of_rows_heads_dim(g, s->q, s->heads, s->vdim,
                                                                 g->o_offset);
    const struct strided_dims scores = strided_dims_without_gaps(g, s->heads, s->q, s->kv),
                              rows = strided_dims_without_gaps(g, s->heads, s->q, 1);
    descriptor Q = make_memory_tensor(g, UID_Q, T, q),
               KT = make_memory_tensor(g, UID_K, T, transposed_strided_dims(k));
    descriptor V = make_memory_tensor(g, UID_V, T, v), O = make_memory_tensor(g, UID_O, T, o);
    descriptor stats = make_memory_tensor(g, UID_STATS, F, strided_dims_of_stats(g));
    descriptor S = make_virtual_tensor(g, F, scores), top = make_virtual_tensor(g, F, rows),
               sum = make_virtual_tensor(g, F, rows);
    add_product(g, Q, KT, S, g->q_rows, g->kv_rows, NULL);
    descriptor scaled = apply_pointwise(g, CUDNN_POINTWISE_MUL, S,
                                        f32_scalar(g, UID_SCALE, softmax_scale_of(s)), scores);
    descriptor X = masked_scores(g, scores_of_documents(g, scaled));
    add_reduction(g, CUDNN_REDUCE_TENSOR_MAX, X, top);
    descriptor E =
        apply_pointwise(g, CUDNN_POINTWISE_EXP,
                        apply_pointwise(g, CUDNN_POINTWISE_SUB, X, top, scores), NULL, scores);
    add_reduction(g, CUDNN_REDUCE_TENSOR_ADD, E, sum);
    descriptor log_sum = apply_pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, rows);
    add_pointwise(g, CUDNN_POINTWISE_ADD, F, 0, top, log_sum, NULL, stats);
    /* a factor of a product has the dtype of q, k and v */
    descriptor P = make_virtual_tensor(g, T, scores);
    add_pointwise(g, CUDNN_POINTWISE_DIV, F, 0, E, sum, NULL, P);
    add_product(g, P, V, O, g->q_rows, NULL, g->kv_rows);
}

/* Adds gradient = a b, the gradient of K or V. With grouped heads it adds a product for each query head, and the sum
 * over the query heads that share a key head. */
static void add_key_or_value_gradient(struct fused *g, descriptor a, descriptor b,
                                      descriptor gradient, enum uid each_uid, int64_t dim)
{
    const struct fused_shape *s = &g->shape;
    if (s->heads == s->kv_heads) {
        add_product(g, a, b, gradient, g->kv_rows, NULL, g->q_rows);
        return;
    }
    /* With documents the gradient of each query head must be in memory, since it has offsets: the library multiplies
     * the offsets of k and v by heads / kv_heads for it. */
    descriptor each =
        s->documents > 0
            ? make_memory_tensor(g, each_uid, cudnn_element_type_of(s),
                                 strided_dims_of_rows_heads_dim(
                                     g, s->kv, s->heads, dim,
                                     each_uid == UID_DK_OF_QUERY_HEADS ? g->k_offset : g->v_offset))
            : make_virtual_tensor(g, cudnn_element_type_of(s),
                                  strided_dims_without_gaps(g, s->heads, s->kv, dim));
    add_product(g, a, b, each, g->kv_rows, NULL, g->q_rows);
    add_reduction(g, CUDNN_REDUCE_TENSOR_ADD, each, gradient);
}

/* Makes the graph of the backward, where o is the product by elements: delta = rowsum(dO o O); P = exp(mask(S scale -
 * stats)); dV = P^T dO; dS = (dO V^T - delta) o P scale; dK = dS^T Q; dQ = dS K. dS stays in fp32, and only its
 * transpose has the dtype of q, k and v; otherwise cuDNN does not recognise the pattern. */
static void build_backward(struct fused *g)
{
    const struct fused_shape *s = &g->shape;
    const cudnnDataType_t T = cudnn_element_type_of(s), F = CUDNN_DATA_FLOAT;
    const struct strided_dims q = strided_dims_of_rows_heads_dim(g, s->q, s->heads, s->dim,
                                                                 g->q_offset),
                              k = strided_dims_of_rows_heads_dim(g, s->kv, s->kv_heads, s->dim,
                                                                 g->k_offset),
                              v = strided_dims_of_rows_heads_dim(g, s->kv, s->kv_heads, s->vdim,
                                                                 g->v_offset),
                              o = strided_dims_of_rows_heads_dim(g, s->q, s->heads, s->vdim,
                                                                 g->o_offset);
    const struct strided_dims scores = strided_dims_without_gaps(g, s->heads, s->q, s->kv),
                              rows = strided_dims_without_gaps(g, s->heads, s->q, 1);
    descriptor Q = make_memory_tensor(g, UID_Q, T, q),
               KT = make_memory_tensor(g, UID_K, T, transposed_strided_dims(k));
    descriptor VT = make_memory_tensor(g, UID_V, T, transposed_strided_dims(v)),
               O = make_memory_tensor(g, UID_O, T, o);
    descriptor dO = make_memory_tensor(g, UID_D_O, T, o),
               stats = make_memory_tensor(g, UID_STATS, F, strided_dims_of_stats(g));
    descriptor dQ = make_memory_tensor(g, UID_DQ, T, q), dK = make_memory_tensor(g, UID_DK, T, k);
    descriptor dV = make_memory_tensor(g, UID_DV, T, v),
               scale = f32_scalar(g, UID_SCALE, softmax_scale_of(s));

    descriptor dot = make_virtual_tensor(g, F, rows),
               delta = make_memory_tensor(g, UID_DELTA, F, strided_dims_of_stats(g));
    add_reduction(g, CUDNN_REDUCE_TENSOR_ADD,
                  apply_pointwise(g, CUDNN_POINTWISE_MUL, dO, O,
                                  strided_dims_without_gaps(g, s->heads, s->q, s->vdim)),
                  dot);
    add_pointwise(g, CUDNN_POINTWISE_MUL, F, 0, dot, f32_scalar(g, UID_ONE, 1), NULL, delta);

    descriptor S = make_virtual_tensor(g, F, scores);
    add_product(g, Q, KT, S, g->q_rows, g->kv_rows, NULL);
    S = scores_of_documents(g, apply_pointwise(g, CUDNN_POINTWISE_MUL, S, scale, scores));
    S = masked_scores(g, apply_pointwise(g, CUDNN_POINTWISE_SUB, S, stats, scores));
    descriptor P = apply_pointwise(g, CUDNN_POINTWISE_EXP, S, NULL, scores);
    descriptor PT = make_virtual_tensor(g, T, transposed_strided_dims(scores));
    add_reshape(g, P, PT);
    add_key_or_value_gradient(g, PT, dO, dV, UID_DV_OF_QUERY_HEADS, s->vdim);

    descriptor dP = make_virtual_tensor(g, F, scores);
    add_product(g, dO, VT, dP, g->q_rows, g->kv_rows, NULL);
    dP = apply_pointwise(g, CUDNN_POINTWISE_SUB, dP, delta, scores);
    dP = apply_pointwise(g, CUDNN_POINTWISE_MUL, dP, P, scores);
    descriptor dS = apply_pointwise(g, CUDNN_POINTWISE_MUL, dP, scale, scores);
    descriptor dST = make_virtual_tensor(g, T, transposed_strided_dims(scores));
    add_reshape(g, dS, dST);
    add_key_or_value_gradient(g, dST, Q, dK, UID_DK_OF_QUERY_HEADS, s->dim);

    descriptor K = make_virtual_tensor(g, T, k);
    add_reshape(g, KT, K);
    descriptor sum = make_memory_tensor(
        g, UID_DQ_SUM, F,
        s->documents > 0 ? q : strided_dims_without_gaps(g, s->heads, s->q, s->dim));
    add_product(g, dS, K, sum, g->q_rows, NULL, g->kv_rows);
    add_pointwise(g, CUDNN_POINTWISE_IDENTITY, F, 0, sum, NULL, NULL, dQ);
}

void fused_add_operations(struct fused *g)
{
    make_document_tensors(g);
    if (g->shape.is_backward)
        build_backward(g);
    else
        build_forward(g);
}
#endif
