/* tests/sim/test_documents.c: ranks whose sequences have different documents take different times, and the slowest
 * decides. */
#include "tests/sim/machine.h"

#include "schedule/config/resolve_config.h"
#include "schedule/ir/visible.h"
#include "schedule/step/build.h"

/* Costs of one second for each visible pair and head dimension, by place of the rank. */
struct costs_by_place {
    struct toy_sim_costs machine;
    double **work_s_of_each_place;
};

static struct costs_by_place costs_by_place_make(const struct ir *ir)
{
    struct costs_by_place c = {
        .work_s_of_each_place = heap_zalloc(ir->shape_count + 1u, sizeof *c.work_s_of_each_place)};
    c.machine.work_s = heap_zalloc(ir->shape_count + 1u, sizeof(double));
    for (uint32_t s = 0; s < ir->shape_count; s++) {
        const struct work *work = &ir->shape[s];
        if (!work_pairs_depend_on_rank(work)) {
            c.machine.work_s[s] = work_flops(work) / 1e12;
            continue;
        }
        c.work_s_of_each_place[s] = heap_zalloc(ir_place_count(ir), sizeof(double));
        for (uint32_t r = 0; r < mesh_rank_count(&ir->mesh); r++)
            c.work_s_of_each_place[s][ir_place_of_rank(ir, r)] =
                ir_work_flops_on_rank(ir, work, r) / 4;
    }
    c.machine.costs =
        (struct sim_costs){.work_s = c.machine.work_s,
                           .work_s_by_place = (const double *const *)c.work_s_of_each_place};
    return c;
}

static void costs_by_place_release(struct costs_by_place *c, const struct ir *ir)
{
    for (uint32_t s = 0; s < ir->shape_count; s++)
        free(c->work_s_of_each_place[s]);
    free((void *)c->work_s_of_each_place);
    free(c->machine.work_s);
}

/* Documents of 3, 4 and 1 tokens on two ranks. Rank 0 has tokens 0 to 3 and 7 visible pairs, 1 + 2 + 3 + 1. Rank 1
 * has tokens 4 to 7 and 7 + 3 pairs, since three of its queries also see token 3, which rank 0 holds. */
static void three_documents_on_two_ranks(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh cp=2\n"
        "tokens layout=contiguous cp=2 hp=1 seq=8 batch=1 micro_batch=1 dtype=f32\n"
        "documents lengths=3,4,1\ngroup cp axes=cp\nstream compute compute\n"
        "buffer q0 hbm f32 [4] activation persistent\n"
        "buffer o0 hbm f32 [4] activation persistent\n"
        "buffer l0 hbm f32 [4] activation persistent\n"
        "op 0 attention compute q=4 kv=4 heads=1 kv_heads=1 dim=1 mask=documents reads q0 q0 q0 "
        "writes o0 l0\n"
        "op 1 attention compute q=4 kv=4 heads=1 kv_heads=1 dim=1 mask=documents away=1 reads q0 "
        "q0 q0 writes o0 l0\n"
        "op 2 barrier compute group=cp\n";
    struct ir ir = {0};
    struct cluster cluster = make_round_number_cluster(1);
    struct sim_result result = {0};
    if (parse_schedule_or_fail_check(&ir, "two ranks", text)) {
        struct costs_by_place c = costs_by_place_make(&ir);
        if (simulate_or_fail_check("two ranks", &ir, &cluster, &c.machine.costs,
                                   (struct sim_options){0}, &result)) {
            CHECK_CLOSE("the slower rank decides", result.step_s, 10, 1e-12);
            CHECK_CLOSE("the faster waits", sim_op_ends_of_rank_s(&result, 0)[1], 7, 1e-12);
            CHECK_INT("classes", result.class_count, 2);
            CHECK_CLOSE("flops", sim_flops(&ir, &result), 4 * 17, 1e-12);
        }
        sim_result_release(&result);
        costs_by_place_release(&c, &ir);
    }
    ir_release(&ir);
}

/* Builds a schedule of Ulysses in two data-parallel groups, on one node or on a node each: three micro-batches
 * of four layers. */
