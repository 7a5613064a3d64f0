/* Ranks on a mesh, and the groups in which they communicate.
 *
 * Sequences lie along dp, the slowest axis. Head-first placement makes the ranks of a head group
 * neighbours, context-first those of a ring; that is all there is to placement. A Double-Ring cuts
 * the context axis into windows. HSDP's shard is a run of neighbouring ranks, so it cuts at most one
 * axis in two. Names of axes count up to the first '_' for what lies along them (exec/bindings.h). */
#include "schedule/emit.h"

#include <assert.h>
#include <stdio.h>

enum along { PART_DP, PART_OUTER, PART_INNER, PART_HP, PART_COUNT };

/* The parts in mesh order, the last fastest. */
static const uint8_t orders[PLACEMENT_COUNT][PART_COUNT] = {
    [PLACEMENT_HEAD_FIRST] = {PART_DP, PART_OUTER, PART_INNER, PART_HP   },
    [PLACEMENT_CONTEXT_FIRST] = {PART_DP, PART_HP,    PART_OUTER, PART_INNER},
};

/* Appends an axis; returns its bit. */
static uint32_t add_axis(struct ir *ir, const char *name, const char *suffix, uint32_t size)
{
    struct mesh_axis *axis = &ir->mesh.axis[ir->mesh.axis_count];
    snprintf(axis->name, sizeof axis->name, "%s%s", name, suffix);
    axis->size = size;
    return 1u << ir->mesh.axis_count++;
}

/* The axes of a mask as a group; IR_NONE16 when it has one rank. */
static uint16_t add_group(struct ir *ir, const char *name, uint32_t axes)
{
    struct axis_set set[MESH_AXES_MAX] = {{0}};
    uint32_t size = 1, count = 0;
    for (uint32_t i = 0; i < ir->mesh.axis_count; i++)
        if (axes >> i & 1) {
            set[count++].axis = (uint8_t)i;
            size *= ir->mesh.axis[i].size;
        }
    return size > 1 ? ir_add_group(ir, name, set, count) : IR_NONE16;
}

void emit_mesh(struct emit *e)
{
    const struct choices *c = e->choices;
    struct ir *ir = e->ir;
    uint32_t shard = c->weights == CHOICE_WEIGHTS_REPLICATED ? 1 : c->shard;
    bool two = c->window > 1 && c->window < c->cp;
    const char *names[PART_COUNT] = {"dp", two ? "cp_out" : "cp", two ? "cp_in" : "cp", "hp"};
    uint32_t sizes[PART_COUNT] = {c->dp, c->cp / c->window, c->window, c->hp};
    uint32_t axes[PART_COUNT] = {0}, below = c->ranks;

    uint32_t shard_axes = 0;
    for (int i = 0; i < PART_COUNT; i++) {
        enum along part = orders[c->placement][i];
        uint32_t size = sizes[part];
        below /= size;
        if (size == 1 && part != PART_DP && part != PART_HP)
            continue;
        if (shard > below && shard < below * size) {
            axes[part] = add_axis(ir, names[part], "_out", size * below / shard);
            uint32_t inside = add_axis(ir, names[part], "_in", shard / below);
            axes[part] |= inside;
            shard_axes |= inside;
        } else {
            axes[part] = add_axis(ir, names[part], "", size);
            if (shard >= below * size && shard > 1)
                shard_axes |= axes[part];
        }
    }
    assert(below == 1);
    e->all_axes = (1u << ir->mesh.axis_count) - 1;
    e->hp_group = add_group(ir, "hp", axes[PART_HP]);
    e->outer = (struct ring){.size = sizes[PART_OUTER]};
    e->inner = (struct ring){.size = sizes[PART_INNER]};
    e->outer.group = add_group(ir, names[PART_OUTER], axes[PART_OUTER]);
    e->inner.group = add_group(ir, names[PART_INNER], axes[PART_INNER]);
    e->shard_group = add_group(ir, "shard", shard_axes);
    e->replica_group = add_group(ir, "replica", e->all_axes & ~shard_axes);
    e->shard_size = shard;
    e->replica_size = c->ranks / shard;
}
