/* base/diag.h: faults and how they are reported.
 *
 * A function that can meet a fault outside the program (input, files, child
 * processes) returns an enum status and, when it is not STATUS_OK, has added
 * a message to the struct diag passed last. Callers hand the status on.
 * A message is one line, "where: error: what", and says what would be right
 * when that is known.
 * A programming error is an assert, which stays on in release builds. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum status {
    STATUS_OK,
    STATUS_NO,        /* the question was answered, and the answer is no (exit code 1) */
    STATUS_BAD_INPUT, /* what the user gave cannot be used (exit code 2) */
    STATUS_SYSTEM,    /* a file, child process or device failed us (exit code 2) */
    STATUS_COUNT
};

/* The place to which a message refers. name NULL: none; line 0: the whole file; column 0: the whole line. Lines and
 * columns count from 1, columns in bytes. */
struct loc {
    const char *name;
    uint32_t line, column;
};

/* Collected messages, each one line ending in '\n', in the order they were added.
 * All-zero is empty. text is NULL or NUL-terminated. */
struct diag {
    char *text;
    size_t size, capacity;
    size_t error_count, warning_count;
};

void diag_release(struct diag *diag);

/* Empties diag and keeps its memory. */
void diag_clear(struct diag *diag);

/* Adds "name:line:column: error: ..." and returns status, so that callers can
 * write `return diag_error(...)`. diag may be NULL: the message is dropped. */
enum status diag_error(struct diag *diag, struct loc at, enum status status, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));

enum status diag_verror(struct diag *diag, struct loc at, enum status status, const char *format,
                        va_list args);

/* Adds "...: warning: ..." or "...: note: ..."; neither is a fault. */
void diag_warning(struct diag *diag, struct loc at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_note(struct diag *diag, struct loc at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Gives the place `name` to all errors in diag->text, from byte `from` on, that have no place. A caller thus adds the
 * option from which a value came, after a function that does not know the option has found a fault in the value. */
void diag_add_place_to_errors(struct diag *diag, size_t from, const char *name);

/* Returns the first message and sets *size to its bytes, without its line end. The beginning of an error is left out if
 * its place is an option ("--seq: error: ") or if it has no place ("error: "). Returns NULL, and leaves *size as it is,
 * if there is no message. */
const char *diag_first_message(const struct diag *diag, size_t *size);

/* Returns a candidate of which `word` is another name by a row of base/synonyms.def; the first such row decides.
 * Returns NULL if there is none. */
const char *diag_find_candidate_by_synonym(const char *word, const char *const *candidates,
                                           size_t count);

/* Returns the candidate that a message about an unknown word suggests: "did you mean 'x'?". It is
 * that of diag_find_candidate_by_synonym() or, if there is none, the one with the least edit distance from
 * `word`. Returns NULL if none is so close that `word` is likely a misspelling of it, and for a
 * word that is empty or longer than 64 bytes. */
const char *diag_nearest(const char *word, const char *const *candidates, size_t count);

/* Returns what to give in place of a word that an option does not accept as its value: another option and its value,
 * "--attention fa2" for "flash". Returns NULL if none is known. */
const char *diag_option_suggested_for_word(const char *word);

/* diag_synonym_count() returns the number of rows of base/synonyms.def. diag_synonym_at() returns the word of row i,
 * and sets *meant to what it means. */
size_t diag_synonym_count(void);
const char *diag_synonym_at(size_t i, const char **meant);

#endif
