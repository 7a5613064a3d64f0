/* tests/property/test_numbers.c: every number of a cluster, a host and a device changes some
 * prediction, but for a few exceptions. A number that is read from a file and then does nothing
 * would mislead whoever sets it. */
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "models/cluster_fields.h"
#include "models/cost_parts.h"
#include "predict/prediction.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Predictions that between them use every mechanism of the simulator, small enough to be made a thousand times. Those
 * that use most come first. */
static const char *const predictions[] = {
    "--model longhaul-3m --cluster dgx-h100 --gpus 16 --seq 8K --strategy 2d --cp 2 --hp 2 --dp 4",
    "--model longhaul-3m --cluster dgx-a100 --gpus 4 --seq 8K --strategy fpdt --profile deepspeed "
    "--optimizer host",
    "--model longhaul-3m --cluster dgx-a100 --gpus 16 --seq 8K --strategy ring --profile internevo "
    "--activations offload --rotate all-gather",
    "--model longhaul-3m --cluster fpdt-a100-80g --gpus 8 --seq 64K --strategy ring",
    "--model longhaul-3m --cluster 1x4xa100-80g:fabric.kind=mesh --seq 8K --strategy ulysses",
    "--model longhaul-3m --cluster 4x8xh100:network.rails=true,network.leaf_nodes=2,"
    "network.oversubscription=16 --seq 64K --strategy ring",
    "--model longhaul-3m --cluster 16x8xh100 --seq 8K --strategy local --dp 128 --batch 128",
    "--model longhaul-3m --cluster 2x4xa100-80g:nic.gpudirect=false,nic.staged_bandwidth=5GB/s "
    "--seq 64K --strategy ring",
    "--model longhaul-3m --cluster h200 --gpus 4 --seq 8K --strategy ulysses --profile torchtitan",
    "--model longhaul-3m --cluster cpu-node --gpus 2 --seq 2K --strategy ring --attention cpu "
    "--dtype f32",
    "--model longhaul-3m --cluster dgx-h100 --gpus 1 --seq 8K --strategy local --dtype f32",
    "--model longhaul-3m --cluster dgx-h100 --loopback 2 --seq 8K --strategy ulysses",
    "--model longhaul-3m --cluster dgx-h100 --gpus 2 --seq 8K --strategy ring --attention cudnn "
    "--profile internevo",
    "--model longhaul-3m --cluster dgx-h100 --gpus 2 --seq 8K --strategy ring --attention fa2",
    "--model longhaul-3m --cluster dgx-h100 --gpus 2 --seq 8K --strategy ring --attention fa3",
    "--model longhaul-3m --cluster dgx-h100 --gpus 2 --seq 8K --strategy ring --attention triton",
    "--model longhaul-3m --cluster dgx-a100 --gpus 2 --seq 8K --strategy ring --attention fa1",
    "--model longhaul-3m --cluster dgx-h100 --gpus 1 --seq 8K --strategy local --products "
    "fp8-tensor",
    "--model longhaul-3m --cluster dgx-h100 --gpus 1 --seq 8K --strategy local --products fp8-row",
    "--model longhaul-3m --cluster dgx-h100 --gpus 1 --seq 8K --strategy local --products "
    "fp8-block",
    "--model longhaul-3m --cluster 1x8xb200 --gpus 1 --seq 8K --strategy local --products mxfp8",
    "--model longhaul-3m --cluster 1x8xb200 --gpus 1 --seq 8K --strategy local --products nvfp4",
    "--model longhaul-3m --cluster 1x8xb200 --gpus 1 --seq 8K --strategy local --products mxfp8 "
    "--attention cudnn --attention-products fp8",
    "--model longhaul-3m --cluster 1x8xb200 --gpus 1 --seq 8K --strategy local --products "
    "fp8-tensor --attention cudnn --attention-products fp8",
};

struct sim_figures {
    double step_s, mfu;
    uint64_t needed[LIMIT_COUNT], available[LIMIT_COUNT];
};

