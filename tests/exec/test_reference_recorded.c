/* tests/exec/test_reference_recorded.c: the reference agrees with PyTorch and with Hugging Face's models, whose results
 * tests/data/reference/record.py recorded. */
#include "exec/reference.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "tests/exec/reference_loss.h"

#include <stdlib.h>

/* Both sides work in double and sum in different orders; gradients are at most about 1. The worst
 * difference seen is under 1e-14. */
#define TORCH_TOLERANCE 1e-13

/* The tolerance after three steps. Where a gradient is 0 except for rounding (a bias of K moves all scores of a row
 * equally), AdamW divides the rounding error, up to 1e-16 a step, by eps, 1e-8, and multiplies it by lr, 1e-2: 1e-10
 * in each step. */
#define TORCH_STEP_TOLERANCE 1e-9

/* Hugging Face's models compute RoPE's angles, RMSNorm and the loss in float, whatever the type of the weights. */
#define HUGGING_FACE_TOLERANCE 2e-6

static const char fixture[] = "data/reference/pytorch.json";
static const char of_experts[] = "data/reference/experts.json";

static double number(struct json_node object, const char *key)
{
    double value = NAN;
    CHECK_INT(key, json_get_double(object, key, -1e300, 1e300, &value, NULL), STATUS_OK);
    return value;
}

static double number_at(struct json_node object, const char *key, size_t i)
{
    double value = NAN;
    CHECK_INT(key,
              json_as_double(json_element_at(json_find_member(object, key), i), -1e300, 1e300,
                             &value, NULL),
              STATUS_OK);
    return value;
}

static const char *word(struct json_node object, const char *key)
{
    const char *value = "";
    CHECK_INT(key, json_get_string(object, key, &value, NULL), STATUS_OK);
    return value;
}

static struct transformer recorded_transformer(struct json_node model)
{
    struct transformer t = {.name = "recorded"};
    struct diag diag = {0};
    const struct json_node fields = json_find_member(model, "transformer");
    for (size_t i = 0; i < json_member_count(fields); i++) {
        const char *field, *value = "";
        const struct json_node node = json_member_at(fields, i, &field);
        CHECK_INT(field, json_as_string(node, &value, &diag), STATUS_OK);
        CHECK_INT(field, transformer_set_field(&t, field, value, &diag), STATUS_OK);
    }
    CHECK_INT("model", transformer_check(&t, (struct loc){"recorded", 0, 0}, &diag), STATUS_OK);
    CHECK_TEXT("model", diag.text, "");
    diag_release(&diag);
    return t;
}

