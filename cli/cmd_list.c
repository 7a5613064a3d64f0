/* longhaul list: prints the models, clusters, strategies and other tables that the program knows. Each table has a
 * function. */
#include "cli/command.h"

#include "base/json_write.h"
#include "cli/common/output.h"
#include "cli/common/rows.h"
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

enum { COLUMN = 24 }; /* the width of the column of names in text */

static const struct option rows[] = {
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON, in SI units"},
};
const struct option_set list_options = {"list", rows, ARRAY_LEN(rows)};

/* The output in progress. */
struct list_output {
    struct text *out;
    struct json_out json; /* its `out` is NULL if the output is text */
    struct rows rows;
    struct arena arena;
};

static bool is_json(const struct list_output *l)
{
    return l->json.out != NULL;
}

/* A column has: key, label, label in a page, kind, width in text (negative: left-aligned), description
 * (cli/common/rows.h). */
/* clang-format off */
#define NAME {"name", "", NULL, COLUMN_PLAIN_TEXT, 1 - COLUMN, NULL}
#define PROSE_COLUMN {NULL, "", NULL, COLUMN_WRAPPED_TEXT, 0, NULL} /* text only: joins the columns after it */
static const struct column summary_columns[] = {NAME, {"summary", "", NULL, COLUMN_WRAPPED_TEXT, 0, NULL}};
static const struct column strategy_columns[] = {
    NAME,
    PROSE_COLUMN,
    {"summary", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"attention", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"weights", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"pipeline", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"activations", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"profile", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
};
static const struct column kind_columns[] = {
    NAME,
    PROSE_COLUMN,
    {"stream", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"parameters", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "Names; '?' after a name: it may be left out."},
};
static const struct column convention_columns[] = {
    NAME,
    PROSE_COLUMN,
    {"formula", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
};
static const struct column reserved_columns[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {NULL, "", NULL, COLUMN_PLAIN_TEXT, 0, NULL}, /* the name, on a line of its own: it is too long for the first column */
    PROSE_COLUMN,
    {"value", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
};
static const struct column constant_columns[] = {
    {NULL, "", NULL, COLUMN_PLAIN_TEXT, 1 - COLUMN, NULL}, /* the kind and the name */
    PROSE_COLUMN,
    {"kind", NULL, NULL, COLUMN_PLAIN_TEXT, 0, "device or cluster."},
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"numbers", NULL, NULL, COLUMN_COUNT, 0, "Numbers of the files on which it is based are counted too."},
    {"unstated", NULL, NULL, COLUMN_COUNT, 0, "Numbers that no source states: inferred, assumed or estimated."},
    {"own_numbers", NULL, NULL, COLUMN_COUNT, 0, "The numbers of its own file."},
    {"own_unstated", NULL, NULL, COLUMN_COUNT, 0, NULL},
};
/* The numbers of a cluster or a device, in JSON. Text has them in the form of a cluster's or device's file. */
static const struct column number_columns[] = {
    {"name", NULL, NULL, COLUMN_PLAIN_TEXT, 0, NULL},
    {"value", NULL, NULL, COLUMN_NUMBER_OR_TEXT, 0, "In SI units; a name or a table is as its file has it."},
    {"low", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0,
     "Lower end of the value's range, where the source gives one."},
    {"high", NULL, NULL, COLUMN_NUMBER | COLUMN_OPTIONAL, 0, "Upper end of the value's range."},
    {"meaning", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_OPTIONAL | COLUMN_NULLABLE, 0, NULL},
    {"source", NULL, NULL, COLUMN_PLAIN_TEXT | COLUMN_NULLABLE, 0, NULL},
    {"how", NULL, NULL, COLUMN_PLAIN_TEXT, 0,
     "How the number was obtained: stated, measured, inferred, assumed or estimated."},
};
#undef NAME
#undef PROSE_COLUMN
/* clang-format on */

const struct row_table list_tables[LIST_TABLE_COUNT] = {
    [LIST_TABLE_SUMMARIES] = {"list_summary", summary_columns, ARRAY_LEN(summary_columns)},
    [LIST_TABLE_STRATEGIES] = {"list_strategy", strategy_columns, ARRAY_LEN(strategy_columns)},
    [LIST_TABLE_KINDS] = {"list_kind", kind_columns, ARRAY_LEN(kind_columns)},
    [LIST_TABLE_CONVENTIONS] = {"list_convention", convention_columns,
                                ARRAY_LEN(convention_columns)},
    [LIST_TABLE_RESERVED] = {"list_reserved", reserved_columns, ARRAY_LEN(reserved_columns)},
    [LIST_TABLE_CONSTANTS] = {"list_constants", constant_columns, ARRAY_LEN(constant_columns)},
    [LIST_TABLE_NUMBERS] = {"list_number", number_columns, ARRAY_LEN(number_columns)},
};

static void put_summary_row(struct list_output *l, const char *name, const char *summary)
{
    rows_put_text(&l->rows, name);
    rows_put_text(&l->rows, summary);
}

/* ---- whole tables ---- */

static enum status list_strategies(struct list_output *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct strategy *table = strategies_list(&count);
    for (size_t i = 0; i < count; i++) {
        const char *const part[] = {
            attention_names[table[i].attention],
            weights_names[table[i].weights],
            pipeline_names[table[i].pipeline],
            activations_names[table[i].activations],
            table[i].profile,
        };
        /* strategy_columns[] ends with a column for each element of part[] */
        const struct column *part_column =
            &strategy_columns[ARRAY_LEN(strategy_columns) - ARRAY_LEN(part)];
        struct text prose = {0};
        text_puts(&prose, table[i].summary);
        for (size_t k = 0; k < ARRAY_LEN(part); k++)
            text_printf(&prose, "%s %s %s", k == 0 ? ";" : ",", part_column[k].key, part[k]);
        put_summary_row(l, table[i].name, prose.data);
        rows_put_text(&l->rows, table[i].summary);
        for (size_t k = 0; k < ARRAY_LEN(part); k++)
            rows_put_text(&l->rows, part[k]);
        text_release(&prose);
    }
    return STATUS_OK;
}

static enum status list_profiles(struct list_output *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct profile *table = profiles_list(&count);
    for (size_t i = 0; i < count; i++)
        put_summary_row(l, table[i].name, table[i].summary);
    put_summary_row(l, "published", "the implementation that the strategy was published with");
    return STATUS_OK;
}

static enum status list_models(struct list_output *l, struct diag *diag)
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
        put_summary_row(l, names[i], summary.data);
        text_release(&summary);
    }
    return status;
}

