/* Functions that the parsers of statements share: words, numbers, names, and faults. */
#include "schedule/ir/ir_index.h"
#include "schedule/ir/ir_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The messages of this file quote at most this many characters of a word. */
enum { QUOTED = 60 };

static int quoted_char_count(struct word word)
{
    return word.size < QUOTED ? (int)word.size : QUOTED;
}

bool parse_error(struct parser *p, const char *at, const char *format, ...)
{
    struct loc loc = {.name = p->cursor.name,
                      .line = p->cursor.line,
                      .column = (uint32_t)(at - p->cursor.line_first_char) + 1};
    va_list args;
    va_start(args, format);
    diag_verror(p->diag, loc, STATUS_BAD_INPUT, format, args);
    va_end(args);
    return false;
}

/* Appends the names as "a, b or c". */
static void append_name_list(struct text *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        text_puts(out, i == 0 ? "" : i + 1 == count ? " or " : ", ");
        text_append(out, names[i], strcspn(names[i], "!"));
    }
}

bool parse_report_unknown_word(struct parser *p, struct word word, const char *what,
                               const char *const *names, size_t count)
{
    char copy[QUOTED + 1];
    memcpy(copy, word.at, (size_t)quoted_char_count(word));
    copy[quoted_char_count(word)] = '\0';
    const char *nearest = diag_nearest(copy, names, count);
    if (nearest)
        return parse_error(p, word.at, "unknown %s '%s'; did you mean '%.*s'?", what, copy,
                           (int)strcspn(nearest, "!"), nearest);
    if (count == 0 || count > 16)
        return parse_error(p, word.at, "unknown %s '%s'", what, copy);
    struct text choices = {0};
    append_name_list(&choices, names, count);
    parse_error(p, word.at, "unknown %s '%s': expected %s", what, copy, choices.data);
    text_release(&choices);
    return false;
}

bool parse_name_in_table(struct parser *p, struct word word, const char *what,
                         const char *const *names, size_t count, uint8_t *found)
{
    for (size_t i = 0; i < count; i++)
        if (word_is(word, names[i])) {
            *found = (uint8_t)i;
            return true;
        }
    return parse_report_unknown_word(p, word, what, names, count);
}

struct word cursor_next(struct cursor *cursor)
{
    struct word word;
    word.at = cursor_next_word(cursor, &word.size);
    return word;
}

struct word parse_next_word(struct parser *p)
{
    return cursor_next(&p->cursor);
}

bool parse_required_word(struct parser *p, struct word *word, const char *what)
{
    *word = parse_next_word(p);
    if (word->size == 0)
        return parse_error(p, word->at, "expected %s at the end of the line", what);
    return true;
}

struct word word_split_at(struct word *word, char c)
{
    const char *found = word->size ? memchr(word->at, c, word->size) : NULL;
    if (!found)
        return (struct word){0};
    struct word rest = {found + 1, word->size - (size_t)(found - word->at) - 1};
    word->size = (size_t)(found - word->at);
    return rest;
}

bool word_take_item(struct word *rest, char c, struct word *item)
{
    *item = *rest;
    *rest = word_split_at(item, c);
    return item->at != NULL;
}

bool parse_number(struct parser *p, struct word word, const char *what, int64_t low, int64_t high,
                  int64_t *value)
{
    if (parse_i64(word.at, word.size, value) && *value >= low && *value <= high)
        return true;
    if (high == INT64_MAX && low != INT64_MIN)
        return parse_error(p, word.at,
                           "%s: expected a whole number of at least %" PRId64
                           " that fits 63 bits, not '%.*s'",
                           what, low, quoted_char_count(word), word.at);
    return parse_error(p, word.at,
                       "%s: expected a whole number in %" PRId64 "..%" PRId64 ", not '%.*s'", what,
                       low, high, quoted_char_count(word), word.at);
}

bool parse_check_is_name(struct parser *p, const char *what, bool is_short, struct word *word)
{
    if (word->size == 0)
        return parse_error(p, word->at, "expected the name of a %s", what);
    if (!ir_is_valid_name(word->at, word->size))
        return parse_error(p, word->at,
                           "'%.*s' cannot name a %s: names are a letter or '_', then letters, "
                           "digits and any of _ . - / :",
                           quoted_char_count(*word), word->at, what);
    if (is_short && word->size >= MESH_NAME_MAX)
        return parse_error(p, word->at, "the name '%.*s' of a %s is longer than %d letters",
                           quoted_char_count(*word), word->at, what, MESH_NAME_MAX - 1);
    return true;
}