static void build_schedule(struct ir *ir, int64_t nodes, const int64_t (*length)[4])
{
    static const struct transformer model = {.name = "small",
                                             .layers = 4,
                                             .hidden = 16,
                                             .heads = 4,
                                             .kv_heads = 4,
                                             .head_dim = 4,
                                             .ffn = 16,
                                             .vocab = 32,
                                             .rope_theta = 10000,
                                             .norm_eps = 1e-5};
    struct arena arena = {0};
    struct documents documents;
    struct choices choices;
    struct diag diag = {0};
    struct request request = {.model = &model,
                              .strategy = "ulysses",
                              .weights = -1,
                              .activations = -1,
                              .optimizer = -1,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = 4 * nodes,
                              .hp = 2 * nodes,
                              .seq = 64,
                              .global_batch = 6,
                              .documents = &documents,
                              .gpus_per_node = 4,
                              .sm = 80};
    documents_init(&documents, &arena, 6);
    for (uint32_t s = 0; s < 6; s++)
        documents_set_lengths(&documents, &arena, s, length[s], 4);
    if (!CHECK_INT("resolve", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK) ||
        !CHECK_INT("build", step_build(ir, &choices, &diag), STATUS_OK))
        fputs(diag.text, stderr);
    diag_release(&diag);
    arena_release(&arena);
}

/* Micro-batches and ranks with the same documents fold, others do not, and all times equal those of a simulation of
 * all ranks. */
static void only_what_is_the_same_is_folded(void)
{
    static const struct {
        const char *label;
        int64_t length[6][4];
        uint32_t classes;
    } rows[] = {
        {"all alike",
         {{32, 16, 8, 8},
          {32, 16, 8, 8},
          {32, 16, 8, 8},
          {32, 16, 8, 8},
          {32, 16, 8, 8},
          {32, 16, 8, 8}},
         1},
        {"replicas alike",
         {{32, 16, 8, 8},
          {16, 16, 16, 16},
          {61, 1, 1, 1},
          {32, 16, 8, 8},
          {16, 16, 16, 16},
          {61, 1, 1, 1}},
         1},
        {"replicas differ",
         {{32, 16, 8, 8},
          {16, 16, 16, 16},
          {61, 1, 1, 1},
          {32, 16, 8, 8},
          {16, 16, 16, 16},
          {32, 16, 8, 8}},
         2},
    };
    for (size_t k = 0; k < 2 * ARRAY_LEN(rows); k++) {
        const size_t i = k / 2;
        const int64_t nodes = 1 + (int64_t)k % 2;
        struct ir ir = {0};
        struct cluster cluster = make_round_number_cluster(nodes);
        struct sim_result folded = {0}, exact = {0};
        build_schedule(&ir, nodes, rows[i].length);
        struct costs_by_place c = costs_by_place_make(&ir);
        if (simulate_or_fail_check(rows[i].label, &ir, &cluster, &c.machine.costs,
                                   (struct sim_options){0}, &folded) &&
            simulate_or_fail_check(rows[i].label, &ir, &cluster, &c.machine.costs,
                                   (struct sim_options){.simulates_every_rank_and_op = true},
                                   &exact)) {
            CHECK_CLOSE(rows[i].label, folded.step_s, exact.step_s, 1e-9);
            CHECK_CLOSE(rows[i].label, sim_flops(&ir, &folded), sim_flops(&ir, &exact), 1e-12);
            CHECK_INT(rows[i].label, folded.class_count, rows[i].classes);
            CHECK_INT(rows[i].label, folded.equal_replica_count,
                      nodes == 2 && rows[i].classes == 1 ? 2 : 1);
        }
        sim_result_release(&folded);
        sim_result_release(&exact);
        costs_by_place_release(&c, &ir);
        ir_release(&ir);
    }
}

static const struct check_case cases[] = {
    {"three documents on two ranks", three_documents_on_two_ranks},
    {"only what is the same is folded", only_what_is_the_same_is_folded},
};
CHECK_MAIN("sim documents", cases)
