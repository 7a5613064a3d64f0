/* schedule/stretch/spot.h: where a row of the short list is among the storeys of its chunk or run. What
 * stretch.c compares and place.c looks for. */
#ifndef SCHEDULE_STRETCH_SPOT_H
#define SCHEDULE_STRETCH_SPOT_H

#include "schedule/stretch/stretch.h"

struct spot {
    uint32_t of;   /* run, or run_count + chunk for states; IR_NONE: of none */
    uint32_t at;   /* block of the run; storey */
    uint32_t slot; /* op or buffer of the block */
};

static const struct spot spot_nowhere = {IR_NONE, 0, 0};

struct spot spot_of_state(const struct stretch *s, uint32_t buffer);

static inline struct spot spot_in_block(const struct stretch *s, uint32_t block, uint32_t slot)
{
    uint32_t run = s->block[block].run;
    return run == IR_NONE ? spot_nowhere : (struct spot){run, block - s->run[run].begin, slot};
}

static inline struct spot spot_of_op(const struct stretch *s, uint32_t op)
{
    uint32_t block = s->block_of_op[op];
    return spot_in_block(s, block, op - s->block[block].op);
}

static inline struct spot spot_of_buffer(const struct stretch *s, uint32_t buffer)
{
    if (buffer < s->states)
        return spot_of_state(s, buffer);
    uint32_t block = s->block_of_buffer[buffer];
    return spot_in_block(s, block, buffer - s->block[block].buffer);
}

/* Do storeys go upwards in it? Those of states do. */
static inline bool spot_is_up(const struct stretch *s, uint32_t of)
{
    return of >= s->run_count || s->run[of].up;
}

#endif
