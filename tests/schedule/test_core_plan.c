/* tests/schedule/test_core_plan.c: core plans are read, their loads and bytes are worked by hand, and each fault of a
 * plan is found with an example. */
#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/deal_rules.h"

#include "tests/check.h"
#include "tests/schedule/random_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "core plan 1 ranks=2\nsequence,what,begin,rows,key,keys,rank,round\n"
#define THREE_DOCUMENT_ROWS "0,document,0,8,,,,\n0,document,8,4,,,,\n0,document,12,4,,,,\n"
#define ROWS_OF_OWN_HALVES "0,own,0,8,,,0,\n0,own,8,8,,,1,\n"

static bool parse_right_plan(struct core_plan *plan, const char *text)
{
    struct diag diag = {0};
    bool ok = core_plan_parse(plan, "t", text, strlen(text), &diag) == STATUS_OK;
    CHECK(diag.text != NULL ? diag.text : text, ok);
    diag_release(&diag);
    return ok;
}

/* ---- by hand, and faults ---- */

/* Documents of 8, 4 and 4 tokens on 2 ranks have 56 pairs. A window of 3 over 16 tokens on 4 ranks lets 45 through. */
static void core_plan_pair_loads_by_hand(void)
{
    static const struct {
        const char *label, *text;
        uint32_t ranks;
        double pairs[4];
        int64_t keys[4], queries[4];
    } rows[] = {
        {"contiguous", HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES, 2, {36, 20}, {0, 0}, {0, 0}},
        {"zigzag",
         HEAD THREE_DOCUMENT_ROWS "0,own,0,4,,,0,\n0,own,12,4,,,0,\n0,own,4,8,,,1,\n",
         2,
         {20, 36},
         {0, 4},
         {0, 0}},
        {"per document",
         HEAD THREE_DOCUMENT_ROWS
         "0,own,0,2,,,0,\n0,own,2,4,,,1,\n0,own,6,2,,,0,\n0,own,8,1,,,0,\n"
         "0,own,9,2,,,1,\n0,own,11,2,,,0,\n0,own,13,2,,,1,\n0,own,15,1,,,0,\n",
         2,
         {28, 28},
         {8, 4},
         {0, 0}},
        {"query 7 moved",
         HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES
         "0,tile,0,7,0,8,0,0\n0,tile,7,1,0,8,1,1\n0,tile,8,8,8,8,1,0\n",
         2,
         {28, 28},
         {0, 8},
         {0, 1}},
        {"queries 6 and 7 by keys 0 to 3 moved",
         HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES
         "0,tile,0,6,0,8,0,0\n0,tile,6,2,4,4,0,0\n0,tile,6,2,0,4,1,1\n"
         "0,tile,8,8,8,8,1,0\n",
         2,
         {28, 28},
         {0, 4},
         {0, 2}},
        {"window, contiguous",
         "core plan 1 ranks=4 window=3\nsequence,what,begin,rows,key,keys,rank,round\n"
         "0,own,0,4,,,0,\n0,own,4,4,,,1,\n0,own,8,4,,,2,\n0,own,12,4,,,3,\n",
         4,
         {9, 12, 12, 12},
         {0, 2, 2, 2},
         {0}},
        {"window, zigzag",
         "core plan 1 ranks=4 window=3\nsequence,what,begin,rows,key,keys,rank,round\n"
         "0,own,0,2,,,0,\n0,own,2,2,,,1,\n0,own,4,2,,,2,\n0,own,6,4,,,3,\n"
         "0,own,10,2,,,2,\n0,own,12,2,,,1,\n0,own,14,2,,,0,\n",
         4,
         {9, 12, 12, 12},
         {2, 4, 4, 2},
         {0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct core_plan plan = {0};
        struct diag diag = {0};
        struct coverage_rank_load load[4];
        if (parse_right_plan(&plan, rows[i].text) &&
            CHECK_INT(rows[i].label, core_plan_check(&plan, "t", &diag), STATUS_OK)) {
            coverage_find_rank_loads(&plan, 0, load);
            for (uint32_t r = 0; r < rows[i].ranks; r++) {
                CHECK_CLOSE(rows[i].label, load[r].visible_pairs, rows[i].pairs[r], 0);
                CHECK_INT(rows[i].label, load[r].received_keys, rows[i].keys[r]);
                CHECK_INT(rows[i].label, load[r].received_queries, rows[i].queries[r]);
                CHECK_INT(rows[i].label, load[r].own_tokens, 16 / rows[i].ranks);
            }
        }
        diag_release(&diag);
        core_plan_release(&plan);
    }
}

/* One document of 1M tokens on 64 ranks, Llama 3 8B in 16 bits: 4,096 bytes of a key and its value, 8,192 of a query,
 * as many of its result and 128 of its log-sum-exp; or as many heads of keys as of queries. */
static void least_bytes_by_hand(void)
{
    const double tokens = 1048576, own = tokens / 64, pairs = tokens * tokens / 2;
    const struct transformer llama = {.heads = 32, .kv_heads = 8, .head_dim = 128};
    const struct row_bytes grouped = row_bytes_of_layer(&llama, 2), whole = {16384, 8192, 8320};
    CHECK_CLOSE("queries stay",
                coverage_bound_of_busiest_rank_bytes(pairs, 64, own, &grouped, false), 2.080e9,
                1e-3);
    CHECK_CLOSE("queries move",
                coverage_bound_of_busiest_rank_bytes(pairs, 64, own, &grouped, true), 1.187e9,
                1e-3);
    CHECK_CLOSE("as many heads",
                coverage_bound_of_busiest_rank_bytes(pairs, 64, own, &whole, false), 8.321e9, 1e-3);
    CHECK_CLOSE("and they move", coverage_bound_of_busiest_rank_bytes(pairs, 64, own, &whole, true),
                2.510e9, 1e-3);
    /* DeepSeek-V2-Lite: 16 heads, of 192 columns in q and k and 128 in v */
    const struct transformer latent = {.heads = 16,
                                       .kv_heads = 16,
                                       .head_dim = 192,
                                       .kv_latent = 512,
                                       .rope_dim = 64,
                                       .v_dim = 128};
    const struct row_bytes unequal = row_bytes_of_layer(&latent, 2);
    CHECK_CLOSE("a key with its value", unequal.key, 10240, 0);
    CHECK_CLOSE("a query", unequal.query, 6144, 0);
    CHECK_CLOSE("a result", unequal.result, 4160, 0);
    CHECK_CLOSE("own keys suffice",
                coverage_bound_of_busiest_rank_bytes(64 * own, 64, own, &whole, true), 0, 0);
}

static void plan_faults_name_counterexamples(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {HEAD ROWS_OF_OWN_HALVES "0,tile,0,16,0,12,0,0\n0,tile,0,16,13,3,1,0\n",
         "query 12 sees key 12, which no tile has"},
        {HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES "0,tile,0,7,0,8,0,0\n0,tile,8,8,8,8,1,0\n",
         "query 7 sees key 0, which no tile has"},
        {HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES "0,tile,0,8,0,8,0,0\n0,tile,7,9,3,13,1,1\n",
         "query 7, key 3 are in two tiles: rank 0 round 0, rank 1 round 1"},
        {HEAD THREE_DOCUMENT_ROWS ROWS_OF_OWN_HALVES "0,tile,0,8,0,8,0,0\n0,tile,8,8,0,17,1,1\n",
         "the tile of query 8, key 0 ends at key 17, and the sequence at token 16"},
        {HEAD "0,own,0,8,,,0,\n0,own,7,8,,,1,\n", "token 7 has two owners: ranks 0 and 1"},
        {HEAD "0,own,0,7,,,0,\n0,own,8,8,,,1,\n", "token 7 has no owner"},
        {HEAD THREE_DOCUMENT_ROWS "0,own,0,8,,,0,\n0,own,8,9,,,1,\n",
         "token 16 has an owner, but the documents end at token 16"},
        {HEAD THREE_DOCUMENT_ROWS "0,own,0,8,,,0,\n0,own,8,8,,,1,\n0,own,20,2,,,0,\n",
         "token 20 has an owner, but the documents end at token 16"},
        {HEAD "0,own,0,9,,,0,\n0,own,9,7,,,1,\n",
         "rank 0 owns 9 tokens; each of 2 ranks owns as many, 8 of 16"},
        {HEAD "1,own,0,8,,,0,\n1,own,8,8,,,1,\n", "it has no tokens"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct core_plan plan = {0};
        struct diag diag = {0};
        struct text want = {0};
        text_printf(&want, "t: error: coverage: sequence 0: %s\n", rows[i].message);
        if (parse_right_plan(&plan, rows[i].text)) {
            CHECK_INT(rows[i].message, core_plan_check(&plan, "t", &diag), STATUS_NO);
            CHECK_TEXT(rows[i].message, diag.text, want.data);
        }
        text_release(&want);
        diag_release(&diag);
        core_plan_release(&plan);
    }
}

static void wrong_texts_are_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"core plan 2 ranks=2\n",
         "t:1:1: error: a core plan begins with 'core plan 1 ranks=N', not 'core plan 2 '\n"},
        {"core plan 1\n", "t:1:1: error: the first line needs ranks=N, not 'core plan 1'\n"},
        {"core plan 1 ranks=0\n",
         "t:1:13: error: ranks= takes a number of 1 to 65535, not 'ranks=0'\n"},
        {"core plan 1 ranks=2 route=relay\n",
         "t:1:21: error: expected ranks=N, window=N, route=direct or keep=kv, not 'route=relay'\n"},
        {"core plan 1 ranks=2\n0,own,0,8,,,0,\n",
         "t:2:1: error: the second line is 'sequence,what,begin,rows,key,keys,rank,round', not "
         "'0,own,0,8,,,0,'\n"},
        {HEAD "0,own,0,8,,,2,\n",
         "t:3:13: error: column rank takes a whole number of 0 to 1, not '2'\n"},
        {HEAD "0,own,0,8,,,0\n",
         "t:3:1: error: a row has the 8 columns of the second line, not '0'\n"},
        {HEAD "0,own,0,8,,,0,0\n", "t:3:15: error: column round of such a row is empty, not '0'\n"},
        {HEAD "0,has,0,8,,,0,\n",
         "t:3:3: error: column what is document, own, tile or btile, not 'has'\n"},
        {HEAD "0,document,1,8,,,,\n", "t:3:12: error: a document begins where the one before it "
                                      "ends, the first at 0, not '1'\n"},
        {HEAD, "t: error: the plan has no rows: rows 'own' say which rank owns which tokens\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct core_plan plan = {0};
        struct diag diag = {0};
        CHECK_INT(rows[i].message,
                  core_plan_parse(&plan, "t", rows[i].text, strlen(rows[i].text), &diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].text, diag.text, rows[i].message);
        diag_release(&diag);
        core_plan_release(&plan);
    }
}

