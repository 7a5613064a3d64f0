/* longhaul run: a training step executed, checked and measured on this machine. */
#include "cli/command.h"

#include "base/units.h"
#include "cli/run_report.h"
#include "cli/setup.h"
#include "exec/agreement.h"
#include "exec/backend.h"
#include "exec/bootstrap.h"
#include "exec/plan.h"
#include "exec/training.h"
#include "schedule/ir_text.h"
#include "schedule/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3 };

static const struct option rows[] = {
    {.name = "backend",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "cpu",
     .help = "what runs it: cpu, a thread per rank and stream; cuda, GPUs"},
    {.name = "attention-by",
     .kind = OPTION_TEXT,
     .value = "WHO",
     .fallback = "auto",
     .help = "on cuda: fused (cuDNN), tiles (products and own kernels), auto (fused where it can)"},
    {.name = "cupti",
     .kind = OPTION_FLAG,
     .help = "on cuda, with -o: times of kernels by CUPTI's records instead of events"},
    {.name = "check",
     .kind = OPTION_FLAG,
     .help = "compare one step with the unsharded model in double: loss, gradients, parameters"},
    {.name = "poison",
     .kind = OPTION_FLAG,
     .help = "prove that every element is written before it is read; slow"},
    {.name = "steps",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 1,
     .high = 1000000,
     .unset = "3, with --check alone none",
     .help = "steps to run and measure"},
    {.name = "warmup",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 0,
     .high = 1000,
     .unset = "1, with --data 0",
     .help = "steps before those that are measured"},
    {.name = "data",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "train on the bytes of a file, and print the loss of each step"},
    {.name = "lr",
     .kind = OPTION_NUMBER,
     .value = "X",
     .fallback = "0.001",
     .help = "learning rate of --data"},
    {.name = "seed",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 0,
     .high = INT64_MAX,
     .fallback = "1",
     .help = "of the starting weights, and of tokens without --data"},
    {.name = "timeout",
     .kind = OPTION_NUMBER,
     .value = "S",
     .unset = "none",
     .help = "seconds after which a step has failed"},
    {.name = "copy-rate",
     .kind = OPTION_TEXT,
     .value = "RATE",
     .unset = "the machine's",
     .help = "emulate links between host and device of that rate: \"8 GB/s\""},
    {.name = "message-rate",
     .kind = OPTION_TEXT,
     .value = "RATE",
     .unset = "the machine's",
     .help = "emulate links between ranks of that rate"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value = "DIR",
     .help = "write ops.csv, memory.csv and trace.json of the median step into a folder"},
};
const struct option_set run_options = {"run", rows, ARRAY_LEN(rows)};

/* What one call of the command holds. */
struct session {
    const struct options *options;
    struct setup setup;
    struct ir ir;
    const char *name;                /* of the schedule, for messages */
    const struct transformer *model; /* NULL: a file without --model */
    char what[160];                  /* for the report */
    struct exec_options exec;
    int32_t *tokens; /* (steps, batch, seq) */
    uint32_t steps;  /* warm-up included */
    bool check, run, train;
    struct diag note;
};

/* ---- what is run ---- */

static enum status build(struct session *s, struct diag *diag)
{
    struct choices choices;
    struct request *r = &s->setup.request;
    size_t count;
    bool host = backend_find(s->exec.backend)->host_memory;
    if (r->dtype < 0)
        r->dtype = host ? DTYPE_F32 : DTYPE_BF16;
    if (r->attention_impl < 0)
        r->attention_impl = host ? ATTENTION_CPU : ATTENTION_CUDNN;
    enum status status = compose_resolve(&choices, r, &s->note, diag);
    if (status == STATUS_OK)
        status = compose_build(&s->ir, &choices, diag);
    if (status == STATUS_OK)
        snprintf(s->what, sizeof s->what, "%s, %s (%s), weights %s, activations %s",
                 choices.model->name, compose_strategies(&count)[choices.strategy].name,
                 choices.profile->name, weights_names[choices.weights],
                 activations_names[choices.activations]);
    return status;
}

static enum status load(struct session *s, struct diag *diag)
{
    const char *file = s->options->argument_count > 0 ? s->options->argument[0] : NULL;
    enum status status = setup_load_run(&s->setup, s->options, file != NULL, diag);
    s->name = file != NULL ? file : "schedule";
    if (status != STATUS_OK)
        return status;
    if (s->setup.model.name != NULL)
        s->model = &s->setup.model;
    if (file == NULL)
        return build(s, diag);
    snprintf(s->what, sizeof s->what, "%s", file);
    status = ir_load(&s->ir, file, diag);
    if (status == STATUS_OK)
        status = verify(&s->ir, NULL, file, NULL, diag);
    return status;
}

/* ---- does it fit this machine? ---- */

