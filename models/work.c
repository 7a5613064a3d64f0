#include "models/work.h"

#include "base/arena.h"
#include "models/states.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- names ---- */

/* VALUES(table, count, names in the order of the enum): the tables of names of values that work_kinds.def refers to. */
#define VALUE_TABLES(VALUES)                                                                       \
    VALUES(form, MATMUL_FORM_COUNT, "nt", "nn", "tn")                                              \
    VALUES(epilogue, EPILOGUE_COUNT, "none", "bias")                                               \
    VALUES(mask, MASK_COUNT, "full", "causal", "window", "documents", "plan")                      \
    VALUES(function, FUNCTION_COUNT, "own", "gelu", "relu2")                                       \
    VALUES(score, ROUTE_SCORE_COUNT, "softmax", "chosen", "sigmoid")                               \
    VALUES(opaque, OPAQUE_COUNT, "nothing", "matmul", "matmul_tn", "attention",                    \
           "attention_backward", "stream", "reduce", "permute", "gather", "scatter")               \
    VALUES(impl, ATTENTION_IMPL_COUNT, "fa2", "fa3", "cudnn", "cpu", "triton", "fa1")              \
    VALUES(take, TAKE_COUNT, "send", "place", "return", "gather")                                  \
    VALUES(what, 2, "keys", "queries")                                                             \
    VALUES(reduce, REDUCE_COUNT, "sum", "max")                                                     \
    VALUES(algorithm, ALGORITHM_COUNT, "auto", "ring", "tree", "direct")

