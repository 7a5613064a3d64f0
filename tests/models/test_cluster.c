/* tests/models/test_cluster.c: cluster presets have sources and published values, and a cluster is resized, overridden
 * and listed as its fields say. */
#include "tests/models/cluster_fixture.h"

#include "base/text.h"
#include "models/cluster_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table, the presets, and the places of ranks ---- */

static void the_field_table_has_no_holes(void)
{
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++) {
        const struct cluster_field *field = &cluster_fields[i];
        if (!CHECK("a row", field->path != NULL && field->key != NULL))
            return;
        CHECK(field->path, cluster_field_find(field->path) == field);
        CHECK(field->path, field->low < field->high);
        CHECK(field->path, field->offset < sizeof(struct cluster));
    }
    CHECK("no such path", cluster_field_find("nic") == NULL);
}

static void every_preset_loads_and_gives_a_source_for_every_number(void)
{
    struct cluster_fixture all = {0};
    const char *const *names;
    size_t count;
    CHECK_INT("list", cluster_presets(&names, &count, &all.arena, &all.diag), STATUS_OK);
    CHECK_INT("presets", (int64_t)count, 20);
    for (size_t i = 0; i < count; i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, names[i])) {
            const struct cluster *c = &f.cluster;
            CHECK_TEXT("a preset is named as its file", c->name, names[i]);
            CHECK_INT(names[i], cluster_check(c, &f.diag), STATUS_OK);
            CHECK_INT(names[i], c->gpus, c->nodes * c->gpus_per_node);
            for (size_t k = 0; k < CLUSTER_FIELD_COUNT; k++) {
                const struct cluster_field *field = &cluster_fields[k];
                const struct cluster_fact *fact = cluster_find_fact(c, field->path);
                if (!fact) {
                    CHECK(field->path, !cluster_field_is_required(c, field));
                    continue;
                }
                /* a preset must say more than "lspci" */
                CHECK(field->path, strlen(fact->source) >= 7);
                CHECK(field->path, fact->at.name != NULL && fact->at.line > 0);
            }
            for (size_t k = 1; k < c->facts.count; k++)
                CHECK(names[i], cluster_field_find(c->facts.row[k - 1].path) <
                                    cluster_field_find(c->facts.row[k].path));
        }
        cluster_fixture_release(&f);
    }
    cluster_fixture_release(&all);
}

static void every_device_has_a_cost_file(void)
{
    struct cluster_fixture all = {0};
    const char *const *names, *path;
    size_t count;
    CHECK_INT("list", cluster_presets(&names, &count, &all.arena, &all.diag), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, names[i]))
            CHECK_INT(names[i],
                      presets_find_path("devices", "device", f.cluster.device.cost_name,
                                        (struct loc){0}, &path, &f.arena, &f.diag),
                      STATUS_OK);
        cluster_fixture_release(&f);
    }
    cluster_fixture_release(&all);
}

static void every_field_is_documented(void)
{
    struct text text = {0};
    struct diag diag = {0};
    CHECK_INT("read", text_read(&text, check_path("../docs/clusters.md"), &diag), STATUS_OK);
    for (size_t i = 0; text.data && i < CLUSTER_FIELD_COUNT; i++) {
        struct text cell = {0};
        text_printf(&cell, "`%s`", cluster_fields[i].path);
        CHECK(cluster_fields[i].path, strstr(text.data, cell.data) != NULL);
        text_release(&cell);
    }
    text_release(&text);
    diag_release(&diag);
}