/* Returns a cluster on one line in which the field of `more`, such as "nic.bandwidth=1B/s", has
 * that value. It is appended, or takes the place of another value of the field. more "": nothing
 * changes. */
static char *cluster_line_with_number(struct arena *arena, const char *cluster, const char *more)
{
    int path = (int)strcspn(more, "=") + 1;
    const char *old =
        *more != '\0' ? strstr(cluster, arena_printf(arena, "%.*s", path, more)) : NULL;
    if (old != NULL)
        return arena_printf(arena, "%.*s%s%s", (int)(old - cluster), cluster, more,
                            old + strcspn(old, ","));
    const char *sign = *more == '\0' ? "" : strchr(cluster, ':') != NULL ? "," : ":";
    return arena_printf(arena, "%s%s%s", cluster, sign, more);
}

/* Loads a setup from options, with a number of the cluster changed to `more`; "": none. */
static enum status load_setup(struct setup *setup, const char *args, const char *more,
                              struct diag *diag)
{
    static const struct option_set *const sets[] = {&setup_model_options, &setup_cluster_options,
                                                    &setup_choice_options, NULL};
    struct options options = {0};
    char **word;
    int count;
    enum status status =
        options_split_words(&word, &count, &setup->arena, args, (struct loc){0}, diag);
    for (int i = 1; i < count && status == STATUS_OK; i++)
        if (strcmp(word[i - 1], "--cluster") == 0)
            word[i] = cluster_line_with_number(&setup->arena, word[i], more);
    if (status == STATUS_OK)
        status = options_parse(&options, sets, count, word, diag);
    if (status == STATUS_OK)
        status = setup_load(setup, &options, false, diag);
    options_release(&options);
    return status;
}

/* A change of one number of a loaded machine: apply() changes number `number` by `factor`. */
struct number_change {
    void (*apply)(struct setup *setup, size_t number, double factor);
    size_t number;
    double factor;
};

static bool predict(struct sim_figures *figures, size_t i, const char *more,
                    const struct number_change *change, struct diag *diag)
{
    struct setup setup = {0};
    struct prediction p = {0};
    enum status status = load_setup(&setup, predictions[i], more, diag);
    if (status == STATUS_OK && change != NULL)
        change->apply(&setup, change->number, change->factor);
    if (status == STATUS_OK)
        status = setup_fill_open_fields(&setup, diag);
    if (status == STATUS_OK)
        status = prediction_make(&p, &(struct prediction_question){.setup = &setup}, diag);
    if (status == STATUS_OK) {
        *figures =
            (struct sim_figures){.step_s = p.sim.step_s, .mfu = prediction_mfu(&p, MFU_LONGHAUL)};
        for (int l = 0; l < LIMIT_COUNT; l++) {
            figures->needed[l] = p.verdict.needed_bytes[l];
            figures->available[l] = p.verdict.available_bytes[l];
        }
    }
    prediction_release(&p);
    setup_release(&setup);
    return status == STATUS_OK;
}

static struct sim_figures usual[ARRAY_LEN(predictions)];

static bool are_figures_as_before_change(const struct sim_figures *figures, size_t i)
{
    bool same = figures->step_s == usual[i].step_s && figures->mfu == usual[i].mfu;
    for (int l = 0; l < LIMIT_COUNT; l++)
        same = same && figures->needed[l] == usual[i].needed[l] &&
               figures->available[l] == usual[i].available[l];
    return same;
}

/* Numbers that change no prediction of a training step, and what they are for. */
static const char *const exceptions[][2] = {
    {"device.clock_mhz",
     "the SM clock that a prediction states: it scales with the power limit's clocks, and no time"},
    {"device.peak_flop_per_s", "the data sheet's peak: calibrate refuses faster rates"},
    {"matmul.f64_flop_per_s", "products in f64, which only a schedule from a file may have"},
    {"attention.cpu.power", "processors, which have no power limit"},
    {"attention.cudnn-fp8.merge_bytes", "rings, which have no attention in 8 bits"},
    {"attention.cudnn-mxfp8.merge_bytes", "rings, which have no attention in 8 bits"},
};

