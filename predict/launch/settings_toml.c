/* Reads TOML: tables, dotted keys, strings of all four kinds, numbers, booleans, arrays and inline tables. Features
 * that configurations do not use (dates, arrays of tables) are refused by name. */
#include "predict/launch/settings.h"

#include "base/c_locale.h"

#include <string.h>

enum { DEPTH_MAX = 32 };

struct toml_reader {
    struct settings *settings;
    const char *name;
    const char *next_char, *end, *line_first_char;
    uint32_t line;
    unsigned nesting_depth;
    struct text path; /* the name of the present key, preceded by that of its table */
    struct diag *diag;
};

static struct loc location_of_reader(const struct toml_reader *t)
{
    return (struct loc){.name = t->name,
                        .line = t->line,
                        .column = (uint32_t)(t->next_char - t->line_first_char) + 1};
}

static enum status report_bad_toml(const struct toml_reader *t, const char *what)
{
    return diag_error(t->diag, location_of_reader(t), STATUS_BAD_INPUT, "%s", what);
}

static char peek_char(const struct toml_reader *t, size_t ahead)
{
    return (size_t)(t->end - t->next_char) > ahead ? t->next_char[ahead] : '\0';
}

static bool begins_with(const struct toml_reader *t, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(t->end - t->next_char) >= size && memcmp(t->next_char, word, size) == 0;
}

/* Moves past one character, and counts a line if it is a line end. */
static void skip_char_and_count_line(struct toml_reader *t)
{
    if (*t->next_char++ == '\n') {
        t->line++;
        t->line_first_char = t->next_char;
    }
}

static void skip_blanks(struct toml_reader *t)
{
    while (t->next_char < t->end && (*t->next_char == ' ' || *t->next_char == '\t'))
        t->next_char++;
}

/* Skips blanks and comments, and, if `lines` is set, line ends. */
static void skip_blanks_and_comments(struct toml_reader *t, bool lines)
{
    for (;;) {
        skip_blanks(t);
        if (t->next_char < t->end && *t->next_char == '#')
            while (t->next_char < t->end && *t->next_char != '\n')
                t->next_char++;
        if (t->next_char >= t->end || !lines || (*t->next_char != '\n' && *t->next_char != '\r'))
            return;
        skip_char_and_count_line(t);
    }
}

static enum status read_line_end(struct toml_reader *t)
{
    skip_blanks_and_comments(t, false);
    if (t->next_char < t->end && *t->next_char == '\r')
        t->next_char++;
    if (t->next_char < t->end && *t->next_char != '\n')
        return report_bad_toml(t, "the line should end here");
    if (t->next_char < t->end)
        skip_char_and_count_line(t);
    return STATUS_OK;
}

/* ---- strings ---- */

static void put_utf8(struct text *out, uint32_t code)
{
    if (code < 0x80) {
        text_putc(out, (char)code);
    } else if (code < 0x800) {
        text_putc(out, (char)(0xC0 | code >> 6));
        text_putc(out, (char)(0x80 | (code & 0x3F)));
    } else if (code < 0x10000) {
        text_putc(out, (char)(0xE0 | code >> 12));
        text_putc(out, (char)(0x80 | (code >> 6 & 0x3F)));
        text_putc(out, (char)(0x80 | (code & 0x3F)));
    } else {
        text_putc(out, (char)(0xF0 | code >> 18));
        text_putc(out, (char)(0x80 | (code >> 12 & 0x3F)));
        text_putc(out, (char)(0x80 | (code >> 6 & 0x3F)));
        text_putc(out, (char)(0x80 | (code & 0x3F)));
    }
}

