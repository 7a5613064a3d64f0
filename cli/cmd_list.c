/* longhaul list: prints the models, clusters, strategies and other tables that the program knows. Each table has a
 * function. */
#include "cli/command.h"

#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "models/cluster_fields.h"
#include "models/cost.h"
#include "models/mfu.h"
#include "models/transformer.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"
#include "schedule/reserved/reserved.h"
#include "schedule/verify/verify.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMN = 24 };

static const struct option rows[] = {
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set list_options = {"list", rows, ARRAY_LEN(rows)};

/* The output in progress: rows of text, or objects of JSON. */
struct listing {
    struct text *out;
    struct json_out json; /* its `out` is NULL if the output is text */
    struct arena arena;
};

static bool as_json(const struct listing *l)
{
    return l->json.out != NULL;
}

static void put_row(struct listing *l, const char *name, const char *summary)
{
    if (as_json(l)) {
        json_begin_object(&l->json, NULL);
        json_put_text(&l->json, "name", name);
        json_put_text(&l->json, "summary", summary);
        json_end_object(&l->json);
        return;
    }
    text_printf(l->out, "%-*s", COLUMN, name);
    screen_wrap(l->out, summary, COLUMN, COLUMN, screen_width(STDOUT_FILENO));
}

/* A part of a row's summary. JSON has the parts by their keys instead of the summary. */
struct list_section {
    const char *key, *value;
};

static void put_parts(struct listing *l, const char *name, const struct list_section *part,
                      size_t count, const char *summary)
{
    if (!as_json(l)) {
        put_row(l, name, summary);
        return;
    }
    json_begin_object(&l->json, NULL);
    json_put_text(&l->json, "name", name);
    for (size_t i = 0; i < count; i++)
        json_put_text(&l->json, part[i].key, part[i].value);
    json_end_object(&l->json);
}

/* ---- whole tables ---- */

static enum status list_strategies(struct listing *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct strategy *table = strategies_list(&count);
    for (size_t i = 0; i < count; i++) {
        const struct list_section part[] = {
            {"summary", table[i].summary},
            {"attention", attention_names[table[i].attention]},
            {"weights", weights_names[table[i].weights]},
            {"pipeline", pipeline_names[table[i].pipeline]},
            {"activations", activations_names[table[i].activations]},
            {"profile", table[i].profile},
        };
        struct text summary = {0};
        text_puts(&summary, table[i].summary);
        for (size_t k = 1; k < ARRAY_LEN(part); k++)
            text_printf(&summary, "%s %s %s", k == 1 ? ";" : ",", part[k].key, part[k].value);
        put_parts(l, table[i].name, part, ARRAY_LEN(part), summary.data);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_profiles(struct listing *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct profile *table = profiles_list(&count);
    for (size_t i = 0; i < count; i++)
        put_row(l, table[i].name, table[i].summary);
    put_row(l, "published", "the implementation that the strategy was published with");
    return STATUS_OK;
}

static enum status list_models(struct listing *l, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = transformer_presets(&names, &count, &l->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct transformer t;
        struct text summary = {0};
        status = transformer_load(&t, &l->arena, names[i], NULL, diag);
        if (status != STATUS_OK)
            break;
        text_printf(&summary,
                    "%lld parameters: %lld layers, hidden %lld, %lld heads (%lld kv) of %lld, ffn "
                    "%lld %s, vocabulary %lld",
                    (long long)transformer_parameters(&t), (long long)t.layers, (long long)t.hidden,
                    (long long)t.heads, (long long)t.kv_heads, (long long)t.head_dim,
                    (long long)t.ffn, activation_names[t.activation], (long long)t.vocab);
        if (t.experts > 0)
            text_printf(&summary, "; %lld experts of %lld, %lld a token: %lld active",
                        (long long)t.experts, (long long)t.expert_ffn,
                        (long long)t.experts_per_token,
                        (long long)transformer_active_parameters(&t));
        put_row(l, names[i], summary.data);
        text_release(&summary);
    }
    return status;
}

static enum status list_clusters(struct listing *l, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cluster_presets(&names, &count, &l->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct cluster cluster;
        status = cluster_load(&cluster, &l->arena, names[i], diag);
        if (status == STATUS_OK)
            put_row(l, names[i], cluster.summary != NULL ? cluster.summary : "");
    }
    return status;
}

static enum status list_devices(struct listing *l, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cost_presets(&names, &count, &l->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct device_cost cost;
        status = cost_load(&cost, &l->arena, names[i], diag);
        if (status == STATUS_OK)
            put_row(l, names[i], cost.note != NULL ? cost.note : "");
    }
    return status;
}

static enum status list_kinds(struct listing *l, struct diag *diag)
{
    (void)diag;
    for (int i = 0; i < WORK_KIND_COUNT; i++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)i);
        const char *stream = stream_class_name(info->stream);
        struct text parameters = {0}, summary = {0};
        for (int k = 0; k < info->param_count; k++)
            text_printf(&parameters, "%s%s%s", k == 0 ? "" : " ", info->param[k].name,
                        info->param[k].optional ? "?" : "");
        const char *names = parameters.size > 0 ? parameters.data : "";
        const struct list_section part[] = {{"stream", stream}, {"parameters", names}};
        text_printf(&summary, "on %s;%s%s", stream, names[0] != '\0' ? " " : "", names);
        put_parts(l, info->name, part, ARRAY_LEN(part), summary.data);
        text_release(&summary);
        text_release(&parameters);
    }
    return STATUS_OK;
}

static enum status list_rules(struct listing *l, struct diag *diag)
{
    (void)diag;
    for (size_t i = 0; i < VERIFY_RULES; i++)
        put_row(l, verify_rule_name(i), verify_rule_guarantee(i));
    return STATUS_OK;
}

static enum status list_conventions(struct listing *l, struct diag *diag)
{
    (void)diag;
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        const struct list_section part[] = {{"formula", mfu_table[i].formula},
                                            {"source", mfu_table[i].source}};
        struct text summary = {0};
        text_printf(&summary, "%s; %s", mfu_table[i].formula, mfu_table[i].source);
        put_parts(l, mfu_table[i].name, part, ARRAY_LEN(part), summary.data);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_reserved(struct listing *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct reserved_constant *table = reserved_constants(&count);
    for (size_t i = 0; i < count; i++) {
        const struct list_section part[] = {{"value", table[i].value}, {"source", table[i].source}};
        struct text summary = {0};
        text_printf(&summary, "%s: %s", table[i].value, table[i].source);
        if (as_json(l)) {
            put_parts(l, table[i].name, part, ARRAY_LEN(part), summary.data);
        } else { /* the names are too long to stand beside the summary */
            text_printf(l->out, "%s\n%*s", table[i].name, COLUMN, "");
            screen_wrap(l->out, summary.data, COLUMN, COLUMN, screen_width(STDOUT_FILENO));
        }
        text_release(&summary);
    }
    return STATUS_OK;
}

/* Counts the constants of a preset. numbers: all of them, including those of the files on which it is based; unstated:
 * those among them that no source states and nobody measured. own, own_unstated: the same two counts for the preset's
 * own file only. */
struct constants {
    size_t numbers, unstated, own, own_unstated;
};

static void count_constant(struct constants *c, const char *preset, enum number_origin how,
                           const char *file)
{
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    const char *base = slash != NULL ? slash + 1 : file;
    size_t size = strlen(preset);
    bool own =
        base != NULL && strncmp(base, preset, size) == 0 && strcmp(base + size, ".json") == 0;
    bool unstated = number_is_unstated(how);
    c->numbers++;
    c->unstated += unstated;
    c->own += own;
    c->own_unstated += own && unstated;
}

static void put_constants(struct listing *l, const char *kind, const char *name, struct constants c)
{
    struct text row = {0}, summary = {0};
    if (as_json(l)) {
        json_begin_object(&l->json, NULL);
        json_put_text(&l->json, "kind", kind);
        json_put_text(&l->json, "name", name);
        json_put_count(&l->json, "numbers", c.numbers);
        json_put_count(&l->json, "unstated", c.unstated);
        json_put_count(&l->json, "own_numbers", c.own);
        json_put_count(&l->json, "own_unstated", c.own_unstated);
        json_end_object(&l->json);
        return;
    }
    text_printf(&row, "%s %s", kind, name);
    text_printf(&summary, "%3zu numbers, %2zu that no source states; in its own file %3zu and %zu",
                c.numbers, c.unstated, c.own, c.own_unstated);
    put_row(l, row.data, summary.data);
    text_release(&row);
    text_release(&summary);
}

static enum status count_device(struct constants *c, struct arena *arena, const char *name,
                                struct diag *diag)
{
    struct device_cost cost;
    enum status status = cost_load(&cost, arena, name, diag);
    for (size_t i = 0; status == STATUS_OK && i < cost.facts.count; i++)
        count_constant(c, name, cost.facts.row[i].how, cost.facts.row[i].at.name);
    return status;
}

static enum status count_cluster(struct constants *c, struct arena *arena, const char *name,
                                 struct diag *diag)
{
    struct cluster cluster;
    enum status status = cluster_load(&cluster, arena, name, diag);
    for (size_t i = 0; status == STATUS_OK && i < cluster.facts.count; i++)
        count_constant(c, name, cluster.facts.row[i].how, cluster.facts.row[i].at.name);
    return status;
}

/* Puts the sums over all files. Each number is counted only in the file that has it. */
static void put_all_constants(struct listing *l, const char *kind, struct constants c)
{
    struct text summary = {0};
    text_printf(&summary, "%zu numbers in their own files, %zu that no source states", c.own,
                c.own_unstated);
    if (!as_json(l))
        put_row(l, kind, summary.data);
    text_release(&summary);
}

static enum status list_constants(struct listing *l, struct diag *diag)
{
    static const struct {
        const char *one, *all;
        enum status (*presets)(const char *const **names, size_t *count, struct arena *arena,
                               struct diag *diag);
        enum status (*count)(struct constants *c, struct arena *arena, const char *name,
                             struct diag *diag);
    } kinds[] = {{"device", "all devices", cost_presets, count_device},
                 {"cluster", "all clusters", cluster_presets, count_cluster}};
    enum status status = STATUS_OK;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const char *const *names;
        size_t count = 0;
        struct constants all = {0};
        if (status == STATUS_OK)
            status = kinds[k].presets(&names, &count, &l->arena, diag);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            struct constants c = {0};
            status = kinds[k].count(&c, &l->arena, names[i], diag);
            if (status == STATUS_OK)
                put_constants(l, kinds[k].one, names[i], c);
            all.own += c.own;
            all.own_unstated += c.own_unstated;
        }
        if (status == STATUS_OK)
            put_all_constants(l, kinds[k].all, all);
    }
    return status;
}

