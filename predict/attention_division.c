#include "predict/attention_division.h"

#include "models/transformer.h"
#include "schedule/core_plan/coverage.h"
#include "schedule/ir/visible.h"

#include <math.h>
#include <stdlib.h>

/* Returns the window of the layers if all layers have one; 0 if some layer has none. */
static int64_t window_of_all_layers(const struct transformer *t)
{
    return transformer_count_windowed_layers(t) < t->layers ? 0 : t->attention_window;
}

/* Adds to rows[rank] the rows that the rank receives for a sequence whose attention is dealt in tiles. A received query
 * counts as the number of rows that have as many bytes as the query and its result. */
static void add_rows_received_for_tiles(double *rows, const struct document_list *list,
                                        uint32_t ranks, int64_t window,
                                        const struct row_bytes *bytes)
{
    struct core_plan plan = {.rank_count = ranks, .window_tokens = window};
    struct coverage_rank_load *load = heap_alloc(ranks, sizeof *load);
    core_plan_add_sequence(&plan, list);
    coverage_find_rank_loads(&plan, 0, load);
    for (uint32_t r = 0; r < ranks; r++)
        rows[r] += (double)load[r].received_keys +
                   (double)load[r].received_queries * (bytes->query + bytes->result) / bytes->key;
    free(load);
    core_plan_release(&plan);
}

/* Adds to rows[rank] the rows that each context rank receives for a sequence, and adds the sequence's lower bounds to
 * those of *division. */
static void add_rows_received_for_sequence(struct attention_division *division, double *rows,
                                           const struct prediction *p,
                                           const struct document_list *list)
{
    const struct choices *c = &p->choices;
    const struct token_layout *layout = &p->ir.layout;
    const double own = (double)layout->sequence_tokens / layout->cp,
                 element = (double)dtype_bytes((enum dtype)c->dtype);
    const int64_t window = window_of_all_layers(c->model);
    const struct row_bytes bytes = row_bytes_of_layer(c->model, element);
    struct needed_tokens needed = {0};
    double pairs = 0;
    for (uint32_t i = 0; i < list->document_count; i++) {
        int64_t length = list->document_end[i] - document_begin(list, i);
        pairs += attention_piece_pairs(&(struct attention_piece){
            .query_count = length, .key_count = length, .window = window});
    }
    for (uint32_t r = 0; list->tiles == NULL && r < layout->cp; r++) {
        if (c->rotation == ROTATE_NEEDED_ROWS)
            needed_find_tokens(&needed, layout, list, r, window);
        rows[r] += c->rotation == ROTATE_NEEDED_ROWS ? (double)needed.row_count
                                                     : (double)layout->sequence_tokens - own;
    }
    division->mean_rows_received_lower_bound +=
        coverage_bound_of_received_keys(list, window, layout->cp, pairs).all_ranks / layout->cp;
    division->most_rows_received_lower_bound +=
        coverage_bound_of_busiest_rank_bytes(pairs, layout->cp, own, &bytes, true) / bytes.key;
    needed_release(&needed);
    if (list->tiles != NULL)
        add_rows_received_for_tiles(rows, list, layout->cp, window, &bytes);
}

bool attention_division(struct attention_division *division, const struct prediction *p)
{
    const struct ir *ir = &p->ir;
    *division = (struct attention_division){0};
    if (!p->has_choices || ir->layout.cp <= 1 || ir->layout.kind == LAYOUT_FPDT_RANK_ORDINAL ||
        ir->documents.sequence_count == 0 || visible_why_schedule_unfit(ir) != NULL)
        return false;
    const uint32_t replicas = ir_replica_count(ir);
    const int64_t sequences = ir->global_batch / replicas;
    const double own = (double)ir->layout.sequence_tokens / ir->layout.cp * (double)sequences;
    double *rows = heap_alloc(ir->layout.cp, sizeof *rows);
    for (uint32_t d = 0; d < replicas; d++) {
        struct attention_division one = {0};
        for (uint32_t r = 0; r < ir->layout.cp; r++)
            rows[r] = 0;
        for (int64_t s = 0; s < sequences; s++)
            add_rows_received_for_sequence(
                &one, rows, p,
                documents_of_sequence(&ir->documents, (uint32_t)(d * sequences + s)));
        for (uint32_t r = 0; r < ir->layout.cp; r++) {
            division->mean_rows_received += rows[r] / own / ir->layout.cp / replicas;
            division->most_rows_received = fmax(division->most_rows_received, rows[r] / own);
        }
        division->mean_rows_received_lower_bound +=
            one.mean_rows_received_lower_bound / own / replicas;
        division->most_rows_received_lower_bound = fmax(division->most_rows_received_lower_bound,
                                                        one.most_rows_received_lower_bound / own);
    }
    free(rows);
    division->pairs_over_mean = visible_find_fullest_place(ir).pairs_over_mean;
    if (p->even_step_s > 0)
        division->step_to_even_step_ratio = (p->sim.step_s - p->jitter_s) / p->even_step_s;
    return true;
}
