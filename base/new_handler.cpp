#include "base/arena.h"

#include <new>

void heap_cover_new(bool covered)
{
    static std::new_handler before;
    if (covered)
        before = std::set_new_handler(heap_out);
    else
        std::set_new_handler(before);
}
