/* tests/predict/test_routing_load.c: shares are drawn as unevenly as the distribution says, or read
 * from files. */
#include "predict/setup/routing_load.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* The mean of (copies of the fullest rank / mean) over 300 draws. The expectations are of 300 draws
 * in Python (normalised random.gammavariate), without rounding to copies. */
static void draws_are_as_uneven_as_their_alpha(void)
{
    static const struct {
        uint32_t experts, ranks;
        double alpha, want;
    } rows[] = {{128, 8, 1, 1.37},  {128, 8, 4, 1.19},  {128, 8, 10, 1.12},  {128, 8, 100, 1.04},
                {128, 32, 1, 2.32}, {128, 32, 4, 1.58}, {128, 32, 10, 1.36}, {128, 32, 100, 1.11},
                {256, 64, 1, 2.54}, {256, 64, 4, 1.68}, {256, 64, 10, 1.41}, {256, 64, 100, 1.12}};
    enum { DRAWS = 300, TOKENS = 65536, COPIES = 8 };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct transformer model = {
            .layers = 2, .experts = rows[i].experts, .experts_per_token = COPIES};
        double sum = 0;
        for (uint64_t seed = 1; seed <= DRAWS; seed++) {
            struct arena arena = {0};
            struct routing r;
            routing_draw(&r, &arena, &model, rows[i].alpha, seed);
            const struct routing_fullest_rank fullest =
                routing_find_fullest_rank(&r, 0, TOKENS, rows[i].ranks);
            sum += (double)fullest.copies * rows[i].ranks / ((double)TOKENS * COPIES);
            CHECK_INT("one list for all layers", r.list_count, 1);
            arena_release(&arena);
        }
        CHECK_CLOSE("fullest over mean", sum / DRAWS, rows[i].want, 0.03);
    }
}

static void texts_of_distributions_are_read(void)
{
    double alpha;
    uint64_t seed;
    CHECK("alpha", routing_is_drawn("dirichlet:0.5", &alpha, &seed) && alpha == 0.5 && seed == 1);
    CHECK("seed", routing_is_drawn("dirichlet:10,7", &alpha, &seed) && alpha == 10 && seed == 7);
    CHECK("0", !routing_is_drawn("dirichlet:0", &alpha, &seed));
    CHECK("nan", !routing_is_drawn("dirichlet:nan", &alpha, &seed));
    CHECK("words", !routing_is_drawn("dirichlet:1,x", &alpha, &seed));
    CHECK("file", !routing_is_drawn("shares.csv", &alpha, &seed));
}

static void check_file(const char *text, const char *words, const int64_t *want)
{
    static const struct transformer model = {.layers = 2, .experts = 3, .experts_per_token = 2};
    char name[512];
    struct arena arena = {0};
    struct routing r = {0};
    struct diag diag = {0};
    snprintf(name, sizeof name, "%s/shares.csv", check_temp_dir());
    FILE *file = fopen(name, "w");
    if (!CHECK("file", file != NULL && fputs(text, file) >= 0))
        return;
    fclose(file);
    const enum status status = routing_load(&r, &arena, &model, name, &diag);
    if (words != NULL) {
        CHECK_INT(words, status, STATUS_BAD_INPUT);
        CHECK(words, diag.text != NULL && strstr(diag.text, words) != NULL);
    } else if (CHECK_INT("read", status, STATUS_OK))
        for (int i = 0; i < 6; i++)
            CHECK_INT("share", r.expert_shares_by_list[r.share_list_by_layer[i / 3]][i % 3],
                      want[i]);
    diag_release(&diag);
    arena_release(&arena);
}

static void files_have_a_share_for_each_layer_and_expert(void)
{
    check_file("layer,expert,share\n0,0,1\n0,2,4\n# a comment\n1,1,0.5\n", NULL,
               (const int64_t[]){250000, 0, 1000000, 0, 1000000, 0});
    check_file("*,0,2\n*,1,1\n*,2,1e-12\n", NULL,
               (const int64_t[]){1000000, 500000, 1, 1000000, 500000, 1});
    check_file("0,0,1\n", "no expert of layer 1 has a share above 0", NULL);
    check_file("2,0,1\n", "'2' is not a layer, or *, from 0 to 1", NULL);
    check_file("*,3,1\n", "'3' is not an expert, from 0 to 2", NULL);
    check_file("*,0,-1\n", "'-1' is not a share", NULL);
    check_file("*,0,1\n1,0,2\n", ":2: error: the share of expert 0 of layer 1 is given twice",
               NULL);
    check_file("*,0\n", "a line has a layer, an expert and its share", NULL);
}

static const struct check_case cases[] = {
    {"draws are as uneven as their alpha", draws_are_as_uneven_as_their_alpha},
    {"texts of distributions are read", texts_of_distributions_are_read},
    {"files have a share for each layer and expert", files_have_a_share_for_each_layer_and_expert},
};

CHECK_MAIN("routing of options", cases)
