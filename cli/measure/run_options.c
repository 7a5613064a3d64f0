/* cli/measure/run_options.c: the options of `longhaul run`, and what they say of the run. */
#include "cli/measure/run_options.h"

#include "base/units.h"
#include "exec/backend.h"

#include <math.h>
#include <string.h>

enum { STEPS = 3 };

static const char *const epilogue_names[] = {"apart", "fused"};
static const char *const nccl_buffer_names[] = {"plain", "registered"};

static const struct option rows[] = {
    {.name = "backend",
     .kind = OPTION_TEXT,
     .value_name = "NAME",
     .default_text = "cpu",
     .help = "what executes the schedule: cpu (a thread for each rank and stream) or cuda (GPUs)"},
    {.name = "attention-by",
     .kind = OPTION_TEXT,
     .value_name = "WHO",
     .default_text = "auto",
     .help = "with --backend cuda, which code computes attention: fused (cuDNN), tiles (matrix "
             "products and kernels of ours), or auto (fused where cuDNN can)"},
    {.name = "epilogues",
     .kind = OPTION_CHOICE,
     .names = epilogue_names,
     .name_count = ARRAY_LEN(epilogue_names),
     .default_text = "apart",
     .help =
         "with --backend cuda, what computes GELU, gradients of biases, norms of residual sums, "
         "and RoPE beside a pack: apart (kernels of their own, as predicted), or fused (one "
         "kernel with the product, sum or pack beside them, where that can be)"},
    {.name = "nccl-buffers",
     .kind = OPTION_CHOICE,
     .names = nccl_buffer_names,
     .name_count = ARRAY_LEN(nccl_buffer_names),
     .default_text = "plain",
     .help =
         "with --backend cuda and a process for each GPU, the device memory of a rank: plain, or "
         "registered (allocated by NCCL and registered with its communicators)"},
    {.name = "cupti",
     .kind = OPTION_FLAG,
     .help =
         "with --backend cuda and -o: take kernel times from CUPTI records instead of CUDA events"},
    {.name = "check",
     .kind = OPTION_FLAG,
     .help = "compare the loss, gradients and parameters of one step with an unsharded transformer "
             "in double precision"},
    {.name = "poison",
     .kind = OPTION_FLAG,
     .help = "prove that every element is written before it is read (slow)"},
    {.name = "steps",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = 1000000,
     .unset_text = "3, with --check alone none",
     .help = "number of steps that are run and measured"},
    {.name = "warmup",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 0,
     .high = 1000,
     .unset_text = "1, on a GPU until its clock is steady; with --data 0",
     .help = "number of steps that run before those that are measured"},
    {.name = "data",
     .kind = OPTION_TEXT,
     .value_name = "FILE",
     .help = "train on the bytes of this file, and print the loss of each step"},
    {.name = "lr",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "X",
     .default_text = "0.001",
     .help = "with --data: learning rate"},
    {.name = "max-norm",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "X",
     .default_text = "1",
     .help = "the norm to which gradients are clipped, in schedules that clip them"},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 0,
     .high = INT64_MAX,
     .default_text = "1",
     .help = "seed of the starting weights and, without --data, of the tokens"},
    {.name = "flat-weights",
     .kind = OPTION_FLAG,
     .help = "begin with all weights, those of norms too, near 0 (standard deviation 0.029): "
             "attention is uniform, and a GPU draws less power than with a model's weights"},
    {.name = "timeout",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "S",
     .unset_text = "none",
     .help = "seconds after which a step, or connecting a group of processes, counts as failed"},
    {.name = "stall",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "S",
     .unset_text = "10, with several processes 60",
     .help =
         "seconds after which a step has failed in which no op ends and none is at work, on any "
         "process"},
    {.name = "copy-rate",
     .kind = OPTION_TEXT,
     .value_name = "RATE",
     .unset_text = "the machine's",
     .help = "the bandwidth of emulated links between host and device, such as \"8 GB/s\""},
    {.name = "message-rate",
     .kind = OPTION_TEXT,
     .value_name = "RATE",
     .unset_text = "the machine's",
     .help = "the bandwidth of emulated links between ranks, such as \"8 GB/s\""},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .help = "write ops.csv, memory.csv and trace.json of the median step into a folder"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set run_options = {"run", rows, ARRAY_LEN(rows)};

static enum status read_link(struct exec_emulated_link_limits *link, const struct options *options,
                             const char *name, struct diag *diag)
{
    const struct option_name_with_dashes dashed_name = options_name_with_dashes(name);
    const char *text = options_text(options, name);
    if (text == NULL)
        return STATUS_OK;
    enum status status = units_parse(text, strlen(text), UNIT_BYTES_PER_S, &link->bytes_per_s,
                                     (struct loc){.name = dashed_name.text}, diag);
    if (status == STATUS_OK && !(link->bytes_per_s > 0 && isfinite(link->bytes_per_s)))
        status = diag_error(diag, (struct loc){.name = dashed_name.text}, STATUS_BAD_INPUT,
                            "'%s' is no rate that a link can have", text);
    return status;
}

