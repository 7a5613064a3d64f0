/* From places of periods to offsets of all of them. */
#include "schedule/stretch/arena.h"

#include <stdlib.h>

void stretch_arena_release(struct stretch_arena *a)
{
    tenants_release(&a->list);
    free(a->twin);
    spans_release(&a->spans);
    free(a->spot);
    free(a->place);
    free(a->spots);
    *a = (struct stretch_arena){0};
}

/* A tenant of a block of the short list, and of its copies behind it. */
static void write_offsets(const struct stretch_arena *a, uint32_t block, uint32_t w, uint64_t base,
                          uint32_t copies)
{
    const struct stretch *s = a->s;
    const struct stretch_block *of = &s->block[block];
    const struct stretch_place *spot = &a->spots[a->spot[w]];
    uint64_t begin = base + a->list.offset[spot->row] + spot->inner;
    uint64_t other = base + a->list.offset[spot->other] + spot->inner;
    uint64_t *to = s->out->buffer.offset + of->to_buffer + (a->in->buffer[w] - of->buffer);
    uint32_t place = a->place[w], further = spot->each % spot->turns;
    if (spot->turns == 1 && spot->half > 0) { /* always the same */
        for (uint32_t copy = 0; copy <= copies; copy++)
            to[(size_t)copy * of->buffers] = begin + place * spot->step;
        return;
    }
    for (uint32_t copy = 0; copy <= copies; copy++) {
        to[(size_t)copy * of->buffers] = place < spot->half
                                             ? begin + place * spot->step
                                             : other + (place - spot->half) * spot->step;
        place += place < spot->turns - further ? further : further - spot->turns;
    }
}

void stretch_arena_write(const struct stretch_arena *a, uint64_t base)
{
    for (uint32_t b = 0; a->in->count > 0 && b < a->s->block_count; b++) {
        uint32_t run = a->s->block[b].run;
        bool copied = run != IR_NONE && b - a->s->run[run].begin + 1 == a->s->run[run].cut;
        for (uint32_t w = a->spans.first[b]; w < a->spans.first[b + 1]; w++)
            write_offsets(a, b, w, base, copied ? a->s->left_out.storeys : 0);
    }
}
