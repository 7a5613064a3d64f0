#include "exec/draw.h"

#include "exec/number.h"
#include "exec/parallel.h"

/* BLOCK: numbers that are drawn in fp32 and then converted together. GRAIN: the fewest numbers for a thread. */
enum { BLOCK = 1024, GRAIN = 64 * BLOCK };

/* The arguments of one call of draw_fill(), for the threads that fill parts of it. */
struct draw_fill_arguments {
    char *destination;
    enum dtype dtype;
    const struct draw *draw;
};

/* Fills elements [begin, end) of the block, counted row after row. */
static void fill_element_range(void *context, uint64_t begin, uint64_t end)
{
    const struct draw_fill_arguments *f = context;
    const struct draw *d = f->draw;
    float block[BLOCK];
    for (uint64_t at = begin; at < end;) {
        uint64_t row = at / d->cols, col = at % d->cols, left = d->cols - col;
        uint64_t count = left < end - at ? left : end - at;
        count = count < BLOCK ? count : BLOCK;
        for (uint64_t i = 0; i < count; i++)
            block[i] = draw_element(d, d->first_element + row * d->row_stride + col + i);
        number_from_f32(f->destination + at * dtype_bytes(f->dtype), f->dtype, block, count);
        at += count;
    }
}

void draw_fill(void *to, uint8_t dtype, const struct draw *draw, uint32_t threads)
{
    struct draw_fill_arguments fill = {to, (enum dtype)dtype, draw};
    parallel_for(threads, draw->rows * draw->cols, GRAIN, fill_element_range, &fill);
}
