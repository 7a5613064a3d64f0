/* tests/exec/matrix.h: combinations of choices, and the check that each computes exact gradients.
 *
 * A factor is a choice of a step, such as the strategy; its levels are the values that it may take, by number from 0. A
 * product (struct matrix_row) is one level of every factor, and so a whole configuration. Factors that have a registry
 * or an enumeration (strategies, profiles, weights and others) take their levels from it, so a new entry is covered
 * without new test code. resolve_choices() decides which products are legal. A greedy search over seeded draws finds
 * rows, which are legal products, such that each pair of levels of two factors for which a legal product is drawn is in
 * one of them (rows_covering_pairs()). Then check_rows() builds, verifies and executes each row. Included by test files
 * only. */
#ifndef TESTS_EXEC_MATRIX_H
#define TESTS_EXEC_MATRIX_H

#include "exec/reference_check.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum factor {
    FACTOR_MODEL, /* shapes[]: MHA, GQA, MQA; both norms; SwiGLU, GELU; kinds of positions, biases */
    FACTOR_STRATEGY,
    FACTOR_PROFILE,
    FACTOR_WEIGHTS,
    FACTOR_ACTIVATIONS,
    FACTOR_OPTIMIZER,
    FACTOR_RANKS, /* 1 to 8 */
    FACTOR_HP,
    FACTOR_CP,
    FACTOR_PIPELINE,
    FACTOR_PP,
    FACTOR_SUBSEQUENCES,
    FACTOR_HSDP_SHARD, /* the nightly test draws the factors from here on */
    FACTOR_TP,
    FACTOR_PLACEMENT,
    FACTOR_STAGE_PLACEMENT,
    FACTOR_RING_LAYOUT,
    FACTOR_RING_WINDOW,
    FACTOR_RING_ROTATION,
    FACTOR_SEQ,
    FACTOR_MICRO_BATCH_SIZE,
    FACTOR_ACCUMULATION,
    FACTOR_LOSS_CHUNKS,
    FACTOR_FFN_CHUNKS,
    FACTOR_CHUNK_TOKENS,
    FACTOR_KV_OFFLOAD,
    FACTOR_FPDT_FETCH,
    FACTOR_CHUNK_ORDER,
    FACTOR_HELPER_WEIGHTS,
    FACTOR_UNITS_SHARED_BY_STAGES,
    FACTOR_TENSOR_PLAN,
    FACTOR_VOCABULARY,
    FACTOR_GRAD_SYNC,
    FACTOR_RESHARD,
    FACTOR_PARAMETERS_MEMORY,
    FACTOR_CORE_PLAN,
    FACTOR_COUNT
};

static const char *const factor_names[FACTOR_COUNT] = {
    [FACTOR_MODEL] = "model",
    [FACTOR_STRATEGY] = "strategy",
    [FACTOR_PROFILE] = "profile",
    [FACTOR_WEIGHTS] = "weights",
    [FACTOR_ACTIVATIONS] = "activations",
    [FACTOR_OPTIMIZER] = "optimizer",
    [FACTOR_RANKS] = "ranks",
    [FACTOR_HP] = "hp",
    [FACTOR_CP] = "cp",
    [FACTOR_PIPELINE] = "pipeline",
    [FACTOR_PP] = "pp",
    [FACTOR_SUBSEQUENCES] = "subsequences",
    [FACTOR_HSDP_SHARD] = "shard",
    [FACTOR_TP] = "tp",
    [FACTOR_PLACEMENT] = "placement",
    [FACTOR_STAGE_PLACEMENT] = "stage placement",
    [FACTOR_RING_LAYOUT] = "ring layout",
    [FACTOR_RING_WINDOW] = "window",
    [FACTOR_RING_ROTATION] = "rotation",
    [FACTOR_SEQ] = "seq",
    [FACTOR_MICRO_BATCH_SIZE] = "micro",
    [FACTOR_ACCUMULATION] = "accumulation",
    [FACTOR_LOSS_CHUNKS] = "loss chunks",
    [FACTOR_FFN_CHUNKS] = "ffn chunks",
    [FACTOR_CHUNK_TOKENS] = "chunk",
    [FACTOR_KV_OFFLOAD] = "kv offload",
    [FACTOR_FPDT_FETCH] = "fetch",
    [FACTOR_CHUNK_ORDER] = "chunk order",
    [FACTOR_HELPER_WEIGHTS] = "helpers",
    [FACTOR_UNITS_SHARED_BY_STAGES] = "shared",
    [FACTOR_TENSOR_PLAN] = "tensor plan",
    [FACTOR_VOCABULARY] = "vocabulary",
    [FACTOR_GRAD_SYNC] = "grad sync",
    [FACTOR_RESHARD] = "reshard",
    [FACTOR_PARAMETERS_MEMORY] = "parameters",
    [FACTOR_CORE_PLAN] = "core plan",
};

