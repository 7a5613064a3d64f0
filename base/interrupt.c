#define _XOPEN_SOURCE 700 /* SA_RESETHAND */
#include "base/interrupt.h"

#include "base/arena.h"

#include <stddef.h>

static const int caught_signals[] = {SIGINT, SIGTERM};
/* the last signal that came; 0: none did, or it was cleared */
static volatile sig_atomic_t caught_signal;

static void record_caught_signal(int number)
{
    caught_signal = number;
}

/* The handlers lack SA_RESTART, so that a signal ends waiting system calls. They have SA_RESETHAND, so that a second
 * signal of the same kind ends the program at once. */
void interrupt_catch(struct interrupt *interrupt)
{
    struct sigaction action = {.sa_handler = record_caught_signal, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(caught_signals); i++)
        sigaction(caught_signals[i], &action, &interrupt->old_actions[i]);
}

void interrupt_release(const struct interrupt *interrupt)
{
    for (size_t i = 0; i < ARRAY_LEN(caught_signals); i++)
        sigaction(caught_signals[i], &interrupt->old_actions[i], NULL);
}

int interrupt_take_caught_signal(void)
{
    int number = caught_signal;
    caught_signal = 0;
    return number;
}

void interrupt_put_back_caught_signal(int number)
{
    if (number != 0)
        caught_signal = number;
}

int interrupt_caught_signal_number(void)
{
    return caught_signal;
}

const char *interrupt_describe_signal(void)
{
    return caught_signal == SIGINT ? "an interrupt" : "a request to end";
}
