/* tests/sim/test_prune.c: links that can never limit a flow are left out, and no others. */
#include "sim/traffic/prune.h"
#include "tests/sim/machine.h"

enum { LINKS = 4, MOST_FLOWS = 3 };

/* Links by width, flows as bit masks of links, and the links that must stay as a bit mask. */
static const struct {
    const char *label;
    double width[LINKS];
    unsigned flow[MOST_FLOWS];
    unsigned mask_of_links_that_stay;
} table[] = {
    {"ports of one flow: the narrowest", {4, 3, 2, 5}, {15}, 4},
    {"equal ports of one flow: the first", {1, 1, 1, 1}, {15}, 1},
    {"a cap wider than the port goes", {2, 9, 1, 1}, {3, 1}, 1},
    {"a cap narrower than the port stays", {2, 1, 1, 1}, {3, 1}, 3},
    {"a shared link as wide as its users'", {2, 2, 2, 1}, {3, 5}, 1},
    {"a shared link wider than its users'", {3, 2, 2, 1}, {3, 5}, 7},
    {"a wide link that others share stays", {9, 2, 2, 9}, {3, 5, 9}, 7},
    {"each its own", {1, 2, 3, 4}, {1, 2, 4}, 7},
};

static void only_links_that_can_limit_stay(void)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct platform platform = {0};
        struct flow_table flows = {0};
        struct pruned pruned = {0};
        for (int f = 0; f < MOST_FLOWS && table[i].flow[f]; f++) {
            flow_open(&flows, 1);
            for (uint32_t l = 0; l < LINKS; l++)
                if (table[i].flow[f] >> l & 1)
                    route_add_link(&platform, &flows, LINK_RATE_CAP_OF_FLOW, l, 0,
                                   table[i].width[l]);
            flow_close(&flows);
        }
        prune_make(&pruned, &platform, &flows);
        unsigned stay = 0;
        for (uint32_t e = 0; e < pruned.link_begin[flows.flow_count]; e++)
            stay |= 1u << platform.link[pruned.link[e]].owner;
        CHECK_INT(table[i].label, stay, table[i].mask_of_links_that_stay);
        prune_release(&pruned);
        flow_table_release(&flows);
        platform_release(&platform);
    }
}

static const struct check_case cases[] = {
    {"only links that can limit stay", only_links_that_can_limit_stay},
};
CHECK_MAIN("sim/prune", cases)
