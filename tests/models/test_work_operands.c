/* tests/models/test_work_operands.c: the number, sizes and types of the operands of each kind of work. */
#include "models/work_operands.h"

#include "tests/check.h"

#include <string.h>

/* Returns a work of the kind whose k-th optional parameter is bit k of `set`. The other parameters
 * are 2, or 0 if their values have names. If attention has scales, they are those of MXFP8, with
 * which it has the most operands. */
static struct work make_work_with_optional_params(enum work_kind kind, uint32_t set)
{
    uint32_t optional = 0;
    struct work work = {.kind = (uint8_t)kind};
    const struct work_kind_info *info = work_kind_info(kind);
    for (uint32_t i = 0; i < info->param_count; i++)
        work.p[i] = info->param[i].optional      ? set >> optional++ & 1
                    : info->param[i].value_names ? 0
                                                 : 2;
    if (kind == WORK_ATTENTION || kind == WORK_ATTENTION_BACKWARD)
        work.attention.scaling *= SCALING_MX;
    return work;
}

/* Returns how many sets of optional parameters a kind has. */
static uint32_t count_optional_parameter_sets(const struct work_kind_info *info)
{
    uint32_t sets = 1;
    for (uint32_t i = 0; i < info->param_count; i++)
        sets *= info->param[i].optional ? 2 : 1;
    return sets;
}

/* work_kinds.def and the table of operands agree on how many operands a kind may have. */
static void operand_counts_match_work_kinds(void)
{
    for (int i = 0; i < WORK_KIND_COUNT; i++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)i);
        const uint32_t least[2] = {info->reads_min, info->writes_min};
        const uint32_t most[2] = {info->reads_max, info->writes_max};
        for (int side = WORK_READS; side <= WORK_WRITES; side++) {
            uint32_t fewest = UINT32_MAX, largest = 0;
            for (uint32_t set = 0; set < count_optional_parameter_sets(info); set++) {
                struct work_operand o[WORK_OPERANDS_MAX];
                struct work work = make_work_with_optional_params((enum work_kind)i, set);
                uint32_t count = work_operands(&work, (enum work_side)side, 1, o);
                bool optional = false;
                for (uint32_t k = 0; k < count; k++) {
                    CHECK(info->name, !optional || o[k].optional); /* optional ones are the last */
                    optional = o[k].optional;
                    CHECK(info->name, o[k].optional || !o[k].is_absent_in_microbench);
                    CHECK(info->name, o[k].count > 0);
                    CHECK(info->name, side == WORK_READS
                                          ? o[k].in_place_write_index < info->writes_max
                                          : o[k].in_place_write_index < 0);
                }
                largest = count > largest ? count : largest;
                while (count > 0 && o[count - 1].optional)
                    count--;
                fewest = count < fewest ? count : fewest;
            }
            CHECK_INT(info->name, fewest, least[side]);
            CHECK_INT(info->name, largest, most[side]);
        }
    }
}

static void is(const char *label, const struct work_operand *o, uint64_t count, int dtype, int over)
{
    CHECK_INT(label, o->count, count);
    CHECK_INT(label, o->dtype, dtype);
    CHECK_INT(label, o->in_place_write_index, over);
}

