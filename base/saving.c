#define _GNU_SOURCE /* O_TMPFILE, realpath() */
#include "base/saving.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that is on its way. */
struct saving_file {
    char *shown;           /* its path, for messages */
    char *path;            /* what it becomes; of links the file behind; NULL: written directly */
    struct text temporary; /* its hidden name; empty: it has none */
    int nameless;          /* descriptor; -1: it has a name */
    const char *data;      /* of one that is written directly; the caller's, or kept.data */
    size_t size;
    struct text kept;
};

static enum status cannot_write(struct diag *diag, const char *path)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot write: %s",
                      strerror(errno));
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(heap_alloc(size, 1), text, size);
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

/* ---- written directly ---- */

static enum status save_directly(const struct saving_file *f, struct diag *diag)
{
    if (strcmp(f->shown, "-") == 0) {
        /* What the program printed before comes first. */
        if (fflush(stdout) != 0 || !write_all(STDOUT_FILENO, f->data, f->size))
            return cannot_write(diag, "standard output");
        return STATUS_OK;
    }
    int file = open(f->shown, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return cannot_write(diag, f->shown);
    enum status status =
        write_all(file, f->data, f->size) ? STATUS_OK : cannot_write(diag, f->shown);
    if (close(file) != 0 && status == STATUS_OK)
        status = cannot_write(diag, f->shown);
    return status;
}

/* ---- names ---- */

/* Signals that end a program wait while there are hidden names, but not for those who read a pipe or
 * a terminal in their own time. */
static void hold_signals(struct saving *s)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t held;
    if (s->held || s->direct)
        return;
    sigemptyset(&held);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        sigaddset(&held, ending[i]);
    s->held = sigprocmask(SIG_BLOCK, &held, &s->before) == 0;
}

/* The folder that a path lies in, with its slash; "" here. */
static void put_parent(struct text *out, const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    text_append(out, path, size);
}

/* Tries names beside path that nobody else uses, which are short and not made from path's, so that
 * they fit where path fits, until one can be made. Returns what make() does, -1 at last. */
static int with_hidden_name(struct saving *s, const char *path, struct text *name,
                            int (*make)(const char *name, const void *context), const void *context)
{
    struct text parent = {0};
    int made = -1;
    put_parent(&parent, path);
    for (int others = 0; others < 1000; others++) { /* left by a program of this number */
        name->size = 0;
        text_printf(name, "%s.longhaul-%ld-%u.tmp", parent.data, (long)getpid(), s->hidden++);
        made = make(name->data, context);
        if (made >= 0 || errno != EEXIST)
            break;
    }
    int error = errno;
    text_release(&parent);
    if (made < 0)
        text_release(name);
    errno = error;
    return made;
}

static int make_folder(const char *name, const void *context)
{
    (void)context;
    return mkdir(name, 0777);
}

