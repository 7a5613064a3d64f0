/* tests/sim/test_collective.c: which bytes of a collective cross each port and link, and how many steps it takes. */
#include "sim/platform/collective.h"
#include "tests/sim/machine.h"

static struct work make_collective_work(enum work_kind kind, int64_t bytes, int64_t algorithm)
{
    struct work work = {.kind = (uint8_t)kind};
    if (kind == WORK_ALL_REDUCE) {
        work.all_reduce.bytes = bytes;
        work.all_reduce.algorithm = algorithm;
    } else if (kind == WORK_SCATTER) {
        work.broadcast.bytes = bytes;
    } else if (kind == WORK_BROADCAST || kind == WORK_REDUCE) {
        work.broadcast.bytes = bytes;
        work.broadcast.algorithm = algorithm;
    } else {
        work.collective.bytes = bytes;
        work.collective.algorithm = algorithm;
    }
    return work;
}

/* Latencies of collectives, with 1 s inside a node and 100 s between nodes, of 2 nodes of 4; members are the ranks
 * 0, stride, 2 stride and so on. */
static const struct {
    const char *label;
    enum work_kind kind;
    int64_t algorithm;
    uint32_t members, stride;
    double latency_s;
} latencies[] = {
    /* label, kind, algorithm, members, stride, latency_s */
    {"ring in a node", WORK_ALL_GATHER, ALGORITHM_RING, 4, 1, 3},
    {"ring over two", WORK_ALL_GATHER, ALGORITHM_RING, 8, 1, 106},
    {"one rank a node", WORK_REDUCE_SCATTER, ALGORITHM_AUTO, 2, 4, 100},
    {"direct", WORK_ALL_GATHER, ALGORITHM_DIRECT, 8, 1, 100},
    {"all-to-all in a node", WORK_ALL_TO_ALL, ALGORITHM_AUTO, 4, 1, 1},
    {"all-to-all over two", WORK_ALL_TO_ALL, ALGORITHM_AUTO, 8, 1, 100},
    {"all-reduce as a ring", WORK_ALL_REDUCE, ALGORITHM_RING, 8, 1, 212},
    {"all-reduce as a tree", WORK_ALL_REDUCE, ALGORITHM_TREE, 8, 1, 206},
    {"all-reduce, small: the tree", WORK_ALL_REDUCE, ALGORITHM_AUTO, 8, 1, 206},
    {"a group of one", WORK_ALL_REDUCE, ALGORITHM_RING, 1, 1, 0},
    {"broadcast", WORK_BROADCAST, ALGORITHM_AUTO, 4, 1, 3},
    {"reduce", WORK_REDUCE, ALGORITHM_AUTO, 8, 1, 106},
    {"reduce as a tree", WORK_REDUCE, ALGORITHM_TREE, 8, 1, 103},
    {"scatter in a node", WORK_SCATTER, ALGORITHM_AUTO, 4, 1, 1},
    {"scatter over two", WORK_SCATTER, ALGORITHM_AUTO, 8, 1, 100},
};

static void collective_latency_counts_steps(void)
{
    for (size_t i = 0; i < ARRAY_LEN(latencies); i++) {
        struct cluster cluster = make_round_number_cluster(2);
        struct platform platform = {.cluster = &cluster};
        struct flow_table flows = {0};
        struct members members;
        uint32_t member[8];
        cluster.fabric.latency_s = 1;
        cluster.nic.latency_s = 40;
        cluster.nic.message_latency_s = 60;
        for (uint32_t k = 0; k < latencies[i].members; k++)
            member[k] = k * latencies[i].stride;
        struct work work = make_collective_work(latencies[i].kind, 8, latencies[i].algorithm);
        members_init(&members, &platform, member, latencies[i].members);
        members_find_rings(&members, &platform);
        double latency_s = collective_add_flows(&platform, &flows, &work, &members, 0, NULL);
        members_release(&members);
        CHECK_CLOSE(latencies[i].label, latency_s, latencies[i].latency_s, 1e-12);
        flow_table_release(&flows);
        platform_release(&platform);
    }
}

