/* tests/exec/test_reference.c: the plain transformer: gradients are finite differences, AdamW is worked by hand, and
 * runs repeat to the bit. */
#include "exec/reference.h"

#include "tests/exec/reference_loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- small models ---- */

#define VOCAB 11

static const struct model_row {
    const char *label;
    struct transformer t;
} models[] = {
    {"llama, GQA",
     {.layers = 2, .hidden = 12, .heads = 4, .kv_heads = 2, .head_dim = 6, .ffn = 10}},
    {"llama, MQA, one token wide",
     {.layers = 1, .hidden = 8, .heads = 3, .kv_heads = 1, .head_dim = 2, .ffn = 1}},
    {"gpt2",
     {.layers = 2,
      .hidden = 8,
      .heads = 2,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 16,
      .max_positions = 9,
      .activation = ACTIVATION_GELU,
      .norm = NORM_LAYERNORM,
      .positions = POSITIONS_LEARNED,
      .bias_qkv = true,
      .bias_o = true,
      .bias_ffn = true,
      .tied_head = true}},
    {"qwen2, tied",
     {.layers = 1,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 2,
      .ffn = 12,
      .bias_qkv = true,
      .tied_head = true}},
    {"qwen3, heads wider than hidden",
     {.layers = 2,
      .hidden = 6,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 7,
      .qk_norm = true}},
    {"no positions, odd head, SwiGLU with biases",
     {.layers = 3,
      .hidden = 7,
      .heads = 3,
      .kv_heads = 3,
      .head_dim = 5,
      .ffn = 5,
      .norm = NORM_LAYERNORM,
      .positions = POSITIONS_NONE,
      .bias_ffn = true,
      .bias_o = true}},
    {"gemma3: norms at both ends, GEGLU",
     {.layers = 3,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 6,
      .activation = ACTIVATION_GEGLU,
      .norm_place = NORM_BOTH,
      .qk_norm = true}},
    {"olmo2: norms at the ends, norms over all heads",
     {.layers = 2,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 6,
      .norm_place = NORM_AFTER,
      .qk_norm = true,
      .qk_norm_wide = true}},
    {"nemotron: squared ReLU",
     {.layers = 2,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 12,
      .activation = ACTIVATION_RELU2,
      .norm = NORM_LAYERNORM}},
    {"gpt-oss: sinks, a clamped activation, biases",
     {.layers = 2,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 6,
      .activation = ACTIVATION_SWIGLU_CLAMPED,
      .bias_qkv = true,
      .bias_o = true,
      .bias_ffn = true,
      .attention_window = 7,
      .full_attention_every = 2,
      .attention_sinks = true}},
    {"adapters of all linear layers",
     {.layers = 2,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 6,
      .adapter_rank = 3}},
    {"adapters of some, with biases and GELU",
     {.layers = 2,
      .hidden = 8,
      .heads = 2,
      .kv_heads = 2,
      .head_dim = 4,
      .ffn = 6,
      .activation = ACTIVATION_GELU,
      .norm = NORM_LAYERNORM,
      .bias_qkv = true,
      .bias_o = true,
      .bias_ffn = true,
      .adapter_rank = 2,
      .adapter_targets = 1 << ADAPTER_K | 1 << ADAPTER_O | 1 << ADAPTER_UP}},
    {"all at once",
     {.layers = 1,
      .hidden = 8,
      .heads = 4,
      .kv_heads = 1,
      .head_dim = 4,
      .ffn = 6,
      .max_positions = 20,
      .activation = ACTIVATION_GELU,
      .positions = POSITIONS_LEARNED,
      .bias_qkv = true,
      .bias_o = true,
      .bias_ffn = true,
      .qk_norm = true}},
};

static struct reference *make_reference(const struct model_row *row)
{
    struct transformer t = row->t;
    t.vocab = VOCAB;
    t.norm_eps = 1e-5;
    t.rope_theta = t.positions == POSITIONS_ROPE ? 100 : 0; /* small: slow pairs rotate visibly */
    struct diag diag = {0};
    CHECK_INT(row->label, transformer_check(&t, (struct loc){row->label, 0, 0}, &diag), STATUS_OK);
    diag_release(&diag);
    struct reference *r = reference_new(&t);
    reference_init_weights(r, 7);
    return r;
}

/* Two sequences of nine with repeated tokens. The labels of their last positions, and one more, are ignored. */
#define SEQUENCES 2
#define SEQ_LEN 9
static const int32_t tokens[SEQUENCES * SEQ_LEN] = {3, 1, 4, 1, 5, 9, 2, 6, 5,
                                                    8, 9, 7, 9, 3, 2, 3, 8, 4};
