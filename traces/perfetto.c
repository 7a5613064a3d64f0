#include "traces/perfetto.h"

#include "base/json_write.h"
#include "traces/row_order.h"
#include "traces/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---- */

/* Appends nanoseconds as microseconds. */
static void append_microseconds(struct text *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        text_putc(out, '-');
    text_put_i64(out, (int64_t)(size / 1000));
    char fraction[4] = {'.', (char)('0' + size / 100 % 10), (char)('0' + size / 10 % 10),
                        (char)('0' + size % 10)};
    text_append(out, fraction, sizeof fraction);
}

/* ---- the writer ---- */

enum { FIRST_THREAD = 1 }; /* viewers treat thread 0 as the idle one */

struct perfetto_writer {
    const struct trace *trace;
    struct text *out;
    struct text *escaped_labels; /* the labels, escaped */
    uint32_t *thread_by_label;   /* [labels] the thread that stands for the stream of that name */
    bool has_event;              /* an event has been written */
    const char *name;
    struct diag *diag;
};

static enum status convert_to_ns(const struct perfetto_writer *writer, double time_s, int64_t *ns)
{
    /* the limit keeps a difference of two times within 63 bits of nanoseconds */
    if (fabs(time_s) <= 4e9) {
        *ns = (int64_t)llround(time_s * 1e9);
        return STATUS_OK;
    }
    return diag_error(writer->diag, (struct loc){.name = writer->name}, STATUS_BAD_INPUT,
                      "a Perfetto trace cannot hold a time of %g s: the limit is 4e9 s", time_s);
}

/* Begins a line for the next event: ends the line before with a comma, if there is one. */
static void begin_event(struct perfetto_writer *writer)
{
    text_flush_to_file_if_long(writer->out);
    text_puts(writer->out, writer->has_event ? ",\n" : "\n");
    writer->has_event = true;
}

static void put_metadata(struct perfetto_writer *writer, const char *what, uint32_t rank,
                         uint32_t thread)
{
    begin_event(writer);
    text_printf(writer->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":", what,
                (unsigned)rank, (unsigned)thread);
}

static void put_process(struct perfetto_writer *writer, uint32_t rank)
{
    put_metadata(writer, "process_name", rank, 0);
    text_printf(writer->out, "{\"name\":\"rank %u\"}}", (unsigned)rank);
    put_metadata(writer, "process_sort_index", rank, 0);
    text_printf(writer->out, "{\"sort_index\":%u}}", (unsigned)rank);
}

static void put_thread(struct perfetto_writer *writer, uint32_t rank, uint16_t stream)
{
    uint32_t thread = writer->thread_by_label[stream];
    put_metadata(writer, "thread_name", rank, thread);
    text_printf(writer->out, "{\"name\":\"%s\"}}", writer->escaped_labels[stream].data);
    put_metadata(writer, "thread_sort_index", rank, thread);
    text_printf(writer->out, "{\"sort_index\":%u}}", (unsigned)thread);
}

/* Gives each stream a thread, numbered by the stream's role and then by its label. So the tracks of all ranks are in
 * the same order. */
static void number_threads(struct perfetto_writer *writer)
{
    const struct trace *trace = writer->trace;
    uint32_t next = FIRST_THREAD;
    for (size_t i = 0; i < trace->ops.count; i++)
        writer->thread_by_label[trace->ops.stream[i]] = 1;
    for (int role = 0; role < ROLE_COUNT; role++)
        for (size_t label = 0; label < trace->label_count; label++)
            if (writer->thread_by_label[label] &&
                stream_role_of(trace->labels[label]) == (enum stream_role)role)
                writer->thread_by_label[label] = next++;
}

static void put_json_argument_key(struct text *out, const char *key, bool *any)
{
    text_puts(out, *any ? ",\"" : "\"");
    text_puts(out, key);
    text_puts(out, "\":");
    *any = true;
}

