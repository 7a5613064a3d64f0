#include "cli/plan/settings.h"

#include "predict/launch/launch.h"

enum status settings_print(struct text *out, enum framework framework,
                           const struct choices *choices, struct diag *diag)
{
    /* for frameworks of Trainer's family, settings are written only if they express the whole configuration */
    if (framework >= FRAMEWORK_AXOLOTL) {
        enum status status = expressible_check(framework, choices, diag);
        return status == STATUS_OK ? launch_print(out, framework, choices, diag) : status;
    }
    expressible_put_gaps(out, framework, choices);
    return launch_print(out, framework, choices, diag);
}
