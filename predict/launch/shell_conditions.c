/* Finds which conditions of a shell script hold. */
#include "predict/launch/shell_reader.h"

#include <string.h>

enum shell_answer shell_not(enum shell_answer answer)
{
    return (enum shell_answer)(ANSWER_YES - answer);
}

static enum shell_answer answer_of_bool(bool holds)
{
    return holds ? ANSWER_YES : ANSWER_NO;
}

static bool has_open_part(const char *text)
{
    return strchr(text, SETTING_OPEN) != NULL;
}

static enum shell_answer compare_texts(const char *left, const char *sign, const char *right)
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

/* Returns whether one test holds. word[0..count): the test without its brackets. */
static enum shell_answer evaluate_one_test(const struct shell_word *word, size_t count)
{
    if (count > 0 && strcmp(word[0].text, "!") == 0)
        return shell_not(evaluate_one_test(word + 1, count - 1));
    if (count == 1)
        return has_open_part(word[0].text) ? ANSWER_OPEN : answer_of_bool(word[0].text[0] != '\0');
    if (count == 2 && !has_open_part(word[1].text) && strcmp(word[0].text, "-z") == 0)
        return answer_of_bool(word[1].text[0] == '\0');
    if (count == 2 && !has_open_part(word[1].text) && strcmp(word[0].text, "-n") == 0)
        return answer_of_bool(word[1].text[0] != '\0');
    return count == 3 ? compare_texts(word[0].text, word[1].text, word[2].text) : ANSWER_OPEN;
}

/* Returns whether a condition holds that consists of tests with && and || between them. These are applied from left to
 * right with equal precedence (within [[ ]], bash itself applies && first). word[0..count): the condition without its
 * brackets. */
static enum shell_answer evaluate_test(const struct shell_word *word, size_t count)
{
    enum shell_answer all = ANSWER_YES;
    char joined = '&';
    for (size_t begin = 0, i = 0; i <= count; i++) {
        bool and = i < count && strcmp(word[i].text, "&&") == 0;
        bool or = i < count && strcmp(word[i].text, "||") == 0;
        if (i < count && !and&&! or)
            continue;
        enum shell_answer one = evaluate_one_test(word + begin, i - begin);
        all = joined == '&' ? (one < all ? one : all) : (one > all ? one : all);
        joined = or ? '|' : '&';
        begin = i + 1;
    }
    return all;
}

enum shell_answer shell_command_answer(const struct shell_words *words)
{
    const char *name = words->word_count > 0 ? words->word[0].text : "";
    size_t count = words->word_count;
    if (strcmp(name, "false") == 0)
        return ANSWER_NO;
    if (strcmp(name, "test") == 0)
        return evaluate_test(words->word + 1, count - 1);
    if (strcmp(name, "[") == 0 || strcmp(name, "[[") == 0)
        return count > 2 ? evaluate_test(words->word + 1, count - 2) : ANSWER_OPEN;
    return has_open_part(name) ? ANSWER_OPEN : ANSWER_YES;
}
