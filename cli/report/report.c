#include "cli/report/report.h"

#include "cli/setup/request_options.h"
#include "predict/intervals.h"
#include "predict/link_classes.h"
#include "predict/setup/partition_option.h"

#include "base/units.h"
#include "models/mfu.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With lines this wide, 16 hold everything. */
enum { WIDTH = 132 };

/* Categories under this share of the peak are left out of the text. */
#define TINY 1e-3

/* ---- times that add up ---- */

struct report_time report_time_for(double whole_s)
{
    static const struct report_time units[] = {{1, 3, "s"}, {1e-3, 3, "ms"}, {1e-6, 3, "us"}};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(units) && whole_s < units[i].unit_s)
        i++;
    struct report_time time = units[i];
    double limit = 100 * time.unit_s;
    while (whole_s >= limit && time.decimals > 0) {
        limit *= 10;
        time.decimals--;
    }
    return time;
}

void report_round(const double *part_s, size_t count, double whole_s, struct report_time time,
                  long long *rounded)
{
    double step = time.unit_s / pow(10, time.decimals);
    long long whole = llround(whole_s / step), sum = 0;
    for (size_t i = 0; i < count; i++) {
        rounded[i] = (long long)floor(part_s[i] / step);
        sum += rounded[i];
    }
    for (; sum < whole; sum++) { /* the largest remainder first */
        size_t most = 0;
        for (size_t i = 1; i < count; i++)
            if (part_s[i] / step - (double)rounded[i] > part_s[most] / step - (double)rounded[most])
                most = i;
        rounded[most]++;
    }
}

/* ---- lines ---- */

/* Pieces joined by ", ", broken into lines that are indented under the first. */
struct line {
    struct text *out;
    size_t column, indent;
    bool first;
};

static struct line begin_line(struct text *out, const char *label)
{
    text_printf(out, "%-11s", label);
    return (struct line){.out = out, .column = 11, .indent = 11, .first = true};
}

static void put_piece(struct line *line, struct text *piece)
{
    if (!line->first && line->column + 2 + piece->size > WIDTH) {
        text_printf(line->out, ",\n%*s", (int)line->indent, "");
        line->column = line->indent;
    } else if (!line->first) {
        text_puts(line->out, ", ");
        line->column += 2;
    }
    text_append(line->out, piece->data, piece->size);
    line->column += piece->size;
    line->first = false;
    piece->size = 0;
}

static void put_need(struct text *out, const struct verdict *v, enum prediction_limit limit,
                     const struct intervals *intervals)
{
    verdict_print(out, v, limit);
    if (limit == LIMIT_HOST) {
        text_puts(out, " a node");
        return;
    }
    text_printf(out, " a GPU%s", v->by_reserved ? "" : ", by arena");
    intervals_put_beside(out, " (90 %: ", &intervals->of[RESIDUAL_MEMORY], (double)v->needed[limit],
                         0x1p30);
}

/* What does not fit is all said at once: the memory that lacks the largest share first. */
static void print_verdict(struct text *out, const struct report *r)
{
    const struct verdict *v = &r->prediction->verdict;
    const char *name = prediction_limit_name(v->limit);
    const struct intervals intervals = intervals_of(r->prediction);
    text_printf(out, v->fits ? "fits: the limit is %s, which " : "does not fit: %s ", name);
    put_need(out, v, v->limit, &intervals);
    for (int limit = 0; limit < LIMIT_COUNT; limit++) {
        if (limit == (int)v->limit || v->needed[limit] <= v->available[limit])
            continue;
        text_printf(out, ", and %s ", prediction_limit_name((enum prediction_limit)limit));
        put_need(out, v, (enum prediction_limit)limit, &intervals);
    }
    verdict_put_close(out, v);
    text_putc(out, '\n');
}

/* How they are cut, which of them stages share, and how these come by each other's weights. */
static void put_subsequences(struct text *out, const struct prediction *p)
{
    const struct choices *c = &p->choices;
    text_printf(out, "%u subsequences (partition %s", c->subsequences,
                partition_option_names[p->partition]);
    if (c->pipeline != CHOICE_PIPELINE_MSP) {
        text_putc(out, ')');
        return;
    }
    text_puts(out, "; shared:");
    if (c->shared.first > 0)
        text_printf(out, " first %u", c->shared.first);
    if (c->shared.last > 0)
        text_printf(out, "%s last %u", c->shared.first > 0 ? "," : "", c->shared.last);
    text_printf(out, "; helper weights %s)", helper_names[c->helpers]);
}

