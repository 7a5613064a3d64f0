#include "predict/validate/perturbation.h"
#include "models/cluster_fields.h"
#include "models/cost_parts.h"

#include <assert.h>
#include <string.h>

/* The numbers of each pass (forward or backward) of fa2 attention: its rates, which count as one number, and its
 * ramp. */
enum { RATE, RAMP, ATTENTION_NUMBERS };

size_t perturbation_count(void)
{
    return CLUSTER_FIELD_COUNT + cost_param_count + ATTENTION_PASS_COUNT * ATTENTION_NUMBERS;
}

static double *pointer_to_cluster_number(struct cluster *cluster, const struct cluster_field *field)
{
    bool real = field->type == FIELD_BYTES_PER_S || field->type == FIELD_SECONDS ||
                field->type == FIELD_NUMBER;
    return real ? (double *)((char *)cluster + field->offset) : NULL;
}

bool perturbation_put_name(struct text *name, size_t i)
{
    static const char *const numbers[ATTENTION_NUMBERS] = {"rates", "ramp_s"};
    if (i < CLUSTER_FIELD_COUNT) {
        struct cluster none = {0};
        text_puts(name, cluster_fields[i].path);
        return pointer_to_cluster_number(&none, &cluster_fields[i]) != NULL;
    }
    i -= CLUSTER_FIELD_COUNT;
    if (i < cost_param_count) {
        text_printf(name, "%s.%s", cost_params[i].family, cost_params[i].field);
        return true;
    }
    i -= cost_param_count;
    text_printf(name, "attention.fa2.%s.%s", cost_pass_names[i / ATTENTION_NUMBERS],
                numbers[i % ATTENTION_NUMBERS]);
    return true;
}

size_t perturbation_index_of_number_named(const char *name)
{
    struct text text = {0};
    size_t i = 0;
    for (; i < perturbation_count(); i++) {
        text.size = 0;
        if (perturbation_put_name(&text, i) && strcmp(text.data, name) == 0)
            break;
    }
    text_release(&text);
    assert(i < perturbation_count());
    return i;
}

void perturbation_apply(struct setup *setup, struct perturbation perturbation)
{
    size_t i = perturbation.perturbed_number_index;
    if (perturbation.factor == 0)
        return;
    if (i < CLUSTER_FIELD_COUNT) {
        double *number = pointer_to_cluster_number(&setup->cluster, &cluster_fields[i]);
        if (number != NULL)
            *number *= perturbation.factor;
        return;
    }
    i -= CLUSTER_FIELD_COUNT;
    if (i < cost_param_count) {
        *(double *)((char *)&setup->cost + cost_params[i].offset) *= perturbation.factor;
        return;
    }
    i -= cost_param_count;
    struct cost_attention *a = &setup->cost.attention[ATTENTION_FA2][i / ATTENTION_NUMBERS];
    if (i % ATTENTION_NUMBERS == RAMP)
        a->ramp_s *= perturbation.factor;
    for (size_t d = 0; i % ATTENTION_NUMBERS == RATE && d < a->dim_count; d++)
        a->flop_per_s[d] *= perturbation.factor;
}