static bool is_exempt_number(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
        if (strcmp(name, exceptions[i][0]) == 0)
            return true;
    return false;
}

/* The factors by which numbers are changed. */
static const double factors[2] = {0.03, 3};

/* Checks that a change of a number by one of the factors changes a prediction, or that all
 * predictions refuse it; a change of an exception must change none. The number is changed by the
 * text `more` of each factor, or by `change`. Each day tests a quarter of the numbers. */
static void check_number_matters(const char *name, const char *const more[2],
                                 struct number_change *change)
{
    static size_t number;
    if (!check_is_sampled_today(number++, SIZE_MAX, 4))
        return;
    bool taken = false;
    for (size_t i = 0; i < ARRAY_LEN(predictions); i++) {
        for (int f = 0; f < 2; f++) {
            struct diag diag = {0};
            struct sim_figures figures;
            if (change != NULL)
                change->factor = factors[f];
            bool ok = predict(&figures, i, more != NULL ? more[f] : "", change, &diag);
            diag_release(&diag);
            taken |= ok;
            if (ok && !are_figures_as_before_change(&figures, i)) {
                CHECK(name, !is_exempt_number(name));
                return;
            }
        }
    }
    char label[160];
    snprintf(label, sizeof label, "%s changes a prediction, or is refused", name);
    CHECK(label, !taken || is_exempt_number(name));
}

static void predictions_can_be_made(void)
{
    for (size_t i = 0; i < ARRAY_LEN(predictions); i++) {
        struct diag diag = {0};
        bool ok = predict(&usual[i], i, "", NULL, &diag);
        CHECK(diag.text != NULL ? diag.text : predictions[i], ok);
        diag_release(&diag);
    }
}

/* Returns the text of a field and its value as it stands after a cluster's name. */
static const char *cluster_line_text_of_field(struct arena *arena,
                                              const struct cluster_field *field, double value)
{
    static const char *const unit[FIELD_TYPE_COUNT] = {
        [FIELD_BYTES] = "B",           [FIELD_BYTES_PER_S] = "B/s", [FIELD_SECONDS] = "s",
        [FIELD_FLOP_PER_S] = "FLOP/s", [FIELD_NUMBER] = "",         [FIELD_WHOLE_NUMBER] = "",
    };
    if (field->type == FIELD_BOOL)
        return arena_printf(arena, "%s=%s", field->path, value > 0 ? "true" : "false");
    if (field->type == FIELD_WHOLE_NUMBER)
        value = ceil(value);
    return arena_printf(arena, "%s=%.17g%s", field->path, value, unit[field->type]);
}

static void every_number_of_a_cluster_matters(void)
{
    static const double small[FIELD_TYPE_COUNT] = {
        [FIELD_BYTES] = 1e9,       [FIELD_BYTES_PER_S] = 1e9, [FIELD_SECONDS] = 1e-3,
        [FIELD_FLOP_PER_S] = 1e12, [FIELD_NUMBER] = 0.3,      [FIELD_WHOLE_NUMBER] = 1,
        [FIELD_BOOL] = 0,
    };
    struct arena arena = {0};
    struct diag diag = {0};
    struct cluster cluster = {0};
    CHECK("loads", cluster_load(&cluster, &arena, "dgx-h100", &diag) == STATUS_OK);
    for (size_t i = 0; i < CLUSTER_FIELD_COUNT; i++) {
        const struct cluster_field *field = &cluster_fields[i];
        /* the numbers of nodes and GPUs are the size of the cluster; tables and the kind of the fabric are no
         * numbers */
        if (field->type == FIELD_FABRIC || field->type == FIELD_TABLE || field->section == NULL)
            continue;
        double value = cluster_field_value_as_double(&cluster, field);
        double from = value != 0 ? value : small[field->type];
        const char *more[2] = {
            cluster_line_text_of_field(&arena, field,
                                       field->type == FIELD_BOOL ? 0 : from * factors[0]),
            cluster_line_text_of_field(&arena, field,
                                       field->type == FIELD_BOOL ? 1 : from * factors[1])};
        check_number_matters(field->path, more, NULL);
    }
    diag_release(&diag);
    arena_release(&arena);
}

