/* longhaul run: a training step executed, checked and measured on this machine. */
#include "cli/command.h"

#include "base/interrupt.h"
#include "base/units.h"
#include "cli/common/idle_options.h"
#include "cli/common/output.h"
#include "cli/folder/trace_folder.h"
#include "cli/measure/not_honoured.h"
#include "cli/measure/run_options.h"
#include "cli/measure/run_report.h"
#include "cli/setup/read_setup.h"
#include "exec/assignment.h"
#include "exec/backend.h"
#include "exec/bootstrap.h"
#include "exec/machine_memory.h"
#include "exec/reference_check.h"
#include "exec/training.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/ir_text.h"
#include "schedule/schedule_file.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state of one call of the command. */
struct session {
    const struct options *options;
    struct setup setup;
    struct ir ir;
    const char *name; /* the name of the schedule, for messages */
    /* NULL: the schedule is from a file, and --model was not given */
    const struct transformer *model;
    char step_description[160];       /* a description of the step, for the report */
    struct text not_honoured_clauses; /* clauses on the choices that the run does not follow */
    struct run_options run_options;
    /* (batches, sequences, tokens): with --data a batch for each step, else one for all steps */
    int32_t *tokens;
    struct text out;
    struct json_out json; /* its `out` is NULL if text is printed */
    struct diag note;
};

/* ---- the schedule that is run ---- */

static void read_capability_from_description(void *user, const char *key, const char *value)
{
    int64_t number;
    if (strcmp(key, "compute_capability") == 0 && parse_i64(value, strlen(value), &number))
        *(int *)user = (int)number;
}

/* Sets the request's compute capability, on which workspaces depend, to that of the device that runs the step, unless a
 * cluster states it. */
static void set_request_capability_from_device(const struct backend *backend,
                                               struct request *request)
{
    struct diag unread = {0};
    if (request->sm == 0 && backend->describe != NULL)
        (void)backend->describe(read_capability_from_description, &request->sm, &unread);
    diag_release(&unread);
}

/* Finds which choices the run does not follow, and notes them if the user gave an option that makes such choices. host:
 * the processor runs the step. */
static void note_choices_not_followed(struct session *s, const struct choices *choices, bool host)
{
    static const char *const options[] = {"profile", "compile", "kernels", "attention", "from"};
    bool chosen = false;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        chosen = chosen || is_option_given(s->options, options[i]);
    put_clauses_of_not_honoured_choices(&s->not_honoured_clauses, choices, host);
    if (chosen && s->not_honoured_clauses.size > 0)
        diag_note(&s->note, (struct loc){.name = "run"}, "differs from what is predicted: %s",
                  s->not_honoured_clauses.data);
}

static enum status build_schedule(struct session *s, struct diag *diag)
{
    struct choices choices;
    struct request *r = &s->setup.request;
    size_t count;
    bool host = backend_find(s->run_options.exec.backend)->kernels_run_on_host;
    set_request_capability_from_device(backend_find(s->run_options.exec.backend), r);
    if (r->dtype < 0)
        r->dtype = host && !states_are_bf16((enum states)r->states) ? DTYPE_F32 : DTYPE_BF16;
    if (r->attention_impl < 0)
        r->attention_impl = host ? ATTENTION_CPU : ATTENTION_CUDNN;
    if (states_have_8bit_moments((enum states)r->states))
        return diag_error(diag, (struct loc){.name = "--states"}, STATUS_BAD_INPUT,
                          "%s can be predicted but not run: no backend computes AdamW with "
                          "moments in 8 bits; choose --states fp32 or bf16",
                          states_names[r->states]);
    /* the default of a model's file is not followed, since the backends cannot compute dropout */
    if (r->dropout == DROPOUT_MODEL)
        r->dropout = DROPOUT_OFF;
    if (r->dropout == DROPOUT_ON)
        return diag_error(diag, (struct loc){.name = "--dropout"}, STATUS_BAD_INPUT,
                          "dropout can be predicted but not run: no backend drops scores; choose "
                          "off");
    enum status status = resolve_choices(&choices, r, &s->note, diag);
    if (status == STATUS_OK)
        status = step_build(&s->ir, &choices, diag);
    if (status == STATUS_OK) {
        note_idle_options_of_prediction(s->options, r, &choices, &s->note);
        note_choices_not_followed(s, &choices, host);
        bool whole = choices.scope == SCOPE_WHOLE_STEP;
        snprintf(s->step_description, sizeof s->step_description,
                 "%s%s%s, %s (%s), weights %s, activations %s",
                 whole ? "" : scope_names[choices.scope], whole ? "" : " of ", choices.model->name,
                 strategies_list(&count)[choices.strategy].name, choices.profile->name,
                 weights_names[choices.weights], activations_names[choices.activations]);
    }
    return status;
}

