/* Memory of the ranks: one block of device memory, and host memory near the GPU, pinned and not pinned. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/nccl.h"

#include "base/c_locale.h"
#include "base/units.h"
#include "exec/cpu/kernels.h"
#include "exec/cuda/host_memory.h"
#include "exec/moved_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static size_t round_up_to_page(uint64_t bytes)
{
    return bytes == 0 ? PAGE : (size_t)((bytes + PAGE - 1) / PAGE * PAGE);
}

/* Reports that there is too little device memory: "rank 2 needs 71.3 GiB of planned arena and 0.4 GiB of scratch; the
 * device has 68.2 GiB free of 79.1 GiB; the largest buffer is logits0 with 7.8 GiB". */
static enum status report_no_device_memory(const struct cuda_rank *rank, size_t scratch,
                                           cudaError_t error, struct diag *diag)
{
    const struct ir *ir = rank->run->ir;
    size_t free_bytes = 0, all_bytes = 0;
    uint32_t largest = IR_NONE;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.memory[b] == MEMORY_HBM && ir->buffer.offset[b] != UINT64_MAX &&
            (largest == IR_NONE ||
             ir_buffer_bytes(ir, (buffer_id){b}) > ir_buffer_bytes(ir, (buffer_id){largest})))
            largest = b;
    struct text text = {0};
    units_put_gib(&text, (double)ir->planned_bytes[MEMORY_HBM]);
    text_puts(&text, " of planned arena and ");
    units_put_gib(&text, (double)scratch);
    text_puts(&text, " of scratch");
    if (cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess) {
        text_puts(&text, "; the device has ");
        units_put_gib(&text, (double)free_bytes);
        text_puts(&text, " free of ");
        units_put_gib(&text, (double)all_bytes);
    }
    if (largest != IR_NONE) {
        char name[64];
        ir_buffer_name(ir, (buffer_id){largest}, name, sizeof name);
        text_printf(&text, "; the largest buffer is %s with ", name);
        units_put_gib(&text, (double)ir_buffer_bytes(ir, (buffer_id){largest}));
    }
    enum status status = diag_error(diag, (struct loc){.name = "cudaMalloc"}, STATUS_SYSTEM,
                                    "%s: rank %" PRIu32 " needs %s", cudaGetErrorString(error),
                                    rank->rank, text.data);
    text_release(&text);
    return status;
}

/* Returns the index at which the key ranges of a shape begin in visible_keys, which has two numbers for each row of
 * each attention over documents. shape equal to shape_count: returns how many numbers visible_keys has. */
static size_t visible_keys_begin_of_shape(const struct exec_run *run, uint32_t shape)
{
    size_t count = 0;
    for (uint32_t s = 0; s < shape; s++)
        if (run->assignment.attention_pieces_index_by_shape[s] != IR_NONE)
            count += 2 * (size_t)run->ir->shape[s].attention.q;
    return count;
}

const int32_t *cuda_visible_keys_of_op(const struct cuda_rank *rank, uint32_t op)
{
    uint32_t shape = rank->run->ir->op.shape[op];
    return rank->run->assignment.attention_pieces_index_by_shape[shape] == IR_NONE
               ? NULL
               : rank->visible_keys + visible_keys_begin_of_shape(rank->run, shape);
}

/* Copies to the device, for each shape of attention over documents, the keys that each row of the rank sees. */
static enum status upload_visible_keys(struct cuda_rank *rank, size_t count, struct diag *diag)
{
    const struct exec_run *run = rank->run;
    const struct assignment *assignment = &run->assignment;
    int32_t *visible = heap_alloc(count + 1, sizeof *visible), *next = visible;
    for (uint32_t s = 0; s < run->ir->shape_count; s++) {
        if (assignment->attention_pieces_index_by_shape[s] == IR_NONE)
            continue;
        const struct assignment_attention_pieces *pieces =
            &assignment->attention_pieces[(size_t)assignment->attention_pieces_index_by_shape[s] *
                                              assignment->ranks +
                                          rank->rank];
        const struct call call = {.work = &run->ir->shape[s],
                                  .visible_attention_pieces = pieces->pieces,
                                  .visible_attention_piece_count = pieces->piece_count};
        for (int64_t i = 0; i < call.work->attention.q; i++, next += 2) {
            struct visible_keys keys = cpu_visible_keys(&call, i);
            next[0] = (int32_t)keys.begin;
            next[1] = (int32_t)keys.end;
        }
    }
    cudaError_t error =
        cudaMemcpy(rank->visible_keys, visible, count * sizeof *visible, cudaMemcpyHostToDevice);
    free(visible);
    return error == cudaSuccess
               ? STATUS_OK
               : cuda_report_error(diag, "cudaMemcpy (of the keys that rows see)", error);
}