void report_print_choices(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct choices *c = &p->choices;
    const struct cluster *cluster = &p->setup->cluster;
    struct text piece = {0};
    struct line line = begin_line(out, "what");
    if (p->has_choices) {
        text_printf(&piece, "%s", c->model->name);
        put_piece(&line, &piece);
    }
    text_printf(&piece, "%lld x ", (long long)prediction_sequences(p));
    units_put_tokens(&piece, p->ir.layout.tokens);
    text_puts(&piece, " tokens");
    put_piece(&line, &piece);
    if (cluster->fabric.kind == FABRIC_LOOPBACK)
        text_printf(&piece, "%u rank%s on one GPU of %s", mesh_ranks(&p->ir.mesh),
                    mesh_ranks(&p->ir.mesh) == 1 ? "" : "s", cluster->name);
    else
        text_printf(&piece, "%u GPU%s of %s", mesh_ranks(&p->ir.mesh),
                    mesh_ranks(&p->ir.mesh) == 1 ? "" : "s", cluster->name);
    put_piece(&line, &piece);
    if (p->has_choices) {
        size_t count;
        text_printf(&piece, "%s", compose_strategies(&count)[c->strategy].name);
        if (c->cp > 1)
            text_printf(&piece, " cp=%u", c->cp);
        if (c->window > 1)
            text_printf(&piece, " in windows of %u", c->window);
        if (c->tp > 1)
            text_printf(&piece, " tp=%u", c->tp);
        if (c->cp > 1 && c->rotation != ROTATE_P2P)
            text_printf(&piece, " by %s", rotation_names[c->rotation]);
        text_printf(&piece, " hp=%u dp=%u", c->hp, c->dp);
        if (c->cp > 1 && c->hp > 1)
            text_printf(&piece, ", %s", placement_names[c->placement]);
        put_piece(&line, &piece);
        if (c->pp > 1) {
            text_printf(&piece, "pp=%u %s", c->pp, pipeline_names[c->pipeline]);
            if (c->virtual_stages > 1)
                text_printf(&piece, " x %u", c->virtual_stages);
            if (c->dp > 1 && c->stage_placement == STAGES_INNER)
                text_puts(&piece, ", stages inside dp");
            put_piece(&line, &piece);
        }
        if (c->subsequences > 1) {
            put_subsequences(&piece, p);
            put_piece(&line, &piece);
        }
        text_printf(&piece, "weights %s", weights_names[c->weights]);
        if (c->weights == CHOICE_WEIGHTS_HSDP ||
            (c->weights == CHOICE_WEIGHTS_ZERO1 && c->shard < c->ranks / c->pp / c->tp))
            text_printf(&piece, " over %u", c->shard);
        put_piece(&line, &piece);
        text_printf(&piece, "activations %s", activations_names[c->activations]);
        if (c->activations == CHOICE_ACTIVATIONS_RATIO) {
            text_putc(&piece, ' ');
            request_put_offload_ratio(&piece, c->offload_hidden > 0, c->offload_ratio);
        }
        put_piece(&line, &piece);
        text_printf(&piece, "optimizer on %s", optimizer_names[c->optimizer]);
        if (c->states != STATES_FP32)
            text_printf(&piece, " in %s", states_names[c->states]);
        bool drops = c->profile->attention_dropout && c->attention != CHOICE_ATTENTION_FPDT;
        if (c->attention_dropout != drops) { /* what the profile does goes without saying */
            put_piece(&line, &piece);
            text_printf(&piece, "%s dropout", c->attention_dropout ? "attention" : "no");
        }
        put_piece(&line, &piece);
        if (c->loss_chunks > 1 || c->ffn_chunks > 1) {
            text_printf(&piece, "loss in %u and ffn in %u", c->loss_chunks, c->ffn_chunks);
            put_piece(&line, &piece);
        }
        if (c->accumulation > 1 || c->micro_batch > 1) {
            text_printf(&piece, "%u micro-batch%s of %lld", c->accumulation,
                        c->accumulation == 1 ? "" : "es", (long long)c->micro_batch);
            put_piece(&line, &piece);
        }
        text_printf(&piece, "%s", dtype_name((enum dtype)c->dtype));
        put_piece(&line, &piece);
    }
    text_puts(&piece, attention_impl_name((enum attention_impl)c->attention_impl));
    put_piece(&line, &piece);
    if (p->has_choices) {
        bool published = r->profile != NULL && strcmp(r->profile, "published") == 0;
        text_printf(&piece, "profile %s%s", c->profile->name, published ? " (published)" : "");
    } else if (p->profile != NULL) {
        text_printf(&piece, "times of profile %s", p->profile->name);
    } else {
        text_puts(&piece, "no profile");
    }
    put_piece(&line, &piece);
    text_putc(out, '\n');
    text_release(&piece);
}

