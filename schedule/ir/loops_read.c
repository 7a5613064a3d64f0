/* Reads version 2 of the text form: loops are unrolled line by line, and the names of ops are replaced by their
 * numbers.
 *
 *     op 0 fill ...
 *     loop A L=0..2
 *       op .0 matmul ... waits A.1[L-1]    (row 1 of loop A in the iteration before)
 *       op .1 add ... waits .0             (row 0 of this loop in this iteration)
 *     end
 *     alias A[-1] .1=0                     (row 1 of the iteration before the first is op 0)
 *
 * A row is an op of a loop's body; ".1" is its name, not its place. An op is a row in one iteration of its loop and of
 * each loop around: A.1[2], C.0[4,1]. References that lead out of a loop, as A.1[-1] does, are given by aliases.
 *
 * Three steps. read_tree() reads statements and loops into a tree. count_ops() counts the ops of each loop's
 * iteration, and so finds the number in the flat list of any row in any iteration. unroll_items() prints each line once
 * for every iteration with those numbers, and the parser of flat lines reads it. */
#include "base/c_locale.h"
#include "schedule/ir/expression.h"
#include "schedule/ir/id_map.h"
#include "schedule/ir/ir_parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, NAME_MAX = 8 };

/* The most lines to which loops may unroll, as many as the rows of a table: a loop that unrolls to more is refused. */
#define UNROLLED_LINES_MAX ((uint64_t)IR_NONE - 1)

struct loop_text_item {
    struct cursor text; /* the text of its line */
    uint32_t loop;      /* the loop that begins here; IR_NONE: a statement */
    uint32_t next_item; /* the next item at the same depth; IR_NONE: none */
};

struct loop {
    char name[NAME_MAX], variable[NAME_MAX];
    int64_t first_value, trip_count, value_step;
    uint32_t line;       /* line of the text at which it begins */
    uint32_t parent;     /* IR_NONE: none */
    uint32_t depth;      /* number of loops around it */
    uint32_t first_item; /* the first item of its body; IR_NONE: none */
    /* number of ops before it: in an iteration of the enclosing loop, or, if there is none, in the schedule */
    uint64_t ops_before;
    /* number of ops and of lines in an iteration, if its inner loops are unrolled */
    uint64_t ops_per_iteration, lines_per_iteration;
    /* [row_capacity] by number of a row: the ops of one iteration before that row; UINT64_MAX: there is no row with
     * this number */
    uint64_t *op_offset_by_row;
    uint32_t row_capacity;
};

/* A further name of an op in a loop, or the number that the text gives to an op outside loops. */
struct alias {
    uint32_t loop, row; /* loop IR_NONE: the op is outside loops */
    /* value of the loop's variable; for an op outside loops, its number in the text */
    int64_t value;
    uint32_t line;                   /* for a loop's op: the line that gives the alias */
    struct word op;                  /* for a loop's op: the name of the op that has this alias */
    uint64_t op_number_in_flat_list; /* for an op outside loops: its number in the flat list */
};

struct reader {
    struct parser *p;
    struct loop_text_item *item;
    uint32_t item_count;
    size_t item_capacity;
    struct loop *loop;
    uint32_t loop_count;
    size_t loop_capacity;
    struct alias *alias;
    uint32_t alias_count;
    size_t alias_capacity;
    struct id_map names, aliases;
    uint64_t next_op; /* number of the next op in the flat list, while lines are unrolled */
    uint32_t open[DEPTH_MAX], depth; /* the loops around the line that is being read or unrolled */
    int64_t value[DEPTH_MAX]; /* while lines are unrolled: the values of these loops' variables */
    struct text unrolled;
};

/* Reports a fault in the line at the parser's cursor. */
static bool fault(struct reader *r, const char *format, ...)
{
    struct loc loc = {.name = r->p->cursor.name, .line = r->p->cursor.line};
    va_list args;
    va_start(args, format);
    diag_verror(r->p->diag, loc, STATUS_BAD_INPUT, format, args);
    va_end(args);
    return false;
}

