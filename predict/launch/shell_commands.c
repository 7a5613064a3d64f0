/* Reads the commands of a shell script: finds which of them run, and which values variables then have. */
#include "predict/launch/shell_reader.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shell_script_release(struct shell_script *script)
{
    for (size_t i = 0; i < script->command_count; i++)
        free(script->command[i].word);
    free(script->command);
    free(script->document);
    arena_release(&script->arena);
    *script = (struct shell_script){0};
}

/* ---- assignments ---- */

/* Returns an open part (predict/launch/settings.h) for a value that depends on whether the condition on line
 * s->line_of_open_condition holds. */
static const char *open_part_of_condition(const struct shell_reader *s)
{
    return arena_printf(&s->shell->script->arena, "\001the condition on line %u\002",
                        s->line_of_open_condition);
}

/* Makes the assignment A=( ... ) or, with `append`, A+=( ... ). s->next_char is after the '(', and is moved past the
 * ')'. name[0..size): A. If it is not known whether the assignment is made, A keeps its words and gets an open one in
 * place of the new ones. */
static enum status assign_array(struct shell_reader *s, const char *name, size_t size, bool append)
{
    struct shell_state *shell = s->shell;
    struct shell_words words = {0};
    enum status status = STATUS_OK;
    for (;;) {
        while (s->next_char < s->end && strchr(" \t\r\n", *s->next_char) != NULL &&
               *s->next_char != '\0')
            s->line += *s->next_char++ == '\n';
        if (s->next_char < s->end && *s->next_char == '\\' && s->next_char + 1 < s->end &&
            s->next_char[1] == '\n') {
            s->next_char += 2;
            s->line++;
            continue;
        }
        if (s->next_char < s->end && *s->next_char == '#') {
            while (s->next_char < s->end && *s->next_char != '\n')
                s->next_char++;
            continue;
        }
        if (s->next_char >= s->end || *s->next_char == ')' || status != STATUS_OK)
            break;
        uint32_t lines = 0;
        const char *begin = s->next_char, *end = shell_word_end(begin, s->end, &lines);
        if (end == NULL || end == begin) {
            status =
                shell_report_fault(s, "this array cannot be read: a quote or a bracket has no end");
            break;
        }
        status = shell_expand(shell, &words, begin, end, s->line);
        s->line += lines;
        s->next_char = end;
    }
    if (status == STATUS_OK && s->next_char >= s->end)
        status = shell_report_fault(s, "an array has no end: ')' is missing");
    s->next_char += s->next_char < s->end;
    if (status == STATUS_OK && s->do_present_commands_run != ANSWER_NO) {
        struct shell_variable *variable = shell_find_or_add_variable(shell, name, size);
        if (!append && s->do_present_commands_run == ANSWER_YES)
            variable->value.word_count = 0;
        if (s->do_present_commands_run == ANSWER_OPEN)
            shell_add_word(shell, &variable->value, open_part_of_condition(s),
                           strlen(open_part_of_condition(s)), s->line);
        for (size_t i = 0; i < words.word_count && s->do_present_commands_run == ANSWER_YES; i++)
            shell_add_word(shell, &variable->value, words.word[i].text, strlen(words.word[i].text),
                           words.word[i].line);
        variable->is_array = true;
    }
    free(words.word);
    return status;
}

/* Makes the assignment A=value or, with `append`, A+=value. name[0..size): A; the value stands from `text` to `end`. If
 * it is not known whether the assignment is made, and it would change A, the new value, or only the part that it adds
 * to the value of A, becomes open. */
static enum status assign_variable(struct shell_reader *s, const char *name, size_t size,
                                   bool append, const char *text, const char *end, uint32_t line)
{
    struct text value = {0};
    const struct shell_variable *old = shell_find_variable(s->shell, name, size);
    const char *before = old != NULL && old->value.word_count > 0 ? old->value.word[0].text : "";
    text_puts(&value, append ? before : "");
    enum status status = shell_expand_text(s->shell, &value, text, end, line, false);
    if (status == STATUS_OK && s->do_present_commands_run == ANSWER_OPEN &&
        strcmp(value.data, before) != 0) {
        bool grows = before[0] != '\0' && strstr(value.data, before) != NULL;
        value.size = 0;
        text_printf(&value, "%s%s%s", grows ? before : "", grows ? " " : "",
                    open_part_of_condition(s));
    }
    if (status == STATUS_OK && s->do_present_commands_run != ANSWER_NO)
        shell_set_variable(s->shell, name, size, value.data, line);
    text_release(&value);
    return status;
}

