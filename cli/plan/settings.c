#include "cli/plan/settings.h"

#include "predict/launch/launch.h"

enum status settings_print(struct text *out, enum framework framework,
                           const struct choices *choices, struct diag *diag)
{
    if (framework >= FRAMEWORK_AXOLOTL) { /* settings that come near are none of Trainer's family */
        enum status status = expressible_check(framework, choices, diag);
        return status == STATUS_OK ? launch_print(out, framework, choices, diag) : status;
    }
    expressible_put_gaps(out, framework, choices);
    return launch_print(out, framework, choices, diag);
}
