/* Work that copies elements to other places or adds them there, mostly because an all-to-all needs the elements for
 * each rank in one piece. */
#include "exec/assignment.h"
#include "exec/cpu/kernels.h"
#include "exec/moved_rows.h"

#include <string.h>

/* Copies x, (rows, parts * (w0 + w1 + w2)), to up to three blocks (parts, rows, w), one for each w that is not 0;
 * without `pack`, copies the blocks to x. */
static void pack_or_unpack_blocks(const struct call *call, bool pack)
{
    const struct work *work = call->work;
    const struct operand *whole = pack ? &call->read[0] : &call->write[0];
    const struct operand *block = pack ? call->write : call->read;
    const size_t size = dtype_bytes(whole->dtype);
    const int64_t rows = work->pack.rows, parts = work->pack.parts;
    const int64_t cols = parts * (work->pack.w[0] + work->pack.w[1] + work->pack.w[2]);
    int64_t column = 0;
    for (int i = 0; i < 3; i++) {
        int64_t w = work->pack.w[i];
        if (w == 0)
            continue;
        for (int64_t p = 0; p < parts; p++, column += w)
            for (int64_t r = 0; r < rows; r++) {
                char *in_whole = (char *)whole->data + (size_t)(r * cols + column) * size;
                char *in_block = (char *)block->data + (size_t)((p * rows + r) * w) * size;
                memmove(pack ? in_block : in_whole, pack ? in_whole : in_block, (size_t)w * size);
            }
        block++;
    }
}

/* Copies rows of experts from the order [ranks, experts, rows], by the ranks that sent them, to the order [experts,
 * ranks, rows]; without `pack`, in the other direction. */
static void reorder_expert_rows(const struct call *call, bool pack)
{
    const struct routed_rows *routed = call->routed_rows;
    const struct operand *from = &call->read[0], *to = &call->write[0];
    const size_t width = (size_t)call->work->pack.w[0] * dtype_bytes(from->dtype);
    const int64_t *count = routed->rows_per_rank_by_expert + routed->first_expert;
    const uint32_t own = routed->experts / routed->ranks;
    size_t by_rank = 0, of_rank = 0, before = 0;
    for (uint32_t e = 0; e < own; e++)
        of_rank += (size_t)count[e];
    for (uint32_t e = 0; e < own; before += (size_t)count[e++])
        for (uint32_t r = 0; r < routed->ranks; r++) {
            const size_t by_expert = before * routed->ranks + r * (size_t)count[e];
            by_rank = r * of_rank + before;
            memcpy((char *)to->data + (pack ? by_expert : by_rank) * width,
                   (const char *)from->data + (pack ? by_rank : by_expert) * width,
                   (size_t)count[e] * width);
        }
}

const char *cpu_pack(const struct call *call, float *scratch)
{
    (void)scratch;
    if (call->routed_rows != NULL)
        reorder_expert_rows(call, true);
    else
        pack_or_unpack_blocks(call, true);
    return NULL;
}

const char *cpu_unpack(const struct call *call, float *scratch)
{
    (void)scratch;
    if (call->routed_rows != NULL)
        reorder_expert_rows(call, false);
    else
        pack_or_unpack_blocks(call, false);
    return NULL;
}

const char *cpu_head_expand(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t dim = work->heads.dim;
    const float *x = call->read[0].data;
    float *y = call->write[0].data;
    for (int64_t h = 0; h < work->heads.rows * work->heads.heads; h++, x += dim)
        for (int64_t c = 0; c < work->heads.copies; c++, y += dim)
            memmove(y, x, (size_t)dim * sizeof *y);
    return NULL;
}

const char *cpu_head_reduce(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t dim = work->heads.dim;
    const float *x = call->read[0].data;
    float *y = call->write[0].data;
    for (int64_t h = 0; h < work->heads.rows * work->heads.heads; h++, y += dim) {
        memmove(y, x, (size_t)dim * sizeof *y);
        x += dim;
        for (int64_t c = 1; c < work->heads.copies; c++, x += dim)
            for (int64_t d = 0; d < dim; d++)
                y[d] += x[d];
    }
    return NULL;
}

/* Copies, in each part, the outer row of each pair of `moved` in x to the inner row in the result; with `back`, the
 * inner row in x to the outer row in the result. A part of x has x_rows rows. */
static void copy_moved_rows(const struct call *call, const struct moved_rows *moved, bool back,
                            const struct operand *x, int64_t x_rows)
{
    const struct work *work = call->work;
    const size_t size = (size_t)work->take_rows.width * dtype_bytes(x->dtype);
    for (int64_t p = 0; p < work->take_rows.parts; p++) {
        const char *from = (const char *)x->data + (size_t)(p * x_rows) * size;
        char *to = (char *)call->write[0].data + (size_t)(p * work->take_rows.to) * size;
        for (int64_t i = 0; i < moved->count; i++) {
            int64_t a = moved_outer_row(moved, i), b = moved_inner_row(moved, i);
            memcpy(to + (size_t)(back ? a : b) * size, from + (size_t)(back ? b : a) * size, size);
        }
    }
}

const char *cpu_take_rows(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->take_rows.rows, to = work->take_rows.to;
    const int64_t room = rows < to ? rows : to;
    const enum take_rows_order how = (enum take_rows_order)work->take_rows.take;
    const struct moved_rows moved =
        moved_rows_get_list(call->exchanged_rows, moved_list_of_work(work), room);
    memset(call->write[0].data, 0,
           call->write[0].element_count * dtype_bytes((enum dtype)call->write[0].dtype));
    if (how == TAKE_ROWS_TO_ROUND_ORDER && call->read_count > 1) {
        const struct moved_rows arrived =
            moved_rows_get_list(call->exchanged_rows, MOVED_RECEIVED, room);
        copy_moved_rows(call, &arrived, false, &call->read[1], work->take_rows.arrived);
    }
    copy_moved_rows(call, &moved, how != TAKE_ARRIVED_ROWS_TO_POSITIONS, &call->read[0], rows);
    return NULL;
}

const char *cpu_add_rows(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->add_rows.rows, to = work->add_rows.to, width = work->add_rows.width;
    const struct moved_rows moved =
        moved_rows_get_list(call->exchanged_rows, moved_list_of_work(work), rows < to ? rows : to);
    if (call->write[0].data != call->read[1].data)
        memmove(call->write[0].data, call->read[1].data,
                (size_t)(work->add_rows.parts * to * width) * sizeof(float));
    for (int64_t p = 0; p < work->add_rows.parts; p++)
        for (int64_t i = 0; i < moved.count; i++) {
            const float *x =
                (const float *)call->read[0].data + (p * rows + moved_outer_row(&moved, i)) * width;
            float *y = (float *)call->write[0].data + (p * to + moved_inner_row(&moved, i)) * width;
            for (int64_t c = 0; c < width; c++)
                y[c] += x[c];
        }
    return NULL;
}
