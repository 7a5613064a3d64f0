#include "models/work_operands.h"

#include "base/arena.h"
#include "models/frozen_storage.h"
#include "models/states.h"

#include <assert.h>
#include <string.h>

/* The operands of each kind: the reads, then the writes. Each word is an operand and begins with its number of
 * elements, a product of parameters of the kind, digits and sums "(a+b)" of two parameters (formula_factor_value() has
 * further names). Communication and copies have bytes instead: "@" is the op's bytes, "@*" times the members of its
 * group, "@/" divided by them. With a '~' before the number, an op of a schedule may have another number of elements.
 * After the number follow, in this order:
 *   the dtype, if it is not WORK_TYPE_STEP_DTYPE:
 *     ":f32", ":i32", ":u8"  this dtype
 *     ":master", ":moment"   the dtype that the parameter `states` says
 *     ":narrow", ":scale"    an 8- or 4-bit dtype, or the dtype of its scales, as the parameter `scaling` says
 *     ":side"                as ":narrow" if `scaling` is not none, else WORK_TYPE_STEP_DTYPE
 *     ":step"                WORK_TYPE_STEP_DTYPE
 *     ":sum", ":op"          WORK_TYPE_STEP_DTYPE_OR_F32, WORK_TYPE_OP_FLOAT_DTYPE (models/work_operands.h)
 *     ":float", ":moved"     WORK_TYPE_ANY_FLOAT, WORK_TYPE_OP_DTYPE
 *     ":~f32"                as ":float", and f32 in the op of a microbenchmark
 *   "=N"     for a read: a microbenchmark gives it the buffer of write N (from 0), which is updated in place
 *   when the operand exists:
 *     "?p"   if parameter p is not 0; "?!p": if it is 0. Several such conditions must all hold.
 *     "?"    it may be left out; "??": it may be left out, and a microbenchmark does so */
