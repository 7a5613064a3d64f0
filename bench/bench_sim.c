/* bench/bench_sim.c: simulated op instances per processor second, compared with the most that SimGrid can do with the
 * same flows.
 *
 * There are three synthetic schedules with the shape of real ones, on 8 and 64 ranks. They are simulated without
 * folding, and once more with it for the columns `classes` and `folded ms`. The baseline starts the flows that the
 * simulation found, each at its date, over the same links, and does nothing else: no kernels, no dependencies, no
 * bookkeeping. It puts flows directly into SimGrid's max-min solver and dates into a heap, as sim/simgrid/engine.cpp
 * does. As S4U communications, flows would take about twice as long.
 *
 * Rounds are repeated until the medians are stable (bench/repeat.h). `share` is the baseline's time divided by that
 * of our events: the part of a simulation that SimGrid's solver and engine take. */
#include "bench/repeat.h"
#include "sim/scheduler/engine.h"
#include "sim/sim.h"
#include "sim/traffic/fold.h"
#include "sim/traffic/prune.h"
#include "sim/traffic/traffic.h"

#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Returns the processor seconds of this process, without its children. */
static double own_processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the processor seconds of this process and of its children that have ended. */
static double processor_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return own_processor_s() + (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ---- schedules ---- */

/* A schedule that is being built. All its ops use the same two buffers, one on the device and one in pinned memory. */
struct builder {
    struct ir ir;
    uint8_t compute_stream, tensor_comm_stream, weights_stream, h2d_stream, d2h_stream;
    uint16_t sp_group, dp_group;
    buffer_id device_buffer, pinned_buffer;
};

static uint16_t add_axis_group(struct ir *ir, uint8_t axis)
{
    struct axis_coordinate_set set = {.axis = axis};
    return ir_add_group(ir, ir->mesh.axis[axis].name, &set, 1);
}

static void builder_init(struct builder *b, uint32_t dp, uint32_t sp)
{
    memset(b, 0, sizeof *b);
    struct ir *ir = &b->ir;
    ir->mesh.axis_count = 2;
    snprintf(ir->mesh.axis[0].name, MESH_NAME_MAX, "dp");
    snprintf(ir->mesh.axis[1].name, MESH_NAME_MAX, "sp");
    ir->mesh.axis[0].size = dp;
    ir->mesh.axis[1].size = sp;
    b->dp_group = add_axis_group(ir, 0);
    b->sp_group = add_axis_group(ir, 1);
    b->compute_stream = ir_add_stream(ir, "compute", STREAM_COMPUTE);
    b->tensor_comm_stream = ir_add_stream(ir, "comm.sp", STREAM_COMM);
    b->weights_stream = ir_add_stream(ir, "comm.dp", STREAM_COMM);
    b->h2d_stream = ir_add_stream(ir, "h2d", STREAM_H2D);
    b->d2h_stream = ir_add_stream(ir, "d2h", STREAM_D2H);
    ir_add_role(ir, "all", NULL, 0);
    struct buffer_desc desc = {.stem = "a",
                               .dtype = DTYPE_U8,
                               .category = CATEGORY_WORKSPACE,
                               .flags = BUFFER_PERSISTENT,
                               .layer = IR_NONE16,
                               .binding = IR_NONE16,
                               .dims = {.count = 1, .size = {(int64_t)1 << 40}}};
    b->device_buffer = ir_add_buffer(ir, &desc);
    desc.stem = "p";
    desc.memory = MEMORY_PINNED;
    b->pinned_buffer = ir_add_buffer(ir, &desc);
}

static uint32_t add_op(struct builder *b, struct work work, uint8_t stream, uint32_t wait0,
                       uint32_t wait1)
{
    struct view device = ir_whole_view(&b->ir, b->device_buffer),
                pinned = ir_whole_view(&b->ir, b->pinned_buffer);
    op_id wait[2] = {{wait0}, {wait1}};
    struct op_desc desc = {.work = work, .stream = stream, .guard = IR_NONE16, .wait = wait};
    desc.tags = (struct op_tags){
        .layer = IR_NONE16, .chunk = IR_NONE16, .step = IR_NONE16, .micro_batch = IR_NONE16};
    desc.wait_count = (uint16_t)((wait0 != IR_NONE) + (wait1 != IR_NONE));
    desc.read_count = work_kind_info((enum work_kind)work.kind)->reads_min;
    desc.write_count = work_kind_info((enum work_kind)work.kind)->writes_min;
    desc.read = work.kind == WORK_H2D ? &pinned : &device;
    desc.write = work.kind == WORK_D2H ? &pinned : &device;
    return ir_add_op(&b->ir, &desc).i;
}

static uint32_t add_kernel(struct builder *b, int64_t microseconds, uint32_t wait)
{
    struct work work = {.kind = WORK_FILL, .elements.count = microseconds};
    return add_op(b, work, b->compute_stream, wait, IR_NONE);
}

static uint32_t add_collective(struct builder *b, enum work_kind kind, uint16_t group,
                               uint8_t stream, int64_t bytes, uint32_t wait)
{
    struct work work = {
        .kind = (uint8_t)kind,
        .collective = {.group = group, .bytes = bytes, .algorithm = ALGORITHM_RING}};
    return add_op(b, work, stream, wait, IR_NONE);
}

static uint32_t add_copy(struct builder *b, enum work_kind kind, int64_t bytes, uint32_t wait)
{
    struct work work = {.kind = (uint8_t)kind, .copy.bytes = bytes};
    return add_op(b, work, kind == WORK_H2D ? b->h2d_stream : b->d2h_stream, wait, IR_NONE);
}

/* Emits for each layer an all-gather of the next weights, 4 all-to-alls and 14 kernels. */
static void build_ulysses(struct builder *b, uint32_t layers)
{
    uint32_t gathered = IR_NONE;
    for (uint32_t l = 0; l < layers; l++) {
        uint32_t next =
            add_collective(b, WORK_ALL_GATHER, b->dp_group, b->weights_stream, 64 << 20, IR_NONE);
        add_kernel(b, 100, gathered);
        for (int i = 0; i < 3; i++)
            add_kernel(b, 200 + 10 * i, IR_NONE);
        uint32_t q = IR_NONE;
        for (int i = 0; i < 3; i++)
            q = add_collective(b, WORK_ALL_TO_ALL, b->sp_group, b->tensor_comm_stream, 32 << 20,
                               b->ir.op.count - 1);
        add_kernel(b, 5000, q);
        uint32_t o = add_collective(b, WORK_ALL_TO_ALL, b->sp_group, b->tensor_comm_stream,
                                    32 << 20, b->ir.op.count - 1);
        for (int i = 0; i < 9; i++)
            add_kernel(b, 300 + 10 * i, i == 0 ? o : IR_NONE);
        gathered = next;
    }
}

/* Emits for each layer 6 kernels, `sp` ring steps, and 8 more kernels. A step is a shift (the last step has none), a
 * tile of attention and a merge. */
static void build_ring(struct builder *b, uint32_t layers, uint32_t sp)
{
    for (uint32_t l = 0; l < layers; l++) {
        for (int i = 0; i < 6; i++)
            add_kernel(b, 200 + 10 * i, IR_NONE);
        uint32_t shifted = IR_NONE;
        for (uint32_t j = 0; j < sp; j++) {
            uint32_t before = shifted;
            struct work work = {.kind = WORK_SHIFT,
                                .p2p = {.group = b->sp_group, .by = 1, .bytes = 16 << 20}};
            if (j + 1 < sp)
                shifted = add_op(b, work, b->tensor_comm_stream, b->ir.op.count - 1, IR_NONE);
            add_kernel(b, 700, before);
            add_kernel(b, 30, IR_NONE);
        }
        for (int i = 0; i < 8; i++)
            add_kernel(b, 200 + 10 * i, IR_NONE);
    }
}

/* Emits for each layer and chunk four all-to-alls and a copy to the host, and for each tile a copy of a key-value chunk
 * from the host. */
static void build_fpdt(struct builder *b, uint32_t layers, uint32_t chunks)
{
    for (uint32_t l = 0; l < layers; l++)
        for (uint32_t i = 0; i < chunks; i++) {
            for (int k = 0; k < 4; k++)
                add_kernel(b, 100 + 10 * k, IR_NONE);
            uint32_t q = IR_NONE;
            for (int k = 0; k < 3; k++)
                q = add_collective(b, WORK_ALL_TO_ALL, b->sp_group, b->tensor_comm_stream, 16 << 20,
                                   b->ir.op.count - 1);
            add_copy(b, WORK_D2H, 8 << 20, q);
            for (uint32_t j = 0; j <= i; j++) {
                uint32_t fetched = add_copy(b, WORK_H2D, 8 << 20, b->ir.op.count - 1);
                add_kernel(b, 900, fetched);
                add_kernel(b, 30, IR_NONE);
            }
            uint32_t o = add_collective(b, WORK_ALL_TO_ALL, b->sp_group, b->tensor_comm_stream,
                                        8 << 20, b->ir.op.count - 1);
            add_kernel(b, 400, o);
        }
}

/* ---- a machine like a DGX H100 ---- */

static const int64_t identity[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static const int64_t pairs[8] = {0, 0, 1, 1, 2, 2, 3, 3};

static struct cluster make_dgx_h100(uint32_t ranks)
{
    struct cluster c = {.name = "bench", .summary = "8 GPUs and 8 NICs a node"};
    c.nodes = (ranks + 7) / 8;
    c.gpus_per_node = 8;
    c.gpus = 8 * c.nodes;
    c.domain_nodes = 1;
    c.fabric = (struct fabric){.bytes_per_s = 450e9, .ring_efficiency = 0.8, .latency_s = 4e-6};
    c.fabric.all_to_all_efficiency = 0.7;
    c.fabric.peer_bytes_per_s = c.fabric.all_to_all_peer_bytes_per_s = 150e9;
    c.pcie = (struct pcie){.nominal_bytes_per_s = 64e9, .pcie_switch_uplink_bytes_per_s = 60e9};
    c.pcie.h2d_bytes_per_s = c.pcie.d2h_bytes_per_s = 55e9;
    c.pcie.latency_s = 8e-6;
    c.pcie.pcie_switches_per_node = 4;
    c.nic = (struct nic){.count = 8, .bytes_per_s = 50e9, .efficiency = 0.9, .gpudirect = true};
    c.nic.peer_bytes_per_s = 40e9;
    c.nic.latency_s = 2e-6;
    c.nic.message_latency_s = 10e-6;
    c.host = (struct host){.memory_bytes_per_s = 250e9, .sockets = 2};
    c.host.socket_link_bytes_per_s = 60e9;
    c.host.d2h_to_pageable_bytes_per_s = c.host.h2d_from_pageable_bytes_per_s = 8e9;
    c.switch_of_gpu = c.switch_of_nic = c.socket_of_switch = pairs;
    c.nic_of_gpu = identity;
    return c;
}

/* ---- the baseline ---- */

/* When the flows of a transfer start. */
struct flow_start {
    double start_s;
    uint32_t transfer;
};

/* The state of the baseline. */
struct flow_replay {
    const struct traffic *traffic;
    const struct fold *fold;
    struct flow_start *starts;
    size_t start_count;
    size_t next_start_index; /* the first of starts[] whose flows are not started yet */
};

/* Starts all flows whose date has come, and asks the engine to call it again, with tag 0, at the date of the next flow.
 * Does nothing for other tags, with which the engine reports flows that have ended. */
static void start_flows_that_are_due(void *context, int64_t tag)
{
    struct flow_replay *r = context;
    if (tag != 0)
        return;
    for (; r->next_start_index < r->start_count &&
           r->starts[r->next_start_index].start_s <= engine_now_s();
         r->next_start_index++) {
        uint32_t t = r->starts[r->next_start_index].transfer;
        for (uint32_t i = r->fold->flow_begin_by_transfer[t];
             i < r->fold->flow_begin_by_transfer[t + 1]; i++) {
            const uint32_t *begin = &r->fold->link_begin[r->fold->flow[i]];
            engine_start_flow(r->fold->link + begin[0], begin[1] - begin[0],
                              r->traffic->flows.bytes[r->fold->flow[i]], 1);
        }
    }
    if (r->next_start_index < r->start_count)
        engine_set_timer(r->starts[r->next_start_index].start_s, 0);
}

static int compare_flow_starts(const void *left, const void *right)
{
    const struct flow_start *a = left, *b = right;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return a->transfer < b->transfer ? -1 : a->transfer > b->transfer;
}

/* Collects the start times of flows, sorted. Every op of a channel is one transfer: its flows start one latency of the
 * transfer after its last participant starts the op. */
static void collect_flow_starts(struct flow_replay *r, const struct sim_result *result)
{
    const struct traffic *traffic = r->traffic;
    r->starts =
        heap_alloc((size_t)traffic->rank_count * traffic->ir->op.count + 1, sizeof *r->starts);
    for (uint32_t k = 0; k < traffic->channel_count; k++) {
        const struct channel *channel = &traffic->channel[k];
        const struct comm_class *comm = &traffic->comm[channel->comm_class];
        for (uint32_t i = 0; i < comm->op_count[0]; i++) {
            uint32_t op = traffic->ops_by_comm_class[comm->op_begin_by_role[0] + i];
            uint32_t t = channel->first_transfer_of_channel + traffic->comm_variant_by_op[op];
            double date_s = 0;
            for (uint32_t p = 0; p < channel->participant_count; p++) {
                uint32_t rank = traffic->participant[channel->participant_begin + p];
                date_s = fmax(date_s, sim_op_starts_of_rank_s(result, rank)[op]);
            }
            r->starts[r->start_count++] =
                (struct flow_start){date_s + traffic->transfer[t].latency_s, t};
        }
    }
    qsort(r->starts, r->start_count, sizeof *r->starts, compare_flow_starts);
}

/* Returns the processor seconds of the baseline: in a child process, the flows of the simulation are started again,
 * each at its date. NAN: it failed. */
static double run_flow_replay_s(const struct ir *ir, const struct cluster *cluster,
                                const struct sim_costs *costs, const struct sim_result *result)
{
    int pipe_ends[2];
    double replay_cpu_s = NAN;
    if (pipe(pipe_ends) != 0)
        return NAN;
    if (engine_load(NULL) != STATUS_OK)
        return NAN;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct traffic traffic;
        struct pruned pruned;
        struct fold fold;
        if (traffic_make(&traffic, ir, cluster, costs, result->uniform_rank_plus_1_by_guard,
                         &(struct sim_options){.simulates_every_rank_and_op = true}, "bench",
                         NULL) != STATUS_OK)
            _exit(1);
        prune_make(&pruned, &traffic.platform, &traffic.flows);
        fold_make(&fold, &traffic, &pruned, true);
        struct flow_replay r = {.traffic = &traffic, .fold = &fold};
        collect_flow_starts(&r, result);
        engine_init(start_flows_that_are_due, NULL, &r, fold.bytes_per_s,
                    traffic.platform.link_count);
        double began_s = own_processor_s();
        start_flows_that_are_due(&r, 0);
        const char *fault = engine_run();
        replay_cpu_s = fault ? NAN : own_processor_s() - began_s;
        _exit(write(pipe_ends[1], &replay_cpu_s, sizeof replay_cpu_s) == sizeof replay_cpu_s ? 0
                                                                                             : 1);
    }
    close(pipe_ends[1]);
    if (read(pipe_ends[0], &replay_cpu_s, sizeof replay_cpu_s) != sizeof replay_cpu_s)
        replay_cpu_s = NAN;
    close(pipe_ends[0]);
    waitpid(child, NULL, 0);
    return replay_cpu_s;
}

/* ---- the table ---- */

static struct sim_costs make_costs(const struct ir *ir)
{
    double *work_s = heap_zalloc(ir->shape_count + 1u, sizeof *work_s);
    double *issue_s = heap_zalloc(ir->shape_count + 1u, sizeof *issue_s);
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        issue_s[s] = 5e-6;
        if (ir->shape[s].kind == WORK_FILL)
            work_s[s] = (double)ir->shape[s].elements.count * 1e-6;
    }
    return (struct sim_costs){.work_s = work_s, .issue_s = issue_s, .collective_launch_s = 5e-6};
}

