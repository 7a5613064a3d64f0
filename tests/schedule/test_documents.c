/* tests/schedule/test_documents.c: schedules of packed documents and of attention windows: how they print, which ops
 * they have, and what is refused. */
#include "schedule/config/resolve_config.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/visible.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const struct transformer model = {.name = "small",
                                         .layers = 1,
                                         .hidden = 16,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_dim = 4,
                                         .ffn = 16,
                                         .vocab = 32,
                                         .positions = POSITIONS_ROPE,
                                         .rope_theta = 10000,
                                         .norm_eps = 1e-5};

enum { SEQ = 64, BATCH = 4 };

static struct request request_of(const char *strategy, const struct documents *documents)
{
    return (struct request){.model = &model,
                            .strategy = strategy,
                            .weights = -1,
                            .activations = CHOICE_ACTIVATIONS_KEEP,
                            .optimizer = -1,
                            .attention_impl = ATTENTION_CPU,
                            .dtype = DTYPE_F32,
                            .ranks = 4,
                            .hp = 2,
                            .seq = SEQ,
                            .global_batch = BATCH,
                            .documents = documents,
                            .gpus_per_node = 4,
                            .sm = 80};
}

static void build_schedule(struct ir *ir, const struct request *request)
{
    struct choices choices;
    struct diag diag = {0};
    enum status status = resolve_choices(&choices, request, NULL, &diag);
    if (status == STATUS_OK)
        status = step_build(ir, &choices, &diag);
    if (status == STATUS_OK)
        status = verify(ir, NULL, "documents", NULL, &diag);
    if (!CHECK_INT(request->strategy, status, STATUS_OK))
        fputs(diag.text, stderr);
    diag_release(&diag);
}

static void document_schedule_equals_golden(void)
{
    static const int64_t length[BATCH][3] = {{40, 20, 4}, {1, 2, 61}, {40, 20, 4}, {64}};
    struct arena arena = {0};
    struct documents documents;
    struct ir ir = {0};
    struct text text = {0};
    documents_init(&documents, &arena, BATCH);
    for (uint32_t s = 0; s < BATCH; s++)
        documents_set_lengths(&documents, &arena, s, length[s], s < 3 ? 3 : 1);
    struct request request = request_of("ulysses", &documents);
    build_schedule(&ir, &request);
    ir_print_loops(&text, &ir);
    CHECK_GOLDEN("schedule/golden/documents.ir", text.data);
    text_release(&text);
    ir_release(&ir);
    arena_release(&arena);
}

static void print_schedule(struct text *text, const struct request *request)
{
    struct ir ir = {0};
    build_schedule(&ir, request);
    ir_print(text, &ir);
    ir_release(&ir);
}

/* A sequence of one document gives the same schedule as one without documents. */
static void one_document_is_causal(void)
{
    static const char *const strategies[] = {"local", "ulysses", "upipe", "ring", "2d", "fpdt"};
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++) {
        struct arena arena = {0};
        struct documents documents;
        struct text with = {0}, without = {0};
        documents_init(&documents, &arena, BATCH);
        for (uint32_t s = 0; s < BATCH; s++)
            documents_set_lengths(&documents, &arena, s, (int64_t[]){SEQ}, 1);
        struct request packed = request_of(strategies[i], &documents);
        struct request plain = request_of(strategies[i], NULL);
        if (i == 0 || i == 3)
            packed.hp = plain.hp = 0;
        packed.cp = plain.cp = i == 3 ? 4 : i == 4 ? 2 : 0;
        packed.chunk_tokens = plain.chunk_tokens = i == 5 ? 16 : 0;
        packed.ring_layout = RING_ZIGZAG_DOCUMENTS; /* with one document it is plain zigzag */
        print_schedule(&with, &packed);
        print_schedule(&without, &plain);
        CHECK_TEXT(strategies[i], with.data, without.data);
        text_release(&with);
        text_release(&without);
        arena_release(&arena);
    }
}

/* Micro-batches with the same documents have the same ops: sequences 0 and 1 of each data-parallel rank. */
static void same_documents_give_same_ops(void)
{
    struct arena arena = {0};
    struct documents documents;
    struct ir ir = {0};
    documents_init(&documents, &arena, BATCH);
    for (uint32_t s = 0; s < BATCH; s++)
        documents_set_lengths(&documents, &arena, s, (int64_t[]){s < 2 ? 60 : 30, s < 2 ? 4 : 34},
                              2);
    struct request request = request_of("ulysses", &documents);
    build_schedule(&ir, &request);
    uint32_t shapes = 0;
    for (uint32_t s = 0; s < ir.shape_count; s++)
        if (ir.shape[s].kind == WORK_ATTENTION) {
            CHECK_INT("mask", ir.shape[s].attention.mask, MASK_DOCUMENTS);
            shapes++;
        }
    CHECK_INT("one shape for both", shapes, 1);
    ir_release(&ir);
    arena_release(&arena);
}

/* 16 tokens on a ring of four, in which a query sees at most 3 keys: 1 + 2 + 14 x 3 pairs. With the contiguous layout
 * a rank's 4 tokens see tokens of the rank before; blocks travel one step, and their gradients 3 steps home. With
 * zigzag a rank has slices c and 7 - c of 2 tokens, and each slice sees the slice before it, which is on rank c - 1,
 * one step away, or on rank c + 1, three steps away. */