/* ---- rows that context ranks exchange ---- */

static struct moved_rows moved_rows_of_shape(const struct exec_run *run, uint32_t rank,
                                             uint32_t shape, enum moved_rows_list_kind which)
{
    const struct assignment *assignment = &run->assignment;
    return moved_rows_get_list(
        &assignment->exchanged_rows[(size_t)assignment->exchanged_rows_index_by_shape[shape] *
                                        assignment->ranks +
                                    rank],
        which, 0);
}

/* Returns how many pairs of an outer and an inner row (exec/moved_rows.h) all lists of a rank have, over all shapes. */
static size_t moved_row_pair_count(const struct exec_run *run, uint32_t rank)
{
    size_t count = 0;
    for (uint32_t s = 0; s < run->ir->shape_count; s++)
        for (int k = 0;
             k < MOVED_LIST_COUNT && run->assignment.exchanged_rows_index_by_shape[s] != IR_NONE;
             k++)
            count += (size_t)moved_rows_of_shape(run, rank, s, (enum moved_rows_list_kind)k).count;
    return count;
}

const struct cuda_moved_row_pairs *cuda_moved_row_pairs_of_op(const struct cuda_rank *rank,
                                                              uint32_t op)
{
    const uint32_t row =
        rank->run->assignment.exchanged_rows_index_by_shape[rank->run->ir->op.shape[op]];
    return row == IR_NONE ? NULL : &rank->moved_row_pair_lists[(size_t)row * MOVED_LIST_COUNT];
}

static int compare_by_inner_row(const void *a, const void *b)
{
    const struct cuda_moved_row_pair *x = a, *y = b;
    const int order = (x->inner > y->inner) - (x->inner < y->inner);
    return order != 0 ? order : (x->outer > y->outer) - (x->outer < y->outer);
}

/* Copies the pairs of all lists of rows that the rank moves, for each shape of work that moves rows, to the device
 * memory at `at`. Sets rank->moved_row_pair_lists to these lists. count: the number of all pairs. */
static enum status upload_moved_row_pairs(struct cuda_rank *rank, struct cuda_moved_row_pair *at,
                                          size_t count, struct diag *diag)
{
    const struct exec_run *run = rank->run;
    struct cuda_moved_row_pair *pair = heap_alloc(count + 1, sizeof *pair), *next = pair;
    rank->moved_row_pair_lists =
        heap_zalloc((size_t)run->assignment.exchanged_rows_shape_count * MOVED_LIST_COUNT + 1,
                    sizeof *rank->moved_row_pair_lists);
    for (uint32_t s = 0; s < run->ir->shape_count; s++)
        for (int k = 0;
             k < MOVED_LIST_COUNT && run->assignment.exchanged_rows_index_by_shape[s] != IR_NONE;
             k++) {
            const struct moved_rows moved =
                moved_rows_of_shape(run, rank->rank, s, (enum moved_rows_list_kind)k);
            for (int64_t i = 0; i < moved.count; i++)
                next[i] = (struct cuda_moved_row_pair){moved_outer_row(&moved, i),
                                                       moved_inner_row(&moved, i)};
            if (moved.count > 0)
                qsort(next, (size_t)moved.count, sizeof *next, compare_by_inner_row);
            rank->moved_row_pair_lists[(size_t)run->assignment.exchanged_rows_index_by_shape[s] *
                                           MOVED_LIST_COUNT +
                                       (size_t)k] =
                (struct cuda_moved_row_pairs){at + (next - pair), moved.count};
            next += moved.count;
        }
    cudaError_t error = count == 0
                            ? cudaSuccess
                            : cudaMemcpy(at, pair, count * sizeof *pair, cudaMemcpyHostToDevice);
    free(pair);
    return error == cudaSuccess
               ? STATUS_OK
               : cuda_report_error(diag, "cudaMemcpy (of the rows that ranks need)", error);
}

/* ---- rows of experts ---- */

/* Returns how many numbers expert_begins has: a table for each shape of work on rows of experts, if routing is not
 * even. */
static size_t expert_begin_count(const struct exec_run *run)
{
    size_t tables = 0;
    for (uint32_t s = 0; s < run->ir->shape_count; s++)
        tables += run->assignment.routed_rows_index_by_shape[s] != IR_NONE;
    return tables * ((size_t)run->ir->routing.expert_count + 1);
}

