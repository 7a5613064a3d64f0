/* The tables of options that describe a model, a cluster and a configuration. */
#include "cli/setup/options.h"

#include "models/cluster.h"
#include "models/cost.h"
#include "predict/setup/partition_option.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

#include <assert.h>

static const char *const dtype_choices[] = {"bf16", "f16", "f32"}; /* as enum dtype begins */
static const char *const attention_choices[] = {"fa2", "fa3", "cudnn", "cpu", "triton", "fa1"};
static const char *const checkpoint_choices[] = {
    "none",         "selective++",     "full",          "offload", "selective++offload",
    "selective-op", "selective-layer", "selective-core"};

_Static_assert(DTYPE_BF16 == 0 && DTYPE_F16 == 1 && DTYPE_F32 == 2, "dtype_choices");
_Static_assert(ATTENTION_FA2 == 0 && ATTENTION_CPU == 3 && ATTENTION_TRITON == 4 &&
                   ATTENTION_FA1 == 5,
               "attention_choices");
_Static_assert(CHOICE_ACTIVATIONS_KEEP == 0 && CHOICE_ACTIVATIONS_OFFLOAD == 3,
               "checkpoint_choices");

static const struct option model_rows[] = {
    {.name = "from",
     .kind = OPTION_LIST,
     .value = "FILE",
     .help = "take the options of a training framework's launch file (docs/launching.md): Megatron "
             "arguments (a script, or a line of them), torchtitan TOML, DeepSpeed JSON, or YAML of "
             "Accelerate, TRL or llm-foundry; may be repeated; options on the command line "
             "override those of the file"},
    {.name = "model",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE|LINE",
     .help = "the model: a preset, a Hugging Face config.json, a model file (docs/commands.md), or "
             "fields "
             "on one line: layers=32,hidden=4096,heads=32,ffn=11008,vocab=32000"},
    {.name = "ignore",
     .kind = OPTION_TEXT,
     .value = "KEYS",
     .help = "keys of config.json that are not read, separated by commas"},
    {.name = "as-dense",
     .kind = OPTION_FLAG,
     .help = "predict a model with parts that are not modelled (experts, latent or linear "
             "attention, ALiBi and others) "
             "as the nearest dense one, with the parameters that a token passes; outputs call it a "
             "dense proxy"},
    {.name = "set",
     .kind = OPTION_TEXT,
     .value = "FIELD=VALUE",
     .help = "change fields of the model, separated by commas: vocab=50257,layers=16"},
};
const struct option_set setup_model_options = {"model", model_rows, ARRAY_LEN(model_rows)};

static const struct option cluster_rows[] = {
    {.name = "cluster",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE|LINE",
     .help = "the cluster: a preset, a cluster file, or one line such as 2x4xh100 (nodes x GPUs x "
             "device)"},
    {.name = "nodes",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_NODES,
     .unset = "all of the cluster",
     .help = "number of nodes that are used"},
    {.name = "gpus",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "all of the nodes",
     .help = "number of GPUs that are used: those of whole nodes, or some of one node"},
    {.name = "loopback",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS_PER_NODE,
     .unset = "a GPU for each rank",
     .help = "number of ranks that share one GPU, as in `longhaul run --backend cuda` on one GPU"},
    {.name = "costs",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE",
     .unset = "those the cluster names",
     .help = "the device file with the time of each kind of work: a preset, or a file written by "
             "`longhaul calibrate`"},
};
const struct option_set setup_cluster_options = {"cluster", cluster_rows, ARRAY_LEN(cluster_rows)};

#define SIZE_MAX_SEQUENCES (1 << 20)

