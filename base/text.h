/* base/text.h: whole files, growable text, a cursor that knows its line, and numbers in text.
 *
 * struct text owns its memory; text_release() gives it back. data is NULL or
 * NUL-terminated (the NUL is not counted in size), and may hold any bytes. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data;
    size_t size, capacity;
    /* takes the text away, such as into a file, and empties it; NULL: all of the text stays in memory */
    void (*flush)(struct text *text);
    void *flush_context; /* data for `flush`, such as the struct file_set; only `flush` uses it */
};

void text_release(struct text *text);

/* Reads a whole regular file or stream ("-": standard input), unpacks it if it is packed by gzip, and drops a
 * byte-order mark before UTF-8. Errors give the path and the system's reason. Files of more than 4 GiB, packed or
 * unpacked, are refused. */
enum status text_read(struct text *text, const char *path, struct diag *diag);
/* Does what text_read() does, with `limit` bytes in place of 4 GiB; `limit` must be from 1 MiB to 4 GiB. */
enum status text_read_with_byte_limit(struct text *text, const char *path, uint64_t limit,
                                      struct diag *diag);
/* Until the next call of this function, text_read() and text_read_with_byte_limit() add the size and the bytes of each
 * file, as unpacked, to *digest (base/digest.h). digest NULL: they add them to no digest any more. */
void text_add_files_read_to_digest(uint64_t *digest);
/* The most bytes of a file that describes a model, a cluster or the start of a training. */
#define TEXT_CONFIGURATION_BYTES_MAX (UINT64_C(16) << 20)

/* If the text belongs to a file (file_set_open_file() in base/file_set.h) and is 256 KiB or longer, writes the text to
 * the file and empties it. No pointer into the text may be in use. */
void text_flush_to_file_if_long(struct text *text);

/* Makes room for `size` more bytes and the NUL. */
void text_reserve(struct text *text, size_t size);

void text_append(struct text *text, const char *data, size_t size);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends an integer faster than printf() does, for texts of millions of rows. */
void text_put_i64(struct text *text, int64_t value);

/* Appends the shortest correctly rounded decimal that reads back as the same double. */
void text_put_double(struct text *text, double value);

/* A position in a text. name: the text's name in messages. */
struct cursor {
    const char *name;
    const char *at, *end;
    const char *line_first_char;
    uint32_t line;
};

struct cursor cursor_make(const char *name, const char *data, size_t size);
struct loc cursor_loc(const struct cursor *cursor);

/* Skips blanks on the current line. Tabs and carriage returns count as blanks, here and in words. */
void cursor_skip_blanks(struct cursor *cursor);

/* True if only blanks are left on the cursor's line before its end, the end of the text, or a comment, which starts
 * with '#'. */
bool cursor_at_line_end(const struct cursor *cursor);

/* Moves to the start of the next line. Returns false at the end of the text. */
bool cursor_next_line(struct cursor *cursor);

/* Skips blanks, returns the word that follows, of *size bytes, and moves past it. A word ends before a blank, the end
 * of the line, or a '#'. *size is 0 if no word is left on the line. */
const char *cursor_next_word(struct cursor *cursor, size_t *size);

/* Parse a number that fills all of word[0..size): a decimal integer or a double. False if the word
 * is no such number or does not fit the type. */
bool parse_i64(const char *word, size_t size, int64_t *value);
bool parse_u64(const char *word, size_t size, uint64_t *value);
bool parse_double(const char *word, size_t size, double *value);

#endif
