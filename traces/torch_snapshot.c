#include "traces/torch_snapshot.h"

#include "base/text.h"
#include "traces/pickle.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64 };

void torch_snapshot_release(struct torch_snapshot *s)
{
    free(s->site);
    arena_release(&s->arena);
    *s = (struct torch_snapshot){0};
}

static uint64_t bytes_of(const struct pickle_value *dict, const char *key)
{
    int64_t value = pickle_int(pickle_find(dict, key), 0);
    return value > 0 ? (uint64_t)value : 0;
}

static const struct pickle_item *items(const struct pickle_value *list)
{
    return list != NULL && list->kind == PICKLE_LIST ? list->first : NULL;
}

/* ---- where blocks come from ---- */

/* Frames of the framework and of its C++ say how, those of the model say where. */
static bool is_of_framework(const char *file)
{
    static const char *const parts[] = {"/torch/", "/deepspeed/", "/c10/", "/aten/", "??"};
    static const char *const endings[] = {".cpp", ".h", ".cc", ".cu", ".c", ".so"};
    size_t size = strlen(file);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strstr(file, parts[i]) != NULL)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t length = strlen(endings[i]);
        if (size >= length && strcmp(file + size - length, endings[i]) == 0)
            return true;
    }
    return size == 0;
}

/* The innermost frame of the model, or the innermost of all. */
static void put_site(struct text *out, const struct pickle_value *block)
{
    const struct pickle_value *frames = pickle_find(block, "frames");
    if (items(frames) == NULL && items(pickle_find(block, "history")) != NULL)
        frames = pickle_find(items(pickle_find(block, "history"))->value, "frames");
    const struct pickle_item *first = items(frames), *chosen = NULL;
    for (const struct pickle_item *i = first; i != NULL && chosen == NULL; i = i->next)
        if (!is_of_framework(pickle_text(pickle_find(i->value, "filename"), "")))
            chosen = i;
    chosen = chosen != NULL ? chosen : first;
    out->size = 0;
    if (chosen == NULL) {
        text_puts(out, "(no stack was recorded)");
        return;
    }
    const char *file = pickle_text(pickle_find(chosen->value, "filename"), "?");
    const char *slash = strrchr(file, '/');
    text_printf(out, "%s:%lld %s", slash == NULL ? file : slash + 1,
                (long long)pickle_int(pickle_find(chosen->value, "line"), 0),
                pickle_text(pickle_find(chosen->value, "name"), "?"));
}

struct sites {
    struct torch_snapshot *snapshot;
    size_t capacity;
    uint32_t *slot; /* hash of names: 0 or 1 + row */
    size_t slots;
};

static size_t find_slot(const struct sites *sites, const char *name)
{
    uint64_t sum = 14695981039346656037u;
    for (const char *c = name; *c != '\0'; c++)
        sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    size_t at = (size_t)sum & (sites->slots - 1);
    while (sites->slot[at] != 0 &&
           strcmp(sites->snapshot->site[sites->slot[at] - 1].name, name) != 0)
        at = (at + 1) & (sites->slots - 1);
    return at;
}

static void grow_slots(struct sites *sites)
{
    free(sites->slot);
    sites->slots = sites->slots == 0 ? 256 : 2 * sites->slots;
    sites->slot = heap_zalloc(sites->slots, sizeof *sites->slot);
    for (size_t i = 0; i < sites->snapshot->sites; i++)
        sites->slot[find_slot(sites, sites->snapshot->site[i].name)] = (uint32_t)i + 1;
}

static void add_site(struct sites *sites, const struct text *name, uint64_t bytes)
{
    struct torch_snapshot *s = sites->snapshot;
    if (2 * (s->sites + 1) > sites->slots)
        grow_slots(sites);
    size_t slot = find_slot(sites, name->data);
    if (sites->slot[slot] == 0) {
        if (s->sites == sites->capacity) {
            sites->capacity = heap_next_capacity(sites->capacity, s->sites + 1);
            s->site = heap_realloc(s->site, sites->capacity, sizeof *s->site);
        }
        s->site[s->sites++] =
            (struct snapshot_site){.name = arena_text(&s->arena, name->data, name->size)};
        sites->slot[slot] = (uint32_t)s->sites;
    }
    struct snapshot_site *site = &s->site[sites->slot[slot] - 1];
    site->bytes += bytes;
    site->blocks++;
}

