/* cli/interrupt.h: commands that keep what they have when somebody interrupts them (SIGINT) or asks
 * them to end (SIGTERM). */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include "base/diag.h"

#include <signal.h>

/* What was done with the signals before. */
struct interrupt {
    struct sigaction before[2];
};

/* From now on until interrupt_release() the first of each is noted, and calls of the system that wait end
 * early; the second ends the program. */
void interrupt_catch(struct interrupt *interrupt);
void interrupt_release(const struct interrupt *interrupt);

/* The signal that came, and what it is in messages; 0: none. */
int interrupted(void);
const char *interrupt_name(void);

/* To be called last: when a signal came and *diag says so, prints that and ends the program by the
 * signal, so that the shell which started it sees what ended it. */
void interrupt_end(const struct diag *diag);

#endif
