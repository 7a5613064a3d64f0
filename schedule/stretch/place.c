/* Who is meant: from what a block of the short list refers to, to its place in the long one. */
#include "schedule/stretch/spot.h"

/* The last storey, which may be shorter, is the last in the short list too. */
struct spot spot_of_state(const struct stretch *s, uint32_t buffer)
{
    for (uint32_t v = 0; v < s->chunk_count; v++) {
        uint32_t begin = s->state_begin[v], count = s->state_count[v];
        const struct stretch_chunk *chunk = &s->chunk[v];
        if (buffer < begin || buffer - begin >= count * chunk->whole_storeys)
            continue;
        uint32_t storey = (buffer - begin) / count;
        if (storey + 1 == chunk->whole_storeys)
            storey = chunk->storeys - 1;
        return (struct spot){s->run_count + v, storey, (buffer - begin) % count};
    }
    return spot_nowhere;
}

static uint32_t kept_at(const struct stretch *s, const struct stretch_run *run, uint32_t at)
{
    return at < run->cut ? at : at + s->left_out.storeys;
}

uint32_t stretch_rise(const struct stretch *s, struct stretch_from from)
{
    if (s->block[from.block].run == IR_NONE)
        return 0;
    const struct stretch_run *run = &s->run[s->block[from.block].run];
    uint32_t more = s->left_out.storeys;
    uint32_t down = from.copy > 0 ? from.copy : from.block - run->begin < run->cut ? 0 : more;
    return run->up ? down : more - down;
}

static bool is_steady(const struct stretch *s, uint32_t block)
{
    const struct stretch_run *run = &s->run[s->block[block].run];
    return block - run->begin >= run->low && block - run->begin < run->high;
}

/* How many storeys up a block lies from another of its run. */
static int64_t storeys_up(const struct stretch *s, uint32_t of, int64_t blocks)
{
    return spot_is_up(s, of) ? blocks : -blocks;
}

uint32_t stretch_first_at(const struct stretch *s, const struct stretch_run *run, uint32_t at,
                          bool buffers)
{
    uint32_t more = s->left_out.storeys;
    uint32_t image = at < run->cut ? at : at < run->cut + more ? run->cut - 1 : at - more;
    uint32_t copy = at < run->cut || at >= run->cut + more ? 0 : at - run->cut + 1;
    const struct stretch_block *block = &s->block[run->begin + image];
    return buffers ? block->to_buffer + copy * block->buffers : block->to_op + copy * block->ops;
}

/* What a block refers to, and what the block like it has in that place. */
struct reference {
    struct spot spot, like;
    bool has_like, same; /* the like of it is that spot too */
};

/* Does the like of it lie as far from it as the blocks do from each other? */
static bool goes_along(const struct stretch *s, struct stretch_from from, const struct reference *r)
{
    int64_t blocks = (int64_t)s->block[from.block].like - from.block;
    return r->has_like && r->like.of == r->spot.of && r->like.slot == r->spot.slot &&
           storeys_up(s, r->spot.of, (int64_t)r->like.at - r->spot.at) ==
               storeys_up(s, s->block[from.block].run, blocks);
}

/* The place in its run of what is referred to; IR_NONE: nobody can tell. Blocks that refer to one and
 * the same thing mean just that; if it goes along with them, they mean their own storey's. */
static uint32_t place_seen(const struct stretch *s, struct stretch_from from,
                           const struct reference *r)
{
    const struct stretch_block *block = &s->block[from.block];
    bool state = r->spot.of >= s->run_count;
    const struct stretch_run *run = state ? NULL : &s->run[r->spot.of];
    uint32_t kept = state ? r->spot.at : kept_at(s, run, r->spot.at);
    if (block->run == IR_NONE || (r->has_like && r->same))
        return kept;
    uint32_t up = stretch_rise(s, from), more = s->left_out.storeys;
    uint32_t at = state || run->up ? r->spot.at + up : r->spot.at + more - up;
    bool told = goes_along(s, from, r);
    if (!told && from.copy > 0)
        return IR_NONE;
    if (state || at == kept)
        return at;
    if (told)
        return at >= run->alike_low && at < run->alike_high + more &&
                       r->spot.at >= run->alike_low && r->spot.at < run->alike_high
                   ? at
                   : IR_NONE;
    /* The ends of runs refer to what has no like, or to the ends of other runs. */
    bool alone = r->spot.at < run->alike_low || r->spot.at >= run->alike_high;
    bool far = alone || r->spot.of != block->run;
    return far && !from.strictly && !is_steady(s, from.block) ? kept : IR_NONE;
}

uint32_t stretch_op(const struct stretch *s, struct stretch_from from, uint32_t op, uint32_t like)
{
    const struct stretch_block *own = &s->block[from.block];
    if (op - own->op < own->ops && own->like != IR_NONE &&
        like - op == s->block[own->like].op - own->op)
        return own->to_op + from.copy * own->ops + (op - own->op); /* most are the block's own */
    struct reference r = {spot_of_op(s, op), spot_nowhere, like != IR_NONE, like == op};
    const struct stretch_block *block = &s->block[s->block_of_op[op]];
    if (r.spot.of == IR_NONE && r.has_like && !r.same && from.copy > 0)
        return IR_NONE;
    if (r.spot.of == IR_NONE)
        return block->to_op + (op - block->op);
    if (r.has_like)
        r.like = spot_of_op(s, like);
    uint32_t at = place_seen(s, from, &r);
    return at == IR_NONE ? IR_NONE
                         : stretch_first_at(s, &s->run[r.spot.of], at, false) + r.spot.slot;
}

uint32_t stretch_buffer(const struct stretch *s, struct stretch_from from, uint32_t buffer,
                        uint32_t like)
{
    const struct stretch_block *own = &s->block[from.block];
    if (buffer - own->buffer < own->buffers && own->like != IR_NONE &&
        like - buffer == s->block[own->like].buffer - own->buffer)
        return own->to_buffer + from.copy * own->buffers + (buffer - own->buffer);
    struct reference r = {spot_of_buffer(s, buffer), spot_nowhere, like != IR_NONE, like == buffer};
    if (r.spot.of == IR_NONE && buffer < s->states)
        return s->to_states + buffer;
    if (r.spot.of == IR_NONE) {
        const struct stretch_block *block = &s->block[s->block_of_buffer[buffer]];
        return block->to_buffer + (buffer - block->buffer);
    }
    if (r.has_like)
        r.like = spot_of_buffer(s, like);
    uint32_t at = place_seen(s, from, &r);
    if (at == IR_NONE)
        return IR_NONE;
    if (r.spot.of < s->run_count)
        return stretch_first_at(s, &s->run[r.spot.of], at, true) + r.spot.slot;
    uint32_t v = r.spot.of - s->run_count;
    if (s->block[from.block].run == IR_NONE || r.same)
        return s->to_states + buffer;
    return s->to_states + s->state_begin[v] + at * s->state_count[v] + r.spot.slot;
}
