/* Resolves the chunks of a sequence (FPDT), how the loss is computed, and the default numbers of pieces of the loss and
 * of the feed-forward part. */
#include "schedule/choices/profile.h"
#include "schedule/config/derived.h"
#include "schedule/config/resolve_degrees.h"

/* The default number of tokens of a chunk (FPDT, section 5.1). A shorter sequence is one chunk. */
enum { CHUNK_TOKENS = 65536 };

/* The number of pieces per chunk in which DeepSpeed computes the loss (FPDT_LogitsLoss) and the feed-forward part
 * (FPDT, section 4.3). */
enum { LOSS_PIECES = 32, FFN_PIECES = 2 };

/* For FPDT, which has no context ranks. Returns `pieces`, but at most the number of rows of a rank, and at most 65535:
 * ops number pieces with 16 bits. */
static int64_t limit_piece_count(const struct choices *c, int64_t pieces)
{
    enum { PIECES_MAX = 65535 };
    int64_t rows = c->seq / c->hp * c->micro_batch, most = rows < PIECES_MAX ? rows : PIECES_MAX;
    return pieces < most ? pieces : most;
}

/* Returns the number of pieces of Liger's fused linear cross entropy (Liger-Kernel, ops/fused_linear_cross_entropy.py).
 * The rows of a piece are the smallest power of two that is at least rows / ceil(vocab / hidden). The logits of a piece
 * then take about one to two times the bytes of the head's input. */
static int64_t liger_loss_piece_count(int64_t rows, const struct transformer *model)
{
    int64_t wide = (model->vocab + model->hidden - 1) / model->hidden;
    int64_t least = (rows + wide - 1) / wide, piece = 1;
    while (piece < least)
        piece *= 2;
    return (rows + piece - 1) / piece;
}

int64_t resolve_liger_loss_piece_count(const struct choices *c)
{
    return liger_loss_piece_count(c->seq / c->hp / c->cp / c->subsequences * c->micro_batch,
                                  c->model);
}

struct resolve_piece_counts resolve_default_fpdt_piece_counts(const struct choices *c)
{
    int64_t chunks = (int64_t)c->chunk_count * c->micro_batch;
    return (struct resolve_piece_counts){limit_piece_count(c, LOSS_PIECES * chunks),
                                         limit_piece_count(c, FFN_PIECES * chunks)};
}

/* Returns the default number of pieces of the loss. With the profile's switch host_waits_after_each_chunk_tile it is
 * DeepSpeed's. Else it is the 2 vocab / hidden that FPDT suggests, so that logits take no more memory than attention
 * does (section 4.3), but at least FFN_PIECES per chunk. */
static int64_t default_loss_piece_count(const struct choices *c)
{
    const struct transformer *m = c->model;
    int64_t chunks = (int64_t)c->chunk_count * c->micro_batch;
    if (c->profile->host_waits_after_each_chunk_tile)
        return resolve_default_fpdt_piece_counts(c).loss_pieces;
    int64_t suggested = (2 * m->vocab + m->hidden - 1) / m->hidden;
    return limit_piece_count(c, suggested > FFN_PIECES * chunks ? suggested : FFN_PIECES * chunks);
}

/* Checks that, if attention is sparse in chunks of the sequence, FPDT cuts the sequence into the same chunks. */
static enum status check_sparse_attention_chunks(const struct choices *c, struct diag *diag)
{
    const struct transformer *m = c->model;
    if (m->attention_chunk == 0 || m->attention_chunk == c->chunk_tokens)
        return STATUS_OK;
    return resolve_refuse(
        diag, "--sparsity",
        "attention is sparse in chunks of %lld tokens; --strategy fpdt --chunk %lld "
        "would do",
        (long long)m->attention_chunk, (long long)m->attention_chunk);
}

static enum status refuse_chunk_options(const struct request *r, struct diag *diag)
{
    const char *given = r->chunk_tokens > 0                ? "--chunk"
                        : r->kv_offload != KV_OFFLOAD_ON   ? "--kv-offload"
                        : r->chunk_order != ORDER_KV_OUTER ? "--chunk-order"
                        : r->chunk_fetch != FETCH_EACH     ? "--fetch"
                                                           : NULL;
    if (given == NULL)
        return STATUS_OK;
    return resolve_refuse(diag, given,
                          "is about chunks of a sequence, which only strategy fpdt has; choose "
                          "--strategy fpdt or leave this option out");
}

/* Checks two choices about fetches from the host. With --fetch one there must be several head ranks, --kv-offload on,
 * and no sparse attention, which would fetch only a part of each rank's keys. With --scope attention:fetch there must
 * be fetches to predict. */
static enum status check_fpdt_fetch_choices(const struct choices *c, struct diag *diag)
{
    bool one = c->chunk_fetch != FETCH_EACH;
    /* clang-format off */
    const struct rule rules[] = {
        {one && c->hp == 1, "--fetch",
         "with 'one', a rank fetches a chunk and scatters it over the head ranks, but hp is 1; choose --fetch each, or "
         "--hp 2 or more"},
        {one && c->kv_offload != KV_OFFLOAD_ON, "--fetch",
         "with 'one', a rank fetches chunks from the host, but --kv-offload off keeps them on the device; leave one of "
         "the two out"},
        {one && c->model->attention_kept > 0, "--fetch",
         "sparse attention fetches a part of each rank's keys, and these are not contiguous when one rank stores the "
         "keys of all; --fetch each would do"},
        {c->scope == SCOPE_CHUNK_FETCHES_FROM_HOST && !fpdt_offloads(c), "--scope",
         "attention:fetch predicts the fetches of tiles from the host, but no tile is kept on the host; --strategy "
         "fpdt with a --chunk shorter than the sequence would do"},
    };
    /* clang-format on */
    return resolve_refuse_first_broken_rule(rules, ARRAY_LEN(rules), diag);
}

