/* tests/schedule/test_compose_profiles.c: schedules of one strategy under several profiles: each has the collectives,
 * the passes over gradients and the buffers of the framework that it describes. */
#include "schedule/choices/chains.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/config/resolve_config.h"
#include "tests/schedule/composed.h"

/* The collectives of one step of a model of two layers, by profile and weights. */
static void weights_move_as_the_table_says(void)
{
    static const struct {
        const char *profile;
        int weights;
        int64_t shard, gathers, reductions, all_reductions;
    } rows[] = {
        {"internevo", CHOICE_WEIGHTS_REPLICATED, 0, 0, 0, 3}, /* embedding, both layers, head */
        {"internevo", CHOICE_WEIGHTS_ZERO1, 0, 3, 3, 0},
        {"internevo", CHOICE_WEIGHTS_ZERO1, 2, 3, 3, 3}, /* the all-reductions are over the pairs */
        {"internevo", CHOICE_WEIGHTS_ZERO2, 0, 3, 3, 0},
        {"internevo", CHOICE_WEIGHTS_ZERO3, 0, 6, 4, 0}, /* embedding, 0, 1, head, 1, 0 */
        {"internevo", CHOICE_WEIGHTS_HSDP, 2, 6, 4, 4},
        {"torchtitan", CHOICE_WEIGHTS_ZERO3, 0, 5, 3, 0}, /* root, 0, 1, 1, 0: FSDP's root stays */
        {"deepspeed", CHOICE_WEIGHTS_ZERO3, 0, 4, 4, 0},  /* a model this small stays gathered */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 4);
        struct ir ir;
        struct choices c;
        request.weights = rows[i].weights;
        request.shard = rows[i].shard;
        request.profile = rows[i].profile;
        composed_build(&ir, &c, &request, weights_names[rows[i].weights]);
        CHECK_INT(weights_names[rows[i].weights],
                  composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT), rows[i].gathers);
        CHECK_INT(weights_names[rows[i].weights],
                  composed_op_count_of_kind(&ir, WORK_REDUCE_SCATTER, PHASE_COUNT),
                  rows[i].reductions);
        CHECK_INT(weights_names[rows[i].weights],
                  composed_op_count_of_kind(&ir, WORK_ALL_REDUCE, PHASE_BACKWARD),
                  rows[i].all_reductions);
        ir_release(&ir);
    }
}

/* fsdp1 casts gradients before and after each reduction, at 4 + 4 bytes an element each. */
static void fsdp1_passes_over_gradients_before_each_reduction(void)
{
    static const char *const profiles[] = {"torchtitan", "fsdp1"};
    int64_t casts[2], reductions[2];
    double bytes_of_casts[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct request request = composed_request(0, 4);
        struct ir ir;
        struct choices c;
        request.strategy = "local";
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.profile = profiles[i];
        request.global_batch = 8; /* two micro-batches of four ranks */
        composed_build(&ir, &c, &request, profiles[i]);
        casts[i] = 0;
        reductions[i] = composed_op_count_of_kind(&ir, WORK_REDUCE_SCATTER, PHASE_COUNT);
        for (uint32_t op = 0; op < ir.op.count; op++)
            if (ir.op.kind[op] == WORK_CAST && ir.op.region[op] == REGION_WEIGHT_COLLECTIVES) {
                casts[i]++;
                bytes_of_casts[i] += work_memory_bytes(&ir.shape[ir.op.shape[op]]);
            }
        ir_release(&ir);
    }
    double parameters = (double)transformer_parameters(&shapes[0]);
    CHECK_INT("as many reductions", reductions[1], reductions[0]);
    CHECK_INT("two passes for each", casts[1] - casts[0], 2 * reductions[1]);
    CHECK_CLOSE("16 bytes a parameter in each micro-batch", bytes_of_casts[1] - bytes_of_casts[0],
                2 * 16 * parameters, 0.02);
}

/* True if a buffer is there while an op runs: from the first op that touches it to the last of its free set. */
static bool is_live_at(const struct ir *ir, uint32_t buffer, uint32_t op)
{
    const op_id *set = ir_free_set(ir, buffer);
    uint32_t first = IR_NONE, last = 0;
    for (uint32_t i = 0; i < ir->op.count && first == IR_NONE; i++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[i] + ir->op.write_count[i]; k++)
            first = ir_touched_buffer(ir, i, k) == buffer ? i : first;
    for (uint32_t k = 0; k < ir->buffer.free_count[buffer]; k++)
        last = set[k].i > last ? set[k].i : last;
    return first <= op && op <= last;
}

