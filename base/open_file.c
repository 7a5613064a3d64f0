#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

bool open_file_write_all_to_fd(int file, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t put = write(file, at, size < SSIZE_MAX ? size : SSIZE_MAX);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

bool open_file_read_all_from_fd(int file, struct text *text)
{
    char piece[1 << 14];
    for (;;) {
        ssize_t got = pread(file, piece, sizeof piece, (off_t)text->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        text_append(text, piece, (size_t)got);
    }
}

bool open_file_try_lock_of_fd(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_SETLK, &whole) == 0 || (errno != EACCES && errno != EAGAIN);
}
