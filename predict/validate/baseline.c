#include "predict/validate/baseline.h"

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static double max_double(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the forward flops of one token in the products of all layers and of the head. */
static double linear_flops_per_token(const struct transformer *m)
{
    double h = (double)m->hidden, q = (double)transformer_q_columns(m);
    double kv = (double)transformer_kv_columns(m), f = (double)m->ffn;
    double matrices = transformer_has_gate(m) ? 3 : 2;
    double layer = 2 * h * (2 * q + 2 * kv) + 2 * matrices * h * f;
    return (double)m->layers * layer + 2 * h * (double)m->vocab;
}

/* Returns the rate that each of `flows` flows has on a node's NICs. */
static double nic_bytes_per_s_of_flow(const struct cluster *c, double flows)
{
    return min_double(c->nic.bytes_per_s, (double)c->nic.count * c->nic.bytes_per_s / flows);
}

static double fabric_bytes_per_s(const struct cluster *c)
{
    double peers = c->fabric.kind == FABRIC_MESH ? (double)c->gpus_per_node - 1 : 1;
    return c->fabric.kind == FABRIC_PCIE ? c->pcie.h2d_bytes_per_s : peers * c->fabric.bytes_per_s;
}

bool baseline_covers_choices(const struct choices *c)
{
    bool exchange = c->attention == CHOICE_ATTENTION_ULYSSES;
    bool ring = c->attention == CHOICE_ATTENTION_RING || c->attention == CHOICE_ATTENTION_2D;
    bool whole = c->scope == SCOPE_WHOLE_STEP || c->scope == SCOPE_ATTENTION_OPERATOR ||
                 c->scope == SCOPE_ATTENTION_EXCHANGES;
    return (exchange || ring) && whole && c->tp == 1 && c->pp == 1 && c->model->kv_latent == 0;
}

struct baseline baseline_of(const struct choices *c, const struct cluster *cluster)
{
    const struct transformer *m = c->model;
    bool head_first = c->placement == PLACEMENT_HEAD_FIRST;
    double hp = c->hp, cp = c->cp, node = (double)cluster->gpus_per_node, s = (double)c->seq;
    double dtype = (double)dtype_bytes((enum dtype)c->dtype), q = (double)transformer_q_columns(m);
    double kv = (double)transformer_kv_columns(m) * max_double(1, hp / (double)m->kv_heads);
    double fabric = fabric_bytes_per_s(cluster), tokens = s / (cp * hp);

    bool exchange_near = hp * (head_first ? 1 : cp) <= node;
    bool ring_near = cp * (head_first ? hp : 1) <= node;
    double rings = head_first ? min_double(hp, node) : max_double(1, node / cp);
    double flows = min_double(node, rings * c->ring_window);
    struct baseline b = {
        .tile_flops = 2 * s * s * q / (cp * cp * hp),
        .linear_flops = tokens * linear_flops_per_token(m),
        .message_bytes = 2 * s / cp * kv / hp * dtype,
        .inner_bytes_per_s = fabric,
        .outer_bytes_per_s = ring_near ? fabric : nic_bytes_per_s_of_flow(cluster, flows),
        .cp = cp,
        .window = c->ring_window,
        .layers = (double)m->layers,
        .peak_flop_per_s = cluster->device.peak_bf16_flop_per_s,
        .forwards_per_step = c->activations == CHOICE_ACTIVATIONS_KEEP ? 1 : 2,
        .sequences_of_context_group = (double)c->accumulation * (double)c->micro_batch,
        .predicts_attention_operator_only = c->scope != SCOPE_WHOLE_STEP,
    };
    b.core_forwards_per_step =
        c->activations == CHOICE_ACTIVATIONS_SELECTIVE ? 1 : b.forwards_per_step;
    if (hp > 1)
        b.forward_all_to_alls_s = tokens * (2 * q + 2 * kv) * dtype * (hp - 1) / hp /
                                  (exchange_near ? fabric : nic_bytes_per_s_of_flow(cluster, node));
    return b;
}

/* Returns the seconds of one pass of attention in one layer, with `flops` times the flops of a forward and `bytes`
 * times the bytes of its ring. */
static double attention_core_s(const struct baseline *b, double share, double flops, double bytes)
{
    double tile = flops * b->tile_flops / (share * b->peak_flop_per_s);
    if (b->cp == 1)
        return b->forward_all_to_alls_s + tile;
    double inner = bytes * b->message_bytes / b->inner_bytes_per_s;
    double outer = bytes * b->message_bytes / b->outer_bytes_per_s;
    double window = (b->window - 1) * max_double(tile, inner) + max_double(tile, outer);
    return b->forward_all_to_alls_s + b->cp / b->window * window;
}

double baseline_step_s(const struct baseline *b, double share)
{
    double forward = attention_core_s(b, share, 1, 1),
           backward = attention_core_s(b, share, 2.5, 2);
    if (b->predicts_attention_operator_only)
        return forward + backward;
    double products = (b->forwards_per_step + 2) * b->linear_flops / (share * b->peak_flop_per_s);
    return b->sequences_of_context_group *
           (b->layers * (b->core_forwards_per_step * forward + backward) + products);
}

double baseline_exchange_s(const struct baseline *b)
{
    return 2 * b->forward_all_to_alls_s;
}
