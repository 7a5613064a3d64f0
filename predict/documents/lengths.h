/* predict/documents/lengths.h: lengths of documents, one after the other: from a file, or drawn from a distribution.
 *
 * A file has a length in tokens on each line, under an optional heading `length`, or it is CSV with the columns
 * `batch,length`, in ascending order of batches ("sampled batches"). A list of lengths that has been used up begins
 * again; sampled batches do not. Distributions are lognormal:MEDIAN,SIGMA (the length's logarithm is normal),
 * zipf:S,MAX (1 to MAX tokens, the probability of a length is proportional to length^-S) and histogram:FILE. The
 * latter is CSV with the columns `from,upto,share`: a share of all documents, in any unit, has lengths from `from`
 * to `upto`, ends included; the logarithm of a length is uniform within a row. The same text and seed give the same
 * lengths. */
#ifndef PREDICT_DOCUMENTS_LENGTHS_H
#define PREDICT_DOCUMENTS_LENGTHS_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lengths_kind {
    LENGTHS_LIST_IN_FILE,     /* a file with a length on each line */
    LENGTHS_BY_BATCH_IN_FILE, /* a CSV file with the columns batch,length: sampled batches */
    LENGTHS_LOGNORMAL,        /* lognormal:MEDIAN,SIGMA */
    LENGTHS_ZIPF,             /* zipf:S,MAX */
    LENGTHS_HISTOGRAM         /* histogram:FILE */
};

/* the largest MAX of zipf:S,MAX, and the largest length of a document, in tokens */
enum { ZIPF_MAX = 1 << 22 };
#define LENGTH_TOKENS_MAX (INT64_C(1) << 40)

/* A source of lengths. All-zero is empty. */
struct lengths {
    enum lengths_kind kind;
    const char *source_text; /* the text that lengths_open() was given, which it borrows */
    /* [length_count] each, in tokens or numbers of batches. Of a file: the lengths, and the batch of each (0 in a list
     * of lengths). Of a histogram: the columns `upto` and `from`. */
    int64_t *length_or_upto, *batch_or_from;
    size_t length_count, next; /* next: number of rows that were taken since the list began */
    /* sampled batches: lengths_take_next() has returned the end of a batch, but not yet a length of the next batch */
    bool has_returned_batch_end;
    double median, sigma;    /* of lognormal:MEDIAN,SIGMA */
    void *rng, *table;       /* objects of the library GSL */
    int64_t put_back_length; /* a length that was put back, and is returned next; 0: none */
};

/* Opens a file or a distribution. A seed shuffles a list of lengths, and seeds the draws from a distribution. seed 0:
 * none was given; then a list keeps its order, and a distribution is drawn with seed 1. Sampled batches keep their
 * order, and refuse a seed. */
enum status lengths_open(struct lengths *lengths, const char *text, uint64_t seed,
                         struct diag *diag);
void lengths_release(struct lengths *lengths);

/* Returns the next length, 1 or more; 0: the sampled batch ends here, or all lengths are used up. */
int64_t lengths_take_next(struct lengths *lengths);

/* Makes `length` the one that lengths_take_next() returns next. Only one length can be put back at a time. */
void lengths_put_back(struct lengths *lengths, int64_t length);

/* True if there is no further length, which happens only with sampled batches. */
bool lengths_are_used_up(const struct lengths *lengths);

#endif
