/* schedule/pipeline/orders.h: the functions that order the actions of a stage, to which the rows of pipelines.def
 * refer. */
#ifndef SCHEDULE_PIPELINE_ORDERS_H
#define SCHEDULE_PIPELINE_ORDERS_H

#include "schedule/pipeline/pipeline.h"

typedef void order_function(struct actions *actions, const struct choices *choices, uint32_t stage);

order_function order_multiplexed; /* defined in schedule/pipeline/multiplex.c */
order_function order_all_forward, order_one_f_one_b, order_interleaved, order_zb_v;

static inline uint32_t at_most(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

#endif
