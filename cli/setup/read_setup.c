#include "cli/setup/read_setup.h"

#include "base/text.h"
#include "cli/setup/options.h"
#include "predict/setup/partition_option.h"
#include "predict/setup/subsequences.h"
#include "schedule/choices/strategies.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum status share_gpu(struct setup *setup, const struct options *options, struct diag *diag)
{
    if (!options_given(options, "loopback"))
        return STATUS_OK;
    enum status status = options_exclude(options, "loopback", "gpus", diag);
    if (status == STATUS_OK)
        status = options_exclude(options, "loopback", "nodes", diag);
    return status == STATUS_OK ? setup_share_gpu(setup, options_count(options, "loopback"), diag)
                               : status;
}

/* Refuses options of a set, which do not apply to a schedule from a file. */
static enum status refuse(const struct options *options, const struct option_set *set,
                          const char *const *except, size_t excepted, struct diag *diag)
{
    for (size_t i = 0; i < set->count; i++) {
        const char *name = set->option[i].name;
        bool taken = false;
        for (size_t k = 0; k < excepted; k++)
            taken |= strcmp(name, except[k]) == 0;
        if (options_given(options, name) && !taken) {
            char shown[40] = "--";
            strncat(shown, name, sizeof shown - 3);
            return diag_error(diag, (struct loc){.name = shown}, STATUS_BAD_INPUT,
                              "applies to schedules that longhaul builds; the choices of the "
                              "schedule file '%s' are already made",
                              options->argument[0]);
        }
    }
    return STATUS_OK;
}

static enum status need(const struct options *options, const char *name, const char *what,
                        struct diag *diag)
{
    if (options_given(options, name))
        return STATUS_OK;
    char shown[40] = "--";
    strncat(shown, name, sizeof shown - 3);
    return diag_error(diag, (struct loc){.name = shown}, STATUS_BAD_INPUT, "is missing: %s", what);
}

static enum status read_offload_ratio(struct setup *setup, const struct options *options,
                                      struct diag *diag)
{
    struct request *r = &setup->request;
    struct loc at = {.name = "--offload-ratio"};
    double ratio = 0;
    if (!options_given(options, "offload-ratio"))
        return STATUS_OK;
    const char *text = options_text(options, "offload-ratio");
    if (r->activations >= 0 && r->activations != CHOICE_ACTIVATIONS_RATIO)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "is for --activations ratio, and activations are '%s'",
                          activations_names[r->activations]);
    r->activations = CHOICE_ACTIVATIONS_RATIO;
    setup->offload_given = true;
    if (strcmp(text, "none") == 0)
        r->activations = CHOICE_ACTIVATIONS_KEEP;
    else if (strcmp(text, "adaptive") == 0)
        r->offload_adaptive = true;
    else if (strcmp(text, "full") == 0)
        r->offload_ratio = 1;
    else if (parse_double(text, strlen(text), &ratio) && ratio > 0 && ratio <= 1)
        r->offload_ratio = ratio;
    else
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' is not none, full, adaptive or a share above 0, at most 1", text);
    return STATUS_OK;
}

/* Which subsequences stages of `msp` share; left open it is chosen by costs. */
static enum status read_shared(struct setup *setup, const struct options *options,
                               struct diag *diag)
{
    struct request *r = &setup->request;
    struct shared_units *shared = &setup->shared;
    const char *text =
        options_given(options, "share-units") ? options_text(options, "share-units") : "auto";
    const char *comma = strchr(text, ',');
    size_t size = comma != NULL ? (size_t)(comma - text) : strlen(text);
    uint64_t first = 0, last = 0;
    r->shared_open = strcmp(text, "auto") == 0;
    if (r->shared_open)
        return STATUS_OK;
    r->shared = shared;
    if (strcmp(text, "both") == 0)
        *shared = (struct shared_units){SHARED_ALL, SHARED_ALL};
    else if (strcmp(text, "first") == 0)
        *shared = (struct shared_units){SHARED_ALL, 0};
    else if (parse_u64(text, size, &first) && first <= UINT16_MAX &&
             (comma == NULL ||
              (parse_u64(comma + 1, strlen(comma + 1), &last) && last <= UINT16_MAX)))
        *shared = (struct shared_units){(uint32_t)first, (uint32_t)last};
    else
        return diag_error(diag, (struct loc){.name = "--share-units"}, STATUS_BAD_INPUT,
                          "'%s' is not auto, both, first, a number of first subsequences, or that "
                          "and one of last ones, such as 3,1",
                          text);
    return STATUS_OK;
}

