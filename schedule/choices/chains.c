/* schedule/choices/chains.c: the bytes that chains of kernels move per element. They are counted operator by operator:
 * for example, a cast between 16 bits and fp32 moves 6, a product of two fp32 tensors 12, a product of an fp32 tensor
 * with one number per row 8. Comments above rows list the operators of their chains, each with its bytes. */
#include "schedule/choices/chains.h"
#include "schedule/choices/profile.h"

#include <string.h>

struct chain_row {
    uint8_t kind, kernel_count;
    double bytes_per_element;
    /* slow_kernel_passes: accesses per element. slow_bytes, gathered, scattered: bytes per element that slow kernels,
     * and kernels that gather or scatter rows, move (struct cost_elementwise_chain). */
    double slow_kernel_passes, slow_bytes, gathered, scattered;
    /* for unpermute: the chain that applies instead if copies have no weights; NULL: there is none */
    const struct cost_elementwise_chain *chain_if_copies_are_unweighted;
    /* bytes per element that are added if the layer keeps its activations for the backward */
    double kept_bytes;
    /* These two replace bytes_per_element and kernel_count if torch.compile or Liger fuses the chain. Both are 0 if the
     * fused chain is one kernel, with the cost of a plain one. */
    double compiled_moved_bytes_per_element;
    uint8_t compiled_kernel_count;
    /* Bytes per element of sums of gradients, which are added to bytes_per_element (sum_bytes) or to
     * compiled_moved_bytes_per_element (compiled_sum_bytes). Tensor ranks that have gathered their tokens sum over all
     * of these tokens. */
    double sum_bytes, compiled_sum_bytes;
};

/* Operators of torchtitan's eager Llama (torchtitan/models/llama3/model/model.py, torchtitan/models/norms.py of 2024);
 * neither selective checkpointing nor FSDP fuses them.
 *
 * Before a norm's backward, kernels of their own add the gradients of its input: those through wq, wk and wv, 12 bytes,
 * and those through w1 and w3, 6 bytes; on average 9 per norm (sum_bytes). A compiled norm's backward still reads 3 of
 * these bytes. Tensor ranks that reduce the sum add before they reduce, over all tokens that they have gathered. */
static const struct chain_row torchtitan[] = {
    /* bytes per element: float 6, pow 8, mean 4, times rsqrt 8, type_as 6, times weight 4; both products broadcast */
    {.kind = WORK_RMSNORM,
     .kernel_count = 8,
     .bytes_per_element = 36,
     .slow_kernel_passes = 2,
     .slow_bytes = 8 + 4},
    /* bytes per element: product with the weight 4, the weight's gradient 6 + 2, a cast 6; product with x 8, rsqrt's
     * derivative 12 + 4; mean 4; pow's derivative 8 + 8 + 12; sum of both gradients 12; a cast 6. The weight, the
     * factor of x and the mean broadcast */
    {.kind = WORK_RMSNORM_BACKWARD,
     .kernel_count = 17,
     .bytes_per_element = 92,
     .slow_kernel_passes = 3,
     .slow_bytes = 4 + 8 + 4,
     .compiled_moved_bytes_per_element = 6,
     .compiled_kernel_count = 2,
     .sum_bytes = 9,
     .compiled_sum_bytes = 3},
    /* bytes per element: a cast to fp32 6, the complex product 8, a cast back 6; the backward does the same */
    {.kind = WORK_ROPE, .kernel_count = 3, .bytes_per_element = 20},
    {.kind = WORK_ROPE_BACKWARD, .kernel_count = 3, .bytes_per_element = 20},
    /* bytes per element: in the forward silu 4, the product 6; in the backward two products 12, silu's derivative 6 */
    {.kind = WORK_SWIGLU, .kernel_count = 2, .bytes_per_element = 10},
    {.kind = WORK_SWIGLU_BACKWARD, .kernel_count = 3, .bytes_per_element = 18},
    /* The log-softmax moves 8 bytes per element, its gradient 12. Both are slow: a row that exceeds shared memory, such
     * as one of 128K fp32 logits, is read twice. The casts and the zeros are ops of the schedule. */
    {.kind = WORK_CROSS_ENTROPY,
     .kernel_count = 1,
     .bytes_per_element = 8,
     .slow_kernel_passes = 1,
     .slow_bytes = 8},
    {.kind = WORK_CROSS_ENTROPY_BACKWARD,
     .kernel_count = 1,
     .bytes_per_element = 12,
     .slow_kernel_passes = 1.15,
     .slow_bytes = 12},
    /* torch/distributed/tensor/parallel/loss.py, over a divided vocabulary, bytes per element: maximum 4, the maximum
     * subtracted 8, exponentials 8, sum 4, the logarithm of the sum subtracted 8; both subtractions broadcast.
     * Compiled, all but the last are two kernels, one of which also does the cast */
    {.kind = WORK_CROSS_ENTROPY_PARTIAL,
     .kernel_count = 5,
     .bytes_per_element = 32,
     .slow_kernel_passes = 2,
     .slow_bytes = 16,
     .compiled_moved_bytes_per_element = 16,
     .compiled_kernel_count = 2},
    /* bytes per element: exponentials 8, added to the label's gradient 12, times the gradient of the loss 8, which
     * broadcasts. Compiled it is one kernel. The zeros and the cast are ops of the schedule */
    {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
     .kernel_count = 3,
     .bytes_per_element = 28,
     .slow_kernel_passes = 1,
     .slow_bytes = 8,
     .compiled_moved_bytes_per_element = 12,
     .compiled_kernel_count = 1},
    /* torch/distributed/tensor/_ops/_embedding_ops.py, bytes per element: the look-up 4; then a product with a mask,
     * which broadcasts, sets the rows of tokens that other ranks' parts of the table have to zero 4 */
    {.kind = WORK_EMBEDDING,
     .kernel_count = 2,
     .bytes_per_element = 8,
     .slow_kernel_passes = 1,
     .slow_bytes = 4,
     .gathered = 4},
};

