/* predict/documents/packing.h: packs documents into the sequences of a step, and counts padding, cuts and visible
 * pairs.
 *
 * Policies:
 *   first-fit  a document goes into the first sequence with room for it; one longer than a sequence loses its end
 *   best-fit   the same, into the sequence with the least room that suffices
 *   buckets    the same as first-fit, but a sequence takes only documents of one class of lengths (2^k to 2^(k+1) - 1)
 *   truncate   documents follow each other, and each is cut where a sequence ends; the rest begins the next sequence
 * A step is full at the first document that finds no place; that document, or what is left of it, begins the next step.
 * A sampled batch of a file is one step: it fails if it does not fit. What stays free at the end of a sequence is
 * padding, which attention treats as one more document. Tokens that round a document up to a multiple are padding, too,
 * and belong to that document.
 *
 * Pairs are those of causal attention in each document (length (length + 1) / 2), padding included: what a rank
 * computes. Windows of the model are not counted. */
#ifndef PREDICT_DOCUMENTS_PACKING_H
#define PREDICT_DOCUMENTS_PACKING_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "predict/documents/lengths.h"
#include "schedule/ir/documents.h"

#include <stdint.h>

/* The policies that the opening comment describes, in its order. */
enum packing_policy {
    PACKING_FIRST_FIT,
    PACKING_BEST_FIT,
    PACKING_BUCKETS,
    PACKING_TRUNCATE,
    PACKING_COUNT
};
extern const char *const packing_names[PACKING_COUNT];

/* How the sequences of a step are distributed over data-parallel ranks and their micro-batches. To distribute sequences
 * over parts means: all parts get equally many; the sequence with the most pairs goes first, and each goes to the part
 * with room that has the fewest pairs so far. If the largest part would not become smaller, each part keeps its
 * sequences. */
enum packing_balance_policy {
    BALANCE_NONE, /* as they were packed */
    /* each data-parallel rank distributes its sequences over its micro-batches, then orders these by their pairs, the
     * most first */
    BALANCE_MICRO_BATCHES_OF_RANK,
    /* sequences are distributed over data-parallel ranks, and then as with BALANCE_MICRO_BATCHES_OF_RANK */
    BALANCE_RANKS_AND_MICRO_BATCHES,
    BALANCE_DYNAMIC_CP, /* more context ranks for long documents: only the name is known, it is not modelled */
    BALANCE_COUNT
};
extern const char *const balance_names[BALANCE_COUNT];

struct packing_options {
    enum packing_policy policy;
    enum packing_balance_policy balance;
    int64_t sequence_tokens; /* tokens of a sequence; round_documents_to divides them */
    /* document lengths are rounded up to a multiple of this number of tokens; 1: they are not rounded */
    int64_t round_documents_to;
    /* number of sequences of a step, a multiple of data_parallel_ranks x micro_batch_sequences */
    uint32_t sequence_count;
    uint32_t data_parallel_ranks;   /* number of data-parallel ranks */
    uint32_t micro_batch_sequences; /* sequences of a micro-batch */
};

struct packed_sequence {
    /* [document_count] the length of each document, rounded up to the multiple that is asked for; on the heap */
    int64_t *tokens_of_each_document;
    uint32_t document_count, capacity;
    int64_t used_tokens;  /* the sum of the lengths */
    int64_t length_class; /* the class of lengths that the sequence takes; -1: not decided yet */
    double visible_pairs;
};

/* The packed sequences of one step. All-zero is empty. */
struct packed_batch {
    struct packed_sequence *sequence; /* [sequence_count], heap */
    uint32_t sequence_count;
    uint64_t document_count;             /* each piece of a cut document counts as one */
    uint64_t truncated_or_cut_documents; /* how often a document lost its end or was cut in two */
    int64_t document_tokens;             /* tokens of documents, without padding */
    int64_t padding_tokens;              /* tokens and padding together fill the step */
    int64_t dropped_tokens;              /* tokens of the ends that documents lost */
    /* visible_pairs: those of all documents. causal_pairs: those that would be visible if each sequence were one
     * document */
    double visible_pairs, causal_pairs;
    /* the sum of the squares of documents' lengths, divided by the sum of the squares of sequences' lengths */
    double document_to_sequence_square_ratio;
    /* the data-parallel rank with the most visible pairs; of several, the first */
    uint32_t fullest_rank;
    double fullest_over_mean; /* its visible pairs, divided by the mean over ranks */
};

/* Packs the next step, and orders its sequences. It fails if a sampled batch of a file does not fit, or if there is no
 * further batch. */
enum status packing_pack_next_step(struct packed_batch *batch, struct lengths *lengths,
                                   const struct packing_options *options, struct diag *diag);
void packed_batch_release(struct packed_batch *batch);

/* Appends how many tokens packing dropped in `count` batches, and their share of the documents' tokens; nothing if it
 * dropped none. seq: the tokens of a sequence. */
void packing_put_dropped_tokens(struct text *out, const struct packed_batch *batch, size_t count,
                                int64_t seq);

/* Fills *documents for struct request from a packed batch; the padding of a sequence that is not full is one more
 * document. */
void packed_batch_fill_documents(const struct packed_batch *batch, int64_t seq,
                                 struct documents *documents, struct arena *arena);

/* Orders the sequences of a step by options->balance, as packing_pack_next_step() does, and finds the rank with the
 * most pairs. */
void packing_apply_balance(struct packed_batch *batch, const struct packing_options *options);

#endif