static enum status read_choices(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    static const char *const same[][2] = {
        {"ulysses", "hp"}, {"zero", "weights"}, {"checkpoint", "activations"}};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        enum status status = options_exclude(options, same[i][0], same[i][1], diag);
        if (status != STATUS_OK)
            return status;
    }
    struct request *r = &setup->request;
    r->strategy = options_text(options, "strategy");
    r->profile = options_text(options, "profile");
    r->seq = options_count(options, "seq");
    r->global_batch = options_count(options, "batch");
    r->micro_batch = options_count(options, "micro-batch");
    r->dp = options_count(options, "dp");
    r->hp = options_count(options, options_given(options, "ulysses") ? "ulysses" : "hp");
    r->cp = options_count(options, "cp");
    r->pp = options_count(options, "pp");
    if (options_given(options, "pipeline"))
        r->pipeline = options_choice(options, "pipeline");
    if (options_given(options, "helper-weights"))
        r->helpers = options_choice(options, "helper-weights");
    r->virtual_stages = options_count(options, "virtual-stages");
    r->tp = options_count(options, "tp");
    r->subsequences = options_count(options, "subsequences");
    r->window = options_count(options, "window");
    if (options_given(options, "windows"))
        r->windows = options_choice(options, "windows");
    r->compile = options_given(options, "compile");
    if (options_given(options, "rotate"))
        r->rotate = options_choice(options, "rotate");
    if (options_given(options, "scope"))
        r->scope = options_choice(options, "scope");
    if (options_given(options, "placement"))
        r->placement = options_choice(options, "placement");
    if (options_given(options, "stage-placement"))
        r->stage_placement = options_choice(options, "stage-placement");
    if (options_given(options, "layout"))
        r->ring_layout = options_choice(options, "layout");
    r->weights = options_choice(options, "weights");
    if (options_given(options, "zero"))
        r->weights = CHOICE_WEIGHTS_REPLICATED + (int)options_count(options, "zero");
    r->shard = options_count(options, "shard");
    r->activations = options_choice(options, options_given(options, "checkpoint") ? "checkpoint"
                                                                                  : "activations");
    enum status status = read_offload_ratio(setup, options, diag);
    if (status == STATUS_OK)
        status = read_shared(setup, options, diag);
    if (status != STATUS_OK)
        return status;
    r->optimizer = options_choice(options, "optimizer");
    if (options_given(options, "states"))
        r->states = options_choice(options, "states");
    if (options_given(options, "dropout"))
        r->dropout = options_choice(options, "dropout");
    r->loss_chunks = options_count(options, "loss-chunks");
    r->ffn_chunks = options_count(options, "ffn-chunks");
    r->chunk = options_count(options, "chunk");
    if (options_given(options, "sparsity")) {
        double share = options_number(options, "sparsity");
        if (r->chunk == 0 || share >= 1)
            return diag_error(diag, (struct loc){.name = "--sparsity"}, STATUS_BAD_INPUT,
                              r->chunk == 0 ? "needs --chunk: it is a share of each chunk"
                                            : "is a share below 1");
        setup_sparsity(setup, r->chunk, share);
    }
    if (options_given(options, "fetch"))
        r->fetch = options_choice(options, "fetch");
    if (options_given(options, "kv-offload"))
        r->kv_offload = options_choice(options, "kv-offload");
    if (options_given(options, "chunk-order"))
        r->chunk_order = options_choice(options, "chunk-order");
    r->attention_impl = options_choice(options, "attention");
    r->dtype = options_choice(options, "dtype");
    return STATUS_OK;
}

_Static_assert(CHOICE_WEIGHTS_ZERO3 == CHOICE_WEIGHTS_REPLICATED + 3, "--zero counts on it");

enum status setup_of_file(const struct options *options, struct diag *diag)
{
    enum status status = refuse(options, &setup_model_options, NULL, 0, diag);
    if (status == STATUS_OK)
        status = refuse(options, &setup_choice_options, NULL, 0, diag);
    return status == STATUS_OK ? refuse(options, &setup_cluster_options, NULL, 0, diag) : status;
}

/* Loads the choices that options make, and lets the strategy fill those left open. */
static enum status load_choices(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    struct request *r = &setup->request;
    enum status status = read_choices(setup, options, diag);
    setup->partition_given = options_given(options, "partition");
    if (setup->partition_given)
        r->partition = (int)options_choice(options, "partition");
    subsequences_open(r, setup);
    return status;
}

enum status setup_choose(struct setup *setup, const struct options *options, struct diag *diag)
{
    setup_open_request(setup);
    return load_choices(setup, options, diag);
}

/* Reports a missing file, before options that its schedule needs are checked. */
static enum status find_file(const char *path, struct diag *diag)
{
    if (strcmp(path, "-") == 0 || access(path, R_OK) == 0)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot open: %s",
                      strerror(errno));
}

/* Loads the model that --model names, and applies options that ignore or set parts of it. */
static enum status load_model(struct setup *setup, const struct options *options, struct diag *diag)
{
    setup->as_dense = options_given(options, "as-dense");
    return setup_load_model(setup, options_text(options, "model"), options_text(options, "ignore"),
                            options_text(options, "set"), diag);
}

static enum status load_machine(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    enum status status =
        setup_load_cluster(setup, options_text(options, "cluster"), options_count(options, "nodes"),
                           options_count(options, "gpus"), diag);
    return status == STATUS_OK ? setup_load_costs(setup, options_text(options, "costs"), diag)
                               : status;
}