/* ---- one entry of a table ---- */

static enum status show_model(struct listing *l, const char *name, struct diag *diag)
{
    struct transformer t;
    enum status status = transformer_load(&t, &l->arena, name, NULL, diag);
    if (status != STATUS_OK)
        return status;
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        {"layers", t.layers},     {"hidden", t.hidden},     {"heads", t.heads},
        {"kv_heads", t.kv_heads}, {"head_dim", t.head_dim}, {"ffn", t.ffn},
        {"vocab", t.vocab},
    };
    const struct { /* sizes that only a mixture of experts has */
        const char *key;
        int64_t value;
    } experts[] = {
        {"active_parameters", transformer_active_parameters(&t)},
        {"experts", t.experts},
        {"experts_per_token", t.experts_per_token},
        {"expert_ffn", t.expert_ffn},
        {"shared_ffn", t.shared_ffn},
        {"expert_layers", transformer_expert_layers(&t)},
    };
    const size_t expert_rows = t.experts > 0 ? ARRAY_LEN(experts) : 0;
    const struct list_section texts[] = {
        {"activation", activation_names[t.activation]},
        {"norm", norm_names[t.norm]},
        {"positions", positions_names[t.positions]},
    };
    const struct list_section origin[] = {{"source", t.source}, {"note", t.note}};
    if (as_json(l)) {
        json_put_text(&l->json, "name", t.name);
        json_put_count(&l->json, "parameters", (uint64_t)transformer_parameters(&t));
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
            json_put_count(&l->json, sizes[i].key, (uint64_t)sizes[i].value);
        for (size_t i = 0; i < expert_rows; i++)
            json_put_count(&l->json, experts[i].key, (uint64_t)experts[i].value);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
            json_put_text(&l->json, texts[i].key, texts[i].value);
        json_put_bool(&l->json, "tied_head", t.tied_head);
        for (size_t i = 0; i < ARRAY_LEN(origin); i++)
            json_put_text(&l->json, origin[i].key, origin[i].value);
        return STATUS_OK;
    }
    text_printf(l->out, "%s: %lld parameters\n", t.name, (long long)transformer_parameters(&t));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        text_printf(l->out, "%s %lld\n", sizes[i].key, (long long)sizes[i].value);
    for (size_t i = 0; i < expert_rows; i++)
        text_printf(l->out, "%s %lld\n", experts[i].key, (long long)experts[i].value);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_printf(l->out, "%s %s\n", texts[i].key, texts[i].value);
    text_printf(l->out, "tied_head %s\n", t.tied_head ? "true" : "false");
    for (size_t i = 0; i < ARRAY_LEN(origin); i++)
        if (origin[i].value != NULL)
            text_printf(l->out, "%s: %s\n", origin[i].key, origin[i].value);
    return STATUS_OK;
}