/* Makes room for one more row in an array of the reader. */
#define GROW(r, name)                                                                              \
    (r)->name =                                                                                    \
        heap_grow((r)->name, &(r)->name##_capacity, (r)->name##_count + 1u, sizeof *(r)->name)

/* Reads an expression with the variables of the loops around. */
static bool read_expression(const struct reader *r, const char *at, const char *end, int64_t *value)
{
    struct expression_variable around[DEPTH_MAX];
    for (uint32_t d = 0; d < r->depth; d++)
        around[d] = (struct expression_variable){r->loop[r->open[d]].variable, r->value[d]};
    return expression_read(at, end, around, r->depth, value);
}

/* ---- the tree ---- */

static uint32_t find_loop(const struct reader *r, const char *name, size_t size)
{
    for (struct id_probe at = id_map_begin_probe(&r->names, hash_text(name, size));
         id_map_next_row_with_hash(&r->names, &at);)
        if (strlen(r->loop[at.row].name) == size && memcmp(r->loop[at.row].name, name, size) == 0)
            return at.row;
    return IR_NONE;
}

static bool copy_name(char out[NAME_MAX], struct word word)
{
    if (word.size == 0 || word.size >= NAME_MAX)
        return false;
    for (size_t i = 0; i < word.size; i++)
        if (!c_is_alpha(word.at[i]))
            return false;
    memcpy(out, word.at, word.size);
    out[word.size] = '\0';
    return true;
}

/* Reads "loop NAME VARIABLE=FIRST..LAST" after its first word. */
static bool read_loop(struct reader *r, struct cursor *text, struct loop *loop)
{
    struct word name = cursor_next(text), range = cursor_next(text);
    struct word bounds = word_split_at(&range, '=');
    const char *c = bounds.at, *behind = bounds.at ? bounds.at + bounds.size : NULL;
    int64_t last;
    bool right = copy_name(loop->name, name) && copy_name(loop->variable, range) && c &&
                 expression_read_digits(&c, behind, &loop->first_value) && behind - c > 2 &&
                 c[0] == '.' && c[1] == '.';
    if (right)
        c += 2;
    right = right && expression_read_digits(&c, behind, &last) && c == behind &&
            cursor_next(text).size == 0;
    if (!right)
        return fault(
            r,
            "expected 'loop NAME VARIABLE=FIRST..LAST', names of up to %d letters, such as "
            "'loop A L=0..31'",
            NAME_MAX - 1);
    if (find_loop(r, name.at, name.size) != IR_NONE)
        return fault(r, "there is a loop '%s' already", loop->name);
    loop->value_step = last < loop->first_value ? -1 : 1;
    if ((uint64_t)((last - loop->first_value) * loop->value_step) >= UNROLLED_LINES_MAX)
        return fault(r, "a loop has at most %" PRIu64 " iterations", (uint64_t)UNROLLED_LINES_MAX);
    loop->trip_count = (last - loop->first_value) * loop->value_step + 1;
    return true;
}

static bool open_loop(struct reader *r, struct cursor *text)
{
    struct loop loop = {.line = text->line,
                        .parent = r->depth > 0 ? r->open[r->depth - 1] : IR_NONE,
                        .depth = r->depth,
                        .first_item = IR_NONE};
    if (!read_loop(r, text, &loop))
        return false;
    if (r->depth == DEPTH_MAX)
        return fault(r, "loops are nested at most %d deep", DEPTH_MAX);
    for (uint32_t d = 0; d < r->depth; d++)
        if (strcmp(r->loop[r->open[d]].variable, loop.variable) == 0)
            return fault(r, "'%s' is the variable of a loop around this one", loop.variable);
    GROW(r, loop);
    r->open[r->depth++] = r->loop_count;
    id_map_add(&r->names, hash_text(loop.name, strlen(loop.name)), r->loop_count);
    r->loop[r->loop_count++] = loop;
    return true;
}

static uint64_t alias_hash(uint32_t loop, uint32_t row, int64_t value)
{
    return hash_word(hash_word(loop, row), (uint64_t)value);
}

static void add_alias(struct reader *r, struct alias alias)
{
    GROW(r, alias);
    id_map_add(&r->aliases, alias_hash(alias.loop, alias.row, alias.value), r->alias_count);
    r->alias[r->alias_count++] = alias;
}

/* Returns the first alias with that loop, row and value; NULL if there is none. */
static const struct alias *find_alias_of_row_at_value(const struct reader *r, uint32_t loop,
                                                      uint32_t row, int64_t value)
{
    struct id_probe at = id_map_begin_probe(&r->aliases, alias_hash(loop, row, value));
    while (id_map_next_row_with_hash(&r->aliases, &at)) {
        const struct alias *alias = &r->alias[at.row];
        if (alias->loop == loop && alias->row == row && alias->value == value)
            return alias;
    }
    return NULL;
}

/* Reads "alias A[0] .1=6 .2=B.3[4]" after its first word. */
static bool read_alias(struct reader *r, struct cursor *text)
{
    struct word name = cursor_next(text), value = word_split_at(&name, '[');
    struct alias alias = {.line = text->line};
    bool right = value.size > 1 && value.at[value.size - 1] == ']' &&
                 parse_i64(value.at, value.size - 1, &alias.value);
    if (!right)
        return fault(r, "expected 'alias NAME[VALUE] .ROW=OP...'");
    alias.loop = find_loop(r, name.at, name.size);
    if (alias.loop == IR_NONE)
        return fault(r, "there is no loop '%.*s'", (int)name.size, name.at);
    for (struct word word; (word = cursor_next(text)).size > 0;) {
        int64_t row;
        alias.op = word_split_at(&word, '=');
        if (!alias.op.at || word.size < 2 || word.at[0] != '.' ||
            !parse_i64(word.at + 1, word.size - 1, &row) || row < 0 || row >= (int64_t)IR_NONE)
            return fault(r, "expected '.ROW=OP', not '%.*s'", (int)word.size, word.at);
        alias.row = (uint32_t)row;
        add_alias(r, alias);
    }
    return true;
}

/* Adds an item to the tree. last[d]: the last item so far at depth d of the loops that are open; IR_NONE: none. The new
 * item follows the one at its own depth, and takes its place there. */
static void add_item(struct reader *r, struct loop_text_item item, uint32_t last[DEPTH_MAX + 1])
{
    GROW(r, item);
    uint32_t row = r->item_count++;
    r->item[row] = item;
    if (last[r->depth] != IR_NONE)
        r->item[last[r->depth]].next_item = row;
    else if (r->depth > 0)
        r->loop[r->open[r->depth - 1]].first_item = row;
    last[r->depth] = row;
}

static bool read_tree(struct reader *r)
{
    struct cursor *cursor = &r->p->cursor;
    uint32_t last[DEPTH_MAX + 1];
    memset(last, 0xff, sizeof last);
    while (cursor_next_line(cursor)) {
        const char *line_end = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
        struct loop_text_item item = {*cursor, IR_NONE, IR_NONE};
        item.text.end = line_end ? line_end : cursor->end;
        struct cursor text = item.text;
        struct word word = cursor_next(&text);
        if (word_is(word, "end")) {
            if (r->depth == 0)
                return fault(r, "'end' without a loop");
            r->depth--;
        } else if (word_is(word, "alias")) {
            if (!read_alias(r, &text))
                return false;
        } else if (word_is(word, "loop")) {
            item.loop = r->loop_count;
            add_item(r, item, last);
            if (!open_loop(r, &text))
                return false;
            last[r->depth] = IR_NONE;
        } else if (word.size > 0) {
            add_item(r, item, last);
        }
    }
    if (r->depth > 0) {
        const struct loop *open = &r->loop[r->open[r->depth - 1]];
        cursor->line = open->line;
        return fault(r, "loop '%s' has no 'end'", open->name);
    }
    return true;
}

/* ---- numbers of ops ---- */

static bool record_op_row_of_loop(struct reader *r, struct loop *loop, struct word name)
{
    int64_t row;
    if (name.size < 2 || name.at[0] != '.' || !parse_i64(name.at + 1, name.size - 1, &row) ||
        row < 0 || row > 1 << 24)
        return fault(r,
                     "in a loop an op is named by a point and a number, such as '.3', "
                     "not '%.*s'",
                     (int)name.size, name.at);
    if ((uint32_t)row >= loop->row_capacity) {
        uint32_t old = loop->row_capacity;
        loop->row_capacity = (uint32_t)heap_next_capacity(old, (size_t)row + 1);
        loop->op_offset_by_row = heap_realloc(loop->op_offset_by_row, loop->row_capacity,
                                              sizeof *loop->op_offset_by_row);
        memset(loop->op_offset_by_row + old, 0xff,
               (loop->row_capacity - old) * sizeof *loop->op_offset_by_row);
    }
    if (loop->op_offset_by_row[row] != UINT64_MAX)
        return fault(r, "loop '%s' has an op .%" PRId64 " already", loop->name, row);
    loop->op_offset_by_row[row] = loop->ops_per_iteration;
    return true;
}

static bool record_op_outside_loops(struct reader *r, struct word name, uint64_t op)
{
    int64_t text;
    if (!parse_i64(name.at, name.size, &text) || text < 0)
        return fault(r, "outside loops an op is named by a number, not '%.*s'", (int)name.size,
                     name.at);
    if (find_alias_of_row_at_value(r, IR_NONE, 0, text) != NULL)
        return fault(r, "there is an op %" PRId64 " already", text);
    add_alias(r, (struct alias){.loop = IR_NONE, .value = text, .op_number_in_flat_list = op});
    return true;
}

/* Counts the ops of the items from `first` on, which are the body of the loop `within`, or the top level if that is
 * IR_NONE. Records the ops' names with their numbers. */
static bool count_ops(struct reader *r, uint32_t first, uint32_t within)
{
    uint64_t ops = 0, lines = 0;
    for (uint32_t i = first; i != IR_NONE; i = r->item[i].next_item, lines++) {
        const struct loop_text_item *item = &r->item[i];
        struct cursor text = item->text;
        r->p->cursor.line = text.line;
        if (within != IR_NONE)
            r->loop[within].ops_per_iteration = ops;
        if (item->loop != IR_NONE) {
            r->loop[item->loop].ops_before = ops;
            if (!count_ops(r, r->loop[item->loop].first_item, item->loop))
                return false;
            const struct loop *loop = &r->loop[item->loop];
            r->p->cursor.line = text.line;
            if (loop->lines_per_iteration > 0 &&
                (uint64_t)loop->trip_count >
                    (UNROLLED_LINES_MAX - lines) / loop->lines_per_iteration)
                return fault(r, "more than %" PRIu64 " lines", (uint64_t)UNROLLED_LINES_MAX);
            lines += loop->lines_per_iteration * (uint64_t)loop->trip_count;
            ops += loop->ops_per_iteration * (uint64_t)loop->trip_count;
        } else if (word_is(cursor_next(&text), "op")) {
            struct word name = cursor_next(&text);
            bool noted = within != IR_NONE ? record_op_row_of_loop(r, &r->loop[within], name)
                                           : record_op_outside_loops(r, name, ops);
            if (!noted)
                return false;
            ops++;
        }
    }
    if (within != IR_NONE) {
        r->loop[within].ops_per_iteration = ops;
        r->loop[within].lines_per_iteration = lines;
    }
    return true;
}

/* ---- names of ops ---- */

static bool find_op_of_name(struct reader *r, struct word name, bool aliased, uint64_t *op);

/* Finds the op of an alias. Its name is read as if it stood in a line of the loop around the aliased loop. */
static bool find_op_of_alias(struct reader *r, const struct alias *alias, const int64_t *value,
                             uint64_t *op)
{
    struct reader was = *r;
    uint32_t line = r->p->cursor.line;
    r->depth = r->loop[alias->loop].depth;
    for (uint32_t at = r->loop[alias->loop].parent; at != IR_NONE; at = r->loop[at].parent) {
        r->open[r->loop[at].depth] = at;
        r->value[r->loop[at].depth] = value[r->loop[at].depth];
    }
    r->p->cursor.line = alias->line;
    bool found = find_op_of_name(r, alias->op, true, op);
    r->p->cursor.line = line;
    r->depth = was.depth;
    memcpy(r->open, was.open, sizeof r->open);
    memcpy(r->value, was.value, sizeof r->value);
    return found;
}

/* Finds the number of the op that is row `row` of a loop in one iteration. value[0 .. depth]: the values of the
 * variables of the loops around the row, outermost first; that of `loop` is last. If only the last value is outside its
 * loop's range, an alias must name the op. aliased: this name is itself given by an alias, so it must not need another
 * one. */
static bool find_op_in_iteration(struct reader *r, uint32_t loop, uint32_t row,
                                 const int64_t *value, bool aliased, uint64_t *op)
{
    const struct loop *inner = &r->loop[loop];
    uint64_t number = row < inner->row_capacity ? inner->op_offset_by_row[row] : UINT64_MAX;
    bool inside = true; /* all values are in their loops' ranges */
    bool around = true; /* the values of the loops around the op's loop are in range */
    if (number == UINT64_MAX)
        return fault(r, "loop '%s' has no op .%" PRIu32, inner->name, row);
    for (uint32_t at = loop; at != IR_NONE; at = r->loop[at].parent) {
        const struct loop *l = &r->loop[at];
        int64_t iteration;
        bool in = !__builtin_sub_overflow(value[l->depth], l->first_value, &iteration) &&
                  !__builtin_mul_overflow(iteration, l->value_step, &iteration);
        in = in && iteration >= 0 && iteration < l->trip_count;
        inside = inside && in;
        around = around && (in || at == loop);
        if (inside)
            number += (uint64_t)iteration * l->ops_per_iteration + l->ops_before;
    }
    if (inside) {
        *op = number;
        return true;
    }
    const struct alias *alias = find_alias_of_row_at_value(r, loop, row, value[inner->depth]);
    if (!aliased && around && alias != NULL)
        return find_op_of_alias(r, alias, value, op);
    return fault(r, "%s.%" PRIu32 "[%" PRId64 "] is outside the loop and no alias", inner->name,
                 row, value[inner->depth]);
}

/* Sets *op to the number of the op that a name such as "A.3[L-1]" or ".3" means. Returns false after a message if there
 * is none. */
static bool resolve_op_reference(struct reader *r, struct word name, bool aliased, uint64_t *op)
{
    const char *at = memchr(name.at, '.', name.size), *end = name.at + name.size;
    int64_t row, value[DEPTH_MAX];
    uint32_t loop = r->depth > 0 ? r->open[r->depth - 1] : IR_NONE, depth = 0;
    memcpy(value, r->value, sizeof value);
    if (at > name.at)
        loop = find_loop(r, name.at, (size_t)(at - name.at));
    bool named = at > name.at,
         right = loop != IR_NONE && (++at, expression_read_digits(&at, end, &row));
    right = right && row < (int64_t)IR_NONE;
    if (right && named) {
        right = at < end && *at == '[' && end[-1] == ']';
        for (const char *from = at + 1; right && from < end; depth++) {
            const char *to = from;
            while (to < end - 1 && *to != ',')
                to++;
            right = depth < DEPTH_MAX && read_expression(r, from, to, &value[depth]);
            from = to + 1;
        }
        right = right && depth == r->loop[loop].depth + 1;
    } else {
        right = right && at == end;
    }
    if (!right)
        return fault(r, "'%.*s' names no op of a loop", (int)name.size, name.at);
    return find_op_in_iteration(r, loop, (uint32_t)row, value, aliased, op);
}

static bool find_op_of_name(struct reader *r, struct word name, bool aliased, uint64_t *op)
{
    int64_t number;
    if (name.size > 1 && name.at[0] == '@' && parse_i64(name.at + 1, name.size - 1, &number) &&
        number >= 0) {
        *op = (uint64_t)number;
        return true;
    }
    if (name.size > 0 && memchr(name.at, '.', name.size))
        return resolve_op_reference(r, name, aliased, op);
    const struct alias *alias = NULL;
    if (name.size > 0 && parse_i64(name.at, name.size, &number))
        alias = find_alias_of_row_at_value(r, IR_NONE, 0, number);
    if (alias != NULL) {
        *op = alias->op_number_in_flat_list;
        return true;
    }
    return fault(r, "there is no op '%.*s'", (int)name.size, name.at);
}

/* ---- unrolling ---- */

/* Appends the flat numbers of the ops that a list names, with commas between them. Commas separate names, except within
 * brackets. */
static bool append_op_numbers(struct reader *r, struct word list)
{
    const char *from = list.at, *end = list.at + list.size;
    for (;;) {
        const char *to = from;
        for (int open = 0; to < end && (*to != ',' || open > 0); to++)
            open += (*to == '[') - (*to == ']');
        uint64_t op;
        if (!find_op_of_name(r, (struct word){from, (size_t)(to - from)}, false, &op))
            return false;
        text_put_i64(&r->unrolled, (int64_t)op);
        if (to == end)
            return true;
        text_putc(&r->unrolled, ',');
        from = to + 1;
    }
}

/* Appends a word to *out, with the values of its expressions in place of these. */
static bool append_unrolled_word(struct reader *r, struct word word, struct text *out)
{
    const char *end = word.at + word.size;
    for (const char *at = word.at; at < end; at++) {
        if (*at != '{') {
            text_putc(out, *at);
            continue;
        }
        const char *close = memchr(at, '}', (size_t)(end - at));
        int64_t value;
        if (!close || !read_expression(r, at + 1, close, &value))
            return fault(r,
                         "expected a sum of numbers and variables of loops around, such as "
                         "{2*L+1}, not '%.*s'",
                         (int)(close ? close - at + 1 : end - at), at);
        text_put_i64(out, value);
        at = close;
    }
    return true;
}

static bool append_unrolled_list(struct reader *r, struct word list)
{
    struct text names = {0};
    bool put = append_unrolled_word(r, list, &names) &&
               append_op_numbers(r, (struct word){names.data ? names.data : "", names.size});
    text_release(&names);
    return put;
}

/* Writes a statement as a flat line into r->unrolled, and parses that line. Returns false after a message if either
 * fails. */
static bool unroll_statement(struct reader *r, const struct loop_text_item *item)
{
    struct cursor text = item->text;
    struct word word = cursor_next(&text);
    bool op = word_is(word, "op"), waits = false, put = true;
    struct parser *p = r->p;
    p->cursor.line = text.line;
    r->unrolled.size = 0;
    text_append(&r->unrolled, word.at, word.size);
    if (op) {
        cursor_next(&text); /* skips the op's name */
        text_putc(&r->unrolled, ' ');
        text_put_i64(&r->unrolled, (int64_t)r->next_op++);
    }
    while (put && (word = cursor_next(&text)).size > 0) {
        text_putc(&r->unrolled, ' ');
        if (op && waits) {
            put = append_unrolled_list(r, word);
        } else if (!op && word.size > 5 && memcmp(word.at, "free=", 5) == 0) {
            text_puts(&r->unrolled, "free=");
            put = append_unrolled_list(r, (struct word){word.at + 5, word.size - 5});
        } else {
            put = append_unrolled_word(r, word, &r->unrolled);
        }
        waits = word_is(word, "waits");
    }
    if (!put)
        return false;
    p->cursor = cursor_make(p->cursor.name, r->unrolled.data, r->unrolled.size);
    p->cursor.line = text.line;
    return parse_statement(p);
}

static bool unroll_items(struct reader *r, uint32_t first)
{
    for (uint32_t i = first; i != IR_NONE; i = r->item[i].next_item) {
        const struct loop_text_item *item = &r->item[i];
        if (item->loop == IR_NONE) {
            if (!unroll_statement(r, item))
                return false;
            continue;
        }
        const struct loop *loop = &r->loop[item->loop];
        r->open[r->depth++] = item->loop;
        for (int64_t k = 0; k < loop->trip_count && loop->first_item != IR_NONE; k++) {
            r->value[loop->depth] = loop->first_value + k * loop->value_step;
            if (!unroll_items(r, loop->first_item))
                return false;
        }
        r->depth--;
    }
    return true;
}

bool loops_read(struct parser *p)
{
    struct reader r = {.p = p};
    bool done =
        read_tree(&r) && (r.item_count == 0 || (count_ops(&r, 0, IR_NONE) && unroll_items(&r, 0)));
    for (uint32_t i = 0; i < r.loop_count; i++)
        free(r.loop[i].op_offset_by_row);
    free(r.item);
    free(r.loop);
    free(r.alias);
    id_map_release(&r.names);
    id_map_release(&r.aliases);
    text_release(&r.unrolled);
    return done;
}