void report_put_time(struct text *out, double seconds, double whole_s)
{
    struct report_time time = report_time_for(whole_s);
    text_printf(out, "%.*f %s", time.decimals, seconds / time.unit_s, time.name);
}

static void print_step(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    double fraction[MFU_CONVENTION_COUNT] = {0};
    struct text piece = {0};
    struct line line = begin_line(out, "step");
    const struct intervals intervals = intervals_of(p);
    const struct interval *interval = &intervals.of[RESIDUAL_TIME];
    struct report_time time = report_time_for(p->sim.step_s);
    report_put_time(&piece, p->sim.step_s, p->sim.step_s);
    intervals_put_beside(&piece, " (90 %: ", interval, p->sim.step_s, time.unit_s);
    put_piece(&line, &piece);
    text_printf(&piece, "%.1f tokens/s/GPU", p->tokens_per_s_gpu);
    intervals_put_beside(&piece, " (", interval, p->tokens_per_s_gpu, 1);
    put_piece(&line, &piece);
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++) {
        fraction[i] = prediction_mfu(p, (enum mfu_convention)i);
        text_printf(&piece, "%s%s %.1f %%", i == 0 ? "MFU " : "", mfu_table[i].name,
                    100 * fraction[i]);
        if (i == MFU_LONGHAUL)
            intervals_put_beside(&piece, " (", interval, 100 * fraction[i], 1);
        put_piece(&line, &piece);
    }
    text_printf(&piece, "HFU %.1f %%", 100 * prediction_hfu(p));
    put_piece(&line, &piece);
    mfu_put_excess(&piece, fraction);
    if (piece.size > 0)
        put_piece(&line, &piece);
    text_putc(out, '\n');
    text_release(&piece);
}

/* A part of the model: its kernels alone, its messages alone, and both at once. */
static void print_part(struct text *out, const struct report *r)
{
    const struct operator_times *t = r->part;
    struct text piece = {0};
    struct line line = begin_line(out, "part");
    text_printf(&piece, "%s ", scope_names[r->prediction->choices.scope]);
    report_put_time(&piece, t->elapsed_s, t->elapsed_s);
    put_piece(&line, &piece);
    if (r->prediction->choices.scope == SCOPE_EXCHANGE) {
        text_puts(&piece, t->all_to_all
                              ? "all-to-alls with their packing, each call between two waits"
                              : "packing alone: there is no all-to-all");
        put_piece(&line, &piece);
        text_putc(out, '\n');
        text_release(&piece);
        return;
    }
    if (r->prediction->choices.scope == SCOPE_FETCH) {
        text_puts(&piece, "keys and values ");
        report_put_time(&piece, t->pair_s, t->pair_s);
        put_piece(&line, &piece);
        text_puts(&piece, "queries of the backward ");
        report_put_time(&piece, t->set_s, t->set_s);
        put_piece(&line, &piece);
        text_putc(out, '\n');
        text_release(&piece);
        return;
    }
    text_puts(&piece, "compute alone ");
    report_put_time(&piece, t->compute_s, t->elapsed_s);
    put_piece(&line, &piece);
    text_puts(&piece, "communication alone ");
    report_put_time(&piece, t->communication_s, t->elapsed_s);
    put_piece(&line, &piece);
    if (t->communication_s > 0) {
        double hidden = (t->compute_s + t->communication_s - t->elapsed_s) / t->communication_s;
        text_printf(&piece, "of which %.0f %% is hidden", 100 * fmin(fmax(hidden, 0), 1));
        put_piece(&line, &piece);
    }
    if (t->exchange_s > 0) {
        text_puts(&piece, t->all_to_all ? "all-to-alls with their packing " : "packing ");
        report_put_time(&piece, t->exchange_s, t->elapsed_s);
        put_piece(&line, &piece);
    }
    text_putc(out, '\n');
    text_release(&piece);
}

