/* Prints the times of a part of the model (--scope): of its kernels only, of its messages only, and
 * of both at once. Parts that only exchange or fetch data have other figures. */
#include "cli/report/report.h"

#include "schedule/choices/strategies.h"

#include <math.h>

void report_put_times_of_model_part(struct text *line, const struct report *r)
{
    const struct operator_times *t = r->times_of_model_part;
    struct text piece = {0};
    text_printf(&piece, "%s ", scope_names[r->prediction->choices.scope]);
    report_put_time(&piece, t->elapsed_s, t->elapsed_s);
    report_put_piece_after_comma(line, &piece);
    if (r->prediction->choices.scope == SCOPE_ATTENTION_EXCHANGES) {
        text_puts(&piece, t->has_all_to_all
                              ? "all-to-alls with their packing, each call between two waits"
                              : "packing alone: there is no all-to-all");
        report_put_piece_after_comma(line, &piece);
        text_release(&piece);
        return;
    }
    if (r->prediction->choices.scope == SCOPE_CHUNK_FETCHES_FROM_HOST) {
        text_puts(&piece, "keys and values ");
        report_put_time(&piece, t->fetch_keys_and_values_s, t->fetch_keys_and_values_s);
        report_put_piece_after_comma(line, &piece);
        text_puts(&piece, "queries of the backward ");
        report_put_time(&piece, t->fetch_all_inputs_s, t->fetch_all_inputs_s);
        report_put_piece_after_comma(line, &piece);
        text_release(&piece);
        return;
    }
    text_puts(&piece, "compute alone ");
    report_put_time(&piece, operator_times_kernel_s(t), t->elapsed_s);
    report_put_piece_after_comma(line, &piece);
    text_puts(&piece, "communication alone ");
    report_put_time(&piece, t->communication_s, t->elapsed_s);
    report_put_piece_after_comma(line, &piece);
    if (t->communication_s > 0) {
        double hidden =
            (operator_times_kernel_s(t) + t->communication_s - t->elapsed_s) / t->communication_s;
        text_printf(&piece, "of which %.0f %% is hidden", 100 * fmin(fmax(hidden, 0), 1));
        report_put_piece_after_comma(line, &piece);
    }
    if (t->all_to_all_and_its_kernels_s > 0) {
        text_puts(&piece, "all-to-alls with their packing ");
        report_put_time(&piece, t->all_to_all_and_its_kernels_s, t->elapsed_s);
        report_put_piece_after_comma(line, &piece);
    }
    text_release(&piece);
}
