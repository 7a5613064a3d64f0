/* tests/cli/test_snapshot.c: a snapshot of predicted memory: its history of allocations, replayed, ends with the bytes
 * that its segments show. */
#include "cli/folder/snapshot_out.h"
#include "predict/setup/setup.h"
#include "traces/pickle.h"
#include "traces/torch_snapshot.h"

#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number(const struct pickle_value *dict, const char *key)
{
    return (uint64_t)pickle_int_or(pickle_find(dict, key), 0);
}

/* Replays the history of a device's allocations as viewers do: *last becomes the bytes in use at the end, *most the
 * most bytes in use at any time. Checks that no allocation begins at the address of one that is in use, and that each
 * free is of an allocation as a whole. */
static void replay(const struct pickle_value *history, uint64_t *last, uint64_t *most)
{
    struct {
        uint64_t address, bytes;
    } *live = heap_alloc(history->byte_or_item_count, sizeof *live);
    size_t lives = 0;
    *last = *most = 0;
    for (const struct pickle_item *i = history->first_item; i != NULL; i = i->next) {
        const char *action = pickle_text_or(pickle_find(i->value, "action"), "");
        uint64_t address = number(i->value, "addr"), bytes = number(i->value, "size");
        size_t at = 0;
        while (at < lives && live[at].address != address)
            at++;
        if (strcmp(action, "alloc") == 0) {
            CHECK("the place is free", at == lives);
            live[lives].address = address;
            live[lives++].bytes = bytes;
            *last += bytes;
        } else if (strcmp(action, "free_completed") == 0 && CHECK("it was there", at < lives)) {
            CHECK_INT("all of it", (int64_t)live[at].bytes, (int64_t)bytes);
            live[at] = live[--lives];
            *last -= bytes;
        }
        *most = *last > *most ? *last : *most;
    }
    free(live);
}

static void snapshot_history_yields_its_segments(void)
{
    struct setup setup = {0};
    struct diag diag = {0};
    struct prediction p = {0};
    struct text out = {0};
    struct arena arena = {0};
    struct pickle_value *root = NULL;
    struct torch_snapshot snapshot = {0};
    uint64_t last, most;
    enum status status = setup_load_model(&setup, "llama3-8b", NULL, "layers=2", &diag);
    if (status == STATUS_OK)
        status = setup_load_cluster(&setup, "dgx-a100", 1, 0, &diag);
    setup_leave_request_open(&setup);
    setup.request.seq = 8192;
    if (status == STATUS_OK)
        status = prediction_make(&p, &(struct prediction_question){.setup = &setup}, &diag);
    if (status == STATUS_OK) {
        snapshot_print_pickle(&out, &p, 0);
        status = pickle_parse(&root, &arena, "snapshot", out.data, out.size, &diag);
    }
    if (status == STATUS_OK)
        status = torch_snapshot_parse(&snapshot, "snapshot", out.data, out.size, &diag);
    if (CHECK_INT("made", status, STATUS_OK)) {
        replay(pickle_find(root, "device_traces")->first_item->value, &last, &most);
        CHECK_INT("in use at the end", (int64_t)last, (int64_t)snapshot.active_bytes);
        CHECK_INT("most at the end", (int64_t)most, (int64_t)last);
        CHECK_INT("the peak", (int64_t)most, (int64_t)prediction_device_memory_peak(&p)->bytes);
        CHECK_INT("the arena", (int64_t)snapshot.reserved_bytes,
                  (int64_t)p.ir.planned_bytes[MEMORY_HBM]);
    } else {
        printf("%s", diag.text);
    }
    torch_snapshot_release(&snapshot);
    arena_release(&arena);
    text_release(&out);
    prediction_release(&p);
    setup_release(&setup);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"the history ends where the segments are", snapshot_history_yields_its_segments},
};
CHECK_MAIN("snapshots", cases)
