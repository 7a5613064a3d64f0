#include "traces/explain_part.h"

const char *explain_part_name(enum explain_part part)
{
    static const char *const names[EXPLAIN_PART_COUNT] = {
#define EXPLAIN(symbol, name) [EXPLAIN_##symbol] = (name),
        EXPLAIN_PARTS(EXPLAIN)
#undef EXPLAIN
    };
    return names[part];
}
