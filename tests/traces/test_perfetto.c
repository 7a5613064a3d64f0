/* tests/traces/test_perfetto.c: a trace is written as events that Perfetto shows, with its tracks and memory. */
#include "base/json.h"
#include "base/text.h"
#include "tests/check.h"
#include "traces/perfetto.h"

#include <float.h>
#include <string.h>

struct fixture {
    struct trace trace;
    struct text text;
    struct diag diag;
    struct json json;
    struct json_node root, events;
};

static void fixture_release(struct fixture *f)
{
    json_release(&f->json);
    trace_release(&f->trace);
    text_release(&f->text);
    diag_release(&f->diag);
}

static size_t add_op(struct trace *trace, uint32_t rank, const char *stream, const char *kind,
                     double start_s, double end_s)
{
    size_t row = trace_add_op(trace);
    struct trace_ops *ops = &trace->ops;
    ops->rank[row] = rank;
    ops->op[row] = (uint32_t)row;
    ops->stream[row] = trace_intern_label(trace, stream);
    ops->kind[row] = trace_intern_label(trace, kind);
    ops->start_s[row] = start_s;
    ops->end_s[row] = end_s;
    ops->layer[row] = ops->chunk[row] = ops->step[row] = -1;
    return row;
}

static void add_change(struct trace *trace, double time_s, uint32_t rank, const char *category,
                       double bytes)
{
    size_t row = trace_add_memory(trace);
    trace->memory.time_s[row] = time_s;
    trace->memory.rank[row] = rank;
    trace->memory.memory[row] = trace_intern_label(trace, "hbm");
    trace->memory.category[row] = trace_intern_label(trace, category);
    trace->memory.bytes[row] = bytes;
}

/* Prints the trace and reads it back with the strict JSON reader. Returns false, with a failed check, if it
 * cannot be read. */
static bool print_and_reparse_trace(struct fixture *f)
{
    CHECK_INT("print", perfetto_print(&f->trace, &f->text, "t.json", &f->diag), STATUS_OK);
    CHECK_TEXT("messages", f->diag.text, "");
    if (!CHECK_INT("strictly", json_parse(&f->json, "t.json", f->text.data, f->text.size, &f->diag),
                   STATUS_OK))
        return false;
    f->root = json_root(&f->json);
    return CHECK_INT("events", json_get_array(f->root, "traceEvents", &f->events, &f->diag),
                     STATUS_OK);
}

static const char *get_text(struct json_node object, const char *key)
{
    const char *text = NULL;
    json_get_string(object, key, &text, NULL);
    return text;
}

static double get_number(struct json_node object, const char *key)
{
    double value = -1;
    json_get_double(object, key, -DBL_MAX, DBL_MAX, &value, NULL);
    return value;
}

static struct json_node args(struct json_node event)
{
    return json_find_member(event, "args");
}

/* Returns the n-th event of a phase ("X", "M", "C") and rank with that name (NULL: any); a node without a value
 * if there is none. */
static struct json_node find_event(const struct fixture *f, const char *phase, double rank,
                                   const char *name, size_t n)
{
    for (size_t i = 0; i < json_element_count(f->events); i++) {
        struct json_node event = json_element_at(f->events, i);
        if (strcmp(get_text(event, "ph"), phase) == 0 && get_number(event, "pid") == rank &&
            (!name || strcmp(get_text(event, "name"), name) == 0) && n-- == 0)
            return event;
    }
    return (struct json_node){.document = f->events.document, .path = ""};
}

static size_t count_events(const struct fixture *f, const char *phase)
{
    size_t sum = 0;
    for (size_t i = 0; i < json_element_count(f->events); i++)
        sum += strcmp(get_text(json_element_at(f->events, i), "ph"), phase) == 0;
    return sum;
}