/* The values of the levels of factors without a registry; 0 leaves the choice open. */
static const int64_t factor_values[FACTOR_COUNT][8] = {
    [FACTOR_RANKS] = {1, 2, 3, 4, 5, 6, 7, 8},
    [FACTOR_HP] = {0, 1, 2, 4, 8},
    [FACTOR_CP] = {0, 1, 2, 4},
    [FACTOR_PP] = {0, 2, 4},
    [FACTOR_SUBSEQUENCES] = {0, 2, 3},
    [FACTOR_TP] = {0, 1, 2, 4, 8},
    [FACTOR_HSDP_SHARD] = {0, 1, 2, 4},
    [FACTOR_RING_WINDOW] = {0, 1, 2, 4},
    [FACTOR_SEQ] = {2, 6, 16}, /* multiplied by the number of ranks */
    [FACTOR_MICRO_BATCH_SIZE] = {1, 2},
    [FACTOR_ACCUMULATION] = {1, 2, 3},
    [FACTOR_LOSS_CHUNKS] = {1, 2, 3},
    [FACTOR_FFN_CHUNKS] = {1, 2, 3},
    [FACTOR_CHUNK_TOKENS] = {0, 1, 2, 3, 4}, /* tokens over ranks; the last chunk may be shorter */
};

/* The subsequences that stages share, by level; level 0 leaves the choice open, which shares all. */
static const struct shared_units shared_units_of_level[] = {
    {SHARED_UNITS_UP_TO_IDLE_STAGES, SHARED_UNITS_UP_TO_IDLE_STAGES},
    {SHARED_UNITS_UP_TO_IDLE_STAGES, 0},
    {1, 0},
    {1, 1},
    {0, 1},
    {0, 0}};

/* The rules by which tokens are dealt, by level; level 0 leaves them to the layout. */
static const char *const factor_core_plans[] = {
    NULL,          "contiguous", "striped",    "zigzag", "per-document", "chunks:2",
    "zigzag-ring", "gather",     "token-ring", "burst",  "move:1",       "blocks:2"};

enum { LEVELS_MAX = 32 }; /* of a factor */

/* One configuration, which is a product of the factors: the level of each. */
struct matrix_row {
    uint8_t level[FACTOR_COUNT];
};

/* How many levels of each factor a test tries, from level 0 on. */
struct factor_level_counts {
    uint8_t levels[FACTOR_COUNT];
};

