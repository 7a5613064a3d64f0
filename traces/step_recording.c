#include "traces/step_recording.h"

#include "base/ascending.h"
#include "base/c_locale.h"
#include "base/json.h"
#include "base/path.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of an unpacked recording: a step of 100,000 events has some 30 MiB. */
enum { RECORDING_BYTES_LIMIT = 256 << 20 };
/* The largest numbers that a recording may have. The bytes of one event, or of all storages together, are at most 2^50,
 * so a few of these numbers add up in an int64_t. */
static const double BYTES_LIMIT = 0x1p50, FLOPS_LIMIT = 0x1p100;
static const int64_t NUMBER_LIMIT = INT64_C(1) << 60;
enum { RANKS_LIMIT = 1 << 20, GROUPS_LIMIT = 1 << 16 };

static const char *const kind_names[STEP_EVENT_KIND_COUNT] = {
    "mm",   "sdpa",   "conv",   "elementwise", "reduction", "copy", "index",    "fill",
    "comm", "opaque", "record", "wait",        "host_wait", "item", "work_wait"};
static const char phase_letters[] = "fbro";
_Static_assert(sizeof phase_letters - 1 == STEP_PHASE_COUNT, "a letter per phase");

struct recording_reader {
    struct step_recording *recording;
    struct json_node root;
    struct diag *diag;
};

bool step_recording_recognise(const struct text *text)
{
    static const char *const words[] = {"{", "\"format\"", ":", "\"longhaul-step\""};
    const char *at = text->data, *end = at + text->size;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t size = strlen(words[i]);
        while (at < end && c_is_space(*at))
            at++;
        if ((size_t)(end - at) < size || memcmp(at, words[i], size) != 0)
            return false;
        at += size;
    }
    return true;
}

bool step_recording_is_file_at(const char *path)
{
    struct text text = {0};
    const bool is_recording = path_is_file(path) && text_read(&text, path, NULL) == STATUS_OK &&
                              step_recording_recognise(&text);
    text_release(&text);
    return is_recording;
}

void step_recording_release(struct step_recording *r)
{
    arena_release(&r->arena);
    *r = (struct step_recording){0};
}

/* ---- members that may be missing ---- */

static enum status read_i64(struct recording_reader *in, struct json_node object, const char *key,
                            int64_t low, int64_t high, int64_t fallback, int64_t *value)
{
    struct json_node node = json_find_member(object, key);
    *value = fallback;
    return node.value == NULL ? STATUS_OK : json_as_i64(node, low, high, value, in->diag);
}

static enum status read_double(struct recording_reader *in, struct json_node object,
                               const char *key, double high, double *value)
{
    struct json_node node = json_find_member(object, key);
    *value = 0;
    return node.value == NULL ? STATUS_OK : json_as_double(node, 0, high, value, in->diag);
}

static enum status read_text(struct recording_reader *in, struct json_node node, const char **value)
{
    const char *text;
    enum status status = json_as_string(node, &text, in->diag);
    *value = status == STATUS_OK ? arena_text(&in->recording->arena, text, strlen(text)) : "";
    return status;
}

/* Reads a text of the recording; "" if it is not there. */
static enum status read_optional_text(struct recording_reader *in, const char *key,
                                      const char **value)
{
    struct json_node node = json_find_member(in->root, key);
    *value = "";
    return node.value == NULL ? STATUS_OK : read_text(in, node, value);
}

/* ---- the parts of a recording ---- */

