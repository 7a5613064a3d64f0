#include "schedule/offsets.h"

#include "base/arena.h"

#include <stdlib.h>

/* A thread takes some 50 us to begin and to end, and so many ops about as long to be planned. */
enum { BESIDE_MIN = 2000 };

/* For the thread, if there is one. */
static void join(struct offsets *o)
{
    if (o->is_beside)
        pthread_join(o->thread, NULL);
    o->is_beside = false;
}

void offsets_release(struct offsets *o)
{
    join(o);
    stretch_release(&o->stretch);
    free(o->chunk);
    units_release(&o->units);
    for (int m = 0; m < MEMORY_COUNT; m++)
        tenants_release(&o->of_units[m]);
    births_release(&o->births);
    order_release(&o->order);
    ir_release(&o->brief);
    *o = (struct offsets){0};
}

/* Of the role as it was emitted all memories are one task; of one that is stretched each is. */
static bool plan(struct offsets *o, int task)
{
    if (o->has_units_left_out) {
        struct units units = o->units;
        units.ir = &o->out;
        return lifetimes_plan_units(&units, o->of_units, LIFETIMES_ALIGNMENT, o->tight,
                                    &o->figures);
    }
    if (o->has_layers_left_out) {
        struct stretch stretch = o->stretch;
        stretch.out = &o->out;
        return lifetimes_plan_stretched(&stretch, &o->order, &o->births, (uint8_t)task,
                                        LIFETIMES_ALIGNMENT, o->tight, &o->figures);
    }
    lifetimes_plan_role(&o->out, o->role, &o->order, &o->births, LIFETIMES_ALIGNMENT, o->tight,
                        &o->figures);
    return true;
}

static void *plan_all(void *offsets)
{
    struct offsets *o = offsets;
    int tasks = o->has_layers_left_out && !o->has_units_left_out ? MEMORY_COUNT : 1;
    for (int task; (task = o->next++) < tasks;)
        if (!plan(o, task))
            o->untold = true;
    return NULL;
}

void offsets_begin(struct offsets *o, struct ir *out, uint32_t role, bool tight, bool beside)
{
    o->out = *out;
    o->role = role;
    o->tight = tight;
    o->is_begun = true;
    if (beside && o->order.count >= BESIDE_MIN) {
        heap_share();
        o->is_beside = pthread_create(&o->thread, NULL, plan_all, o) == 0; /* or the end does it */
    }
}

void offsets_end(struct offsets *o, struct ir *out)
{
    plan_all(o); /* what the thread has not come to */
    join(o);
    if (o->untold)
        lifetimes_plan_role(out, o->role, NULL, NULL, LIFETIMES_ALIGNMENT, o->tight, &o->figures);
}
