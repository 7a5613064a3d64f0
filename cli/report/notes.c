/* Prints warnings about a prediction, and the time and cost of a whole training. */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/intervals.h"
#include "schedule/choices/profile.h"
#include "sim/uniform/uniform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* If the host's share of a step is above this, and the profile's checkpoints take time of the host, a warning says that
 * this time decides the result. */
#define HOST_TIME_SHARE_DECIDING 0.3
/* If the GPU waits for the host's launches for more than this share of a step, and the profile has no time of the host
 * for each step, a warning says what would hide them. */
#define HOST_LAUNCH_WAIT_SHARE 0.1
/* If the peaks of costs and of the cluster differ by this factor, they are of different devices. */
#define PEAK_RATIO_OF_OTHER_DEVICE 1.25

/* Appends a warning if the costs are of a device that is much faster or slower than the
 * cluster's. */
static void put_other_device_warning(struct text *out, const struct setup *setup)
{
    double costs = setup->cost.device_peak_flop_per_s,
           peak = setup->cluster.device.peak_bf16_flop_per_s;
    if (setup->cost.is_ideal ||
        (costs < peak * PEAK_RATIO_OF_OTHER_DEVICE && costs * PEAK_RATIO_OF_OTHER_DEVICE > peak))
        return;
    text_printf(out, "%scosts are of %s (", out->size > 0 ? "; " : "", setup->cost.name);
    units_put(out, UNIT_FLOP_PER_S, costs);
    text_puts(out, " at peak), and the GPUs have ");
    units_put(out, UNIT_FLOP_PER_S, peak);
    text_puts(out, ": MFU and HFU are shares of that");
}

/* Appends that the ranks of a ring are taken as equally fast, and how large the error may be. With packed documents
 * all ranks are taken as the fullest one, so it appends the work of that rank over the mean. Otherwise it appends a
 * measured bound. */
static void put_even_ring_warning(struct text *out, const struct prediction *p)
{
    if (p->fullest_pairs_over_mean > 0) {
        text_printf(
            out,
            "%sthe %u ranks of the ring are taken as the fullest one, which sees %.2f times "
            "the mean pairs%s",
            out->size > 0 ? "; " : "", p->sim.uniform_rank_count, p->fullest_pairs_over_mean,
            p->fullest_pairs_over_mean > 1 + EVEN_PAIRS_TOLERANCE
                ? "; --exact simulates each of them"
                : "");
        return;
    }
    text_printf(
        out, "%sthe %u ranks of the ring are taken as even: the step is within %g %% of --exact's",
        out->size > 0 ? "; " : "", p->sim.uniform_rank_count, 100 * EVEN_TIME_ERROR_MAX);
}

/* Returns the fact of the device's file that gives attention's rate, forward or backward, at the smallest head dim
 * of at least `dim`; NULL: the file has none. */
static const struct cost_fact *find_attention_rate_cost_fact(const struct device_cost *cost,
                                                             enum attention_impl impl,
                                                             enum attention_direction pass,
                                                             int64_t dim)
{
    const struct cost_attention *attention = &cost->attention[impl][pass];
    char name[80];
    size_t i = 0;
    while (i < attention->dim_count && attention->head_dim[i] < dim)
        i++;
    if (i == attention->dim_count)
        return NULL;
    snprintf(name, sizeof name, "attention.%s.%s.rates.%lld", attention_impl_name(impl),
             pass == ATTENTION_FORWARD_PASS ? "forward" : "backward",
             (long long)attention->head_dim[i]);
    for (size_t k = 0; k < cost->facts.count; k++)
        if (strcmp(cost->facts.row[k].name, name) == 0)
            return &cost->facts.row[k];
    return NULL;
}

/* If heads are wider than those of all measured steps, appends a warning, with the range of
 * attention's rate that the device's file gives for each direction, if it gives one. */
static void put_wide_heads_warning(struct text *out, const struct setup *setup,
                                   enum attention_impl impl)
{
    const struct device_cost *cost = &setup->cost;
    const double widest =
        cost->attention[impl][ATTENTION_FORWARD_PASS].calibration.largest_size[COST_SIZE_DIM];
    if (cost->is_ideal || widest <= 0 || (double)setup->model.head_dim <= widest)
        return;
    text_printf(out, "%sheads of %lld were in no measured step", out->size > 0 ? "; " : "",
                (long long)setup->model.head_dim);
    for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++) {
        const struct cost_fact *rate = find_attention_rate_cost_fact(
            cost, impl, (enum attention_direction)pass, setup->model.head_dim);
        if (rate == NULL || rate->high <= rate->low)
            continue;
        text_printf(out, ", and attention's rate %s is between ",
                    pass == ATTENTION_FORWARD_PASS ? "forward" : "backward");
        units_put(out, UNIT_FLOP_PER_S, rate->low);
        text_puts(out, " and ");
        units_put(out, UNIT_FLOP_PER_S, rate->high);
    }
}

/* Appends that async TP is predicted with overlap that PyTorch lacks, or without overlap that it has; nothing if
 * neither is so. */
static void put_async_tp_warning(struct text *out, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    if (!p->has_choices || c->tensor_plan != TENSOR_PLAN_ASYNC || c->tp == 1)
        return;
    const bool narrow = p->products.narrow_s > 0;
    if (c->kernels != KERNELS_COMPILED)
        text_printf(out,
                    "%sPyTorch makes async TP of compiled layers only (--kernels compiled); with "
                    "others nothing overlaps, and the step is predicted too fast",
                    out->size > 0 ? "; " : "");
    else if (narrow || c->micro_batch == 1)
        text_printf(out,
                    "%sof async TP the collectives %s are predicted without overlap: up to their "
                    "whole time too slow",
                    out->size > 0 ? "; " : "",
                    narrow ? "beside products in 8 bits"
                           : "of attention, since a micro-batch has one sequence,");
}

