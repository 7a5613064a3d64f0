#include "schedule/choices/tensor_share.h"

#include "schedule/choices/profile.h"

#include <string.h>

bool tensor_share_fits(const struct transformer *m, int64_t tp)
{
    return (tp == 1 || !m->qk_norm_wide) && m->heads % tp == 0 && m->ffn % tp == 0 &&
           (m->kv_heads % tp == 0 || tp % m->kv_heads == 0);
}

int64_t tensor_kv_copies(const struct transformer *m, int64_t tp)
{
    return m->kv_heads % tp == 0 ? 1 : tp / m->kv_heads;
}

struct transformer tensor_share_of_model(const struct transformer *model, int64_t tp, int64_t unit)
{
    struct transformer share = *model;
    share.heads /= tp;
    share.kv_heads = model->kv_heads % tp == 0 ? model->kv_heads / tp : 1;
    share.ffn /= tp;
    if (unit > 0)
        share.vocab = (model->vocab + tp * unit - 1) / (tp * unit) * unit;
    return share;
}

bool tensor_uses_dtensor(const struct choices *choices)
{
    return choices->tensor_plan != TENSOR_PLAN_MEGATRON;
}

bool tensor_keeps_gathered(const struct choices *c)
{
    return c->tp > 1 && (tensor_uses_dtensor(c) || c->profile->keeps_gathered_product_input);
}

int64_t tensor_vocabulary_unit(const struct choices *c)
{
    if (c->vocabulary != VOCABULARY_CUT)
        return c->vocabulary == VOCABULARY_WHOLE ? 0 : 1;
    return c->profile->vocabulary_rows_multiple > 0 ? c->profile->vocabulary_rows_multiple : 1;
}

bool tensor_is_complete(const struct choices *c, const char *name)
{
    return (c->vocabulary != VOCABULARY_CUT && strcmp(name, "embedding.weight") == 0) ||
           (c->vocabulary == VOCABULARY_WHOLE && strcmp(name, "head.weight") == 0);
}

struct tensor_cut tensor_cut_of(const struct transformer *whole, const char *name, int64_t rows)
{
    static const char *const by_rows[] = {"w1.weight",   "w1.bias",     "q_b.weight",
                                          "q.weight",    "kv_b.weight", "embedding.weight",
                                          "head.weight", "sinks"};
    int64_t q = transformer_q_columns(whole), kv = transformer_kv_columns(whole);
    if (strncmp(name, "wqkv.", 5) == 0)
        return (struct tensor_cut){.cuts_rows = true,
                                   .block = {{"q", q, false}, {"k", kv, true}, {"v", kv, true}},
                                   .block_count = 3};
    if (strncmp(name, "w13.", 4) == 0)
        return (struct tensor_cut){.cuts_rows = true,
                                   .block = {{"gate", rows / 2, false}, {"up", rows / 2, false}},
                                   .block_count = 2};
    struct tensor_cut cut = {.block = {{NULL, rows, false}}, .block_count = 1};
    for (size_t i = 0; i < ARRAY_LEN(by_rows); i++)
        cut.cuts_rows = cut.cuts_rows || strcmp(name, by_rows[i]) == 0;
    cut.is_embedding_or_head =
        strcmp(name, "embedding.weight") == 0 || strcmp(name, "head.weight") == 0;
    cut.cuts_columns = strcmp(name, "wo.weight") == 0 || strcmp(name, "w2.weight") == 0;
    return cut;
}
