/* tests/property/test_short_lists.c: a short list of ops stands for the whole list, over a few random schedules. */
#include "tests/property/short_lists.h"

static void short_lists_represent_whole_lists(void)
{
    check_short_lists(30);
}

/* Micro-batches of which one's forward is listed between the ops of another's backward repeat like others. */
static void short_lists_have_overlapped_exchanges(void)
{
    static const struct transformer model = {.layers = 3,
                                             .hidden = 32,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .head_dim = 8,
                                             .ffn = 48,
                                             .vocab = 64,
                                             .experts = 8,
                                             .experts_per_token = 2,
                                             .expert_ffn = 16};
    for (int overlap = EXPERT_OVERLAP_MICRO_BATCH; overlap < EXPERT_OVERLAP_COUNT; overlap++) {
        const struct request request = {.model = &model,
                                        .strategy = "local",
                                        .profile = "internevo",
                                        .ranks = 4,
                                        .ep = 4,
                                        .seq = 64,
                                        .global_batch = 4 * 64,
                                        .weights = CHOICE_WEIGHTS_ZERO1,
                                        .activations = CHOICE_ACTIVATIONS_KEEP,
                                        .optimizer = CHOICE_OPTIMIZER_DEVICE,
                                        .dtype = DTYPE_BF16,
                                        .attention_impl = ATTENTION_FA2,
                                        .gpus_per_node = 4,
                                        .sm = 80,
                                        .expert_overlap = overlap};
        struct property_world w = {0};
        bool tells = false;
        if (world_build(&w, "2x4xa100-80g", &request, NULL))
            CHECK(w.label, check_short_list(&w, 8, 1, &tells) && tells);
        world_release(&w);
    }
}

static const struct check_case cases[] = {
    {"exchanges beside another micro-batch", short_lists_have_overlapped_exchanges},
    {"samples stand for whole lists", short_lists_represent_whole_lists},
};
CHECK_MAIN("samples", cases)
