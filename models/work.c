#include "models/work.h"

#include "base/arena.h"
#include "base/saturating.h"
#include "models/frozen_storage.h"
#include "models/states.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- names ---- */

const char *const attention_impl_names[ATTENTION_IMPL_COUNT] = {
    "fa2", "fa3", "cudnn", "cpu", "triton", "fa1", "cudnn-fp8", "cudnn-mxfp8"};

/* VALUES(table, count, names in the order of the enum): the names of the values of parameters. work_kinds.def refers to
 * these tables by name ("form:form"). */
#define VALUE_TABLES(VALUES)                                                                       \
    VALUES(form, MATMUL_FORM_COUNT, "nt", "nn", "tn")                                              \
    VALUES(epilogue, EPILOGUE_COUNT, "none", "bias")                                               \
    VALUES(mask, MASK_COUNT, "full", "causal", "window", "documents", "plan", "chunks")            \
    VALUES(function, FUNCTION_COUNT, "own", "gelu", "relu2", "clamped")                            \
    VALUES(permute_of, PERMUTE_SOURCE_COUNT, "own", "gathered", "arrived")                         \
    VALUES(score, ROUTE_SCORE_COUNT, "softmax", "chosen", "sigmoid")                               \
    VALUES(opaque, OPAQUE_COUNT, "nothing", "matmul", "matmul_tn", "attention",                    \
           "attention_backward", "stream", "reduce", "permute", "gather", "scatter")               \
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
    {"impl", attention_impl_names, ATTENTION_IMPL_COUNT},
    {"scaling", scaling_names, SCALING_COUNT},
    {"storage", frozen_storage_names, FROZEN_STORAGE_COUNT},
    {"dtype", dtype_names, DTYPE_COUNT},
};

static const char *const stream_names[] = {"compute", "comm", "h2d", "d2h", "host", "sync"};
_Static_assert(ARRAY_LEN(stream_names) == STREAM_CLASS_COUNT, "a name per class of stream");

static bool equals_word(const char *name, const char *word, size_t size)
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
        if (equals_word(stream_names[i], name, size)) {
            *stream = (enum stream_class)i;
            return true;
        }
    return false;
}

const char *attention_impl_name(enum attention_impl impl)
{
    assert(impl < ATTENTION_IMPL_COUNT);
    return attention_impl_names[impl];
}

bool attention_impl_find(const char *name, size_t size, enum attention_impl *impl)
{
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        if (equals_word(attention_impl_names[i], name, size)) {
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

/* The kinds whose work.in is not the dtype of the first read, or whose work.out is not that of the first write: the
 * dtype of another operand decides their bytes. in, out: indices of these operands. */
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

/* Writes that may be the same elements as a read, by the indices of both among the operands of the kind. docs/ir.md
 * describes them with each kind. */
static const struct {
    enum work_kind kind;
    uint8_t read, write;
} in_place[] = {
    {WORK_MATMUL, 2, 0}, /* y itself, with accumulate: read 2, or read 3 if there is a bias */
    {WORK_MATMUL, 3, 0},
    {WORK_MERGE, 0, 0},
    {WORK_MERGE, 1, 1},
    {WORK_SINK, 0, 0},
    {WORK_SINK, 1, 1},
    {WORK_SINK_BACKWARD, 4, 0},
    {WORK_RMSNORM_BACKWARD, 4, 1},
    {WORK_LAYERNORM_BACKWARD, 4, 1},
    {WORK_LAYERNORM_BACKWARD, 5, 2},
    {WORK_SWIGLU_BACKWARD, 1, 0},
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

/* Fills *param from one word of the params in work_kinds.def: NAME or NAME:TABLE, then an optional '~', then an
 * optional '?'. */
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
    param->is_value_group_id = equals_word("group", table, table_size);
    for (size_t i = 0; i < ARRAY_LEN(value_tables); i++)
        if (equals_word(value_tables[i].name, table, table_size)) {
            param->value_names = value_tables[i].values;
            param->value_count = value_tables[i].count;
        }
    assert(param->is_value_group_id || param->value_names);
}

static void make_kind_table(void)
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
        kinds[dtype_operands[i].kind].in_operand = dtype_operands[i].in;
        kinds[dtype_operands[i].kind].out_operand = dtype_operands[i].out;
    }
    atomic_store_explicit(&kinds_ready, true, memory_order_release);
}

