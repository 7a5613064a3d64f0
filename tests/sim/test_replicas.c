/* tests/sim/test_replicas.c: ranks that repeat others are not planned; which ranks these are
 * follows from the mesh, the cluster and the messages. */
#include "tests/sim/machine.h"

#include "schedule/ir/mesh.h"
#include "sim/traffic/replicas.h"

#define LINES_OF_TWO_STREAMS "stream compute compute\nstream comm comm\n"
#define BUFFER LINES_OF_TWO_STREAMS "buffer a hbm u8 [1000000] workspace persistent\n"
#define REDUCE BUFFER "op 0 all_reduce comm group=dp bytes=1000 reads a writes a\n"

/* Nodes have 4 GPUs. clang-format 14 crashes on this table. */
/* clang-format off */
static const struct {
    const char *label, *mesh, *ops;
    uint32_t domain_nodes, nodes_per_leaf_switch, oversubscription;
    uint32_t planned; /* ranks */
} cases_of_meshes[] = {
    /* label, mesh, ops, domain_nodes, nodes_per_leaf_switch, oversubscription, planned */
    {"a node each",               "mesh dp=4 tp=4\ngroup dp axes=dp\n", REDUCE, 1, 0, 1, 4},
    {"two in a node",             "mesh dp=8 tp=2\ngroup dp axes=dp\n", REDUCE, 1, 0, 1, 4},
    {"two in three nodes",        "mesh dp=4 tp=6\ngroup dp axes=dp\n", REDUCE, 1, 0, 1, 12},
    {"three in a node and a half", "mesh dp=3 tp=2\ngroup dp axes=dp\n", REDUCE, 1, 0, 1, 6},
    {"all in one node",           "mesh dp=4\ngroup dp axes=dp\n",      REDUCE, 1, 0, 1, 4},
    {"leaves that limit",         "mesh dp=4 tp=4\ngroup dp axes=dp\n", REDUCE, 1, 2, 2, 8},
    {"leaves that do not",        "mesh dp=4 tp=4\ngroup dp axes=dp\n", REDUCE, 1, 2, 1, 4},
    {"leaves of three nodes",     "mesh dp=4 tp=4\ngroup dp axes=dp\n", REDUCE, 1, 3, 2, 16},
    {"domains of two nodes",      "mesh dp=4 tp=4\ngroup dp axes=dp\n", REDUCE, 2, 0, 1, 8},
    {"two axes",                  "mesh out=2 dp=2 tp=4\ngroup dp axes=out,dp\n", REDUCE, 1, 0, 1, 4},
    {"messages along the axis",   "mesh dp=4 tp=4\ngroup dp axes=dp\n",
     BUFFER "op 0 shift comm group=dp by=1 bytes=1000 reads a writes a\n", 1, 0, 1, 16},
    {"messages across it",        "mesh dp=4 tp=4\ngroup tp axes=tp\n",
     BUFFER "op 0 shift comm group=tp by=1 bytes=1000 reads a writes a\n", 1, 0, 1, 4},
    {"a guard along it",          "mesh dp=4 tp=4\ngroup dp axes=dp\n",
     BUFFER "op 0 fill compute count=1 guard dp<1 writes a\n", 1, 0, 1, 16},
    {"part of the axis",          "mesh dp=4 tp=4\ngroup some axes=dp:0+2\n",
     BUFFER "op 0 barrier compute group=some\n", 1, 0, 1, 16},
    {"stages outside",            "mesh pp=2 dp=2 tp=4\ngroup dp axes=dp\nrole r0 axes=pp:0\nrole r1 axes=pp:1\n",
     LINES_OF_TWO_STREAMS "ops r0\nop 0 host_sync compute\nops r1\nop 1 host_sync compute\n", 1, 0, 1, 8},
};
/* clang-format on */

static void repeated_groups_are_planned_once(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases_of_meshes); i++) {
        const char *label = cases_of_meshes[i].label;
        struct text text = {0};
        struct ir ir = {0};
        struct cluster cluster = make_round_number_cluster(6);
        cluster.domain_nodes = cases_of_meshes[i].domain_nodes;
        cluster.network.nodes_per_leaf_switch = cases_of_meshes[i].nodes_per_leaf_switch;
        cluster.network.oversubscription = cases_of_meshes[i].oversubscription;
        text_printf(&text, "longhaul schedule 1\n%s%s", cases_of_meshes[i].mesh,
                    cases_of_meshes[i].ops);
        if (parse_schedule_or_fail_check(&ir, label, text.data)) {
            struct mesh planned = replicas_planned_mesh(&ir, &cluster);
            CHECK_INT(label, mesh_rank_count(&planned), cases_of_meshes[i].planned);
            for (uint32_t row = 0; row < mesh_rank_count(&planned); row++)
                CHECK_INT(
                    label,
                    replicas_rank_in_planned_mesh(
                        &ir.mesh, &planned, replicas_rank_in_full_mesh(&ir.mesh, &planned, row)),
                    row);
            for (uint32_t rank = 0; rank < mesh_rank_count(&ir.mesh); rank++)
                CHECK(label, replicas_rank_in_planned_mesh(&ir.mesh, &planned, rank) <
                                 mesh_rank_count(&planned));
        }
        ir_release(&ir);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"what repeats is planned once", repeated_groups_are_planned_once},
};
CHECK_MAIN("sim/replicas", cases)
