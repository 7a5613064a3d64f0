#include "predict/setup/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void setup_release(struct setup *setup)
{
    evidence_release(&setup->evidence);
    arena_release(&setup->arena);
    free(setup->offload_hidden_bytes);
    *setup = (struct setup){0};
}

/* Returns whether the list `fields` ("vocab=50257,layers=16") sets the field `field` before the position `end`. */
static bool is_field_set_earlier_in_list(const char *fields, const char *end, const char *field)
{
    size_t size = strlen(field);
    while (fields < end) {
        if (strncmp(fields, field, size) == 0 && fields[size] == '=')
            return true;
        fields += strcspn(fields, ",") + 1;
    }
    return false;
}

/* Sets the fields of the model that are listed in a text such as "vocab=50257,layers=16". */
static enum status set_model_fields_of_list(struct setup *setup, const char *all, struct diag *diag)
{
    struct loc at = {.name = "--set"};
    const char *fields = all;
    while (*fields != '\0') {
        size_t size = strcspn(fields, ",");
        char *field = arena_text(&setup->arena, fields, size), *equals = strchr(field, '=');
        if (equals == NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "'%s' is not a field of the model and its value, FIELD=VALUE", field);
        *equals = '\0';
        if (is_field_set_earlier_in_list(all, fields, field))
            return diag_error(diag, at, STATUS_BAD_INPUT, "sets %s twice; leave one of them out",
                              field);
        const char *name = setup->model.name;
        setup->model.name = at.name; /* messages begin with this name */
        enum status status = transformer_set_field(&setup->model, field, equals + 1, diag);
        setup->model.name = name;
        if (status != STATUS_OK)
            return status;
        fields += size;
        fields += *fields == ',';
    }
    return transformer_check(&setup->model, at, diag);
}

/* Fails if no schedule can express the model, and proposes the dense model that is most like it, if one can be made of
 * it. */
static enum status refuse_model_without_schedule(struct setup *setup, const char *name,
                                                 const char *ignore, struct diag *diag)
{
    struct text what = {0}, line = {0}, left = {0};
    struct transformer dense;
    if (!transformer_put_unmodelled(&what, &setup->model)) {
        text_release(&what);
        return STATUS_OK;
    }
    if (transformer_load_dense(&dense, &setup->arena, name, ignore, NULL) == STATUS_OK &&
        !transformer_put_unmodelled(&left, &dense)) /* a line of fields is loaded as it is */
        transformer_put_line(&line, &dense, true);
    enum status status = diag_error(
        diag, (struct loc){.name = setup->model.name}, STATUS_BAD_INPUT,
        "the model has parts that are not modelled: %s%s", what.data,
        line.size == 0 ? ""
                       : arena_printf(&setup->arena,
                                      ". --as-dense takes the nearest dense model, of %.3g B "
                                      "parameters, as a proxy: %s",
                                      (double)transformer_parameters(&dense) / 1e9, line.data));
    text_release(&what);
    text_release(&line);
    text_release(&left);
    return status;
}

enum status setup_load_model(struct setup *setup, const char *name, const char *ignore,
                             const char *fields, struct diag *diag)
{
    size_t before = diag != NULL ? diag->size : 0;
    /* if the model is a line of fields, the fields to set are appended to it, since the line may lack some of them, and
     * could then not be read by itself */
    if (transformer_is_line(name) && fields != NULL) {
        name = arena_printf(&setup->arena, "%s,%s", name, fields);
        fields = NULL;
    }
    enum status status =
        setup->takes_experts_as_dense
            ? transformer_load_dense(&setup->model, &setup->arena, name, ignore, diag)
            : transformer_load(&setup->model, &setup->arena, name, ignore, diag);
    diag_add_place_to_errors(diag, before, "--model");
    if (status == STATUS_OK && fields != NULL)
        status = set_model_fields_of_list(setup, fields, diag);
    return status == STATUS_OK ? refuse_model_without_schedule(setup, name, ignore, diag) : status;
}

enum status setup_load_cluster(struct setup *setup, const char *name, int64_t nodes, int64_t gpus,
                               struct diag *diag)
{
    size_t before = diag != NULL ? diag->size : 0;
    enum status status = cluster_load(&setup->cluster, &setup->arena, name, diag);
    diag_add_place_to_errors(diag, before, "--cluster");
    if (status == STATUS_OK && (nodes > 0 || gpus > 0)) {
        status = cluster_resize(&setup->cluster, &setup->arena, nodes, gpus, diag);
        diag_add_place_to_errors(diag, before, gpus > 0 ? "--gpus" : "--nodes");
    }
    if (status == STATUS_OK)
        status = cost_load(&setup->cost, &setup->arena, setup->cluster.device.cost_name, diag);
    evidence_release(&setup->evidence); /* a setup may have loaded another cluster before */
    if (status == STATUS_OK)
        status = evidence_load_shipped(&setup->evidence, diag);
    return status;
}

enum status setup_place_ranks_on_one_gpu(struct setup *setup, int64_t ranks, struct diag *diag)
{
    const struct device_cost *cost = &setup->cost;
    const struct loopback copies = {cost->device_memory_bytes_per_s * cost->memory_stream_fraction /
                                        2,
                                    cost->device_kernel_start_s};
    return cluster_share_gpu(&setup->cluster, &setup->arena, ranks, copies, diag);
}

enum status setup_load_costs(struct setup *setup, const char *name, struct diag *diag)
{
    if (name == NULL)
        return STATUS_OK;
    size_t before = diag != NULL ? diag->size : 0;
    enum status status = cost_load(&setup->cost, &setup->arena, name, diag);
    diag_add_place_to_errors(diag, before, "--costs");
    return status;
}

void setup_leave_request_open(struct setup *setup)
{
    setup->request = (struct request){
        .model = &setup->model,
        .weights = -1,
        .activations = -1,
        .optimizer = -1,
        .attention_impl = -1,
        .sole_costed_attention_impl_plus_one = cost_only_attention_impl_plus_1(&setup->cost),
        .dtype = -1,
        .ranks = setup->cluster.gpus,
        .sm = (int)lround(10 * setup->cluster.device.compute_capability),
        .gpus_per_node = setup->cluster.gpus_per_node,
    };
}

void setup_apply_machine_change(struct setup *setup, const struct setup_machine_change *change)
{
    if (change != NULL)
        change->apply(setup, change->context);
}

void setup_set_sparsity(struct setup *setup, int64_t chunk, double share)
{
    int64_t kept_tokens = (int64_t)(share * (double)chunk + 0.5);
    setup->model.attention_chunk = chunk;
    setup->model.attention_kept = kept_tokens < chunk ? chunk - kept_tokens : 1;
}
