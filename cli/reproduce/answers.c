#include "cli/reproduce/answers.h"

#include "base/digest.h"
#include "cli/common/output.h"

#include <string.h>

static uint64_t digest_of_key(const char *key)
{
    return digest_add(DIGEST_OF_NO_BYTES, key, strlen(key));
}

enum status answers_open(struct answers *answers, const char *path, struct reproduction *r,
                         struct diag *diag)
{
    struct text build = {0};
    *answers = (struct answers){0};
    enum status status = command_put_build_id(&build, diag);
    if (status == STATUS_OK)
        status = answer_file_open(&answers->file, path, "# longhaul reproduce answers", build.data,
                                  diag);
    for (size_t j = 0; status == STATUS_OK && j < r->job_count; j++) {
        unsigned char bytes[REPRODUCTION_ANSWER_MAX] = {0};
        if (r->job[j].kind == JOB_TRACE ||
            !answer_file_find(&answers->file, digest_of_key(r->job[j].key), bytes,
                              reproduction_answer_size(r, j)))
            continue;
        answers->resumed_count += r->job[j].is_wanted && !r->job[j].is_done;
        reproduction_store_answer(r, j, bytes);
    }
    text_release(&build);
    return status;
}

enum status answers_append_to_file(struct answers *answers, const struct reproduction *r,
                                   size_t job, const void *answer, struct diag *diag)
{
    return answer_file_add(&answers->file, digest_of_key(r->job[job].key), answer,
                           reproduction_answer_size(r, job), diag);
}

void answers_release(struct answers *answers)
{
    answer_file_release(&answers->file);
    *answers = (struct answers){0};
}