static enum status load_schedule(struct session *s, struct diag *diag)
{
    const char *file = s->options->argument_count > 0 ? s->options->positional_arguments[0] : NULL;
    enum status status = setup_load_run(&s->setup, s->options, file != NULL, diag);
    s->name = file != NULL ? file : "schedule";
    if (status != STATUS_OK)
        return status;
    if (s->setup.model.name != NULL)
        s->model = &s->setup.model;
    if (file == NULL)
        return build_schedule(s, diag);
    snprintf(s->step_description, sizeof s->step_description, "%s", file);
    status = schedule_load(&s->ir, &file, 1, NULL, diag);
    if (status == STATUS_OK)
        status = verify(&s->ir, NULL, file, NULL, diag);
    return status;
}

/* True if a launcher may have started this program once for each rank; then only one of the processes prints. */
static bool is_launched_per_rank(const struct options *options)
{
    const struct backend *backend = backend_find(options_text(options, "backend"));
    return backend != NULL && backend->supports_processes;
}

/* ---- memory of this machine ---- */

/* Refuses a run that needs more host memory than this machine has, or that has more ranks than one process can run. If
 * the launcher does not say how many of its processes run here, only the need of this process is counted, and
 * exec_run() checks again when the processes have connected. */
static enum status check_host_has_memory_for_run(const struct session *s,
                                                 const struct training_options *how,
                                                 struct diag *diag)
{
    uint32_t ranks = mesh_rank_count(&s->ir.mesh), here = ranks, processes = 1;
    double arenas = 0;
    struct bootstrap_place place;
    if (is_launched_per_rank(s->options) && bootstrap_place_read(&place, NULL) == STATUS_OK &&
        place.process_count > 1)
        here = processes =
            place.local_process_count != BOOTSTRAP_UNKNOWN ? place.local_process_count : 1;
    /* true: the processor runs the step, so the arena for MEMORY_HBM is in host memory, too */
    bool host = backend_find(s->run_options.exec.backend)->kernels_run_on_host;
    for (int m = 0; m < MEMORY_COUNT; m++)
        arenas += (m == MEMORY_HBM && !host ? 0 : 1) * here * (double)s->ir.planned_bytes[m];
    /* the check for unwritten reads has a shadow array of twice the arenas' size (exec/poison.h) */
    double need = arenas * (s->run_options.exec.finds_unwritten_reads && host ? 3 : 1);
    if (s->model != NULL)
        need += processes * training_heap_bytes(s->model, how);
    if (ranks > ASSIGNMENT_RANKS_MAX)
        return diag_error(diag, (struct loc){.name = s->name}, STATUS_BAD_INPUT,
                          "%" PRIu32
                          " ranks are more than the %d that run as threads of one process",
                          ranks, (int)ASSIGNMENT_RANKS_MAX);
    return machine_memory_check(s->name, here, need, diag);
}

/* ---- tokens, and the model's constants ---- */

static enum status read_token_file(struct session *s, const char *path, size_t count,
                                   struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    size_t one = (size_t)s->ir.layout.sequence_tokens;
    if (status == STATUS_OK && training_vocab_rows(&s->ir) < 256)
        status = diag_error(diag, (struct loc){.name = "--data"}, STATUS_BAD_INPUT,
                            "the bytes of a file are the tokens 0 to 255, but the model's "
                            "vocabulary has only %" PRId64 " tokens; --set vocab=256 would do",
                            training_vocab_rows(&s->ir));
    if (status == STATUS_OK && text.size < one)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "has %zu bytes, and one sequence takes %zu", text.size, one);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        s->tokens[i] =
            (unsigned char)text.data[i % text.size]; /* a file that is too short begins again */
    text_release(&text);
    return status;
}

