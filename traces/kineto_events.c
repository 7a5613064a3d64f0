#include "traces/kineto_events.h"

#include "base/digest.h"
#include "base/json_pull.h"
#include "base/text.h"
#include "traces/kernel_class.h"
#include "traces/step_recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Without kineto_events.reads_operator_inputs, only the shapes of an operator's first INPUTS_MAX inputs are read. A
 * shape of more than DIMENSIONS_MAX dimensions counts as unknown. */
enum { INPUTS_MAX = 3, DIMENSIONS_MAX = 6 };
enum { NAME_LIMIT = 4096 }; /* a longer name is cut */
enum { TYPES_MAX = 16 };    /* the types of this many first inputs of an operator are read */

#define TIME_LIMIT_US 1e18 /* 30,000 years; times since 1970 are 2e15 */

struct event_names {
    struct arena *arena;
    const char **texts;
    size_t count, capacity;
    uint32_t *row_of_slot; /* 0: free; else 1 + row */
    size_t slot_count;
};

struct reader {
    struct json_pull pull;
    struct kineto_events *events;
    struct event_names names, lanes;
    struct diag *diag;
    char name[NAME_LIMIT];    /* of the current event */
    char cpu_ids[2][64];      /* process and thread id as written */
    struct text input_shapes; /* of the current event */
};

/* The members of an event that have been read so far. */
struct event_draft {
    bool is_complete; /* "ph": "X" */
    bool is_wanted;   /* its category is one that we read */
    bool has_start, has_duration, has_name;
    uint8_t type;
    double start_us, duration_us;
    double external_id, correlation, bytes, elements, device, stream;
    bool has_stream;
    /* bytes of an element of the message, and of an element of the operator's first input */
    double element_bytes, input_element_bytes;
    int input_count;
    int dim_count_by_input[INPUTS_MAX];
    double dim_sizes[INPUTS_MAX][DIMENSIONS_MAX];

    /* ---- used only with kineto_events.reads_operator_inputs ---- */
    bool has_inputs;
    int first_input_with_shape_plus_1; /* 1 + the index, below TYPES_MAX, of the first input that has a shape; 0: none */
    uint8_t dtype_by_input[TYPES_MAX]; /* enum step_dtype */
    bool is_list[TYPES_MAX], has_shape[TYPES_MAX];
    int type_count;
};

static size_t find_name_slot(const struct event_names *names, const char *text)
{
    size_t slot =
        (size_t)digest_add(DIGEST_OF_NO_BYTES, text, strlen(text)) & (names->slot_count - 1);
    while (names->row_of_slot[slot] != 0 &&
           strcmp(names->texts[names->row_of_slot[slot] - 1], text) != 0)
        slot = (slot + 1) & (names->slot_count - 1);
    return slot;
}

static uint32_t intern_name(struct event_names *names, const char *text)
{
    if (2 * names->count >= names->slot_count) {
        free(names->row_of_slot);
        names->slot_count = names->slot_count == 0 ? 64 : 2 * names->slot_count;
        names->row_of_slot = heap_zalloc(names->slot_count, sizeof *names->row_of_slot);
        for (size_t i = 0; i < names->count; i++)
            names->row_of_slot[find_name_slot(names, names->texts[i])] = (uint32_t)i + 1;
    }
    size_t slot = find_name_slot(names, text);
    if (names->row_of_slot[slot] == 0) {
        if (names->count == names->capacity) {
            names->capacity = heap_next_capacity(names->capacity, names->count + 1);
            names->texts = heap_realloc(names->texts, names->capacity, sizeof *names->texts);
        }
        names->texts[names->count++] = arena_text(names->arena, text, strlen(text));
        names->row_of_slot[slot] = (uint32_t)names->count;
    }
    return names->row_of_slot[slot] - 1;
}

static enum status next_token(struct reader *r, enum json_token *token)
{
    return json_pull_next(&r->pull, token, r->diag);
}

