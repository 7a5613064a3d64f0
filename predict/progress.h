/* predict/progress.h: how far a long search is, told to whoever wants to show it. Nothing here prints; without a
 * watcher nothing is told. */
#ifndef PREDICT_PROGRESS_H
#define PREDICT_PROGRESS_H

#include <stddef.h>

struct progress {
    size_t total, first;
    size_t base; /* done before the jobs of workers_run() */
};

/* What is called at the beginning, at each step and at the end of a search. A search begins after another has
 * ended, so that a watcher may keep what belongs to one. note is "" or a few words. */
struct progress_watcher {
    void (*begin)(const struct progress *progress);
    void (*update)(const struct progress *progress, size_t done, const char *note);
    void (*end)(void);
};

/* Every search of this process from now on tells *watcher, which must outlive them. NULL: none is told. */
void progress_watch(const struct progress_watcher *watcher);

/* done: what an earlier run has done already, which says nothing about the speed. */
void progress_begin(struct progress *progress, size_t total, size_t done);
void progress_update(const struct progress *progress, size_t done, const char *note);
void progress_end(void);

#endif
