/* models/transformer.h: the shape of a decoder-only transformer, and counts of its parameters and flops.
 *
 * struct transformer is plain data: sizes and switches, no weights. It comes from a preset,
 * from a file in the schema below, or from a Hugging Face config.json (models/hf_config.h).
 * A layer is pre-norm: x += wo(attention(wqkv(norm1(x)))); x += w2(act(w1 or w13(norm2(x)))). `norm_place` moves
 * the norms to the ends of these two branches, or has them at both: x += norm1_after(wo(...)).
 * Attention is causal. Weights are [rows, cols] = [outputs, inputs], as y = x W^T + b.
 *
 * After transformer_check() every count below fits its type: there are at most 10^15 parameters.
 *
 * The schema of models/presets/transformers/NAME.json (JSON, comments allowed):
 *
 *   {
 *     "longhaul_transformer": 1,             // version of this schema
 *     "name": "llama3-8b",                   // for a preset, the name of its file
 *     "note": "...",                         // optional: what is odd about the model
 *     "layers": 32, "hidden": 4096,
 *     "heads": 32, "kv_heads": 8, "head_dim": 128,
 *     "ffn": 14336,                          // width of one up projection
 *     "vocab": 128256,
 *     "activation": "swiglu",                // or "geglu", "gelu" (both the tanh form), "relu2", "swiglu-clamped"
 *     "norm": "rmsnorm", "norm_eps": 1e-5,   // or "layernorm" (which has biases)
 *     "norm_place": "before",                // optional: "before" a branch, "after" it, or "both"
 *     "positions": "rope",                   // or "learned", "none"
 *     "rope_theta": 500000,                  // required with rope; else optional
 *     "max_positions": 8192,                 // required with learned; else optional, no limit
 *     "attention_window": 4096,              // optional: a query sees this many keys, its own included; 0 = all
 *     "window_from_layer": 0,                // optional: layers before this one (from 0) see all keys
 *     "full_attention_every": 6,             // optional: layers 5, 11, ... see all keys; 0 = none of them
 *     "window_chunks": false,                // the window is a chunk: a query sees its own chunk's keys up to itself
 *     "unrotated_every": 4,                  // optional, with rope: layers 3, 7, ... rotate nothing; 0 = all rotate
 *     "bias_qkv": false, "bias_o": false, "bias_ffn": false, "qk_norm": false,
 *     "qk_norm_wide": false,                 // with qk_norm: one norm over all heads of q, one over those of k
 *     "qk_norm_bare": false,                 // with qk_norm: norms without weights, only in layers that rotate
 *     "fused_products": false,               // q, k and v are one product in transformers' code, gate and up another
 *     "tied_head": false,                    // any of these eight, from bias_qkv on, may be left out: false
 *     "attention_dropout": 0,                // optional: the probability with which training drops a score
 *     "experts": 128,                        // optional: a mixture of experts; 0 = none. So is the rest, but sources
 *     "experts_per_token": 8, "expert_ffn": 768, // required with experts
 *     "shared_ffn": 768,                     // width of the experts that every token passes, together
 *     "dense_layers": 3,                     // the first layers have a feed-forward part of width "ffn" and no experts
 *     "experts_every": 2,                    // after them, layers 1, 3, ... (from 0) have experts; 0, 1 = all do
 *     "router": "softmax",                   // scores: or "chosen" (softmax over the chosen ones), "sigmoid"
 *     "router_norm": false,                  // the weights of a token's experts are divided by their sum, ...
 *     "router_scale": 2.5,                   // ... and multiplied by this; 0 = 1
 *     "router_bias": false,                  // a trained bias of the logits
 *     "router_correction": false,            // a bias of the choice, which the optimizer does not train
 *     "router_on_input": false,              // a weight multiplies what its expert reads, not what it writes
 *     "router_groups": 8, "router_groups_kept": 4, // experts are chosen from the best groups; 0 = no groups
 *     "q_latent": 1536, "kv_latent": 512,    // latent attention (MLA): ranks of the projections; kv_latent 0 = none,
 *                                            // q_latent 0 = q is projected by one matrix
 *     "rope_dim": 64, "v_dim": 128,          // required with it: the last, rotated columns of head_dim; width of v
 *     "rope_scaled": false,                  // cosines and sines are multiplied by a factor (YaRN's attention factor)
 *     "attention_sinks": false,              // each head has a learned score in the sum of its softmax
 *     "adapter_rank": 16,                    // optional: only adapters (LoRA) of this rank are trained; 0 = none
 *     "adapter_targets": 15,                 // a sum of 1 q, 2 k, 4 v, 8 o, 16 gate, 32 up and 64 down; 0 = all
 *     "sources": {"vocab": "...", "*": "..."} // where each value is from; "*" is for all the rest
 *   } */
