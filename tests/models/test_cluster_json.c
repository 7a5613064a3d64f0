/* tests/models/test_cluster_json.c: cluster files: what a file leaves out comes from its base, and a wrong file is
 * refused with its line. Files are texts here (check_json_from_single_quotes()); most are on the base dgx-a100 and give
 * what is tested. */
#include "tests/models/cluster_fixture.h"

#include <string.h>

/* The start of each case: a case gives what it tests, the preset the rest. */
#define HEAD "{'name': 't', 'summary': 's', 'base': 'dgx-a100',\n"

/* clang-format 14 crashes on rows of texts with several lines. */
/* clang-format off */
static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"empty text",
     "",
     "t.json:1:1: error: expected a value, but the text ends here\n"},
    {"not an object",
     "[1]",
     "t.json:1: error: expected an object that describes a cluster\n"},
    {"cut short",
     "{'name': 't',\n",
     "t.json:2:1: error: expected a key in double quotes, but the text ends here\n"},
    {"no name",
     "{'summary': 's'}",
     "t.json:1: error: name: missing: expected a string\n"},
    {"no summary",
     "{'name': 't'}",
     "t.json:1: error: summary: missing: expected a string\n"},
    {"empty name",
     "{'name': '', 'summary': 's'}",
     "t.json:1: error: name: must not be empty\n"},
    {"a name that is no text",
     "{'name': 3, 'summary': 's'}",
     "t.json:1: error: name: expected a string, found 3\n"},
    {"no such base",
     "{'name': 't', 'summary': 's',\n"
     " 'base': 'dgx-a10'}",
     "t.json:2: error: no cluster 'dgx-a10'; did you mean 'dgx-a100'?\n"},
    {"no such board",
     "{'name': 't', 'summary': 's', 'base': 'dgx-a100',\n"
     " 'board': 'hgx5'}",
     "t.json:2: error: no board 'hgx5'; did you mean 'hgx4'?\n"},
    {"a base that is no text",
     "{'name': 't', 'summary': 's',\n"
     " 'base': 7}",
     "t.json:2: error: base: expected a string, found 7\n"},
    {"unknown key at the top",
     HEAD "'nodess': 1}",
     "t.json:2: error: nodess: unknown key: did you mean 'nodes'?\n"},
    {"unknown key in a section",
     HEAD "'nic': {\n"
     "'bandwith': 1}}",
     "t.json:3: error: nic.bandwith: unknown key: did you mean 'bandwidth'?\n"},
    {"unknown key of a number",
     HEAD "'nodes': {'value': 1,\n"
     "'sauce': 'x'}}",
     "t.json:3: error: nodes.sauce: unknown key: did you mean 'source'?\n"},
    {"a section that is no object",
     HEAD "'nic': 4}",
     "t.json:2: error: nic: expected an object, found 4\n"},
    {"a bare number that needs a unit",
     HEAD "'nic': {'bandwidth': 25}}",
     "t.json:2: error: nic.bandwidth: a bare number has no unit; write text such as \"300 GB/s\"\n"},
    {"a bare text of the wrong type",
     HEAD "'nodes': 'four'}",
     "t.json:2: error: nodes: expected a whole number, found \"four\"\n"},
    {"a bare number for a flag",
     HEAD "'nic': {'gpudirect': 1}}",
     "t.json:2: error: nic.gpudirect: expected true or false, found 1\n"},
    {"an empty source",
     HEAD "'nodes': {'value': 4,\n"
     "'source': ''}}",
     "t.json:3: error: nodes.source: must not be empty\n"},
    {"no value",
     HEAD "'nodes':\n"
     "{'source': 'x'}}",
     "t.json:3: error: nodes: has no \"value\"\n"},
    {"no unit",
     HEAD "'nic': {'bandwidth': {'value': 25, 'source': 'x'}}}",
     "t.json:2: error: nic.bandwidth.value: a bare number has no unit; write text such as \"300 "
     "GB/s\"\n"},
    {"no unit in text",
     HEAD "'nic': {'bandwidth': {'value': '25', 'source': 'x'}}}",
     "t.json:2: error: '25' has no unit: expected a number and one of B/s, KB/s, MB/s, GB/s, "
     "TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Gb/s\n"},
    {"the wrong unit",
     HEAD "'nic': {'bandwidth': {'value': '25 GiB', 'source': 'x'}}}",
     "t.json:2: error: '25 GiB' has a unit that does not fit: expected a number and one of B/s, "
     "KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Gb/s\n"},
    {"infinite, but not ideal",
     HEAD "'nic': {'bandwidth': {'value': 'infinite', 'source': 'x'}}}",
     "t.json:2: error: 'infinite' does not start with a number: expected a number and one of "
     "B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Gb/s\n"},
    {"a fraction of a node",
     HEAD "'nodes': {'value': 1.5, 'source': 'x'}}",
     "t.json:2: error: nodes.value: expected a whole number, found 1.5\n"},
    {"a count in words",
     HEAD "'nodes': {'value': 'four', 'source': 'x'}}",
     "t.json:2: error: nodes.value: expected a whole number, found \"four\"\n"},
    {"no nodes",
     HEAD "'nodes': {'value': 0, 'source': 'x'}}",
     "t.json:2: error: nodes: 0; it must be at least 1 and at most 65536\n"},
    {"too many nodes",
     HEAD "'nodes': {'value': 65537, 'source': 'x'}}",
     "t.json:2: error: nodes: 65537; it must be at least 1 and at most 65536\n"},
    {"too many GPUs",
     HEAD "'nodes': {'value': 65536, 'source': 'x'},\n"
     "'gpus_per_node': {'value': 32, 'source': 'x'},\n"
     "'pcie': {'switch_of_gpu': {'value': [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
     "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 'source': 'x'}},\n"
     "'nic': {'of_gpu': {'value': [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
     "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 'source': 'x'}}}",
     "t.json:2: error: nodes: 65536 nodes of 32 GPUs are more than the 1048576 GPUs there can "
     "be\n"},
    {"zero bandwidth",
     HEAD "'nic': {'bandwidth': {'value': '0 GB/s', 'source': 'x'}}}",
     "t.json:2: error: nic.bandwidth: 0 B/s; it must be finite and above 0\n"},
    {"an efficiency above 1",
     HEAD "'nic': {\n"
     "'efficiency': {'value': 1.5, 'source': 'x'}}}",
     "t.json:3: error: nic.efficiency: 1.5; it must be above 0 and at most 1\n"},
    {"an efficiency of 0",
     HEAD "'nic': {\n"
     "'efficiency': {'value': 0, 'source': 'x'}}}",
     "t.json:3: error: nic.efficiency: 0; it must be above 0 and at most 1\n"},
    {"a negative latency",
     HEAD "'nic': {\n"
     "'latency': {'value': '-1 us', 'source': 'x'}}}",
     "t.json:3: error: '-1 us' is negative: expected a number and one of s, ms, us, ns\n"},
    {"no such fabric",
     HEAD "'fabric': {'kind': {'value': 'torus', 'source': 'x'}}}",
     "t.json:2: error: fabric.kind: no fabric 'torus'; there are switch, mesh and pcie\n"},
    {"a flag in words",
     HEAD "'nic': {'gpudirect': {'value': 'yes', 'source': 'x'}}}",
     "t.json:2: error: nic.gpudirect.value: expected true or false, found \"yes\"\n"},
    {"a short table",
     HEAD "'nic': {\n"
     "'of_gpu': {'value': [0, 1], 'source': 'x'}}}",
     "t.json:3: error: nic.of_gpu has 2 entries, but gpus_per_node is 8 (PRESETS/dgx-a100.json:#)\n"},
    {"a table of the old length",
     HEAD "'gpus_per_node': {'value': 4, 'source': 'x'}}",
     "PRESETS/dgx-a100.json:#: error: pcie.switch_of_gpu has 8 entries, but gpus_per_node is 4 "
     "(t.json:2)\n"},
    {"a NIC that is not there",
     HEAD "'nic': {\n"
     "'of_gpu': {'value': [0, 1, 2, 3, 4, 5, 6, 8], 'source': 'x'}}}",
     "t.json:3: error: nic.of_gpu: entry 7 is 8, but the NICs are 0 to 7\n"},
    {"a negative NIC",
     HEAD "'nic': {\n"
     "'of_gpu': {'value': [-1, 1, 2, 3, 4, 5, 6, 7], 'source': 'x'}}}",
     "t.json:3: error: nic.of_gpu.value[0]: -1 is out of range: expected 0 to 1024\n"},
    {"a table that is no list",
     HEAD "'nic': {\n"
     "'of_gpu': {'value': 0, 'source': 'x'}}}",
     "t.json:3: error: nic.of_gpu.value: expected a list of whole numbers\n"},
    {"a socket that is not there",
     HEAD "'pcie': {\n"
     "'socket_of_switch': {'value': [0, 0, 1, 2], 'source': 'x'}}}",
     "t.json:3: error: pcie.socket_of_switch: entry 3 is 2, but the sockets are 0 to 1\n"},
    {"a switch that is not there",
     HEAD "'pcie': {\n"
     "'switch_of_gpu': {'value': [0, 0, 0, 0, 0, 0, 0, 4], 'source': 'x'}}}",
     "t.json:3: error: pcie.switch_of_gpu: entry 7 is 4, but the switches are 0 to 3\n"},
    {"a channel faster than its port",
     HEAD "'fabric': {\n"
     "'peer_bandwidth': {'value': '301 GB/s', 'source': 'x'}}}",
     "t.json:3: error: fabric.peer_bandwidth: 301 GB/s is more than fabric.bandwidth, 300 GB/s "
     "(PRESETS/dgx-a100.json:#)\n"},
    {"a flow faster than its NIC",
     HEAD "'nic': {\n"
     "'bandwidth': {'value': '100 Gb/s', 'source': 'x'},\n"
     "'peer_bandwidth': {'value': '21.4 GB/s', 'source': 'x'}}}",
     "t.json:4: error: nic.peer_bandwidth: 21.4 GB/s is more than nic.bandwidth, 12.5 GB/s\n"},
    {"ports of another kind of fabric",
     HEAD "'fabric': {'kind': 'mesh',\n"
     "'bandwidth': '20 GB/s'}}",
     "PRESETS/dgx-a100.json:#: error: fabric.peer_bandwidth: 38.0 GB/s is more than "
     "fabric.bandwidth, 20.0 GB/s (t.json:3)\n"
     "PRESETS/dgx-a100.json:#: error: fabric.all_to_all_peer_bandwidth: 60.0 GB/s is more than "
     "fabric.bandwidth, 20.0 GB/s (t.json:3)\n"},
    {"more NICs than GPUs",
     HEAD "'nic': {\n"
     "'count': 16}}",
     "PRESETS/dgx-a100.json:#: error: nic.switch_of_nic has 8 entries, but nic.count is 16 "
     "(t.json:3)\n"},
    {"fewer GPUs with fewer NICs",
     HEAD "'gpus_per_node': 4, 'nic': {'count': 2}}",
     "PRESETS/dgx-a100.json:#: error: pcie.switch_of_gpu has 8 entries, but gpus_per_node is 4 "
     "(t.json:2)\n"},
    {"a short table of a changed count",
     HEAD "'nic': {'count': 2,\n"
     "'of_gpu': [0, 1]}}",
     "t.json:3: error: nic.of_gpu has 2 entries, but gpus_per_node is 8 (PRESETS/dgx-a100.json:#)\n"},
    {"copies faster than their lanes",
     HEAD "'pcie': {\n"
     "'h2d': {'value': '40 GB/s', 'source': 'x'}}}",
     "t.json:3: error: pcie.h2d: 40.0 GB/s is more than pcie.bandwidth, 31.5 GB/s "
     "(PRESETS/dgx-a100.json:#)\n"},
    {"a context as large as the device",
     HEAD "'device': {\n"
     "'context': {'value': '80 GiB', 'source': 'x'}}}",
     "t.json:3: error: device.context: driver and context leave none of the device's memory\n"},
    {"a host without memory left",
     HEAD "'host': {\n"
     "'reserved': {'value': '2 TiB', 'source': 'x'}}}",
     "t.json:3: error: host.reserved: leaves none of the host's memory\n"},
    {"a mesh over nodes",
     HEAD "'domain_nodes': {'value': 2, 'source': 'x'},\n"
     "'fabric': {'kind': {'value': 'mesh', 'source': 'x'}}}",
     "t.json:2: error: domain_nodes: only a switch can join the GPUs of several nodes; "
     "fabric.kind is mesh\n"},
    {"a pcie fabric with links",
     HEAD "'fabric': {'kind': {'value': 'pcie', 'source': 'x'},\n"
     "'bandwidth': {'value': '100 GB/s', 'source': 'x'}, 'peer_bandwidth': "
     "{'value': '20 GB/s', 'source': 'x'}}}",
     "t.json:3: error: fabric.bandwidth: a pcie fabric has none of its own; leave it out\n"},
    {"nodes without NICs",
     HEAD "'nic': {\n"
     "'count': {'value': 0, 'source': 'x'}}}",
     "t.json:3: error: nic.count: 4 nodes need NICs to reach each other\n"},
    {"oversubscription below 1",
     HEAD "'network': {\n"
     "'oversubscription': {'value': 0.5, 'source': 'x'}}}",
     "t.json:3: error: network.oversubscription: 0.5; bandwidth below a leaf over bandwidth "
     "above it is at least 1\n"},
    {"two faults at once",
     HEAD "'nic': {\n"
     "'of_gpu': {'value': [9, 1, 2, 3, 4, 5, 6, 7], 'source': 'x'}},\n"
     "'pcie': {\n"
     "'d2h': {'value': '99 GB/s', 'source': 'x'}}}",
     "t.json:5: error: pcie.d2h: 99.0 GB/s is more than pcie.bandwidth, 31.5 GB/s "
     "(PRESETS/dgx-a100.json:#)\n"
     "t.json:3: error: nic.of_gpu: entry 0 is 9, but the NICs are 0 to 7\n"},
    {"nothing but names",
     "{'name': 't', 'summary': 's'}",
     "t.json: error: device.name is missing\n"},
    {"infinite numbers of an ideal base",
     "{'name': 't', 'summary': 's', 'base': 'ideal',\n"
     "'ideal': false}",
     "t.json:2: error: ideal: the base is ideal: its infinite numbers cannot be taken back\n"},
};
/* clang-format on */