static void ring_window_pairs_and_shifts_by_hand(void)
{
    static const struct {
        const char *label;
        int layout, shifts;
        int64_t by[2]; /* of shifts of keys and values in the forward */
    } rows[] = {
        {"contiguous", RING_CONTIGUOUS, 4, {1}},
        {"zigzag", RING_ZIGZAG, 7, {1, 2}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct transformer windowed = model;
        struct request request = request_of("ring", NULL);
        struct ir ir = {0};
        double pairs = 0;
        int shifts = 0;
        int64_t forward = 0, home = 0;
        windowed.attention_window = 3;
        request.model = &windowed;
        request.hp = 0;
        request.cp = 4;
        request.seq = 16;
        request.global_batch = 1;
        request.ring_layout = rows[i].layout;
        build_schedule(&ir, &request);
        for (uint32_t op = 0; op < ir.op.count; op++) {
            const struct work *work = ir_work(&ir, op);
            if (work->kind == WORK_SHIFT) {
                if (ir.op.phase[op] == PHASE_FORWARD) {
                    CHECK_INT(rows[i].label, work->p2p.by, rows[i].by[shifts]);
                    forward += work->p2p.by;
                } else {
                    home += work->p2p.by;
                }
                shifts++;
            }
            for (uint32_t r = 0; r < 4 && work->kind == WORK_ATTENTION; r++)
                if (ir.op.guard[op] == IR_NONE16 ||
                    guard_passes(&ir.mesh, ir.group, &ir.guard[ir.op.guard[op]], r))
                    pairs += ir_work_flops_on_rank(&ir, work, r) / (4.0 * 4 * 4);
        }
        CHECK_CLOSE(rows[i].label, pairs, 45, 1e-12);
        CHECK_INT(rows[i].label, shifts, rows[i].shifts);
        /* keys travel as in the forward, and their gradients all the way round */
        CHECK_INT(rows[i].label, home, forward + 4);
        ir_release(&ir);
    }
}

/* The window is half a chunk: each chunk of queries needs its own keys and those of the chunk before. */
static void chunks_out_of_sight_are_not_fetched(void)
{
    struct transformer windowed = model;
    struct request request = request_of("fpdt", NULL);
    struct ir ir = {0};
    int tiles = 0, merges = 0;
    windowed.attention_window = 4;
    request.model = &windowed;
    request.profile = "ideal";
    request.global_batch = 2;
    request.chunk_tokens = 8;
    build_schedule(&ir, &request);
    for (uint32_t op = 0; op < ir.op.count; op++) {
        bool forward = ir.op.phase[op] == PHASE_FORWARD;
        tiles += forward && ir.op.kind[op] == WORK_ATTENTION;
        merges += forward && ir.op.kind[op] == WORK_MERGE;
    }
    CHECK_INT("tiles of 8 chunks", tiles, 8 + 7);
    CHECK_INT("merges", merges, 7);
    ir_release(&ir);
}

static void documents_that_do_not_fit_are_refused(void)
{
    static const struct {
        const char *label, *strategy;
        int64_t sequences, length, cp;
        const char *message;
    } rows[] = {
        /* label, strategy, sequences, length, cp, message */
        {"sequences", "ulysses", 3, 32, 0,
         "--documents: error: the documents are those of 3 sequences, but a step has 4 "
         "sequences\n"},
        {"slices", "ring", 4, 32, 4,
         "--layout: error: zigzag-documents cuts each document into 8 slices, and one has 30 "
         "tokens; pad documents to "
         "multiples of 8, or choose --layout zigzag\n"},
        {"tokens", "ulysses", 4, 31, 0,
         "--documents: error: the documents of sequence 0 have 62 tokens in all, but a sequence "
         "has 64 tokens\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena arena = {0};
        struct documents documents;
        struct choices choices;
        struct diag diag = {0};
        documents_init(&documents, &arena, (uint32_t)rows[i].sequences);
        for (uint32_t s = 0; s < documents.sequence_count; s++)
            documents_set_lengths(&documents, &arena, s,
                                  (int64_t[]){rows[i].length - (rows[i].cp > 0 ? 2 : 0),
                                              rows[i].length + (rows[i].cp > 0 ? 2 : 0)},
                                  2);
        struct request request = request_of(rows[i].strategy, &documents);
        request.cp = rows[i].cp;
        request.ring_layout = rows[i].cp > 0 ? RING_ZIGZAG_DOCUMENTS : RING_ZIGZAG;
        if (rows[i].cp > 0)
            request.hp = 0;
        CHECK_INT(rows[i].label, resolve_choices(&choices, &request, NULL, &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].message);
        diag_release(&diag);
        arena_release(&arena);
    }
}

static const struct check_case cases[] = {
    {"the schedule is printed", document_schedule_equals_golden},
    {"one document is causal", one_document_is_causal},
    {"equal micro-batches are equal", same_documents_give_same_ops},
    {"a window across a ring of four", ring_window_pairs_and_shifts_by_hand},
    {"chunks out of sight are not fetched", chunks_out_of_sight_are_not_fetched},
    {"documents that do not fit are refused", documents_that_do_not_fit_are_refused},
};
CHECK_MAIN("schedule documents", cases)
