/* The dynamic program of traces/align.h. Cell (i, j) holds the best score of aligning the first i items of one side
 * with the first j items of the other, and the last block or gap of that alignment, so that the alignment can be
 * read backwards from the last cell. */
#include "traces/align.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Scores. Each item of a block scores SCORE_MATCHED_ITEM. If the amount of an item is unknown, the items of its block
 * score SCORE_ITEM_OF_UNKNOWN_AMOUNT instead, except in attention, whose amounts are never known. The other scores are
 * small: they decide between alignments in which about equally many items are in blocks. */
#define SCORE_MATCHED_ITEM 1.0f
#define SCORE_ITEM_OF_UNKNOWN_AMOUNT 0.5f
#define SCORE_EXTRA_BLOCK_ITEM (-0.25f) /* for each item of a block beyond one on each side */
#define SCORE_SAME_PHASE 0.25f          /* for a block whose first items have the same phase */
#define SCORE_SAME_REPEAT_NUMBER                                                                   \
    0.25f /* for a block whose first items have the same repeated_layer_number */

/* Amounts count as equal up to this relative difference, because programs pad shapes. */
#define FLOPS_OR_BYTES_TOLERANCE 0.02
#define ALIGNMENT_CELLS_MAX ((size_t)16 << 20) /* the most cells that are filled, about */

enum { MOVE_SKIP_A, MOVE_SKIP_B, MOVE_BLOCK };

struct alignment {
    const struct align_item *a_items, *b_items;
    size_t a_count, b_count;
    /* number of cells of a row that are filled on each side of the diagonal */
    size_t band;
    size_t cells_per_row; /* number of cells of a row for which there is room */
    uint8_t *moves;       /* per cell: MOVE_SKIP_*, or MOVE_BLOCK + move_code_of_block() */
    float *scores;        /* scores of the last ALIGN_MANY + 1 rows */
    double *a_amount_before, *b_amount_before; /* [i] the sum of the amounts of items 0 to i - 1 */
    /* [i] the length of the run of items that ends with item i - 1 and has one class and known amounts */
    uint32_t *a_run_length, *b_run_length;
};

static uint8_t move_code_of_block(size_t a, size_t b)
{
    return (uint8_t)((a - 1) * ALIGN_MANY + (b - 1));
}

/* Returns the first column j that is filled in row i. */
static size_t first_filled_column(const struct alignment *p, size_t i)
{
    size_t middle =
        p->a_count == 0 ? 0 : (size_t)((double)i / (double)p->a_count * (double)p->b_count);
    return middle > p->band ? middle - p->band : 0;
}

static float *score_cell(const struct alignment *p, size_t i, size_t j)
{
    size_t begin = first_filled_column(p, i);
    if (j < begin || j - begin >= p->cells_per_row)
        return NULL;
    return &p->scores[(i % (ALIGN_MANY + 1)) * p->cells_per_row + (j - begin)];
}

static uint8_t *move_at(const struct alignment *p, size_t i, size_t j)
{
    return &p->moves[i * p->cells_per_row + (j - first_filled_column(p, i))];
}

static void prefix_sums_of_flops_or_bytes(const struct align_item *item, size_t count, double *sum,
                                          uint32_t *run)
{
    sum[0] = 0;
    run[0] = 0;
    for (size_t i = 0; i < count; i++) {
        bool goes_on = i > 0 && run[i] > 0 && item[i].class == item[i - 1].class;
        sum[i + 1] = sum[i] + item[i].flops_or_bytes;
        run[i + 1] = item[i].flops_or_bytes > 0 ? (goes_on ? run[i] + 1 : 1) : 0;
    }
}

static float similarity_bonus(const struct align_item *a, const struct align_item *b)
{
    float score = 0;
    if (a->phase == b->phase)
        score += SCORE_SAME_PHASE;
    if (a->repeated_layer_number >= 0 && a->repeated_layer_number == b->repeated_layer_number)
        score += SCORE_SAME_REPEAT_NUMBER;
    return score;
}