static void a_wrong_file_is_refused_with_its_line(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct cluster_fixture f = {0};
        const char *text = check_json_from_single_quotes(wrong[i].text);
        enum status status =
            cluster_parse(&f.cluster, &f.arena, "t.json", text, strlen(text), &f.diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, cluster_fixture_messages(&f), wrong[i].message);
        cluster_fixture_release(&f);
    }
}

/* Reads a cluster from a text (check_json_from_single_quotes()). Returns false, and fails a check, if it is wrong. */
static bool parse(struct cluster_fixture *f, const char *cluster)
{
    const char *text = check_json_from_single_quotes(cluster);
    enum status status =
        cluster_parse(&f->cluster, &f->arena, "t.json", text, strlen(text), &f->diag);
    return CHECK_TEXT(text, f->diag.text ? f->diag.text : "", "") &&
           CHECK_INT(text, status, STATUS_OK);
}

static void unsourced_values_are_marked_given(void)
{
    struct cluster_fixture f = {0};
    if (parse(&f, "{'name': 't', 'base': 'dgx-a100', 'nodes': 12,\n"
                  "'nic': {'latency': {'value': '2 us'}, 'gpudirect': false,\n"
                  "'of_gpu': [7, 6, 5, 4, 3, 2, 1, 0]},\n"
                  "'fabric': {'kind': 'switch', 'efficiency': 0.5}}")) {
        static const char *const paths[] = {"nodes",      "nic.latency", "nic.gpudirect",
                                            "nic.of_gpu", "fabric.kind", "fabric.efficiency"};
        for (size_t i = 0; i < ARRAY_LEN(paths); i++)
            CHECK_TEXT(paths[i], cluster_find_fact(&f.cluster, paths[i])->source, "given");
        CHECK_INT("nodes", f.cluster.nodes, 12);
        CHECK_CLOSE("latency", f.cluster.nic.latency_s, 2e-6, 0);
        CHECK("gpudirect", !f.cluster.nic.gpudirect);
        CHECK_INT("table", f.cluster.nic_of_gpu[0], 7);
        CHECK_INT("another table", f.cluster.switch_of_nic[7], 3);
        CHECK_CLOSE("efficiency", f.cluster.fabric.ring_efficiency, 0.5, 0);
        CHECK_TEXT("summary", f.cluster.summary, "dgx-a100 with other numbers");
    }
    cluster_fixture_release(&f);
}

