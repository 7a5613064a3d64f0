/* Prints the details that --all adds to a prediction's screen: every choice, MFU by every convention and HFU, memory in
 * detail, the stages of a pipeline, what was simulated, the power limit and clocks, where the interval comes from, and
 * the step without overheads (profile ideal). */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/link_classes.h"
#include "predict/setup/choice_rows.h"
#include "predict/shape_costs.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <math.h>
#include <string.h>

/* Categories of memory under this share of the peak, and parts of the stages' idle time under this
 * share of the step, are left out of the text. */
#define SHOWN_SHARE_MIN 1e-3

/* Appends " = pinned 51.2 GiB + rounded up 3.1 GiB + pageable 40 GiB"; nothing if no memory is pinned. */
static void put_host_memory_parts(struct text *out, const struct prediction *p)
{
    const uint64_t *arena = p->ir.planned_bytes;
    double all = (double)p->verdict.needed_bytes[LIMIT_HOST];
    double node_to_rank =
        all / (double)((p->verdict.is_by_reserved_memory ? p->reserved.pinned_bytes
                                                         : arena[MEMORY_PINNED]) +
                       arena[MEMORY_PAGEABLE]);
    double pinned = node_to_rank * (double)arena[MEMORY_PINNED],
           pageable = node_to_rank * (double)arena[MEMORY_PAGEABLE];
    if (arena[MEMORY_PINNED] == 0)
        return;
    text_puts(out, " = pinned ");
    units_put_gib(out, pinned);
    if (all - pinned - pageable > 0) {
        text_puts(out, " + rounded up ");
        units_put_gib(out, all - pinned - pageable);
    }
    if (pageable > 0) {
        text_puts(out, " + pageable ");
        units_put_gib(out, pageable);
    }
}

static void print_memory(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct sim_peak *peak = prediction_device_memory_peak(p);
    struct text piece = {0};
    struct text line = {0};
    /* a recorded step has no arena: its offsets are those of the allocator */
    if (!prediction_is_recorded(p)) {
        text_puts(&piece, "arena ");
        units_put_gib(&piece, (double)p->ir.planned_bytes[MEMORY_HBM]);
        report_put_piece_after_comma(&line, &piece);
    }
    text_puts(&piece, "peak ");
    units_put_gib(&piece, (double)peak->bytes);
    report_put_piece_after_comma(&line, &piece);
    text_puts(&piece, "reserved ");
    units_put_gib(&piece, (double)p->reserved.total_bytes);
    for (int i = 0; i < RESERVED_PART_COUNT; i++) {
        text_printf(&piece, "%s%s ", i == 0 ? " = " : " + ",
                    reserved_part_label((enum reserved_part)i));
        units_put_gib(&piece, (double)p->reserved.bytes[i]);
    }
    report_put_piece_after_comma(&line, &piece);
    if (p->verdict.needed_bytes[LIMIT_HOST] > 0) {
        text_puts(&piece, "host ");
        units_put_gib(&piece, (double)p->verdict.needed_bytes[LIMIT_HOST]);
        text_puts(&piece, " a node");
        put_host_memory_parts(&piece, p);
        report_put_piece_after_comma(&line, &piece);
    }
    bool first = true;
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        if ((double)peak->category_bytes[i] <= SHOWN_SHARE_MIN * (double)peak->bytes)
            continue;
        if (first && prediction_fullest_rank(p) != 0 && p->sim.uniform_rank_count == 0)
            text_printf(&piece, "at the peak of rank %u ", prediction_fullest_rank(p));
        else if (first)
            text_puts(&piece, "at the peak ");
        first = false;
        text_printf(&piece, "%s ", category_labels[i]);
        units_put_gib(&piece, (double)peak->category_bytes[i]);
        report_put_piece_after_comma(&line, &piece);
    }
    if (peak->op != IR_NONE) {
        struct whole_list_op_id_and_layer at = prediction_find_op_in_whole_list(p, peak->op);
        text_printf(&piece, "op %u (%s, %s", at.id,
                    work_kind_info((enum work_kind)p->ir.op.kind[peak->op])->name,
                    phase_names[p->ir.op.phase[peak->op]]);
        if (at.layer != IR_NONE16)
            text_printf(&piece, ", layer %u", at.layer);
        text_putc(&piece, ')');
        report_put_piece_after_comma(&line, &piece);
    }
    sheet_put_line(sheet, "memory", line.data);
    text_release(&line);
    text_release(&piece);
}

