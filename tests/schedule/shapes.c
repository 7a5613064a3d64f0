/* The transformers, and random requests: a choice is drawn among those that the choices before it allow, or is set
 * to what later ones require. */
#include "tests/schedule/shapes.h"
#include "schedule/choices/strategies.h"

#include <stdio.h>

/* clang-format off */
const struct transformer shapes[SHAPE_COUNT] = {
    {.name = "mha", .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 4, .head_dim = 16, .ffn = 96, .vocab = 101,
     .activation = ACTIVATION_SWIGLU, .norm = NORM_RMSNORM, .positions = POSITIONS_ROPE, .rope_theta = 1e4, .norm_eps = 1e-5},
    {.name = "gqa", .layers = 3, .hidden = 64, .heads = 8, .kv_heads = 2, .head_dim = 8, .ffn = 80, .vocab = 96,
     .activation = ACTIVATION_SWIGLU, .norm = NORM_RMSNORM, .positions = POSITIONS_ROPE, .rope_theta = 1e4, .norm_eps = 1e-5},
    {.name = "mqa", .layers = 1, .hidden = 32, .heads = 4, .kv_heads = 1, .head_dim = 16, .ffn = 48, .vocab = 61,
     .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .positions = POSITIONS_NONE, .norm_eps = 1e-5, .bias_ffn = true},
    {.name = "gpt", .layers = 2, .hidden = 48, .heads = 4, .kv_heads = 4, .head_dim = 12, .ffn = 192, .vocab = 97,
     .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .positions = POSITIONS_LEARNED, .max_positions = 256,
     .norm_eps = 1e-5, .bias_qkv = true, .bias_o = true, .bias_ffn = true, .tied_head = true},
    {.name = "qwen", .layers = 2, .hidden = 40, .heads = 8, .kv_heads = 4, .head_dim = 16, .ffn = 64, .vocab = 128,
     .activation = ACTIVATION_SWIGLU, .norm = NORM_RMSNORM, .positions = POSITIONS_ROPE, .rope_theta = 1e6, .norm_eps = 1e-6,
     .qk_norm = true, .tied_head = true},
    {.name = "rotary-gpt", .layers = 5, .hidden = 32, .heads = 4, .kv_heads = 4, .head_dim = 8, .ffn = 128, .vocab = 50,
     .activation = ACTIVATION_GELU, .norm = NORM_LAYERNORM, .positions = POSITIONS_ROPE, .rope_theta = 1e4, .norm_eps = 1e-5,
     .bias_qkv = true, .bias_o = true, .bias_ffn = true, .tied_head = true},
};
/* clang-format on */