/* When a file changes a nominal bandwidth of its base, the bandwidths derived from it scale. dgx-a100 has a fabric of
 * 300 GB/s (derived 38, 60 and 140), PCIe of 31.5 GB/s (25) and NICs of 25 GB/s (21.4). */
static void derived_rates_follow_nominal_ones(void)
{
    struct cluster_fixture f = {0};
    const struct cluster *c = &f.cluster;
    if (parse(&f, "{'name': 't', 'base': 'dgx-a100',\n"
                  "'fabric': {'bandwidth': '150 GB/s'},\n"
                  "'pcie': {'bandwidth': '63 GB/s', 'd2h': '40 GB/s'},\n"
                  "'nic': {'bandwidth': '100 Gb/s', 'count': 4}}")) {
        CHECK_CLOSE("peer", c->fabric.peer_bytes_per_s, 19e9, 1e-12);
        CHECK_CLOSE("all-to-all peer", c->fabric.all_to_all_peer_bytes_per_s, 30e9, 1e-12);
        CHECK_CLOSE("channels", c->fabric.all_to_all_channels_bytes_per_s, 70e9, 1e-12);
        CHECK_CLOSE("h2d", c->pcie.h2d_bytes_per_s, 50e9, 1e-12);
        CHECK_CLOSE("d2h, which is given", c->pcie.d2h_bytes_per_s, 40e9, 0);
        CHECK_CLOSE("both ways, which the base does not say", c->pcie.both_ways_total_bytes_per_s,
                    0, 0);
        CHECK_CLOSE("uplink", c->pcie.pcie_switch_uplink_bytes_per_s, 50e9, 1e-12);
        CHECK_CLOSE("NIC's peer", c->nic.peer_bytes_per_s, 10.7e9, 1e-12);
        static const int64_t nic_of_gpu[] = {0, 0, 1, 1, 2, 2, 3, 3};
        for (int g = 0; g < 8; g++)
            CHECK_INT("NIC of a GPU", c->nic_of_gpu[g], nic_of_gpu[g]);
        for (int n = 0; n < 4; n++)
            CHECK_INT("switch of a NIC", c->switch_of_nic[n], n);
        const struct cluster_fact *fact = cluster_find_fact(c, "nic.peer_bandwidth");
        CHECK_TEXT("value", fact->value_as_written, "10.7 GB/s");
        CHECK_TEXT("source", fact->source, "scaled with nic.bandwidth");
        CHECK_INT("line", fact->at.line, 4);
        CHECK_TEXT("source of a table", cluster_find_fact(c, "nic.of_gpu")->source,
                   "spread evenly with nic.count");
    }
    cluster_fixture_release(&f);
}