#define VALUES(table, count, ...)                                                                  \
    static const char *const table##_names[] = {__VA_ARGS__};                                      \
    _Static_assert(ARRAY_LEN(table##_names) == (count), "a name per value");
VALUE_TABLES(VALUES)
#undef VALUES

static const struct {
    const char *name;
    const char *const *values;
    uint8_t count;
} value_tables[] = {
#define VALUES(table, count, ...) {#table, table##_names, count},
    VALUE_TABLES(VALUES)
#undef VALUES
        {"states", states_names, STATES_COUNT},
    {"scaling", scaling_names, SCALING_COUNT},
    {"dtype", dtype_names, DTYPE_COUNT},
};

static const char *const stream_names[] = {"compute", "comm", "h2d", "d2h", "host", "sync"};
_Static_assert(ARRAY_LEN(stream_names) == STREAM_CLASS_COUNT, "a name per class of stream");

static bool same(const char *name, const char *word, size_t size)
{
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

const char *stream_class_name(enum stream_class stream)
{
    assert(stream < STREAM_CLASS_COUNT);
    return stream_names[stream];
}

bool stream_class_find(const char *name, size_t size, enum stream_class *stream)
{
    for (int i = 0; i < STREAM_CLASS_COUNT; i++)
        if (same(stream_names[i], name, size)) {
            *stream = (enum stream_class)i;
            return true;
        }
    return false;
}

const char *attention_impl_name(enum attention_impl impl)
{
    assert(impl < ATTENTION_IMPL_COUNT);
    return impl_names[impl];
}

bool attention_impl_find(const char *name, size_t size, enum attention_impl *impl)
{
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        if (same(impl_names[i], name, size)) {
            *impl = (enum attention_impl)i;
            return true;
        }
    return false;
}

/* ---- the table of kinds ---- */

static const struct {
    const char *name, *params;
    uint8_t stream, reads_min, reads_max, writes_min, writes_max;
} rows_of_def[WORK_KIND_COUNT] = {
#define WORK(symbol, name, stream, rmin, rmax, wmin, wmax, params)                                 \
    {name, params, STREAM_##stream, rmin, rmax, wmin, wmax},
#include "models/work_kinds.def"
#undef WORK
};

/* Kinds whose work.in or work.out is not the dtype of the first operand, because the dtype of another operand decides
 * their bytes. */
static const struct {
    enum work_kind kind;
    uint8_t in, out;
} dtype_operands[] = {
    {WORK_MERGE, 2, 0},              /* accumulators are always f32; the block may be any */
    {WORK_UNPERMUTE_BACKWARD, 1, 0}, /* the copies of rows decide */
    {WORK_EMBEDDING, 1, 0},          /* tokens are always i32 */
    {WORK_ADD, 1, 0},                /* a has y's dtype; b may be narrower */
    {WORK_ADAMW, 0, 3}, /* `states` fixes the states' dtypes; the parameter copy has its own */
};

/* Writes that may use the same elements as a read. docs/ir.md describes them with each kind. */
static const struct {
    enum work_kind kind;
    uint8_t read, write;
} in_place[] = {
    {WORK_MATMUL, 2, 0}, /* y itself, with accumulate: read 2, or read 3 if there is a bias */
    {WORK_MATMUL, 3, 0},
    {WORK_MERGE, 0, 0},
    {WORK_MERGE, 1, 1},
    {WORK_RMSNORM_BACKWARD, 4, 1},
    {WORK_LAYERNORM_BACKWARD, 4, 1},
    {WORK_LAYERNORM_BACKWARD, 5, 2},
    {WORK_ROPE, 0, 0},
    {WORK_ROPE_BACKWARD, 0, 0},
    {WORK_EMBEDDING_BACKWARD, 2, 0},
    {WORK_CROSS_ENTROPY, 0, 2},
    {WORK_CROSS_ENTROPY, 2, 0},
    {WORK_CROSS_ENTROPY_BACKWARD, 0, 0},
    {WORK_CROSS_ENTROPY_FINISH, 3, 0},
    {WORK_CROSS_ENTROPY_PARTIAL_BACKWARD, 0, 0},
    {WORK_ADD, 0, 0},
    {WORK_ADD, 1, 0},
    {WORK_COLUMN_SUM, 1, 0},
    {WORK_ADD_ROWS, 1, 0},
    {WORK_MERGE_ROWS, 2, 0},
    {WORK_MERGE_ROWS, 3, 1},
    {WORK_ADAMW, 1, 0},
    {WORK_ADAMW, 2, 1},
    {WORK_ADAMW, 3, 2},
    {WORK_SQUARE_SUM, 1, 0},
    {WORK_CLIP, 0, 0},
    {WORK_ALL_REDUCE, 0, 0},
    {WORK_REDUCE, 0, 0},
    {WORK_BROADCAST, 0, 0},
};

static struct work_kind_info kinds[WORK_KIND_COUNT];
static atomic_bool kinds_ready;
static pthread_once_t kinds_once = PTHREAD_ONCE_INIT;

/* Reads one word of a params column: NAME or NAME:TABLE, then an optional '~', then an optional '?'. */
static void make_param(struct work_param *param, const char *word, size_t size)
{
    if (word[size - 1] == '?') {
        param->optional = true;
        size--;
    }
    if (word[size - 1] == '~') {
        param->is_signed = true;
        size--;
    }
    const char *colon = memchr(word, ':', size);
    size_t name_size = colon ? (size_t)(colon - word) : size;
    assert(name_size < sizeof param->name);
    memcpy(param->name, word, name_size);
    if (!colon)
        return;
    const char *table = colon + 1;
    size_t table_size = size - name_size - 1;
    param->is_group = same("group", table, table_size);
    for (size_t i = 0; i < ARRAY_LEN(value_tables); i++)
        if (same(value_tables[i].name, table, table_size)) {
            param->values = value_tables[i].values;
            param->value_count = value_tables[i].count;
        }
    assert(param->is_group || param->values);
}

static void make_kinds(void)
{
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        struct work_kind_info *info = &kinds[kind];
        info->name = rows_of_def[kind].name;
        info->stream = rows_of_def[kind].stream;
        info->reads_min = rows_of_def[kind].reads_min;
        info->reads_max = rows_of_def[kind].reads_max;
        info->writes_min = rows_of_def[kind].writes_min;
        info->writes_max = rows_of_def[kind].writes_max;
        for (const char *at = rows_of_def[kind].params; *at;) {
            size_t size = strcspn(at, " ");
            assert(info->param_count < WORK_PARAMS_MAX);
            make_param(&info->param[info->param_count++], at, size);
            at += size;
            at += strspn(at, " ");
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(dtype_operands); i++) {
        kinds[dtype_operands[i].kind].in = dtype_operands[i].in;
        kinds[dtype_operands[i].kind].out = dtype_operands[i].out;
    }
    atomic_store_explicit(&kinds_ready, true, memory_order_release);
}

const struct work_kind_info *work_kind_info(enum work_kind kind)
{
    assert(kind < WORK_KIND_COUNT);
    if (!atomic_load_explicit(&kinds_ready, memory_order_acquire))
        pthread_once(&kinds_once, make_kinds);
    return &kinds[kind];
}

bool work_kind_find(const char *name, size_t size, enum work_kind *kind)
{
    for (int i = 0; i < WORK_KIND_COUNT; i++)
        if (same(rows_of_def[i].name, name, size)) {
            *kind = (enum work_kind)i;
            return true;
        }
    return false;
}

bool work_in_place(enum work_kind kind, uint32_t read, uint32_t write)
{
    for (size_t i = 0; i < ARRAY_LEN(in_place); i++)
        if (in_place[i].kind == kind && in_place[i].read == read && in_place[i].write == write)
            return true;
    return false;
}

bool work_runs_on(enum work_kind kind, enum stream_class stream)
{
    enum stream_class own = rows_of_def[kind].stream;
    /* one stream may carry copies of both directions */
    bool copies = own == STREAM_H2D || own == STREAM_D2H;
    bool on_host = kind == WORK_ADAMW || kind == WORK_FILL;
    return own == STREAM_SYNC || stream == own || (on_host && stream == STREAM_HOST) ||
           (copies && (stream == STREAM_H2D || stream == STREAM_D2H));
}

/* ---- communication ---- */

int64_t work_group(const struct work *work)
{
    const struct work_kind_info *info = work_kind_info(work->kind);
    return info->param_count > 0 && info->param[0].is_group ? work->p[0] : -1;
}

int64_t work_part(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_EMBEDDING:
    case WORK_EMBEDDING_BACKWARD:
        return work->embedding.part - 1;
    case WORK_CROSS_ENTROPY_PARTIAL:
        return work->loss_partial.part - 1;
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return work->loss_backward.part - 1;
    case WORK_MATMUL:
        return work->matmul.part - 1;
    default:
        return -1;
    }
}

int64_t work_payload_bytes(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_ALL_TO_ALL:
    case WORK_ALL_GATHER:
    case WORK_REDUCE_SCATTER:
        return work->collective.bytes;
    case WORK_ALL_REDUCE:
        return work->all_reduce.bytes;
    case WORK_REDUCE:
    case WORK_BROADCAST:
    case WORK_SCATTER:
        return work->broadcast.bytes;
    case WORK_EXCHANGE:
        return work->exchange.parts * work->exchange.rows * work->exchange.width *
               (int64_t)dtype_bytes(work->in);
    case WORK_SHIFT:
    case WORK_SEND:
    case WORK_RECV:
        return work->p2p.bytes;
    case WORK_H2D:
    case WORK_D2H:
        return work->copy.bytes;
    default:
        return 0;
    }
}

/* ---- groups of rows ---- */

int64_t work_groups(const struct work *work)
{
    return work->kind == WORK_MATMUL && work->matmul.part > 0 ? 1 : work_matrices(work);
}

int64_t work_matrices(const struct work *work)
{
    return work->kind == WORK_MATMUL && work->matmul.groups > 1 ? work->matmul.groups : 1;
}

int64_t work_group_begin(int64_t total, int64_t groups, int64_t g)
{
    const int64_t longer = total % groups;
    return g * (total / groups) + (g < longer ? g : longer);
}

int64_t work_group_of(int64_t total, int64_t groups, int64_t row)
{
    const int64_t size = total / groups, longer = total % groups;
    const int64_t in_longer = longer * (size + 1);
    return row < in_longer ? row / (size + 1) : longer + (row - in_longer) / size;
}

int64_t work_route(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.route - 1;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.route - 1;
    case WORK_ROUTE:
    case WORK_ROUTE_BACKWARD:
        return work->route.route - 1;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.route - 1;
    case WORK_ALL_TO_ALL:
        return work->all_to_all.route - 1;
    default:
        return -1;
    }
}

int64_t work_dealt(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.dealt;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.dealt;
    case WORK_ROUTE:
    case WORK_ROUTE_BACKWARD:
        return work->route.rows * work->route.copies;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.dealt;
    case WORK_ALL_TO_ALL:
        return work->all_to_all.cols > 0
                   ? (work->all_to_all.ahead + work->all_to_all.back) / work->all_to_all.cols
                   : 0;
    default:
        return 0;
    }
}

