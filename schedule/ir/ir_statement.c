/* The statements of a schedule, each with the function that parses it. */
#include "schedule/ir/ir_parse.h"

static const struct {
    const char *name;
    parse_function *parse;
} statements[] = {
    {"op", parse_op}, /* the most frequent statements come first */
    {"buffer", parse_buffer}, {"mesh", parse_mesh},           {"tokens", parse_tokens},
    {"arena", parse_arena},   {"group", parse_group},         {"role", parse_role},
    {"stream", parse_stream}, {"tensor", parse_tensor},       {"bundle", parse_bundle},
    {"ops", parse_ops},       {"documents", parse_documents}, {"routing", parse_routing},
};

bool parse_statement(struct parser *p)
{
    struct word word = parse_next_word(p);
    if (word.size == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        if (word_is(word, statements[i].name))
            return statements[i].parse(p) && parse_line_end(p);
    const char *names[ARRAY_LEN(statements)];
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        names[i] = statements[i].name;
    return parse_report_unknown_word(p, word, "statement", names, ARRAY_LEN(names));
}
