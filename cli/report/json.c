/* The report as JSON: the same figures, in SI units and with all their digits. */
#include "base/json_write.h"
#include "base/units.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/setup/request_options.h"
#include "models/mfu.h"
#include "predict/intervals.h"
#include "predict/link_classes.h"
#include "predict/result_names.h"
#include "predict/setup/partition_option.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "sim/even/even.h"

#include <float.h>
#include <math.h>
#include <string.h>

void report_json_verdict(struct json_out *w, const struct verdict *v)
{
    static const char *const names[LIMIT_COUNT] = {"device", "host"};
    json_put_bool(w, "fits", v->fits);
    json_put_text(w, "limit", names[v->limit]);
    json_put_count(w, "device_needed_bytes", v->needed[LIMIT_DEVICE]);
    json_put_count(w, "device_available_bytes", v->available[LIMIT_DEVICE]);
    json_put_count(w, "device_cache_bytes", v->cache);
    json_put_count(w, "host_needed_bytes", v->needed[LIMIT_HOST]);
    json_put_count(w, "host_available_bytes", v->available[LIMIT_HOST]);
    json_put_bool(w, "too_close_to_call", verdict_close(v));
}

void report_json_step_ends(struct json_out *w, const struct intervals *intervals, double step_s)
{
    const struct interval *time = &intervals->of[RESIDUAL_TIME];
    if (isnan(time->spread))
        return;
    json_put_number(w, "step_low_s", interval_low(time, step_s));
    json_put_number(w, "step_high_s", interval_high(time, step_s));
}

static void put_offload_ratio(struct json_out *w, const struct choices *c)
{
    struct text ratio = {0};
    request_put_offload_ratio(&ratio, c->offload_hidden > 0, c->offload_ratio);
    json_put_text(w, "offload_ratio", ratio.data);
    text_release(&ratio);
}

static void put_choices(struct json_out *w, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    size_t count;
    json_put_text(w, "model", c->model->name);
    json_put_text(w, "scope", scope_names[c->scope]);
    json_put_text(w, "strategy", compose_strategies(&count)[c->strategy].name);
    json_put_text(w, "profile", c->profile->name);
    json_put_count(w, "cp", c->cp);
    json_put_count(w, "hp", c->hp);
    json_put_count(w, "tp", c->tp);
    json_put_count(w, "window", c->window);
    json_put_text(w, "rotation", rotation_names[c->rotation]);
    json_put_text(w, "placement", placement_names[c->placement]);
    json_put_count(w, "dp", c->dp);
    json_put_count(w, "pp", c->pp);
    json_put_text(w, "pipeline", pipeline_names[c->pipeline]);
    if (c->pipeline == CHOICE_PIPELINE_MSP) {
        json_put_text(w, "helper_weights", helper_names[c->helpers]);
        json_put_count(w, "shared_first", c->shared.first);
        json_put_count(w, "shared_last", c->shared.last);
    }
    json_put_text(w, "stage_placement", stage_placement_names[c->stage_placement]);
    json_put_count(w, "virtual_stages", c->virtual_stages);
    json_put_count(w, "subsequences", c->subsequences);
    if (c->subsequences > 1)
        json_put_text(w, "partition", partition_option_names[p->partition]);
    json_put_text(w, "weights", weights_names[c->weights]);
    json_put_count(w, "shard", c->shard);
    json_put_text(w, "activations", activations_names[c->activations]);
    if (c->activations == CHOICE_ACTIVATIONS_RATIO)
        put_offload_ratio(w, c);
    json_put_text(w, "optimizer", optimizer_names[c->optimizer]);
    json_put_text(w, "states", states_names[c->states]);
    json_put_bool(w, "attention_dropout", c->attention_dropout);
    json_put_count(w, "micro_batch", (uint64_t)c->micro_batch);
    json_put_count(w, "accumulation", c->accumulation);
    json_put_count(w, "loss_chunks", c->loss_chunks);
    json_put_count(w, "ffn_chunks", c->ffn_chunks);
    json_put_text(w, "dtype", dtype_name((enum dtype)c->dtype));
}

