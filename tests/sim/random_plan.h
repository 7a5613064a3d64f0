/* tests/sim/random_plan.h: makes random clusters, and the text of random schedules that do not deadlock. */
#ifndef TESTS_SIM_RANDOM_PLAN_H
#define TESTS_SIM_RANDOM_PLAN_H

#include "base/text.h"
#include "tests/sim/machine.h"

/* The numbers that are drawn for a whole schedule. */
struct random_cluster_schedule {
    struct check_random *random;
    uint32_t axes, size[3], ranks; /* number of axes of the mesh, ranks along each, ranks in all */
    uint32_t drawn_role_count;     /* 1, or 2: the first rank of axis 0, and all others */
    bool has_guards;               /* some ops have guards; there are also sends and receives */
    bool has_shifts;               /* some ops are shifts within a ring */
};

static inline int64_t pick(struct check_random *random, int64_t low, int64_t high)
{
    return check_random_i64(random, low, high);
}

static inline void make_random_cluster(struct check_random *random, uint32_t ranks,
                                       struct cluster *c)
{
    *c = make_round_number_cluster((ranks + 3) / 4);
    c->fabric.kind = (enum fabric_kind)pick(random, FABRIC_SWITCH, FABRIC_PCIE);
    c->fabric.ring_efficiency = (double)pick(random, 5, 10) / 10;
    c->nic.gpudirect = pick(random, 0, 1) == 1;
    if (pick(random, 0, 1)) {
        c->fabric.latency_s = 1e-3;
        c->nic.latency_s = 2e-3;
        c->pcie.latency_s = 5e-3;
    }
    if (pick(random, 0, 2) == 0)
        c->network = (struct network){.has_rails = pick(random, 0, 1) == 1,
                                      .nodes_per_leaf_switch = 1 + pick(random, 0, 1),
                                      .oversubscription = 3};
    if (pick(random, 0, 4) == 0 && c->fabric.kind != FABRIC_PCIE)
        c->domain_nodes = 2;
}

/* Writes up to two waits on earlier ops of the role. */
static inline void write_random_waits(struct random_cluster_schedule *p, struct text *out,
                                      uint32_t begin, uint32_t op)
{
    int64_t waits = op > begin ? pick(p->random, 0, op - begin < 2 ? 1 : 2) : 0;
    int64_t first = waits > 0 ? pick(p->random, begin, (int64_t)op - 1) : 0;
    if (waits > 0)
        text_printf(out, " waits %lld", (long long)first);
    if (waits > 1 && first + 1 < op)
        text_printf(out, ",%lld", (long long)first + 1);
}

static inline void write_random_guard(struct random_cluster_schedule *p, struct text *out)
{
    static const char *const test[] = {"<", ">=", "=="};
    uint32_t axis = (uint32_t)pick(p->random, 0, p->axes - 1);
    if (p->has_guards && pick(p->random, 0, 3) == 0)
        text_printf(out, " guard g%u%s%lld", axis, test[pick(p->random, 0, 2)],
                    (long long)pick(p->random, 0, p->size[axis] - 1));
}

/* Returns 1 to 3000 times `unit`, which is large so that rounding to bytes does not show. */
static inline long long random_bytes(struct random_cluster_schedule *p, int64_t unit)
{
    return (long long)(pick(p->random, 1, 3000) * unit);
}

/* Writes one op, or a send and its receive as two ops, and returns how many it wrote. draw[]: the random numbers that
 * must be the same for the ops of both roles: the kind of op (a case below), its size, its group or axis, and a variant
 * of the kind. */
static inline uint32_t write_random_ops(struct random_cluster_schedule *p, struct text *out,
                                        const int64_t *draw, uint32_t begin, uint32_t op,
                                        const char *role)
{
    static const char *const collective[] = {"all_to_all", "all_gather", "reduce_scatter",
                                             "all_reduce", "broadcast",  "reduce"};
    long long bytes = draw[1] * 1000000 * 48, group = draw[2] % p->axes,
              blocking = draw[3] % 8 == 0;
    switch (draw[0] == 2 && !p->has_shifts ? 0 : draw[0]) {
    case 0:
    case 1:
        group = draw[2] % (p->axes + 1); /* the last group has all ranks */
        text_printf(out, "op %u %s comm%lld group=g%lld bytes=%lld", op, collective[draw[3] % 6],
                    group, group, bytes);
        write_random_waits(p, out, begin, op);
        text_printf(out, " reads a%s writes b%s\n", role, role);
        return 1;
    case 2:
        text_printf(out, "op %u shift comm%lld group=g%lld by=%lld bytes=%lld", op, group, group,
                    (long long)(draw[3] % 3) - 1, bytes);
        write_random_waits(p, out, begin, op);
        text_printf(out, " reads a%s writes b%s\n", role, role);
        return 1;
    case 3:
        text_printf(out, "op %u send p2p group=g%lld by=+1 bytes=%lld guard g%lld<%u", op, group,
                    bytes, group, p->size[group] - 1);
        write_random_waits(p, out, begin, op);
        text_printf(out, " reads a%s\nop %u recv p2p group=g%lld by=-1 bytes=%lld guard g%lld>=1",
                    role, op + 1, group, bytes, group);
        text_printf(out, " writes b%s\n", role);
        return 2;
    case 4:
        text_printf(out, "op %u %s bytes=%lld blocking=%lld", op,
                    draw[3] % 2 ? "h2d h2d" : "d2h d2h", random_bytes(p, 1000000), blocking);
        write_random_guard(p, out);
        write_random_waits(p, out, begin, op);
        if (draw[3] % 2)
            text_printf(out, " reads %s%s writes a%s\n", draw[1] % 3 ? "pin" : "page", role, role);
        else
            text_printf(out, " reads a%s writes %s%s\n", role, draw[1] % 3 ? "pin" : "page", role);
        return 1;
    case 5:
        text_printf(out, "op %u %s compute", op, draw[3] % 2 ? "host_sync" : "barrier");
        if (draw[3] % 2 == 0)
            text_printf(out, " group=g%lld", group);
        text_putc(out, '\n');
        return 1;
    default:
        text_printf(out, "op %u fill %s count=%lld", op, draw[3] % 7 == 0 ? "compute2" : "compute",
                    random_bytes(p, 1000));
        write_random_guard(p, out);
        write_random_waits(p, out, begin, op);
        text_printf(out, " writes b%s\n", role);
        return 1;
    }
}