/* Returns the bytes that all flows carry over links of a kind, summed over those links. */
static double bytes_on_links_of_kind(const struct platform *platform,
                                     const struct flow_table *flows, enum link_kind kind)
{
    double sum = 0;
    for (uint32_t f = 0; f < flows->flow_count; f++)
        for (uint32_t e = flows->link_begin[f]; e < flows->link_begin[f + 1]; e++)
            if (platform->link[flows->link[e]].kind == kind)
                sum += flows->bytes[f];
    return sum;
}

/* GB that must cross all ports of a kind together, for 8 GB per rank over 8 ranks on two nodes. */
static const struct {
    const char *label;
    enum work_kind kind;
    double fabric, nic; /* leaving; as many arrive */
} volumes[] = {
    {"all-to-all: 3 and 4 pieces a rank", WORK_ALL_TO_ALL, 24, 32},
    {"all-gather: 7 parts, 2 rings a node", WORK_ALL_GATHER, 448, 112},
    {"reduce-scatter: 7 of 8", WORK_REDUCE_SCATTER, 56, 14},
    {"all-reduce: twice that", WORK_ALL_REDUCE, 112, 28},
    {"broadcast: all of it", WORK_BROADCAST, 64, 16},
    {"reduce: the same, the other way", WORK_REDUCE, 64, 16},
};

