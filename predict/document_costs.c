#include "predict/document_costs.h"

#include "schedule/ir/visible.h"

#include <stdlib.h>

/* Returns the first rank of each place, on the heap. */
static uint32_t *first_rank_of_places(const struct ir *ir)
{
    uint32_t places = ir_place_count(ir), *rank = heap_alloc(places, sizeof *rank);
    for (uint32_t r = mesh_rank_count(&ir->mesh); r-- > 0;)
        rank[ir_place_of_rank(ir, r)] = r;
    return rank;
}

double document_cost_s(const struct ir *ir, const struct work *work, uint32_t rank,
                       const struct device_cost *cost, const struct document_costs_options *options)
{
    struct visible_pieces pieces = {0};
    /* the peak is that of the cluster file, which may differ from that of the cost file */
    if (cost->is_ideal)
        return ir_work_flops_on_rank(ir, work, rank) / options->peak_flop_per_s;
    visible_find_pieces(ir, work, rank, &pieces);
    double seconds = options->slowdown * cost_document_attention_s(cost, options->impl, work,
                                                                   pieces.piece, pieces.count);
    visible_release(&pieces);
    return seconds;
}

double **document_costs_by_place(const struct ir *ir, const struct device_cost *cost,
                                 const struct document_costs_options *options)
{
    double **seconds = NULL;
    uint32_t *rank = NULL, places = 0;
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        if (!work_pairs_depend_on_rank(work))
            continue;
        if (seconds == NULL) {
            seconds = heap_zalloc(ir->shape_count, sizeof *seconds);
            rank = first_rank_of_places(ir);
            places = ir_place_count(ir);
        }
        seconds[s] = heap_alloc(places, sizeof **seconds);
        for (uint32_t p = 0; p < places; p++)
            seconds[s][p] = document_cost_s(ir, work, rank[p], cost, options);
    }
    free(rank);
    return seconds;
}

/* A shape of work that work_pairs_depend_on_rank() accepts. */
struct document_masked_work {
    const struct work *work;
    uint32_t shape;
};

static int compare_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Orders shapes such that counterparts compare as equal: shapes that different ranks run in place of each other. It
 * compares only properties that counterparts have in common. If documents were whole sequences, counterparts would have
 * equally many pairs. */
static int compare_as_counterpart_shapes(const void *left, const void *right)
{
    const struct work *a = ((const struct document_masked_work *)left)->work,
                      *b = ((const struct document_masked_work *)right)->work;
    const int64_t key[][2] = {
        {a->kind, b->kind},
        {a->attention.sequence, b->attention.sequence},
        {a->attention.away, b->attention.away},
        {a->attention.away_out, b->attention.away_out},
        {a->attention.q * a->attention.kv, b->attention.q * b->attention.kv},
        {a->attention.heads, b->attention.heads},
        {a->attention.window, b->attention.window},
    };
    int order = 0;
    for (size_t i = 0; i < ARRAY_LEN(key) && order == 0; i++)
        order = compare_i64(key[i][0], key[i][1]);
    return order;
}

/* Returns an array on the heap, by shape and place: true if the ranks of the place run an op of the shape. Only shapes
 * with `seconds` count. */
static bool *shapes_run_by_places(const struct ir *ir, const double *const *seconds,
                                  uint32_t places)
{
    bool *runs = heap_zalloc((size_t)ir->shape_count * places + 1, sizeof *runs);
    uint32_t *rank = first_rank_of_places(ir), *noted = heap_zalloc(ir->shape_count, sizeof *noted);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        uint32_t shape = ir->op.shape[op], guard = ir->op.guard[op];
        if (seconds[shape] == NULL || noted[shape] == guard + 1u)
            continue;
        noted[shape] = guard + 1u;
        for (uint32_t p = 0; p < places; p++)
            if (guard == IR_NONE16 ||
                guard_passes(&ir->mesh, ir->group, &ir->guard[guard], rank[p]))
                runs[(size_t)shape * places + p] = true;
    }
    free(noted);
    free(rank);
    return runs;
}

/* Sets the seconds of each shape of a group of counterparts to the mean over the places that run them (0 if none does).
 * Returns false if all of them had that time already, or if none runs. */
static bool set_counterparts_to_mean(double **even, const double *const *seconds,
                                     const struct document_masked_work *row, size_t count,
                                     const bool *runs, uint32_t places)
{
    double sum = 0, most = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t p = 0; p < places; p++)
            if (runs[(size_t)row[i].shape * places + p]) {
                double own = seconds[row[i].shape][p];
                sum += own;
                most = own > most ? own : most;
                n++;
            }
    for (size_t i = 0; i < count; i++) {
        even[row[i].shape] = heap_alloc(places, sizeof **even);
        for (uint32_t p = 0; p < places; p++)
            even[row[i].shape][p] = n > 0 ? sum / (double)n : 0;
    }
    return n > 0 && most > sum / (double)n * (1 + 1e-12);
}

