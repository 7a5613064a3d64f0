/* base/file_set.h: files that appear together, or not at all, whatever ends the program.
 *
 *     struct file_set files = {.folder = "out"};
 *     status = file_set_begin(&files, diag);
 *     status = file_set_add(&files, "names", data, size, diag); // as often as needed
 *     status = file_set_open(&files, "ops.csv", &out, diag);    // or piece by piece
 *     ... text_append(&out, ...), text_pass_on(&out) ...
 *     status = file_set_close(&files, &out, diag);
 *     status = file_set_end(&files, diag);
 *     file_set_release(&files);
 *
 * What is added is written at once under a hidden name beside the one it will have (".longhaul-PID-N.tmp"), and
 * file_set_end() renames it: a failure (full disk, no permission), an interrupt or a request to end leaves everything
 * as it was, and nothing else. Only SIGKILL leaves a hidden file. A folder that was not there appears with all its
 * files at once. Files of a folder that was there, or of several, are renamed one after the other; of a folder the
 * file that was added last is taken away before and comes last, so that what a kill between two renames mixes lacks
 * it. One struct file_set is in use at a time. */
#ifndef BASE_FILE_SET_H
#define BASE_FILE_SET_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct file_set {
    const char *folder; /* set by the caller: paths are names in it; NULL: paths as they stand */

    struct file_set_file *first, *last; /* in the order in which they were added */
    bool fresh;                         /* the folder is not there yet */
    char *made;                         /* what becomes it; NULL: not made yet */
    int file_open;                      /* the last file's, while is_open */
    bool is_open;
    int error; /* of a write to it; 0: none */
};

/* Looks whether the folder is one, or is not there. Release *files in either case. */
enum status file_set_begin(struct file_set *files, struct diag *diag);

/* Writes one file. path "-" is standard output; that, devices and pipes are written by file_set_end(): their
 * data is kept till then. */
enum status file_set_add(struct file_set *files, const char *path, const char *data, size_t size,
                         struct diag *diag);

/* A file that is written while its text is made: *out, whose text goes on to the disk where its writer calls
 * text_pass_on(). file_set_close() writes the rest, says what failed, and releases *out; so does
 * text_release() where the file is given up. One file is open at a time. */
enum status file_set_open(struct file_set *files, const char *path, struct text *out,
                          struct diag *diag);
enum status file_set_close(struct file_set *files, struct text *out, struct diag *diag);

/* Shows all of them. */
enum status file_set_end(struct file_set *files, struct diag *diag);

/* Whether a file of that path was added. */
bool file_set_has(const struct file_set *files, const char *path);

/* Without file_set_end() before, or when that failed, nothing stays. */
void file_set_release(struct file_set *files);

struct file_set_whole {
    const char *path, *data;
    size_t size;
};
/* Writes one file, or several that belong together: if one of them cannot be written, all stay as they were. */
enum status file_set_write(const char *path, const char *data, size_t size, struct diag *diag);
enum status file_set_write_all(const struct file_set_whole *file, size_t count, struct diag *diag);

#endif