static const int32_t labels[SEQUENCES * SEQ_LEN] = {1, 4,  1, 5, 9, 2, 6, 5, -1,
                                                    9, -1, 9, 3, 2, 3, 8, 4, -1};
static const struct reference_batch batch = {tokens, labels, SEQUENCES, SEQ_LEN, NULL, NULL};

static double largest_magnitude(const double *x, size_t count)
{
    double max = 0;
    for (size_t i = 0; i < count; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* ---- gradients against finite differences ---- */

/* The step of the central difference of order 4, (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h. Its truncation error is
 * h^4 / 30 times the fifth derivative: at 1e-3, 5e-4, 3e-4 and 2e-4 the worst difference seen fell as h^4, from
 * 1.5e-8 to 2.3e-11. Its rounding error, some ulp of a loss near 3 divided by h, is 1e-11. Gradients here are 1e-3 to
 * 1, so a missing or a wrong term would make a difference larger by orders of magnitude. */
#define H 2e-4
#define DIFFERENCE_TOLERANCE 1e-10

static double loss_after_move(struct reference *r, double *at, double by)
{
    const double old = *at;
    *at = old + by;
    const double loss = loss_of(r, &batch);
    *at = old;
    return loss;
}

static double difference(struct reference *r, double *at)
{
    return (8 * (loss_after_move(r, at, H) - loss_after_move(r, at, -H)) -
            (loss_after_move(r, at, 2 * H) - loss_after_move(r, at, -2 * H))) /
           (12 * H);
}

static void gradients_are_finite_differences(void)
{
    struct check_random random = check_random_make();
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct reference *r = make_reference(&models[i]);
        const double loss = loss_and_gradients_of(r, &batch);
        CHECK_CLOSE(models[i].label, loss, loss_of(r, &batch), 0);
        for (size_t n = 0; n < r->tensor_count; n++) {
            struct reference_tensor *tensor = &r->tensors[n];
            char label[120];
            snprintf(label, sizeof label, "%s: %s", models[i].label, tensor->name);
            if (!transformer_is_tensor_trained(&r->transformer, tensor->name)) {
                CHECK_CLOSE(label, largest_magnitude(tensor->grad, tensor->count), 0, 0);
                continue;
            }
            CHECK(label, largest_magnitude(tensor->grad, tensor->count) > 0);
            for (int entry = 0; entry < 6; entry++) {
                const int64_t e = check_random_i64(&random, 0, (int64_t)tensor->count - 1);
                const double want = difference(r, &tensor->param[e]), got = tensor->grad[e];
                if (!CHECK(label, fabs(got - want) <= DIFFERENCE_TOLERANCE))
                    printf(" [%lld]: got %.12g, difference %.12g", (long long)e, got, want);
            }
        }
        reference_free(r);
    }
}

/* ---- properties of the loss, and runs that repeat ---- */

static void equal_logits_cost_ln_vocab(void)
{
    struct reference *r = make_reference(&models[0]);
    struct reference_tensor *head = reference_find_tensor(r, "head.weight");
    memset(head->param, 0, head->count * sizeof *head->param);
    CHECK_CLOSE("ln 11", loss_of(r, &batch), log(VOCAB), 1e-15);
    reference_free(r);
}

static void labels_are_next_tokens_unless_given(void)
{
    int32_t shifted[SEQUENCES * SEQ_LEN];
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
        shifted[i] = i % SEQ_LEN == SEQ_LEN - 1 ? -1 : tokens[i + 1];
    struct reference *r = make_reference(&models[0]);
    const struct reference_batch none = {tokens, NULL, SEQUENCES, SEQ_LEN, NULL, NULL};
    const struct reference_batch given = {tokens, shifted, SEQUENCES, SEQ_LEN, NULL, NULL};
    CHECK_CLOSE("loss", loss_of(r, &none), loss_of(r, &given), 0);
    reference_free(r);
}

/* The loss of a batch is the mean over counted tokens: 8 of the first sequence count and 7 of the second. */
static void a_batch_is_the_mean_of_counted_tokens(void)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct reference *r = make_reference(&models[i]);
        const struct reference_batch first = {tokens, labels, 1, SEQ_LEN, NULL, NULL};
        const struct reference_batch second = {
            tokens + SEQ_LEN, labels + SEQ_LEN, 1, SEQ_LEN, NULL, NULL};
        CHECK_CLOSE(models[i].label, loss_of(r, &batch),
                    (8 * loss_of(r, &first) + 7 * loss_of(r, &second)) / 15, 1e-14);
        reference_free(r);
    }
}