static double changed_number(double number, enum unit_kind unit, double factor)
{
    static const double small[UNIT_KIND_COUNT] = {
        [UNIT_NONE] = 1,       [UNIT_BYTES] = 1e6,       [UNIT_BYTES_PER_S] = 1e9,
        [UNIT_SECONDS] = 1e-3, [UNIT_FLOP_PER_S] = 1e12, [UNIT_WATTS] = 300,
    };
    return (number != 0 ? number : small[unit]) * factor;
}

static void scale_cost_number(struct setup *setup, size_t i, double factor)
{
    double *number = (double *)((char *)&setup->cost + cost_params[i].offset);
    *number = changed_number(*number, cost_params[i].unit, factor);
}

static void every_number_of_a_device_matters(void)
{
    for (size_t i = 0; i < cost_param_count; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.%s", cost_params[i].family, cost_params[i].field);
        check_number_matters(name, NULL, &(struct number_change){scale_cost_number, i, 0});
    }
}

/* The numbers of each implementation of attention: those of each direction, then its power and the bytes of a merge. */
enum { TILE, STEP, RAMP, RATES, PASS_NUMBERS, ATTENTION_NUMBERS = 2 * PASS_NUMBERS + 2 };

static void scale_attention_number(struct setup *setup, size_t i, double factor)
{
    size_t impl = i / ATTENTION_NUMBERS, number = i % ATTENTION_NUMBERS;
    struct device_cost *cost = &setup->cost;
    if (number == 2 * PASS_NUMBERS)
        cost->watts_by_attention_impl[impl] =
            changed_number(cost->watts_by_attention_impl[impl], UNIT_WATTS, factor);
    if (number == 2 * PASS_NUMBERS + 1)
        cost->merge_bytes_per_element[impl] *= factor;
    if (number >= 2 * PASS_NUMBERS)
        return;
    struct cost_attention *pass = &cost->attention[impl][number / PASS_NUMBERS];
    switch (number % PASS_NUMBERS) {
    case TILE:
        pass->tile_rows *= factor;
        break;
    case STEP:
        pass->step_columns *= factor;
        break;
    case RAMP:
        pass->ramp_s *= factor;
        break;
    default:
        for (size_t d = 0; d < pass->dim_count; d++)
            pass->flop_per_s[d] *= factor;
    }
}

static void every_number_of_attention_matters(void)
{
    static const char *const names[ATTENTION_NUMBERS] = {
        "forward.tile",  "forward.step",    "forward.ramp_s", "forward.rates", "backward.tile",
        "backward.step", "backward.ramp_s", "backward.rates", "power",         "merge_bytes"};
    for (size_t i = 0; i < ATTENTION_IMPL_COUNT * ATTENTION_NUMBERS; i++) {
        char name[96];
        enum attention_impl impl = (enum attention_impl)(i / ATTENTION_NUMBERS);
        snprintf(name, sizeof name, "attention.%s.%s", attention_impl_name(impl),
                 names[i % ATTENTION_NUMBERS]);
        check_number_matters(name, NULL, &(struct number_change){scale_attention_number, i, 0});
    }
}

static const struct check_case cases[] = {
    {"predictions can be made", predictions_can_be_made},
    {"every number of a cluster matters", every_number_of_a_cluster_matters},
    {"every number of a device matters", every_number_of_a_device_matters},
    {"every number of attention matters", every_number_of_attention_matters},
};
CHECK_MAIN("numbers", cases)
