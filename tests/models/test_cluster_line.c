/* tests/models/test_cluster_line.c: a cluster on one line, such as 2x4xh100: what it takes from presets, its options,
 * and the messages for wrong lines. */
#include "tests/models/cluster_fixture.h"

#include <string.h>

static void a_line_cuts_a_node_from_a_preset(void)
{
    static const struct {
        const char *line, *device;
        int64_t nodes, gpus, nics, last_nic;
    } rows[] = {
        /* line, device, nodes, gpus, nics, last_nic */
        {"2x4xh100", "h100", 2, 4, 4, 3},
        {"1x8xa100-40g", "a100-40g", 1, 8, 8, 7},
        {"16x8xa100-80g", "a100-80g", 16, 8, 8, 7},
        {"2x5xa100-80g:nics=2", "a100-80g", 2, 5, 2, 1},
        {"4x8xh200:nics=4", "h200", 4, 8, 4, 3},
        {"3x1xb200", "b200", 3, 1, 1, 0},
        {"8x1xgh200", "gh200", 8, 1, 1, 0},
        {"36x4xgb200", "gb200", 36, 4, 4, 3},
        {"2x3xloongtrain-a100", "a100-80g", 2, 3, 2, 1},
        {"2x3xideal", "ideal", 2, 3, 1, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        const char *line = rows[i].line;
        if (cluster_fixture_load(&f, line)) {
            const struct cluster *c = &f.cluster;
            CHECK_TEXT(line, c->name, line);
            CHECK_TEXT(line, c->device.name, rows[i].device);
            CHECK_INT(line, c->nodes, rows[i].nodes);
            CHECK_INT(line, c->gpus_per_node, rows[i].gpus);
            CHECK_INT(line, c->gpus, rows[i].nodes * rows[i].gpus);
            CHECK_INT(line, c->nic.count, rows[i].nics);
            CHECK_INT(line, c->nic_of_gpu[rows[i].gpus - 1], rows[i].last_nic);
            CHECK_INT(line, cluster_check(c, &f.diag), STATUS_OK);
        }
        cluster_fixture_release(&f);
    }
}

static void cluster_line_options_set_any_field(void)
{
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(&f,
                             "2x4xh100:nics=2,nic.bandwidth=200 Gb/s,nic.peer_bandwidth=20 GB/s,"
                             "host.memory=1 TB,nic.gpudirect=false")) {
        const struct cluster *c = &f.cluster;
        CHECK_INT("NICs", c->nic.count, 2);
        CHECK_INT("GPU 1", c->nic_of_gpu[1], 0);
        CHECK_INT("GPU 2", c->nic_of_gpu[2], 1);
        CHECK_INT("NIC 1's switch", c->switch_of_nic[1], 2);
        CHECK_CLOSE("bandwidth", c->nic.bytes_per_s, 25e9, 0);
        CHECK_CLOSE("memory", c->host.memory_bytes, 1e12, 0);
        CHECK("gpudirect", !c->nic.gpudirect);
        CHECK_TEXT("source", cluster_find_fact(c, "host.memory")->source, "the one-line form");
        CHECK_TEXT("value", cluster_find_fact(c, "host.memory")->value_as_written, "1 TB");
    }
    cluster_fixture_release(&f);
}

static void cluster_lines_set_numbers_after_name(void)
{
    static const struct {
        const char *line;
        int64_t nodes; /* 0: as in the preset */
    } rows[] = {
        {"dgx-h100:nics=4,nic.latency=7 us,host.memory=1 TB", 0},
        {"2x8xdgx-h100:nics=4,nic.latency=7 us,host.memory=1 TB", 2},
    };
    struct cluster_fixture preset = {0};
    cluster_fixture_load(&preset, "dgx-h100");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        const struct cluster *c = &f.cluster;
        if (cluster_fixture_load(&f, rows[i].line)) {
            CHECK_TEXT(rows[i].line, c->name, rows[i].line);
            CHECK_INT(rows[i].line, c->nic.count, 4);
            CHECK_CLOSE(rows[i].line, c->nic.latency_s, 7e-6, 0);
            CHECK_CLOSE(rows[i].line, c->host.memory_bytes, 1e12, 0);
            CHECK_INT(rows[i].line, c->nodes,
                      rows[i].nodes > 0 ? rows[i].nodes : preset.cluster.nodes);
            CHECK_INT(rows[i].line, c->gpus, c->nodes * 8);
        }
        cluster_fixture_release(&f);
    }
    cluster_fixture_release(&preset);
}

