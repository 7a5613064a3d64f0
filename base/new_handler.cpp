#include "base/arena.h"

#include <new>

void heap_guard_operator_new(bool on)
{
    static std::new_handler before;
    if (on)
        before = std::set_new_handler(heap_out_of_memory);
    else
        std::set_new_handler(before);
}
