/* Finds which conditions of a shell script hold. */
#include "predict/launch/shell_reader.h"

#include <string.h>

enum shell_answer shell_negate_answer(enum shell_answer answer)
{
    return (enum shell_answer)(ANSWER_YES - answer);
}

static enum shell_answer answer_of_bool(bool holds)
{
    return holds ? ANSWER_YES : ANSWER_NO;
}

static bool has_open_part(const char *text)
{
    return strchr(text, SETTING_OPEN_PART_BEGIN) != NULL;
}

static enum shell_answer evaluate_comparison(const char *left, const char *sign, const char *right)
{
    static const char *const signs[] = {"-eq", "-ne", "-gt", "-ge", "-lt", "-le"};
    int64_t a, b;
    if (has_open_part(left) || has_open_part(right))
        return ANSWER_OPEN;
    if (strcmp(sign, "=") == 0 || strcmp(sign, "==") == 0)
        return strpbrk(right, "*?[") != NULL ? ANSWER_OPEN
                                             : answer_of_bool(strcmp(left, right) == 0);
    if (strcmp(sign, "!=") == 0)
        return strpbrk(right, "*?[") != NULL ? ANSWER_OPEN
                                             : answer_of_bool(strcmp(left, right) != 0);
    if (!parse_i64(left, strlen(left), &a) || !parse_i64(right, strlen(right), &b))
        return ANSWER_OPEN;
    const bool holds[] = {a == b, a != b, a > b, a >= b, a < b, a <= b};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (strcmp(sign, signs[i]) == 0)
            return answer_of_bool(holds[i]);
    return ANSWER_OPEN;
}

/* Returns whether one test holds; ANSWER_OPEN: it is not known, as for -f FILE. word[0..count): the test without its
 * brackets. */
static enum shell_answer evaluate_one_test(const struct shell_word *word, size_t count)
{
    if (count > 0 && strcmp(word[0].text, "!") == 0)
        return shell_negate_answer(evaluate_one_test(word + 1, count - 1));
    if (count == 1)
        return has_open_part(word[0].text) ? ANSWER_OPEN : answer_of_bool(word[0].text[0] != '\0');
    if (count == 2 && !has_open_part(word[1].text) && strcmp(word[0].text, "-z") == 0)
        return answer_of_bool(word[1].text[0] == '\0');
    if (count == 2 && !has_open_part(word[1].text) && strcmp(word[0].text, "-n") == 0)
        return answer_of_bool(word[1].text[0] != '\0');
    return count == 3 ? evaluate_comparison(word[0].text, word[1].text, word[2].text) : ANSWER_OPEN;
}

/* ---- conditions of [[ ]] ---- */

/* The state of evaluating the words between [[ and ]]. */
struct shell_condition {
    const struct shell_word *next_word, *end;
    unsigned depth;               /* the number of parentheses around next_word */
    bool is_condition_unreadable; /* the words are no condition, or one that is nested too deep */
};

static enum shell_answer evaluate_or(struct shell_condition *c);

static bool next_word_is(const struct shell_condition *c, const char *text)
{
    return c->next_word < c->end && strcmp(c->next_word->text, text) == 0;
}

/* Returns the position after a test, which ends before && or ||, or before the ')' that closes a group around it. A
 * regular expression (=~) may have parentheses of its own, with any words between them. */
static const struct shell_word *one_test_end(struct shell_condition *c)
{
    const struct shell_word *word = c->next_word;
    size_t nested = 0;
    for (; word < c->end; word++) {
        const bool closes = strcmp(word->text, ")") == 0;
        if (nested == 0 &&
            (closes || strcmp(word->text, "&&") == 0 || strcmp(word->text, "||") == 0))
            break;
        nested += strcmp(word->text, "(") == 0;
        nested -= closes;
    }
    c->is_condition_unreadable = c->is_condition_unreadable || nested > 0;
    return word;
}

/* Evaluates one test, or a condition in parentheses, with any number of '!' before it. */
static enum shell_answer evaluate_primary(struct shell_condition *c)
{
    enum shell_answer answer;
    bool is_inverted = false;
    for (; next_word_is(c, "!"); c->next_word++)
        is_inverted = !is_inverted;
    if (next_word_is(c, "(") && c->depth < SHELL_DEPTH_MAX) {
        c->next_word++;
        c->depth++;
        answer = evaluate_or(c);
        c->depth--;
        c->is_condition_unreadable = c->is_condition_unreadable || !next_word_is(c, ")");
        c->next_word += next_word_is(c, ")");
    } else {
        const struct shell_word *begin = c->next_word;
        c->is_condition_unreadable = c->is_condition_unreadable || next_word_is(c, "(");
        c->next_word = one_test_end(c);
        answer = evaluate_one_test(begin, (size_t)(c->next_word - begin));
    }
    return is_inverted ? shell_negate_answer(answer) : answer;
}

static enum shell_answer evaluate_and(struct shell_condition *c)
{
    enum shell_answer all = evaluate_primary(c);
    while (next_word_is(c, "&&")) {
        c->next_word++;
        enum shell_answer one = evaluate_primary(c);
        all = one < all ? one : all;
    }
    return all;
}

static enum shell_answer evaluate_or(struct shell_condition *c)
{
    enum shell_answer any = evaluate_and(c);
    while (next_word_is(c, "||")) {
        c->next_word++;
        enum shell_answer one = evaluate_and(c);
        any = one > any ? one : any;
    }
    return any;
}

/* Returns whether the condition word[0..count), without its [[ and ]], holds. Within it && binds tighter than ||, as
 * in bash; between commands of a list both have the same precedence (shell_commands.c). */
static enum shell_answer evaluate_condition(const struct shell_word *word, size_t count)
{
    struct shell_condition c = {.next_word = word, .end = word + count};
    enum shell_answer answer = evaluate_or(&c);
    return c.is_condition_unreadable || c.next_word < c.end ? ANSWER_OPEN : answer;
}

/* ---- commands ---- */

enum shell_answer shell_answer_of_command(const struct shell_words *words)
{
    const char *name = words->word_count > 0 ? words->word[0].text : "";
    size_t count = words->word_count;
    if (strcmp(name, "false") == 0)
        return ANSWER_NO;
    if (strcmp(name, "test") == 0)
        return evaluate_one_test(words->word + 1, count - 1);
    if (strcmp(name, "[") == 0)
        return count > 2 ? evaluate_one_test(words->word + 1, count - 2) : ANSWER_OPEN;
    if (strcmp(name, "[[") == 0)
        return count > 2 ? evaluate_condition(words->word + 1, count - 2) : ANSWER_OPEN;
    return has_open_part(name) ? ANSWER_OPEN : ANSWER_YES;
}
