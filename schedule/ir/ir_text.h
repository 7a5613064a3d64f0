/* schedule/ir/ir_text.h: a schedule as text: versioned, one row a line, made to be written, diffed and edited by
 * hand. docs/ir.md is its specification.
 *
 * Printing is canonical: equal schedules print the same bytes, and parsing what was printed gives ops and buffers with
 * the same ids. Rows of shared tables (shapes, names) to which no other row refers are not printed, and are lost. */
#ifndef SCHEDULE_IR_TEXT_H
#define SCHEDULE_IR_TEXT_H

#include "base/diag.h"
#include "base/text.h"
#include "schedule/ir/ir.h"

#include <stddef.h>

/* The versions of the text form, as in its first line "longhaul schedule 1". FLAT: every row is a line, and offsets are
 * given. LOOPS: rows that repeat are written as loops, ops inside them have names in place of numbers, and there are no
 * offsets. */
enum { IR_TEXT_FLAT = 1, IR_TEXT_LOOPS = 2 };

/* Reads the text form into an empty *ir; name stands for the text in messages. It stops at the
 * first fault: then diag says where the text is wrong, and *ir holds rows read so far, to be
 * released only. A wait on an op that comes later, or never, is no fault here: the verifier
 * reports it. */
enum status ir_parse(struct ir *ir, const char *name, const char *text, size_t size,
                     struct diag *diag);

/* Appends the whole schedule, flat or with loops. */
void ir_print(struct text *out, const struct ir *ir);
void ir_print_loops(struct text *out, const struct ir *ir);

/* Do what ir_parse() and ir_print() or, with version IR_TEXT_LOOPS, ir_print_loops() do, from and to a file; "-" is
 * standard input or output. */
enum status ir_load(struct ir *ir, const char *path, struct diag *diag);
enum status ir_save(const struct ir *ir, const char *path, int version, struct diag *diag);

#endif
