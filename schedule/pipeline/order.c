/* Orders the actions of a stage, by the pipeline. */
#include "schedule/pipeline/orders.h"

void pipeline_order(struct actions *actions, const struct choices *choices, uint32_t stage)
{
    static order_function *const order_of[CHOICE_PIPELINE_COUNT] = {
#define PIPELINE(choice, order, ...) [CHOICE_PIPELINE_##choice] = order,
#include "schedule/pipeline/pipelines.def"
#undef PIPELINE
    };
    order_of[choices->pipeline](actions, choices, stage);
}