static enum status list_clusters(struct list_output *l, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cluster_presets(&names, &count, &l->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct cluster cluster;
        status = cluster_load(&cluster, &l->arena, names[i], diag);
        if (status == STATUS_OK)
            put_summary_row(l, names[i], cluster.summary != NULL ? cluster.summary : "");
    }
    return status;
}

static enum status list_devices(struct list_output *l, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = cost_presets(&names, &count, &l->arena, diag);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct device_cost cost;
        status = cost_load(&cost, &l->arena, names[i], diag);
        if (status == STATUS_OK)
            put_summary_row(l, names[i], cost.note != NULL ? cost.note : "");
    }
    return status;
}

static enum status list_kinds(struct list_output *l, struct diag *diag)
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
        text_printf(&summary, "on %s;%s%s", stream, names[0] != '\0' ? " " : "", names);
        put_summary_row(l, info->name, summary.data);
        rows_put_text(&l->rows, stream);
        rows_put_text(&l->rows, names);
        text_release(&summary);
        text_release(&parameters);
    }
    return STATUS_OK;
}

static enum status list_rules(struct list_output *l, struct diag *diag)
{
    (void)diag;
    for (size_t i = 0; i < VERIFY_RULE_COUNT; i++)
        put_summary_row(l, verify_rule_name(i), verify_rule_guarantee(i));
    return STATUS_OK;
}

static enum status list_conventions(struct list_output *l, struct diag *diag)
{
    (void)diag;
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        struct text summary = {0};
        text_printf(&summary, "%s; %s", mfu_table[i].formula, mfu_table[i].source);
        put_summary_row(l, mfu_names[i], summary.data);
        rows_put_text(&l->rows, mfu_table[i].formula);
        rows_put_text(&l->rows, mfu_table[i].source);
        text_release(&summary);
    }
    return STATUS_OK;
}

