#define _XOPEN_SOURCE 700 /* realpath() */
#include "base/text.h"

#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t FILE_LIMIT = UINT64_C(1) << 32;

void text_release(struct text *text)
{
    free(text->data);
    *text = (struct text){0};
}

/* Makes room for size more bytes and the NUL. */
static void reserve(struct text *text, size_t size)
{
    size_t needed = text->size + size + 1;
    if (needed > text->capacity) {
        text->capacity = heap_next_capacity(text->capacity, needed);
        text->data = heap_realloc(text->data, text->capacity, 1);
    }
}

static const char *reason(void)
{
    return strerror(errno);
}

static enum status read_all(struct text *text, int file, struct loc at, struct diag *diag)
{
    for (;;) {
        reserve(text, 1 << 16);
        size_t room = text->capacity - text->size - 1;
        ssize_t got = read(file, text->data + text->size, room < SSIZE_MAX ? room : SSIZE_MAX);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return diag_error(diag, at, STATUS_SYSTEM, "cannot read: %s", reason());
        if (got == 0)
            break;
        text->size += (size_t)got;
        if (text->size > FILE_LIMIT)
            return diag_error(diag, at, STATUS_BAD_INPUT, "larger than 4 GiB");
    }
    text->data[text->size] = '\0';
    return STATUS_OK;
}

enum status text_read(struct text *text, const char *path, struct diag *diag)
{
    bool standard = strcmp(path, "-") == 0;
    struct loc at = {.name = standard ? "standard input" : path};
    text_release(text);
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot open: %s", reason());
    enum status status = STATUS_OK;
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uint64_t)info.st_size > FILE_LIMIT) {
            status = diag_error(diag, at, STATUS_BAD_INPUT, "larger than 4 GiB");
            goto out;
        }
        reserve(text, (size_t)info.st_size + (1 << 16)); /* one growth, then the end is seen */
    }
    status = read_all(text, file, at, diag);
out:
    if (!standard)
        close(file);
    if (status != STATUS_OK)
        text_release(text);
    return status;
}

/* errno says why when it is false. */
static bool write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = write(file, data, size < SSIZE_MAX ? size : SSIZE_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        size -= (size_t)put;
    }
    return true;
}

static enum status cannot_write(struct diag *diag, const char *path)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot write: %s",
                      reason());
}

static enum status save_directly(const char *path, const char *data, size_t size, struct diag *diag)
{
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return cannot_write(diag, path);
    enum status status = write_all(file, data, size) ? STATUS_OK : cannot_write(diag, path);
    if (close(file) != 0 && status == STATUS_OK)
        status = cannot_write(diag, path);
    return status;
}

static enum status save_to_stdout(const char *data, size_t size, struct diag *diag)
{
    /* What the program printed before comes first. */
    if (fflush(stdout) != 0 || !write_all(STDOUT_FILENO, data, size))
        return cannot_write(diag, "standard output");
    return STATUS_OK;
}

/* Opens a file in path's folder whose name nobody else uses. The name is short
 * and not made from path's, so that it fits where path fits. */