#ifndef MODELS_TRANSFORMER_H
#define MODELS_TRANSFORMER_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum activation {
    ACTIVATION_SWIGLU, /* w2(silu(gate) * up): three matrices */
    ACTIVATION_GELU,   /* w2(gelu(up)), tanh form: two matrices */
    ACTIVATION_GEGLU,  /* w2(gelu(gate) * up), tanh form: three matrices (Gemma) */
    ACTIVATION_RELU2,  /* w2(max(up, 0)^2): two matrices (Nemotron) */
    /* w2((up' + 1) gate' sigmoid(1.702 gate')), where gate' is at most 7 and up' from -7 to 7 (gpt-oss): three
     * matrices */
    ACTIVATION_SWIGLU_CLAMPED,
    ACTIVATION_COUNT
};

enum norm {
    NORM_RMSNORM,   /* weight only */
    NORM_LAYERNORM, /* weight and bias */
    NORM_COUNT
};

/* The places of the norms in each of a layer's two branches (attention and feed-forward). */
enum norm_place {
    NORM_BEFORE, /* at the beginning of the branch (Llama) */
    NORM_AFTER,  /* at the end of the branch, before the residual is added (OLMo 2) */
    NORM_BOTH,   /* at the beginning and at the end (Gemma 2 and 3) */
    NORM_PLACE_COUNT
};

enum positions {
    POSITIONS_ROPE,    /* rotates q and k; no parameters */
    POSITIONS_LEARNED, /* a table [max_positions, hidden] added to the embedding */
    POSITIONS_NONE,
    POSITIONS_COUNT
};

/* The function by which a router computes scores from its logits. */
enum router {
    ROUTER_SOFTMAX, /* over all experts */
    /* softmax over the logits of a token's chosen experts only (gpt-oss, Mixtral) */
    ROUTER_SOFTMAX_OF_CHOSEN,
    ROUTER_SIGMOID, /* the sigmoid of each logit (DeepSeek-V3) */
    ROUTER_COUNT
};

/* The linear layers to which an adapter may be added. Each value is the number of a bit of adapter_targets. */
enum adapter_target {
    ADAPTER_Q,
    ADAPTER_K,
    ADAPTER_V,
    ADAPTER_O,
    ADAPTER_GATE, /* only of a gated feed-forward part */
    ADAPTER_UP,
    ADAPTER_DOWN,
    ADAPTER_TARGET_COUNT
};

enum {
    ADAPTER_TARGETS_OF_ATTENTION =
        1 << ADAPTER_Q | 1 << ADAPTER_K | 1 << ADAPTER_V | 1 << ADAPTER_O,
    ADAPTER_RANK_MAX = 4096
};

extern const char *const adapter_target_names[ADAPTER_TARGET_COUNT];
extern const char *const activation_names[ACTIVATION_COUNT];
extern const char *const norm_names[NORM_COUNT];
extern const char *const norm_place_names[NORM_PLACE_COUNT];
extern const char *const positions_names[POSITIONS_COUNT];
extern const char *const router_names[ROUTER_COUNT];