static void put_args(struct perfetto_writer *writer, size_t row)
{
    const struct trace_ops *ops = &writer->trace->ops;
    const struct {
        const char *key;
        int64_t value;
    } ids[] = {{"op", ops->op[row]},
               {"layer", ops->layer[row]},
               {"chunk", ops->chunk[row]},
               {"step", ops->step[row]},
               {"micro", ops->micro[row]}};
    const struct {
        const char *key;
        uint16_t label;
    } texts[] = {{"phase", ops->phase[row]}, {"region", ops->region[row]}};
    const struct {
        const char *key;
        double value;
    } amounts[] = {{"bytes", ops->bytes[row]}, {"flops", ops->flops[row]}};
    struct text *out = writer->out;
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (ids[i].value >= 0) {
            put_json_argument_key(out, ids[i].key, &any);
            text_put_i64(out, ids[i].value);
        }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (writer->escaped_labels[texts[i].label].size > 0) {
            put_json_argument_key(out, texts[i].key, &any);
            text_putc(out, '"');
            text_append(out, writer->escaped_labels[texts[i].label].data,
                        writer->escaped_labels[texts[i].label].size);
            text_putc(out, '"');
        }
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        if (amounts[i].value != 0) {
            assert(isfinite(amounts[i].value));
            put_json_argument_key(out, amounts[i].key, &any);
            text_put_double(out, amounts[i].value);
        }
}

static enum status put_op(struct perfetto_writer *writer, size_t row)
{
    const struct trace_ops *ops = &writer->trace->ops;
    struct text *out = writer->out;
    int64_t start_ns = 0, end_ns = 0;
    enum status status = convert_to_ns(writer, ops->start_s[row], &start_ns);
    if (status == STATUS_OK)
        status = convert_to_ns(writer, ops->end_s[row], &end_ns);
    if (status != STATUS_OK)
        return status;
    begin_event(writer);
    text_puts(out, "{\"ph\":\"X\",\"name\":\"");
    text_append(out, writer->escaped_labels[ops->kind[row]].data,
                writer->escaped_labels[ops->kind[row]].size);
    text_puts(out, "\",\"pid\":");
    text_put_i64(out, ops->rank[row]);
    text_puts(out, ",\"tid\":");
    text_put_i64(out, writer->thread_by_label[ops->stream[row]]);
    text_puts(out, ",\"ts\":");
    append_microseconds(out, start_ns);
    text_puts(out, ",\"dur\":");
    append_microseconds(out, end_ns - start_ns);
    text_puts(out, ",\"args\":{");
    put_args(writer, row);
    text_puts(out, "}}");
    return STATUS_OK;
}

static enum status put_ops(struct perfetto_writer *writer, const struct row_order *order)
{
    const struct trace_ops *ops = &writer->trace->ops;
    enum status status = STATUS_OK;
    for (size_t begin = 0, end; begin < order->row_count && status == STATUS_OK; begin = end) {
        end = row_order_end_of_equal_keys(order, begin);
        size_t first = order->rows[begin];
        put_thread(writer, ops->rank[first], ops->stream[first]);
        for (size_t i = begin; i < end && status == STATUS_OK; i++)
            status = put_op(writer, order->rows[i]);
    }
    return status;
}

/* Appends a counter event for a category of a memory; category NULL: for the sum over the memory's categories. */
static void put_memory_counter(struct perfetto_writer *writer, size_t row, int64_t ns,
                               const struct text *category, double bytes)
{
    const struct trace_memory *memory = &writer->trace->memory;
    struct text *out = writer->out;
    assert(isfinite(bytes));
    begin_event(writer);
    text_puts(out, "{\"ph\":\"C\",\"name\":\"");
    text_append(out, writer->escaped_labels[memory->memory[row]].data,
                writer->escaped_labels[memory->memory[row]].size);
    text_putc(out, ' ');
    if (category)
        text_append(out, category->data, category->size);
    else
        text_puts(out, "(all)");
    text_puts(out, "\",\"pid\":");
    text_put_i64(out, memory->rank[row]);
    text_puts(out, ",\"tid\":0,\"ts\":");
    append_microseconds(out, ns);
    text_puts(out, ",\"args\":{\"bytes\":");
    text_put_double(out, bytes);
    text_puts(out, "}}");
}

/* Appends the counters of one memory of one rank. row[0..count): the rows of the memory, in order of time. live[label]:
 * room for the live bytes of each category; all of it is 0 before the call and after it. */
