#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/plan/cache.h"

#include "base/digest.h"
#include "cli/common/output.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* These options differ between the configurations of a search, so each result is kept under a key that contains
 * them. They are left out of the digest of the question: plans that differ only in them share results. */
static const char *const of_configurations[] = {"strategy", "seq", "batch", "nodes", "gpus"};

/* Continues the digest `files` with the options that were given, and returns it. Left out are
 * of_configurations[] and `own`, the set of options that only `plan` has. */
static uint64_t add_options_to_digest(const struct options *options, const struct option_set *own,
                                      uint64_t files)
{
    enum { NAMES_MAX = 64 };
    const char *left_out_options[NAMES_MAX];
    struct text words = {0};
    size_t count = 0;
    for (size_t i = 0; i < own->option_count && count < NAMES_MAX; i++)
        left_out_options[count++] = own->option[i].name;
    for (size_t i = 0; i < ARRAY_LEN(of_configurations) && count < NAMES_MAX; i++)
        left_out_options[count++] = of_configurations[i];
    assert(count < NAMES_MAX);
    left_out_options[count] = NULL;
    options_put_command(&words, options, left_out_options);
    uint64_t question_digest = digest_add(files, words.data, words.size);
    text_release(&words);
    return question_digest;
}

/* Sets *path to "DIR.cache", without slashes at the end of DIR. If DIR does not end in a name, as in "..", its
 * absolute path is taken. */
static void set_cache_path(struct text *path, const char *folder)
{
    const char *name = strrchr(folder, '/');
    size_t size = strlen(folder);
    name = name == NULL ? folder : name + 1;
    char *real = strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0
                     ? realpath(folder, NULL)
                     : NULL;
    if (real != NULL) {
        folder = real;
        size = strlen(folder);
    }
    while (size > 1 && folder[size - 1] == '/')
        size--;
    text_append(path, folder, size);
    text_puts(path, ".cache");
    free(real);
}

struct kept_jobs plan_cache_open(struct plan_cache *cache, const struct options *options,
                                 const struct option_set *own, uint64_t files)
{
    struct text build = {0};
    *cache = (struct plan_cache){0};
    if (!is_option_given(options, "o"))
        return (struct kept_jobs){0};
    set_cache_path(&cache->path, options_text(options, "o"));
    if (command_put_build_id(&build, &cache->unusable_reason) != STATUS_OK)
        return (struct kept_jobs){0};
    answer_file_open(&cache->file, cache->path.data, "# longhaul plan cache", build.data,
                     &cache->unusable_reason);
    text_release(&build);
    return (struct kept_jobs){.answer_file = &cache->file,
                              .question_digest = add_options_to_digest(options, own, files),
                              .write_error = &cache->unusable_reason};
}

void plan_cache_close(struct plan_cache *cache)
{
    static const char error[] = "error: ";
    const struct loc at = {.name = cache->path.data};
    const char *why =
        cache->unusable_reason.text == NULL ? NULL : strstr(cache->unusable_reason.text, error);
    struct diag note = {0};
    const size_t reused = answer_file_reused_count(&cache->file);
    if (reused > 0)
        diag_note(&note, at, "has %zu of the search's results, of earlier plans", reused);
    if (why != NULL) {
        why += sizeof error - 1;
        diag_note(&note, at, "%.*s; this plan went on without it", (int)strcspn(why, "\n"), why);
    }
    command_print_notes(&note);
    diag_release(&note);
    diag_release(&cache->unusable_reason);
    answer_file_release(&cache->file);
    text_release(&cache->path);
}
