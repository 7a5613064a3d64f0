/* Offsets are planned beside readers of the rest of a schedule. */
#include "schedule/offsets.h"

#include "base/diag.h"
#include "schedule/compose.h"
#include "schedule/reserved/reserved.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"
#include "tests/schedule/composed.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *strategy;
    int64_t layers, seq, chunk, batch;
    bool units, layers_left_out;
} worlds[] = {
    {"long list packed by periods", "fpdt", 40, 4096, 256, 1, false, true},
    {"all layers emitted", "fpdt", 3, 4096, 256, 1, false, false},
    {"layers left out, one list", "ulysses", 60, 256, 0, 8, false, true},
    {"micro-batches left out", "ulysses", 14, 64, 0, 64, true, false},
    {"both left out", "ulysses", 60, 64, 0, 64, true, true},
};

static struct request request_of(size_t w, struct transformer *model)
{
    struct request request = small(0, 4);
    *model = *request.model;
    model->layers = worlds[w].layers;
    model->hidden *= 64; /* as wide as models are, for the sake of buckets */
    model->head_dim *= 8;
    model->ffn *= 64;
    request.model = model;
    request.strategy = worlds[w].strategy;
    request.seq = worlds[w].seq;
    request.chunk = worlds[w].chunk;
    request.hp = 4;
    request.dp = 1;
    request.global_batch = worlds[w].batch;
    return request;
}

/* Everything that may be read: all columns but offsets, by what replays allocators and prints shapes. */
static void begin_and_read(size_t w, struct ir *ir, const struct choices *choices,
                           const struct cluster *cluster, struct reserved *reserved)
{
    const char *name = worlds[w].name;
    struct diag diag = {0};
    struct offsets *offsets = NULL;
    if (!CHECK_INT(name, compose_begin(ir, choices, &offsets, &diag), STATUS_OK))
        return;
    CHECK(name, offsets->is_beside);
    CHECK_INT(name, offsets->has_units_left_out, worlds[w].units);
    CHECK_INT(name, offsets->has_layers_left_out, worlds[w].layers_left_out);
    reserved_make(reserved, ir, cluster, 80, (struct reserved_held){0});
    compose_end(ir, offsets);
    diag_release(&diag);
}

static void check_world(size_t w, const struct cluster *cluster)
{
    const char *name = worlds[w].name;
    struct transformer model;
    struct request request = request_of(w, &model);
    struct choices choices;
    struct diag diag = {0};
    struct ir beside = {0}, at_once = {0};
    struct reserved early = {0}, late = {0};
    bool ok = CHECK_INT(name, compose_resolve(&choices, &request, NULL, &diag), STATUS_OK);
    if (ok) {
        begin_and_read(w, &beside, &choices, cluster, &early);
        ok = CHECK_INT(name, compose_build(&at_once, &choices, &diag), STATUS_OK);
    }
    CHECK_TEXT(name, diag.text ? diag.text : "", "");
    if (ok) {
        reserved_make(&late, &at_once, cluster, 80, (struct reserved_held){0});
        CHECK_INT(name, (int64_t)early.total, (int64_t)late.total);
        CHECK_INT(name, (int64_t)early.pinned, (int64_t)late.pinned);
        for (int m = 0; m < MEMORY_COUNT; m++)
            CHECK_INT(name, (int64_t)beside.arena_bytes[m], (int64_t)at_once.arena_bytes[m]);
        CHECK_INT(name, beside.buffer.count, at_once.buffer.count);
        CHECK(name, memcmp(beside.buffer.offset, at_once.buffer.offset,
                           at_once.buffer.count * sizeof *at_once.buffer.offset) == 0);
        CHECK(name, verify(&beside, NULL, name, NULL, &diag) == STATUS_OK);
        CHECK_TEXT(name, diag.text ? diag.text : "", "");
    }
    ir_release(&beside);
    ir_release(&at_once);
    diag_release(&diag);
}

/* Planning that nobody waits for is waited for when it is given up. */
static void given_up(void)
{
    struct transformer model;
    struct request request = request_of(0, &model);
    struct choices choices;
    struct diag diag = {0};
    struct ir ir = {0};
    struct offsets *offsets = NULL;
    if (CHECK_INT("choices", compose_resolve(&choices, &request, NULL, &diag), STATUS_OK) &&
        CHECK_INT("begun", compose_begin(&ir, &choices, &offsets, &diag), STATUS_OK)) {
        CHECK("begun", offsets->is_beside);
        offsets_release(offsets);
        CHECK("given up", !offsets->is_begun && !offsets->is_beside);
        free(offsets);
    }
    ir_release(&ir);
    diag_release(&diag);
}

static void planned_beside_readers(void)
{
    struct arena arena = {0};
    struct cluster cluster;
    struct diag diag = {0};
    CHECK_INT("cluster", cluster_load(&cluster, &arena, "dgx-a100", &diag), STATUS_OK);
    CHECK_INT("gpus", cluster_resize(&cluster, &arena, 0, 4, &diag), STATUS_OK);
    for (size_t w = 0; w < ARRAY_LEN(worlds); w++)
        check_world(w, &cluster);
    arena_release(&arena);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"planned beside readers", planned_beside_readers},
    {"given up", given_up},
};
CHECK_MAIN("offsets", cases)