/* " = pinned 51.2 GiB + rounding 3.1 GiB + pageable 40 GiB", where there are parts. */
static void put_host_parts(struct text *out, const struct prediction *p)
{
    const uint64_t *arena = p->ir.arena_bytes;
    double all = (double)p->verdict.needed[LIMIT_HOST];
    double node =
        all / (double)((p->verdict.by_reserved ? p->reserved.pinned : arena[MEMORY_PINNED]) +
                       arena[MEMORY_PAGEABLE]);
    double pinned = node * (double)arena[MEMORY_PINNED],
           pageable = node * (double)arena[MEMORY_PAGEABLE];
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

static void print_memory(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct sim_peak *peak = prediction_peak(p);
    struct text piece = {0};
    struct line line = begin_line(out, "memory");
    text_puts(&piece, "arena ");
    units_put_gib(&piece, (double)p->ir.arena_bytes[MEMORY_HBM]);
    put_piece(&line, &piece);
    text_puts(&piece, "peak ");
    units_put_gib(&piece, (double)peak->bytes);
    put_piece(&line, &piece);
    text_puts(&piece, "reserved ");
    units_put_gib(&piece, (double)p->reserved.total);
    for (int i = 0; i < RESERVED_PART_COUNT; i++) {
        text_printf(&piece, "%s%s ", i == 0 ? " = " : " + ",
                    reserved_part_name((enum reserved_part)i));
        units_put_gib(&piece, (double)p->reserved.bytes[i]);
    }
    put_piece(&line, &piece);
    if (p->verdict.needed[LIMIT_HOST] > 0) {
        text_puts(&piece, "host ");
        units_put_gib(&piece, (double)p->verdict.needed[LIMIT_HOST]);
        text_puts(&piece, " a node");
        put_host_parts(&piece, p);
        put_piece(&line, &piece);
    }
    bool first = true;
    for (int i = 0; i < CATEGORY_COUNT; i++) {
        if ((double)peak->category_bytes[i] <= TINY * (double)peak->bytes)
            continue;
        if (first && prediction_fullest_rank(p) != 0 && p->sim.even_ranks == 0)
            text_printf(&piece, "at the peak of rank %u ", prediction_fullest_rank(p));
        else if (first)
            text_puts(&piece, "at the peak ");
        first = false;
        text_printf(&piece, "%s ", category_name((enum category)i));
        units_put_gib(&piece, (double)peak->category_bytes[i]);
        put_piece(&line, &piece);
    }
    if (peak->op != IR_NONE) {
        text_printf(&piece, "op %u (%s, %s", peak->op,
                    work_kind_info((enum work_kind)p->ir.op.kind[peak->op])->name,
                    phase_name((enum phase)p->ir.op.phase[peak->op]));
        if (p->ir.op.layer[peak->op] != IR_NONE16)
            text_printf(&piece, ", layer %u", p->ir.op.layer[peak->op]);
        text_putc(&piece, ')');
        put_piece(&line, &piece);
    }
    text_putc(out, '\n');
    text_release(&piece);
}

static void print_waterfall(struct text *out, const struct report *r)
{
    const struct waterfall *w = &r->prediction->waterfall;
    struct report_time time = report_time_for(w->step_s);
    long long rounded[CAUSE_COUNT];
    report_round(w->cause_s, CAUSE_COUNT, w->step_s, time, rounded);
    struct text piece = {0};
    struct line line = begin_line(out, r->prediction->sim.even_ranks > 0 ? "even rank" : "rank 0");
    double scale = pow(10, time.decimals);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        if (rounded[i] == 0)
            continue;
        text_printf(&piece, "%s %.*f", cause_name((enum cause)i), time.decimals,
                    (double)rounded[i] / scale);
        put_piece(&line, &piece);
    }
    text_printf(&piece, "sum %.*f %s", time.decimals, w->step_s / time.unit_s, time.name);
    put_piece(&line, &piece);
    text_putc(out, '\n');
    text_release(&piece);
}

