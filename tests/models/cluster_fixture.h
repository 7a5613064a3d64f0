/* tests/models/cluster_fixture.h: loads a cluster, and removes from messages what depends on the folder of the source
 * tree. Included by test files only. */
#ifndef TESTS_MODELS_CLUSTER_FIXTURE_H
#define TESTS_MODELS_CLUSTER_FIXTURE_H

#include "models/cluster.h"
#include "models/presets.h"
#include "tests/check.h"

#include <ctype.h>
#include <string.h>

struct cluster_fixture {
    struct arena arena;
    struct diag diag;
    struct cluster cluster;
};

static inline void cluster_fixture_release(struct cluster_fixture *f)
{
    diag_release(&f->diag);
    arena_release(&f->arena);
}

/* Returns the messages with the folder of presets written as PRESETS and line numbers in presets as #, since
 * the folder depends on the machine and lines of a preset may move. */
static inline const char *cluster_fixture_messages(struct cluster_fixture *f)
{
    const char *folder = presets_folder(&f->arena, "clusters");
    struct text out = {0};
    for (const char *c = f->diag.text ? f->diag.text : ""; *c;) {
        if (strncmp(c, folder, strlen(folder)) != 0) {
            text_putc(&out, *c++);
            continue;
        }
        text_puts(&out, "PRESETS");
        for (c += strlen(folder); *c && *c != ':'; c++)
            text_putc(&out, *c);
        if (c[0] == ':' && isdigit((unsigned char)c[1])) {
            text_puts(&out, ":#");
            c++;
            while (isdigit((unsigned char)*c))
                c++;
        }
    }
    const char *kept = arena_text(&f->arena, out.data ? out.data : "", out.size);
    text_release(&out);
    return kept;
}

/* Loads the cluster that `line` names or describes. Returns false, and fails a check, if there is any message. */
static inline bool cluster_fixture_load(struct cluster_fixture *f, const char *line)
{
    enum status status = cluster_load(&f->cluster, &f->arena, line, &f->diag);
    return CHECK_TEXT(line, f->diag.text ? f->diag.text : "", "") &&
           CHECK_INT(line, status, STATUS_OK);
}

#endif
