#include "predict/plan/layer_time.h"

#include "predict/prediction.h"

#include <math.h>
#include <string.h>

bool layer_key_make(struct layer_key *key, const struct choices *c, const struct request *request,
                    bool least)
{
    bool kept = least || c->activations == CHOICE_ACTIVATIONS_RATIO;
    memset(key, 0, sizeof *key);
    if (c->documents != NULL || transformer_count_windowed_layers(c->model) > 0 ||
        c->scope != SCOPE_WHOLE_STEP || c->activations == CHOICE_ACTIVATIONS_SELECTIVE_LAYER ||
        c->ep > 1)
        return false;
    key->profile = c->profile;
    key->micro_batch = c->micro_batch;
    key->chunk = c->chunk_count > 1 ? c->chunk_tokens : 0;
    key->cp = c->cp;
    key->hp = c->hp;
    key->tp = c->tp;
    key->ring_window = c->ring_window;
    key->ring_ranks_per_node = c->ring_ranks_per_node;
    key->subsequences = c->subsequences;
    key->ffn_chunks = c->ffn_chunks;
    key->length_rule = c->subsequences > 1 ? request->length_rule : 0;
    key->strategy = c->strategy;
    key->attention = c->attention;
    key->placement = c->cp > 1 && c->hp > 1 ? c->placement : 0;
    key->ring_layout = c->cp > 1 ? c->ring_layout : 0;
    key->rotation = c->cp > 1 ? c->rotation : 0;
    key->core_plan = c->core_plan;
    key->mla_exchange = c->model->kv_latent > 0 ? c->mla_exchange : 0;
    key->activations = kept ? CHOICE_ACTIVATIONS_KEEP : c->activations;
    key->attention_impl = c->attention_impl;
    key->dtype = c->dtype;
    return true;
}

bool layer_keys_equal(const struct layer_key *a, const struct layer_key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct request layer_request_of_one_layer(const struct request *asked, const struct layer_key *key)
{
    struct request r = *asked;
    r.scope = SCOPE_ALL_LAYERS;
    r.tp = key->tp;
    r.cp = key->cp;
    r.hp = key->hp;
    r.dp = r.pp = 1;
    r.ranks = r.tp * r.cp * r.hp;
    r.global_batch = r.micro_batch = key->micro_batch;
    r.activations = key->activations;
    r.weights = CHOICE_WEIGHTS_REPLICATED;
    r.optimizer = CHOICE_OPTIMIZER_DEVICE;
    r.shard = r.virtual_stages = 0;
    r.pipeline = r.stage_placement = 0;
    r.shared_units = NULL;
    r.must_compute_shared_units = r.must_compute_offload_hidden_bytes = false;
    r.offload_ratio = r.offload_hidden_bytes = 0;
    r.offload_hidden_bytes_by_subsequence = NULL;
    if (r.gpus_per_node > r.ranks)
        r.gpus_per_node = r.ranks;
    return r;
}

struct layer_lower_bound layer_kernel_sums(const struct setup *setup, const struct request *asked,
                                           const struct layer_key *key)
{
    struct request request = layer_request_of_one_layer(asked, key);
    struct prediction_kernel_and_issue_s sums[2] = {{0}}; /* [i]: of a step with 2 + i layers */
    struct layer_lower_bound layer = {0};
    for (int i = 0; i < 2; i++) {
        const struct prediction_question question = {.setup = setup,
                                                     .request = &request,
                                                     .wants_step_time_only = true,
                                                     .layer_count = 2 + i};
        struct prediction p = {0};
        bool made = prediction_memory(&p, &question, NULL, NULL) == STATUS_OK;
        if (made)
            sums[i] = prediction_sum_kernel_and_issue_s(&p);
        prediction_release(&p);
        if (!made)
            return layer;
    }
    layer.kernels_s = sums[1].kernels_s - sums[0].kernels_s;
    layer.issue_s = sums[1].issue_s - sums[0].issue_s;
    layer.step_s = fmax(layer.kernels_s, layer.issue_s);
    return layer;
}

double layer_simulated_s(const struct setup *setup, const struct request *asked,
                         const struct layer_key *key)
{
    struct request request = layer_request_of_one_layer(asked, key);
    double step_s[2] = {0}; /* [i]: of a step with 2 + i layers */
    for (int i = 0; i < 2; i++) {
        const struct prediction_question question = {.setup = setup,
                                                     .request = &request,
                                                     .wants_step_time_only = true,
                                                     .layer_count = 2 + i};
        struct prediction p = {0};
        if (prediction_make(&p, &question, NULL) == STATUS_OK)
            step_s[i] = p.sim.step_s;
        prediction_release(&p);
    }
    return step_s[0] > 0 && step_s[1] > step_s[0] ? step_s[1] - step_s[0] : 0;
}