/* all: bytes per element of the logits in all tensors of the loss; most: in those that are live at one time. The logits
 * take 2 bytes, and their gradient 2 unless it overwrites them. Megatron-DeepSpeed also has an fp32 copy, the softmax
 * and its logarithm, which live together with the logits. PyTorch (torchtitan, hf) has an fp32 copy and the logarithm
 * of the softmax, then two fp32 gradients that live together with the logarithm. In addition each token takes 4 bytes
 * for its log-sum-exp. */
static void a_loss_keeps_what_its_implementation_does(void)
{
    static const struct {
        const char *profile;
        int64_t all, most;
        int loss;
    } rows[] = {{"neutral", 2, 2, LOSS_PROFILE},
                {"fsdp1", 2 + 2, 4, LOSS_PROFILE},
                {"deepspeed", 2 + 4 + 4 + 4 + 2, 2 + 4 + 4 + 4, LOSS_PROFILE},
                {"megatron", 2 + 4 + 2, 2 + 4, LOSS_PROFILE},
                {"torchtitan", 2 + 4 + 4 + 4 + 4 + 2, 4 + 4 + 4, LOSS_PROFILE},
                {"hf", 2 + 4 + 4 + 4 + 4 + 2, 4 + 4 + 4, LOSS_PROFILE},
                {"torchtitan", 2 + 2, 4, LOSS_COMPILED},
                {"torchtitan", 2, 2, LOSS_TE},
                {"neutral", 2 + 4 + 4 + 4 + 4 + 2, 4 + 4 + 4, LOSS_EAGER},
                {"neutral", 2 + 4 + 4 + 4 + 4 + 2, 2 + 4 + 4 + 4, LOSS_HF},
                {"torchtitan", 2 + 2 + 2 + 2, 2 + 2 + 2 + 2, LOSS_OF_16BIT_LOGITS}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 1);
        struct ir ir;
        struct choices c;
        int64_t all = 0, most = 0;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.loss = rows[i].loss;
        composed_build(&ir, &c, &request, rows[i].profile);
        for (uint32_t op = 0; op < ir.op.count; op++) {
            int64_t live = 0;
            for (uint32_t b = 0; b < ir.buffer.count; b++) {
                if (ir.buffer.category[b] != CATEGORY_LOGITS)
                    continue;
                int64_t bytes = (int64_t)ir_buffer_bytes(&ir, (buffer_id){b});
                all += op == 0 ? bytes : 0;
                live += is_live_at(&ir, b, op) ? bytes : 0;
            }
            most = live > most ? live : most;
        }
        CHECK_INT(rows[i].profile, all, c.seq * (rows[i].all * c.model->vocab + 4));
        CHECK_CLOSE(rows[i].profile, (double)most, (double)(c.seq * rows[i].most * c.model->vocab),
                    0.05);
        ir_release(&ir);
    }
}

/* Returns the most bytes of logits that are live at one time. */
static int64_t peak_bytes_of_logits(const struct ir *ir)
{
    int64_t most = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        int64_t live = 0;
        for (uint32_t b = 0; b < ir->buffer.count; b++)
            if (ir->buffer.category[b] == CATEGORY_LOGITS && is_live_at(ir, b, op))
                live += (int64_t)ir_buffer_bytes(ir, (buffer_id){b});
        most = live > most ? live : most;
    }
    return most;
}

/* The most bytes that a loss has at one time for each logit of a rank's part of the vocabulary: 48
 * columns on each of two tensor ranks. */
static void a_loss_over_parts_keeps_what_its_implementation_does(void)
{
    static const struct {
        int loss;
        int64_t most;
    } rows[] = {{LOSS_TE, 2}, {LOSS_COMPILED, 4}, {LOSS_MEGATRON, 6}, {LOSS_PARALLEL, 16}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 2);
        struct ir ir;
        struct choices c;
        request.strategy = "local";
        request.profile = "torchtitan";
        request.tp = 2;
        request.seq = 1024;
        request.loss = rows[i].loss;
        composed_build(&ir, &c, &request, loss_names[rows[i].loss]);
        /* and at most 44 bytes a row of statistics */
        CHECK_CLOSE(loss_names[rows[i].loss], (double)peak_bytes_of_logits(&ir),
                    (double)(c.seq * (rows[i].most * 48 + 22)), 22.0 / 48 / 2);
        ir_release(&ir);
    }
}

