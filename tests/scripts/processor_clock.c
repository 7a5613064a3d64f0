/* tests/scripts/processor_clock.c: a clock of processor time, for recordings on a machine that does other work as
 * well. Loaded into a process by LD_PRELOAD, it makes CLOCK_REALTIME, CLOCK_MONOTONIC and the time stamp counter
 * (the PyTorch profiler stamps its events by these) count the nanoseconds that the process has run on a processor.
 * Time that other programs take is then in no event. If PROCESSOR_CLOCK_RANKS ranks are threads of the process and
 * do equal work, the clock is the processor time of one of them. The first two clocks are an hour ahead of the real
 * time, so that waits until one of their times do not end early. Reading the counter is made a fault (prctl
 * PR_SET_TSC), which the handler answers. It is for Linux on x86-64.
 *
 *     cc -O2 -shared -fPIC -o processor_clock.so processor_clock.c
 *     env LD_PRELOAD=./processor_clock.so python3 ...       (this process must not exec another program)
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CLOCK_LEAD_NS ((int64_t)3600 * 1000000000)

static int64_t base_ns;   /* ns since the epoch at processor time 0 */
static int64_t ranks = 1; /* threads that do the same work */

static int64_t processor_time_ns(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec) / ranks;
}

/* Answers rdtsc (0f 31) and rdtscp (0f 01 f9), whose execution faults, with the clock; other faults end the
 * program. */
static void answer_clock_instruction(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)r[REG_RIP];
    int size = 0;
    (void)info;
    if (code[0] == 0x0f && code[1] == 0x31)
        size = 2;
    else if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9)
        size = 3;
    if (size == 0) { /* a fault of the program's own */
        signal(number, SIG_DFL);
        return;
    }
    uint64_t now = (uint64_t)processor_time_ns();
    r[REG_RAX] = (greg_t)(now & 0xffffffff);
    r[REG_RDX] = (greg_t)(now >> 32);
    if (size == 3)
        r[REG_RCX] = 0;
    r[REG_RIP] += size;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, t);
    int64_t now = base_ns + processor_time_ns();
    t->tv_sec = now / 1000000000;
    t->tv_nsec = now % 1000000000;
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    struct timespec t;
    struct sigaction action = {.sa_sigaction = answer_clock_instruction,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    if (getenv("PROCESSOR_CLOCK_RANKS") != NULL)
        ranks = strtol(getenv("PROCESSOR_CLOCK_RANKS"), NULL, 10);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    base_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + CLOCK_LEAD_NS;
    sigaction(SIGSEGV, &action, NULL);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
