/* exec/microbench_list.h: what sets of measurements are put together from. A case that a list has is not added again.
 * Private to exec/. */
#ifndef EXEC_MICROBENCH_LIST_H
#define EXEC_MICROBENCH_LIST_H

#include "base/arena.h"
#include "exec/microbench.h"

struct microbench_list {
    struct arena *arena;
    struct microbench_case *row;
    size_t count, capacity;
    const bool *kinds; /* wanted; NULL: all */
    uint32_t ranks;    /* of messages */
};

void microbench_add_by(struct microbench_list *list, enum point_role role, enum attention_impl impl,
                       struct work work);
void microbench_add(struct microbench_list *list, enum point_role role, struct work work);

/* Rows of the kinds that memory bounds. */
struct microbench_widths {
    int64_t cols, vocab, heads, dim;
};
/* Every such kind over `count` elements of its main operand; host: those of host streams. impl: of
 * MERGE. */
void microbench_add_memory_bound(struct microbench_list *list, int64_t count, bool host,
                                 const struct microbench_widths *widths, enum attention_impl impl);
void microbench_add_copies(struct microbench_list *list, int64_t bytes);
void microbench_add_messages(struct microbench_list *list, int64_t bytes);
void microbench_add_issue(struct microbench_list *list);

#endif