struct transformer {
    const char *name;   /* the name in a file of our schema; else made from the path or the sizes */
    const char *source; /* the source of the values, as text; may be NULL */
    const char *note;   /* what is unusual about the model, as text; may be NULL */
    const char *proxy_lacks; /* parts of the real model that a dense proxy lacks; NULL: no proxy */
    /* parts of the real model that no field describes, so that no schedule can be made of it; NULL: none */
    const char *unmodelled_parts_text;
    int64_t layers, hidden;
    int64_t heads, kv_heads, head_dim; /* hidden need not be heads * head_dim */
    int64_t ffn;                       /* width of one up projection */
    int64_t vocab;
    /* number of rows of the position table if positions are learned; else for information only, 0 = not stated */
    int64_t max_positions;
    enum activation activation;
    enum norm norm;
    enum norm_place norm_place;
    enum positions positions;
    bool bias_qkv, bias_o, bias_ffn; /* bias_ffn: of all matrices of the feed-forward part */
    bool qk_norm;      /* RMSNorm over head_dim on every q and k head, before RoPE (Qwen3) */
    bool qk_norm_wide; /* qk_norm goes over all heads of q together, and over all of k (OLMo 2) */
    bool qk_norm_bare; /* qk_norm has no weights, and is only of layers that rotate (Llama 4) */
    /* Transformers' code computes q, k and v by one product, and gate and up by one (Phi-3); false: by one each. This
     * decides what PyTorch keeps of a layer (schedule/choices/kept.h). Schedules always have one product for q, k and
     * v, and one for gate and up. */
    bool fused_products;
    bool tied_head;    /* the head multiplies by embedding.weight */
    double rope_theta; /* base of RoPE; not used unless positions are rope */
    double norm_eps;
    /* the probability with which training drops an attention score; 0: it drops none */
    double attention_dropout;
    /* Sliding windows: in a layer with a window a query attends to at most attention_window keys, its own and those
     * just before. transformer_layer_window() says which layers have one. */
    int64_t attention_window, window_from_layer, full_attention_every;
    /* the window is a chunk (Llama 4): in a layer with a window, a sequence is cut into chunks of attention_window
     * tokens, and a query attends only to keys of its own chunk */
    bool window_chunks;
    int64_t unrotated_every; /* transformer_layer_rotates() says which layers rotate q and k */
    /* Block-sparse attention: the first attention_kept tokens of every attention_chunk tokens are keys for later
     * chunks; within a chunk, queries attend to all earlier keys. 0: dense. Set by options, not in files. */
    int64_t attention_chunk, attention_kept;
    /* Mixtures of experts. experts 0: there are none, and all other sizes are 0. All experts have gates, the shared
     * one, too. */
    int64_t experts, experts_per_token, expert_ffn, shared_ffn;
    /* transformer_layer_has_experts() says which layers have them */
    int64_t dense_layers, experts_every;
    /* a token's experts are chosen from the router_groups_kept best of router_groups groups; 0, 0: from all */
    int64_t router_groups, router_groups_kept;
    enum router router;
    bool router_norm, router_bias, router_correction, router_on_input; /* see the schema */
    double router_scale;                                               /* 0 stands for 1 */
    /* Latent attention: ranks of the projections of q and of k and v; rotated columns of a head; columns of a head of
     * v. kv_latent 0: the model has none, and the other numbers are 0. Of the head_dim columns of a head of q and k,
     * the last rope_dim are rotated; in k these are the same in all heads. */
    int64_t q_latent, kv_latent, rope_dim, v_dim;
    /* RoPE's cosines and sines are multiplied by a factor other than 1: YaRN's attention factor, also called mscale.
     * Its value is not modelled. Some frameworks then do not use their fused kernels of RoPE. */
    bool rope_scaled;
    /* each head has a learned score, which is added to the sum of its softmax */
    bool attention_sinks;
    /* Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685, section 4.1): a linear layer y = x W^T + bias becomes y +
     * (x A^T) B^T, where A is [adapter_rank, inputs] and B is [outputs, adapter_rank]. Only A and B are trained; all
     * other weights are frozen. The paper's factor alpha / rank is part of B. adapter_targets: a bit for each enum
     * adapter_target; 0: all that the model has. adapter_rank 0: there are no adapters, and all weights are trained. */
    int64_t adapter_rank, adapter_targets;
};

/* ---- loading ---- */

