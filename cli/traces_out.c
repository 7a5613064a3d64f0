#include "cli/traces_out.h"

#include "cli/chakra_out.h"
#include "cli/snapshot_out.h"
#include "cli/trace_folder.h"
#include "schedule/ir_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void fill_header(struct trace *trace, const struct prediction *p)
{
    struct text value = {0};
    trace_set(trace, "made_by", "longhaul " LONGHAUL_VERSION " predict");
    if (p->has_choices) {
        trace_set(trace, "model", p->choices.model->name);
        trace_set(trace, "profile", p->choices.profile->name);
    }
    trace_set(trace, "attention",
              attention_impl_name((enum attention_impl)p->choices.attention_impl));
    trace_set(trace, "cluster", p->setup->cluster.name);
    text_printf(&value, "%u", mesh_ranks(&p->ir.mesh));
    trace_set(trace, "ranks", value.data);
    value.size = 0;
    text_put_double(&value, p->sim.step_s);
    trace_set(trace, "step_s", value.data);
    for (int m = 0; m < MEMORY_COUNT; m++) {
        char key[32];
        snprintf(key, sizeof key, "arena_bytes.%s", memory_name((enum memory)m));
        value.size = 0;
        text_printf(&value, "%" PRIu64, p->ir.arena_bytes[m]);
        trace_set(trace, key, value.data);
    }
    if (p->verdict.available[LIMIT_DEVICE] != UINT64_MAX) {
        value.size = 0;
        text_printf(&value, "%" PRIu64, p->verdict.available[LIMIT_DEVICE]);
        trace_set(trace, "available_bytes.hbm", value.data);
    }
    text_release(&value);
}

static const char *path_in(struct text *path, const char *folder, const char *name)
{
    path->size = 0;
    text_printf(path, "%s/%s", folder, name);
    return path->data;
}

enum status traces_write(const struct report *report, const char *folder, struct traces_emit emit,
                         struct diag *diag)
{
    const struct prediction *p = report->prediction;
    struct trace trace = {0};
    struct text path = {0}, json = {0};
    fill_header(&trace, p);
    for (uint32_t i = 0; i < p->sim.class_count; i++)
        sim_trace(&p->ir, &p->sim, p->sim.classes[i].rank, p->sim.classes[i].rank + 1, true,
                  &trace);
    report_print_json(&json, report);
    const struct text_file prediction = {"prediction.json", json.data, json.size};
    enum status status = trace_folder_save(&trace, folder, &prediction, 1, diag);
    if (status == STATUS_OK && emit.ir)
        status = ir_save(&p->ir, path_in(&path, folder, "schedule.ir"), diag);
    if (status == STATUS_OK && emit.snapshot) {
        json.size = 0;
        snapshot_print(&json, p, 0);
        status = text_save(path_in(&path, folder, "snapshot.pickle"), json.data, json.size, diag);
    }
    if (status == STATUS_OK && emit.chakra)
        status = chakra_save(p, folder, diag);
    text_release(&json);
    text_release(&path);
    trace_release(&trace);
    return status;
}
