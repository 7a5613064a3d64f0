/* Prints what uneven routing costs, as text and as JSON. */
#include "cli/report/report.h"

void report_print_routing(struct sheet *sheet, const struct report *r)
{
    const struct routing_draws *d = r->uneven_routing_cost;
    struct text line = {0};
    if (d == NULL || !d->is_uneven)
        return;
    const uint32_t ranks = r->prediction->choices.ep;
    if (ranks > 1)
        text_printf(&line,
                    "the others wait for rank %u of each %u, which has the most copies in %u of %u "
                    "layers: %.2f times the mean; ",
                    d->fullest_rank, ranks, d->late_layers, d->layers, d->fullest_over_mean);
    text_puts(&line, "with even routing the step takes ");
    report_put_time(&line, d->even_step_s, d->even_step_s);
    if (d->spread.step_count > 0) {
        text_printf(&line, "; %zu draws: median ", d->spread.step_count);
        report_put_time(&line, d->spread.median_s, d->spread.longest_s);
        text_puts(&line, ", worst ");
        report_put_time(&line, d->spread.longest_s, d->spread.longest_s);
        text_printf(&line, " (seed %u)", d->worst_seed);
    }
    sheet_put_line(sheet, "routing", line.data);
    text_release(&line);
}

void report_json_routing(struct json_out *json, const struct report *r)
{
    const struct routing_draws *d = r->uneven_routing_cost;
    if (d == NULL || !d->is_uneven)
        return;
    json_begin_object(json, "uneven_routing");
    json_put_count(json, "late_rank", d->fullest_rank);
    json_put_count(json, "late_layers", d->late_layers);
    json_put_number(json, "fullest_over_mean", d->fullest_over_mean);
    json_put_number(json, "even_step_s", d->even_step_s);
    if (d->spread.step_count > 0) {
        json_put_count(json, "draws", d->spread.step_count);
        json_put_number(json, "median_step_s", d->spread.median_s);
        json_put_number(json, "worst_step_s", d->spread.longest_s);
        json_put_count(json, "worst_seed", d->worst_seed);
    }
    json_end_object(json);
}
