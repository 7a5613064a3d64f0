/* Choices that frameworks cannot express: how sequences are cut and layers are spread over stages. */
#include "predict/plan/gaps.h"

#include "schedule/choices/profile.h"
#include "schedule/pipeline/pipeline.h"

static bool has_ring_rotated_by_messages(const struct choices *c)
{
    return gaps_has_ring(c) && c->rotation == ROTATE_P2P;
}

/* True if keys go round the ring by all-to-alls, which Megatron lacks, or by an all-gather with head ranks: Megatron
 * has an all-gather only without head ranks. */
static bool has_ring_rotation_unlike_megatron(const struct choices *c)
{
    return gaps_has_ring(c) && (c->rotation == ROTATE_ALL_TO_ALL ||
                                (c->rotation == ROTATE_ALL_GATHER && gaps_has_head_ranks(c)));
}

static bool has_ring_of_needed_rows(const struct choices *c)
{
    return gaps_has_ring(c) && c->rotation == ROTATE_NEEDED_ROWS;
}

static bool has_inner_rings(const struct choices *c)
{
    return gaps_has_ring(c) && c->ring_window > 1;
}

static bool has_ring_without_zigzag(const struct choices *c)
{
    return gaps_has_ring(c) && c->ring_layout != RING_ZIGZAG;
}

static bool has_context_first(const struct choices *c)
{
    return gaps_has_ring(c) && gaps_has_head_ranks(c) && c->placement == PLACEMENT_CONTEXT_FIRST;
}

static bool has_head_ranks_with_tp_or_pp(const struct choices *c)
{
    return gaps_has_head_ranks(c) && (c->tp > 1 || c->pp > 1);
}

/* True if the key and value heads of a tensor rank do not divide over the head ranks. The a2a of TransformerEngine
 * requires that they do. */
static bool has_kv_heads_copied_over_hp(const struct choices *c)
{
    return gaps_has_head_ranks(c) && c->model->kv_heads % ((int64_t)c->tp * c->hp) != 0;
}

static bool has_kv_heads_copied_over_tp(const struct choices *c)
{
    return c->model->kv_heads % c->tp != 0;
}

static bool has_ring_with_compiled_merges(const struct choices *c)
{
    return gaps_has_ring(c) && c->kernels == KERNELS_COMPILED;
}

static bool has_upipe_attention(const struct choices *c)
{
    return c->attention == CHOICE_ATTENTION_UPIPE;
}

static bool has_chunk_order_of_queries(const struct choices *c)
{
    return gaps_has_fpdt_chunks(c) && c->chunk_count > 1 && c->chunk_order != ORDER_KV_OUTER;
}

static bool has_fetch_by_one_rank(const struct choices *c)
{
    return gaps_has_fpdt_chunks(c) && c->chunk_count > 1 && c->chunk_fetch != FETCH_EACH;
}

static bool has_sparse_attention(const struct choices *c)
{
    return c->model->attention_chunk > 0;
}

static bool has_gpipe(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_GPIPE;
}

static bool has_interleaved(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_INTERLEAVED;
}

static bool has_zb_1p(const struct choices *c)
{
    return c->pipeline == CHOICE_PIPELINE_ZB_1P;
}

static bool has_zero_bubble(const struct choices *c)
{
    return has_zb_1p(c) || c->pipeline == CHOICE_PIPELINE_ZB_V;
}

static bool has_compiled_zero_bubble(const struct choices *c)
{
    return has_zero_bubble(c) && c->kernels == KERNELS_COMPILED;
}

static bool has_subsequences(const struct choices *c)
{
    return c->subsequences > 1;
}

static bool has_uneven_stages(const struct choices *c)
{
    int64_t counted_layers =
        c->model->layers + pipeline_embedding_layers(c) + pipeline_head_layers(c);
    return c->pp > 1 && counted_layers % pipeline_chunk_count(c) != 0;
}

static bool counts_embedding_or_head_as_layer(const struct choices *c)
{
    return pipeline_embedding_layers(c) + pipeline_head_layers(c) > 0;
}

static bool has_stages_by_cost(const struct choices *c)
{
    return c->pp > 1 && c->stage_layers == STAGE_LAYERS_BY_COST;
}

/* True if ranks are numbered over stages before they are over data-parallel ranks, on several nodes. On one node the
 * order of ranks makes no difference. */
static bool has_inner_stage_placement(const struct choices *c)
{
    return c->pp > 1 && c->dp > 1 && c->stage_placement == STAGES_INNER &&
           (int64_t)c->ranks > c->gpus_per_node;
}

/* True if a Qwen3 is divided into stages, which torchtitan cannot do. Of torchtitan's models only Qwen3 has norms of q
 * and k, by which it is recognised. */
static bool has_stages_of_qwen3(const struct choices *c)
{
    return c->pp > 1 && c->model->qk_norm;
}

static bool has_pipeline_stages(const struct choices *c)
{
    return c->pp > 1;
}

static bool has_expert_ranks(const struct choices *c)
{
    return c->ep > 1;
}

static bool has_ring_rotated_by_all_to_alls(const struct choices *c)
{
    return gaps_has_ring(c) && c->rotation == ROTATE_ALL_TO_ALL;
}

static bool has_ring_without_contiguous_slices(const struct choices *c)
{
    return gaps_has_ring(c) && c->ring_layout != RING_CONTIGUOUS;
}

static bool has_ring_without_flash(const struct choices *c)
{
    return gaps_has_ring(c) && c->attention_impl != ATTENTION_FA2 &&
           c->attention_impl != ATTENTION_FA3;
}

static bool has_ring_with_unusual_flash(const struct choices *c)
{
    uint8_t usual =
        c->sm >= 90 ? c->profile->attention_impl_since_hopper : c->profile->attention_impl;
    return gaps_has_ring(c) && c->attention_impl != usual;
}

