#include "base/diag.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of a message's place, and of its text, each of which may quote long input. */
enum { MESSAGE_LIMIT = 4000 };

void diag_release(struct diag *diag)
{
    free(diag->text);
    *diag = (struct diag){0};
}

void diag_clear(struct diag *diag)
{
    diag->size = 0;
    diag->error_count = diag->warning_count = 0;
    if (diag->text)
        diag->text[0] = '\0';
}

static void append_bytes(struct diag *diag, const char *text, size_t size)
{
    size_t needed = diag->size + size + 1;
    if (needed > diag->capacity) {
        diag->capacity = heap_next_capacity(diag->capacity, needed);
        diag->text = heap_realloc(diag->text, diag->capacity, 1);
    }
    memcpy(diag->text + diag->size, text, size);
    diag->size += size;
    diag->text[diag->size] = '\0';
}

/* Adds a text to the message. Each control character becomes "\xNN", since quoted input may hold line ends and terminal
 * escapes: so a message stays one line and cannot control a terminal. Bytes after the first MESSAGE_LIMIT ones become
 * "...". */
static void append_escaped(struct diag *diag, const char *text)
{
    size_t size = strlen(text);
    size_t kept = size > MESSAGE_LIMIT ? MESSAGE_LIMIT : size;
    while (kept < size && kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80)
        kept--; /* no character is cut in its middle */
    for (size_t i = 0, from = 0; i <= kept; i++) {
        unsigned char c = (unsigned char)text[i];
        bool clean = c >= 0x20 && c != 0x7f;
        if (i < kept && clean)
            continue;
        append_bytes(diag, text + from, i - from);
        from = i + 1;
        if (i < kept) {
            char escape[5];
            snprintf(escape, sizeof escape, "\\x%02x", c);
            append_bytes(diag, escape, 4);
        }
    }
    if (kept < size)
        append_bytes(diag, "...", 3);
}

static void append_message(struct diag *diag, struct loc at, const char *level, const char *format,
                           va_list args)
{
    char number[32];
    if (at.name) {
        append_escaped(diag, at.name);
        if (at.line > 0) {
            int size = snprintf(number, sizeof number, ":%u", (unsigned)at.line);
            append_bytes(diag, number, (size_t)size);
        }
        if (at.line > 0 && at.column > 0) {
            int size = snprintf(number, sizeof number, ":%u", (unsigned)at.column);
            append_bytes(diag, number, (size_t)size);
        }
        append_bytes(diag, ": ", 2);
    }
    append_bytes(diag, level, strlen(level));

    va_list again;
    va_copy(again, args);
    int size = c_vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(size >= 0);
    char *message = heap_alloc((size_t)size + 1, 1);
    c_vsnprintf(message, (size_t)size + 1, format, args);
    append_escaped(diag, message);
    free(message);
    append_bytes(diag, "\n", 1);
}

enum status diag_verror(struct diag *diag, struct loc at, enum status status, const char *format,
                        va_list args)
{
    assert(status > STATUS_OK && status < STATUS_COUNT);
    if (diag) {
        append_message(diag, at, "error: ", format, args);
        diag->error_count++;
    }
    return status;
}

enum status diag_error(struct diag *diag, struct loc at, enum status status, const char *format,
                       ...)
{
    va_list args;
    va_start(args, format);
    diag_verror(diag, at, status, format, args);
    va_end(args);
    return status;
}

void diag_add_place_to_errors(struct diag *diag, size_t from, const char *name)
{
    static const char bare[] = "error: ";
    if (diag == NULL || from >= diag->size)
        return;
    size_t size = diag->size - from;
    char *tail = heap_alloc(size + 1, 1);
    memcpy(tail, diag->text + from, size + 1);
    diag->size = from;
    for (const char *line = tail; *line != '\0';) {
        int length = (int)strcspn(line, "\n");
        if (strncmp(line, bare, sizeof bare - 1) == 0) {
            append_bytes(diag, name, strlen(name));
            append_bytes(diag, ": ", 2);
        }
        length += line[length] == '\n';
        append_bytes(diag, line, (size_t)length);
        line += length;
    }
    free(tail);
}

