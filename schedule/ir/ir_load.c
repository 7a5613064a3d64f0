/* Reads a schedule: its first line, its statements or loops, and what can be checked only at the end. */
#include "schedule/ir/ir_parse.h"

#include "schedule/ir/ir_index.h"
#include "schedule/ir/ir_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the whole text ---- */

/* Parses the first line that has words, which must name the version. */
static bool parse_version_line(struct parser *p)
{
    struct word word = parse_next_word(p);
    while (word.size == 0 && cursor_next_line(&p->cursor))
        word = parse_next_word(p);
    struct word second = parse_next_word(p);
    if (!word_is(word, "longhaul") || !word_is(second, "schedule"))
        return parse_error(p, word.at,
                           "neither a recorded step of `python -m longhaul.record` nor a schedule, "
                           "which `longhaul "
                           "schedule` writes: after empty lines and comments it begins with "
                           "'longhaul schedule %d', or %d if it has loops",
                           IR_TEXT_FLAT, IR_TEXT_LOOPS);
    struct word version;
    if (!parse_required_word(p, &version, "the version of the schedule format"))
        return false;
    int64_t number;
    if (!parse_number(p, version, "the version of the schedule format", 0, INT64_MAX, &number))
        return false;
    if (number != IR_TEXT_FLAT && number != IR_TEXT_LOOPS)
        return parse_error(p, version.at,
                           "version %" PRId64 " of the schedule format: this program reads "
                           "versions %d and %d",
                           number, IR_TEXT_FLAT, IR_TEXT_LOOPS);
    p->has_loops = number == IR_TEXT_LOOPS;
    return parse_line_end(p);
}

static bool check_pending_free_ops(struct parser *p)
{
    for (size_t i = 0; i < p->pending_count; i++) {
        const struct pending_free_op *at = &p->pending[i];
        struct loc loc = {p->cursor.name, at->line, at->column};
        if (at->op >= p->ir->op.count) {
            diag_error(p->diag, loc, STATUS_BAD_INPUT,
                       "free: there is no op %" PRIu32 "; the schedule has %" PRIu32 " ops", at->op,
                       p->ir->op.count);
            return false;
        }
    }
    return true;
}

/* Reports the first NUL after the version line, if there is one. It is looked for before statements are parsed, because
 * a NUL in a word that a message quotes would end the message. */
static bool report_first_nul(struct parser *p)
{
    size_t left = (size_t)(p->cursor.end - p->cursor.at);
    const char *nul = left > 0 ? memchr(p->cursor.at, '\0', left) : NULL;
    if (!nul)
        return true;
    while (memchr(p->cursor.at, '\n', (size_t)(nul - p->cursor.at)))
        cursor_next_line(&p->cursor);
    return parse_error(p, nul, "a NUL byte: this is not text");
}

static bool parse_all_statements(struct parser *p)
{
    if (!parse_version_line(p) || !report_first_nul(p))
        return false;
    if (p->has_loops && !loops_read(p))
        return false;
    while (!p->has_loops && cursor_next_line(&p->cursor))
        if (!parse_statement(p))
            return false;
    if (!check_pending_free_ops(p))
        return false;
    if (p->ir->index) /* the roles after that of the last `ops` line have no ops */
        for (uint32_t r = p->ir->index->role_that_gets_new_ops + 1; r < p->ir->role_count; r++)
            p->ir->role[r].op_begin = p->ir->op.count;
    return true;
}

enum status ir_parse(struct ir *ir, const char *name, const char *text, size_t size,
                     struct diag *diag)
{
    assert(ir->op.count == 0 && ir->buffer.count == 0 && !ir->index);
    struct parser p = {.ir = ir, .cursor = cursor_make(name, text, size), .diag = diag};
    enum status status = parse_all_statements(&p) ? STATUS_OK : STATUS_BAD_INPUT;
    arena_release(&p.scratch);
    free(p.pending);
    free(p.op_list);
    return status;
}

enum status ir_load(struct ir *ir, const char *path, struct diag *diag)
{
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = ir_parse(ir, strcmp(path, "-") == 0 ? "standard input" : path, text.data,
                          text.size, diag);
    text_release(&text);
    return status;
}
