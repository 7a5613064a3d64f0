/* The rule `documents`: the documents of packed sequences, and the parameters with which ops refer to documents, chunks
 * or a plan of attention. */
#include "schedule/ir/visible.h"
#include "schedule/verify/rules.h"

#include <inttypes.h>

static void check_document_list(struct verifier *v, const struct document_list *list)
{
    const struct token_layout *layout = &v->ir->layout;
    for (uint32_t i = 0; i < list->document_count; i++) {
        int64_t begin = document_begin(list, i), length = list->document_end[i] - begin;
        if (length < 1) {
            verify_fail(v,
                        "a document goes from token %" PRId64 " to %" PRId64
                        " of a sequence: it must end after it begins",
                        begin, list->document_end[i]);
            return;
        }
        if (layout->kind == LAYOUT_ZIGZAG_DOCUMENTS && length % (2 * (int64_t)layout->cp) != 0)
            verify_fail(v,
                        "a document of %" PRId64 " tokens does not cut into %" PRIu32
                        " slices, as layout zigzag_documents needs",
                        length, 2 * layout->cp);
    }
    if (list->document_end[list->document_count - 1] != layout->sequence_tokens)
        verify_fail(
            v, "the documents end at token %" PRId64 ", but the sequence has %" PRId64 " tokens",
            list->document_end[list->document_count - 1], layout->sequence_tokens);
}

static const char *attention_mask_text(const struct work *work)
{
    return work->attention.mask == MASK_PLAN     ? "plan"
           : work->attention.mask == MASK_CHUNKS ? "chunks"
                                                 : "documents";
}

/* For each shape, the reason why its parameters do not fit the schedule. The reasons are kept, because counting the
 * rows that ranks need of each other takes long. */
struct shape_faults {
    bool *is_known;      /* [shapes] */
    const char **reason; /* [shapes] NULL: the shape fits */
};

static const char *why_shape_does_not_fit(struct shape_faults *unfit, const struct ir *ir,
                                          uint32_t op)
{
    uint32_t shape = ir->op.shape[op];
    if (!unfit->is_known[shape])
        unfit->reason[shape] = visible_why_work_unfit(ir, &ir->shape[shape]);
    unfit->is_known[shape] = true;
    return unfit->reason[shape];
}

static void check_attention_op(struct verifier *v, struct shape_faults *unfit, uint32_t op,
                               const char *why)
{
    const struct ir *ir = v->ir;
    const struct work *work = ir_work(ir, op);
    if (!work_pairs_depend_on_rank(work)) {
        if (work->attention.sequence || work->attention.q_first || work->attention.kv_first ||
            work->attention.away || work->attention.away_out || work->attention.round ||
            work->attention.delta)
            verify_fail(v,
                        "%s gives the rows of a sequence (sequence, q_first or the like), which "
                        "are used only with mask=documents and mask=plan",
                        op_text(v, op));
        return;
    }
    if (why != NULL) {
        verify_fail(v, "%s has mask=%s, which %s", op_text(v, op), attention_mask_text(work), why);
        return;
    }
    why = why_shape_does_not_fit(unfit, ir, op);
    if (why != NULL)
        verify_fail(v, "%s has mask=%s, and %s", op_text(v, op), attention_mask_text(work), why);
}

/* Checks an op that moves rows which ranks need of each other. */
static void check_row_moving_op(struct verifier *v, struct shape_faults *unfit, uint32_t op,
                                const char *why)
{
    if (why != NULL) {
        verify_fail(v, "%s moves rows that ranks need, which %s", op_text(v, op), why);
        return;
    }
    why = why_shape_does_not_fit(unfit, v->ir, op);
    if (why != NULL)
        verify_fail(v, "%s moves rows that ranks need, and %s", op_text(v, op), why);
}

void check_documents(struct verifier *v)
{
    const struct ir *ir = v->ir;
    const struct documents *d = &ir->documents;
    const char *why = visible_why_schedule_unfit(ir);
    for (uint32_t i = 0; i < d->list_count; i++)
        check_document_list(v, &d->list[i]);
    for (uint32_t i = 0; i < d->sequence_count; i++)
        if (documents_of_sequence(d, i) == NULL)
            verify_fail(v, "sequence %" PRIu32 " of %" PRIu32 " has no documents", i,
                        d->sequence_count);
    for (uint32_t i = 0; ir->layout.kind == LAYOUT_DEALT && i < ir->global_batch; i++)
        if (!layout_deal_is_even(&ir->layout, documents_of_sequence(d, i)))
            verify_fail(v,
                        "sequence %" PRIu32 " does not give %" PRId64 " tokens to each of %" PRIu32
                        " context ranks, as layout dealt needs",
                        i, ir->layout.sequence_tokens / ir->layout.cp, ir->layout.cp);
    uint32_t ops = 0;
    struct shape_faults unfit = {arena_array(&v->arena, ir->shape_count, sizeof *unfit.is_known),
                                 arena_array(&v->arena, ir->shape_count, sizeof *unfit.reason)};
    for (uint32_t op = 0; op < ir->op.count; op++) {
        struct row_use use;
        if (row_use_if_work_moves_rows(ir_work(ir, op), &use))
            check_row_moving_op(v, &unfit, op, why);
        if (ir->op.kind[op] != WORK_ATTENTION && ir->op.kind[op] != WORK_ATTENTION_BACKWARD)
            continue;
        check_attention_op(v, &unfit, op, why);
        ops++;
    }
    verify_set_what_was_checked_text(v, "%" PRIu32 " lists of documents, %" PRIu32 " attention ops",
                                     d->list_count, ops);
}
