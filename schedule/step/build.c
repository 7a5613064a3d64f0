/* Builds a schedule: makes its streams and inputs, emits its ops and runs the passes on them. */
#include "schedule/step/build.h"
#include "schedule/activations/passes.h"
#include "schedule/attention/fpdt.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"
#include "schedule/config/derived.h"
#include "schedule/core_plan/tile_rules.h"
#include "schedule/emit/emit.h"
#include "schedule/emit/op_list.h"
#include "schedule/emit/process_groups.h"
#include "schedule/emit/tensor_parallel.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/step/combined.h"
#include "schedule/step/finalize.h"
#include "schedule/step/step.h"
#include "schedule/weights/bundles.h"
#include "schedule/weights/weights.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static buffer_id make_bound_input(struct emit *e, const char *stem, enum binding_kind kind,
                                  uint16_t gathered, enum dtype dtype, int64_t count)
{
    struct binding binding = {.kind = (uint8_t)kind,
                              .bundle = IR_NONE16,
                              .shard_group = IR_NONE16,
                              .gathered_group = gathered,
                              .partial_axes =
                                  kind == BINDING_LOSS ? e->group.axes_with_partial_loss : 0};
    return emit_bound_buffer(e, stem, binding, CATEGORY_INPUT, dtype, count);
}

/* Makes the bound buffers: tokens (on the first chunk's stage), labels and the loss (on the last chunk's stage), and
 * positions. Where stages share subsequences, every stage has all of them. Every stage has positions, by which layers
 * rotate and which the embedding looks up, even if no op reads them. */
static void make_inputs(struct emit *e)
{
    const struct choices *c = e->choices;
    int64_t n = c->seq / c->hp / c->cp;
    int64_t units = (int64_t)c->accumulation +
                    (e->repeats.iterations_are_units ? (int64_t)e->repeats.copies_per_gap : 0);
    int64_t local = n * c->micro_batch * units;
    bool all = pipeline_of_choices(c)->is_multiplexed,
         first = all || e->stage == pipeline_stage_of_chunk(c, 0);
    bool last = all || e->stage == pipeline_stage_of_chunk(c, pipeline_chunk_count(c) - 1);
    uint16_t tensor = c->sequence_parallel_ranks > 1 ? e->tensor.group : IR_NONE16;
    /* the number of positions: those of one sequence or, if each sequence is cut in its own way, of all of them */
    int64_t places = n;
    if (derived_binds_positions_by_sequence(c))
        places = local;
    if (first)
        e->tokens = make_bound_input(e, "tokens", BINDING_TOKENS, tensor, DTYPE_I32, local);
    e->tokens_own = e->tokens;
    if (first && c->sequence_parallel_ranks > 1 && c->vocabulary != VOCABULARY_CUT)
        e->tokens_own = make_bound_input(e, "own_tokens", BINDING_TOKENS, IR_NONE16, DTYPE_I32,
                                         local / c->sequence_parallel_ranks);
    if (last)
        e->labels = make_bound_input(e, "labels", BINDING_LABELS, tensor, DTYPE_I32, local);
    e->positions = make_bound_input(e, "positions", BINDING_POSITIONS, tensor, DTYPE_I32, places);
    e->positions_gathered = e->positions_own = e->positions;
    if (e->group.hp != IR_NONE16)
        e->positions_gathered =
            make_bound_input(e, "all_positions", BINDING_POSITIONS,
                             e->group.group_seen_by_attention_core, DTYPE_I32, places * c->hp);
    if (c->sequence_parallel_ranks > 1)
        e->positions_own = make_bound_input(e, "own_positions", BINDING_POSITIONS, IR_NONE16,
                                            DTYPE_I32, places / c->sequence_parallel_ranks);
    if (last)
        e->loss = make_bound_input(e, "loss", BINDING_LOSS, IR_NONE16, DTYPE_F32, 1);
}

/* Adds the streams of a ring of several ranks: one for messages of keys and values and one for those of their
 * gradients; with the switch ring_messages_share_stream, one for both. Each stream has a communicator of its own. */