static void a_nic_hangs_on_the_switch_of_a_gpu_it_serves(void)
{
    struct cluster_fixture f = {0};
    if (parse(&f, "{'name': 't', 'base': 'dgx-a100', 'nic': {'count': 4,\n"
                  "'of_gpu': [2, 2, 2, 2, 0, 0, 0, 3]}}")) {
        static const int64_t switch_of_nic[] = {2, 1, 0, 3}; /* no GPU uses NIC 1 */
        for (int n = 0; n < 4; n++)
            CHECK_INT("switch", f.cluster.switch_of_nic[n], switch_of_nic[n]);
        CHECK_TEXT("of_gpu", cluster_find_fact(&f.cluster, "nic.of_gpu")->source, "given");
    }
    cluster_fixture_release(&f);
}

/* Returns the start of a line of text; lines count from 1. */
static char *start_of_line(char *text, uint32_t line)
{
    while (--line > 0)
        text = strchr(text, '\n') + 1;
    return text;
}

static void a_missing_number_is_named(void)
{
    static const char absent[] = {'n', 'u', 'l', 'l'}; /* a null member counts as absent */
    struct cluster_fixture whole = {0};
    struct text text = {0};
    const char *path = check_path("data/clusters/pcie.json");
    CHECK_INT("read", text_read(&text, path, &whole.diag), STATUS_OK);
    CHECK_INT("load", cluster_load(&whole.cluster, &whole.arena, path, &whole.diag), STATUS_OK);
    for (size_t i = 0; i < whole.cluster.facts.count; i++) {
        struct cluster_fixture f = {0};
        const struct cluster_fact *fact = &whole.cluster.facts.row[i];
        char *copy = arena_text(&f.arena, text.data, text.size);
        char *from = strchr(start_of_line(copy, fact->at.line), '{'), *to = strchr(from, '}');
        memset(from, ' ', (size_t)(to + 1 - from));
        memcpy(from, absent, sizeof absent);
        CHECK_INT(fact->path,
                  cluster_parse(&f.cluster, &f.arena, "t.json", copy, text.size, &f.diag),
                  STATUS_BAD_INPUT);
        CHECK_TEXT(fact->path, f.diag.text,
                   arena_printf(&f.arena, "t.json: error: %s is missing\n", fact->path));
        cluster_fixture_release(&f);
    }
    text_release(&text);
    cluster_fixture_release(&whole);
}

