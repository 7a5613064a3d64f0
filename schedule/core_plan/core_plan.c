#include "schedule/core_plan/core_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plan_head[] = "core plan 1";
static const char columns[] = "sequence,what,begin,rows,key,keys,rank,round";

enum { RANKS_MAX = 65535, SEQUENCES_MAX = 1 << 20 };

/* ---- reading ---- */

enum plan_column { SEQUENCE, WHAT, BEGIN, ROWS, KEY, KEYS, RANK, ROUND, COLUMNS };
static const char *const column_names[COLUMNS] = {"sequence", "what", "begin", "rows",
                                                  "key",      "keys", "rank",  "round"};

/* The text of one column of a line: `size` bytes at `at`. It does not end with a NUL. */
struct field {
    const char *at;
    size_t size;
};

static enum status report_field_fault(const struct cursor *c, const char *at, struct diag *diag,
                                      const char *what, struct field value)
{
    struct loc loc = {c->name, c->line, (uint32_t)(at - c->line_first_char) + 1};
    return diag_error(diag, loc, STATUS_BAD_INPUT, "%s, not '%.*s'", what,
                      value.size < 60 ? (int)value.size : 60, value.at);
}

bool core_plan_is_text_of_plan(const char *data, size_t size)
{
    return size >= strlen(plan_head) && memcmp(data, plan_head, strlen(plan_head)) == 0;
}

/* Reads "core plan 1 ranks=N [window=N] [route=direct] [keep=kv]". */
static enum status read_plan_head(struct core_plan *plan, struct cursor *c, struct diag *diag)
{
    size_t size;
    const char *word;
    if (!core_plan_is_text_of_plan(c->at, (size_t)(c->end - c->at)))
        return report_field_fault(
            c, c->at, diag, "a core plan begins with 'core plan 1 ranks=N'",
            (struct field){c->at, (size_t)(c->end - c->at) < 12 ? (size_t)(c->end - c->at) : 12});
    c->at += strlen(plan_head);
    for (cursor_skip_blanks(c); !cursor_at_line_end(c); cursor_skip_blanks(c)) {
        word = cursor_next_word(c, &size);
        const struct field all = {word, size};
        int64_t value = 0;
        const char *equals = memchr(word, '=', size);
        size_t key = equals != NULL ? (size_t)(equals - word) : size;
        bool number = equals != NULL && parse_i64(equals + 1, size - key - 1, &value);
        if (key == 5 && memcmp(word, "ranks", 5) == 0) {
            if (!number || value < 1 || value > RANKS_MAX)
                return report_field_fault(c, word, diag, "ranks= takes a number of 1 to 65535",
                                          all);
            plan->rank_count = (uint32_t)value;
        } else if (key == 6 && memcmp(word, "window", 6) == 0) {
            if (!number || value < 1 || value > CORE_PLAN_TOKENS_MAX)
                return report_field_fault(c, word, diag,
                                          "window= takes a number of keys, at least 1", all);
            plan->window_tokens = value;
        } else if ((size != 12 || memcmp(word, "route=direct", 12) != 0) &&
                   (size != 7 || memcmp(word, "keep=kv", 7) != 0))
            return report_field_fault(c, word, diag,
                                      "expected ranks=N, window=N, route=direct or keep=kv", all);
    }
    if (plan->rank_count == 0)
        return report_field_fault(c, c->line_first_char, diag, "the first line needs ranks=N",
                                  (struct field){plan_head, strlen(plan_head)});
    return STATUS_OK;
}

/* Cuts the line at the cursor into fields at its commas. Returns false unless there are exactly COLUMNS fields. The
 * cursor does not move. */
static bool split_fields(struct cursor *c, struct field field[COLUMNS])
{
    int count = 0;
    const char *at = c->at;
    while (count < COLUMNS) {
        const char *end = at;
        while (end < c->end && *end != '\n' && *end != '\r' && *end != ',' && *end != '#')
            end++;
        field[count++] = (struct field){at, (size_t)(end - at)};
        if (end == c->end || *end != ',')
            break;
        at = end + 1;
    }
    while (count == COLUMNS && field[COLUMNS - 1].size > 0 &&
           strchr(" \t", field[COLUMNS - 1].at[field[COLUMNS - 1].size - 1]) != NULL)
        field[COLUMNS - 1].size--;
    const char *after = field[count - 1].at + field[count - 1].size;
    return count == COLUMNS && (after == c->end || *after != ',');
}