static enum status read_header(struct recording_reader *in)
{
    struct step_recording *r = in->recording;
    const char *format;
    int64_t version, world, rank, peak;
    struct diag *diag = in->diag;
    if (json_find_member(in->root, "format").value == NULL)
        return json_error(in->root, diag,
                          "has no member 'format', so this is no recorded step: longhaul.record "
                          "writes \"format\": \"longhaul-step\" first");
    enum status status = json_get_string(in->root, "format", &format, diag);
    if (status == STATUS_OK && strcmp(format, "longhaul-step") != 0)
        return json_error(json_find_member(in->root, "format"), diag,
                          "'%.40s' is not 'longhaul-step': this is no recorded step", format);
    if (status == STATUS_OK)
        status = json_get_i64(in->root, "version", 0, NUMBER_LIMIT, &version, diag);
    if (status == STATUS_OK && version != STEP_RECORDING_VERSION)
        return json_error(json_find_member(in->root, "version"), diag,
                          "%lld is another version of the format than %d, which this program "
                          "reads: record the step again with the longhaul.record of this version",
                          (long long)version, STEP_RECORDING_VERSION);
    if (status == STATUS_OK)
        status = json_get_i64(in->root, "world", 1, RANKS_LIMIT, &world, diag);
    if (status == STATUS_OK)
        status = json_get_i64(in->root, "rank", 0, world - 1, &rank, diag);
    if (status == STATUS_OK)
        status = read_i64(in, in->root, "peak", 0, NUMBER_LIMIT, 0, &peak);
    if (status != STATUS_OK)
        return status;
    r->world_size = (uint32_t)world;
    r->rank = (uint32_t)rank;
    r->recorded_peak_bytes = (uint64_t)peak;
    status = read_i64(in, in->root, "tokens", 1, NUMBER_LIMIT, 0, &r->token_count);
    if (status == STATUS_OK)
        status = read_optional_text(in, "torch", &r->torch_version);
    return status == STATUS_OK ? read_optional_text(in, "device", &r->device_name) : status;
}

static enum status read_modules(struct recording_reader *in)
{
    struct json_node list;
    enum status status = json_get_array(in->root, "modules", &list, in->diag);
    if (status != STATUS_OK)
        return status;
    const uint32_t count = (uint32_t)json_element_count(list);
    const char **module = arena_array(&in->recording->arena, count + 1u, sizeof *module);
    module[0] = "";
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        status = read_text(in, json_element_at(list, i), &module[i]);
    in->recording->module = module;
    in->recording->module_count = count > 0 ? count : 1;
    return status;
}

static enum status read_group(struct recording_reader *in, struct json_node node,
                              struct step_group *group)
{
    struct json_node ranks, name = json_find_member(node, "desc");
    bool own = false;
    enum status status = json_get_array(node, "ranks", &ranks, in->diag);
    group->name = "";
    if (status == STATUS_OK && name.value != NULL)
        status = read_text(in, name, &group->name);
    if (status != STATUS_OK)
        return status;
    group->rank_count = (uint32_t)json_element_count(ranks);
    group->ranks = arena_array(&in->recording->arena, group->rank_count, sizeof *group->ranks);
    for (uint32_t i = 0; i < group->rank_count && status == STATUS_OK; i++) {
        status = json_as_i64(json_element_at(ranks, i), 0, in->recording->world_size - 1,
                             &group->ranks[i], in->diag);
        own |= group->ranks[i] == in->recording->rank;
    }
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 1; i < group->rank_count; i++)
        group->has_ranks_in_other_order |= group->ranks[i] < group->ranks[i - 1];
    qsort(group->ranks, group->rank_count, sizeof *group->ranks, ascending_i64);
    for (uint32_t i = 1; i < group->rank_count; i++)
        if (group->ranks[i] == group->ranks[i - 1])
            return json_error(ranks, in->diag, "rank %lld is there twice",
                              (long long)group->ranks[i]);
    return own ? STATUS_OK
               : json_error(ranks, in->diag, "lacks rank %u, whose step was recorded",
                            in->recording->rank);
}

static enum status read_groups(struct recording_reader *in)
{
    struct json_node groups;
    const char *key;
    enum status status = json_get_object(in->root, "groups", &groups, in->diag);
    if (status != STATUS_OK)
        return status;
    if (json_member_count(groups) > GROUPS_LIMIT)
        return json_error(groups, in->diag, "has %zu groups, and at most %d are read",
                          json_member_count(groups), GROUPS_LIMIT);
    in->recording->group_count = (uint32_t)json_member_count(groups);
    in->recording->group = arena_array(&in->recording->arena, in->recording->group_count,
                                       sizeof *in->recording->group);
    for (uint32_t i = 0; i < in->recording->group_count && status == STATUS_OK; i++) {
        struct json_node group = json_member_at(groups, i, &key);
        in->recording->group[i].key = arena_text(&in->recording->arena, key, strlen(key));
        status = read_group(in, group, &in->recording->group[i]);
    }
    return status;
}