const int64_t *cuda_expert_begins_of_op(const struct cuda_rank *rank, uint32_t op)
{
    const uint32_t row =
        rank->run->assignment.routed_rows_index_by_shape[rank->run->ir->op.shape[op]];
    return row == IR_NONE
               ? NULL
               : rank->expert_begins + (size_t)row * (rank->run->ir->routing.expert_count + 1u);
}

/* Copies to the device, for each shape that has such a table, where the copies of each expert begin. */
static enum status upload_expert_begins(const struct cuda_rank *rank, size_t count,
                                        struct diag *diag)
{
    const struct exec_run *run = rank->run;
    const uint32_t experts = run->ir->routing.expert_count;
    int64_t *begin = heap_zalloc(count + 1, sizeof *begin);
    for (uint32_t s = 0; s < run->ir->shape_count; s++) {
        const uint32_t row = run->assignment.routed_rows_index_by_shape[s];
        int64_t *table = begin + (size_t)row * (experts + 1u);
        for (uint32_t e = 0; row != IR_NONE && e < experts; e++)
            table[e + 1] =
                table[e] + run->assignment.routed_rows[(size_t)row * run->assignment.ranks]
                               .rows_per_rank_by_expert[e];
    }
    cudaError_t error =
        cudaMemcpy(rank->expert_begins, begin, count * sizeof *begin, cudaMemcpyHostToDevice);
    free(begin);
    return error == cudaSuccess
               ? STATUS_OK
               : cuda_report_error(diag, "cudaMemcpy (of the copies of experts)", error);
}

/* ---- allocation of device and host memory ---- */

static enum status allocate_device_memory(struct cuda_rank *rank, struct diag *diag)
{
    const struct exec_run *run = rank->run;
    const size_t seen = visible_keys_begin_of_shape(run, run->ir->shape_count);
    const size_t pairs = moved_row_pair_count(run, rank->rank), routed = expert_begin_count(run);
    size_t arena = round_up_to_page(run->ir->planned_bytes[MEMORY_HBM]),
           scratch = seen * sizeof(int32_t) + pairs * sizeof(struct cuda_moved_row_pair) +
                     routed * sizeof(int64_t);
    const size_t documents = cuda_documents_bytes(rank);
    scratch += documents;
    for (uint32_t s = 0; s < run->ir->stream_count; s++)
        scratch += rank->streams[s].scratch_bytes;
    rank->is_memory_from_nccl = run->options->registers_nccl_memory;
    if (rank->is_memory_from_nccl &&
        nccl_allocate_memory(&rank->memory[MEMORY_HBM], arena + scratch, diag) != STATUS_OK) {
        rank->memory[MEMORY_HBM] = NULL;
        return STATUS_SYSTEM;
    }
    cudaError_t error = rank->is_memory_from_nccl
                            ? cudaSuccess
                            : cudaMalloc(&rank->memory[MEMORY_HBM], arena + scratch);
    if (error != cudaSuccess) {
        rank->memory[MEMORY_HBM] = NULL;
        return report_no_device_memory(rank, scratch, error, diag);
    }
    rank->memory_bytes[MEMORY_HBM] = arena + scratch;
    char *next = (char *)rank->memory[MEMORY_HBM] + arena;
    for (uint32_t s = 0; s < run->ir->stream_count; s++) {
        rank->streams[s].scratch = next;
        next += rank->streams[s].scratch_bytes;
    }
    enum status status = cuda_upload_documents(rank, next, diag);
    next += documents;
    struct cuda_moved_row_pair *moved = (struct cuda_moved_row_pair *)(void *)next;
    rank->expert_begins = (int64_t *)(void *)(moved + pairs);
    rank->visible_keys = (int32_t *)(void *)(rank->expert_begins + routed);
    if (status == STATUS_OK)
        status = upload_moved_row_pairs(rank, moved, pairs, diag);
    if (status == STATUS_OK && routed > 0)
        status = upload_expert_begins(rank, routed, diag);
    return status == STATUS_OK && seen > 0 ? upload_visible_keys(rank, seen, diag) : status;
}

int cuda_numa_node(int device)
{
    char bus[32] = "", path[96];
    int node = -1;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess)
        return -1;
    for (char *c = bus; *c; c++)
        *c = c_lower(*c);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        char line[32];
        if (fgets(line, sizeof line, file) != NULL)
            node = (int)strtol(line, NULL, 10);
        fclose(file);
    }
    return node;
}

