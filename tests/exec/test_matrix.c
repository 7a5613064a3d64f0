/* tests/exec/test_matrix.c: random products of choices; each computes the reference's loss, gradients and
 * parameters. Levels come from the registries, so a new choice takes part as soon as it is added. CHECK_SEED
 * and CHECK_COUNT in the environment change which products are drawn and how many. */
#include "tests/exec/step.h"

#include "base/text.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"

enum { PRODUCTS = 60 };

static struct transformer draw_model(struct check_random *random)
{
    bool gpt = check_random_i64(random, 0, 2) == 0;
    struct transformer t = gpt ? small_gpt : small_llama;
    static const int64_t heads[] = {1, 2, 4, 8};
    t.layers = check_random_i64(random, 1, 3);
    t.heads = heads[check_random_i64(random, 0, 3)];
    t.kv_heads = 1;
    while (t.kv_heads < t.heads && check_random_i64(random, 0, 1))
        t.kv_heads *= 2;
    t.head_dim = 2 * check_random_i64(random, 2, 4);
    t.hidden = check_random_i64(random, 12, 24); /* a norm of few columns magnifies rounding */
    t.ffn = check_random_i64(random, 5, 24);
    t.vocab = check_random_i64(random, 8, 40);
    t.qk_norm = check_random_i64(random, 0, 3) == 0;
    t.tied_head = check_random_i64(random, 0, 1);
    t.bias_qkv = check_random_i64(random, 0, 1);
    t.bias_o = check_random_i64(random, 0, 1);
    t.bias_ffn = check_random_i64(random, 0, 1);
    t.attention_sinks = check_random_i64(random, 0, 1);
    return t;
}

/* Gives one model in three adapters, of all or of some of its linear layers. */
static void draw_adapters(struct check_random *random, struct transformer *t)
{
    if (check_random_i64(random, 0, 2) > 0)
        return;
    t->adapter_rank = check_random_i64(random, 1, 5);
    if (check_random_i64(random, 0, 1))
        t->adapter_targets = check_random_i64(random, 1, (1 << ADAPTER_TARGET_COUNT) - 1) &
                             ~((int64_t)!transformer_has_gate(t) << ADAPTER_GATE);
    if (t->adapter_targets == 0 && !transformer_has_gate(t))
        t->adapter_targets = 1 << ADAPTER_UP;
}

static struct request draw_request(struct check_random *random, const struct transformer *model)
{
    size_t strategies, profiles;
    const struct strategy *strategy = strategies_list(&strategies);
    const struct profile *profile = profiles_list(&profiles);
    static const int64_t ranks[] = {1, 2, 3, 4, 6, 8};
    struct request r = step_request(model, ranks[check_random_i64(random, 0, 5)], 0);
    r.strategy = strategy[check_random_i64(random, 0, (int64_t)strategies - 1)].name;
    r.profile = profile[check_random_i64(random, 0, (int64_t)profiles - 1)].name;
    while (model->attention_sinks && strcmp(r.strategy, "upipe") == 0)
        r.strategy = strategy[check_random_i64(random, 0, (int64_t)strategies - 1)].name;
    r.seq = r.ranks * check_random_i64(random, 1, 4) * 2;
    while (r.seq < 12) /* gradients that nearly cancel consist of rounding only */
        r.seq *= 2;
    r.weights = (int)check_random_i64(random, -1, CHOICE_WEIGHTS_COUNT - 1);
    r.activations = (int)check_random_i64(random, -1, CHOICE_ACTIVATIONS_COUNT - 1);
    r.optimizer = (int)check_random_i64(random, -1, CHOICE_OPTIMIZER_COUNT - 1);
    r.attention_impl = (int)check_random_i64(random, 0, ATTENTION_FA1);
    if (check_random_i64(random, 0, 1)) {
        r.dp = check_random_i64(random, 1, r.ranks);
        while (r.ranks % r.dp != 0)
            r.dp--;
    }
    r.micro_batch = check_random_i64(random, 1, 2);
    r.global_batch = 0;
    r.gpus_per_node = check_random_i64(random, 1, 4);
    /* refused, and all is drawn again, if the strategy has no context ranks */
    if (check_random_i64(random, 0, 2) == 0)
        r.cp = (int64_t)1 << check_random_i64(random, 0, 2);
    if (check_random_i64(random, 0, 1))
        r.loss_chunks = check_random_i64(random, 1, 3);
    if (check_random_i64(random, 0, 1))
        r.ffn_chunks = check_random_i64(random, 1, 3);
    if (model->adapter_rank > 0 && model->hidden % 2 == 0)
        r.frozen_weights = (int)check_random_i64(random, 0, FROZEN_STORAGE_COUNT - 1);
    return r;
}

/* Sets the global batch to one to three times its default. Returns false if the request is refused. */
static bool draw_global_batch(struct request *r, struct check_random *random)
{
    struct choices c;
    if (resolve_choices(&c, r, NULL, NULL) != STATUS_OK)
        return false;
    r->global_batch = c.global_batch * check_random_i64(random, 1, 3);
    return resolve_choices(&c, r, NULL, NULL) == STATUS_OK;
}

static void random_choices_match_the_reference(void)
{
    struct check_random random = check_random_make();
    const char *asked = getenv("CHECK_COUNT");
    int64_t count = PRODUCTS;
    if (asked != NULL)
        CHECK("CHECK_COUNT is a number", parse_i64(asked, strlen(asked), &count));
    for (int64_t i = 0; i < count;) {
        struct transformer model = draw_model(&random);
        draw_adapters(&random, &model);
        struct request request = draw_request(&random, &model);
        struct executed_step step;
        char label[200];
        if (!draw_global_batch(&request, &random))
            continue;
        snprintf(label, sizeof label,
                 "%" PRId64
                 ": %s %s ranks %d dp %d seq %d batch %d x %d weights %d act %d opt %d L%d "
                 "heads %d/%d adapters %d:%d in %s",
                 i, request.strategy, request.profile, (int)request.ranks, (int)request.dp,
                 (int)request.seq, (int)request.global_batch, (int)request.micro_batch,
                 request.weights, request.activations, request.optimizer, (int)model.layers,
                 (int)model.heads, (int)model.kv_heads, (int)model.adapter_rank,
                 (int)model.adapter_targets, frozen_storage_names[request.frozen_weights]);
        if (step_make(&step, label, &request)) {
            step.options.finds_unwritten_reads = true;
            step_check_against_reference(&step, label, 1e-4);
        }
        step_release(&step);
        i++;
    }
}

static const struct check_case cases[] = {
    {"products compute what the reference computes", random_choices_match_the_reference},
};
CHECK_MAIN("matrix", cases)
