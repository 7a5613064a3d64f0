/* The report as JSON: the same figures, in SI units and with all their digits. */
#include "base/units.h"
#include "cli/report.h"
#include "models/mfu.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct writer {
    struct text *out;
    int depth;
    bool first;
};

static void put_string(struct text *out, const char *string)
{
    text_putc(out, '"');
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            text_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_printf(out, "\\u%04x", (unsigned)*c);
        else
            text_putc(out, *c);
    }
    text_putc(out, '"');
}

static void put_key(struct writer *w, const char *key)
{
    text_printf(w->out, "%s\n%*s", w->first ? "" : ",", 2 * w->depth, "");
    w->first = false;
    put_string(w->out, key);
    text_puts(w->out, ": ");
}

static void put_object(struct writer *w, const char *key)
{
    if (key != NULL)
        put_key(w, key);
    text_putc(w->out, '{');
    w->depth++;
    w->first = true;
}

static void end_object(struct writer *w)
{
    w->depth--;
    text_printf(w->out, "\n%*s}", 2 * w->depth, "");
    w->first = false;
}

static void put_number(struct writer *w, const char *key, double value)
{
    put_key(w, key);
    if (isfinite(value))
        text_put_double(w->out, value);
    else
        text_puts(w->out, "null"); /* JSON has no infinity */
}

static void put_bytes(struct writer *w, const char *key, uint64_t value)
{
    put_key(w, key);
    if (value == UINT64_MAX)
        text_puts(w->out, "null");
    else
        text_printf(w->out, "%llu", (unsigned long long)value);
}

static void put_text(struct writer *w, const char *key, const char *value)
{
    put_key(w, key);
    put_string(w->out, value);
}

static void put_bool(struct writer *w, const char *key, bool value)
{
    put_key(w, key);
    text_puts(w->out, value ? "true" : "false");
}

static void put_verdict(struct writer *w, const struct verdict *v)
{
    static const char *const names[LIMIT_COUNT] = {"device", "host"};
    put_bool(w, "fits", v->fits);
    put_text(w, "limit", names[v->limit]);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        put_object(w, names[i]);
        put_bytes(w, "needed_bytes", v->needed[i]);
        put_bytes(w, "available_bytes", v->available[i]);
        end_object(w);
    }
}

static void put_choices(struct writer *w, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    size_t count;
    put_text(w, "model", c->model->name);
    put_text(w, "strategy", compose_strategies(&count)[c->strategy].name);
    put_text(w, "profile", c->profile->name);
    put_bytes(w, "cp", c->cp);
    put_bytes(w, "hp", c->hp);
    put_bytes(w, "window", c->window);
    put_text(w, "placement", placement_names[c->placement]);
    put_bytes(w, "dp", c->dp);
    put_text(w, "weights", weights_names[c->weights]);
    put_bytes(w, "shard", c->shard);
    put_text(w, "activations", activations_names[c->activations]);
    put_text(w, "optimizer", optimizer_names[c->optimizer]);
    put_bytes(w, "micro_batch", (uint64_t)c->micro_batch);
    put_bytes(w, "accumulation", c->accumulation);
    put_bytes(w, "loss_chunks", c->loss_chunks);
    put_bytes(w, "ffn_chunks", c->ffn_chunks);
    put_text(w, "dtype", dtype_name((enum dtype)c->dtype));
}

static void put_times(struct writer *w, const struct prediction *p)
{
    put_number(w, "step_s", p->sim.step_s);
    put_number(w, "tokens_per_s_gpu", p->tokens_per_s_gpu);
    put_object(w, "mfu");
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++)
        put_number(w, mfu_table[i].name,
                   mfu_fraction((enum mfu_convention)i, p->choices.model, p->choices.seq,
                                prediction_sequences(p), prediction_recomputes(p), p->sim.step_s,
                                p->choices.ranks, p->setup->cluster.device.peak_flop_per_s));
    end_object(w);
    put_number(w, "hfu", report_hfu(p));
    put_object(w, "waterfall_s");
    for (int i = 0; i < CAUSE_COUNT; i++)
        put_number(w, cause_name((enum cause)i), p->waterfall.cause_s[i]);
    end_object(w);
}

