#include "predict/plan/outcome.h"

#include "base/digest.h"
#include "predict/setup/choice_rows.h"
#include "schedule/ir/deal.h"

#include <string.h>

void outcome_fill_times(struct outcome *o, const struct prediction *p)
{
    const struct stages *stages = &p->stages;
    o->kind = OUTCOME_SIMULATED;
    o->rate_bound = p->tokens_per_s_gpu;
    o->step_s = p->sim.step_s;
    o->intervals = intervals_of_prediction(p);
    o->step_sequences = (double)prediction_sequences(p);
    o->has_final_causes = o->packed_set == NULL || !p->question.skips_cause_of_documents;
    memcpy(o->cause_s, p->waterfall.cause_s, sizeof o->cause_s);
    for (int cause = 0; cause < CAUSE_COUNT && stages->stage_count > 1; cause++) {
        o->cause_s[cause] = 0;
        for (uint32_t i = 0; i < stages->stage_count; i++)
            o->cause_s[cause] += stages->waterfall[i].cause_s[cause] *
                                 stages->rank_count_by_stage[i] / p->sim.rank_count;
    }
    o->products = p->products;
    if (o->packed_set != NULL)
        o->spread = step_spread_of(&o->step_s, 1);
    o->bubble_share = stages->stage_count > 1 ? stages->bubble_to_step : 0;
    o->exposed_copy_share = o->step_s > 0 ? o->cause_s[CAUSE_OFFLOAD] / o->step_s : 0;
}

/* ---- digests, and outcomes that are read ---- */

static uint64_t add_number_to_digest(uint64_t digest, int64_t number)
{
    return digest_add(digest, &number, sizeof number);
}

static uint64_t add_name_to_digest(uint64_t digest, const char *name)
{
    return name == NULL ? add_number_to_digest(digest, -1)
                        : digest_add(digest, name, strlen(name) + 1);
}

static uint64_t add_token_deal_to_digest(uint64_t digest, const struct token_deal *deal)
{
    digest = add_number_to_digest(digest, deal->rank_count);
    for (uint32_t i = 0; i < deal->first_run[deal->rank_count]; i++)
        digest = add_number_to_digest(add_number_to_digest(digest, deal->run[i].first_position),
                                      deal->run[i].row_count);
    return digest_add(digest, deal->first_run, (deal->rank_count + 1) * sizeof deal->first_run[0]);
}

static uint64_t add_documents_to_digest(uint64_t digest, const struct documents *documents)
{
    digest = add_number_to_digest(digest, documents->sequence_count);
    for (uint32_t i = 0; i < documents->list_count; i++) {
        const struct document_list *list = &documents->list[i];
        digest = digest_add(digest, list->document_end,
                            list->document_count * sizeof list->document_end[0]);
        if (list->deal != NULL)
            digest = add_token_deal_to_digest(digest, list->deal);
    }
    return digest_add(digest, documents->list_of_sequence,
                      documents->sequence_count * sizeof documents->list_of_sequence[0]);
}

/* Returns the digest with a request added, without its lists (add_lists_to_digest()). The table of choices gives most
 * of its members. The others are added one by one: texts, members that an option's own function fills, and members that
 * no option fills. Padding between members is never read. */
static uint64_t add_choices_to_digest(uint64_t digest, const struct request *r)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        if (row->request.size > 0 && !row->is_alias && row->read == NULL &&
            row->option->kind != OPTION_TEXT)
            digest = digest_add(digest, (const char *)r + row->request.offset, row->request.size);
    }
    digest = add_name_to_digest(add_name_to_digest(digest, r->strategy), r->profile);
    digest = add_name_to_digest(add_name_to_digest(digest, r->impl), r->core_plan);
    digest =
        add_number_to_digest(add_number_to_digest(digest, r->ranks), r->must_compute_shared_units);
    digest = add_number_to_digest(digest,
                                  r->shared_units == NULL ? -1 : (int64_t)r->shared_units->first);
    digest =
        add_number_to_digest(digest, r->shared_units == NULL ? -1 : (int64_t)r->shared_units->last);
    digest = digest_add(digest, &r->offload_ratio, sizeof r->offload_ratio);
    digest = digest_add(digest, &r->offload_hidden_bytes, sizeof r->offload_hidden_bytes);
    digest = add_number_to_digest(digest, r->must_compute_offload_hidden_bytes);
    digest = digest_add(digest, &r->expert_capacity, sizeof r->expert_capacity);
    digest = add_number_to_digest(digest, r->recompute_modules);
    digest = add_number_to_digest(add_number_to_digest(digest, r->sm), r->gpus_per_node);
    digest = add_number_to_digest(digest, r->sole_costed_attention_impl_plus_one);
    /* of the request's model, only the fields that --sparsity and --adapter set are added: the others are those of the
     * setup's model */
    const struct transformer none = {0}, *m = r->model != NULL ? r->model : &none;
    const int64_t of_model[] = {m->attention_chunk, m->attention_kept, m->adapter_rank,
                                m->adapter_targets};
    return digest_add(digest, of_model, sizeof of_model);
}

