/* tests/schedule/test_partition.c: a sequence is cut into subsequences that take equally long, as SPPO's closed form
 * gives them, or are equally long. */
#include "schedule/pipeline/partition.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

/* The 65B model of SPPO: products take 24 h^2 flops per token and layer, h = 8192. */
static const struct transformer gpt = {.name = "gpt",
                                       .layers = 80,
                                       .hidden = 8192,
                                       .heads = 64,
                                       .kv_heads = 64,
                                       .head_dim = 128,
                                       .ffn = 4 * 8192,
                                       .vocab = 50257,
                                       .activation = ACTIVATION_GELU};
enum { SEQ = 131072 };

static void find_lengths_of_partition(int64_t *length, const struct partition *partition)
{
    struct diag diag = {0};
    CHECK_INT("made", partition_find_lengths(length, partition, &diag), STATUS_OK);
    CHECK_TEXT("no message", diag.text ? diag.text : "", "");
    diag_release(&diag);
    int64_t sum = 0;
    for (int64_t i = 0; i < partition->piece_count; i++) {
        sum += length[i];
        CHECK_INT("a multiple of the unit", length[i] % partition->token_unit, 0);
    }
    CHECK_INT("all tokens", sum, partition->tokens);
}

/* In a layer the first x tokens take l x + m x^2 flops: l = 24 h^2 for products, m = 4 h for full attention. Of N
 * pieces with equal flops the first has x_1 = S (-c + sqrt(c^2 + 4 (1 + c) / N)) / 2 tokens, where c = l / (m S). Full
 * attention has c = 24 h / (4 S) = 0.375; with N = 8, x_1 is 0.2675 S, and the last piece is 0.0747 S. If attention
 * counts half (m = 2 h), these are 0.75, 0.2245 and 0.0820. */
static void flops_follow_the_closed_form(void)
{
    static const struct {
        bool full;
        double first, last;
    } rows[] = {{true, 0.26750, 0.07472}, {false, 0.22446, 0.08201}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t length[8];
        find_lengths_of_partition(length,
                                  &(struct partition){.rule = PARTITION_FLOPS,
                                                      .tokens = SEQ,
                                                      .piece_count = 8,
                                                      .token_unit = 1,
                                                      .model = &gpt,
                                                      .assumes_full_attention = rows[i].full});
        CHECK_CLOSE("first", (double)length[0] / SEQ, rows[i].first, 1e-3);
        CHECK_CLOSE("last", (double)length[7] / SEQ, rows[i].last, 1e-3);
        for (int k = 1; k < 8; k++)
            CHECK("shorter and shorter", length[k] <= length[k - 1]);
    }
}

/* Returns seconds proportional to the flops of a piece, so that the roots are those of the closed form. */
static double seconds(const void *context, double begin, double end)
{
    const struct partition *p = context;
    double l = (double)transformer_layer_linear_flops_per_token(p->model), s = (double)p->tokens;
    double square = transformer_layer_attention_flops(p->model, p->tokens, true) / (s * s);
    return (l * (end - begin) + square * (end * end - begin * begin)) / 2e14;
}

static void roots_agree_with_the_closed_form(void)
{
    static const int64_t pieces[] = {1, 2, 3, 8, 32, 128};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        int64_t closed[128], found[128];
        struct partition p = {.rule = PARTITION_FLOPS,
                              .tokens = SEQ,
                              .piece_count = pieces[i],
                              .token_unit = 8,
                              .model = &gpt};
        find_lengths_of_partition(closed, &p);
        p.rule = PARTITION_TIME;
        p.seconds = seconds;
        p.context = &p;
        find_lengths_of_partition(found, &p);
        for (int64_t k = 1; k < pieces[i]; k++)
            CHECK("within a unit", llabs(closed[k] - found[k]) <= 8);
    }
}

static void equal_lengths_leave_the_rest_to_the_first(void)
{
    int64_t length[3];
    find_lengths_of_partition(
        length, &(struct partition){
                    .rule = PARTITION_LENGTH, .tokens = 80, .piece_count = 3, .token_unit = 8});
    CHECK_INT("first", length[0], 32); /* a third is 26.7: 24, and the first gets the remaining 8 */
    CHECK_INT("second", length[1], 24);
    CHECK_INT("third", length[2], 24);
    struct diag diag = {0};
    const struct partition many = {
        .rule = PARTITION_LENGTH, .tokens = 80, .piece_count = 11, .token_unit = 8};
    CHECK_INT("too many", partition_find_lengths((int64_t[11]){0}, &many, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("message", diag.text,
               "--subsequences: error: 80 tokens do not make 11 subsequences, each a multiple of 8 "
               "tokens; at most 10 subsequences would do\n");
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"flops follow the closed form", flops_follow_the_closed_form},
    {"roots agree with the closed form", roots_agree_with_the_closed_form},
    {"equal lengths leave the rest to the first", equal_lengths_leave_the_rest_to_the_first},
};
CHECK_MAIN("partition", cases)
