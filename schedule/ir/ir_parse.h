/* schedule/ir/ir_parse.h: what the parts of the parser share. Private to the sources that include it. */
#ifndef SCHEDULE_IR_PARSE_H
#define SCHEDULE_IR_PARSE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "schedule/ir/ir.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct word {
    const char *at; /* NULL: there is no word */
    size_t size;
};

/* The highest op id of a free set, if that op has not been read yet. It is checked when all ops are known. line,
 * column: those of the free set. */
struct pending_free_op {
    uint32_t line, column, op;
};

struct parser {
    struct ir *ir;
    struct cursor cursor;
    struct diag *diag;
    struct arena scratch; /* coordinate sets, copies of names, and texts of messages */

    bool has_mesh, has_tokens, has_arena; /* the statement was seen; each may occur once */
    bool has_ops_line;                    /* an `ops` line was seen */
    bool has_loops;                       /* version 2 */

    struct pending_free_op *pending;
    size_t pending_count, pending_capacity;
    op_id *op_list; /* the list of ops that is being read: waits or a free set */
    size_t list_count, list_capacity;
};

/* The words that begin the clauses of an op; clause_names[] is indexed by this enum. */
enum clause { CLAUSE_READS, CLAUSE_WRITES, CLAUSE_WAITS, CLAUSE_GUARD, CLAUSE_COUNT };
extern const char *const clause_names[CLAUSE_COUNT];

/* Parses the rest of a statement whose first word has been read. Returns false after a message if there is a fault. So
 * do all functions below that return a bool and have a parser as parameter. */
typedef bool parse_function(struct parser *p);

/* Reads the statement of the line at the cursor. */
bool parse_statement(struct parser *p);

/* Fails if a word is left on the line. */
bool parse_line_end(struct parser *p);

parse_function parse_mesh, parse_tokens, parse_documents, parse_routing, parse_arena, parse_group,
    parse_role, parse_stream, parse_ops, parse_tensor, parse_bundle, parse_buffer, parse_op;

/* Reads a text of version 2, which has loops, from the line after the version line on, and parses every line to which
 * it unrolls. Messages name lines of the text; columns are those of the unrolled line. Returns false if it reported an
 * error. */
bool loops_read(struct parser *p);

/* Reports "name:line:column: error: ..." at a word of the current line; returns false. */
bool parse_error(struct parser *p, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports "unknown WHAT 'x'" with the nearest of the names or, if none is near and there are at most 16, with all of
 * them. Returns false. */
bool parse_report_unknown_word(struct parser *p, struct word word, const char *what,
                               const char *const *names, size_t count);

/* Sets *found to the index of a word in a table of names, or reports the word as unknown. */
bool parse_name_in_table(struct parser *p, struct word word, const char *what,
                         const char *const *names, size_t count, uint8_t *found);

/* Return the next word of the line. At the end of the line the word's size is 0. */
struct word cursor_next(struct cursor *cursor);
struct word parse_next_word(struct parser *p);
/* Reads the next word. If there is none, the error is "expected WHAT". */
bool parse_required_word(struct parser *p, struct word *word, const char *what);

static inline bool word_is(struct word word, const char *text)
{
    return word.size > 0 && *word.at == *text && strlen(text) == word.size &&
           memcmp(text, word.at, word.size) == 0;
}

/* Cuts *word at the first `c`: *word becomes the part before it, and the part after it is returned. Without a `c`, `at`
 * of the returned word is NULL. */
struct word word_split_at(struct word *word, char c);
/* Moves the part before the first `c` from *rest to *item; returns false if *rest is empty (its `at` is NULL). */
bool word_take_item(struct word *rest, char c, struct word *item);

/* Parses a whole decimal number from low to high. what: the number's name in messages, such as "layer". */
bool parse_number(struct parser *p, struct word word, const char *what, int64_t low, int64_t high,
                  int64_t *value);

/* Checks that *word, which stays unchanged, may be a name. what: the kind of thing that it names, for messages.
 * is_short: the name must be shorter than MESH_NAME_MAX. */
bool parse_check_is_name(struct parser *p, const char *what, bool is_short, struct word *word);

/* Reads words KEY=VALUE up to the end of the line. value[i] becomes the value of names[i]; its `at` is NULL if the line
 * lacks it. A name that ends in '!' is a flag, which the line gives without '!' and without a value. required: bit i is
 * set if the line must have names[i]. what: the kind of row for messages, such as "buffer". */
bool parse_attributes(struct parser *p, const char *what, const char *const *names, size_t count,
                      uint32_t required, struct word *value);

/* Sets *row to the row with a name, or reports the name as unknown. */
bool parse_row_name(struct parser *p, enum ir_table_with_names table, struct word word,
                    const char *what, uint16_t *row);
/* Parses "cp,hp" as a bit mask of mesh axes. */
bool parse_axis_mask(struct parser *p, struct word word, uint32_t *mask);
/* Parses "12,14" into p->op_list; at most 65535 ids. */
bool parse_op_list(struct parser *p, struct word word, const char *what);
/* Parses the sizes of dimensions, "[6144,4096]". */
bool parse_dims(struct parser *p, struct word word, struct dims *dims);

#endif