static void make_ring_streams(struct emit *e, struct ring *ring, const char *kv, const char *dkv)
{
    if (ring->size == 1)
        return;
    ring->kv_stream = ir_add_stream(e->ir, kv, STREAM_COMM);
    ring->dkv_stream = e->choices->profile->ring_messages_share_stream
                           ? ring->kv_stream
                           : ir_add_stream(e->ir, dkv, STREAM_COMM);
}

static void make_streams(struct emit *e)
{
    e->stream.compute = ir_add_stream(e->ir, "compute", STREAM_COMPUTE);
    e->stream.tile = e->stream.compute;
    e->stream.comm = ir_add_stream(e->ir, "comm.hp", STREAM_COMM);
    e->stream.weight_gather = ir_add_stream(e->ir, "comm.gather", STREAM_COMM);
    e->stream.grad_reduce = ir_add_stream(e->ir, "comm.reduce", STREAM_COMM);
    e->stream.h2d = ir_add_stream(e->ir, "h2d", STREAM_H2D);
    e->stream.d2h = ir_add_stream(e->ir, "d2h", STREAM_D2H);
    e->stream.host = ir_add_stream(e->ir, "host", STREAM_HOST);
    if (fpdt_offloads(e->choices) && e->choices->profile->chunk_copies_share_stream) {
        e->stream.offload = ir_add_stream(e->ir, "offload", STREAM_H2D);
        e->stream.side_stream = ir_add_stream(e->ir, "offload.aside", STREAM_D2H);
    }
    if (fpdt_one_rank_fetches_for_all(e->choices))
        e->stream.chunk_collective_stream = ir_add_stream(e->ir, "comm.fetch", STREAM_COMM);
    if (e->choices->ep > 1)
        e->stream.expert_exchange_stream = ir_add_stream(e->ir, "comm.ep", STREAM_COMM);
    make_ring_streams(e, &e->group.outer_ring, "comm.cp", "comm.dkv");
    make_ring_streams(e, &e->group.inner_ring, "comm.cp_in", "comm.dkv_in");
    if (e->group.outer_ring.size > 1 && e->choices->profile->ring_keeps_blocks)
        e->stream.second_compute = ir_add_stream(e->ir, "compute.second", STREAM_COMPUTE);
}

/* Returns the order of tokens over ranks, which decides how evenly the visible pairs are distributed. */
static struct token_layout order_of_tokens_over_ranks(const struct choices *c)
{
    static const uint8_t kinds[RING_BY_CORE_PLAN + 1] = {
        LAYOUT_ZIGZAG_2D, LAYOUT_CONTIGUOUS, LAYOUT_STRIPED, LAYOUT_ZIGZAG_DOCUMENTS, LAYOUT_DEALT};
    uint8_t kind = c->cp > 1 ? kinds[c->ring_layout] : LAYOUT_CONTIGUOUS;
    if (kind == LAYOUT_ZIGZAG_2D && c->hp == 1)
        kind = LAYOUT_ZIGZAG;
    if (c->subsequences > 1)
        return (struct token_layout){.kind = LAYOUT_FPDT_RANK_ORDINAL,
                                     .cp = 1,
                                     .hp = c->hp * c->sequence_parallel_ranks,
                                     .chunk_count = c->subsequences,
                                     .sequence_tokens = c->seq,
                                     .tokens_by_chunk = c->subsequence_tokens};
    if (c->attention == CHOICE_ATTENTION_FPDT)
        return (struct token_layout){.kind = LAYOUT_FPDT_RANK_ORDINAL,
                                     .cp = 1,
                                     .hp = c->hp,
                                     .chunk_count = c->chunk_count,
                                     .sequence_tokens = c->seq,
                                     .chunk_tokens =
                                         c->seq % c->chunk_tokens == 0 ? 0 : c->chunk_tokens};
    return (struct token_layout){kind, c->cp, c->hp * c->sequence_parallel_ranks, 1, c->seq,
                                 0,    NULL};
}

