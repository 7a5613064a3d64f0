#include "exec/microbench_list.h"

#include <string.h>

static bool is_same(const struct microbench_case *row, enum point_role role,
                    enum attention_impl impl, const struct work *work)
{
    return row->role == role && row->impl == impl && row->work.kind == work->kind &&
           row->work.reads == work->reads && memcmp(row->work.p, work->p, sizeof work->p) == 0;
}

void microbench_add_by(struct microbench_list *list, enum point_role role, enum attention_impl impl,
                       struct work work)
{
    if (list->kinds && !list->kinds[work.kind])
        return;
    for (size_t i = 0; i < list->count; i++)
        if (is_same(&list->row[i], role, impl, &work))
            return;
    if (list->count == list->capacity) {
        size_t capacity = heap_next_capacity(list->capacity, list->count + 1);
        struct microbench_case *row = arena_array(list->arena, capacity, sizeof *row);
        if (list->count > 0)
            memcpy(row, list->row, list->count * sizeof *row);
        list->row = row;
        list->capacity = capacity;
    }
    list->row[list->count++] = (struct microbench_case){(uint8_t)role, (uint8_t)impl, work};
}

void microbench_add(struct microbench_list *list, enum point_role role, struct work work)
{
    microbench_add_by(list, role, (enum attention_impl)POINT_NO_IMPL, work);
}
