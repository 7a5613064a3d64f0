/* cli/figure/trace.c: the figure of a trace that shows what each stream does over time. */
#include "cli/figure/figure.h"

#include "cli/figure/lane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 32 };

/* The colours of boxes. Similar kinds of work have the same colour. */
enum colour {
    COLOUR_ATTENTION = 1,
    COLOUR_MATMUL,
    COLOUR_OTHER_COMPUTE,
    COLOUR_OPTIMIZER,
    COLOUR_EXCHANGE,
    COLOUR_EXCHANGE_OF_WEIGHTS,
    COLOUR_COPY,
    COLOUR_WAIT,
    COLOUR_COUNT,
};
static const char *const colour_names[COLOUR_COUNT] = {
    [COLOUR_ATTENTION] = "attention",
    [COLOUR_MATMUL] = "matmul",
    [COLOUR_OTHER_COMPUTE] = "other compute",
    [COLOUR_OPTIMIZER] = "optimizer",
    [COLOUR_EXCHANGE] = "activations exchanged",
    [COLOUR_EXCHANGE_OF_WEIGHTS] = "weights exchanged",
    [COLOUR_COPY] = "copies",
    [COLOUR_WAIT] = "waiting",
};

struct colour_by_name {
    const char *name;
    enum colour colour;
};

static const struct colour_by_name kinds[] = {
    {"attention", COLOUR_ATTENTION},
    {"attention_backward", COLOUR_ATTENTION},
    {"matmul", COLOUR_MATMUL},
    {"d2h", COLOUR_COPY},
    {"h2d", COLOUR_COPY},
    {"host_sync", COLOUR_WAIT},
    {"barrier", COLOUR_WAIT},
    {"all_to_all", COLOUR_EXCHANGE},
    {"shift", COLOUR_EXCHANGE},
    {"send", COLOUR_EXCHANGE},
    {"recv", COLOUR_EXCHANGE},
    {"all_gather", COLOUR_EXCHANGE},
    {"all_reduce", COLOUR_EXCHANGE},
    {"reduce_scatter", COLOUR_EXCHANGE},
    {"reduce", COLOUR_EXCHANGE},
    {"broadcast", COLOUR_EXCHANGE},
    {"scatter", COLOUR_EXCHANGE},
};

/* The colours of kernel classes. In a profiler's recording, the kind of a row is the name of its kernel or operator,
 * and its region is the kernel's class (traces/kernel_class.h). */
static const struct colour_by_name classes[] = {
    {"attention", COLOUR_ATTENTION},    {"matmul", COLOUR_MATMUL},
    {"optimizer", COLOUR_OPTIMIZER},    {"copy", COLOUR_COPY},
    {"communication", COLOUR_EXCHANGE},
};

static enum colour find_colour(const struct colour_by_name *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].colour;
    return COLOUR_OTHER_COMPUTE;
}

static enum colour row_colour(const char *kind, const char *phase, const char *region)
{
    enum colour colour = find_colour(kinds, ARRAY_LEN(kinds), kind);
    if (colour == COLOUR_EXCHANGE && strcmp(region, "weights") == 0)
        return COLOUR_EXCHANGE_OF_WEIGHTS;
    if (colour != COLOUR_OTHER_COMPUTE)
        return colour;
    return strcmp(phase, "optimizer") == 0 ? COLOUR_OPTIMIZER
                                           : find_colour(classes, ARRAY_LEN(classes), region);
}

