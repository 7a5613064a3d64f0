#include "cli/page/values.h"

#include <float.h>

double page_get_number_or_0(struct json_node object, const char *key)
{
    double value = 0;
    struct json_node node = json_find_member(object, key);
    if (json_is_number(node))
        json_as_double(node, -DBL_MAX, DBL_MAX, &value, NULL);
    return value;
}

const char *page_get_text_or_empty(struct json_node object, const char *key)
{
    const char *value = "";
    struct json_node node = json_find_member(object, key);
    if (json_is_string(node))
        json_as_string(node, &value, NULL);
    return value;
}
