/* schedule/ir/loops_read.h: version 2 of the text form, whose loops are written out. Private to
 * schedule/ir/. */
#ifndef SCHEDULE_LOOPS_READ_H
#define SCHEDULE_LOOPS_READ_H

#include "schedule/ir/ir_parse.h"

/* Reads the text after the first line, and parses every line to which it unrolls. Messages name lines of the text;
 * columns are those of the unrolled line. False: a fault was reported. */
bool loops_read(struct parser *parser);

#endif