static int open_temporary(const char *path, struct text *name)
{
    const char *slash = strrchr(path, '/');
    for (unsigned i = 0; i < 1000; i++) {
        name->size = 0;
        if (slash)
            text_append(name, path, (size_t)(slash - path) + 1);
        text_printf(name, ".longhaul-%ld-%u.tmp", (long)getpid(), i);
        int file = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

/* Makes the new name itself survive a crash. Some file systems cannot; the data
 * is safe either way, so that is no fault. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct text folder = {0};
    text_append(&folder, path, slash ? (size_t)(slash - path) + 1 : 0);
    int file = open(slash ? folder.data : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    text_release(&folder);
}

/* Writes data to a file beside path, which is no symbolic link. old is NULL where there is no file of
 * that name yet. *temporary is empty when it fails. */
static enum status write_beside(const char *path, const struct stat *old, const char *data,
                                size_t size, struct text *temporary, struct diag *diag)
{
    enum status status = STATUS_OK;
    int file = open_temporary(path, temporary);
    if (file < 0) {
        status = cannot_write(diag, path);
        text_release(temporary);
        return status;
    }
    /* The owner and group of the old file may not be ours to give; its mode is. */
    bool done = (!old || fchmod(file, old->st_mode & 07777) == 0) && write_all(file, data, size) &&
                (fsync(file) == 0 || errno == EINVAL);
    if (!done)
        status = cannot_write(diag, path);
    if (close(file) != 0 && status == STATUS_OK)
        status = cannot_write(diag, path);
    if (status != STATUS_OK) {
        unlink(temporary->data);
        text_release(temporary);
    }
    return status;
}

/* A file that is on its way. */
struct saving {
    const struct text_file *file;
    char *path;            /* what the temporary file becomes; NULL: written directly */
    struct text temporary; /* its name */
};

/* All that can fail for want of room or permission. */
static enum status saving_begin(struct saving *s, struct diag *diag)
{
    const struct text_file *f = s->file;
    struct stat info, link;
    if (strcmp(f->path, "-") == 0)
        return STATUS_OK;
    bool exists = stat(f->path, &info) == 0;
    if (!exists && errno != ENOENT)
        return cannot_write(diag, f->path);
    if (!exists && lstat(f->path, &link) == 0)
        return diag_error(diag, (struct loc){.name = f->path}, STATUS_SYSTEM,
                          "cannot write: a symbolic link to nothing");
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return cannot_write(diag, f->path);
    }
    if (exists && !S_ISREG(info.st_mode))
        return STATUS_OK;
    /* rename() asks only for the folder; a file marked read-only is to stay. */
    if (exists && access(f->path, W_OK) != 0)
        return cannot_write(diag, f->path);
    /* A link stays a link: the file behind it is replaced. */
    s->path = exists ? realpath(f->path, NULL) : heap_alloc(strlen(f->path) + 1, 1);
    if (s->path == NULL)
        return cannot_write(diag, f->path);
    if (!exists)
        memcpy(s->path, f->path, strlen(f->path) + 1);
    return write_beside(s->path, exists ? &info : NULL, f->data, f->size, &s->temporary, diag);
}

static enum status saving_end(struct saving *s, struct diag *diag)
{
    const struct text_file *f = s->file;
    if (strcmp(f->path, "-") == 0)
        return save_to_stdout(f->data, f->size, diag);
    if (s->path == NULL)
        return save_directly(f->path, f->data, f->size, diag);
    if (rename(s->temporary.data, s->path) != 0)
        return cannot_write(diag, f->path);
    sync_folder(s->path);
    text_release(&s->temporary);
    return STATUS_OK;
}

static void saving_release(struct saving *s)
{
    if (s->temporary.data != NULL)
        unlink(s->temporary.data);
    text_release(&s->temporary);
    free(s->path);
}

/* Standard output, a pipe or a terminal, whose reader may take its time. */
static bool is_written_directly(const char *path)
{
    struct stat info;
    return strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISREG(info.st_mode));
}

/* Signals that end a program wait while files are half done, but for nobody who reads them. */
static void hold_signals(const struct text_file *file, size_t count, sigset_t *before)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        sigaddset(&held, ending[i]);
    for (size_t i = 0; i < count; i++)
        if (is_written_directly(file[i].path))
            sigemptyset(&held);
    sigprocmask(SIG_BLOCK, &held, before);
}

enum status text_save_all(const struct text_file *file, size_t count, struct diag *diag)
{
    struct saving *saving = heap_zalloc(count, sizeof *saving);
    enum status status = STATUS_OK;
    sigset_t before;
    hold_signals(file, count, &before);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        saving[i].file = &file[i];
        status = saving_begin(&saving[i], diag);
    }
    for (int direct = 1; direct >= 0; direct--) /* what can still fail comes first */
        for (size_t i = 0; i < count && status == STATUS_OK; i++)
            if ((saving[i].path == NULL) == (direct == 1))
                status = saving_end(&saving[i], diag);
    for (size_t i = 0; i < count; i++)
        saving_release(&saving[i]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(saving);
    return status;
}

enum status text_save(const char *path, const char *data, size_t size, struct diag *diag)
{
    return text_save_all(&(struct text_file){path, data, size}, 1, diag);
}

void text_append(struct text *text, const char *data, size_t size)
{
    reserve(text, size);
    if (size != 0)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_putc(struct text *text, char c)
{
    text_append(text, &c, 1);
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    assert(size >= 0);
    reserve(text, (size_t)size);
    vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
    text->size += (size_t)size;
    va_end(again);
    va_end(args);
}

void text_put_i64(struct text *text, int64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        digits[--at] = '-';
    text_append(text, digits + at, sizeof digits - at);
}

void text_put_double(struct text *text, double value)
{
    /* Whole numbers of up to 15 digits are common and print faster as integers. */
    if (fabs(value) < 1e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value))) {
        text_put_i64(text, (int64_t)value);
        return;
    }
    /* A decimal of up to 15 digits survives the trip through a double, so %.15g
     * finds it without trailing zeros whenever there is one. */
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (precision == 17 || strtod(digits, NULL) == value)
            break;
    }
    text_puts(text, digits);
}