static enum status list_reserved(struct list_output *l, struct diag *diag)
{
    (void)diag;
    size_t count;
    const struct reserved_constant *table = reserved_constants(&count);
    for (size_t i = 0; i < count; i++) {
        struct text line = {0}, summary = {0};
        text_printf(&line, "%s\n%*s", table[i].name, COLUMN - 1, "");
        text_printf(&summary, "%s: %s", table[i].value, table[i].source);
        rows_put_text(&l->rows, table[i].name);
        put_summary_row(l, line.data, summary.data);
        rows_put_text(&l->rows, table[i].value);
        rows_put_text(&l->rows, table[i].source);
        text_release(&line);
        text_release(&summary);
    }
    return STATUS_OK;
}

/* Counts of the numbers that a preset has. numbers: all of them, including those of the files on which it is based;
 * unstated: those among them that no source states and that were not measured. own_numbers, own_unstated: the same for
 * the preset's own file. */
struct constant_counts {
    size_t numbers, unstated, own_numbers, own_unstated;
};

static void count_constant_by_origin(struct constant_counts *c, const char *preset,
                                     enum number_origin how, const char *file)
{
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    const char *base = slash != NULL ? slash + 1 : file;
    size_t size = strlen(preset);
    bool own =
        base != NULL && strncmp(base, preset, size) == 0 && strcmp(base + size, ".json") == 0;
    bool unstated = number_origin_is_guessed(how);
    c->numbers++;
    c->unstated += unstated;
    c->own_numbers += own;
    c->own_unstated += own && unstated;
}

static void put_constant_counts(struct list_output *l, const char *kind, const char *name,
                                struct constant_counts c)
{
    struct text row = {0}, summary = {0};
    text_printf(&row, "%s %s", kind, name);
    text_printf(&summary, "%3zu numbers, %2zu that no source states; in its own file %3zu and %zu",
                c.numbers, c.unstated, c.own_numbers, c.own_unstated);
    put_summary_row(l, row.data, summary.data);
    rows_put_text(&l->rows, kind);
    rows_put_text(&l->rows, name);
    rows_put_number(&l->rows, (double)c.numbers);
    rows_put_number(&l->rows, (double)c.unstated);
    rows_put_number(&l->rows, (double)c.own_numbers);
    rows_put_number(&l->rows, (double)c.own_unstated);
    text_release(&row);
    text_release(&summary);
}

static enum status count_device_constants(struct constant_counts *c, struct arena *arena,
                                          const char *name, struct diag *diag)
{
    struct device_cost cost;
    enum status status = cost_load(&cost, arena, name, diag);
    for (size_t i = 0; status == STATUS_OK && i < cost.facts.count; i++)
        count_constant_by_origin(c, name, cost.facts.row[i].origin, cost.facts.row[i].at.name);
    return status;
}

static enum status count_cluster_constants(struct constant_counts *c, struct arena *arena,
                                           const char *name, struct diag *diag)
{
    struct cluster cluster;
    enum status status = cluster_load(&cluster, arena, name, diag);
    for (size_t i = 0; status == STATUS_OK && i < cluster.facts.count; i++)
        count_constant_by_origin(c, name, cluster.facts.row[i].origin,
                                 cluster.facts.row[i].at.name);
    return status;
}

/* Appends the sums over all files to the text; JSON has none. Each number is counted only in the file that has it. */
static void put_sums_of_constant_counts(struct list_output *l, const char *kind,
                                        struct constant_counts c)
{
    if (!is_json(l))
        text_printf(l->out, "%-*s%zu numbers in their own files, %zu that no source states\n",
                    COLUMN, kind, c.own_numbers, c.own_unstated);
}

static enum status list_constants(struct list_output *l, struct diag *diag)
{
    static const struct {
        const char *one, *all;
        enum status (*presets)(const char *const **names, size_t *count, struct arena *arena,
                               struct diag *diag);
        enum status (*count)(struct constant_counts *c, struct arena *arena, const char *name,
                             struct diag *diag);
    } kinds[] = {{"device", "all devices", cost_presets, count_device_constants},
                 {"cluster", "all clusters", cluster_presets, count_cluster_constants}};
    enum status status = STATUS_OK;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const char *const *names;
        size_t count = 0;
        struct constant_counts all = {0};
        if (status == STATUS_OK)
            status = kinds[k].presets(&names, &count, &l->arena, diag);
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            struct constant_counts c = {0};
            status = kinds[k].count(&c, &l->arena, names[i], diag);
            if (status == STATUS_OK)
                put_constant_counts(l, kinds[k].one, names[i], c);
            all.own_numbers += c.own_numbers;
            all.own_unstated += c.own_unstated;
        }
        if (status == STATUS_OK)
            put_sums_of_constant_counts(l, kinds[k].all, all);
    }
    return status;
}

