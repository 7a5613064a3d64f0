/* schedule/choices/kept.h: the bytes that a layer keeps for its backward, in addition to what the schedule's ops read.
 *
 * A framework keeps copies that no op of a schedule reads: fp32 copies, casts, results between the operators of a
 * chain. The schedule adds their bytes to buffers that live as long, such as the statistics of a norm, the layer's
 * input or the result of the feed-forward part's first product. The rows are in schedule/choices/kept.def. */
#ifndef SCHEDULE_CHOICES_KEPT_H
#define SCHEDULE_CHOICES_KEPT_H

#include "schedule/choices/choices.h"

/* The code of a layer in a framework (schedule/choices/kept.def), which determines what the layer keeps. CODE_FUSED:
 * code that keeps only what the schedule's ops read. */
enum layer_code { CODE_FUSED, CODE_TITAN, CODE_LLAMA, CODE_GEMMA, CODE_GPT2, CODE_NANOTRON };

/* A row of schedule/choices/kept.def, whose columns are explained there. All but code, kernels and autocast are bytes
 * per element. */
struct kept_bytes_row {
    uint8_t code, kernels;
    bool autocast;
    uint8_t input, first, second, after, heads, inputs1, inputs2, act, d_act, joint_q, joint_kv,
        again, d_norm, d_narrow;
};

/* True if layers run under torch.autocast over fp32 parameters. Profile hf-ddp does so, however weights are shared: it
 * is Hugging Face's Trainer without FSDP, whose operators are those of autocast; with FSDP it is profile hf. torchtitan
 * does so if FSDP shards no weights (maybe_enable_amp()). False if adapters are trained: then the frozen weights are
 * loaded in 16 bits. */
bool kept_layer_runs_under_autocast(const struct choices *choices);
/* The products of a layer; true for those whose results --activations selective-op keeps. Products that the layer's
 * code computes as one have the same value. */
struct products_with_kept_results {
    bool q, k, v, o, gate, up, down;
};

/* Returns the products whose results are kept, for a layer without experts and without latent attention; none unless
 * activations are selective-op. torchtitan's policy counts the products without a bias (aten.mm) of a layer in the
 * order in which they are called, and keeps the first, third and so on. A product with a bias is aten.addmm, which it
 * always keeps. */
struct products_with_kept_results kept_products_of(const struct choices *choices);
/* True if attention's core is the part of a layer whose results are kept while the rest is recomputed: with activations
 * selective and selective-op. */
bool kept_keeps_core_only(const struct choices *choices);
/* Returns the row for the choices. All columns are 0 if the layer keeps only what ops read, and if it computes in fp32.
 * They are also 0 with --activations ratio or --host-layers, which can copy to the host only what ops wrote; for the
 * same reason `input` is 0 with --activations offload. joint_q, joint_kv and again are 0 unless attention is local and
 * nothing is copied to the host. */
struct kept_bytes_row kept_bytes_of(const struct choices *choices);

#endif