static enum status read_or_draw_tokens(struct session *s, struct diag *diag)
{
    const char *data = options_text(s->options, "data");
    size_t batch = (size_t)s->ir.global_batch * (size_t)s->ir.layout.sequence_tokens;
    size_t count = batch * (s->run_options.trains_on_data && s->run_options.step_count > 0
                                ? s->run_options.step_count
                                : 1);
    int64_t vocab = s->model != NULL ? s->model->vocab : training_vocab_rows(&s->ir);
    s->tokens = heap_alloc(count, sizeof *s->tokens);
    if (data != NULL)
        return read_token_file(s, data, count, diag);
    training_random_tokens(s->tokens, count, vocab, s->run_options.seed);
    return STATUS_OK;
}

static enum status set_exec_model_or_refuse_missing(struct session *s, struct diag *diag)
{
    if (s->model != NULL) {
        s->run_options.exec.model = (struct exec_model){s->model->norm_eps, s->model->rope_theta};
        return STATUS_OK;
    }
    if (s->run_options.wants_check || s->run_options.trains_on_data)
        return diag_error(diag, (struct loc){.name = "--model"}, STATUS_BAD_INPUT,
                          "is missing: %s needs the model that %s was made for",
                          s->run_options.wants_check ? "--check" : "--data", s->name);
    return STATUS_OK;
}

/* ---- checks, steps and the loss curve ---- */

/* Begins the JSON object in which all output of a run is, unless it has begun or text is printed. */
static void begin_run_json(struct session *s)
{
    if (s->json.out != NULL && s->out.size == 0)
        command_begin_json(&s->json, "run");
}

static enum status check_step_against_reference(struct session *s, struct diag *diag)
{
    struct reference_check check = {0};
    struct exec_options exec = s->run_options.exec;
    exec.records_trace = exec.waits_for_steady_clock = false;
    exec.notes = s->run_options.runs_steps
                     ? NULL
                     : &s->note; /* if the step also runs, that run makes the same notes */
    enum status status = reference_check_step_on_tokens(
        &check, &s->ir, s->name, s->model, s->tokens, s->run_options.seed, &exec, diag);
    if (status == STATUS_OK) {
        begin_run_json(s);
        if (s->json.out != NULL)
            run_json_put_check(&s->json, &check);
        else
            run_report_put_check(&s->out, &check);
        status = reference_check_explain(&check, s->name, diag);
    }
    reference_check_release(&check);
    return status;
}

/* Prints the loss of every step and, with --check, that of the reference. Returns STATUS_NO if the two differ too much.
 * Rounding errors grow from step to step, so the tolerance is a hundred times that for the loss of a single step. */
static enum status report_loss_curve(struct session *s, struct training *training,
                                     struct diag *diag)
{
    struct loss_curve curve = {
        .loss = training->losses,
        .step_count = s->run_options.step_count,
        .tolerance =
            100 *
            reference_check_rule_of_dtype(training_coarsest_result_dtype(&s->ir)).loss_tolerance,
    };
    double *reference = NULL;
    enum status status = STATUS_OK;
    if (s->run_options.wants_check) {
        curve.reference = reference = heap_zalloc(s->run_options.step_count, sizeof *reference);
        status = training_run_reference(training, &s->run_options.exec.adamw,
                                        s->run_options.step_count, reference, diag);
    }
    if (status == STATUS_OK) {
        if (s->json.out != NULL)
            run_json_put_loss_curve(&s->json, &curve);
        else
            run_report_put_loss_curve(&s->out, &curve);
        if (s->run_options.wants_check && !(run_loss_curve_worst_error(&curve) <= curve.tolerance))
            status = diag_error(diag, (struct loc){.name = s->name}, STATUS_NO,
                                "the loss of a step differs from the reference's by more than %g "
                                "of the reference's",
                                curve.tolerance);
    }
    free(reference);
    return status;
}

static const char *name_of_interrupting_signal(void)
{
    return interrupt_caught_signal_number() != 0 ? interrupt_describe_signal() : NULL;
}