/* The columns are the members of struct expression_gap. A description says what frameworks lack, and after ":" or ";"
 * what they have, or what the written settings mean, instead. */
/* clang-format off */
static const struct expression_gap rows[] = {
    {IN_TORCHTITAN | IN_AXOLOTL, gaps_has_head_ranks,            "head ranks (Ulysses): context parallelism is a ring"},
    {IN_TORCHTITAN | TRL, has_ring_rotated_by_messages,                 "keys and values as messages round the ring: an all-gather, or all-to-alls, which are set"},
    {ALL,      has_ring_of_needed_rows,              "keys and values sent only to ranks that need them (--rotate needed): each rank gets all"},
    {IN_MEGATRON, has_ring_rotation_unlike_megatron,           "keys and values by all-to-alls, or gathered beside head ranks: messages are set"},
    {IN_DEEPSPEED,    gaps_has_ring,                     "rings: sequences are cut by heads alone (Ulysses), and set so"},
    {IN_LLAMA_FACTORY,  gaps_has_head_ranks,                    "head ranks (Ulysses): it has none"},
    {TRL,      gaps_has_head_ranks,                    "head ranks (Ulysses): `accelerate launch` has no argument for them, only its configuration file"},
    {IN_DEEPSPEED,    has_head_ranks_with_tp_or_pp,           "head ranks beside tensor ranks or stages: they are set, and Megatron-DeepSpeed refuses them"},
    {IN_MEGATRON | IN_DEEPSPEED | IN_TRAINER_FAMILY, has_expert_ranks, "experts spread over ranks (--ep)"},
    {IN_AXOLOTL,  has_ring_rotated_by_all_to_alls,              "keys and values by all-to-alls: ring_attn_func has an all-gather and messages"},
    {IN_LLAMA_FACTORY,  gaps_has_ring,                     "rings: it has none"},
    {IN_LLAMA_FACTORY,  gaps_has_tensor_ranks,             "tensor ranks: it has none"},
    {IN_TORCHTITAN | IN_MEGATRON | TRL | IN_AXOLOTL, has_inner_rings,          "windows of a double ring"},
    {IN_AXOLOTL,  has_ring_without_contiguous_slices,             "tokens in other slices than contiguous ones"},
    {IN_AXOLOTL,  has_ring_without_flash,       "a ring without FlashAttention: it needs --attention fa2 or fa3"},
    {TRL,      has_ring_with_unusual_flash,          "a ring by other attention than PyTorch's sdpa"},
    {IN_TORCHTITAN | IN_MEGATRON | TRL, has_ring_without_zigzag,     "tokens in other slices than a zigzag's, which both have"},
    {IN_MEGATRON, has_context_first,            "context-first placement: head ranks are neighbours"},
    {IN_MEGATRON, has_kv_heads_copied_over_hp,             "head ranks over which key and value heads do not divide"},
    {ALL,      has_kv_heads_copied_over_tp,      "tensor ranks over which key and value heads do not divide"},
    {IN_MEGATRON, has_ring_with_compiled_merges,             "merges of a ring as one kernel (--compile)"},
    {ALL,      has_sparse_attention,         "attention that leaves keys of other chunks out (--sparsity)"},
    {IN_TORCHTITAN | IN_MEGATRON | IN_TRAINER_FAMILY, gaps_has_fpdt_chunks,           "chunks of the sequence (FPDT)"},
    {ALL,      has_upipe_attention,              "Ulysses in stages of heads (UPipe): all heads are exchanged at once"},
    {IN_DEEPSPEED,    has_chunk_order_of_queries,        "a backward of chunks with queries outside: keys are"},
    {IN_DEEPSPEED,    has_fetch_by_one_rank,                "chunks that one rank fetches for all: each fetches its own part"},
    {IN_TRAINER_FAMILY,  has_pipeline_stages,                   "pipeline stages: Trainer has none"},
    {IN_MEGATRON | IN_DEEPSPEED, has_gpipe,            "all forwards before all backwards (GPipe); 1F1B is set"},
    {IN_DEEPSPEED,    has_interleaved,              "several parts of the layers a stage; one is set"},
    {IN_MEGATRON | IN_DEEPSPEED, has_zero_bubble,      "zero-bubble pipelines; 1F1B is set"},
    {IN_TORCHTITAN,    has_zb_1p,                    "zero bubble with one part of the layers a stage: InterleavedZeroBubble is set, and takes two or more"},
    {IN_TORCHTITAN,    has_compiled_zero_bubble,     "zero bubble of compiled layers: both are set, and PyTorch refuses them"},
    {ALL,      has_subsequences,             "subsequences of a pipeline (SPPO, Seq1F1B): sequences are whole"},
    {IN_DEEPSPEED,    counts_embedding_or_head_as_layer,                  "embedding or head that count as layers of a stage (--stage-layers): it cuts layers evenly"},
    {IN_MEGATRON | IN_DEEPSPEED, has_uneven_stages,    "stages of which some have a layer more than others"},
    {IN_MEGATRON | IN_DEEPSPEED, has_stages_by_cost,   "layers divided among stages by what they cost (--stage-layers cost), as nanotron divides them"},
    {IN_TORCHTITAN,    has_stages_of_qwen3,          "stages of a Qwen3: torchtitan 0.2 has none (pipelining_fn), and refuses the degree that is set"},
    {IN_TORCHTITAN | IN_DEEPSPEED, has_inner_stage_placement,         "stages nearer to each other than ranks with other sequences: they are the outermost ranks"},
};
/* clang-format on */

const struct expression_gaps gaps_of_sequence = {rows, ARRAY_LEN(rows)};