static bool field_is_word(struct field field, const char *word)
{
    return field.size == strlen(word) && memcmp(field.at, word, field.size) == 0;
}

/* Reads into value[] the columns whose bits are set in `mask`. Fails if another column is not empty, except `what`,
 * which is ignored here. */
static enum status read_numbers(const struct core_plan *plan, const struct cursor *c,
                                const struct field field[COLUMNS], unsigned mask,
                                int64_t value[COLUMNS], struct diag *diag)
{
    for (int i = 0; i < COLUMNS; i++) {
        int64_t low = i == ROWS || i == KEYS, high = CORE_PLAN_TOKENS_MAX;
        char what[100];
        if (i == WHAT)
            continue;
        if (i == RANK)
            high = (int64_t)plan->rank_count - 1;
        else if (i == SEQUENCE)
            high = SEQUENCES_MAX - 1;
        else if (i == ROUND)
            high = TILE_PARTS_MAX / (int64_t)plan->rank_count - 1;
        if (!(mask >> i & 1)) {
            if (field[i].size > 0) {
                snprintf(what, sizeof what, "column %s of such a row is empty", column_names[i]);
                return report_field_fault(c, field[i].at, diag, what, field[i]);
            }
            continue;
        }
        snprintf(what, sizeof what, "column %s takes a whole number of %" PRId64 " to %" PRId64,
                 column_names[i], low, high);
        if (!parse_i64(field[i].at, field[i].size, &value[i]) || value[i] < low || value[i] > high)
            return report_field_fault(c, field[i].at, diag, what, field[i]);
    }
    return STATUS_OK;
}

static struct core_sequence *find_or_add_sequence(struct core_plan *plan, size_t number)
{
    if (number >= plan->sequence_count) {
        plan->sequence =
            heap_grow(plan->sequence, &plan->capacity, number + 1, sizeof *plan->sequence);
        memset(plan->sequence + plan->sequence_count, 0,
               (number + 1 - plan->sequence_count) * sizeof *plan->sequence);
        plan->sequence_count = number + 1;
    }
    return &plan->sequence[number];
}

static void add_run(struct core_sequence *s, struct core_token_run run)
{
    s->run = heap_grow(s->run, &s->run_capacity, s->run_count + 1, sizeof *s->run);
    s->run[s->run_count++] = run;
}

static void add_document_end(struct core_sequence *s, int64_t end)
{
    s->document_end = heap_grow(s->document_end, &s->end_capacity, s->document_count + (size_t)1,
                                sizeof *s->document_end);
    s->document_end[s->document_count++] = end;
}

static void add_tile(struct core_sequence *s, struct core_tile tile)
{
    s->tile = heap_grow(s->tile, &s->tile_capacity, s->tile_count + 1, sizeof *s->tile);
    s->tile[s->tile_count++] = tile;
}