/* Operators of InternEvo (internlm/model/modeling_internlm.py). norm(residual.float()) is apex's fused kernel, which
 * doc/install.md asks for; rotations are flash-attn's kernel; silu and the product are one torch.jit.script function.
 *
 * dropout_selective_checkpoint is on by default, and has an effect only if the layer itself is not recomputed. It runs
 * each cast and norm again in the backward, and the residual sum before the second norm: 12 bytes for the cast and the
 * norm, 6 for the sum, which half of the norms have, so 15 per norm (kept_bytes). */
static const struct chain_row internevo[] = {
    {.kind = WORK_RMSNORM, .kernel_count = 2, .bytes_per_element = 6 + 6},
    /* bytes per element: the gradient of x 10, the gradient of the weight 6, a cast back to 16 bits 6 */
    {.kind = WORK_RMSNORM_BACKWARD, .kernel_count = 4, .bytes_per_element = 22, .kept_bytes = 15},
};

/* Operators of InternLM of 2023 (internlm/solver/optimizer/hybrid_zero_optim.py, train.py): its layers are
 * InternEvo's. doc/install.md asks for torch 1.13.1, whose AdamW by default runs one operator after the other
 * (torch/optim/adamw.py, _single_tensor_adamw()). */
static const struct chain_row internlm[] = {
    /* compute_norm(), bytes per element: float() 6, apex's norm 4 */
    {.kind = WORK_SQUARE_SUM, .kernel_count = 2, .bytes_per_element = 10},
    /* mul_() of the fp32 gradients: 8 bytes per element */
    {.kind = WORK_CLIP, .kernel_count = 1, .bytes_per_element = 8},
    /* bytes per element: flatten() 4 and a cast to fp32 6; weight decay 8, first moment 8 + 12, second moment 8 + 12,
     * square root 8, division 8, eps 8, addcdiv_() 16; a copy to bf16 6 */
    {.kind = WORK_ADAMW, .kernel_count = 12, .bytes_per_element = 10 + 88 + 6},
};

/* The chain that makes the gradient of tokens from the gradients of their 8 copies. Bytes per element of the copies:
 * zeros 2 / 8, index_put_() with sums 6. */
static const struct cost_elementwise_chain copy_gradients_chain = {
    .kernel_count = 2, .bytes_per_element = 6.25, .scattered_bytes = 6};

/* Operators of transformers (models/llama/modeling_llama.py, models/qwen3/modeling_qwen3.py) in 16 bits: norms,
 * residual sums and the feed-forward part run operator by operator, as in torchtitan. */
