#include "schedule/core_plan/deal_rules.h"

#include "models/work.h"

#include "base/text.h"
#include "base/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const deal_rule_names[DEAL_RULE_COUNT] = {
    "contiguous",  "striped", "zigzag",     "per-document", "chunks", "degree", "zigzag-ring",
    "double-ring", "gather",  "token-ring", "burst",        "move",   "blocks"};

/* By rule. rule_that_deals_tokens: the rule that deals its tokens, which may be another one. default_parameter: the
 * parameter if the user gives none; 0: the rule takes none. */
static const struct {
    enum deal_rule rule_that_deals_tokens;
    int64_t default_parameter;
} rules[DEAL_RULE_COUNT] = {
    [DEAL_CONTIGUOUS] = {DEAL_CONTIGUOUS, 0},
    [DEAL_STRIPED] = {DEAL_STRIPED, 0},
    [DEAL_ZIGZAG] = {DEAL_ZIGZAG, 0},
    [DEAL_PER_DOCUMENT] = {DEAL_PER_DOCUMENT, 0},
    [DEAL_CHUNKS_TO_LEAST_LOADED] = {DEAL_CHUNKS_TO_LEAST_LOADED, 2048},
    [DEAL_DOCUMENTS_BY_DEGREE] = {DEAL_DOCUMENTS_BY_DEGREE, 0},
    [DEAL_ZIGZAG_RING] = {DEAL_ZIGZAG, 0},
    [DEAL_DOUBLE_RING] = {DEAL_ZIGZAG, 8},
    [DEAL_ALL_GATHER_OF_KEYS] = {DEAL_ZIGZAG, 0},
    [DEAL_RING_OF_QUERIES] = {DEAL_ZIGZAG, 0},
    [DEAL_BURST] = {DEAL_ZIGZAG, 0},
    [DEAL_MOVE_QUERIES] = {DEAL_CONTIGUOUS, 2048},
    [DEAL_CHUNKS_THEN_MOVE_QUERIES] = {DEAL_CHUNKS_TO_LEAST_LOADED, 2048},
};

bool deal_choice_has_tiles(const struct deal_choice *choice)
{
    return choice->rule >= DEAL_ZIGZAG_RING;
}

enum status deal_choice_parse(struct deal_choice *choice, const char *text, struct diag *diag)
{
    const struct loc at = {.name = "--core-plan"};
    const char *colon = strchr(text, ':');
    size_t size = colon != NULL ? (size_t)(colon - text) : strlen(text);
    uint64_t number;
    *choice = (struct deal_choice){.rule = DEAL_CONTIGUOUS};
    while (choice->rule < DEAL_RULE_COUNT &&
           (strlen(deal_rule_names[choice->rule]) != size ||
            strncmp(deal_rule_names[choice->rule], text, size) != 0))
        choice->rule++;
    if (choice->rule == DEAL_RULE_COUNT) {
        struct text names = {0};
        for (int i = 0; i < DEAL_RULE_COUNT; i++)
            text_printf(&names, "%s%s%s",
                        i == 0                    ? ""
                        : i + 1 < DEAL_RULE_COUNT ? ", "
                                                  : " or ",
                        deal_rule_names[i], rules[i].default_parameter > 0 ? "[:NUMBER]" : "");
        enum status status = diag_error(
            diag, at, STATUS_BAD_INPUT, "'%.*s' is no rule, and no file of a plan: %s would do%s",
            (int)size, text, names.data,
            strcmp(text, "all") == 0 ? "; `longhaul plan` searches all" : "");
        text_release(&names);
        return status;
    }
    choice->parameter = rules[choice->rule].default_parameter;
    if (colon == NULL)
        return STATUS_OK;
    if (choice->parameter == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "rule '%.*s' takes no parameter, but has '%s'", (int)size, text,
                          colon + 1);
    if (!parse_u64(colon + 1, strlen(colon + 1), &number) || number < 1 || number > INT32_MAX)
        return diag_error(diag, at, STATUS_BAD_INPUT, "'%s' is not a number of %s, such as %s:%lld",
                          colon + 1,
                          rules[choice->rule].rule_that_deals_tokens == DEAL_CHUNKS_TO_LEAST_LOADED
                              ? "tokens of a chunk"
                          : choice->rule == DEAL_MOVE_QUERIES ? "tokens of a slice"
                                                              : "ranks of an inner ring",
                          deal_rule_names[choice->rule], (long long)choice->parameter);
    choice->parameter = (int64_t)number;
    return STATUS_OK;
}