/* Puts the value of a fact. Quantities become numbers in SI units; names and tables stay as the file has them. */
static void put_value(struct json_out *json, const struct cluster *cluster,
                      const struct cluster_fact *fact)
{
    const struct cluster_field *field = cluster_field_find(fact->path);
    if (field != NULL && field->type <= FIELD_COUNT)
        json_put_number(json, "value", cluster_field_value(cluster, field));
    else
        json_put_text(json, "value", fact->value);
}

static enum status show_cluster(struct listing *l, const char *name, struct diag *diag)
{
    struct cluster cluster;
    enum status status = cluster_load(&cluster, &l->arena, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!as_json(l)) {
        cluster_print(l->out, &cluster);
        return STATUS_OK;
    }
    json_put_text(&l->json, "name", cluster.name);
    json_put_text(&l->json, "summary", cluster.summary);
    json_put_count(&l->json, "nodes", (uint64_t)cluster.nodes);
    json_put_count(&l->json, "gpus", (uint64_t)cluster.gpus);
    json_put_text(&l->json, "device", cluster.device.name);
    json_put_number(&l->json, "usable_bytes", cluster.device.usable_bytes);
    json_begin_array(&l->json, "numbers");
    for (size_t i = 0; i < cluster.facts.count; i++) {
        const struct cluster_fact *fact = &cluster.facts.row[i];
        json_begin_object(&l->json, NULL);
        json_put_text(&l->json, "name", fact->path);
        put_value(&l->json, &cluster, fact);
        json_put_text(&l->json, "source", fact->source);
        json_put_text(&l->json, "how", number_origin_names[fact->how]);
        json_end_object(&l->json);
    }
    json_end_array(&l->json);
    return STATUS_OK;
}