/* ---- if, loops and case ---- */

static enum status push_open_block(struct shell_reader *s, enum shell_open_block_kind kind)
{
    if (s->open_block_count == SHELL_DEPTH_MAX)
        return shell_report_fault(s, "if, loops and case are nested too deep to be read");
    s->open_block[s->open_block_count++] = (struct shell_open_block){
        .kind = kind, .does_outer_block_run = s->do_present_commands_run, .line = s->line};
    return STATUS_OK;
}

/* Marks the commands that follow, in a branch or a loop, as open: something unknown decides whether they run. If the
 * block around them does not run, they do not run either. */
static void mark_commands_as_conditional(struct shell_reader *s,
                                         const struct shell_open_block *frame)
{
    s->do_present_commands_run = frame->does_outer_block_run == ANSWER_NO ? ANSWER_NO : ANSWER_OPEN;
    if (frame->does_outer_block_run == ANSWER_YES)
        s->line_of_open_condition = frame->line;
}

static void enter_then_branch(struct shell_reader *s, struct shell_open_block *frame)
{
    enum shell_answer holds = s->does_last_command_succeed;
    s->do_present_commands_run = ANSWER_NO;
    if (frame->does_outer_block_run == ANSWER_NO || frame->has_branch_taken)
        return;
    if (holds == ANSWER_YES) {
        frame->has_branch_taken = true;
        s->do_present_commands_run = frame->does_outer_block_run;
    }
    if (holds == ANSWER_OPEN || (holds == ANSWER_YES && frame->has_branch_maybe_taken))
        mark_commands_as_conditional(s, frame);
    frame->has_branch_maybe_taken = frame->has_branch_maybe_taken || holds == ANSWER_OPEN;
}

static void enter_else_branch(struct shell_reader *s, const struct shell_open_block *frame)
{
    s->do_present_commands_run = frame->has_branch_taken ? ANSWER_NO : frame->does_outer_block_run;
    if (!frame->has_branch_taken && frame->has_branch_maybe_taken)
        mark_commands_as_conditional(s, frame);
}

/* Skips to the end of the line or to a ';': past the list of a `for`, or the name of a function. */
static void skip_to_command_end(struct shell_reader *s)
{
    uint32_t lines = 0;
    while (s->next_char < s->end && *s->next_char != '\n' && *s->next_char != ';') {
        const char *end = shell_word_end(s->next_char, s->end, &lines);
        s->next_char = end == NULL || end == s->next_char ? s->next_char + 1 : end;
    }
    s->line += lines;
}

/* Moves past the `in` of a case, or to the end of the line if there is none. */
static void skip_to_in_keyword(struct shell_reader *s)
{
    uint32_t lines = 0;
    while (s->next_char < s->end && *s->next_char != '\n') {
        const char *end = shell_word_end(s->next_char, s->end, &lines);
        bool in =
            end != NULL && shell_text_equals_word(s->next_char, (size_t)(end - s->next_char), "in");
        s->next_char = end == NULL || end == s->next_char ? s->next_char + 1 : end;
        if (in)
            break;
    }
    s->line += lines;
}

/* If the word from s->next_char to `end`, with which a command begins, is a keyword of the shell, enters or leaves the
 * block that it begins or ends, moves past it and sets *taken. Otherwise clears *taken. */