/* ---- random plans, whole and with one field changed, and bounds ---- */

enum { TOKENS_MAX = PLAN_TOKENS_MAX };

static void write_random_core_plan(struct text *text, struct check_random *random)
{
    uint32_t ranks = (uint32_t)check_random_i64(random, 1, PLAN_RANKS_MAX);
    int64_t own = check_random_i64(random, 1, TOKENS_MAX / PLAN_RANKS_MAX);
    plan_write_random(text, random, ranks, own,
                      check_random_i64(random, 0, 1) * check_random_i64(random, 1, own * ranks));
}

static bool sees(const struct core_plan *plan, int64_t query, int64_t key)
{
    const struct document_list list = core_plan_document_list(&plan->sequence[0]);
    return key <= query &&
           document_index_at_position(&list, query) == document_index_at_position(&list, key) &&
           (plan->window_tokens == 0 || key > query - plan->window_tokens);
}

static int count_tiles_holding_pair(const struct core_sequence *s, bool backward, int64_t query,
                                    int64_t key)
{
    int count = 0;
    for (size_t i = 0; i < s->tile_count; i++) {
        const struct core_tile *t = &s->tile[i];
        count += t->is_backward_tile == backward && query >= t->first_query &&
                 query < t->first_query + t->query_count && key >= t->first_key &&
                 key < t->first_key + t->key_count;
    }
    return count;
}

