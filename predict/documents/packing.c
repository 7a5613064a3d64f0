#include "predict/documents/packing.h"

#include "base/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const packing_names[PACKING_COUNT] = {"first-fit", "best-fit", "buckets", "truncate"};

void packed_batch_release(struct packed_batch *batch)
{
    for (uint32_t s = 0; s < batch->sequence_count; s++)
        free(batch->sequence[s].tokens_of_each_document);
    free(batch->sequence);
    *batch = (struct packed_batch){0};
}

static double causal_pairs_of_length(int64_t length)
{
    return (double)length * ((double)length + 1) / 2;
}

static int64_t round_up(int64_t length, int64_t multiple)
{
    return (length + multiple - 1) / multiple * multiple;
}

/* Returns the class of a length, floor(log2(length)). */
static int64_t length_class_of(int64_t length)
{
    int64_t bucket = 0;
    while (length >>= 1)
        bucket++;
    return bucket;
}

static void add_document(struct packed_batch *batch, struct packed_sequence *sequence,
                         int64_t tokens, int64_t padded)
{
    if (sequence->document_count == sequence->capacity) {
        sequence->capacity = sequence->capacity > 0 ? 2 * sequence->capacity : 8;
        sequence->tokens_of_each_document =
            heap_realloc(sequence->tokens_of_each_document, sequence->capacity,
                         sizeof *sequence->tokens_of_each_document);
    }
    sequence->tokens_of_each_document[sequence->document_count++] = padded;
    sequence->used_tokens += padded;
    batch->document_count++;
    batch->document_tokens += tokens;
}

/* Returns the sequence in which the whole document is placed; NULL: no sequence has room for it. padded: the document's
 * length, rounded up; bucket: its class of lengths, which only PACKING_BUCKETS looks at. */
static struct packed_sequence *find_sequence_with_room(struct packed_batch *batch,
                                                       const struct packing_options *o,
                                                       int64_t padded, int64_t bucket)
{
    struct packed_sequence *best = NULL;
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        bool fits = o->sequence_tokens - sequence->used_tokens >= padded;
        if (o->policy == PACKING_BUCKETS && sequence->length_class >= 0 &&
            sequence->length_class != bucket)
            fits = false;
        if (!fits || (best != NULL && sequence->used_tokens <= best->used_tokens))
            continue;
        best = sequence;
        if (o->policy != PACKING_BEST_FIT)
            break;
    }
    return best;
}

/* Places a whole document in one sequence. If the document is longer than a sequence, only its first sequence_tokens
 * tokens are placed, and the others are dropped. If no sequence has room for it, puts it back for the next step and
 * returns false. */
static bool place_as_whole(struct packed_batch *batch, const struct packing_options *o,
                           struct lengths *lengths, int64_t length)
{
    int64_t tokens = length < o->sequence_tokens ? length : o->sequence_tokens;
    int64_t padded = round_up(tokens, o->round_documents_to), bucket = length_class_of(tokens);
    struct packed_sequence *place = find_sequence_with_room(batch, o, padded, bucket);
    if (place == NULL) {
        lengths_put_back(lengths, length);
        return false;
    }
    add_document(batch, place, tokens, padded);
    place->length_class = bucket;
    batch->truncated_or_cut_documents += tokens < length;
    batch->dropped_tokens += length - tokens;
    return true;
}

/* Places a document in the free room of the sequences, and cuts it where a sequence ends. If the step is full before
 * the end of the document, puts the rest back for the next step and returns false. */
static bool place_in_pieces(struct packed_batch *batch, const struct packing_options *o,
                            struct lengths *lengths, int64_t length)
{
    for (uint32_t s = 0; s < batch->sequence_count && length > 0; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        int64_t room = o->sequence_tokens - sequence->used_tokens,
                tokens = length < room ? length : room;
        if (tokens == 0)
            continue;
        add_document(batch, sequence, tokens, round_up(tokens, o->round_documents_to));
        batch->truncated_or_cut_documents += tokens < length;
        length -= tokens;
    }
    if (length > 0)
        lengths_put_back(lengths, length);
    return length == 0;
}