static const struct option choice_rows[] = {
    {.name = "strategy",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "ulysses",
     .help = "the strategy: a named combination of an attention, degrees of parallelism, weights "
             "and activations; `longhaul list strategies` explains each"},
    {.name = "profile",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "neutral",
     .help = "whose implementation is predicted: neutral is one well-made implementation of every "
             "strategy, published the one that the strategy's paper measured; `longhaul list "
             "profiles` explains all"},
    {.name = "seq",
     .kind = OPTION_TOKENS,
     .value = "TOKENS",
     .help = "length of a sequence in tokens: 131072, 128K, 1M"},
    {.name = "batch",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = SIZE_MAX_SEQUENCES,
     .unset = "dp x micro-batch",
     .help = "number of sequences in one step, over all GPUs"},
    {.name = "micro-batch",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 1024,
     .unset = "1",
     .help = "number of sequences that a group of ranks computes at a time"},
    {.name = "dp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "GPUs / cp / hp / tp",
     .help = "data-parallel degree: groups of ranks that hold different sequences"},
    {.name = "hp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "the largest that divides",
     .help = "head-parallel degree (Ulysses): ranks that share a sequence by attention heads"},
    {.name = "cp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "GPUs / dp / hp / tp",
     .help = "context-parallel degree: ranks around a ring that share a sequence by tokens"},
    {.name = "tp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1; megatron-sp, sppo: as many as fit in a node",
     .help = "tensor-parallel degree: ranks that share heads, feed-forward width and vocabulary "
             "(with sequence parallelism)"},
    {.name = "pp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1; sppo: as many as there are GPUs for",
     .help = "pipeline-parallel degree: groups of ranks that hold different layers"},
    {.name = "pipeline",
     .kind = OPTION_CHOICE,
     .names = pipeline_names,
     .name_count = CHOICE_PIPELINE_COUNT,
     .unset = "1f1b, seq1f1b or interleaved",
     .help = "the order in which pipeline stages take micro-batches and subsequences"},
    {.name = "helper-weights",
     .kind = OPTION_CHOICE,
     .names = helper_names,
     .name_count = HELPERS_COUNT,
     .unset = "broadcast",
     .help = "with --pipeline msp: how stages that share subsequences get each other's weights"},
    {.name = "share-units",
     .kind = OPTION_TEXT,
     .value = "auto|both|first|N|N,M",
     .unset = "auto; both in a run",
     .help = "with --pipeline msp: which subsequences stages share. both: the first ones, while "
             "the pipeline fills, and the last ones, while it drains; first: only the first "
             "ones; N or N,M: at most N first and M last ones; auto: as many as are predicted to "
             "be fastest"},
    {.name = "virtual-stages",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 255,
     .unset = "the pipeline's",
     .help = "number of chunks of layers on each stage of a pipeline"},
    {.name = "subsequences",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65000,
     .unset = "1; sppo: of 8K tokens",
     .help = "number of pieces into which each sequence is cut; the pieces go through the layers "
             "one after the other"},
    {.name = "partition",
     .kind = OPTION_CHOICE,
     .names = partition_option_names,
     .name_count = PARTITION_OPTION_COUNT,
     .unset = "length; sppo: flops-full",
     .help = "which quantity is the same in all subsequences: length, flops of causal attention "
             "(flops) or of full attention (flops-full), or predicted time"},
    {.name = "window",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1",
     .help = "number of ranks in an inner ring of Double-Ring attention; 1: a single ring"},
    {.name = "windows",
     .kind = OPTION_CHOICE,
     .names = windows_names,
     .name_count = WINDOWS_COUNT,
     .unset = "profile",
     .help = "which ranks form the inner ring of --window: neighbours (contiguous), or the even "
             "ranks of a node and then its odd ranks (interleaved)"},
    {.name = "rotate",
     .kind = OPTION_CHOICE,
     .names = rotation_names,
     .name_count = ROTATION_COUNT,
     .unset = "profile",
     .help = "how keys and values travel around a ring: by messages (p2p), by all-to-alls with one "
             "peer each, or by one all-gather"},
    {.name = "compile",
     .kind = OPTION_FLAG,
     .help =
         "predict torch.compile: norms, rotary embeddings, activations and merges of ring blocks "
         "are fused into one or two kernels each, and the first block of a ring waits for "
         "gathered keys and values"},
    {.name = "placement",
     .kind = OPTION_CHOICE,
     .names = placement_names,
     .name_count = PLACEMENT_COUNT,
     .unset = "head-first",
     .help = "which ranks are neighbours in a node: those of a head group (head-first), or those "
             "of a ring (context-first)"},
    {.name = "stage-placement",
     .kind = OPTION_CHOICE,
     .names = stage_placement_names,
     .name_count = STAGE_PLACEMENT_COUNT,
     .unset = "outer",
     .help = "which ranks are neighbours: those of one pipeline stage (outer), or those of all "
             "stages of one data-parallel replica (inner)"},
    {.name = "layout",
     .kind = OPTION_CHOICE,
     .names = ring_layout_names,
     .name_count = RING_LAYOUT_COUNT,
     .unset = "zigzag",
     .help = "which tokens each rank of a ring holds"},
    {.name = "ulysses",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .help = "the same as --hp"},
    {.name = "weights",
     .kind = OPTION_CHOICE,
     .names = weights_names,
     .name_count = CHOICE_WEIGHTS_COUNT,
     .unset = "the strategy's: zero3",
     .help = "how ranks share weights, gradients and optimizer states"},
    {.name = "zero",
     .kind = OPTION_COUNT,
     .value = "STAGE",
     .low = 0,
     .high = 3,
     .help = "ZeRO stage: 0 is --weights replicated, 1 to 3 are --weights zero1 to zero3"},
    {.name = "shard",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "a node",
     .help = "with --weights hsdp: number of ranks that share one copy of the weights; with zero1: "
             "number of ranks that share one copy of the optimizer's states (all ranks unless it "
             "is given)"},
    {.name = "activations",
     .kind = OPTION_CHOICE,
     .names = activations_names,
     .name_count = CHOICE_ACTIVATIONS_COUNT,
     .unset = "the strategy's: full",
     .help =
         "which activations are kept from the forward to the backward. keep: all; full: only "
         "the inputs of layers, and the rest is recomputed; selective: the inputs of layers "
         "and the outputs of attention's core; offload: as full, with the inputs of layers "
         "on the host; selective-offload: as selective, with the outputs of attention's core on "
         "the host; "
         "selective-op, selective-layer: as torchtitan does; selective-core: as Megatron-LM "
         "does; ratio: a share of all activations goes to the host"},
    {.name = "checkpoint",
     .kind = OPTION_CHOICE,
     .names = checkpoint_choices,
     .name_count = ARRAY_LEN(checkpoint_choices),
     .help = "the same as --activations, by the usual names; none: keep"},
    {.name = "offload-ratio",
     .kind = OPTION_TEXT,
     .value = "none|full|adaptive|0.XX",
     .unset = "full; sppo: adaptive",
     .help = "the share of the activations of a micro-batch or subsequence that is offloaded to "
             "the host (implies --activations ratio); adaptive: as much as can be copied while the "
             "GPU computes"},
    {.name = "optimizer",
     .kind = OPTION_CHOICE,
     .names = optimizer_names,
     .name_count = CHOICE_OPTIMIZER_COUNT,
     .unset = "device",
     .help = "where AdamW runs and its states are: on the GPU (device) or on the host"},
    {.name = "states",
     .kind = OPTION_CHOICE,
     .names = states_names,
     .name_count = STATES_COUNT,
     .unset = "fp32",
     .help = "precision of what AdamW keeps for a parameter. fp32: an fp32 copy and two fp32 "
             "moments, 12 bytes; 8bit: an fp32 copy and two 8-bit moments, 6 bytes; bf16: two bf16 "
             "moments and no copy, 4 bytes, with a bf16 gradient"},
    {.name = "dropout",
     .kind = OPTION_CHOICE,
     .names = dropout_names,
     .name_count = DROPOUT_COUNT,
     .unset = "profile",
     .help = "dropout of attention scores, with which attention kernels take 1.15 times as long; "
             "profile: as in the profile"},
    {.name = "loss-chunks",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65535,
     .unset = "1",
     .help = "number of pieces into which a rank's tokens are cut for the loss, which is computed "
             "piece by piece"},
    {.name = "ffn-chunks",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65535,
     .unset = "1",
     .help = "number of pieces into which a rank's tokens are cut for the feed-forward part, which "
             "is computed piece by piece"},
    {.name = "chunk",
     .kind = OPTION_TOKENS,
     .value = "TOKENS",
     .unset = "64K",
     .help = "with --strategy fpdt: number of tokens in a chunk of the sequence, over all ranks "
             "that share the sequence"},
    {.name = "kv-offload",
     .kind = OPTION_CHOICE,
     .names = kv_offload_names,
     .name_count = KV_OFFLOAD_COUNT,
     .unset = "on",
     .help =
         "with --strategy fpdt: whether what later tiles read of a chunk (queries, keys, values, "
         "outputs, gradients) is kept on the host in between"},
    {.name = "fetch",
     .kind = OPTION_CHOICE,
     .names = fetch_names,
     .name_count = FETCH_COUNT,
     .unset = "each",
     .help = "with --strategy fpdt: which rank fetches a chunk from the host. each: every rank "
             "its part; one: one rank, which scatters it to the others"},
    {.name = "sparsity",
     .kind = OPTION_NUMBER,
     .value = "SHARE",
     .unset = "none",
     .help = "with --strategy fpdt: the share of the keys and values of each chunk, its last ones, "
             "that other chunks do not attend to"},
    {.name = "chunk-order",
     .kind = OPTION_CHOICE,
     .names = chunk_order_names,
     .name_count = ORDER_COUNT,
     .unset = "kv-outer",
     .help = "with --strategy fpdt: the outer loop of the backward, over chunks of keys and values "
             "or of queries"},
    {.name = "attention",
     .kind = OPTION_CHOICE,
     .names = attention_choices,
     .name_count = ARRAY_LEN(attention_choices),
     .unset = "the profile's",
     .help = "the attention kernels whose times and workspaces the prediction uses"},
    {.name = "scope",
     .kind = OPTION_CHOICE,
     .names = scope_names,
     .name_count = SCOPE_COUNT,
     .unset = "model",
     .help = "what is predicted. model: the whole step; layers: the step without embedding, head, "
             "reductions and optimizer; layer: one layer; attention: one attention operator; :fwd, "
             ":bwd, :exchange and :fetch: only that part of it"},
    {.name = "dtype",
     .kind = OPTION_CHOICE,
     .names = dtype_choices,
     .name_count = ARRAY_LEN(dtype_choices),
     .unset = "bf16",
     .help = "number format of computation"},
};
const struct option_set setup_choice_options = {"choices", choice_rows, ARRAY_LEN(choice_rows)};

void setup_put_given(struct text *out, const struct options *options, const struct option_set *own,
                     const char *const *keep, const char *const *drop)
{
    enum { NAMES_MAX = 128 };
    const struct option_set *const sets[] = {own, &setup_choice_options};
    const char *without[NAMES_MAX];
    size_t count = 0;
    for (size_t s = 0; s < ARRAY_LEN(sets); s++)
        for (size_t i = 0; i < sets[s]->count; i++) {
            const char *name = sets[s]->option[i].name;
            if (sets[s] == own || !options_are_without(keep, name))
                without[count++] = name;
        }
    for (; *drop != NULL; drop++)
        without[count++] = *drop;
    assert(count < NAMES_MAX);
    without[count] = NULL;
    options_put_command(out, options, without);
}