static void a_truncated_cluster_is_refused(void)
{
    struct text text = {0};
    struct diag diag = {0};
    CHECK_INT("read", text_read(&text, check_path("data/clusters/pcie.json"), &diag), STATUS_OK);
    size_t end = text.size;
    while (end > 0 && text.data[end - 1] != '}')
        end--;
    for (size_t size = 0; size < end; size += 7) {
        struct cluster_fixture f = {0};
        enum status status =
            cluster_parse(&f.cluster, &f.arena, "t.json", text.data, size, &f.diag);
        CHECK_INT("cut", status, STATUS_BAD_INPUT);
        CHECK_INT("one message", (int64_t)f.diag.error_count, 1);
        cluster_fixture_release(&f);
    }
    text_release(&text);
    diag_release(&diag);
}

static void a_file_that_is_not_there_is_named(void)
{
    struct cluster_fixture f = {0};
    CHECK_INT("status", cluster_load(&f.cluster, &f.arena, "no/such.json", &f.diag), STATUS_SYSTEM);
    CHECK_TEXT("message", f.diag.text,
               "no/such.json: error: cannot open: No such file or directory\n");
    cluster_fixture_release(&f);
}

static void an_unknown_preset_gets_the_nearest_name(void)
{
    struct cluster_fixture f = {0};
    CHECK_INT("status", cluster_load(&f.cluster, &f.arena, "loongtrain-a10", &f.diag),
              STATUS_BAD_INPUT);
    CHECK_TEXT("message", f.diag.text,
               "error: no cluster 'loongtrain-a10'; did you mean 'loongtrain-a100'?\n");
    cluster_fixture_release(&f);
}