double work_used(const struct work *work)
{
    if (work->kind != WORK_MATMUL || work->matmul.route == 0)
        return 1;
    const int64_t room = work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
    return (double)work->matmul.dealt / (double)room;
}

/* ---- operators of recorded programs ---- */

struct work work_priced_as(const struct work *work)
{
    if (work->kind != WORK_OPAQUE)
        return *work;
    struct work as = {.in = (uint8_t)work->opaque.dtype, .out = (uint8_t)work->opaque.out_dtype};
    switch ((enum opaque_cost)work->opaque.as) {
    case OPAQUE_MATMUL:
    case OPAQUE_MATMUL_TN:
        as.kind = WORK_MATMUL;
        as.matmul.m = work->opaque.m;
        as.matmul.n = work->opaque.n;
        as.matmul.k = work->opaque.k;
        as.matmul.form = work->opaque.as == OPAQUE_MATMUL_TN ? MATMUL_TN : MATMUL_NT;
        as.matmul.groups = work->opaque.groups;
        as.matmul.scaling = work->opaque.scaling;
        return as;
    case OPAQUE_ATTENTION:
    case OPAQUE_ATTENTION_BACKWARD:
        as.kind = work->opaque.as == OPAQUE_ATTENTION ? WORK_ATTENTION : WORK_ATTENTION_BACKWARD;
        as.attention.q = work->opaque.m;
        as.attention.kv = work->opaque.n;
        as.attention.heads = work->opaque.heads;
        as.attention.kv_heads = work->opaque.kv_heads;
        as.attention.dim = work->opaque.k;
        as.attention.mask = work->opaque.causal ? MASK_CAUSAL : MASK_FULL;
        return as;
    default:
        return *work;
    }
}