static enum status report_event_fault(struct reader *r, const char *what)
{
    return diag_error(r->diag, json_pull_loc(&r->pull), STATUS_BAD_INPUT, "%s", what);
}

/* If the next value is a number, sets *value to it and *there to true; NaN and a number that is too
 * large set *there to false. Skips any other value. */
static enum status read_number(struct reader *r, double *value, bool *there)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status == STATUS_OK && token == JSON_NUMBER)
        *there = json_pull_double(&r->pull, value);
    return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
}

static void read_category(const struct json_pull *pull, struct event_draft *draft)
{
    static const struct {
        const char *name;
        enum kineto_event_type type;
    } rows[] = {
        {"cpu_op", KINETO_OPERATOR},
        {"Operator", KINETO_OPERATOR}, /* the name of this category in recordings of 2021 */
        {"user_annotation", KINETO_ANNOTATION},
        {"cuda_runtime", KINETO_CALL},
        {"cuda_driver", KINETO_CALL},
        {"Runtime", KINETO_CALL},
        {"kernel", KINETO_KERNEL},
        {"Kernel", KINETO_KERNEL},
        {"gpu_memcpy", KINETO_KERNEL},
        {"Memcpy", KINETO_KERNEL},
        {"gpu_memset", KINETO_KERNEL},
        {"Memset", KINETO_KERNEL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_pull_text_equals(pull, rows[i].name)) {
            draft->is_wanted = true;
            draft->type = (uint8_t)rows[i].type;
        }
}

static double bytes_of_type(const struct json_pull *pull)
{
    static const struct {
        const char *name;
        double bytes;
    } rows[] = {
        {"BFloat16", 2},      {"Half", 2},        {"Float", 4}, {"Double", 8},
        {"Byte", 1},          {"Char", 1},        {"Int", 4},   {"Long", 8},
        {"c10::BFloat16", 2}, {"c10::Half", 2},   {"float", 4}, {"double", 8},
        {"unsigned char", 1}, {"signed char", 1}, {"int", 4},   {"long int", 8},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_pull_text_equals(pull, rows[i].name))
            return rows[i].bytes;
    return 0;
}

/* Reads a shape or a list of shapes, from the position after its '[', and appends the shapes as text: "[1024,640]".
 * *shaped becomes true if there was one. */
static enum status read_shape_text(struct reader *r, bool *shaped, int depth)
{
    enum { DEPTH = 4 };
    enum json_token token;
    enum status status;
    const size_t before = r->input_shapes.size;
    bool numbers = false;
    while ((status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END) {
        double size;
        if (token == JSON_ARRAY && depth < DEPTH) {
            status = read_shape_text(r, shaped, depth + 1);
        } else {
            if (token == JSON_NUMBER && json_pull_double(&r->pull, &size) && size >= 0 &&
                size <= 1e15) {
                text_printf(&r->input_shapes, numbers ? ",%.0f" : "[%.0f", size);
                numbers = true;
            }
            status = json_pull_skip(&r->pull, token, r->diag);
        }
        if (status != STATUS_OK)
            return status;
    }
    if (numbers)
        text_putc(&r->input_shapes, ']');
    *shaped |= r->input_shapes.size > before;
    return status;
}

/* Reads "Input Dims" as the text of the inputs' shapes. */
static enum status read_shape_texts(struct reader *r, struct event_draft *draft)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK || token != JSON_ARRAY)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    draft->has_inputs = true;
    for (int i = 0; (status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END; i++) {
        bool shaped = false;
        status = token == JSON_ARRAY ? read_shape_text(r, &shaped, 0)
                                     : json_pull_skip(&r->pull, token, r->diag);
        if (status != STATUS_OK)
            return status;
        if (shaped && i < TYPES_MAX) {
            draft->has_shape[i] = true;
            draft->first_input_with_shape_plus_1 = draft->first_input_with_shape_plus_1 == 0
                                                       ? i + 1
                                                       : draft->first_input_with_shape_plus_1;
        }
    }
    return status;
}

static enum step_dtype dtype_of_type(const struct json_pull *pull)
{
    static const struct {
        const char *name;
        enum step_dtype dtype;
    } rows[] = {
        {"c10::BFloat16", STEP_DTYPE_BF16},
        {"c10::Half", STEP_DTYPE_F16},
        {"float", STEP_DTYPE_F32},
        {"double", STEP_DTYPE_F64},
        {"BFloat16", STEP_DTYPE_BF16},
        {"Half", STEP_DTYPE_F16},
        {"Float", STEP_DTYPE_F32},
        {"Double", STEP_DTYPE_F64},
        {"c10::Float8_e4m3fn", STEP_DTYPE_E4M3},
        {"c10::Float8_e5m2", STEP_DTYPE_E5M2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_pull_text_equals(pull, rows[i].name))
            return rows[i].dtype;
    return STEP_DTYPE_OTHER;
}

/* Reads "Input Dims": a list of shapes, one per input. Only those of the first INPUTS_MAX inputs
 * are kept; the shape of a list of tensors, which is a list of shapes, counts as unknown. */
static enum status read_shapes(struct reader *r, struct event_draft *draft)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK || token != JSON_ARRAY)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    while ((status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END) {
        int input = draft->input_count < INPUTS_MAX ? draft->input_count++ : -1;
        if (token != JSON_ARRAY || input < 0) {
            status = json_pull_skip(&r->pull, token, r->diag);
            if (status != STATUS_OK)
                return status;
            continue;
        }
        while ((status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END) {
            double size = 0;
            if (token == JSON_NUMBER && json_pull_double(&r->pull, &size) && size >= 0 &&
                size <= 1e15 && draft->dim_count_by_input[input] >= 0 &&
                draft->dim_count_by_input[input] < DIMENSIONS_MAX)
                draft->dim_sizes[input][draft->dim_count_by_input[input]++] = size;
            else
                draft->dim_count_by_input[input] =
                    -1; /* the input has no shape that we understand */
            status = json_pull_skip(&r->pull, token, r->diag);
            if (status != STATUS_OK)
                return status;
        }
        if (status != STATUS_OK)
            return status;
    }
    return status;
}

/* Reads "Input type": a list of types, one per input. Keeps the bytes of an element of the first input, and the dtypes
 * of the first TYPES_MAX inputs. */
static enum status read_types(struct reader *r, struct event_draft *draft)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    bool first = true;
    if (status != STATUS_OK || token != JSON_ARRAY)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    while ((status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END) {
        if (first && token == JSON_STRING)
            draft->input_element_bytes = bytes_of_type(&r->pull);
        first = false;
        if (token == JSON_STRING && draft->type_count < TYPES_MAX) {
            draft->dtype_by_input[draft->type_count] = (uint8_t)dtype_of_type(&r->pull);
            draft->is_list[draft->type_count] = json_pull_text_equals(&r->pull, "TensorList");
        } else if (draft->type_count < TYPES_MAX) {
            draft->dtype_by_input[draft->type_count] = STEP_DTYPE_OTHER;
        }
        draft->type_count += draft->type_count < TYPES_MAX;
        status = json_pull_skip(&r->pull, token, r->diag);
        if (status != STATUS_OK)
            return status;
    }
    return status;
}

static enum status read_arguments(struct reader *r, struct event_draft *draft)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK || token != JSON_OBJECT)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    while ((status = next_token(r, &token)) == STATUS_OK && token == JSON_KEY) {
        bool ignored;
        if (json_pull_text_equals(&r->pull, "Input Dims") ||
            json_pull_text_equals(&r->pull, "Input dims"))
            status = r->events->reads_operator_inputs ? read_shape_texts(r, draft)
                                                      : read_shapes(r, draft);
        else if (json_pull_text_equals(&r->pull, "Input type"))
            status = read_types(r, draft);
        else if (json_pull_text_equals(&r->pull, "External id") ||
                 json_pull_text_equals(&r->pull, "external id"))
            status = read_number(r, &draft->external_id, &ignored);
        else if (json_pull_text_equals(&r->pull, "correlation"))
            status = read_number(r, &draft->correlation, &ignored);
        else if (json_pull_text_equals(&r->pull, "bytes"))
            status = read_number(r, &draft->bytes, &ignored);
        else if (json_pull_text_equals(&r->pull, "In msg nelems"))
            status = read_number(r, &draft->elements, &ignored);
        else if (json_pull_text_equals(&r->pull, "device"))
            status = read_number(r, &draft->device, &ignored);
        else if (json_pull_text_equals(&r->pull, "stream"))
            status = read_number(r, &draft->stream, &draft->has_stream);
        else if (json_pull_text_equals(&r->pull, "dtype")) {
            status = next_token(r, &token);
            if (status == STATUS_OK && token == JSON_STRING)
                draft->element_bytes = bytes_of_type(&r->pull);
            if (status == STATUS_OK)
                status = json_pull_skip(&r->pull, token, r->diag);
        } else {
            status = next_token(r, &token);
            if (status == STATUS_OK)
                status = json_pull_skip(&r->pull, token, r->diag);
        }
        if (status != STATUS_OK)
            return status;
    }
    return status;
}

