/* tests/schedule/test_visible.c: the pieces that ranks compute of packed documents hold each visible pair of a query
 * and a key once. */
#include "schedule/ir/visible.h"

#include "schedule/ir/ir_text.h"
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parsed(struct ir *ir, const char *text)
{
    struct diag diag = {0};
    bool ok = ir_parse(ir, "t", text, strlen(text), &diag) == STATUS_OK;
    CHECK(diag.text != NULL ? diag.text : text, ok);
    diag_release(&diag);
    return ok;
}

/* ---- hand-worked ---- */

/* Visible pairs of three documents of 3, 4 and 1 tokens on two context ranks: queries of a rank with its own
 * keys, or with those of the other rank. */
static void three_documents_on_two_ranks(void)
{
    static const struct {
        const char *label, *layout;
        uint32_t rank;
        int64_t away;
        double pairs;
    } rows[] = {
        /* rank 0 has tokens 0 to 3: 1 + 2 + 3 pairs of the first document, 1 of the second */
        {"contiguous, first rank's own", "contiguous", 0, 0, 7},
        /* rank 1 has 4 to 7: 1 + 2 + 3 of the second, 1 of the third */
        {"contiguous, second rank's own", "contiguous", 1, 0, 7},
        {"contiguous, second by the first's keys", "contiguous", 1, 1,
         3}, /* 3 queries see token 3 */
        {"contiguous, first by the second's keys", "contiguous", 0, 1, 0},
        /* rank 0 has 0 1 6 7, rank 1 has 2 3 4 5 */
        {"zigzag, first rank's own", "zigzag", 0, 0, 5},           /* 1 + 2, 1, 1 */
        {"zigzag, second rank's own", "zigzag", 1, 0, 7},          /* 1, 1 + 2 + 3 */
        {"zigzag, second by the first's keys", "zigzag", 1, 1, 2}, /* 2 sees 0 1 */
        {"zigzag, first by the second's keys", "zigzag", 0, 1, 3}, /* 6 sees 3 4 5 */
        /* rank 0 has 0 2 4 6, rank 1 has 1 3 5 7 */
        {"striped, first rank's own", "striped", 0, 0, 6},           /* 1 + 2, 1 + 2 */
        {"striped, second rank's own", "striped", 1, 0, 5},          /* 1, 1 + 2, 1 */
        {"striped, second by the first's keys", "striped", 1, 1, 2}, /* 1 sees 0, 5 sees 4 */
        {"striped, first by the second's keys", "striped", 0, 1, 4}, /* 2 sees 1; 4: 3; 6: 3 5 */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[300];
        struct ir ir = {0};
        snprintf(text, sizeof text,
                 "longhaul schedule 1\nmesh cp=2\n"
                 "tokens layout=%s cp=2 hp=1 seq=8 batch=1 micro_batch=1 dtype=f32\n"
                 "documents lengths=3,4,1\ngroup cp axes=cp\n",
                 rows[i].layout);
        struct work work = {.kind = WORK_ATTENTION,
                            .attention = {4, 4, 1, 1, 1, MASK_DOCUMENTS, .away = rows[i].away}};
        if (parsed(&ir, text))
            CHECK_CLOSE(rows[i].label, ir_work_flops_on_rank(&ir, &work, rows[i].rank) / 4,
                        rows[i].pairs, 0);
        ir_release(&ir);
    }
}

/* ---- compared with pairs that are counted one by one ---- */

/* Appends a random division of a sequence into runs, with equally many tokens for each rank. */
static void put_random_deal(struct text *text, int64_t cp, int64_t seq, struct check_random *random)
{
    struct text owners = {0};
    int64_t left[24];
    for (int64_t c = 0; c < cp; c++)
        left[c] = seq / cp;
    for (int64_t rest = seq; rest > 0;) {
        int64_t owner = check_random_i64(random, 0, cp - 1);
        while (left[owner] == 0)
            owner = (owner + 1) % cp;
        int64_t rows = check_random_i64(random, 1, left[owner]);
        text_printf(text, "%s%d", rest == seq ? " rows=" : ",", (int)rows);
        text_printf(&owners, "%s%d", rest == seq ? " owners=" : ",", (int)owner);
        left[owner] -= rows;
        rest -= rows;
    }
    text_printf(text, "%s\n", owners.data);
    text_release(&owners);
}

