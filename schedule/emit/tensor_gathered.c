/* Whether a layer keeps the inputs that tensor ranks gather. */
#include "schedule/emit/tensor_parallel.h"

#include "schedule/choices/profile.h"
#include "schedule/choices/tensor_share.h"

bool tensor_keeps_gathered(const struct emit *e)
{
    return e->tensor.size > 1 &&
           (tensor_uses_dtensor(e->choices) || e->choices->profile->keeps_gathered_input);
}