static enum status read_field(struct reader *r, struct event_draft *draft)
{
    if (json_pull_text_equals(&r->pull, "args"))
        return read_arguments(r, draft);
    if (json_pull_text_equals(&r->pull, "ts"))
        return read_number(r, &draft->start_us, &draft->has_start);
    if (json_pull_text_equals(&r->pull, "dur"))
        return read_number(r, &draft->duration_us, &draft->has_duration);
    static const char *const texts[] = {"ph", "cat", "name", "pid", "tid"};
    size_t field = 0;
    while (field < ARRAY_LEN(texts) && !json_pull_text_equals(&r->pull, texts[field]))
        field++;
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK)
        return status;
    if (field >= 3 && field < 5 && (token == JSON_NUMBER || token == JSON_STRING)) {
        json_unescape(r->pull.text, r->pull.size, r->cpu_ids[field - 3], sizeof r->cpu_ids[0]);
    } else if (token == JSON_STRING && field == 0) {
        draft->is_complete = json_pull_text_equals(&r->pull, "X");
    } else if (token == JSON_STRING && field == 1) {
        read_category(&r->pull, draft);
    } else if (token == JSON_STRING && field == 2) {
        json_unescape(r->pull.text, r->pull.size, r->name, sizeof r->name);
        draft->has_name = true;
    }
    return json_pull_skip(&r->pull, token, r->diag);
}