void report_put_warnings_in_one_line(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct intervals intervals = intervals_of_prediction(p);
    const struct interval *time = &intervals.intervals_by_quantity[RESIDUAL_TIME];
    double host = p->sim.step_s > 0 ? p->waterfall.cause_s[CAUSE_HOST] / p->sim.step_s : 0;
    if (r->filled_in_options_warning != NULL)
        text_puts(out, r->filled_in_options_warning);
    if (r->packed_batch != NULL) {
        const size_t count = r->batch_times != NULL ? r->batch_times->batch_count : 1;
        struct text dropped = {0};
        packing_put_dropped_tokens(&dropped,
                                   r->batch_times != NULL ? r->packed_batches : r->packed_batch,
                                   count, p->choices.seq);
        if (dropped.size > 0)
            text_printf(out, "%s%s", out->size > 0 ? "; " : "", dropped.data);
        text_release(&dropped);
    }
    if (p->has_choices && p->choices.core_gets_causal_mask_tensor)
        text_printf(out,
                    "%scompiled transformers give SDPA a mask, so that attention computes masked "
                    "pairs, too; flash_attention_2 (--attention fa2) would not",
                    out->size > 0 ? "; " : "");
    put_async_tp_warning(out, p);
    if (prediction_is_recorded(p))
        report_put_recorded_warning(out, p);
    put_other_device_warning(out, p->setup);
    put_wide_heads_warning(out, p->setup, (enum attention_impl)p->choices.attention_impl);
    /* not for a device with measured steps, whose errors already show how good its costs are */
    if (p->extrapolated_share >= REPORT_EXTRAPOLATED_SHARE && !time->device_is_measured) {
        text_printf(out, "%s%.0f %% of compute time lies outside calibration",
                    out->size > 0 ? "; " : "", 100 * p->extrapolated_share);
        if (p->extrapolation_reason.size > 0)
            text_printf(out, ": %s", p->extrapolation_reason.data);
    }
    if (host > HOST_TIME_SHARE_DECIDING && p->times_have_checkpoint_costs) {
        text_printf(out,
                    "%sthe host decides %.0f %% of the step: %g ms per checkpoint on the host, "
                    "fitted to runs of >= 8K tokens a GPU: docs/accuracy.md",
                    out->size > 0 ? "; " : "", 100 * host,
                    1e3 * p->profile->host_per_checkpoint_copy_s);
    } else if (host > HOST_LAUNCH_WAIT_SHARE &&
               (p->profile == NULL || p->profile->host_before_optimizer_s <= 0))
        text_printf(out,
                    "%shost-bound: for %.0f %% of the step the GPU waits for the host to launch "
                    "work; CUDA graphs or %s would hide it",
                    out->size > 0 ? "; " : "", 100 * host,
                    prediction_is_recorded(p) ? "torch.compile" : "a larger --micro-batch");
    if (p->sim.uniform_rank_count > 0)
        put_even_ring_warning(out, p);
}

/* Appends the number of tokens of a training, in the units that --tokens takes. */
static void put_total_tokens(struct text *out, double tokens)
{
    double unit = tokens >= 1e12 ? 1e12 : tokens >= 1e9 ? 1e9 : 1;
    text_put_double(out, tokens / unit);
    text_puts(out, unit == 1e12 ? "T" : unit == 1e9 ? "B" : "");
}

struct report_training_run report_make_training_run(const struct report *r)
{
    const struct batch_times *batches = r->batch_times;
    double tokens = prediction_tokens(r->prediction), step_s = r->prediction->sim.step_s;
    if (batches != NULL) {
        tokens = step_s = 0;
        for (size_t i = 0; i < batches->batch_count; i++) {
            tokens += (double)r->packed_batches[i].document_tokens / (double)batches->batch_count;
            step_s += batches->step_s[i] / (double)batches->batch_count;
        }
    }
    const double steps = ceil(r->training_run_tokens / tokens), seconds = steps * step_s;
    return (struct report_training_run){
        .step_count = steps,
        .seconds = seconds,
        .gpu_hours = seconds / 3600 * prediction_gpus(r->prediction),
    };
}

void report_print_training_run(struct sheet *sheet, const struct report *r)
{
    if (!(r->training_run_tokens > 0))
        return;
    const struct report_training_run training = report_make_training_run(r);
    struct text line = {0};
    put_total_tokens(&line, r->training_run_tokens);
    const struct intervals intervals = intervals_of_prediction(r->prediction);
    const struct interval *time = &intervals.intervals_by_quantity[RESIDUAL_TIME];
    text_printf(&line, " tokens in %.0f steps%s: %.2f days", training.step_count,
                r->batch_times != NULL ? " (as the mean of the batches)" : "",
                training.seconds / 86400);
    intervals_put_in_brackets(&line, " (90 %: ", time, training.seconds, 86400);
    text_printf(&line, ", %.0f GPU-hours", training.gpu_hours);
    if (r->price_per_gpu_hour > 0) {
        text_printf(&line, ", %.0f at %g an hour", training.gpu_hours * r->price_per_gpu_hour,
                    r->price_per_gpu_hour);
        intervals_put_in_brackets(&line, " (90 %: ", time,
                                  training.gpu_hours * r->price_per_gpu_hour, 1);
    }
    sheet_put_line(sheet, "training", line.data);
    text_release(&line);
}