/* Bytes that the system can give; 0: unknown. */
static double memory_there(void)
{
    double kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kib = strtod(line + 13, NULL);
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

static enum status check_memory(const struct session *s, const struct training_options *how,
                                struct diag *diag)
{
    double ranks = mesh_ranks(&s->ir.mesh), arenas = 0, there = memory_there();
    bool host = backend_find(s->exec.backend)->host_memory; /* or has memory of its own for hbm */
    for (int m = 0; m < MEMORY_COUNT; m++)
        arenas += (m == MEMORY_HBM && !host ? 0 : 1) * ranks * (double)s->ir.arena_bytes[m];
    double need = arenas * (s->exec.poison && host ? 3 : 1); /* the shadow is twice the arena */
    if (s->model != NULL)
        need += training_bytes(s->model, how);
    if (ranks > PLAN_RANKS_MAX)
        return diag_error(diag, (struct loc){.name = s->name}, STATUS_BAD_INPUT,
                          "%.0f ranks are more than the %d that run as threads of one process",
                          ranks, (int)PLAN_RANKS_MAX);
    if (there <= 0 || need <= there)
        return STATUS_OK;
    struct text text = {0};
    units_put_gib(&text, need);
    text_puts(&text, ", and this machine has ");
    units_put_gib(&text, there);
    enum status status = diag_error(
        diag, (struct loc){.name = s->name}, STATUS_BAD_INPUT,
        "%.0f rank%s %s; a small model such as longhaul-3m, or a shorter --seq, would do", ranks,
        ranks == 1 ? " needs" : "s need", text.data);
    text_release(&text);
    return status;
}

/* ---- tokens ---- */

static enum status tokens_of_file(struct session *s, const char *path, size_t count,
                                  struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    size_t one = (size_t)s->ir.layout.tokens;
    if (status == STATUS_OK && training_vocab(&s->ir) < 256)
        status = diag_error(diag, (struct loc){.name = "--data"}, STATUS_BAD_INPUT,
                            "bytes are tokens 0 to 255, and the vocabulary has %" PRId64
                            "; --set vocab=256 would do",
                            training_vocab(&s->ir));
    if (status == STATUS_OK && text.size < one)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "has %zu bytes, and one sequence takes %zu", text.size, one);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        s->tokens[i] =
            (unsigned char)text.data[i % text.size]; /* from its start again at its end */
    text_release(&text);
    return status;
}

static enum status fill_tokens(struct session *s, struct diag *diag)
{
    const char *data = options_text(s->options, "data");
    size_t batch = (size_t)s->ir.global_batch * (size_t)s->ir.layout.tokens;
    size_t count = batch * (s->steps > 0 ? s->steps : 1);
    int64_t vocab = s->model != NULL ? s->model->vocab : training_vocab(&s->ir);
    s->tokens = heap_alloc(count, sizeof *s->tokens);
    if (data != NULL)
        return tokens_of_file(s, data, count, diag);
    training_random_tokens(s->tokens, count, vocab, (uint64_t)options_count(s->options, "seed"));
    return STATUS_OK;
}

/* ---- options ---- */

