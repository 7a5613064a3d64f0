/* Untied Ulysses ("UPipe": Ghadia et al., arXiv 2602.21196): Ulysses in stages of one query head per rank. A stage
 * projects its heads, exchanges them, runs the core and exchanges the output, so that q and the sent buffers exist for
 * one stage only, and k and v for the stages that share them. The P ranks of a head group hold G = heads / P query
 * heads each; stage g takes the g-th of every rank. Key and value heads (K = kv_heads / P per rank) are sent once for
 * the G / K stages whose queries share them (the paper's schedule for grouped queries).
 *
 * The backward projects and exchanges the heads of a stage again, so that only the normed input, the output and its
 * statistics are saved. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/choices/profile.h"

/* The parts of the projection's result; PARTS is their number. */
enum qkv_part { Q, K, V, PARTS };
/* The heads of one of q, k and v. weight, bias: its rows of wqkv and of the bias, sorted by stage: [heads_per_rank,
 * P head_dim, hidden] and [heads_per_rank, P head_dim]. bias is empty if the model has none. */
struct heads {
    int64_t heads_per_rank;
    struct view weight, bias;
};

struct upipe {
    struct emit *e;
    uint32_t layer;
    struct head_exchange exchange;
    int64_t columns_of_stage; /* P head_dim: columns of one stage on all ranks together */
    int64_t sequence;         /* index of the sequence in the micro-batch */
    struct heads heads[PARTS];
};

/* One of q, k and v of a stage: a rank's head on all tokens of the head group, [group_tokens, head_dim], and the
 * tensors that its backward reads. */
struct scattered_heads {
    struct view heads_of_all_ranks;
    struct view unnormed_heads; /* [n, P head_dim] before the per-head norm, if there is one */
    buffer_id rstd;
};

/* Returns x[rows, count, width] reordered to [count, rows, width]. */
static struct view emit_transpose_to_count_first(struct emit *e, struct view x, const char *stem,
                                                 int64_t rows, int64_t count, int64_t width)
{
    if (count == 1)
        return x;
    struct view y = emit_compute_tensor(e, stem, CATEGORY_ACTIVATION, count * rows, width);
    return emit_pack_or_unpack(e, WORK_PACK, x, y, rows, count, width);
}

static struct upipe upipe_of(struct emit *e, uint32_t layer)
{
    struct upipe u = {.e = e, .layer = layer, .exchange = exchange_of_layer(e, layer)};
    const struct head_exchange *z = &u.exchange;
    struct view weight = weight_view(e, layer, WEIGHT_QKV);
    struct view bias = optional_weight_view(e, layer, WEIGHT_QKV_BIAS);
    int64_t h = e->choices->model->hidden, row = 0;
    u.columns_of_stage = z->head_ranks * z->head_dim;
    for (enum qkv_part p = Q; p < PARTS; p++) {
        struct heads *heads = &u.heads[p];
        heads->heads_per_rank = (p == Q ? z->heads : z->kv_heads) / z->head_ranks;
        int64_t rows = heads->heads_per_rank * u.columns_of_stage;
        heads->weight =
            emit_transpose_to_count_first(e, view_slice(weight, row * h, rows * h), "wqkv_staged",
                                          z->head_ranks, heads->heads_per_rank, z->head_dim * h);
        if (bias.count > 0)
            heads->bias =
                emit_transpose_to_count_first(e, view_slice(bias, row, rows), "bias_staged",
                                              z->head_ranks, heads->heads_per_rank, z->head_dim);
        row += rows;
    }
    return u;
}

/* Projects, for part p (q, k or v), the g-th head of every rank from x[rank_tokens, hidden], the normed input of the
 * rank's own tokens. Emits the all-to-all, after which each rank has its own one of these heads on all tokens. */
