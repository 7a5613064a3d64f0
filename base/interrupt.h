/* base/interrupt.h: long work that keeps what it has when somebody interrupts it (SIGINT) or asks it
 * to end (SIGTERM). */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include <signal.h>

/* The signal handlers that were installed before. */
struct interrupt {
    struct sigaction before[2];
};

/* Until interrupt_release(), the first SIGINT and the first SIGTERM are only noted, and waiting system calls
 * return early; a second one of the same kind ends the program. */
void interrupt_catch(struct interrupt *interrupt);
void interrupt_release(const struct interrupt *interrupt);

/* The signal that came, and what it is in messages; 0: none. */
int interrupted(void);
const char *interrupt_name(void);

#endif