/* Only the label of position 3 counts: tokens from 4 on must not change the loss, and token 2 must. */
static void a_token_sees_none_after_it(void)
{
    int32_t changed[SEQ_LEN], only[SEQ_LEN];
    for (size_t i = 0; i < SEQ_LEN; i++)
        only[i] = i == 3 ? labels[i] : -1;
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct reference *r = make_reference(&models[i]);
        const struct reference_batch before = {tokens, only, 1, SEQ_LEN, NULL, NULL};
        const struct reference_batch after = {changed, only, 1, SEQ_LEN, NULL, NULL};
        memcpy(changed, tokens, sizeof changed);
        for (size_t j = 4; j < SEQ_LEN; j++)
            changed[j] = (tokens[j] + 1) % VOCAB;
        CHECK_CLOSE(models[i].label, loss_of(r, &after), loss_of(r, &before), 0);
        changed[2] = (tokens[2] + 1) % VOCAB;
        CHECK(models[i].label, fabs(loss_of(r, &after) - loss_of(r, &before)) > 1e-6);
        reference_free(r);
    }
}

/* Swapping two tokens changes the loss of a later position if and only if the model, cut to one layer, has
 * positions. */
static void positions_matter_where_there_are_any(void)
{
    int32_t swapped[SEQ_LEN], only[SEQ_LEN];
    for (size_t i = 0; i < SEQ_LEN; i++) {
        swapped[i] = tokens[i == 1 ? 2 : i == 2 ? 1 : i];
        only[i] = i == SEQ_LEN - 2 ? labels[i] : -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        /* A model of one layer: deeper ones know the order from what the causal mask lets each token see. */
        struct model_row row = models[i];
        row.t.layers = 1;
        struct reference *r = make_reference(&row);
        const struct reference_batch plain = {tokens, only, 1, SEQ_LEN, NULL, NULL};
        const struct reference_batch other = {swapped, only, 1, SEQ_LEN, NULL, NULL};
        const double change = fabs(loss_of(r, &other) - loss_of(r, &plain));
        if (row.t.positions == POSITIONS_NONE)
            CHECK(row.label, change < 1e-14);
        else
            CHECK(row.label, change > 1e-6);
        reference_free(r);
    }
}

/* The logits of a long sequence are made in several blocks; two runs give the same bits. */
static void runs_repeat_to_the_bit(void)
{
    enum { LONG = 150 };
    int32_t ids[LONG];
    for (int i = 0; i < LONG; i++)
        ids[i] = i * i % VOCAB;
    const struct reference_batch b = {ids, NULL, 1, LONG, NULL, NULL};
    struct reference *first = make_reference(&models[0]), *second = make_reference(&models[0]);
    const double once = loss_and_gradients_of(first, &b), again = loss_and_gradients_of(second, &b);
    loss_and_gradients_of(second, &batch); /* gradients of another batch are overwritten */
    CHECK_CLOSE("loss", loss_and_gradients_of(second, &b), once, 0);
    CHECK_CLOSE("loss", again, once, 0);
    for (size_t n = 0; n < first->tensor_count; n++)
        CHECK(first->tensors[n].name, memcmp(first->tensors[n].grad, second->tensors[n].grad,
                                             first->tensors[n].count * sizeof(double)) == 0);
    reference_free(first);
    reference_free(second);
}

/* ---- AdamW and weights ---- */

/* Two steps of AdamW by hand, with p 1, g 0.5, lr 0.1, decay 0.01, betas 0.9 and 0.99, eps 0.1. The decay makes p
 * 0.999. Step 1: m / (1 - 0.9) = 0.5, v / (1 - 0.99) = 0.25, so p = 0.999 - 0.1 0.5 / 0.6. Step 2 with g = 0: m =
 * 0.045, divided by 0.19; v = 0.002475, divided by 0.0199. */
static void adamw_is_hand_worked(void)
{
    struct reference *r = make_reference(&models[0]);
    struct reference_tensor *norm = reference_find_tensor(r, "norm.weight");
    const struct reference_adamw adamw = {0.1, 0.9, 0.99, 0.1, 0.01};
    norm->param[2] = 1;
    norm->grad[2] = 0.5;
    reference_adamw_step(r, &adamw, 1);
    const double one = 0.999 - 0.1 * 0.5 / 0.6;
    CHECK_CLOSE("step 1", norm->param[2], one, 1e-14);
    norm->grad[2] = 0;
    reference_adamw_step(r, &adamw, 2);
    CHECK_CLOSE("step 2", norm->param[2],
                one * 0.999 - 0.1 * (0.045 / 0.19) / (sqrt(0.002475 / 0.0199) + 0.1), 1e-14);
    reference_free(r);
}