static int32_t *recorded_ids(struct json_node model, const char *key)
{
    const size_t count = json_element_count(json_find_member(model, key));
    int32_t *ids = heap_alloc(count, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = (int32_t)number_at(model, key, i);
    return ids;
}

static void check_recorded_gradients(const struct reference *r, struct json_node rows)
{
    for (size_t n = 0; n < r->tensor_count; n++) {
        const struct reference_tensor *tensor = &r->tensors[n];
        const struct json_node row = json_element_at(rows, n);
        const double norm = norm_of_difference(tensor->grad, NULL, tensor->count);
        const double theirs = number(row, "gradient_norm");
        CHECK_TEXT("order", word(row, "name"), tensor->name);
        CHECK(tensor->name, fabs(norm - theirs) <= TORCH_TOLERANCE);
        for (size_t e = 0; e < json_element_count(json_find_member(row, "entries")); e++) {
            const size_t at = (size_t)number_at(row, "entries", e);
            if (CHECK("entry", at < tensor->count))
                CHECK(tensor->name,
                      fabs(tensor->grad[at] - number_at(row, "gradients", e)) <= TORCH_TOLERANCE);
        }
        if (json_find_member(row, "hugging_face_gradient_norm").value != NULL)
            CHECK_CLOSE(tensor->name, norm, number(row, "hugging_face_gradient_norm"),
                        HUGGING_FACE_TOLERANCE);
    }
}

static void check_recorded_parameters(const struct reference *r, const struct reference *start,
                                      struct json_node rows, int step)
{
    char moved_key[24], params_key[24];
    snprintf(moved_key, sizeof moved_key, "moved_%d", step);
    snprintf(params_key, sizeof params_key, "params_%d", step);
    for (size_t n = 0; n < r->tensor_count; n++) {
        const struct reference_tensor *tensor = &r->tensors[n];
        const struct json_node row = json_element_at(rows, n);
        CHECK_CLOSE(tensor->name,
                    norm_of_difference(tensor->param, start->tensors[n].param, tensor->count),
                    number(row, moved_key), TORCH_STEP_TOLERANCE);
        for (size_t e = 0; e < json_element_count(json_find_member(row, "entries")); e++) {
            const size_t at = (size_t)number_at(row, "entries", e);
            CHECK(tensor->name,
                  fabs(tensor->param[at] - number_at(row, params_key, e)) <= TORCH_STEP_TOLERANCE);
        }
    }
}

static void check_against_recorded_model(struct json_node model,
                                         const struct reference_adamw *adamw, int steps)
{
    const struct transformer t = recorded_transformer(model);
    const char *name = word(model, "name");
    const struct json_node rows = json_find_member(model, "tensors");
    const struct json_node hugging_face = json_find_member(model, "hugging_face");
    int32_t *ids = recorded_ids(model, "tokens"), *wanted = recorded_ids(model, "labels");
    struct reference_batch b = {
        ids,  wanted, (int64_t)number(model, "sequences"), (int64_t)number(model, "seq_len"),
        NULL, NULL};
    struct reference *r = reference_new(&t), *start = reference_new(&t);
    reference_init_weights(r, (uint64_t)number(model, "seed"));
    reference_init_weights(start, (uint64_t)number(model, "seed"));
    if (!CHECK_INT(name, (int64_t)json_element_count(rows), (int64_t)r->tensor_count))
        goto out;
    for (int step = 1; step <= steps; step++) {
        const double loss = loss_and_gradients_of(r, &b);
        CHECK_CLOSE(name, loss, number_at(model, "losses", (size_t)step - 1),
                    step == 1 ? TORCH_TOLERANCE : TORCH_STEP_TOLERANCE);
        if (step == 1) {
            check_recorded_gradients(r, rows);
            if (hugging_face.value != NULL) {
                b.labels = NULL; /* Hugging Face's models shift the labels */
                CHECK_CLOSE(word(hugging_face, "class"), loss_of(r, &b),
                            number(hugging_face, "loss"), HUGGING_FACE_TOLERANCE);
                b.labels = wanted;
            }
        }
        reference_adamw_step(r, adamw, step);
        if (step == 1 || step == steps)
            check_recorded_parameters(r, start, rows, step);
    }
out:
    reference_free(start);
    reference_free(r);
    free(wanted);
    free(ids);
}

static void pytorch_and_hugging_face_agree(void)
{
    struct text text = {0};
    struct diag diag = {0};
    struct json json = {0};
    if (!CHECK_INT(fixture, text_read(&text, check_path(fixture), &diag), STATUS_OK) ||
        !CHECK_INT(fixture, json_parse(&json, fixture, text.data, text.size, &diag), STATUS_OK))
        goto out;
    const struct json_node root = json_root(&json);
    const struct json_node options = json_find_member(root, "adamw");
    const struct reference_adamw adamw = {number(options, "lr"), number(options, "beta1"),
                                          number(options, "beta2"), number(options, "eps"),
                                          number(options, "weight_decay")};
    const struct json_node recorded = json_find_member(root, "models");
    CHECK("models", json_element_count(recorded) >= 6);
    for (size_t i = 0; i < json_element_count(recorded); i++)
        check_against_recorded_model(json_element_at(recorded, i), &adamw,
                                     (int)number(root, "steps"));
out:
    CHECK_TEXT(fixture, diag.text, "");
    json_release(&json);
    text_release(&text);
    diag_release(&diag);
}

/* Compares with a model of which only Hugging Face's results were recorded. */
static void check_recorded_mixture_of_experts(struct json_node model)
{
    const struct transformer t = recorded_transformer(model);
    const char *class = word(model, "class");
    const struct json_node rows = json_find_member(model, "tensors");
    int32_t *ids = recorded_ids(model, "tokens");
    const struct reference_batch b = {
        ids,  NULL, (int64_t)number(model, "sequences"), (int64_t)number(model, "seq_len"),
        NULL, NULL};
    struct reference *r = reference_new(&t);
    reference_init_weights(r, (uint64_t)number(model, "seed"));
    CHECK("experts", t.experts > 0);
    if (CHECK_INT(class, (int64_t)json_element_count(rows), (int64_t)r->tensor_count)) {
        CHECK_CLOSE(class, loss_and_gradients_of(r, &b), number(model, "loss"),
                    HUGGING_FACE_TOLERANCE);
        for (size_t n = 0; n < r->tensor_count; n++) {
            const struct reference_tensor *tensor = &r->tensors[n];
            const struct json_node row = json_element_at(rows, n);
            const double norm = norm_of_difference(tensor->grad, NULL, tensor->count);
            CHECK_TEXT("order", word(row, "name"), tensor->name);
            CHECK(tensor->name, norm > 0);
            CHECK_CLOSE(tensor->name, norm, number(row, "gradient_norm"), HUGGING_FACE_TOLERANCE);
            CHECK("entries were recorded",
                  json_element_count(json_find_member(row, "entries")) > 0);
            for (size_t e = 0; e < json_element_count(json_find_member(row, "entries")); e++)
                CHECK(tensor->name,
                      fabs(tensor->grad[(size_t)number_at(row, "entries", e)] -
                           number_at(row, "gradients", e)) <= HUGGING_FACE_TOLERANCE * norm);
        }
    }
    reference_free(r);
    free(ids);
}

/* Mixtures of experts, one with latent attention. Their routers compute scores, but the experts of a token are those
 * that our routing gives it (tests/data/reference/experts.py). */
static void transformers_agree_on_experts(void)
{
    struct text text = {0};
    struct diag diag = {0};
    struct json json = {0};
    if (CHECK_INT(of_experts, text_read(&text, check_path(of_experts), &diag), STATUS_OK) &&
        CHECK_INT(of_experts, json_parse(&json, of_experts, text.data, text.size, &diag),
                  STATUS_OK)) {
        const struct json_node models = json_find_member(json_root(&json), "models");
        CHECK_INT("models", (int64_t)json_element_count(models), 4);
        for (size_t i = 0; i < json_element_count(models); i++)
            check_recorded_mixture_of_experts(json_element_at(models, i));
    }
    CHECK_TEXT(of_experts, diag.text, "");
    json_release(&json);
    text_release(&text);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"PyTorch and Hugging Face agree", pytorch_and_hugging_face_agree},
    {"transformers agree on experts", transformers_agree_on_experts},
};
CHECK_MAIN("reference_recorded", cases)