/* Returns all levels. A test lowers a number to try fewer. */
static inline struct factor_level_counts factors_with_all_levels(void)
{
    size_t strategies, profiles;
    strategies_list(&strategies);
    profiles_list(&profiles);
    return (struct factor_level_counts){{
        [FACTOR_MODEL] = SHAPE_COUNT,
        [FACTOR_STRATEGY] = (uint8_t)strategies,
        [FACTOR_PROFILE] = (uint8_t)profiles,
        [FACTOR_WEIGHTS] = CHOICE_WEIGHTS_COUNT,
        [FACTOR_ACTIVATIONS] = CHOICE_ACTIVATIONS_COUNT,
        [FACTOR_OPTIMIZER] = CHOICE_OPTIMIZER_COUNT,
        [FACTOR_RANKS] = 8,
        [FACTOR_HP] = 5,
        [FACTOR_CP] = 4,
        [FACTOR_PIPELINE] = CHOICE_PIPELINE_COUNT,
        [FACTOR_PP] = 3,
        [FACTOR_SUBSEQUENCES] = 3,
        [FACTOR_TP] = 5,
        [FACTOR_HSDP_SHARD] = 4,
        [FACTOR_PLACEMENT] = PLACEMENT_COUNT,
        [FACTOR_STAGE_PLACEMENT] = STAGE_PLACEMENT_COUNT,
        [FACTOR_RING_LAYOUT] = RING_LAYOUT_COUNT,
        [FACTOR_RING_WINDOW] = 4,
        [FACTOR_RING_ROTATION] = ROTATION_COUNT,
        [FACTOR_SEQ] = 3,
        [FACTOR_MICRO_BATCH_SIZE] = 2,
        [FACTOR_ACCUMULATION] = 3,
        [FACTOR_LOSS_CHUNKS] = 3,
        [FACTOR_FFN_CHUNKS] = 3,
        [FACTOR_CHUNK_TOKENS] = 5,
        [FACTOR_KV_OFFLOAD] = KV_OFFLOAD_COUNT,
        [FACTOR_FPDT_FETCH] = FETCH_COUNT,
        [FACTOR_CHUNK_ORDER] = ORDER_COUNT,
        [FACTOR_HELPER_WEIGHTS] = MSP_WEIGHTS_COUNT,
        [FACTOR_UNITS_SHARED_BY_STAGES] = ARRAY_LEN(shared_units_of_level),
        [FACTOR_TENSOR_PLAN] = TENSOR_PLAN_COUNT,
        [FACTOR_VOCABULARY] = VOCABULARY_COUNT,
        [FACTOR_GRAD_SYNC] = GRAD_SYNC_COUNT,
        [FACTOR_RESHARD] = RESHARD_COUNT,
        [FACTOR_PARAMETERS_MEMORY] = PARAMETERS_COUNT,
        [FACTOR_CORE_PLAN] = ARRAY_LEN(factor_core_plans),
    }};
}

/* Returns the configuration as a request in fp32, with the attention of the CPU. */
static inline struct request configuration_request(const struct matrix_row *product)
{
    size_t count;
    const uint8_t *l = product->level;
    int64_t value[FACTOR_COUNT];
    for (int f = 0; f < FACTOR_COUNT; f++)
        value[f] = l[f] < ARRAY_LEN(factor_values[f]) ? factor_values[f][l[f]] : 0;
    struct request request = {
        .model = &shapes[l[FACTOR_MODEL]],
        .strategy = strategies_list(&count)[l[FACTOR_STRATEGY]].name,
        .profile = profiles_list(&count)[l[FACTOR_PROFILE]].name,
        .weights = l[FACTOR_WEIGHTS],
        .activations = l[FACTOR_ACTIVATIONS],
        .optimizer = l[FACTOR_OPTIMIZER],
        .attention_impl = ATTENTION_CPU,
        .dtype = DTYPE_F32,
        .ranks = value[FACTOR_RANKS],
        .hp = value[FACTOR_HP],
        .cp = value[FACTOR_CP],
        .pipeline = l[FACTOR_PIPELINE],
        .pp = value[FACTOR_PP],
        .subsequences = value[FACTOR_SUBSEQUENCES],
        .tp = value[FACTOR_TP],
        .shard = value[FACTOR_HSDP_SHARD],
        .placement = l[FACTOR_PLACEMENT],
        .stage_placement = l[FACTOR_STAGE_PLACEMENT],
        .ring_layout = l[FACTOR_RING_LAYOUT],
        .ring_window = value[FACTOR_RING_WINDOW],
        .rotation = l[FACTOR_RING_ROTATION],
        .tensor_plan = l[FACTOR_TENSOR_PLAN],
        .vocabulary = l[FACTOR_VOCABULARY],
        .grad_sync = l[FACTOR_GRAD_SYNC],
        .reshard = l[FACTOR_RESHARD],
        .parameters = l[FACTOR_PARAMETERS_MEMORY],
        .core_plan = factor_core_plans[l[FACTOR_CORE_PLAN]],
        .seq = value[FACTOR_SEQ] * value[FACTOR_RANKS],
        .micro_batch = value[FACTOR_MICRO_BATCH_SIZE],
        .loss_chunks = value[FACTOR_LOSS_CHUNKS],
        .ffn_chunks = value[FACTOR_FFN_CHUNKS],
        .chunk_tokens = value[FACTOR_CHUNK_TOKENS] * value[FACTOR_RANKS],
        .kv_offload = l[FACTOR_KV_OFFLOAD],
        .chunk_fetch = l[FACTOR_FPDT_FETCH],
        .chunk_order = l[FACTOR_CHUNK_ORDER],
        .helpers = l[FACTOR_HELPER_WEIGHTS],
        .shared_units = l[FACTOR_UNITS_SHARED_BY_STAGES] > 0
                            ? &shared_units_of_level[l[FACTOR_UNITS_SHARED_BY_STAGES]]
                            : NULL,
        .sm = 80,
        .gpus_per_node = 2,
    };
    return request;
}