/* True if the word is this attribute. Names of flags end in '!'. */
static bool word_is_attribute(struct word key, const char *name)
{
    if (key.size == 0 || *key.at != *name)
        return false;
    size_t size = strlen(name);
    size -= name[size - 1] == '!';
    return key.size == size && memcmp(key.at, name, size) == 0;
}

bool parse_attributes(struct parser *p, const char *what, const char *const *names, size_t count,
                      uint32_t required, struct word *value)
{
    char kind[64];
    for (size_t i = 0; i < count; i++)
        value[i] = (struct word){0};
    for (;;) {
        struct word key = parse_next_word(p);
        if (key.size == 0)
            break;
        struct word rest = word_split_at(&key, '=');
        size_t i = 0;
        while (i < count && !word_is_attribute(key, names[i]))
            i++;
        if (i == count) {
            snprintf(kind, sizeof kind, "attribute of a %s", what);
            return parse_report_unknown_word(p, key, kind, names, count);
        }
        bool flag = names[i][strlen(names[i]) - 1] == '!';
        if (flag != !rest.at)
            return parse_error(p, key.at, flag ? "'%.*s' takes no value" : "'%.*s' needs '=VALUE'",
                               quoted_char_count(key), key.at);
        if (value[i].at)
            return parse_error(p, key.at, "'%.*s' is given twice", quoted_char_count(key), key.at);
        value[i] = flag ? key : rest;
    }
    for (size_t i = 0; i < count; i++)
        if ((required >> i & 1) && !value[i].at)
            return parse_error(p, p->cursor.at, "a %s needs %s=", what, names[i]);
    return true;
}

bool parse_row_name(struct parser *p, enum ir_table_with_names table, struct word word,
                    const char *what, uint16_t *row)
{
    uint32_t found = ir_find_by_name(p->ir, table, word.at, word.size);
    *row = (uint16_t)found;
    if (found != IR_NONE)
        return true;
    uint32_t count = p->ir->index ? p->ir->index->name[table].count : 0;
    const char **names = arena_array(&p->scratch, count, sizeof *names);
    for (uint32_t i = 0; i < count; i++)
        names[i] = ir_name_of(p->ir, table, i);
    return parse_report_unknown_word(p, word, what, names, count);
}

bool parse_op_list(struct parser *p, struct word word, const char *what)
{
    p->list_count = 0;
    for (struct word item; word_take_item(&word, ',', &item);) {
        int64_t op;
        if (!parse_number(p, item, what, 0, (int64_t)IR_NONE - 1, &op))
            return false;
        if (p->list_count == UINT16_MAX)
            return parse_error(p, item.at, "%s: more than %d ops", what, UINT16_MAX);
        p->op_list =
            heap_grow(p->op_list, &p->list_capacity, p->list_count + 1, sizeof *p->op_list);
        p->op_list[p->list_count++] = (op_id){(uint32_t)op};
    }
    return true;
}

bool parse_dims(struct parser *p, struct word word, struct dims *dims)
{
    *dims = (struct dims){0};
    if (word.size < 2 || word.at[0] != '[' || word.at[word.size - 1] != ']')
        return parse_error(p, word.at, "expected a shape such as [4096,128], not '%.*s'",
                           quoted_char_count(word), word.at);
    struct word sizes = {word.at + 1, word.size - 2};
    for (struct word item; word_take_item(&sizes, ',', &item);) {
        if (dims->count == ARRAY_LEN(dims->size))
            return parse_error(p, item.at, "a shape has at most %d sizes",
                               (int)ARRAY_LEN(dims->size));
        if (!parse_number(p, item, "a size of a shape", 1, INT64_MAX, &dims->size[dims->count++]))
            return false;
    }
    uint64_t elements;
    if (!dims_elements(dims, &elements))
        return parse_error(p, word.at, "the shape %.*s has more than %" PRId64 " elements",
                           quoted_char_count(word), word.at, (int64_t)IR_ELEMENTS_MAX);
    return true;
}

bool parse_line_end(struct parser *p)
{
    struct word word = parse_next_word(p);
    if (word.size > 0)
        return parse_error(p, word.at, "unexpected '%.*s' behind the end of the statement",
                           quoted_char_count(word), word.at);
    return true;
}