static enum status take_block_keyword(struct shell_reader *s, const char *end, bool *taken)
{
    const char *word = s->next_char;
    size_t size = (size_t)(end - word);
    struct shell_open_block *frame =
        s->open_block_count > 0 ? &s->open_block[s->open_block_count - 1] : NULL;
    enum status status = STATUS_OK;
    *taken = true;
    s->next_char = end;
    if (shell_text_equals_word(word, size, "if")) {
        status = push_open_block(s, OPEN_BLOCK_IF);
    } else if (shell_text_equals_word(word, size, "while") ||
               shell_text_equals_word(word, size, "until")) {
        status = push_open_block(s, OPEN_BLOCK_LOOP);
    } else if (shell_text_equals_word(word, size, "for") ||
               shell_text_equals_word(word, size, "select")) {
        status = push_open_block(s, OPEN_BLOCK_LOOP);
        skip_to_command_end(s);
    } else if (shell_text_equals_word(word, size, "case")) {
        status = push_open_block(s, OPEN_BLOCK_CASE);
        skip_to_in_keyword(s);
        if (status == STATUS_OK)
            mark_commands_as_conditional(s, &s->open_block[s->open_block_count - 1]);
    } else if (shell_text_equals_word(word, size, "then") && frame != NULL &&
               frame->kind == OPEN_BLOCK_IF) {
        enter_then_branch(s, frame);
    } else if (shell_text_equals_word(word, size, "elif") && frame != NULL &&
               frame->kind == OPEN_BLOCK_IF) {
        s->do_present_commands_run = frame->does_outer_block_run;
    } else if (shell_text_equals_word(word, size, "else") && frame != NULL &&
               frame->kind == OPEN_BLOCK_IF) {
        enter_else_branch(s, frame);
    } else if (shell_text_equals_word(word, size, "do") && frame != NULL &&
               frame->kind == OPEN_BLOCK_LOOP) {
        mark_commands_as_conditional(s, frame);
    } else if ((shell_text_equals_word(word, size, "fi") ||
                shell_text_equals_word(word, size, "done") ||
                shell_text_equals_word(word, size, "esac")) &&
               frame != NULL) {
        s->do_present_commands_run = frame->does_outer_block_run;
        s->does_last_command_succeed = ANSWER_YES;
        s->open_block_count--;
    } else if (shell_text_equals_word(word, size, "function")) {
        skip_to_command_end(s);
    } else if (shell_text_equals_word(word, size, "!")) {
        s->is_inverted = true;
        return STATUS_OK;
    } else if (!shell_text_equals_word(word, size, "{") &&
               !shell_text_equals_word(word, size, "}") &&
               !shell_text_equals_word(word, size, "time")) {
        s->next_char = word;
        *taken = false;
        return STATUS_OK;
    }
    s->join_operator = '\0';
    return status;
}

/* ---- commands ---- */

static enum status run_script(struct shell_reader *s);

/* Runs the script that words of a command contain: word number `first`, as in bash -c '...', or, with `joined`, that
 * word and all after it, as in eval ... */
static enum status run_nested_script(struct shell_reader *s, const struct shell_words *words,
                                     size_t first, bool joined)
{
    struct text text = {0};
    struct shell_reader inner = {.shell = s->shell,
                                 .do_present_commands_run = s->do_present_commands_run,
                                 .does_last_command_succeed = ANSWER_YES,
                                 .line_of_open_condition = s->line_of_open_condition,
                                 .line = words->word[first].line};
    for (size_t i = first; i < words->word_count && (joined || i == first); i++)
        text_printf(&text, "%s%s", i > first ? " " : "", words->word[i].text);
    inner.next_char = text.data;
    inner.end = text.data + text.size;
    enum status status = STATUS_OK;
    if (++s->shell->nesting_depth > SHELL_DEPTH_MAX)
        status = shell_report_fault(s, "scripts within scripts are nested too deep to be read");
    else
        status = run_script(&inner);
    s->shell->nesting_depth--;
    text_release(&text);
    return status;
}

