/* base/file_set.h: files that appear together or not at all, as far as the file system allows.
 *
 *     struct file_set files = {.folder = "out"};
 *     status = file_set_begin(&files, diag);
 *     status = file_set_add(&files, "names", data, size, diag); // as often as needed
 *     status = file_set_open_file(&files, "ops.csv", &out, diag);    // or piece by piece
 *     ... text_append(&out, ...), text_flush_to_file_if_long(&out) ...
 *     status = file_set_close_file(&files, &out, diag);
 *     status = file_set_end(&files, diag);
 *     file_set_release(&files);
 *
 * Each file is written at once under a hidden name beside its final one (".longhaul-PID-N.tmp"), or, if the folder is
 * new, into a hidden folder of such a name, and file_set_end() renames it: a failure (full disk, no permission), an
 * interrupt or a request to end before the renames leaves all files as they were. Only SIGKILL or a crash leaves a
 * hidden file. A new folder appears with all its files at once. Files in an existing folder, or in several, are renamed
 * one after the other. If the set has a folder, an old file with the name of the last file of the set is removed before
 * the first rename, and the last file is renamed last. So it is missing if the program is killed between two renames.
 * Two processes do not rename files into a folder at the same time: where both write the same names, all these files
 * are from the process that ends last. One struct file_set is in use at a time. */
#ifndef BASE_FILE_SET_H
#define BASE_FILE_SET_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct file_set {
    const char *folder; /* set by the caller: paths are names in it; NULL: paths as they stand */

    struct file_set_file *first_file, *last_file; /* in the order in which they were added */
    bool folder_does_not_exist_yet;               /* the folder is not there yet */
    char *staging_folder; /* temporary folder that is renamed to `folder`; NULL: not made yet */
    /* path of the hidden file that is locked while the folder's files are renamed; NULL: it is not locked */
    char *lock_path;
    int lock_fd;
    int open_fd; /* the descriptor of the last file, while has_open_file is set */
    bool has_open_file;
    int write_errno; /* errno of a failed write to the open file; 0: none */
};

/* Checks that files->folder is a folder or does not exist; a set whose folder is NULL needs no
 * check. Release *files even after an error. */
enum status file_set_begin(struct file_set *files, struct diag *diag);

/* Checks, before long work with results for the folder, that the folder can be made or written. It is called between
 * file_set_begin() and file_set_release(), on a set to which no file is added; the results get another set. */
enum status file_set_check_writable(struct file_set *files, struct diag *diag);

/* Writes one file of the set. If the set has no folder, path "-" is standard output. Data for standard output, devices
 * and pipes stay in memory until file_set_end() writes them. */
enum status file_set_add(struct file_set *files, const char *path, const char *data, size_t size,
                         struct diag *diag);

/* Adds a file that file_set_end() deletes, if it exists, before it renames the others: a file about results that the
 * files of the set replace. Add at least one other file after it. */
void file_set_delete_file_at_end(struct file_set *files, const char *path);

/* Adds a file to the set and opens it, to be written while its text is made. text_flush_to_file_if_long(out) writes and
 * empties the text whenever it is long (base/text.h). file_set_close_file() writes the rest, reports failures, and
 * releases *out. To abandon the file, call text_release(out) in its place. Only one file can be open at a time. */
enum status file_set_open_file(struct file_set *files, const char *path, struct text *out,
                               struct diag *diag);
enum status file_set_close_file(struct file_set *files, struct text *out, struct diag *diag);

/* Makes the files of the set appear: writes to standard output, devices and pipes, deletes the files of
 * file_set_delete_file_at_end(), and renames all other files to their final names. */
enum status file_set_end(struct file_set *files, struct diag *diag);

/* True if a file with that path was added, or is to be deleted by the set. */
bool file_set_has(const struct file_set *files, const char *path);

/* Frees the set. If file_set_end() was not called or failed, the hidden files that it did not rename are removed. */
void file_set_release(struct file_set *files);

/* One file for file_set_write_files(): its path, and the bytes that become its contents. */
struct file_set_path_and_data {
    const char *path, *data;
    size_t size;
};
/* Checks, before long work, that file_set_write_single_file() could write to a path now. Standard output ("-"), a
 * device or a pipe is not checked. */
enum status file_set_check_path(const char *path, struct diag *diag);

/* file_set_write_single_file() writes one file, file_set_write_files() several. No file is replaced before the
 * new contents of all of them are on the disk, so a full disk leaves all files as they were. */
enum status file_set_write_single_file(const char *path, const char *data, size_t size,
                                       struct diag *diag);
enum status file_set_write_files(const struct file_set_path_and_data *file, size_t count,
                                 struct diag *diag);

#endif
