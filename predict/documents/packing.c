#include "predict/documents/packing.h"

#include "base/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const packing_names[PACKING_COUNT] = {"first-fit", "best-fit", "buckets", "truncate"};

void packed_batch_release(struct packed_batch *batch)
{
    for (uint32_t s = 0; s < batch->sequences; s++)
        free(batch->sequence[s].length);
    free(batch->sequence);
    *batch = (struct packed_batch){0};
}

static double pairs_of(int64_t length)
{
    return (double)length * ((double)length + 1) / 2;
}

static int64_t round_up(int64_t length, int64_t multiple)
{
    return (length + multiple - 1) / multiple * multiple;
}

/* Returns the class of a length, floor(log2(length)). */
static int64_t bucket_of(int64_t length)
{
    int64_t bucket = 0;
    while (length >>= 1)
        bucket++;
    return bucket;
}

static void put_document(struct packed_batch *batch, struct packed_sequence *sequence,
                         int64_t tokens, int64_t padded)
{
    if (sequence->count == sequence->capacity) {
        sequence->capacity = sequence->capacity > 0 ? 2 * sequence->capacity : 8;
        sequence->length =
            heap_realloc(sequence->length, sequence->capacity, sizeof *sequence->length);
    }
    sequence->length[sequence->count++] = padded;
    sequence->used_tokens += padded;
    batch->documents++;
    batch->tokens += tokens;
}

/* Returns the sequence in which the whole document is placed; NULL: no sequence has room for it. */
static struct packed_sequence *find_place(struct packed_batch *batch,
                                          const struct packing_options *o, int64_t padded,
                                          int64_t bucket)
{
    struct packed_sequence *best = NULL;
    for (uint32_t s = 0; s < batch->sequences; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        bool fits = o->seq - sequence->used_tokens >= padded;
        if (o->policy == PACKING_BUCKETS && sequence->bucket >= 0 && sequence->bucket != bucket)
            fits = false;
        if (!fits || (best != NULL && sequence->used_tokens <= best->used_tokens))
            continue;
        best = sequence;
        if (o->policy != PACKING_BEST_FIT)
            break;
    }
    return best;
}

/* Places a document in one sequence without cutting it in two; of one that is longer than a sequence, only the first
 * `seq` tokens are placed. Returns false if no sequence has room for it; it then waits for the next step. */
static bool place_whole(struct packed_batch *batch, const struct packing_options *o,
                        struct lengths *lengths, int64_t length)
{
    int64_t tokens = length < o->seq ? length : o->seq;
    int64_t padded = round_up(tokens, o->multiple), bucket = bucket_of(tokens);
    struct packed_sequence *place = find_place(batch, o, padded, bucket);
    if (place == NULL) {
        lengths_put_back(lengths, length);
        return false;
    }
    put_document(batch, place, tokens, padded);
    place->bucket = bucket;
    batch->cut_documents += tokens < length;
    batch->dropped_tokens += length - tokens;
    return true;
}

/* Places a document, which is cut where sequences end. Returns false if the step is full; the rest of the document then
 * waits for the next step. */
static bool place_pieces(struct packed_batch *batch, const struct packing_options *o,
                         struct lengths *lengths, int64_t length)
{
    for (uint32_t s = 0; s < batch->sequences && length > 0; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        int64_t room = o->seq - sequence->used_tokens, tokens = length < room ? length : room;
        if (tokens == 0)
            continue;
        put_document(batch, sequence, tokens, round_up(tokens, o->multiple));
        batch->cut_documents += tokens < length;
        length -= tokens;
    }
    if (length > 0)
        lengths_put_back(lengths, length);
    return length == 0;
}

static void count_pairs(struct packed_batch *batch, const struct packing_options *o)
{
    double squares = 0;
    for (uint32_t s = 0; s < batch->sequences; s++) {
        struct packed_sequence *sequence = &batch->sequence[s];
        for (uint32_t i = 0; i < sequence->count; i++) {
            sequence->pairs += pairs_of(sequence->length[i]);
            squares += (double)sequence->length[i] * (double)sequence->length[i];
        }
        sequence->pairs += pairs_of(o->seq - sequence->used_tokens);
        batch->pairs += sequence->pairs;
    }
    batch->causal_pairs = batch->sequences * pairs_of(o->seq);
    batch->squares = squares / ((double)batch->sequences * (double)o->seq * (double)o->seq);
    batch->padding = batch->sequences * o->seq - batch->tokens;
}

enum status packing_next(struct packed_batch *batch, struct lengths *lengths,
                         const struct packing_options *o, struct diag *diag)
{
    const struct loc at = {.name = "--documents"};
    int64_t length = 0;
    assert(o->seq % o->multiple == 0 && o->sequences % (o->ranks * o->micro_batch) == 0);
    if (lengths_are_used_up(lengths))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "%s has fewer batches than --batches asks for", lengths->name);
    *batch = (struct packed_batch){.sequences = o->sequences};
    batch->sequence = heap_zalloc(o->sequences, sizeof *batch->sequence);
    for (uint32_t s = 0; s < o->sequences; s++)
        batch->sequence[s].bucket = -1;
    bool placed = true;
    while (placed && (length = lengths_next(lengths)) > 0)
        placed = o->policy == PACKING_TRUNCATE ? place_pieces(batch, o, lengths, length)
                                               : place_whole(batch, o, lengths, length);
    if (!placed && lengths->kind == LENGTHS_BATCHES)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "batch %lld of %s does not fit into %u sequences of %lld tokens with "
                          "--packing %s: document %llu, of %lld tokens, finds no place",
                          (long long)lengths->batch_of[lengths->next - 1], lengths->name,
                          o->sequences, (long long)o->seq, packing_names[o->policy],
                          (unsigned long long)batch->documents + 1, (long long)length);
    count_pairs(batch, o);
    packing_balance(batch, o);
    return STATUS_OK;
}

void packing_put_dropped(struct text *out, const struct packed_batch *batch, size_t count,
                         int64_t seq)
{
    int64_t dropped = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        dropped += batch[i].dropped_tokens;
        kept += batch[i].tokens;
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

void packed_batch_documents(const struct packed_batch *batch, int64_t seq,
                            struct documents *documents, struct arena *arena)
{
    documents_init(documents, arena, batch->sequences);
    for (uint32_t s = 0; s < batch->sequences; s++) {
        const struct packed_sequence *sequence = &batch->sequence[s];
        int64_t *length = heap_alloc(sequence->count + 1, sizeof *length);
        uint32_t count = sequence->count;
        if (count > 0)
            memcpy(length, sequence->length, count * sizeof *length);
        if (sequence->used_tokens < seq)
            length[count++] = seq - sequence->used_tokens;
        documents_set_lengths(documents, arena, s, length, count);
        free(length);
    }
}
