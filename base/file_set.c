#define _XOPEN_SOURCE 700 /* realpath() */
#include "base/file_set.h"

#include "base/arena.h"
#include "base/open_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the set. */
struct file_set_file {
    char *shown_path; /* the path that the caller gave, after the folder of the set; for messages */
    /* the final path: shown_path or, if that is a link, the path of the link's target. NULL: file_set_end()
     * deletes the file, or writes it directly, since it is standard output, a device or a pipe */
    char *target_path;
    char *temporary_path; /* the path of the hidden file; NULL: there is none */
    struct text contents; /* of a file that is written directly: its contents until then */
    bool is_to_delete;    /* file_set_end() deletes the file; it has no contents */
    struct file_set_file *next;
};

static enum status report_cannot_write(struct diag *diag, const char *path)
{
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM, "cannot write: %s",
                      strerror(errno));
}

/* ---- signals ---- */

/* The set whose hidden files are removed if a signal ends the program; NULL: there is none. */
static struct file_set *volatile active;
static pid_t owner; /* the process that set `active` */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static bool caught[ARRAY_LEN(ending_signals)]; /* handle_ending_signal() handles the signal */

static void remove_temporaries(const struct file_set *s)
{
    for (const struct file_set_file *f = s->first_file; f != NULL; f = f->next)
        if (f->temporary_path != NULL)
            unlink(f->temporary_path); /* after its rename there is none */
    if (s->staging_folder != NULL)
        rmdir(s->staging_folder);
    if (s->lock_path != NULL)
        unlink(s->lock_path);
}

static void handle_ending_signal(int number)
{
    /* a child process must not remove its parent's files */
    if (active != NULL && getpid() == owner)
        remove_temporaries(active);
    signal(number, SIG_DFL);
    raise(number);
}

/* Makes the set the active one: until restore_signals(), the signals of `ending_signals` remove the hidden files of the
 * set before they end the program. Signals that the program ignores or catches already are left as they are. */
static void catch_signals(struct file_set *s)
{
    if (owner != getpid()) /* a child has sets of its own */
        active = NULL;
    assert(active == NULL || active == s);
    if (active == s)
        return;
    owner = getpid();
    active = s;
    for (size_t i = 0; i < ARRAY_LEN(ending_signals); i++) {
        struct sigaction before;
        caught[i] = sigaction(ending_signals[i], NULL, &before) == 0 &&
                    before.sa_handler == SIG_DFL &&
                    sigaction(ending_signals[i],
                              &(struct sigaction){.sa_handler = handle_ending_signal}, NULL) == 0;
    }
}

static void restore_signals(const struct file_set *s)
{
    if (active != s)
        return;
    for (size_t i = 0; i < ARRAY_LEN(ending_signals); i++)
        if (caught[i])
            signal(ending_signals[i], SIG_DFL);
    active = NULL;
}

/* ---- contents ---- */

/* Appends the folder part of a path, with its slash; nothing if the path has none. */
static void append_parent_folder(struct text *out, const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size > 0 && path[size - 1] != '/')
        size--;
    text_append(out, path, size);
}

/* Returns a hidden path in the folder of `path`. Its name does not grow with that of `path`, so that it is never
 * too long for a file name. */
static char *new_temporary_path(const char *path)
{
    static unsigned tried;
    struct text name = {0};
    append_parent_folder(&name, path);
    text_printf(&name, ".longhaul-%ld-%u.tmp", (long)getpid(), tried++);
    return name.data;
}

static enum status report_cannot_make_folder(const struct file_set *s, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                      "cannot make the folder: %s", strerror(errno));
}

static enum status report_cannot_write_into_folder(const struct file_set *s, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                      "cannot write into the folder: %s", strerror(errno));
}

/* Makes the hidden folder to which file_set_end() gives its final name, unless the set has one. If a folder of that
 * hidden name exists, left by an earlier process with the same id, another name is tried. */
static enum status make_hidden_folder(struct file_set *s, struct diag *diag)
{
    if (s->staging_folder != NULL)
        return STATUS_OK;
    catch_signals(s);
    int made;
    do {
        free(s->staging_folder);
        s->staging_folder = new_temporary_path(s->folder);
        made = mkdir(s->staging_folder, 0777);
    } while (made != 0 && errno == EEXIST);
    return made == 0 ? STATUS_OK : report_cannot_make_folder(s, diag);
}

