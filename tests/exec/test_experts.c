/* tests/exec/test_experts.c: the cases of expert_cases.h on the processor, and what is refused. */
#include "tests/exec/expert_cases.h"

static void check_refused(const char *words, struct request request)
{
    struct choices choices;
    struct diag diag = {0};
    request.gpus_per_node = 2;
    request.sm = 80;
    request.weights = request.activations = -1;
    request.dtype = request.attention_impl = request.optimizer = -1;
    CHECK_INT(words, resolve_choices(&choices, &request, NULL, &diag), STATUS_BAD_INPUT);
    CHECK(words, diag.text != NULL && strstr(diag.text, words) != NULL);
    diag_release(&diag);
}

static void impossible_requests_are_refused(void)
{
    const struct request tensor = {
        .model = &expert_base, .strategy = "megatron-sp", .ranks = 4, .tp = 2, .seq = 48};
    struct request few = tensor, replicated = tensor;
    few.ep = 1;
    check_refused("ep 1 is no multiple of tp 2; --ep 2 would do", few);
    replicated.ep = 2;
    replicated.tensor_plan = TENSOR_PLAN_REPLICATED;
    check_refused("choose --tensor-plan megatron", replicated);
    check_refused(
        "the model has sinks of attention",
        (struct request){.model = &expert_gpt_oss, .strategy = "upipe", .ranks = 2, .seq = 32});
    check_refused("the model attends within chunks", (struct request){.model = &expert_llama4,
                                                                      .strategy = "ring",
                                                                      .core_plan = "zigzag-ring",
                                                                      .ranks = 4,
                                                                      .seq = 64});
}

/* Checks each of odd_rows twice, with what `set` sets in the request of case i. shares: an uneven routing. */
static void check_rows_with_setting(void (*set)(struct request *request,
                                                const struct routing *shares, size_t i))
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        struct request_row row = odd_rows[i / 2];
        struct routing routing;
        struct arena arena = {0};
        model.router = (enum router)(i / 2 % ROUTER_COUNT);
        model.router_norm = i % 2 == 0;
        model.shared_ffn = i % 3 == 1 ? 24 : 0;
        routing_init(&routing, &arena, 6, 4, 2);
        routing_set_shares(&routing, &arena, 0, uneven[i % 3]);
        routing_set_shares(&routing, &arena, 1, uneven[(i + 1) % 4]);
        set(&row.request, &routing, i);
        check_expert_request_row(&row, &model);
        arena_release(&arena);
    }
}

static void set_capacity(struct request *request, const struct routing *shares, size_t i)
{
    static const struct expert_capacity capacities[] = {{500000, 0, TOKEN_DROP_POSITION},
                                                        {800000, 0, TOKEN_DROP_PROBABILITY},
                                                        {1000000, 1, TOKEN_DROP_POSITION},
                                                        {1300000, 1, TOKEN_DROP_PROBABILITY},
                                                        {9000000, 0, TOKEN_DROP_POSITION}};
    request->routing = i % 2 == 0 ? shares : NULL;
    request->expert_capacity = capacities[i % ARRAY_LEN(capacities)];
}

/* Copies above the capacity of an expert are dropped, by either rule, and in some cases rows are padded to it, with
 * even routing and with shares. */
static void capacities_compute_the_reference(void)
{
    check_rows_with_setting(set_capacity);
}

static void set_dispatcher(struct request *request, const struct routing *shares, size_t i)
{
    request->routing = i / 2 % 2 == 0 ? shares : NULL;
    request->dispatcher = i % 2 == 0 ? DISPATCHER_ALLGATHER : DISPATCHER_DEEPEP;
}

/* Tokens travel to the ranks of their experts before they are copied, and sums return. */
static void dispatchers_compute_the_reference(void)
{
    check_rows_with_setting(set_dispatcher);
}

/* Under profile neutral the activation of experts multiplies its results by the weights of copies, so that these
 * weights travel with the rows. */
static void weighted_activations_compute_the_reference(void)
{
    /* of each row: every dispatcher, without and with shared experts */
    const size_t cases = (size_t)DISPATCHER_COUNT * 2;
    for (size_t i = 0; i < cases * ARRAY_LEN(odd_rows); i++) {
        struct transformer model = expert_base;
        struct request_row row = odd_rows[i / cases];
        struct routing routing;
        struct arena arena = {0};
        model.router = (enum router)(i % ROUTER_COUNT);
        model.shared_ffn = i % 2 == 1 ? 24 : 0;
        row.profile = "neutral";
        row.request.dispatcher = (int)(i % cases / 2);
        routing_init(&routing, &arena, 6, 4, 2);
        routing_set_shares(&routing, &arena, 0, uneven[i % 3]);
        routing_set_shares(&routing, &arena, 1, uneven[(i + 1) % 4]);
        row.request.routing = i / cases % 2 == 0 ? &routing : NULL;
        check_expert_request_row(&row, &model);
        arena_release(&arena);
    }
}

static void shared_experts_compute_the_reference_beside_any_exchange(void)
{
    /* values of --activations; each with weights of copies that the sums apply, and with weights that the activation
     * applies */
    const int sets = 4;
    for (int shared = SHARED_EXPERTS_BEFORE_ROUTED; shared < SHARED_EXPERTS_COUNT; shared++)
        for (int i = 0; i < 2 * sets; i++) {
            const int activations = i % sets;
            struct transformer model = expert_base;
            struct request_row row = {{.strategy = "local", .ranks = 2, .ep = 2, .seq = 25},
                                      CHOICE_WEIGHTS_ZERO1,
                                      activations,
                                      i < sets ? NULL : "neutral"};
            model.shared_ffn = 24;
            row.request.shared_experts = shared;
            row.request.pp = activations == 0 ? 2 : 1;
            row.request.ranks *= row.request.pp;
            row.request.pipeline = activations == 0 ? CHOICE_PIPELINE_ZB_1P : row.request.pipeline;
            row.request.global_batch = 4;
            check_expert_request_row(&row, &model);
        }
}

static const struct check_case cases[] = {
    EXPERT_CASES,
    {"capacities compute the reference", capacities_compute_the_reference},
    {"dispatchers compute the reference", dispatchers_compute_the_reference},
    {"weighted activations compute the reference", weighted_activations_compute_the_reference},
    {"shared experts compute the reference beside any exchange",
     shared_experts_compute_the_reference_beside_any_exchange},
    {"what cannot be is refused", impossible_requests_are_refused},
};

CHECK_MAIN("experts", cases)
