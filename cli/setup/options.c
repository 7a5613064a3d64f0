/* The options that say what is asked about, as tables. */
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
    {.name = "model",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE",
     .help = "a preset, a Hugging Face config.json or a file of ours"},
    {.name = "ignore",
     .kind = OPTION_TEXT,
     .value = "KEYS",
     .help = "keys of config.json to leave unread, separated by commas"},
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
     .help = "a preset, a file, or one line such as 2x4xh100"},
    {.name = "nodes",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_NODES,
     .unset = "all of the cluster",
     .help = "nodes to use"},
    {.name = "gpus",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "all of the nodes",
     .help = "GPUs to use: whole nodes, or part of one"},
    {.name = "loopback",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS_PER_NODE,
     .unset = "a GPU for each rank",
     .help = "N ranks that share one GPU, as run --backend cuda has them"},
    {.name = "costs",
     .kind = OPTION_TEXT,
     .value = "NAME|FILE",
     .unset = "those the cluster names",
     .help = "what work costs on its devices: a preset, or a file that calibrate wrote"},
};
const struct option_set setup_cluster_options = {"cluster", cluster_rows, ARRAY_LEN(cluster_rows)};

#define SIZE_MAX_SEQUENCES (1 << 20)

static const struct option choice_rows[] = {
    {.name = "strategy",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "ulysses",
     .help = "a combination of choices; `longhaul list strategies`"},
    {.name = "profile",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "neutral",
     .help = "whose implementation: neutral is one well-made one for all strategies, published is "
             "the strategy's own; `longhaul list profiles` has all"},
    {.name = "seq",
     .kind = OPTION_TOKENS,
     .value = "TOKENS",
     .help = "tokens of one sequence: 131072, 128K, 1M"},
    {.name = "batch",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = SIZE_MAX_SEQUENCES,
     .unset = "dp x micro-batch",
     .help = "sequences of one step, over all GPUs"},
    {.name = "micro-batch",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 1024,
     .unset = "1",
     .help = "sequences that a group of ranks takes at a time"},
    {.name = "dp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "GPUs / cp / hp / tp",
     .help = "groups of ranks that hold different sequences"},
    {.name = "hp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "the largest that divides",
     .help = "ranks that share a sequence by heads"},
    {.name = "cp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "GPUs / dp / hp / tp",
     .help = "ranks that share a sequence by context, around a ring"},
    {.name = "tp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1; megatron-sp, sppo: as many as fit in a node",
     .help = "ranks that share heads, feed-forward width and vocabulary (tensor and sequence "
             "parallel)"},
    {.name = "pp",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1; sppo: as many as there are GPUs for",
     .help = "stages of a pipeline: groups of ranks that have different layers"},
    {.name = "pipeline",
     .kind = OPTION_CHOICE,
     .names = pipeline_names,
     .name_count = CHOICE_PIPELINE_COUNT,
     .unset = "1f1b, seq1f1b or interleaved",
     .help = "the order in which stages take micro-batches and subsequences"},
    {.name = "helper-weights",
     .kind = OPTION_CHOICE,
     .names = helper_names,
     .name_count = HELPERS_COUNT,
     .unset = "broadcast",
     .help =
         "with --pipeline msp: how stages that share subsequences come by each other's weights"},
    {.name = "share-units",
     .kind = OPTION_TEXT,
     .value = "auto|both|first|N|N,M",
     .unset = "auto; both in a run",
     .help = "with --pipeline msp: which subsequences stages share: the first and the last of its "
             "phases, "
             "the first alone, at most N first and M last ones; auto: as many as are predicted to "
             "pay"},
    {.name = "virtual-stages",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 255,
     .unset = "the pipeline's",
     .help = "chunks of layers on each stage of a pipeline"},
    {.name = "subsequences",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65000,
     .unset = "1; sppo: of 8K tokens",
     .help = "pieces of a sequence that go through the layers one after the other"},
    {.name = "partition",
     .kind = OPTION_CHOICE,
     .names = partition_option_names,
     .name_count = PARTITION_OPTION_COUNT,
     .unset = "length; sppo: flops-full",
     .help =
         "what subsequences have alike: length, flops (attention halved by its mask, or taken for "
         "full) or predicted time"},
    {.name = "window",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "1",
     .help = "ranks of an inner ring (Double-Ring); 1: one ring of all"},
    {.name = "windows",
     .kind = OPTION_CHOICE,
     .names = windows_names,
     .name_count = WINDOWS_COUNT,
     .unset = "profile",
     .help = "neighbours are a window, or the even ranks of a node and then its odd ones"},
    {.name = "rotate",
     .kind = OPTION_CHOICE,
     .names = rotation_names,
     .name_count = ROTATION_COUNT,
     .unset = "profile",
     .help = "how keys and values come round a ring: messages, all-to-alls with one peer, or one "
             "all-gather"},
    {.name = "compile",
     .kind = OPTION_FLAG,
     .help = "torch.compile: norms, rotations and activations that a profile runs as chains of "
             "kernels, and merges of a ring, are one kernel each; a ring's first tile waits for "
             "gathered keys and values"},
    {.name = "placement",
     .kind = OPTION_CHOICE,
     .names = placement_names,
     .name_count = PLACEMENT_COUNT,
     .unset = "head-first",
     .help = "whose ranks are neighbours: those of a head group, or of a ring"},
    {.name = "stage-placement",
     .kind = OPTION_CHOICE,
     .names = stage_placement_names,
     .name_count = STAGE_PLACEMENT_COUNT,
     .unset = "outer",
     .help = "where stages of a pipeline lie: the ranks of a stage are neighbours, or neighbouring "
             "stages are, and other sequences farther"},
    {.name = "layout",
     .kind = OPTION_CHOICE,
     .names = ring_layout_names,
     .name_count = RING_LAYOUT_COUNT,
     .unset = "zigzag",
     .help = "which tokens a rank of a ring holds"},
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
     .help = "how weights, gradients and optimizer states are shared"},
    {.name = "zero",
     .kind = OPTION_COUNT,
     .value = "STAGE",
     .low = 0,
     .high = 3,
     .help = "the same as --weights zero1 to zero3; 0: replicated"},
    {.name = "shard",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset = "a node",
     .help = "ranks that share one copy of the weights, with --weights hsdp, or of the optimizer's "
             "states, with zero1 (of which all ranks share one unless it is given)"},
    {.name = "activations",
     .kind = OPTION_CHOICE,
     .names = activations_names,
     .name_count = CHOICE_ACTIVATIONS_COUNT,
     .unset = "the strategy's: full",
     .help = "keep all, recompute from layer inputs (full), but for attention's core (selective), "
             "inputs on the host (offload), or what the core made (selective-offload); "
             "torchtitan's: but "
             "for the core and every second product (selective-op), or every second layer "
             "(selective-layer); Megatron's: attention's core alone (selective-core)"},
    {.name = "checkpoint",
     .kind = OPTION_CHOICE,
     .names = checkpoint_choices,
     .name_count = ARRAY_LEN(checkpoint_choices),
     .help = "the same as --activations; none: keep"},
    {.name = "offload-ratio",
     .kind = OPTION_TEXT,
     .value = "none|full|adaptive|0.XX",
     .unset = "full; sppo: adaptive",
     .help =
         "with --activations ratio, which it implies: how much of what a unit (a micro-batch, a "
         "subsequence) keeps goes to the host; adaptive: what its computation hides"},
    {.name = "optimizer",
     .kind = OPTION_CHOICE,
     .names = optimizer_names,
     .name_count = CHOICE_OPTIMIZER_COUNT,
     .unset = "device",
     .help = "where AdamW and its states are"},
    {.name = "states",
     .kind = OPTION_CHOICE,
     .names = states_names,
     .name_count = STATES_COUNT,
     .unset = "fp32",
     .help = "what AdamW keeps of a parameter: 12 bytes (fp32: an fp32 copy and two moments); 4 "
             "bytes beside the bf16 parameter, whose gradient is bf16 too (bf16: two moments, no "
             "wider copy); 6 bytes (8bit: an fp32 copy and two 8-bit moments)"},
    {.name = "dropout",
     .kind = OPTION_CHOICE,
     .names = dropout_names,
     .name_count = DROPOUT_COUNT,
     .unset = "profile",
     .help = "dropout of attention scores, with which its kernels take 1.15 times as long; profile "
             "deepspeed has it, but for fpdt"},
    {.name = "loss-chunks",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65535,
     .unset = "1",
     .help = "pieces of a rank's tokens that the loss takes one after the other"},
    {.name = "ffn-chunks",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 65535,
     .unset = "1",
     .help = "the same for the feed-forward part"},
    {.name = "chunk",
     .kind = OPTION_TOKENS,
     .value = "TOKENS",
     .unset = "64K",
     .help = "tokens of a chunk of the sequence, over all its ranks; with --strategy fpdt"},
    {.name = "kv-offload",
     .kind = OPTION_CHOICE,
     .names = kv_offload_names,
     .name_count = KV_OFFLOAD_COUNT,
     .unset = "on",
     .help = "whether what other chunks read of a chunk waits on the host"},
    {.name = "fetch",
     .kind = OPTION_CHOICE,
     .names = fetch_names,
     .name_count = FETCH_COUNT,
     .unset = "each",
     .help = "who fetches a chunk from the host: each rank its part, or one rank, which scatters"},
    {.name = "sparsity",
     .kind = OPTION_NUMBER,
     .value = "SHARE",
     .unset = "none",
     .help =
         "share of the keys and values of a chunk, its last ones, that other chunks do not see"},
    {.name = "chunk-order",
     .kind = OPTION_CHOICE,
     .names = chunk_order_names,
     .name_count = ORDER_COUNT,
     .unset = "kv-outer",
     .help = "what the backward of chunks loops over outside: keys and values, or queries"},
    {.name = "attention",
     .kind = OPTION_CHOICE,
     .names = attention_choices,
     .name_count = ARRAY_LEN(attention_choices),
     .unset = "the profile's",
     .help = "implementation of attention, of which costs and workspaces are taken"},
    {.name = "scope",
     .kind = OPTION_CHOICE,
     .names = scope_names,
     .name_count = SCOPE_COUNT,
     .unset = "model",
     .help = "the step of the whole model, of one layer, or one attention operator alone"},
    {.name = "dtype",
     .kind = OPTION_CHOICE,
     .names = dtype_choices,
     .name_count = ARRAY_LEN(dtype_choices),
     .unset = "bf16",
     .help = "type of compute"},
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