static void port_bytes_of_collectives_by_hand(void)
{
    for (size_t i = 0; i < ARRAY_LEN(volumes); i++) {
        struct cluster cluster = make_round_number_cluster(2);
        struct platform platform = {.cluster = &cluster};
        struct flow_table flows = {0};
        static const uint32_t member[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        const char *label = volumes[i].label;
        struct members members;
        struct work work = make_collective_work(volumes[i].kind, 8000000000, ALGORITHM_RING);
        members_init(&members, &platform, member, 8);
        members_find_rings(&members, &platform);
        collective_add_flows(&platform, &flows, &work, &members, 0, NULL);
        members_release(&members);
        CHECK_CLOSE(label, bytes_on_links_of_kind(&platform, &flows, LINK_FABRIC_OUT),
                    volumes[i].fabric * 1e9, 1e-12);
        CHECK_CLOSE(label, bytes_on_links_of_kind(&platform, &flows, LINK_FABRIC_IN),
                    volumes[i].fabric * 1e9, 1e-12);
        CHECK_CLOSE(label, bytes_on_links_of_kind(&platform, &flows, LINK_NIC_OUT),
                    volumes[i].nic * 1e9, 1e-12);
        CHECK_CLOSE(label, bytes_on_links_of_kind(&platform, &flows, LINK_NIC_IN),
                    volumes[i].nic * 1e9, 1e-12);
        flow_table_release(&flows);
        platform_release(&platform);
    }
}

/* 4096 tokens of 2048 elements in bf16 with 8 copies each are 134,217,728 B, of which 7/8 leave a
 * rank of 8 (Qwen3-30B). */
static void expert_copies_leaving_a_rank_by_hand(void)
{
    struct cluster cluster = make_round_number_cluster(2);
    struct platform platform = {.cluster = &cluster};
    struct flow_table flows = {0};
    static const uint32_t member[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct members members;
    struct work work =
        make_collective_work(WORK_ALL_TO_ALL, INT64_C(4096) * 8 * 2048 * 2, ALGORITHM_AUTO);
    members_init(&members, &platform, member, 8);
    members_find_rings(&members, &platform);
    collective_add_flows(&platform, &flows, &work, &members, 0, NULL);
    members_release(&members);
    CHECK_CLOSE("bytes a rank",
                (bytes_on_links_of_kind(&platform, &flows, LINK_FABRIC_OUT) +
                 bytes_on_links_of_kind(&platform, &flows, LINK_NIC_OUT)) /
                    8,
                117440512, 1e-12);
    flow_table_release(&flows);
    platform_release(&platform);
}

/* An exchange of equal parts has the latency and the flows of an all-to-all, with one domain and with several. */
static void equal_exchanges_are_all_to_alls(void)
{
    for (uint32_t count = 4; count <= 8; count += 4)
        for (int alike = 0; alike < 2; alike++) {
            struct cluster cluster = make_round_number_cluster(2);
            struct platform platform = {.cluster = &cluster};
            struct flow_table flows = {0}, others = {0};
            static const uint32_t member[8] = {0, 1, 2, 3, 4, 5, 6, 7};
            double pair[64];
            struct members members;
            struct work all = make_collective_work(WORK_ALL_TO_ALL, 8000000000, ALGORITHM_AUTO);
            struct work work = {.kind = WORK_EXCHANGE};
            const struct exchange_bytes exchange = {pair, alike};
            for (uint32_t i = 0; i < 64; i++)
                pair[i] = 8e9 / count;
            members_init(&members, &platform, member, count);
            members_find_rings(&members, &platform);
            double want_s = collective_add_flows(&platform, &others, &all, &members, 0, NULL);
            double got_s = collective_add_flows(&platform, &flows, &work, &members, 0, &exchange);
            CHECK_CLOSE("latency", got_s, want_s, 1e-12);
            if (CHECK_INT("flows", flows.flow_count, others.flow_count))
                for (uint32_t f = 0; f < flows.flow_count; f++)
                    CHECK_CLOSE("bytes", flows.bytes[f], others.bytes[f], 1e-12);
            members_release(&members);
            flow_table_release(&flows);
            flow_table_release(&others);
            platform_release(&platform);
        }
}

/* Member 0 sends 6 GB to member 1 of its node and 1 GB to each member of the other node, and
 * receives nothing. */
static void members_exchange_their_own_bytes(void)
{
    struct cluster cluster = make_round_number_cluster(2);
    struct platform platform = {.cluster = &cluster};
    struct flow_table flows = {0};
    static const uint32_t member[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    double pair[64] = {[1] = 6e9, [4] = 1e9, [5] = 1e9, [6] = 1e9, [7] = 1e9};
    struct members members;
    struct work work = {.kind = WORK_EXCHANGE};
    const struct exchange_bytes exchange = {pair, false};
    members_init(&members, &platform, member, 8);
    members_find_rings(&members, &platform);
    collective_add_flows(&platform, &flows, &work, &members, 0, &exchange);
    members_release(&members);
    /* 6 GB in the flow of what member 0 sends, and in that of what member 1 receives */
    CHECK_CLOSE("fabric", bytes_on_links_of_kind(&platform, &flows, LINK_FABRIC_OUT), 12e9, 1e-12);
    /* 4 GB in the flow of what member 0 sends, and 1 GB in that of each of four receivers */
    CHECK_CLOSE("NICs", bytes_on_links_of_kind(&platform, &flows, LINK_NIC_OUT), 8e9, 1e-12);
    CHECK_INT("members that have nothing move nothing", flows.flow_count, 2 + 5);
    flow_table_release(&flows);
    platform_release(&platform);
}

/* A ring of more than 200 links becomes two flows for each node, one for each class of its
 * links. */
static void long_rings_become_flows_by_class(void)
{
    struct cluster cluster = make_round_number_cluster(64);
    struct platform platform = {.cluster = &cluster};
    struct flow_table flows = {0};
    struct members members;
    uint32_t member[256];
    for (uint32_t k = 0; k < 256; k++)
        member[k] = k;
    struct work work = make_collective_work(WORK_REDUCE_SCATTER, 256000000, ALGORITHM_RING);
    members_init(&members, &platform, member, 256);
    members_find_rings(&members, &platform);
    collective_add_flows(&platform, &flows, &work, &members, 0, NULL);
    members_release(&members);
    CHECK_INT("one flow a node and class", flows.flow_count, 128);
    for (uint32_t f = 0; f < flows.flow_count; f++)
        CHECK_CLOSE("bytes", flows.bytes[f], f < 64 ? 255e6 : 127.5e6, 1e-12);
    flow_table_release(&flows);
    platform_release(&platform);
}

static void links_have_names(void)
{
    static const char *const want[] = {"node 0 gpu 3 pcie lanes up",
                                       "node 0 pcie switch 1 uplink up", "node 0 nic 1 out",
                                       "node 1 nic 0 in", "node 1 gpu 1 pcie lanes down"};
    struct cluster cluster = make_round_number_cluster(2);
    struct platform platform = {.cluster = &cluster};
    struct flow_table flows = {0};
    flow_open(&flows, 1);
    route_add_nic(&platform, &flows, 3, true);
    route_add_nic(&platform, &flows, 5, false);
    route_add_link(&platform, &flows, LINK_PCIE_UPLINK_UP, 0, 1, 1);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        bool found = false;
        for (uint32_t l = 0; l < platform.link_count; l++) {
            char text[96];
            platform_link_name(&platform, l, text, sizeof text);
            found = found || strcmp(text, want[i]) == 0;
        }
        CHECK(want[i], found);
    }
    flow_table_release(&flows);
    platform_release(&platform);
}

/* 8 ranks on two nodes have 1 GB of tokens each. A token goes to 8 of 128 experts, and travels once
 * to each rank and node that has some of them: a node with probability 1 - C(64, 8) / C(128, 8), a
 * rank, if all experts are equally likely (even), with probability 1 - C(112, 8) / C(128, 8). If
 * not, `bytes` says what arrives at a rank: 6 GB. Three quarters of that pass links within the
 * node. An all-to-all of copies would send 24 GB there and 32 GB between nodes. */
static void dispatched_tokens_reach_a_node_once(void)
{
    static const uint32_t member[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int even = 0; even < 2; even++) {
        struct cluster cluster = make_round_number_cluster(2);
        struct platform platform = {.cluster = &cluster};
        struct flow_table flows = {0};
        struct members members;
        struct work work = {.kind = WORK_ALL_TO_ALL,
                            .in = DTYPE_BF16,
                            .all_to_all = {.bytes = 6000000000,
                                           .cols = 1000,
                                           .ahead = 500000000,
                                           .once = 8,
                                           .experts = 128,
                                           .even = even}};
        members_init(&members, &platform, member, 8);
        members_find_rings(&members, &platform);
        collective_add_flows(&platform, &flows, &work, &members, 0, NULL);
        members_release(&members);
        const double arriving = even ? 8 * 0.66741961192 : 6;
        CHECK_CLOSE("inside", bytes_on_links_of_kind(&platform, &flows, LINK_FABRIC_OUT),
                    8 * arriving * 1e9 * 3 / 4, 1e-9);
        CHECK_CLOSE("between", bytes_on_links_of_kind(&platform, &flows, LINK_NIC_OUT),
                    8 * 0.99690413572e9, 1e-9);
        flow_table_release(&flows);
        platform_release(&platform);
    }
}

static const struct check_case cases[] = {
    {"tokens that travel once", dispatched_tokens_reach_a_node_once},
    {"equal exchanges are all-to-alls", equal_exchanges_are_all_to_alls},
    {"members exchange their own bytes", members_exchange_their_own_bytes},
    {"latency is steps", collective_latency_counts_steps},
    {"what crosses the ports", port_bytes_of_collectives_by_hand},
    {"copies that leave a rank", expert_copies_leaving_a_rank_by_hand},
    {"long rings are cut", long_rings_become_flows_by_class},
    {"links have names", links_have_names},
};
CHECK_MAIN("sim/collective", cases)