enum attention_impl work_kernels(const struct work *work, enum attention_impl impl)
{
    return work->kind == WORK_OPAQUE ? (enum attention_impl)work->opaque.kernels : impl;
}

double work_peak_factor(const struct work *opaque)
{
    const struct work as = work_priced_as(opaque), *work = &as;
    if (work->kind != WORK_MATMUL || work->matmul.scaling == SCALING_NONE)
        return 1;
    return work->matmul.scaling == SCALING_NV ? 4 : 2;
}

/* ---- flops ---- */

/* Returns the sum of x clamped to [0, top], over all integers x <= n. */
static double clamped_sum(double n, double top)
{
    if (n <= 0)
        return 0;
    return n <= top ? n * (n + 1) / 2 : top * (top + 1) / 2 + (n - top) * top;
}

/* Returns the number of pairs with j <= i + offset. Query i sees i + offset + 1 keys, clamped to [0, kv]. */
static double causal_pairs(int64_t q, int64_t kv, int64_t offset)
{
    /* Beyond these limits the result stays the same, and within them sums cannot overflow. */
    double first = (double)(offset < -q ? -q : offset > kv ? kv : offset);
    return clamped_sum(first + (double)q, (double)kv) - clamped_sum(first, (double)kv);
}

double attention_piece_pairs(const struct attention_piece *piece)
{
    double pairs = causal_pairs(piece->q, piece->kv, piece->offset);
    if (piece->window > 0) {
        int64_t hidden =
            piece->offset < INT64_MIN + piece->window ? INT64_MIN : piece->offset - piece->window;
        pairs -= causal_pairs(piece->q, piece->kv, hidden);
    }
    return pairs;
}

double work_attention_pairs(const struct work *work)
{
    assert(work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD);
    assert(work->attention.mask < MASK_DOCUMENTS);
    if (work->attention.mask == MASK_FULL)
        return (double)work->attention.q * (double)work->attention.kv;
    struct attention_piece piece = {
        .q = work->attention.q, .kv = work->attention.kv, .offset = work->attention.offset};
    if (work->attention.mask == MASK_WINDOW && work->attention.window == 0)
        return 0;
    if (work->attention.mask == MASK_WINDOW)
        piece.window = work->attention.window;
    return attention_piece_pairs(&piece);
}