static enum status run_and_report(struct session *s, const struct training_options *how,
                                  struct diag *diag)
{
    struct training training = {0};
    struct exec_result result = {0};
    enum status status = training_init(&training, &s->ir, s->name,
                                       how->makes_reference ? s->model : NULL, how, diag);
    if (status == STATUS_OK) {
        struct interrupt interrupt;
        training.batches = s->tokens;
        s->run_options.exec.runs_back_to_back = !s->run_options.trains_on_data;
        s->run_options.exec.ended_by = name_of_interrupting_signal;
        s->run_options.exec.notes = &s->note;
        interrupt_catch(&interrupt);
        status = training_run_schedule(&training, &s->run_options.exec, &result, diag);
        interrupt_release(&interrupt);
    }
    bool is_printing_process = !is_launched_per_rank(s->options) || bootstrap_is_printing_process();
    enum status saved =
        STATUS_OK; /* whether the trace could be saved; the times are printed in either case */
    if (status == STATUS_OK && s->run_options.exec.records_trace && is_printing_process) {
        if (s->model != NULL)
            trace_set_key(&result.trace, "model", s->model->name);
        if (s->not_honoured_clauses.size > 0)
            trace_set_key(&result.trace, "not_honoured", s->not_honoured_clauses.data);
        saved = trace_folder_save(&result.trace, options_text(s->options, "o"), &s->note, diag);
    }
    if (status == STATUS_OK) {
        begin_run_json(s);
        if (s->json.out != NULL)
            run_json_put_step_times(&s->json, s->step_description, s->run_options.exec.backend,
                                    &s->ir, &result);
        else
            run_report_put_step_times(&s->out, s->step_description, s->run_options.exec.backend,
                                      &s->ir, &result);
        if (s->run_options.trains_on_data)
            status = report_loss_curve(s, &training, diag);
        status = saved != STATUS_OK ? saved : status;
    }
    exec_result_release(&result);
    training_release(&training);
    return status;
}

static enum status run_check_steps_and_report(struct session *s, struct diag *diag)
{
    enum status status = run_options_read(&s->run_options, s->options, diag);
    const struct training_options how = {
        .seed = s->run_options.seed,
        .draws_weights_near_zero = s->run_options.draws_weights_near_zero,
        .starts_from_zero_moments = true,
        .makes_reference = s->run_options.trains_on_data && s->run_options.wants_check};
    const struct training_options most = {.makes_reference = s->run_options.wants_check,
                                          .collects_tensors = s->run_options.wants_check};
    bool is_printing_process = !is_launched_per_rank(s->options) || bootstrap_is_printing_process();
    if (status == STATUS_OK && is_option_given(s->options, "o") && is_printing_process)
        status = trace_folder_check_can_write(options_text(s->options, "o"), diag);
    if (status == STATUS_OK)
        status = load_schedule(s, diag);
    if (status == STATUS_OK)
        status = set_exec_model_or_refuse_missing(s, diag);
    if (status == STATUS_OK)
        status = check_host_has_memory_for_run(s, &most, diag);
    if (status == STATUS_OK)
        status = read_or_draw_tokens(s, diag);
    if (status == STATUS_OK && s->run_options.wants_check)
        status = check_step_against_reference(s, diag);
    if (status == STATUS_OK && s->run_options.runs_steps)
        status = run_and_report(s, &how, diag);
    return status;
}

enum status cmd_run(const struct options *options, struct diag *diag)
{
    struct session session = {.options = options};
    struct text *out = &session.out;
    if (is_option_given(options, "json"))
        session.json.out = out;
    enum status status = run_check_steps_and_report(&session, diag);
    bool is_printing_process = !is_launched_per_rank(options) || bootstrap_is_printing_process();
    if ((status == STATUS_OK || status == STATUS_NO) && is_printing_process)
        command_print_notes(&session.note);
    if (out->size > 0 && is_printing_process) {
        if (session.json.out != NULL) {
            json_end_object(&session.json);
            text_putc(out, '\n');
        }
        enum status printed = command_print(out, diag);
        status = status == STATUS_OK ? printed : status;
    }
    text_release(out);
    free(session.tokens);
    ir_release(&session.ir);
    setup_release(&session.setup);
    text_release(&session.not_honoured_clauses);
    diag_release(&session.note);
    command_exit_if_interrupted(diag);
    return status;
}