static int make_file(const char *name, const void *context)
{
    (void)context;
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Gives the file of a descriptor a name. */
static int make_link(const char *name, const void *context)
{
    char open_file[64];
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", *(const int *)context);
    return linkat(AT_FDCWD, open_file, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* What becomes the folder. */
static enum status make_hidden_folder(struct saving *s, struct diag *diag)
{
    if (s->made.size > 0)
        return STATUS_OK;
    hold_signals(s);
    if (with_hidden_name(s, s->folder, &s->made, make_folder, NULL) == 0)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                      "cannot make the folder: %s", strerror(errno));
}

/* In the hidden folder a file has its own name already. */
static void put_name_in_folder(const struct saving *s, struct saving_file *f)
{
    text_printf(&f->temporary, "%s/%s", s->made.data, strrchr(f->path, '/') + 1);
}

/* ---- contents ---- */

/* A descriptor where the file is to be; -1: none can be made, or could not be given a name later. */
static int open_nameless(const struct saving *s, const struct saving_file *f)
{
    struct text folder = {0}, proc = {0};
    if (s->nameless >= SAVING_NAMELESS_MAX)
        return -1;
    put_parent(&folder, s->fresh ? s->folder : f->path);
    int file = open(folder.size > 0 ? folder.data : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    text_printf(&proc, "/proc/self/fd/%d", file);
    struct stat info;
    if (file >= 0 && stat(proc.data, &info) != 0) {
        close(file);
        file = -1;
    }
    text_release(&folder);
    text_release(&proc);
    return file;
}

static enum status open_hidden(struct saving *s, struct saving_file *f, int *file,
                               struct diag *diag)
{
    hold_signals(s);
    if (s->fresh) {
        enum status status = make_hidden_folder(s, diag);
        if (status != STATUS_OK)
            return status;
        put_name_in_folder(s, f);
        *file = make_file(f->temporary.data, NULL);
        if (*file < 0)
            text_release(&f->temporary);
    } else {
        *file = with_hidden_name(s, f->path, &f->temporary, make_file, NULL);
    }
    return *file >= 0 ? STATUS_OK : cannot_write(diag, f->shown);
}

/* old is NULL where there is no file of that name yet. */
static enum status open_contents(struct saving *s, struct saving_file *f, const struct stat *old,
                                 struct diag *diag)
{
    enum status status = STATUS_OK;
    s->file_open = f->nameless = open_nameless(s, f);
    if (f->nameless >= 0)
        s->nameless++;
    else
        status = open_hidden(s, f, &s->file_open, diag);
    s->is_open = status == STATUS_OK;
    /* The owner and group of the old file may not be ours to give; its mode is. */
    if (s->is_open && old && fchmod(s->file_open, old->st_mode & 07777) != 0)
        status = cannot_write(diag, f->shown);
    return status;
}

/* To the file that is open. What fails is remembered till it is closed. */
static void put(struct saving *s, const char *data, size_t size)
{
    if (s->error == 0 && !write_all(s->file_open, data, size))
        s->error = errno;
}

static enum status close_contents(struct saving *s, struct diag *diag)
{
    const struct saving_file *f = &s->file[s->count - 1];
    if (s->error == 0 && fsync(s->file_open) != 0 && errno != EINVAL)
        s->error = errno;
    if (f->nameless < 0 && close(s->file_open) != 0 && s->error == 0)
        s->error = errno;
    s->is_open = false;
    errno = s->error;
    s->error = 0;
    return errno == 0 ? STATUS_OK : cannot_write(diag, f->shown);
}

enum status saving_begin(struct saving *s, struct diag *diag)
{
    struct stat info;
    if (s->folder == NULL)
        return STATUS_OK;
    if (stat(s->folder, &info) == 0 ? !S_ISDIR(info.st_mode) : lstat(s->folder, &info) == 0)
        return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                          "is no folder; a new name, or that of a folder, would do");
    s->fresh = stat(s->folder, &info) != 0;
    return STATUS_OK;
}

/* Finds out what stands at the path, *old, and what is to be replaced, f->path. */
static enum status look(const struct saving *s, struct saving_file *f, struct stat *old,
                        bool *exists, struct diag *diag)
{
    struct stat link;
    *exists = !s->fresh && stat(f->shown, old) == 0;
    if (!*exists && !s->fresh && errno != ENOENT)
        return cannot_write(diag, f->shown);
    if (!*exists && !s->fresh && lstat(f->shown, &link) == 0)
        return diag_error(diag, (struct loc){.name = f->shown}, STATUS_SYSTEM,
                          "cannot write: a symbolic link to nothing");
    if (*exists && S_ISDIR(old->st_mode)) {
        errno = EISDIR;
        return cannot_write(diag, f->shown);
    }
    if (*exists && !S_ISREG(old->st_mode))
        return STATUS_OK;
    /* rename() asks only for the folder; a file marked read-only is to stay. */
    if (*exists && access(f->shown, W_OK) != 0)
        return cannot_write(diag, f->shown);
    /* A link stays a link: the file behind it is replaced. */
    f->path = *exists ? realpath(f->shown, NULL) : copy(f->shown);
    return f->path != NULL ? STATUS_OK : cannot_write(diag, f->shown);
}

/* One more file, open for its contents unless it is written directly. */
static enum status begin_file(struct saving *s, const char *path, struct diag *diag)
{
    if (s->count == s->capacity) {
        s->capacity = heap_next_capacity(s->capacity, s->count + 1);
        s->file = heap_realloc(s->file, s->capacity, sizeof *s->file);
    }
    struct saving_file *f = &s->file[s->count++];
    *f = (struct saving_file){.nameless = -1};
    struct text shown = {0};
    text_printf(&shown, s->folder != NULL ? "%s/%s" : "%s%s", s->folder != NULL ? s->folder : "",
                path);
    f->shown = shown.data;
    struct stat old;
    bool exists = false;
    if (strcmp(f->shown, "-") == 0) {
        s->direct = true;
        return STATUS_OK;
    }
    enum status status = look(s, f, &old, &exists, diag);
    s->direct |= status == STATUS_OK && f->path == NULL;
    if (status == STATUS_OK && f->path != NULL)
        status = open_contents(s, f, exists ? &old : NULL, diag);
    return status;
}

/* Of a file that is written directly the data is borrowed until saving_end(). */
static enum status add_borrowed(struct saving *s, const char *path, const char *data, size_t size,
                                struct diag *diag)
{
    enum status status = begin_file(s, path, diag);
    if (status != STATUS_OK)
        return status;
    s->file[s->count - 1].data = data;
    s->file[s->count - 1].size = size;
    if (s->is_open) {
        put(s, data, size);
        status = close_contents(s, diag);
    }
    return status;
}

static void pass_on(struct text *out)
{
    struct saving *s = out->sink;
    if (s->is_open)
        put(s, out->data, out->size);
    else
        text_append(&s->file[s->count - 1].kept, out->data, out->size);
    out->size = 0;
}

enum status saving_open(struct saving *s, const char *path, struct text *out, struct diag *diag)
{
    enum status status = begin_file(s, path, diag);
    if (status == STATUS_OK)
        *out = (struct text){.pass_on = pass_on, .sink = s};
    return status;
}

enum status saving_close(struct saving *s, struct text *out, struct diag *diag)
{
    struct saving_file *f = &s->file[s->count - 1];
    if (out->size > 0)
        pass_on(out);
    text_release(out);
    f->data = f->kept.data;
    f->size = f->kept.size;
    return s->is_open ? close_contents(s, diag) : STATUS_OK;
}

enum status saving_add(struct saving *s, const char *path, const char *data, size_t size,
                       struct diag *diag)
{
    struct text out;
    enum status status = saving_open(s, path, &out, diag);
    if (status != STATUS_OK)
        return status;
    text_append(&out, data, size);
    return saving_close(s, &out, diag);
}

/* ---- all at once ---- */

/* Gives every file a hidden name, which may fail for want of room. */
static enum status name_all(struct saving *s, struct diag *diag)
{
    enum status status = s->fresh ? make_hidden_folder(s, diag) : STATUS_OK;
    for (size_t i = 0; i < s->count && status == STATUS_OK; i++) {
        struct saving_file *f = &s->file[i];
        int linked = 0;
        if (f->nameless < 0)
            continue;
        if (s->fresh) {
            put_name_in_folder(s, f);
            linked = make_link(f->temporary.data, &f->nameless);
            if (linked != 0)
                text_release(&f->temporary);
        } else {
            linked = with_hidden_name(s, f->path, &f->temporary, make_link, &f->nameless);
        }
        if (linked != 0)
            status = cannot_write(diag, f->shown);
    }
    return status;
}

/* Makes new names in the folder of path themselves survive a crash. Some file systems cannot; the data
 * is safe either way, so that is no fault. */
static void sync_folder_of(const char *path)
{
    struct text folder = {0};
    put_parent(&folder, path);
    int file = open(folder.size > 0 ? folder.data : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (file >= 0) {
        (void)fsync(file);
        close(file);
    }
    text_release(&folder);
}

static bool same_folder(const char *a, const char *b)
{
    struct text of_a = {0}, of_b = {0};
    put_parent(&of_a, a);
    put_parent(&of_b, b);
    bool same = of_a.size == of_b.size && memcmp(of_a.data, of_b.data, of_a.size) == 0;
    text_release(&of_a);
    text_release(&of_b);
    return same;
}

/* The folder, which is new, with all its files. */
static enum status show_folder(struct saving *s, struct diag *diag)
{
    sync_folder_of(s->count > 0 ? s->file[0].temporary.data : s->made.data);
    if (rename(s->made.data, s->folder) != 0)
        return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                          "cannot make the folder: %s", strerror(errno));
    sync_folder_of(s->folder);
    for (size_t i = 0; i < s->count; i++)
        text_release(&s->file[i].temporary);
    text_release(&s->made);
    return STATUS_OK;
}

/* Takes away what is replaced last, which says of a folder that all of it is of one run. */
static enum status break_seal(const struct saving *s, struct diag *diag)
{
    const struct saving_file *seal =
        s->folder != NULL && s->count > 1 ? &s->file[s->count - 1] : NULL;
    if (seal == NULL || seal->path == NULL)
        return STATUS_OK;
    if (unlink(seal->path) != 0 && errno != ENOENT)
        return cannot_write(diag, seal->shown);
    sync_folder_of(seal->path);
    return STATUS_OK;
}

static enum status show_files(struct saving *s, struct diag *diag)
{
    const char *last = NULL;
    enum status status = break_seal(s, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < s->count; i++) {
        struct saving_file *f = &s->file[i];
        if (f->path == NULL)
            continue;
        if (rename(f->temporary.data, f->path) != 0)
            return cannot_write(diag, f->shown);
        text_release(&f->temporary);
    }
    for (size_t i = 0; i < s->count; i++) {
        const char *path = s->file[i].path;
        if (path != NULL && (last == NULL || !same_folder(path, last)))
            sync_folder_of(last = path);
    }
    return STATUS_OK;
}

enum status saving_end(struct saving *s, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < s->count && status == STATUS_OK;
         i++) /* what can still fail comes first */
        if (s->file[i].path == NULL)
            status = save_directly(&s->file[i], diag);
    s->direct = false;
    hold_signals(s);
    if (status == STATUS_OK)
        status = name_all(s, diag);
    if (status == STATUS_OK)
        status = s->fresh ? show_folder(s, diag) : show_files(s, diag);
    return status;
}

bool saving_has(const struct saving *s, const char *path)
{
    size_t before = s->folder != NULL ? strlen(s->folder) + 1 : 0;
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->file[i].shown + before, path) == 0)
            return true;
    return false;
}

void saving_release(struct saving *s)
{
    if (s->is_open && s->file[s->count - 1].nameless < 0)
        close(s->file_open);
    for (size_t i = 0; i < s->count; i++) {
        struct saving_file *f = &s->file[i];
        if (f->temporary.data != NULL)
            unlink(f->temporary.data);
        if (f->nameless >= 0)
            close(f->nameless);
        text_release(&f->temporary);
        text_release(&f->kept);
        free(f->shown);
        free(f->path);
    }
    if (s->made.data != NULL)
        rmdir(s->made.data);
    text_release(&s->made);
    free(s->file);
    if (s->held)
        sigprocmask(SIG_SETMASK, &s->before, NULL);
    *s = (struct saving){0};
}

enum status saving_write_all(const struct saving_whole *file, size_t count, struct diag *diag)
{
    struct saving saving = {0};
    enum status status = saving_begin(&saving, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = add_borrowed(&saving, file[i].path, file[i].data, file[i].size, diag);
    if (status == STATUS_OK)
        status = saving_end(&saving, diag);
    saving_release(&saving);
    return status;
}

enum status saving_write(const char *path, const char *data, size_t size, struct diag *diag)
{
    return saving_write_all(&(struct saving_whole){path, data, size}, 1, diag);
}
