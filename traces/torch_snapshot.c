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

static uint64_t read_bytes_member(const struct pickle_value *dict, const char *key)
{
    int64_t value = pickle_int_or(pickle_find(dict, key), 0);
    return value > 0 ? (uint64_t)value : 0;
}

static const struct pickle_item *items_of_pickle_list(const struct pickle_value *list)
{
    return list != NULL && list->kind == PICKLE_LIST ? list->first_item : NULL;
}

/* ---- where blocks come from ---- */

/* True for a source in Python: "train.py", a script without an ending, or "<string>". Other frames are native: their
 * files are sources, objects and libraries in C++ ("thread48.o", "libc.so.6", "??"). */
static bool is_python_source_file(const char *file)
{
    static const char *const endings[] = {".py", ".pyx", ".pyc", ".ipynb"};
    const char *slash = strrchr(file, '/'), *name = slash == NULL ? file : slash + 1;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < ARRAY_LEN(endings) && dot != NULL; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return name[0] == '<' || (dot == NULL && name[0] != '\0' && strcmp(name, "??") != 0);
}

static bool is_source_file_of_framework(const char *file)
{
    static const char *const parts[] = {"/torch/", "/deepspeed/"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strstr(file, parts[i]) != NULL)
            return true;
    return false;
}

static const char *source_file_of_frame(const struct pickle_item *frame)
{
    return pickle_text_or(pickle_find(frame->value, "filename"), "");
}

/* Sets *out to the name of the place that allocated a block, "modeling.py:120 forward". This is the innermost frame in
 * the user's code; else the innermost frame in Python; else, in a thread of autograd or a bare native thread, words
 * that say so; else the innermost frame of all. Without any frame, words say that no stack was recorded. */
