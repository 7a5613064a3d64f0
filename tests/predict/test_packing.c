/* tests/predict/test_packing.c: packing of documents into the sequences of a step: cases by hand, and laws. */
#include "predict/documents/lengths.h"
#include "predict/documents/packing.h"
#include "tests/check.h"

#include <gsl/gsl_rng.h>
#include <stdio.h>
#include <string.h>

/* Returns the lengths as if read from a file; the array remains the caller's. */
static struct lengths lengths_from_array(int64_t *length, size_t count)
{
    return (struct lengths){.kind = LENGTHS_LIST_IN_FILE,
                            .source_text = "list",
                            .length_or_upto = length,
                            .length_count = count};
}

/* Writes the document lengths of each sequence, such as "4,4|2". */
static void write_document_lengths(char *text, size_t size, const struct packed_batch *batch)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t s = 0; s < batch->sequence_count; s++)
        for (uint32_t i = 0; i <= batch->sequence[s].document_count && used < size; i++)
            if (i == batch->sequence[s].document_count)
                used += (size_t)snprintf(text + used, size - used, "%s",
                                         s + 1 < batch->sequence_count ? "|" : "");
            else
                used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? "," : "",
                                         (long long)batch->sequence[s].tokens_of_each_document[i]);
}

/* Documents packed into steps of two sequences of 16 tokens. first, second: the documents' lengths
 * in the sequences of the first two steps. */
static const struct {
    const char *label;
    enum packing_policy policy;
    int64_t multiple;  /* to which lengths are rounded up */
    int64_t length[9]; /* of the documents, in their order; unused elements are 0 */
    const char *first, *second;
    /* of the first step: tokens of documents, of padding, and dropped; documents that are cut */
    int64_t tokens, padding, dropped;
    uint64_t cut;
} by_hand[] = {
    /* label, policy, multiple, length, first, second, tokens, padding, dropped, cut */
    {"first fit", PACKING_FIRST_FIT, 1, {10, 8, 6, 7, 16}, "10,6|8,7", "16|10", 31, 1, 0, 0},
    {"first fit leaves a gap",
     PACKING_FIRST_FIT,
     1,
     {6, 10, 9, 5, 12},
     "6,10|9,5",
     "12|6,10",
     30,
     2,
     0,
     0},
    {"best fit", PACKING_BEST_FIT, 1, {9, 12, 4, 7, 16}, "9,7|12,4", "16|9", 32, 0, 0, 0},
    {"first fit of the same",
     PACKING_FIRST_FIT,
     1,
     {9, 12, 4, 7, 16},
     "9,4|12",
     "7,9|16",
     25,
     7,
     0,
     0},
    {"buckets of 4 to 7 and 8 to 15",
     PACKING_BUCKETS,
     1,
     {4, 8, 5, 6, 9, 3},
     "4,5,6|8",
     "9|3",
     23,
     9,
     0,
     0},
    {"truncated to a sequence", PACKING_FIRST_FIT, 1, {40, 16, 1}, "16|16", "1|16", 32, 0, 24, 1},
    {"cut at ends of sequences",
     PACKING_TRUNCATE,
     1,
     {10, 10, 30},
     "10,6|4,12",
     "16|2,10,4",
     32,
     0,
     0,
     2},
    {"rounded up to multiples of 4",
     PACKING_FIRST_FIT,
     4,
     {5, 3, 4, 13, 1},
     "8,4,4|16",
     "4,8,4|4",
     25,
     7,
     0,
     0},
};

static void packing_policies_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(by_hand); i++) {
        const struct packing_options options = {.policy = by_hand[i].policy,
                                                .sequence_tokens = 16,
                                                .round_documents_to = by_hand[i].multiple,
                                                .sequence_count = 2,
                                                .data_parallel_ranks = 1,
                                                .micro_batch_sequences = 1};
        int64_t length[9];
        size_t count = 0;
        memcpy(length, by_hand[i].length, sizeof length);
        while (count < ARRAY_LEN(length) && length[count] > 0)
            count++;
        struct lengths lengths = lengths_from_array(length, count);
        struct packed_batch batch;
        char text[200];
        CHECK_INT(by_hand[i].label, packing_pack_next_step(&batch, &lengths, &options, NULL),
                  STATUS_OK);
        write_document_lengths(text, sizeof text, &batch);
        CHECK_TEXT(by_hand[i].label, text, by_hand[i].first);
        CHECK_INT(by_hand[i].label, batch.document_tokens, by_hand[i].tokens);
        CHECK_INT(by_hand[i].label, batch.padding_tokens, by_hand[i].padding);
        CHECK_INT(by_hand[i].label, batch.dropped_tokens, by_hand[i].dropped);
        CHECK_INT(by_hand[i].label, batch.truncated_or_cut_documents, by_hand[i].cut);
        packed_batch_release(&batch);
        CHECK_INT(by_hand[i].label, packing_pack_next_step(&batch, &lengths, &options, NULL),
                  STATUS_OK);
        write_document_lengths(text, sizeof text, &batch);
        CHECK_TEXT(by_hand[i].label, text, by_hand[i].second);
        packed_batch_release(&batch);
    }
}

