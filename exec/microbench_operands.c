#include "exec/microbench_operands.h"

#include "schedule/ir/ir.h"

#include <string.h>

/* Per kind, the element count of each operand as a product of parameters and digits; ":f" is
 * always f32, ":i" i32; "=0" says that the read is the first write's buffer, which the op brings up
 * to date in its place; a word behind '?' is there only if that parameter is not 0. For
 * communication, '@' is the op's bytes in elements, "@*" times its members, "@/" divided by them.
 * docs/ir.md, "Kinds", has the shapes; a run refuses operands that do not fit. */
static const struct {
    const char *reads, *writes;
} rows[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = {"m*k k*n n?epilogue m*n=0?accumulate", "m*n"},
    [WORK_ATTENTION] = {"q*heads*dim kv*kv_heads*dim kv*kv_heads*dim", "q*heads*dim q*heads:f"},
    [WORK_ATTENTION_BACKWARD] =
        {"q*heads*dim kv*kv_heads*dim kv*kv_heads*dim q*heads*dim q*heads:f q*heads*dim",
         "q*heads*dim kv*kv_heads*dim kv*kv_heads*dim"},
    [WORK_MERGE] = {"rows*heads*dim:f=0 rows*heads:f=1 rows*heads*dim rows*heads:f",
                    "rows*heads*dim:f rows*heads:f"},
    [WORK_RMSNORM] = {"rows*cols cols", "rows*cols rows:f"},
    [WORK_RMSNORM_BACKWARD] = {"rows*cols rows*cols cols rows:f cols=1?accumulate",
                               "rows*cols cols"},
    [WORK_LAYERNORM] = {"rows*cols cols cols", "rows*cols rows*2:f"},
    [WORK_LAYERNORM_BACKWARD] =
        {"rows*cols rows*cols cols rows*2:f cols=1?accumulate cols=2?accumulate",
         "rows*cols cols cols"},
    [WORK_ROPE] = {"rows*heads*dim rows:i", "rows*heads*dim"},
    [WORK_ROPE_BACKWARD] = {"rows*heads*dim rows:i", "rows*heads*dim"},
    [WORK_SWIGLU] = {"rows*cols*2", "rows*cols"},
    [WORK_SWIGLU_BACKWARD] = {"rows*cols rows*cols*2", "rows*cols*2"},
    [WORK_GELU] = {"rows*cols", "rows*cols"},
    [WORK_GELU_BACKWARD] = {"rows*cols rows*cols", "rows*cols"},
    [WORK_EMBEDDING] = {"rows:i vocab*cols", "rows*cols"},
    [WORK_EMBEDDING_BACKWARD] = {"rows*cols rows:i vocab*cols=0", "vocab*cols"},
    [WORK_CROSS_ENTROPY] = {"rows*vocab rows:i 1:f=0?accumulate", "1:f rows:f"},
    [WORK_CROSS_ENTROPY_BACKWARD] = {"rows*vocab=0 rows:i", "rows*vocab"},
    [WORK_CROSS_ENTROPY_PARTIAL] = {"rows*vocab rows:i", "rows*3:f"},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {"rows*vocab=0 rows:i rows:f", "rows*vocab"},
    [WORK_CROSS_ENTROPY_FINISH] = {"rows*vocab rows:i rows*3:f 1:f=0?accumulate", "1:f rows:f"},
    [WORK_ADD] = {"count count cols?cols", "count"},
    [WORK_CAST] = {"count", "count:f"},
    [WORK_FILL] = {"", "count"},
    [WORK_PACK] = {"rows*parts*w", "rows*parts*w0 rows*parts*w1?w1 rows*parts*w2?w2"},
    [WORK_UNPACK] = {"rows*parts*w0 rows*parts*w1?w1 rows*parts*w2?w2", "rows*parts*w"},
    [WORK_HEAD_EXPAND] = {"rows*heads*dim", "rows*heads*dim*copies"},
    [WORK_HEAD_REDUCE] = {"rows*heads*dim*copies", "rows*heads*dim"},
    [WORK_COLUMN_SUM] = {"rows*cols cols=0?accumulate", "cols"},
    [WORK_ADAMW] = {"count count:f=0 count:f=1 count:f=2", "count:f count:f count:f count"},
    [WORK_SQUARE_SUM] = {"count 1:f=0?accumulate", "1:f"},
    [WORK_CLIP] = {"count=0 1:f", "count"},
    [WORK_ALL_TO_ALL] = {"@", "@"},
    [WORK_ALL_GATHER] = {"@", "@*"},
    [WORK_REDUCE_SCATTER] = {"@", "@/"},
    [WORK_ALL_REDUCE] = {"@", "@"},
    [WORK_REDUCE] = {"@", "@"},
    [WORK_BROADCAST] = {"@", "@"},
    [WORK_SCATTER] = {"@", "@/"},
    [WORK_SHIFT] = {"@", "@"},
    [WORK_SEND] = {"@", ""},
    [WORK_RECV] = {"", "@"},
    [WORK_H2D] = {"@", "@"},
    [WORK_D2H] = {"@", "@"},
};