static void operand_counts_by_hand(void)
{
    struct work_operand o[WORK_OPERANDS_MAX];
    const struct work product = {.kind = WORK_MATMUL,
                                 .matmul = {.m = 3, .n = 5, .k = 7, .accumulate = 1}};
    CHECK_INT("product", work_operands(&product, WORK_READS, 1, o), 3); /* no bias */
    is("left", &o[0], 21, DTYPE_COUNT, -1);
    is("right", &o[1], 35, DTYPE_COUNT, -1);
    is("sum so far", &o[2], 15, DTYPE_COUNT, 0);
    CHECK("formula", o[2].formula_text_size == 3 && memcmp(o[2].formula, "m*n", 3) == 0);

    struct work rope = {.kind = WORK_ROPE, .rope = {.rows = 6, .heads = 2, .dim = 4}};
    CHECK_INT("rope", work_operands(&rope, WORK_READS, 1, o), 2);
    is("dense", &o[0], 48, DTYPE_COUNT, -1);
    is("positions", &o[1], 6, DTYPE_I32, -1);
    rope.rope.stride = 11;
    CHECK_INT("rope in place", work_operands(&rope, WORK_WRITES, 1, o), 1);
    is("with stride", &o[0], 66, DTYPE_COUNT, -1);

    const struct work unpack = {.kind = WORK_UNPACK,
                                .pack = {.rows = 2, .parts = 3, .w = {4, 5, 0}}};
    CHECK_INT("unpack", work_operands(&unpack, WORK_READS, 1, o), 2);
    is("second", &o[1], 30, DTYPE_COUNT, -1);
    work_operands(&unpack, WORK_WRITES, 1, o);
    is("whole", &o[0], 54, DTYPE_COUNT, -1);

    const struct work cast = {.kind = WORK_CAST, .elements = {.count = 9}};
    CHECK_INT("cast", work_operands(&cast, WORK_WRITES, 1, o), 1);
    is("cast", &o[0], 9, DTYPE_F32, -1);
    CHECK("cast to any", o[0].type == WORK_TYPE_ANY_FLOAT && !o[0].is_only_usual_count);
    const struct work loss = {.kind = WORK_CROSS_ENTROPY_FINISH, .cross_entropy = {4, 8, 4, 0}};
    work_operands(&loss, WORK_READS, 1, o);
    is("of one rank", &o[2], 12, DTYPE_F32, -1);
    CHECK("of more", o[2].is_only_usual_count && o[2].type == WORK_TYPE_GIVEN_DTYPE);
}

static void operand_types_by_hand(void)
{
    static const struct {
        enum work_kind kind;
        enum work_side side;
        uint32_t operand;
        enum work_type type;
    } types[] = {
        {WORK_MATMUL, WORK_READS, 0,
         WORK_TYPE_NARROW}, /* it has a scaling, as every parameter is given */
        {WORK_MATMUL, WORK_READS, 5, WORK_TYPE_GIVEN_DTYPE},
        {WORK_QUANTISE, WORK_WRITES, 0, WORK_TYPE_NARROW},
        {WORK_MATMUL, WORK_WRITES, 0, WORK_TYPE_STEP_DTYPE_OR_F32},
        {WORK_ROPE, WORK_READS, 1, WORK_TYPE_GIVEN_DTYPE},
        {WORK_ADD, WORK_READS, 0, WORK_TYPE_OP_FLOAT_DTYPE},
        {WORK_ADD, WORK_READS, 1, WORK_TYPE_ANY_FLOAT},
        {WORK_PACK, WORK_WRITES, 0, WORK_TYPE_OP_DTYPE},
        {WORK_MERGE, WORK_READS, 2, WORK_TYPE_STEP_DTYPE},
        {WORK_ALL_GATHER, WORK_READS, 0, WORK_TYPE_OP_DTYPE},
        {WORK_REDUCE_SCATTER, WORK_WRITES, 0, WORK_TYPE_OP_FLOAT_DTYPE},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct work_operand o[WORK_OPERANDS_MAX];
        struct work work = make_work_with_optional_params(types[i].kind, UINT32_MAX);
        work_operands(&work, types[i].side, 1, o);
        CHECK_INT(work_kind_info(types[i].kind)->name, o[types[i].operand].type, types[i].type);
    }
}

static void a_product_without_scales_multiplies_in_the_dtype_of_the_step(void)
{
    struct work_operand o[WORK_OPERANDS_MAX];
    struct work work = {.kind = WORK_MATMUL, .matmul = {3, 4, 64, MATMUL_NT}};
    CHECK_INT("operands", work_operands(&work, WORK_READS, 1, o), 2);
    CHECK_INT("type", o[0].type, WORK_TYPE_STEP_DTYPE);
    work.matmul.scaling = SCALING_BLOCK;
    CHECK_INT("operands", work_operands(&work, WORK_READS, 1, o), 4);
    is("numbers", &o[1], 256, DTYPE_E4M3, -1);
    is("scales of a: 1 x 128", &o[2], 3, DTYPE_F32, -1);
    is("scales of b: 128 x 128", &o[3], 1, DTYPE_F32, -1);
    work.matmul.scaling = SCALING_NV;
    work_operands(&work, WORK_READS, 1, o);
    is("two numbers a byte", &o[1], 128, DTYPE_E2M1X2, -1);
    is("scales: 1 x 16", &o[3], 16, DTYPE_E4M3, -1);
}