static void try_block_of_sizes(const struct alignment *p, size_t i, size_t j, size_t a, size_t b,
                               float worth, float *best, uint8_t *move)
{
    const float *before = score_cell(p, i - a, j - b);
    if (before == NULL || *before == -INFINITY)
        return;
    float score = *before + worth + similarity_bonus(&p->a_items[i - a], &p->b_items[j - b]);
    if (score > *best) {
        *best = score;
        *move = (uint8_t)(MOVE_BLOCK + move_code_of_block(a, b));
    }
}

static bool are_two_items_of_equal_amount(const struct align_item *item, size_t count)
{
    return count == 2 &&
           fabs(item[0].flops_or_bytes - item[1].flops_or_bytes) <=
               FLOPS_OR_BYTES_TOLERANCE * fmax(item[0].flops_or_bytes, item[1].flops_or_bytes);
}

/* True if the items a[0..a_count) and b[0..b_count) may be a block. Sums over many items agree by chance, so one side
 * must have one item, or two equal ones: the two backward products of a fused projection (for inputs and for weights)
 * have the same flops, and match the products of several projections. */
static bool block_is_allowed(const struct align_item *a, size_t a_count, const struct align_item *b,
                             size_t b_count)
{
    return a_count == 1 || b_count == 1 ||
           (b_count <= ALIGN_SOME && are_two_items_of_equal_amount(a, a_count)) ||
           (a_count <= ALIGN_SOME && are_two_items_of_equal_amount(b, b_count));
}

/* Tries all blocks that end with items i - 1 and j - 1 and whose amounts are known and equal. If one of them gives cell
 * (i, j) a higher score than *best, sets *best and *move to it. */
static void try_block_sizes_at_cell(const struct alignment *p, size_t i, size_t j, float *best,
                                    uint8_t *move)
{
    /* For every b below `first`, the last b items have a smaller amount than the last a items of
     * the other side, and so than any larger number of them. */
    size_t first = 1;
    for (size_t a = 1; a <= ALIGN_MANY && a <= p->a_run_length[i]; a++) {
        double wanted = p->a_amount_before[i] - p->a_amount_before[i - a];
        for (size_t b = first; b <= ALIGN_MANY && b <= p->b_run_length[j]; b++) {
            double got = p->b_amount_before[j] - p->b_amount_before[j - b];
            if (got > wanted * (1 + FLOPS_OR_BYTES_TOLERANCE))
                break;
            if (got < wanted * (1 - FLOPS_OR_BYTES_TOLERANCE)) {
                first = b + 1;
                continue;
            }
            float worth =
                SCORE_MATCHED_ITEM * (float)(a + b) + SCORE_EXTRA_BLOCK_ITEM * (float)(a + b - 2);
            if (block_is_allowed(&p->a_items[i - a], a, &p->b_items[j - b], b))
                try_block_of_sizes(p, i, j, a, b, worth, best, move);
        }
    }
}

static void fill_alignment_cell(const struct alignment *p, size_t i, size_t j)
{
    float best = -INFINITY;
    uint8_t move = MOVE_SKIP_A;
    const float *above = i > 0 ? score_cell(p, i - 1, j) : NULL;
    const float *left = j > 0 ? score_cell(p, i, j - 1) : NULL;
    if (i == 0 && j == 0)
        best = 0;
    if (above != NULL)
        best = *above;
    if (left != NULL && *left > best) {
        best = *left;
        move = MOVE_SKIP_B;
    }
    if (i > 0 && j > 0 && p->a_items[i - 1].class == p->b_items[j - 1].class) {
        if (p->a_items[i - 1].flops_or_bytes > 0 && p->b_items[j - 1].flops_or_bytes > 0)
            try_block_sizes_at_cell(p, i, j, &best, &move);
        else
            try_block_of_sizes(p, i, j, 1, 1,
                               p->a_items[i - 1].class == CLASS_ATTENTION
                                   ? 2 * SCORE_MATCHED_ITEM
                                   : 2 * SCORE_ITEM_OF_UNKNOWN_AMOUNT,
                               &best, &move);
    }
    *score_cell(p, i, j) = best;
    *move_at(p, i, j) = move;
}

