/* Finds the words of a shell script, and expands them. */
#include "predict/launch/shell_parts.h"

#include "base/c_locale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void shell_add_word(struct shell_state *shell, struct shell_words *words, const char *text,
                    size_t size, uint32_t line)
{
    words->word =
        heap_grow(words->word, &words->capacity, words->word_count + 1, sizeof *words->word);
    words->word[words->word_count++] =
        (struct shell_word){arena_text(&shell->script->arena, text, size), line};
    shell->expanded_words_bytes += size + sizeof *words->word;
}

struct shell_variable *shell_find_variable(struct shell_state *shell, const char *name, size_t size)
{
    for (size_t i = 0; i < shell->variable_count; i++)
        if (strlen(shell->variable[i].name) == size &&
            memcmp(shell->variable[i].name, name, size) == 0)
            return &shell->variable[i];
    return NULL;
}

struct shell_variable *shell_find_or_add_variable(struct shell_state *shell, const char *name,
                                                  size_t size)
{
    struct shell_variable *found = shell_find_variable(shell, name, size);
    if (found != NULL)
        return found;
    shell->variable = heap_grow(shell->variable, &shell->capacity, shell->variable_count + 1,
                                sizeof *shell->variable);
    found = &shell->variable[shell->variable_count++];
    *found = (struct shell_variable){.name = arena_text(&shell->script->arena, name, size)};
    return found;
}

void shell_set_variable(struct shell_state *shell, const char *name, size_t size, const char *value,
                        uint32_t line)
{
    struct shell_variable *variable = shell_find_or_add_variable(shell, name, size);
    variable->value.word_count = 0;
    variable->is_array = false;
    shell_add_word(shell, &variable->value, value, strlen(value), line);
}

size_t shell_variable_name_size(const char *text, const char *end)
{
    size_t size = 0;
    while (text + size < end && (c_is_alnum(text[size]) || text[size] == '_'))
        size++;
    return size > 0 && c_is_digit(text[0]) ? 0 : size;
}

/* ---- the ends of words and expansions ---- */

/* Returns the position after the character `close` that matches the character `open` just before text; NULL: there is
 * none. */
static const char *skip_balanced(const char *text, const char *end, char open, char close)
{
    unsigned depth = 1;
    for (; text < end; text++) {
        if (*text == '\\' && text + 1 < end) {
            text++;
        } else if (*text == '\'' && open == '(') {
            const char *quote = memchr(text + 1, '\'', (size_t)(end - text - 1));
            if (quote == NULL)
                return NULL;
            text = quote;
        } else if (*text == open) {
            depth++;
        } else if (*text == close && --depth == 0) {
            return text + 1;
        }
    }
    return NULL;
}

/* Returns the position after the expansion that begins with a '$' or '`' at text; NULL: it is not closed. */
static const char *expansion_end(const char *text, const char *end)
{
    if (*text == '`') {
        const char *quote = memchr(text + 1, '`', (size_t)(end - text - 1));
        return quote == NULL ? NULL : quote + 1;
    }
    const char *next = text + 1;
    if (next >= end)
        return next;
    if (*next == '(')
        return skip_balanced(next + 1, end, '(', ')');
    if (*next == '{')
        return skip_balanced(next + 1, end, '{', '}');
    size_t size = shell_variable_name_size(next, end);
    if (size > 0)
        return next + size;
    return strchr("0123456789@*#?$!-", *next) != NULL && *next != '\0' ? next + 1 : next;
}

/* Returns the position after the mark that ends the open part at text; if no mark ends it, text + 1. */
static const char *open_part_end(const char *text, const char *end)
{
    const char *close = memchr(text, SETTING_OPEN_PART_END, (size_t)(end - text));
    return close == NULL ? text + 1 : close + 1;
}

