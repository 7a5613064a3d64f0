/* schedule/passes/births.h: when each buffer of a role comes to life.
 *
 * A buffer is born with its first touch in list order. Others of its touches may not be ordered
 * behind that one (two halves written on two streams); what has ended at its birth is then what
 * has ended at the start of every one of them: the least of their clocks. The planner of arenas
 * and the verifier of plans ask the same question here. */
#ifndef SCHEDULE_BIRTHS_H
#define SCHEDULE_BIRTHS_H

#include "schedule/passes/order.h"

#include <stdbool.h>
#include <stdint.h>

/* All-zero is empty. */
struct births {
    uint32_t *first; /* per buffer: the first op that touches it; IR_NONE: none of the role */
    uint32_t *early; /* per buffer: its row of `clock`; IR_NONE: the clock of op `first` */
    uint32_t *clock; /* (count, width of the order) */
    uint32_t count, capacity, width;
    uint32_t *born; /* the buffers, in the order of their births */
    uint32_t born_count;
};

void births_release(struct births *births);

/* Nobody of buffers 0 .. buffers is born yet. Then the ops of a role are to be visited in list order. */
void births_begin(struct births *births, const struct order *order, uint32_t buffers);

/* A touch that is not ordered behind the first. */
void births_touch_early(struct births *births, const struct order *order, uint32_t buffer,
                        uint32_t op);

/* An op, whose clock the order holds, touches a buffer. */
static inline void births_touch(struct births *births, const struct order *order, uint32_t buffer,
                                uint32_t op)
{
    uint32_t first = births->first[buffer];
    if (first == IR_NONE) {
        births->first[buffer] = op;
        births->born[births->born_count++] = buffer;
    } else if (first != op && !order_before(order, first, op)) {
        births_touch_early(births, order, buffer, op);
    }
}

/* The births of all buffers that ops of the role touch whose clocks `order` holds. */
void births_of_role(struct births *births, const struct ir *ir, const struct order *order);

/* The clock of a buffer's birth. */
static inline const uint32_t *births_clock(const struct births *births, const struct order *order,
                                           uint32_t buffer)
{
    uint32_t early = births->early[buffer];
    return early == IR_NONE ? order_row(order, births->first[buffer])
                            : births->clock + (size_t)early * births->width;
}

/* Have all ops of a free set ended when a buffer of that birth starts to live? */
bool births_after(const struct births *births, const struct order *order, uint32_t buffer,
                  const op_id *set, uint32_t count);

#endif