int64_t deal_choice_token_unit(const struct deal_choice *choice, uint32_t ranks)
{
    switch (rules[choice->rule].rule_that_deals_tokens) {
    case DEAL_ZIGZAG:
        return 2 * (int64_t)ranks;
    case DEAL_CHUNKS_TO_LEAST_LOADED:
        return choice->parameter * ranks;
    default:
        return ranks;
    }
}

/* The shares of a sequence (struct token_share), in the order of their tokens. */
struct share_list {
    struct token_share *share;
    size_t count, capacity;
};

static void append_share(struct share_list *s, int64_t rows, int64_t owner)
{
    if (rows == 0)
        return;
    s->share = heap_grow(s->share, &s->capacity, s->count + 1, sizeof *s->share);
    s->share[s->count++] = (struct token_share){rows, (uint32_t)owner};
}

/* Returns the owner of slice i of 2 R slices on R ranks in a zigzag. */
static int64_t zigzag_owner(int64_t i, int64_t ranks)
{
    return i < ranks ? i : 2 * ranks - 1 - i;
}

/* Adds 2 R slices of equally many rows, two for each rank. */
static void add_zigzag_slices(struct share_list *s, int64_t ranks, int64_t slice_rows)
{
    for (int64_t i = 0; i < 2 * ranks; i++)
        append_share(s, slice_rows, zigzag_owner(i, ranks));
}

/* Adds the shares of DEAL_PER_DOCUMENT: for each document its slices, then its left-over tokens. The left-over tokens
 * of all documents together go to the ranks in equal runs, rank 0's first. */
static void deal_per_document(struct share_list *s, int64_t ranks,
                              const struct document_list *documents)
{
    int64_t left_over = 0, dealt = 0;
    for (uint32_t i = 0; i < documents->document_count; i++)
        left_over += (documents->document_end[i] - document_begin(documents, i)) % (2 * ranks);
    for (uint32_t i = 0; i < documents->document_count; i++) {
        int64_t length = documents->document_end[i] - document_begin(documents, i);
        add_zigzag_slices(s, ranks, length / (2 * ranks));
        for (int64_t k = 0; k < length % (2 * ranks); k++)
            append_share(s, 1, dealt++ * ranks / left_over);
    }
}

double deal_count_pairs_seen_by_queries(const struct document_list *documents,
                                        struct attention_windows_of_layers windows, int64_t begin,
                                        int64_t end)
{
    double pairs = 0;
    for (uint32_t i = document_index_at_position(documents, begin); begin < end; i++) {
        int64_t until = documents->document_end[i] < end ? documents->document_end[i] : end,
                first = document_begin(documents, i);
        struct attention_piece piece = {
            .query_count = until - begin, .key_count = until - first, .offset = begin - first};
        pairs += (1 - windows.windowed_layer_share) * attention_piece_pairs(&piece);
        piece.window = windows.window;
        pairs += windows.windowed_layer_share * attention_piece_pairs(&piece);
        begin = until;
    }
    return pairs;
}

struct numbered_chunk {
    int64_t number;
    double pairs;
};