/* Fills *choices and returns true if the product is legal; else *why gets the reason. why may be NULL: a search asks
 * about a million products, and half of its time would go into messages. */
static inline bool configuration_is_legal(const struct matrix_row *product, struct choices *choices,
                                          struct diag *why)
{
    struct request request = configuration_request(product);
    if (why != NULL)
        diag_clear(why);
    struct request one = request; /* without a pipeline, to learn the degree of data parallelism */
    one.pipeline = CHOICE_PIPELINE_NONE;
    one.subsequences = 0;
    if (resolve_choices(choices, &one, NULL, why) != STATUS_OK)
        return false;
    request.global_batch = choices->dp * choices->micro_batch *
                           factor_values[FACTOR_ACCUMULATION][product->level[FACTOR_ACCUMULATION]];
    return resolve_choices(choices, &request, NULL, why) == STATUS_OK;
}

/* Writes the choices in one line, for messages, and returns it. */
static inline const char *choices_label(const struct choices *c, char *text, size_t size)
{
    size_t count;
    snprintf(
        text, size,
        "%s %s %s %s %s %s %s pp %u x %u dp %u cp %u hp %u tp %u %s %s sync %s reshard %s on %s "
        "window %u %s shard %u seq "
        "%" PRId64 " / %u micro %" PRId64 " x %u loss %u ffn %u "
        "chunk %" PRId64 " x %u offload %s %s fetch %s helpers %s %s shared %u %u",
        c->model->name, strategies_list(&count)[c->strategy].name, c->profile->name,
        weights_names[c->weights], activations_names[c->activations], optimizer_names[c->optimizer],
        pipeline_names[c->pipeline], c->pp, c->virtual_stages, c->dp, c->cp, c->hp, c->tp,
        tensor_plan_names[c->tensor_plan], vocabulary_names[c->vocabulary],
        grad_sync_names[c->grad_sync], reshard_names[c->reshard], parameters_names[c->parameters],
        c->ring_window, rotation_names[c->rotation], c->shard, c->seq, c->subsequences,
        c->micro_batch, c->accumulation, c->loss_chunks, c->ffn_chunks, c->chunk_tokens,
        c->chunk_count, kv_offload_names[c->kv_offload], chunk_order_names[c->chunk_order],
        fetch_names[c->chunk_fetch], helper_names[c->helpers], dtype_name(c->dtype),
        c->shared_units.first, c->shared_units.last);
    return text;
}

/* ---- rows that cover pairs of levels ---- */

/* State of a pair of levels. PAIR_REFUSED: DRAWS products with this pair were drawn, and none is legal. */
enum { PAIR_OPEN, PAIR_COVERED, PAIR_REFUSED };

struct matrix_rows {
    struct matrix_row *row;
    size_t count;
    /* PAIR_*, by index_of_level() of the factor with the lower number, then of the other one */
    uint8_t covered[FACTOR_COUNT * LEVELS_MAX][FACTOR_COUNT * LEVELS_MAX];
    size_t pairs, refused; /* numbers of covered and refused pairs */
    char reason[256];      /* why the last refused pair is not legal */
};

/* To cover a pair, DRAWS products are drawn at most, and the best of the first CANDIDATES legal ones is taken. */
enum { DRAWS = 2000, CANDIDATES = 24 };

static inline size_t index_of_level(int factor, uint8_t level)
{
    return (size_t)factor * LEVELS_MAX + level;
}

/* Draws a level of each factor. Degrees and other choices of which few values are legal together are left open, level
 * 0, in half of the draws. */