static void an_op_is_a_complete_event_in_microseconds(void)
{
    struct fixture f = {0};
    trace_set_key(&f.trace, "model", "llama3-8b");
    size_t row = add_op(&f.trace, 5, "compute", "attention", 1.5e-3, 2.25e-3);
    f.trace.ops.op[row] = 42;
    f.trace.ops.layer[row] = 3;
    f.trace.ops.chunk[row] = 0;
    f.trace.ops.phase[row] = trace_intern_label(&f.trace, "forward");
    f.trace.ops.bytes[row] = 1024;
    f.trace.ops.flops[row] = 2.5e15;
    if (print_and_reparse_trace(&f)) {
        struct json_node event = find_event(&f, "X", 5, "attention", 0);
        if (CHECK("event", event.value != NULL)) {
            CHECK_CLOSE("start", get_number(event, "ts"), 1500, 0);
            CHECK_CLOSE("duration", get_number(event, "dur"), 750, 0);
            CHECK_CLOSE("op", get_number(args(event), "op"), 42, 0);
            CHECK_CLOSE("layer", get_number(args(event), "layer"), 3, 0);
            CHECK_CLOSE("chunk", get_number(args(event), "chunk"), 0, 0);
            CHECK_TEXT("phase", get_text(args(event), "phase"), "forward");
            CHECK_CLOSE("bytes", get_number(args(event), "bytes"), 1024, 0);
            CHECK_CLOSE("flops", get_number(args(event), "flops"), 2.5e15, 0);
            CHECK("no step, no argument", get_text(args(event), "step") == NULL);
            CHECK("no region, no argument", get_text(args(event), "region") == NULL);
        }
        CHECK_TEXT("model", get_text(json_find_member(f.root, "otherData"), "model"), "llama3-8b");
    }
    fixture_release(&f);
}

static void tracks_are_named_once_and_stand_in_order(void)
{
    struct fixture f = {0};
    for (uint32_t rank = 2; rank-- > 0;) {
        add_op(&f.trace, rank, "d2h", "d2h", 0, 1);
        add_op(&f.trace, rank, "comm.hp", "all_to_all", 0, 1);
        add_op(&f.trace, rank, "compute", "matmul", 0, 1);
        add_op(&f.trace, rank, "compute", "matmul", 1, 2);
    }
    add_change(&f.trace, 0, 9, "kv", 1); /* a rank without ops */
    if (print_and_reparse_trace(&f)) {
        static const char *const streams[] = {"compute", "comm.hp", "d2h"};
        double thread[3] = {0};
        for (size_t n = 0; n < 3; n++) {
            struct json_node event = find_event(&f, "M", 1, "thread_name", n);
            for (size_t s = 0; s < 3 && event.value; s++)
                if (strcmp(get_text(args(event), "name"), streams[s]) == 0)
                    thread[s] = get_number(event, "tid");
        }
        CHECK("compute, communication, copies",
              0 < thread[0] && thread[0] < thread[1] && thread[1] < thread[2]);
        CHECK("named once", find_event(&f, "M", 1, "thread_name", 3).value == NULL);
        struct json_node process = find_event(&f, "M", 1, "process_name", 0);
        CHECK_TEXT("rank", get_text(args(process), "name"), "rank 1");
        CHECK("named once", find_event(&f, "M", 1, "process_name", 1).value == NULL);
        CHECK("a rank of memory rows alone",
              find_event(&f, "M", 9, "process_name", 0).value != NULL);
        CHECK_CLOSE("the op is on its stream's track",
                    get_number(find_event(&f, "X", 0, "all_to_all", 0), "tid"), thread[1], 0);
        CHECK_INT("ops", (int64_t)count_events(&f, "X"), 8);
    }
    fixture_release(&f);
}

static void memory_is_counted_by_category_and_as_a_whole(void)
{
    struct fixture f = {0};
    add_change(&f.trace, 2, 0, "activation", 5); /* not in order of time */
    add_change(&f.trace, 0, 0, "parameter", 100);
    add_change(&f.trace, 0, 0, "activation", 7);
    add_change(&f.trace, 0, 1, "parameter", 3);
    if (print_and_reparse_trace(&f)) {
        static const struct {
            const char *name;
            size_t n;
            double us, bytes;
        } want[] = {
            {"hbm parameter", 0, 0, 100},  {"hbm activation", 0, 0, 7},
            {"hbm activation", 1, 2e6, 5}, {"hbm (all)", 0, 0, 107},
            {"hbm (all)", 1, 2e6, 105},
        };
        for (size_t i = 0; i < ARRAY_LEN(want); i++) {
            struct json_node event = find_event(&f, "C", 0, want[i].name, want[i].n);
            if (CHECK(want[i].name, event.value != NULL)) {
                CHECK_CLOSE(want[i].name, get_number(event, "ts"), want[i].us, 0);
                CHECK_CLOSE(want[i].name, get_number(args(event), "bytes"), want[i].bytes, 0);
            }
        }
        CHECK("an instant has one sum", find_event(&f, "C", 0, "hbm (all)", 2).value == NULL);
        CHECK("ranks apart", find_event(&f, "C", 1, "hbm (all)", 0).value != NULL);
    }
    fixture_release(&f);
}