static struct scattered_heads project_and_scatter_part(const struct upipe *u, struct view x,
                                                       enum qkv_part p, int64_t g)
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    const struct heads *heads = &u->heads[p];
    int64_t h = e->choices->model->hidden;
    struct view bias = view_none(), none = view_none();
    struct scattered_heads part = {.unnormed_heads = none};
    if (heads->bias.count > 0)
        bias = view_slice(heads->bias, g * u->columns_of_stage, u->columns_of_stage);
    struct view y =
        emit_compute_tensor(e, "head", CATEGORY_ACTIVATION, z->rank_tokens, u->columns_of_stage);
    e->op_tags.region = REGION_LINEAR;
    emit_matmul(e, MATMUL_NT, x,
                view_slice(heads->weight, g * u->columns_of_stage * h, u->columns_of_stage * h),
                bias, y, z->rank_tokens, u->columns_of_stage, h);
    e->op_tags.region = REGION_ATTENTION;
    if (p != V && z->norms_heads_of_q_and_k) {
        part.unnormed_heads = y;
        part.rstd = emit_buffer(e, "stats", CATEGORY_ACTIVATION, DTYPE_F32,
                                z->rank_tokens * z->head_ranks, 0);
        y = emit_compute_tensor(e, "head_norm", CATEGORY_ACTIVATION, z->rank_tokens,
                                u->columns_of_stage);
        emit_norm(e, u->layer, p == Q ? WEIGHT_Q_NORM : WEIGHT_K_NORM, part.unnormed_heads, y,
                  view_whole(e, part.rstd), z->rank_tokens * z->head_ranks, z->head_dim);
    }
    if (p != V && z->rope_before_exchange)
        y = rotate_heads(e, y, z->rank_positions, z->rank_tokens, z->head_ranks, false, none);
    y = pack_tensor(e, y, z->rank_tokens, z->head_ranks, z->head_dim);
    part.heads_of_all_ranks = exchange_tokens_to_heads(
        e, z, y, "head_all", p == Q ? CATEGORY_ACTIVATION : CATEGORY_KV, z->head_dim,
        e->choices->profile->forward_exchange_blocks_compute, none);
    if (p != V && z->rope_after_exchange)
        part.heads_of_all_ranks = rotate_heads(e, part.heads_of_all_ranks, z->group_positions,
                                               z->group_tokens, 1, false, none);
    return part;
}

/* True if the stage is the first of those that read the same keys and values. */
static bool stage_begins_new_keys(const struct upipe *u, int64_t g)
{
    return g % (u->heads[Q].heads_per_rank / u->heads[K].heads_per_rank) == 0;
}

/* Projects and scatters q of stage g, and k and v if the stage is the first that reads them. */
static void project_and_scatter_stage(const struct upipe *u, struct view x, int64_t g,
                                      struct scattered_heads part[PARTS])
{
    part[Q] = project_and_scatter_part(u, x, Q, g);
    for (enum qkv_part p = K; stage_begins_new_keys(u, g) && p < PARTS; p++)
        part[p] = project_and_scatter_part(
            u, x, p, g * u->heads[K].heads_per_rank / u->heads[Q].heads_per_rank);
}

/* Writes the gradient of part p (q, k or v) of a stage to d_part[rank_tokens, columns_of_stage]. grad: the gradient
 * that each rank has of its own head, on all tokens; the all-to-all gives each rank its own tokens with all heads of
 * the stage. It also passes back through rotation and per-head norm. */
static void gather_gradient_part(const struct upipe *u, const struct scattered_heads *part,
                                 struct view grad, enum qkv_part p, struct view d_part)
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    bool rotates = p != V && z->rope_before_exchange, norms = p != V && z->norms_heads_of_q_and_k;
    if (p != V && z->rope_after_exchange)
        grad = rotate_heads(e, grad, z->group_positions, z->group_tokens, 1, true, view_none());
    struct view recv = exchange_heads_to_tokens(
        e, z, grad, z->head_dim, e->choices->profile->backward_exchange_blocks_compute);
    struct view y = d_part;
    if (rotates || norms)
        y = emit_compute_tensor(e, "d_head", CATEGORY_ACTIVATION, z->rank_tokens,
                                u->columns_of_stage);
    emit_pack_or_unpack(e, WORK_UNPACK, recv, y, z->rank_tokens, z->head_ranks, z->head_dim);
    if (rotates)
        y = rotate_heads(e, y, z->rank_positions, z->rank_tokens, z->head_ranks, true,
                         norms ? view_none() : d_part);
    if (norms)
        emit_norm_backward(e, u->layer, p == Q ? WEIGHT_Q_NORM : WEIGHT_K_NORM, y,
                           part->unnormed_heads, view_whole(e, part->rstd), d_part,
                           z->rank_tokens * z->head_ranks, z->head_dim);
}

static struct view view_of_upipe_stage(struct view all, int64_t g, int64_t elements)
{
    return view_slice(all, g * elements, elements);
}