/* Returns the name of a stream of a schedule in words; the name itself if it is not listed. */
static const char *lane_name(const char *stream)
{
    static const struct {
        const char *stream, *name;
    } names[] = {
        {"comm.hp", "all-to-all (hp)"},
        {"comm.tp", "tensor parallel (tp)"},
        {"comm.cp", "ring (cp)"},
        {"comm.cp_in", "inner ring (cp)"},
        {"comm.dkv", "ring of gradients (cp)"},
        {"comm.dkv_in", "inner ring of gradients (cp)"},
        {"comm.ep", "experts"},
        {"comm.gather", "all-gather of weights"},
        {"comm.reduce", "reduce-scatter of gradients"},
        {"comm.fetch", "scatter of fetched chunks"},
        {"comm.send", "send (pp)"},
        {"comm.recv", "receive (pp)"},
        {"comm.send_up", "send up (pp)"},
        {"comm.recv_up", "receive up (pp)"},
        {"comm.send_back", "send back (pp)"},
        {"comm.recv_back", "receive back (pp)"},
        {"comm.send_back_up", "send back up (pp)"},
        {"comm.recv_back_up", "receive back up (pp)"},
        {"comm.stages", "weights of other stages (pp)"},
        {"comm.keys_out", "send keys (pp)"},
        {"comm.keys_in", "receive keys (pp)"},
        {"comm.keys_back", "gradients of keys (pp)"},
        {"d2h", "copies to the host"},
        {"h2d", "copies from the host"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].stream, stream) == 0)
            return names[i].name;
    return stream;
}

/* Fills lane[0..LANES_MAX) with the labels of the rank's streams, first `compute`, then the others in the order of the
 * trace, as many as there is room for, and returns their number. */
static size_t find_lanes(const struct trace *trace, uint32_t rank, uint16_t *lane)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->ops.count; i++) {
        size_t k = 0;
        if (trace->ops.rank[i] != rank)
            continue;
        while (k < count && lane[k] != trace->ops.stream[i])
            k++;
        if (k == count && count < LANES_MAX)
            lane[count++] = trace->ops.stream[i];
    }
    for (size_t k = 0; k < count; k++)
        if (strcmp(trace->labels[lane[k]], "compute") == 0) {
            uint16_t compute = lane[k];
            memmove(&lane[1], &lane[0], k * sizeof *lane);
            lane[0] = compute;
        }
    return count;
}

static enum status report_no_rows(const struct figure_options *wanted, const char *what,
                                  struct diag *diag)
{
    return diag_error(
        diag, (struct loc){.name = "--rank"}, STATUS_BAD_INPUT,
        "the trace has no %s of rank %ld: of ranks with equal simulations, it holds only one", what,
        wanted->rank);
}

/* ---- when a message begins to move ---- */

/* A message, or the row of one of its ranks. In a predicted trace the rows of all its ranks end at the same time and
 * have the same bytes, by which they are recognised. */
struct message_times {
    double end_s, bytes, start_s;
    enum { MESSAGE_OF_TWO, MESSAGE_OF_GROUP } kind;
};