static enum status read_plan_row(struct core_plan *plan, struct cursor *c, struct diag *diag)
{
    const unsigned rows = 1u << SEQUENCE | 1u << BEGIN | 1u << ROWS,
                   tile = rows | 1u << KEY | 1u << KEYS | 1u << RANK | 1u << ROUND;
    struct field field[COLUMNS];
    int64_t value[COLUMNS] = {0};
    if (!split_fields(c, field))
        return report_field_fault(c, c->at, diag, "a row has the 8 columns of the second line",
                                  field[0]);
    const bool owns = field_is_word(field[WHAT], "own"),
               backward = field_is_word(field[WHAT], "btile"),
               computes = backward || field_is_word(field[WHAT], "tile");
    if (!owns && !computes && !field_is_word(field[WHAT], "document"))
        return report_field_fault(c, field[WHAT].at, diag,
                                  "column what is document, own, tile or btile", field[WHAT]);
    enum status status = read_numbers(plan, c, field,
                                      computes ? tile
                                      : owns   ? rows | 1u << RANK
                                               : rows,
                                      value, diag);
    if (status != STATUS_OK)
        return status;
    struct core_sequence *s = find_or_add_sequence(plan, (size_t)value[SEQUENCE]);
    if (computes) {
        add_tile(s, (struct core_tile){value[BEGIN], value[ROWS], value[KEY], value[KEYS],
                                       (uint32_t)value[RANK], (uint32_t)value[ROUND], backward});
    } else if (owns) {
        add_run(s, (struct core_token_run){value[BEGIN], value[ROWS], (uint32_t)value[RANK]});
    } else {
        if (value[BEGIN] != (s->document_count > 0 ? s->document_end[s->document_count - 1] : 0))
            return report_field_fault(
                c, field[BEGIN].at, diag,
                "a document begins where the one before it ends, the first at 0", field[BEGIN]);
        add_document_end(s, value[BEGIN] + value[ROWS]);
    }
    return STATUS_OK;
}

enum status core_plan_parse(struct core_plan *plan, const char *name, const char *data, size_t size,
                            struct diag *diag)
{
    struct cursor c = cursor_make(name, data, size);
    enum status status = read_plan_head(plan, &c, diag);
    bool titled = false;
    while (status == STATUS_OK && cursor_next_line(&c)) {
        cursor_skip_blanks(&c);
        if (cursor_at_line_end(&c))
            continue;
        if (titled) {
            status = read_plan_row(plan, &c, diag);
            continue;
        }
        size_t word;
        const char *at = cursor_next_word(&c, &word);
        titled = word == strlen(columns) && memcmp(at, columns, word) == 0;
        if (!titled)
            status = report_field_fault(
                &c, at, diag, "the second line is 'sequence,what,begin,rows,key,keys,rank,round'",
                (struct field){at, word});
    }
    if (status == STATUS_OK && plan->sequence_count == 0)
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "the plan has no rows: rows 'own' say which rank owns which tokens");
    for (size_t i = 0; status == STATUS_OK && i < plan->sequence_count; i++) {
        struct core_sequence *s = &plan->sequence[i];
        int64_t end = 0;
        for (size_t k = 0; k < s->run_count; k++)
            end = s->run[k].begin + s->run[k].rows > end ? s->run[k].begin + s->run[k].rows : end;
        if (s->document_count == 0 && end > 0)
            add_document_end(s, end);
        s->tokens = s->document_count > 0 ? s->document_end[s->document_count - 1] : 0;
    }
    return status;
}

/* ---- printing and releasing a plan; its sequences ---- */

void core_plan_print(struct text *out, const struct core_plan *plan)
{
    text_printf(out, "%s ranks=%" PRIu32, plan_head, plan->rank_count);
    if (plan->window_tokens > 0)
        text_printf(out, " window=%" PRId64, plan->window_tokens);
    text_printf(out, "\n%s\n", columns);
    for (size_t i = 0; i < plan->sequence_count; i++) {
        const struct core_sequence *s = &plan->sequence[i];
        for (uint32_t d = 0; d < s->document_count; d++) {
            int64_t begin = d > 0 ? s->document_end[d - 1] : 0;
            text_printf(out, "%zu,document,%" PRId64 ",%" PRId64 ",,,,\n", i, begin,
                        s->document_end[d] - begin);
        }
        for (size_t k = 0; k < s->run_count; k++)
            text_printf(out, "%zu,own,%" PRId64 ",%" PRId64 ",,,%" PRIu32 ",\n", i, s->run[k].begin,
                        s->run[k].rows, s->run[k].owner);
        for (size_t k = 0; k < s->tile_count; k++)
            text_printf(out,
                        "%zu,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRIu32
                        ",%" PRIu32 "\n",
                        i, s->tile[k].is_backward_tile ? "btile" : "tile", s->tile[k].first_query,
                        s->tile[k].query_count, s->tile[k].first_key, s->tile[k].key_count,
                        s->tile[k].rank, s->tile[k].round);
    }
}

