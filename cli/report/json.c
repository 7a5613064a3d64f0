/* Prints the report of a prediction as JSON: the figures that the screen has, and more, in SI units and with all their
 * digits. */
#include "base/json_write.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "models/mfu.h"
#include "predict/intervals.h"
#include "predict/link_classes.h"
#include "predict/result_names.h"
#include "predict/setup/at_most.h"
#include "predict/setup/choice_rows.h"
#include "predict/shape_costs.h"
#include "sim/uniform/uniform.h"

#include <math.h>

struct row_table report_make_stage_row_table(struct report_stage_columns *c)
{
    c->column[0] = (struct column){"role", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "The stage's name."};
    for (int i = 0; i < CAUSE_COUNT; i++) {
        c->key[i] = result_name_of_cause((enum cause)i);
        c->column[1 + i] =
            (struct column){c->key[i].text, NULL, NULL, COLUMN_SECONDS, 0, "common.json"};
    }
    return (struct row_table){"predict_stage", c->column, ARRAY_LEN(c->column)};
}

void report_json_verdict(struct json_out *w, const struct verdict *v)
{
    static const char *const names[LIMIT_COUNT] = {"device", "host"};
    json_put_bool(w, "fits", v->fits);
    json_put_number(w, "fits_probability", v->fits_probability);
    json_put_text(w, "limit", names[v->limiting_memory]);
    json_put_count(w, "device_needed_bytes", v->needed_bytes[LIMIT_DEVICE]);
    json_put_count(w, "device_available_bytes", v->available_bytes[LIMIT_DEVICE]);
    json_put_count(w, "device_cache_bytes", v->cache_bytes);
    json_put_count(w, "host_needed_bytes", v->needed_bytes[LIMIT_HOST]);
    json_put_count(w, "host_available_bytes", v->available_bytes[LIMIT_HOST]);
}

void report_json_step_interval(struct json_out *w, const struct intervals *intervals, double step_s)
{
    const struct interval *time = &intervals->intervals_by_quantity[RESIDUAL_TIME];
    if (!interval_is_known(time))
        return;
    json_put_number(w, "step_low_s", interval_low(time, step_s));
    json_put_number(w, "step_high_s", interval_high(time, step_s));
}

static void put_choices(struct json_out *w, const struct choices *c)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        struct choice_value value[CHOICE_VALUES_MAX];
        const size_t count = choice_row_fill_values(&choice_rows[i], value, c);
        for (size_t k = 0; k < count && value[k].has_value; k++) {
            const struct choice_value *v = &value[k];
            if (v->form == CHOICE_NAMED)
                json_put_text(w, v->key, choice_value_name(v));
            else if (v->form == CHOICE_TRUTH)
                json_put_bool(w, v->key, v->whole_number != 0);
            else if (v->form == CHOICE_NUMBER)
                json_put_number(w, v->key, v->real_number);
            else
                json_put_count(w, v->key, (uint64_t)v->whole_number);
        }
    }
}

/* Appends what is known of a schedule from a file. Its choices are not known. */
static void put_schedule(struct json_out *w, const struct prediction *p)
{
    json_put_count(w, "gpus", mesh_rank_count(&p->ir.mesh));
    if (!prediction_is_recorded(p)) {
        json_put_count(w, "sequence_tokens", (uint64_t)p->ir.layout.sequence_tokens);
        json_put_count(w, "sequences", (uint64_t)prediction_sequences(p));
    }
    if (prediction_has_attention(p))
        json_put_text(w, "attention",
                      attention_impl_name((enum attention_impl)p->choices.attention_impl));
}

void report_fill_products(struct rows *rows, const struct prediction_products *of)
{
    rows_put_number(rows, of->narrow_s);
    rows_put_number(rows, of->wide_s);
    rows_put_number(rows, of->casts_s);
}

/* Appends the idle time of the stages, as a share of the step and as a share of their work, and the seconds of each
 * stage by cause. */
static void put_stages(struct json_out *w, const struct prediction *p)
{
    const struct stages *s = &p->stages;
    json_begin_object(w, "stages");
    json_put_number(w, "idle_of_step", s->bubble_to_step);
    json_put_number(w, "idle_of_useful", s->bubble_to_busy);
    struct report_stage_columns columns;
    const struct row_table table = report_make_stage_row_table(&columns);
    struct rows rows = {.json = w};
    rows_begin(&rows, "by_stage", NULL, &table);
    for (uint32_t stage = 0; stage < s->stage_count; stage++) {
        rows_put_text(&rows, p->ir.role[stage].name);
        for (int i = 0; i < CAUSE_COUNT; i++)
            rows_put_number(&rows, s->waterfall[stage].cause_s[i]);
    }
    rows_end(&rows);
    json_end_object(w);
}