/* Sorts chunks by the number of their pairs, most first; equal ones by their place in the sequence. */
static int compare_chunks(const void *left, const void *right)
{
    const struct numbered_chunk *a = left, *b = right;
    if (a->pairs != b->pairs)
        return a->pairs < b->pairs ? 1 : -1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Adds the shares of DEAL_CHUNKS_TO_LEAST_LOADED: the chunk with the most visible pairs is dealt first, and each goes
 * to the rank with the fewest pairs so far among those that have room for a chunk. */
static void deal_chunks_to_least_loaded_ranks(struct share_list *s, uint32_t ranks, int64_t size,
                                              const struct document_list *documents,
                                              struct attention_windows_of_layers windows)
{
    int64_t count = documents->document_end[documents->document_count - 1] / size;
    struct numbered_chunk *chunk = heap_alloc((size_t)count, sizeof *chunk);
    uint32_t *owner = heap_alloc((size_t)count, sizeof *owner);
    double *load = heap_zalloc(ranks, sizeof *load);
    int64_t *has = heap_zalloc(ranks, sizeof *has);
    for (int64_t i = 0; i < count; i++)
        chunk[i] = (struct numbered_chunk){
            i, deal_count_pairs_seen_by_queries(documents, windows, i * size, (i + 1) * size)};
    qsort(chunk, (size_t)count, sizeof *chunk, compare_chunks);
    for (int64_t i = 0; i < count; i++) {
        uint32_t least = ranks;
        for (uint32_t r = 0; r < ranks; r++)
            if (has[r] < count / ranks && (least == ranks || load[r] < load[least]))
                least = r;
        load[least] += chunk[i].pairs;
        has[least]++;
        owner[chunk[i].number] = least;
    }
    for (int64_t i = 0; i < count; i++)
        append_share(s, size, owner[i]);
    free(has);
    free(load);
    free(owner);
    free(chunk);
}

/* ---- DEAL_DOCUMENTS_BY_DEGREE: each document on the fewest ranks that have room for it ---- */

/* A document of a sequence: its first position, and its number of tokens. */
struct document_span {
    int64_t begin, rows;
};
/* A run of a document's tokens that one rank owns. */
struct owned_document_run {
    int64_t begin, rows;
    uint32_t owner;
};

struct dealing_by_degree {
    struct owned_document_run *run;
    size_t run_count, capacity;
    int64_t *tokens_left_of_rank; /* [ranks] tokens that a rank still takes */
    double *pairs_of_rank;        /* [ranks] visible pairs */
    const struct document_list *documents;
    struct attention_windows_of_layers windows;
};

static void add_owned_document_run(struct dealing_by_degree *d, int64_t begin, int64_t rows,
                                   uint32_t owner)
{
    if (rows == 0)
        return;
    d->run = heap_grow(d->run, &d->capacity, d->run_count + 1, sizeof *d->run);
    d->run[d->run_count++] = (struct owned_document_run){begin, rows, owner};
    d->tokens_left_of_rank[owner] -= rows;
    d->pairs_of_rank[owner] +=
        deal_count_pairs_seen_by_queries(d->documents, d->windows, begin, begin + rows);
}

/* Returns the number of tokens of slice i if a document of n tokens is cut into 2 * count slices. If they do not divide
 * evenly, each of the first slices has one token more. */
static int64_t token_count_of_slice(int64_t n, uint32_t count, int64_t i)
{
    return n / (2 * count) + (i < n % (2 * count));
}

/* Returns the first rank of the set with the fewest visible pairs among the sets in which each rank has room for its
 * two slices of a document of n tokens; UINT32_MAX if there is none. A set is `count` consecutive ranks, from a
 * multiple of `count` on. */
static uint32_t find_least_loaded_rank_set(const struct dealing_by_degree *d, uint32_t ranks,
                                           uint32_t count, int64_t n)
{
    uint32_t best = UINT32_MAX;
    double least = 0;
    for (uint32_t first = 0; first + count <= ranks; first += count) {
        bool fits = true;
        double load = 0;
        for (uint32_t r = first; r < first + count; r++) {
            fits = fits && d->tokens_left_of_rank[r] >=
                               token_count_of_slice(n, count, r - first) +
                                   token_count_of_slice(n, count, 2 * count - 1 - (r - first));
            load += d->pairs_of_rank[r];
        }
        if (fits && (best == UINT32_MAX || load < least)) {
            best = first;
            least = load;
        }
    }
    return best;
}

/* Returns twice `count`, but at most all `ranks`. */
static uint32_t double_count_up_to_all_ranks(uint32_t count, uint32_t ranks)
{
    return count < ranks - count ? 2 * count : ranks;
}

/* Deals a document of n tokens from `begin` on. rank_tokens: the tokens of the sequence that each rank must get. */
static void deal_document_by_degree(struct dealing_by_degree *d, uint32_t ranks,
                                    int64_t rank_tokens, int64_t begin, int64_t n)
{
    uint32_t count = 1, first;
    /* the fewest ranks that could hold the document if they held nothing else */
    while (count < ranks && n > count * rank_tokens)
        count = double_count_up_to_all_ranks(count, ranks);
    /* if no set of that size has room, larger sets are tried */
    while ((first = find_least_loaded_rank_set(d, ranks, count, n)) == UINT32_MAX && count < ranks)
        count = double_count_up_to_all_ranks(count, ranks);
    for (int64_t i = 0; first != UINT32_MAX && i < 2 * (int64_t)count; i++) {
        int64_t rows = token_count_of_slice(n, count, i);
        add_owned_document_run(d, begin, rows, first + (uint32_t)zigzag_owner(i, count));
        begin += rows;
    }
    /* If no set has room, the rank with the most room takes as many tokens as it can, then the next one. */
    while (first == UINT32_MAX && n > 0) {
        uint32_t emptiest = 0;
        for (uint32_t r = 1; r < ranks; r++)
            emptiest = d->tokens_left_of_rank[r] > d->tokens_left_of_rank[emptiest] ? r : emptiest;
        int64_t rows = d->tokens_left_of_rank[emptiest] < n ? d->tokens_left_of_rank[emptiest] : n;
        add_owned_document_run(d, begin, rows, emptiest);
        begin += rows;
        n -= rows;
    }
}

/* Sorts documents by their length, longest first; equal ones by their place in the sequence. */
static int compare_documents(const void *left, const void *right)
{
    const struct document_span *a = left, *b = right;
    if (a->rows != b->rows)
        return a->rows < b->rows ? 1 : -1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static int compare_runs(const void *left, const void *right)
{
    const struct owned_document_run *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static void deal_by_degree(struct share_list *s, uint32_t ranks,
                           const struct document_list *documents,
                           struct attention_windows_of_layers windows)
{
    const int64_t rank_tokens = documents->document_end[documents->document_count - 1] / ranks;
    struct dealing_by_degree d = {.documents = documents, .windows = windows};
    struct document_span *document = heap_alloc(documents->document_count, sizeof *document);
    d.tokens_left_of_rank = heap_alloc(ranks, sizeof *d.tokens_left_of_rank);
    d.pairs_of_rank = heap_zalloc(ranks, sizeof *d.pairs_of_rank);
    for (uint32_t r = 0; r < ranks; r++)
        d.tokens_left_of_rank[r] = rank_tokens;
    for (uint32_t i = 0; i < documents->document_count; i++) {
        int64_t begin = document_begin(documents, i);
        document[i] = (struct document_span){begin, documents->document_end[i] - begin};
    }
    qsort(document, documents->document_count, sizeof *document, compare_documents);
    for (uint32_t i = 0; i < documents->document_count; i++)
        deal_document_by_degree(&d, ranks, rank_tokens, document[i].begin, document[i].rows);
    qsort(d.run, d.run_count, sizeof *d.run, compare_runs);
    for (size_t i = 0; i < d.run_count; i++)
        append_share(s, d.run[i].rows, d.run[i].owner);
    free(document);
    free(d.run);
    free(d.tokens_left_of_rank);
    free(d.pairs_of_rank);
}

/* ---- any rule ---- */

struct token_deal *deal_by_rule(struct arena *arena, const struct deal_choice *choice,
                                uint32_t ranks, const struct document_list *documents,
                                struct attention_windows_of_layers windows)
{
    struct share_list s = {0};
    int64_t tokens = documents->document_end[documents->document_count - 1];
    assert(tokens % deal_choice_token_unit(choice, ranks) == 0);
    switch (rules[choice->rule].rule_that_deals_tokens) {
    case DEAL_CONTIGUOUS:
        for (uint32_t r = 0; r < ranks; r++)
            append_share(&s, tokens / ranks, r);
        break;
    case DEAL_STRIPED:
        for (int64_t i = 0; i < tokens; i++)
            append_share(&s, 1, i % ranks);
        break;
    case DEAL_ZIGZAG:
        add_zigzag_slices(&s, ranks, tokens / (2 * (int64_t)ranks));
        break;
    case DEAL_DOCUMENTS_BY_DEGREE:
        deal_by_degree(&s, ranks, documents, windows);
        break;
    case DEAL_PER_DOCUMENT:
        deal_per_document(&s, ranks, documents);
        break;
    default:
        assert(rules[choice->rule].rule_that_deals_tokens == DEAL_CHUNKS_TO_LEAST_LOADED);
        deal_chunks_to_least_loaded_ranks(&s, ranks, choice->parameter, documents, windows);
    }
    struct token_deal *deal = deal_make_from_shares(arena, ranks, s.share, (uint32_t)s.count);
    free(s.share);
    return deal;
}