/* A layer's four products leave a 16-bit placeholder each where gradients are added by the products themselves. */
static void megatron_holds_placeholders_of_gradients(void)
{
    static const struct {
        const char *profile;
        int64_t tp, bytes;
    } rows[] = {
        {"neutral", 1, 0},
        {"megatron", 1, 2 * (192 * 64 + 64 * 64 + 192 * 64 + 64 * 96)},
        {"megatron-te", 2, 192 * 64 + 64 * 64 + 192 * 64 + 64 * 96},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 2);
        struct diag diag = {0};
        struct choices c;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.tp = rows[i].tp;
        CHECK_INT("resolve", resolve_choices(&c, &request, NULL, &diag), STATUS_OK);
        CHECK_INT(rows[i].profile, step_bucket_bytes(&c), rows[i].bytes);
        diag_release(&diag);
    }
}

/* The profile internlm copies each whole gradient three times, and does an all-reduce as a reduce-scatter and a
 * gather, once per step for any number of micro-batches. Parameters are gathered as in internevo. */
static void internlm_all_reduces_flat_buckets(void)
{
    static const char *const profiles[] = {"internevo", "internlm"};
    int64_t casts[2], scatters[2], gathers[2];
    double bytes_of_casts[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct request request = composed_request(0, 4);
        struct ir ir;
        struct choices c;
        request.strategy = "local";
        request.weights = CHOICE_WEIGHTS_ZERO1;
        request.profile = profiles[i];
        request.global_batch = 8; /* two micro-batches of four ranks */
        composed_build(&ir, &c, &request, profiles[i]);
        casts[i] = composed_op_count_of_kind(&ir, WORK_CAST, PHASE_COUNT);
        scatters[i] = composed_op_count_of_kind(&ir, WORK_REDUCE_SCATTER, PHASE_COUNT);
        gathers[i] = composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT);
        for (uint32_t op = 0; op < ir.op.count; op++)
            if (ir.op.kind[op] == WORK_CAST)
                bytes_of_casts[i] += work_memory_bytes(&ir.shape[ir.op.shape[op]]);
        struct cost_elementwise_chain chain[WORK_KIND_COUNT];
        chains_fill_for_choices(c.profile, &c, true, chain);
        CHECK_INT("AdamW is one kernel, or an operator after the other",
                  chain[WORK_ADAMW].kernel_count, i == 0 ? 0 : 12);
        ir_release(&ir);
    }
    double parameters = (double)transformer_parameters(&shapes[0]);
    CHECK_INT("as many reductions", scatters[1], scatters[0]);
    CHECK_INT("three copies for each", casts[1] - casts[0], 3 * scatters[1]);
    CHECK_CLOSE("12 bytes a parameter", bytes_of_casts[1] - bytes_of_casts[0], 12 * parameters,
                0.02);
    CHECK_INT("a gather for each", gathers[1] - gathers[0], scatters[1]);
}

/* DTensor runs operators in addition to the kernels of one rank: it sums gradients of gathered tokens,
 * computes the loss operator by operator, and makes the gradient of the whole embedding, whose rows
 * of other ranks are clipped where FSDP does not shard them. */