/* Upper limits of the ops that emission and passes make: OPS_PER_LAYER_MAX, in a layer for each chunk of a sequence;
 * OPS_PER_CHUNK_MAX, for each piece of the feed-forward part or of the loss; OPS_PER_RING_STEP_MAX, for each step of a
 * ring; OPS_PER_TILE_MAX, for each pair of chunks. */
enum {
    OPS_PER_LAYER_MAX = 160,
    OPS_PER_CHUNK_MAX = 20,
    OPS_PER_RING_STEP_MAX = 40,
    OPS_PER_TILE_MAX = 40
};

double step_max_ops_of_rank(const struct choices *c)
{
    double tiles = (double)c->chunk_count * (double)c->chunk_count / 2 + (double)c->chunk_count;
    double layer = (OPS_PER_LAYER_MAX * (double)c->chunk_count + OPS_PER_TILE_MAX * tiles +
                    (c->cp > 1 ? OPS_PER_RING_STEP_MAX * (double)c->cp : 0)) *
                       (double)c->micro_batch +
                   OPS_PER_CHUNK_MAX * (double)c->ffn_chunks;
    return ((double)c->model->layers * layer + OPS_PER_CHUNK_MAX * (double)c->loss_chunks) *
           pipeline_unit_count(c) / c->pp;
}

/* Returns the number of ops for which the staging tables have room from the start. Rows that stay unused are never
 * touched and take no physical memory, but the system must grant their addresses, so the number has a limit: some
 * hundred megabytes. */
static uint64_t initial_staging_row_count(const struct choices *c)
{
    enum { ROOM_MAX = 1 << 21 };
    double ops = step_max_ops_of_rank(c);
    return ops < ROOM_MAX ? (uint64_t)ops : ROOM_MAX;
}

static enum status check_size(const struct choices *c, struct diag *diag)
{
    double ops = step_max_ops_of_rank(c);
    if (ops < 2e8 && c->model->layers < 65000)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--seq"}, STATUS_BAD_INPUT,
                      "the schedule would have about %.2g ops per rank, more than the 2e8 that it "
                      "can number; fewer "
                      "layers, micro-batches or chunks would do",
                      ops);
}

double step_attention_slowdown(const struct choices *c)
{
    return c->attention_dropout ? STEP_DROPOUT_SLOWDOWN : 1;
}

/* Returns the part of the model that one tensor rank has: c->model if there is one tensor rank, else *share, which the
 * function fills. */
static const struct transformer *model_share_of_tensor_rank(const struct choices *c,
                                                            struct transformer *share)
{
    if (c->tp == 1)
        return c->model;
    *share = tensor_share_of_model(c->model, c->tp, tensor_vocabulary_unit(c));
    return share;
}

void step_redundant_product_shares(const struct choices *c, double *layers, double *head)
{
    const struct transformer *model = c->model;
    struct transformer room;
    const struct transformer *share = model_share_of_tensor_rank(c, &room);
    *layers = 1 - (double)transformer_layer_linear_flops_per_token(model) /
                      ((double)transformer_layer_linear_flops_per_token(share) * c->tp);
    *head = 1 - (double)transformer_head_flops_per_token(model) /
                    ((double)transformer_head_flops_per_token(share) * c->tp);
}

int64_t step_bucket_bytes(const struct choices *c)
{
    struct transformer room;
    int64_t elements = 0;
    if (c->profile->keeps_gradient_bucket && weights_shard_params(c))
        elements += c->profile->most_elements_of_gradient_bucket;
    if (c->profile->placeholder_gradients && !states_are_bf16((enum states)c->states) &&
        c->model->experts == 0)
        elements +=
            transformer_layer_linear_flops_per_token(model_share_of_tensor_rank(c, &room)) / 2;
    return elements * (int64_t)dtype_bytes(c->dtype);
}

