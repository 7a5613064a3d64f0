/* schedule/stretch/stretch.h: a schedule of few layers made into one of many.
 *
 * Layers that are alike have the same ops, buffers and waits but for whose they are. So a role is
 * emitted, rewritten and finished with few layers, and the layers left out are copies: block by
 * block (a storey, the layers of one bundle, in one direction of one unit; or its update), each with
 * the names that its place asks for.
 *
 * Nothing is taken on trust about the blocks beside the cut: two in a row must be the same, op for op
 * and buffer for buffer, and what they refer to must be the same thing or lie one storey further.
 * An order that two neighbours leave to waits runs over the ops between them alone, so what is the
 * same from one block to the next stays the same. Where it is not, there is no stretching, and the
 * role is emitted whole. tests/schedule/test_stretch.c compares both ways op for op. */
#ifndef SCHEDULE_STRETCH_H
#define SCHEDULE_STRETCH_H

#include "schedule/ir/ir.h"
#include "schedule/passes/lifetimes.h"

#include <stdbool.h>
#include <stdint.h>

/* What was left out: the same number of storeys of each chunk of layers. */
struct depth_left_out {
    uint32_t storey;  /* layers */
    uint32_t storeys; /* left out of each chunk; 0: none */
};

/* A chunk of layers that the role has. */
struct stretch_chunk {
    uint32_t first, layers;          /* in the short list */
    uint32_t whole_first;            /* the first layer's number in the model */
    uint32_t bundle;                 /* row of ir.bundle of the first storey; the others follow */
    uint32_t storeys, whole_storeys; /* the last may have fewer layers */
};

/* Equal blocks follow each other by storeys, upwards or downwards. States of bundles are a run too. */
struct stretch_run {
    uint32_t begin, blocks; /* rows of stretch.block */
    uint32_t low, high;     /* steady blocks, as numbered in the run; high is behind the last */
    uint32_t alike_low, alike_high; /* those with the same rows, whatever they refer to */
    uint32_t cut;                   /* copies stand behind so many blocks */
    bool up;
};

struct stretch_block {
    uint32_t op, ops;          /* in the short list */
    uint32_t buffer, buffers;  /* born in it */
    uint32_t to_op, to_buffer; /* the first ones in the long list */
    uint32_t run;              /* IR_NONE: of none */
    uint32_t storey;
    uint32_t like; /* the nearest steady block with the same rows; of a steady block, its neighbour.
                      IR_NONE: none */
};

struct stretch {
    const struct ir *in;
    struct ir *out;
    uint16_t role;
    struct depth_left_out left_out;
    const struct stretch_chunk *chunk;
    uint32_t chunk_count;
    struct stretch_block *block;
    uint32_t block_count;
    struct stretch_run *run;
    uint32_t run_count;
    uint32_t *block_of_op, *block_of_buffer; /* IR_NONE: a state, or nobody's */
    uint32_t states, to_states; /* buffers that live throughout come first; in the long list */
    uint32_t *state_begin;      /* per chunk: the first of its storeys' */
    uint32_t *state_count;      /* per chunk: of each storey */
    struct stretch_layer {
        uint32_t chunk, storey;
    } * layer; /* of the short list */
    uint32_t layers;
    uint32_t op_count, buffer_count; /* of the long list */
    uint32_t first_op;               /* of the role in the long list */
};

/* Who refers to something: a block, or (copy > 0) its n-th copy, by the last one before the cut. */
struct stretch_from {
    uint32_t block, copy;
    bool strictly; /* what a block without a like means far away is not told */
};

/* Finds blocks, runs and steady places of *in, a role whose waits and free sets are settled. Its rows of
 * buffers stand in the order of their births. False: there are none. */
struct births;
bool stretch_survey(struct stretch *s, const struct ir *in, const struct births *births,
                    struct ir *out, uint16_t role, struct depth_left_out left_out,
                    const struct stretch_chunk *chunk, uint32_t chunk_count);
void stretch_release(struct stretch *s);

/* The first op, or buffer, of the block at a place of a run in the long list. */
uint32_t stretch_first_at(const struct stretch *s, const struct stretch_run *run, uint32_t at,
                          bool buffers);

/* How many storeys up from where they were the rows of a block, or of a copy, are. */
uint32_t stretch_rise(const struct stretch *s, struct stretch_from from);

/* Where something that `from` refers to is in the long list. like: what the like of from.block
 * has in that place; IR_NONE: there is none. Returns IR_NONE when nobody can tell. */
uint32_t stretch_op(const struct stretch *s, struct stretch_from from, uint32_t op, uint32_t like);
uint32_t stretch_buffer(const struct stretch *s, struct stretch_from from, uint32_t buffer,
                        uint32_t like);

/* Makes room in *out for the long role, whose buffers then have no offsets (UINT64_MAX). */
void stretch_reserve(const struct stretch *s);

/* Appends the long role to *out, which has room: ops and buffers, all but their offsets, and its repeats. False:
 * it cannot be told; rows behind the counts of *out are left over then. */
bool stretch_write(const struct stretch *s);

/* Records in *out the repeats of the long role, whose rows are there: from each run's copies as far as
 * the blocks beside them go on as they do. stretch_write() calls it. */
void stretch_repeats(const struct stretch *s);

#endif