static const char *double_quoted_end(const char *text, const char *end)
{
    while (text < end && *text != '"') {
        if (*text == SETTING_OPEN_PART_BEGIN)
            text = open_part_end(text, end);
        else if (*text == '\\' && text + 1 < end)
            text += 2;
        else if (*text == '$' || *text == '`')
            text = expansion_end(text, end);
        else
            text++;
        if (text == NULL)
            return NULL;
    }
    return text < end ? text + 1 : NULL;
}

const char *shell_word_end(const char *text, const char *end, uint32_t *lines)
{
    const char *at = text;
    while (at != NULL && at < end && strchr(" \t\r\n;&|<>()", *at) == NULL && *at != '\0') {
        if (*at == SETTING_OPEN_PART_BEGIN) {
            at = open_part_end(at, end);
        } else if (*at == '\'') {
            const char *quote = memchr(at + 1, '\'', (size_t)(end - at - 1));
            at = quote == NULL ? NULL : quote + 1;
        } else if (*at == '"') {
            at = double_quoted_end(at + 1, end);
        } else if (*at == '$' || *at == '`') {
            at = expansion_end(at, end);
        } else if (*at == '\\') {
            at += at + 1 < end ? 2 : 1;
        } else {
            at++;
        }
    }
    if (at == NULL)
        return NULL;
    for (const char *c = text; c < at; c++)
        *lines += *c == '\n';
    return at;
}

/* ---- arithmetic ---- */

/* The state of evaluating $((...)). Whole numbers are doubles, which are exact up to 53 bits; a value that is not known
 * is NAN. */
struct shell_arithmetic {
    struct shell_state *shell;
    const char *next_char, *end;
    unsigned depth;
};

static double evaluate_sum(struct shell_arithmetic *s);

static char peek_arithmetic_operator(struct shell_arithmetic *s)
{
    while (s->next_char < s->end && c_is_space(*s->next_char))
        s->next_char++;
    return s->next_char < s->end ? *s->next_char : '\0';
}

static double evaluate_primary(struct shell_arithmetic *s)
{
    char c = peek_arithmetic_operator(s);
    double value = NAN;
    if (++s->depth > SHELL_DEPTH_MAX)
        return NAN;
    size_t size = shell_variable_name_size(s->next_char, s->end);
    if (c == '(') {
        s->next_char++;
        value = evaluate_sum(s);
        if (peek_arithmetic_operator(s) != ')')
            value = NAN;
        s->next_char += s->next_char < s->end;
    } else if (c == '-' || c == '+') {
        s->next_char++;
        value = evaluate_primary(s) * (c == '-' ? -1 : 1);
    } else if (size > 0) {
        struct shell_variable *variable = shell_find_variable(s->shell, s->next_char, size);
        int64_t number;
        const char *text =
            variable != NULL && variable->value.word_count > 0 ? variable->value.word[0].text : "";
        if (parse_i64(text, strlen(text), &number))
            value = (double)number;
        s->next_char += size;
    } else {
        const char *begin = s->next_char;
        int64_t number;
        while (s->next_char < s->end && c_is_alnum(*s->next_char))
            s->next_char++;
        if (parse_i64(begin, (size_t)(s->next_char - begin), &number))
            value = (double)number;
    }
    s->depth--;
    return value;
}

static double evaluate_product(struct shell_arithmetic *s)
{
    double value = evaluate_primary(s);
    for (char c = peek_arithmetic_operator(s); c == '*' || c == '/' || c == '%';
         c = peek_arithmetic_operator(s)) {
        s->next_char++;
        double by = evaluate_primary(s);
        if (c == '*')
            value *= by;
        else if (by == 0)
            value = NAN;
        else
            value = c == '/' ? trunc(value / by) : fmod(value, by);
    }
    return value;
}

static double evaluate_sum(struct shell_arithmetic *s)
{
    double value = evaluate_product(s);
    for (char c = peek_arithmetic_operator(s); c == '+' || c == '-';
         c = peek_arithmetic_operator(s)) {
        s->next_char++;
        double by = evaluate_product(s);
        value += c == '+' ? by : -by;
    }
    return value;
}