static void set_visible_pairs(struct packed_batch *batch, const struct packing_options *o)
{
    double squares = 0;
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        for (uint32_t i = 0; i < sequence->document_count; i++) {
            sequence->visible_pairs += causal_pairs_of_length(sequence->tokens_of_each_document[i]);
            squares += (double)sequence->tokens_of_each_document[i] *
                       (double)sequence->tokens_of_each_document[i];
        }
        sequence->visible_pairs +=
            causal_pairs_of_length(o->sequence_tokens - sequence->used_tokens);
        batch->visible_pairs += sequence->visible_pairs;
    }
    batch->causal_pairs = batch->sequence_count * causal_pairs_of_length(o->sequence_tokens);
    batch->document_to_sequence_square_ratio =
        squares /
        ((double)batch->sequence_count * (double)o->sequence_tokens * (double)o->sequence_tokens);
    batch->padding_tokens = batch->sequence_count * o->sequence_tokens - batch->document_tokens;
}

enum status packing_pack_next_step(struct packed_batch *batch, struct lengths *lengths,
                                   const struct packing_options *o, struct diag *diag)
{
    const struct loc at = {.name = "--documents"};
    int64_t length = 0;
    assert(o->sequence_tokens % o->round_documents_to == 0 &&
           o->sequence_count % (o->data_parallel_ranks * o->micro_batch_sequences) == 0);
    if (lengths_are_used_up(lengths))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "%s has fewer batches than --batches asks for", lengths->source_text);
    *batch = (struct packed_batch){.sequence_count = o->sequence_count};
    batch->sequence = heap_zalloc(o->sequence_count, sizeof *batch->sequence);
    for (uint32_t s = 0; s < o->sequence_count; s++)
        batch->sequence[s].length_class = -1;
    bool placed = true;
    while (placed && (length = lengths_take_next(lengths)) > 0)
        placed = o->policy == PACKING_TRUNCATE ? place_in_pieces(batch, o, lengths, length)
                                               : place_as_whole(batch, o, lengths, length);
    if (!placed && lengths->kind == LENGTHS_BY_BATCH_IN_FILE)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "batch %lld of %s does not fit into %u sequences of %lld tokens with "
                          "--packing %s: document %llu, of %lld tokens, finds no place",
                          (long long)lengths->batch_or_from[lengths->next - 1],
                          lengths->source_text, o->sequence_count, (long long)o->sequence_tokens,
                          packing_names[o->policy], (unsigned long long)batch->document_count + 1,
                          (long long)length);
    set_visible_pairs(batch, o);
    packing_apply_balance(batch, o);
    return STATUS_OK;
}

void packing_put_dropped_tokens(struct text *out, const struct packed_batch *batch, size_t count,
                                int64_t seq)
{
    int64_t dropped = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        dropped += batch[i].dropped_tokens;
        kept += batch[i].document_tokens;
    }
    if (dropped == 0)
        return;
    text_printf(out,
                "packing drops %lld tokens, %.1f %% of those of the documents: the ends of "
                "documents longer than "
                "a sequence of ",
                (long long)dropped, 100 * (double)dropped / (double)(dropped + kept));
    units_put_tokens(out, seq);
    text_puts(out, " tokens; --packing truncate cuts them and drops none");
}

void packed_batch_fill_documents(const struct packed_batch *batch, int64_t seq,
                                 struct documents *documents, struct arena *arena)
{
    documents_init(documents, arena, batch->sequence_count);
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        const struct packed_sequence *sequence = &batch->sequence[s];
        int64_t *length = heap_alloc(sequence->document_count + 1, sizeof *length);
        uint32_t count = sequence->document_count;
        if (count > 0)
            memcpy(length, sequence->tokens_of_each_document, count * sizeof *length);
        if (sequence->used_tokens < seq)
            length[count++] = seq - sequence->used_tokens;
        documents_set_lengths(documents, arena, s, length, count);
        free(length);
    }
}