static void dtensor_adds_operators(void)
{
    static const struct {
        const char *label;
        int plan, weights, loss, kernels;
        double sums, loss_bytes;
        uint32_t clips, reductions;
    } rows[] = {
        /* all-reduces: gradients of norms of two layers and of the last one, the norm of all gradients; two of the
         * loss; each norm for clipping and for AdamW */
        {"a plan of modules", TENSOR_PLAN_GATHER_PER_MODULE, CHOICE_WEIGHTS_REPLICATED, 0, 0,
         92 + 18, 32, 5, 3 + 1 + 2 + 2 * 5},
        {"compiled", TENSOR_PLAN_GATHER_PER_MODULE, CHOICE_WEIGHTS_REPLICATED, 0, KERNELS_COMPILED,
         6 + 6, 16, 5, 3 + 1 + 2 + 2 * 5},
        {"FSDP", TENSOR_PLAN_GATHER_PER_MODULE, CHOICE_WEIGHTS_ZERO3, 0, 0, 92 + 18, 32, 4,
         3 + 1 + 2},
        {"a plan of linear layers", TENSOR_PLAN_GATHER_PER_LINEAR, CHOICE_WEIGHTS_ZERO3, 0, 0,
         92 + 9, 32, 4, 3 + 1 + 2},
        {"another loss", TENSOR_PLAN_GATHER_PER_MODULE, CHOICE_WEIGHTS_ZERO3, LOSS_MEGATRON, 0,
         92 + 18, 0, 4, 3 + 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 2);
        struct cost_elementwise_chain chain[WORK_KIND_COUNT];
        struct ir ir;
        struct choices c;
        request.strategy = "megatron-sp";
        request.profile = "torchtitan";
        request.tp = 2;
        request.tensor_plan = rows[i].plan;
        request.weights = rows[i].weights;
        request.loss = rows[i].loss;
        request.kernels = rows[i].kernels;
        composed_build(&ir, &c, &request, rows[i].label);
        chains_fill_for_choices(c.profile, &c, true, chain);
        CHECK_CLOSE(rows[i].label, chain[WORK_RMSNORM_BACKWARD].bytes_per_element, rows[i].sums, 0);
        CHECK_CLOSE(rows[i].label, chain[WORK_CROSS_ENTROPY_PARTIAL].bytes_per_element,
                    rows[i].loss_bytes, 0);
        CHECK_CLOSE(rows[i].label, chain[WORK_EMBEDDING].bytes_per_element, 8, 0);
        int64_t whole = 0;
        uint32_t clips = 0;
        for (uint32_t op = 0; op < ir.op.count; op++) {
            if (ir.op.kind[op] == WORK_EMBEDDING_BACKWARD)
                whole = ir_work(&ir, op)->embedding.total;
            clips += ir.op.kind[op] == WORK_CLIP;
        }
        CHECK_INT(rows[i].label, whole, 2 * 51); /* of 101 rows */
        CHECK_INT(rows[i].label, composed_op_count_of_kind(&ir, WORK_ALL_REDUCE, PHASE_COUNT),
                  rows[i].reductions);
        CHECK_INT(rows[i].label, clips, rows[i].clips);
        ir_release(&ir);
    }
}

/* Two stages of two layers each, embedding on the first and head on the last one, and four micro-batches in 1F1B order:
 * F0 F1 B0 F2 B1 F3 B2 B3 on the first, F0 B0 F1 B1 F2 B2 F3 B3 on the last. A layer is gathered for each forward that
 * does not follow a backward, and for each backward that follows a forward: 5 times on either stage. Where the root is
 * freed too, the embedding is gathered for each forward, the head as a layer is. */
static void fsdp_gathers_and_reduces_as_asked(void)
{
    static const struct {
        const char *label, *profile;
        int pp, grad_sync, reshard;
        uint32_t gathers, scatters;
    } rows[] = {
        /* label, profile, pp, grad_sync, reshard, gathers, scatters */
        {"stages keep what they gathered", "torchtitan", 2, 0, 0, 6, 6},
        {"stages free it after a forward", "torchtitan", 2, 0, RESHARD_ALWAYS, 22, 6},
        {"stages free their root, too", "torchtitan", 2, 0, RESHARD_ROOT, 20 + 4 + 5, 6},
        {"stages reduce in each micro-batch", "torchtitan", 2, GRAD_SYNC_EACH, 0, 6, 24},
        {"each micro-batch", "torchtitan", 1, 0, 0, 36, 20},
        {"the last micro-batch", "torchtitan", 1, GRAD_SYNC_LAST, 0, 36, 5},
        {"Accelerate's no_sync(), and its root that is freed", "hf", 1, 0, 0, 40, 5},
        {"a root that stays", "hf", 1, 0, RESHARD_ALWAYS, 36, 5},
        {"on the host", "torchtitan", 1, GRAD_SYNC_LAST, RESHARD_NEVER, 20, 5},
        {"kept from forward to backward", "torchtitan", 1, 0, RESHARD_NEVER, 20, 20},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct transformer model = shapes[0];
        struct request request = composed_request(0, 4);
        model.layers = 4;
        request.model = &model;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.pp = rows[i].pp;
        request.pipeline = rows[i].pp > 1 ? CHOICE_PIPELINE_1F1B : 0;
        request.grad_sync = rows[i].grad_sync;
        request.reshard = rows[i].reshard;
        request.global_batch = 4 * request.ranks / rows[i].pp;
        struct choices c;
        struct ir ir;
        bool host = strcmp(rows[i].label, "on the host") == 0;
        request.optimizer = host ? CHOICE_OPTIMIZER_HOST : CHOICE_OPTIMIZER_DEVICE;
        request.parameters = host ? PARAMETERS_HOST : PARAMETERS_DEVICE;
        composed_build(&ir, &c, &request, rows[i].label);
        CHECK_INT("a copy to the device for each gather",
                  composed_op_count_of_kind(&ir, WORK_H2D, PHASE_COUNT),
                  host ? rows[i].gathers : 0);
        CHECK_INT(rows[i].label, composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT),
                  rows[i].gathers);
        CHECK_INT(rows[i].label, composed_op_count_of_kind(&ir, WORK_REDUCE_SCATTER, PHASE_COUNT),
                  rows[i].scatters);
        ir_release(&ir);
    }
}