static inline struct matrix_row draw_configuration(const struct factor_level_counts *factors,
                                                   struct check_random *random)
{
    struct matrix_row product;
    for (int f = 0; f < FACTOR_COUNT; f++) {
        product.level[f] = (uint8_t)check_random_i64(random, 0, factors->levels[f] - 1);
        bool leave_open =
            f == FACTOR_HP || f == FACTOR_CP || f == FACTOR_TP || f == FACTOR_HSDP_SHARD ||
            f == FACTOR_RING_WINDOW || f == FACTOR_PIPELINE || f == FACTOR_PP ||
            f == FACTOR_SUBSEQUENCES || f == FACTOR_CHUNK_TOKENS || f == FACTOR_KV_OFFLOAD ||
            f == FACTOR_CHUNK_ORDER || f == FACTOR_FPDT_FETCH || f == FACTOR_CORE_PLAN;
        if (leave_open && check_random_i64(random, 0, 1) == 0)
            product.level[f] = 0;
    }
    return product;
}

/* Returns the number of open pairs that the product would cover. */
static inline size_t newly_covered_pairs(const struct matrix_rows *rows,
                                         const struct matrix_row *product)
{
    size_t count = 0;
    for (int f = 0; f < FACTOR_COUNT; f++)
        for (int g = f + 1; g < FACTOR_COUNT; g++)
            count += rows->covered[index_of_level(f, product->level[f])]
                                  [index_of_level(g, product->level[g])] == PAIR_OPEN;
    return count;
}

/* Adds the product to the rows, and marks its pairs as covered. */
static inline void add_row(struct matrix_rows *rows, const struct matrix_row *product)
{
    rows->row = heap_realloc(rows->row, rows->count + 1, sizeof *rows->row);
    rows->row[rows->count++] = *product;
    for (int f = 0; f < FACTOR_COUNT; f++)
        for (int g = f + 1; g < FACTOR_COUNT; g++) {
            uint8_t *pair = &rows->covered[index_of_level(f, product->level[f])]
                                          [index_of_level(g, product->level[g])];
            rows->pairs += *pair != PAIR_COVERED;
            *pair = PAIR_COVERED;
        }
}

/* Draws products with the pair (f: i, g: j), and adds the legal one that covers the most open pairs. If no drawn
 * product is legal, it marks the pair as refused. */
static inline void add_matrix_row_covering_pair(struct matrix_rows *rows,
                                                const struct factor_level_counts *factors,
                                                struct check_random *random, int f, uint8_t i,
                                                int g, uint8_t j)
{
    struct matrix_row best, product;
    struct choices choices;
    size_t most = 0, found = 0;
    for (int draw = 0; draw < DRAWS && found < CANDIDATES; draw++) {
        product = draw_configuration(factors, random);
        product.level[f] = i;
        product.level[g] = j;
        if (!configuration_is_legal(&product, &choices, NULL))
            continue;
        size_t count = newly_covered_pairs(rows, &product);
        found++;
        if (count > most) {
            most = count;
            best = product;
        }
    }
    if (found > 0) {
        add_row(rows, &best);
    } else {
        rows->covered[index_of_level(f, i)][index_of_level(g, j)] = PAIR_REFUSED;
        rows->refused++;
        struct diag why = {0};
        configuration_is_legal(&product, &choices, &why);
        snprintf(rows->reason, sizeof rows->reason, "%s %d with %s %d: %s", factor_names[f], i,
                 factor_names[g], j, why.text);
        diag_release(&why);
    }
}

/* Returns rows that cover every pair for which a legal product is drawn, to be freed by rows_free(). */
static inline struct matrix_rows *rows_covering_pairs(const struct factor_level_counts *factors,
                                                      uint64_t seed)
{
    struct matrix_rows *rows = heap_zalloc(1, sizeof *rows);
    struct check_random random = {seed};
    for (int f = 0; f < FACTOR_COUNT; f++)
        for (int g = f + 1; g < FACTOR_COUNT; g++)
            for (uint8_t i = 0; i < factors->levels[f]; i++)
                for (uint8_t j = 0; j < factors->levels[g]; j++)
                    if (rows->covered[index_of_level(f, i)][index_of_level(g, j)] == PAIR_OPEN)
                        add_matrix_row_covering_pair(rows, factors, &random, f, i, g, j);
    return rows;
}

static inline void rows_free(struct matrix_rows *rows)
{
    free(rows->row);
    free(rows);
}