static void boards_are_meshed_or_switched(void)
{
    static const struct {
        const char *line;
        int kind;
        double bandwidth;
        const char *other;
    } rows[] = {
        {"1x4xh200:board=mesh", FABRIC_MESH, 150e9, NULL},
        {"2x2xh100:nics=1,board=mesh", FABRIC_MESH, 150e9, NULL},
        {"1x4xa100-80g:board=mesh,nics=2", FABRIC_MESH, 100e9, NULL},
        {"1x4xh200:board=switch", FABRIC_SWITCH, 450e9, NULL},
        {"2x4xh100", FABRIC_SWITCH, 450e9, "2x4xh100:board=mesh"},
        {"1x2xh200:nics=1", FABRIC_SWITCH, 450e9, "1x2xh200:nics=1,board=mesh"},
        {"2x8xh100", FABRIC_SWITCH, 450e9, NULL},
        {"1x4xb200", FABRIC_SWITCH, 900e9, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, rows[i].line)) {
            CHECK_INT(rows[i].line, f.cluster.fabric.kind, rows[i].kind);
            CHECK_CLOSE(rows[i].line, f.cluster.fabric.bytes_per_s, rows[i].bandwidth, 0);
            CHECK_TEXT(rows[i].line,
                       f.cluster.line_with_mesh_board ? f.cluster.line_with_mesh_board : "",
                       rows[i].other ? rows[i].other : "");
        }
        cluster_fixture_release(&f);
    }
}

/* Bandwidths that follow from a nominal one scale with it, unless the line gives them, too. The
 * NICs of GPUs follow the number of NICs. */