/* Returns the flops of a product of input `first`, (..., m, k), and the input after it, (..., k, n); 0 if their shapes
 * are not known or do not fit together. */
static double product_flops(const struct event_draft *draft, int first)
{
    int a = first, b = first + 1;
    if (b >= draft->input_count || draft->dim_count_by_input[a] < 2 ||
        draft->dim_count_by_input[a] != draft->dim_count_by_input[b])
        return 0;
    int last = draft->dim_count_by_input[a] - 1;
    if (draft->dim_sizes[a][last] != draft->dim_sizes[b][last - 1])
        return 0;
    double flops = 2 * draft->dim_sizes[b][last];
    for (int i = 0; i <= last; i++)
        flops *= draft->dim_sizes[a][i];
    return flops;
}

static double flops_of(const struct event_draft *draft, const char *name)
{
    double flops = 0;
    switch (operator_find_flops_form(name)) {
    case FLOPS_UNKNOWN:
        break;
    case FLOPS_PRODUCT:
        flops = product_flops(draft, 0);
        break;
    case FLOPS_ADDED_PRODUCT:
        flops = product_flops(draft, 1);
        break;
    }
    return flops < 1e60 ? flops : 0;
}

/* True for the annotations by which gloo marks its operations, on threads of its own. They count as operators; their
 * first input is the data that this rank sends. */