static void put_step_times(struct json_out *w, const struct prediction *p)
{
    json_put_number(w, "step_s", p->sim.step_s);
    if (!prediction_is_recorded(p))
        json_put_number(w, "tokens_per_s_gpu", p->tokens_per_s_gpu);
    json_begin_object(w, "mfu");
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++)
        json_put_number(w, result_name_of_mfu((enum mfu_convention)i).text,
                        prediction_mfu(p, (enum mfu_convention)i));
    json_end_object(w);
    json_put_number(w, "hfu", prediction_hfu(p));
    const struct assumed_clock assumed = assumed_clock(p);
    json_begin_object(w, "power");
    json_put_number(w, "limit_w", assumed.power_limit_w);
    json_put_number(w, "sm_clock_max_mhz", assumed.highest_mhz);
    json_put_number(w, "product_sm_clock_mhz", assumed.product_mhz);
    json_put_number(w, "attention_sm_clock_mhz", assumed.attention_mhz);
    json_end_object(w);
    json_begin_object(w, "waterfall");
    for (int i = 0; i < CAUSE_COUNT; i++)
        json_put_number(w, result_name_of_cause((enum cause)i).text, p->waterfall.cause_s[i]);
    json_end_object(w);
    if (p->products.narrow_s > 0) {
        struct rows rows = {.json = w};
        rows_begin_single_row(&rows, "narrow_products", &report_tables[REPORT_TABLE_PRODUCTS]);
        report_fill_products(&rows, &p->products);
        rows_end(&rows);
    }
    if (p->stages.stage_count > 1)
        put_stages(w, p);
}

/* Writes, for each part of the machine, how uncertain its numbers are and whether they were measured or estimated.
 * Writes nothing if that is not known. */
static void put_spreads_of_machine_numbers(struct json_out *w, const struct spreads *spreads)
{
    if (!spreads->is_known)
        return;
    struct rows rows = {.json = w};
    rows_begin(&rows, "machine", NULL, &report_tables[REPORT_TABLE_MACHINE]);
    for (int i = 0; i < SPREAD_PART_COUNT; i++) {
        rows_put_text(&rows, spread_part_name((enum spread_machine_part)i));
        rows_put_number(&rows, spreads->largest_relative_spread_by_part[i] > 0);
        rows_put_number(&rows, spreads->largest_relative_spread_by_part[i]);
        rows_put_number(&rows, spreads->log_step_growth_by_measured_part[i]);
        rows_put_number(&rows, spreads->share_of_unmeasured_by_part[i]);
        rows_put_number(&rows, spreads->estimate_error[i]);
    }
    rows_end(&rows);
}

void report_json_run_features(struct json_out *w, const struct prediction *p)
{
    const struct similarity like =
        similarity_of(p->setup, p->has_choices ? &p->choices : NULL, p->profile);
    const struct residual run = similarity_make_residual(&like);
    if (!p->has_choices || like.device[0] == '\0')
        return;
    json_begin_object(w, "run");
    residual_put_json(w, &run);
    json_end_object(w);
}

/* Writes the features of the step that no measured run has, those for the time and then those for the memory, each with
 * the standard deviation that it adds. If the user gave runs of their own, writes how many they are and by how much
 * they shift the interval of the time. */
static void put_unmeasured_features(struct json_out *w, const struct intervals *intervals)
{
    static const char *const figures[RESIDUAL_COUNT] = {"time", "memory"};
    const struct residual run = similarity_make_residual(&intervals->similarity);
    struct rows rows = {.json = w};
    rows_begin(&rows, "never_measured", NULL, &report_tables[REPORT_TABLE_NEVER_MEASURED]);
    for (int of = 0; of < RESIDUAL_COUNT; of++) {
        for (uint32_t i = 0; i < intervals->intervals_by_quantity[of].unmeasured_count; i++) {
            const struct unmeasured_feature *unmeasured =
                &intervals->intervals_by_quantity[of].unmeasured[i];
            struct text what = {0};
            interval_put_unmeasured(&what, unmeasured, &run);
            rows_put_text(&rows, figures[of]);
            rows_put_text(&rows, interval_feature_names[unmeasured->feature]);
            rows_put_text(&rows, what.data);
            rows_put_number(&rows, sqrt(unmeasured->variance));
            text_release(&what);
        }
    }
    rows_end(&rows);
    if (intervals->intervals_by_quantity[RESIDUAL_TIME].own_run_count > 0) {
        json_put_count(w, "own_runs",
                       intervals->intervals_by_quantity[RESIDUAL_TIME].own_run_count);
        json_put_number(w, "shift",
                        intervals->intervals_by_quantity[RESIDUAL_TIME].log_shift_by_own_runs);
    }
}

