/* tests/sim/test_hand_worked.c: each case tests one property of one resource; the comments of its schedule's file, or
 * of its row below, compute the time. */
#include "tests/sim/machine.h"

static void use_one_gpu_per_node(struct cluster *c)
{
    c->gpus_per_node = 1;
    c->gpus = c->nodes;
    c->network = (struct network){.nodes_per_leaf_switch = 2, .oversubscription = 4};
}

static void use_mesh_fabric(struct cluster *c)
{
    c->fabric.kind = FABRIC_MESH;
}

static void use_pcie_fabric(struct cluster *c)
{
    c->fabric.kind = FABRIC_PCIE;
    c->fabric.bytes_per_s = 0;
}

static void use_ideal_rates(struct cluster *c)
{
    c->is_ideal = true;
    c->fabric.bytes_per_s = c->fabric.peer_bytes_per_s = INFINITY;
    c->fabric.all_to_all_peer_bytes_per_s = INFINITY;
    c->pcie.nominal_bytes_per_s = c->pcie.pcie_switch_uplink_bytes_per_s = INFINITY;
    c->pcie.h2d_bytes_per_s = c->pcie.d2h_bytes_per_s = INFINITY;
    c->nic.bytes_per_s = c->nic.peer_bytes_per_s = INFINITY;
    c->host.memory_bytes_per_s = c->host.socket_link_bytes_per_s = INFINITY;
    c->host.d2h_to_pageable_bytes_per_s = c->host.h2d_from_pageable_bytes_per_s = INFINITY;
}

static void use_one_domain_of_two_nodes(struct cluster *c)
{
    c->domain_nodes = 2;
}

static void use_latencies(struct cluster *c)
{
    c->fabric.latency_s = 1;
    c->nic.latency_s = 4;
    c->nic.message_latency_s = 6;
    c->pcie.latency_s = 100;
}

static void use_route_through_host_memory(struct cluster *c)
{
    c->nic.gpudirect = false;
    c->host.memory_bytes_per_s = 8e9;
}

static void use_nics_without_gpudirect(struct cluster *c)
{
    c->nic.gpudirect = false;
    c->nic.host_staged_bytes_per_s = 5e9;
}

static void use_one_ring(struct cluster *c)
{
    c->nic.max_rings_between_domains = 1;
}

static void use_link_efficiencies(struct cluster *c)
{
    c->fabric.ring_efficiency = 0.5;
    c->fabric.all_to_all_efficiency = 0.25;
    c->nic.efficiency = 0.5;
}

static void use_narrow_peer_links(struct cluster *c)
{
    c->fabric.all_to_all_peer_bytes_per_s = 10e9;
}

static void use_few_all_to_all_channels(struct cluster *c)
{
    c->fabric.all_to_all_channels_bytes_per_s = 20e9;
}

static void use_few_channels_and_narrow_messages(struct cluster *c)
{
    c->fabric.all_to_all_channels_bytes_per_s = 20e9;
    c->fabric.all_to_all_peer_bytes_per_s = 2e9;
}

static void use_slow_start_of_messages(struct cluster *c)
{
    c->fabric.peer_latency_s = 3;
}

static void use_slow_start_of_collectives(struct cluster *c)
{
    c->fabric.collective_latency_s = 3;
}

static void use_messages_on_a_quarter_of_sms(struct cluster *c)
{
    c->device.sm_count = 4;
    c->device.message_sms = 1;
}

static void use_collectives_that_take_channels(struct cluster *c)
{
    c->device.sm_count = 32;
    c->device.collective_sms = 24;
}

static void use_hopper_channels(struct cluster *c)
{
    use_collectives_that_take_channels(c);
    c->device.compute_capability = 9;
}

static void use_few_channels_inside_domains(struct cluster *c)
{
    use_collectives_that_take_channels(c);
    c->device.collective_sms = 2;
}

static void use_channels_in_one_domain(struct cluster *c)
{
    use_collectives_that_take_channels(c);
    c->domain_nodes = 2;
}

static void use_channels_with_nic_latency(struct cluster *c)
{
    use_collectives_that_take_channels(c);
    c->nic.latency_s = 0.1;
}

