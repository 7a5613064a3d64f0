#include "cli/plan/settings.h"

#include "predict/launch/launch.h"

void settings_print(struct text *out, enum framework framework, const struct choices *choices)
{
    expressible_put_gaps(out, framework, choices);
    launch_print(out, framework, choices);
}