static enum status read_guesses(struct recording_reader *in)
{
    struct json_node guessed = json_find_member(in->root, "guessed");
    const char *what;
    enum status status = STATUS_OK;
    if (guessed.value == NULL)
        return STATUS_OK;
    if (!json_is_object(guessed))
        return json_error(guessed, in->diag, "expected an object: what was guessed, and how often");
    in->recording->guess_count = (uint32_t)json_member_count(guessed);
    in->recording->guess = arena_array(&in->recording->arena, in->recording->guess_count,
                                       sizeof *in->recording->guess);
    for (uint32_t i = 0; i < in->recording->guess_count && status == STATUS_OK; i++) {
        struct json_node times = json_member_at(guessed, i, &what);
        in->recording->guess[i].description = arena_text(&in->recording->arena, what, strlen(what));
        status = json_as_i64(times, 0, NUMBER_LIMIT, &in->recording->guess[i].count, in->diag);
    }
    return status;
}

static enum status read_notes(struct recording_reader *in)
{
    struct json_node notes = json_find_member(in->root, "notes");
    const uint32_t count = (uint32_t)json_element_count(notes);
    const char **note = arena_array(&in->recording->arena, count, sizeof *note);
    enum status status = STATUS_OK;
    if (notes.value != NULL && !json_is_array(notes))
        status = json_error(notes, in->diag, "expected an array of sentences");
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        status = read_text(in, json_element_at(notes, i), &note[i]);
    in->recording->note = note;
    in->recording->note_count = count;
    return status;
}

static enum status read_storage(struct recording_reader *in, struct json_node node,
                                struct step_storage *storage)
{
    int64_t bytes;
    const int64_t end = in->recording->event_count;
    if (json_element_count(node) != 4)
        return json_error(node, in->diag, "expected [bytes, born, died, role]");
    enum status status = json_as_i64(json_element_at(node, 0), 0, NUMBER_LIMIT, &bytes, in->diag);
    if (status == STATUS_OK)
        status = json_as_i64(json_element_at(node, 1), -1, end, &storage->first_event, in->diag);
    if (status == STATUS_OK)
        status = json_as_i64(json_element_at(node, 2), -1, end, &storage->last_event, in->diag);
    if (status == STATUS_OK)
        status = read_text(in, json_element_at(node, 3), &storage->role);
    storage->bytes = (uint64_t)bytes;
    if (status == STATUS_OK && storage->last_event >= 0 &&
        storage->last_event < storage->first_event)
        return json_error(node, in->diag, "died at event %lld, before it was born at event %lld",
                          (long long)storage->last_event, (long long)storage->first_event);
    return status;
}

static enum status read_storages(struct recording_reader *in, struct json_node list)
{
    enum status status = STATUS_OK;
    double all = 0;
    for (uint32_t i = 0; i < in->recording->storage_count && status == STATUS_OK; i++) {
        status = read_storage(in, json_element_at(list, i), &in->recording->storage[i]);
        all += (double)in->recording->storage[i].bytes;
    }
    return status != STATUS_OK || all <= BYTES_LIMIT
               ? status
               : json_error(list, in->diag, "all storages have more than 2^50 bytes");
}

/* ---- events ---- */

static const char *const dtype_names[] = {
    [STEP_DTYPE_BF16] = "bfloat16",      [STEP_DTYPE_F16] = "float16",
    [STEP_DTYPE_F32] = "float32",        [STEP_DTYPE_F64] = "float64",
    [STEP_DTYPE_E4M3] = "float8_e4m3fn", [STEP_DTYPE_E5M2] = "float8_e5m2",
    [STEP_DTYPE_OTHER] = "other",
};

const char *step_dtype_name(enum step_dtype dtype)
{
    return dtype_names[dtype];
}

enum step_dtype step_dtype_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(dtype_names); i++)
        if (strcmp(dtype_names[i], name) == 0)
            return (enum step_dtype)i;
    return STEP_DTYPE_OTHER;
}

/* Sets the strides of a tensor: those of the recording if tensor->is_strided, else those of a contiguous tensor. */
static enum status read_strides(struct recording_reader *in, struct json_node node,
                                struct step_tensor *tensor)
{
    struct json_node strides = json_element_at(node, 3);
    enum status status = STATUS_OK;
    int64_t next = 1;
    if (tensor->is_strided && json_element_count(strides) != tensor->dim_count)
        return json_error(strides, in->diag, "expected a stride for each of %d sizes",
                          (int)tensor->dim_count);
    for (uint32_t i = tensor->dim_count; i-- > 0 && status == STATUS_OK;) {
        tensor->stride[i] = next;
        next *= tensor->size[i] > 0 ? tensor->size[i] : 1;
        if (tensor->is_strided)
            status = json_as_i64(json_element_at(strides, i), -NUMBER_LIMIT, NUMBER_LIMIT,
                                 &tensor->stride[i], in->diag);
    }
    return status;
}

