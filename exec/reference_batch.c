/* The loss and the gradients of a batch (exec/reference.h): checks the batch, finds the experts of its tokens, and runs
 * its sequences one after the other. */
#include "base/arena.h"
#include "exec/reference_pass.h"
#include "models/work.h"
#include "schedule/choices/pieces.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct loc reference_location(void)
{
    return (struct loc){"reference", 0, 0};
}

static enum status check_ids(const int32_t *ids, const char *what, int64_t low, int64_t vocab,
                             const struct reference_batch *batch, struct diag *diag)
{
    for (int64_t i = 0; i < batch->sequences * batch->seq_len; i++)
        if (ids[i] < low || ids[i] >= vocab)
            return diag_error(diag, reference_location(), STATUS_BAD_INPUT,
                              "%s %" PRId64 " of sequence %" PRId64 " is %" PRId32
                              ": it must be from %" PRId64 " to %" PRId64,
                              what, i % batch->seq_len, i / batch->seq_len, ids[i], low, vocab - 1);
    return STATUS_OK;
}

static enum status check_batch(const struct transformer *t, const struct reference_batch *batch,
                               struct diag *diag)
{
    assert(batch->sequences > 0 && batch->seq_len > 0);
    if (t->positions == POSITIONS_LEARNED && batch->seq_len > t->max_positions)
        return diag_error(diag, reference_location(), STATUS_BAD_INPUT,
                          "a sequence of %" PRId64 " tokens has more than the model's %" PRId64
                          " learned positions",
                          batch->seq_len, t->max_positions);
    if (check_ids(batch->tokens, "token", 0, t->vocab, batch, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (batch->labels != NULL)
        return check_ids(batch->labels, "label", -1, t->vocab, batch, diag);
    return STATUS_OK;
}

/* Returns the batch's labels or, if it has none, its tokens shifted by one. The caller frees the array. */
static int32_t *labels_or_shifted_tokens(const struct reference_batch *batch)
{
    const size_t s = (size_t)batch->seq_len, count = (size_t)batch->sequences * s;
    int32_t *labels = heap_alloc(count, sizeof *labels);
    for (size_t i = 0; i < count; i++)
        labels[i] = batch->labels != NULL ? batch->labels[i]
                    : i % s + 1 < s       ? batch->tokens[i + 1]
                                          : -1;
    return labels;
}

/* Returns the subsequence to which a rank's token number `place` belongs, as a range of the rank's tokens. */
static struct piece subsequence_of_token(const struct token_layout *layout, int64_t place)
{
    const int64_t ranks = (int64_t)layout->cp * layout->hp,
                  equal = layout->sequence_tokens / layout->chunk_count;
    struct piece unit = {0, 0};
    for (uint32_t u = 0; unit.begin + unit.rows <= place; u++) {
        unit.begin += unit.rows;
        unit.rows = (layout->tokens_by_chunk != NULL ? layout->tokens_by_chunk[u] : equal) / ranks;
    }
    return unit;
}

/* Returns the expert of a slot, where slot j * rows + i is copy j of token i of `rows` tokens that are routed together.
 * If the expert drops the copy, returns -1 - expert. routed NULL: routing is even. */
static int32_t expert_of_slot(const struct transformer *t, const struct routing *routed,
                              uint32_t layer, int64_t rows, int64_t slot)
{
    if (routed == NULL)
        return (int32_t)work_row_group_of_row(rows * t->experts_per_token, t->experts, slot);
    int64_t *count = heap_alloc(2 * (size_t)routed->expert_count, sizeof *count);
    int64_t *first = count + routed->expert_count;
    uint32_t expert = 0;
    routing_deal_copies(routed, routed->share_list_by_layer[layer], rows, count, first);
    while (slot < first[expert] || slot - first[expert] >= count[expert])
        expert++;
    const bool kept =
        routing_keeps_copy(routed, rows, count[expert], first[expert], slot - first[expert]);
    free(count);
    return kept ? (int32_t)expert : -1 - (int32_t)expert;
}

/* Returns an array from malloc(), (s, copies): the expert of each copy of a sequence's tokens in a layer, as
 * expert_of_slot() returns it. */
static int32_t *experts_of_copies(const struct transformer *t, const struct reference_batch *batch,
                                  int64_t sequence, uint32_t layer)
{
    const int64_t s = batch->seq_len, copies = t->experts_per_token;
    const struct reference_routing *routing = batch->routing;
    const struct token_layout whole = {.cp = 1, .hp = 1, .chunk_count = 1, .sequence_tokens = s};
    const struct token_layout *layout = routing != NULL ? routing->layout : &whole;
    const struct document_list *documents =
        batch->documents != NULL ? documents_of_sequence(batch->documents, (uint32_t)sequence)
                                 : NULL;
    const int64_t ranks = (int64_t)layout->cp * layout->hp, own = s / ranks;
    const int64_t together = routing != NULL ? routing->micro_batch : 1;
    const int64_t pieces = routing != NULL ? routing->routed_piece_count : 1;
    const bool units = routing != NULL && routing->routes_by_subsequence;
    int32_t *expert = heap_alloc((size_t)(s * copies), sizeof *expert);
    for (int64_t place = 0; place < s; place++) {
        const int64_t rank = place / own;
        const struct piece unit =
            units ? subsequence_of_token(layout, place % own) : (struct piece){0, own};
        const int64_t row = sequence % together * unit.rows + place % own - unit.begin;
        const int64_t rows = unit.rows * together;
        const int64_t token =
            layout_position_of_own_row(layout, documents, (uint32_t)(rank / layout->hp),
                                       (uint32_t)(rank % layout->hp), place % own);
        const struct piece piece =
            piece_of_rows(rows, pieces, row / piece_of_rows(rows, pieces, 0).rows);
        for (int64_t j = 0; j < copies; j++)
            expert[token * copies + j] =
                expert_of_slot(t, routing != NULL ? routing->uneven_expert_routing : NULL, layer,
                               piece.rows, j * piece.rows + row - piece.begin);
    }
    return expert;
}

static enum status run_sequences_of_batch(struct reference *r, const struct reference_batch *batch,
                                          bool gradients, double *loss, struct diag *diag)
{
    if (check_batch(&r->transformer, batch, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    const size_t s = (size_t)batch->seq_len, sequences = (size_t)batch->sequences;
    int32_t *labels = labels_or_shifted_tokens(batch);
    enum status status = STATUS_OK;
    size_t counted = 0;
    for (size_t i = 0; i < sequences * s; i++)
        counted += labels[i] >= 0;
    if (counted == 0) {
        status = diag_error(diag, reference_location(), STATUS_BAD_INPUT,
                            "no token of the batch is counted, so there is no loss: at least one "
                            "label must not be -1");
        goto out;
    }
    for (size_t n = 0; n < r->tensor_count && gradients; n++)
        memset(r->tensors[n].grad, 0, r->tensors[n].count * sizeof(double));
    double sum = 0;
    for (size_t i = 0; i < sequences; i++) {
        int32_t **expert = heap_zalloc(r->transformer.layers + 1u, sizeof *expert);
        for (uint32_t l = 0; l < r->transformer.layers && r->transformer.experts > 0; l++)
            expert[l] = experts_of_copies(&r->transformer, batch, (int64_t)i, l);
        sum += reference_run_sequence(
            r, &batch->tokens[i * s], &labels[i * s], s, (const int32_t *const *)expert,
            batch->documents != NULL ? documents_of_sequence(batch->documents, (uint32_t)i) : NULL,
            i, 1 / (double)counted, gradients);
        for (uint32_t l = 0; l < r->transformer.layers; l++)
            free(expert[l]);
        free((void *)expert);
    }
    for (size_t n = 0; n < r->tensor_count && gradients; n++)
        if (!transformer_is_tensor_trained(&r->transformer, r->tensors[n].name))
            memset(r->tensors[n].grad, 0, r->tensors[n].count * sizeof(double));
    *loss = sum / (double)counted;
out:
    free(labels);
    return status;
}

enum status reference_loss(struct reference *r, const struct reference_batch *batch, double *loss,
                           struct diag *diag)
{
    return run_sequences_of_batch(r, batch, false, loss, diag);
}

enum status reference_gradients(struct reference *r, const struct reference_batch *batch,
                                double *loss, struct diag *diag)
{
    return run_sequences_of_batch(r, batch, true, loss, diag);
}