static void set_allocation_site_name(struct text *out, const struct pickle_value *block)
{
    const struct pickle_value *frames = pickle_find(block, "frames");
    if (items_of_pickle_list(frames) == NULL &&
        items_of_pickle_list(pickle_find(block, "history")) != NULL)
        frames = pickle_find(items_of_pickle_list(pickle_find(block, "history"))->value, "frames");
    const struct pickle_item *first = items_of_pickle_list(frames), *chosen = NULL, *python = NULL;
    bool autograd = false;
    for (const struct pickle_item *i = first; i != NULL && chosen == NULL; i = i->next) {
        autograd |= strstr(pickle_text_or(pickle_find(i->value, "name"), ""), "autograd::") != NULL;
        if (!is_python_source_file(source_file_of_frame(i)))
            continue;
        python = python == NULL ? i : python;
        if (!is_source_file_of_framework(source_file_of_frame(i)))
            chosen = i;
    }
    /* The innermost frame is the function with which libstdc++ starts a thread: no other frame was recorded. */
    bool bare = first != NULL && strcmp(pickle_text_or(pickle_find(first->value, "name"), ""),
                                        "execute_native_thread_routine") == 0;
    if (python == NULL && (autograd || bare)) {
        out->size = 0;
        text_puts(out, autograd ? "(backward: a thread of autograd, without Python)"
                                : "(a native thread, without Python)");
        return;
    }
    chosen = chosen != NULL ? chosen : python != NULL ? python : first;
    out->size = 0;
    if (chosen == NULL) {
        text_puts(out, "(no stack was recorded)");
        return;
    }
    const char *file = pickle_text_or(pickle_find(chosen->value, "filename"), "?");
    const char *slash = strrchr(file, '/');
    text_printf(out, "%s:%lld %s", slash == NULL ? file : slash + 1,
                (long long)pickle_int_or(pickle_find(chosen->value, "line"), 0),
                pickle_text_or(pickle_find(chosen->value, "name"), "?"));
    /* control characters become '?', so that printing a name does not change the state of a terminal */
    for (char *c = out->data; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

struct site_table {
    struct torch_snapshot *snapshot;
    size_t capacity;
    uint32_t *row_of_slot; /* hash table of names: 0: free; else 1 + row */
    size_t slot_count;
};

static size_t find_site_slot(const struct site_table *sites, const char *name)
{
    uint64_t sum = 14695981039346656037u;
    for (const char *c = name; *c != '\0'; c++)
        sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    size_t at = (size_t)sum & (sites->slot_count - 1);
    while (sites->row_of_slot[at] != 0 &&
           strcmp(sites->snapshot->site[sites->row_of_slot[at] - 1].name, name) != 0)
        at = (at + 1) & (sites->slot_count - 1);
    return at;
}

static void grow_slots(struct site_table *sites)
{
    free(sites->row_of_slot);
    sites->slot_count = sites->slot_count == 0 ? 256 : 2 * sites->slot_count;
    sites->row_of_slot = heap_zalloc(sites->slot_count, sizeof *sites->row_of_slot);
    for (size_t i = 0; i < sites->snapshot->site_count; i++)
        sites->row_of_slot[find_site_slot(sites, sites->snapshot->site[i].name)] = (uint32_t)i + 1;
}

static void add_block_to_site(struct site_table *sites, const struct text *name, uint64_t bytes)
{
    struct torch_snapshot *s = sites->snapshot;
    if (2 * (s->site_count + 1) > sites->slot_count)
        grow_slots(sites);
    size_t slot = find_site_slot(sites, name->data);
    if (sites->row_of_slot[slot] == 0) {
        if (s->site_count == sites->capacity) {
            sites->capacity = heap_next_capacity(sites->capacity, s->site_count + 1);
            s->site = heap_realloc(s->site, sites->capacity, sizeof *s->site);
        }
        s->site[s->site_count++] =
            (struct snapshot_site){.name = arena_text(&s->arena, name->data, name->size)};
        sites->row_of_slot[slot] = (uint32_t)s->site_count;
    }
    struct snapshot_site *site = &s->site[sites->row_of_slot[slot] - 1];
    site->bytes += bytes;
    site->block_count++;
}

static int compare_sites(const void *left, const void *right)
{
    const struct snapshot_site *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* ---- segments and traces ---- */

/* Returns the device whose segments are largest. */
static int64_t find_device(const struct pickle_value *segments)
{
    uint64_t total[DEVICES_MAX] = {0};
    int64_t most = 0;
    for (const struct pickle_item *i = items_of_pickle_list(segments); i != NULL; i = i->next) {
        int64_t device = pickle_int_or(pickle_find(i->value, "device"), 0);
        if (device < 0 || device >= DEVICES_MAX)
            continue;
        total[device] += read_bytes_member(i->value, "total_size");
        most = total[device] > total[most] ? device : most;
    }
    return most;
}

/* The blocks that were allocated or freed after the last failed allocation. A snapshot is dumped where the exception is
 * caught. By then the functions that the exception left have released their tensors, the activations of a step. So
 * these events are undone, to get the memory as it was at the failure. */
struct blocks_changed_since_failure {
    const struct pickle_item *failure; /* the last failed allocation in the history; NULL: none */
    const struct pickle_item *history;
    struct snapshot_change {
        uint64_t address, bytes;
        const struct pickle_value *event;
        /* for a freed block, the event that allocated it; NULL: unknown */
        const struct pickle_value *allocation;
    } * freed,
        *taken; /* freed: sorted by address by find_blocks_changed_since_failure(), each address once; taken: allocated */
    size_t freed_count, taken_count, freed_capacity, taken_capacity;
};

/* sizes of blocks are rounded up to this: kMinBlockSize of the allocator */
enum { ROUNDING = 512 };

static void add_change(struct snapshot_change **list, size_t *count, size_t *capacity,
                       const struct pickle_value *event)
{
    uint64_t asked = read_bytes_member(event, "size");
    if (*count == *capacity) {
        *capacity = heap_next_capacity(*capacity, *count + 1);
        *list = heap_realloc(*list, *capacity, sizeof **list);
    }
    (*list)[(*count)++] =
        (struct snapshot_change){.address = read_bytes_member(event, "addr"),
                                 .bytes = (asked + ROUNDING - 1) / ROUNDING * ROUNDING,
                                 .event = event};
}

static int compare_blocks_by_address(const void *left, const void *right)
{
    const struct snapshot_change *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* Returns the index of the first freed block at or after an address. */
static size_t first_freed_block_from_address(const struct blocks_changed_since_failure *since,
                                             uint64_t address)
{
    size_t low = 0, high = since->freed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (since->freed[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct snapshot_change *find_change(const struct snapshot_change *list, size_t count,
                                                 uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].address == address)
            return &list[i];
    return NULL;
}

/* Adds a block that was freed after the failure. If the block was also allocated after the failure, it was free
 * then, so both events are dropped. */
static void add_freed_block(struct blocks_changed_since_failure *since,
                            const struct pickle_value *event)
{
    const struct snapshot_change *taken =
        find_change(since->taken, since->taken_count, read_bytes_member(event, "addr"));
    if (taken != NULL)
        since->taken[taken - since->taken] = since->taken[--since->taken_count];
    else
        add_change(&since->freed, &since->freed_count, &since->freed_capacity, event);
}

static void find_blocks_changed_since_failure(struct torch_snapshot *s,
                                              struct blocks_changed_since_failure *since)
{
    for (const struct pickle_item *i = since->failure; i != NULL; i = i->next) {
        const char *action = pickle_text_or(pickle_find(i->value, "action"), "");
        if (strcmp(action, "free_completed") == 0)
            add_freed_block(since, i->value);
        else if (strcmp(action, "alloc") == 0)
            add_change(&since->taken, &since->taken_count, &since->taken_capacity, i->value);
        else if (strcmp(action, "segment_free") == 0)
            s->reserved_bytes += read_bytes_member(i->value, "size");
        else if (strcmp(action, "segment_alloc") == 0)
            s->reserved_bytes -= read_bytes_member(i->value, "size");
    }
    if (since->freed_count > 0)
        qsort(since->freed, since->freed_count, sizeof *since->freed, compare_blocks_by_address);
}

/* Finds the last failed allocation in the device's history. */
static void find_last_failed_allocation(struct torch_snapshot *s,
                                        struct blocks_changed_since_failure *since,
                                        const struct pickle_value *traces)
{
    const struct pickle_item *trace = items_of_pickle_list(traces);
    for (int64_t i = 0; i < s->device && trace != NULL; i++)
        trace = trace->next;
    since->history = trace == NULL ? NULL : items_of_pickle_list(trace->value);
    for (const struct pickle_item *i = since->history; i != NULL; i = i->next)
        if (strcmp(pickle_text_or(pickle_find(i->value, "action"), ""), "oom") == 0) {
            since->failure = i;
            s->has_failed_allocation = true;
            s->failed_bytes = read_bytes_member(i->value, "size");
            s->device_free_bytes = read_bytes_member(i->value, "device_free");
        }
}

/* Raises largest_free_bytes if the free range of `bytes` bytes at `address` has a larger part that was already free at
 * the failure: one that has no block freed since then. */
static void raise_largest_free(struct torch_snapshot *s,
                               const struct blocks_changed_since_failure *since, uint64_t address,
                               uint64_t bytes)
{
    uint64_t at = address, end = address + bytes;
    for (size_t i = first_freed_block_from_address(since, address);
         i <= since->freed_count && at < end; i++) {
        const struct snapshot_change *freed = i < since->freed_count ? &since->freed[i] : NULL;
        uint64_t until = freed != NULL && freed->address < end ? freed->address : end;
        if (until > at && until - at > s->largest_free_bytes)
            s->largest_free_bytes = until - at;
        at = until < end ? freed->address + freed->bytes : end;
    }
}

static void add_active_block(struct torch_snapshot *s, struct site_table *sites, uint64_t bytes,
                             uint64_t asked, const struct pickle_value *frames)
{
    struct text name = {0};
    s->active_bytes += bytes;
    s->requested_bytes += asked > 0 ? asked : bytes;
    s->active_block_count++;
    set_allocation_site_name(&name, frames);
    add_block_to_site(sites, &name, bytes);
    text_release(&name);
}

static void add_blocks(struct torch_snapshot *s, struct site_table *sites,
                       const struct blocks_changed_since_failure *since,
                       const struct pickle_value *segment)
{
    /* the blocks of a segment follow each other without gaps */
    uint64_t address = read_bytes_member(segment, "address"), size;
    for (const struct pickle_item *i = items_of_pickle_list(pickle_find(segment, "blocks"));
         i != NULL; i = i->next, address += size) {
        const char *state = pickle_text_or(pickle_find(i->value, "state"), "");
        /* active_allocated or active_pending_free */
        bool active = strncmp(state, "active", 6) == 0;
        size = read_bytes_member(i->value, "size");
        if (active && find_change(since->taken, since->taken_count, address) == NULL)
            add_active_block(s, sites, size, read_bytes_member(i->value, "requested_size"),
                             i->value);
        else
            raise_largest_free(s, since, address, size);
    }
}

/* Adds the blocks that were in use at the failure and have been freed since. Each counts for the place that allocated
 * it or, if the history does not reach back to its allocation, for the place that freed it. */
static void add_blocks_freed_after_failure(struct torch_snapshot *s, struct site_table *sites,
                                           const struct blocks_changed_since_failure *since)
{
    for (const struct pickle_item *i = since->history;
         since->freed_count > 0 && i != since->failure; i = i->next) {
        uint64_t address = read_bytes_member(i->value, "addr");
        size_t k = first_freed_block_from_address(since, address);
        if (k < since->freed_count && since->freed[k].address == address &&
            strcmp(pickle_text_or(pickle_find(i->value, "action"), ""), "alloc") == 0)
            since->freed[k].allocation = i->value;
    }
    for (size_t k = 0; k < since->freed_count; k++) {
        const struct snapshot_change *freed = &since->freed[k];
        add_active_block(s, sites, freed->bytes, read_bytes_member(freed->event, "size"),
                         freed->allocation != NULL ? freed->allocation : freed->event);
    }
}

/* Fails if there are no segments, or if the sizes of segments and blocks contradict each other. */
static enum status check_sizes(const struct torch_snapshot *s, const char *name, struct diag *diag)
{
    struct loc at = {.name = name};
    struct text sizes = {0};
    enum status status = STATUS_OK;
    if (s->segment_count == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the snapshot has no segments: nothing was allocated");
    if (s->reserved_bytes > INT64_MAX || s->active_bytes > s->reserved_bytes ||
        s->requested_bytes > s->active_bytes) {
        text_printf(&sizes, "%lld bytes asked for, %lld in use, %lld in segments",
                    (long long)s->requested_bytes, (long long)s->active_bytes,
                    (long long)s->reserved_bytes);
        status = diag_error(diag, at, STATUS_BAD_INPUT,
                            "the snapshot contradicts itself: %s; the file may have been edited",
                            sizes.data);
    }
    text_release(&sizes);
    return status;
}

enum status torch_snapshot_parse(struct torch_snapshot *s, const char *name, const char *data,
                                 size_t size, struct diag *diag)
{
    struct arena arena = {0};
    struct pickle_value *root = NULL;
    struct site_table sites = {.snapshot = s};
    struct blocks_changed_since_failure since = {0};
    enum status status = pickle_parse(&root, &arena, name, data, size, diag);
    if (status != STATUS_OK)
        goto out;
    /* memory_snapshot() returns only the list of segments */
    const struct pickle_value *segments =
        root->kind == PICKLE_LIST ? root : pickle_find(root, "segments");
    if (segments == NULL || segments->kind != PICKLE_LIST) {
        status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                            "is a pickle, but not a snapshot of PyTorch's: it has no 'segments'");
        goto out;
    }
    for (const struct pickle_item *i = items_of_pickle_list(segments); i != NULL; i = i->next)
        if (pickle_find(i->value, "total_size") == NULL) {
            status = diag_error(diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                                "is a pickle, but not a snapshot of PyTorch's: a segment has no "
                                "'total_size'");
            goto out;
        }
    s->device = find_device(segments);
    find_last_failed_allocation(s, &since, pickle_find(root, "device_traces"));
    find_blocks_changed_since_failure(s, &since);
    for (const struct pickle_item *i = items_of_pickle_list(segments); i != NULL; i = i->next) {
        if (pickle_int_or(pickle_find(i->value, "device"), 0) != s->device)
            continue;
        s->reserved_bytes += read_bytes_member(i->value, "total_size");
        s->segment_count++;
        add_blocks(s, &sites, &since, i->value);
    }
    add_blocks_freed_after_failure(s, &sites, &since);
    if (s->site_count > 0)
        qsort(s->site, s->site_count, sizeof *s->site, compare_sites);
    status = check_sizes(s, name, diag);
out:
    free(since.freed);
    free(since.taken);
    free(sites.row_of_slot);
    arena_release(&arena);
    return status;
}