/* If only a part of a loop was simulated, appends how much of it: ", 11 of 32 layers". */
static void put_simulated_part_of_loop(struct text *out, const struct prediction *p)
{
    struct prediction_short_list short_list = prediction_short_list(p);
    if (short_list.name_of_shortened_loop != NULL)
        text_printf(out, ", %lld of %lld %s", (long long)short_list.simulated_iterations,
                    (long long)short_list.all_iterations, short_list.name_of_shortened_loop);
}

/* Appends a share of the step to the line: "fill 3.1 %"; nothing if it is below SHOWN_SHARE_MIN. The piece is empty
 * before and after. */
static void put_share(struct text *piece, struct text *line, const char *what, double seconds,
                      double step_s)
{
    if (seconds < SHOWN_SHARE_MIN * step_s)
        return;
    text_printf(piece, "%s %.1f %%", what, 100 * seconds / step_s);
    report_put_piece_after_comma(line, piece);
}

static void print_stages(struct sheet *sheet, const struct report *r)
{
    const struct stages *s = &r->prediction->stages;
    double step = r->prediction->sim.step_s;
    if (s->stage_count < 2)
        return;
    struct text piece = {0};
    struct text line = {0};
    text_printf(&piece, "%u, idle %.1f %% of the step (%.1f %% of their work)", s->stage_count,
                100 * s->bubble_to_step, 100 * s->bubble_to_busy);
    report_put_piece_after_comma(&line, &piece);
    put_share(&piece, &line, "fill", s->fill_s, step);
    put_share(&piece, &line, "drain", s->drain_s, step);
    put_share(&piece, &line, "imbalance", s->pipeline_imbalance_s, step);
    put_share(&piece, &line, "documents", s->documents_s, step);
    put_share(&piece, &line, "offload", s->offload_s, step);
    put_share(&piece, &line, "other", s->other_s, step);
    sheet_put_line(sheet, "stages", line.data);
    text_release(&line);
    text_release(&piece);
}

/* Appends "; links measured on this machine: copies; links not measured on this machine: rings within a node". */
static void put_link_classes_and_if_measured(struct text *out, const struct prediction *p)
{
    struct link_class link_classes[LINK_CLASSES_MAX];
    size_t count = link_classes_list(link_classes, &p->ir, &p->setup->cluster);
    for (int measured = 1; measured >= 0; measured--) {
        bool first = true;
        for (size_t i = 0; i < count; i++) {
            if (link_classes[i].is_measured != measured)
                continue;
            text_puts(out, !first     ? ", "
                           : measured ? "; links measured on this machine: "
                                      : "; links not measured on this machine: ");
            text_puts(out, link_classes[i].name);
            first = false;
        }
    }
}

static void print_simulation(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct sim_result *sim = &p->sim;
    struct text line = {0};
    text_printf(&line, "%u rank%s in %u %sclass%s, %llu of %llu ops", sim->rank_count,
                sim->rank_count == 1 ? "" : "s", sim->class_count,
                sim->uniform_rank_count > 0 ? "even " : "", sim->class_count == 1 ? "" : "es",
                (unsigned long long)sim->counts.simulated_op_instances,
                (unsigned long long)sim->counts.schedule_op_instances);
    put_simulated_part_of_loop(&line, p);
    if (sim->busiest_link_name) {
        const struct sim_link_load *load = &sim->loads_by_link[sim->busiest_load_row];
        text_printf(&line, ", busiest link %s carries ", sim->busiest_link_name);
        units_put(&line, UNIT_BYTES, load->bytes);
        text_printf(&line, ", %.0f %% of its capacity of ", 100 * load->busy_fraction_of_step);
        units_put(&line, UNIT_BYTES_PER_S, load->bytes_per_s);
        text_puts(&line, " over the step");
    }
    put_link_classes_and_if_measured(&line, p);
    sheet_put_line(sheet, "simulated", line.data);
    text_release(&line);
}

