/* tests/schedule/test_states.c: how the precision of optimizer states changes bytes, gradients and the AdamW
 * step of a schedule. */
#include "schedule/config/resolve_config.h"
#include "tests/schedule/composed.h"

enum { RANKS = 4 };

/* Returns the bytes of a category that ranks hold throughout, without buffers that are part of another. */
static double held(const struct ir *ir, enum category category)
{
    double bytes = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.category[b] == category && ir->buffer.binding[b] != IR_NONE16 &&
            (ir->buffer.flags[b] & BUFFER_PART) == 0)
            bytes += (double)ir_buffer_bytes(ir, (buffer_id){b});
    return bytes;
}

/* Returns the number of parameters of all bundles, padding included; *blocks receives the number of blocks of 8-bit
 * moments in one rank's parts. */
static double parameters(const struct ir *ir, uint64_t parts, double *blocks)
{
    double all = 0;
    *blocks = 0;
    for (uint32_t i = 0; i < ir->bundle_count; i++) {
        uint64_t part = ir->bundle[i].elements / parts;
        all += (double)ir->bundle[i].elements;
        uint64_t own = (part + 255) / 256;
        *blocks += (double)own;
    }
    return all;
}

/* Bytes per parameter, before sharding: computation reads 2 (bf16). AdamW keeps 12 (a copy and two moments in fp32), 4
 * (two moments in bf16), 4 + 2 and 8 per block (a copy in fp32, two moments in 8 bits with one scale per block), or
 * these without the copy. With torchtitan and fp32 parameters, computation's sharded parameters are AdamW's fp32 copy:
 * they take 4, and AdamW keeps 4 fewer. */
static void optimizer_states_take_their_bytes(void)
{
    static const struct {
        const char *label, *profile;
        int weights, optimizer;
        double parts;                   /* parts of AdamW's state, of which a rank holds one */
        double parameter[STATES_COUNT]; /* bytes of a parameter that computation reads, by states */
        double optimizer_bytes[STATES_COUNT], block[STATES_COUNT];
    } rows[] = {
        /* label, profile, weights, optimizer, parts; parameter, optimizer_bytes and block, each of fp32, bf16, 8bit and
         * 8bit-bf16 */
        {"replicated",
         "megatron",
         CHOICE_WEIGHTS_REPLICATED,
         CHOICE_OPTIMIZER_DEVICE,
         1,
         {2, 2, 2, 2},
         {12, 4, 6, 2},
         {0, 0, 8, 8}},
        {"zero1",
         "megatron",
         CHOICE_WEIGHTS_ZERO1,
         CHOICE_OPTIMIZER_DEVICE,
         RANKS,
         {2, 2, 2, 2},
         {3, 1, 1.5, 0.5},
         {0, 0, 8, 8}},
        {"zero2",
         "deepspeed",
         CHOICE_WEIGHTS_ZERO2,
         CHOICE_OPTIMIZER_DEVICE,
         RANKS,
         {2, 2, 2, 2},
         {3, 1, 1.5, 0.5},
         {0, 0, 8, 8}},
        {"zero3",
         "deepspeed",
         CHOICE_WEIGHTS_ZERO3,
         CHOICE_OPTIMIZER_DEVICE,
         RANKS,
         {0.5, 0.5, 0.5, 0.5},
         {3, 1, 1.5, 0.5},
         {0, 0, 8, 8}},
        {"fp32 parameters",
         "torchtitan",
         CHOICE_WEIGHTS_ZERO3,
         CHOICE_OPTIMIZER_DEVICE,
         RANKS,
         {1, 0.5, 1, 0.5},
         {2, 1, 0.5, 0.5},
         {0, 0, 8, 8}},
        /* the host has a copy of the bf16 parameters */
        {"host",
         "deepspeed",
         CHOICE_WEIGHTS_ZERO3,
         CHOICE_OPTIMIZER_HOST,
         RANKS,
         {0.5, 0.5, 0.5, 0.5},
         {3, 1.5, 1.5, 1},
         {0, 0, 8, 8}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int states = 0; states < STATES_COUNT; states++) {
            struct request request = composed_request(0, RANKS);
            struct choices c;
            struct ir ir;
            double blocks;
            request.profile = rows[i].profile;
            request.strategy = "local";
            request.weights = rows[i].weights;
            request.optimizer = rows[i].optimizer;
            request.states = states;
            if (composed_build(&ir, &c, &request, rows[i].label)) {
                double all = parameters(&ir, (uint64_t)rows[i].parts, &blocks);
                CHECK_CLOSE(rows[i].label, held(&ir, CATEGORY_PARAMETER),
                            all * rows[i].parameter[states], 1e-12);
                CHECK_CLOSE(rows[i].label, held(&ir, CATEGORY_OPTIMIZER),
                            all * rows[i].optimizer_bytes[states] + blocks * rows[i].block[states],
                            1e-12);
            }
            ir_release(&ir);
        }
}

/* Megatron's gradients are fp32; if parameters are kept in bf16 only, gradients are bf16. */
static void gradients_follow_bf16_parameters(void)
{
    static const enum dtype want[STATES_COUNT] = {DTYPE_F32, DTYPE_BF16, DTYPE_F32};
    for (int states = 0; states < STATES_COUNT; states++) {
        struct request request = composed_request(0, RANKS);
        struct choices c;
        struct ir ir;
        request.profile = "megatron";
        request.states = states;
        if (composed_build(&ir, &c, &request, states_names[states]))
            for (uint32_t b = 0; b < ir.buffer.count; b++)
                if (ir.buffer.binding[b] != IR_NONE16 &&
                    ir.binding[ir.buffer.binding[b]].kind == BINDING_GRAD)
                    CHECK_INT(states_names[states], ir.buffer.dtype[b], want[states]);
        ir_release(&ir);
    }
}

/* Gradients take 4 bytes per parameter in fp32, plus the part that one of 4 ranks reduces, unless that part lies
 * within them. */
static void reductions_in_place_keep_no_second_part(void)
{
    static const struct {
        const char *profile;
        double bytes;
    } rows[] = {{"neutral", 4}, {"ideal", 4}, {"megatron", 4}, {"fsdp1", 5}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, RANKS);
        struct choices c;
        struct ir ir;
        double blocks;
        request.profile = rows[i].profile;
        request.weights = CHOICE_WEIGHTS_ZERO1;
        if (composed_build(&ir, &c, &request, rows[i].profile))
            CHECK_CLOSE(rows[i].profile, held(&ir, CATEGORY_GRADIENT),
                        parameters(&ir, 1, &blocks) * rows[i].bytes, 1e-12);
        ir_release(&ir);
    }
}

static void bf16_states_ask_for_bf16(void)
{
    struct request request = composed_request(0, RANKS);
    struct choices c;
    struct diag diag = {0};
    request.states = STATES_BF16;
    request.dtype = DTYPE_F16;
    CHECK("fp16", resolve_choices(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
    CHECK_TEXT("fp16", diag.text ? diag.text : "",
               "--states: error: bf16 keeps parameters, gradients and moments in bf16 and no wider "
               "copy, but the step computes in another dtype; choose --dtype bf16, or --states "
               "fp32\n");
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"states take their bytes", optimizer_states_take_their_bytes},
    {"gradients follow bf16 parameters", gradients_follow_bf16_parameters},
    {"reductions in place keep no second part", reductions_in_place_keep_no_second_part},
    {"bf16 states ask for bf16", bf16_states_ask_for_bf16},
};
CHECK_MAIN("states", cases)