static int compare_sites(const void *left, const void *right)
{
    const struct snapshot_site *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* ---- segments and traces ---- */

/* The device whose segments are largest. */
static int64_t find_device(const struct pickle_value *segments)
{
    uint64_t total[DEVICES_MAX] = {0};
    int64_t most = 0;
    for (const struct pickle_item *i = items(segments); i != NULL; i = i->next) {
        int64_t device = pickle_int(pickle_find(i->value, "device"), 0);
        if (device < 0 || device >= DEVICES_MAX)
            continue;
        total[device] += bytes_of(i->value, "total_size");
        most = total[device] > total[most] ? device : most;
    }
    return most;
}

static void add_blocks(struct torch_snapshot *s, struct sites *sites,
                       const struct pickle_value *segment)
{
    struct text name = {0};
    for (const struct pickle_item *i = items(pickle_find(segment, "blocks")); i != NULL;
         i = i->next) {
        uint64_t size = bytes_of(i->value, "size"), asked = bytes_of(i->value, "requested_size");
        const char *state = pickle_text(pickle_find(i->value, "state"), "");
        if (strncmp(state, "active", 6) != 0) { /* active_allocated, active_pending_free, ... */
            s->largest_free = size > s->largest_free ? size : s->largest_free;
            continue;
        }
        s->active += size;
        s->requested += asked > 0 ? asked : size;
        s->blocks++;
        put_site(&name, i->value);
        add_site(sites, &name, size);
    }
    text_release(&name);
}

/* The last failure that the trace of the device has. */
static void find_failure(struct torch_snapshot *s, const struct pickle_value *traces)
{
    const struct pickle_item *trace = items(traces);
    for (int64_t i = 0; i < s->device && trace != NULL; i++)
        trace = trace->next;
    for (const struct pickle_item *i = trace == NULL ? NULL : items(trace->value); i != NULL;
         i = i->next)
        if (strcmp(pickle_text(pickle_find(i->value, "action"), ""), "oom") == 0) {
            s->out_of_memory = true;
            s->failed_bytes = bytes_of(i->value, "size");
            s->device_free = bytes_of(i->value, "device_free");
        }
}

enum status torch_snapshot_parse(struct torch_snapshot *s, const char *name, const char *data,
                                 size_t size, struct diag *diag)
{
    struct arena arena = {0};
    struct pickle_value *root = NULL;
    struct sites sites = {.snapshot = s};
    enum status status = pickle_parse(&root, &arena, name, data, size, diag);
    if (status != STATUS_OK)
        goto out;
    /* memory_snapshot() gives the segments alone */
    const struct pickle_value *segments =
        root->kind == PICKLE_LIST ? root : pickle_find(root, "segments");
    if (segments == NULL || segments->kind != PICKLE_LIST) {
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "is a pickle, and no snapshot of PyTorch's: it has no 'segments'");
        goto out;
    }
    s->device = find_device(segments);
    for (const struct pickle_item *i = items(segments); i != NULL; i = i->next) {
        if (pickle_int(pickle_find(i->value, "device"), 0) != s->device)
            continue;
        s->reserved += bytes_of(i->value, "total_size");
        s->segments++;
        add_blocks(s, &sites, i->value);
    }
    if (s->sites > 0)
        qsort(s->site, s->sites, sizeof *s->site, compare_sites);
    find_failure(s, pickle_find(root, "device_traces"));
    if (s->segments == 0)
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "the snapshot has no segments: nothing was allocated");
out:
    free(sites.slot);
    arena_release(&arena);
    return status;
}
