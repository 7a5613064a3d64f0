/* base/interrupt.h: catches SIGINT and SIGTERM, so that long work can keep its results so far before it
 * ends. */
#ifndef BASE_INTERRUPT_H
#define BASE_INTERRUPT_H

#include <signal.h>

/* The handlers of SIGINT and SIGTERM that were installed before interrupt_catch(). */
struct interrupt {
    struct sigaction old_actions[2];
};

/* Until interrupt_release(), the first SIGINT and the first SIGTERM are only noted, and waiting system calls
 * return early; a second one of the same kind ends the program. */
void interrupt_catch(struct interrupt *interrupt);
void interrupt_release(const struct interrupt *interrupt);

/* interrupt_take_caught_signal() forgets the signal that came and returns it (0: none did);
 * interrupt_put_back_caught_signal() notes it again. Between the two calls, work that stops early after a signal runs
 * to its end, so that the results so far can be completed. Call both after interrupt_release(), so that another signal
 * ends the program. */
int interrupt_take_caught_signal(void);
void interrupt_put_back_caught_signal(int number);

/* interrupt_caught_signal_number() returns the last signal that came (0: none did), interrupt_describe_signal() its
 * name for messages: "an interrupt" or "a request to end". */
int interrupt_caught_signal_number(void);
const char *interrupt_describe_signal(void);

#endif
