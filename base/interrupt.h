/* base/interrupt.h: long work that keeps what it has when somebody interrupts it (SIGINT) or asks it
 * to end (SIGTERM). */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

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

#endif