struct sim_figures {
    struct repeat exact_s, replay_s, folded_s; /* processor seconds */
    uint64_t op_instances, flows;
    uint32_t rank_class_count;
};

static bool needs_more_rounds(const struct sim_figures *f)
{
    return f->exact_s.round_count < REPEAT_MAX &&
           (repeat_needs_more(&f->exact_s) || repeat_needs_more(&f->replay_s) ||
            repeat_needs_more(&f->folded_s));
}

static enum status measure_round(struct sim_figures *f, const char *name, const struct ir *ir,
                                 const struct cluster *cluster, const struct sim_costs *costs,
                                 struct diag *diag)
{
    struct sim_result exact = {0}, folded = {0};
    enum status status =
        sim_run(ir, cluster, costs, &(struct sim_options){.simulates_every_rank_and_op = true},
                name, &exact, diag);
    double began_s = processor_s(), straight_s = NAN;
    if (status == STATUS_OK)
        status = sim_run(ir, cluster, costs, &(struct sim_options){0}, name, &folded, diag);
    if (status == STATUS_OK) {
        repeat_add(&f->folded_s, processor_s() - began_s);
        repeat_add(&f->exact_s, exact.counts.event_loop_cpu_s);
        f->op_instances = exact.counts.schedule_op_instances;
        f->flows = exact.counts.flows_started;
        f->rank_class_count = folded.class_count;
        straight_s = run_flow_replay_s(ir, cluster, costs, &exact);
        if (isnan(straight_s))
            status = diag_error(diag, (struct loc){.name = name}, STATUS_SYSTEM,
                                "the child process that replays the events has failed");
        else
            repeat_add(&f->replay_s, straight_s);
    }
    sim_result_release(&exact);
    sim_result_release(&folded);
    return status;
}

