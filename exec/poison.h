/* exec/poison.h: checks that every element is written before it is read.
 *
 * Memory starts as signalling NaNs, and a shadow array records, for every two bytes of an arena, which buffer was
 * written there last. An op fails if it reads an element that its buffer has not written, or over which another
 * buffer has written since. An op also fails if it leaves an element untouched that it should write. Bound buffers
 * count as written before op 0. The check works on backends whose kernels run on the host, in memory that the host
 * can address. */
#ifndef EXEC_POISON_H
#define EXEC_POISON_H

#include "exec/run.h"

struct poison;

struct poison *poison_new(const struct exec_run *run);
void poison_free(struct poison *poison);

/* Poisons all memory that is not bound; called before each step. */
void poison_begin_step(struct exec_run *run);

/* Both return false if the run has failed. poison_check_reads(), before an op that does its work, fails the run if the
 * op would read an element that nothing has written. poison_check_and_record_writes(), after it, fails the run if the
 * op has left an element unwritten that it should write, and records its results as written. */
bool poison_check_reads(struct exec_run *run, const struct call *call);
bool poison_check_and_record_writes(struct exec_run *run, const struct call *call);

#endif