static void the_published_test_beds_are_as_published(void)
{
    static const struct {
        const char *name, *device;
        int64_t nodes, gpus, nics;
        enum fabric_kind kind;
        double memory_gib, fabric, nic;
    } rows[] = {
        /* name, device, nodes, gpus, nics, kind, memory_gib, fabric, nic */
        {"loongtrain-a100", "a100-80g", 8, 8, 4, FABRIC_SWITCH, 80, 300e9, 25e9},
        {"sppo-a100", "a100-80g", 16, 8, 4, FABRIC_SWITCH, 80, 300e9, 25e9},
        {"fpdt-a100-80g", "a100-80g", 8, 4, 1, FABRIC_MESH, 80, 100e9, 25e9},
        {"fpdt-a100-40g", "a100-40g", 1, 8, 1, FABRIC_SWITCH, 40, 300e9, 25e9},
        {"torchtitan-h100", "h100-96g", 1, 8, 8, FABRIC_SWITCH, 96, 450e9, 50e9},
        {"dgx-a100", "a100-80g", 4, 8, 8, FABRIC_SWITCH, 80, 300e9, 25e9},
        {"dgx-h100", "h100", 4, 8, 8, FABRIC_SWITCH, 80, 450e9, 50e9},
        {"h200", "h200", 4, 8, 8, FABRIC_SWITCH, 141, 450e9, 50e9},
        {"b200", "b200", 4, 8, 8, FABRIC_SWITCH, 180, 900e9, 50e9},
        {"gh200", "gh200", 8, 1, 1, FABRIC_PCIE, 96, 0, 50e9},
        {"gb300", "gb300", 18, 4, 4, FABRIC_SWITCH, 279, 900e9, 100e9},
        {"b300", "b300", 4, 8, 8, FABRIC_SWITCH, 268, 900e9, 100e9},
        {"gb200", "gb200", 18, 4, 4, FABRIC_SWITCH, 186, 900e9, 50e9},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, rows[i].name)) {
            const struct cluster *c = &f.cluster;
            CHECK_TEXT(rows[i].name, c->device.name, rows[i].device);
            CHECK_INT(rows[i].name, c->nodes, rows[i].nodes);
            CHECK_INT(rows[i].name, c->gpus_per_node, rows[i].gpus);
            CHECK_INT(rows[i].name, c->nic.count, rows[i].nics);
            CHECK_INT(rows[i].name, c->fabric.kind, rows[i].kind);
            CHECK_CLOSE(rows[i].name, c->device.memory_bytes, rows[i].memory_gib * 0x1p30, 1e-12);
            CHECK_CLOSE(rows[i].name, c->fabric.bytes_per_s, rows[i].fabric, 1e-12);
            CHECK_CLOSE(rows[i].name, c->nic.bytes_per_s, rows[i].nic, 1e-12);
            CHECK_CLOSE(rows[i].name,
                        c->device.usable_bytes + c->device.driver_bytes +
                            c->device.cuda_context_bytes,
                        c->device.memory_bytes, 1e-12);
        }
        cluster_fixture_release(&f);
    }
}

static void loongtrain_shares_each_nic_between_two_gpus(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, "loongtrain-a100")) {
        for (int64_t gpu = 0; gpu < 8; gpu++) {
            CHECK_INT("NIC", f.cluster.nic_of_gpu[gpu], gpu / 2);
            CHECK_INT("socket", cluster_socket_of_gpu(&f.cluster, gpu), gpu / 4);
        }
    }
    cluster_fixture_release(&f);
}

static void the_ideal_cluster_has_no_limits(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, "ideal")) {
        struct cluster *c = &f.cluster;
        CHECK("ideal", c->is_ideal);
        CHECK_CLOSE("peak", c->device.peak_bf16_flop_per_s, 1e15, 0);
        CHECK("memory", isinf(c->device.usable_bytes) && isinf(c->host.memory_bytes));
        CHECK("links", isinf(c->fabric.bytes_per_s) && isinf(c->nic.bytes_per_s) &&
                           isinf(c->pcie.h2d_bytes_per_s));
        CHECK_CLOSE("latency", c->fabric.latency_s + c->nic.latency_s + c->pcie.latency_s, 0, 0);
        CHECK_INT("resize", cluster_resize(c, &f.arena, 0, 1027, &f.diag), STATUS_OK);
        CHECK_INT("gpus", c->gpus, 1027);
        CHECK_INT("one node", cluster_place_of_rank(c, 1026).node, 0);
        CHECK_INT("last GPU's socket", cluster_socket_of_gpu(c, 1026), 0);
        CHECK_INT("check", cluster_check(c, &f.diag), STATUS_OK);
    }
    cluster_fixture_release(&f);
}

