#include "predict/similarity.h"

#include "base/c_locale.h"
#include "models/work.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* True if some rows of tokens go to experts in another domain of the cluster's fabric. The ranks of an ep group are
 * next to each other. Only if stages are placed inside data parallelism and the group has several data-parallel ranks,
 * ranks of the other stages are between its ranks. */
static bool do_experts_cross_fabric_domains(const struct cluster *cluster, const struct choices *c)
{
    const int64_t domain = cluster->gpus_per_node * cluster->domain_nodes;
    const bool spread =
        c->stage_placement == STAGES_INNER && c->ep > (int64_t)c->tp * c->cp * c->hp;
    const int64_t span = spread ? (int64_t)c->ep * c->pp : c->ep;
    return domain % span != 0;
}

/* Appends a part to like->context, so that it reads, for example, "ring with experts and a core plan". A context "none"
 * is replaced. */
static void add_context_part(struct similarity *similarity_of_run, const char *part)
{
    const bool alone = strcmp(similarity_of_run->context, "none") == 0;
    const char *joint = strstr(similarity_of_run->context, " with ") != NULL ? " and " : " with ";
    char before[SIMILARITY_NAME];
    snprintf(before, sizeof before, "%s", alone ? "" : similarity_of_run->context);
    const int size = snprintf(similarity_of_run->context, sizeof similarity_of_run->context,
                              "%s%s%s", before, alone ? "" : joint, part);
    assert(size < (int)sizeof similarity_of_run->context);
    (void)size;
}

/* Sets like->context to the kind of attention over several ranks, "none" if there is none. Appends those of the
 * following that the configuration has: products in 8 or 4 bits, experts (and whether they are in other domains of the
 * fabric), adapters, and rows that move by a core plan or by --rotate needed. */
static void set_context_of_similarity(struct similarity *similarity_of_run,
                                      const struct cluster *cluster, const struct choices *c)
{
    char products[SIMILARITY_NAME];
    snprintf(similarity_of_run->context, sizeof similarity_of_run->context, "%s",
             c->attention == CHOICE_ATTENTION_LOCAL ? "none" : attention_names[c->attention]);
    snprintf(products, sizeof products, "%s products", products_names[c->products]);
    if (c->products != PRODUCTS_BF16)
        add_context_part(similarity_of_run, products);
    if (c->model->experts > 0)
        add_context_part(similarity_of_run, do_experts_cross_fabric_domains(cluster, c)
                                                ? "experts" CONTEXT_SUFFIX_EXPERTS_ACROSS_NODES
                                                : "experts");
    if (c->model->adapter_rank > 0)
        add_context_part(similarity_of_run, "adapters");
    if (c->cp > 1 && c->ring_layout == RING_BY_CORE_PLAN)
        add_context_part(similarity_of_run, "a core plan");
    else if (c->cp > 1 && c->rotation == ROTATE_NEEDED_ROWS)
        add_context_part(similarity_of_run, "needed rows");
}

/* Fills the features that the choices decide. */
static void add_choice_features(struct similarity *similarity_of_run, const struct setup *setup,
                                const struct choices *c)
{
    double tokens = (double)c->micro_batch * (double)c->seq, split = (double)c->cp * c->hp * c->tp;
    similarity_of_run->tp = c->tp;
    similarity_of_run->pp = c->pp;
    similarity_of_run->gpus = c->ranks;
    similarity_of_run->seq_len = c->seq;
    similarity_of_run->sequences = c->global_batch;
    similarity_of_run->parameters = transformer_parameters(c->model);
    similarity_of_run->has_host_optimizer = c->optimizer == CHOICE_OPTIMIZER_HOST;
    similarity_of_run->layer_s = 2 * (double)transformer_active_parameters(c->model) /
                                 (double)c->model->layers * tokens / split /
                                 setup->cluster.device.peak_bf16_flop_per_s;
    snprintf(similarity_of_run->attention, sizeof similarity_of_run->attention, "%s",
             attention_impl_name((enum attention_impl)c->attention_impl));
    set_context_of_similarity(similarity_of_run, &setup->cluster, c);
    snprintf(similarity_of_run->activations, sizeof similarity_of_run->activations, "%s",
             activations_names[c->activations]);
}

struct similarity similarity_of(const struct setup *setup, const struct choices *choices,
                                const struct profile *profile)
{
    struct similarity similarity_of_run = {.is_on_several_nodes = setup->cluster.nodes > 1};
    const char *device = setup->cluster.device.name;
    const char *framework = profile != NULL ? profile->name : "none";
    bool ideal =
        setup->cost.is_ideal || setup->cluster.is_ideal || (profile != NULL && profile->is_ideal);
    if (ideal || device == NULL || (choices != NULL && choices->scope != SCOPE_WHOLE_STEP))
        return similarity_of_run;
    snprintf(similarity_of_run.device, sizeof similarity_of_run.device, "%.*s",
             (int)strcspn(device, "-_ "), device);
    snprintf(similarity_of_run.framework, sizeof similarity_of_run.framework, "%s", framework);
    if (setup->real_framework != NULL)
        snprintf(similarity_of_run.real_framework, sizeof similarity_of_run.real_framework, "%s",
                 setup->real_framework);
    if (choices != NULL)
        add_choice_features(&similarity_of_run, setup, choices);
    return similarity_of_run;
}

struct similarity similarity_of_recorded(const struct setup *setup, const char *attention)
{
    struct similarity similarity_of_run = similarity_of(setup, NULL, NULL);
    snprintf(similarity_of_run.framework, sizeof similarity_of_run.framework, "a recorded program");
    snprintf(similarity_of_run.attention, sizeof similarity_of_run.attention, "%s", attention);
    snprintf(similarity_of_run.context, sizeof similarity_of_run.context, "its layout");
    return similarity_of_run;
}

struct residual similarity_make_residual(const struct similarity *similarity_of_run)
{
    return (struct residual){.laboratory = "",
                             .set = "",
                             .device = similarity_of_run->device,
                             .framework = similarity_of_run->framework,
                             .real_framework = similarity_of_run->real_framework[0] != '\0'
                                                   ? similarity_of_run->real_framework
                                                   : NULL,
                             .attention = similarity_of_run->attention,
                             .context = similarity_of_run->context,
                             .activations = similarity_of_run->activations,
                             .host_optimizer = similarity_of_run->has_host_optimizer,
                             .spans_several_nodes = similarity_of_run->is_on_several_nodes,
                             .tp = similarity_of_run->tp,
                             .pp = similarity_of_run->pp,
                             .gpus = similarity_of_run->gpus,
                             .seq_len = similarity_of_run->seq_len,
                             .sequences = similarity_of_run->sequences,
                             .parameters = similarity_of_run->parameters,
                             .layer_s = similarity_of_run->layer_s,
                             .log_ratio = {NAN, NAN},
                             .log_ratio_at_first_prediction = NAN};
}