int64_t work_attention_vdim(const struct work *work)
{
    return work->attention.vdim > 0 ? work->attention.vdim : work->attention.dim;
}

double work_attention_pair_flops(const struct work *work)
{
    const double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    return work->kind == WORK_ATTENTION ? 2 * (dim + vdim) : 2 * (3 * dim + 2 * vdim);
}

double work_attention_flops(const struct work *work, double pairs)
{
    return pairs * (double)work->attention.heads * work_attention_pair_flops(work);
}

double work_flops(const struct work *work)
{
    if (work->kind == WORK_OPAQUE) {
        const struct work as = work_priced_as(work);
        return as.kind == WORK_OPAQUE ? 0 : work_flops(&as);
    }
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return 2.0 * (double)work->matmul.m * (double)work->matmul.n * (double)work->matmul.k;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        return work_attention_flops(work, work_attention_pairs(work));
    default:
        return 0;
    }
}

/* ---- bytes ---- */

/* The bytes of an element that is read and of one that is written, and the optional operands that the work has. */
struct bytes_of {
    double in, out;
    unsigned reads, writes;
};

typedef double memory_function(const struct work *work, struct bytes_of e);

static const double F32 = 4, I32 = 4;

static double matmul_bytes(const struct work *work, struct bytes_of e)
{
    double m = (double)work->matmul.m, n = (double)work->matmul.n, k = (double)work->matmul.k;
    double bias = work->matmul.epilogue == EPILOGUE_BIAS ? n * e.in : 0;
    double passes = work->matmul.accumulate ? 2 : 1; /* with accumulate, y is read too */
    /* number of matrices in b, or, for the gradient of weights, in the result */
    double groups = (double)work_groups(work);
    bool turned = work->matmul.form == MATMUL_TN;
    /* the gradients of other ranks' parts, which become zero */
    double zeros = turned && work->matmul.part > 0 && !work->matmul.accumulate
                       ? (double)(work_matrices(work) - 1) * m * n
                       : 0;
    double in = work->matmul.scaling == SCALING_NV ? e.in / 2 : e.in;
    if (work->matmul.scaling != SCALING_NONE) /* the bias has the dtype of the result */
        bias = bias / e.in * e.out;
    return (m * k + (turned ? 1 : groups) * k * n) * in + bias +
           (passes * (turned ? groups : 1) * m * n + zeros) * e.out;
}

/* Returns the bytes of a quantisation. One pass reads x and writes the copy, or both copies. The pass that finds the
 * largest element reads x once more; an op that only finds it may be free, where the op that wrote x has done it. Only if each row of a
 * transposed copy has a scale, another pass first transposes x in its own dtype
 * (torchao/testing/training/roofline_utils.py, get_tensor_memory_traffic_ovhd_s()). */
static double quantise_bytes(const struct work *work, struct bytes_of e)
{
    const int64_t rows = work->quantise.rows, cols = work->quantise.cols;
    const enum scaling scaling = (enum scaling)work->quantise.scaling;
    const double count = (double)rows * (double)cols, out = e.out / (scaling == SCALING_NV ? 2 : 1);
    const bool both = work->quantise.both, turned = work->quantise.turned || both;
    double scale = (double)dtype_bytes(scaling_dtype(scaling));
    double bytes = count * (e.in + (both ? 2 : 1) * out);
    if (turned && scaling == SCALING_ROW)
        bytes += count * 2 * e.in;
    if (work->quantise.finds)
        return work->quantise.amax ? count * e.in : 0;
    if (work->quantise.amax)
        bytes += count * e.in;
    if (!work->quantise.turned || both)
        bytes += scale * (double)scaling_count(scaling, rows, cols);
    return bytes + (turned ? scale * (double)scaling_count(scaling, cols, rows) : 0);
}

static double attention_bytes(const struct work *work, struct bytes_of e)
{
    double q = (double)work->attention.q * (double)work->attention.heads;
    double kv = (double)work->attention.kv * (double)work->attention.kv_heads;
    double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    double in = (q + kv) * dim + kv * vdim;
    if (work->kind == WORK_ATTENTION) /* reads q, k and v, writes o and lse */
        return in * e.in + q * vdim * e.out + q * F32;
    /* reads q, o or delta, do, k, v and lse, writes dq, dk and dv */
    const double o = work->attention.delta ? q * F32 : q * vdim * e.in;
    return (in + q * vdim) * e.in + o + q * F32 + in * e.out;
}