/* Returns the work of the core of one head on all tokens of the head group. */
static struct work core_work(const struct upipe *u, enum work_kind kind)
{
    return attention_masked_work(u->e, u->layer, u->sequence,
                                 attention_causal_work(u->e, kind, u->exchange.group_tokens, 1, 1),
                                 0);
}

static void upipe_forward_of_sequence(const struct upipe *u, struct view x, struct view out,
                                      struct attention_saved *saved)
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    int64_t stages = u->heads[Q].heads_per_rank;
    struct scattered_heads part[PARTS] = {0};
    attention_save_output_and_make_lse(
        e, saved,
        emit_compute_tensor(e, "o", CATEGORY_ACTIVATION, stages * z->group_tokens, z->head_dim),
        stages * z->group_tokens, 1);
    struct view staged = out;
    if (stages > 1)
        staged = emit_compute_tensor(e, "out_staged", CATEGORY_ACTIVATION, stages * z->rank_tokens,
                                     u->columns_of_stage);
    for (int64_t g = 0; g < stages; g++) {
        e->op_tags.step = (uint16_t)g;
        struct view o = view_of_upipe_stage(saved->o, g, z->group_tokens * z->head_dim);
        project_and_scatter_stage(u, x, g, part);
        struct qkv in = {part[Q].heads_of_all_ranks, part[K].heads_of_all_ranks,
                         part[V].heads_of_all_ranks};
        core_emit_host_wait(e);
        attention_tile(e, core_work(u, WORK_ATTENTION), &in, o,
                       view_of_upipe_stage(saved->lse, g, z->group_tokens));
        core_emit_host_wait(e);
        struct view recv = exchange_heads_to_tokens(
            e, z, o, z->head_dim, e->choices->profile->forward_exchange_blocks_compute);
        emit_pack_or_unpack(e, WORK_UNPACK, recv,
                            view_of_upipe_stage(staged, g, z->rank_tokens * u->columns_of_stage),
                            z->rank_tokens, z->head_ranks, z->head_dim);
    }
    e->op_tags.step = IR_NONE16;
    if (stages > 1)
        emit_pack_or_unpack(e, WORK_UNPACK, staged, out, z->rank_tokens * z->head_ranks, stages,
                            z->head_dim);
}

void upipe_forward(struct emit *e, uint32_t layer, buffer_id x, buffer_id out)
{
    int64_t h = e->choices->model->hidden;
    e->op_tags.region = REGION_LINEAR;
    struct upipe u = upipe_of(e, layer);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        u.sequence = i;
        upipe_forward_of_sequence(
            &u, view_rows(x, i * u.exchange.rank_tokens, u.exchange.rank_tokens, h),
            view_rows(out, i * u.exchange.rank_tokens, u.exchange.rank_tokens, u.exchange.q_width),
            &e->layer_saved[layer].attention[i]);
    }
}

/* Emits the backward of stage g. in: q of stage g, and the k and v that it reads, which the first stage that reads them
 * has made. *sum becomes the gradient of q, and those of k and v summed over the stages so far that read them. */
static void upipe_backward_of_stage(const struct upipe *u, int64_t g,
                                    const struct attention_saved *saved, struct view d_staged,
                                    const struct qkv *in, struct qkv *sum)
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    int64_t count = z->group_tokens * z->head_dim;
    struct view packed =
        pack_tensor(e, view_of_upipe_stage(d_staged, g, z->rank_tokens * u->columns_of_stage),
                    z->rank_tokens, z->head_ranks, z->head_dim);
    struct view d_o = exchange_tokens_to_heads(
        e, z, packed, "d_o", CATEGORY_ACTIVATION, z->head_dim,
        e->choices->profile->backward_exchange_blocks_compute, view_none());
    struct qkv grads = new_qkv_gradients(e, z->group_tokens, z->head_dim, z->group_tokens,
                                         z->head_dim, z->head_dim);
    attention_tile_backward(e, core_work(u, WORK_ATTENTION_BACKWARD), in,
                            view_of_upipe_stage(saved->o, g, count),
                            view_of_upipe_stage(saved->lse, g, z->group_tokens), d_o, &grads);
    if (!stage_begins_new_keys(u, g)) {
        emit_add(e, sum->k, grads.k, sum->k);
        emit_add(e, sum->v, grads.v, sum->v);
        grads.k = sum->k;
        grads.v = sum->v;
    }
    *sum = grads;
}