static const char *const rows[WORK_KIND_COUNT][2] = {
    [WORK_MATMUL] = {"m*k:side k*n*groups:side n*groups?epilogue m*n*groups:sum=0?accumulate "
                     "scales_a:scale?scaling scales_b:scale?scaling",
                     "m*n*groups:sum"},
    [WORK_QUANTISE] = {"rows*cols:float 1:f32?given",
                       "rows*cols:narrow?!finds scales:scale?!finds rows*cols:narrow?both "
                       "scales_turned:scale?both 1:f32?finds"},
    [WORK_DEQUANTISE] = {"codes:u8 scales:u8", "rows*cols"},
    [WORK_ATTENTION] = {"q*heads*dim:side kv*kv_heads*dim:side kv*kv_heads*dim:side?!vdim "
                        "kv*kv_heads*vdim:side?vdim scales:scale?scaling",
                        "q*heads*dim?!vdim q*heads*vdim?vdim q*heads:f32"},
    [WORK_ATTENTION_BACKWARD] =
        {"q*heads*dim:side kv*kv_heads*dim:side kv*kv_heads*dim:side?!vdim "
         "kv*kv_heads*vdim:side?vdim q*heads*dim?!vdim?!delta q*heads*vdim?vdim?!delta "
         "q*heads:f32?delta "
         "q*heads:f32 q*heads*dim:side?!vdim q*heads*vdim:side?vdim "
         "scales:scale?scaling scales_of_d_o:scale?scaling turned:narrow?turned "
         "turned_d_o:narrow?turned d_o:step?turned",
         "q*heads*dim kv*kv_heads*dim kv*kv_heads*dim?!vdim "
         "kv*kv_heads*vdim?vdim ~1:u8??"},
    [WORK_MERGE] = {"rows*heads*dim:f32=0 rows*heads:f32=1 rows*heads*dim rows*heads:f32",
                    "rows*heads*dim:f32 rows*heads:f32"},
    [WORK_SINK] = {"rows*heads*dim=0 rows*heads:f32=1 sinks", "rows*heads*dim rows*heads:f32"},
    [WORK_SINK_BACKWARD] = {"rows*heads*dim rows*heads*dim rows*heads:f32 sinks "
                            "sinks:sum=0?accumulate",
                            "sinks:sum"},
    [WORK_RMSNORM] = {"rows*cols cols?!bare", "rows*cols rows:f32"},
    [WORK_RMSNORM_BACKWARD] = {"rows*cols rows*cols cols?!bare rows:f32 cols:sum=1?accumulate",
                               "rows*cols cols:sum?!bare ~1:u8??"},
    [WORK_LAYERNORM] = {"rows*cols cols cols", "rows*cols rows*2:f32"},
    [WORK_LAYERNORM_BACKWARD] = {"rows*cols rows*cols cols rows*2:f32 cols:sum=1?accumulate "
                                 "cols:sum=2?accumulate",
                                 "rows*cols cols:sum cols:sum"},
    [WORK_ROPE] = {"rows*stride?stride rows*heads*dim?!stride rows:i32",
                   "rows*stride?stride rows*heads*dim?!stride"},
    [WORK_ROPE_BACKWARD] = {"rows*stride?stride rows*heads*dim?!stride rows:i32",
                            "rows*stride?stride rows*heads*dim?!stride"},
    [WORK_LATENT_KEYS] = {"rows*heads*(plain+vdim) rows*rotated",
                          "rows*heads*(plain+rotated) rows*heads*vdim"},
    [WORK_LATENT_KEYS_BACKWARD] = {"rows*heads*(plain+rotated) rows*heads*vdim",
                                   "rows*heads*(plain+vdim) rows*rotated"},
    [WORK_SWIGLU] = {"rows*cols*2 rows:f32?weights", "rows*cols"},
    [WORK_SWIGLU_BACKWARD] = {"rows*cols rows*cols*2 rows:f32?weights",
                              "rows*cols*2 rows:f32?weights"},
    [WORK_GELU] = {"rows*cols", "rows*cols"},
    [WORK_GELU_BACKWARD] = {"rows*cols rows*cols", "rows*cols"},
    [WORK_ROUTE] = {"rows*experts:f32", "rows*copies:f32"},
    [WORK_ROUTE_BACKWARD] = {"rows*copies:f32 rows*experts:f32", "rows*experts"},
    [WORK_PERMUTE] = {"rows*cols rows*copies:f32?weights", "rows*cols*copies?!to to*cols?to"},
    [WORK_UNPERMUTE] = {"rows*cols*copies?!to to*cols?to rows*copies:f32?weights", "rows*cols"},
    [WORK_UNPERMUTE_BACKWARD] = {"rows*cols rows*cols*copies?!to to*cols?to rows*copies:f32",
                                 "rows*cols*copies?!to to*cols?to rows*copies:f32"},
    [WORK_PERMUTE_WEIGHTS] = {"rows*copies:f32", "rows*copies:f32?!to to:f32?to"},
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = {"rows*copies:f32?!to to:f32?to", "rows*copies:f32"},
    [WORK_EMBEDDING] = {"rows:i32 vocab*cols:float", "rows*cols"},
    [WORK_EMBEDDING_BACKWARD] = {"rows*cols rows:i32 vocab*cols:sum=0?",
                                 "vocab*cols:sum ~1:float??"},
    [WORK_CROSS_ENTROPY] = {"rows*vocab:op rows:i32 1:f32=0?accumulate",
                            "1:f32 rows:f32 rows*vocab:f32?? ~1:u8??"},
    [WORK_CROSS_ENTROPY_BACKWARD] = {"rows*vocab:op=0 rows:i32", "rows*vocab:op"},
    [WORK_CROSS_ENTROPY_PARTIAL] = {"rows*vocab:op rows:i32", "rows*3:f32 ~1:u8??"},
    [WORK_CROSS_ENTROPY_FINISH] = {"rows*vocab:op rows:i32 ~rows*3:f32 1:f32=0?accumulate",
                                   "1:f32 rows:f32"},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {"rows*vocab:op=0 rows:i32 rows:f32",
                                             "rows*vocab:op ~1:u8??"},
    [WORK_ADD] = {"count:op count:float cols:op?cols", "count:op"},
    [WORK_CAST] = {"count:float", "count:~f32"},
    [WORK_FILL] = {"", "count:float"},
    [WORK_PACK] = {"rows*parts*w012:moved",
                   "rows*parts*w0:moved rows*parts*w1:moved?w1 rows*parts*w2:moved?w2"},
    [WORK_UNPACK] = {"rows*parts*w0:moved rows*parts*w1:moved?w1 rows*parts*w2:moved?w2",
                     "rows*parts*w012:moved"},
    [WORK_HEAD_EXPAND] = {"rows*heads*dim", "rows*heads*dim*copies"},
    [WORK_HEAD_REDUCE] = {"rows*heads*dim*copies", "rows*heads*dim"},
    [WORK_TAKE_ROWS] = {"parts*rows*width:moved parts*arrived*width:moved?arrived",
                        "parts*to*width:moved"},
    [WORK_ADD_ROWS] = {"parts*rows*width:float parts*to*width:f32=0", "parts*to*width:f32"},
    [WORK_MERGE_ROWS] = {"rows*heads*dim rows*heads:f32 to*heads*dim:f32=0?!first "
                         "to*heads:f32=1?!first",
                         "to*heads*dim:f32 to*heads:f32"},
    [WORK_ROW_DOT] = {"rows*heads*dim rows*heads*dim", "rows*heads:f32"},
    [WORK_COLUMN_SUM] = {"rows*cols cols*groups:sum=0?accumulate", "cols*groups:sum"},
    [WORK_ADAMW] = {"count:float count:master=0 moment:moment=1 moment:moment=2 1:f32??",
                    "count:master moment:moment moment:moment count:float?"},
    [WORK_SQUARE_SUM] = {"count:float 1:f32=0?accumulate", "1:f32"},
    [WORK_CLIP] = {"count:op=0 1:f32", "count:op"},
    [WORK_OPAQUE] = {"", "~1:moved?? ~1:moved?? ~1:moved?? ~1:moved?? ~1:moved?? ~1:moved?? "
                         "~1:moved?? ~1:moved??"},
    [WORK_ALL_TO_ALL] = {"@:moved?!ahead ahead:moved?ahead", "@:moved?!back back:moved?back"},
    [WORK_ALL_GATHER] = {"@:moved", "@*:moved"},
    [WORK_REDUCE_SCATTER] = {"@:op", "@/:op"},
    [WORK_ALL_REDUCE] = {"@:op", "@:op"},
    [WORK_REDUCE] = {"@:op", "@:op?"},
    [WORK_BROADCAST] = {"@:moved?", "@:moved"},
    [WORK_SCATTER] = {"@:moved", "@/:moved"},
    [WORK_EXCHANGE] = {"parts*rows*width:moved", "parts*to*width:moved"},
    [WORK_SHIFT] = {"@:moved", "@:moved"},
    [WORK_SEND] = {"@:moved", ""},
    [WORK_RECV] = {"", "@:moved"},
    [WORK_H2D] = {"@:moved", "@:moved"},
    [WORK_D2H] = {"@:moved", "@:moved"},
    [WORK_HOST_SYNC] = {"", ""},
    [WORK_BARRIER] = {"", ""},
};