void step_set_rotary_table_bytes(const struct choices *c, uint64_t block[STEP_ROTARY_TABLES])
{
    const struct transformer *model = c->model;
    bool held = c->profile->keeps_rotary_tables && model->positions == POSITIONS_ROPE;
    uint64_t numbers = held ? (uint64_t)(c->seq * model->head_dim) : 0;
    block[0] = c->attention == CHOICE_ATTENTION_FPDT ? 0 : numbers * dtype_bytes(DTYPE_F32);
    block[1] = block[2] = numbers * dtype_bytes(c->dtype);
}

/* Returns the model that a scope smaller than a step needs: one layer; for the attention operator by itself, without
 * positional encodings and norms of q and k, which come before the operator. */
static struct transformer model_of_scope(const struct transformer *model, enum scope scope)
{
    struct transformer bare = *model;
    bare.layers = 1;
    bare.dense_layers = bare.experts_every = 0; /* the one layer has experts if any layer has */
    if (scope == SCOPE_ONE_LAYER)
        return bare;
    bare.positions = POSITIONS_NONE;
    bare.qk_norm = bare.qk_norm_wide = false;
    return bare;
}

/* Emits one role (a stage's ranks, or all ranks), runs the passes on its list, and adds it to *out. Returns false if
 * the list is a short list that does not represent the whole list. */
static bool emit_role_and_run_passes(struct emit *e, struct ir *out,
                                     struct offsets_memory_figures *figures)
{
    const struct choices *c = e->choices;
    struct op_list list;
    bool whole = c->scope == SCOPE_WHOLE_STEP || c->scope == SCOPE_ONE_LAYER,
         layers = whole || c->scope >= SCOPE_ALL_LAYERS;
    e->op_tags =
        (struct op_tags){PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16};
    if (layers)
        weights_make_bundles(e);
    make_inputs(e);
    tensor_make_shared_gather_buffer(e, layers);
    if (layers)
        emit_step(e);
    else
        emit_attention_operator(e);
    op_list_fill_from_ir(&list, e->ir);
    combined_reorder_list_by_parts(e, &list);
    if (layers && c->activations == CHOICE_ACTIVATIONS_RATIO)
        pass_offload_ratio(e, &list);
    else if (layers && c->host_layers > 0)
        pass_offload_first_layers(e, &list);
    else if (layers && c->activations != CHOICE_ACTIVATIONS_KEEP)
        pass_recompute(e, &list);
    if (layers && e->recomputed_buffer_count > 0)
        pass_discard(e, &list);
    if (layers && fpdt_offloads(c) && !c->profile->recomputes_whole_layer)
        pass_remove_dead_copies(e, &list);
    if (layers && c->kernels == KERNELS_LIGER)
        pass_gradients_in_place(e, &list);
    pass_add_waits_for_chunk_stores(e, &list);
    if (layers && (c->activations == CHOICE_ACTIVATIONS_OFFLOAD ||
                   c->activations == CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD))
        pass_offload_checkpoints(e, &list);
    if (whole)
        pass_autocast(e, &list);
    if (whole)
        pass_weights(e, &list);
    bool represents_whole_list = finalize_role(e, &list, out, figures);
    op_list_release(&list);
    return represents_whole_list;
}

/* Returns the choices with which a scope is built. If they need another model than choices->model, it is written to
 * *bare, to which the result then points. */
static struct choices choices_of_scope(const struct choices *choices, struct transformer *bare)
{
    struct choices c = *choices;
    if (c.scope >= SCOPE_ALL_LAYERS) {
        c.weights = CHOICE_WEIGHTS_REPLICATED;
        c.helpers = MSP_WEIGHTS_REPLICATE;
    }
    if (c.scope != SCOPE_WHOLE_STEP)
        c.host_layers = 0;
    if (c.scope == SCOPE_WHOLE_STEP || c.scope >= SCOPE_ALL_LAYERS)
        return c;
    *bare = model_of_scope(c.model, (enum scope)c.scope);
    c.model = bare;
    c.accumulation = 1;
    c.dp *= c.pp; /* every stage has layers, and so runs the operator */
    c.global_batch *= c.pp;
    c.pp = c.virtual_stages = c.subsequences = 1;
    c.pipeline = CHOICE_PIPELINE_NONE;
    return c;
}