/* Megatron sums gradients in fp32, or with --gradients 16bit in the dtype of compute: half the bytes of each whole
 * gradient, and of each reduction. DeepSpeed has 16 bits, and fp32 is twice as much. */
static void gradients_have_the_numbers_asked_for(void)
{
    static const struct {
        const char *profile;
        int gradients;
        enum dtype dtype;
    } rows[] = {
        {"megatron", GRADIENTS_PROFILE, DTYPE_F32}, {"megatron", GRADIENTS_FP32, DTYPE_F32},
        {"megatron", GRADIENTS_16BIT, DTYPE_BF16},  {"deepspeed", GRADIENTS_PROFILE, DTYPE_BF16},
        {"deepspeed", GRADIENTS_16BIT, DTYPE_BF16}, {"deepspeed", GRADIENTS_FP32, DTYPE_F32},
    };
    double wide = 0; /* bytes of all reductions in fp32 */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 4);
        struct choices c;
        struct ir ir;
        double reduced = 0;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.weights = CHOICE_WEIGHTS_ZERO1;
        request.gradients = rows[i].gradients;
        composed_build(&ir, &c, &request, rows[i].profile);
        CHECK_INT(rows[i].profile, weights_grad_dtype(&c), rows[i].dtype);
        for (uint32_t op = 0; op < ir.op.count; op++)
            if (ir.op.kind[op] == WORK_REDUCE_SCATTER)
                reduced += (double)ir.shape[ir.op.shape[op]].collective.bytes;
        wide = i == 0 ? reduced : wide;
        CHECK("there are reductions", reduced > 0);
        CHECK_CLOSE(rows[i].profile, reduced, rows[i].dtype == DTYPE_F32 ? wide : wide / 2, 0.01);
        ir_release(&ir);
    }
}

/* Liger's fused loss multiplies three times by the head in each piece, cut cross entropy four times, once of these for
 * the backward to make the logits again. */
static void a_cut_loss_multiplies_once_more(void)
{
    static const int losses[] = {LOSS_FUSED, LOSS_CUT_CROSS_ENTROPY};
    uint32_t products[2] = {0}, again[2] = {0}, pieces[2] = {0}, gathers[2];
    for (size_t i = 0; i < ARRAY_LEN(losses); i++) {
        struct request request = composed_request(0, 4);
        struct choices c;
        struct ir ir;
        request.strategy = "local";
        request.profile = "hf";
        request.loss = losses[i];
        request.loss_chunks = 4;
        request.weights = CHOICE_WEIGHTS_ZERO3;
        composed_build(&ir, &c, &request, loss_names[losses[i]]);
        for (uint32_t op = 0; op < ir.op.count; op++) {
            const bool product = ir.op.kind[op] == WORK_MATMUL && ir.op.region[op] == REGION_LOSS;
            products[i] += product;
            again[i] += product && ir.op.phase[op] == PHASE_RECOMPUTE;
        }
        gathers[i] = composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT);
        pieces[i] = c.loss_chunks * c.accumulation;
        ir_release(&ir);
    }
    CHECK("several pieces", pieces[0] >= 4);
    CHECK_INT("the root is gathered once in the forward, and once for the backward", gathers[0],
              gathers[1]);
    CHECK_INT("pieces", pieces[1], pieces[0]);
    CHECK_INT("fused", products[0], 3 * pieces[0]);
    CHECK_INT("cut", products[1], 4 * pieces[1]);
    CHECK_INT("logits made again", again[1], pieces[1]);
    CHECK_INT("none", again[0], 0);
}

/* Stages of torch.distributed.pipelining reduce after the backward of their last micro-batch; without stages the last
 * layer's gradient is reduced while others are computed. */
