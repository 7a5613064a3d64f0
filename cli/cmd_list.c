/* longhaul list: what there is, a function per table. */
#include "cli/command.h"

#include "models/cluster.h"
#include "models/cost.h"
#include "models/mfu.h"
#include "models/transformer.h"
#include "schedule/compose.h"
#include "schedule/reserved.h"
#include "schedule/verify.h"

#include <string.h>

static void put_row(struct text *out, const char *name, const char *summary)
{
    text_printf(out, "%-24s", name);
    options_print_wrapped(out, summary, 24, 24);
}

static enum status list_strategies(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    size_t count;
    const struct strategy *table = compose_strategies(&count);
    for (size_t i = 0; i < count; i++) {
        struct text summary = {0};
        text_printf(&summary,
                    "%s; attention %s, weights %s, pipeline %s, activations %s, profile %s",
                    table[i].summary, attention_names[table[i].attention],
                    weights_names[table[i].weights], pipeline_names[table[i].pipeline],
                    activations_names[table[i].activations], table[i].profile);
        put_row(out, table[i].name, summary.data);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_profiles(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    size_t count;
    const struct profile *table = compose_profiles(&count);
    for (size_t i = 0; i < count; i++)
        put_row(out, table[i].name, table[i].summary);
    put_row(out, "published", "the implementation that the strategy was published with");
    return STATUS_OK;
}

static enum status list_models(struct text *out, struct arena *arena, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = transformer_presets(&names, &count, arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct transformer t;
        struct text summary = {0};
        status = transformer_load(&t, arena, names[i], NULL, diag);
        if (status != STATUS_OK)
            break;
        text_printf(&summary,
                    "%lld parameters: %lld layers, hidden %lld, %lld heads (%lld kv) of %lld, ffn "
                    "%lld %s, vocabulary %lld",
                    (long long)transformer_parameters(&t), (long long)t.layers, (long long)t.hidden,
                    (long long)t.heads, (long long)t.kv_heads, (long long)t.head_dim,
                    (long long)t.ffn, activation_names[t.activation], (long long)t.vocab);
        put_row(out, names[i], summary.data);
        text_release(&summary);
    }
    return status;
}

static enum status list_clusters(struct text *out, struct arena *arena, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cluster_presets(&names, &count, arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct cluster cluster;
        status = cluster_load(&cluster, arena, names[i], diag);
        if (status == STATUS_OK)
            put_row(out, names[i], cluster.summary != NULL ? cluster.summary : "");
    }
    return status;
}

static enum status list_devices(struct text *out, struct arena *arena, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cost_presets(&names, &count, arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct device_cost cost;
        status = cost_load(&cost, arena, names[i], diag);
        if (status == STATUS_OK)
            put_row(out, names[i], cost.note != NULL ? cost.note : "");
    }
    return status;
}

static enum status list_kinds(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    for (int i = 0; i < WORK_KIND_COUNT; i++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)i);
        struct text summary = {0};
        text_printf(&summary, "on %s;", stream_class_name(info->stream));
        for (int k = 0; k < info->param_count; k++)
            text_printf(&summary, " %s%s", info->param[k].name, info->param[k].optional ? "?" : "");
        put_row(out, info->name, summary.data);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_rules(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    for (size_t i = 0; i < VERIFY_RULES; i++)
        put_row(out, verify_rule_name(i), verify_rule_guarantee(i));
    return STATUS_OK;
}

static enum status list_conventions(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        struct text summary = {0};
        text_printf(&summary, "%s; %s", mfu_table[i].formula, mfu_table[i].source);
        put_row(out, mfu_table[i].name, summary.data);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_reserved(struct text *out, struct arena *arena, struct diag *diag)
{
    (void)arena;
    (void)diag;
    size_t count;
    const struct reserved_constant *table = reserved_constants(&count);
    for (size_t i = 0; i < count; i++) {
        struct text summary = {0};
        text_printf(&summary, "%s: %s", table[i].value, table[i].source);
        text_printf(out, "%s\n%*s", table[i].name, 24, "");
        options_print_wrapped(out, summary.data, 24, 24);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status show_model(struct text *out, const char *name, struct arena *arena,
                              struct diag *diag)
{
    struct transformer t;
    enum status status = transformer_load(&t, arena, name, NULL, diag);
    if (status != STATUS_OK)
        return status;
    text_printf(out, "%s: %lld parameters\n", t.name, (long long)transformer_parameters(&t));
    text_printf(out,
                "layers %lld\nhidden %lld\nheads %lld\nkv_heads %lld\nhead_dim %lld\nffn %lld\n",
                (long long)t.layers, (long long)t.hidden, (long long)t.heads, (long long)t.kv_heads,
                (long long)t.head_dim, (long long)t.ffn);
    text_printf(out, "vocab %lld\nactivation %s\nnorm %s\npositions %s\ntied_head %s\n",
                (long long)t.vocab, activation_names[t.activation], norm_names[t.norm],
                positions_names[t.positions], t.tied_head ? "true" : "false");
    if (t.source != NULL)
        text_printf(out, "source: %s\n", t.source);
    if (t.note != NULL)
        text_printf(out, "note: %s\n", t.note);
    return STATUS_OK;
}

static enum status show_cluster(struct text *out, const char *name, struct arena *arena,
                                struct diag *diag)
{
    struct cluster cluster;
    enum status status = cluster_load(&cluster, arena, name, diag);
    if (status == STATUS_OK)
        cluster_print(out, &cluster);
    return status;
}

static enum status show_device(struct text *out, const char *name, struct arena *arena,
                               struct diag *diag)
{
    struct device_cost cost;
    enum status status = cost_load(&cost, arena, name, diag);
    if (status == STATUS_OK)
        cost_print(out, &cost);
    return status;
}

static const struct list {
    const char *name, *summary;
    enum status (*all)(struct text *out, struct arena *arena, struct diag *diag);
    enum status (*one)(struct text *out, const char *name, struct arena *arena, struct diag *diag);
} lists[] = {
    {"strategies", "named combinations of the five choices", list_strategies, NULL},
    {"profiles", "implementations, and what tells them apart", list_profiles, NULL},
    {"models", "transformers; with a name, its fields", list_models, show_model},
    {"clusters", "clusters; with a name, every number and source", list_clusters, show_cluster},
    {"devices", "costs of devices; with a name, every number", list_devices, show_device},
    {"kinds", "kinds of work and their parameters", list_kinds, NULL},
    {"rules", "what `check` checks, and what each rule promises", list_rules, NULL},
    {"conventions", "how sources count model flops", list_conventions, NULL},
    {"reserved", "constants of a framework's memory, with sources", list_reserved, NULL},
};

static enum status find_list(const struct list **list, const char *name, struct diag *diag)
{
    const char *names[ARRAY_LEN(lists)];
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        names[i] = lists[i].name;
        if (strcmp(lists[i].name, name) == 0) {
            *list = &lists[i];
            return STATUS_OK;
        }
    }
    const char *nearest = diag_nearest(name, names, ARRAY_LEN(names));
    return diag_error(diag, (struct loc){.name = "list"}, STATUS_BAD_INPUT,
                      "there is no list of '%s'%s%s%s", name,
                      nearest != NULL ? "; did you mean '" : "; `longhaul list` has them all",
                      nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

enum status cmd_list(const struct options *options, struct diag *diag)
{
    struct text out = {0};
    struct arena arena = {0};
    const struct list *list = NULL;
    enum status status = STATUS_OK;
    if (options->argument_count == 0)
        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
            put_row(&out, lists[i].name, lists[i].summary);
    else
        status = find_list(&list, options->argument[0], diag);
    if (status == STATUS_OK && options->argument_count == 1)
        status = list->all(&out, &arena, diag);
    if (status == STATUS_OK && options->argument_count == 2) {
        if (list->one == NULL)
            status = diag_error(diag, (struct loc){.name = "list"}, STATUS_BAD_INPUT,
                                "%s have no more to show than `longhaul list %s` does", list->name,
                                list->name);
        else
            status = list->one(&out, options->argument[1], &arena, diag);
    }
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    arena_release(&arena);
    return status;
}