/* One sequence has documents of 10 and 6, the other of 8 and 7 and 1 of padding: 55 + 21 + 36 + 28 + 1 of 2 x
 * 136 pairs. */
static void packed_batches_count_visible_pairs(void)
{
    int64_t length[] = {10, 8, 6, 7, 16};
    const struct packing_options options = {.sequence_tokens = 16,
                                            .round_documents_to = 1,
                                            .sequence_count = 2,
                                            .data_parallel_ranks = 2,
                                            .micro_batch_sequences = 1};
    struct lengths lengths = lengths_from_array(length, ARRAY_LEN(length));
    struct packed_batch batch;
    CHECK_INT("packs", packing_pack_next_step(&batch, &lengths, &options, NULL), STATUS_OK);
    CHECK_CLOSE("pairs", batch.visible_pairs, 141, 1e-12);
    CHECK_CLOSE("causal pairs", batch.causal_pairs, 272, 1e-12);
    CHECK_CLOSE("squares", batch.document_to_sequence_square_ratio, (100 + 36 + 64 + 49) / 512.0,
                1e-12);
    CHECK_INT("latest rank", batch.fullest_rank, 0);
    CHECK_CLOSE("its pairs", batch.fullest_over_mean, 76 / 70.5, 1e-12);
    packed_batch_release(&batch);
}

static double most_pairs_of_any_group(const struct packed_batch *batch, uint32_t groups)
{
    uint32_t size = batch->sequence_count / groups;
    double most = 0;
    for (uint32_t g = 0; g < groups; g++) {
        double pairs = 0;
        for (uint32_t i = 0; i < size; i++)
            pairs += batch->sequence[g * size + i].visible_pairs;
        most = pairs > most ? pairs : most;
    }
    return most;
}

/* No balance raises the pairs of the rank that has most or changes the pairs of the batch.
 * BALANCE_MICRO_BATCHES_OF_RANK moves no pairs between ranks and does not raise those of the largest micro-batch;
 * BALANCE_RANKS_AND_MICRO_BATCHES lowers those of the largest rank in more than a third of the tries. */
static void balance_never_raises_the_largest(void)
{
    enum { SEED = 20261125, TRIES = 200 };
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, SEED);
    int lower = 0;
    for (int i = 0; i < TRIES; i++) {
        struct packing_options o = {.sequence_tokens = 4096, .round_documents_to = 1};
        o.policy = (enum packing_policy)gsl_rng_uniform_int(rng, PACKING_COUNT);
        o.data_parallel_ranks = 1u + (uint32_t)gsl_rng_uniform_int(rng, 6);
        o.micro_batch_sequences = 1u + (uint32_t)gsl_rng_uniform_int(rng, 3);
        uint32_t units = o.data_parallel_ranks * (1u + (uint32_t)gsl_rng_uniform_int(rng, 5));
        o.sequence_count = units * o.micro_batch_sequences;
        double rank[BALANCE_COUNT], micro[BALANCE_COUNT], all[BALANCE_COUNT];
        for (int b = 0; b < BALANCE_COUNT; b++) {
            struct lengths lengths = {0};
            struct packed_batch batch;
            char label[64];
            snprintf(label, sizeof label, "seed %d, try %d, balance %s", SEED, i, balance_names[b]);
            o.balance = (enum packing_balance_policy)b;
            CHECK_INT(label, lengths_open(&lengths, "lognormal:500,1.5", 1 + (uint64_t)i, NULL),
                      STATUS_OK);
            CHECK_INT(label, packing_pack_next_step(&batch, &lengths, &o, NULL), STATUS_OK);
            CHECK_INT(label, batch.document_tokens + batch.padding_tokens,
                      (int64_t)o.sequence_count * o.sequence_tokens);
            rank[b] = most_pairs_of_any_group(&batch, o.data_parallel_ranks);
            micro[b] = most_pairs_of_any_group(&batch, units);
            all[b] = most_pairs_of_any_group(&batch, 1);
            CHECK_CLOSE(label, all[b], batch.visible_pairs, 1e-12);
            CHECK_CLOSE(label, all[b], all[BALANCE_NONE], 1e-12);
            CHECK_CLOSE(label,
                        batch.fullest_over_mean * batch.visible_pairs / o.data_parallel_ranks,
                        rank[b], 1e-12);
            CHECK_INT(label, rank[b] <= rank[BALANCE_NONE] * (1 + 1e-12), 1);
            packed_batch_release(&batch);
            lengths_release(&lengths);
        }
        CHECK_CLOSE("ranks keep their pairs", rank[BALANCE_MICRO_BATCHES_OF_RANK],
                    rank[BALANCE_NONE], 1e-12);
        CHECK_INT("micro-batches",
                  micro[BALANCE_MICRO_BATCHES_OF_RANK] <= micro[BALANCE_NONE] * (1 + 1e-12), 1);
        lower += rank[BALANCE_RANKS_AND_MICRO_BATCHES] < rank[BALANCE_NONE];
    }
    CHECK_INT("balance over ranks lowers the largest", lower > TRIES / 3, 1);
    gsl_rng_free(rng);
}