static double merge_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->merge.rows * (double)work->merge.heads;
    double dim = (double)work->merge.dim;
    return rows * dim * (2 * F32 + e.in) +
           rows * 3 * F32; /* lse is read and written, and the block's is read */
}

static double norm_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->rows.rows, cols = (double)work->rows.cols;
    bool layer = work->kind == WORK_LAYERNORM || work->kind == WORK_LAYERNORM_BACKWARD;
    double vectors = layer ? 2 : 1; /* LayerNorm has a weight and a bias, a mean and an rstd */
    double statistics = vectors * rows * F32;
    if (work->kind == WORK_RMSNORM || work->kind == WORK_LAYERNORM)
        return rows * cols * (e.in + e.out) + vectors * cols * e.in + statistics;
    double passes = work->rows.accumulate ? 2 : 1;
    return rows * cols * (2 * e.in + e.out) + cols * e.in + passes * vectors * cols * e.out +
           statistics;
}

static double rope_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->rope.rows;
    double cols = work->rope.stride ? (double)work->rope.stride
                                    : (double)work->rope.heads * (double)work->rope.dim;
    return rows * cols * (e.in + e.out) + rows * I32;
}

static double latent_keys_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->latent_keys.rows, heads = (double)work->latent_keys.heads;
    double rotated = (double)work->latent_keys.rotated;
    double narrow = heads * (double)(work->latent_keys.plain + work->latent_keys.vdim);
    double wide = narrow + heads * rotated;
    narrow += rotated;
    return rows * (work->kind == WORK_LATENT_KEYS ? narrow * e.in + wide * e.out
                                                  : wide * e.in + narrow * e.out);
}

static double activation_bytes(const struct work *work, struct bytes_of e)
{
    double count = (double)work->activation.rows * (double)work->activation.cols;
    if (work->activation.touches > 0) /* a chain of kernels, which all use one dtype */
        return count * (double)work->activation.touches * e.in;
    switch ((enum work_kind)work->kind) {
    case WORK_SWIGLU:
        return count * (2 * e.in + e.out);
    case WORK_SWIGLU_BACKWARD: /* reads dy, gate and up, writes the gradients of gate and up */
        return count * (3 * e.in + 2 * e.out);
    case WORK_GELU:
        return count * (e.in + e.out);
    default: /* it is GELU_BACKWARD */
        return count * (2 * e.in + e.out);
    }
}

static double route_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->route.rows, logits = rows * (double)work->route.experts;
    double weights = rows * (double)work->route.copies * F32;
    return work->kind == WORK_ROUTE ? logits * e.in + weights : logits * (F32 + e.out) + weights;
}

static double permute_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->permute.rows, copies = (double)work->permute.copies;
    double one = rows * (double)work->permute.cols, weights = rows * copies * F32;
    switch ((enum work_kind)work->kind) {
    case WORK_PERMUTE:
        return one * (e.in + copies * e.out);
    case WORK_UNPERMUTE:
        return one * (copies * e.in + e.out) + (work->permute.weights ? weights : 0);
    /* UNPERMUTE_BACKWARD: reads the gradient of the sum and the copies, writes the copies' gradients; reads and writes
     * the weights */
    default:
        return one * (e.in + copies * (e.in + e.out)) + 2 * weights;
    }
}

static double embedding_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->embedding.rows, cols = (double)work->embedding.cols;
    if (work->kind == WORK_EMBEDDING)
        return rows * I32 + rows * cols * (e.in + e.out);
    /* Adds to one row of the table for each token; a table that is no third read is cleared first. */
    double cleared = e.reads < 3 ? (double)work->embedding.vocab * cols * e.out : 0;
    return rows * I32 + rows * cols * (e.in + 2 * e.out) + cleared;
}