static void use_slow_memory(struct cluster *c)
{
    use_collectives_that_take_channels(c);
    c->device.memory_bytes_per_s = 160e9;
}

static void use_peer_rate_from_six_ranks(struct cluster *c)
{
    c->fabric.ranks_from_which_peer_rate_holds = 6;
}

/* Makes all ranks share a GPU, within which copies reach 100 GB/s of payload for all ranks together. */
static void use_one_gpu_for_all(struct cluster *c)
{
    c->fabric.kind = FABRIC_LOOPBACK;
    c->loopback.bytes_per_s = 100e9;
}

static void use_slow_start_of_copies(struct cluster *c)
{
    use_one_gpu_for_all(c);
    c->loopback.latency_s = 1;
}

static void use_narrow_pcie_both_ways(struct cluster *c)
{
    c->pcie.both_ways_total_bytes_per_s = 25e9;
}

static const struct {
    const char *file; /* of tests/sim/hand_worked/, without ".ir" */
    int64_t nodes;
    void (*change)(
        struct cluster *);          /* of the cluster of make_round_number_cluster(); NULL: none */
    double issue_s;                 /* the host's time for each op */
    bool work_takes_host_bandwidth; /* work on the host takes bandwidth of its memory */
    double step_s;                  /* the time that the step must take */
} cases_of_time[] = {
    /* file, nodes, change, issue_s, work_takes_host_bandwidth, step_s */
    {"all_to_all_in_node", 1, NULL, 0, false, 0.06},
    {"all_to_all_in_node", 1, use_ideal_rates, 0, false, 0},
    {"all_to_all_in_node", 1, use_slow_start_of_collectives, 0, false, 3.06},
    /* a pair's link carries 2 GB at 100 GB/s */
    {"all_to_all_in_node", 1, use_mesh_fabric, 0, false, 0.02},
    /* 6 GB over the lanes at 25 GB/s would take 0.24 s; 4 GB per GPU leave its switch, 8 GB at 30 GB/s, 0.267 s; all
     * of that goes between the sockets, 8 GB at 15 GB/s, which takes longest */
    {"all_to_all_in_node", 1, use_pcie_fabric, 0, false, 8.0 / 15},
    {"all_to_all_in_node", 1, use_link_efficiencies, 0, false, 0.24},
    /* three peers at 10 GB/s each */
    {"all_to_all_in_node", 1, use_narrow_peer_links, 0, false, 0.2},
    /* 4 pieces of 2 GB, a rank's own among them */
    {"all_to_all_in_node", 1, use_few_all_to_all_channels, 0, false, 0.4},
    /* where the rate of all channels is known, a pair's own rate has no effect */
    {"all_to_all_in_node", 1, use_few_channels_and_narrow_messages, 0, false, 0.4},
    /* each of 4 ranks fetches 8 GB, its own piece among them, and all share 100 GB/s; with a
     * latency, by 4 copies */
    {"all_to_all_in_node", 1, use_one_gpu_for_all, 0, false, 0.32},
    {"all_to_all_in_node", 1, use_slow_start_of_copies, 0, false, 4.32},
    {"all_to_all_across", 2, NULL, 0, false, 0.8},
    /* 4 pieces of 1 GB in the node come first */
    {"all_to_all_across", 2, use_few_all_to_all_channels, 0, false, 0.2 + 0.8},
    {"all_to_all_across", 2, use_link_efficiencies, 0, false, 1.6},
    /* 8 GB through the memory of each socket: the bytes out of a GPU and those into it are one
     * flow, which counts once */
    {"all_to_all_across", 2, use_route_through_host_memory, 0, false, 1},
    /* all 7 pieces through the port */
    {"all_to_all_across", 2, use_one_domain_of_two_nodes, 0, false, 0.07},
    /* two GPUs share a NIC of 10 GB/s: 5 GB/s is what each has of it anyway */
    {"all_to_all_across", 2, use_nics_without_gpudirect, 0, false, 0.8},
    {"nic_of_two_gpus", 2, NULL, 0, false, 0.2},
    {"pcie_uplink_of_two_gpus", 1, NULL, 0, false, 0.2},
    {"pcie_uplink_each", 1, NULL, 0, false, 0.1},
    {"ring_all_gather", 2, NULL, 0, false, 0.35},
    /* a ring leaves through one of the two GPUs of each NIC */
    {"ring_all_gather", 2, use_nics_without_gpudirect, 0, false, 0.7},
    {"ring_all_gather", 2, use_one_ring, 0, false, 0.7},
    {"ring_all_gather", 2, use_ideal_rates, 0, false, 0},
    {"ring_all_gather", 2, use_one_domain_of_two_nodes, 0, false, 0.07},
    {"ring_one_gpu_a_node", 2, NULL, 0, false, 0.2},
    {"ring_all_reduce", 1, NULL, 0, false, 0.06},
    /* every pair's link carries a third */
    {"ring_all_reduce", 1, use_mesh_fabric, 0, false, 0.02},
    /* lanes of 25 GB/s; each uplink and the sockets carry one hop each way, at 15 GB/s */
    {"ring_all_reduce", 1, use_pcie_fabric, 0, false, 0.4},
    {"ring_all_reduce", 1, use_link_efficiencies, 0, false, 0.12},
    /* each sums 4 slices of 1 GB into one, 5 GB of traffic as 2.5 copied, and fetches 3 more */
    {"ring_all_reduce", 1, use_one_gpu_for_all, 0, false, 4 * (2.5 + 3) / 100},
    {"ring_reduce_scatter", 1, use_one_gpu_for_all, 0, false, 4 * 2.5 / 100},
    {"ring_reduce_scatter", 1, NULL, 0, false, 0.03},
    {"broadcast", 2, NULL, 0, false, 0.1},
    {"copy_overlaps", 1, NULL, 0, false, 1.5},
    {"copies_both_ways", 1, NULL, 0, false, 0.5},
    {"copies_both_ways", 1, use_narrow_pcie_both_ways, 0, false, 0.8},
    {"host_sync_holds", 1, NULL, 0, false, 1.5},
    {"host_sync_waits", 1, NULL, 0, false, 1.5},
    {"barrier_waits", 1, NULL, 0, false, 1.5},
    {"launch_bound", 1, NULL, 1, false, 4.1},
    {"launch_after_sync", 1, NULL, 1, false, 3.6},
    {"pageable_copy_blocks", 1, NULL, 0, false, 1.5},
    {"pageable_copy_in", 1, NULL, 0, false, 0.5},
    {"pinned_copy_does_not_block", 1, NULL, 0, false, 1},
    {"barrier", 1, NULL, 0, false, 1.5},
    {"slowest_member", 1, NULL, 0, false, 1.56},
    {"guarded_out_blocks", 1, NULL, 0, false, 1.5},
    {"guarded_out_keeps_place", 1, NULL, 0, false, 20.0 / 15 + 1},
    {"shift_round_a_node", 1, NULL, 0, false, 0.1},
    {"shift_round_a_node", 1, use_slow_start_of_messages, 0, false, 3.1},
    /* a pair reaches 50 GB/s among 6 ranks, so 75 GB/s among 4 */
    {"shift_round_a_node", 1, use_peer_rate_from_six_ranks, 0, false, 5.0 / 75},
    {"shift_round_a_node", 1, use_one_gpu_for_all, 0, false, 4 * 5.0 / 100},
    {"kernel_beside_shift", 1, NULL, 0, false, 0.15},
    /* four kernels of 0.15 s share the processors; the copies, 0.2 s, do not need them */
    {"kernel_beside_shift", 1, use_one_gpu_for_all, 0, false, 0.6},
    {"kernel_beside_shift", 1, use_messages_on_a_quarter_of_sms, 0, false, 0.175},
    {"kernel_beside_gather", 2, NULL, 0, false, 0.5},
    {"kernel_beside_gather", 2, use_collectives_that_take_channels, 0, false, 0.54375},
    /* four multiprocessors for each of the two NICs: a quarter of 32 */
    {"kernel_beside_gather", 2, use_hopper_channels, 0, false, 0.5875},
    {"kernel_beside_gather", 2, use_few_channels_inside_domains, 0, false, 0.5 + 0.35 / 16},
    /* the gather takes 0.07 s inside a domain; of 32 multiprocessors it takes 24, but slows the
     * kernel to half at most */
    {"kernel_beside_gather", 2, use_channels_in_one_domain, 0, false, 0.535},
    /* the gather also keeps its 4 of 32 multiprocessors for the 0.1 s of latency */
    {"kernel_beside_gather", 2, use_channels_with_nic_latency, 0, false, 0.55625},
    {"fill_beside_gather", 2, use_collectives_that_take_channels, 0, false, 0.5 + 0.35 * 0.04},
    {"fill_beside_gather", 2, use_slow_memory, 0, false, 0.5875},
    {"shift_ends_with_its_own_messages", 1, NULL, 0, false, 1.2},
    {"send_and_receive", 1, NULL, 0, false, 2.1},
    {"sends_in_order", 1, NULL, 0, false, 0.3},
    {"latencies", 2, use_latencies, 0, false, 130},
    {"ports_shared_by_kinds", 1, NULL, 0, false, 0.06},
    {"two_compute_streams", 1, NULL, 0, false, 2.5},
    {"host_memory_of_a_socket", 1, NULL, 0, false, 0.3},
    {"leaf_switches", 4, use_one_gpu_per_node, 0, false, 0.4},
    {"host_optimizer", 1, NULL, 0, false, 1},
    {"host_optimizer_shares_memory", 1, NULL, 0, true, 0.5 + 20.0 / 30},
};