static bool equals_word(const char *word, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(name, word, size) == 0;
}

/* Returns a times b; UINT64_MAX if b is negative or the product does not fit. */
static uint64_t saturating_product(uint64_t a, int64_t b)
{
    uint64_t product;
    return b < 0 || __builtin_mul_overflow(a, (uint64_t)b, &product) ? UINT64_MAX : product;
}

static bool is_attention(const struct work *work)
{
    return work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD;
}

/* Returns the number of scales of an operand of attention or, if `turned` is true, of its transposed copy. */
static int64_t scale_count_of_attention_operand(enum scaling scaling, int64_t row_count,
                                                int64_t cols, bool turned)
{
    return scaling_scale_count(scaling, turned ? cols : row_count, turned ? row_count : cols);
}

/* Returns the number that a word of the table stands for, in an attention that multiplies in 8 bits; -1: it is too
 * large. With one scale for a tensor each operand with scales has one. With MXFP8:
 *   scales         forward: scales of q, of k and of the transposed copy of v; backward: scales of q, k and v, and of
 *                  the transposed copies of q and k
 *   scales_of_d_o  scales of both copies of the gradient of the output
 *   turned         elements of the transposed copies of q and k
 *   turned_d_o     elements of the transposed copy of the gradient of the output
 *   d_o            elements of that gradient in the step's dtype */