static const struct chain_row hf[] = {
    /* bytes per element: product with the cosine 4; rotate_half: the negative of one half 2, and cat 4; product with
     * the sine 4; sum 6. All are slow, since they access rows with a stride or concatenate */
    {.kind = WORK_ROPE,
     .kernel_count = 5,
     .bytes_per_element = 20,
     .slow_kernel_passes = 4.8,
     .slow_bytes = 20},
    /* bytes per element: both products 8, the negative of one half 2; for both halves zeros and a copy 4 + 4, and their
     * sum 6; the sum with the other product 6. All but the zeros and the sum of halves are slow, since they access rows
     * with a stride */
    {.kind = WORK_ROPE_BACKWARD,
     .kernel_count = 9,
     .bytes_per_element = 30,
     .slow_kernel_passes = 4.3,
     .slow_bytes = 20},
    /* bytes per element: the log-softmax 8, and 6 for another cast of the logits, which Accelerate makes for its caller
     * (convert_outputs_to_fp32()) */
    {.kind = WORK_CROSS_ENTROPY,
     .kernel_count = 2,
     .bytes_per_element = 14,
     .slow_kernel_passes = 2,
     .slow_bytes = 14},
    /* Experts by grouped products (integrations/moe.py), for 8 copies of each token. Bytes per element of the copies,
     * to the order of experts: rows by index 4. Back: times the weights 4, which broadcast, rows by index 4, the sum of
     * copies 2 + 2 / 8 */
    {.kind = WORK_PERMUTE, .kernel_count = 1, .bytes_per_element = 4, .gathered = 4},
    {.kind = WORK_UNPERMUTE,
     .kernel_count = 3,
     .bytes_per_element = 10.25,
     .slow_kernel_passes = 1,
     .slow_bytes = 4,
     .gathered = 4,
     .chain_if_copies_are_unweighted = &copy_gradients_chain},
    /* bytes per element: the gradient of each copy 2 / 8 + 2, zeros 2, index_put_() with sums 6; the gradient of the
     * weights 6 + 2, the product with the weights 4 */
    {.kind = WORK_UNPERMUTE_BACKWARD,
     .kernel_count = 6,
     .bytes_per_element = 22.25,
     .slow_kernel_passes = 1,
     .slow_bytes = 4,
     .scattered = 6},
};

/* Operators of transformers under autocast: parameters, residual sums, norms and rotations are fp32. The kernels are
 * those of a recorded step (tests/data/recorded/hf-llama-1b-8k-h200.json.gz). Each product casts what it reads. A
 * norm's result is read by three products (q, k, v) or by two (gate, up), on average 2.5. */
static const struct chain_row hf_autocast[] = {
    /* bytes per element: pow 8, mean 4, times rsqrt 8, times weight 8, casts for the products 2.5 x 6 */
    {.kind = WORK_RMSNORM,
     .kernel_count = 9,
     .bytes_per_element = 43,
     .slow_kernel_passes = 2,
     .slow_bytes = 8 + 8},
    /* bytes per element: casts of the gradients 2.5 x 6, their sums 1.5 x 12; product with the weight 8, its gradient
     * 12 + 4; rsqrt's derivative 12 + 4, product with x 8; mean 4 and a copy 8, pow's derivative 8 + 12, sum 12; the
     * cast for the products before the norm 6 */
    {.kind = WORK_RMSNORM_BACKWARD,
     .kernel_count = 18,
     .bytes_per_element = 131 - 18,
     .slow_kernel_passes = 5.5,
     .slow_bytes = 15 + 8 + 8 + 4,
     .compiled_moved_bytes_per_element = 6,
     .compiled_kernel_count = 2,
     .sum_bytes = 18,
     .compiled_sum_bytes = 3},
    /* bytes per element: product with the cosine 6, the negative of one half 2, cat 4, product with the sine 6, sum 12,
     * cast 6 */
    {.kind = WORK_ROPE,
     .kernel_count = 6,
     .bytes_per_element = 36,
     .slow_kernel_passes = 6,
     .slow_bytes = 30},
    /* bytes per element; slow: the cast to fp32 6, both products 8 + 8, the negative of one half 2, copies of halves 4,
     * the strided sum 6; not slow: casts to 16 bits 6 + 6, zeros 4, the other sum 6 */
    {.kind = WORK_ROPE_BACKWARD,
     .kernel_count = 12,
     .bytes_per_element = 56,
     .slow_kernel_passes = 5.3,
     .slow_bytes = 34},
    /* bytes per element: 10, for one fp32 operand and one of 16 bits. A sum of two fp32 gradients moves 12, but is
     * counted as 10 too */
    {.kind = WORK_ADD,
     .kernel_count = 1,
     .bytes_per_element = 10,
     .slow_kernel_passes = 1,
     .slow_bytes = 10},
};

