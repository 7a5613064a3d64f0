/* The table of a device's numbers; records the source of each number, and prints all of them. */
#include "models/cost_parts.h"

#include <string.h>

/* FAMILY_x is the value of enum cost_family for the family x, the first column of models/cost_params.def. */
#define FAMILY_device COST_DEVICE
#define FAMILY_matmul COST_MATMUL
#define FAMILY_memory COST_MEMORY
#define FAMILY_host COST_HOST
#define FAMILY_cpu COST_CPU

const struct cost_param cost_params[] = {
#define COST_MEMBER(family, field, unit, low, high, meaning)                                       \
    {#family, #field, FAMILY_##family, UNIT_##unit,                                                \
     low,     high,   meaning,         offsetof(struct device_cost, family##_##field)},
#include "models/cost_params.def"
#undef COST_MEMBER
};
const size_t cost_param_count = ARRAY_LEN(cost_params);

const char *const cost_family_names[COST_FAMILY_COUNT] = {
    [COST_DEVICE] = "device", [COST_MATMUL] = "matmul", [COST_MEMORY] = "memory",
    [COST_HOST] = "host",     [COST_CPU] = "cpu",
};

const char *const cost_pass_names[ATTENTION_PASS_COUNT] = {
    [ATTENTION_FORWARD_PASS] = "forward",
    [ATTENTION_BACKWARD_PASS] = "backward",
};

void cost_record_fact(struct device_cost *cost, struct arena *arena, const struct cost_fact *fact)
{
    struct cost_facts *facts = &cost->facts;
    for (size_t i = 0; i < facts->count; i++) {
        if (strcmp(facts->row[i].name, fact->name) == 0) {
            facts->row[i] = *fact;
            return;
        }
    }
    if (facts->count == facts->capacity) {
        size_t capacity = heap_next_capacity(facts->capacity, facts->count + 1);
        struct cost_fact *row = arena_array(arena, capacity, sizeof *row);
        if (facts->count > 0)
            memcpy(row, facts->row, facts->count * sizeof *row);
        facts->row = row;
        facts->capacity = capacity;
    }
    facts->row[facts->count++] = *fact;
}

static void print_calibration_of_family(struct text *out, const char *family,
                                        const struct cost_calibrated_range *calibration)
{
    if (!calibration->source)
        return;
    text_printf(out, "%s: %s within %.3g %%: %s", family,
                calibration->is_calibrated ? "calibrated" : "estimated",
                100 * calibration->rms_relative_error, calibration->source);
    const char *separator = "; sizes ";
    for (int i = 0; i < COST_SIZE_COUNT; i++) {
        if (calibration->largest_size[i] == 0)
            continue;
        text_printf(out, "%s%s %.6g..%.6g", separator, cost_size_names[i],
                    calibration->smallest_size[i], calibration->largest_size[i]);
        separator = ", ";
    }
    text_putc(out, '\n');
}

void cost_print_numbers_and_sources(struct text *out, const struct device_cost *cost)
{
    text_printf(out, "device %s%s\n", cost->name, cost->is_ideal ? " (ideal)" : "");
    if (cost->note)
        text_printf(out, "%s\n", cost->note);
    for (size_t i = 0; i < cost->facts.count; i++) {
        const struct cost_fact *fact = &cost->facts.row[i];
        text_printf(out, "%s = ", fact->name);
        units_put(out, fact->unit, fact->value);
        if (fact->high > 0) {
            text_puts(out, ", machines from ");
            units_put(out, fact->unit, fact->low);
            text_puts(out, " to ");
            units_put(out, fact->unit, fact->high);
        }
        if (fact->spread > 0)
            text_printf(out, ", spread %.2g %%", 100 * fact->spread);
        text_printf(out, "  (%s)  %s\n", fact->meaning, fact->source);
    }
    if (cost->points.count > 0)
        text_printf(out, "points = %zu  (matrix products and attention of measured shapes)  %s\n",
                    cost->points.count, cost->points.source);
    for (int i = 0; i < COST_FAMILY_COUNT; i++)
        print_calibration_of_family(out, cost_family_names[i], &cost->calibration[i]);
    struct text name = {0};
    for (int impl = 0; impl < ATTENTION_IMPL_COUNT; impl++) {
        for (int pass = 0; pass < ATTENTION_PASS_COUNT; pass++) {
            if (!cost->attention[impl][pass].is_family_present)
                continue;
            name.size = 0;
            text_printf(&name, "attention.%s.%s", attention_impl_name((enum attention_impl)impl),
                        cost_pass_names[pass]);
            print_calibration_of_family(out, name.data, &cost->attention[impl][pass].calibration);
        }
    }
    text_release(&name);
}