static int64_t attention_formula_factor_value(const struct work *work, const char *name,
                                              size_t size)
{
    const enum scaling scaling = (enum scaling)work->attention.scaling;
    const int64_t q = work->attention.q, kv = work->attention.kv;
    int64_t q_cols, k_cols, v_cols, o_cols, of_q, of_k, turned, most;
    if (__builtin_mul_overflow(work->attention.heads, work->attention.dim, &q_cols) ||
        __builtin_mul_overflow(work->attention.kv_heads, work->attention.dim, &k_cols) ||
        __builtin_mul_overflow(work->attention.kv_heads, work_attention_vdim(work), &v_cols) ||
        __builtin_mul_overflow(work->attention.heads, work_attention_vdim(work), &o_cols) ||
        q < 0 || kv < 0 || q_cols < 0 || k_cols < 0 || v_cols < 0 || o_cols < 0 ||
        __builtin_mul_overflow(q, q_cols, &of_q) || __builtin_mul_overflow(kv, k_cols, &of_k) ||
        __builtin_add_overflow(of_q, of_k, &turned) || __builtin_mul_overflow(kv, v_cols, &most) ||
        __builtin_mul_overflow(q, o_cols, &most))
        return -1;
    if (equals_word(name, size, "turned"))
        return scaling == SCALING_MX ? turned : 0;
    if (equals_word(name, size, "turned_d_o") || equals_word(name, size, "d_o"))
        return q * o_cols;
    if (scaling != SCALING_MX)
        return 1;
    if (equals_word(name, size, "scales_of_d_o"))
        return scale_count_of_attention_operand(scaling, q, o_cols, false) +
               scale_count_of_attention_operand(scaling, q, o_cols, true);
    const bool forward = work->kind == WORK_ATTENTION;
    const int64_t of_rows = scale_count_of_attention_operand(scaling, q, q_cols, false) +
                            scale_count_of_attention_operand(scaling, kv, k_cols, false) +
                            scale_count_of_attention_operand(scaling, kv, v_cols, forward);
    return forward ? of_rows
                   : of_rows + scale_count_of_attention_operand(scaling, q, q_cols, true) +
                         scale_count_of_attention_operand(scaling, kv, k_cols, true);
}

/* Returns the number of scales that a word of the table stands for: "scales_a" and "scales_b" are those of the operands
 * of a product, "scales" and "scales_turned" those of the copies that a quantise makes. */
static int64_t scale_count(const struct work *work, const char *name, size_t size)
{
    const struct scaling_layout layout = work_scale_layout(
        work, equals_word(name, size, "scales_turned") || equals_word(name, size, "scales_b"));
    return scaling_layout_scale_count(&layout);
}

/* Return the bytes of the codes, and of the scales, that a dequantise reads; -1: the number is too large. */
static int64_t frozen_code_bytes(const struct work *work)
{
    int64_t count;
    return __builtin_mul_overflow(work->dequantise.rows, work->dequantise.cols, &count) || count < 0
               ? -1
               : (int64_t)frozen_storage_code_bytes((enum frozen_storage)work->dequantise.storage,
                                                    (uint64_t)count);
}

static int64_t frozen_scale_bytes(const struct work *work)
{
    return frozen_code_bytes(work) < 0
               ? -1
               : (int64_t)frozen_storage_scale_bytes((enum frozen_storage)work->dequantise.storage,
                                                     work->dequantise.rows, work->dequantise.cols);
}

/* Returns the value of a factor in the table: a digit, a sum "(a+b)", a parameter of the kind by its name, or one of:
 *   w012           w0 + w1 + w2 of a pack
 *   moment         elements of a moment of AdamW
 *   codes, scales  of a dequantise: bytes of the codes and of the scales of the stored weight
 *   scales...      of attention: see attention_formula_factor_value(), which has further names; else see scale_count()
 *   groups         of a product: the number of matrices in this operand; of a column_sum: the rows of its result */