const struct work_kind_info *work_kind_info(enum work_kind kind)
{
    assert(kind < WORK_KIND_COUNT);
    if (!atomic_load_explicit(&kinds_ready, memory_order_acquire))
        pthread_once(&kinds_once, make_kind_table);
    return &kinds[kind];
}

bool work_kind_find(const char *name, size_t size, enum work_kind *kind)
{
    for (int i = 0; i < WORK_KIND_COUNT; i++)
        if (equals_word(rows_of_def[i].name, name, size)) {
            *kind = (enum work_kind)i;
            return true;
        }
    return false;
}

bool work_may_be_in_place(enum work_kind kind, uint32_t read, uint32_t write)
{
    for (size_t i = 0; i < ARRAY_LEN(in_place); i++)
        if (in_place[i].kind == kind && in_place[i].read == read && in_place[i].write == write)
            return true;
    return false;
}

bool work_may_run_on(enum work_kind kind, enum stream_class stream)
{
    enum stream_class own = rows_of_def[kind].stream;
    /* a copy may also be on the stream of the other direction */
    bool copies = own == STREAM_H2D || own == STREAM_D2H;
    bool on_host = kind == WORK_ADAMW || kind == WORK_FILL;
    return own == STREAM_SYNC || stream == own || (on_host && stream == STREAM_HOST) ||
           (copies && (stream == STREAM_H2D || stream == STREAM_D2H));
}

/* ---- communication ---- */

int64_t work_comm_group(const struct work *work)
{
    const struct work_kind_info *info = work_kind_info(work->kind);
    return info->param_count > 0 && info->param[0].is_value_group_id ? work->p[0] : -1;
}

/* The parameter is 1 + the group; 0 stands for none. In work_routing_list_index() it is 1 + the list. */
int64_t work_sharding_group(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_EMBEDDING:
    case WORK_EMBEDDING_BACKWARD:
        return work->embedding.part - 1;
    case WORK_CROSS_ENTROPY_PARTIAL:
        return work->loss_partial.part - 1;
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return work->loss_backward.part - 1;
    case WORK_SINK:
    case WORK_SINK_BACKWARD:
        return work->sink.part - 1;
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

int64_t work_row_group_count(const struct work *work)
{
    if (work->kind == WORK_COLUMN_SUM)
        return work->column_sum.groups > 1 ? work->column_sum.groups : 1;
    return work->kind == WORK_MATMUL && work->matmul.part > 0 ? 1 : work_weight_matrix_count(work);
}

int64_t work_weight_matrix_count(const struct work *work)
{
    const int64_t groups = work->kind == WORK_MATMUL     ? work->matmul.groups
                           : work->kind == WORK_QUANTISE ? work->quantise.groups
                                                         : 1;
    return groups > 1 ? groups : 1;
}

struct scaling_layout work_scale_layout(const struct work *work, int which)
{
    const int64_t groups = work_row_group_count(work);
    struct scaling_layout layout = {.groups = groups};
    if (work->kind == WORK_QUANTISE) {
        layout.scaling = (enum scaling)work->quantise.scaling;
        layout.rows = work->quantise.rows;
        layout.cols = work->quantise.cols;
        layout.is_transposed = work->quantise.turned || which > 0;
    } else {
        const bool of_rows = groups > 1 && work->matmul.form == MATMUL_TN;
        const enum scaling scaling = (enum scaling)work->matmul.scaling;
        layout.scaling = which == 0 && scaling == SCALING_BLOCK ? SCALING_VECTOR : scaling;
        layout.rows = of_rows      ? work->matmul.k
                      : which == 0 ? work->matmul.m
                                   : saturating_product(work->matmul.n, groups);
        layout.cols = !of_rows ? work->matmul.k : which == 0 ? work->matmul.m : work->matmul.n;
        layout.is_transposed = of_rows && work->matmul.turned;
    }
    layout.are_groups_equal =
        layout.rows % groups == 0 &&
        (work_routing_list_index(work) < 0 ||
         (work->kind == WORK_MATMUL && which == 1 && work->matmul.form != MATMUL_TN));
    return layout;
}

int64_t work_row_group_first_row(int64_t total, int64_t groups, int64_t g)
{
    const int64_t longer = total % groups;
    return g * (total / groups) + (g < longer ? g : longer);
}

int64_t work_row_group_of_row(int64_t total, int64_t groups, int64_t row)
{
    const int64_t size = total / groups, longer = total % groups;
    const int64_t in_longer = longer * (size + 1);
    return row < in_longer ? row / (size + 1) : longer + (row - in_longer) / size;
}

int64_t work_routing_list_index(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.route - 1;
    case WORK_COLUMN_SUM:
        return work->column_sum.route - 1;
    case WORK_QUANTISE:
        return work->quantise.route - 1;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.route - 1;
    case WORK_ROUTE:
    case WORK_ROUTE_BACKWARD:
        return work->route.route - 1;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.route - 1;
    case WORK_PERMUTE:
    case WORK_UNPERMUTE:
    case WORK_UNPERMUTE_BACKWARD:
    case WORK_PERMUTE_WEIGHTS:
    case WORK_PERMUTE_WEIGHTS_BACKWARD:
        return work->permute.route - 1;
    case WORK_ALL_TO_ALL:
        return work->all_to_all.route - 1;
    default:
        return -1;
    }
}

