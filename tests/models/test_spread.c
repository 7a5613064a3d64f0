/* tests/models/test_spread.c: numbers of a machine are moved by their spreads. */
#include "models/spread.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

/* A device and a cluster, some of whose numbers were measured on one machine. */
struct machine {
    struct arena arena;
    struct device_cost cost;
    struct cluster cluster;
};

static void load_test_machine(struct machine *m)
{
    const char *device = check_json_from_single_quotes(
        "{'longhaul_device_cost': 1, 'name': 'mine', 'base': 'cpu-generic',\n"
        "'matmul': {'f32_flop_per_s': {'value': '50 GFLOP/s', 'source': 'fitted to x', "
        "'spread': 0.2}}}");
    const char *cluster = check_json_from_single_quotes(
        "{'name': 'here', 'summary': 's', 'base': 'cpu-node',\n"
        "'fabric': {'latency': {'value': '10 us', 'source': 'fitted to x', 'spread': 0.3}}}");
    *m = (struct machine){0};
    CHECK_INT("device", cost_parse(&m->cost, &m->arena, "mine.json", device, strlen(device), NULL),
              STATUS_OK);
    CHECK_INT("cluster",
              cluster_parse(&m->cluster, &m->arena, "here.json", cluster, strlen(cluster), NULL),
              STATUS_OK);
}

static double seconds(const struct machine *m, enum work_kind kind)
{
    struct work work = {.kind = (uint8_t)kind, .in = DTYPE_F32, .out = DTYPE_F32};
    if (kind == WORK_MATMUL)
        work.matmul.m = work.matmul.n = work.matmul.k = 4096;
    else
        work.p[0] = 1 << 24;
    return cost_work_s(&m->cost, ATTENTION_CPU, &work);
}

static void measured_numbers_move_by_their_spreads(void)
{
    struct machine m;
    load_test_machine(&m);
    CHECK("known", spread_has_measured_number(&m.cost, &m.cluster));
    CHECK_CLOSE("products", spread_largest_of_part(&m.cost, &m.cluster, SPREAD_PRODUCTS), 0.2, 0);
    CHECK_CLOSE("links", spread_largest_of_part(&m.cost, &m.cluster, SPREAD_NODE_LINKS), 0.3, 0);
    CHECK_CLOSE("copies", spread_largest_of_part(&m.cost, &m.cluster, SPREAD_HOST_COPIES), 0, 0);
    double rate = m.cost.matmul_f32_flop_per_s, other = m.cost.matmul_flop_per_s;
    double fill_s = seconds(&m, WORK_ADD), product_s = seconds(&m, WORK_MATMUL);
    spread_slow_down_measured_numbers(&m.cost, &m.cluster, &m.arena, SPREAD_PRODUCTS);
    CHECK_CLOSE("rate", m.cost.matmul_f32_flop_per_s, rate / exp(0.2), 1e-9);
    CHECK_CLOSE("not measured", m.cost.matmul_flop_per_s, other, 0);
    CHECK_CLOSE("product", seconds(&m, WORK_MATMUL) / product_s, exp(0.2), 0.01);
    CHECK_CLOSE("add", seconds(&m, WORK_ADD), fill_s, 0);
    double latency_s = m.cluster.fabric.latency_s, efficiency = m.cluster.fabric.ring_efficiency;
    spread_slow_down_measured_numbers(&m.cost, &m.cluster, &m.arena, SPREAD_NODE_LINKS);
    CHECK_CLOSE("latency", m.cluster.fabric.latency_s, latency_s * exp(0.3), 1e-9);
    CHECK_CLOSE("efficiency", m.cluster.fabric.ring_efficiency, efficiency, 0);
    arena_release(&m.arena);
}

static void unmeasured_costs_scale_by_factor(void)
{
    struct machine m;
    load_test_machine(&m);
    double rate = m.cost.matmul_f32_flop_per_s, other = m.cost.matmul_flop_per_s;
    spread_slow_down_unmeasured_numbers(&m.cost, &m.cluster, &m.arena, SPREAD_PRODUCTS, 2);
    CHECK_CLOSE("measured", m.cost.matmul_f32_flop_per_s, rate, 0);
    CHECK_CLOSE("not measured", m.cost.matmul_flop_per_s, other / 2, 1e-9);
    double add_s = seconds(&m, WORK_ADD);
    spread_slow_down_unmeasured_numbers(&m.cost, &m.cluster, &m.arena, SPREAD_MEMORY, 2);
    CHECK_CLOSE("add", seconds(&m, WORK_ADD) / add_s, 2, 0.02);
    CHECK_CLOSE("estimate", spread_error_of_estimates(&m.cost, SPREAD_MEMORY), 0.5, 0);
    CHECK_CLOSE("links are no estimate", spread_error_of_estimates(&m.cost, SPREAD_NODE_LINKS), 0,
                0);
    arena_release(&m.arena);
}

/* If products are made twice as slow, the measured times of a preset's products double, and those
 * of other kernels stay. */
static void measured_shapes_scale_with_factor(void)
{
    struct machine m = {0};
    CHECK_INT("b200", cost_load(&m.cost, &m.arena, "b200", NULL), STATUS_OK);
    CHECK_INT("node", cluster_load(&m.cluster, &m.arena, "b200", NULL), STATUS_OK);
    CHECK("a preset", !spread_has_measured_number(&m.cost, &m.cluster));
    CHECK("points", m.cost.points.count > 0);
    const struct cost_points before = m.cost.points;
    spread_slow_down_unmeasured_numbers(&m.cost, &m.cluster, &m.arena, SPREAD_PRODUCTS, 2);
    for (size_t i = 0; i < before.count; i++)
        CHECK_CLOSE("seconds", m.cost.points.row[i].seconds,
                    before.row[i].seconds * (before.row[i].work.kind == WORK_MATMUL ? 2 : 1), 1e-9);
    arena_release(&m.arena);
}

static const struct check_case cases[] = {
    {"measured numbers move by their spreads", measured_numbers_move_by_their_spreads},
    {"others move by a factor", unmeasured_costs_scale_by_factor},
    {"measured shapes move", measured_shapes_scale_with_factor},
};
CHECK_MAIN("spread", cases)
