#include "cli/page/sources.h"

#include "models/cluster.h"
#include "models/cost.h"
#include "models/mfu.h"
#include "models/transformer.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"
#include "schedule/reserved/reserved.h"

#include <string.h>

static void put_profile(struct page *page, const char *name)
{
    size_t count;
    const struct profile *table = profiles_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) {
            struct text text = {0};
            text_printf(&text, "Profile %s: %s.", name, table[i].summary);
            page_put_text(page, text.data);
            text_release(&text);
        }
}

static void put_missing_input(struct page *page, const char *what, const char *name)
{
    struct text text = {0};
    text_printf(&text, "The %s '%s' cannot be read here any more: its numbers are not shown.", what,
                name);
    page_put_warning(page, text.data);
    text_release(&text);
}

static void put_model(struct page *page, const char *name)
{
    struct arena arena = {0};
    struct transformer t;
    struct text text = {0};
    if (transformer_load(&t, &arena, name, NULL, NULL) != STATUS_OK) {
        put_missing_input(page, "model", name);
    } else {
        text_printf(
            &text,
            "Model %s: %lld parameters; %lld layers, hidden %lld, %lld heads (%lld for keys "
            "and values) of %lld, feed-forward %lld, vocabulary %lld.",
            t.name, (long long)transformer_parameters(&t), (long long)t.layers, (long long)t.hidden,
            (long long)t.heads, (long long)t.kv_heads, (long long)t.head_dim, (long long)t.ffn,
            (long long)t.vocab);
        if (t.source != NULL)
            text_printf(&text, " Source: %s.", t.source);
        if (t.note != NULL)
            text_printf(&text, " %s", t.note);
        page_put_text(page, text.data);
    }
    text_release(&text);
    arena_release(&arena);
}

static void put_cluster(struct page *page, const char *name, const char *costs)
{
    struct arena arena = {0};
    struct cluster cluster;
    struct device_cost cost;
    struct text text = {0}, summary = {0};
    if (cluster_load(&cluster, &arena, name, NULL) != STATUS_OK) {
        put_missing_input(page, "cluster", name);
    } else {
        cluster_print_numbers_and_sources(&text, &cluster);
        text_printf(&summary, "Cluster %s: every number and its source", cluster.name);
        page_put_folded_text(page, summary.data, text.data);
        costs = costs != NULL ? costs : cluster.device.cost_name;
        text.size = summary.size = 0;
        if (cost_load(&cost, &arena, costs, NULL) == STATUS_OK) {
            cost_print_numbers_and_sources(&text, &cost);
            text_printf(&summary, "Costs %s: every number, its range and its source", costs);
            page_put_folded_text(page, summary.data, text.data);
        } else {
            put_missing_input(page, "device file", costs);
        }
    }
    text_release(&text);
    text_release(&summary);
    arena_release(&arena);
}

static void put_conventions(struct page *page)
{
    static const char *const heads[] = {"MFU by", "model flops of a token", "source", NULL};
    page_begin_table(page, "How each convention counts model flops", heads);
    for (int i = 0; i < MFU_CONVENTION_COUNT; i++) {
        page_put_cell(page, mfu_names[i]);
        page_put_cell(page, mfu_table[i].formula);
        page_put_cell(page, mfu_table[i].source);
        page_end_row(page);
    }
    page_end_table(page);
}

static void put_reserved_memory_constants(struct page *page)
{
    static const char *const heads[] = {"constant", "value", "source", NULL};
    size_t count;
    const struct reserved_constant *table = reserved_constants(&count);
    page_begin_table(page, "Constants of a framework's reserved memory", heads);
    for (size_t i = 0; i < count; i++) {
        page_put_cell(page, table[i].name);
        page_put_cell(page, table[i].value);
        page_put_cell(page, table[i].source);
        page_end_row(page);
    }
    page_end_table(page);
}

void page_put_sources(struct page *page, const char *model, const char *cluster, const char *costs,
                      const char *profile)
{
    page_put_heading(page, "Assumptions and sources");
    if (model != NULL)
        put_model(page, model);
    if (profile != NULL)
        put_profile(page, profile);
    if (cluster != NULL)
        put_cluster(page, cluster, costs);
    put_conventions(page);
    put_reserved_memory_constants(page);
}