double **document_costs_with_equal_pairs(const struct ir *ir, const double *const *seconds)
{
    uint32_t places = ir_place_count(ir), count = 0;
    struct document_masked_work *row = heap_alloc(ir->shape_count + 1u, sizeof *row);
    bool *runs = shapes_run_by_places(ir, seconds, places), differs = false;
    double **even = heap_zalloc(ir->shape_count + 1u, sizeof *even);
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (seconds[s] != NULL)
            row[count++] = (struct document_masked_work){&ir->shape[s], s};
    qsort(row, count, sizeof *row, compare_as_counterpart_shapes);
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && compare_as_counterpart_shapes(&row[i], &row[end]) == 0;)
            end++;
        differs |= set_counterparts_to_mean(even, seconds, row + i, end - i, runs, places);
    }
    free(runs);
    free(row);
    if (differs)
        return even;
    document_costs_free(even, ir->shape_count);
    return NULL;
}

/* Returns an array on the heap, by guard and place: true if the ranks of the place pass the guard. The last row is for
 * ops without a guard. */
static bool *guards_passed_by_places(const struct ir *ir, uint32_t places)
{
    bool *passes = heap_zalloc((size_t)(ir->guard_count + 1u) * places, sizeof *passes);
    uint32_t *rank = first_rank_of_places(ir);
    for (uint32_t g = 0; g <= ir->guard_count; g++)
        for (uint32_t p = 0; p < places; p++)
            passes[(size_t)g * places + p] =
                g == ir->guard_count || guard_passes(&ir->mesh, ir->group, &ir->guard[g], rank[p]);
    free(rank);
    return passes;
}

/* Returns the seconds of attention on the heap, by micro-batch and place. All stages of a pipeline see the same
 * documents, so the sums are those of the first stage. */
static double *attention_s_of_units(const struct ir *ir, const double *const *seconds,
                                    uint32_t places, uint32_t units)
{
    double *sum = heap_zalloc((size_t)units * places + 1, sizeof *sum);
    bool *passes = guards_passed_by_places(ir, places);
    for (uint32_t op = ir->role[0].op_begin; op < ir->role[0].op_begin + ir->role[0].op_count;
         op++) {
        const double *own = seconds[ir->op.shape[op]];
        uint16_t guard = ir->op.guard[op], unit = ir->op.micro[op];
        if (own == NULL || unit == IR_NONE16)
            continue;
        size_t row = guard == IR_NONE16 ? ir->guard_count : guard;
        uint32_t times = repeats_occurrence_count(&ir->repeats, op);
        for (uint32_t p = 0; p < places; p++)
            if (passes[row * places + p])
                sum[(size_t)unit * places + p] += times * own[p];
    }
    free(passes);
    return sum;
}

static uint32_t count_micro_batches_of_ir(const struct ir *ir)
{
    uint32_t units = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.micro[op] != IR_NONE16 && ir->op.micro[op] >= units)
            units = ir->op.micro[op] + 1u;
    return units;
}

struct document_lateness_of_ranks document_lateness_of_ranks(const struct ir *ir,
                                                             const double *const *seconds)
{
    uint32_t places = ir_place_count(ir), units = count_micro_batches_of_ir(ir), most = 0;
    double *sum = attention_s_of_units(ir, seconds, places, units), worst_s = 0, mean_s = 0;
    uint32_t *late = heap_zalloc(places, sizeof *late), *rank = first_rank_of_places(ir);
    for (uint32_t u = 0; u < units; u++) {
        const double *own = sum + (size_t)u * places;
        double all_s = 0;
        uint32_t last = 0;
        for (uint32_t p = 0; p < places; p++) {
            all_s += own[p];
            last = own[p] > own[last] * (1 + 1e-12) ? p : last;
        }
        late[last] += own[last] > all_s / places * (1 + 1e-12);
        worst_s += own[last];
        mean_s += all_s / places;
    }
    for (uint32_t p = 0; p < places; p++)
        most = late[p] > late[most] ? p : most;
    /* units that the short list leaves out are like those that it has, and have the same slowest rank */
    uint32_t copies = ir->repeats.iterations_are_units ? ir->repeats.copies_per_gap : 0;
    struct document_lateness_of_ranks lateness = {0};
    if (late[most] > 0)
        lateness = (struct document_lateness_of_ranks){.rank_late_most_often = rank[most],
                                                       .late_unit_count = late[most] + copies,
                                                       .unit_count = units + copies,
                                                       .slowest_over_mean = worst_s / mean_s};
    free(sum);
    free(late);
    free(rank);
    return lateness;
}

void document_costs_free(double **seconds, uint32_t shapes)
{
    for (uint32_t s = 0; seconds != NULL && s < shapes; s++)
        free(seconds[s]);
    free((void *)seconds);
}

double document_visible_flops(const struct documents *d, const struct transformer *model,
                              int64_t seq)
{
    double whole = transformer_visible_attention_flops(model, seq), seen = 0;
    if (d == NULL || d->sequence_count == 0)
        return whole;
    double *of_list = heap_zalloc(d->list_count + 1u, sizeof *of_list);
    for (uint32_t l = 0; l < d->list_count; l++)
        for (uint32_t i = 0; i < d->list[l].document_count; i++)
            of_list[l] += transformer_visible_attention_flops(
                model, d->list[l].document_end[i] - document_begin(&d->list[l], i));
    for (uint32_t s = 0; s < d->sequence_count; s++)
        seen +=
            d->list_of_sequence[s] == DOCUMENTS_NO_LIST ? whole : of_list[d->list_of_sequence[s]];
    free(of_list);
    return seen / d->sequence_count;
}
