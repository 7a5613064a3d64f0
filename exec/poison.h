/* exec/poison.h: checks that every element is written before it is read.
 *
 * At the begin of a step the memory outside of bound buffers is filled with NaNs, the poison. A shadow array records,
 * for every two bytes of an arena, which buffer was written there last. An op fails if it reads an element that its
 * buffer has not written, or over which another buffer has been written since. To find elements that an op leaves out,
 * the results that it must write as a whole are poisoned before it runs. Bound buffers count as written before op 0.
 * The check works on backends whose kernels run on the host, in memory that the host can address. */
#ifndef EXEC_POISON_H
#define EXEC_POISON_H

#include "exec/run.h"

struct poison;

struct poison *poison_new(const struct exec_run *run);
void poison_free(struct poison *poison);

/* Poisons all memory that belongs to no bound buffer, and forgets what was written; called before each step. */
void poison_begin_step(struct exec_run *run);

/* Both return false after they have failed the run. poison_check_reads(), called before an op that does its work, fails
 * if the op would read an element that its buffer has not written, or over which another buffer has been written; else
 * it poisons the results that the op must write as a whole. poison_check_and_record_writes(), called after the op,
 * fails if such a result still has poison, and records the results as written. */
bool poison_check_reads(struct exec_run *run, const struct call *call);
bool poison_check_and_record_writes(struct exec_run *run, const struct call *call);

#endif
