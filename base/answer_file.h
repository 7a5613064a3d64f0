/* base/answer_file.h: answers on disk, so that they are not computed again.
 *
 * An answer is plain bytes under a key. Each is appended to the file as soon as it is known, as one line: the key, a
 * digest of the bytes, and the bytes, compressed. An answer is taken only if its digest and its size are right, so a
 * line that is damaged or cut off loses only its own answer. The first line, the head, says which program and which
 * build wrote the answers; a file of another build is begun anew. One process has the file at a time.
 *
 * The folder base/ holds what every layer uses and what knows nothing of schedules: messages, memory, files, JSON,
 * units. */
#ifndef BASE_ANSWER_FILE_H
#define BASE_ANSWER_FILE_H

#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct answer_file {
    int fd;                    /* -1: answers are only kept in memory */
    long long file_bytes;      /* bytes of the complete lines in the file */
    struct text lines_text;    /* the text of all lines, without the head */
    size_t existing_bytes;     /* bytes of `lines_text` that were in the file when it was opened */
    struct answer_slot *table; /* [table_capacity] on the heap: a hash table by key */
    size_t answer_count;       /* used slots of the table */
    size_t table_capacity;     /* a power of two; 0: there is no table yet */
    const char *path;          /* borrowed */
};

/* Opens or creates the file, locks it against other processes, and reads its answers. The head, the file's first line,
 * is `whose`, a blank, and `build`; `whose` must not end in a blank. If the file cannot be used (it has another
 * `whose`, another process uses it, its folder cannot be written), an error says why, and answers are kept only in
 * memory. Release *file in either case. */
enum status answer_file_open(struct answer_file *file, const char *path, const char *whose,
                             const char *build, struct diag *diag);

/* Copies the last answer that was added under a key to `answer`. Returns false, and copies nothing, if there is none,
 * if it does not have `size` bytes, or if its line is damaged. */
bool answer_file_find(const struct answer_file *file, uint64_t key, void *answer, size_t size);

/* Returns how many of the answers that were in the file when it was opened answer_file_find() has copied. Each is
 * counted once. */
size_t answer_file_reused_count(const struct answer_file *file);

/* Adds an answer in memory and, if the file is open, as a line of the file. If the line cannot be
 * written, for example because the disk is full, an error says why, the file keeps only the lines
 * before it, and this answer and all later ones are kept in memory only. */
enum status answer_file_add(struct answer_file *file, uint64_t key, const void *answer, size_t size,
                            struct diag *diag);

void answer_file_release(struct answer_file *file);

#endif
