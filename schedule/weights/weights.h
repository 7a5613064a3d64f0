/* schedule/weights/weights.h: what the weight choices share. */
#ifndef SCHEDULE_WEIGHTS_WEIGHTS_H
#define SCHEDULE_WEIGHTS_WEIGHTS_H

#include "schedule/program.h"

/* ZeRO-3 and HSDP hold parameters as parts; ZeRO-2 and these two reduce gradients in every
 * micro-batch, since whole gradients must not stay. */
bool weights_sharded_params(const struct choices *choices);
bool weights_reduce_each_micro_batch(const struct choices *choices);

/* Layers of a bundle. */
int64_t weights_layers_together(const struct choices *choices);

#endif