/* Operators of nanotron of July 2024 (src/nanotron/models/llama.py). Norms and rotations are kernels of flash-attn; the
 * feed-forward part and the loss (_ShardedCrossEntropy) run operator by operator. */
static const struct chain_row nanotron[] = {
    /* bytes per element: silu 4, product 6; two products 12, silu's derivative 6, both gradients concatenated 8 */
    {.kind = WORK_SWIGLU, .kernel_count = 2, .bytes_per_element = 10},
    {.kind = WORK_SWIGLU_BACKWARD, .kernel_count = 4, .bytes_per_element = 26},
    /* bytes per element: maximum 4, the maximum subtracted 8, exponentials 8, sum 4, divided by the sum 8; the
     * subtraction and the division broadcast */
    {.kind = WORK_CROSS_ENTROPY,
     .kernel_count = 5,
     .bytes_per_element = 32,
     .slow_kernel_passes = 2,
     .slow_bytes = 16},
    /* bytes per element: times the gradient of the loss 8, which broadcasts. The cast is an op of the schedule */
    {.kind = WORK_CROSS_ENTROPY_BACKWARD,
     .kernel_count = 2,
     .bytes_per_element = 8,
     .slow_kernel_passes = 1,
     .slow_bytes = 8},
    {.kind = WORK_CROSS_ENTROPY_PARTIAL,
     .kernel_count = 5,
     .bytes_per_element = 32,
     .slow_kernel_passes = 2,
     .slow_bytes = 16},
    {.kind = WORK_CROSS_ENTROPY_PARTIAL_BACKWARD,
     .kernel_count = 2,
     .bytes_per_element = 8,
     .slow_kernel_passes = 1,
     .slow_bytes = 8},
};

/* The tables of the frameworks. A kind of work that a table has no row for has the chain of the table that
 * `inherits_from` names. */
static const struct {
    const struct chain_row *row;
    size_t count;
    enum chains inherits_from; /* CHAINS_FUSED: none */
} tables[CHAINS_COUNT] = {
    [CHAINS_TORCHTITAN] = {torchtitan, ARRAY_LEN(torchtitan), CHAINS_FUSED},
    [CHAINS_INTERNEVO] = {internevo, ARRAY_LEN(internevo), CHAINS_FUSED},
    [CHAINS_INTERNLM] = {internlm, ARRAY_LEN(internlm), CHAINS_INTERNEVO},
    [CHAINS_HF] = {hf, ARRAY_LEN(hf), CHAINS_TORCHTITAN},
    [CHAINS_HF_AUTOCAST] = {hf_autocast, ARRAY_LEN(hf_autocast), CHAINS_HF},
    [CHAINS_NANOTRON] = {nanotron, ARRAY_LEN(nanotron), CHAINS_FUSED},
};

/* Sets those elements of chain[] for which the table of a framework, or the table that it names by `inherits_from`, has
 * a row. compile: to the chains of compiled code. kept: eager chains also get kept_bytes. sum_ranks: the number of
 * tensor ranks whose tokens the sums of gradients cover; 1: only the rank's own tokens. */
static void set_chains_of_framework(enum chains chains, bool compile, bool kept, double sum_ranks,
                                    struct cost_elementwise_chain chain[WORK_KIND_COUNT])
{
    if (tables[chains].inherits_from != CHAINS_FUSED)
        set_chains_of_framework(tables[chains].inherits_from, compile, kept, sum_ranks, chain);
    for (size_t i = 0; i < tables[chains].count; i++) {
        const struct chain_row *row = &tables[chains].row[i];
        struct cost_elementwise_chain eager = {
            .bytes_per_element =
                row->bytes_per_element + (kept ? row->kept_bytes : 0) + sum_ranks * row->sum_bytes,
            .kernel_count = row->kernel_count,
            .slow_kernel_passes = row->slow_kernel_passes,
            .slow_bytes = row->slow_bytes,
            .gathered_bytes = row->gathered,
            .scattered_bytes = row->scattered,
            .chain_without_copy_weights = row->chain_if_copies_are_unweighted};
        struct cost_elementwise_chain fused = {.bytes_per_element =
                                                   row->compiled_moved_bytes_per_element +
                                                   sum_ranks * row->compiled_sum_bytes,
                                               .kernel_count = row->compiled_kernel_count};
        chain[row->kind] = compile ? fused : eager;
    }
}

