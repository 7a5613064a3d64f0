/* cli/figure/trace.c: the figure of a trace that shows what each stream does over time. */
#include "cli/figure/figure.h"

#include "cli/figure/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number of bins of a timeline's lane, about one for each pixel of a PNG. SEEN: a box with a smaller share of the
 * window could not be seen. */
enum { BINS = 1500 };
#define SEEN (1.0 / 600)

enum { LANES_MAX = 32 };

/* The colours of boxes. Each kind of work has one. The names below are in the same order. */
enum colour {
    COLOUR_ATTENTION = 1,
    COLOUR_MATMUL,
    COLOUR_OTHER_COMPUTE,
    COLOUR_OPTIMIZER,
    COLOUR_EXCHANGE,
    COLOUR_WEIGHTS,
    COLOUR_COPY,
    COLOUR_WAIT,
    COLOUR_COUNT,
};
static const char colour_names[] = "attention matmul other_compute optimizer activations_exchanged "
                                   "weights_exchanged copies waiting";

struct coloured {
    const char *name;
    enum colour colour;
};

static const struct coloured kinds[] = {
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
static const struct coloured classes[] = {
    {"attention", COLOUR_ATTENTION},    {"matmul", COLOUR_MATMUL},
    {"optimizer", COLOUR_OPTIMIZER},    {"copy", COLOUR_COPY},
    {"communication", COLOUR_EXCHANGE},
};

static enum colour find_colour(const struct coloured *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].colour;
    return COLOUR_OTHER_COMPUTE;
}

static enum colour colour_of(const char *kind, const char *phase, const char *region)
{
    enum colour colour = find_colour(kinds, ARRAY_LEN(kinds), kind);
    if (colour == COLOUR_EXCHANGE && strcmp(region, "weights") == 0)
        return COLOUR_WEIGHTS;
    if (colour != COLOUR_OTHER_COMPUTE)
        return colour;
    return strcmp(phase, "optimizer") == 0 ? COLOUR_OPTIMIZER
                                           : find_colour(classes, ARRAY_LEN(classes), region);
}

struct box {
    double start_s, end_s;
    enum colour colour;
};

/* One of BINS equal parts of the window on one lane: for how long each colour runs in it, and the first and last time
 * at which any op runs. */
struct bin {
    double busy_s[COLOUR_COUNT]; /* all 0: no op runs */
    double first_s, last_s;
};

/* Adds the part of start_s..end_s that is in the window to the bins of a lane. */
static void fill(struct bin *bin, const struct figure_window *window, double start_s, double end_s,
                 enum colour colour)
{
    double bin_s = (window->to_s - window->from_s) / BINS;
    start_s = fmax(start_s, window->from_s);
    end_s = fmin(end_s, window->to_s);
    for (size_t i = (size_t)((start_s - window->from_s) / bin_s); i < BINS; i++) {
        double first_s = fmax(start_s, window->from_s + (double)i * bin_s);
        double last_s = fmin(end_s, window->from_s + (double)(i + 1) * bin_s);
        if (!(first_s < end_s))
            break;
        if (!(first_s < last_s)) /* only by a rounding error does the interval begin in this bin */
            continue;
        bool idle = !(bin[i].first_s < bin[i].last_s);
        bin[i].first_s = idle ? first_s : fmin(bin[i].first_s, first_s);
        bin[i].last_s = idle ? last_s : fmax(bin[i].last_s, last_s);
        bin[i].busy_s[colour] += last_s - first_s;
    }
}

/* Finds the boxes of a lane, in the order of time and without overlaps, and returns their number. A bin has the colour
 * that fills most of it; neighbouring bins of one colour make one box. The edge of a box is exact if idle time is next
 * to it. box[] has room for BINS. */
static size_t find_boxes(struct box *box, const struct bin *bin, const struct figure_window *window)
{
    double bin_s = (window->to_s - window->from_s) / BINS;
    size_t count = 0;
    for (size_t i = 0; i < BINS; i++) {
        enum colour most = COLOUR_ATTENTION;
        for (enum colour c = most; c < COLOUR_COUNT; c++)
            if (bin[i].busy_s[c] > bin[i].busy_s[most])
                most = c;
        if (!(bin[i].busy_s[most] > 0))
            continue;
        struct box *last = count > 0 ? &box[count - 1] : NULL;
        if (last != NULL && last->colour == most && bin[i].first_s - last->end_s < bin_s)
            last->end_s = bin[i].last_s;
        else
            box[count++] = (struct box){bin[i].first_s, bin[i].last_s, most};
    }
    return count;
}

/* Widens boxes that are too narrow to be seen, but only into idle time. */
static void widen(struct box *box, size_t count, const struct figure_window *window)
{
    for (size_t i = 0; i < count; i++) {
        double room_s = i + 1 < count ? box[i + 1].start_s : window->to_s;
        double wanted_s = box[i].start_s + (window->to_s - window->from_s) * SEEN;
        box[i].end_s = fmax(box[i].end_s, fmin(wanted_s, room_s));
    }
}

/* Finds the lanes: the labels of the rank's streams, first `compute`, then the others in the order of the trace. */
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
        if (strcmp(trace->label[lane[k]], "compute") == 0) {
            uint16_t compute = lane[k];
            memmove(&lane[1], &lane[0], k * sizeof *lane);
            lane[0] = compute;
        }
    return count;
}

static enum status no_rows(const struct figure_options *wanted, const char *what, struct diag *diag)
{
    return diag_error(
        diag, (struct loc){.name = "--rank"}, STATUS_BAD_INPUT,
        "the trace has no %s of rank %ld: of ranks with equal simulations, it holds only one", what,
        wanted->rank);
}