/* Writes the low and the high end of the interval of the step's time, of its rate, of its MFU and of the memory, as
 * far as they are known, and where these intervals come from. */
static void put_intervals(struct json_out *w, const struct prediction *p)
{
    const struct intervals intervals = intervals_of_prediction(p);
    const struct interval rate =
        interval_of_reciprocal(&intervals.intervals_by_quantity[RESIDUAL_TIME]);
    const struct interval *memory = &intervals.intervals_by_quantity[RESIDUAL_MEMORY];
    const double needed = (double)p->verdict.needed_bytes[LIMIT_DEVICE];
    struct text from = {0};
    intervals_put_time_and_memory(&from, &intervals);
    if (from.size > 0)
        json_begin_object(w, "interval_90");
    report_json_step_interval(w, &intervals, p->sim.step_s);
    if (intervals_are_known(&intervals, RESIDUAL_TIME) && !prediction_is_recorded(p)) {
        json_put_number(w, "tokens_per_s_gpu_low", interval_low(&rate, p->tokens_per_s_gpu));
        json_put_number(w, "tokens_per_s_gpu_high", interval_high(&rate, p->tokens_per_s_gpu));
    }
    if (intervals_are_known(&intervals, RESIDUAL_TIME) && p->has_choices) {
        json_put_number(w, "mfu_longhaul_low",
                        interval_low(&rate, prediction_mfu(p, MFU_LONGHAUL)));
        json_put_number(w, "mfu_longhaul_high",
                        interval_high(&rate, prediction_mfu(p, MFU_LONGHAUL)));
    }
    if (intervals_are_known(&intervals, RESIDUAL_MEMORY)) {
        json_put_number(w, "device_needed_low_bytes", interval_low(memory, needed));
        json_put_number(w, "device_needed_high_bytes", interval_high(memory, needed));
    }
    if (from.size > 0) {
        json_put_text(w, "from", from.data);
        put_unmeasured_features(w, &intervals);
        put_spreads_of_machine_numbers(w, &intervals.spreads);
        json_end_object(w);
    }
    text_release(&from);
}

static void put_times_of_model_part(struct json_out *w, const struct operator_times *t)
{
    json_begin_object(w, "part");
    json_put_number(w, "elapsed_s", t->elapsed_s);
    json_put_number(w, "compute_alone_s", operator_times_kernel_s(t));
    json_put_number(w, "communication_alone_s", t->communication_s);
    json_put_number(w, "all_to_all_s", t->has_all_to_all ? t->all_to_all_and_its_kernels_s : 0);
    json_put_number(w, "ring_s", t->ring_s);
    json_put_number(w, "rotation_s", t->mean_rotation_message_s);
    if (t->fetch_keys_and_values_s > 0) {
        json_put_number(w, "fetch_pair_s", t->fetch_keys_and_values_s);
        json_put_number(w, "fetch_set_s", t->fetch_all_inputs_s);
    }
    json_end_object(w);
}

static void put_memory(struct json_out *w, const struct prediction *p)
{
    const struct sim_peak *peak = prediction_device_memory_peak(p);
    json_begin_object(w, "memory");
    /* a recorded step has no arenas: its offsets are those of the allocator */
    if (!prediction_is_recorded(p)) {
        json_put_count(w, "arena_bytes", p->ir.planned_bytes[MEMORY_HBM]);
        json_put_count(w, "pinned_arena_bytes", p->ir.planned_bytes[MEMORY_PINNED]);
        json_put_count(w, "pageable_arena_bytes", p->ir.planned_bytes[MEMORY_PAGEABLE]);
    }
    json_put_count(w, "peak_bytes", peak->bytes);
    json_put_count(w, "peak_rank", prediction_fullest_rank(p));
    json_begin_object(w, "at_peak");
    for (int i = 0; i < CATEGORY_COUNT; i++)
        json_put_count(w, result_name_of_peak((enum category)i).text, peak->category_bytes[i]);
    json_end_object(w);
    json_put_count(w, "reserved_bytes", p->reserved.total_bytes);
    json_begin_object(w, "reserved_parts");
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        json_put_count(w, result_name_of_reserved((enum reserved_part)i).text,
                       p->reserved.bytes[i]);
    json_end_object(w);
    json_end_object(w);
}