/* Appends the bubble by both definitions, and what each stage does with the step. */
static void put_stages(struct json_out *w, const struct prediction *p)
{
    const struct stages *s = &p->stages;
    json_begin_object(w, "stages");
    json_put_number(w, "idle_of_step", s->to_step);
    json_put_number(w, "idle_of_useful", s->to_useful);
    json_begin_array(w, "by_stage");
    for (uint32_t stage = 0; stage < s->count; stage++) {
        json_begin_object(w, NULL);
        json_put_text(w, "role", p->ir.role[stage].name);
        for (int i = 0; i < CAUSE_COUNT; i++)
            json_put_number(w, result_name_of_cause((enum cause)i).text, s->of[stage].cause_s[i]);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static void put_times(struct json_out *w, const struct prediction *p)
{
    json_put_number(w, "step_s", p->sim.step_s);
    json_put_number(w, "tokens_per_s_gpu", p->tokens_per_s_gpu);
    json_begin_object(w, "mfu");
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++)
        json_put_number(w, result_name_of_mfu((enum mfu_convention)i).text,
                        prediction_mfu(p, (enum mfu_convention)i));
    json_end_object(w);
    json_put_number(w, "hfu", prediction_hfu(p));
    json_begin_object(w, "waterfall");
    for (int i = 0; i < CAUSE_COUNT; i++)
        json_put_number(w, result_name_of_cause((enum cause)i).text, p->waterfall.cause_s[i]);
    json_end_object(w);
    if (p->stages.count > 1)
        put_stages(w, p);
}

/* The parts of the machine's numbers, where some were measured or are estimates. */
static void put_spreads(struct json_out *w, const struct spreads *spreads)
{
    if (!spreads->known)
        return;
    json_begin_array(w, "machine");
    for (int i = 0; i < SPREAD_PART_COUNT; i++) {
        json_begin_object(w, NULL);
        json_put_text(w, "part", spread_part_name((enum spread_part)i));
        json_put_bool(w, "measured", spreads->spread[i] > 0);
        json_put_number(w, "spread", spreads->spread[i]);
        json_put_number(w, "moves_step", spreads->measured[i]);
        json_put_number(w, "unmeasured_share", spreads->others[i]);
        json_put_number(w, "estimate_error", spreads->estimated[i]);
        json_end_object(w);
    }
    json_end_array(w);
}

/* Low and high ends of each figure. */
static void put_intervals(struct json_out *w, const struct prediction *p)
{
    const struct intervals intervals = intervals_of(p);
    const struct interval *time = &intervals.of[RESIDUAL_TIME];
    const struct interval *memory = &intervals.of[RESIDUAL_MEMORY];
    const double needed = (double)p->verdict.needed[LIMIT_DEVICE];
    struct text from = {0};
    intervals_put_from(&from, &intervals);
    if (from.size > 0)
        json_begin_object(w, "interval_90");
    report_json_step_ends(w, &intervals, p->sim.step_s);
    if (intervals_known(&intervals, RESIDUAL_TIME)) {
        json_put_number(w, "tokens_per_s_gpu_low", interval_low(time, p->tokens_per_s_gpu));
        json_put_number(w, "tokens_per_s_gpu_high", interval_high(time, p->tokens_per_s_gpu));
    }
    if (intervals_known(&intervals, RESIDUAL_TIME) && p->has_choices) {
        json_put_number(w, "mfu_longhaul_low", interval_low(time, prediction_mfu(p, MFU_LONGHAUL)));
        json_put_number(w, "mfu_longhaul_high",
                        interval_high(time, prediction_mfu(p, MFU_LONGHAUL)));
    }
    if (intervals_known(&intervals, RESIDUAL_MEMORY)) {
        json_put_number(w, "device_needed_low_bytes", interval_low(memory, needed));
        json_put_number(w, "device_needed_high_bytes", interval_high(memory, needed));
    }
    if (from.size > 0) {
        json_put_text(w, "from", from.data);
        put_spreads(w, &intervals.spreads);
        json_end_object(w);
    }
    text_release(&from);
}

static void put_part(struct json_out *w, const struct operator_times *t)
{
    json_begin_object(w, "part");
    json_put_number(w, "elapsed_s", t->elapsed_s);
    json_put_number(w, "compute_alone_s", t->compute_s);
    json_put_number(w, "communication_alone_s", t->communication_s);
    json_put_number(w, "all_to_all_s", t->exchange_s);
    json_put_number(w, "ring_s", t->ring_s);
    json_put_number(w, "rotation_s", t->rotation_s);
    if (t->pair_s > 0) {
        json_put_number(w, "fetch_pair_s", t->pair_s);
        json_put_number(w, "fetch_set_s", t->set_s);
    }
    json_end_object(w);
}

static void put_memory(struct json_out *w, const struct prediction *p)
{
    const struct sim_peak *peak = prediction_peak(p);
    json_begin_object(w, "memory");
    json_put_count(w, "arena_bytes", p->ir.arena_bytes[MEMORY_HBM]);
    json_put_count(w, "pinned_arena_bytes", p->ir.arena_bytes[MEMORY_PINNED]);
    json_put_count(w, "pageable_arena_bytes", p->ir.arena_bytes[MEMORY_PAGEABLE]);
    json_put_count(w, "peak_bytes", peak->bytes);
    json_put_count(w, "peak_rank", prediction_fullest_rank(p));
    json_begin_object(w, "at_peak");
    for (int i = 0; i < CATEGORY_COUNT; i++)
        json_put_count(w, result_name_of_peak((enum category)i).text, peak->category_bytes[i]);
    json_end_object(w);
    json_put_count(w, "reserved_bytes", p->reserved.total);
    json_begin_object(w, "reserved_parts");
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        json_put_count(w, result_name_of_reserved((enum reserved_part)i).text,
                       p->reserved.bytes[i]);
    json_end_object(w);
    json_end_object(w);
}

/* Writes how much of a loop was simulated, if not all of it was. */
static void put_sample(struct json_out *w, const struct prediction *p)
{
    struct prediction_sample sample = prediction_sample(p);
    if (sample.loop == NULL)
        return;
    json_begin_object(w, "sample");
    json_put_text(w, "of", sample.loop);
    json_put_count(w, "simulated", (uint64_t)sample.simulated);
    json_put_count(w, "all", (uint64_t)sample.all);
    json_end_object(w);
}

/* Appends the links that the step uses, and whether anybody has measured them. */
static void put_link_classes(struct json_out *w, const struct prediction *p)
{
    struct link_class class[LINK_CLASSES_MAX];
    size_t count = link_classes(class, &p->ir, &p->setup->cluster);
    json_begin_array(w, "links");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(w, NULL);
        json_put_text(w, "name", class[i].name);
        json_put_bool(w, "measured", class[i].measured);
        json_put_text(w, "source", class[i].source);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_simulation(struct json_out *w, const struct prediction *p)
{
    json_begin_object(w, "simulation");
    json_put_count(w, "ranks", p->sim.rank_count);
    json_put_count(w, "classes", p->sim.class_count);
    if (p->sim.even_ranks > 0) {
        json_put_count(w, "even_ranks", p->sim.even_ranks);
        json_put_number(w, "even_bound", EVEN_BOUND);
    }
    json_put_count(w, "op_instances", p->sim.counts.op_instances);
    json_put_count(w, "simulated", p->sim.counts.simulated);
    json_put_count(w, "flows", p->sim.counts.flows);
    json_put_count(w, "timers", p->sim.counts.timers);
    put_sample(w, p);
    json_put_number(w, "extrapolated_share", p->extrapolated_share);
    json_put_text(w, "extrapolated_why", p->extrapolated.size > 0 ? p->extrapolated.data : "");
    if (p->beyond_compared) {
        json_put_count(w, "compared_ranks", (uint64_t)p->compared_ranks);
        json_put_number(w, "jitter", p->setup->cost.device_jitter);
        json_put_number(w, "jitter_s", p->jitter_s);
    }
    json_end_object(w);
    put_link_classes(w, p);
    if (p->sim.busiest_name) {
        const struct sim_link_load *load = &p->sim.load[p->sim.busiest];
        json_begin_object(w, "busiest_link");
        json_put_text(w, "name", p->sim.busiest_name);
        json_put_number(w, "bytes", load->bytes);
        json_put_number(w, "bytes_per_s", load->bytes_per_s);
        json_put_number(w, "busy", load->busy);
        json_end_object(w);
    }
}

/* Appends the whole command with the options; null where there are none. */
static void put_next_command(struct json_out *w, const struct report *r)
{
    struct text command = {0};
    if (r->best->options[0] != '\0' && r->command != NULL)
        report_put_command_with(&command, r->command, r->best->options);
    json_put_text(w, "command", command.data);
    text_release(&command);
}

static void put_next(struct json_out *w, const struct report *r)
{
    if (r->best == NULL)
        return;
    if (r->best->ideal_step_s > 0)
        json_put_number(w, "ideal_step_s", r->best->ideal_step_s);
    json_begin_object(w, "next");
    json_put_text(w, "options", r->best->options);
    put_next_command(w, r);
    json_put_count(w, "tried", r->best->tried);
    json_put_count(w, "left_out", r->best->left_out);
    if (r->best->options[0] != '\0') {
        json_put_number(w, "step_s", r->best->step_s > 0 ? r->best->step_s : NAN);
        report_json_verdict(w, &r->best->verdict);
    }
    json_end_object(w);
}

static void put_made_by(struct json_out *json, const struct report *r)
{
    struct text versions = {0};
    json_begin_object(json, "made_by");
    json_put_text(json, "command", r->command);
    json_put_text(json, "version", "longhaul " LONGHAUL_VERSION);
    command_print_version(&versions);
    for (size_t i = 0; i + 1 < versions.size; i++) /* a line a library */
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

void report_print_json(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    struct json_out w = {.out = out};
    command_begin_json(&w, "predict");
    if (r->part == NULL) {
        json_begin_object(&w, "verdict");
        report_json_verdict(&w, &p->verdict);
        json_end_object(&w);
    }
    json_begin_object(&w, "configuration");
    json_put_text(&w, "cluster", p->setup->cluster.name);
    json_put_count(&w, "gpus", mesh_ranks(&p->ir.mesh));
    json_put_count(&w, "sequence_tokens", (uint64_t)p->ir.layout.tokens);
    json_put_count(&w, "sequences", (uint64_t)prediction_sequences(p));
    json_put_text(&w, "attention",
                  attention_impl_name((enum attention_impl)p->choices.attention_impl));
    if (p->has_choices)
        put_choices(&w, p);
    json_end_object(&w);
    report_json_documents(&w, r);
    if (r->part != NULL)
        put_part(&w, r->part);
    else
        put_times(&w, p);
    put_memory(&w, p);
    put_intervals(&w, p);
    put_simulation(&w, p);
    if (r->total_tokens > 0) {
        double steps = ceil(r->total_tokens / prediction_tokens(p));
        double hours = steps * p->sim.step_s / 3600 * prediction_gpus(p);
        json_begin_object(&w, "training");
        json_put_number(&w, "tokens", r->total_tokens);
        json_put_number(&w, "steps", steps);
        json_put_number(&w, "days", steps * p->sim.step_s / 86400);
        json_put_number(&w, "gpu_hours", hours);
        if (r->price > 0)
            json_put_number(&w, "cost", hours * r->price);
        json_end_object(&w);
    }
    if (r->warning != NULL)
        json_put_text(&w, "warning", r->warning);
    struct text beware = {0};
    report_put_beware(&beware, r);
    if (beware.size > 0)
        json_put_text(&w, "beware", beware.data);
    text_release(&beware);
    put_next(&w, r);
    put_made_by(&w, r);
    json_end_object(&w);
    text_putc(out, '\n');
}