static enum status allocate_host_memory(struct cuda_rank *rank, enum memory memory,
                                        struct diag *diag)
{
    size_t bytes = round_up_to_page(rank->run->ir->planned_bytes[memory]);
    rank->memory[memory] = host_memory_new(bytes, cuda_numa_node(rank->device));
    if (rank->memory[memory] == NULL)
        return diag_error(diag, (struct loc){.name = "mmap"}, STATUS_SYSTEM,
                          "%s: rank %" PRIu32 " needs %zu bytes of %s memory", strerror(errno),
                          rank->rank, bytes, memory_names[memory]);
    rank->memory_bytes[memory] = bytes;
    if (memory != MEMORY_PINNED)
        return STATUS_OK;
    cudaError_t error = cudaHostRegister(rank->memory[memory], bytes, cudaHostRegisterPortable);
    if (error == cudaSuccess)
        return STATUS_OK;
    host_memory_free(rank->memory[memory], bytes);
    rank->memory[memory] = NULL;
    return diag_error(diag, (struct loc){.name = "cudaHostRegister"}, STATUS_SYSTEM,
                      "%s: rank %" PRIu32 " needs %zu bytes of pinned memory",
                      cudaGetErrorString(error), rank->rank, bytes);
}

enum status cuda_open_memory(struct cuda_rank *rank, struct diag *diag)
{
    enum status status = allocate_device_memory(rank, diag);
    for (int m = 0; m < MEMORY_COUNT && status == STATUS_OK; m++)
        if (m != MEMORY_HBM)
            status = allocate_host_memory(rank, (enum memory)m, diag);
    if (status != STATUS_OK)
        return status;
    cudaError_t error = cudaHostAlloc((void **)&rank->fault_op_plus_1_address,
                                      sizeof *rank->fault_op_plus_1_address,
                                      cudaHostAllocMapped | cudaHostAllocPortable);
    if (error != cudaSuccess)
        return cuda_report_error(diag, "cudaHostAlloc", error);
    *rank->fault_op_plus_1_address = 0;
    return STATUS_OK;
}

void cuda_close_memory(struct cuda_rank *rank)
{
    for (int m = 0; m < MEMORY_COUNT; m++) {
        if (rank->memory[m] == NULL)
            continue;
        if (m == MEMORY_HBM && rank->is_memory_from_nccl) {
            nccl_free_memory(rank->memory[m]);
        } else if (m == MEMORY_HBM) {
            cudaFree(rank->memory[m]);
        } else {
            if (m == MEMORY_PINNED)
                cudaHostUnregister(rank->memory[m]);
            host_memory_free(rank->memory[m], rank->memory_bytes[m]);
        }
    }
    free(rank->moved_row_pair_lists);
    free(rank->documents);
    if (rank->fault_op_plus_1_address != NULL)
        cudaFreeHost(rank->fault_op_plus_1_address);
}

/* ---- fill of unbound memory with NaNs ---- */

struct arena_range {
    uint64_t begin, end;
};

static int compare_by_begin(const void *a, const void *b)
{
    const struct arena_range *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Lists the byte ranges of the rank's bound buffers in one memory, ascending, and then an empty range at the end of
 * the arena. */
static size_t list_bound_byte_ranges(const struct cuda_rank *rank, enum memory memory,
                                     struct arena_range *range)
{
    const struct ir *ir = rank->run->ir;
    size_t count = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (ir->buffer.binding[b] != IR_NONE16 && ir->buffer.memory[b] == memory &&
            ir->buffer.role[b] == rank->run->assignment.role_of_rank[rank->rank] &&
            ir->buffer.offset[b] != UINT64_MAX)
            range[count++] = (struct arena_range){
                ir->buffer.offset[b], ir->buffer.offset[b] + ir_buffer_bytes(ir, (buffer_id){b})};
    range[count++] = (struct arena_range){ir->planned_bytes[memory], ir->planned_bytes[memory]};
    qsort(range, count, sizeof *range, compare_by_begin);
    return count;
}

cudaError_t cuda_fill_memory_with_poison(const struct cuda_rank *rank)
{
    enum { NOT_A_NUMBER = 0xff }; /* the bytes of a NaN in every float type, and of the index -1 */
    struct arena_range *range = heap_alloc((size_t)rank->run->ir->buffer.count + 1, sizeof *range);
    cudaError_t error = cudaSuccess;
    for (int m = 0; m < MEMORY_COUNT; m++) {
        size_t count = list_bound_byte_ranges(rank, (enum memory)m, range);
        uint64_t from = 0;
        for (size_t i = 0; i < count && error == cudaSuccess; i++) {
            char *at = (char *)rank->memory[m] + from;
            if (range[i].begin > from && m == MEMORY_HBM)
                error = cudaMemset(at, NOT_A_NUMBER, range[i].begin - from);
            else if (range[i].begin > from)
                memset(at, NOT_A_NUMBER, range[i].begin - from);
            if (range[i].end > from)
                from = range[i].end;
        }
    }
    free(range);
    return error;
}
