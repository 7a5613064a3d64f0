#include "predict/two_layers.h"

#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"

enum status two_layers_make_activation_table(struct activation_row **row, uint32_t *rows,
                                             const struct request *request, struct diag *diag)
{
    struct transformer model = *request->model;
    struct request asked = *request;
    struct choices choices;
    struct ir ir = {0};
    model.layers = 2;
    asked.model = &model;
    asked.weights = CHOICE_WEIGHTS_REPLICATED;
    asked.activations = CHOICE_ACTIVATIONS_KEEP;
    asked.optimizer = -1;
    asked.host_layers = 0;
    *row = NULL;
    *rows = 0;
    enum status status = resolve_choices(&choices, &asked, NULL, diag);
    if (status == STATUS_OK)
        status = step_build_with_planned_memories(&ir, &choices, 0, diag);
    if (status == STATUS_OK)
        *row = activations_of_layer(&ir, 0, rows);
    for (uint32_t i = 0; i < *rows; i++)
        (*row)[i].name_stem = NULL; /* its text is released with the ir */
    ir_release(&ir);
    return status;
}