static void ranks_fill_node_after_node(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, "gb200")) {
        struct cluster *c = &f.cluster;
        CHECK_INT("resize", cluster_resize(c, &f.arena, 36, 0, &f.diag), STATUS_OK);
        CHECK_INT("node", cluster_place_of_rank(c, 75).node, 18);
        CHECK_INT("gpu", cluster_place_of_rank(c, 75).gpu, 3);
        CHECK_INT("domain", cluster_place_of_rank(c, 75).domain, 1);
        CHECK_INT("domain", cluster_place_of_rank(c, 71).domain, 0);
    }
    cluster_fixture_release(&f);
}

/* A domain of gb200 has 18 nodes. A job of more nodes uses the same number of nodes, more than half
 * of 18, in every domain if its nodes divide so, and else whole domains. The size before does not
 * matter. */
static void jobs_split_equally_over_nvl_domains(void)
{
    static const struct {
        int64_t nodes, of_domain;
    } rows[] = {{64, 16}, {8, 18}, {18, 18}, {36, 18}, {20, 10}, {37, 18}, {27, 18}, {128, 16}};
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, "gb200"))
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            CHECK_INT("resize", cluster_resize(&f.cluster, &f.arena, rows[i].nodes, 0, &f.diag),
                      STATUS_OK);
            CHECK_INT("nodes of a domain", f.cluster.domain_nodes, rows[i].of_domain);
        }
    cluster_fixture_release(&f);
}

/* ---- resizing ---- */

static void resizing_takes_part_of_a_node_or_whole_nodes(void)
{
    static const struct {
        const char *label, *cluster;
        int64_t nodes, gpus, want_nodes, want_gpus;
    } rows[] = {
        /* label, cluster, nodes, gpus, want_nodes, want_gpus */
        {"nothing asked", "loongtrain-a100", 0, 0, 8, 64},
        {"nodes", "loongtrain-a100", 3, 0, 3, 24},
        {"whole nodes of GPUs", "loongtrain-a100", 0, 32, 4, 32},
        {"one node", "loongtrain-a100", 0, 8, 1, 8},
        {"a part of a node", "loongtrain-a100", 0, 3, 1, 3},
        {"both", "loongtrain-a100", 2, 16, 2, 16},
        {"both, a part", "loongtrain-a100", 1, 5, 1, 5},
        {"more than the file says", "dgx-h100", 128, 0, 128, 1024},
        {"ideal, nodes", "ideal", 3, 0, 3, 24},
        {"ideal, GPUs", "ideal", 0, 13, 1, 13},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, rows[i].cluster)) {
            int64_t nics = f.cluster.nic.count;
            CHECK_INT(rows[i].label,
                      cluster_resize(&f.cluster, &f.arena, rows[i].nodes, rows[i].gpus, &f.diag),
                      STATUS_OK);
            CHECK_INT(rows[i].label, f.cluster.nodes, rows[i].want_nodes);
            CHECK_INT(rows[i].label, f.cluster.gpus, rows[i].want_gpus);
            CHECK_INT(rows[i].label, f.cluster.nic.count, nics);
            CHECK_INT(rows[i].label, cluster_check(&f.cluster, &f.diag), STATUS_OK);
        }
        cluster_fixture_release(&f);
    }
}

static void resizing_says_what_would_fit(void)
{
    static const struct {
        const char *label, *cluster;
        int64_t nodes, gpus;
        const char *message;
    } rows[] = {
        /* label, cluster, nodes, gpus, message */
        {"uneven", "loongtrain-a100", 0, 12,
         "error: 12 GPUs do not fill nodes of 8; the nearest that do are 8 and 16\n"},
        {"disagree", "loongtrain-a100", 2, 12,
         "error: 12 GPUs do not fill nodes of 8; the nearest that do are 8 and 16\n"},
        {"disagree, whole", "loongtrain-a100", 3, 16,
         "error: 16 GPUs are not 3 nodes of 8 GPUs (24)\n"},
        {"negative nodes", "loongtrain-a100", -1, 0,
         "error: -1 nodes: the number must be from 1 to 65536\n"},
        {"negative GPUs", "ideal", 0, -5, "error: -5 GPUs: the number must be from 1 to 1048576\n"},
        {"too many GPUs", "ideal", 0, 1 << 21,
         "error: 2097152 GPUs: the number must be from 1 to 1048576\n"},
        {"too many nodes", "loongtrain-a100", INT64_MAX, 0,
         "error: 9223372036854775807 nodes: the number must be from 1 to 65536\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, rows[i].cluster)) {
            int64_t nodes = f.cluster.nodes;
            CHECK_INT(rows[i].label,
                      cluster_resize(&f.cluster, &f.arena, rows[i].nodes, rows[i].gpus, &f.diag),
                      STATUS_BAD_INPUT);
            CHECK_TEXT(rows[i].label, f.diag.text, rows[i].message);
            CHECK_INT(rows[i].label, f.cluster.nodes, nodes);
        }
        cluster_fixture_release(&f);
    }
}

