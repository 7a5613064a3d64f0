/* The packed documents of attention as cuDNN takes them: which it can take, and where each begins in the tensors. */
#include "exec/cuda/cuda.h"

#include "exec/cuda/fused.h"
#include "exec/cuda/versions.h"

#include <stdlib.h>

/* The alignment of every array of a table, in bytes, which the graph (fused_graph.c) declares. */
enum { ALIGNMENT = 16 };

/* ---- documents that cuDNN can compute ---- */

static const struct assignment_attention_pieces *
attention_pieces_of_rank(const struct assignment *assignment, uint32_t shape, uint32_t rank)
{
    return &assignment
                ->attention_pieces[(size_t)assignment->attention_pieces_index_by_shape[shape] *
                                       assignment->ranks +
                                   rank];
}

/* True if the queries of the piece see exactly the keys that a mask of the library lets them see. */
static bool piece_matches_fused_mask(const struct attention_piece *p, enum fused_mask mask)
{
    return p->window == 0 && p->query_count > 0 && p->key_count > 0 &&
           (mask == FUSED_MASK_NONE ? p->offset >= p->key_count - 1
            : mask == FUSED_MASK_CAUSAL_FROM_START
                ? p->offset == 0 && p->query_count == p->key_count
                : p->offset >= 0 && p->offset == p->key_count - p->query_count);
}

/* True if every piece begins at or after the end of the one before it, in queries and in keys. */
static bool pieces_are_ascending(const struct assignment_attention_pieces *pieces)
{
    for (uint32_t i = 1; i < pieces->piece_count; i++) {
        const struct attention_piece *before = &pieces->pieces[i - 1], *p = &pieces->pieces[i];
        if (p->first_query < before->first_query + before->query_count ||
            p->first_key < before->first_key + before->key_count)
            return false;
    }
    return true;
}

static bool all_pieces_match_fused_mask(const struct assignment_attention_pieces *pieces,
                                        enum fused_mask mask)
{
    for (uint32_t i = 0; i < pieces->piece_count; i++)
        if (!piece_matches_fused_mask(&pieces->pieces[i], mask))
            return false;
    return true;
}

/* Adds the documents of a rank to *d, which describes those of the ranks before it. */
static void add_documents_of_rank(struct attention_documents *d,
                                  const struct assignment_attention_pieces *pieces,
                                  const struct work *work)
{
    int64_t q = 0, kv = 0;
    for (uint32_t i = 0; i < pieces->piece_count; i++) {
        const struct attention_piece *p = &pieces->pieces[i];
        q += p->query_count;
        kv += p->key_count;
        d->most_q = p->query_count > d->most_q ? p->query_count : d->most_q;
        d->most_kv = p->key_count > d->most_kv ? p->key_count : d->most_kv;
        d->has_whole_kv_tiles = d->has_whole_kv_tiles && p->key_count % VERSION_TILE == 0;
    }
    d->cover_q = d->cover_q && q == work->attention.q;
    d->cover_kv = d->cover_kv && kv == work->attention.kv;
}

bool cuda_find_documents(const struct exec_run *run, uint32_t op, struct attention_documents *d)
{
    static const enum fused_mask masks[] = {FUSED_MASK_CAUSAL_FROM_START, FUSED_MASK_CAUSAL_TO_END,
                                            FUSED_MASK_NONE};
    const struct assignment *assignment = &run->assignment;
    const uint32_t shape = run->ir->op.shape[op], role = ir_role_of_op(run->ir, op);
    bool has_mask[3] = {true, true, true};
    *d = (struct attention_documents){
        .cover_q = true, .cover_kv = true, .has_whole_kv_tiles = true, .count = -1};
    if (assignment->attention_pieces_index_by_shape[shape] == IR_NONE)
        return false;
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count; r++) {
        const struct assignment_attention_pieces *pieces =
            attention_pieces_of_rank(assignment, shape, r);
        if (assignment_role_of(assignment, r) != role)
            continue;
        if (pieces->piece_count == 0)
            d->why_unsupported = "no query of a rank sees any key";
        else if (d->count >= 0 && d->count != pieces->piece_count)
            d->why_unsupported = "ranks that share a GPU have different numbers of documents";
        else if (!pieces_are_ascending(pieces))
            d->why_unsupported = "its documents share queries or keys with others";
        d->count = pieces->piece_count;
        add_documents_of_rank(d, pieces, &run->ir->shape[shape]);
        for (size_t m = 0; m < 3; m++)
            has_mask[m] = has_mask[m] && all_pieces_match_fused_mask(pieces, masks[m]);
    }
    for (size_t m = 3; m-- > 0;)
        if (has_mask[m])
            d->mask = (uint8_t)masks[m];
    if (d->most_q == 1 && has_mask[2]) /* a single query: as in attention_find_fused_part() */
        d->mask = FUSED_MASK_NONE;
    if (d->why_unsupported == NULL && !has_mask[0] && !has_mask[1] && !has_mask[2])
        d->why_unsupported = "cuDNN has no mask that is that of all of its documents";
    return true;
}

/* ---- tables of documents in device memory ---- */