static enum status read_tensor(struct recording_reader *in, struct json_node node,
                               struct step_tensor *tensor)
{
    const char *dtype;
    struct json_node shape = json_element_at(node, 1);
    const size_t members = json_element_count(node), dims = json_element_count(shape);
    double elements = 1;
    if (members < 3 || members > 4 || !json_is_array(shape))
        return json_error(node, in->diag,
                          "expected [storage, [sizes], dtype] and, if it is not "
                          "contiguous, [strides]");
    if (dims > STEP_DIMS_MAX)
        return json_error(shape, in->diag, "a tensor of %zu dimensions; at most %d are read", dims,
                          STEP_DIMS_MAX);
    enum status status =
        json_as_i64(json_element_at(node, 0), -1, (int64_t)in->recording->storage_count - 1,
                    &tensor->storage, in->diag);
    for (size_t i = 0; i < dims && status == STATUS_OK; i++) {
        status =
            json_as_i64(json_element_at(shape, i), 0, NUMBER_LIMIT, &tensor->size[i], in->diag);
        elements *= fmax((double)tensor->size[i], 1);
    }
    if (status == STATUS_OK && elements > (double)NUMBER_LIMIT)
        return json_error(shape, in->diag, "a tensor of more than 2^60 elements");
    if (status == STATUS_OK)
        status = json_as_string(json_element_at(node, 2), &dtype, in->diag);
    if (status != STATUS_OK)
        return status;
    tensor->dim_count = (uint8_t)dims;
    tensor->dtype = (uint8_t)step_dtype_of(dtype);
    tensor->is_strided = members == 4;
    return read_strides(in, node, tensor);
}

static enum status read_tensors(struct recording_reader *in, struct json_node event,
                                const char *key, uint32_t *begin, uint32_t *count)
{
    struct json_node list;
    enum status status = json_get_array(event, key, &list, in->diag);
    *begin = in->recording->tensor_count;
    *count = (uint32_t)json_element_count(list);
    for (uint32_t i = 0; i < *count && status == STATUS_OK; i++)
        status = read_tensor(in, json_element_at(list, i),
                             &in->recording->tensor[in->recording->tensor_count++]);
    return status;
}

static enum status read_kind(struct recording_reader *in, struct json_node node,
                             struct step_event *event)
{
    struct json_node op = json_find_member(node, "op"), k = json_find_member(node, "k"), named = op;
    const char *name;
    int first = STEP_RECORD_CUDA_EVENT, end = STEP_EVENT_KIND_COUNT;
    if (op.value == NULL)
        return json_error(node, in->diag, "has no member 'op'");
    enum status status = read_text(in, op, &event->op_name);
    name = event->op_name;
    if (status == STATUS_OK && k.value != NULL) {
        status = json_as_string(k, &name, in->diag);
        named = k;
        first = 0;
        end = STEP_RECORD_CUDA_EVENT;
    }
    if (status != STATUS_OK)
        return status;
    for (int kind = first; kind < end; kind++)
        if (strcmp(kind_names[kind], name) == 0) {
            event->kind = (uint8_t)kind;
            return STATUS_OK;
        }
    if (k.value == NULL && strcmp(name, "nonzero") == 0) {
        event->kind = STEP_HOST_READS_VALUE;
        return STATUS_OK;
    }
    return json_error(named, in->diag, "'%.60s' is no %s that this version knows", name,
                      k.value != NULL ? "kind of operator" : "event");
}

