#include "exec/microbench_list.h"

#include <string.h>

static bool is_same_case(const struct microbench_case *row, enum point_role role,
                         enum attention_impl impl, const struct work *work)
{
    return row->point_role == role && row->attention_impl == impl && row->work.kind == work->kind &&
           row->work.reads == work->reads && memcmp(row->work.p, work->p, sizeof work->p) == 0;
}

void microbench_list_add_attention_case(struct microbench_list *list, enum point_role role,
                                        enum attention_impl impl, struct work work)
{
    if (list->is_wanted_by_kind && !list->is_wanted_by_kind[work.kind])
        return;
    for (size_t i = 0; i < list->count; i++)
        if (is_same_case(&list->cases[i], role, impl, &work))
            return;
    if (list->count == list->capacity) {
        size_t capacity = heap_next_capacity(list->capacity, list->count + 1);
        struct microbench_case *row = arena_array(list->arena, capacity, sizeof *row);
        if (list->count > 0)
            memcpy(row, list->cases, list->count * sizeof *row);
        list->cases = row;
        list->capacity = capacity;
    }
    list->cases[list->count++] = (struct microbench_case){(uint8_t)role, (uint8_t)impl, work};
}

void microbench_add_case(struct microbench_list *list, enum point_role role, struct work work)
{
    microbench_list_add_attention_case(list, role, (enum attention_impl)POINT_NO_IMPL, work);
}