/* Fills *t from one of: a line of fields (transformer_is_line()); a file, if the name has a '/' or ends in ".json" (a
 * Hugging Face config.json, which has "model_type", or our schema); or the preset of that name. ignore: config.json
 * keys to leave unread, separated by commas (models/hf_config.h); NULL: none. Strings are copied to `arena`. The result
 * has passed transformer_check(). The error for an unknown name gives the nearest preset or, if none is near, the
 * folder of the presets. */
enum status transformer_load(struct transformer *t, struct arena *arena, const char *name_or_path,
                             const char *ignore, struct diag *diag);

/* Does what transformer_load() does, but a model with experts, latent attention, attention sinks or
 * parts that are not modelled becomes the nearest dense transformer (models/hf_proxy.h). Its name
 * then ends in "(dense proxy)", and t->proxy_lacks names the missing parts. A line of fields is
 * read as it is. */
enum status transformer_load_dense(struct transformer *t, struct arena *arena,
                                   const char *name_or_path, const char *ignore, struct diag *diag);

/* True if a text is a line of fields, which transformer_load() accepts in place of a name:
 * "layers=32,hidden=4096,heads=32,ffn=11008,vocab=32000". Defaults of other fields: as many K/V heads as heads, heads
 * that together are as wide as the hidden size, SwiGLU, RMSNorm with eps 1e-5, rotary positions with base 10000; all
 * others are 0 or false. A field "proxy" names parts that a dense proxy lacks ("proxy=experts"). */
bool transformer_is_line(const char *name);

/* Fills *t from a line of fields. A field that the line lacks gets its default (transformer_is_line()); layers, hidden,
 * heads, ffn and vocab have no default and are required. The result has passed transformer_check(). */
enum status transformer_read_line(struct transformer *t, struct arena *arena, const char *line,
                                  struct diag *diag);

/* Appends a model as a line of fields, without fields that have their default. has_vocab false: without `vocab`. */
void transformer_put_line(struct text *out, const struct transformer *t, bool has_vocab);

/* Reads a model in our schema from a text in memory. name: the text's name in messages. The result has passed
 * transformer_check(). */
enum status transformer_parse(struct transformer *t, struct arena *arena, const char *name,
                              const char *data, size_t size, struct diag *diag);

/* Lists the presets' names in alphabetical order, read from their folder, in arena. */
enum status transformer_presets(const char *const **names, size_t *count, struct arena *arena,
                                struct diag *diag);

/* Sets one field, named as in the schema ("vocab"), from text ("50257", "true", "gelu"). Does not
 * check that the fields fit together: call transformer_check() after the last override. */
enum status transformer_set_field(struct transformer *t, const char *field, const char *value,
                                  struct diag *diag);

/* Fails unless every number is within its limits (models/transformer_fields.c), kv_heads divides
 * heads, head_dim is even and rope_theta above 0 if positions are rotary, learned positions have
 * max_positions, the fields of windows, norms, experts, latent attention and adapters fit together,
 * and there are at most 10^15 parameters. Messages begin with `at`, and say which values are
 * allowed. */
enum status transformer_check(const struct transformer *t, struct loc at, struct diag *diag);

/* Fails unless the model's adapters are modelled: they have a rank and a target that the model has, the model has no
 * latent attention, and a model with experts has adapters in attention only. transformer_check() calls it. */
enum status transformer_check_adapters(const struct transformer *t, struct loc at,
                                       struct diag *diag);

/* ---- parameters ---- */

/* One parameter tensor. A vector has cols = 1. */
struct tensor_spec {
    const char *name; /* static text: "wqkv.weight" */
    int64_t rows, cols;
};

#define TRANSFORMER_MAX_TENSORS 42 /* room for any of the three lists below */