static void stages_of_pytorch_reduce_after_the_backward(void)
{
    for (int pp = 1; pp <= 2; pp++) {
        struct request request = composed_request(0, 4);
        struct choices c;
        struct ir ir;
        request.strategy = "local";
        request.profile = "torchtitan";
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.pp = pp;
        request.pipeline = pp > 1 ? CHOICE_PIPELINE_1F1B : 0;
        request.grad_sync = GRAD_SYNC_LAST;
        request.global_batch = 4 * request.ranks / pp;
        composed_build(&ir, &c, &request, "torchtitan");
        uint32_t early = 0;
        for (uint32_t role = 0; role < ir.role_count; role++) {
            uint32_t last = 0;
            for (uint32_t op = 0; op < ir.op.count; op++)
                if (ir_role_of_op(&ir, op) == role && ir.op.kind[op] == WORK_MATMUL)
                    last = op;
            for (uint32_t op = 0; op < last; op++)
                early += ir_role_of_op(&ir, op) == role && ir.op.kind[op] == WORK_REDUCE_SCATTER;
        }
        CHECK_INT("reductions before the last product", early > 0, pp == 1);
        ir_release(&ir);
    }
}

/* With --states bf16 FSDP2 reduces in its reduce_dtype, fp32, and keeps the sums in bf16; a rank that shares its
 * weights with none has bf16 gradients, and so has a framework that reduces in the dtype of the parameters. */
static void fsdp2_reduces_bf16_gradients_in_fp32(void)
{
    static const struct {
        const char *profile;
        uint32_t ranks;
        enum dtype whole;
    } rows[] = {{"torchtitan", 4, DTYPE_F32}, {"torchtitan", 1, DTYPE_BF16}, {"hf", 4, DTYPE_BF16}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, rows[i].ranks);
        struct choices c;
        struct ir ir;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.states = STATES_BF16;
        request.grad_sync = GRAD_SYNC_LAST;
        request.global_batch = 2 * rows[i].ranks;
        composed_build(&ir, &c, &request, rows[i].profile);
        uint32_t wrong = 0, parts = 0;
        for (uint32_t b = 0; b < ir.buffer.count; b++) {
            if (ir.buffer.binding[b] == IR_NONE16 || ir.buffer.category[b] != CATEGORY_GRADIENT)
                continue;
            bool part = ir.binding[ir.buffer.binding[b]].shard_group != IR_NONE16;
            parts += part;
            wrong += ir.buffer.dtype[b] != (part ? DTYPE_BF16 : rows[i].whole);
        }
        CHECK_INT(rows[i].profile, wrong, 0);
        CHECK_INT("a part for each bundle", parts, rows[i].ranks > 1 ? 3 : 0);
        ir_release(&ir);
    }
}

/* With one micro-batch nothing accumulates, so no rank holds a whole gradient longer than its reduction. */
static void one_micro_batch_accumulates_nothing(void)
{
    for (int64_t sequences = 4; sequences <= 8; sequences += 4) {
        struct request request = composed_request(0, 4);
        request.strategy = "local";
        request.profile = "hf";
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.global_batch = sequences;
        struct choices c;
        struct ir ir;
        composed_build(&ir, &c, &request, "hf");
        int64_t whole = 0;
        for (uint32_t b = 0; b < ir.buffer.count; b++)
            whole += ir.buffer.binding[b] != IR_NONE16 &&
                     ir.buffer.category[b] == CATEGORY_GRADIENT &&
                     ir.binding[ir.buffer.binding[b]].shard_group == IR_NONE16;
        CHECK_INT("whole gradients that last: root and two layers", whole, sequences > 4 ? 3 : 0);
        ir_release(&ir);
    }
}

/* Each kind of vocabulary on two tensor ranks: the rows of embedding and head that a rank holds,
 * the all-gathers, and the columns of the product of the head. */