/* ---- expansion ---- */

/* The target of expanded characters: words that are split at blanks, or one text. */
struct expansion_target {
    struct shell_state *shell;
    struct shell_words *words; /* the words that are complete; NULL: all is one text */
    struct text text;          /* the present word, or the one text */
    bool is_word_begun;        /* `text` is a word, even if it is empty */
    uint32_t line;
};

static void finish_word(struct expansion_target *sink)
{
    if (sink->words == NULL)
        return;
    if (sink->is_word_begun)
        shell_add_word(sink->shell, sink->words, sink->text.size > 0 ? sink->text.data : "",
                       sink->text.size, sink->line);
    sink->is_word_begun = false;
    sink->text.size = 0;
}

static void put_bytes(struct expansion_target *sink, const char *text, size_t size)
{
    sink->is_word_begun = true;
    text_append(&sink->text, text, size);
    sink->shell->expanded_words_bytes += size;
}

/* Adds the value of an expansion, split at blanks unless it is quoted. An open part is not split. */
static void put_expanded_value(struct expansion_target *sink, const char *value, bool quoted)
{
    if (quoted || sink->words == NULL) {
        put_bytes(sink, value, strlen(value));
        return;
    }
    while (*value != '\0') {
        size_t size = *value == SETTING_OPEN_PART_BEGIN ? strcspn(value, "\002")
                                                        : strcspn(value, " \t\n\001");
        if (*value == SETTING_OPEN_PART_BEGIN)
            size += value[size] != '\0';
        if (size > 0)
            put_bytes(sink, value, size);
        value += size;
        if (*value != '\0' && strchr(" \t\n", *value) != NULL) {
            finish_word(sink);
            value += strspn(value, " \t\n");
        }
    }
}

/* Adds an expansion whose value is unknown, as an open part: its text in the script, from `text` to `end`, between
 * SETTING_OPEN_PART_BEGIN and SETTING_OPEN_PART_END. Control characters become blanks. */
static void put_open_part_of_script(struct expansion_target *sink, const char *text,
                                    const char *end)
{
    struct text mark = {0};
    text_putc(&mark, SETTING_OPEN_PART_BEGIN);
    for (; text < end; text++)
        text_putc(&mark, c_is_space(*text) || *text < ' ' ? ' ' : *text);
    text_putc(&mark, SETTING_OPEN_PART_END);
    put_bytes(sink, mark.data, mark.size);
    text_release(&mark);
}

static enum status expand_text_into(struct expansion_target *sink, const char *text,
                                    const char *end, bool quoted, bool document);

/* Expands the word of ${name:=word} and sets the variable whose name is name[0..size) to it. */
static enum status expand_and_set(struct expansion_target *sink, const char *name, size_t size,
                                  const char *word, const char *end, bool quoted)
{
    struct text value = {0};
    text_puts(&value, "");
    enum status status = shell_expand_text(sink->shell, &value, word, end, sink->line, false);
    if (status == STATUS_OK) {
        shell_set_variable(sink->shell, name, size, value.data, sink->line);
        put_expanded_value(sink, value.data, quoted);
    }
    text_release(&value);
    return status;
}

/* Expands ${name:-word}, ${name:=word}, ${name:+word}, and the same without ':'. Any other ${name...} becomes an open
 * part. name is NULL for $1, $2, ...; variable NULL: it is not set. whole: the '$'; text: what follows the name; end:
 * the '}'. */
