#include "predict/setup/routing_load.h"

#include "base/text.h"
#include "traces/records.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char prefix[] = "dirichlet:";

/* Scales shares to integers: the greatest becomes ROUTING_SHARE_MAX, and every share above 0 becomes at least 1. */
static void scale_shares_to_integers(int64_t *to, const double *share, size_t count)
{
    double most = 0;
    for (size_t e = 0; e < count; e++)
        most = fmax(most, share[e]);
    for (size_t e = 0; e < count; e++)
        to[e] = share[e] > 0 ? (int64_t)fmax(1, round(share[e] / most * ROUTING_SHARE_MAX)) : 0;
}

bool routing_is_drawn(const char *text, double *alpha, uint64_t *seed)
{
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    text += sizeof prefix - 1;
    const char *comma = strchr(text, ',');
    *seed = 1;
    return parse_double(text, comma != NULL ? (size_t)(comma - text) : strlen(text), alpha) &&
           *alpha > 0 && *alpha <= 1e6 &&
           (comma == NULL || parse_u64(comma + 1, strlen(comma + 1), seed)) && *seed > 0 &&
           *seed <= UINT32_MAX; /* GSL's generator takes 32 bits, and 0 for another number */
}

void routing_draw(struct routing *r, struct arena *arena, const struct transformer *model,
                  double alpha, uint64_t seed)
{
    const size_t experts = (size_t)model->experts;
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    double *alphas = heap_zalloc(experts, sizeof *alphas);
    double *drawn = heap_zalloc(experts, sizeof *drawn);
    int64_t *share = heap_zalloc(experts, sizeof *share);
    for (size_t e = 0; e < experts; e++)
        alphas[e] = alpha;
    gsl_rng_set(rng, (unsigned long)seed);
    gsl_ran_dirichlet(rng, experts, alphas, drawn);
    scale_shares_to_integers(share, drawn, experts);
    routing_init(r, arena, (uint32_t)experts, (uint32_t)model->experts_per_token,
                 (uint32_t)model->layers);
    for (uint32_t l = 0; l < r->layer_count; l++)
        routing_set_shares(r, arena, l, share);
    gsl_rng_free(rng);
    free(alphas);
    free(drawn);
    free(share);
}

/* ---- files ---- */

struct expert_shares_reader {
    const struct transformer *model;
    double *share;  /* [layers][experts] */
    bool *is_given; /* [layers][experts] */
    size_t row_count;
};

/* Reads a whole number from 0 to below `most`. */
static enum status read_index(const struct record *record, size_t field, const char *what,
                              int64_t most, int64_t *index, struct diag *diag)
{
    if (parse_i64(record->fields[field], record->field_sizes[field], index) && *index >= 0 &&
        *index < most)
        return STATUS_OK;
    return diag_error(diag, record->place, STATUS_BAD_INPUT, "'%.60s' is not %s, from 0 to %lld",
                      record->fields[field], what, (long long)most - 1);
}