static int compare_messages(const void *left, const void *right)
{
    const struct message_times *a = left, *b = right;
    if (a->end_s != b->end_s)
        return a->end_s < b->end_s ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool is_message(const struct trace *trace, size_t row)
{
    const enum colour colour =
        find_colour(kinds, ARRAY_LEN(kinds), trace->labels[trace->ops.kind[row]]);
    return colour == COLOUR_EXCHANGE && trace->ops.bytes[row] > 0;
}

static struct message_times message_times_of_row(const struct trace *trace, size_t row)
{
    const char *kind = trace->labels[trace->ops.kind[row]];
    const bool two = strcmp(kind, "send") == 0 || strcmp(kind, "recv") == 0;
    return (struct message_times){trace->ops.end_s[row], trace->ops.bytes[row],
                                  trace->ops.start_s[row], two ? MESSAGE_OF_TWO : MESSAGE_OF_GROUP};
}

/* Returns an array on the heap with an element for each message, in the order of compare_messages(), and sets *count to
 * their number. `start_s` of a message is the latest start of its rows, for which its other ranks wait. */
static struct message_times *find_messages(const struct trace *trace, size_t *count)
{
    struct message_times *message = heap_alloc(trace->ops.count + 1, sizeof *message);
    size_t rows = 0;
    for (size_t i = 0; i < trace->ops.count; i++)
        if (is_message(trace, i))
            message[rows++] = message_times_of_row(trace, i);
    if (rows > 0)
        qsort(message, rows, sizeof *message, compare_messages);
    *count = 0;
    for (size_t i = 0; i < rows; i++) {
        struct message_times *last = *count > 0 ? &message[*count - 1] : NULL;
        if (last != NULL && compare_messages(last, &message[i]) == 0)
            last->start_s = fmax(last->start_s, message[i].start_s);
        else
            message[(*count)++] = message[i];
    }
    return message;
}

/* Returns when the message of a row begins to move: when the last of its ranks arrives. For a row
 * that is no message, returns its start. In a measured trace the rows of a message end at different
 * times; then each row is a message of its own, and its wait cannot be separated. */
static double message_begin_s(const struct trace *trace, size_t row,
                              const struct message_times *message, size_t count)
{
    if (!is_message(trace, row))
        return trace->ops.start_s[row];
    const struct message_times key = message_times_of_row(trace, row);
    const struct message_times *found =
        bsearch(&key, message, count, sizeof *message, compare_messages);
    return found != NULL ? found->start_s : key.start_s;
}

/* ---- the figure ---- */

enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag)
{
    uint16_t lane[LANES_MAX];
    uint32_t rank = (uint32_t)wanted->rank;
    size_t lanes = find_lanes(trace, rank, lane), count = 0;
    double end_s = 0;
    struct figure_window window;
    if (lanes == 0)
        return report_no_rows(wanted, "op", diag);
    for (size_t i = 0; i < trace->ops.count; i++)
        if (trace->ops.rank[i] == rank)
            end_s = fmax(end_s, trace->ops.end_s[i]);
    enum status status = figure_window_find(&window, trace, end_s, wanted, diag);
    if (status != STATUS_OK)
        return status;
    size_t trace_message_count;
    struct message_times *message = find_messages(trace, &trace_message_count);
    struct lane content[LANES_MAX] = {{0}};
    for (size_t i = 0; i < trace->ops.count; i++) {
        const struct trace_ops *t = &trace->ops;
        if (t->rank[i] != rank || t->end_s[i] <= window.from_s || t->start_s[i] >= window.to_s)
            continue;
        size_t k = 0;
        while (k < lanes && lane[k] != t->stream[i])
            k++;
        if (k == lanes)
            continue;
        const double moved_s = message_begin_s(trace, i, message, trace_message_count);
        lane_add_span(&content[k], &window, t->start_s[i], moved_s, COLOUR_WAIT);
        lane_add_span(&content[k], &window, moved_s, t->end_s[i],
                      (uint8_t)row_colour(trace->labels[t->kind[i]], trace->labels[t->phase[i]],
                                          trace->labels[t->region[i]]));
    }
    struct text names = {0}, shown = {0}, numbers = {0}, title = {0};
    bool found[LANE_COLOURS] = {false};
    int classes_shown = 0;
    for (size_t k = lanes; k-- > 0;) {
        if (content[k].span_count > 0) { /* lanes in which nothing takes time are left out */
            lane_put_boxes(&figure->csv, &content[k], count++, &window, found);
            figure_put_name_in_list(&names, lane_name(trace->labels[lane[k]]));
        }
        lane_release(&content[k]);
    }
    free(message);
    if (count == 0)
        status = report_no_rows(wanted, "op in that window", diag);
    for (int c = 1; c < COLOUR_COUNT; c++)
        if (found[c]) {
            classes_shown++;
            text_printf(&numbers, "%s%d", numbers.size > 0 ? " " : "", c);
            figure_put_name_in_list(&shown, colour_names[c]);
        }
    text_printf(&title, "Streams of rank %ld", wanted->rank);
    figure_put_subject(&title, trace);
    figure->script_name = "timeline";
    figure->width = 1000;
    figure->height = 130 + 42 * (int)count;
    figure->narrow_height = 90 + 44 * (int)count + 16 * classes_shown;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : title.data);
    figure_set_text(figure, "lanes", names.data);
    figure_set_text(figure, "classes", shown.data);
    figure_set_text(figure, "class_numbers", numbers.data);
    figure_window_set_script_variables(figure, &window);
    text_release(&names);
    text_release(&shown);
    text_release(&numbers);
    text_release(&title);
    return status;
}
