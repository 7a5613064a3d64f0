/* Puts the parts of a report that only recorded steps have: the recording, its modules, and its guessed values. */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/recorded_modules.h"
#include "predict/recorded_operators.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_SIZE = 30, RANKS_SHOWN = 8 };

static uint32_t count_events(const struct schedule_recordings *all)
{
    uint32_t event_count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        event_count += all->recording[i].event_count;
    return event_count;
}

void report_put_torch_version_and_rank(struct text *line, const struct prediction *p)
{
    const struct schedule_recordings *all = &p->recorded;
    const struct step_recording *r = &all->recording[0];
    if (all->count > 1) {
        text_printf(line, "recorded with PyTorch %s: %u stages, ranks", r->torch_version,
                    all->count);
        for (uint32_t i = 0; i < all->count && i < RANKS_SHOWN; i++)
            text_printf(line, "%s %u", i > 0 ? "," : "", all->recording[i].rank);
        text_printf(line, "%s of %u, %u events", all->count > RANKS_SHOWN ? ", ..." : "",
                    r->world_size, count_events(all));
        return;
    }
    text_printf(line, "recorded with PyTorch %s: rank %u of %u, %u events", r->torch_version,
                r->rank, r->world_size, r->event_count);
    if (r->token_count > 0) {
        text_puts(line, ", ");
        units_put_tokens(line, r->token_count);
        text_puts(line, " tokens of this rank");
    }
}

/* Returns the longest end of a module's path that begins with a part of the path (parts are separated by dots) and
 * has at most `size` letters. If even the last part is longer, returns the last part. */
static const char *module_name_suffix_that_fits(const char *name, size_t size)
{
    while (strlen(name) > size && strchr(name, '.') != NULL)
        name = strchr(name, '.') + 1;
    return name;
}

/* Compares the paths of two modules part by part (parts are separated by dots). Returns `name` from the beginning of
 * the first part in which the two differ. */
static const char *first_different_path_part(const char *name, const char *other)
{
    const char *part = name;
    for (; *name == *other && *name != '\0'; name++, other++)
        part = *name == '.' ? name + 1 : part;
    return part;
}

/* Appends as much of the end of a module's name as fits beside a bar. If another module's name has the same end, the
 * part in which the two differ comes before it, as far as it fits: "vision..encoder.layers.*.fc1". */
static void put_module_label(struct text *label, const struct recorded_modules *m, uint32_t row)
{
    enum { FEW = 4, DOTS = 2 };
    const char *name = m->row[row].name, *end = module_name_suffix_that_fits(name, LABEL_SIZE);
    for (uint32_t i = 0; i < m->count && label->size == 0; i++) {
        const char *part = first_different_path_part(name, m->row[i].name);
        if (i == row ||
            strcmp(module_name_suffix_that_fits(m->row[i].name, LABEL_SIZE), end) != 0 ||
            part >= end)
            continue;
        size_t size = strcspn(part, ".");
        size = size > LABEL_SIZE / 2 ? LABEL_SIZE / 2 : size;
        end = module_name_suffix_that_fits(name, LABEL_SIZE - DOTS - size);
        if (strlen(end) + DOTS + size > LABEL_SIZE)
            size = strlen(end) + DOTS + FEW > LABEL_SIZE ? FEW : LABEL_SIZE - DOTS - strlen(end);
        text_printf(label, "%.*s..", (int)size, part);
    }
    text_puts(label, name[0] != '\0' ? end : "in no module");
}

void report_print_modules(struct sheet *sheet, const struct report *report)
{
    struct recorded_modules m;
    recorded_modules_make(&m, report->prediction);
    struct screen_bar *bar = heap_zalloc((size_t)m.count + 1, sizeof *bar);
    struct text *label = heap_zalloc((size_t)m.count + 1, sizeof *label);
    for (uint32_t i = 0; i < m.count; i++) {
        put_module_label(&label[i], &m, i);
        bar[i] = (struct screen_bar){label[i].data, m.row[i].total_s};
    }
    sheet_begin_section(sheet, SHEET_SECTION_MODULES,
                        report->prediction->recorded.count > 1
                            ? "Whose kernels take the time (the recorded ranks together)"
                            : "Whose kernels take the time");
    sheet_put_bars(sheet, bar, m.count, m.kernel_s, report_put_time, report->shows_all);
    for (uint32_t i = 0; i < m.count; i++)
        text_release(&label[i]);
    free(label);
    free(bar);
    recorded_modules_release(&m);
}

/* True if a recording before number `before` has the note. */
static bool earlier_recording_has_note(const struct schedule_recordings *all, uint32_t before,
                                       const char *note)
{
    for (uint32_t i = 0; i < before; i++)
        for (uint32_t k = 0; k < all->recording[i].note_count; k++)
            if (strcmp(all->recording[i].note[k], note) == 0)
                return true;
    return false;
}

/* Appends what a recording guessed, and those of its notes that no earlier recording has. */
static void put_recording_guesses_and_notes(struct text *out, const struct schedule_recordings *all,
                                            uint32_t number)
{
    const struct step_recording *r = &all->recording[number];
    for (uint32_t i = 0; i < r->guess_count; i++)
        text_printf(out, "; guessed %lld time%s: %.120s", (long long)r->guess[i].count,
                    r->guess[i].count == 1 ? "" : "s", r->guess[i].description);
    /* a note's full stop is left out, since the warning ends with one of its own */
    for (uint32_t i = 0; i < r->note_count; i++) {
        const size_t size = strlen(r->note[i]);
        if (!earlier_recording_has_note(all, number, r->note[i]))
            text_printf(out, "; %.*s", (int)(size - (size > 0 && r->note[i][size - 1] == '.')),
                        r->note[i]);
    }
}

