/* tests/exec/step.h: runs one training step of a small model and compares it with the reference.
 *
 * Seeds give tensors and tokens; compose makes the schedule; buffers are filled and read only through bindings.
 * Included by test files only. */
#ifndef TESTS_EXEC_STEP_H
#define TESTS_EXEC_STEP_H

#include "exec/bindings.h"
#include "exec/exec.h"
#include "exec/reference.h"
#include "exec/stored_tensors.h"
#include "exec/training.h"
#include "schedule/choices/choices.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "tests/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Llama-like, 4 heads over 2 key heads, an odd number of layers. */
static const struct transformer small_llama = {
    .name = "small-llama",
    .layers = 3,
    .hidden = 24,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 6,
    .ffn = 20,
    .vocab = 29,
    .activation = ACTIVATION_SWIGLU,
    .norm = NORM_RMSNORM,
    .positions = POSITIONS_ROPE,
    .rope_theta = 10000,
    .norm_eps = 1e-5,
};

/* GPT-like: learned positions, LayerNorm, GELU, biases everywhere, a tied head. */
static const struct transformer small_gpt = {
    .name = "small-gpt",
    .layers = 2,
    .hidden = 16,
    .heads = 4,
    .kv_heads = 4,
    .head_dim = 4,
    .ffn = 24,
    .vocab = 31,
    .max_positions = 64,
    .activation = ACTIVATION_GELU,
    .norm = NORM_LAYERNORM,
    .positions = POSITIONS_LEARNED,
    .bias_qkv = true,
    .bias_o = true,
    .bias_ffn = true,
    .tied_head = true,
    .norm_eps = 1e-5,
};

/* Returns a request that leaves weights, activations and optimizer open. */
static inline struct request step_request(const struct transformer *model, int64_t ranks,
                                          int64_t seq)
{
    return (struct request){.model = model,
                            .weights = -1,
                            .activations = -1,
                            .optimizer = -1,
                            .attention_impl = ATTENTION_CPU,
                            .dtype = DTYPE_F32,
                            .ranks = ranks,
                            .seq = seq,
                            .gpus_per_node = 8,
                            .sm = 80};
}

struct executed_step {
    struct ir ir;
    struct reference *reference;
    struct bindings bindings;
    const double **param;             /* (tensors) */
    double **got[BINDING_KIND_COUNT]; /* (tensors) of (rows * cols) */
    struct stored_tensor *stored;     /* (tensors); NULL: none is stored */
    int32_t *tokens;
    struct exec_options options;
    struct exec_result result;
    struct diag diag;
    double reference_loss;
};

static inline void step_release(struct executed_step *step)
{
    for (int kind = 0; kind < BINDING_KIND_COUNT; kind++) {
        for (uint32_t t = 0; step->got[kind] != NULL && t < step->ir.tensor_count; t++)
            free(step->got[kind][t]);
        free((void *)step->got[kind]);
    }
    free((void *)step->param);
    stored_tensors_free(step->stored, &step->ir);
    free(step->tokens);
    reference_free(step->reference);
    exec_result_release(&step->result);
    ir_release(&step->ir);
    diag_release(&step->diag);
}

/* AdamW's first step is lr g / (|g| + eps). Where a gradient is 0 except for rounding (a key's bias without
 * RoPE), a small eps would turn rounding errors into steps of +lr or -lr; eps is large here to avoid that. */
static const struct exec_adamw step_adamw = {.lr = 1e-2,
                                             .beta1 = 0.9,
                                             .beta2 = 0.95,
                                             .eps = 1e-2,
                                             .weight_decay = 0.1,
                                             .step_number = 1,
                                             .max_norm = 0.5};

/* Returns the reference's tensor that corresponds to a tensor of the schedule, which is the whole of it or a block of
 * its rows ("wqkv.weight:k"). */
static inline struct reference_tensor *
step_reference_tensor_of_part(const struct reference *reference, const struct tensor *part)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(part->name, ":"), part->name);
    return reference_find_tensor(reference, name);
}

/* Builds the schedule, the reference's weights, the tokens and the bindings. Returns false, with a failed
 * check, when one of these fails. */
static inline bool step_make(struct executed_step *step, const char *label,
                             const struct request *request)
{
    struct choices choices;
    *step = (struct executed_step){0};
    enum status status = resolve_choices(&choices, request, NULL, &step->diag);
    if (status == STATUS_OK)
        status = step_build(&step->ir, &choices, &step->diag);
    if (!CHECK_INT(label, status, STATUS_OK)) {
        fputs(step->diag.text, stderr);
        return false;
    }
    const struct ir *ir = &step->ir;
    step->options = (struct exec_options){
        .model = {request->model->norm_eps, request->model->rope_theta},
        .adamw = step_adamw,
        .stall_limit_s = 5,
    };
    step->reference = reference_new(request->model);
    reference_init_weights(step->reference, 7);
    step->param = heap_zalloc(ir->tensor_count, sizeof *step->param);
    for (uint32_t t = 0; t < ir->tensor_count; t++) {
        const struct tensor *part = &ir->tensor[t];
        struct reference_tensor *tensor = step_reference_tensor_of_part(step->reference, part);
        if (!CHECK(part->name, tensor != NULL))
            return false;
        step->param[t] = tensor->param + part->first_row * part->cols;
    }
    for (int kind = BINDING_PARAM; kind <= BINDING_MOMENT2; kind++) {
        step->got[kind] = heap_zalloc(ir->tensor_count, sizeof *step->got[kind]);
        for (uint32_t t = 0; t < ir->tensor_count; t++)
            step->got[kind][t] =
                heap_zalloc((size_t)(ir->tensor[t].rows * ir->tensor[t].cols), sizeof(double));
    }
    size_t tokens = (size_t)(ir->global_batch * ir->layout.sequence_tokens);
    struct check_random random = {99};
    step->tokens = heap_alloc(tokens, sizeof *step->tokens);
    for (size_t i = 0; i < tokens; i++)
        step->tokens[i] = (int32_t)check_random_i64(&random, 0, request->model->vocab - 1);
    step->bindings = (struct bindings){.ir = ir, .params = step->param, .tokens = step->tokens};
    step->stored = stored_tensors_new(ir);
    for (uint32_t t = 0; step->stored != NULL && t < ir->tensor_count; t++)
        if (step->stored[t].codes != NULL) {
            double *values = step_reference_tensor_of_part(step->reference, &ir->tensor[t])->param;
            stored_tensors_encode(&step->stored[t], &ir->tensor[t], values);
            stored_tensors_decode(&step->stored[t], &ir->tensor[t], values);
        }
    step->bindings.stored = step->stored;
    for (int kind = BINDING_PARAM; kind <= BINDING_MOMENT2; kind++)
        step->bindings.collected[kind] = step->got[kind];
    return CHECK_INT(label, bindings_check(&step->bindings, label, &step->diag), STATUS_OK);
}