/* If only a part of a loop was simulated, writes how much of it. */
static void put_simulated_part_of_loop(struct json_out *w, const struct prediction *p)
{
    struct prediction_short_list short_list = prediction_short_list(p);
    if (short_list.name_of_shortened_loop == NULL)
        return;
    json_begin_object(w, "sample");
    json_put_text(w, "of", short_list.name_of_shortened_loop);
    json_put_count(w, "simulated", (uint64_t)short_list.simulated_iterations);
    json_put_count(w, "all", (uint64_t)short_list.all_iterations);
    json_end_object(w);
}

/* Appends the links that the step uses, and whether they were measured. */
static void put_link_classes_and_if_measured(struct json_out *w, const struct prediction *p)
{
    struct link_class class[LINK_CLASSES_MAX];
    size_t count = link_classes_list(class, &p->ir, &p->setup->cluster);
    struct rows rows = {.json = w};
    rows_begin(&rows, "links", NULL, &report_tables[REPORT_TABLE_LINKS]);
    for (size_t i = 0; i < count; i++) {
        rows_put_text(&rows, class[i].name);
        rows_put_number(&rows, class[i].is_measured);
        rows_put_text(&rows, class[i].source);
    }
    rows_end(&rows);
}

static void put_simulation(struct json_out *w, const struct prediction *p)
{
    json_begin_object(w, "simulation");
    json_put_count(w, "ranks", p->sim.rank_count);
    json_put_count(w, "classes", p->sim.class_count);
    if (p->sim.uniform_rank_count > 0) {
        json_put_count(w, "even_ranks", p->sim.uniform_rank_count);
        if (p->fullest_pairs_over_mean > 0)
            json_put_number(w, "fullest_over_mean", p->fullest_pairs_over_mean);
        else
            json_put_number(w, "even_bound", EVEN_TIME_ERROR_MAX);
    }
    json_put_count(w, "op_instances", p->sim.counts.schedule_op_instances);
    json_put_count(w, "simulated", p->sim.counts.simulated_op_instances);
    json_put_count(w, "flows", p->sim.counts.flows_started);
    json_put_count(w, "timers", p->sim.counts.timer_set_count);
    put_simulated_part_of_loop(w, p);
    json_put_number(w, "extrapolated_share", p->extrapolated_share);
    json_put_text(w, "extrapolated_why",
                  p->extrapolation_reason.size > 0 ? p->extrapolation_reason.data : "");
    if (p->exceeds_compared_ranks) {
        json_put_count(w, "compared_ranks", (uint64_t)p->max_compared_ranks);
        json_put_number(w, "jitter", p->setup->cost.device_jitter);
        json_put_number(w, "jitter_s", p->jitter_s);
    }
    json_end_object(w);
    put_link_classes_and_if_measured(w, p);
    if (p->sim.busiest_link_name) {
        const struct sim_link_load *load = &p->sim.loads_by_link[p->sim.busiest_load_row];
        json_begin_object(w, "busiest_link");
        json_put_text(w, "name", p->sim.busiest_link_name);
        json_put_number(w, "bytes", load->bytes);
        json_put_number(w, "bytes_per_s", load->bytes_per_s);
        json_put_number(w, "busy", load->busy_fraction_of_step);
        json_end_object(w);
    }
}

/* Appends the report's command with the options of the best alternative; null if no alternative is better. */
static void put_command_of_best_alternative(struct json_out *w, const struct report *r)
{
    struct text command = {0};
    if (r->best_alternative->options[0] != '\0' && r->command != NULL)
        report_put_command_with_options(&command, r->command, r->best_alternative->options);
    json_put_text(w, "command", command.data);
    text_release(&command);
}

static void put_best_alternative_json(struct json_out *w, const struct report *r)
{
    if (r->best_alternative == NULL)
        return;
    if (r->best_alternative->ideal_step_s > 0)
        json_put_number(w, "ideal_step_s", r->best_alternative->ideal_step_s);
    json_begin_object(w, "next");
    json_put_text(w, "options", r->best_alternative->options);
    put_command_of_best_alternative(w, r);
    json_put_count(w, "tried", r->best_alternative->tried_count);
    json_put_count(w, "left_out", r->best_alternative->skipped_count);
    if (r->best_alternative->options[0] != '\0') {
        json_put_number(w, "step_s",
                        r->best_alternative->step_s > 0 ? r->best_alternative->step_s : NAN);
        report_json_verdict(w, &r->best_alternative->verdict);
    }
    json_end_object(w);
}