void report_print_recorded_mfu(struct sheet *sheet, const struct prediction *p)
{
    const double mfu = recorded_modules_mfu(p),
                 peak = p->setup->cluster.device.peak_bf16_flop_per_s;
    struct recorded_modules m;
    struct text value = {0}, line = {0};
    recorded_modules_make(&m, p);
    text_printf(&value, "%.1f %%", 100 * mfu);
    text_puts(&line, " (convention longhaul");
    if (m.model_flops > m.repeated_flops)
        text_printf(&line, "; %.1f %% by PyTorch's flop counter",
                    100 * (m.model_flops - m.repeated_flops) / peak / p->sim.step_s);
    text_puts(&line, ")");
    if (mfu > 0)
        sheet_put_labelled_value(sheet, "MFU", value.data, line.data);
    text_release(&value);
    text_release(&line);
    recorded_modules_release(&m);
}

void report_put_recorded_warning(struct text *out, const struct prediction *p)
{
    struct recorded_modules m;
    text_printf(
        out,
        "%sof recorded steps only those of Llama under Trainer on one GPU were compared with "
        "a GPU's",
        out->size > 0 ? "; " : "");
    recorded_modules_make(&m, p);
    if (m.kernels_of_unknown_flops_s >= REPORT_EXTRAPOLATED_SHARE * m.kernel_s && m.kernel_s > 0)
        text_printf(
            out, "; of the kernels of %.0f %% of compute time only the bytes are known (%.60s)",
            100 * m.kernels_of_unknown_flops_s / m.kernel_s, m.operator_of_longest_unknown_kernel);
    if (p->measured.file != NULL && m.kernel_s > 0) {
        text_printf(out,
                    "; the times of %zu of %zu kernels, %.0f %% of their time, are those of %s",
                    p->measured.measured_kernels, p->measured.kernel_total,
                    100 * m.measured_kernel_s / m.kernel_s, p->measured.file);
        if (p->measured.is_device_unknown)
            text_puts(out, ", which does not say on which GPU they were measured");
        if (m.longest_unmeasured_operator != NULL)
            text_printf(out, "; of the others %.60s takes most", m.longest_unmeasured_operator);
    }
    recorded_modules_release(&m);
    for (uint32_t i = 0; i < p->recorded.count; i++)
        put_recording_guesses_and_notes(out, &p->recorded, i);
}

static void put_operators(struct json_out *w, const struct prediction *p)
{
    struct recorded_operators operators;
    struct rows rows = {.json = w};
    recorded_operators_make(&operators, p);
    rows_begin(&rows, "operators", NULL, &report_tables[REPORT_TABLE_OPERATORS]);
    for (size_t i = 0; i < operators.count; i++) {
        const struct recorded_kernels_of_operator *row = &operators.row[i];
        rows_put_number(&rows, row->rank);
        rows_put_text(&rows, row->key.op);
        rows_put_text(&rows, row->key.inputs);
        rows_put_text(&rows, step_dtype_name((enum step_dtype)row->key.dtype));
        rows_put_number(&rows, (double)row->call_count);
        rows_put_number(&rows, row->predicted_s);
    }
    rows_end(&rows);
    recorded_operators_release(&operators);
}

void report_json_recording(struct json_out *w, const struct prediction *p)
{
    const struct schedule_recordings *all = &p->recorded;
    const struct step_recording *r = &all->recording[0];
    struct recorded_modules m;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const uint64_t one = step_recording_peak_bytes(&all->recording[i]);
        peak = one > peak ? one : peak;
    }
    recorded_modules_make(&m, p);
    json_begin_object(w, "recording");
    json_put_text(w, "torch", r->torch_version);
    json_put_text(w, "device", r->device_name);
    json_put_count(w, "world", r->world_size);
    json_put_count(w, "rank", r->rank);
    json_begin_array(w, "stage_ranks");
    for (uint32_t i = 0; i < all->count && all->count > 1; i++)
        json_put_count(w, NULL, all->recording[i].rank);
    json_end_array(w);
    json_put_count(w, "events", count_events(all));
    json_put_count(w, "tokens", (uint64_t)r->token_count);
    json_put_count(w, "peak_bytes", peak);
    json_put_number(w, "kernels_s", m.kernel_s);
    json_put_number(w, "unknown_kernels_s", m.kernels_of_unknown_flops_s);
    json_put_number(w, "collectives_s", m.collectives_s);
    json_put_number(w, "mfu", recorded_modules_mfu(p));
    json_put_number(w, "counted_flops", m.model_flops);
    json_put_number(w, "repeated_flops", m.repeated_flops);
    json_put_number(w, "measured_kernels_s", m.measured_kernel_s);
    json_put_count(w, "measured_kernels", p->measured.measured_kernels);
    put_operators(w, p);
    struct rows rows = {.json = w};
    rows_begin(&rows, "modules", NULL, &report_tables[REPORT_TABLE_MODULES]);
    for (uint32_t i = 0; i < m.count; i++) {
        rows_put_text(&rows, m.row[i].name);
        rows_put_number(&rows, m.row[i].forward_s);
        rows_put_number(&rows, m.row[i].recompute_s);
        rows_put_number(&rows, m.row[i].backward_s);
        rows_put_number(&rows, m.row[i].optimizer_s);
    }
    rows_end(&rows);
    rows_begin(&rows, "guessed", NULL, &report_tables[REPORT_TABLE_ASSUMPTIONS]);
    for (uint32_t k = 0; k < all->count; k++)
        for (uint32_t i = 0; i < all->recording[k].guess_count; i++) {
            rows_put_text(&rows, all->recording[k].guess[i].description);
            rows_put_number(&rows, (double)all->recording[k].guess[i].count);
        }
    rows_end(&rows);
    json_end_object(w);
    recorded_modules_release(&m);
}