/* Runs the step. Results are in step->result and step->bindings, the message of a run that fails in step->diag. */
static inline enum status step_run(struct executed_step *step, const char *label)
{
    struct exec_io io = {.user = &step->bindings,
                         .fill = bindings_fill_buffer,
                         .read = bindings_collect_buffer,
                         .read_each_step = 1u << BINDING_LOSS,
                         .read_after_last_step = UINT32_MAX};
    return exec_run(&step->ir, label, &step->options, &io, &step->result, &step->diag);
}

/* True if a buffer of the schedule is bound to the kind. There is no master copy, for example, when the
 * optimizer updates the parameters themselves. */
static inline bool step_binds_a_buffer_to_kind(const struct executed_step *step, int kind)
{
    const struct ir *ir = &step->ir;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.binding[b] != IR_NONE16 && ir->binding[ir->buffer.binding[b]].kind == kind)
            return true;
    return false;
}

/* Checks for every tensor that max |got - want| <= tolerance max(max |want|, 1e-3 max |want| over all tensors). Skips
 * stored weights, which no op writes, and masters of frozen weights, which do not exist; reports only the first tensor
 * that differs. */
static inline void step_check_tensors_of_binding_kind(struct executed_step *step, const char *label,
                                                      const char *what, int kind, double tolerance)
{
    const struct reference *r = step->reference;
    double overall = 0;
    for (size_t i = 0; i < r->tensor_count; i++) {
        const double *want = kind == BINDING_GRAD ? r->tensors[i].grad : r->tensors[i].param;
        for (size_t k = 0; k < r->tensors[i].count; k++)
            overall = fmax(overall, fabs(want[k]));
    }
    for (uint32_t t = 0; t < step->ir.tensor_count; t++) {
        const struct tensor *part = &step->ir.tensor[t];
        const struct reference_tensor *tensor = step_reference_tensor_of_part(r, part);
        const double *want =
            (kind == BINDING_GRAD ? tensor->grad : tensor->param) + part->first_row * part->cols;
        double worst = 0, largest = 1e-3 * overall;
        if (kind == BINDING_PARAM && step->stored != NULL && step->stored[t].codes != NULL)
            continue;
        if (kind == BINDING_MASTER && !transformer_is_tensor_trained(&r->transformer, part->name))
            continue;
        for (size_t k = 0; k < (size_t)(part->rows * part->cols); k++) {
            double difference = fabs(step->got[kind][t][k] - want[k]);
            worst = difference > worst || isnan(difference) ? difference : worst;
            largest = fmax(largest, fabs(want[k]));
        }
        if (!(worst <= tolerance * largest)) {
            char text[400];
            snprintf(text, sizeof text, "%s: %s of %s is off by %g of %g", label, what, part->name,
                     worst, largest);
            CHECK(text, worst <= tolerance * largest);
            return;
        }
    }
}

/* Runs one step and checks that loss, gradients, and parameters and masters after AdamW agree with the reference. */
static inline void step_check_against_reference(struct executed_step *step, const char *label,
                                                double tolerance)
{
    struct reference_batch batch = {.tokens = step->tokens,
                                    .sequences = step->ir.global_batch,
                                    .seq_len = step->ir.layout.sequence_tokens,
                                    .documents = &step->ir.documents};
    double loss;
    enum status status = step_run(step, label);
    if (!CHECK_INT(label, status, STATUS_OK)) {
        fputs(step->diag.text, stderr);
        return;
    }
    if (reference_gradients(step->reference, &batch, &loss, &step->diag) != STATUS_OK) {
        CHECK(step->diag.text, false);
        return;
    }
    CHECK_CLOSE(label, step->bindings.loss, loss, tolerance);
    CHECK_INT(label, (int64_t)step->bindings.differing_replica_elements, 0);
    training_update_reference(step->reference, &step->ir, &step_adamw, 1);
    step_check_tensors_of_binding_kind(step, label, "gradient", BINDING_GRAD, tolerance);
    step_check_tensors_of_binding_kind(step, label, "parameter", BINDING_PARAM, tolerance);
    if (step_binds_a_buffer_to_kind(step, BINDING_MASTER))
        step_check_tensors_of_binding_kind(step, label, "master", BINDING_MASTER, tolerance);
}

#endif
