#include "exec/cuda/attention.h"

#include "base/arena.h"

#include <stdlib.h>

const char *const attention_way_names[ATTENTION_WAY_COUNT] = {"auto", "cudnn", "tiles"};

struct attention {
    struct attention_tiles *tiles;
};

struct attention *attention_new(const struct attention_context *context, const struct call *call,
                                struct diag *diag)
{
    struct attention *attention = heap_zalloc(1, sizeof *attention);
    attention->tiles = attention_tiles_new(context->products, call, diag);
    if (attention->tiles != NULL)
        return attention;
    attention_free(attention);
    return NULL;
}

void attention_free(struct attention *attention)
{
    if (attention == NULL)
        return;
    attention_tiles_free(attention->tiles);
    free(attention);
}

size_t attention_scratch(const struct attention *attention)
{
    return attention_tiles_scratch(attention->tiles);
}

const char *attention_run(const struct attention *attention, const struct call *call,
                          const struct cuda_place *place)
{
    return attention_tiles_run(attention->tiles, call, place);
}