static void write_random_layout_text(struct text *text, struct check_random *random)
{
    static const char *const layouts[] = {"contiguous",       "striped",      "zigzag",
                                          "zigzag_documents", "rank_ordinal", "dealt"};
    const char *layout = layouts[check_random_i64(random, 0, ARRAY_LEN(layouts) - 1)];
    bool two = check_random_i64(random, 0, 1);
    int64_t dp = check_random_i64(random, 1, 2), out = two ? check_random_i64(random, 1, 3) : 1;
    int64_t in = check_random_i64(random, 1, 4), cp = out * in, unit = 2 * cp;
    if (*layout == 'r') { /* rank_ordinal */
        in = out = cp = 1;
        unit = 2;
    }
    int64_t seq = unit * check_random_i64(random, 1, 12);
    text_printf(text, "longhaul schedule 1\nmesh dp=%d %s=%d %s=%d\n", (int)dp,
                two ? "cp_out" : "cp_a", (int)out, two ? "cp_in" : "cp", (int)in);
    text_printf(text, "tokens layout=%s cp=%d hp=1 seq=%d batch=%d micro_batch=1 dtype=f32\n",
                layout, (int)cp, (int)seq, (int)(2 * dp));
    for (int s = 0; s < 2 * dp; s++) {
        int64_t grain = strcmp(layout, "zigzag_documents") == 0 ? unit : 1;
        text_printf(text, "documents of=%d lengths=", s);
        for (int64_t left = seq / grain; left > 0;) {
            int64_t length = check_random_i64(random, 1, left);
            left -= length;
            text_printf(text, "%d%s", (int)(length * grain), left > 0 ? "," : "");
        }
        if (*layout == 'd')
            put_random_deal(text, cp, seq, random);
        else
            text_puts(text, "\n");
    }
    text_puts(text,
              two ? "group cp_out axes=cp_out\ngroup cp_in axes=cp_in\n" : "group cp axes=cp\n");
}

/* Returns the context rank whose keys a rank reads at an op, from the mesh and the op's distances in the outer
 * and inner ring. */
static uint32_t origin(const struct ir *ir, uint32_t rank, const struct work *work)
{
    uint32_t coordinate[MESH_AXES_MAX];
    mesh_coordinates(&ir->mesh, rank, coordinate);
    uint32_t out = ir->mesh.axis[1].size, in = ir->mesh.axis[2].size;
    uint32_t o = (coordinate[1] + out - (uint32_t)work->attention.away_out % out) % out;
    uint32_t i = (coordinate[2] + in - (uint32_t)work->attention.away % in) % in;
    return o * in + i;
}

static bool sees(const struct document_list *list, int64_t window, int64_t q, int64_t k)
{
    return k <= q && document_index_at_position(list, q) == document_index_at_position(list, k) &&
           (window == 0 || k > q - window);
}

/* True if exactly one piece has the pair of a query row and a key. A check fails if several pieces have it. */
static bool pair_is_covered(const struct visible_pieces *pieces, int64_t row, int64_t key)
{
    int times = 0;
    for (uint32_t i = 0; i < pieces->count; i++) {
        const struct attention_piece *p = &pieces->piece[i];
        int64_t r = row - p->first_query, k = key - p->first_key;
        if (r >= 0 && r < p->query_count && k >= 0 && k < p->key_count && k <= r + p->offset &&
            (p->window == 0 || k > r + p->offset - p->window))
            times++;
    }
    CHECK_INT("pieces do not overlap", times > 1, false);
    return times == 1;
}

static void compare(const struct ir *ir, uint32_t rank, const struct work *work, const char *text)
{
    struct visible_pieces pieces = {0};
    const struct token_layout *layout = &ir->layout;
    const struct document_list *list = documents_of_sequence(
        &ir->documents, ir_batch_sequence_of_rank(ir, rank, work->attention.sequence));
    uint32_t c = ir_context_index(ir, rank), from = origin(ir, rank, work);
    double pairs = 0, sum = 0;
    bool same = true;
    visible_find_pieces(ir, work, rank, &pieces);
    for (uint32_t i = 0; i < pieces.count; i++)
        sum += attention_piece_pairs(&pieces.piece[i]);
    for (int64_t q = 0; q < work->attention.q; q++)
        for (int64_t k = 0; k < work->attention.kv; k++) {
            int64_t at =
                layout_position_of_gathered_row(layout, list, c, work->attention.q_first + q);
            int64_t key =
                layout_position_of_gathered_row(layout, list, from, work->attention.kv_first + k);
            bool want = sees(list, work->attention.window, at, key);
            pairs += want;
            same = same && pair_is_covered(&pieces, q, k) == want;
        }
    CHECK(text, same);
    CHECK_CLOSE(text, sum, pairs, 0);
    visible_release(&pieces);
}

/* Checks the result of visible_find_fullest_place(), for an op of own keys: over all steps of the ring
 * together, the most pairs that a rank computes, over the mean. */
static void check_fullest_rank_load(struct ir *ir, int64_t window, const char *text)
{
    const struct mesh *mesh = &ir->mesh;
    int64_t own = ir->layout.sequence_tokens / ir->layout.cp;
    struct work work = {.kind = WORK_ATTENTION,
                        .attention = {own, own, 1, 1, 1, MASK_DOCUMENTS, .window = window}};
    double most = 0, sum = 0;
    for (uint32_t rank = 0; rank < mesh_rank_count(mesh); rank++) {
        double pairs = 0;
        for (uint32_t out = 0; out < mesh->axis[1].size; out++)
            for (uint32_t in = 0; in < mesh->axis[2].size; in++) {
                work.attention.away = in;
                work.attention.away_out = out;
                pairs += ir_work_flops_on_rank(ir, &work, rank) / 4;
            }
        sum += pairs;
        most = pairs > most ? pairs : most;
    }
    work.attention.away = work.attention.away_out = 0;
    ir_add_stream(ir, "compute", STREAM_COMPUTE);
    struct view view = {ir_add_buffer(ir, &(struct buffer_desc){.stem = "x",
                                                                .number = IR_NONE,
                                                                .role = IR_NONE16,
                                                                .layer = IR_NONE16,
                                                                .binding = IR_NONE16,
                                                                .dims = {1, {1}}}),
                        0, 1};
    struct view views[3] = {view, view, view};
    ir_add_op(ir, &(struct op_desc){.work = work,
                                    .read_count = 3,
                                    .write_count = 2,
                                    .guard = IR_NONE16,
                                    .read = views,
                                    .write = views});
    struct visible_fullest_place fullest = visible_find_fullest_place(ir);
    CHECK_CLOSE(text, fullest.pairs_over_mean, most * mesh_rank_count(mesh) / sum, 1e-12);
}

