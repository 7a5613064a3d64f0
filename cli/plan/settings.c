#include "cli/plan/settings.h"

#include "predict/launch/launch.h"

enum status settings_print(struct text *out, enum framework framework,
                           const struct choices *choices, struct diag *diag)
{
    /* Axolotl, LLaMA-Factory and TRL are the last frameworks of the enum. They get no settings unless these express
     * every choice. */
    if (framework >= FRAMEWORK_AXOLOTL) {
        enum status status = expressible_check(framework, choices, diag);
        return status == STATUS_OK ? launch_print(out, framework, choices, diag) : status;
    }
    expressible_put_gaps(out, framework, choices);
    return launch_print(out, framework, choices, diag);
}