static size_t read_blocks_backwards(const struct alignment *p, struct align_matched_items **blocks)
{
    struct align_matched_items *block = heap_alloc(p->a_count + 1, sizeof *block);
    size_t count = 0, i = p->a_count, j = p->b_count;
    while (i > 0 || j > 0) {
        uint8_t move = *move_at(p, i, j);
        if (move == MOVE_SKIP_A && i > 0) {
            i--;
        } else if (move == MOVE_SKIP_B && j > 0) {
            j--;
        } else {
            assert(move >= MOVE_BLOCK);
            uint8_t a = (uint8_t)((move - MOVE_BLOCK) / ALIGN_MANY + 1);
            uint8_t b = (uint8_t)((move - MOVE_BLOCK) % ALIGN_MANY + 1);
            assert(i >= a && j >= b);
            i -= a;
            j -= b;
            block[count++] = (struct align_matched_items){(uint32_t)i, (uint32_t)j, a, b};
        }
    }
    for (size_t k = 0; k < count / 2; k++) {
        struct align_matched_items swap = block[k];
        block[k] = block[count - 1 - k];
        block[count - 1 - k] = swap;
    }
    *blocks = block;
    return count;
}

size_t align_blocks(const struct align_sequence *a, const struct align_sequence *b,
                    struct align_matched_items **blocks)
{
    assert(a->item_count <= ALIGN_ITEMS_MAX && b->item_count <= ALIGN_ITEMS_MAX);
    struct alignment p = {.a_items = a->items,
                          .b_items = b->items,
                          .a_count = a->item_count,
                          .b_count = b->item_count};
    /* If the whole table would be too large, only a band around the diagonal is filled. The band must be wider than the
     * number of columns by which the diagonal moves from one row to the next, so that bands of neighbouring rows
     * overlap. */
    size_t step = b->item_count / (a->item_count + 1) + 1;
    p.band = b->item_count;
    if ((a->item_count + 1) > ALIGNMENT_CELLS_MAX / (b->item_count + 1))
        p.band = ALIGNMENT_CELLS_MAX / 2 / (a->item_count + 1) + 2 * step;
    p.cells_per_row = p.band >= b->item_count ? b->item_count + 1 : 2 * p.band + 1;
    p.moves = heap_alloc(a->item_count + 1, p.cells_per_row);
    p.scores = heap_alloc(ALIGN_MANY + 1, p.cells_per_row * sizeof *p.scores);
    p.a_amount_before = heap_alloc(a->item_count + 1, sizeof *p.a_amount_before);
    p.b_amount_before = heap_alloc(b->item_count + 1, sizeof *p.b_amount_before);
    p.a_run_length = heap_alloc(a->item_count + 1, sizeof *p.a_run_length);
    p.b_run_length = heap_alloc(b->item_count + 1, sizeof *p.b_run_length);
    prefix_sums_of_flops_or_bytes(p.a_items, p.a_count, p.a_amount_before, p.a_run_length);
    prefix_sums_of_flops_or_bytes(p.b_items, p.b_count, p.b_amount_before, p.b_run_length);
    for (size_t i = 0; i <= p.a_count; i++) {
        size_t begin = first_filled_column(&p, i);
        for (size_t j = begin; j <= p.b_count && j - begin < p.cells_per_row; j++)
            fill_alignment_cell(&p, i, j);
    }
    size_t count = read_blocks_backwards(&p, blocks);
    free(p.moves);
    free(p.scores);
    free(p.a_amount_before);
    free(p.b_amount_before);
    free(p.a_run_length);
    free(p.b_run_length);
    return count;
}