static bool is_gloo_annotation(const struct event_draft *draft, const char *name)
{
    return draft->type == KINETO_ANNOTATION && strncmp(name, "gloo:", 5) == 0;
}

static double input_bytes(const struct event_draft *draft)
{
    double bytes =
        draft->input_count > 0 && draft->dim_count_by_input[0] > 0 ? draft->input_element_bytes : 0;
    for (int i = 0; i < draft->dim_count_by_input[0]; i++)
        bytes *= draft->dim_sizes[0][i];
    return bytes;
}

static uint32_t lane_of_event(struct reader *r, const struct event_draft *draft)
{
    char text[160];
    if (draft->type == KINETO_KERNEL && draft->has_stream && fabs(draft->stream) < 1e9 &&
        fabs(draft->device) < 1e9) {
        struct text lane = {0};
        text_printf(&lane, "gpu%.0f.%.0f", draft->device, draft->stream);
        uint32_t id = intern_name(&r->lanes, lane.data);
        text_release(&lane);
        return id;
    }
    /* A temporary name, which no GPU's stream can have. set_lane_names() replaces it when all lanes are known. */
    size_t length = 0;
    text[length++] = draft->type == KINETO_KERNEL ? ':' : '/';
    for (int i = 0; i < 2; i++) {
        for (const char *c = r->cpu_ids[i]; *c != '\0'; c++)
            text[length++] = *c;
        text[length++] = '/';
    }
    text[length] = '\0';
    return intern_name(&r->lanes, text);
}

/* Returns the number as an identifier of the profiler, a whole number from 1 on; 0 if it is none. */
static uint64_t event_identifier_of_number(double number)
{
    return number >= 1 && number < 1e15 ? (uint64_t)number : 0;
}

static void store_inputs(struct reader *r, const struct event_draft *draft,
                         struct kineto_event *event)
{
    event->dtype = STEP_DTYPE_OTHER;
    event->input_shapes = UINT32_MAX;
    if (!draft->has_inputs || event->type != KINETO_OPERATOR)
        return;
    event->input_shapes =
        intern_name(&r->names, r->input_shapes.size > 0 ? r->input_shapes.data : "");
    if (draft->first_input_with_shape_plus_1 > 0 &&
        draft->first_input_with_shape_plus_1 <= draft->type_count)
        event->dtype = draft->dtype_by_input[draft->first_input_with_shape_plus_1 - 1];
    for (int i = 0; i < draft->type_count; i++)
        event->has_missing_shapes |= draft->is_list[i] && !draft->has_shape[i];
}

static enum status store_event(struct reader *r, const struct event_draft *draft)
{
    struct kineto_events *events = r->events;
    if (!draft->has_start || !draft->has_duration || !draft->has_name)
        return report_event_fault(r, "the event that ends here lacks 'name', 'ts' or 'dur'");
    if (fabs(draft->start_us) > TIME_LIMIT_US || draft->duration_us < 0 ||
        draft->duration_us > TIME_LIMIT_US)
        return report_event_fault(
            r, "the event that ends here has an impossible time: 'ts' and 'dur' are "
               "microseconds, at most 1e18, 'dur' from 0 on");
    if (events->event_count == UINT32_MAX - 1)
        return report_event_fault(r, "too many events: at most 4294967294");
    if (events->event_count == events->capacity) {
        events->capacity = heap_next_capacity(events->capacity, events->event_count + 1);
        events->events = heap_realloc(events->events, events->capacity, sizeof *events->events);
    }
    bool gloo = is_gloo_annotation(draft, r->name);
    double bytes = gloo                  ? input_bytes(draft)
                   : draft->elements > 0 ? draft->elements * draft->element_bytes
                                         : draft->bytes;
    events->events[events->event_count++] = (struct kineto_event){
        .type = gloo ? KINETO_OPERATOR : draft->type,
        .name = intern_name(&r->names, r->name),
        .lane = lane_of_event(r, draft),
        .start_us = draft->start_us,
        .end_us = draft->start_us + draft->duration_us,
        .external_id = event_identifier_of_number(draft->external_id),
        .correlation = event_identifier_of_number(draft->correlation),
        .flops = flops_of(draft, r->name),
        .bytes = bytes > 0 && bytes < 1e60 ? bytes : 0,
    };
    events->has_kernels |= draft->type == KINETO_KERNEL;
    if (events->reads_operator_inputs)
        store_inputs(r, draft, &events->events[events->event_count - 1]);
    return STATUS_OK;
}