static int64_t formula_factor_value(const struct work *work, const char *name, size_t size)
{
    if (size == 1 && *name >= '0' && *name <= '9')
        return *name - '0';
    if (size == 4 && memcmp(name, "w012", 4) == 0) {
        int64_t sum = 0;
        for (int i = 0; i < 3; i++)
            if (__builtin_add_overflow(sum, work->pack.w[i], &sum))
                return -1;
        return sum;
    }
    if (size == 6 && memcmp(name, "moment", 6) == 0) {
        uint64_t count = (uint64_t)work->adamw.count;
        return work->adamw.count < 0 || count > INT64_MAX / 2
                   ? work->adamw.count
                   : (int64_t)states_moment_elements((enum states)work->adamw.states, count);
    }
    if (work->kind == WORK_DEQUANTISE && size == 5 && memcmp(name, "codes", 5) == 0)
        return frozen_code_bytes(work);
    if (work->kind == WORK_DEQUANTISE && size == 6 && memcmp(name, "scales", 6) == 0)
        return frozen_scale_bytes(work);
    if (is_attention(work) &&
        (equals_word(name, size, "turned") || equals_word(name, size, "turned_d_o") ||
         equals_word(name, size, "d_o") || (size >= 6 && memcmp(name, "scales", 6) == 0)))
        return attention_formula_factor_value(work, name, size);
    if (size >= 6 && memcmp(name, "scales", 6) == 0)
        return scale_count(work, name, size);
    /* In a product `groups` is the last factor. Form TN has several matrices in y, "m*n*groups"; the other forms have
     * them in b, "k*n*groups", and in the bias, "n*groups". Elsewhere the factor is 1. */
    if (size == 6 && memcmp(name, "groups", 6) == 0 && work->kind == WORK_COLUMN_SUM)
        return work_row_group_count(work);
    if (size == 6 && memcmp(name, "groups", 6) == 0)
        return (work->matmul.form == MATMUL_TN) == (name[-4] == 'm')
                   ? work_weight_matrix_count(work)
                   : 1;
    if (*name == '(') {
        const char *plus = memchr(name, '+', size);
        int64_t sum = formula_factor_value(work, name + 1, (size_t)(plus - name - 1));
        const int64_t more = formula_factor_value(work, plus + 1, size - (size_t)(plus - name) - 2);
        return __builtin_add_overflow(sum, more, &sum) ? -1 : sum;
    }
    const struct work_kind_info *info = work_kind_info((enum work_kind)work->kind);
    uint32_t i = 0;
    while (i < info->param_count &&
           (strlen(info->param[i].name) != size || memcmp(info->param[i].name, name, size) != 0))
        i++;
    assert(i < info->param_count); /* the table names only parameters that the kind has */
    return work->p[i];
}

static uint64_t operand_count_by_formula(const struct work *work, const char *formula, size_t size)
{
    uint64_t value = 1;
    for (size_t at = 0, end; at < size; at = end + 1) {
        const char *star = memchr(formula + at, '*', size - at);
        end = star ? (size_t)(star - formula) : size;
        value = saturating_product(value, formula_factor_value(work, formula + at, end - at));
    }
    return value;
}

static uint64_t message_bytes(const struct work *work, uint32_t members, char how)
{
    uint64_t bytes = (uint64_t)work_payload_bytes(work);
    return how == '*' ? saturating_product(bytes, members) : how == '/' ? bytes / members : bytes;
}

/* Sets the type and the dtype of an operand from the word after its ':'. */
static void read_operand_type(const struct work *work, const char *word, size_t size,
                              struct work_operand *operand)
{
    static const struct {
        const char *name;
        uint8_t type, dtype;
    } types[] = {
        {"f32", WORK_TYPE_GIVEN_DTYPE, DTYPE_F32},
        {"i32", WORK_TYPE_GIVEN_DTYPE, DTYPE_I32},
        {"u8", WORK_TYPE_GIVEN_DTYPE, DTYPE_U8},
        {"sum", WORK_TYPE_STEP_DTYPE_OR_F32, DTYPE_COUNT},
        {"op", WORK_TYPE_OP_FLOAT_DTYPE, DTYPE_COUNT},
        {"float", WORK_TYPE_ANY_FLOAT, DTYPE_COUNT},
        {"moved", WORK_TYPE_OP_DTYPE, DTYPE_COUNT},
        {"~f32", WORK_TYPE_ANY_FLOAT, DTYPE_F32},
    };
    bool master = equals_word(word, size, "master");
    if (master || equals_word(word, size, "moment")) {
        enum states states = (enum states)work->adamw.states;
        operand->type = WORK_TYPE_GIVEN_DTYPE;
        operand->dtype =
            (uint8_t)(master ? states_master_dtype(states) : states_moment_dtype(states));
        return;
    }
    enum scaling scaling = (enum scaling)(work->kind == WORK_QUANTISE ? work->quantise.scaling
                                          : is_attention(work)        ? work->attention.scaling
                                                                      : work->matmul.scaling);
    if (equals_word(word, size, "scale")) {
        operand->type = WORK_TYPE_GIVEN_DTYPE;
        operand->dtype = (uint8_t)scaling_scale_dtype(scaling);
        return;
    }
    if (equals_word(word, size, "narrow") ||
        (equals_word(word, size, "side") && scaling != SCALING_NONE)) {
        operand->type = WORK_TYPE_NARROW;
        operand->dtype = scaling == SCALING_NV ? DTYPE_E2M1X2 : DTYPE_E4M3;
        return;
    }
    if (equals_word(word, size, "side") || equals_word(word, size, "step"))
        return;
    size_t i = 0;
    while (i < ARRAY_LEN(types) && !equals_word(word, size, types[i].name))
        i++;
    assert(i < ARRAY_LEN(types)); /* the table names only these types */
    operand->type = types[i].type;
    operand->dtype = types[i].dtype;
}

