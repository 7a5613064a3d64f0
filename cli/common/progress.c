#define _XOPEN_SOURCE 700 /* for setitimer() */
#include "cli/common/progress.h"

#include "base/c_locale.h"
#include "cli/common/screen.h"
#include "predict/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30, BAR_LEAST = 6 };

#define PROGRESS_PERIOD_S 0.1

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The search whose progress is shown. Searches do not overlap. */
static struct {
    bool is_on_terminal; /* standard error is a terminal */
    double began_s, printed_s;
} search;

static void begin_progress_line(const struct progress *p)
{
    (void)p;
    search.is_on_terminal = isatty(STDERR_FILENO) == 1;
    search.began_s = now_s();
    search.printed_s = 0;
}

/* Writes a duration as "1:02:03" or "2:03". */
static void put_duration(char *buffer, size_t size, double seconds)
{
    long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(buffer, size, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buffer, size, "%ld:%02ld", whole / 60, whole % 60);
}

/* Writes a bar and "257/884, 87.3/s, 0:07 left" or, with a note, "257/884, 0:07 left, NOTE". Writes
 * nothing if the line before is less than PROGRESS_PERIOD_S old. The bar takes the rest of the terminal's
 * line, but at most BAR columns; if less than BAR_LEAST is left, there is no bar. A line that is
 * too long is cut off, because if it wrapped, the next update could not overwrite it. */
static void update_progress_line(const struct progress *p, size_t done, const char *note)
{
    double now = now_s(), spent = now - search.began_s;
    if (!search.is_on_terminal || now - search.printed_s < PROGRESS_PERIOD_S || p->job_count == 0)
        return;
    search.printed_s = now;
    if (done > p->job_count)
        done = p->job_count;
    char bar[BAR + 4] = "", rest[256], left[48] = "", rate_text[24] = "";
    double rate = done > p->resumed_count ? (double)(done - p->resumed_count) / spent : 0;
    if (note[0] == '\0')
        c_snprintf(rate_text, sizeof rate_text, ", %.3g/s", rate);
    if (rate > 0 && done < p->job_count) {
        put_duration(left, sizeof left - 8, (double)(p->job_count - done) / rate);
        memcpy(left + strlen(left), " left", sizeof " left");
    }
    snprintf(rest, sizeof rest, "%zu/%zu%s%s%s%s%s", done, p->job_count, rate_text,
             left[0] == '\0' ? "" : ", ", left, note[0] == '\0' ? "" : ", ", note);
    size_t width = screen_width(STDERR_FILENO) - 1, used = strlen(rest) + 3;
    size_t size = used + BAR_LEAST > width ? 0 : used + BAR > width ? width - used : BAR;
    if (size > 0) {
        size_t filled = done * size / p->job_count;
        memset(bar + 1, '.', size);
        memset(bar + 1, '#', filled);
        bar[0] = '[';
        bar[size + 1] = ']';
        bar[size + 2] = ' ';
        bar[size + 3] = '\0';
    }
    fprintf(stderr, "\r%s%.*s\033[K", bar, (int)width, rest);
    fflush(stderr);
}

static void end_progress_line(void)
{
    if (search.is_on_terminal && search.printed_s > 0) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    search.is_on_terminal = false;
}

void progress_show_on_terminal(void)
{
    static const struct progress_watcher terminal = {begin_progress_line, update_progress_line,
                                                     end_progress_line};
    progress_set_watcher(&terminal);
}

/* ---- parts of a command ---- */

enum { QUIET_S = 2, LINE = 128 };

static const char *volatile part; /* name of the part that is running; NULL: none */
static volatile sig_atomic_t part_s;
static struct sigaction alarm_before;

/* Prints a line such as "simulating, 12 s", from QUIET_S seconds on. It runs in a signal handler,
 * so it must not use stdio. */
static void print_progress_on_alarm(int number)
{
    (void)number;
    static const char end[] = " s\033[K";
    char line[LINE], digits[12];
    int error = errno;
    size_t size = 0, count = 0, name = part != NULL ? strlen(part) : 0;
    part_s++;
    if (part_s < QUIET_S || name == 0 || name > LINE - 2 * sizeof digits)
        return;
    for (int seconds = part_s; seconds > 0; seconds /= 10)
        digits[count++] = (char)('0' + seconds % 10);
    line[size++] = '\r';
    memcpy(line + size, part, name);
    size += name;
    line[size++] = ',';
    line[size++] = ' ';
    while (count > 0)
        line[size++] = digits[--count];
    memcpy(line + size, end, sizeof end - 1);
    size += sizeof end - 1;
    if (write(STDERR_FILENO, line, size) < 0)
        part = NULL;
    errno = error;
}

void progress_show_running_part_seconds(const char *what)
{
    const struct itimerval every = {{1, 0}, {1, 0}}, never = {{0, 0}, {0, 0}};
    bool began = part != NULL;
    if (what != NULL && !began && isatty(STDERR_FILENO) == 1) {
        struct sigaction action = {.sa_handler = print_progress_on_alarm, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        part_s = 0;
        part = what;
        sigaction(SIGALRM, &action, &alarm_before);
        setitimer(ITIMER_REAL, &every, NULL);
    } else if (what != NULL && began) {
        part = what;
    } else if (began) {
        setitimer(ITIMER_REAL, &never, NULL);
        sigaction(SIGALRM, &alarm_before, NULL);
        part = NULL;
        if (part_s >= QUIET_S) {
            fputs("\r\033[K", stderr);
            fflush(stderr);
        }
    }
}