static int64_t parameter(const struct work *work, const char *name, size_t size)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    if (size == 1 && *name >= '0' && *name <= '9')
        return *name - '0';
    if (size == 1 && *name == 'w')
        return work->pack.w[0] + work->pack.w[1] + work->pack.w[2];
    for (size_t i = 0; i < info->param_count; i++)
        if (strlen(info->param[i].name) == size && memcmp(info->param[i].name, name, size) == 0)
            return work->p[i];
    return 0;
}

/* "rows*cols*2": false when the product is too large or not above 0. */
static bool product(const struct work *work, const char *word, size_t size, uint64_t *count)
{
    *count = 1;
    while (size > 0) {
        const char *star = memchr(word, '*', size);
        size_t factor_size = star ? (size_t)(star - word) : size;
        int64_t factor = parameter(work, word, factor_size);
        if (factor < 1 || *count > (uint64_t)IR_ELEMENTS_MAX / (uint64_t)factor)
            return false;
        *count *= (uint64_t)factor;
        factor_size += star != NULL;
        word += factor_size;
        size -= factor_size;
    }
    return true;
}

static bool communication(const struct work *work, enum dtype dtype, const char *word, size_t size,
                          uint64_t *count)
{
    int64_t group = work_group(work);
    uint64_t members = group > 0 ? (uint64_t)group : 1, bytes = dtype_bytes(dtype);
    uint64_t elements = (uint64_t)work_payload_bytes(work) / bytes;
    if (size > 1 && word[1] == '*' && elements > (uint64_t)IR_ELEMENTS_MAX / members)
        return false;
    *count = size == 1 ? elements : word[1] == '*' ? elements * members : elements / members;
    return *count > 0 && elements % members == 0;
}

static bool one_side(const struct work *work, enum dtype dtype, const char *words, uint32_t most,
                     struct bench_operand *operand, uint32_t *operands)
{
    *operands = 0;
    for (const char *at = words; *(at += strspn(at, " ")) && *operands < most;) {
        size_t size = strcspn(at, " "), formula = strcspn(at, " :=?");
        const char *question = memchr(at, '?', size);
        if (question == NULL ||
            parameter(work, question + 1, size - (size_t)(question + 1 - at)) != 0) {
            struct bench_operand *next = &operand[(*operands)++];
            const char *equals = memchr(at, '=', size);
            char type = at[formula] == ':' ? at[formula + 1] : ' ';
            next->same = equals ? equals[1] - '0' : -1;
            next->dtype = (uint8_t)(type == 'f' ? DTYPE_F32 : type == 'i' ? DTYPE_I32 : dtype);
            if (!(at[0] == '@' ? communication(work, dtype, at, formula, &next->count)
                               : product(work, at, formula, &next->count)))
                return false;
        }
        at += size;
    }
    return true;
}

bool bench_operands(const struct work *work, enum dtype dtype, struct bench_operands *operands)
{
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    uint32_t reads = work->reads ? work->reads : info->reads_max;
    uint32_t writes = work->writes ? work->writes : info->writes_max;
    if (rows[work->kind].reads == NULL) {
        *operands = (struct bench_operands){0};
        return true; /* SYNC kinds */
    }
    return one_side(work, dtype, rows[work->kind].reads, reads, operands->read, &operands->reads) &&
           one_side(work, dtype, rows[work->kind].writes, writes, operands->write,
                    &operands->writes);
}

int64_t bench_index_limit(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_EMBEDDING:
    case WORK_EMBEDDING_BACKWARD:
        return work->embedding.vocab;
    case WORK_CROSS_ENTROPY:
    case WORK_CROSS_ENTROPY_BACKWARD:
    case WORK_CROSS_ENTROPY_PARTIAL:
    case WORK_CROSS_ENTROPY_FINISH:
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return work->cross_entropy.vocab;
    default:
        return INT32_MAX;
    }
}