static int count_owners_of_token(const struct core_sequence *s, int64_t token)
{
    int count = 0;
    for (size_t i = 0; i < s->run_count; i++)
        count += token >= s->run[i].begin && token < s->run[i].begin + s->run[i].rows;
    return count;
}

static bool has_backward(const struct core_sequence *s)
{
    for (size_t i = 0; i < s->tile_count; i++)
        if (s->tile[i].is_backward_tile)
            return true;
    return false;
}

/* True if sequence 0 of a plan is right, which is checked for every token and every pair. */
static bool plan_is_right_by_brute_force(const struct core_plan *plan)
{
    const struct core_sequence *s = &plan->sequence[0];
    int64_t owned[4] = {0};
    for (size_t i = 0; i < s->run_count; i++) {
        owned[s->run[i].owner] += s->run[i].rows;
        if (s->run[i].begin + s->run[i].rows > s->tokens)
            return false;
    }
    for (uint32_t r = 0; r < plan->rank_count; r++)
        if (owned[r] * plan->rank_count != s->tokens)
            return false;
    for (int64_t q = 0; q < s->tokens; q++) {
        if (count_owners_of_token(s, q) != 1)
            return false;
        for (int64_t k = 0; s->tile_count > 0 && k <= q; k++)
            for (int pass = 0; pass < (has_backward(s) ? 2 : 1); pass++)
                if (sees(plan, q, k) && count_tiles_holding_pair(s, pass, q, k) != 1)
                    return false;
    }
    for (size_t i = 0; i < s->tile_count; i++)
        if (s->tile[i].first_query + s->tile[i].query_count > s->tokens ||
            s->tile[i].first_key + s->tile[i].key_count > s->tokens)
            return false;
    return true;
}

