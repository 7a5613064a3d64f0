#include "schedule/config/resolve_experts.h"

#include "schedule/choices/pieces.h"
#include "schedule/config/mesh_parts.h"
#include "schedule/config/resolve_degrees.h"
#include "schedule/pipeline/pipeline.h"

/* Returns whether ep neighbouring ranks, tensor ranks included, can have different experts: they must be a run of ranks
 * that cuts at most one part of the mesh, evenly. */
static bool ep_can_spread_over_neighbour_ranks(const struct choices *c, int64_t ep)
{
    return ep % c->tp == 0 && (int64_t)c->dp * c->cp * c->hp % (ep / c->tp) == 0 &&
           mesh_parts_are_cut_evenly_by_run(c, ep / c->tp);
}

/* True if experts can be spread over ep ranks. The ranks that share one copy of the other weights must be whole groups
 * of ep ranks. */
static bool ep_is_possible(const struct choices *c, int64_t ep)
{
    const bool in_part =
        c->weights != CHOICE_WEIGHTS_REPLICATED && c->shard < (int64_t)c->dp * c->cp * c->hp;
    return c->model->experts % ep == 0 && ep_can_spread_over_neighbour_ranks(c, ep) &&
           (!in_part || (int64_t)c->shard * c->tp % ep == 0);
}

/* Takes the routing of the request. Refuses one whose experts or layers are not those of the model. */
static enum status resolve_routing(struct choices *c, const struct request *r, struct diag *diag)
{
    const struct routing *routing = r->routing;
    const struct transformer *m = c->model;
    if (routing == NULL || routing->expert_count == 0)
        return STATUS_OK;
    if (m->experts == 0)
        return resolve_refuse(diag, "--routing", "the model has no experts; leave out --routing");
    if (routing->expert_count != (uint64_t)m->experts ||
        routing->copies_per_token != (uint64_t)m->experts_per_token)
        return resolve_refuse(diag, "--routing",
                              "the shares are of %u experts and %u copies a token, but the model "
                              "has %lld and %lld",
                              routing->expert_count, routing->copies_per_token,
                              (long long)m->experts, (long long)m->experts_per_token);
    for (int64_t l = 0; l < m->layers; l++)
        if (l >= routing->layer_count || routing->share_list_by_layer[l] == ROUTING_NO_SHARE_LIST)
            return resolve_refuse(diag, "--routing", "layer %lld has no shares", (long long)l);
    c->routing = routing;
    return STATUS_OK;
}

/* Sets the capacity of experts, the dispatcher and the overlap of exchanges from the request, and refuses combinations
 * that are not modelled. */
static enum status resolve_dispatch(struct choices *c, const struct request *r, struct diag *diag)
{
    const bool experts = c->model->experts > 0;
    c->expert_capacity = experts ? r->expert_capacity : (struct expert_capacity){0};
    c->dispatcher = experts && c->ep > 1 ? (uint8_t)r->dispatcher : DISPATCHER_ALLTOALL;
    c->expert_overlap = experts && c->ep > 1 ? (uint8_t)r->expert_overlap : EXPERT_OVERLAP_NONE;
    if (c->expert_overlap != EXPERT_OVERLAP_NONE && r->shared_experts == SHARED_EXPERTS_PROFILE)
        c->shared_experts = SHARED_EXPERTS_BEFORE_ROUTED;
    if (c->expert_capacity.capacity_factor_millionths > 0 && c->dispatcher != DISPATCHER_ALLTOALL)
        return resolve_refuse(diag, "--expert-capacity",
                              "copies that are dropped travel by one all-to-all only; choose "
                              "--dispatcher alltoall, or --expert-capacity none");
    if (experts && c->model->router_on_input &&
        (c->expert_capacity.capacity_factor_millionths > 0 || c->dispatcher != DISPATCHER_ALLTOALL))
        return resolve_refuse(diag,
                              c->expert_capacity.capacity_factor_millionths > 0
                                  ? "--expert-capacity"
                                  : "--dispatcher",
                              "the model's routers weight what experts read, which is modelled for "
                              "all copies in one all-to-all only; choose --dispatcher alltoall and "
                              "--expert-capacity none");
    if (c->shared_experts == SHARED_EXPERTS_DURING_BOTH_EXCHANGES &&
        c->dispatcher != DISPATCHER_ALLTOALL)
        return resolve_refuse(diag, "--shared-experts",
                              "shared experts are divided between two exchanges with the "
                              "all-to-all only; choose --dispatcher alltoall, or --shared-experts "
                              "before or combine");
    if (c->cuda_graphs == CUDA_GRAPHS_STEP && experts && c->ep > 1 &&
        c->profile->host_waits_for_expert_counts && dispatcher_needs_counts(c))
        return resolve_refuse(diag, "--cuda-graphs",
                              "the host waits for the rows of experts in every layer, so a step is "
                              "no single graph; choose layer, --dispatcher hybridep, or "
                              "--expert-capacity FACTOR,pad");
    return STATUS_OK;
}