static void tensor_ranks_hold_the_vocabulary_as_asked(void)
{
    static const struct {
        int vocabulary, plan;
        int64_t tables; /* rows of embedding and head on a rank */
        uint32_t gathers, products;
    } rows[] = {
        /* vocabulary, plan, tables, gathers, products */
        {VOCABULARY_CUT, TENSOR_PLAN_REPLICATED, 48 + 48, 1, 48},
        {VOCABULARY_GATHERED, TENSOR_PLAN_REPLICATED, 96 + 48, 1, 48},
        {VOCABULARY_WHOLE, TENSOR_PLAN_REPLICATED, 96 + 96, 0, 96},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 2);
        request.strategy = "local";
        request.profile = "torchtitan";
        request.weights = CHOICE_WEIGHTS_REPLICATED;
        request.tp = 2;
        request.tensor_plan = rows[i].plan;
        request.vocabulary = rows[i].vocabulary;
        struct choices c;
        struct ir ir;
        composed_build(&ir, &c, &request, vocabulary_names[rows[i].vocabulary]);
        int64_t tables = 0;
        for (uint32_t t = 0; t < ir.tensor_count; t++) {
            const struct tensor *x = &ir.tensor[t];
            if (strcmp(x->name, "embedding.weight") == 0 || strcmp(x->name, "head.weight") == 0)
                tables += x->rows / (x->axes_that_cut_rows_and_columns[0] != 0 ? 2 : 1);
        }
        CHECK_INT("rows of both tables", tables, rows[i].tables);
        CHECK_INT("gathers", composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT),
                  rows[i].gathers);
        uint32_t heads = 0;
        for (uint32_t op = 0; op < ir.op.count; op++)
            heads += ir.op.kind[op] == WORK_MATMUL && ir.op.region[op] == REGION_LOSS &&
                     ir.op.phase[op] == PHASE_FORWARD &&
                     ir.shape[ir.op.shape[op]].matmul.n == rows[i].products;
        CHECK_INT("the product of the head", heads, 1);
        ir_release(&ir);
    }
}

/* Rows of the vocabulary per rank that Megatron-LM's tokenizer prints: 50257 is padded to a multiple of 128 tp. */
static void megatron_pads_the_vocabulary(void)
{
    static const struct {
        int64_t tp, rows;
    } rows[] = {{2, 25216}, {8, 6400}, {16, 3200}, {64, 896}};
    struct transformer model = shapes[0];
    model.vocab = 50257;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        model.heads = model.kv_heads = rows[i].tp;
        CHECK_INT("rows", tensor_share_of_model(&model, rows[i].tp, 128).vocab, rows[i].rows);
        CHECK_INT("as many as there are", tensor_share_of_model(&model, rows[i].tp, 1).vocab,
                  (model.vocab + rows[i].tp - 1) / rows[i].tp);
    }
    CHECK_INT("fits", (model.vocab = 51200, tensor_share_of_model(&model, 8, 128).vocab), 6400);
}

static bool op_writes_gradients(const struct ir *ir, uint32_t op)
{
    for (uint32_t k = ir->op.read_count[op];
         k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++)
        if (ir->buffer.category[ir_touched_buffer(ir, op, k)] == CATEGORY_GRADIENT)
            return ir->op.kind[op] == WORK_MATMUL;
    return false;
}

/* With profile megatron the first reduce-scatter follows the last product that adds to gradients, and each
 * reduced bundle has one pass that zeroes its gradient and one that looks for values that are not finite. With
 * megatron-te reductions start during the backward, without such passes. */
static void megatron_reduces_after_the_backward(void)
{
    static const struct {
        const char *profile;
        bool at_end;
    } rows[] = {{"megatron", true}, {"megatron-te", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 4);
        struct ir ir;
        struct choices choices;
        request.strategy = "local";
        request.profile = rows[i].profile;
        request.weights = CHOICE_WEIGHTS_ZERO1;
        request.global_batch = 8;
        if (!composed_build(&ir, &choices, &request, rows[i].profile))
            continue;
        uint32_t last = 0, first = IR_NONE, zeroed = 0, looked_through = 0, bundles = 0;
        for (uint32_t op = 0; op < ir.op.count; op++) {
            enum work_kind kind = (enum work_kind)ir.op.kind[op];
            last = op_writes_gradients(&ir, op) ? op : last;
            first = kind == WORK_REDUCE_SCATTER && first == IR_NONE ? op : first;
            bundles += kind == WORK_REDUCE_SCATTER;
            bool whole =
                ir.op.phase[op] == PHASE_BACKWARD && ir.op.region[op] == REGION_WEIGHT_COLLECTIVES;
            zeroed += whole && kind == WORK_FILL;
            looked_through += whole && kind == WORK_SQUARE_SUM;
        }
        CHECK(rows[i].profile, (first > last) == rows[i].at_end);
        CHECK(rows[i].profile, zeroed == (rows[i].at_end ? bundles : 0));
        CHECK(rows[i].profile, looked_through == (rows[i].at_end ? bundles : 0));
        ir_release(&ir);
    }
}

/* DeepSpeed reduces 16-bit gradients in fp32 where ranks share a sequence: twice the bytes, with a cast before
 * each reduction and one after it. In a second micro-batch the sum is also added to that of the first. */