static enum status read_link(struct exec_link *link, const struct options *options,
                             const char *name, const char *shown, struct diag *diag)
{
    const char *text = options_text(options, name);
    if (text == NULL)
        return STATUS_OK;
    enum status status = units_parse(text, strlen(text), UNIT_BYTES_PER_S, &link->bytes_per_s,
                                     (struct loc){.name = shown}, diag);
    if (status == STATUS_OK && !(link->bytes_per_s > 0 && isfinite(link->bytes_per_s)))
        status = diag_error(diag, (struct loc){.name = shown}, STATUS_BAD_INPUT,
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

static enum status read_options(struct session *s, struct diag *diag)
{
    const struct options *o = s->options;
    s->check = options_given(o, "check");
    s->train = options_given(o, "data");
    s->run = !s->check || s->train || options_given(o, "steps") || options_given(o, "o");
    s->exec = (struct exec_options){
        .backend = options_text(o, "backend"),
        .model = {1e-5, 1e4}, /* of a file without a model: any will do to measure */
        .adamw = {.lr = options_number(o, "lr"),
                  .beta1 = 0.9,
                  .beta2 = 0.95,
                  .eps = 1e-8,
                  .weight_decay = 0.1},
        .warmup = options_given(o, "warmup") ? (uint32_t)options_count(o, "warmup") : !s->train,
        .steps = options_given(o, "steps") ? (uint32_t)options_count(o, "steps") : STEPS,
        .poison = options_given(o, "poison"),
        .trace = options_given(o, "o"),
        .profile = options_given(o, "cupti"),
        .limit_s = options_number(o, "timeout"),
    };
    s->steps = s->run ? s->exec.warmup + s->exec.steps : 0;
    enum status status = check_backend(s->exec.backend, diag);
    if (status == STATUS_OK)
        status = read_attention(&s->exec.attention, options_text(o, "attention-by"), diag);
    if (status == STATUS_OK)
        status = read_link(&s->exec.copies, o, "copy-rate", "--copy-rate", diag);
    if (status == STATUS_OK)
        status = read_link(&s->exec.messages, o, "message-rate", "--message-rate", diag);
    return status;
}

static enum status check_model(struct session *s, struct diag *diag)
{
    if (s->model != NULL) {
        s->exec.model = (struct exec_model){s->model->norm_eps, s->model->rope_theta};
        return STATUS_OK;
    }
    if (s->check || s->train)
        return diag_error(diag, (struct loc){.name = "--model"}, STATUS_BAD_INPUT,
                          "is missing: %s needs the model that %s was made for",
                          s->check ? "--check" : "--data", s->name);
    return STATUS_OK;
}

/* ---- the parts ---- */

static enum status do_check(struct session *s, struct text *out, struct diag *diag)
{
    struct agreement agreement = {0};
    struct exec_options exec = s->exec;
    exec.trace = false;
    enum status status =
        agreement_check_tokens(&agreement, &s->ir, s->name, s->model, s->tokens,
                               (uint64_t)options_count(s->options, "seed"), &exec, diag);
    if (status == STATUS_OK) {
        run_report_agreement(out, &agreement);
        status = agreement_explain(&agreement, s->name, diag);
    }
    agreement_release(&agreement);
    return status;
}

static bool on_curve(const double *loss, const double *reference, uint32_t steps, double tolerance)
{
    for (uint32_t i = 0; i < steps; i++)
        if (!(fabs(loss[i] - reference[i]) <= tolerance * fabs(reference[i])))
            return false;
    return true;
}

/* The loss of every step, and with --check the reference's beside it. Rounding grows from step to
 * step: the rule for one step's loss is taken a hundred times as wide. */
static enum status report_curve(struct session *s, struct training *training, struct text *out,
                                struct diag *diag)
{
    double tolerance = 100 * agreement_rule((enum dtype)s->ir.dtype).loss;
    double *reference = NULL;
    enum status status = STATUS_OK;
    if (s->check) {
        reference = heap_zalloc(s->steps, sizeof *reference);
        status = training_reference(training, &s->exec.adamw, s->steps, reference, diag);
    }
    if (status == STATUS_OK) {
        run_report_curve(out, training->loss, reference, s->steps, tolerance);
        if (s->check && !on_curve(training->loss, reference, s->steps, tolerance))
            status = diag_error(diag, (struct loc){.name = s->name}, STATUS_NO,
                                "the loss leaves the reference's by more than %g of it", tolerance);
    }
    free(reference);
    return status;
}

/* A launcher may have started this program once per rank: then one of them speaks. */
static bool several_processes(const struct options *options)
{
    const struct backend *backend = backend_find(options_text(options, "backend"));
    return backend != NULL && backend->processes;
}

static enum status do_run(struct session *s, const struct training_options *how, struct text *out,
                          struct diag *diag)
{
    struct training training = {0};
    struct exec_result result = {0};
    enum status status =
        training_init(&training, &s->ir, s->name, how->reference ? s->model : NULL, how, diag);
    if (status == STATUS_OK) {
        training.tokens = s->tokens;
        status = training_run(&training, &s->exec, &result, diag);
    }
    bool speaks = !several_processes(s->options) || bootstrap_speaks();
    if (status == STATUS_OK && s->exec.trace && speaks) {
        if (s->model != NULL)
            trace_set(&result.trace, "model", s->model->name);
        status = run_report_save(&result, options_text(s->options, "o"), diag);
    }
    if (status == STATUS_OK) {
        run_report_times(out, s->what, s->exec.backend, &s->ir, &result);
        if (s->train)
            status = report_curve(s, &training, out, diag);
    }
    exec_result_release(&result);
    training_release(&training);
    return status;
}

static enum status do_all(struct session *s, struct text *out, struct diag *diag)
{
    enum status status = read_options(s, diag);
    const struct training_options how = {
        .seed = (uint64_t)options_count(s->options, "seed"), .fresh = true, .reference = s->train};
    const struct training_options most = {.reference = s->check || s->train, .collect = s->check};
    if (status == STATUS_OK)
        status = load(s, diag);
    if (status == STATUS_OK)
        status = check_model(s, diag);
    if (status == STATUS_OK)
        status = check_memory(s, &most, diag);
    if (status == STATUS_OK)
        status = fill_tokens(s, diag);
    if (status == STATUS_OK && s->check)
        status = do_check(s, out, diag);
    if (status == STATUS_OK && s->run)
        status = do_run(s, &how, out, diag);
    return status;
}

enum status cmd_run(const struct options *options, struct diag *diag)
{
    struct session session = {.options = options};
    struct text out = {0};
    enum status status = do_all(&session, &out, diag);
    if (status == STATUS_OK || status == STATUS_NO)
        command_note(&session.note);
    bool speaks = !several_processes(options) || bootstrap_speaks();
    if (out.size > 0 && speaks) {
        enum status printed = command_print(&out, diag);
        status = status == STATUS_OK ? printed : status;
    }
    text_release(&out);
    free(session.tokens);
    ir_release(&session.ir);
    setup_release(&session.setup);
    diag_release(&session.note);
    return status;
}
