#include "models/number_origin.h"

#include "base/arena.h"

#include <string.h>

const char *const number_origin_names[NUMBER_ORIGIN_COUNT] = {
    [NUMBER_STATED] = "stated",   [NUMBER_MEASURED] = "measured",   [NUMBER_INFERRED] = "inferred",
    [NUMBER_ASSUMED] = "assumed", [NUMBER_ESTIMATED] = "estimated",
};

enum status number_origin_read_json(struct json_node object, enum number_origin *how,
                                    struct diag *diag)
{
    const char *name;
    *how = NUMBER_STATED;
    if (json_find_member(object, "how").value == NULL)
        return STATUS_OK;
    enum status status = json_get_string(object, "how", &name, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < NUMBER_ORIGIN_COUNT; i++)
        if (strcmp(number_origin_names[i], name) == 0) {
            *how = (enum number_origin)i;
            return STATUS_OK;
        }
    return json_error(json_find_member(object, "how"), diag,
                      "expected stated, measured, inferred, assumed or estimated, not '%.100s'",
                      name);
}

bool number_origin_is_guessed(enum number_origin how)
{
    return how != NUMBER_STATED && how != NUMBER_MEASURED;
}
