#include "predict/plan/sensitivity.h"

#include "predict/prediction.h"
#include "predict/progress.h"
#include "predict/workers.h"

static void apply_faster_pcie(struct setup *s)
{
    s->cluster.pcie.nominal_bytes_per_s *= 2;
    s->cluster.pcie.h2d_bytes_per_s *= 2;
    s->cluster.pcie.d2h_bytes_per_s *= 2;
    s->cluster.pcie.pcie_switch_uplink_bytes_per_s *= 2;
}

static void apply_faster_nics(struct setup *s)
{
    s->cluster.nic.bytes_per_s *= 2;
    s->cluster.nic.peer_bytes_per_s *= 2;
}

static void apply_faster_fabric(struct setup *s)
{
    s->cluster.fabric.bytes_per_s *= 2;
    s->cluster.fabric.peer_bytes_per_s *= 2;
    s->cluster.fabric.all_to_all_peer_bytes_per_s *= 2;
    s->cluster.fabric.all_to_all_channels_bytes_per_s *= 2;
}

static void apply_faster_hbm(struct setup *s)
{
    s->cost.device_memory_bytes_per_s *= 2;
}

static void scale_clocks(struct setup *s, double factor)
{
    struct device_cost *cost = &s->cost;
    cost->device_peak_flop_per_s *= factor;
    cost->matmul_flop_per_s *= factor;
    cost->matmul_f32_flop_per_s *= factor;
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++)
            for (size_t d = 0; d < cost->attention[i][pass].dim_count; d++)
                cost->attention[i][pass].flop_per_s[d] *= factor;
}

static void apply_less_power(struct setup *s)
{
    scale_clocks(s, 0.9);
}

static void apply_faster_host(struct setup *s)
{
    s->cost.host_op_s /= 2;
    s->cost.host_kernel_s /= 2;
    s->cost.host_collective_s /= 2;
    s->cost.host_copy_s /= 2;
    s->cost.host_sync_s /= 2;
}

/* The changes of a machine, each of one part. Whoever adds a rate to struct cluster or struct device_cost has to add it
 * to the function of its part, too. */
static const struct {
    const char *name, *key;
    void (*change)(struct setup *setup);
} changes[SENSITIVITIES] = {
    {"PCIe of the next generation (2x)", "pcie_2x", apply_faster_pcie},
    {"NICs twice as fast", "nic_2x", apply_faster_nics},
    {"GPU fabric twice as fast", "fabric_2x", apply_faster_fabric},
    {"HBM twice as fast", "hbm_2x", apply_faster_hbm},
    {"clocks 10 % lower (power)", "clocks_0.9x", apply_less_power},
    {"host issue twice as fast", "issue_2x", apply_faster_host},
};

/* The input of the child processes. Each process has its own copy of the setup, which it may change. */
struct sensitivity_job_input {
    struct setup *setup;
    const struct request *request;
};

/* Resizes the cluster to the ranks of the request. Returns false if the cluster cannot have that number. Called only in
 * child processes, which have their own copy of the setup. */
static bool resize_cluster_of_trial(const struct sensitivity_job_input *trial)
{
    struct setup *setup = trial->setup;
    return setup->cluster.gpus == trial->request->ranks ||
           cluster_resize(&setup->cluster, &setup->arena, 0, trial->request->ranks, NULL) ==
               STATUS_OK;
}

static void predict_trial_job(void *context, size_t job, void *result)
{
    struct sensitivity_job_input *trial = context;
    struct step_time_of_sensitivity *out = result;
    struct prediction p = {0};
    if (!resize_cluster_of_trial(trial))
        return;
    struct setup changed = *trial->setup;
    const struct prediction_question question = {.setup = &changed,
                                                 .request = trial->request,
                                                 .skips_offsets = true,
                                                 .skips_cause_of_documents = true};
    changes[job].change(&changed);
    if (prediction_make(&p, &question, NULL) == STATUS_OK)
        out->step_s = p.sim.step_s;
    prediction_release(&p);
}

const char *sensitivity_name(int i)
{
    return changes[i].name;
}

const char *sensitivity_json_key(int i)
{
    return changes[i].key;
}

enum status sensitivities_find(struct step_time_of_sensitivity sensitivity[SENSITIVITIES],
                               struct setup *setup, const struct request *request,
                               struct diag *diag)
{
    struct sensitivity_job_input trial = {setup, request};
    struct progress progress;
    progress_begin(&progress, SENSITIVITIES, 0);
    enum status status = workers_run(SENSITIVITIES, sizeof sensitivity[0], predict_trial_job,
                                     &trial, sensitivity, &progress, diag);
    progress_end();
    return status;
}

/* The result of the child process that finds intervals. */
struct intervals_of_child {
    bool was_found;
    struct intervals intervals;
};

static void find_intervals_in_child(void *context, size_t job, void *result)
{
    struct sensitivity_job_input *trial = context;
    const struct prediction_question question = {.setup = trial->setup, .request = trial->request};
    struct prediction p = {0};
    (void)job;
    if (resize_cluster_of_trial(trial) && prediction_make(&p, &question, NULL) == STATUS_OK &&
        spreads_find(&p.spreads, &p, NULL) == STATUS_OK)
        *(struct intervals_of_child *)result =
            (struct intervals_of_child){true, intervals_of_prediction(&p)};
    prediction_release(&p);
}

enum status sensitivity_find_intervals(struct intervals *intervals, struct setup *setup,
                                       const struct request *request, struct diag *diag)
{
    struct sensitivity_job_input trial = {setup, request};
    struct intervals_of_child result = {0};
    if (!spreads_are_needed(setup))
        return STATUS_OK; /* the intervals of the search have the spreads already */
    enum status status =
        workers_run(1, sizeof result, find_intervals_in_child, &trial, &result, NULL, diag);
    if (status == STATUS_OK && result.was_found)
        *intervals = result.intervals;
    return status;
}