static void a_cluster_without_nics_stays_one_domain(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, check_path("data/clusters/pcie.json"))) {
        CHECK("no table", f.cluster.nic_of_gpu == NULL && f.cluster.switch_of_nic == NULL);
        CHECK_INT("grow", cluster_resize(&f.cluster, &f.arena, 2, 0, &f.diag), STATUS_BAD_INPUT);
        CHECK_TEXT("grow", f.diag.text,
                   "error: workstation has no NICs, so it cannot have more than 1 nodes; nodes "
                   "is 2\n");
    }
    cluster_fixture_release(&f);
}

/* ---- files ---- */

static void a_file_overrides_what_its_base_says(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f, check_path("data/clusters/ours.json"))) {
        const struct cluster *c = &f.cluster;
        CHECK_TEXT("name", c->name, "ours");
        CHECK_TEXT("device", c->device.name, "h100");
        CHECK_INT("nodes", c->nodes, 6);
        CHECK_INT("NICs", c->nic.count, 4);
        CHECK_INT("NIC of GPU 5", c->nic_of_gpu[5], 2);
        CHECK_CLOSE("NIC", c->nic.bytes_per_s, 25e9, 0);
        CHECK_CLOSE("from the base", c->nic.efficiency, 0.92, 0);
        CHECK("rails", !c->network.has_rails);
        CHECK_TEXT("source", cluster_find_fact(c, "nic.count")->source, "lspci");
        CHECK_INT("line", cluster_find_fact(c, "nic.count")->at.line, 8);
        CHECK("base's file",
              strstr(cluster_find_fact(c, "nic.efficiency")->at.name, "dgx-h100.json") != NULL);
    }
    cluster_fixture_release(&f);
}

static void a_listing_gives_value_source_and_line(void)
{
    struct cluster_fixture f = {0};
    struct text text = {0};
    if (cluster_fixture_load(&f, check_path("data/clusters/ours.json"))) {
        cluster_print_numbers_and_sources(&text, &f.cluster);
        CHECK("own line", strstr(text.data, "nic.bandwidth                     200 Gb/s         "
                                            "ibstat (ours.json:9)\n") != NULL);
        CHECK("usable", strstr(text.data, "usable memory of each 78.7 GiB") != NULL);
    }
    text_release(&text);
    cluster_fixture_release(&f);
}

static const struct check_case cases[] = {
    {"the field table has no holes", the_field_table_has_no_holes},
    {"every preset loads and gives a source for every number",
     every_preset_loads_and_gives_a_source_for_every_number},
    {"every device has a cost file", every_device_has_a_cost_file},
    {"every field is documented", every_field_is_documented},
    {"the published test beds are as published", the_published_test_beds_are_as_published},
    {"LoongTrain shares each NIC between two GPUs", loongtrain_shares_each_nic_between_two_gpus},
    {"the ideal cluster has no limits", the_ideal_cluster_has_no_limits},
    {"ranks fill node after node", ranks_fill_node_after_node},
    {"a job takes equal parts of domains", jobs_split_equally_over_nvl_domains},
    {"resizing takes part of a node or whole nodes", resizing_takes_part_of_a_node_or_whole_nodes},
    {"resizing says what would fit", resizing_says_what_would_fit},
    {"a cluster without NICs stays one domain", a_cluster_without_nics_stays_one_domain},
    {"a file overrides what its base says", a_file_overrides_what_its_base_says},
    {"a listing gives value, source and line", a_listing_gives_value_source_and_line},
};
CHECK_MAIN("cluster", cases)
