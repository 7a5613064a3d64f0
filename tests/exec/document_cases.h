/* tests/exec/document_cases.h: steps over packed documents, and steps with sliding windows in rings and chunks, compute
 * the reference's loss, gradients, parameters and moments. On the backend `matrix_backend` (tests/exec/matrix.h). */
#ifndef TESTS_EXEC_DOCUMENT_CASES_H
#define TESTS_EXEC_DOCUMENT_CASES_H

#include "tests/exec/matrix.h"

enum { SEQ = 48 };

/* Configurations; a field that a row leaves open is 0. */
static const struct document_configuration {
    const char *strategy, *profile;
    int64_t ranks, hp, cp, tp, pp, subsequences, micro_batch, batch, ring;
    int layout, rotate;
    int64_t chunk;
    int order, offload, fetch;
    const char *core_plan;
} uses[] = {
    {.strategy = "local", .ranks = 2, .micro_batch = 2, .batch = 8},
    {.strategy = "ulysses", .ranks = 4, .hp = 2, .batch = 4},
    {.strategy = "upipe", .ranks = 4, .hp = 2, .micro_batch = 2, .batch = 4},
    {.strategy = "megatron-sp", .ranks = 4, .tp = 2, .batch = 4},
    {.strategy = "ulysses", .ranks = 4, .hp = 2, .pp = 2, .batch = 3},
    {.strategy = "sppo", .ranks = 4, .pp = 2, .subsequences = 4, .batch = 4},
    {.strategy = "sppo", .ranks = 4, .tp = 2, .subsequences = 3, .batch = 2},
    {.strategy = "ring", .ranks = 4, .cp = 4, .batch = 2},
    {.strategy = "ring", .ranks = 4, .cp = 2, .batch = 4, .layout = RING_CONTIGUOUS},
    {.strategy = "ring", .ranks = 4, .cp = 4, .micro_batch = 2, .batch = 2, .layout = RING_STRIPED},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .micro_batch = 2,
     .batch = 4,
     .layout = RING_ZIGZAG_DOCUMENTS},
    {.strategy = "ring", .profile = "megatron-te", .ranks = 4, .cp = 4, .batch = 2},
    {.strategy = "ring",
     .profile = "megatron-te",
     .ranks = 6,
     .cp = 3,
     .batch = 4,
     .layout = RING_ZIGZAG_DOCUMENTS},
    {.strategy = "ring",
     .profile = "torchtitan",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .rotate = ROTATE_ALL_GATHER},
    {.strategy = "ring", .ranks = 6, .cp = 6, .batch = 2, .ring = 3},
    {.strategy = "ring", .ranks = 4, .cp = 4, .batch = 2, .ring = 4, .layout = RING_CONTIGUOUS},
    {.strategy = "2d",
     .ranks = 4,
     .hp = 2,
     .cp = 2,
     .micro_batch = 2,
     .batch = 4,
     .layout = RING_ZIGZAG_DOCUMENTS},
    {.strategy = "2d", .ranks = 8, .hp = 2, .cp = 4, .batch = 2, .ring = 2},
    {.strategy = "fpdt", .ranks = 4, .hp = 2, .batch = 4, .chunk = 8},
    {.strategy = "fpdt", .profile = "ideal", .ranks = 2, .micro_batch = 2, .batch = 4, .chunk = 10},
    {.strategy = "fpdt",
     .profile = "ideal",
     .ranks = 2,
     .hp = 2,
     .batch = 2,
     .chunk = 8,
     .order = ORDER_QUERY_OUTER},
    {.strategy = "fpdt",
     .profile = "ideal",
     .ranks = 1,
     .batch = 2,
     .chunk = 16,
     .order = ORDER_QUERY_OUTER,
     .offload = KV_OFFLOAD_OFF},
    {.strategy = "fpdt",
     .profile = "ideal",
     .ranks = 1,
     .batch = 2,
     .chunk = 8,
     .offload = KV_OFFLOAD_OFF},
    {.strategy = "fpdt",
     .ranks = 2,
     .hp = 2,
     .batch = 2,
     .chunk = 8,
     .order = ORDER_QUERY_OUTER,
     .fetch = FETCH_ONE},
    {.strategy = "fpdt", .ranks = 2, .hp = 2, .batch = 2, .chunk = 12, .fetch = FETCH_ONE},
    {.strategy = "ring", .ranks = 4, .cp = 4, .batch = 2, .core_plan = "per-document"},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .micro_batch = 2,
     .batch = 2,
     .core_plan = "chunks:4"},
    {.strategy = "ring", .ranks = 8, .cp = 4, .tp = 2, .batch = 2, .core_plan = "chunks:2"},
    {.strategy = "ring", .ranks = 4, .cp = 2, .batch = 4, .core_plan = "striped"},
    {.strategy = "ring",
     .profile = "megatron-te",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .core_plan = "zigzag"},
    {.strategy = "ring",
     .profile = "torchtitan",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .rotate = ROTATE_ALL_GATHER,
     .core_plan = "per-document"},
    {.strategy = "ring", .ranks = 6, .cp = 6, .batch = 2, .ring = 3, .core_plan = "chunks:1"},
    {.strategy = "2d",
     .ranks = 4,
     .hp = 2,
     .cp = 2,
     .micro_batch = 2,
     .batch = 4,
     .core_plan = "contiguous"},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .rotate = ROTATE_NEEDED_ROWS,
     .core_plan = "per-document"},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .micro_batch = 2,
     .batch = 4,
     .rotate = ROTATE_NEEDED_ROWS,
     .core_plan = "chunks:4"},
    {.strategy = "ring", .ranks = 6, .cp = 3, .batch = 4, .rotate = ROTATE_NEEDED_ROWS},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .layout = RING_STRIPED,
     .rotate = ROTATE_NEEDED_ROWS},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .layout = RING_CONTIGUOUS,
     .rotate = ROTATE_NEEDED_ROWS},
    {.strategy = "ring",
     .profile = "megatron-te",
     .ranks = 4,
     .cp = 4,
     .batch = 2,
     .layout = RING_ZIGZAG_DOCUMENTS,
     .rotate = ROTATE_NEEDED_ROWS},
    {.strategy = "2d",
     .ranks = 8,
     .hp = 2,
     .cp = 4,
     .batch = 2,
     .rotate = ROTATE_NEEDED_ROWS,
     .core_plan = "chunks:2"},
    {.strategy = "ring",
     .ranks = 8,
     .cp = 4,
     .tp = 2,
     .batch = 2,
     .rotate = ROTATE_NEEDED_ROWS,
     .core_plan = "striped"},
    {.strategy = "ring",
     .ranks = 4,
     .cp = 2,
     .pp = 2,
     .batch = 3,
     .rotate = ROTATE_NEEDED_ROWS,
     .core_plan = "chunks:3"},
    {.strategy = "ring", .ranks = 4, .cp = 4, .batch = 2, .core_plan = "blocks:2"},
    {.strategy = "ring", .ranks = 8, .cp = 4, .micro_batch = 2, .batch = 8, .core_plan = "move:1"},
    {.strategy = "ring", .ranks = 6, .cp = 3, .batch = 4, .core_plan = "token-ring"},
    {.strategy = "ring", .ranks = 4, .cp = 2, .pp = 2, .batch = 3, .core_plan = "zigzag-ring"},
    {.strategy = "2d", .ranks = 8, .hp = 2, .cp = 4, .batch = 2, .core_plan = "burst"},
    {.strategy = "ring", .ranks = 8, .cp = 4, .tp = 2, .batch = 2, .core_plan = "double-ring:2"},
};