static double cross_entropy_bytes(const struct work *work, struct bytes_of e)
{
    double rows = (double)work->cross_entropy.rows;
    double logits = rows * (double)work->cross_entropy.vocab;
    switch ((enum work_kind)work->kind) {
    case WORK_CROSS_ENTROPY: /* reads labels, writes lse; the loss is few bytes but counts */
        return logits * e.in + rows * (I32 + F32) + (work->cross_entropy.accumulate ? 2 : 1) * F32 +
               (e.writes > 2 ? logits * F32 : 0);
    case WORK_CROSS_ENTROPY_BACKWARD:
        return logits * (e.in + e.out) + rows * I32;
    case WORK_CROSS_ENTROPY_PARTIAL:
        return logits * e.in + rows * (I32 + 3 * F32);
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return logits * (e.in + e.out) + rows * (I32 + F32);
    default: /* FINISH: reads the statistics, which are all that is needed of the logits */
        return rows * (I32 + 3 * F32 + F32) + (work->p[4] ? 2 : 1) * F32;
    }
}

static double element_bytes(const struct work *work, struct bytes_of e)
{
    double count = (double)work->elements.count;
    switch ((enum work_kind)work->kind) {
    case WORK_ADD:
        return count * (e.in + 2 * e.out) + (double)work->elements.cols * e.in;
    case WORK_CAST:
        return count * (e.in + e.out);
    case WORK_FILL:
        return count * e.out;
    case WORK_SQUARE_SUM:
        return count * e.in + (work->square_sum.accumulate ? 2 : 1) * F32;
    case WORK_CLIP:
        return count * (e.in + e.out) + F32;
    /* ADAMW: reads the gradient, reads and writes master, m and v, writes the parameter copy */
    default:
        return count * (e.in + (e.writes > 3 ? e.out : 0)) +
               states_traffic_bytes((enum states)work->adamw.states, (uint64_t)work->adamw.count);
    }
}

static double pack_bytes(const struct work *work, struct bytes_of e)
{
    double width = (double)work->pack.w[0] + (double)work->pack.w[1] + (double)work->pack.w[2];
    return (double)work->pack.rows * (double)work->pack.parts * width * (e.in + e.out);
}

static double head_bytes(const struct work *work, struct bytes_of e)
{
    double one = (double)work->heads.rows * (double)work->heads.heads * (double)work->heads.dim;
    double copies = (double)work->heads.copies;
    return work->kind == WORK_HEAD_EXPAND ? one * (e.in + copies * e.out)
                                          : one * (copies * e.in + e.out);
}

/* Returns the bytes of the fullest rank: every row that is written is read once. */
static double take_rows_bytes(const struct work *work, struct bytes_of e)
{
    return (double)work->take_rows.parts * (double)work->take_rows.to *
           (double)work->take_rows.width * (e.in + e.out);
}

static double add_rows_bytes(const struct work *work, struct bytes_of e)
{
    return (double)work->add_rows.parts * (double)work->add_rows.rows *
           (double)work->add_rows.width * (e.in + 2 * e.out);
}

static double merge_rows_bytes(const struct work *work, struct bytes_of e)
{
    const double rows = (double)work->merge_rows.rows * (double)work->merge_rows.heads;
    return rows * ((double)work->merge_rows.dim * (2 * F32 + e.in) + 3 * F32);
}

static double row_dot_bytes(const struct work *work, struct bytes_of e)
{
    const double rows = (double)work->merge.rows * (double)work->merge.heads;
    return rows * (2 * (double)work->merge.dim * e.in + F32);
}

static double column_sum_bytes(const struct work *work, struct bytes_of e)
{
    double cols = (double)work->rows.cols;
    return (double)work->rows.rows * cols * e.in + (work->rows.accumulate ? 2 : 1) * cols * e.out;
}

static double opaque_bytes(const struct work *work, struct bytes_of e)
{
    (void)e;
    const struct work as = work_priced_as(work);
    return as.kind == WORK_OPAQUE ? (double)work->opaque.bytes : work_memory_bytes(&as);
}

static double no_bytes(const struct work *work, struct bytes_of e)
{
    (void)work;
    (void)e;
    return 0;
}