static uint64_t add_routing_to_digest(uint64_t digest, const struct routing *r)
{
    for (uint32_t l = 0; l < r->list_count; l++)
        digest = digest_add(digest, r->expert_shares_by_list[l],
                            r->expert_count * sizeof **r->expert_shares_by_list);
    return digest_add(digest, r->share_list_by_layer,
                      r->layer_count * sizeof *r->share_list_by_layer);
}

/* Returns the digest with the request's lists added, each after a number that says whether there is such a list. The
 * lists of subsequences count as empty while the number of subsequences is open, since they then follow from the
 * rest. */
static uint64_t add_lists_to_digest(uint64_t digest, const struct request *r)
{
    const size_t count = r->subsequences > 0 ? (size_t)r->subsequences : 0;
    digest = add_number_to_digest(digest, r->subsequence_tokens != NULL);
    if (r->subsequence_tokens != NULL)
        digest = digest_add(digest, r->subsequence_tokens, count * sizeof *r->subsequence_tokens);
    digest = add_number_to_digest(digest, r->offload_hidden_bytes_by_subsequence != NULL);
    if (r->offload_hidden_bytes_by_subsequence != NULL)
        digest = digest_add(digest, r->offload_hidden_bytes_by_subsequence,
                            count * sizeof *r->offload_hidden_bytes_by_subsequence);
    digest = add_number_to_digest(digest, r->documents != NULL);
    digest = r->documents != NULL ? add_documents_to_digest(digest, r->documents) : digest;
    digest = add_number_to_digest(digest, r->routing != NULL);
    return r->routing != NULL ? add_routing_to_digest(digest, r->routing) : digest;
}

uint64_t outcome_request_digest(const struct setup *setup, const struct request *request,
                                int64_t gpus)
{
    uint64_t digest = add_number_to_digest(DIGEST_OF_NO_BYTES, setup->cluster.nodes);
    digest = add_number_to_digest(add_number_to_digest(digest, setup->cluster.gpus), gpus);
    return add_lists_to_digest(add_choices_to_digest(digest, request), request);
}

uint64_t outcome_digest(const struct setup *setup, const struct space_open *open,
                        const struct candidate *c)
{
    uint64_t digest = outcome_request_digest(setup, &c->request, c->request.ranks);
    digest = digest_add(digest, &setup->fits_probability, sizeof setup->fits_probability);
    digest = add_number_to_digest(
        digest, open->only_framework != NULL ? (int64_t)*open->only_framework : -1);
    return c->packed_set == NULL
               ? digest
               : add_number_to_digest(
                     digest, c->packed_set->batch[c->packed_set->typical_batch].padding_tokens);
}

void outcome_restore_pointers(struct outcome *o, const struct candidate *c)
{
    struct request *r = &o->request;
    r->model = c->request.model;
    r->strategy = c->request.strategy;
    r->profile = c->request.profile;
    r->impl = c->request.impl;
    r->subsequence_tokens = c->request.subsequence_tokens;
    r->shared_units = c->request.shared_units;
    r->documents = c->request.documents;
    r->routing = c->request.routing;
    r->offload_hidden_bytes_by_subsequence = c->request.offload_hidden_bytes_by_subsequence;
    o->packed_set = c->packed_set;
    o->strategy = c->strategy;
}
