/* tests/sim/test_sim.c: a simulation that cannot end says why; equal simulations give equal bytes;
 * loads name the busiest link. */
#include "sim/sim.h"
#include "tests/sim/machine.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char streams[] = "stream compute compute\n"
                              "stream comm comm\n"
                              "stream comm2 comm\n"
                              "buffer a0 hbm u8 [100000000000] workspace persistent\n";
static const char two_roles[] =
    "role first axes=g:0\n"
    "role second axes=g:1\n"
    "stream compute compute\n"
    "stream comm comm\n"
    "stream comm2 comm\n"
    "buffer a0 hbm u8 [100000000000] workspace role=first persistent\n"
    "buffer b0 hbm u8 [100000000000] workspace role=second persistent\n";

/* The smallest schedules that cannot run to their end, on one node of 4 GPUs. */
/* clang-format off */
static const struct {
    const char *label, *head, *roles, *ops, *message;
} wrong[] = {
    /* label, head, roles, ops, message */
    {"more ranks than GPUs", "mesh g=5\ngroup g axes=g\n", NULL,
     "op 0 fill compute count=1 writes a0\n",
     "t.ir: error: the mesh has 5 ranks, and cluster round has 4 GPUs\n"},
    {"a wait on a later op", "mesh g=1\n", NULL,
     "op 0 fill compute count=1 waits 1 writes a0\nop 1 fill compute count=1 writes a0\n",
     "t.ir: error: op 0 waits for op 1, which is not an earlier op of its role\n"},
    {"a send past the end", "mesh g=2\ngroup g axes=g\n", NULL,
     "op 0 send comm group=g by=+1 bytes=8 reads a0\n",
     "t.ir: error: op 0 (send) on rank 1: there is no member of group g at distance 1\n"},
    {"a send without receive", "mesh g=2\ngroup g axes=g\n", NULL,
     "op 0 send comm group=g by=+1 bytes=8 guard g<1 reads a0\n",
     "t.ir: error: deadlock: rank 0 waits in op 0 (send) for rank 1, which has no op that meets "
     "it\n"},
    {"a receive of another size", "mesh g=2\ngroup g axes=g\n", NULL,
     "op 0 send comm group=g by=+1 bytes=8 guard g<1 reads a0\n"
     "op 1 recv comm group=g by=-1 bytes=16 guard g>=1 writes a0\n",
     "t.ir: error: op 0 (send) of rank 0 sends 8 bytes and meets op 1 (recv) of rank 1, which "
     "receives 16\n"},
    {"two that wait for each other's send", "mesh g=2\ngroup g axes=g\n", NULL,
     "op 0 recv comm group=g by=+1 bytes=8 guard g<1 writes a0\n"
     "op 1 recv comm group=g by=-1 bytes=8 guard g>=1 writes a0\n"
     "op 2 send comm group=g by=+1 bytes=8 guard g<1 reads a0\n"
     "op 3 send comm group=g by=-1 bytes=8 guard g>=1 reads a0\n",
     "t.ir: error: deadlock: rank 0 waits in op 0 (recv) for rank 1 to reach op 3 (send); rank 1 "
     "waits in op 1 (recv) for rank 0 to reach op 2 (send)\n"},
    {"collectives in another order", "mesh g=2\ngroup g axes=g\n", two_roles,
     "ops first\nop 0 all_gather comm group=g bytes=8 reads a0 writes a0\n"
     "op 1 all_to_all comm group=g bytes=8 reads a0 writes a0\n"
     "ops second\nop 2 all_to_all comm group=g bytes=8 reads b0 writes b0\n"
     "op 3 all_gather comm group=g bytes=8 reads b0 writes b0\n",
     "t.ir: error: op 0 (all_gather, 8 bytes) of role first meets op 2 (all_to_all, 8 bytes) of "
     "role second on group g: kind and sizes must be the same\n"},
    {"a collective that others do not have", "mesh g=2\ngroup g axes=g\n", two_roles,
     "ops first\nop 0 all_gather comm group=g bytes=8 reads a0 writes a0\n"
     "ops second\nop 1 fill compute count=1 writes b0\n",
     "t.ir: error: op 0 (all_gather) of role first has no counterpart in role second, which shares "
     "group g\n"},
    {"groups crossed on one stream", "mesh g=2\ngroup g axes=g\ngroup h axes=g\n", two_roles,
     "ops first\nop 0 all_gather comm group=g bytes=8 reads a0 writes a0\n"
     "op 1 all_gather comm group=h bytes=8 reads a0 writes a0\n"
     "ops second\nop 2 all_gather comm group=h bytes=8 reads b0 writes b0\n"
     "op 3 all_gather comm group=g bytes=8 reads b0 writes b0\n",
     "t.ir: error: deadlock: rank 0 waits in op 0 (all_gather) for rank 1 to reach op 3 "
     "(all_gather); rank 1 waits in op 2 (all_gather) for rank 0 to reach op 1 (all_gather)\n"},
};
/* clang-format on */