/* Reads the first three numbers of a text; those that it lacks are -1. */
static void read_numbers(const char *text, int64_t number[3])
{
    for (int i = 0; i < 3; i++) {
        char *end = NULL;
        text += strcspn(text, "0123456789");
        number[i] = *text != '\0' ? strtoll(text, &end, 10) : -1;
        text = end != NULL ? end : text;
    }
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* True if the fault that a message states is in sequence 0 of the plan; false, too, for a message
 * of another form. */
static bool fault_of_message_is_real(const struct core_plan *plan, const char *message)
{
    const struct core_sequence *s = &plan->sequence[0];
    const char *at = strstr(message, "sequence 0: ");
    int64_t number[3];
    if (at == NULL)
        return false;
    at += strlen("sequence 0: ");
    read_numbers(at, number);
    const int64_t a = number[0], b = number[1], c = number[2];
    const bool backward = strstr(at, "(backward)") != NULL;
    if (begins(at, "query ") && strstr(at, ", which no tile") != NULL)
        return sees(plan, a, b) && count_tiles_holding_pair(s, backward, a, b) == 0;
    if (begins(at, "query ") && strstr(at, " are in two tiles") != NULL)
        return sees(plan, a, b) && count_tiles_holding_pair(s, backward, a, b) >= 2;
    if (begins(at, "token ") && strstr(at, " has two owners") != NULL)
        return count_owners_of_token(s, a) >= 2;
    if (begins(at, "token ") && strstr(at, " has no owner") != NULL)
        return count_owners_of_token(s, a) == 0;
    if (begins(at, "token ") && strstr(at, " has an owner, but the documents end at token") != NULL)
        return count_owners_of_token(s, a) > 0 && a >= s->tokens && b == s->tokens;
    if (begins(at, "the tile of query ") && strstr(at, " ends at") != NULL) {
        for (size_t i = 0; i < s->tile_count; i++)
            if (s->tile[i].first_query == a && s->tile[i].first_key == b &&
                (a + s->tile[i].query_count > s->tokens || b + s->tile[i].key_count > s->tokens))
                return true;
        return false;
    }
    if (begins(at, "rank ") && strstr(at, " tokens; each of ") != NULL) {
        int64_t rows = 0;
        for (size_t i = 0; i < s->run_count; i++)
            rows += s->run[i].owner == a ? s->run[i].rows : 0;
        return rows == b && rows * c != s->tokens;
    }
    return false;
}

/* Checks the loads of a right plan against every pair, and against the lower bounds. */
static void check_loads_against_pairs(const struct core_plan *plan, const char *label)
{
    const struct core_sequence *s = &plan->sequence[0];
    struct coverage_rank_load load[4];
    double pairs = 0, keys = 0, most_keys = 0, most_rows = 0, queries = 0;
    coverage_find_rank_loads(plan, 0, load);
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        pairs += load[r].visible_pairs;
        keys += (double)load[r].received_keys;
        queries += (double)load[r].received_queries;
        most_keys = fmax(most_keys, (double)load[r].received_keys);
        most_rows = fmax(most_rows, (double)(load[r].received_keys + 2 * load[r].received_queries));
    }
    const struct document_list list = core_plan_document_list(s);
    const struct row_bytes rows = {1, 1, 1};
    struct received_keys_lower_bound least =
        coverage_bound_of_received_keys(&list, plan->window_tokens, plan->rank_count, pairs);
    CHECK(label,
          queries > 0 || (keys > least.all_ranks - 1e-9 && most_keys > least.fullest_rank - 1e-9));
    CHECK(label, most_rows > coverage_bound_of_busiest_rank_bytes(
                                 pairs, plan->rank_count, (double)s->tokens / plan->rank_count,
                                 &rows, true) -
                                 1e-9);
    for (uint32_t r = 0; r < plan->rank_count; r++) {
        bool query[TOKENS_MAX] = {0}, key[TOKENS_MAX] = {0}, owned[TOKENS_MAX] = {0};
        struct coverage_rank_load want = {0};
        for (size_t i = 0; i < s->run_count; i++)
            for (int64_t t = 0; t < s->run[i].rows; t++)
                owned[s->run[i].begin + t] |= s->run[i].owner == r;
        for (int64_t q = 0; q < s->tokens; q++)
            for (int64_t k = 0; k <= q; k++) {
                bool mine = s->tile_count == 0 && owned[q];
                for (size_t i = 0; i < s->tile_count; i++) {
                    const struct core_tile *t = &s->tile[i];
                    mine |= !t->is_backward_tile && t->rank == r && q >= t->first_query &&
                            q < t->first_query + t->query_count && k >= t->first_key &&
                            k < t->first_key + t->key_count;
                }
                if (!mine || !sees(plan, q, k))
                    continue;
                want.visible_pairs++;
                query[q] = key[k] = true;
            }
        for (int64_t t = 0; t < s->tokens; t++) {
            want.received_keys += key[t] && !owned[t];
            want.received_queries += query[t] && !owned[t];
        }
        CHECK_CLOSE(label, load[r].visible_pairs, want.visible_pairs, 0);
        CHECK_INT(label, load[r].received_keys, want.received_keys);
        CHECK_INT(label, load[r].received_queries, want.received_queries);
    }
}