static void put_memory(struct writer *w, const struct prediction *p)
{
    const struct sim_peak *peak = &p->sim.peak[p->sim.class_of_rank[0]][MEMORY_HBM];
    put_object(w, "memory");
    put_object(w, "arena_bytes");
    for (int i = 0; i < MEMORY_COUNT; i++)
        put_bytes(w, memory_name((enum memory)i), p->ir.arena_bytes[i]);
    end_object(w);
    put_bytes(w, "peak_bytes", peak->bytes);
    put_object(w, "at_peak_bytes");
    for (int i = 0; i < CATEGORY_COUNT; i++)
        put_bytes(w, category_name((enum category)i), peak->category_bytes[i]);
    end_object(w);
    put_bytes(w, "reserved_bytes", p->reserved.total);
    put_object(w, "reserved_parts_bytes");
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        put_bytes(w, reserved_part_name((enum reserved_part)i), p->reserved.bytes[i]);
    end_object(w);
    end_object(w);
}

static void put_simulation(struct writer *w, const struct prediction *p)
{
    put_object(w, "simulation");
    put_bytes(w, "ranks", p->sim.rank_count);
    put_bytes(w, "classes", p->sim.class_count);
    put_bytes(w, "op_instances", p->sim.counts.op_instances);
    put_bytes(w, "simulated", p->sim.counts.simulated);
    put_bytes(w, "flows", p->sim.counts.flows);
    put_bytes(w, "timers", p->sim.counts.timers);
    put_number(w, "extrapolated_share", p->extrapolated_share);
    put_text(w, "extrapolated", p->extrapolated.size > 0 ? p->extrapolated.data : "");
    end_object(w);
    if (p->sim.load_count > 0) {
        put_object(w, "busiest_link");
        put_text(w, "name", p->sim.load[0].name);
        put_number(w, "bytes", p->sim.load[0].bytes);
        put_number(w, "bytes_per_s", p->sim.load[0].bytes_per_s);
        put_number(w, "busy", p->sim.load[0].busy);
        end_object(w);
    }
}

static void put_next(struct writer *w, const struct report *r)
{
    if (r->best == NULL)
        return;
    if (r->best->ideal_step_s > 0)
        put_number(w, "ideal_step_s", r->best->ideal_step_s);
    put_object(w, "next");
    put_text(w, "options", r->best->options);
    put_bytes(w, "tried", r->best->tried);
    if (r->best->options[0] != '\0') {
        put_number(w, "step_s", r->best->step_s);
        put_verdict(w, &r->best->verdict);
    }
    end_object(w);
}

void report_print_json(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    struct writer w = {.out = out};
    put_object(&w, NULL);
    put_object(&w, "verdict");
    put_verdict(&w, &p->verdict);
    end_object(&w);
    put_object(&w, "configuration");
    put_text(&w, "cluster", p->setup->cluster.name);
    put_bytes(&w, "gpus", mesh_ranks(&p->ir.mesh));
    put_bytes(&w, "sequence_tokens", (uint64_t)p->ir.layout.tokens);
    put_bytes(&w, "sequences", (uint64_t)prediction_sequences(p));
    put_text(&w, "attention", attention_impl_name((enum attention_impl)p->choices.attention_impl));
    if (p->has_choices)
        put_choices(&w, p);
    end_object(&w);
    put_times(&w, p);
    put_memory(&w, p);
    put_simulation(&w, p);
    if (r->total_tokens > 0) {
        double steps = ceil(r->total_tokens / prediction_tokens(p));
        double hours = steps * p->sim.step_s / 3600 * (double)mesh_ranks(&p->ir.mesh);
        put_object(&w, "training");
        put_number(&w, "tokens", r->total_tokens);
        put_number(&w, "steps", steps);
        put_number(&w, "days", steps * p->sim.step_s / 86400);
        put_number(&w, "gpu_hours", hours);
        if (r->price > 0)
            put_number(&w, "cost", hours * r->price);
        end_object(&w);
    }
    put_next(&w, r);
    end_object(&w);
    text_putc(out, '\n');
}
