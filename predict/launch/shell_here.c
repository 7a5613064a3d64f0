/* Reads here-documents and the files of outputs in a shell script, and skips all other redirections. */
#include "predict/launch/shell_reader.h"

#include <string.h>

enum status shell_read_here_documents(struct shell_reader *s)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < s->here_document_count && status == STATUS_OK; i++) {
        const struct shell_here_document *here = &s->here_document[i];
        struct text body = {0}, filled = {0};
        uint32_t first = s->line;
        text_puts(&body, "");
        text_puts(&filled, "");
        while (s->next_char < s->end) {
            const char *newline = memchr(s->next_char, '\n', (size_t)(s->end - s->next_char));
            const char *line_end = newline == NULL ? s->end : newline;
            const char *begin = s->next_char;
            while (here->drops_tabs && begin < line_end && *begin == '\t')
                begin++;
            s->next_char = newline == NULL ? s->end : newline + 1;
            s->line += newline != NULL;
            if (shell_text_equals_word(begin, (size_t)(line_end - begin),
                                       here->end_line_of_here_document))
                break;
            text_append(&body, begin, (size_t)(line_end - begin));
            text_putc(&body, '\n');
        }
        if (!here->is_quoted)
            status =
                shell_expand_text(s->shell, &filled, body.data, body.data + body.size, first, true);
        const struct text *text = here->is_quoted ? &body : &filled;
        struct shell_script *script = s->shell->script;
        if (status == STATUS_OK && here->variable != NULL &&
            s->do_present_commands_run == ANSWER_YES) {
            shell_set_variable(s->shell, here->variable, strlen(here->variable), text->data, first);
        } else if (status == STATUS_OK && s->do_present_commands_run != ANSWER_NO) {
            script->document = heap_grow(script->document, &script->document_capacity,
                                         script->document_count + 1, sizeof *script->document);
            script->document[script->document_count++] = (struct shell_file_from_here_document){
                .text = arena_text(&script->arena, text->data, text->size),
                .file = here->output_file,
                .line = first};
        }
        text_release(&body);
        text_release(&filled);
    }
    s->here_document_count = 0;
    return status;
}

/* Sets s->output_file to the file that a word after ">" or ">>" names; NULL if only a run knows its name. */
static enum status set_output_file(struct shell_reader *s, const char *word, const char *end)
{
    struct text file = {0};
    text_puts(&file, "");
    enum status status = shell_expand_text(s->shell, &file, word, end, s->line, false);
    if (status == STATUS_OK)
        s->output_file = strchr(file.data, SETTING_OPEN_PART_BEGIN) != NULL
                             ? NULL
                             : arena_text(&s->shell->script->arena, file.data, file.size);
    text_release(&file);
    return status;
}

enum status shell_read_redirection(struct shell_reader *s)
{
    char stream = *s->next_char >= '0' && *s->next_char <= '9' ? *s->next_char++ : '1';
    const char *sign = s->next_char;
    uint32_t lines = 0;
    while (s->next_char < s->end &&
           (*s->next_char == '<' || *s->next_char == '>' || *s->next_char == '&'))
        s->next_char++;
    bool output = stream == '1' && *sign == '>' && s->next_char[-1] == '>';
    bool here = s->next_char - sign == 2 && sign[0] == '<' && sign[1] == '<';
    bool tabs = here && s->next_char < s->end && *s->next_char == '-';
    s->next_char += tabs;
    if (s->next_char < s->end && *s->next_char == '(') { /* <( ... ) */
        const char *end;
        for (end = s->next_char; end < s->end && *end != ')' && *end != '\n'; end++)
            ;
        s->next_char = end < s->end ? end + 1 : end;
        return STATUS_OK;
    }
    while (s->next_char < s->end && (*s->next_char == ' ' || *s->next_char == '\t'))
        s->next_char++;
    const char *word = s->next_char, *end = shell_word_end(word, s->end, &lines);
    if (end == NULL)
        return shell_report_fault(s, "a quote has no end");
    s->next_char = end;
    s->line += lines;
    if (output && end > word)
        return set_output_file(s, word, end);
    if (!here || end == word || s->here_document_count == ARRAY_LEN(s->here_document))
        return STATUS_OK;
    struct text mark = {0};
    bool quoted = strchr("'\"\\", *word) != NULL;
    for (; word < end; word++)
        if (strchr("'\"\\", *word) == NULL)
            text_putc(&mark, *word);
    s->here_document[s->here_document_count++] = (struct shell_here_document){
        .end_line_of_here_document =
            arena_text(&s->shell->script->arena, mark.size > 0 ? mark.data : "", mark.size),
        .is_quoted = quoted,
        .drops_tabs = tabs,
    };
    text_release(&mark);
    return STATUS_OK;
}
