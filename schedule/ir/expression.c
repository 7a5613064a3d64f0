#include "schedule/ir/expression.h"

#include "base/c_locale.h"
#include "base/text.h"

#include <stddef.h>
#include <string.h>

struct expression_reader {
    const char *at, *end;
    const struct expression_variable *variable;
    uint32_t variable_count;
};

bool expression_read_digits(const char **at, const char *end, int64_t *value)
{
    const char *begin = *at;
    while (*at < end && c_is_digit(**at))
        ++*at;
    return *at > begin && parse_i64(begin, (size_t)(*at - begin), value);
}

static const struct expression_variable *find_variable(struct expression_reader *r)
{
    const char *begin = r->at;
    while (r->at < r->end && c_is_alpha(*r->at))
        r->at++;
    size_t size = (size_t)(r->at - begin);
    for (uint32_t i = 0; i < r->variable_count; i++)
        if (strlen(r->variable[i].name) == size && memcmp(r->variable[i].name, begin, size) == 0)
            return &r->variable[i];
    return NULL;
}

/* Reads a term: "2*L", "L" or "17". */
static bool read_term(struct expression_reader *r, int64_t *value)
{
    bool number = r->at < r->end && c_is_digit(*r->at);
    *value = 1;
    if (number && !expression_read_digits(&r->at, r->end, value))
        return false;
    if (number && (r->at == r->end || *r->at != '*'))
        return true;
    r->at += number;
    const struct expression_variable *variable = find_variable(r);
    return variable && !__builtin_mul_overflow(*value, variable->value, value);
}

bool expression_read(const char *at, const char *end, const struct expression_variable *variable,
                     uint32_t count, int64_t *value)
{
    struct expression_reader r = {at, end, variable, count};
    *value = 0;
    for (bool first = true; first || r.at < end; first = false) {
        bool minus = r.at < end && *r.at == '-';
        int64_t term;
        if (!first && !minus && (r.at == end || *r.at != '+'))
            return false;
        r.at += minus || !first;
        if (!read_term(&r, &term))
            return false;
        if (minus ? __builtin_sub_overflow(*value, term, value)
                  : __builtin_add_overflow(*value, term, value))
            return false;
    }
    return true;
}