static enum status check_backend(const char *name, struct diag *diag)
{
    if (backend_find(name) != NULL)
        return STATUS_OK;
    size_t count;
    const struct backend *const *all = backend_all(&count);
    struct text names = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&names, "%s'%s'", i == 0 ? "" : ", ", all[i]->name);
    enum status status = diag_error(diag, (struct loc){.name = "--backend"}, STATUS_BAD_INPUT,
                                    "this build has no backend '%s'; it has %s", name, names.data);
    text_release(&names);
    return status;
}

static enum status read_attention(enum exec_attention *attention, const char *who,
                                  struct diag *diag)
{
    static const char *const names[EXEC_ATTENTION_COUNT] = {"auto", "fused", "tiles"};
    for (int i = 0; i < EXEC_ATTENTION_COUNT; i++)
        if (strcmp(names[i], who) == 0) {
            *attention = (enum exec_attention)i;
            return STATUS_OK;
        }
    return diag_error(diag, (struct loc){.name = "--attention-by"}, STATUS_BAD_INPUT,
                      "'%s' is none of auto, fused and tiles", who);
}

enum status run_options_read(struct run_options *wanted, const struct options *o, struct diag *diag)
{
    bool train = is_option_given(o, "data"), check = is_option_given(o, "check");
    bool run = !check || train || is_option_given(o, "steps") || is_option_given(o, "o");
    *wanted = (struct run_options){
        .wants_check = check,
        .trains_on_data = train,
        .runs_steps = run,
        .seed = (uint64_t)options_whole_number(o, "seed"),
        .draws_weights_near_zero = is_option_given(o, "flat-weights"),
        .exec =
            {
                .backend = options_text(o, "backend"),
                /* the epsilon of norms and the base of RoPE for a schedule file without --model; measured times do
                 * not depend on them */
                .model = {1e-5, 1e4},
                .adamw = {.lr = options_number(o, "lr"),
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .eps = 1e-8,
                          .weight_decay = 0.1,
                          .max_norm = options_number(o, "max-norm")},
                .warmup_steps = is_option_given(o, "warmup")
                                    ? (uint32_t)options_whole_number(o, "warmup")
                                    : !train,
                .waits_for_steady_clock = !train && !is_option_given(o, "warmup"),
                .measured_steps = is_option_given(o, "steps")
                                      ? (uint32_t)options_whole_number(o, "steps")
                                      : STEPS,
                .finds_unwritten_reads = is_option_given(o, "poison"),
                .records_trace = is_option_given(o, "o"),
                .times_by_cupti = is_option_given(o, "cupti"),
                .uses_epilogues = options_index_of_choice(o, "epilogues") == 1,
                .registers_nccl_memory = options_index_of_choice(o, "nccl-buffers") == 1,
                .step_limit_s = options_number(o, "timeout"),
                .stall_limit_s = options_number(o, "stall"),
            },
    };
    if (wanted->draws_weights_near_zero && (check || train))
        return diag_error(diag, (struct loc){.name = "--flat-weights"}, STATUS_BAD_INPUT,
                          "is for steps that are only timed; leave it or --%s out",
                          check ? "check" : "data");
    const struct backend *backend = backend_find(wanted->exec.backend);
    if (wanted->exec.times_by_cupti && backend != NULL &&
        (backend->kernels_run_on_host || !wanted->exec.records_trace))
        return diag_error(diag, (struct loc){.name = "--cupti"}, STATUS_BAD_INPUT,
                          "says how the ops of a trace are timed on a GPU: it needs --backend cuda "
                          "and -o FOLDER");
    if (wanted->exec.uses_epilogues && backend != NULL && backend->kernels_run_on_host)
        return diag_error(diag, (struct loc){.name = "--epilogues"}, STATUS_BAD_INPUT,
                          "fused is for kernels of GPUs: it needs --backend cuda");
    wanted->step_count = run ? wanted->exec.warmup_steps + wanted->exec.measured_steps : 0;
    enum status status = check_backend(wanted->exec.backend, diag);
    if (status == STATUS_OK)
        status = read_attention(&wanted->exec.attention, options_text(o, "attention-by"), diag);
    if (status == STATUS_OK)
        status = read_link(&wanted->exec.copy_link, o, "copy-rate", diag);
    if (status == STATUS_OK)
        status = read_link(&wanted->exec.message_link, o, "message-rate", diag);
    return status;
}