static enum status expand_default(struct expansion_target *sink, const char *name,
                                  const struct shell_variable *variable, const char *whole,
                                  const char *text, const char *end, bool quoted)
{
    bool colon = *text == ':';
    char sign = text[colon];
    bool empty = variable == NULL || variable->value.word_count == 0 ||
                 (colon && variable->value.word[0].text[0] == '\0');
    const char *word = text + colon + 1;
    if (sign == '+')
        return empty ? STATUS_OK : expand_text_into(sink, word, end, quoted, false);
    if (sign != '-' && sign != '=') {
        put_open_part_of_script(sink, whole, end + 1);
        return STATUS_OK;
    }
    if (empty && sign == '=' && name != NULL && sink->shell->does_command_surely_run)
        return expand_and_set(sink, name, (size_t)(text - name), word, end, quoted);
    if (empty)
        return expand_text_into(sink, word, end, quoted, false);
    put_expanded_value(sink, variable->value.word[0].text, quoted);
    return STATUS_OK;
}

/* Adds all elements of an array, each as a word or, with `joined`, as one word with blanks between them. */
static void expand_array(struct expansion_target *sink, const struct shell_variable *variable,
                         bool quoted, bool joined)
{
    uint32_t line = sink->line;
    bool apart = sink->words != NULL && !joined;
    for (size_t i = 0; variable != NULL && i < variable->value.word_count; i++) {
        if (i > 0 && !apart)
            put_bytes(sink, " ", 1);
        else if (i > 0)
            finish_word(sink);
        if (apart)
            sink->line = variable->value.word[i].line;
        put_expanded_value(sink, variable->value.word[i].text, quoted);
        sink->is_word_begun = sink->is_word_begun || quoted;
    }
    if (apart && variable != NULL && variable->value.word_count > 0)
        finish_word(sink);
    sink->line = line;
}

/* Expands "${...}", whose '$' is at text. */
static enum status expand_braced_parameter(struct expansion_target *sink, const char *text,
                                           const char *end, bool quoted)
{
    const char *name = text + 2, *close = end - 1;
    size_t size = shell_variable_name_size(name, close);
    const char *rest = name + size;
    const struct shell_variable *variable =
        size > 0 ? shell_find_variable(sink->shell, name, size) : NULL;
    if (size == 0 && close > name && (*name == '@' || *name == '*'))
        return STATUS_OK; /* ${@:2}: no arguments are given */
    if (size == 0 && close > name + 1 && c_is_digit(*name))
        return expand_default(sink, NULL, NULL, text, name + 1, close, quoted);
    if (size > 0 && close - rest == 3 && rest[0] == '[' && rest[2] == ']' &&
        (rest[1] == '@' || rest[1] == '*')) {
        expand_array(sink, variable, quoted, rest[1] == '*' && quoted);
        return STATUS_OK;
    }
    if (size > 0 && rest < close && strchr(":-+=", *rest) != NULL)
        return expand_default(sink, name, variable, text, rest, close, quoted);
    if (size == 0 || rest != close || variable == NULL)
        put_open_part_of_script(sink, text, end);
    else if (variable->value.word_count > 0)
        put_expanded_value(sink, variable->value.word[0].text, quoted);
    return STATUS_OK;
}

/* Expands "$((...))", whose '$' is at text. */
static enum status expand_arithmetic(struct expansion_target *sink, const char *text,
                                     const char *end)
{
    struct text inner = {0};
    text_puts(&inner, "");
    enum status status =
        shell_expand_text(sink->shell, &inner, text + 3, end - 2, sink->line, true);
    struct shell_arithmetic s = {
        .shell = sink->shell, .next_char = inner.data, .end = inner.data + inner.size};
    double value = status == STATUS_OK ? evaluate_sum(&s) : NAN;
    char number[32];
    if (status == STATUS_OK && peek_arithmetic_operator(&s) == '\0' && fabs(value) < 9e15)
        put_bytes(sink, number, (size_t)c_snprintf(number, sizeof number, "%.0f", value + 0.0));
    else if (status == STATUS_OK)
        put_open_part_of_script(sink, text, end);
    text_release(&inner);
    return status;
}