/* Lists the tensors of a layer (counted from 0) in this order. Biases, q_norm and k_norm are present only if the model
 * has them:
 *   norm1.weight norm1.bias            [hidden]    where a branch begins with a norm
 *   wqkv.weight                        [(heads + 2 kv_heads) head_dim, hidden]  q rows, k rows, v rows
 *   wqkv.bias                          [(heads + 2 kv_heads) head_dim]
 *   q_norm.weight k_norm.weight        [head_dim]  qk_norm_wide: [heads head_dim], [kv_heads head_dim]
 *   wo.weight wo.bias                  [hidden, heads head_dim], [hidden]
 *   norm1_after.weight norm1_after.bias  [hidden]  where a branch ends with a norm
 *   norm2.weight norm2.bias            [hidden]
 *   w13.weight w13.bias                [2 ffn, hidden], [2 ffn]   SwiGLU, GEGLU: gate rows, then up rows
 *   w1.weight w1.bias                  [ffn, hidden], [ffn]       GELU, squared ReLU
 *   w2.weight w2.bias                  [hidden, ffn], [hidden]
 *   norm2_after.weight norm2_after.bias  [hidden]
 * Latent attention has in the place of wqkv
 *   q_a.weight q_a_norm.weight         [q_latent, hidden], [q_latent]
 *   q_b.weight                         [heads head_dim, q_latent]; without q_latent q.weight [heads head_dim, hidden]
 *   kv_a.weight kv_a_norm.weight       [kv_latent + rope_dim, hidden], [kv_latent]
 *   kv_b.weight                        [heads (head_dim - rope_dim + v_dim), kv_latent]
 * and wo.weight [hidden, heads v_dim]; attention_sinks have sinks [heads] before wo. A layer with experts has in the
 * place of w13 and w2
 *   router.weight router.bias          [experts, hidden], [experts]
 *   experts.w13.weight experts.w13.bias  [experts 2 expert_ffn, hidden], [experts 2 expert_ffn]: expert by expert
 *   experts.w2.weight experts.w2.bias  [experts hidden, expert_ffn], [experts hidden]
 *   shared.w13.weight shared.w2.weight [2 shared_ffn, hidden], [hidden, shared_ffn]
 * With adapters these follow all of the above, for each target T ("q") that the layer has:
 *   adapter.T.a adapter.T.b            [adapter_rank, inputs], [outputs, adapter_rank]
 * router_correction is no tensor: it has no gradient. Writes at most max tensors to out[] and returns how many there
 * are. */
size_t transformer_list_layer_tensors(const struct transformer *t, int64_t layer,
                                      struct tensor_spec out[], size_t max);

/* Lists the tensors before the layers, as transformer_list_layer_tensors() does: embedding.weight [vocab, hidden];
 * positions.weight [max_positions, hidden]. */
size_t transformer_list_embedding_tensors(const struct transformer *t, struct tensor_spec out[],
                                          size_t max);

/* Lists the tensors after the layers: norm.weight norm.bias [hidden]; head.weight [vocab, hidden] unless it is tied. */
size_t transformer_list_head_tensors(const struct transformer *t, struct tensor_spec out[],
                                     size_t max);

/* True if a step trains the tensor with this name. In a model with adapters only the tensors of adapters are trained,
 * else all are. */
bool transformer_is_tensor_trained(const struct transformer *t, const char *name);

/* transformer_layer_has_adapter() is true if a layer, counted from 0, has an adapter at this target. The other two
 * return how many inputs and outputs the target's linear layer has, whether or not it has an adapter. */
bool transformer_layer_has_adapter(const struct transformer *t, int64_t layer,
                                   enum adapter_target target);
int64_t transformer_adapter_in_features(const struct transformer *t, enum adapter_target target);
int64_t transformer_adapter_out_features(const struct transformer *t, enum adapter_target target);

/* Returns the number of elements of all adapters. None of the counts below includes them. */
int64_t transformer_adapter_parameters(const struct transformer *t);

/* Returns how many products a step makes with the weights of a linear layer, without recomputation. They are 2, the
 * output and the gradient of the input, if weights are frozen beside adapters; else 3, with the gradient of the
 * weights. */
int transformer_step_products_per_weight(const struct transformer *t);

/* Return exact numbers of parameters (elements): of the whole model; of one layer (the largest, if only some layers
 * have experts); of the tensors before the layers (embedding and learned positions); of the tensors after them (last
 * norm and head). A tied matrix counts once, with the embedding. router_correction counts only in the number of the
 * whole model. */
