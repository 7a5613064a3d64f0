/* cli/setup/options.c: the tables of the options that describe a model and a cluster, and the
 * printing of a command with part of the given options. The options of choices are in
 * predict/setup/choices.def. */
#include "cli/setup/options.h"

#include "models/cluster.h"
#include "predict/setup/choice_rows.h"

#include <assert.h>

static const struct option model_rows[] = {
    {.name = "from",
     .kind = OPTION_REPEATABLE,
     .value_name = "FILE",
     .help =
         "take the options of a training framework's launch file (docs/launching.md): arguments "
         "of Megatron or torchtitan (a script, or a line of them), torchtitan TOML, DeepSpeed "
         "JSON, YAML of Accelerate, TRL or llm-foundry, or the files and commands of Axolotl, "
         "LLaMA-Factory, ms-swift, verl, OpenRLHF, Megatron-Bridge, NeMo 2 or nanotron; may be "
         "repeated; options on the command line override those of the file"},
    {.name = "model",
     .kind = OPTION_TEXT,
     .value_name = "NAME|FILE|LINE",
     .help = "the model: a preset, a Hugging Face config.json, a model file (docs/commands.md), or "
             "fields on one line: layers=32,hidden=4096,heads=32,ffn=11008,vocab=32000"},
    {.name = "ignore",
     .kind = OPTION_TEXT,
     .value_name = "KEYS",
     .help = "keys of config.json that are not read, separated by commas"},
    {.name = "as-dense",
     .kind = OPTION_FLAG,
     .help = "predict a model with parts that are not modelled (linear attention, ALiBi, soft-caps "
             "and others) as the nearest dense one, with the parameters that a token passes; "
             "outputs call it a dense proxy"},
    {.name = "set",
     .kind = OPTION_TEXT,
     .value_name = "FIELD=VALUE",
     .help = "change fields of the model, separated by commas: vocab=50257,layers=16"},
};
const struct option_set setup_model_options = {"model", model_rows, ARRAY_LEN(model_rows)};

static const struct option cluster_rows[] = {
    {.name = "cluster",
     .kind = OPTION_TEXT,
     .value_name = "NAME|FILE|LINE",
     .help = "the cluster: a preset, a cluster file, or one line such as 2x4xh100 (nodes x GPUs x "
             "device)"},
    {.name = "nodes",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = CLUSTER_MAX_NODES,
     .unset_text = "all of the cluster",
     .help = "number of nodes that are used"},
    {.name = "gpus",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS,
     .unset_text = "all of the nodes",
     .help = "number of GPUs that are used: those of whole nodes, or some of one node"},
    {.name = "loopback",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = CLUSTER_MAX_GPUS_PER_NODE,
     .unset_text = "a GPU for each rank",
     .help = "number of ranks that share one GPU, as in `longhaul run --backend cuda` on one GPU"},
    {.name = "costs",
     .kind = OPTION_TEXT,
     .value_name = "NAME|FILE",
     .unset_text = "those the cluster names",
     .help = "the device file with the time of each kind of work: a preset, or a file written by "
             "`longhaul calibrate`"},
    {.name = "framework",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .unset_text = "that of --profile",
     .help = "the training framework that runs, if it has no profile and that of another stands "
             "for it; its interval counts as one of a framework that was never measured"},
    {.name = "at-most",
     .kind = OPTION_TEXT,
     .value_name = "REASONS",
     .help =
         "why the run does less than is predicted, so that what is predicted is the most that "
         "it needs: adapter (it trains an adapter, or part of the weights), bits (frozen "
         "weights have 8 or 4), lengths (sequences are shorter than the longest), or several of "
         "these, separated by commas; launch files say it"},
    {.name = "measured",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help = "your own measured runs, by which intervals shift and narrow: lines of `predict "
             "--record` with the measured values filled in, or a table of `validate --residuals`"},
};
const struct option_set setup_cluster_options = {"cluster", cluster_rows, ARRAY_LEN(cluster_rows)};

const struct option_set setup_choice_options = {"choices", choice_options, CHOICE_OPTION_COUNT};

void setup_put_given_options(struct text *out, const struct options *options,
                             const struct option_set *own,
                             bool (*keeps)(const struct choice_row *row), const char *const *drop)
{
    enum { NAMES_MAX = 128 };
    const char *left_out_options[NAMES_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < own->option_count; i++) {
        assert(count < NAMES_MAX);
        left_out_options[count++] = own->option[i].name;
    }
    for (int i = 0; i < CHOICE_NAME_COUNT; i++) {
        if (choice_rows[i].option == NULL || keeps(&choice_rows[i]))
            continue;
        assert(count < NAMES_MAX);
        left_out_options[count++] = choice_rows[i].option->name;
    }
    for (; *drop != NULL; drop++) {
        assert(count < NAMES_MAX);
        left_out_options[count++] = *drop;
    }
    left_out_options[count] = NULL;
    options_put_command(out, options, left_out_options);
}
