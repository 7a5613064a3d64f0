#include "predict/similarity.h"

#include "base/c_locale.h"
#include "models/work.h"
#include "schedule/choices/products.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* True if the ranks over which experts are spread, `ep` neighbours, do not fit into one domain of the cluster's
 * fabric. */
static bool leaves_node(const struct cluster *cluster, int64_t ep)
{
    return ep > cluster->gpus_per_node * cluster->domain_nodes;
}

/* Fills the features that the choices decide. */
static void add_choices(struct similarity *like, const struct setup *setup, const struct choices *c)
{
    const bool alone = c->attention == CHOICE_ATTENTION_LOCAL;
    double tokens = (double)c->micro_batch * (double)c->seq, split = (double)c->cp * c->hp * c->tp;
    like->tp = c->tp;
    like->pp = c->pp;
    like->gpus = c->ranks;
    like->seq_len = c->seq;
    like->sequences = c->global_batch;
    like->parameters = transformer_parameters(c->model);
    like->host_optimizer = c->optimizer == CHOICE_OPTIMIZER_HOST;
    like->layer_s = 2 * (double)transformer_active_parameters(c->model) / (double)c->model->layers *
                    tokens / split / setup->cluster.device.peak_flop_per_s;
    snprintf(like->attention, sizeof like->attention, "%s",
             attention_impl_name((enum attention_impl)c->attention_impl));
    const char *context = alone ? "none" : attention_names[c->attention];
    const char *division = c->cp == 1                     ? ""
                           : c->ring_layout == RING_DEALT ? " with a core plan"
                           : c->rotation == ROTATE_NEEDED ? " with needed rows"
                                                          : "";
    /* no measured run with experts, with products in 8 or 4 bits, or with tokens and rows as a core plan or --rotate needed
     * has them, has been compared, so these count as a feature of their own */
    if (c->products != PRODUCTS_BF16)
        snprintf(like->context, sizeof like->context, "%s%s%s products", alone ? "" : context,
                 alone ? "" : " with ", products_names[c->products]);
    else if (c->model->experts > 0)
        snprintf(like->context, sizeof like->context, "%s%sexperts%s", alone ? "" : context,
                 alone ? "" : " with ",
                 leaves_node(&setup->cluster, c->ep) ? " between nodes" : "");
    else
        snprintf(like->context, sizeof like->context, "%s%s", context, division);
    snprintf(like->activations, sizeof like->activations, "%s", activations_names[c->activations]);
}

struct similarity similarity_of(const struct setup *setup, const struct choices *choices,
                                const struct profile *profile)
{
    struct similarity like = {.several = setup->cluster.nodes > 1};
    const char *device = setup->cluster.device.name;
    const char *framework = profile != NULL ? profile->name : "none";
    bool ideal = setup->cost.ideal || setup->cluster.ideal || (profile != NULL && profile->ideal);
    if (ideal || device == NULL || (choices != NULL && choices->scope != SCOPE_STEP))
        return like;
    snprintf(like.device, sizeof like.device, "%.*s", (int)strcspn(device, "-_ "), device);
    snprintf(like.framework, sizeof like.framework, "%s", framework);
    if (setup->real_framework != NULL)
        snprintf(like.real_framework, sizeof like.real_framework, "%s", setup->real_framework);
    if (choices != NULL)
        add_choices(&like, setup, choices);
    return like;
}

struct similarity similarity_of_recorded(const struct setup *setup, const char *attention)
{
    struct similarity like = similarity_of(setup, NULL, NULL);
    snprintf(like.framework, sizeof like.framework, "a recorded program");
    snprintf(like.attention, sizeof like.attention, "%s", attention);
    snprintf(like.context, sizeof like.context, "its layout");
    return like;
}

struct residual similarity_residual(const struct similarity *like)
{
    return (struct residual){.laboratory = "",
                             .set = "",
                             .device = like->device,
                             .framework = like->framework,
                             .real_framework =
                                 like->real_framework[0] != '\0' ? like->real_framework : NULL,
                             .attention = like->attention,
                             .context = like->context,
                             .activations = like->activations,
                             .host_optimizer = like->host_optimizer,
                             .several = like->several,
                             .tp = like->tp,
                             .pp = like->pp,
                             .gpus = like->gpus,
                             .seq_len = like->seq_len,
                             .sequences = like->sequences,
                             .parameters = like->parameters,
                             .layer_s = like->layer_s,
                             .value = {NAN, NAN},
                             .first = NAN};
}