void core_plan_release(struct core_plan *plan)
{
    for (size_t i = 0; i < plan->sequence_count; i++) {
        free(plan->sequence[i].document_end);
        free(plan->sequence[i].run);
        free(plan->sequence[i].tile);
    }
    free(plan->sequence);
    *plan = (struct core_plan){0};
}

void core_plan_add_sequence(struct core_plan *plan, const struct document_list *documents)
{
    struct core_sequence *s = find_or_add_sequence(plan, plan->sequence_count);
    uint32_t shares, tiles = documents->tiles != NULL ? documents->tiles->tile_count : 0;
    struct token_share *share = deal_shares_of_runs(documents->deal, &shares);
    for (uint32_t i = 0; i < documents->document_count; i++)
        add_document_end(s, documents->document_end[i]);
    for (uint32_t i = 0; i < shares; i++) {
        add_run(s, (struct core_token_run){s->tokens, share[i].row_count, share[i].owner});
        s->tokens += share[i].row_count;
    }
    free(share);
    for (uint32_t i = 0; i < tiles; i++)
        add_tile(s, documents->tiles->tile[i]);
    plan->rank_count = documents->deal->rank_count;
}

struct document_list core_plan_document_list(const struct core_sequence *s)
{
    return (struct document_list){.document_count = s->document_count,
                                  .document_end = s->document_end};
}

/* ---- dealt documents ---- */

static int compare_runs(const void *left, const void *right)
{
    const struct core_token_run *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static struct token_deal *token_deal_of_core_sequence(struct arena *arena, uint32_t ranks,
                                                      const struct core_sequence *s)
{
    struct core_token_run *run = heap_alloc(s->run_count, sizeof *run);
    struct token_share *share = heap_alloc(s->run_count, sizeof *share);
    memcpy(run, s->run, s->run_count * sizeof *run);
    qsort(run, s->run_count, sizeof *run, compare_runs);
    for (size_t i = 0; i < s->run_count; i++)
        share[i] = (struct token_share){run[i].rows, run[i].owner};
    struct token_deal *deal = deal_make_from_shares(arena, ranks, share, (uint32_t)s->run_count);
    free(share);
    free(run);
    return deal;
}

static struct tile_plan *tile_plan_of_core_sequence(struct arena *arena, int64_t window,
                                                    const struct core_sequence *s,
                                                    const struct document_list *list)
{
    if (s->tile_count > 0)
        return tile_plan_make(arena, list->deal, list->document_end, list->document_count, s->tile,
                              (uint32_t)s->tile_count, window);
    struct core_tile *own = heap_alloc(s->run_count, sizeof *own);
    for (size_t i = 0; i < s->run_count; i++)
        own[i] = (struct core_tile){.first_query = s->run[i].begin,
                                    .query_count = s->run[i].rows,
                                    .key_count = s->run[i].begin + s->run[i].rows,
                                    .rank = s->run[i].owner};
    struct tile_plan *tiles =
        tile_plan_make(arena, list->deal, list->document_end, list->document_count, own,
                       (uint32_t)s->run_count, window);
    free(own);
    return tiles;
}

struct documents *core_plan_make_documents(const struct core_plan *plan, struct arena *arena)
{
    struct documents *documents = arena_array(arena, 1, sizeof *documents);
    bool tiles = false;
    documents_init(documents, arena, (uint32_t)plan->sequence_count);
    for (size_t i = 0; i < plan->sequence_count; i++)
        tiles |= plan->sequence[i].tile_count > 0;
    for (size_t i = 0; i < plan->sequence_count; i++) {
        const struct core_sequence *s = &plan->sequence[i];
        struct document_list list = core_plan_document_list(s);
        list.deal = token_deal_of_core_sequence(arena, plan->rank_count, s);
        if (tiles)
            list.tiles = tile_plan_of_core_sequence(arena, plan->window_tokens, s, &list);
        documents_set_list(documents, arena, (uint32_t)i, list);
    }
    return documents;
}
