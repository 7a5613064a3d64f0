/* schedule/ir/loops_read.h: version 2 of the text form, whose loops are written out. Private to
 * schedule/ir/. */
#ifndef SCHEDULE_LOOPS_READ_H
#define SCHEDULE_LOOPS_READ_H

#include "schedule/ir/ir_parse.h"

/* Reads what follows the first line, and parses every line that it stands for. Messages name lines of the
 * text, with the column in the line as it is written out. */
enum status loops_read(struct parser *parser);

#endif
