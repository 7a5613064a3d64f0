#include "cli/setup/request_options.h"

#include "base/units.h"
#include "predict/setup/partition_option.h"
#include "schedule/choices/strategies.h"

#include <string.h>

static void put_count(struct text *out, const char *name, int64_t value, int64_t usual)
{
    if (value > usual)
        text_printf(out, " --%s %lld", name, (long long)value);
}

/* value is a row of names; the first is the default. */
static void put_name(struct text *out, const char *name, int value, const char *const *names)
{
    if (value > 0)
        text_printf(out, " --%s %s", name, names[value]);
}

const char *request_partition_name(const struct request *r)
{
    return partition_option_names[r->partition];
}

void request_put_offload_ratio(struct text *out, bool adaptive, double ratio)
{
    if (adaptive)
        text_puts(out, "adaptive");
    else if (ratio > 0 && ratio < 1)
        text_put_double(out, ratio);
    else
        text_puts(out, "full");
}

/* Ratios imply that activations leave by them; a strategy that has them by default is said to. */
static void put_activations(struct text *out, const struct request *r)
{
    if (r->offload_adaptive || r->activations == CHOICE_ACTIVATIONS_RATIO) {
        text_puts(out, " --offload-ratio ");
        request_put_offload_ratio(out, r->offload_adaptive, r->offload_ratio);
    } else if (r->activations >= 0) {
        text_printf(out, " --activations %s", activations_names[r->activations]);
    }
}

/* Appends shared units in the form that --share-units reads. */
static void put_shared(struct text *out, const struct shared_units *shared)
{
    text_puts(out, " --share-units ");
    if (shared->first != SHARED_ALL)
        text_printf(out, "%u,%u", shared->first, shared->last);
    else
        text_puts(out, shared->last == SHARED_ALL ? "both" : "first");
}

static void put_pipeline(struct text *out, const struct request *r)
{
    put_count(out, "pp", r->pp, 1);
    put_name(out, "pipeline", r->pipeline, pipeline_names);
    put_count(out, "virtual-stages", r->virtual_stages, 0);
    put_count(out, "subsequences", r->subsequences, 0); /* 1 is not what sppo fills in */
    if (r->subsequences > 1)
        text_printf(out, " --partition %s", request_partition_name(r));
    if (r->pipeline == CHOICE_PIPELINE_MSP)
        put_name(out, "helper-weights", r->helpers, helper_names);
    if (r->pipeline == CHOICE_PIPELINE_MSP && r->shared != NULL)
        put_shared(out, r->shared);
}

/* Appends the share of a chunk's keys that other chunks do not see: setup_sparsity() makes a number of keys of it. */
static void put_sparsity(struct text *out, const struct request *r)
{
    const struct transformer *m = r->model;
    if (m == NULL || m->attention_chunk <= 0)
        return;
    text_puts(out, " --sparsity ");
    text_put_double(out,
                    (double)(m->attention_chunk - m->attention_kept) / (double)m->attention_chunk);
}

void request_put_options(struct text *out, const struct request *r)
{
    text_printf(out, "--strategy %s", r->strategy);
    const char *profile = r->profile != NULL ? r->profile : "published";
    if (strcmp(profile, "neutral") != 0)
        text_printf(out, " --profile %s", profile);
    put_count(out, "tp", r->tp, 1);
    put_count(out, "cp", r->cp, 1);
    put_count(out, "hp", r->hp, 1);
    put_count(out, "dp", r->dp, 0);
    put_pipeline(out, r);
    put_count(out, "window", r->window, 1);
    put_name(out, "windows", r->windows, windows_names);
    put_name(out, "rotate", r->rotate, rotation_names);
    put_name(out, "layout", r->ring_layout, ring_layout_names);
    put_name(out, "placement", r->placement, placement_names);
    put_name(out, "stage-placement", r->stage_placement, stage_placement_names);
    if (r->compile)
        text_puts(out, " --compile");
    if (r->weights >= 0)
        text_printf(out, " --weights %s", weights_names[r->weights]);
    put_count(out, "shard", r->shard, 0);
    put_activations(out, r);
    if (r->optimizer == CHOICE_OPTIMIZER_HOST)
        text_puts(out, " --optimizer host");
    put_name(out, "states", r->states, states_names);
    put_name(out, "dropout", r->dropout, dropout_names);
    put_count(out, "micro-batch", r->micro_batch, 1);
    if (r->chunk > 0) {
        text_puts(out, " --chunk ");
        units_put_tokens(out, r->chunk);
    }
    put_name(out, "kv-offload", r->kv_offload, kv_offload_names);
    put_name(out, "fetch", r->fetch, fetch_names);
    put_name(out, "chunk-order", r->chunk_order, chunk_order_names);
    put_sparsity(out, r);
    put_count(out, "loss-chunks", r->loss_chunks, 0); /* 1 is not what fpdt fills in */
    put_count(out, "ffn-chunks", r->ffn_chunks, 0);
    if (r->attention_impl >= 0)
        text_printf(out, " --attention %s",
                    attention_impl_name((enum attention_impl)r->attention_impl));
    if (r->dtype >= 0)
        text_printf(out, " --dtype %s", dtype_name((enum dtype)r->dtype));
}
