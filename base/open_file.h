/* base/open_file.h: writes or reads all bytes of an open file, and locks it. Reads and writes that a signal
 * interrupts go on. `file` is a file descriptor. A failure leaves its cause in errno. */
#ifndef BASE_OPEN_FILE_H
#define BASE_OPEN_FILE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* Writes all bytes to a file, a device or a pipe. If that fails, some of them may be written. */
bool open_file_write_all_to_fd(int file, const void *data, size_t size);

/* Appends the contents of a regular file to an empty text, from the file's beginning, without moving the file's
 * position. The owner of a lock reads its file like this: a process loses its lock on a file as soon as it closes any
 * descriptor of that file. */
bool open_file_read_all_from_fd(int file, struct text *text);

/* Locks a file against other processes, until this one closes it. Returns false if another process has it locked. If
 * the file system has no locks, returns true. */
bool open_file_try_lock_of_fd(int file);

#endif
