/* tests/schedule/test_order.c: which ops of a list end before others start: each rule by hand, and random lists against
 * the transitive closure. */
#include "schedule/analysis/happens_before.h"

#include "tests/check.h"
#include "tests/schedule/random_schedule.h"

#include <stdio.h>
#include <stdlib.h>

/* Lists of ops written by hand: for each op its kind, its stream and the op that it waits for. `before`: whether op a
 * ends before op b starts. */
static const struct {
    const char *label;
    struct {
        enum order_op_kind place;
        uint32_t stream;
        uint32_t wait; /* 1 + op; 0: none */
    } op[5];
    uint32_t ops;
    uint32_t a, b;
    bool before;
} known[] = {
    /* label, {{place, stream, wait} of each op}, ops, a, b, before */
    {"one stream is in list order",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 0, 0}},
     2,
     0,
     1,
     true},
    {"two streams are not",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     2,
     0,
     1,
     false},
    {"an op is not before itself",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     2,
     1,
     1,
     false},
    {"nor is a later one",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 0, 0}},
     2,
     1,
     0,
     false},
    {"a wait orders", {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 1}}, 2, 0, 1, true},
    {"a wait orders what its stream runs later",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 1}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     true},
    {"waits chain over a third stream",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 1}, {ORDER_RUNS_ON_STREAM, 2, 2}},
     3,
     0,
     2,
     true},
    {"a wait brings its stream's earlier ops",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 2}},
     3,
     0,
     2,
     true},
    {"but not its later ones",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 1}},
     3,
     1,
     2,
     false},
    {"host_sync orders its stream before all later ops",
     {{ORDER_RUNS_ON_STREAM, 0, 0},
      {ORDER_HOST_WAITS_FOR_STREAM, 0, 0},
      {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     true},
    {"host_sync leaves other streams alone",
     {{ORDER_RUNS_ON_STREAM, 2, 0},
      {ORDER_HOST_WAITS_FOR_STREAM, 0, 0},
      {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     false},
    {"host_sync itself is before all later ops",
     {{ORDER_RUNS_ON_STREAM, 0, 0},
      {ORDER_HOST_WAITS_FOR_STREAM, 0, 0},
      {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     1,
     2,
     true},
    {"and so is what it waited for on another stream",
     {{ORDER_RUNS_ON_STREAM, 2, 0},
      {ORDER_HOST_WAITS_FOR_STREAM, 0, 1},
      {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     true},
    {"a blocking copy is before all later ops",
     {{ORDER_BLOCKS_HOST_UNTIL_DONE, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     2,
     0,
     1,
     true},
    {"and so is what it waited for",
     {{ORDER_RUNS_ON_STREAM, 2, 0},
      {ORDER_BLOCKS_HOST_UNTIL_DONE, 0, 1},
      {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     true},
    {"a barrier waits for no stream",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_HOST_ONLY, 0, 0}},
     2,
     0,
     1,
     false},
    {"but for what is said",
     {{ORDER_RUNS_ON_STREAM, 0, 0}, {ORDER_RUNS_ON_HOST_ONLY, 0, 1}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     3,
     0,
     2,
     true},
    {"a barrier is before all later ops",
     {{ORDER_RUNS_ON_HOST_ONLY, 0, 0}, {ORDER_RUNS_ON_STREAM, 1, 0}},
     2,
     0,
     1,
     true},
};

static void order_rules_imply_their_pairs(void)
{
    struct order order = {0};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const uint32_t first = 7; /* ids need not start at 0 */
        order_begin_list(&order, 3, first);
        for (uint32_t op = 0; op < known[i].ops; op++) {
            order_open_op(&order, known[i].op[op].place, known[i].op[op].stream);
            if (known[i].op[op].wait)
                order_add_wait(&order, first + known[i].op[op].wait - 1);
            order_close_op(&order);
        }
        CHECK_INT(known[i].label, order_is_before(&order, first + known[i].a, first + known[i].b),
                  known[i].before);
    }
    order_release(&order);
}

static void open_op_tells_implied_waits(void)
{
    struct order order = {0};
    order_begin_list(&order, 2, 0);
    order_open_op(&order, ORDER_RUNS_ON_STREAM, 0);
    order_close_op(&order);
    order_open_op(&order, ORDER_RUNS_ON_STREAM, 0);
    order_close_op(&order);
    order_open_op(&order, ORDER_RUNS_ON_STREAM, 1);
    CHECK("no wait yet", !order_open_op_is_after(&order, 0));
    order_add_wait(&order, 1);
    CHECK("a wait on op 1 implies op 0", order_open_op_is_after(&order, 0));
    CHECK("and op 1", order_open_op_is_after(&order, 1));
    order_add_wait(&order, 2); /* the op itself */
    order_add_wait(&order, 9); /* a later op */
    order_close_op(&order);
    CHECK("wrong waits change nothing", !order_is_before(&order, 2, 2));
    order_release(&order);
}

static void clocks_agree_with_the_transitive_closure(void)
{
    struct check_random random = check_random_make();
    struct order order = {0};
    for (int round = 0; round < 60; round++) {
        struct ir ir = {0};
        ir_add_role(&ir, "a", NULL, 0);
        add_random_role(&ir, &random, (struct random_sizes){60, 8, 30, 5, 30, 0, 0});
        ir_add_role(&ir, "b", NULL, 0);
        add_random_role(&ir, &random, (struct random_sizes){40, 8, 60, 0, 0, 0, 0});
        uint32_t wrong = 0;
        for (uint32_t role = 0; role < 2; role++) {
            bool *before = order_by_closure(&ir, role);
            order_compute_clocks_of_role(&order, &ir, role);
            for (uint32_t a = 0; a < order.op_count; a++)
                for (uint32_t b = 0; b < order.op_count; b++)
                    wrong += order_is_before(&order, order.first_op + a, order.first_op + b) !=
                             before[(size_t)a * order.op_count + b];
            free(before);
        }
        CHECK_INT("pairs that differ", wrong, 0);
        ir_release(&ir);
    }
    order_release(&order);
}

static const struct check_case cases[] = {
    {"rules order what they say", order_rules_imply_their_pairs},
    {"an open op knows what is implied", open_op_tells_implied_waits},
    {"clocks agree with the transitive closure", clocks_agree_with_the_transitive_closure},
};
CHECK_MAIN("order", cases)