static enum status show_device(struct listing *l, const char *name, struct diag *diag)
{
    struct device_cost cost;
    enum status status = cost_load(&cost, &l->arena, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!as_json(l)) {
        cost_print(l->out, &cost);
        return STATUS_OK;
    }
    json_put_text(&l->json, "name", cost.name);
    json_put_text(&l->json, "note", cost.note);
    json_put_bool(&l->json, "ideal", cost.ideal);
    json_begin_array(&l->json, "numbers");
    for (size_t i = 0; i < cost.facts.count; i++) {
        const struct cost_fact *fact = &cost.facts.row[i];
        json_begin_object(&l->json, NULL);
        json_put_text(&l->json, "name", fact->name);
        json_put_number(&l->json, "value", fact->value);
        if (fact->high > 0) {
            json_put_number(&l->json, "low", fact->low);
            json_put_number(&l->json, "high", fact->high);
        }
        json_put_text(&l->json, "meaning", fact->meaning);
        json_put_text(&l->json, "source", fact->source);
        json_put_text(&l->json, "how", number_origin_names[fact->how]);
        json_end_object(&l->json);
    }
    json_end_array(&l->json);
    return STATUS_OK;
}

static const struct list {
    const char *name, *summary;
    enum status (*all)(struct listing *l, struct diag *diag);
    enum status (*one)(struct listing *l, const char *name, struct diag *diag);
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
    {"constants", "how many numbers devices and clusters have, and how many no source states",
     list_constants, NULL},
};

const char *list_name(size_t i)
{
    return i < ARRAY_LEN(lists) ? lists[i].name : NULL;
}

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

/* Prints all entries of one table or, if `list` is NULL, the names and purposes of all tables. */
static enum status put_all(struct listing *l, const struct list *list, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (as_json(l))
        json_begin_array(&l->json, list != NULL ? list->name : "lists");
    for (size_t i = 0; list == NULL && i < ARRAY_LEN(lists); i++)
        put_row(l, lists[i].name, lists[i].summary);
    if (list != NULL)
        status = list->all(l, diag);
    if (as_json(l))
        json_end_array(&l->json);
    return status;
}

static enum status put_one(struct listing *l, const struct list *list, const char *name,
                           struct diag *diag)
{
    if (list->one == NULL)
        return diag_error(
            diag, (struct loc){.name = "list"}, STATUS_BAD_INPUT,
            "`longhaul list %s` prints all there is: single %s have no page of their own",
            list->name, list->name);
    char place[32];
    size_t before = diag->size;
    snprintf(place, sizeof place, "list %s", list->name);
    enum status status = list->one(l, name, diag);
    diag_place(diag, before, place);
    return status;
}

enum status cmd_list(const struct options *options, struct diag *diag)
{
    struct text out = {0};
    struct listing l = {.out = &out, .json = {.out = options_given(options, "json") ? &out : NULL}};
    const struct list *list = NULL;
    enum status status = STATUS_OK;
    if (options->argument_count > 0)
        status = find_list(&list, options->argument[0], diag);
    if (status == STATUS_OK && as_json(&l))
        command_begin_json(&l.json, "list");
    if (status == STATUS_OK)
        status = options->argument_count == 2 ? put_one(&l, list, options->argument[1], diag)
                                              : put_all(&l, list, diag);
    if (status == STATUS_OK && as_json(&l)) {
        json_end_object(&l.json);
        text_putc(&out, '\n');
    }
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    arena_release(&l.arena);
    return status;
}