static int measure_and_print(const char *name, struct builder *b)
{
    uint32_t ranks = mesh_rank_count(&b->ir.mesh);
    struct cluster cluster = make_dgx_h100(ranks);
    struct sim_costs costs = make_costs(&b->ir);
    struct diag diag = {0};
    struct sim_figures f = {0};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && needs_more_rounds(&f))
        status = measure_round(&f, name, &b->ir, &cluster, &costs, &diag);
    if (status == STATUS_OK)
        printf("%-8s %4u %9llu %9llu %6.2f %4.1f%% %5.0f%% %4.1f%% %7u %9.1f %4.1f%% %4zu\n", name,
               ranks, (unsigned long long)f.op_instances, (unsigned long long)f.flows,
               (double)f.op_instances / repeat_median_s(&f.exact_s) / 1e6,
               100 * repeat_spread(&f.exact_s),
               100 * repeat_median_s(&f.replay_s) / repeat_median_s(&f.exact_s),
               100 * repeat_spread(&f.replay_s), f.rank_class_count,
               1e3 * repeat_median_s(&f.folded_s), 100 * repeat_spread(&f.folded_s),
               f.exact_s.round_count);
    else
        fputs(diag.text, stderr);
    fflush(stdout); /* a child would print the buffered text again */
    free((double *)costs.work_s);
    free((double *)costs.issue_s);
    diag_release(&diag);
    ir_release(&b->ir);
    return status == STATUS_OK ? 0 : 2;
}

/* The ranks (dp x sp), and for each schedule the number of layers with which one simulation takes tens of
 * milliseconds. */
static const struct sim_case {
    uint32_t dp, sp, ulysses, ring, fpdt;
} sizes[] = {
    {1, 8, 1024, 512, 64},
    {2, 32, 256, 32, 16},
};

int main(void)
{
    int rc = 0;
    printf("%-8s %4s %9s %9s %6s %5s %6s %5s %7s %9s %5s %4s\n", "schedule", "gpus", "instances",
           "flows", "M/s", "+-", "share", "+-", "classes", "folded ms", "+-", "runs");
    for (const struct sim_case *s = sizes; s < sizes + ARRAY_LEN(sizes); s++) {
        struct builder b;
        builder_init(&b, s->dp, s->sp);
        build_ulysses(&b, s->ulysses);
        rc |= measure_and_print("ulysses", &b);
        builder_init(&b, 1, s->dp * s->sp);
        build_ring(&b, s->ring, s->dp * s->sp);
        rc |= measure_and_print("ring", &b);
        builder_init(&b, s->dp, s->sp);
        build_fpdt(&b, s->fpdt, 16);
        rc |= measure_and_print("fpdt", &b);
    }
    return rc;
}
