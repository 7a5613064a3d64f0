/* predict/progress.h: reports how far a long search has come. Nothing here prints: a caller installs a watcher, and
 * without one nothing is reported. */
#ifndef PREDICT_PROGRESS_H
#define PREDICT_PROGRESS_H

#include <stddef.h>

struct progress {
    size_t job_count, resumed_count;
    size_t jobs_done_before_run; /* the number of jobs that were done before workers_run() */
    const char *note;            /* the note that workers_run() reports after each job; NULL: "" */
};

/* Functions that are called at the beginning, at each step and at the end of a search. Searches do not overlap, so a
 * watcher may keep the state of one. note is "" or a few words. */
struct progress_watcher {
    void (*begin)(const struct progress *progress);
    void (*update)(const struct progress *progress, size_t done, const char *note);
    void (*end)(void);
};

/* Makes every later search of this process report to *watcher, which must exist as long as they run. NULL: searches
 * report to no watcher. */
void progress_set_watcher(const struct progress_watcher *watcher);

/* Begins a search of `total` jobs. done: the number of jobs that an earlier run did already; they are not counted in
 * the speed. */
void progress_begin(struct progress *progress, size_t total, size_t done);
void progress_update(const struct progress *progress, size_t done, const char *note);
void progress_end(void);

#endif