static bool path_ends_in(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

/* Returns the value of a variable; NULL: the script does not set it. */
static const char *variable_text(const struct shell_reader *s, const char *name)
{
    const struct shell_variable *variable = shell_find_variable(s->shell, name, strlen(name));
    return variable != NULL && variable->value.word_count > 0 ? variable->value.word[0].text : NULL;
}

/* Adds a command to the script's list, which takes over the words and leaves *words empty. If the command runs a script
 * in its words (eval, bash -c), runs that script instead. Does nothing for a command that does not run. */
static enum status add_or_run_command(struct shell_reader *s, struct shell_words *words)
{
    struct shell_script *script = s->shell->script;
    if (words->word_count == 0 || s->do_present_commands_run == ANSWER_NO)
        return STATUS_OK;
    if (path_ends_in(words->word[0].text, "eval") && words->word_count > 1)
        return run_nested_script(s, words, 1, true);
    for (size_t i = 0; i + 2 < words->word_count; i++)
        if ((path_ends_in(words->word[i].text, "bash") ||
             path_ends_in(words->word[i].text, "sh")) &&
            words->word[i + 1].text[0] == '-' && strchr(words->word[i + 1].text, 'c') != NULL &&
            words->word[i + 1].text[1] != '-')
            return run_nested_script(s, words, i + 2, false);
    script->command = heap_grow(script->command, &script->capacity, script->command_count + 1,
                                sizeof *script->command);
    script->command[script->command_count++] = (struct shell_command){
        .word = words->word,
        .word_count = words->word_count,
        .visible_devices = variable_text(s, "CUDA_VISIBLE_DEVICES"),
        .processes_per_node = variable_text(s, "NPROC_PER_NODE"),
        .node_count = variable_text(s, "NNODES"),
        .config_file = variable_text(s, "CONFIG_FILE"),
        .module = variable_text(s, "MODULE"),
        .recipe = variable_text(s, "CONFIG"),
        .gpu_count = variable_text(s, "NGPU"),
        .line = words->word[0].line,
        .runs_conditionally = s->do_present_commands_run == ANSWER_OPEN,
    };
    *words = (struct shell_words){0}; /* the script owns them now */
    return STATUS_OK;
}

/* True if a word begins with NAME= or NAME+=. Sets *size to the length of the name, *append to whether it is +=, and
 * *begin to the text after the '='. */
static bool is_assignment(const char *word, const char *end, size_t *size, bool *append,
                          const char **begin)
{
    *size = shell_variable_name_size(word, end);
    const char *at = word + *size;
    *append = at + 1 < end && at[0] == '+' && at[1] == '=';
    at += *append;
    *begin = at + 1;
    return *size > 0 && at < end && *at == '=';
}

static bool is_declaration(const struct shell_words *words)
{
    static const char *const names[] = {"export", "declare", "local", "readonly", "typeset"};
    for (size_t i = 0; words->word_count > 0 && i < ARRAY_LEN(names); i++)
        if (strcmp(words->word[0].text, names[i]) == 0)
            return true;
    return false;
}

/* Reads one word of the script. If it is an assignment, makes it; else appends the words to which it expands. */
static enum status read_word(struct shell_reader *s, struct shell_words *words)
{
    uint32_t lines = 0, line = s->line;
    const char *word = s->next_char, *begin, *end = shell_word_end(word, s->end, &lines);
    size_t size;
    bool append;
    if (end == NULL)
        return shell_report_fault(s,
                                  "a quote or a bracket has no end in the word that begins here");
    s->next_char = end;
    s->shell->does_command_surely_run = s->do_present_commands_run == ANSWER_YES;
    bool sets = (words->word_count == 0 || is_declaration(words)) &&
                is_assignment(word, end, &size, &append, &begin);
    if (sets && begin == end && end < s->end && *end == '(') {
        s->next_char = end + 1;
        return assign_array(s, word, size, append);
    }
    s->line += lines;
    if (sets)
        return assign_variable(s, word, size, append, begin, end, line);
    return shell_expand(s->shell, words, word, end, line);
}

/* Returns whether the present command runs. If it stands after && or ||, that depends on the command before, too. */
static enum shell_answer does_command_run(const struct shell_reader *s)
{
    enum shell_answer runs = s->do_present_commands_run;
    if (s->join_operator == '&' && s->does_last_command_succeed < runs)
        return s->does_last_command_succeed;
    if (s->join_operator == '|' && shell_negate_answer(s->does_last_command_succeed) < runs)
        return shell_negate_answer(s->does_last_command_succeed);
    return runs;
}

/* Reads one command, up to the separator or line end after it, and runs it or adds it to the script's list. */
static enum status read_command(struct shell_reader *s)
{
    struct shell_words words = {0};
    enum shell_answer runs = s->do_present_commands_run, before = s->does_last_command_succeed;
    char joined = s->join_operator;
    enum status status = STATUS_OK;
    bool bracket = false;
    unsigned documents = s->here_document_count;
    s->output_file = NULL;
    s->do_present_commands_run = does_command_run(s);
    if (s->do_present_commands_run == ANSWER_OPEN && runs == ANSWER_YES)
        s->line_of_open_condition = s->line;
    while (status == STATUS_OK && s->next_char < s->end) {
        char c = *s->next_char;
        bool digits = (size_t)(s->end - s->next_char) > 1 && c_is_digit(c) &&
                      (s->next_char[1] == '>' || s->next_char[1] == '<');
        bool both = c == '&' && s->next_char + 1 < s->end && s->next_char[1] == '>';
        if (c == ' ' || c == '\t' || c == '\r') {
            s->next_char++;
        } else if (bracket && c == '\n') { /* [[ ]] may have several lines */
            s->next_char++;
            s->line++;
        } else if (c == '\\' && s->next_char + 1 < s->end &&
                   (s->next_char[1] == '\n' || s->next_char[1] == '\r')) {
            s->next_char += s->next_char[1] == '\r' && s->next_char + 2 < s->end ? 3 : 2;
            s->line++;
        } else if (c == '#') {
            while (s->next_char < s->end && *s->next_char != '\n')
                s->next_char++;
        } else if (bracket &&
                   (c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>')) {
            bool joins =
                (c == '&' || c == '|') && s->next_char + 1 < s->end && s->next_char[1] == c;
            shell_add_word(s->shell, &words, s->next_char, joins ? 2 : 1, s->line);
            s->next_char += joins ? 2 : 1;
        } else if (digits || both || c == '<' || c == '>') {
            status = shell_read_redirection(s);
        } else if (strchr("\n;&|()", c) != NULL && c != '\0') {
            break;
        } else if (c == '\0') {
            status = shell_report_fault(s, "a NUL byte: this is no script");
        } else {
            status = read_word(s, &words);
            bracket = words.word_count > 0 && strcmp(words.word[0].text, "[[") == 0 &&
                      strcmp(words.word[words.word_count - 1].text, "]]") != 0;
        }
        if (words.word_count > SHELL_WORDS_MAX)
            status = shell_report_fault(s, "a command has too many words to be read");
    }
    for (; documents < s->here_document_count; documents++) {
        s->here_document[documents].output_file = s->output_file;
        if (words.word_count > 1 && strcmp(words.word[0].text, "read") == 0)
            s->here_document[documents].variable = words.word[words.word_count - 1].text;
    }
    if (status == STATUS_OK) {
        enum shell_answer end = shell_answer_of_command(&words);
        end = s->is_inverted ? shell_negate_answer(end) : end;
        s->does_last_command_succeed = joined == '&'   ? (end < before ? end : before)
                                       : joined == '|' ? (end > before ? end : before)
                                                       : end;
        status = add_or_run_command(s, &words);
    }
    s->is_inverted = false;
    s->join_operator = '\0';
    s->do_present_commands_run = runs;
    free(words.word);
    return status;
}

/* Reads a line "#SBATCH --nodes=4" and sets the variables that Slurm then sets. */
static void read_sbatch_line(struct shell_reader *s, const char *end)
{
    static const struct {
        const char *option, *variable;
    } rows[] = {{"--nodes", "SLURM_NNODES"},
                {"--nodes", "SLURM_JOB_NUM_NODES"},
                {"-N", "SLURM_NNODES"},
                {"-N", "SLURM_JOB_NUM_NODES"},
                {"--gpus-per-node", "SLURM_GPUS_PER_NODE"},
                {"--gpus-per-node", "SLURM_GPUS_ON_NODE"},
                {"--ntasks-per-node", "SLURM_NTASKS_PER_NODE"}};
    char line[128] = "", option[64], value[32];
    snprintf(line, sizeof line, "%.*s", (int)(end - s->next_char < 127 ? end - s->next_char : 127),
             s->next_char);
    if (sscanf(line, "#SBATCH %63[^= ]%*[= ]%31[0-9]", option, value) != 2)
        return;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(option, rows[i].option) == 0)
            shell_set_variable(s->shell, rows[i].variable, strlen(rows[i].variable), value,
                               s->line);
}

static void skip_comment(struct shell_reader *s)
{
    const char *end = memchr(s->next_char, '\n', (size_t)(s->end - s->next_char));
    end = end == NULL ? s->end : end;
    read_sbatch_line(s, end);
    s->next_char = end;
}

/* Reads one of the characters between commands: a blank, a line end, ; & | && || or a parenthesis. The here-documents
 * that a line announces are read after its end. */
static enum status read_separator(struct shell_reader *s)
{
    char c = *s->next_char++;
    if (c == '\n') {
        s->line++;
        return shell_read_here_documents(s);
    }
    if ((c == '&' || c == '|') && s->next_char < s->end && *s->next_char == c) {
        s->next_char++;
        s->join_operator = c;
    } else if (c == ';') {
        s->join_operator = '\0';
    }
    return STATUS_OK;
}

/* Skips a command (( ... )) without evaluating it; whether it succeeds is open. */
static void skip_arithmetic(struct shell_reader *s)
{
    while (s->next_char < s->end && *s->next_char != '\n' && *s->next_char != ')')
        s->next_char++;
    while (s->next_char < s->end && *s->next_char == ')')
        s->next_char++;
    s->does_last_command_succeed = ANSWER_OPEN;
    s->join_operator = '\0';
}

static enum status run_script(struct shell_reader *s)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && s->next_char < s->end) {
        char c = *s->next_char;
        uint32_t lines = 0;
        bool taken = false;
        if (c == '#') {
            skip_comment(s);
            continue;
        }
        if (c == '\\' && s->next_char + 1 < s->end && s->next_char[1] == '\n') {
            s->next_char += 2;
            s->line++;
            continue;
        }
        if (c == '(' && s->next_char + 1 < s->end && s->next_char[1] == '(') {
            skip_arithmetic(s);
            continue;
        }
        if (c != '\0' && strchr(" \t\r\n;&|()", c) != NULL) {
            status = read_separator(s);
            continue;
        }
        const char *end = shell_word_end(s->next_char, s->end, &lines);
        if (end != NULL && end > s->next_char)
            status = take_block_keyword(s, end, &taken);
        if (status == STATUS_OK && !taken)
            status = read_command(s);
    }
    return status;
}

enum status shell_script_read(struct shell_script *script, const char *name, const char *text,
                              size_t size, struct diag *diag)
{
    struct shell_state shell = {.script = script, .name = name, .diag = diag};
    struct shell_reader s = {.shell = &shell,
                             .next_char = text,
                             .end = text + size,
                             .line = 1,
                             .do_present_commands_run = ANSWER_YES,
                             .does_last_command_succeed = ANSWER_YES};
    enum status status = run_script(&s);
    if (status == STATUS_OK && s.open_block_count > 0)
        status = diag_error(
            diag, (struct loc){.name = name, .line = s.open_block[s.open_block_count - 1].line},
            STATUS_BAD_INPUT, "%s that begins here is not closed",
            s.open_block[s.open_block_count - 1].kind == OPEN_BLOCK_IF     ? "an if"
            : s.open_block[s.open_block_count - 1].kind == OPEN_BLOCK_LOOP ? "a loop"
                                                                           : "a case");
    for (size_t i = 0; i < shell.variable_count; i++)
        free(shell.variable[i].value.word);
    free(shell.variable);
    return status;
}