static int open_temporary(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Opens the hidden file for the contents of a file, with the mode of the file that it will replace. old: the status of
 * that file; NULL: it replaces none. */
static enum status open_temporary_for_contents(struct file_set *s, struct file_set_file *f,
                                               const struct stat *old, struct diag *diag)
{
    catch_signals(s);
    if (s->folder_does_not_exist_yet) {
        enum status status = make_hidden_folder(s, diag);
        struct text name = {0};
        text_printf(&name, "%s/%s", s->staging_folder, strrchr(f->target_path, '/') + 1);
        f->temporary_path = name.data;
        if (status != STATUS_OK)
            return status;
        s->open_fd = open_temporary(f->temporary_path);
    } else {
        do {
            free(f->temporary_path);
            f->temporary_path = new_temporary_path(f->target_path);
            s->open_fd = open_temporary(f->temporary_path);
        } while (s->open_fd < 0 && errno == EEXIST);
    }
    s->has_open_file = s->open_fd >= 0;
    /* The old file's mode is kept, but not its owner and group, which this process may lack the right to set. */
    if (!s->has_open_file || (old && fchmod(s->open_fd, old->st_mode & 07777) != 0))
        return report_cannot_write(diag, f->shown_path);
    return STATUS_OK;
}

enum status file_set_begin(struct file_set *s, struct diag *diag)
{
    struct stat info;
    if (s->folder == NULL)
        return STATUS_OK;
    s->folder_does_not_exist_yet = lstat(s->folder, &info) != 0;
    if (s->folder_does_not_exist_yet && errno != ENOENT)
        return report_cannot_make_folder(s, diag);
    if (!s->folder_does_not_exist_yet && !S_ISDIR(info.st_mode) &&
        (stat(s->folder, &info) != 0 || !S_ISDIR(info.st_mode)))
        return diag_error(diag, (struct loc){.name = s->folder}, STATUS_SYSTEM,
                          "exists and is not a folder; give a new name, or the name of a folder");
    return STATUS_OK;
}

enum status file_set_check_writable(struct file_set *s, struct diag *diag)
{
    if (s->folder_does_not_exist_yet)
        return make_hidden_folder(s, diag);
    return access(s->folder, W_OK | X_OK) == 0 ? STATUS_OK
                                               : report_cannot_write_into_folder(s, diag);
}

/* Sets *exists to whether there is a file at f->shown_path, and *old to its status if there is. Sets f->target_path to
 * the path of the file that is to be replaced or made; it stays NULL for a device or a pipe, which is not replaced. If
 * another process makes or removes the file meanwhile, the function starts over. */
static enum status find_file_to_be_replaced(const struct file_set *s, struct file_set_file *f,
                                            struct stat *old, bool *exists, struct diag *diag)
{
    for (;;) {
        struct stat link;
        *exists = !s->folder_does_not_exist_yet && stat(f->shown_path, old) == 0;
        if (!*exists && !s->folder_does_not_exist_yet && errno != ENOENT)
            return report_cannot_write(diag, f->shown_path);
        if (!*exists && !s->folder_does_not_exist_yet && lstat(f->shown_path, &link) == 0) {
            if (!S_ISLNK(link.st_mode))
                continue;
            return diag_error(diag, (struct loc){.name = f->shown_path}, STATUS_SYSTEM,
                              "cannot write: this is a symbolic link whose target does not exist");
        }
        if (*exists && S_ISDIR(old->st_mode)) {
            errno = EISDIR;
            return report_cannot_write(diag, f->shown_path);
        }
        if (*exists && !S_ISREG(old->st_mode))
            return STATUS_OK;
        if (!*exists) {
            struct text path = {0};
            text_puts(&path, f->shown_path);
            f->target_path = path.data;
            return STATUS_OK;
        }
        /* rename() checks only the permissions of the folder, but a read-only file must not be replaced. A link stays a
         * link: the file to which it points is replaced. */
        if (access(f->shown_path, W_OK) == 0 &&
            (f->target_path = realpath(f->shown_path, NULL)) != NULL)
            return STATUS_OK;
        if (errno != ENOENT)
            return report_cannot_write(diag, f->shown_path);
    }
}

static struct file_set_file *add_file(struct file_set *s, const char *path)
{
    struct file_set_file *f = heap_zalloc(1, sizeof *f);
    struct text shown = {0};
    text_printf(&shown, "%s%s%s", s->folder != NULL ? s->folder : "", s->folder != NULL ? "/" : "",
                path);
    f->shown_path = shown.data;
    atomic_signal_fence(memory_order_release);
    *(s->last_file != NULL ? &s->last_file->next : &s->first_file) = f;
    s->last_file = f;
    return f;
}

/* Adds a file to the set and opens its hidden file; standard output, devices and pipes have none. */
static enum status add_and_open_file(struct file_set *s, const char *path, struct diag *diag)
{
    struct file_set_file *f = add_file(s, path);
    struct stat old;
    bool exists = false;
    if (strcmp(f->shown_path, "-") == 0)
        return STATUS_OK;
    enum status status = find_file_to_be_replaced(s, f, &old, &exists, diag);
    if (status == STATUS_OK && f->target_path != NULL)
        status = open_temporary_for_contents(s, f, exists ? &old : NULL, diag);
    return status;
}

enum status file_set_check_path(const char *path, struct diag *diag)
{
    struct file_set s = {.folder = NULL};
    enum status status = add_and_open_file(&s, path, diag);
    file_set_release(&s);
    return status;
}

/* Writes to the open file; s->write_errno holds an error until the file is closed. If no file is open, the file that
 * was added last is one that file_set_end() writes directly, and the bytes are appended to its `contents`. */
static void write_to_last_added_file(struct file_set *s, const char *data, size_t size)
{
    if (!s->has_open_file)
        text_append(&s->last_file->contents, data, size);
    else if (s->write_errno == 0 && !open_file_write_all_to_fd(s->open_fd, data, size))
        s->write_errno = errno;
}

static enum status close_open_file_of_set(struct file_set *s, struct diag *diag)
{
    if (!s->has_open_file)
        return STATUS_OK;
    if (s->write_errno == 0 && fsync(s->open_fd) != 0 && errno != EINVAL)
        s->write_errno = errno;
    if (close(s->open_fd) != 0 && s->write_errno == 0)
        s->write_errno = errno;
    s->has_open_file = false;
    errno = s->write_errno;
    s->write_errno = 0;
    return errno == 0 ? STATUS_OK : report_cannot_write(diag, s->last_file->shown_path);
}

static void write_text_to_file_of_set(struct text *out)
{
    write_to_last_added_file(out->flush_context, out->data, out->size);
    out->size = 0;
}

enum status file_set_open_file(struct file_set *s, const char *path, struct text *out,
                               struct diag *diag)
{
    enum status status = add_and_open_file(s, path, diag);
    if (status == STATUS_OK)
        *out = (struct text){.flush = write_text_to_file_of_set, .flush_context = s};
    return status;
}

enum status file_set_close_file(struct file_set *s, struct text *out, struct diag *diag)
{
    write_to_last_added_file(s, out->data, out->size);
    text_release(out);
    return close_open_file_of_set(s, diag);
}

void file_set_delete_file_at_end(struct file_set *s, const char *path)
{
    add_file(s, path)->is_to_delete = true;
}

enum status file_set_add(struct file_set *s, const char *path, const char *data, size_t size,
                         struct diag *diag)
{
    enum status status = add_and_open_file(s, path, diag);
    if (status != STATUS_OK)
        return status;
    write_to_last_added_file(s, data, size);
    return close_open_file_of_set(s, diag);
}

/* ---- all at once ---- */

static enum status write_directly(const struct file_set_file *f, struct diag *diag)
{
    const struct text *kept = &f->contents;
    if (strcmp(f->shown_path, "-") == 0) {
        /* what the program has printed before comes first */
        if (fflush(stdout) != 0 ||
            !open_file_write_all_to_fd(STDOUT_FILENO, kept->data, kept->size))
            return report_cannot_write(diag, "standard output");
        return STATUS_OK;
    }
    int file = open(f->shown_path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0)
        return report_cannot_write(diag, f->shown_path);
    enum status status = open_file_write_all_to_fd(file, kept->data, kept->size)
                             ? STATUS_OK
                             : report_cannot_write(diag, f->shown_path);
    if (close(file) != 0 && status == STATUS_OK)
        status = report_cannot_write(diag, f->shown_path);
    return status;
}

/* Locks the folder: waits until no other process renames files into it. The lock is on a hidden file in the folder. A
 * process removes that file before it releases its lock, so a process that gets the lock of a removed file tries
 * again. */
static enum status lock_folder(struct file_set *s, struct diag *diag)
{
    struct text name = {0};
    text_printf(&name, "%s/.longhaul-lock", s->folder);
    catch_signals(s);
    for (;;) {
        struct stat held, there;
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        s->lock_fd = open(name.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (s->lock_fd < 0)
            break;
        while (fcntl(s->lock_fd, F_SETLKW, &whole) != 0 && errno == EINTR)
            ;
        if (fstat(s->lock_fd, &held) == 0 && stat(name.data, &there) == 0 &&
            held.st_dev == there.st_dev && held.st_ino == there.st_ino) {
            s->lock_path = name.data;
            return STATUS_OK;
        }
        close(s->lock_fd);
    }
    int error = errno;
    text_release(&name);
    errno = error;
    return report_cannot_write_into_folder(s, diag);
}

static void unlock_folder(struct file_set *s)
{
    if (s->lock_path == NULL)
        return;
    unlink(s->lock_path); /* before the lock is released, since the next process makes it anew */
    close(s->lock_fd);
    free(s->lock_path);
    s->lock_path = NULL;
}

static enum status rename_files(struct file_set *s, struct diag *diag)
{
    /* while the last file exists, the set's files in the folder are from one run; so the old one is removed first */
    const bool sealed =
        s->folder != NULL && s->first_file != s->last_file && s->last_file->target_path != NULL;
    if (sealed && unlink(s->last_file->target_path) != 0 && errno != ENOENT)
        return report_cannot_write(diag, s->last_file->shown_path);
    for (const struct file_set_file *f = s->first_file; f != NULL; f = f->next)
        if (f->is_to_delete && unlink(f->shown_path) != 0 && errno != ENOENT)
            return diag_error(diag, (struct loc){.name = f->shown_path}, STATUS_SYSTEM,
                              "cannot remove: %s", strerror(errno));
    for (const struct file_set_file *f = s->first_file; f != NULL; f = f->next)
        if (f->target_path != NULL && rename(f->temporary_path, f->target_path) != 0)
            return report_cannot_write(diag, f->shown_path);
    return STATUS_OK;
}

/* Renames the files into the folder, which exists, one after the other, while the folder is locked. */
static enum status rename_into_folder(struct file_set *s, struct diag *diag)
{
    enum status status = lock_folder(s, diag);
    if (status == STATUS_OK)
        status = rename_files(s, diag);
    unlock_folder(s);
    return status;
}

/* Gives the hidden folder, which has all files of the set, its final name. If another process has made a folder of that
 * name meanwhile, the files are renamed into it, and replace those of the same names. */
static enum status rename_folder(struct file_set *s, struct diag *diag)
{
    enum status status = make_hidden_folder(s, diag);
    if (status != STATUS_OK || rename(s->staging_folder, s->folder) == 0)
        return status;
    struct stat info;
    int error = errno;
    if (stat(s->folder, &info) == 0 && S_ISDIR(info.st_mode))
        return rename_into_folder(s, diag);
    errno = error;
    return report_cannot_make_folder(s, diag);
}

enum status file_set_end(struct file_set *s, struct diag *diag)
{
    enum status status = STATUS_OK;
    /* Standard output, devices and pipes come first: if writing to them fails, no file has been renamed yet. */
    for (const struct file_set_file *f = s->first_file; f != NULL && status == STATUS_OK;
         f = f->next)
        if (f->target_path == NULL && !f->is_to_delete)
            status = write_directly(f, diag);
    if (status == STATUS_OK)
        status = s->folder_does_not_exist_yet ? rename_folder(s, diag)
                 : s->folder != NULL          ? rename_into_folder(s, diag)
                                              : rename_files(s, diag);
    return status;
}

bool file_set_has(const struct file_set *s, const char *path)
{
    size_t before = s->folder != NULL ? strlen(s->folder) + 1 : 0;
    for (const struct file_set_file *f = s->first_file; f != NULL; f = f->next)
        if (strcmp(f->shown_path + before, path) == 0)
            return true;
    return false;
}

void file_set_release(struct file_set *s)
{
    if (s->has_open_file)
        close(s->open_fd);
    remove_temporaries(s);
    unlock_folder(s);
    restore_signals(s);
    for (struct file_set_file *f = s->first_file, *next; f != NULL; f = next) {
        next = f->next;
        text_release(&f->contents);
        free(f->temporary_path);
        free(f->shown_path);
        free(f->target_path);
        free(f);
    }
    free(s->staging_folder);
    *s = (struct file_set){0};
}

enum status file_set_write_files(const struct file_set_path_and_data *file, size_t count,
                                 struct diag *diag)
{
    struct file_set files = {0};
    enum status status = file_set_begin(&files, diag);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = file_set_add(&files, file[i].path, file[i].data, file[i].size, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    return status;
}

enum status file_set_write_single_file(const char *path, const char *data, size_t size,
                                       struct diag *diag)
{
    return file_set_write_files(&(struct file_set_path_and_data){path, data, size}, 1, diag);
}