static enum status simulate_schedule_text(const char *head, const char *roles, const char *ops,
                                          struct sim_result *result, struct diag *diag)
{
    struct text text = {0};
    struct ir ir = {0};
    struct cluster cluster = make_round_number_cluster(1);
    enum status status = STATUS_BAD_INPUT;
    text_printf(&text, "longhaul schedule 1\n%s%s%s", head, roles ? roles : streams, ops);
    if (parse_schedule_or_fail_check(&ir, "t.ir", text.data)) {
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
        status =
            sim_run(&ir, &cluster, &costs.costs, &(struct sim_options){0}, "t.ir", result, diag);
        toy_sim_costs_release(&costs);
    }
    ir_release(&ir);
    text_release(&text);
    return status;
}

static void deadlocks_are_explained(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct sim_result result = {0};
        struct diag diag = {0};
        enum status status =
            simulate_schedule_text(wrong[i].head, wrong[i].roles, wrong[i].ops, &result, &diag);
        CHECK_INT(wrong[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text ? diag.text : "", wrong[i].message);
        sim_result_release(&result);
        diag_release(&diag);
    }
}

static const char all_to_all[] = "mesh g=4\ngroup g axes=g\n";
static const char all_to_all_ops[] =
    "op 0 all_to_all comm group=g bytes=8000000000 reads a0 writes a0\n"
    "op 1 fill compute count=1000 waits 0 writes a0\n";

/* The behaviour of the next simulation's child process when it starts. */
static enum { LIVE, DIE, LEAVE } fate;

static void end_child_as_asked(void)
{
    if (fate == DIE)
        raise(SIGKILL);
    if (fate == LEAVE)
        _exit(3);
}

static void a_dead_child_is_reported_once(void)
{
    static const char *const messages[] = {
        [DIE] =
            "t.ir: error: the simulation was ended by signal 9 (Killed): memory may have run out\n",
        [LEAVE] = "t.ir: error: the simulation ended early with exit code 3\n",
    };
    CHECK_INT("hook", pthread_atfork(NULL, NULL, end_child_as_asked), 0);
    for (fate = DIE; fate <= LEAVE; fate++) {
        struct sim_result result = {0};
        struct diag diag = {0};
        enum status status =
            simulate_schedule_text(all_to_all, NULL, all_to_all_ops, &result, &diag);
        CHECK_INT("status", status, STATUS_SYSTEM);
        CHECK_TEXT("message", diag.text ? diag.text : "", messages[fate]);
        sim_result_release(&result);
        diag_release(&diag);
    }
    fate = LIVE;
}

static void same_input_same_bytes(void)
{
    struct sim_result a = {0}, b = {0};
    struct diag diag = {0};
    simulate_schedule_text(all_to_all, NULL, all_to_all_ops, &a, &diag);
    simulate_schedule_text(all_to_all, NULL, all_to_all_ops, &b, &diag);
    CHECK_INT("rows", (int64_t)a.row_count, (int64_t)b.row_count);
    CHECK("times", a.row_count == b.row_count &&
                       memcmp(a.start_s, b.start_s, a.row_count * sizeof *a.start_s) == 0 &&
                       memcmp(a.end_s, b.end_s, a.row_count * sizeof *a.end_s) == 0);
    sim_result_release(&a);
    sim_result_release(&b);
    diag_release(&diag);
}

static void loads_name_the_busiest_link(void)
{
    struct sim_result result = {0};
    struct diag diag = {0};
    simulate_schedule_text(all_to_all, NULL, all_to_all_ops, &result, &diag);
    CHECK_INT("ports", (int64_t)result.link_load_count, 8);
    if (result.link_load_count == 8) {
        CHECK_TEXT("name", result.busiest_link_name, "node 0 gpu 0 fabric in");
        CHECK_CLOSE("bytes", result.loads_by_link[result.busiest_load_row].bytes, 6e9, 1e-12);
        CHECK_CLOSE("busy", result.loads_by_link[result.busiest_load_row].busy_fraction_of_step,
                    0.06 / 0.060001, 1e-9);
    }
    CHECK_INT("instances", (int64_t)result.counts.schedule_op_instances, 8);
    CHECK_INT("of which simulated", (int64_t)result.counts.simulated_op_instances, 2);
    CHECK_INT("classes", result.class_count, 1);
    CHECK_INT("members", result.classes[0].rank_count, 4);
    CHECK_INT("flows", (int64_t)result.counts.flows_started, 1);
    sim_result_release(&result);
    diag_release(&diag);
}

static void many_run_at_once(void)
{
    enum { MANY = 16 };
    pid_t child[MANY];
    for (int i = 0; i < MANY; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            struct sim_result result = {0};
            struct diag diag = {0};
            simulate_schedule_text(all_to_all, NULL, all_to_all_ops, &result, &diag);
            _exit(fabs(result.step_s - 0.060001) < 1e-9 ? 0 : 1);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int state = -1;
        CHECK("started", child[i] > 0);
        CHECK("ended", waitpid(child[i], &state, 0) == child[i] && state == 0);
    }
}

static const struct check_case cases[] = {
    {"what cannot end says why", deadlocks_are_explained},
    {"a child that dies is one message", a_dead_child_is_reported_once},
    {"same input, same bytes", same_input_same_bytes},
    {"loads name the busiest link", loads_name_the_busiest_link},
    {"many run at once", many_run_at_once},
};
CHECK_MAIN("sim/sim", cases)
