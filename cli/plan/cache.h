/* cli/plan/cache.h: the file in which a plan keeps what it found out about each configuration: DIR.cache, beside the
 * folder DIR of -o (docs/planning.md). A later plan, or the same one after an interrupt, does not predict these
 * configurations again.
 *
 * The file never changes an answer: it holds what the same step of a search found with the same program, options
 * and files. Where the file cannot be used, a note says why and the plan goes on without it.
 *
 * The folder cli/plan/ prints the results of `plan`, and keeps what it found out. */
#ifndef CLI_PLAN_CACHE_H
#define CLI_PLAN_CACHE_H

#include "cli/common/options.h"
#include "predict/kept_jobs.h"

struct plan_cache {
    struct answer_file file;
    struct text path;            /* empty: there is no -o, and nothing is kept */
    struct diag unusable_reason; /* why the file cannot be used, or cannot be used any more */
};

/* Opens the file that belongs to the options, and returns what a search needs to use it. The result is all-zero without
 * -o, or if the build of the program cannot be identified. files: the digest of the input files, from
 * text_add_files_read_to_digest(). own: the set of options that only `plan` has; each result is kept under those of
 * them on which it depends. The cache must outlive what is returned. */
struct kept_jobs plan_cache_open(struct plan_cache *cache, const struct options *options,
                                 const struct option_set *own, uint64_t files);

/* Prints notes about the file, and closes it. */
void plan_cache_close(struct plan_cache *cache);

#endif