/* 64 queries and keys, 2 heads of Q and 1 of K and V, 64 columns: Q has 8192 elements, K and V 4096 each. */
static void attention_in_8_bits_reads_copies_and_scales(void)
{
    struct work_operand o[WORK_OPERANDS_MAX];
    struct work work = {.kind = WORK_ATTENTION,
                        .attention = {64, 64, 2, 1, 64, .scaling = SCALING_TENSOR}};
    CHECK_INT("operands", work_operands(&work, WORK_READS, 1, o), 4);
    is("Q", &o[0], 8192, DTYPE_E4M3, -1);
    is("one scale", &o[3], 1, DTYPE_F32, -1);
    work.attention.scaling = SCALING_MX;
    work_operands(&work, WORK_READS, 1, o);
    is("of Q, K and V", &o[3], (8192 + 2 * 4096) / 32, DTYPE_E8M0, -1);
    work.kind = WORK_ATTENTION_BACKWARD;
    CHECK_INT("operands", work_operands(&work, WORK_READS, 1, o), 11);
    CHECK_INT("O is in 16 bits", o[3].type, WORK_TYPE_STEP_DTYPE);
    is("dO", &o[5], 8192, DTYPE_E4M3, -1);
    is("of Q, K, V, and of Q and K transposed", &o[6], (2 * 8192 + 3 * 4096) / 32, DTYPE_E8M0, -1);
    is("of dO twice", &o[7], 2 * 8192 / 32, DTYPE_E8M0, -1);
    is("Q and K transposed", &o[8], 8192 + 4096, DTYPE_E4M3, -1);
    is("dO transposed", &o[9], 8192, DTYPE_E4M3, -1);
    CHECK_INT("dO in 16 bits", o[10].type, WORK_TYPE_STEP_DTYPE);
}

static void collective_operand_bytes_by_hand(void)
{
    struct work_operand o[WORK_OPERANDS_MAX];
    const struct work gather = {.kind = WORK_ALL_GATHER, .collective = {.bytes = 24}};
    work_operands(&gather, WORK_READS, 4, o);
    is("sent", &o[0], 24, DTYPE_COUNT, -1);
    work_operands(&gather, WORK_WRITES, 4, o);
    is("gathered", &o[0], 96, DTYPE_COUNT, -1);
    CHECK("bytes", o[0].count_is_bytes);
    const struct work scatter = {.kind = WORK_REDUCE_SCATTER, .collective = {.bytes = 24}};
    work_operands(&scatter, WORK_WRITES, 4, o);
    is("kept", &o[0], 6, DTYPE_COUNT, -1);
}

static void operand_size_overflow_is_kept(void)
{
    struct work_operand o[WORK_OPERANDS_MAX];
    struct work gelu = {.kind = WORK_GELU, .activation = {.rows = INT64_MAX, .cols = 3}};
    work_operands(&gelu, WORK_READS, 1, o);
    is("too many", &o[0], UINT64_MAX, DTYPE_COUNT, -1);
    gelu.activation.rows = -1;
    work_operands(&gelu, WORK_READS, 1, o);
    is("negative", &o[0], UINT64_MAX, DTYPE_COUNT, -1);
    const struct work pack = {.kind = WORK_PACK,
                              .pack = {.rows = 1, .parts = 1, .w = {INT64_MAX, INT64_MAX, 1}}};
    work_operands(&pack, WORK_READS, 1, o);
    is("widths", &o[0], UINT64_MAX, DTYPE_COUNT, -1);
    /* Q and K have 2^62 elements each */
    const int64_t tokens = INT64_C(1) << 57;
    const struct work core = {.kind = WORK_ATTENTION_BACKWARD,
                              .attention = {tokens, tokens, 1, 1, 32, .scaling = SCALING_MX}};
    work_operands(&core, WORK_READS, 1, o);
    is("Q and K transposed", &o[8], UINT64_MAX, DTYPE_E4M3, -1);
}

static const struct check_case cases[] = {
    {"as many as the kind says", operand_counts_match_work_kinds},
    {"counts by hand", operand_counts_by_hand},
    {"types by hand", operand_types_by_hand},
    {"a product without scales multiplies in the dtype of the step",
     a_product_without_scales_multiplies_in_the_dtype_of_the_step},
    {"attention in 8 bits reads copies and scales", attention_in_8_bits_reads_copies_and_scales},
    {"bytes of collectives", collective_operand_bytes_by_hand},
    {"what does not fit stays so", operand_size_overflow_is_kept},
};
CHECK_MAIN("work_operands", cases)
