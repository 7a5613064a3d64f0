#include "predict/progress.h"

static const struct progress_watcher *watcher;

void progress_set_watcher(const struct progress_watcher *new_watcher)
{
    watcher = new_watcher;
}

void progress_begin(struct progress *progress, size_t total, size_t done)
{
    *progress = (struct progress){.job_count = total, .resumed_count = done};
    if (watcher != NULL)
        watcher->begin(progress);
}

void progress_update(const struct progress *progress, size_t done, const char *note)
{
    if (watcher != NULL)
        watcher->update(progress, done, note);
}

void progress_end(void)
{
    if (watcher != NULL)
        watcher->end();
}