/* Fills the documents of the schedule with a copy of those of the choices. If a named rule deals the tokens, it also
 * makes the deal of each sequence, which says what tokens each context rank owns, and the tiles. */
static void fill_schedule_documents(struct ir *ir, const struct choices *c)
{
    const struct document_list whole = {.document_count = 1, .document_end = &c->seq};
    const struct attention_windows_of_layers windows = {
        c->model->attention_window,
        (double)transformer_count_windowed_layers(c->model) / (double)c->model->layers};
    const struct row_bytes bytes =
        row_bytes_of_layer(c->model, (double)dtype_bytes((enum dtype)c->dtype));
    struct deal_choice rule;
    if (c->ring_layout != RING_BY_CORE_PLAN ||
        (c->documents != NULL && documents_have_token_deal(c->documents))) {
        documents_copy(&ir->documents, &ir->arena, c->documents);
        return;
    }
    enum status status = deal_choice_parse(&rule, c->core_plan, NULL);
    assert(status == STATUS_OK && "resolve_choices() read it");
    (void)status;
    documents_init(&ir->documents, &ir->arena, (uint32_t)c->global_batch);
    for (uint32_t i = 0; i < ir->documents.sequence_count; i++) {
        uint32_t like = 0; /* an earlier sequence with the same documents has the same deal */
        struct document_list list =
            c->documents != NULL ? *documents_of_sequence(c->documents, i) : whole;
        while (like < i && c->documents != NULL &&
               c->documents->list_of_sequence[like] != c->documents->list_of_sequence[i])
            like++;
        if (like < i)
            list = *documents_of_sequence(&ir->documents, like);
        else {
            list.deal = deal_by_rule(&ir->arena, &rule, c->cp, &list, windows);
            list.tiles = tile_rules_plan(&ir->arena, &rule, &list, windows, &bytes);
        }
        documents_set_list(&ir->documents, &ir->arena, i, list);
    }
}

static const struct sequence_document_facts *make_sequence_documents(struct emit *e)
{
    const struct choices *c = e->choices;
    const struct documents *documents = &e->ir->documents;
    uint32_t count = (uint32_t)(c->global_batch / c->dp);
    struct sequence_document_facts *row = arena_array(&e->arena, count, sizeof *row);
    for (uint32_t i = 0; i < count; i++)
        row[i] =
            (struct sequence_document_facts){documents_first_equal_sequence(documents, i, c->dp),
                                             !documents_sequence_is_single(documents, i, c->dp)};
    return row;
}

/* Builds the finished schedule.
 *
 * c: choices, whose model is the part of one tensor rank
 * whole: the whole model
 * repeats: the iterations that a short list leaves out; all-zero: the list is whole
 * planned: bit m is set if the arena of memory m is planned
 *
 * Returns false if it is a short list that does not represent the whole list. */