static enum status read_expert_share_row(void *context, const struct record *record,
                                         struct diag *diag)
{
    enum { LAYER, EXPERT, SHARE, COUNT };
    struct expert_shares_reader *reading = context;
    const int64_t experts = reading->model->experts, layers = reading->model->layers;
    int64_t layer = 0, end = layers, expert;
    double share;
    if (reading->row_count++ == 0 && record->field_count == COUNT &&
        strcmp(record->fields[LAYER], "layer") == 0)
        return STATUS_OK;
    if (record->field_count != COUNT)
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "%zu fields; a line has a layer, an expert and its share",
                          record->field_count);
    if (strcmp(record->fields[LAYER], "*") != 0) {
        if (read_index(record, LAYER, "a layer, or *", layers, &layer, diag) != STATUS_OK)
            return STATUS_BAD_INPUT;
        end = layer + 1;
    }
    if (read_index(record, EXPERT, "an expert", experts, &expert, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (!parse_double(record->fields[SHARE], record->field_sizes[SHARE], &share) || !(share >= 0) ||
        isinf(share))
        return diag_error(diag, record->place, STATUS_BAD_INPUT,
                          "'%.60s' is not a share, a number from 0", record->fields[SHARE]);
    for (; layer < end; layer++) {
        if (reading->is_given[layer * experts + expert])
            return diag_error(diag, record->place, STATUS_BAD_INPUT,
                              "the share of expert %lld of layer %lld is given twice",
                              (long long)expert, (long long)layer);
        reading->is_given[layer * experts + expert] = true;
        reading->share[layer * experts + expert] = share;
    }
    return STATUS_OK;
}

static enum status skip_comment(void *context, struct loc at, const char *text, size_t size,
                                struct diag *diag)
{
    (void)context, (void)at, (void)text, (void)size, (void)diag;
    return STATUS_OK;
}

/* Gives each layer its list of shares. Fails if all shares of a layer with experts are 0. A layer without experts,
 * whose shares nothing reads, may get any list. */
static enum status store_layer_shares(struct routing *r, struct arena *arena,
                                      const struct expert_shares_reader *reading, const char *path,
                                      struct diag *diag)
{
    const struct transformer *model = reading->model;
    const size_t experts = (size_t)model->experts;
    int64_t *share = heap_zalloc(experts, sizeof *share);
    enum status status = STATUS_OK;
    routing_init(r, arena, (uint32_t)experts, (uint32_t)model->experts_per_token,
                 (uint32_t)model->layers);
    for (uint32_t l = 0; l < r->layer_count && status == STATUS_OK; l++) {
        double sum = 0;
        for (size_t e = 0; e < experts; e++)
            sum += reading->share[l * experts + e];
        if (sum == 0 && transformer_layer_has_experts(model, l))
            status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                                "no expert of layer %u has a share above 0", l);
        scale_shares_to_integers(share, &reading->share[l * experts], experts);
        share[0] = sum == 0 ? 1 : share[0];
        routing_set_shares(r, arena, l, share);
    }
    free(share);
    return status;
}

static enum status read_routing_file(struct routing *r, struct arena *arena,
                                     const struct transformer *model, const char *path,
                                     struct diag *diag)
{
    const size_t count = (size_t)model->layers * (size_t)model->experts;
    struct expert_shares_reader reading = {.model = model,
                                           .share = heap_zalloc(count, sizeof(double)),
                                           .is_given = heap_zalloc(count, sizeof(bool))};
    const struct record_handler handler = {&reading, read_expert_share_row, skip_comment};
    struct text text = {0};
    enum status status = text_read(&text, path, diag);
    if (status == STATUS_OK)
        status = records_parse(path, text.data != NULL ? text.data : "", text.size, &handler, diag);
    if (status == STATUS_OK)
        status = store_layer_shares(r, arena, &reading, path, diag);
    text_release(&text);
    free(reading.share);
    free(reading.is_given);
    return status;
}

enum status routing_load(struct routing *r, struct arena *arena, const struct transformer *model,
                         const char *text, struct diag *diag)
{
    const struct loc at = {.name = "--routing"};
    double alpha;
    uint64_t seed;
    enum status status = STATUS_OK;
    if (model->experts == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the model has no experts; leave out --routing");
    if (routing_is_drawn(text, &alpha, &seed))
        routing_draw(r, arena, model, alpha, seed);
    else if (strncmp(text, prefix, sizeof prefix - 1) == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "'%s' is not dirichlet:ALPHA or dirichlet:ALPHA,SEED with an ALPHA above "
                          "0 and at most 1e6 and a SEED from 1 to 4294967295, such as "
                          "dirichlet:10,1",
                          text);
    else
        status = read_routing_file(r, arena, model, text, diag);
    r->name = arena_text(arena, text, strlen(text));
    return status;
}