static enum status read_event(struct reader *r)
{
    struct event_draft draft = {0};
    enum json_token token;
    enum status status;
    r->events->read_event_count++;
    r->cpu_ids[0][0] = r->cpu_ids[1][0] = '\0';
    r->input_shapes.size = 0;
    while ((status = next_token(r, &token)) == STATUS_OK && token == JSON_KEY)
        if ((status = read_field(r, &draft)) != STATUS_OK)
            return status;
    if (status == STATUS_OK && draft.is_complete && draft.is_wanted)
        status = store_event(r, &draft);
    return status;
}

/* Reads the events of the list, from the position after its '['. */
static enum status read_events(struct reader *r)
{
    enum json_token token;
    enum status status;
    while ((status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END) {
        if (token != JSON_OBJECT)
            return report_event_fault(r, "expected an event, which is an object {...}");
        if ((status = read_event(r)) != STATUS_OK)
            return status;
    }
    return status;
}

static enum status read_distributed(struct reader *r)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK || token != JSON_OBJECT)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    while ((status = next_token(r, &token)) == STATUS_OK && token == JSON_KEY) {
        double value = 0;
        bool is_rank = json_pull_text_equals(&r->pull, "rank");
        bool is_size = json_pull_text_equals(&r->pull, "world_size");
        bool there = false;
        if ((status = read_number(r, &value, &there)) != STATUS_OK)
            return status;
        if (there && value >= 0 && value < 1e9 && (is_rank || is_size))
            *(is_rank ? &r->events->rank : &r->events->rank_count) = (uint32_t)value;
    }
    return status;
}

/* Reads the members of a GPU, from the position after its '{'. */
static enum status read_device(struct reader *r, struct kineto_device *device)
{
    enum json_token token;
    enum status status;
    while ((status = next_token(r, &token)) == STATUS_OK && token == JSON_KEY) {
        const bool is_name = json_pull_text_equals(&r->pull, "name");
        double *number = json_pull_text_equals(&r->pull, "numSms") ? &device->multiprocessors
                         : json_pull_text_equals(&r->pull, "totalGlobalMem") ? &device->memory_bytes
                                                                             : NULL;
        if ((status = next_token(r, &token)) != STATUS_OK)
            return status;
        if (is_name && token == JSON_STRING)
            json_unescape(r->pull.text, r->pull.size, device->name, sizeof device->name);
        if (number != NULL && token == JSON_NUMBER && !json_pull_double(&r->pull, number))
            *number = 0;
        if ((status = json_pull_skip(&r->pull, token, r->diag)) != STATUS_OK)
            return status;
    }
    return status;
}

/* Reads the GPUs of the machine, of which the first is kept. */
static enum status read_devices(struct reader *r)
{
    enum json_token token;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK || token != JSON_ARRAY)
        return status == STATUS_OK ? json_pull_skip(&r->pull, token, r->diag) : status;
    for (bool first = true;
         (status = next_token(r, &token)) == STATUS_OK && token != JSON_ARRAY_END; first = false) {
        status = first && token == JSON_OBJECT ? read_device(r, &r->events->device)
                                               : json_pull_skip(&r->pull, token, r->diag);
        if (status != STATUS_OK)
            return status;
    }
    return status;
}