static enum status read_unicode_escape(struct toml_reader *t, int digits, struct text *out)
{
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        if (!c_is_hex(peek_char(t, 0)))
            return report_bad_toml(t, "\\u takes 4 and \\U 8 hexadecimal digits");
        char c = *t->next_char++;
        code = code << 4 | (uint32_t)(c_is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return report_bad_toml(t, "this is no character");
    put_utf8(out, code);
    return STATUS_OK;
}

static enum status read_escape(struct toml_reader *t, bool lines, struct text *out)
{
    static const char from[] = "btnfr\"\\e", to[] = "\b\t\n\f\r\"\\\033";
    char c = peek_char(t, 0);
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (known != NULL) {
        t->next_char++;
        text_putc(out, to[known - from]);
        return STATUS_OK;
    }
    if (c == 'u' || c == 'U') {
        t->next_char++;
        return read_unicode_escape(t, c == 'u' ? 4 : 8, out);
    }
    if (lines && (c == '\n' || c == '\r' || c == ' ' || c == '\t')) {
        while (t->next_char < t->end && c_is_space(*t->next_char))
            skip_char_and_count_line(t);
        return STATUS_OK;
    }
    return report_bad_toml(
        t, "unknown escape in a string; a literal string is written between ' and '");
}

/* Reads the string that begins at the current position, of any of the four kinds. */
static enum status read_string(struct toml_reader *t, struct text *out)
{
    char quote = *t->next_char;
    char three[4] = {quote, quote, quote, '\0'};
    bool lines = begins_with(t, three);
    t->next_char += lines ? 3 : 1;
    if (lines && peek_char(t, 0) == '\r')
        t->next_char++;
    if (lines && peek_char(t, 0) == '\n')
        skip_char_and_count_line(t);
    while (t->next_char < t->end) {
        if (lines ? begins_with(t, three) : *t->next_char == quote) {
            t->next_char += lines ? 3 : 1;
            for (int more = 0; lines && more < 2 && peek_char(t, 0) == quote; more++)
                text_putc(out, *t->next_char++);
            return STATUS_OK;
        }
        if (*t->next_char == '\0')
            return report_bad_toml(t, "a string holds no NUL");
        if (!lines && *t->next_char == '\n')
            break;
        if (quote == '"' && *t->next_char == '\\') {
            t->next_char++;
            enum status status = read_escape(t, lines, out);
            if (status != STATUS_OK)
                return status;
            continue;
        }
        text_putc(out, *t->next_char);
        skip_char_and_count_line(t);
    }
    return report_bad_toml(t, "the string has no end");
}

/* ---- keys ---- */

static bool is_bare_key_char(char c)
{
    return c_is_alnum(c) || c == '_' || c == '-';
}

/* Appends a key, which may be dotted, to the path. */
static enum status read_key(struct toml_reader *t)
{
    do {
        skip_blanks(t);
        if (t->path.size > 0)
            text_putc(&t->path, '.');
        size_t before = t->path.size;
        if (peek_char(t, 0) == '"' || peek_char(t, 0) == '\'') {
            enum status status = read_string(t, &t->path);
            if (status != STATUS_OK)
                return status;
        } else {
            while (t->next_char < t->end && is_bare_key_char(*t->next_char))
                text_putc(&t->path, *t->next_char++);
        }
        if (t->path.size == before)
            return report_bad_toml(t, "a key is expected here: letters, digits, _ and -");
        skip_blanks(t);
    } while (peek_char(t, 0) == '.' && t->next_char++ != NULL);
    return STATUS_OK;
}

/* ---- values ---- */

/* Returns the end of the digits with which a word begins, which may have single '_' between them; NULL: it does not
 * begin with a digit. */
static const char *skip_digits(const char *word)
{
    if (!c_is_digit(*word))
        return NULL;
    while (c_is_digit(*word) || (*word == '_' && c_is_digit(word[1])))
        word++;
    return word;
}

/* True if the word is a decimal number of TOML, which has no zero before other digits, and digits on both sides of a
 * point; or if it is inf or nan. */
static bool is_decimal(const char *word)
{
    word += *word == '+' || *word == '-';
    if (strcmp(word, "inf") == 0 || strcmp(word, "nan") == 0)
        return true;
    const char *at = skip_digits(word);
    if (at == NULL || (word[0] == '0' && at > word + 1))
        return false;
    if (*at == '.')
        at = skip_digits(at + 1);
    if (at != NULL && (*at | 0x20) == 'e')
        at = skip_digits(at + 1 + (at[1] == '+' || at[1] == '-'));
    return at != NULL && *at == '\0';
}

/* Appends, in decimal digits, a whole number that is written after 0x, 0o or 0b. Returns false if the word is no such
 * number. */
static bool put_hex_octal_or_binary_number(struct text *out, const char *word)
{
    unsigned base = word[0] != '0'   ? 0
                    : word[1] == 'x' ? 16
                    : word[1] == 'o' ? 8
                    : word[1] == 'b' ? 2
                                     : 0;
    bool has_valid_separators =
        base > 0 && strstr(word, "__") == NULL && word[strlen(word) - 1] != '_';
    return has_valid_separators && settings_put_decimal(out, word + 2, base);
}

/* Reads a number or a word: true, 8192, 1_000, 3e-4, inf. */
static enum status read_number_or_word(struct toml_reader *t, struct text *out)
{
    struct toml_reader start = *t;
    struct text text = {0};
    enum status status = STATUS_OK;
    text_puts(&text, "");
    while (t->next_char < t->end && (is_bare_key_char(*t->next_char) || *t->next_char == '+' ||
                                     *t->next_char == '.' || *t->next_char == ':'))
        text_putc(&text, *t->next_char++);
    const char *word = text.data;
    bool is_boolean_word = strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
    if (is_boolean_word) {
        text_puts(out, word);
    } else if (is_decimal(word)) {
        for (word += *word == '+'; *word != '\0'; word++)
            if (*word != '_')
                text_putc(out, *word);
    } else if (strlen(word) >= 8 && (word[4] == '-' || strchr(word, ':') != NULL)) {
        status = report_bad_toml(&start, "dates and times are not read");
    } else if (c_is_digit(word[*word == '+' || *word == '-'])) {
        if (!put_hex_octal_or_binary_number(out, word))
            status = report_bad_toml(
                &start, "this is no number of TOML: no 0 stands before other digits, and "
                        "a '_' stands between two digits, as in 8_192");
    } else {
        status = report_bad_toml(
            &start, "a value is expected here: a string between quotes, a number, true, "
                    "false, an array or a table");
    }
    text_release(&text);
    return status;
}

static enum status read_table(struct toml_reader *t);
static enum status read_value(struct toml_reader *t, struct text *out, bool nested);

/* Reads an array as the text of its elements, separated by blanks. With `nested` it is within another array, and its
 * elements are put between brackets. */
static enum status read_array(struct toml_reader *t, struct text *out, bool nested)
{
    enum status status = STATUS_OK;
    bool first = true;
    t->next_char++;
    if (nested)
        text_putc(out, '[');
    for (skip_blanks_and_comments(t, true); status == STATUS_OK && peek_char(t, 0) != ']';
         skip_blanks_and_comments(t, true)) {
        if (!first)
            text_putc(out, ' ');
        first = false;
        status = read_value(t, out, true);
        if (status != STATUS_OK)
            return status;
        skip_blanks_and_comments(t, true);
        if (peek_char(t, 0) == ',')
            t->next_char++;
        else if (peek_char(t, 0) != ']')
            return report_bad_toml(t, "',' or ']' is expected in an array");
    }
    t->next_char++;
    if (nested)
        text_putc(out, ']');
    return status;
}

/* Reads a value; nested: it is within an array. An inline table adds settings of its own, and nothing to `out`; within
 * an array it is refused. */
static enum status read_value(struct toml_reader *t, struct text *out, bool nested)
{
    enum status status;
    if (++t->nesting_depth > DEPTH_MAX)
        return report_bad_toml(t, "nested too deep");
    if (peek_char(t, 0) == '"' || peek_char(t, 0) == '\'') {
        status = read_string(t, out);
    } else if (peek_char(t, 0) == '[') {
        status = read_array(t, out, nested);
    } else if (peek_char(t, 0) == '{') {
        if (nested)
            return report_bad_toml(t, "tables in an array are not read");
        status = read_table(t);
    } else {
        status = read_number_or_word(t, out);
    }
    t->nesting_depth--;
    return status;
}

static void truncate_text(struct text *text, size_t size)
{
    text->size = size;
    text->data[size] = '\0';
}

/* Reads "name = value" and adds the setting. t->path is the name of the table around it, before and after the call. */
static enum status read_key_and_value(struct toml_reader *t)
{
    size_t before = t->path.size;
    struct loc at = {.name = t->name, .line = t->line};
    struct text value = {0};
    enum status status = read_key(t);
    if (status == STATUS_OK && peek_char(t, 0) != '=')
        status = report_bad_toml(t, "'=' is expected after a key");
    if (status == STATUS_OK) {
        t->next_char++;
        skip_blanks(t);
        text_puts(&value, "");
        bool table = peek_char(t, 0) == '{', list = peek_char(t, 0) == '[';
        status = read_value(t, &value, false);
        if (status == STATUS_OK && t->settings->setting_count == SETTINGS_MAX)
            status = settings_refuse_too_many(at, t->diag);
        if (status == STATUS_OK && !table && settings_find(t->settings, t->path.data) != NULL)
            status = diag_error(t->diag, at, STATUS_BAD_INPUT, "%s is given twice", t->path.data);
        if (status == STATUS_OK && !table)
            settings_add(t->settings, t->path.data, value.data, at)->is_list = list;
    }
    truncate_text(&t->path, before);
    text_release(&value);
    return status;
}

static enum status read_table(struct toml_reader *t)
{
    t->next_char++;
    for (skip_blanks(t); peek_char(t, 0) != '}'; skip_blanks(t)) {
        enum status status = read_key_and_value(t);
        if (status != STATUS_OK)
            return status;
        skip_blanks(t);
        if (peek_char(t, 0) == ',')
            t->next_char++;
        else if (peek_char(t, 0) != '}')
            return report_bad_toml(t, "',' or '}' is expected in a table on one line");
    }
    t->next_char++;
    return STATUS_OK;
}

static enum status read_header(struct toml_reader *t)
{
    if (begins_with(t, "[["))
        return report_bad_toml(t, "arrays of tables ([[name]]) are not read");
    t->next_char++;
    truncate_text(&t->path, 0);
    enum status status = read_key(t);
    if (status == STATUS_OK && peek_char(t, 0) != ']')
        return report_bad_toml(t, "']' is expected after the name of a table");
    if (status != STATUS_OK)
        return status;
    t->next_char++;
    return read_line_end(t);
}

enum status settings_read_toml(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag)
{
    struct toml_reader t = {
        .settings = settings,
        .name = name,
        .next_char = text,
        .end = text + size,
        .line_first_char = text,
        .line = 1,
        .diag = diag,
    };
    enum status status = STATUS_OK;
    text_puts(&t.path, "");
    for (skip_blanks_and_comments(&t, true); status == STATUS_OK && t.next_char < t.end;
         skip_blanks_and_comments(&t, true)) {
        if (*t.next_char == '[') {
            status = read_header(&t);
        } else {
            status = read_key_and_value(&t);
            if (status == STATUS_OK)
                status = read_line_end(&t);
        }
    }
    text_release(&t.path);
    return status;
}