/* Reads the members that only operators have: phase, module, tensors, flops, bytes, and whether attention is causal. */
static enum status read_operator(struct recording_reader *in, struct json_node node,
                                 struct step_event *event)
{
    struct json_node phase = json_find_member(node, "ph"), arg = json_find_member(node, "arg");
    const char *letter = "f", *at;
    int64_t module;
    enum status status = read_i64(in, node, "m", 0, in->recording->module_count - 1, 0, &module);
    if (status == STATUS_OK && phase.value != NULL)
        status = json_as_string(phase, &letter, in->diag);
    if (status != STATUS_OK)
        return status;
    at = strlen(letter) == 1 ? strchr(phase_letters, letter[0]) : NULL;
    if (at == NULL)
        return json_error(phase, in->diag, "'%.20s' is no phase: f, b, r or o", letter);
    event->phase = (uint8_t)(at - phase_letters);
    event->module = (uint32_t)module;
    status = read_tensors(in, node, "in", &event->in_begin, &event->in_count);
    if (status == STATUS_OK)
        status = read_tensors(in, node, "out", &event->out_begin, &event->out_count);
    if (status == STATUS_OK)
        status = read_double(in, node, "fl", FLOPS_LIMIT, &event->flops);
    if (status == STATUS_OK)
        status = read_double(in, node, "rd", BYTES_LIMIT, &event->read_bytes);
    if (status == STATUS_OK)
        status = read_double(in, node, "wr", BYTES_LIMIT, &event->written_bytes);
    struct json_node causal = json_find_member(arg, "is_causal");
    if (status == STATUS_OK && causal.value != NULL)
        status = json_as_bool(causal, &event->is_causal, in->diag);
    return status;
}

/* Reads how many bytes an all-to-all sends to each rank of its group; sets most_bytes_sent_to_one_rank and
 * group_index_of_only_receiver. */
static enum status read_bytes_sent_to_each_rank(struct recording_reader *in, struct json_node sent,
                                                struct step_event *event)
{
    const struct step_group *group =
        event->group != UINT32_MAX ? &in->recording->group[event->group] : NULL;
    enum status status = STATUS_OK;
    uint32_t receiver_count = 0;
    if (sent.value == NULL)
        return STATUS_OK;
    if (group == NULL || json_element_count(sent) != group->rank_count)
        return json_error(sent, in->diag, "expected the bytes for each rank of the group 'g'");
    for (uint32_t i = 0; i < group->rank_count && status == STATUS_OK; i++) {
        double bytes = 0;
        status = json_as_double(json_element_at(sent, i), 0, BYTES_LIMIT, &bytes, in->diag);
        receiver_count += bytes > 0;
        event->group_index_of_only_receiver =
            bytes > 0 ? (int64_t)i : event->group_index_of_only_receiver;
        event->most_bytes_sent_to_one_rank = fmax(event->most_bytes_sent_to_one_rank, bytes);
    }
    if (receiver_count != 1 || group->has_ranks_in_other_order)
        event->group_index_of_only_receiver = -1;
    if (status == STATUS_OK && group->rank_count * event->most_bytes_sent_to_one_rank > BYTES_LIMIT)
        return json_error(sent, in->diag,
                          "%" PRIu32 " times the largest piece, %.0f, is more than 2^50 bytes",
                          group->rank_count, event->most_bytes_sent_to_one_rank);
    return status;
}

static enum status read_collective(struct recording_reader *in, struct json_node node,
                                   struct step_event *event)
{
    struct json_node group = json_find_member(node, "g"),
                     is_async = json_find_member(node, "async");
    const char *key;
    enum status status = read_double(in, node, "full", BYTES_LIMIT, &event->full_tensor_bytes);
    if (status == STATUS_OK && is_async.value != NULL)
        status = json_as_bool(is_async, &event->is_async, in->diag);
    if (status == STATUS_OK)
        status =
            read_i64(in, node, "peer", 0, in->recording->world_size - 1, -1, &event->peer_rank);
    if (status == STATUS_OK)
        status = read_i64(in, node, "batch", 0, NUMBER_LIMIT, -1, &event->batch_number);
    if (status != STATUS_OK || group.value == NULL)
        return status;
    status = json_as_string(group, &key, in->diag);
    for (uint32_t i = 0; i < in->recording->group_count && status == STATUS_OK; i++)
        if (strcmp(in->recording->group[i].key, key) == 0) {
            event->group = i;
            return read_bytes_sent_to_each_rank(in, json_find_member(node, "sent"), event);
        }
    return status != STATUS_OK
               ? status
               : json_error(group, in->diag, "there is no group '%.40s' among the groups", key);
}

