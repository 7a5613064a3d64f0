/* predict/launch/shell_parts.h: types and functions that the sources of shell.h share: words, variables and their
 * expansion. */
#ifndef PREDICT_LAUNCH_SHELL_PARTS_H
#define PREDICT_LAUNCH_SHELL_PARTS_H

#include "base/text.h"
#include "predict/launch/settings.h"
#include "predict/launch/shell.h"

/* Words on the heap; their texts live in the script's arena. */
struct shell_words {
    struct shell_word *word;
    size_t word_count, capacity;
};

struct shell_variable {
    const char *name;
    struct shell_words value;
    bool is_array;
};

enum { SHELL_DEPTH_MAX = 24, SHELL_WORD_MAX = 1 << 20, SHELL_WORDS_MAX = 1 << 16 };

struct shell_state {
    struct shell_script *script;
    const char *name;
    struct shell_variable *variable; /* heap */
    size_t variable_count, capacity;
    unsigned nesting_depth; /* the number of expansions and scripts that contain the present text */
    size_t expanded_words_bytes; /* bytes of all words so far */
    /* the command that is read surely runs: ${A:=word} in it sets A */
    bool does_command_surely_run;
    struct diag *diag;
};

void shell_add_word(struct shell_state *shell, struct shell_words *words, const char *text,
                    size_t size, uint32_t line);
/* Returns the variable of that name; NULL: the script does not set it. */
struct shell_variable *shell_find_variable(struct shell_state *shell, const char *name,
                                           size_t size);
/* Returns the variable of that name; adds one if there is none. */
struct shell_variable *shell_find_or_add_variable(struct shell_state *shell, const char *name,
                                                  size_t size);
/* Sets a variable to one word, and adds the variable if there is none. */
void shell_set_variable(struct shell_state *shell, const char *name, size_t size, const char *value,
                        uint32_t line);

/* Returns the length of the variable name at the beginning of text; 0: there is none. */
size_t shell_variable_name_size(const char *text, const char *end);

/* Returns the end of the word that begins at text, including quotes and nested constructs, and adds the number of its
 * line ends to *lines. Returns NULL if a quote or a construct in it is not closed. */
const char *shell_word_end(const char *text, const char *end, uint32_t *lines);

/* Expands a word of the script, from `text` to `end`, and appends the words that it becomes: none, one or several. */
enum status shell_expand(struct shell_state *shell, struct shell_words *words, const char *text,
                         const char *end, uint32_t line);
/* Expands the text of an assignment or, with `document`, of a here-document, and appends the result, which is not split
 * into words. */
enum status shell_expand_text(struct shell_state *shell, struct text *out, const char *text,
                              const char *end, uint32_t line, bool document);

#endif