/* ---- one entry of a table ---- */

static enum status show_model(struct list_output *l, const char *name, struct diag *diag)
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
        {"expert_layers", transformer_count_expert_layers(&t)},
    };
    const size_t expert_rows = t.experts > 0 ? ARRAY_LEN(experts) : 0;
    const struct {
        const char *key, *value;
    } texts[] = {
        {"activation", activation_names[t.activation]},
        {"norm", norm_names[t.norm]},
        {"positions", positions_names[t.positions]},
    };
    const struct {
        const char *key, *value;
    } origin[] = {{"source", t.source}, {"note", t.note}};
    if (is_json(l)) {
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

/* Appends the value of a fact. Quantities become numbers in SI units; names and tables are as in the file. */
static void put_cluster_fact_value(struct rows *out, const struct cluster *cluster,
                                   const struct cluster_fact *fact)
{
    const struct cluster_field *field = cluster_field_find(fact->path);
    if (field != NULL && field->type <= FIELD_WHOLE_NUMBER)
        rows_put_number(out, cluster_field_value_as_double(cluster, field));
    else
        rows_put_text(out, fact->value_as_written);
}

static enum status show_cluster(struct list_output *l, const char *name, struct diag *diag)
{
    struct cluster cluster;
    enum status status = cluster_load(&cluster, &l->arena, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!is_json(l)) {
        cluster_print_numbers_and_sources(l->out, &cluster);
        return STATUS_OK;
    }
    json_put_text(&l->json, "name", cluster.name);
    json_put_text(&l->json, "summary", cluster.summary);
    json_put_count(&l->json, "nodes", (uint64_t)cluster.nodes);
    json_put_count(&l->json, "gpus", (uint64_t)cluster.gpus);
    json_put_text(&l->json, "device", cluster.device.name);
    json_put_number(&l->json, "usable_bytes", cluster.device.usable_bytes);
    rows_begin(&l->rows, "numbers", NULL, &list_tables[LIST_TABLE_NUMBERS]);
    for (size_t i = 0; i < cluster.facts.count; i++) {
        const struct cluster_fact *fact = &cluster.facts.row[i];
        rows_put_text(&l->rows, fact->path);
        put_cluster_fact_value(&l->rows, &cluster, fact);
        rows_skip_column(&l->rows); /* low, high and a meaning, which facts of clusters lack */
        rows_skip_column(&l->rows);
        rows_skip_column(&l->rows);
        rows_put_text(&l->rows, fact->source);
        rows_put_text(&l->rows, number_origin_names[fact->origin]);
    }
    rows_end(&l->rows);
    return STATUS_OK;
}

static enum status show_device(struct list_output *l, const char *name, struct diag *diag)
{
    struct device_cost cost;
    enum status status = cost_load(&cost, &l->arena, name, diag);
    if (status != STATUS_OK)
        return status;
    if (!is_json(l)) {
        cost_print_numbers_and_sources(l->out, &cost);
        return STATUS_OK;
    }
    json_put_text(&l->json, "name", cost.name);
    json_put_text(&l->json, "note", cost.note);
    json_put_bool(&l->json, "ideal", cost.is_ideal);
    rows_begin(&l->rows, "numbers", NULL, &list_tables[LIST_TABLE_NUMBERS]);
    for (size_t i = 0; i < cost.facts.count; i++) {
        const struct cost_fact *fact = &cost.facts.row[i];
        rows_put_text(&l->rows, fact->name);
        rows_put_number(&l->rows, fact->value);
        for (int end = 0; end < 2; end++)
            if (fact->high > 0)
                rows_put_number(&l->rows, end == 0 ? fact->low : fact->high);
            else
                rows_skip_column(&l->rows);
        rows_put_text(&l->rows, fact->meaning);
        rows_put_text(&l->rows, fact->source);
        rows_put_text(&l->rows, number_origin_names[fact->origin]);
    }
    rows_end(&l->rows);
    return STATUS_OK;
}

/* ---- the table of lists, and the command ---- */

static const struct list_command_row {
    const char *name, *summary;
    int table_index; /* the columns of its rows: an index of list_tables[] */
    enum status (*print_table)(struct list_output *l, struct diag *diag);
    enum status (*print_entry)(struct list_output *l, const char *name, struct diag *diag);
} lists[] = {
    {"strategies", "named combinations of the five choices", LIST_TABLE_STRATEGIES, list_strategies,
     NULL},
    {"profiles", "implementations, and what tells them apart", LIST_TABLE_SUMMARIES, list_profiles,
     NULL},
    {"models", "transformers; with a name, its fields", LIST_TABLE_SUMMARIES, list_models,
     show_model},
    {"clusters", "clusters; with a name, every number and source", LIST_TABLE_SUMMARIES,
     list_clusters, show_cluster},
    {"devices", "costs of devices; with a name, every number", LIST_TABLE_SUMMARIES, list_devices,
     show_device},
    {"kinds", "kinds of work and their parameters", LIST_TABLE_KINDS, list_kinds, NULL},
    {"rules", "what `check` checks, and what each rule promises", LIST_TABLE_SUMMARIES, list_rules,
     NULL},
    {"conventions", "how sources count model flops", LIST_TABLE_CONVENTIONS, list_conventions,
     NULL},
    {"reserved", "constants of a framework's memory, with sources", LIST_TABLE_RESERVED,
     list_reserved, NULL},
    {"constants", "how many numbers devices and clusters have, and how many no source states",
     LIST_TABLE_CONSTANTS, list_constants, NULL},
};

const char *list_table_name(size_t i)
{
    return i < ARRAY_LEN(lists) ? lists[i].name : NULL;
}

static enum status find_list(const struct list_command_row **list, const char *name,
                             struct diag *diag)
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
static enum status print_all_entries(struct list_output *l, const struct list_command_row *list,
                                     struct diag *diag)
{
    enum status status = STATUS_OK;
    rows_begin(&l->rows, list != NULL ? list->name : "lists", NULL,
               &list_tables[list != NULL ? list->table_index : LIST_TABLE_SUMMARIES]);
    for (size_t i = 0; list == NULL && i < ARRAY_LEN(lists); i++)
        put_summary_row(l, lists[i].name, lists[i].summary);
    if (list != NULL)
        status = list->print_table(l, diag);
    rows_end(&l->rows);
    return status;
}

static enum status print_one_entry(struct list_output *l, const struct list_command_row *list,
                                   const char *name, struct diag *diag)
{
    if (list->print_entry == NULL)
        return diag_error(
            diag, (struct loc){.name = "list"}, STATUS_BAD_INPUT,
            "`longhaul list %s` prints all there is: single %s have no page of their own",
            list->name, list->name);
    char list_command_line[32];
    size_t before = diag->size;
    snprintf(list_command_line, sizeof list_command_line, "list %s", list->name);
    enum status status = list->print_entry(l, name, diag);
    diag_add_place_to_errors(diag, before, list_command_line);
    return status;
}

enum status cmd_list(const struct options *options, struct diag *diag)
{
    struct text out = {0};
    struct list_output l = {.out = &out,
                            .json = {.out = is_option_given(options, "json") ? &out : NULL}};
    l.rows.json = is_json(&l) ? &l.json : NULL;
    l.rows.out = is_json(&l) ? NULL : &out;
    l.rows.screen_width = screen_width(STDOUT_FILENO);
    const struct list_command_row *list = NULL;
    enum status status = STATUS_OK;
    if (options->argument_count > 0)
        status = find_list(&list, options->positional_arguments[0], diag);
    if (status == STATUS_OK && is_json(&l))
        command_begin_json(&l.json, "list");
    if (status == STATUS_OK)
        status = options->argument_count == 2
                     ? print_one_entry(&l, list, options->positional_arguments[1], diag)
                     : print_all_entries(&l, list, diag);
    if (status == STATUS_OK && is_json(&l)) {
        json_end_object(&l.json);
        text_putc(&out, '\n');
    }
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    arena_release(&l.arena);
    return status;
}