/* The table of one attention has arrays in this order: OFFSET_ARRAYS arrays of offsets (q, k, v, o and statistics),
 * with an element of 8 bytes for each document and one for the end; then the rows of q, and those of k and v, with 4
 * bytes for each document. */
enum { OFFSET_ARRAYS = 5 };

static size_t aligned_array_bytes(size_t count, size_t element)
{
    return (count * element + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t document_table_bytes(uint32_t documents)
{
    return OFFSET_ARRAYS * aligned_array_bytes(documents + 1u, sizeof(int64_t)) +
           2 * aligned_array_bytes(documents, sizeof(int32_t));
}

size_t cuda_documents_bytes(const struct cuda_rank *rank)
{
    const struct assignment *assignment = &rank->run->assignment;
    size_t bytes = 0;
    for (uint32_t s = 0; s < rank->run->ir->shape_count; s++)
        if (assignment->attention_pieces_index_by_shape[s] != IR_NONE)
            bytes += document_table_bytes(
                attention_pieces_of_rank(assignment, s, rank->rank)->piece_count);
    return bytes;
}

/* Writes at which element each document begins in a tensor whose rows have `step` elements, and where the last one
 * ends. keys: the tensor has a row for each key, not for each query. */
static void write_document_offsets(int64_t *offset,
                                   const struct assignment_attention_pieces *pieces, bool keys,
                                   int64_t step)
{
    for (uint32_t i = 0; i < pieces->piece_count; i++) {
        const struct attention_piece *p = &pieces->pieces[i];
        offset[i] = (keys ? p->first_key : p->first_query) * step;
        offset[i + 1] = offset[i] + (keys ? p->key_count : p->query_count) * step;
    }
}

/* Writes the table of an attention to memory of the host, from where it is copied to `device`. Sets *documents to the
 * addresses of its arrays there. */
static void write_document_table(char *host, char *device,
                                 const struct assignment_attention_pieces *pieces,
                                 const struct work *work, struct fused_documents *documents)
{
    const int64_t heads = work->attention.heads, kv_heads = work->attention.kv_heads;
    const int64_t dim = work->attention.dim, vdim = work_attention_vdim(work);
    const int64_t step[OFFSET_ARRAYS] = {heads * dim, kv_heads * dim, kv_heads * vdim, heads * vdim,
                                         heads};
    const size_t offsets = aligned_array_bytes(pieces->piece_count + 1u, sizeof(int64_t));
    const int64_t *at[OFFSET_ARRAYS];
    for (int a = 0; a < OFFSET_ARRAYS; a++) {
        write_document_offsets((int64_t *)(void *)(host + (size_t)a * offsets), pieces,
                               a == 1 || a == 2, step[a]);
        at[a] = (const int64_t *)(const void *)(device + (size_t)a * offsets);
    }
    int32_t *q_rows = (int32_t *)(void *)(host + OFFSET_ARRAYS * offsets);
    const size_t rows = aligned_array_bytes(pieces->piece_count, sizeof(int32_t));
    int32_t *kv_rows = (int32_t *)(void *)((char *)q_rows + rows);
    for (uint32_t i = 0; i < pieces->piece_count; i++) {
        q_rows[i] = (int32_t)pieces->pieces[i].query_count;
        kv_rows[i] = (int32_t)pieces->pieces[i].key_count;
    }
    const char *device_rows = device + OFFSET_ARRAYS * offsets;
    *documents = (struct fused_documents){(const int32_t *)(const void *)device_rows,
                                          (const int32_t *)(const void *)(device_rows + rows),
                                          at[0],
                                          at[1],
                                          at[2],
                                          at[3],
                                          at[4]};
}

enum status cuda_upload_documents(struct cuda_rank *rank, void *memory, struct diag *diag)
{
    const struct exec_run *run = rank->run;
    const struct assignment *assignment = &run->assignment;
    const size_t bytes = cuda_documents_bytes(rank);
    if (bytes == 0)
        return STATUS_OK;
    char *host = heap_zalloc(bytes, 1);
    size_t at = 0;
    rank->documents = heap_zalloc(run->ir->shape_count, sizeof *rank->documents);
    for (uint32_t s = 0; s < run->ir->shape_count; s++) {
        if (assignment->attention_pieces_index_by_shape[s] == IR_NONE)
            continue;
        const struct assignment_attention_pieces *pieces =
            attention_pieces_of_rank(assignment, s, rank->rank);
        write_document_table(host + at, (char *)memory + at, pieces, &run->ir->shape[s],
                             &rank->documents[s]);
        at += document_table_bytes(pieces->piece_count);
    }
    cudaError_t error = cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice);
    free(host);
    return error == cudaSuccess ? STATUS_OK
                                : cuda_report_error(diag, "cudaMemcpy (of documents)", error);
}

const struct fused_documents *cuda_documents_of_op(const struct cuda_rank *rank, uint32_t op)
{
    const uint32_t shape = rank->run->ir->op.shape[op];
    return rank->documents != NULL &&
                   rank->run->assignment.attention_pieces_index_by_shape[shape] != IR_NONE
               ? &rank->documents[shape]
               : NULL;
}
