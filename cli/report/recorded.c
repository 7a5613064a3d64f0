/* Puts the parts of a report that only recorded steps have: the recording, its modules, and its guessed values. */
#include "cli/report/report.h"

#include "base/units.h"
#include "predict/recorded_modules.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_SIZE = 30 };

void report_put_recorded(struct text *line, const struct prediction *p)
{
    const struct step_recording *r = &p->recorded.recording;
    text_printf(line, "recorded with PyTorch %s: rank %u of %u, %u events", r->torch, r->rank,
                r->world, r->events);
    if (r->tokens > 0) {
        text_puts(line, ", ");
        units_put_tokens(line, r->tokens);
        text_puts(line, " tokens of this rank");
    }
}

/* Appends the end of a module's name, from the start of a part of its path, that fits beside a bar. */
static void put_label(struct text *label, const char *name)
{
    while (strlen(name) > LABEL_SIZE && strchr(name, '.') != NULL)
        name = strchr(name, '.') + 1;
    text_puts(label, name[0] != '\0' ? name : "in no module");
}

void report_print_modules(struct sheet *sheet, const struct report *report)
{
    struct recorded_modules m;
    recorded_modules_make(&m, report->prediction);
    struct screen_bar *bar = heap_zalloc((size_t)m.count + 1, sizeof *bar);
    struct text *label = heap_zalloc((size_t)m.count + 1, sizeof *label);
    for (uint32_t i = 0; i < m.count; i++) {
        put_label(&label[i], m.row[i].name);
        bar[i] = (struct screen_bar){label[i].data, m.row[i].seconds};
    }
    sheet_section(sheet, SHEET_MODULES, "Whose kernels take the time");
    sheet_bars(sheet, bar, m.count, m.seconds, report_put_time, report->all);
    for (uint32_t i = 0; i < m.count; i++)
        text_release(&label[i]);
    free(label);
    free(bar);
    recorded_modules_release(&m);
}

void report_put_recorded_warning(struct text *out, const struct prediction *p)
{
    const struct step_recording *r = &p->recorded.recording;
    struct recorded_modules m;
    text_printf(out, "%sno recorded step was compared with one that a GPU ran",
                out->size > 0 ? "; " : "");
    recorded_modules_make(&m, p);
    if (m.unknown_s >= EXTRAPOLATED_SHOWN * m.seconds && m.seconds > 0)
        text_printf(out,
                    "; of the kernels of %.0f %% of compute time only the bytes are known (%.60s)",
                    100 * m.unknown_s / m.seconds, m.unknown);
    recorded_modules_release(&m);
    for (uint32_t i = 0; i < r->guesses; i++)
        text_printf(out, "; guessed %lld time%s: %.120s", (long long)r->guess[i].times,
                    r->guess[i].times == 1 ? "" : "s", r->guess[i].what);
    for (uint32_t i = 0; i < r->notes; i++) { /* the warning ends with a full stop of its own */
        const size_t size = strlen(r->note[i]);
        text_printf(out, "; %.*s", (int)(size - (size > 0 && r->note[i][size - 1] == '.')),
                    r->note[i]);
    }
}

void report_json_recording(struct json_out *w, const struct prediction *p)
{
    const struct step_recording *r = &p->recorded.recording;
    struct recorded_modules m;
    recorded_modules_make(&m, p);
    json_begin_object(w, "recording");
    json_put_text(w, "torch", r->torch);
    json_put_text(w, "device", r->device);
    json_put_count(w, "world", r->world);
    json_put_count(w, "rank", r->rank);
    json_put_count(w, "events", r->events);
    json_put_count(w, "tokens", (uint64_t)r->tokens);
    json_put_count(w, "peak_bytes", step_recording_peak(r));
    json_put_number(w, "kernels_s", m.seconds);
    json_put_number(w, "unknown_kernels_s", m.unknown_s);
    json_put_number(w, "collectives_s", m.collectives_s);
    json_begin_array(w, "modules");
    for (uint32_t i = 0; i < m.count; i++) {
        json_begin_row(w, NULL);
        json_put_text(w, "name", m.row[i].name);
        json_put_number(w, "forward_s", m.row[i].forward_s);
        json_put_number(w, "recompute_s", m.row[i].recompute_s);
        json_put_number(w, "backward_s", m.row[i].backward_s);
        json_put_number(w, "optimizer_s", m.row[i].optimizer_s);
        json_end_row(w);
    }
    json_end_array(w);
    json_begin_array(w, "guessed");
    for (uint32_t i = 0; i < r->guesses; i++) {
        json_begin_row(w, NULL);
        json_put_text(w, "what", r->guess[i].what);
        json_put_count(w, "times", (uint64_t)r->guess[i].times);
        json_end_row(w);
    }
    json_end_array(w);
    json_end_object(w);
    recorded_modules_release(&m);
}