static bool build_finished_schedule(struct ir *out, const struct choices *c,
                                    const struct transformer *whole, struct repeats repeats,
                                    unsigned planned)
{
    struct ir staging = {0};
    struct emit e = {
        .ir = &staging,
        .choices = c,
        .kept_extra_bytes = kept_bytes_of(c),
        .mask_of_memories_with_offsets = planned,
        .whole_model = whole,
        .unit = {.tokens = c->seq / c->hp / c->cp,
                 .rows = c->seq / c->hp / c->cp * c->micro_batch,
                 .own_tokens = c->seq / c->hp / c->cp / c->sequence_parallel_ranks,
                 .own_rows = c->seq / c->hp / c->cp / c->sequence_parallel_ranks * c->micro_batch},
        .guard = IR_NONE16,
        .repeats = repeats,
        .weights.grad_dtype = weights_grad_dtype(c),
        .weights.grad_part_dtype =
            states_are_bf16((enum states)c->states) ? c->dtype : weights_grad_dtype(c),
    };
    staging.layout = order_of_tokens_over_ranks(c);
    if (c->subsequence_tokens != NULL) {
        int64_t *length = arena_array(&staging.arena, c->subsequences, sizeof *length);
        memcpy(length, c->subsequence_tokens, c->subsequences * sizeof *length);
        staging.layout.tokens_by_chunk = length;
    }
    if (c->documents != NULL || c->ring_layout == RING_BY_CORE_PLAN) {
        fill_schedule_documents(&staging, c);
        e.sequence_document_facts = make_sequence_documents(&e);
    }
    if (c->routing != NULL)
        routing_copy(&staging.routing, &staging.arena, c->routing);
    else if (c->lists_copies_of_even_routing)
        routing_init_even(&staging.routing, &staging.arena, (uint32_t)c->model->experts,
                          (uint32_t)c->model->experts_per_token, (uint32_t)c->model->layers);
    staging.routing.capacity = c->expert_capacity;
    staging.routing.deals_experts_in_shuffled_order = dispatcher_facts[c->dispatcher].sends_once;
    staging.global_batch = c->global_batch;
    staging.micro_batch = c->micro_batch;
    staging.dtype = c->dtype;
    emit_mesh(&e);
    make_streams(&e);
    struct offsets_memory_figures *figures = heap_zalloc(c->pp, sizeof *figures);
    bool represents_whole_list = true;
    out->repeats = repeats;
    for (uint32_t stage = 0; represents_whole_list && stage < c->pp; stage++) {
        uint64_t ops = initial_staging_row_count(c);
        ir_reserve(&staging, ops, ops, 3 * ops, 0);
        emit_begin_role(&e, stage);
        represents_whole_list = emit_role_and_run_passes(&e, out, &figures[stage]);
    }
    finalize_move_shared_tables(&e, out);
    if (c->pp > 1 && represents_whole_list)
        offsets_replan_largest(out, planned, figures);
    else
        memcpy(out->planned_bytes, figures->planned_bytes, sizeof out->planned_bytes);
    free(figures);
    emit_narrow_release(&e);
    free(e.kept_buffers.buffer);
    free(e.recomputed_buffers);
    free(e.recomputed_module_ops);
    free(e.combined_fwd_bwd.begin);
    free(e.combined_fwd_bwd.listed_op_ranges);
    free(e.buffers_never_recomputed.buffer);
    free(e.extension);
    free(e.weights.remote_grad);
    free(e.weights.stage_bundle_part);
    free(e.added_dependencies);
    free(e.row_capacity_cache);
    arena_release(&e.arena);
    ir_release(&staging);
    return represents_whole_list;
}

enum status step_build(struct ir *out, const struct choices *choices, struct diag *diag)
{
    return step_build_with_planned_memories(out, choices, OFFSETS_ALL_MEMORIES, diag);
}