/* Writes a random schedule over 2 to max_ranks ranks; *c gets a random cluster with enough nodes of
 * 4 GPUs. */
static inline void write_random_schedule(struct check_random *random, uint32_t max_ranks,
                                         struct text *out, struct cluster *c)
{
    struct random_cluster_schedule p = {.random = random};
    bool uneven = pick(random, 0, 2) > 0; /* if false, all coordinates of all axes do the same */
    do {
        p.axes = (uint32_t)pick(random, 1, 3);
        p.ranks = 1;
        for (uint32_t a = 0; a < p.axes; a++)
            p.ranks *= p.size[a] = (uint32_t)pick(random, 2, 4);
    } while (p.ranks > max_ranks);
    p.has_guards = uneven && pick(random, 0, 2) == 0;
    p.has_shifts = uneven && pick(random, 0, 1) == 0;
    p.drawn_role_count = uneven && pick(random, 0, 2) == 0 ? 2 : 1;
    make_random_cluster(random, p.ranks, c);
    text_puts(out, "longhaul schedule 1\nmesh");
    for (uint32_t a = 0; a < p.axes; a++)
        text_printf(out, " x%u=%u", a, p.size[a]);
    text_putc(out, '\n');
    for (uint32_t a = 0; a < p.axes; a++)
        text_printf(out, "group g%u axes=x%u\n", a, a);
    text_printf(out, "group g%u axes=x0%s%s\n", p.axes, p.axes > 1 ? ",x1" : "",
                p.axes > 2 ? ",x2" : "");
    for (uint32_t k = 0; p.drawn_role_count == 2 && k < p.size[0]; k++)
        text_printf(out,
                    k == 0   ? "role r0 axes=x0:%u"
                    : k == 1 ? "\nrole r1 axes=x0:%u"
                             : "+%u",
                    k);
    if (p.drawn_role_count == 2)
        text_putc(out, '\n');
    text_puts(out, "stream compute compute\nstream compute2 compute\nstream h2d h2d\n"
                   "stream d2h d2h\nstream p2p comm\n");
    for (uint32_t a = 0; a <= p.axes; a++)
        text_printf(out, "stream comm%u comm\n", a);
    for (uint32_t r = 0; r < p.drawn_role_count; r++) {
        static const char *const buffers[][2] = {
            {"a", "hbm"}, {"b", "hbm"}, {"pin", "pinned"}, {"page", "pageable"}};
        for (size_t b = 0; b < ARRAY_LEN(buffers); b++) {
            text_printf(out, "buffer %s%u %s u8 [1000000000000] workspace", buffers[b][0], r,
                        buffers[b][1]);
            if (p.drawn_role_count == 2)
                text_printf(out, " role=r%u", r);
            text_puts(out, " persistent\n");
        }
    }
    int64_t draws[24][4];
    uint32_t count = (uint32_t)pick(random, 4, 24);
    for (uint32_t i = 0; i < count; i++) {
        do
            draws[i][0] = pick(random, 0, 8);
        while (draws[i][0] == 3 && !p.has_guards);
        for (int k = 1; k < 4; k++)
            draws[i][k] = pick(random, 1, 60);
    }
    for (uint32_t r = 0, op = 0; r < p.drawn_role_count; r++) {
        uint32_t begin = op;
        char role[2] = {(char)('0' + r), 0};
        if (p.drawn_role_count == 2)
            text_printf(out, "ops r%u\n", r);
        for (uint32_t i = 0; i < count; i++)
            op += write_random_ops(&p, out, draws[i], begin, op, role);
    }
}

#endif