struct request shapes_random_request(struct check_random *random, int64_t max_ranks, bool f32)
{
    size_t strategies, profiles;
    const struct strategy *strategy = strategies_list(&strategies);
    const struct profile *profile = profiles_list(&profiles);
    const struct transformer *model = &shapes[check_random_i64(random, 0, SHAPE_COUNT - 1)];
    size_t row = (size_t)check_random_i64(random, 0, (int64_t)strategies - 1);
    uint8_t attention = strategy[row].attention;
    struct attention_axes axes = attention_axes[attention];
    int64_t hp = 1, cp = 1, dp = 1, tp = 1, window = 1;
    if (axes.cp)
        while (2 * cp <= max_ranks && check_random_i64(random, 0, 2) > 0)
            cp *= 2;
    /* chunks: the sequence is cut into chunks (FPDT). staged: heads are exchanged in stages (UPipe). whole: weights
     * are not cut by tp. */
    bool chunks = attention == CHOICE_ATTENTION_FPDT, staged = attention == CHOICE_ATTENTION_UPIPE;
    bool whole = chunks || staged;
    /* the degrees: each is doubled a random number of times, as long as the ranks and the heads allow it */
    if (axes.hp)
        while (2 * cp * hp <= max_ranks && model->heads % (2 * hp) == 0 &&
               (!staged || model->kv_heads % (2 * hp) == 0) && check_random_i64(random, 0, 2) > 0)
            hp *= 2;
    while (!whole && 2 * tp * cp * hp <= max_ranks && model->heads % (2 * tp * hp) == 0 &&
           (model->kv_heads % (2 * tp) == 0 || (2 * tp) % model->kv_heads == 0) &&
           check_random_i64(random, 0, 2) == 0)
        tp *= 2;
    while (2 * dp * cp * hp * tp <= max_ranks && check_random_i64(random, 0, 1) > 0)
        dp *= 2;
    while (2 * window <= cp && check_random_i64(random, 0, 1) > 0)
        window *= 2;
    size_t whose = (size_t)check_random_i64(random, 0, (int64_t)profiles - 1);
    /* a separate generator: what it draws does not change the draws of the other choices */
    struct check_random own = {random->state ^ 0x9e3779b97f4a7c15u};
    int rotate = (int)check_random_i64(&own, 0, ROTATION_COUNT - 1);
    if ((rotate != ROTATE_PROFILE ? rotate : profile[whose].rotation) != ROTATE_P2P ||
        profile[whose].ring_keeps_blocks)
        window = 1;
    struct request request = {
        .model = model,
        .strategy = strategy[row].name,
        .profile = profile[whose].name,
        .weights = (int)check_random_i64(random, 0, CHOICE_WEIGHTS_COUNT - 1),
        .activations = (int)check_random_i64(random, 0, CHOICE_ACTIVATIONS_COUNT - 1),
        .optimizer = (int)check_random_i64(random, 0, CHOICE_OPTIMIZER_COUNT - 1),
        .attention_impl = f32 ? ATTENTION_CPU : -1,
        .dtype = f32 ? DTYPE_F32 : -1,
        .states = f32 ? STATES_FP32 : (int)check_random_i64(&own, 0, STATES_COUNT - 1),
        .ranks = dp * cp * hp * tp,
        .dp = dp,
        .cp = cp,
        .hp = hp,
        .tp = tp,
        .ring_window = window,
        .rotation = rotate,
        .tensor_plan = (int)check_random_i64(&own, 0, TENSOR_PLAN_COUNT - 1),
        .grad_sync = (int)check_random_i64(&own, 0, GRAD_SYNC_COUNT - 1),
        .reshard = (int)check_random_i64(&own, 0, RESHARD_COUNT - 1),
        .gradients = f32 || check_random_i64(&own, 0, 1) ? GRADIENTS_PROFILE : GRADIENTS_16BIT,
        .placement = (int)check_random_i64(random, 0, PLACEMENT_COUNT - 1),
        .ring_layout = (int)check_random_i64(random, 0, RING_LAYOUT_COUNT - 1),
        .windows = (int)check_random_i64(random, 0, WINDOWS_CONTIGUOUS),
        .seq = 8 * hp * cp * tp * check_random_i64(random, 1, 4),
        .micro_batch = check_random_i64(random, 1, 2),
        .loss_chunks = check_random_i64(random, 1, 3),
        .ffn_chunks = check_random_i64(random, 1, 3),
        .sm = 80,
        .gpus_per_node = 2,
    };
    if (chunks) {
        request.chunk_tokens = hp * check_random_i64(random, 1, request.seq / hp);
        request.kv_offload = (int)check_random_i64(random, 0, KV_OFFLOAD_COUNT - 1);
        request.chunk_order = (int)check_random_i64(random, 0, ORDER_COUNT - 1);
        if (hp > 1 && request.kv_offload == KV_OFFLOAD_ON)
            request.chunk_fetch = (int)check_random_i64(random, 0, FETCH_COUNT - 1);
    }
    request.global_batch = dp * request.micro_batch * check_random_i64(random, 1, 3);
    if (request.weights == CHOICE_WEIGHTS_HSDP) {
        request.shard = 1;
        while (2 * request.shard <= request.ranks / tp && check_random_i64(random, 0, 1) > 0)
            request.shard *= 2;
    }
    if (request.weights == CHOICE_WEIGHTS_REPLICATED && request.ranks > 1)
        request.optimizer = CHOICE_OPTIMIZER_DEVICE;
    return request;
}

const char *shapes_request_label(const struct request *r, char *text, size_t size)
{
    snprintf(text, size,
             "%s %s %s %s %s %s ranks %lld dp %lld cp %lld hp %lld tp %lld window %lld %s %s %s "
             "shard %lld seq %lld batch %lld micro %lld loss %lld ffn %lld "
             "chunk %lld %s %s fetch %s",
             r->model->name, r->strategy, r->profile, weights_names[r->weights],
             activations_names[r->activations], optimizer_names[r->optimizer], (long long)r->ranks,
             (long long)r->dp, (long long)r->cp, (long long)r->hp, (long long)r->tp,
             (long long)r->ring_window, rotation_names[r->rotation], placement_names[r->placement],
             ring_layout_names[r->ring_layout], (long long)r->shard, (long long)r->seq,
             (long long)r->global_batch, (long long)r->micro_batch, (long long)r->loss_chunks,
             (long long)r->ffn_chunks, (long long)r->chunk_tokens, kv_offload_names[r->kv_offload],
             chunk_order_names[r->chunk_order], fetch_names[r->chunk_fetch]);
    return text;
}