static void pieces_hold_each_visible_pair_once(void)
{
    struct check_random random = check_random_make();
    for (int trial = 0; trial < 400; trial++) {
        struct text text = {0};
        struct ir ir = {0};
        write_random_layout_text(&text, &random);
        if (parsed(&ir, text.data) && CHECK(text.data, visible_why_schedule_unfit(&ir) == NULL)) {
            int64_t own = ir.layout.sequence_tokens / ir.layout.cp,
                    q = check_random_i64(&random, 1, own), kv = check_random_i64(&random, 1, own);
            struct work work = {
                .kind = WORK_ATTENTION,
                .attention = {q, kv, 1, 1, 1, MASK_DOCUMENTS,
                              .window = check_random_i64(&random, 0, 1) *
                                        check_random_i64(&random, 1, ir.layout.sequence_tokens),
                              .sequence = check_random_i64(&random, 0, 1),
                              .q_first = check_random_i64(&random, 0, own - q),
                              .kv_first = check_random_i64(&random, 0, own - kv),
                              .away = check_random_i64(&random, 0, ir.mesh.axis[2].size - 1),
                              .away_out = check_random_i64(&random, 0, ir.mesh.axis[1].size - 1)}};
            CHECK(text.data, visible_why_work_unfit(&ir, &work) == NULL);
            check_fullest_rank_load(&ir, work.attention.window, text.data);
            for (uint32_t rank = 0; rank < mesh_rank_count(&ir.mesh); rank++)
                compare(&ir, rank, &work, text.data);
        }
        ir_release(&ir);
        text_release(&text);
    }
}

/* ---- laws ---- */

static double count_visible_pairs_of_lengths(const int64_t *length, uint32_t count, int64_t seq,
                                             int64_t window)
{
    struct ir ir = {.layout = {LAYOUT_CONTIGUOUS, 1, 1, 1, seq, 0, NULL}, .global_batch = 1};
    struct work work = {.kind = WORK_ATTENTION,
                        .attention = {seq, seq, 1, 1, 1, MASK_DOCUMENTS, .window = window}};
    documents_init(&ir.documents, &ir.arena, 1);
    documents_set_lengths(&ir.documents, &ir.arena, 0, length, count);
    double pairs = ir_work_flops_on_rank(&ir, &work, 0) / 4;
    ir_release(&ir);
    return pairs;
}

static void splitting_documents_adds_no_pairs(void)
{
    struct check_random random = check_random_make();
    enum { SEQ = 1000 };
    CHECK_CLOSE("one document is causal",
                count_visible_pairs_of_lengths((int64_t[]){SEQ}, 1, SEQ, 0), 500500, 0);
    CHECK_CLOSE("a window of all", count_visible_pairs_of_lengths((int64_t[]){SEQ}, 1, SEQ, SEQ),
                500500, 0);
    for (int trial = 0; trial < 50; trial++) {
        int64_t length[SEQ], split[SEQ], left = SEQ, window = check_random_i64(&random, 0, 300);
        uint32_t count = 0, splits = 0;
        for (; left > 0; left -= length[count++])
            length[count] = check_random_i64(&random, 1, left < 200 ? left : 200);
        for (uint32_t i = 0; i < count; i++) {
            int64_t part = check_random_i64(&random, 0, length[i] - 1);
            if (part > 0)
                split[splits++] = part;
            split[splits++] = length[i] - part;
        }
        double pairs = count_visible_pairs_of_lengths(length, count, SEQ, window);
        CHECK("splitting never adds pairs",
              count_visible_pairs_of_lengths(split, splits, SEQ, window) <= pairs);
        for (uint32_t i = 0; i < count / 2; i++) {
            int64_t swapped = length[i];
            length[i] = length[count - 1 - i];
            length[count - 1 - i] = swapped;
        }
        CHECK_CLOSE("order is nothing", count_visible_pairs_of_lengths(length, count, SEQ, window),
                    pairs, 0);
    }
}

static const struct check_case cases[] = {
    {"three documents on two ranks", three_documents_on_two_ranks},
    {"pieces hold each visible pair once", pieces_hold_each_visible_pair_once},
    {"splits and orders of documents", splitting_documents_adds_no_pairs},
};
CHECK_MAIN("visible", cases)
