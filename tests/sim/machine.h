/* tests/sim/machine.h: a cluster of round numbers, costs that can be read off the schedule, and helpers that
 * parse and simulate a schedule, for all tests of sim/. */
#ifndef TESTS_SIM_MACHINE_H
#define TESTS_SIM_MACHINE_H

#include "schedule/ir/ir_text.h"
#include "sim/sim.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A node has 4 GPUs on two PCIe switches, each switch on a socket of its own with 2 GPUs and a NIC. Bandwidths in
 * bytes/s: fabric port 100e9 (one pair 50e9, in an all-to-all 100e9), copies 20e9, PCIe lanes 25e9, uplink 30e9,
 * host memory 40e9 per socket, between sockets 15e9, to pageable memory 5e9, from pageable memory 10e9, NIC 10e9.
 * All latencies are 0. */
static const int64_t machine_switch_of_gpu[4] = {0, 0, 1, 1};
static const int64_t machine_nic_of_gpu[4] = {0, 0, 1, 1};
static const int64_t machine_switch_of_nic[2] = {0, 1};
static const int64_t machine_socket_of_switch[2] = {0, 1};

static inline struct cluster make_round_number_cluster(int64_t nodes)
{
    struct cluster c = {.name = "round", .summary = "round numbers"};
    c.nodes = nodes;
    c.gpus_per_node = 4;
    c.gpus = 4 * nodes;
    c.domain_nodes = 1;
    c.device = (struct device){.peak_bf16_flop_per_s = 1e12, .memory_bytes_per_s = 1e12};
    c.fabric = (struct fabric){.bytes_per_s = 100e9, .ring_efficiency = 1};
    c.fabric.all_to_all_efficiency = 1;
    c.fabric.peer_bytes_per_s = 50e9;
    c.fabric.all_to_all_peer_bytes_per_s = 100e9;
    c.pcie = (struct pcie){.nominal_bytes_per_s = 25e9, .pcie_switch_uplink_bytes_per_s = 30e9};
    c.pcie.h2d_bytes_per_s = c.pcie.d2h_bytes_per_s = 20e9;
    c.pcie.pcie_switches_per_node = 2;
    c.nic = (struct nic){.count = 2, .bytes_per_s = 10e9, .efficiency = 1, .gpudirect = true};
    c.nic.peer_bytes_per_s = 10e9;
    c.host = (struct host){.memory_bytes = 1e12, .sockets = 2};
    c.host.memory_bytes_per_s = 40e9;
    c.host.socket_link_bytes_per_s = 15e9;
    c.host.d2h_to_pageable_bytes_per_s = 5e9;
    c.host.h2d_from_pageable_bytes_per_s = 10e9;
    c.switch_of_gpu = machine_switch_of_gpu;
    c.nic_of_gpu = machine_nic_of_gpu;
    c.switch_of_nic = machine_switch_of_nic;
    c.socket_of_switch = machine_socket_of_switch;
    return c;
}

/* Costs of a schedule: a fill of n elements takes n ns, an optimizer step of n elements n ns, and all other work its
 * flops at 1e12 flop/s. Every op takes issue_s to issue. host_bytes has 30 n bytes for an optimizer step, for tests
 * that set costs.host_memory_bytes_by_shape to it. */
struct toy_sim_costs {
    struct sim_costs costs;
    double *work_s, *issue_s, *host_bytes;
};

static inline struct toy_sim_costs toy_sim_costs_make(const struct ir *ir, double issue_s)
{
    struct toy_sim_costs m;
    m.work_s = heap_zalloc(ir->shape_count + 1u, sizeof *m.work_s);
    m.issue_s = heap_zalloc(ir->shape_count + 1u, sizeof *m.issue_s);
    m.host_bytes = heap_zalloc(ir->shape_count + 1u, sizeof *m.host_bytes);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        m.issue_s[s] = issue_s;
        m.work_s[s] = work_flops(work) / 1e12;
        if (work->kind == WORK_FILL || work->kind == WORK_ADAMW)
            m.work_s[s] = (double)work->elements.count * 1e-9;
        if (work->kind == WORK_ADAMW)
            m.host_bytes[s] = 30.0 * (double)work->elements.count;
    }
    m.costs = (struct sim_costs){.work_s = m.work_s, .issue_s = m.issue_s};
    return m;
}

static inline void toy_sim_costs_release(struct toy_sim_costs *m)
{
    free(m->work_s);
    free(m->issue_s);
    free(m->host_bytes);
}

/* Simulates a schedule. Returns false, with a failed check and the messages, when the simulation fails. */
static inline bool simulate_or_fail_check(const char *label, const struct ir *ir,
                                          const struct cluster *cluster,
                                          const struct sim_costs *costs, struct sim_options options,
                                          struct sim_result *result)
{
    struct diag diag = {0};
    enum status status = sim_run(ir, cluster, costs, &options, label, result, &diag);
    bool ok = CHECK_INT(label, status, STATUS_OK);
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    return ok;
}

/* Parses a schedule from text. Returns false, with a failed check, when the text has a fault. */
static inline bool parse_schedule_or_fail_check(struct ir *ir, const char *label, const char *text)
{
    struct diag diag = {0};
    enum status status = ir_parse(ir, label, text, strlen(text), &diag);
    bool ok = CHECK_INT(label, status, STATUS_OK);
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    diag_release(&diag);
    return ok;
}

#endif