/* Writes the gradients of q, k and v of one sequence to staged[], each with its stages one after another:
 * [heads_per_rank, rank_tokens, columns_of_stage]. */
static void upipe_backward_of_sequence(const struct upipe *u, struct view x, struct view d_out,
                                       const struct attention_saved *saved,
                                       struct view staged[PARTS])
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    int64_t stages = u->heads[Q].heads_per_rank, shared = stages / u->heads[K].heads_per_rank,
            n = z->rank_tokens * u->columns_of_stage;
    struct view d_staged = emit_transpose_to_count_first(
        e, d_out, "d_staged", z->rank_tokens * z->head_ranks, stages, z->head_dim);
    struct scattered_heads part[PARTS] = {0};
    struct qkv sum = {0};
    for (enum qkv_part p = Q; p < PARTS; p++)
        staged[p] =
            emit_compute_tensor(e, "dqkv_staged", CATEGORY_ACTIVATION,
                                u->heads[p].heads_per_rank * z->rank_tokens, u->columns_of_stage);
    for (int64_t g = 0; g < stages; g++) {
        e->op_tags.step = (uint16_t)g;
        e->op_tags.phase = PHASE_RECOMPUTE;
        project_and_scatter_stage(u, x, g, part);
        e->op_tags.phase = PHASE_BACKWARD;
        upipe_backward_of_stage(u, g, saved, d_staged,
                                &(struct qkv){part[Q].heads_of_all_ranks,
                                              part[K].heads_of_all_ranks,
                                              part[V].heads_of_all_ranks},
                                &sum);
        gather_gradient_part(u, &part[Q], sum.q, Q, view_of_upipe_stage(staged[Q], g, n));
        if (g + 1 == stages || stage_begins_new_keys(u, g + 1)) {
            gather_gradient_part(u, &part[K], sum.k, K,
                                 view_of_upipe_stage(staged[K], g / shared, n));
            gather_gradient_part(u, &part[V], sum.v, V,
                                 view_of_upipe_stage(staged[V], g / shared, n));
        }
    }
    e->op_tags.step = IR_NONE16;
}

/* Writes dqkv[rank_tokens, projection_width] from the gradients of q, k and v, which are in the order of stages. */
static void join_gradients_of_upipe_stages(const struct upipe *u, struct view part[PARTS],
                                           struct view dqkv)
{
    struct emit *e = u->e;
    const struct head_exchange *z = &u->exchange;
    for (enum qkv_part p = Q; p < PARTS; p++) {
        int64_t count = u->heads[p].heads_per_rank;
        if (count > 1)
            part[p] = emit_pack_or_unpack(e, WORK_UNPACK, part[p],
                                          emit_compute_tensor(e, "d_part", CATEGORY_ACTIVATION,
                                                              z->rank_tokens,
                                                              count * u->columns_of_stage),
                                          z->rank_tokens * z->head_ranks, count, z->head_dim);
    }
    join_qkv(e, &(struct qkv){part[Q], part[K], part[V]}, dqkv, z->rank_tokens, 1);
}

void upipe_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx)
{
    int64_t h = e->choices->model->hidden;
    struct view x = view_whole(e, e->layer_saved[layer].norm1);
    e->op_tags.phase = PHASE_RECOMPUTE;
    e->op_tags.region = REGION_LINEAR;
    struct upipe u = upipe_of(e, layer);
    const struct head_exchange *z = &u.exchange;
    e->op_tags.phase = PHASE_BACKWARD;
    e->op_tags.region = REGION_ATTENTION;
    struct view dqkv =
        emit_compute_tensor(e, "dqkv", CATEGORY_ACTIVATION, e->unit.rows, z->projection_width);
    for (int64_t i = 0; i < e->choices->micro_batch; i++) {
        u.sequence = i;
        struct view staged[PARTS];
        upipe_backward_of_sequence(&u, view_rows(x.buffer, i * z->rank_tokens, z->rank_tokens, h),
                                   view_rows(d_out, i * z->rank_tokens, z->rank_tokens, z->q_width),
                                   &e->layer_saved[layer].attention[i], staged);
        join_gradients_of_upipe_stages(
            &u, staged,
            view_rows(dqkv.buffer, i * z->rank_tokens, z->rank_tokens, z->projection_width));
    }
    project_qkv_backward(e, layer, dqkv, x, view_whole(e, dx), e->unit.rows, NULL);
}