/* Checks that every pair was covered or refused, and that every level of every factor is in some row. */
static inline void rows_check_all_pairs_covered(const struct matrix_rows *rows,
                                                const struct factor_level_counts *factors)
{
    char label[64];
    for (int f = 0; f < FACTOR_COUNT; f++)
        for (uint8_t i = 0; i < factors->levels[f]; i++) {
            size_t with = 0;
            for (size_t r = 0; r < rows->count; r++)
                with += rows->row[r].level[f] == i;
            snprintf(label, sizeof label, "rows with %s %d", factor_names[f], i);
            CHECK(label, with > 0);
            for (int g = f + 1; g < FACTOR_COUNT; g++)
                for (uint8_t j = 0; j < factors->levels[g]; j++) {
                    size_t both = 0;
                    for (size_t r = 0; r < rows->count; r++)
                        both += rows->row[r].level[f] == i && rows->row[r].level[g] == j;
                    snprintf(label, sizeof label, "%s %d with %s %d", factor_names[f], i,
                             factor_names[g], j);
                    if (rows->covered[index_of_level(f, i)][index_of_level(g, j)] != PAIR_REFUSED)
                        CHECK(label, both > 0);
                }
        }
}

/* ---- checks of one configuration and of rows ---- */

static const char *matrix_backend; /* NULL: the CPU */
static bool matrix_epilogues;      /* exec_options.uses_epilogues */
static enum exec_attention matrix_attention;

/* Checks that the schedule of the choices verifies and computes the reference's loss, gradients, parameters and
 * moments. With poison, it also checks that every element is written before it is read. */
static inline bool check_choices(const struct choices *choices, bool poison)
{
    char label[256];
    struct ir ir = {0};
    struct diag diag = {0};
    struct reference_check check = {0};
    const struct exec_options options = {.backend = matrix_backend,
                                         .uses_epilogues = matrix_epilogues,
                                         .attention = matrix_attention,
                                         .finds_unwritten_reads = poison,
                                         .stall_limit_s = 60};
    choices_label(choices, label, sizeof label);
    enum status status = step_build(&ir, choices, &diag);
    if (status == STATUS_OK)
        status = verify(&ir, NULL, label, NULL, &diag);
    if (status == STATUS_OK)
        status = reference_check_run_step(&check, &ir, label, choices->model, 11, &options, &diag);
    if (status == STATUS_OK)
        status = reference_check_explain(&check, label, &diag);
    bool holds = CHECK_INT(label, status, STATUS_OK);
    if (!holds)
        fputs(diag.text, stderr);
    reference_check_release(&check);
    ir_release(&ir);
    diag_release(&diag);
    return holds;
}

/* Checks the choices if they are in the sample of the day: one of `days` of all that a program passes to this function
 * (check_is_sampled_today()). */
static inline bool check_choices_if_sampled_today(const struct choices *choices, bool poison,
                                                  size_t days)
{
    static size_t calls;
    return !check_is_sampled_today(calls++, SIZE_MAX, days) || check_choices(choices, poison);
}

/* Checks the choices of a request, with poison, if they are in the sample of the day. A request that does not resolve
 * is a failure. */
static inline void check_request_if_sampled_today(const struct request *request, size_t days)
{
    struct choices choices;
    struct diag diag = {0};
    if (CHECK_INT(request->strategy, resolve_choices(&choices, request, NULL, &diag), STATUS_OK))
        check_choices_if_sampled_today(&choices, true, days);
    else
        fputs(diag.text, stderr);
    diag_release(&diag);
}

/* Checks the rows of the day, one of `days` (0: all rows), and prints how many pairs of levels the rows cover. */
static inline void check_rows(const struct matrix_rows *rows, bool poison, size_t days)
{
    struct diag why = {0};
    size_t checked = 0;
    for (size_t r = 0; r < rows->count; r++) {
        struct choices choices;
        if (days > 0 && !check_is_sampled_today(r, rows->count, days))
            continue;
        if (checked > 0 && checked % 25 == 0) /* for a run that is ended early */
            printf("%zu schedules checked\n", checked);
        if (CHECK("legal", configuration_is_legal(&rows->row[r], &choices, &why)))
            check_choices(&choices, poison);
        checked++;
    }
    printf("%zu of ", checked);
    diag_release(&why);
    printf("%zu schedules hold all %zu pairs of choices that are legal; %zu pairs are not, such as "
           "%s",
           rows->count, rows->pairs, rows->refused, rows->reason);
}

#endif
