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

static const struct check_case cases[] = {
    EXPERT_CASES,
    {"experts that tensor ranks cannot have are refused",
     experts_that_tensor_ranks_cannot_have_are_refused},
    {"chunks of a core plan are refused", chunks_of_a_core_plan_are_refused},
    {"sinks in stages of heads are refused", sinks_in_stages_of_heads_are_refused},
};

CHECK_MAIN("experts", cases)