static const char needed_model[] = "a preset or file; `longhaul list models`";
static const char needed_cluster[] = "a preset, file or line; `longhaul list clusters`";

enum status setup_load_open(struct setup *setup, const struct options *options, struct diag *diag)
{
    enum status status = need(options, "model", needed_model, diag);
    if (status == STATUS_OK)
        status = need(options, "cluster", needed_cluster, diag);
    if (status == STATUS_OK)
        status = load_model(setup, options, diag);
    if (status == STATUS_OK)
        status = load_machine(setup, options, diag);
    return status == STATUS_OK ? setup_choose(setup, options, diag) : status;
}

enum status setup_load(struct setup *setup, const struct options *options, bool from_file,
                       struct diag *diag)
{
    static const char *const of_files[] = {"attention", "profile"}; /* what times depend on */
    enum status status;
    if (from_file) {
        status = find_file(options->argument[0], diag);
        if (status == STATUS_OK)
            status = refuse(options, &setup_model_options, NULL, 0, diag);
        if (status == STATUS_OK)
            status = refuse(options, &setup_choice_options, of_files, ARRAY_LEN(of_files), diag);
    } else {
        status = need(options, "model", needed_model, diag);
        if (status == STATUS_OK)
            status = need(options, "seq", "tokens of one sequence, such as 128K", diag);
    }
    if (status == STATUS_OK)
        status = need(options, "cluster", needed_cluster, diag);
    if (status == STATUS_OK && !from_file)
        status = load_model(setup, options, diag);
    if (status == STATUS_OK)
        status = load_machine(setup, options, diag);
    if (status == STATUS_OK)
        status = share_gpu(setup, options, diag);
    if (status != STATUS_OK)
        return status;
    setup_open_request(setup);
    if (!from_file)
        return load_choices(setup, options, diag);
    setup->request.attention_impl = options_choice(options, "attention");
    if (options_given(options, "profile"))
        setup->request.profile = options_text(options, "profile");
    return STATUS_OK;
}

static enum status load_ranks(struct setup *setup, const struct options *options, struct diag *diag)
{
    if (options_given(options, "costs"))
        return diag_error(diag, (struct loc){.name = "--costs"}, STATUS_BAD_INPUT,
                          "a run measures times and uses no costs; leave it out");
    if (options_given(options, "cluster")) {
        enum status status = setup_load_cluster(setup, options_text(options, "cluster"),
                                                options_count(options, "nodes"),
                                                options_count(options, "gpus"), diag);
        return status == STATUS_OK ? share_gpu(setup, options, diag) : status;
    }
    if (options_given(options, "nodes"))
        return diag_error(diag, (struct loc){.name = "--nodes"}, STATUS_BAD_INPUT,
                          "needs --cluster, which gives the number of GPUs in a node");
    enum status status = options_exclude(options, "loopback", "gpus", diag);
    if (status != STATUS_OK)
        return status;
    setup->cluster.gpus = options_given(options, "loopback") ? options_count(options, "loopback")
                          : options_given(options, "gpus")   ? options_count(options, "gpus")
                                                             : 1;
    setup->cluster.gpus_per_node = setup->cluster.gpus;
    return STATUS_OK;
}

enum status setup_load_run(struct setup *setup, const struct options *options, bool from_file,
                           struct diag *diag)
{
    enum status status = STATUS_OK;
    if (from_file) {
        status = refuse(options, &setup_choice_options, NULL, 0, diag);
        if (status == STATUS_OK)
            status = refuse(options, &setup_cluster_options, NULL, 0, diag);
    } else {
        status = need(options, "model", needed_model, diag);
        if (status == STATUS_OK)
            status = need(options, "seq", "tokens of one sequence, such as 4K", diag);
    }
    if (status == STATUS_OK && options_given(options, "model"))
        status = load_model(setup, options, diag);
    if (status != STATUS_OK || from_file)
        return status;
    status = load_ranks(setup, options, diag);
    setup_open_request(setup);
    if (status == STATUS_OK)
        status = load_choices(setup, options, diag);
    struct request *r = &setup->request;
    if (status == STATUS_OK && r->offload_adaptive && setup->offload_given)
        return diag_error(
            diag, (struct loc){.name = "--offload-ratio"}, STATUS_BAD_INPUT,
            "'adaptive' needs the costs of a cluster, and a run has none; 0.5 would do");
    r->offload_adaptive = false; /* a strategy's own: all of it instead */
    r->shared_open = false;      /* the same */
    if (status == STATUS_OK && r->partition == PARTITION_OPTION_TIME)
        return diag_error(diag, (struct loc){.name = "--partition"}, STATUS_BAD_INPUT,
                          "'time' needs the costs of a cluster, and a run has none; flops "
                          "would do");
    return status == STATUS_OK ? setup_fill(setup, diag) : status;
}
