/* predict/launch/shell_reader.h: the state of reading a shell script, which the sources of shell.h share:
 * shell_commands.c (assignments, control flow, commands), shell_conditions.c and shell_here.c. */
#ifndef PREDICT_LAUNCH_SHELL_READER_H
#define PREDICT_LAUNCH_SHELL_READER_H

#include "predict/launch/shell_parts.h"

/* The answer to whether a command runs, or a test holds. ANSWER_OPEN: it cannot be known without running the script.
 * The values are in order: `&&` gives the least of two answers, `||` the greatest. */
enum shell_answer { ANSWER_NO, ANSWER_OPEN, ANSWER_YES };

enum shell_open_block_kind { OPEN_BLOCK_IF, OPEN_BLOCK_LOOP, OPEN_BLOCK_CASE };

/* An if, loop or case that is being read. */
struct shell_open_block {
    enum shell_open_block_kind kind;
    enum shell_answer does_outer_block_run; /* whether the block around it runs */
    uint32_t line;                          /* where it begins */
    bool has_branch_taken;       /* one of its branches surely runs, so that later ones do not */
    bool has_branch_maybe_taken; /* one of its earlier branches may run */
};

struct shell_here_document {
    const char *end_line_of_here_document; /* the line that ends it */
    const char *output_file; /* the file into which its command writes; NULL: none is known */
    /* the variable that the command of the document sets (read -d '' NAME <<EOF); NULL: it sets none */
    const char *variable;
    bool is_quoted;  /* its variables are not expanded */
    bool drops_tabs; /* tabs at the beginning of its lines are dropped (<<-) */
};

struct shell_reader {
    struct shell_state *shell;
    const char *next_char, *end;                 /* the text that is left */
    uint32_t line;                               /* the line of next_char */
    enum shell_answer do_present_commands_run;   /* whether the commands at this point run */
    enum shell_answer does_last_command_succeed; /* whether the last command succeeds */
    char join_operator; /* '&' or '|' if && or || stands before the present command, else '\0' */
    bool is_inverted;   /* a '!' stands before the present command */
    /* the line of the condition that makes do_present_commands_run open */
    uint32_t line_of_open_condition;
    struct shell_open_block open_block[SHELL_DEPTH_MAX]; /* outermost first */
    unsigned open_block_count;
    /* here-documents that the present line announces; they begin on the next line */
    struct shell_here_document here_document[4];
    unsigned here_document_count;
    /* the file into which the present command writes; NULL: none is known */
    const char *output_file;
};

/* Reports that the script cannot be read at the present line. what: the reason, which is the whole message. */
enum status shell_report_fault(const struct shell_reader *s, const char *what);

/* True if text[0..size) is `word`. */
bool shell_text_equals_word(const char *text, size_t size, const char *word);

/* Returns the opposite of an answer; that of ANSWER_OPEN is ANSWER_OPEN. */
enum shell_answer shell_negate_answer(enum shell_answer answer);

/* Returns whether a command succeeds. A test succeeds if it holds, `false` never does, and any other command counts as
 * successful. For a command whose name is open it is ANSWER_OPEN. */
enum shell_answer shell_answer_of_command(const struct shell_words *words);

/* Reads a redirection that begins at s->next_char: "<<EOF", "<<-'EOF'", "< file", "> file", "2>&1". A here-document is
 * noted in s->here_document. The file that standard output goes to is noted in s->output_file; NULL: only a run knows
 * its name. Any other redirection, such as "2> file", is skipped. */
enum status shell_read_redirection(struct shell_reader *s);

/* Reads the pending here-documents, whose lines begin at s->next_char. Each goes into the variable that its command
 * sets, if it surely sets one, else into the script's list. If the commands at this point do not run, they are
 * dropped. */
enum status shell_read_here_documents(struct shell_reader *s);

#endif