/* ---- when a message begins to move ---- */

/* A message, or the row of one of its ranks. The rows of all ranks end at the same time and have the same bytes. */
struct message_rows {
    double end_s, bytes, start_s;
    enum { MESSAGE_OF_TWO, MESSAGE_OF_GROUP } kind;
};

static int compare_messages(const void *left, const void *right)
{
    const struct message_rows *a = left, *b = right;
    if (a->end_s != b->end_s)
        return a->end_s < b->end_s ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool is_message(const struct trace *trace, size_t row)
{
    const enum colour colour =
        find_colour(kinds, ARRAY_LEN(kinds), trace->label[trace->ops.kind[row]]);
    return colour == COLOUR_EXCHANGE && trace->ops.bytes[row] > 0;
}

static struct message_rows message_of(const struct trace *trace, size_t row)
{
    const char *kind = trace->label[trace->ops.kind[row]];
    const bool two = strcmp(kind, "send") == 0 || strcmp(kind, "recv") == 0;
    return (struct message_rows){trace->ops.end_s[row], trace->ops.bytes[row],
                                 trace->ops.start_s[row], two ? MESSAGE_OF_TWO : MESSAGE_OF_GROUP};
}

/* Returns an element for each message, on the heap, sorted for moves_s(). start_s is the start of the rank that arrives
 * last; the others wait until then. */
static struct message_rows *find_messages(const struct trace *trace, size_t *count)
{
    struct message_rows *message = heap_alloc(trace->ops.count + 1, sizeof *message);
    size_t rows = 0;
    for (size_t i = 0; i < trace->ops.count; i++)
        if (is_message(trace, i))
            message[rows++] = message_of(trace, i);
    if (rows > 0)
        qsort(message, rows, sizeof *message, compare_messages);
    *count = 0;
    for (size_t i = 0; i < rows; i++) {
        struct message_rows *last = *count > 0 ? &message[*count - 1] : NULL;
        if (last != NULL && compare_messages(last, &message[i]) == 0)
            last->start_s = fmax(last->start_s, message[i].start_s);
        else
            message[(*count)++] = message[i];
    }
    return message;
}

/* Returns when the message of a row begins to move, which is when the last of its ranks arrives. In a measured trace
 * the rows of a message end at different times, so each stands for itself, and its wait cannot be told from its
 * message. */
static double moves_s(const struct trace *trace, size_t row, const struct message_rows *message,
                      size_t count)
{
    if (!is_message(trace, row))
        return trace->ops.start_s[row];
    const struct message_rows key = message_of(trace, row);
    const struct message_rows *found =
        bsearch(&key, message, count, sizeof *message, compare_messages);
    return found != NULL ? found->start_s : key.start_s;
}

enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag)
{
    uint16_t lane[LANES_MAX];
    uint32_t rank = (uint32_t)wanted->rank;
    size_t lanes = find_lanes(trace, rank, lane), count = 0;
    double end_s = 0;
    struct figure_window window;
    if (lanes == 0)
        return no_rows(wanted, "op", diag);
    for (size_t i = 0; i < trace->ops.count; i++)
        if (trace->ops.rank[i] == rank)
            end_s = fmax(end_s, trace->ops.end_s[i]);
    enum status status = figure_window_find(&window, trace, end_s, wanted, diag);
    if (status != STATUS_OK)
        return status;
    size_t messages;
    struct message_rows *message = find_messages(trace, &messages);
    struct bin *bin = heap_zalloc(lanes * BINS, sizeof *bin);
    struct box *box = heap_alloc(BINS, sizeof *box);
    for (size_t i = 0; i < trace->ops.count; i++) {
        const struct trace_ops *t = &trace->ops;
        if (t->rank[i] != rank || t->end_s[i] <= window.from_s || t->start_s[i] >= window.to_s)
            continue;
        size_t k = 0;
        while (k < lanes && lane[k] != t->stream[i])
            k++;
        if (k == lanes)
            continue;
        const double moved_s = moves_s(trace, i, message, messages);
        if (moved_s > t->start_s[i])
            fill(&bin[k * BINS], &window, t->start_s[i], moved_s, COLOUR_WAIT);
        fill(&bin[k * BINS], &window, moved_s, t->end_s[i],
             colour_of(trace->label[t->kind[i]], trace->label[t->phase[i]],
                       trace->label[t->region[i]]));
    }
    for (size_t k = lanes; k-- > 0;) {
        size_t boxes = find_boxes(box, &bin[k * BINS], &window);
        widen(box, boxes, &window);
        for (size_t i = 0; i < boxes; i++)
            text_printf(&figure->data, "%zu,%u,%.9g,%.9g\n", lanes - 1 - k, box[i].colour,
                        box[i].start_s / window.time.unit_s, box[i].end_s / window.time.unit_s);
        count += boxes;
    }
    free(message);
    free(bin);
    free(box);
    if (count == 0)
        return no_rows(wanted, "op in that window", diag);

    struct text names = {0}, title = {0};
    for (size_t k = lanes; k-- > 0;)
        text_printf(&names, "%s%s", trace->label[lane[k]], k == 0 ? "" : " ");
    text_printf(&title, "Streams of rank %ld", wanted->rank);
    figure_put_subject(&title, trace);
    figure->script = "timeline";
    figure->wide = 1000;
    figure->high = 170 + 42 * (int)lanes;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : title.data);
    figure_set_text(figure, "lanes", names.data);
    figure_set_text(figure, "classes", colour_names);
    figure_window_set(figure, &window);
    text_release(&names);
    text_release(&title);
    return STATUS_OK;
}