static void rates_that_are_not_given_are_scaled(void)
{
    static const struct {
        const char *line, *path, *value, *source;
    } rows[] = {
        {"dgx-h100:nics=4,nic.bandwidth=200 Gb/s", "nic.peer_bandwidth", "21.25 GB/s",
         "scaled with nic.bandwidth"},
        {"dgx-h100:nics=4,nic.bandwidth=200 Gb/s", "nic.of_gpu", "[0, 0, 1, 1, 2, 2, 3, 3]",
         "spread evenly with nic.count"},
        {"2x4xh100:nic.bandwidth=800 Gb/s", "nic.peer_bandwidth", "85 GB/s",
         "scaled with nic.bandwidth"},
        {"dgx-h100:nic.peer_bandwidth=20 GB/s,nic.bandwidth=200 Gb/s", "nic.peer_bandwidth",
         "20 GB/s", "the one-line form"},
        {"dgx-a100:fabric.bandwidth=150 GB/s", "fabric.all_to_all_channels", "70 GB/s",
         "scaled with fabric.bandwidth"},
        {"dgx-h100:pcie.bandwidth=31.5 GB/s", "pcie.uplink", "26 GB/s",
         "scaled with pcie.bandwidth"},
        {"gh200:pcie.bandwidth=225 GB/s", "fabric.peer_bandwidth", "225 GB/s",
         "scaled with pcie.bandwidth"},
        {"ideal:nic.bandwidth=50 GB/s", "nic.peer_bandwidth", "50 GB/s",
         "scaled with nic.bandwidth"},
        {"ideal:nic.bandwidth=infinite", "nic.peer_bandwidth", "infinite", "by definition"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cluster_fixture f = {0};
        if (cluster_fixture_load(&f, rows[i].line)) {
            const struct cluster_fact *fact = cluster_find_fact(&f.cluster, rows[i].path);
            CHECK_TEXT(rows[i].line, fact->value_as_written, rows[i].value);
            CHECK_TEXT(rows[i].line, fact->source, rows[i].source);
        }
        cluster_fixture_release(&f);
    }
    struct cluster_fixture f = {0};
    if (cluster_fixture_load(
            &f, "gh200:pcie.bandwidth=77.7 GB/s")) /* equal rates stay equal to the last bit */
        CHECK("all of the lanes", f.cluster.fabric.peer_bytes_per_s == 77.7e9);
    cluster_fixture_release(&f);
}

static const struct {
    const char *line, *message;
} wrong[] = {
    {"", ":1:1: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2", "2:1:1: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x", "2x:1:3: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x4", "2x4:1:3: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x4x", "2x4x:1:5: error: no device or cluster ''; the devices are a100-40g, a100-80g, h100, "
             "h200, b200, b300, gh200, gb200, gb300\n"},
    {"x4xh100", "x4xh100:1:1: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x4x h100", "2x4x h100:1:5: error: no device or cluster ' h100'; did you mean 'h100'?\n"},
    {"0x4xh100", "0x4xh100:1:1: error: 0 nodes: the number must be from 1 to 65536\n"},
    {"2x0xh100", "2x0xh100:1:3: error: 0 GPUs in a node: the number must be from 1 to 1024\n"},
    {"65537x4xh100", "65537x4xh100:1:1: error: 65537 nodes: the number must be from 1 to 65536\n"},
    {"2x9xh100", "2x9xh100:1:3: error: a node of dgx-h100 cannot have 9 GPUs; it has 8 at most\n"},
    {"99999999999999999999x1xh100",
     "99999999999999999999x1xh100:1:1: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x2xgh200", "2x2xgh200:1:3: error: a node of gh200 cannot have 2 GPUs; it has 1 at most\n"},
    {"2x4xh10", "2x4xh10:1:5: error: no device or cluster 'h10'; the devices are h100\n"},
    {"2x4xa100",
     "2x4xa100:1:5: error: no device or cluster 'a100'; the devices are a100-40g, a100-80g\n"},
    {"2x4xa100-80",
     "2x4xa100-80:1:5: error: no device or cluster 'a100-80'; the devices are a100-80g\n"},
    {"2x4xqwertyuiop", "2x4xqwertyuiop:1:5: error: no device or cluster 'qwertyuiop'; the devices "
                       "are a100-40g, a100-80g, h100, h200, b200, b300, gh200, gb200, gb300\n"},
    {"-2x4xh100", "-2x4xh100:1:1: error: -2 nodes: the number must be from 1 to 65536\n"},
    {"2x4xh100:", "2x4xh100::1:10: error: no option ''; give nics=N, or a number of a cluster "
                  "file, such as nic.bandwidth=200 Gb/s (not nodes, gpus_per_node, nic.count, "
                  "pcie.switches or a list)\n"},
    {"1x4xb200:board=mesh",
     "1x4xb200:board=mesh:1:5: error: board=mesh: no board of four 'b200' is "
     "known whose pairs are wired directly; those of a100-80g, h100 and h200 "
     "are; or give fabric.kind=mesh with fabric.bandwidth\n"},
    {"1x4xh200:board=ring",
     "1x4xh200:board=ring:1:16: error: board: no wiring 'ring'; there are "
     "switch (GPUs of a node of eight, behind its NVSwitch) and mesh (a board "
     "of four whose pairs are wired directly)\n"},
    {"dgx-h100:board=mesh", "dgx-h100:board=mesh:1:16: error: board: a named cluster has its own "
                            "wiring; give NODESxGPUSxDEVICE:board=mesh, or a cluster file\n"},
    {"2x4xh100:nics", "2x4xh100:nics:1:14: error: expected nics=VALUE\n"},
    {"2x4xh100:nics=", "2x4xh100:nics=:1:15: error: nics: '': the number must be from 1 to 4, at "
                       "most one for each GPU\n"},
    {"2x4xh100:nics=0", "2x4xh100:nics=0:1:15: error: nics: '0': the number must be from 1 to 4, "
                        "at most one for each GPU\n"},
    {"2x4xh100:nics=5", "2x4xh100:nics=5:1:15: error: nics: '5': the number must be from 1 to 4, "
                        "at most one for each GPU\n"},
    {"2x4xh100:nic=4", "2x4xh100:nic=4:1:10: error: no option 'nic'; did you mean 'nics'?\n"},
    {"2x4xh100:nodes=4",
     "2x4xh100:nodes=4:1:10: error: no option 'nodes'; give nics=N, or a number of a cluster "
     "file, such as nic.bandwidth=200 Gb/s (not nodes, gpus_per_node, nic.count, pcie.switches or "
     "a list)\n"},
    {"2x4xh100:nic.bandwidth=25",
     "2x4xh100:nic.bandwidth=25:1:24: error: '25' has no unit: expected a number and one of B/s, "
     "KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, Gb/s\n"},
    {"2x4xh100:nic.bandwidth=200 Gb/s,nic.peer_bandwidth=30 GB/s",
     "2x4xh100:nic.bandwidth=200 Gb/s,nic.peer_bandwidth=30 GB/s:1:52: error: nic.peer_bandwidth: "
     "30.0 GB/s is more than nic.bandwidth, 25.0 GB/s\n"},
    {"2x4xh100:pcie.switch_of_gpu=0",
     "2x4xh100:pcie.switch_of_gpu=0:1:10: error: no option 'pcie.switch_of_gpu'; give nics=N, "
     "or a number of a cluster file, such as nic.bandwidth=200 Gb/s (not nodes, gpus_per_node, "
     "nic.count, pcie.switches or a list)\n"},
    {"2x4xh100:host.memory=1 TB,",
     "2x4xh100:host.memory=1 TB,:1:27: error: no option ''; give nics=N, or a number of a cluster "
     "file, such as nic.bandwidth=200 Gb/s (not nodes, gpus_per_node, nic.count, pcie.switches or "
     "a list)\n"},
    {"2x4xh100:nic.efficiency=2", "2x4xh100:nic.efficiency=2:1:25: error: nic.efficiency: 2; it "
                                  "must be above 0 and at most 1\n"},
    {"2x4xh100\n", "2x4xh100\\x0a: error: expected NODESxGPUSxDEVICE, such as 2x4xh100\n"},
    {"2x4xh100:nics=2,nics=4", "2x4xh100:nics=2,nics=4:1:17: error: nics is given twice\n"},
};

static void a_wrong_line_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct cluster_fixture f = {0};
        enum status status =
            cluster_parse_line(&f.cluster, &f.arena, wrong[i].line, strlen(wrong[i].line), &f.diag);
        CHECK_INT(wrong[i].line, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].line, cluster_fixture_messages(&f), wrong[i].message);
        cluster_fixture_release(&f);
    }
}

static void a_line_with_a_nul_is_refused(void)
{
    struct cluster_fixture f = {0};
    CHECK_INT("status", cluster_parse_line(&f.cluster, &f.arena, "2x4xh100\0x", 10, &f.diag),
              STATUS_BAD_INPUT);
    cluster_fixture_release(&f);
}

static const struct check_case cases[] = {
    {"a line cuts a node from a preset", a_line_cuts_a_node_from_a_preset},
    {"options set any number", cluster_line_options_set_any_field},
    {"numbers follow any name", cluster_lines_set_numbers_after_name},
    {"a board without a switch", boards_are_meshed_or_switched},
    {"rates that are not given are scaled", rates_that_are_not_given_are_scaled},
    {"a wrong line is refused", a_wrong_line_is_refused},
    {"a line with a NUL is refused", a_line_with_a_nul_is_refused},
};
CHECK_MAIN("cluster_line", cases)