/* Ops without a gap must not overlap after rounding, since viewers drop an event that overlaps the one before
 * it on its track. */
static void ops_without_a_gap_do_not_overlap_after_rounding(void)
{
    struct fixture f = {0};
    struct check_random random = check_random_make();
    double at = -1e-6;
    for (int i = 0; i < 200; i++) {
        double next = at + check_random_double(&random) * 1e-7;
        add_op(&f.trace, 0, "compute", "add", at, next);
        at = next;
    }
    if (print_and_reparse_trace(&f)) {
        int64_t end_ns = 0;
        for (size_t i = 0; i < 200; i++) {
            struct json_node event = find_event(&f, "X", 0, NULL, i);
            double start = get_number(event, "ts") * 1000, size = get_number(event, "dur") * 1000;
            int64_t start_ns = (int64_t)(start < 0 ? start - 0.5 : start + 0.5);
            CHECK("starts where the one before ended", i == 0 || start_ns == end_ns);
            end_ns = start_ns + (int64_t)(size + 0.5);
        }
    }
    fixture_release(&f);
}

static void any_text_is_escaped(void)
{
    static const struct {
        const char *text, *read;
    } texts[] = {
        {"a\"b\\c\n\t\x01\x7f", "a\"b\\c\n\t\x01\x7f"},
        {"\xc3\xa9 \xf0\x9f\x98\x80", "\xc3\xa9 \xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct fixture f = {0};
        trace_set_key(&f.trace, "text", texts[i].text);
        add_op(&f.trace, 0, texts[i].text, texts[i].text, 0, 1);
        add_change(&f.trace, 0, 0, texts[i].text, 1);
        if (print_and_reparse_trace(&f)) {
            struct json_node thread = find_event(&f, "M", 0, "thread_name", 0);
            CHECK_TEXT("kind", get_text(find_event(&f, "X", 0, NULL, 0), "name"), texts[i].read);
            CHECK_TEXT("stream", get_text(args(thread), "name"), texts[i].read);
            CHECK_TEXT("header", get_text(json_find_member(f.root, "otherData"), "text"),
                       texts[i].read);
        }
        fixture_release(&f);
    }
}

static void an_empty_trace_is_valid_and_a_time_too_large_is_not(void)
{
    struct fixture f = {0};
    CHECK("no events", print_and_reparse_trace(&f) && json_element_count(f.events) == 0);
    fixture_release(&f);
    f = (struct fixture){0};
    add_op(&f.trace, 0, "compute", "add", 0, 1e11);
    CHECK_INT("time", perfetto_print(&f.trace, &f.text, "t.json", &f.diag), STATUS_BAD_INPUT);
    CHECK_TEXT(
        "message", f.diag.text,
        "t.json: error: a Perfetto trace cannot hold a time of 1e+11 s: the limit is 4e9 s\n");
    fixture_release(&f);
}

static const struct check_case cases[] = {
    {"an op is a complete event in microseconds", an_op_is_a_complete_event_in_microseconds},
    {"tracks are named once and stand in order", tracks_are_named_once_and_stand_in_order},
    {"memory is counted by category and as a whole", memory_is_counted_by_category_and_as_a_whole},
    {"ops without a gap do not overlap after rounding",
     ops_without_a_gap_do_not_overlap_after_rounding},
    {"any text is escaped", any_text_is_escaped},
    {"an empty trace is valid and a time too large is not",
     an_empty_trace_is_valid_and_a_time_too_large_is_not},
};
CHECK_MAIN("perfetto", cases)