enum status resolve_experts(struct choices *c, const struct request *r, struct diag *diag)
{
    const int64_t ep = r->ep > 0 ? r->ep : 1, experts = c->model->experts;
    struct text would = {0};
    int64_t fit[16];
    int count = 0;
    c->ep = (uint32_t)ep;
    if (resolve_routing(c, r, diag) != STATUS_OK || resolve_dispatch(c, r, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    if (experts > 0 && c->tp > 1 && c->sequence_parallel_ranks == 1)
        return resolve_refuse(diag, "--tensor-plan",
                              "tensor ranks that have all tokens would all send the same ones to "
                              "experts; choose --tensor-plan megatron, or --tp 1");
    if (ep == 1 && (experts == 0 || c->tp == 1))
        return STATUS_OK;
    if (experts == 0)
        return resolve_refuse(diag, "--ep",
                              "the model has no experts to spread over %lld ranks; leave out --ep",
                              (long long)ep);
    if (ep_is_possible(c, ep))
        return STATUS_OK;
    for (int64_t d = 1; d <= experts && count < (int)ARRAY_LEN(fit); d++)
        if (ep_is_possible(c, d))
            fit[count++] = d;
    text_puts(&would, "--ep ");
    resolve_append_numbers(&would, fit, count);
    if (experts % ep != 0)
        return resolve_refuse_value_with_hint(diag, "--ep", &would,
                                              "%lld experts do not divide over ep %lld",
                                              (long long)experts, (long long)ep);
    if (ep % c->tp != 0)
        return resolve_refuse_value_with_hint(
            diag, "--ep", &would,
            "tensor ranks have different experts, and ep %lld is no multiple "
            "of tp %u",
            (long long)ep, c->tp);
    if (!ep_can_spread_over_neighbour_ranks(c, ep))
        return resolve_refuse_value_with_hint(
            diag, "--ep", &would,
            "ep %lld is no run of neighbouring ranks of dp %u x cp %u x hp %u", (long long)ep,
            c->dp, c->cp, c->hp);
    return resolve_refuse_value_with_hint(
        diag, "--ep", &would,
        "ep %lld does not divide the %u ranks that share one copy of the weights", (long long)ep,
        c->shard * c->tp);
}

/* Returns whether the copies of every piece of a unit of `rows` rows divide evenly over all experts. */
static bool copies_divide_over_experts(const struct choices *c, int64_t rows)
{
    const struct transformer *m = c->model;
    for (uint32_t i = 0; i < c->ffn_chunks; i++)
        if (piece_of_rows(rows, c->ffn_chunks, i).rows * m->experts_per_token % m->experts != 0)
            return false;
    return true;
}

void resolve_listing_of_expert_copies(struct choices *c)
{
    c->lists_copies_of_even_routing =
        c->routing == NULL &&
        ((c->ep > 1 && c->must_compute_subsequence_tokens) ||
         c->expert_capacity.capacity_factor_millionths > 0 || c->dispatcher != DISPATCHER_ALLTOALL);
    for (uint32_t u = 0;
         c->ep > 1 && c->routing == NULL && !c->lists_copies_of_even_routing && u < c->subsequences;
         u++) {
        const int64_t tokens =
            pipeline_tokens_before_subsequence(c, u + 1) - pipeline_tokens_before_subsequence(c, u);
        c->lists_copies_of_even_routing =
            !copies_divide_over_experts(c, c->micro_batch * (tokens / c->cp / c->hp / c->tp));
    }
}
