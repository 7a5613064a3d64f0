/* schedule/offsets.h: where the buffers of a finished role lie, planned beside what does not ask for it.
 *
 * Offsets need a role's tenants (sizes, births, who is ordered behind whom), and nothing but the arenas'
 * sizes needs them: the copies of a stretched list are written, and a caching allocator is replayed,
 * while a thread plans. On its way it reads the short list and the tables that all roles share, and writes
 * the column of offsets, each of which has room for all that is still to come. */
#ifndef SCHEDULE_OFFSETS_H
#define SCHEDULE_OFFSETS_H

#include "schedule/ir/ir.h"
#include "schedule/passes/births.h"
#include "schedule/passes/lifetimes.h"
#include "schedule/passes/order.h"
#include "schedule/passes/tenants.h"
#include "schedule/stretch/stretch.h"
#include "schedule/stretch/units.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* What lists offsets are planned from. All-zero is empty. */
struct offsets {
    struct order order; /* of the role as it was emitted and finished */
    struct births births;
    struct ir brief;        /* that, when layers were left out: rows alone; */
    struct ir in;           /* with its tables */
    struct stretch stretch; /* from there to what *out has */
    struct stretch_chunk *chunk;
    struct units units; /* when micro-batches were left out; they are in *out then */
    struct tenants of_units[MEMORY_COUNT]; /* and before they were put there */
    bool has_layers_left_out, has_units_left_out;

    struct ir
        out; /* as it is when planning begins: later rows are behind these, and columns do not move */
    uint32_t role;
    bool tight;          /* as well as can be: the role is the only one */
    _Atomic int next;    /* task that nobody has taken: a memory, or all of them */
    _Atomic bool untold; /* what was left out does not tell */
    struct lifetimes_figures figures;
    pthread_t thread;
    bool is_begun, is_beside;
};

/* Of what was begun, too: then *out has no offsets. */
void offsets_release(struct offsets *offsets);

/* Begins to plan the role, the last of *out; `beside`: in a thread, if there is enough to do for one.
 * Until offsets_end(), no column of *out may be moved and none of its offsets be touched, and the process
 * must not fork. */
void offsets_begin(struct offsets *offsets, struct ir *out, uint32_t role, bool tight, bool beside);

/* Plans what is not planned yet, and waits for the rest, for `figures`. *out: as it was, with all that the
 * role has by now. */
void offsets_end(struct offsets *offsets, struct ir *out);

#endif