/* Returns the framework whose chains a layer runs if the choice of kernels does not fuse them. */
static enum chains framework_of_unfused_chains(const struct profile *profile,
                                               const struct choices *choices)
{
    enum chains own = profile != NULL ? (enum chains)profile->chains : CHAINS_FUSED;
    return own == CHAINS_FUSED && choices->kernels == KERNELS_EAGER ? CHAINS_TORCHTITAN : own;
}

static bool kernels_fuse_operator_chains(const struct choices *choices)
{
    return choices->kernels == KERNELS_COMPILED || choices->kernels == KERNELS_LIGER;
}

enum chains chains_framework_of_choices(const struct profile *profile,
                                        const struct choices *choices)
{
    return kernels_fuse_operator_chains(choices) ? CHAINS_FUSED
                                                 : framework_of_unfused_chains(profile, choices);
}

void chains_fill_for_choices(const struct profile *profile, const struct choices *choices,
                             bool kept, struct cost_elementwise_chain chain[WORK_KIND_COUNT])
{
    static const uint8_t losses[] = {WORK_CROSS_ENTROPY, WORK_CROSS_ENTROPY_BACKWARD};
    static const uint8_t parts[] = {WORK_CROSS_ENTROPY_PARTIAL,
                                    WORK_CROSS_ENTROPY_PARTIAL_BACKWARD};
    /* torchtitan's loss on 16-bit logits: the kernels read or write as many elements as with fp32 logits, with half the
     * bytes */
    static const struct cost_elementwise_chain narrow_loss[] = {
        {.bytes_per_element = 4, .kernel_count = 1, .slow_kernel_passes = 1, .slow_bytes = 4},
        {.bytes_per_element = 6, .kernel_count = 1, .slow_kernel_passes = 1.15, .slow_bytes = 6},
    };
    struct cost_elementwise_chain eager[WORK_KIND_COUNT], compiled[WORK_KIND_COUNT];
    memset(chain, 0, WORK_KIND_COUNT * sizeof *chain);
    memset(eager, 0, sizeof eager);
    memset(compiled, 0, sizeof compiled);
    enum chains chains = framework_of_unfused_chains(profile, choices);
    const bool sums_gathered = (choices->tensor_plan == TENSOR_PLAN_GATHER_PER_MODULE ||
                                choices->tensor_plan == TENSOR_PLAN_ASYNC) &&
                               choices->tp > 1;
    const double sum_ranks = sums_gathered ? choices->sequence_parallel_ranks : 1;
    set_chains_of_framework(chains, kernels_fuse_operator_chains(choices), kept, sum_ranks, chain);
    /* A chosen loss has the same chain whether or not the chains of layers are fused. Only the loss of a divided
     * vocabulary (LOSS_PARALLEL) is compiled together with the layers. */
    bool chosen = profile == NULL || choices->loss != profile->loss;
    const enum chains of_loss = chains != CHAINS_FUSED ? chains : CHAINS_TORCHTITAN;
    set_chains_of_framework(of_loss, false, kept, sum_ranks, eager);
    set_chains_of_framework(of_loss, true, kept, sum_ranks, compiled);
    for (size_t i = 0; chosen && choices->loss != LOSS_PROFILE && i < ARRAY_LEN(losses); i++)
        chain[losses[i]] =
            choices->loss == LOSS_EAGER || choices->loss == LOSS_HF ? eager[losses[i]]
            : choices->loss == LOSS_OF_16BIT_LOGITS                 ? narrow_loss[i]
                                                    : (struct cost_elementwise_chain){0};
    const bool has_own_parts = chains == CHAINS_NANOTRON && !chosen;
    for (size_t i = 0; i < ARRAY_LEN(parts) && !has_own_parts; i++)
        chain[parts[i]] = choices->loss != LOSS_PARALLEL ? (struct cost_elementwise_chain){0}
                          : choices->kernels == KERNELS_COMPILED ? compiled[parts[i]]
                                                                 : eager[parts[i]];
    /* the look-up of embeddings stays a chain, since frameworks do not compile it */
    if (chains != CHAINS_FUSED)
        chain[WORK_EMBEDDING] = eager[WORK_EMBEDDING];
}