static enum status refuse_chunk_length(const struct choices *c, int64_t chunk, struct diag *diag)
{
    struct text would = {0};
    if (chunk > c->seq)
        return resolve_refuse(diag, "--chunk",
                              "a chunk of %lld tokens is larger than the sequence of %lld; "
                              "--chunk %lld or less would do",
                              (long long)chunk, (long long)c->seq, (long long)c->seq);
    text_puts(&would, "--chunk ");
    resolve_append_multiples(&would, chunk, c->hp);
    return resolve_refuse_value_with_hint(diag, "--chunk", &would,
                                          "a chunk of %lld tokens does not divide over hp %u",
                                          (long long)chunk, c->hp);
}

enum status resolve_sequence_chunks(struct choices *c, const struct request *r,
                                    struct resolve_piece_counts *pieces, struct diag *diag)
{
    *pieces = (struct resolve_piece_counts){r->loss_chunks, r->ffn_chunks};
    c->chunk_count = 1;
    if (c->attention != CHOICE_ATTENTION_FPDT) {
        bool fits = check_fpdt_fetch_choices(c, diag) == STATUS_OK &&
                    check_sparse_attention_chunks(c, diag) == STATUS_OK;
        return fits ? refuse_chunk_options(r, diag) : STATUS_BAD_INPUT;
    }
    int64_t usual = CHUNK_TOKENS / c->hp * c->hp;
    int64_t chunk = r->chunk_tokens > 0           ? r->chunk_tokens
                    : usual > 0 && usual < c->seq ? usual
                                                  : c->seq;
    if (chunk > c->seq || chunk % c->hp != 0)
        return refuse_chunk_length(c, chunk, diag);
    int64_t chunks = (c->seq + chunk - 1) / chunk;
    if (chunks >= 65535)
        return resolve_refuse(
            diag, "--chunk",
            "%lld tokens in chunks of %lld make %lld chunks, and at most 65534 are possible",
            (long long)c->seq, (long long)chunk, (long long)chunks);
    c->chunk_tokens = chunk;
    c->chunk_count = (uint32_t)chunks;
    if (check_sparse_attention_chunks(c, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (check_fpdt_fetch_choices(c, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (pieces->ffn_pieces <= 0)
        pieces->ffn_pieces = resolve_default_fpdt_piece_counts(c).ffn_pieces;
    if (pieces->loss_pieces <= 0)
        pieces->loss_pieces = default_loss_piece_count(c);
    return STATUS_OK;
}

/* The default number of pieces into which --loss chunked cuts a rank's tokens, as torchtitan's ChunkedCELoss does. */
enum { CHUNKED_PIECES = 8 };

enum status resolve_loss(struct choices *c, const struct request *r, int64_t rows,
                         struct resolve_piece_counts *pieces, struct diag *diag)
{
    bool own = r->loss == LOSS_PROFILE || r->loss == LOSS_CHUNKED;
    c->loss = own ? c->profile->loss : (uint8_t)r->loss;
    bool cut = c->tp > 1 && c->vocabulary == VOCABULARY_CUT;
    bool whole_rows =
        c->loss == LOSS_EAGER || c->loss == LOSS_HF || c->loss == LOSS_OF_16BIT_LOGITS;
    if (own && cut && whole_rows)
        c->loss = LOSS_PARALLEL;
    /* clang-format off */
    const struct rule rules[] = {
        {c->loss == LOSS_PARALLEL && c->tp == 1, "--loss",
         "'parallel' is the loss of a vocabulary that tensor ranks share, and tp is 1; choose --loss eager, or --tp 2 or more"},
        {c->loss == LOSS_PARALLEL && !cut, "--loss",
         "'parallel' is the loss of a divided vocabulary, and --vocabulary has whole rows of logits; choose --loss eager, or "
         "--vocabulary cut"},
        {cut && c->loss == LOSS_CUT_CROSS_ENTROPY, "--loss",
         "'cut' reads whole rows of logits, and tensor ranks share the vocabulary; choose --loss parallel, compiled, te or megatron, or "
         "--vocabulary whole with --tensor-plan replicated"},
        {cut && c->loss != LOSS_PARALLEL && (whole_rows || c->loss == LOSS_FUSED), "--loss",
         "reads whole rows of logits, and tensor ranks share the vocabulary; choose --loss parallel, compiled, te or megatron, or --vocabulary gathered"},
        {c->loss == LOSS_CUT_CROSS_ENTROPY && c->tp > 1 && c->vocabulary == VOCABULARY_GATHERED, "--loss",
         "'cut' multiplies with the whole head, of which each tensor rank has a part here; choose --loss eager, or --vocabulary whole with --tensor-plan replicated"},
    };
    /* clang-format on */
    if (r->loss == LOSS_CHUNKED && pieces->loss_pieces <= 0)
        pieces->loss_pieces = rows < CHUNKED_PIECES ? rows : CHUNKED_PIECES;
    if ((c->loss == LOSS_FUSED || c->loss == LOSS_CUT_CROSS_ENTROPY) && pieces->loss_pieces <= 0)
        pieces->loss_pieces = liger_loss_piece_count(rows, c->model);
    return resolve_refuse_first_broken_rule(rules, ARRAY_LEN(rules), diag);
}