/* ", 6 of 30 equal layers": what was simulated of those that repeat each other. */
static void put_fold(struct text *out, const struct sim_depth_fold *fold)
{
    if (fold->period == 0)
        return;
    text_printf(out, ", %u of %u equal layers", fold->simulated, fold->all);
    if (fold->period > 1)
        text_printf(out, " (a period is %u)", fold->period);
    if (fold->given_up > 0)
        text_printf(out, " (the times of %u others do not repeat)", fold->given_up);
}

static void put_depth(struct text *out, const struct sim_depth *depth)
{
    put_fold(out, &depth->layers);
    if (depth->outcome == SIM_DEPTH_UNSTEADY)
        text_puts(out, ", all layers (their times do not repeat)");
}

/* "fill 3.1 %": of the step. */
static void put_share(struct text *piece, struct line *line, const char *what, double seconds,
                      double step_s)
{
    if (seconds < TINY * step_s)
        return;
    text_printf(piece, "%s %.1f %%", what, 100 * seconds / step_s);
    put_piece(line, piece);
}

static void print_stages(struct text *out, const struct report *r)
{
    const struct stages *s = &r->prediction->stages;
    double step = r->prediction->sim.step_s;
    if (s->count < 2)
        return;
    struct text piece = {0};
    struct line line = begin_line(out, "stages");
    text_printf(&piece, "%u, idle %.1f %% of the step (%.1f %% of their work)", s->count,
                100 * s->to_step, 100 * s->to_useful);
    put_piece(&line, &piece);
    put_share(&piece, &line, "fill", s->fill_s, step);
    put_share(&piece, &line, "drain", s->drain_s, step);
    put_share(&piece, &line, "imbalance", s->imbalance_s, step);
    put_share(&piece, &line, "offload", s->offload_s, step);
    put_share(&piece, &line, "other", s->other_s, step);
    text_putc(out, '\n');
    text_release(&piece);
}

/* "; links measured on this machine: copies; not measured on it: rings within a node". */
static void put_link_classes(struct text *out, const struct prediction *p)
{
    struct link_class class[LINK_CLASSES_MAX];
    size_t count = link_classes(class, &p->ir, &p->setup->cluster);
    for (int measured = 1; measured >= 0; measured--) {
        bool first = true;
        for (size_t i = 0; i < count; i++) {
            if (class[i].measured != measured)
                continue;
            text_puts(out, !first     ? ", "
                           : measured ? "; links measured on this machine: "
                                      : "; links not measured on this machine: ");
            text_puts(out, class[i].name);
            first = false;
        }
    }
}

/* One line, however long: with the others, 16 hold everything. */
static void print_simulation(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct sim_result *sim = &p->sim;
    text_printf(out, "%-11s%u rank%s in %u %sclass%s, %llu of %llu ops", "simulated",
                sim->rank_count, sim->rank_count == 1 ? "" : "s", sim->class_count,
                sim->even_ranks > 0 ? "even " : "", sim->class_count == 1 ? "" : "es",
                (unsigned long long)sim->counts.simulated,
                (unsigned long long)sim->counts.op_instances);
    put_depth(out, &sim->depth);
    if (sim->busiest_name) {
        const struct sim_link_load *load = &sim->load[sim->busiest];
        text_printf(out, ", busiest link %s carries ", sim->busiest_name);
        units_put(out, UNIT_BYTES, load->bytes);
        text_printf(out, ", %.0f %% of its capacity of ", 100 * load->busy);
        units_put(out, UNIT_BYTES_PER_S, load->bytes_per_s);
        text_puts(out, " over the step");
    }
    put_link_classes(out, p);
    text_putc(out, '\n');
}

void report_print(struct text *out, const struct report *report)
{
    assert(report->prediction->simulated);
    if (report->part == NULL)
        print_verdict(out, report);
    report_print_choices(out, report);
    if (report->part != NULL)
        print_part(out, report);
    else
        print_step(out, report);
    if (report->part ==
        NULL) /* a part has no weights of its own, and nothing that it must fit into */
        print_memory(out, report);
    if (report->part == NULL || report->prediction->choices.scope >= SCOPE_LAYERS) {
        print_waterfall(out, report);
        print_stages(out, report);
    }
    print_simulation(out, report);
    report_print_notes(out, report);
}