static void deepspeed_reduces_shared_sequences_in_fp32(void)
{
    static const struct {
        const char *label, *strategy, *profile;
        int64_t hp, batch;
        bool wide;
    } rows[] = {
        /* label, strategy, profile, hp, batch, wide */
        {"shared", "ulysses", "deepspeed", 4, 1, true},
        {"shared by some, two micro-batches", "ulysses", "deepspeed", 2, 4, true},
        {"not shared", "local", "deepspeed", 1, 4, false},
        {"another framework", "ulysses", "internevo", 4, 1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 4);
        struct ir ir;
        struct choices choices;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.hp = rows[i].hp;
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.micro_batch = 1;
        request.global_batch = rows[i].batch;
        if (!composed_build(&ir, &choices, &request, rows[i].label))
            continue;
        uint64_t bytes = 0, elements = 0;
        uint32_t reductions = 0, casts = 0;
        for (uint32_t op = 0; op < ir.op.count; op++) {
            if (ir.op.phase[op] != PHASE_BACKWARD || ir.op.region[op] != REGION_WEIGHT_COLLECTIVES)
                continue;
            casts += ir.op.kind[op] == WORK_CAST;
            if (ir.op.kind[op] != WORK_REDUCE_SCATTER)
                continue;
            reductions++;
            bytes += (uint64_t)ir.shape[ir.op.shape[op]].collective.bytes;
            elements += ir_buffer_elements(&ir, (buffer_id){ir_touched_buffer(&ir, op, 0)});
        }
        CHECK(rows[i].label, reductions > 0 && bytes == elements * (rows[i].wide ? 4 : 2));
        CHECK(rows[i].label, casts == (rows[i].wide ? 2 * reductions : 0));
        ir_release(&ir);
    }
}

/* FSDP2 copies what it gathered out of a buffer, once for each gather; FSDP1's parameters are views of it. */
static void fsdp2_copies_what_it_gathered(void)
{
    static const struct {
        const char *profile;
        int64_t gathers, copies;
    } rows[] = {{"torchtitan", 5, 5}, {"hf", 6, 6}, {"fsdp1", 5, 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 4);
        struct ir ir;
        struct choices c;
        int64_t copies = 0;
        request.strategy = "local";
        request.weights = CHOICE_WEIGHTS_ZERO3;
        request.profile = rows[i].profile;
        composed_build(&ir, &c, &request, rows[i].profile);
        CHECK_INT(rows[i].profile, composed_op_count_of_kind(&ir, WORK_ALL_GATHER, PHASE_COUNT),
                  rows[i].gathers);
        for (uint32_t op = 0; op < ir.op.count; op++)
            copies += ir.op.kind[op] == WORK_PACK && ir.op.region[op] == REGION_WEIGHT_COLLECTIVES;
        CHECK_INT(rows[i].profile, copies, rows[i].copies);
        ir_release(&ir);
    }
}

static const struct check_case cases[] = {
    {"weights move as the table says", weights_move_as_the_table_says},
    {"FSDP1 passes over gradients before each reduction",
     fsdp1_passes_over_gradients_before_each_reduction},
    {"a loss keeps what its implementation does", a_loss_keeps_what_its_implementation_does},
    {"a loss over parts keeps what its implementation does",
     a_loss_over_parts_keeps_what_its_implementation_does},
    {"Megatron holds placeholders of gradients", megatron_holds_placeholders_of_gradients},
    {"InternLM all-reduces flat buckets", internlm_all_reduces_flat_buckets},
    {"DTensor does more than a rank's part", dtensor_adds_operators},
    {"a cut loss multiplies once more", a_cut_loss_multiplies_once_more},
    {"gradients have the numbers asked for", gradients_have_the_numbers_asked_for},
    {"FSDP gathers and reduces as asked", fsdp_gathers_and_reduces_as_asked},
    {"stages of PyTorch reduce after the backward", stages_of_pytorch_reduce_after_the_backward},
    {"FSDP2 reduces bf16 gradients in fp32", fsdp2_reduces_bf16_gradients_in_fp32},
    {"one micro-batch accumulates nothing", one_micro_batch_accumulates_nothing},
    {"tensor ranks hold the vocabulary as asked", tensor_ranks_hold_the_vocabulary_as_asked},
    {"megatron pads the vocabulary", megatron_pads_the_vocabulary},
    {"Megatron reduces after the backward", megatron_reduces_after_the_backward},
    {"FSDP2 copies what it gathered", fsdp2_copies_what_it_gathered},
    {"DeepSpeed reduces shared sequences in fp32", deepspeed_reduces_shared_sequences_in_fp32},
};
CHECK_MAIN("compose_profiles", cases)