static enum status read_event(struct recording_reader *in, struct json_node node, uint32_t number)
{
    struct step_event *event = &in->recording->event[number];
    event->group = UINT32_MAX;
    event->group_index_of_only_receiver = event->peer_rank = event->batch_number = -1;
    if (!json_is_object(node))
        return json_error(node, in->diag, "expected an event: {\"op\": ...}");
    enum status status = read_kind(in, node, event);
    if (status == STATUS_OK)
        status = read_i64(in, node, "s", INT64_MIN, INT64_MAX, 0, &event->stream);
    if (status == STATUS_OK)
        status = read_i64(in, node, "e", -1, NUMBER_LIMIT, -1, &event->cuda_event);
    if (status == STATUS_OK)
        status = read_i64(in, node, "on", -1, (int64_t)number - 1, -1,
                          &event->index_of_awaited_collective);
    if (status == STATUS_OK && event->kind < STEP_RECORD_CUDA_EVENT)
        status = read_operator(in, node, event);
    if (status == STATUS_OK && event->kind == STEP_COLLECTIVE)
        status = read_collective(in, node, event);
    if (status == STATUS_OK &&
        (event->kind == STEP_RECORD_CUDA_EVENT || event->kind == STEP_STREAM_WAIT_FOR_EVENT) &&
        event->cuda_event < 0)
        return json_error(node, in->diag, "has no member 'e', the event of the stream");
    return status;
}

static size_t count_tensors(struct json_node events)
{
    size_t count = 0;
    for (size_t i = 0; i < json_element_count(events); i++) {
        struct json_node event = json_element_at(events, i);
        count += json_element_count(json_find_member(event, "in")) +
                 json_element_count(json_find_member(event, "out"));
    }
    return count;
}

static enum status read_events(struct recording_reader *in)
{
    struct json_node events, storages;
    struct step_recording *r = in->recording;
    enum status status = json_get_array(in->root, "events", &events, in->diag);
    if (status == STATUS_OK)
        status = json_get_array(in->root, "storages", &storages, in->diag);
    if (status != STATUS_OK)
        return status;
    if (json_element_count(events) == 0)
        return json_error(events, in->diag, "has no events: nothing was recorded");
    r->event_count = (uint32_t)json_element_count(events);
    r->storage_count = (uint32_t)json_element_count(storages);
    r->event = arena_array(&r->arena, r->event_count, sizeof *r->event);
    r->storage = arena_array(&r->arena, r->storage_count, sizeof *r->storage);
    r->tensor = arena_array(&r->arena, count_tensors(events), sizeof *r->tensor);
    status = read_storages(in, storages);
    for (uint32_t i = 0; i < r->event_count && status == STATUS_OK; i++)
        status = read_event(in, json_element_at(events, i), i);
    return status;
}

/* ---- the whole recording ---- */

enum status step_recording_parse(struct step_recording *r, const char *name, const char *data,
                                 size_t size, struct diag *diag)
{
    struct json json;
    enum status status =
        json_parse_with_byte_limit(&json, RECORDING_BYTES_LIMIT, name, data, size, diag);
    struct recording_reader in = {.recording = r, .diag = diag};
    r->name = arena_text(&r->arena, name, strlen(name));
    if (status == STATUS_OK) {
        in.root = json_root(&json);
        if (!json_is_object(in.root))
            status = json_error(in.root, diag, "expected an object: {\"format\": ...}");
    }
    if (status == STATUS_OK)
        status = read_header(&in);
    if (status == STATUS_OK)
        status = read_modules(&in);
    if (status == STATUS_OK)
        status = read_groups(&in);
    if (status == STATUS_OK)
        status = read_guesses(&in);
    if (status == STATUS_OK)
        status = read_notes(&in);
    if (status == STATUS_OK)
        status = read_events(&in);
    json_release(&json);
    return status;
}

uint64_t step_recording_peak_bytes(const struct step_recording *r)
{
    /* [i] by how many bytes the live storages change just before event i; the last element: after the last event */
    int64_t *change = heap_zalloc((size_t)r->event_count + 1, sizeof *change), now = 0, peak = 0;
    for (uint32_t i = 0; i < r->storage_count; i++) {
        const struct step_storage *s = &r->storage[i];
        if (s->first_event < 0)
            now += (int64_t)s->bytes;
        else
            change[s->first_event] += (int64_t)s->bytes;
        if (s->last_event >= 0)
            change[s->last_event] -= (int64_t)s->bytes;
    }
    peak = now;
    for (uint32_t i = 0; i <= r->event_count; i++) {
        now += change[i];
        peak = now > peak ? now : peak;
    }
    free(change);
    return (uint64_t)peak;
}