/* Documents of 8, 4 and 4 tokens on two ranks need no keys of others. One of 16 on four ranks takes
 * 4 + 8 + 12 rows, and the rank of its last token 12; one of 10 and one of 6 on four take 2 * 2 + 4
 * and 2 rows, and the rank of the longer one's last token 6. With a window of 3 there are so few
 * pairs (45) that the bound is 0. */
static void least_moved_key_rows_by_hand(void)
{
    static const int64_t three[] = {8, 12, 16}, one[] = {16}, two[] = {10, 16};
    static const struct {
        const char *label;
        struct document_list documents;
        int64_t window;
        uint32_t ranks;
        double pairs, all, most;
    } rows[] = {
        /* label, documents, window, ranks, pairs, all, most */
        {"three", {.document_count = 3, .document_end = three}, 0, 2, 56, 0, 0},
        {"one", {.document_count = 1, .document_end = one}, 0, 4, 136, 24, 12},
        {"two", {.document_count = 2, .document_end = two}, 0, 4, 76, 10, 6},
        {"window", {.document_count = 1, .document_end = one}, 3, 4, 45, 0, 0},
        {"wide window", {.document_count = 1, .document_end = one}, 12, 4, 126, 15.5, 3.875},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct received_keys_lower_bound least = coverage_bound_of_received_keys(
            &rows[i].documents, rows[i].window, rows[i].ranks, rows[i].pairs);
        CHECK_CLOSE(rows[i].label, least.all_ranks, rows[i].all, 1e-12);
        CHECK_CLOSE(rows[i].label, least.fullest_rank, rows[i].most, 1e-12);
    }
}

/* Random plans are right, print as they are read, and load ranks as every pair says. Of plans with one field changed,
 * each is rejected with a fault that is there, or is right by every pair. */
static void mutated_core_plans_are_judged_right(void)
{
    struct check_random random = check_random_make();
    int rejected = 0, accepted = 0;
    for (int trial = 0; trial < 1000; trial++) {
        struct text text = {0}, again = {0};
        struct core_plan plan = {0};
        struct diag diag = {0};
        write_random_core_plan(&text, &random);
        if (parse_right_plan(&plan, text.data)) {
            core_plan_print(&again, &plan);
            CHECK_TEXT("printed", again.data, text.data);
            CHECK_INT(text.data, core_plan_check(&plan, "t", &diag), STATUS_OK);
            CHECK(text.data, plan_is_right_by_brute_force(&plan));
            check_loads_against_pairs(&plan, text.data);
            plan_change_one_field(&plan, &random);
            bool right = core_plan_check(&plan, "t", &diag) == STATUS_OK;
            if (right)
                CHECK(text.data, plan_is_right_by_brute_force(&plan));
            else
                CHECK(diag.text, fault_of_message_is_real(&plan, diag.text));
            if (right)
                check_loads_against_pairs(&plan, text.data);
            rejected += !right;
            accepted += right;
        }
        diag_release(&diag);
        core_plan_release(&plan);
        text_release(&again);
        text_release(&text);
    }
    CHECK("both verdicts occur", rejected > 300 && accepted > 100);
}

static const struct check_case cases[] = {
    {"loads by hand", core_plan_pair_loads_by_hand},
    {"least bytes by hand", least_bytes_by_hand},
    {"least keys by hand", least_moved_key_rows_by_hand},
    {"faults have counterexamples", plan_faults_name_counterexamples},
    {"bad texts", wrong_texts_are_refused},
    {"plans and mutants", mutated_core_plans_are_judged_right},
};
CHECK_MAIN("core plan", cases)