const char *diag_first_message(const struct diag *diag, size_t *size)
{
    static const char bare[] = "error: ";
    const char *text = diag->text;
    if (text == NULL || text[0] == '\0')
        return NULL;
    const char *what = strstr(text, bare);
    if (what != NULL && (what == text || text[0] == '-'))
        text = what + sizeof bare - 1;
    *size = strcspn(text, "\n");
    return text;
}

void diag_warning(struct diag *diag, struct loc at, const char *format, ...)
{
    if (!diag)
        return;
    va_list args;
    va_start(args, format);
    append_message(diag, at, "warning: ", format, args);
    va_end(args);
    diag->warning_count++;
}

void diag_note(struct diag *diag, struct loc at, const char *format, ...)
{
    if (!diag)
        return;
    va_list args;
    va_start(args, format);
    append_message(diag, at, "note: ", format, args);
    va_end(args);
}

static unsigned char lower_case_char(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* The most bytes of a word, and of a candidate, that edit_distance() compares. */
enum { WORD_LIMIT = 64 };

/* Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1;
 * upper and lower case count as equal. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][WORD_LIMIT + 1];
    size_t *before = rows[0], *row_above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        row_above[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t same = lower_case_char(a[i - 1]) == lower_case_char(b[j - 1]);
            size_t best = row_above[j - 1] + !same;
            if (row_above[j] + 1 < best)
                best = row_above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower_case_char(a[i - 1]) == lower_case_char(b[j - 2]) &&
                lower_case_char(a[i - 2]) == lower_case_char(b[j - 1]) && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *oldest = before;
        before = row_above;
        row_above = row;
        row = oldest;
    }
    return row_above[b_size];
}

static const struct synonym {
    const char *word, *suggestion;
} synonyms[] = {
#define SYNONYM(word, meant) {word, meant},
#include "base/synonyms.def"
#undef SYNONYM
};

/* True if a word equals a synonym, which is in lower case. In the word, capital letters count as small ones, and '_' as
 * '-'. */
static bool word_equals_synonym(const char *word, const char *synonym)
{
    for (; *word != '\0' && *synonym != '\0'; word++, synonym++)
        if ((*word == '_' ? '-' : (char)lower_case_char(*word)) != *synonym)
            return false;
    return *word == *synonym;
}

size_t diag_synonym_count(void)
{
    return sizeof synonyms / sizeof synonyms[0];
}

const char *diag_synonym_at(size_t i, const char **meant)
{
    *meant = synonyms[i].suggestion;
    return synonyms[i].word;
}

const char *diag_find_candidate_by_synonym(const char *word, const char *const *candidates,
                                           size_t count)
{
    for (size_t s = 0; s < diag_synonym_count(); s++)
        for (size_t i = 0; i < count && word_equals_synonym(word, synonyms[s].word); i++)
            if (strcmp(candidates[i], synonyms[s].suggestion) == 0)
                return candidates[i];
    return NULL;
}

const char *diag_option_suggested_for_word(const char *word)
{
    for (size_t s = 0; s < diag_synonym_count(); s++)
        if (synonyms[s].suggestion[0] == '-' && word_equals_synonym(word, synonyms[s].word))
            return synonyms[s].suggestion;
    return NULL;
}

const char *diag_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t size = strlen(word);
    if (size == 0 || size > WORD_LIMIT)
        return NULL;
    const char *nearest = diag_find_candidate_by_synonym(word, candidates, count);
    if (nearest != NULL)
        return nearest;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t candidate_size = strlen(candidates[i]);
        if (candidate_size > WORD_LIMIT)
            continue;
        size_t d = edit_distance(word, size, candidates[i], candidate_size);
        /* A word of which more than a third would have to change is another word, and no misspelling. */
        size_t longer = size > candidate_size ? size : candidate_size;
        if (d < least && 3 * d <= longer) {
            least = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