static enum status put_memory(struct perfetto_writer *writer, const uint32_t *row, size_t count,
                              double *live)
{
    const struct trace_memory *memory = &writer->trace->memory;
    enum status status = STATUS_OK;
    double sum = 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        uint16_t category = memory->category[row[i]];
        int64_t ns = 0;
        status = convert_to_ns(writer, memory->time_s[row[i]], &ns);
        if (status != STATUS_OK)
            break;
        sum += memory->bytes[row[i]] - live[category];
        live[category] = memory->bytes[row[i]];
        put_memory_counter(writer, row[i], ns, &writer->escaped_labels[category], live[category]);
        /* The sum is written once for all rows of an instant: a viewer shows only the last value anyway. */
        if (i + 1 == count || memory->time_s[row[i + 1]] != memory->time_s[row[i]])
            put_memory_counter(writer, row[i], ns, NULL, sum);
    }
    for (size_t i = 0; i < count; i++)
        live[memory->category[row[i]]] = 0;
    return status;
}

static enum status put_memories(struct perfetto_writer *writer, const struct row_order *order)
{
    double *live = heap_zalloc(writer->trace->label_count + 1, sizeof *live);
    enum status status = STATUS_OK;
    for (size_t begin = 0, end; begin < order->row_count && status == STATUS_OK; begin = end) {
        end = row_order_end_of_equal_keys(order, begin);
        status = put_memory(writer, order->rows + begin, end - begin, live);
    }
    free(live);
    return status;
}

/* Writes the name and the sort index of the process of every rank that has ops or memory rows. a: the order of the op
 * rows, b: that of the memory rows; both ascend by rank. */
static void put_processes(struct perfetto_writer *writer, const struct row_order *a,
                          const struct row_order *b)
{
    for (size_t i = 0, j = 0; i < a->row_count || j < b->row_count;) {
        uint64_t x = i < a->row_count ? a->keys[i] >> 16 : UINT64_MAX;
        uint64_t y = j < b->row_count ? b->keys[j] >> 16 : UINT64_MAX;
        uint64_t rank = x < y ? x : y;
        put_process(writer, (uint32_t)rank);
        while (i < a->row_count && a->keys[i] >> 16 == rank)
            i++;
        while (j < b->row_count && b->keys[j] >> 16 == rank)
            j++;
    }
}

static void put_header(struct perfetto_writer *writer)
{
    const struct trace *trace = writer->trace;
    text_puts(writer->out, "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{");
    for (size_t i = 0; i < trace->header_count; i++) {
        text_puts(writer->out, i > 0 ? ",\n\"" : "\n\"");
        json_put_escaped(writer->out, trace->header_keys[i].key);
        text_puts(writer->out, "\":\"");
        json_put_escaped(writer->out, trace->header_keys[i].value);
        text_putc(writer->out, '"');
    }
    text_puts(writer->out, "},\n\"traceEvents\":[");
}

enum status perfetto_print(const struct trace *trace, struct text *out, const char *name,
                           struct diag *diag)
{
    struct perfetto_writer writer = {.trace = trace, .out = out, .name = name, .diag = diag};
    writer.escaped_labels = heap_zalloc(trace->label_count + 1, sizeof *writer.escaped_labels);
    writer.thread_by_label = heap_zalloc(trace->label_count + 1, sizeof *writer.thread_by_label);
    for (size_t i = 0; i < trace->label_count; i++) {
        text_puts(&writer.escaped_labels[i], "");
        json_put_escaped(&writer.escaped_labels[i], trace->labels[i]);
    }
    number_threads(&writer);
    put_header(&writer);
    struct row_order ops, memory;
    row_order_init(&ops, trace->ops.count, trace->ops.rank, trace->ops.stream, trace->ops.start_s);
    row_order_init(&memory, trace->memory.count, trace->memory.rank, trace->memory.memory,
                   trace->memory.time_s);
    put_processes(&writer, &ops, &memory);
    enum status status = put_ops(&writer, &ops);
    if (status == STATUS_OK)
        status = put_memories(&writer, &memory);
    row_order_release(&ops);
    row_order_release(&memory);
    text_puts(out, "\n]}\n");
    for (size_t i = 0; i < trace->label_count; i++)
        text_release(&writer.escaped_labels[i]);
    free(writer.escaped_labels);
    free(writer.thread_by_label);
    return status;
}