/* Prints MFU by every convention, if the choices of the step are known, and HFU. */
static void print_utilisation(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    double fraction[MFU_CONVENTION_COUNT] = {0};
    struct text line = {0}, piece = {0};
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++) {
        fraction[i] = prediction_mfu(p, (enum mfu_convention)i);
        text_printf(&piece, "%s %.1f %%", mfu_names[i], 100 * fraction[i]);
        report_put_piece_after_comma(&line, &piece);
    }
    mfu_explain_fractions_above_one(&piece, fraction);
    if (piece.size > 0)
        report_put_piece_after_comma(&line, &piece);
    if (line.size > 0)
        sheet_put_line(sheet, "MFU", line.data);
    line.size = 0;
    text_printf(&line, "%.1f %%", 100 * prediction_hfu(p));
    sheet_put_line(sheet, "HFU", line.data);
    text_release(&piece);
    text_release(&line);
}

/* Prints the power limit and the clocks, as far as they are known: "limit 700 W; SM clock at most
 * 1980 MHz: products at 1582, attention at 1775". */
static void print_power_limit_and_clocks(struct sheet *sheet, const struct report *r)
{
    const struct assumed_clock assumed = assumed_clock(r->prediction);
    struct text line = {0};
    if (assumed.power_limit_w > 0)
        text_printf(&line, "limit %.0f W", assumed.power_limit_w);
    if (assumed.highest_mhz > 0)
        text_printf(&line, "%sSM clock at most %.0f MHz: products at %.0f, attention at %.0f",
                    line.size > 0 ? "; " : "", assumed.highest_mhz, assumed.product_mhz,
                    assumed.attention_mhz);
    if (line.size > 0)
        sheet_put_line(sheet, "power", line.data);
    text_release(&line);
}

static void print_intervals_of_time_and_memory(struct sheet *sheet, const struct report *r)
{
    const struct intervals intervals = intervals_of_prediction(r->prediction);
    struct text from = {0}, line = {0};
    intervals_put_time_and_memory(&from, &intervals);
    if (from.size > 0) {
        text_printf(&line, "90 %%: %s", from.data);
        sheet_put_line(sheet, "interval", line.data);
    }
    text_release(&line);
    text_release(&from);
}

static void print_ideal_step(struct sheet *sheet, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct alternative *best = r->best_alternative;
    if (best == NULL || best->ideal_step_s <= 0 || p->choices.profile->is_ideal)
        return;
    double share = 100 * (1 - best->ideal_step_s / p->sim.step_s);
    struct text line = {0};
    text_puts(&line, "with profile ideal, without any overhead, the step takes ");
    report_put_time(&line, best->ideal_step_s, p->sim.step_s);
    text_printf(&line,
                share >= 0 ? ": %.1f %% of the step is this implementation"
                           : ": %.1f %% more than with this implementation",
                fabs(share));
    sheet_put_line(sheet, "ideal", line.data);
    text_release(&line);
}

static void print_choices(struct sheet *sheet, const struct prediction *p)
{
    struct text line = {0};
    if (p->has_choices) {
        choices_put_all_as_text(&line, &p->choices);
        sheet_put_line(sheet, "choices", line.data);
    }
    text_release(&line);
}

void report_print_details(struct sheet *sheet, const struct report *report)
{
    bool whole = report->times_of_model_part == NULL;
    sheet_begin_section(sheet, SHEET_SECTION_DETAILS, "Details");
    print_choices(sheet, report->prediction);
    if (whole) { /* a part of a model has no weights of its own, and no memory limit */
        print_utilisation(sheet, report);
        print_memory(sheet, report);
    }
    if (whole || report->prediction->choices.scope >= SCOPE_ALL_LAYERS)
        print_stages(sheet, report);
    print_simulation(sheet, report);
    print_power_limit_and_clocks(sheet, report);
    print_intervals_of_time_and_memory(sheet, report);
    print_ideal_step(sheet, report);
}
