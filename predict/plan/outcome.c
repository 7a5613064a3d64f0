#include "predict/plan/outcome.h"

#include "base/digest.h"

#include <string.h>

void outcome_take_times(struct outcome *o, const struct prediction *p)
{
    const struct stages *stages = &p->stages;
    o->kind = OUTCOME_TIMED;
    o->most = p->tokens_per_s_gpu;
    o->step_s = p->sim.step_s;
    o->intervals = intervals_of(p);
    o->sequences = (double)prediction_sequences(p);
    o->explained = o->packed_set == NULL || !p->question.skip_causes;
    memcpy(o->cause_s, p->waterfall.cause_s, sizeof o->cause_s);
    for (int cause = 0; cause < CAUSE_COUNT && stages->count > 1; cause++) {
        o->cause_s[cause] = 0;
        for (uint32_t i = 0; i < stages->count; i++)
            o->cause_s[cause] +=
                stages->of[i].cause_s[cause] * stages->ranks[i] / p->sim.rank_count;
    }
    if (o->packed_set != NULL)
        o->spread = step_spread_of(&o->step_s, 1);
    o->bubble = stages->count > 1 ? stages->to_step : 0;
    o->exposed = o->step_s > 0 ? o->cause_s[CAUSE_OFFLOAD] / o->step_s : 0;
}

/* ---- keys ---- */

static uint64_t add_number(uint64_t digest, int64_t number)
{
    return digest_add(digest, &number, sizeof number);
}

static uint64_t add_name(uint64_t digest, const char *name)
{
    return name == NULL ? add_number(digest, -1) : digest_add(digest, name, strlen(name) + 1);
}

static uint64_t add_documents(uint64_t digest, const struct documents *documents)
{
    digest = add_number(digest, documents->sequences);
    for (uint32_t i = 0; i < documents->list_count; i++)
        digest = digest_add(digest, documents->list[i].end,
                            documents->list[i].count * sizeof documents->list[i].end[0]);
    return digest_add(digest, documents->list_of,
                      documents->sequences * sizeof documents->list_of[0]);
}

uint64_t outcome_request_key(const struct setup *setup, const struct request *request, int64_t gpus)
{
    struct request r = *request; /* its lists are as the question's options give them */
    uint64_t digest = add_name(add_name(DIGEST_NONE, r.strategy), r.profile);
    digest = add_name(digest, r.impl);
    digest = add_number(add_number(digest, setup->cluster.nodes), setup->cluster.gpus);
    digest = add_number(digest, gpus);
    if (r.documents != NULL)
        digest = add_documents(digest, r.documents);
    r.model = NULL;
    r.strategy = r.profile = r.impl = NULL;
    r.lengths = NULL;
    r.shared = NULL;
    r.documents = NULL;
    r.offload_hidden_of = NULL;
    return digest_add(digest, &r, sizeof r);
}

uint64_t outcome_key(const struct setup *setup, const struct space_open *open,
                     const struct candidate *c)
{
    uint64_t digest = outcome_request_key(setup, &c->request, c->request.ranks);
    digest = digest_add(digest, &setup->fits_probability, sizeof setup->fits_probability);
    digest = add_number(digest, open->only != NULL ? (int64_t)*open->only : -1);
    return c->packed_set == NULL
               ? digest
               : add_number(digest, c->packed_set->batch[c->packed_set->typical].padding);
}

void outcome_adopt(struct outcome *o, const struct candidate *c)
{
    struct request *r = &o->request;
    r->model = c->request.model;
    r->strategy = c->request.strategy;
    r->profile = c->request.profile;
    r->impl = c->request.impl;
    r->lengths = c->request.lengths;
    r->shared = c->request.shared;
    r->documents = c->request.documents;
    r->offload_hidden_of = c->request.offload_hidden_of;
    o->packed_set = c->packed_set;
    o->strategy = c->strategy;
}