enum status step_build_with_planned_memories(struct ir *out, const struct choices *choices,
                                             unsigned memories, struct diag *diag)
{
    struct transformer bare, share;
    struct choices scoped = choices_of_scope(choices, &bare);
    const struct transformer *model = scoped.model;
    scoped.model = model_share_of_tensor_rank(&scoped, &share);
    assert((!scoped.must_compute_subsequence_tokens || scoped.subsequences == 1) &&
           "lengths are the caller's to make");
    if (check_size(&scoped, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    build_finished_schedule(out, &scoped, model, (struct repeats){0}, memories);
    return STATUS_OK;
}

/* ---- short lists ---- */

int64_t step_layers_per_period(const struct choices *choices)
{
    struct transformer share;
    struct choices c = *choices;
    const struct transformer *model = c.model;
    c.model = model_share_of_tensor_rank(&c, &share);
    int64_t together = weights_layers_per_bundle(&c), every = model->full_attention_every;
    if (transformer_count_windowed_layers(model) == 0 || every < 1)
        every = 1;
    if (model->unrotated_every > 0 && every % model->unrotated_every != 0)
        return 0;
    if (transformer_count_windowed_layers(model) > 0 && model->window_from_layer > 0)
        return 0;
    if (choices->bf16_layers > 0 || choices->host_layers > 0)
        return 0; /* layers of two kinds */
    if (model->experts > 0 && transformer_count_expert_layers(model) < model->layers)
        return 0; /* the model has layers of two kinds */
    if (choices->expert_overlap != EXPERT_OVERLAP_NONE)
        return 0; /* a layer's ops are listed between those of another one's backward */
    if (choices->routing != NULL && choices->routing->list_count > 1)
        return 0;
    return together % every == 0 ? together : every % together == 0 ? every : 0;
}

/* Fills *model with the model shortened to `length` periods of layers and the layers that do not fill a period, and
 * makes *c use it. Sets *r to what is left out. Returns false, and changes nothing, if no layer can be left out or if
 * there are several pipeline stages. */
static bool shorten_list_to_few_layers(struct choices *c, struct transformer *model,
                                       struct repeats *r, uint32_t length)
{
    int64_t period = step_layers_per_period(c), all = c->model->layers;
    if (c->pp > 1 || period == 0 || all / period <= length)
        return false;
    *model = *c->model;
    model->layers = length * period + all % period;
    c->model = model;
    *r = (struct repeats){.copies_per_gap = (uint32_t)((all - model->layers) / period),
                          .iteration_value_of_first_copy = (int32_t)length / 2,
                          .max_iteration_distance_of_refs = 3,
                          .layers_per_period = (int32_t)period};
    return true;
}

/* True if all micro-batches have the same documents, or if sequences are single documents. */
static bool micro_batches_are_equal(const struct choices *c)
{
    for (uint32_t i = 0; c->documents != NULL && i < c->global_batch / c->dp; i++)
        if (documents_first_equal_sequence(c->documents, i, c->dp) != 0)
            return false;
    return true;
}

/* Reduces the step to 2 pp + length + 4 micro-batches: enough to fill and drain the pipeline, and `length` and a few
 * more in between. Sets *r to what is left out. Returns false, and changes nothing, if the step has no more
 * micro-batches than that, if it uses subsequences or virtual stages, or if micro-batches have different documents. */
static bool shorten_list_to_few_micro_batches(struct choices *c, struct repeats *r, uint32_t length)
{
    uint32_t all = c->accumulation, units = 2 * c->pp + length + 4;
    if (c->subsequences > 1 || c->virtual_stages > 1 || all <= units || !micro_batches_are_equal(c))
        return false;
    *r = (struct repeats){.copies_per_gap = all - units,
                          .iteration_value_of_first_copy = (int32_t)(c->pp + length / 2) + 2,
                          .max_iteration_distance_of_refs = (int32_t)c->pp + 3,
                          .iterations_are_units = true,
                          .layers_per_period = 1};
    c->accumulation = units;
    return true;
}

bool step_build_short(struct ir *out, const struct choices *choices, uint32_t length,
                      unsigned memories)
{
    struct transformer fewer, share;
    struct choices c = *choices, by_units = *choices;
    struct repeats r, units = {0};
    if (c.scope != SCOPE_WHOLE_STEP || c.activations == CHOICE_ACTIVATIONS_RATIO ||
        check_size(&c, NULL) != STATUS_OK)
        return false;
    bool of_units = shorten_list_to_few_micro_batches(&by_units, &units, length);
    bool of_layers = shorten_list_to_few_layers(&c, &fewer, &r, length);
    if (!of_units && !of_layers)
        return false;
    if (of_units && (!of_layers || (double)by_units.accumulation / choices->accumulation <
                                       (double)fewer.layers / (double)choices->model->layers)) {
        c = by_units;
        r = units;
    }
    const struct transformer *model = c.model;
    c.model = model_share_of_tensor_rank(&c, &share);
    bool stands = build_finished_schedule(out, &c, model, r, memories);
    if (!stands)
        ir_release(out);
    return stands;
}
