/* Deep schedules made from few layers are those that are emitted layer by layer: rows, waits, free sets
 * and offsets alike. */
#include "schedule/compose.h"
#include "schedule/ir_text.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <string.h>

enum { WORLDS = 100 };

/* The first line that differs, for the label of a failure. */
static void first_difference(const struct text *a, const struct text *b, char *out, size_t size)
{
    size_t at = 0, line = 0;
    while (at < a->size && at < b->size && a->data[at] == b->data[at])
        if (a->data[at++] == '\n')
            line = at;
    snprintf(out, size, "%.*s | %.*s", (int)strcspn(a->data + line, "\n"), a->data + line,
             (int)strcspn(b->data + line, "\n"), b->data + line);
}

static void check_same(const char *label, const struct ir *stretched, const struct ir *whole)
{
    struct text a = {0}, b = {0};
    ir_print(&a, stretched);
    ir_print(&b, whole);
    bool same = a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
    CHECK(label, same);
    if (!same) {
        char difference[600];
        first_difference(&a, &b, difference, sizeof difference);
        CHECK(difference, same);
    }
    for (int m = 0; m < MEMORY_COUNT; m++)
        CHECK_INT(label, (int64_t)stretched->arena_bytes[m], (int64_t)whole->arena_bytes[m]);
    CHECK(label, stretched->buffer.count == whole->buffer.count &&
                     memcmp(stretched->buffer.offset, whole->buffer.offset,
                            whole->buffer.count * sizeof *whole->buffer.offset) == 0);
    text_release(&a);
    text_release(&b);
}

/* Builds a request both ways. Returns whether fewer layers were emitted than there are. */
static bool both_ways(const struct request *request, const char *label)
{
    struct choices choices;
    struct diag diag = {0};
    struct ir stretched = {0}, whole = {0};
    int64_t emitted = request->model->layers, all;
    bool built = compose_resolve(&choices, request, NULL, &diag) == STATUS_OK &&
                 compose_build_counted(&stretched, &choices, false, &emitted, &diag) == STATUS_OK &&
                 compose_build_counted(&whole, &choices, true, &all, &diag) == STATUS_OK;
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    if (built)
        check_same(label, &stretched, &whole);
    diag_release(&diag);
    ir_release(&stretched);
    ir_release(&whole);
    return emitted < request->model->layers;
}

static void stretched_is_emitted(void)
{
    struct check_random random = check_random_make();
    int fewer = 0;
    for (int i = 0; i < WORLDS; i++) {
        struct request request = shapes_request(&random, 8, false);
        struct transformer deep =
            *request.model; /* as wide as models are, for the sake of buckets */
        deep.layers = check_random_i64(&random, 12, 48);
        deep.hidden *= 64;
        deep.head_dim *= 8;
        deep.ffn *= 64;
        request.model = &deep;
        char label[320], shape[256];
        snprintf(label, sizeof label, "layers %lld %s", (long long)deep.layers,
                 shapes_label(&request, shape, sizeof shape));
        fewer += both_ways(&request, label);
    }
    CHECK("half of them are stretched", 2 * fewer > WORLDS);
}

static const struct check_case cases[] = {
    {"stretched is emitted", stretched_is_emitted},
};
CHECK_MAIN("stretch", cases)
