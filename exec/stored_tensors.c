#include "exec/stored_tensors.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct stored_tensor *stored_tensors_new(const struct ir *ir)
{
    struct stored_tensor *stored = NULL;
    for (uint32_t b = 0; b < ir->bundle_count; b++) {
        const struct bundle *bundle = &ir->bundle[b];
        const enum frozen_storage storage = (enum frozen_storage)bundle->storage;
        if (storage == FROZEN_STORAGE_16BIT)
            continue;
        if (stored == NULL)
            stored = heap_zalloc(ir->tensor_count, sizeof *stored);
        for (uint32_t t = bundle->tensor_begin; t < bundle->tensor_begin + bundle->tensor_count;
             t++) {
            const int64_t rows = ir->tensor[t].rows, cols = ir->tensor[t].cols;
            const uint64_t bytes = frozen_storage_code_bytes(storage, (uint64_t)(rows * cols));
            stored[t] = (struct stored_tensor){
                .codes = heap_zalloc(bytes, 1),
                .scales = heap_zalloc(frozen_storage_scale_bytes(storage, rows, cols), 1),
                .storage = storage};
        }
    }
    return stored;
}

void stored_tensors_free(struct stored_tensor *stored, const struct ir *ir)
{
    for (uint32_t t = 0; stored != NULL && t < ir->tensor_count; t++) {
        free(stored[t].codes);
        free(stored[t].scales);
    }
    free(stored);
}

void stored_tensors_encode(struct stored_tensor *stored, const struct tensor *tensor,
                           const double *values)
{
    frozen_storage_encode(stored->storage, tensor->rows, tensor->cols, values, stored->codes,
                          stored->scales);
}

void stored_tensors_decode(const struct stored_tensor *stored, const struct tensor *tensor,
                           double *values)
{
    const size_t count = (size_t)(tensor->rows * tensor->cols);
    float *x = heap_alloc(count, sizeof *x);
    frozen_storage_decode(stored->storage, tensor->rows, tensor->cols, stored->codes,
                          stored->scales, x);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)x[i];
    free(x);
}

bool stored_tensors_is_source_of_buffer(const struct exec_buffer *buffer)
{
    const uint16_t bundle = buffer->buffer_binding->bundle;
    return bundle != IR_NONE16 && buffer->ir->bundle[bundle].storage != FROZEN_STORAGE_16BIT &&
           (buffer->buffer_binding->kind == BINDING_PARAM ||
            buffer->buffer_binding->kind == BINDING_SCALES);
}

/* Copies to a buffer the part that it holds of a tensor's codes or scales. These are `bytes` bytes at `from`, which lie
 * at byte `at` of the bundle; the buffer holds the bytes of the bundle from byte `begin` on. */
static void copy_overlap_to_buffer(const struct exec_buffer *buffer, uint64_t begin,
                                   const uint8_t *from, uint64_t at, uint64_t bytes)
{
    const uint64_t end = begin + buffer->element_count;
    const uint64_t first = at > begin ? at : begin, last = at + bytes < end ? at + bytes : end;
    if (first < last)
        memcpy((uint8_t *)buffer->data + (first - begin), from + (first - at), last - first);
}

void stored_tensors_fill(const struct stored_tensor *stored, const struct exec_buffer *buffer)
{
    const struct ir *ir = buffer->ir;
    const struct binding *binding = buffer->buffer_binding;
    const struct bundle *bundle = &ir->bundle[binding->bundle];
    uint32_t instance, index = 0;
    uint64_t elements = 0, scales = 0;
    assert(stored != NULL);
    if (binding->shard_group != IR_NONE16 &&
        !group_find_member(&ir->mesh, &ir->group[binding->shard_group], buffer->rank, &instance,
                           &index))
        return;
    memset(buffer->data, 0, buffer->element_count);
    for (uint32_t t = bundle->tensor_begin; t < bundle->tensor_begin + bundle->tensor_count; t++) {
        const enum frozen_storage storage = stored[t].storage;
        const int64_t rows = ir->tensor[t].rows, cols = ir->tensor[t].cols;
        const uint64_t of_scales = frozen_storage_scale_bytes(storage, rows, cols);
        if (binding->kind == BINDING_SCALES)
            copy_overlap_to_buffer(buffer, 0, stored[t].scales, scales, of_scales);
        else
            copy_overlap_to_buffer(buffer, buffer->element_count * index, stored[t].codes,
                                   frozen_storage_code_bytes(storage, elements),
                                   frozen_storage_code_bytes(storage, (uint64_t)(rows * cols)));
        elements += (uint64_t)(rows * cols);
        scales += of_scales;
    }
}