/* Fills *operand from one word of the table. Returns false if the work has no such operand, because a condition on its
 * parameters does not hold. */
static bool read_word(const struct work *work, uint32_t members, const char *word, size_t size,
                      struct work_operand *operand)
{
    const char *end = word + size;
    *operand = (struct work_operand){.type = WORK_TYPE_STEP_DTYPE,
                                     .dtype = DTYPE_COUNT,
                                     .in_place_write_index = -1,
                                     .is_only_usual_count = *word == '~'};
    operand->formula = word + operand->is_only_usual_count;
    operand->formula_text_size = (uint32_t)strcspn(operand->formula, ":=? ");
    const char *at = operand->formula + operand->formula_text_size;
    const char *last = at - 6; /* messages leave the factor `groups` out if it is 1 */
    if (operand->formula_text_size > 7 && memcmp(last, "groups", 6) == 0 &&
        formula_factor_value(work, last, 6) == 1)
        operand->formula_text_size -= 7;
    if (at < end && *at == ':') {
        size_t letters = strcspn(at + 1, "=? ");
        read_operand_type(work, at + 1, letters, operand);
        at += 1 + letters;
    }
    if (at < end && *at == '=') {
        operand->in_place_write_index = (int8_t)(at[1] - '0');
        at += 2;
    }
    if (at < end) {
        assert(*at == '?');
        operand->is_absent_in_microbench = at + 1 < end && at[1] == '?';
        operand->optional = operand->is_absent_in_microbench || at + 1 == end;
        while (!operand->optional && at < end) {
            const char *name = at + 1 + (at[1] == '!'), *next = name + strcspn(name, "? ");
            if ((formula_factor_value(work, name, (size_t)(next - name)) != 0) == (at[1] == '!'))
                return false;
            at = next;
        }
    }
    operand->count_is_bytes = *operand->formula == '@';
    operand->count =
        operand->count_is_bytes
            ? message_bytes(work, members,
                            operand->formula_text_size == 2 ? operand->formula[1] : ' ')
            : operand_count_by_formula(work, operand->formula, operand->formula_text_size);
    if (operand->type == WORK_TYPE_NARROW && operand->dtype == DTYPE_E2M1X2)
        operand->count = operand->count / 2 + operand->count % 2;
    return true;
}

uint32_t work_operands(const struct work *work, enum work_side side, uint32_t members,
                       struct work_operand operand[static WORK_OPERANDS_MAX])
{
    assert(work->kind < WORK_KIND_COUNT && rows[work->kind][side]);
    uint32_t count = 0;
    for (const char *word = rows[work->kind][side]; *word; word += strspn(word, " ")) {
        size_t size = strcspn(word, " ");
        assert(count < WORK_OPERANDS_MAX);
        count += read_word(work, members, word, size, &operand[count]);
        word += size;
    }
    return count;
}

const struct work_operand *work_operand_at(const struct work_operand *operand, uint32_t count,
                                           uint32_t k, enum dtype dtype)
{
    const struct work_operand *here = &operand[k], *next = here + 1;
    return dtype == DTYPE_U8 && here->is_absent_in_microbench && here->dtype != DTYPE_U8 &&
                   k + 1 < count && next->dtype == DTYPE_U8
               ? next
               : here;
}