/* A file's own numbers replace its board's, and these its base's. A number that only the board gives is not adapted,
 * even if the file has the section of the number. */
static void file_overrides_board_overrides_base(void)
{
    struct cluster_fixture f = {0};
    if (parse(&f, "{'name': 't', 'base': 'dgx-a100', 'board': 'hgx4',\n"
                  " 'nic': {'count': 2, 'of_gpu': [0, 0, 1, 1], 'switch_of_nic': [0, 2]}}")) {
        CHECK_INT("GPUs", f.cluster.gpus_per_node, 4);
        CHECK_INT("fabric", f.cluster.fabric.kind, FABRIC_MESH);
        CHECK_INT("NICs", f.cluster.nic.count, 2);
    }
    cluster_fixture_release(&f);
    f = (struct cluster_fixture){0};
    if (parse(&f, "{'name': 't', 'base': 'dgx-a100', 'board': 'hgx4',\n"
                  " 'nic': {'efficiency': 0.9}}"))
        CHECK_TEXT("source", cluster_find_fact(&f.cluster, "nic.of_gpu")->source,
                   "assumed, as nic.count");
    cluster_fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a wrong file is refused with its line", a_wrong_file_is_refused_with_its_line},
    {"a value without a source is given", unsourced_values_are_marked_given},
    {"what a base gave is adapted", derived_rates_follow_nominal_ones},
    {"a board stands between base and file", file_overrides_board_overrides_base},
    {"a NIC hangs on the switch of a GPU it serves", a_nic_hangs_on_the_switch_of_a_gpu_it_serves},
    {"a missing number is named", a_missing_number_is_named},
    {"a cut file never passes", a_truncated_cluster_is_refused},
    {"a file that is not there is named", a_file_that_is_not_there_is_named},
    {"an unknown preset gets the nearest name", an_unknown_preset_gets_the_nearest_name},
};
CHECK_MAIN("cluster_json", cases)
