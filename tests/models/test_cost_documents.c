/* tests/models/test_cost_documents.c: laws of the time of attention over packed documents. */
#include "tests/models/cost_fixture.h"

#include "models/cost.h"

static const struct work whole = {.kind = WORK_ATTENTION,
                                  .in = DTYPE_BF16,
                                  .out = DTYPE_BF16,
                                  .attention = {65536, 65536, 32, 8, 128, MASK_CAUSAL}};

/* Returns one document as a piece of a kernel for packed documents. */
static struct attention_piece document(int64_t begin, int64_t length)
{
    return (struct attention_piece){begin, begin, length, length, 0, 0};
}

static double attention_of_pieces_s(const struct device_cost *cost, enum work_kind kind,
                                    const struct attention_piece *piece, size_t count)
{
    struct work work = whole;
    work.kind = (uint8_t)kind;
    work.attention.mask = MASK_DOCUMENTS;
    return cost_document_attention_s(cost, ATTENTION_FA2, &work, piece, count);
}

static void costs_of_document_masks_obey_laws(void)
{
    static const enum work_kind kinds[] = {WORK_ATTENTION, WORK_ATTENTION_BACKWARD};
    struct arena arena = {0};
    struct device_cost cost;
    struct diag diag = {0};
    CHECK_INT("a100", cost_load(&cost, &arena, "a100-80g", &diag), STATUS_OK);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct work dense = whole;
        dense.kind = (uint8_t)kinds[k];
        struct attention_piece one = document(0, 65536);
        double causal = cost_work_s(&cost, ATTENTION_FA2, &dense);
        CHECK_CLOSE("one document is causal", attention_of_pieces_s(&cost, kinds[k], &one, 1),
                    causal, 1e-12);
        struct attention_piece piece[8], turned[8];
        static const int64_t length[8] = {20000, 3000, 17, 12345, 1, 30000, 100, 73};
        int64_t begin = 0, end = 65536;
        for (int i = 0; i < 8; i++) {
            piece[i] = document(begin, length[i]);
            begin += length[i];
            turned[7 - i] = document(end -= length[i], length[i]);
        }
        double seconds = attention_of_pieces_s(&cost, kinds[k], piece, 8);
        CHECK("documents cost less than one", seconds < causal);
        /* only the order of the sum differs */
        CHECK_CLOSE("order is nothing", attention_of_pieces_s(&cost, kinds[k], turned, 8), seconds,
                    1e-12);
        struct attention_piece halves[2] = {document(0, 32768), document(32768, 32768)};
        double share = attention_of_pieces_s(&cost, kinds[k], halves, 2) / causal;
        CHECK("two halves take half the time", share > 0.49 && share < 0.55);
    }
    diag_release(&diag);
    arena_release(&arena);
}

static const struct check_case cases[] = {
    {"documents obey laws", costs_of_document_masks_obey_laws},
};
CHECK_MAIN("cost of documents", cases)