static void put_versions_of_program(struct json_out *json, const struct report *r)
{
    struct text versions = {0};
    json_begin_object(json, "made_by");
    json_put_text(json, "command", r->command);
    json_put_text(json, "version", "longhaul " LONGHAUL_VERSION);
    if (command_print_version(&versions, NULL) != STATUS_OK)
        text_puts(&versions, "longhaul " LONGHAUL_VERSION "\nSimGrid cannot be loaded\n");
    /* the lines, one for each library, are joined by commas */
    for (size_t i = 0; i + 1 < versions.size; i++)
        if (versions.data[i] == '\n')
            versions.data[i] = ',';
    versions.data[versions.size - 1] = '\0';
    json_put_text(json, "versions", versions.data);
    json_put_text(json, "model", r->model);
    json_put_text(json, "cluster", r->cluster);
    json_put_text(json, "costs", r->costs);
    json_end_object(json);
    text_release(&versions);
}

/* Writes why the step may need less time and memory than is predicted (--at-most). Writes nothing if there is no
 * reason. */
static void put_reasons_of_at_most(struct json_out *w, uint32_t reasons)
{
    if (reasons == 0)
        return;
    json_begin_array(w, "at_most");
    for (int reason = 0; reason < RUN_DOES_LESS_REASON_COUNT; reason++)
        if ((reasons & 1U << reason) != 0)
            json_put_text(w, NULL, at_most_words[reason]);
    json_end_array(w);
}

void report_print_json(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    struct json_out w = {.out = out};
    command_begin_json(&w, "predict");
    if (r->times_of_model_part == NULL) {
        json_begin_object(&w, "verdict");
        report_json_verdict(&w, &p->verdict);
        put_reasons_of_at_most(&w, p->setup->mask_of_reasons_run_does_less);
        json_end_object(&w);
    }
    json_begin_object(&w, "configuration");
    json_put_text(&w, "cluster", p->setup->cluster.name);
    if (p->has_choices) {
        json_put_text(&w, "model", p->choices.model->name);
        put_choices(&w, &p->choices);
    } else {
        put_schedule(&w, p);
    }
    json_end_object(&w);
    if (prediction_is_recorded(p))
        report_json_recording(&w, p);
    report_json_documents(&w, r);
    report_json_routing(&w, r);
    if (r->times_of_model_part != NULL)
        put_times_of_model_part(&w, r->times_of_model_part);
    else
        put_step_times(&w, p);
    put_memory(&w, p);
    put_intervals(&w, p);
    put_simulation(&w, p);
    if (r->training_run_tokens > 0) {
        const struct report_training_run training = report_make_training_run(r);
        json_begin_object(&w, "training");
        json_put_number(&w, "tokens", r->training_run_tokens);
        json_put_number(&w, "steps", training.step_count);
        json_put_number(&w, "days", training.seconds / 86400);
        json_put_number(&w, "gpu_hours", training.gpu_hours);
        const struct intervals intervals = intervals_of_prediction(p);
        const struct interval *time = &intervals.intervals_by_quantity[RESIDUAL_TIME];
        const double days = training.seconds / 86400,
                     cost = training.gpu_hours * r->price_per_gpu_hour;
        if (interval_is_known(time)) {
            json_put_number(&w, "days_low", interval_low(time, days));
            json_put_number(&w, "days_high", interval_high(time, days));
        }
        if (r->price_per_gpu_hour > 0)
            json_put_number(&w, "cost", cost);
        if (r->price_per_gpu_hour > 0 && interval_is_known(time)) {
            json_put_number(&w, "cost_low", interval_low(time, cost));
            json_put_number(&w, "cost_high", interval_high(time, cost));
        }
        json_end_object(&w);
    }
    report_json_run_features(&w, p);
    if (r->filled_in_options_warning != NULL)
        json_put_text(&w, "warning", r->filled_in_options_warning);
    struct text warnings_text = {0};
    report_put_warnings_in_one_line(&warnings_text, r);
    if (warnings_text.size > 0)
        json_put_text(&w, "beware", warnings_text.data);
    text_release(&warnings_text);
    put_best_alternative_json(&w, r);
    report_json_sheet(&w, r);
    put_versions_of_program(&w, r);
    json_end_object(&w);
    text_putc(out, '\n');
}