static void training_learns_the_batch(void)
{
    const struct reference_adamw adamw = {0.03, 0.9, 0.95, 1e-8, 0};
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct reference *r = make_reference(&models[i]);
        const double first = loss_and_gradients_of(r, &batch);
        for (int step = 1; step <= 60; step++) {
            loss_and_gradients_of(r, &batch);
            reference_adamw_step(r, &adamw, step);
        }
        CHECK(models[i].label, loss_of(r, &batch) < 0.5 * first);
        reference_free(r);
    }
}

static void weights_are_floats_that_follow_the_seed(void)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct reference *r = make_reference(&models[i]), *other = make_reference(&models[i]);
        reference_init_weights(other, 8);
        int64_t parameters = 0;
        for (size_t n = 0; n < r->tensor_count; n++) {
            const struct reference_tensor *tensor = &r->tensors[n];
            parameters += (int64_t)tensor->count;
            CHECK(tensor->name, reference_find_tensor(r, tensor->name) == tensor);
            CHECK(tensor->name,
                  norm_of_difference(tensor->param, other->tensors[n].param, tensor->count) > 0);
            for (size_t j = 0; j < tensor->count; j++)
                if (tensor->param[j] != (float)tensor->param[j])
                    CHECK(tensor->name, !"a float");
        }
        CHECK_INT(models[i].label, parameters,
                  transformer_parameters(&r->transformer) +
                      transformer_adapter_parameters(&r->transformer));
        CHECK(models[i].label,
              (reference_find_tensor(r, "head.weight") == NULL) == models[i].t.tied_head);
        CHECK(models[i].label, reference_find_tensor(r, "layers.99.wo.weight") == NULL);
        reference_free(other);
        reference_free(r);
    }
}

/* ---- bad input ---- */

/* tokens and labels of batches of three positions */
static const int32_t token_above_vocabulary[] = {1, 2, VOCAB}, negative[] = {1, -1, 2},
                     fine[] = {1, 2, 3};
static const int32_t below[] = {1, 2, -2}, nothing[] = {-1, -1, -1};
static const int32_t ten[10] = {0};

static const struct {
    const char *label;
    size_t model; /* index in models */
    struct reference_batch batch;
    const char *message;
} wrong[] = {
    {"token too high",
     0,
     {.tokens = token_above_vocabulary, .sequences = 1, .seq_len = 3},
     "reference: error: token 2 of sequence 0 is 11: it must be from 0 to 10\n"},
    {"negative token",
     0,
     {.tokens = negative, .sequences = 3, .seq_len = 1},
     "reference: error: token 0 of sequence 1 is -1: it must be from 0 to 10\n"},
    {"label too low",
     0,
     {.tokens = fine, .labels = below, .sequences = 1, .seq_len = 3},
     "reference: error: label 2 of sequence 0 is -2: it must be from -1 to 10\n"},
    {"nothing counted",
     0,
     {.tokens = fine, .labels = nothing, .sequences = 1, .seq_len = 3},
     "reference: error: no token of the batch is counted, so there is no loss: at least one "
     "label must not be -1\n"},
    {"nothing to predict",
     0,
     {.tokens = fine, .sequences = 3, .seq_len = 1},
     "reference: error: no token of the batch is counted, so there is no loss: at least one "
     "label must not be -1\n"},
    {"too long",
     2,
     {.tokens = ten, .sequences = 1, .seq_len = 10},
     "reference: error: a sequence of 10 tokens has more than the model's 9 learned positions\n"},
};

static void a_wrong_batch_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct reference *r = make_reference(&models[wrong[i].model]);
        struct diag diag = {0};
        double loss = 0;
        CHECK_INT(wrong[i].label, reference_loss(r, &wrong[i].batch, &loss, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_clear(&diag);
        CHECK_INT(wrong[i].label, reference_gradients(r, &wrong[i].batch, &loss, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text, wrong[i].message);
        diag_release(&diag);
        reference_free(r);
    }
}

static const struct check_case cases[] = {
    {"gradients are finite differences", gradients_are_finite_differences},
    {"equal logits cost ln vocab", equal_logits_cost_ln_vocab},
    {"labels are next tokens unless given", labels_are_next_tokens_unless_given},
    {"a batch is the mean of counted tokens", a_batch_is_the_mean_of_counted_tokens},
    {"a token sees none after it", a_token_sees_none_after_it},
    {"positions matter where there are any", positions_matter_where_there_are_any},
    {"runs repeat to the bit", runs_repeat_to_the_bit},
    {"AdamW is hand-worked", adamw_is_hand_worked},
    {"training learns the batch", training_learns_the_batch},
    {"weights are floats that follow the seed", weights_are_floats_that_follow_the_seed},
    {"a wrong batch is refused", a_wrong_batch_is_refused},
};
CHECK_MAIN("reference", cases)
