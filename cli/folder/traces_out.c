#include "cli/folder/traces_out.h"

#include "base/c_locale.h"
#include "cli/folder/chakra_out.h"
#include "cli/folder/snapshot_out.h"
#include "cli/folder/trace_folder.h"
#include "predict/shape_costs.h"
#include "schedule/choices/profile.h"
#include "schedule/ir/ir_text.h"
#include "schedule/ir/ir_trace.h"
#include "schedule/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sets a key to a rounded number. If the number is 0, it is not known, and the key is not set. */
static void set_number(struct trace *trace, const char *key, double value)
{
    char text[32];
    c_snprintf(text, sizeof text, "%.0f", value);
    if (value > 0)
        trace_set_key(trace, key, text);
}

/* If the trace is of a pipeline, sets the header key `chunk_layers` to the first layer of each
 * chunk of layers: "0 4 8 12". */
static void set_first_layers_in_header(struct trace *trace, const struct choices *choices)
{
    struct text layers = {0};
    for (uint32_t chunk = 0; choices->pp > 1 && chunk < pipeline_chunk_count(choices); chunk++)
        text_printf(&layers, "%s%u", chunk > 0 ? " " : "",
                    pipeline_layers_of_chunk(choices, chunk).first);
    if (layers.size > 0)
        trace_set_key(trace, "chunk_layers", layers.data);
    text_release(&layers);
}

static void fill_header(struct trace *trace, const struct prediction *p)
{
    struct text value = {0};
    trace_set_key(trace, "made_by", "longhaul " LONGHAUL_VERSION " predict");
    if (p->has_choices) {
        trace_set_key(trace, "model", p->choices.model->name);
        trace_set_key(trace, "profile", p->choices.profile->name);
        report_put_strategy(&value, p);
        trace_set_key(trace, "strategy", value.data);
        set_first_layers_in_header(trace, &p->choices);
        value.size = 0;
    }
    trace_set_key(trace, "attention",
                  attention_impl_name((enum attention_impl)p->choices.attention_impl));
    trace_set_key(trace, "cluster", p->setup->cluster.name);
    text_printf(&value, "%u", mesh_rank_count(&p->ir.mesh));
    trace_set_key(trace, "ranks", value.data);
    value.size = 0;
    text_put_double(&value, p->sim.step_s);
    trace_set_key(trace, "step_s", value.data);
    for (int m = 0; m < MEMORY_COUNT; m++) {
        char key[32];
        c_snprintf(key, sizeof key, "arena_bytes.%s", memory_names[m]);
        value.size = 0;
        text_printf(&value, "%" PRIu64, p->ir.planned_bytes[m]);
        trace_set_key(trace, key, value.data);
    }
    const struct assumed_clock assumed = assumed_clock(p);
    set_number(trace, "sm_clock_max_mhz", assumed.highest_mhz);
    set_number(trace, "sm_clock_mhz", assumed.product_mhz);
    set_number(trace, "sm_clock_mhz.attention", assumed.attention_mhz);
    set_number(trace, "sm_clock_mhz.attention_backward", assumed.attention_mhz);
    set_number(trace, "power_limit_w", assumed.power_limit_w);
    if (p->verdict.available_bytes[LIMIT_DEVICE] != UINT64_MAX) {
        value.size = 0;
        text_printf(&value, "%" PRIu64, p->verdict.available_bytes[LIMIT_DEVICE]);
        trace_set_key(trace, "available_bytes.hbm", value.data);
    }
    value.size = 0;
    text_printf(&value, "%" PRIu64, p->verdict.needed_bytes[LIMIT_DEVICE]);
    trace_set_key(trace, "needed_bytes.hbm", value.data);
    text_release(&value);
}

/* Adds the files that `emit` asks for. With the text of a search it also removes the page that is already in the
 * folder. */
static enum status add_requested_files(const struct prediction *p,
                                       struct traces_requested_files emit, struct file_set *files,
                                       struct diag *diag)
{
    struct text out = {0}, name = {0};
    enum status status = STATUS_OK;
    if (emit.writes_ir)
        status = file_set_open_file(files, "schedule.ir", &out, diag);
    if (emit.writes_ir && status == STATUS_OK) {
        ir_print(&out, &p->ir);
        status = file_set_close_file(files, &out, diag);
    }
    if (emit.writes_snapshot && status == STATUS_OK) {
        snapshot_print_pickle(&out, p, 0);
        status = file_set_add(files, "snapshot.pickle", out.data, out.size, diag);
    }
    for (uint32_t rank = 0; emit.writes_chakra && rank < p->sim.rank_count && status == STATUS_OK;
         rank++) {
        out.size = name.size = 0;
        chakra_print(&out, p, rank);
        text_printf(&name, "chakra.%u.et", rank);
        status = file_set_add(files, name.data, out.data, out.size, diag);
    }
    if (emit.search_json != NULL && status == STATUS_OK) {
        file_set_delete_file_at_end(files, TRACE_FOLDER_PAGE);
        status = file_set_add(files, TRACE_FOLDER_PLAN, emit.search_json->data,
                              emit.search_json->size, diag);
    }
    text_release(&out);
    text_release(&name);
    return status;
}

enum status traces_write(const struct report *report, const char *folder,
                         struct traces_requested_files emit, struct diag *note, struct diag *diag)
{
    const struct prediction *p = report->prediction;
    struct file_set files = {.folder = folder};
    struct trace trace = {0};
    struct text json = {0};
    fill_header(&trace, p);
    for (uint32_t i = 0; i < p->sim.class_count; i++)
        sim_make_trace(&p->ir, &p->sim, p->sim.classes[i].lowest_rank,
                       p->sim.classes[i].lowest_rank + 1, true, &trace);
    ir_trace_set_stage_header_keys(&p->ir, &trace);
    report_print_json(&json, report);
    enum status status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = trace_folder_add_files(&trace, &files, diag);
    if (status == STATUS_OK)
        status = add_requested_files(p, emit, &files, diag);
    if (status == STATUS_OK) /* it is added last, so a folder that has it is complete */
        status = file_set_add(&files, "prediction.json", json.data, json.size, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    if (status == STATUS_OK)
        trace_folder_note_stale_files(&files, note);
    file_set_release(&files);
    text_release(&json);
    trace_release(&trace);
    return status;
}