static memory_function *const memory_functions[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = matmul_bytes,
    [WORK_QUANTISE] = quantise_bytes,
    [WORK_ATTENTION] = attention_bytes,
    [WORK_ATTENTION_BACKWARD] = attention_bytes,
    [WORK_MERGE] = merge_bytes,
    [WORK_RMSNORM] = norm_bytes,
    [WORK_RMSNORM_BACKWARD] = norm_bytes,
    [WORK_LAYERNORM] = norm_bytes,
    [WORK_LAYERNORM_BACKWARD] = norm_bytes,
    [WORK_ROPE] = rope_bytes,
    [WORK_ROPE_BACKWARD] = rope_bytes,
    [WORK_SWIGLU] = activation_bytes,
    [WORK_SWIGLU_BACKWARD] = activation_bytes,
    [WORK_GELU] = activation_bytes,
    [WORK_GELU_BACKWARD] = activation_bytes,
    [WORK_LATENT_KEYS] = latent_keys_bytes,
    [WORK_LATENT_KEYS_BACKWARD] = latent_keys_bytes,
    [WORK_ROUTE] = route_bytes,
    [WORK_ROUTE_BACKWARD] = route_bytes,
    [WORK_PERMUTE] = permute_bytes,
    [WORK_UNPERMUTE] = permute_bytes,
    [WORK_UNPERMUTE_BACKWARD] = permute_bytes,
    [WORK_EMBEDDING] = embedding_bytes,
    [WORK_EMBEDDING_BACKWARD] = embedding_bytes,
    [WORK_CROSS_ENTROPY] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_BACKWARD] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_PARTIAL] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_FINISH] = cross_entropy_bytes,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = cross_entropy_bytes,
    [WORK_ADD] = element_bytes,
    [WORK_CAST] = element_bytes,
    [WORK_FILL] = element_bytes,
    [WORK_PACK] = pack_bytes,
    [WORK_UNPACK] = pack_bytes,
    [WORK_HEAD_EXPAND] = head_bytes,
    [WORK_HEAD_REDUCE] = head_bytes,
    [WORK_TAKE_ROWS] = take_rows_bytes,
    [WORK_ADD_ROWS] = add_rows_bytes,
    [WORK_MERGE_ROWS] = merge_rows_bytes,
    [WORK_ROW_DOT] = row_dot_bytes,
    [WORK_COLUMN_SUM] = column_sum_bytes,
    [WORK_ADAMW] = element_bytes,
    [WORK_SQUARE_SUM] = element_bytes,
    [WORK_CLIP] = element_bytes,
    [WORK_OPAQUE] = opaque_bytes,
    [WORK_ALL_TO_ALL] = no_bytes,
    [WORK_ALL_GATHER] = no_bytes,
    [WORK_REDUCE_SCATTER] = no_bytes,
    [WORK_ALL_REDUCE] = no_bytes,
    [WORK_REDUCE] = no_bytes,
    [WORK_BROADCAST] = no_bytes,
    [WORK_SCATTER] = no_bytes,
    [WORK_EXCHANGE] = no_bytes,
    [WORK_SHIFT] = no_bytes,
    [WORK_SEND] = no_bytes,
    [WORK_RECV] = no_bytes,
    [WORK_H2D] = no_bytes,
    [WORK_D2H] = no_bytes,
    [WORK_HOST_SYNC] = no_bytes,
    [WORK_BARRIER] = no_bytes,
};

double work_memory_bytes(const struct work *work)
{
    assert(work->kind < WORK_KIND_COUNT && memory_functions[work->kind]);
    const struct bytes_of e = {(double)dtype_bytes(work->in), (double)dtype_bytes(work->out),
                               work->reads, work->writes};
    return memory_functions[work->kind](work, e);
}

/* ---- scratch memory ---- */

int64_t work_workspace_bytes(enum attention_impl impl, int sm, const struct work *work)
{
    assert(impl < ATTENTION_IMPL_COUNT);
    if (work->kind != WORK_ATTENTION_BACKWARD || impl == ATTENTION_CPU)
        return 0;
    double rows = (double)work->attention.q * (double)work->attention.heads;
    double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    double accumulator = F32 * rows * dim, delta = F32 * rows;
    double bytes = accumulator + delta;
    /* dk and dv of every query head, in 16 bits */
    if (work->attention.kv_heads < work->attention.heads)
        bytes += 2 * (double)work->attention.kv * (double)work->attention.heads * (dim + vdim);
    if (impl == ATTENTION_CUDNN && sm < 90)
        bytes += accumulator;
    return bytes < 0x1p63 ? (int64_t)bytes : INT64_MAX;
}