static enum status expand_dollar(struct expansion_target *sink, const char *text, const char *end,
                                 bool quoted)
{
    const char *next = text + 1;
    if (*text == '`' || next >= end) {
        if (next < end)
            put_open_part_of_script(sink, text, end);
        else
            put_bytes(sink, text, 1);
        return STATUS_OK;
    }
    if (end - text >= 5 && next[0] == '(' && next[1] == '(' && end[-1] == ')' && end[-2] == ')')
        return expand_arithmetic(sink, text, end);
    if (*next == '{')
        return expand_braced_parameter(sink, text, end, quoted);
    if (*next == '@' || *next == '*')
        return STATUS_OK;
    const struct shell_variable *variable =
        shell_find_variable(sink->shell, next, shell_variable_name_size(next, end));
    if (variable == NULL)
        put_open_part_of_script(sink, text, end);
    else if (variable->value.word_count > 0)
        put_expanded_value(sink, variable->value.word[0].text, quoted);
    return STATUS_OK;
}

/* Expands the text up to `end`. quoted: it is within double quotes; document: it is that of a here-document. */
static enum status expand_text_into(struct expansion_target *sink, const char *text,
                                    const char *end, bool quoted, bool document)
{
    enum status status = STATUS_OK;
    if (++sink->shell->nesting_depth > SHELL_DEPTH_MAX ||
        sink->shell->expanded_words_bytes > SHELL_WORD_MAX * 8)
        return diag_error(
            sink->shell->diag, (struct loc){.name = sink->shell->name, .line = sink->line},
            STATUS_BAD_INPUT, "variables are nested too deep, or grow too large, to be read");
    while (text < end && status == STATUS_OK) {
        if (*text == SETTING_OPEN_PART_BEGIN) {
            const char *behind = open_part_end(text, end);
            put_bytes(sink, text, (size_t)(behind - text));
            text = behind;
        } else if (*text == '$' || *text == '`') {
            const char *behind = expansion_end(text, end);
            behind = behind == NULL ? end : behind;
            status = expand_dollar(sink, text, behind, quoted);
            text = behind;
        } else if (*text == '\\' && text + 1 < end) {
            bool kept = quoted && strchr(document ? "$`\\\n" : "$`\"\\\n", text[1]) == NULL;
            if (kept)
                put_bytes(sink, text, 1);
            if (text[1] != '\n')
                put_bytes(sink, text + 1, 1);
            text += 2;
        } else if (!document && *text == '"') {
            const char *behind = double_quoted_end(text + 1, end);
            sink->is_word_begun = true;
            /* A quote is dropped if it is within another quote, in the word of a default ("${A:-"b"}"), or has no
             * end. */
            if (quoted || behind == NULL) {
                text++;
                continue;
            }
            bool array = memchr(text, '@', (size_t)(behind - text)) != NULL;
            status = expand_text_into(sink, text + 1, behind - 1, true, false);
            if (array && sink->text.size == 0)
                sink->is_word_begun = false; /* an empty array makes no word */
            text = behind;
        } else if (!quoted && !document && *text == '\'') {
            const char *quote = memchr(text + 1, '\'', (size_t)(end - text - 1));
            quote = quote == NULL ? end : quote;
            put_bytes(sink, text + 1, (size_t)(quote - text - 1));
            text = quote < end ? quote + 1 : end;
        } else {
            put_bytes(sink, text++, 1);
        }
    }
    sink->shell->nesting_depth--;
    return status;
}

enum status shell_expand(struct shell_state *shell, struct shell_words *words, const char *text,
                         const char *end, uint32_t line)
{
    struct expansion_target sink = {.shell = shell, .words = words, .line = line};
    enum status status = expand_text_into(&sink, text, end, false, false);
    finish_word(&sink);
    text_release(&sink.text);
    return status;
}

enum status shell_expand_text(struct shell_state *shell, struct text *out, const char *text,
                              const char *end, uint32_t line, bool document)
{
    struct expansion_target sink = {.shell = shell, .line = line};
    enum status status = expand_text_into(&sink, text, end, document, document);
    if (sink.text.size > 0)
        text_append(out, sink.text.data, sink.text.size);
    text_release(&sink.text);
    return status;
}
