#include "predict/result_names.h"

#include <stdio.h>
#include <string.h>

static struct result_name make_name(const char *before, const char *words, const char *after)
{
    struct result_name name;
    snprintf(name.text, sizeof name.text, "%s%s%s", before, words, after);
    for (char *c = name.text; *c != '\0'; c++)
        if (strchr(" -/", *c) != NULL)
            *c = '_';
    return name;
}

struct result_name result_name_of_mfu(enum mfu_convention convention)
{
    return make_name("mfu_", mfu_names[convention], "");
}

struct result_name result_name_of_cause(enum cause cause)
{
    return make_name("", cause_name(cause), "_s");
}

struct result_name result_name_of_peak(enum category category)
{
    return make_name("peak_", category_names[category], "_bytes");
}

struct result_name result_name_of_reserved(enum reserved_part part)
{
    return make_name("reserved_", reserved_part_name(part), "_bytes");
}

struct result_name result_name_of_words(const char *words)
{
    return make_name("", words, "");
}