int64_t transformer_parameters(const struct transformer *t);
int64_t transformer_largest_layer_parameters(const struct transformer *t);
int64_t transformer_embedding_parameters(const struct transformer *t);
int64_t transformer_head_parameters(const struct transformer *t);

/* Returns the number of parameters that one token passes: of the routed experts, only experts_per_token.
 * router_correction does not count. */
int64_t transformer_active_parameters(const struct transformer *t);

/* True if a layer, counted from 0, has experts. transformer_count_expert_layers() counts these layers. */
bool transformer_layer_has_experts(const struct transformer *t, int64_t layer);
int64_t transformer_count_expert_layers(const struct transformer *t);

/* Appends the parts of the real model that no schedule can express (unmodelled_parts_text). Returns false if there are
 * none. */
bool transformer_put_unmodelled(struct text *out, const struct transformer *t);

/* Returns the number of elements of the matrices by which all layers multiply one token. Biases, norms, embedding and
 * head do not count. Of routed experts only those of the token count; the router and shared experts do count. */
int64_t transformer_active_matrix_parameters(const struct transformer *t);

/* True if the feed-forward part has a gate, and so three matrices. */
bool transformer_has_gate(const struct transformer *t);

/* ---- widths, flops, rotation and windows (a product [m, k] x [k, n] has 2 m n k flops) ---- */

/* Return the number of columns of wqkv's output that are q (heads * head_dim), and of those that are k (kv_heads *
 * head_dim). */
int64_t transformer_q_columns(const struct transformer *t);
int64_t transformer_kv_columns(const struct transformer *t);

/* Return the number of columns of one head of v, of all heads of v, and of the output of attention. Without latent
 * attention they are those of k, k and q. */
int64_t transformer_v_head_dim(const struct transformer *t);
int64_t transformer_v_columns(const struct transformer *t);
int64_t transformer_o_columns(const struct transformer *t);
/* Returns the wider of the head sizes of k and v, by which kernels of attention are chosen. */
int64_t transformer_wider_head_dim(const struct transformer *t);

/* Returns the forward flops of one token in the matrix products of one layer; the backward has twice as many, or as
 * many if weights are frozen. If only some layers have experts, it is the mean over the layers, rounded down. */
int64_t transformer_layer_linear_flops_per_token(const struct transformer *t);

/* Returns the flops of one token in the head's product, forward. */
int64_t transformer_head_flops_per_token(const struct transformer *t);

/* Returns the forward flops of the attention core (q k^T and p v) of one layer over one sequence of s = seq_len tokens.
 * Causal attention has exactly half the flops of full attention: s^2 / 2 pairs, as published conventions count it. */
double transformer_layer_attention_flops(const struct transformer *t, int64_t seq_len, bool causal);

/* transformer_layer_rotates(): true if the layer rotates q and k. transformer_layer_has_qk_norm(): true if it norms the
 * heads of q and k. */
bool transformer_layer_rotates(const struct transformer *t, int64_t layer);
bool transformer_layer_has_qk_norm(const struct transformer *t, int64_t layer);

/* Returns the most keys that a query of this layer (counted from 0) sees, its own included; 0: the layer has no window,
 * and a query sees its own key and all earlier ones. */
int64_t transformer_layer_window(const struct transformer *t, int64_t layer);

/* Counts the layers whose attention has a window. */
int64_t transformer_count_windowed_layers(const struct transformer *t);

/* Returns the forward flops of the core of causal attention over one sequence of s = seq_len tokens, as the mean over
 * the layers. Only pairs count that a window or the block-sparse pattern leaves visible. In a layer with a window of
 * w < s tokens a sequence has s w - w^2 / 2 pairs; if the window is a chunk, half the sum of the squares of the chunks'
 * lengths. In block-sparse attention a token attends to all earlier tokens of its own chunk, and to the kept tokens of
 * every earlier chunk. */
double transformer_visible_attention_flops(const struct transformer *t, int64_t seq_len);

#endif