static struct request request_of(const struct document_configuration *use,
                                 const struct transformer *model, size_t i)
{
    return (struct request){.model = model,
                            .strategy = use->strategy,
                            .profile = use->profile,
                            .weights = CHOICE_WEIGHTS_ZERO1,
                            .activations = (int)i % CHOICE_ACTIVATIONS_COUNT,
                            .optimizer = -1,
                            .attention_impl = ATTENTION_CPU,
                            .dtype = DTYPE_F32,
                            .ranks = use->ranks,
                            .hp = use->hp,
                            .cp = use->cp,
                            .tp = use->tp,
                            .pp = use->pp,
                            .subsequences = use->subsequences,
                            .micro_batch = use->micro_batch,
                            .global_batch = use->batch,
                            .ring_window = use->ring,
                            .ring_layout = use->layout,
                            .rotation = use->rotate,
                            .core_plan = use->core_plan,
                            .chunk_tokens = use->chunk,
                            .chunk_order = use->order,
                            .kv_offload = use->offload,
                            .chunk_fetch = use->fetch,
                            .seq = SEQ,
                            .gpus_per_node = 4,
                            .sm = 80};
}

/* Gives every sequence random documents, except that the last sequence has those of the first. */
static void pack(struct documents *documents, struct arena *arena, const struct request *r,
                 struct check_random *random)
{
    documents_init(documents, arena, (uint32_t)r->global_batch);
    for (uint32_t s = 0; s < documents->sequence_count; s++) {
        int64_t length[SEQ], grain = r->ring_layout == RING_ZIGZAG_DOCUMENTS ? 2 * r->cp : 1;
        uint32_t count = 0;
        for (int64_t left = SEQ / grain; left > 0; left -= length[count++] / grain)
            length[count] = grain * check_random_i64(random, 1, count == 0 ? left / 2 : left);
        documents_set_lengths(documents, arena, s, length, count);
    }
    documents->list_of_sequence[documents->sequence_count - 1] = documents->list_of_sequence[0];
}

static inline void documents_compute_the_reference(void)
{
    struct check_random random = check_random_make();
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        const struct document_configuration *use = &uses[i];
        struct transformer model = shapes[i % 2];
        struct arena arena = {0};
        struct documents documents;
        struct diag diag = {0};
        struct choices choices;
        if (i % 3 == 2)
            model.attention_window = 9;
        struct request request = request_of(use, &model, i);
        pack(&documents, &arena, &request, &random);
        request.documents = &documents;
        if (!CHECK_INT(use->strategy, resolve_choices(&choices, &request, NULL, &diag), STATUS_OK))
            fputs(diag.text, stderr);
        else if (CHECK(use->strategy, choices.documents != NULL))
            check_choices_if_sampled_today(&choices, true, matrix_backend != NULL ? 6 : 3);
        diag_release(&diag);
        arena_release(&arena);
    }
}

/* Sliding windows in rings and chunks compute the reference, too: windows that end within a slice, reach into
 * the next, and span several. Schedules skip blocks that no query sees. */
static inline void windows_in_tiles_compute_the_reference(void)
{
    static const int64_t windows[] = {3, 8, 20};
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        if (uses[i].cp == 0 && uses[i].chunk == 0)
            continue;
        struct transformer model = shapes[i % 2];
        model.attention_window = windows[i % 3];
        model.full_attention_every = i % 3 == 2 ? 2 : 0;
        model.attention_sinks = i % 2 == 0;
        struct request request = request_of(&uses[i], &model, i);
        check_request_if_sampled_today(&request, matrix_backend != NULL ? 6 : 3);
    }
}

#endif
