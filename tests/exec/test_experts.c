/* tests/exec/test_experts.c: the cases of expert_cases.h on the processor, and what is refused. */
#include "tests/exec/expert_cases.h"

/* Refuses a request of two tensor ranks, in words. */
static void check_refused(const struct request *asked, const char *words)
{
    struct choices choices;
    struct diag diag = {0};
    struct request request = *asked;
    request.model = &expert_base;
    request.strategy = "megatron-sp";
    request.ranks = 4;
    request.tp = 2;
    request.seq = 48;
    request.gpus_per_node = 2;
    request.sm = 80;
    request.dtype = request.attention_impl = request.optimizer = -1;
    CHECK_INT(words, resolve_choices(&choices, &request, NULL, &diag), STATUS_BAD_INPUT);
    CHECK(words, diag.text != NULL && strstr(diag.text, words) != NULL);
    diag_release(&diag);
}

static void experts_that_tensor_ranks_cannot_have_are_refused(void)
{
    check_refused(&(struct request){.ep = 1}, "ep 1 is no multiple of tp 2; --ep 2 would do");
    check_refused(&(struct request){.ep = 2, .tensor_plan = TENSOR_PLAN_REPLICATED},
                  "choose --tensor-plan megatron");
}

static void sinks_in_stages_of_heads_are_refused(void)
{
    struct choices choices;
    struct diag diag = {0};
    const struct request request = {.model = &expert_gpt_oss,
                                    .strategy = "upipe",
                                    .weights = -1,
                                    .activations = -1,
                                    .optimizer = -1,
                                    .attention_impl = ATTENTION_CPU,
                                    .dtype = -1,
                                    .ranks = 2,
                                    .seq = 32,
                                    .gpus_per_node = 2,
                                    .sm = 80};
    CHECK_INT("upipe", resolve_choices(&choices, &request, NULL, &diag), STATUS_BAD_INPUT);
    CHECK("upipe", diag.text != NULL && strstr(diag.text, "the model has sinks of attention"));
    diag_release(&diag);
}

static void chunks_of_a_core_plan_are_refused(void)
{
    struct choices choices;
    struct diag diag = {0};
    const struct request request = {.model = &expert_llama4,
                                    .strategy = "ring",
                                    .core_plan = "zigzag-ring",
                                    .weights = -1,
                                    .activations = -1,
                                    .optimizer = -1,
                                    .attention_impl = ATTENTION_CPU,
                                    .dtype = -1,
                                    .ranks = 4,
                                    .seq = 64,
                                    .gpus_per_node = 4,
                                    .sm = 80};
    CHECK_INT("plan", resolve_choices(&choices, &request, NULL, &diag), STATUS_BAD_INPUT);
    CHECK("plan", diag.text != NULL && strstr(diag.text, "the model attends within chunks"));
    diag_release(&diag);
}

/* Copies above the capacity of an expert are dropped, by either rule, and rows are padded to it, with even routing and
 * with shares. */
static void capacities_compute_the_reference(void)
{
    static const struct expert_capacity capacities[] = {{500000, 0, TOKEN_DROP_POSITION},
                                                        {800000, 0, TOKEN_DROP_PROBABILITY},
                                                        {1000000, 1, TOKEN_DROP_POSITION},
                                                        {1300000, 1, TOKEN_DROP_PROBABILITY},
                                                        {9000000, 0, TOKEN_DROP_POSITION}};
    for (size_t i = 0; i < 2 * ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        struct expert_row row = odd_rows[i / 2];
        struct routing routing;
        struct arena arena = {0};
        model.router = (enum router)(i / 2 % ROUTER_COUNT);
        model.router_norm = i % 2 == 0;
        model.shared_ffn = i % 3 == 1 ? 24 : 0;
        routing_init(&routing, &arena, 6, 4, 2);
        routing_set(&routing, &arena, 0, uneven[i % 3]);
        routing_set(&routing, &arena, 1, uneven[(i + 1) % 4]);
        row.request.routing = i % 2 == 0 ? &routing : NULL;
        row.request.capacity = capacities[i % ARRAY_LEN(capacities)];
        check_expert_row(&row, &model);
        arena_release(&arena);
    }
}

/* Tokens travel to the ranks of their experts before they are copied, and sums return. */
static void dispatchers_compute_the_reference(void)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        struct expert_row row = odd_rows[i / 2];
        struct routing routing;
        struct arena arena = {0};
        model.router = (enum router)(i / 2 % ROUTER_COUNT);
        model.router_norm = i % 2 == 0;
        model.shared_ffn = i % 3 == 1 ? 24 : 0;
        routing_init(&routing, &arena, 6, 4, 2);
        routing_set(&routing, &arena, 0, uneven[i % 3]);
        routing_set(&routing, &arena, 1, uneven[(i + 1) % 4]);
        row.request.routing = i / 2 % 2 == 0 ? &routing : NULL;
        row.request.dispatcher = i % 2 == 0 ? DISPATCHER_ALLGATHER : DISPATCHER_DEEPEP;
        check_expert_row(&row, &model);
        arena_release(&arena);
    }
}

static void shared_experts_compute_the_reference_beside_any_exchange(void)
{
    for (int shared = SHARED_EXPERTS_BEFORE; shared < SHARED_EXPERTS_COUNT; shared++)
        for (int activations = 0; activations < 4; activations++) {
            struct transformer model = expert_base;
            struct expert_row row = {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 25},
                                     CHOICE_WEIGHTS_ZERO1,
                                     activations,
                                     NULL};
            model.shared_ffn = 24;
            row.request.shared_experts = shared;
            row.request.pp = activations == 0 ? 2 : 1;
            row.request.ranks *= row.request.pp;
            row.request.pipeline = activations == 0 ? CHOICE_PIPELINE_ZB_1P : row.request.pipeline;
            row.request.global_batch = 4;
            check_expert_row(&row, &model);
        }
}

static const struct check_case cases[] = {
    EXPERT_CASES,
    {"capacities compute the reference", capacities_compute_the_reference},
    {"dispatchers compute the reference", dispatchers_compute_the_reference},
    {"shared experts compute the reference beside any exchange",
     shared_experts_compute_the_reference_beside_any_exchange},
    {"experts that tensor ranks cannot have are refused",
     experts_that_tensor_ranks_cannot_have_are_refused},
    {"chunks of a core plan are refused", chunks_of_a_core_plan_are_refused},
    {"sinks in stages of heads are refused", sinks_in_stages_of_heads_are_refused},
};

CHECK_MAIN("experts", cases)