int64_t work_routed_copies_per_rank(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.dealt;
    case WORK_COLUMN_SUM:
        return work->column_sum.dealt;
    case WORK_QUANTISE:
        return work->quantise.dealt;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.dealt;
    case WORK_ROUTE:
    case WORK_ROUTE_BACKWARD:
        return work->route.rows * work->route.copies;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.dealt;
    case WORK_PERMUTE:
    case WORK_UNPERMUTE:
    case WORK_UNPERMUTE_BACKWARD:
    case WORK_PERMUTE_WEIGHTS:
    case WORK_PERMUTE_WEIGHTS_BACKWARD:
        return work->permute.dealt;
    case WORK_ALL_TO_ALL:
        if (work->all_to_all.dealt > 0)
            return work->all_to_all.dealt;
        return work->all_to_all.cols > 0
                   ? (work->all_to_all.ahead + work->all_to_all.back) / work->all_to_all.cols
                   : 0;
    default:
        return 0;
    }
}

double work_used_row_share(const struct work *work)
{
    if (work->kind != WORK_MATMUL || work->matmul.route == 0)
        return 1;
    const int64_t room = work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
    const int64_t kept = work->matmul.kept > 0 ? work->matmul.kept : work->matmul.dealt;
    return (double)kept / (double)room;
}

bool work_is_permutation(const struct work *work)
{
    return work->kind == WORK_PERMUTE || work->kind == WORK_UNPERMUTE ||
           work->kind == WORK_UNPERMUTE_BACKWARD || work->kind == WORK_PERMUTE_WEIGHTS ||
           work->kind == WORK_PERMUTE_WEIGHTS_BACKWARD;
}

/* ---- operators of recorded programs, and operands of 8 and 4 bits ---- */

struct work work_cost_equivalent(const struct work *work)
{
    if (work->kind != WORK_OPAQUE)
        return *work;
    struct work as = {.in = (uint8_t)work->opaque.dtype, .out = (uint8_t)work->opaque.out_dtype};
    switch ((enum opaque_cost_formula)work->opaque.as) {
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

enum attention_impl work_attention_impl(const struct work *work, enum attention_impl impl)
{
    if (work->kind == WORK_OPAQUE)
        return (enum attention_impl)work->opaque.kernels;
    if ((work->kind != WORK_ATTENTION && work->kind != WORK_ATTENTION_BACKWARD) ||
        work->attention.scaling == SCALING_NONE)
        return impl;
    return work->attention.scaling == SCALING_MX ? ATTENTION_CUDNN_MXFP8 : ATTENTION_CUDNN_FP8;
}

double work_peak_rate_over_bf16_peak(const struct work *given)
{
    const struct work as = work_cost_equivalent(given), *work = &as;
    if (work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD)
        return work->attention.scaling == SCALING_NONE ? 1 : 2;
    if (work->kind != WORK_MATMUL || work->matmul.scaling == SCALING_NONE)
        return 1;
    return work->matmul.scaling == SCALING_NV ? 4 : 2;
}
