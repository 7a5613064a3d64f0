/* base/text_read.c: reads whole files for base/text.h, and unpacks them. */
#include "base/digest.h"
#include "base/gunzip.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t FILE_LIMIT = UINT64_C(1) << 32;

static const char *system_error_text(void)
{
    return strerror(errno);
}

static enum status report_too_large(uint64_t limit, struct loc at, struct diag *diag)
{
    bool gibi = limit >> 30 > 0;
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "the file is larger than %llu %s, the most that is read",
                      (unsigned long long)(limit >> (gibi ? 30 : 20)), gibi ? "GiB" : "MiB");
}

static enum status read_all(struct text *text, int file, uint64_t limit, struct loc at,
                            struct diag *diag)
{
    for (;;) {
        text_reserve(text, 1 << 16);
        size_t room = text->capacity - text->size - 1;
        ssize_t got = read(file, text->data + text->size, room < SSIZE_MAX ? room : SSIZE_MAX);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_error(diag, at, STATUS_SYSTEM, "cannot read: %s", system_error_text());
        if (got == 0)
            break;
        text->size += (size_t)got;
        if (text->size > limit)
            return report_too_large(limit, at, diag);
    }
    text->data[text->size] = '\0';
    return STATUS_OK;
}

/* Drops the mark that some editors write before UTF-8. */
static void drop_byte_order_mark(struct text *text)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t size = sizeof mark - 1;
    if (text->size < size || memcmp(text->data, mark, size) != 0)
        return;
    text->size -= size;
    memmove(text->data, text->data + size, text->size + 1);
}

static uint64_t *watched; /* the digest of text_add_files_read_to_digest(); NULL: there is none */

void text_add_files_read_to_digest(uint64_t *digest)
{
    watched = digest;
}

enum status text_read_with_byte_limit(struct text *text, const char *path, uint64_t limit,
                                      struct diag *diag)
{
    bool standard = strcmp(path, "-") == 0;
    struct loc at = {.name = standard ? "standard input" : path};
    text_release(text);
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot open: %s", system_error_text());
    enum status status = STATUS_OK;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uint64_t)info.st_size > limit) {
            status = report_too_large(limit, at, diag);
            goto out;
        }
        text_reserve(text, (size_t)info.st_size + (1 << 16)); /* so that it grows only once */
    }
    status = read_all(text, file, limit, at, diag);
    if (status == STATUS_OK && gunzip_is_packed(text))
        status = gunzip(text, (size_t)limit, at, diag);
    if (status == STATUS_OK)
        drop_byte_order_mark(text);
    if (status == STATUS_OK && watched != NULL) {
        *watched = digest_add(*watched, &text->size, sizeof text->size);
        *watched = digest_add(*watched, text->data, text->size);
    }
out:
    if (!standard)
        close(file);
    if (status != STATUS_OK)
        text_release(text);
    return status;
}

enum status text_read(struct text *text, const char *path, struct diag *diag)
{
    return text_read_with_byte_limit(text, path, FILE_LIMIT, diag);
}
