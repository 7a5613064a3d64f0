#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30 };

#define EVERY_S 0.1

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(struct progress *p, size_t total, size_t done)
{
    *p = (struct progress){
        .shown = isatty(STDERR_FILENO) == 1, .total = total, .first = done, .began_s = now_s()};
}

/* "1:02:03" or "2:03" */
static void put_duration(char *buffer, size_t size, double seconds)
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(buffer, size, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buffer, size, "%ld:%02ld", whole / 60, whole % 60);
}

void progress_update(struct progress *p, size_t done, const char *note)
{
    double now = now_s(), spent = now - p->began_s;
    if (!p->shown || now - p->printed_s < EVERY_S || p->total == 0)
        return;
    p->printed_s = now;
    char bar[BAR + 1], left[32] = "?";
    size_t filled = done * BAR / p->total;
    memset(bar, '.', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    double rate = done > p->first ? (double)(done - p->first) / spent : 0;
    if (rate > 0)
        put_duration(left, sizeof left, (double)(p->total - done) / rate);
    fprintf(stderr, "\r[%s] %zu/%zu, %.3g/s, %s left%s%s\033[K", bar, done, p->total, rate, left,
            note[0] == '\0' ? "" : ", ", note);
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown && p->printed_s > 0) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->shown = false;
}