static enum status read_document(struct reader *r)
{
    enum json_token token;
    bool found = false;
    enum status status = next_token(r, &token);
    if (status != STATUS_OK)
        return status;
    if (token == JSON_ARRAY) {
        found = true;
        status = read_events(r);
    } else if (token == JSON_OBJECT) {
        while ((status = next_token(r, &token)) == STATUS_OK && token == JSON_KEY) {
            bool is_list = json_pull_text_equals(&r->pull, "traceEvents");
            if (json_pull_text_equals(&r->pull, "distributedInfo")) {
                status = read_distributed(r);
            } else if (json_pull_text_equals(&r->pull, "deviceProperties")) {
                status = read_devices(r);
            } else if ((status = next_token(r, &token)) == STATUS_OK) {
                found |= is_list && token == JSON_ARRAY;
                status = is_list && token == JSON_ARRAY ? read_events(r)
                                                        : json_pull_skip(&r->pull, token, r->diag);
            }
            if (status != STATUS_OK)
                return status;
        }
    }
    if (status == STATUS_OK)
        status = next_token(r, &token); /* nothing may follow the list or object */
    if (status == STATUS_OK && !found)
        return diag_error(r->diag, (struct loc){.name = r->pull.name}, STATUS_BAD_INPUT,
                          "no list 'traceEvents': not a recording of the PyTorch profiler");
    return status;
}

static int compare_events(const void *left, const void *right)
{
    const struct kineto_event *a = left, *b = right;
    if (a->lane != b->lane)
        return a->lane < b->lane ? -1 : 1;
    if (a->start_us != b->start_us)
        return a->start_us < b->start_us ? -1 : 1;
    if (a->end_us != b->end_us)
        return a->end_us > b->end_us ? -1 : 1;
    if (a->type != b->type) /* an annotation encloses the operators that start with it */
        return a->type > b->type ? -1 : 1;
    /* an operator that encloses another has the lower identifier, since identifiers are given when operators begin */
    if (a->external_id != b->external_id)
        return a->external_id < b->external_id ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static void set_lane_names(struct reader *r)
{
    size_t threads = 0, others = 0;
    for (size_t i = 0; i < r->lanes.count; i++) {
        if (r->lanes.texts[i][0] == '/')
            r->lanes.texts[i] = arena_printf(&r->events->arena, "cpu.%zu", ++threads);
        else if (r->lanes.texts[i][0] == ':')
            r->lanes.texts[i] = arena_printf(&r->events->arena, "gpu.%zu", ++others);
    }
}

enum status kineto_events_read(struct kineto_events *events, const char *name, const char *data,
                               size_t size, struct diag *diag)
{
    struct reader r = {.events = events, .diag = diag};
    r.names.arena = r.lanes.arena = &events->arena;
    json_pull_init(&r.pull, JSON_PROFILER, name, data, size);
    enum status status = read_document(&r);
    set_lane_names(&r);
    free(r.names.row_of_slot);
    free(r.lanes.row_of_slot);
    text_release(&r.input_shapes);
    events->name = r.names.texts;
    events->name_count = r.names.count;
    events->lane = r.lanes.texts;
    events->lane_count = r.lanes.count;
    if (status != STATUS_OK || events->event_count == 0)
        return status;
    double first_us = INFINITY;
    for (size_t i = 0; i < events->event_count; i++)
        first_us = fmin(first_us, events->events[i].start_us);
    for (size_t i = 0; i < events->event_count; i++) {
        events->events[i].start_us -= first_us;
        events->events[i].end_us -= first_us;
    }
    qsort(events->events, events->event_count, sizeof *events->events, compare_events);
    return STATUS_OK;
}

void kineto_events_release(struct kineto_events *events)
{
    free(events->events);
    free(events->name);
    free(events->lane);
    arena_release(&events->arena);
    *events = (struct kineto_events){0};
}