static void simulated_steps_equal_hand_worked_times(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases_of_time); i++) {
        char path[128];
        snprintf(path, sizeof path, "sim/hand_worked/%s.ir", cases_of_time[i].file);
        struct ir ir = {0};
        struct diag diag = {0};
        if (!CHECK_INT(path, ir_load(&ir, check_path(path), &diag), STATUS_OK))
            CHECK_TEXT(path, diag.text, "");
        struct cluster cluster = make_round_number_cluster(cases_of_time[i].nodes);
        if (cases_of_time[i].change)
            cases_of_time[i].change(&cluster);
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, cases_of_time[i].issue_s);
        if (cases_of_time[i].work_takes_host_bandwidth)
            costs.costs.host_memory_bytes_by_shape = costs.host_bytes;
        for (int exact = 0; exact < 2 && diag.error_count == 0; exact++) {
            struct sim_result result = {0};
            if (simulate_or_fail_check(path, &ir, &cluster, &costs.costs,
                                       (struct sim_options){.simulates_every_rank_and_op = exact},
                                       &result))
                CHECK_CLOSE(path, result.step_s, cases_of_time[i].step_s, 1e-9);
            sim_result_release(&result);
        }
        toy_sim_costs_release(&costs);
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* Rank 0 takes twice as long for each of its kernels, whether or not they share the processors. */
static void a_late_rank_is_late_with_all_kernels(void)
{
    static const struct {
        const char *file;
        double step_s;
    } rows[] = {{"kernel_beside_shift", 0.3}, {"two_compute_streams", 5}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[128];
        snprintf(path, sizeof path, "sim/hand_worked/%s.ir", rows[i].file);
        struct ir ir = {0};
        struct sim_result result = {0};
        CHECK_INT(path, ir_load(&ir, check_path(path), NULL), STATUS_OK);
        struct cluster cluster = make_round_number_cluster(1);
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
        if (simulate_or_fail_check(
                path, &ir, &cluster, &costs.costs,
                (struct sim_options){.simulates_every_rank_and_op = true, .slow_factor = 2},
                &result))
            CHECK_CLOSE(path, result.step_s, rows[i].step_s, 1e-9);
        sim_result_release(&result);
        toy_sim_costs_release(&costs);
        ir_release(&ir);
    }
}

static const struct check_case cases[] = {
    {"a late rank is late with all kernels", a_late_rank_is_late_with_all_kernels},
    {"steps take what a person works out", simulated_steps_equal_hand_worked_times},
};
CHECK_MAIN("sim/hand_worked", cases)