/* Half of all draws are below the median of a log-normal; the probabilities of 1 and 2 under Zipf's law are as
 * 2^S to 1. */
static void distributions_are_what_they_say(void)
{
    enum { DRAWS = 20000 };
    struct lengths lengths = {0}, again = {0};
    int below = 0, ones = 0, twos = 0;
    CHECK_INT("opens", lengths_open(&lengths, "lognormal:2K,1.5", 0, NULL), STATUS_OK);
    CHECK_INT("opens", lengths_open(&again, "lognormal:2K,1.5", 1, NULL), STATUS_OK);
    for (int i = 0; i < DRAWS; i++) {
        int64_t length = lengths_take_next(&lengths);
        below += length < 2048;
        CHECK_INT("the same seed", lengths_take_next(&again), length);
    }
    CHECK_CLOSE("median", below / (double)DRAWS, 0.5, 0.03);
    lengths_release(&lengths);
    lengths_release(&again);
    CHECK_INT("opens", lengths_open(&lengths, "zipf:2,100", 3, NULL), STATUS_OK);
    for (int i = 0; i < DRAWS; i++) {
        int64_t length = lengths_take_next(&lengths);
        CHECK_INT("from 1 to 100", length >= 1 && length <= 100, 1);
        ones += length == 1;
        twos += length == 2;
    }
    CHECK_CLOSE("1 against 2", ones / (double)twos, 4, 0.1);
    lengths_release(&lengths);
}

/* Shares of a histogram are those of its rows, and lengths within a row are log-uniform: half of those from 1024 to
 * 4095 are below 2048. A row of one length is exact. */
static void histograms_have_their_shares(void)
{
    enum { DRAWS = 20000 };
    char name[300];
    struct lengths lengths = {0};
    int counts[3] = {0}, below = 0;
    snprintf(name, sizeof name, "histogram:%s/histogram.csv", check_temp_dir());
    FILE *file = fopen(strchr(name, ':') + 1, "w");
    CHECK("writes", file != NULL);
    fputs("# a comment\nfrom,upto,share\n100,100,60\n1024,4095,30\n131072,131072,10\n", file);
    fclose(file);
    CHECK_INT("opens", lengths_open(&lengths, name, 7, NULL), STATUS_OK);
    for (int i = 0; i < DRAWS; i++) {
        int64_t length = lengths_take_next(&lengths);
        CHECK("in a row", length == 100 || length == 131072 || (length >= 1024 && length <= 4095));
        counts[length == 100 ? 0 : length == 131072 ? 2 : 1]++;
        below += length >= 1024 && length < 2048;
    }
    CHECK_CLOSE("short", counts[0] / (double)DRAWS, 0.6, 0.03);
    CHECK_CLOSE("long", counts[2] / (double)DRAWS, 0.1, 0.1);
    CHECK_CLOSE("log-uniform", below / (double)counts[1], 0.5, 0.05);
    lengths_release(&lengths);
}

static const struct check_case cases[] = {
    {"packs as by hand", packing_policies_by_hand},
    {"counts pairs", packed_batches_count_visible_pairs},
    {"balance never raises the largest rank's pairs", balance_never_raises_the_largest},
    {"histograms have their shares", histograms_have_their_shares},
    {"distributions are what they say", distributions_are_what_they_say},
};
CHECK_MAIN("packed documents", cases)
