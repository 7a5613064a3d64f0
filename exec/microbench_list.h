/* exec/microbench_list.h: a list of cases to measure, and functions that add cases to it. A case that the list already
 * has is not added again. Private to exec/. */
#ifndef EXEC_MICROBENCH_LIST_H
#define EXEC_MICROBENCH_LIST_H

#include "base/arena.h"
#include "exec/microbench.h"

struct microbench_list {
    struct arena *arena;
    struct microbench_case *cases;
    size_t count, capacity;
    const bool *is_wanted_by_kind; /* [WORK_KIND_COUNT] kinds of which cases are added; NULL: all */
    uint32_t message_rank_count;   /* number of ranks that exchange messages */
};

void microbench_list_add_attention_case(struct microbench_list *list, enum point_role role,
                                        enum attention_impl impl, struct work work);
void microbench_add_case(struct microbench_list *list, enum point_role role, struct work work);

/* The row sizes of memory-bound work. */
struct microbench_widths {
    int64_t cols, vocab, heads, dim;
};
/* Adds a case of each memory-bound kind that is measured, with `count` elements in its main operand; with `host`, only
 * ADAMW on a host stream. impl: the attention implementation to which the case of MERGE belongs. */
void microbench_add_memory_bound_cases(struct microbench_list *list, int64_t count, bool host,
                                       const struct microbench_widths *widths,
                                       enum attention_impl impl);
void microbench_add_copy_cases(struct microbench_list *list, int64_t bytes);
void microbench_add_message_cases(struct microbench_list *list, int64_t bytes);
void microbench_add_issue_cases(struct microbench_list *list);

#endif
