/* The figures of a trace: what streams do, and what memories hold. */
#include "cli/figure.h"

#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Changes of memory closer than this part of the window are one: they would be one on the paper. */
#define FINEST (1.0 / 3000)

/* A timeline's lane has so many bins, about a pixel each in a PNG; a narrower box than SEEN of the
 * window would be overlooked. */
enum { BINS = 1500 };
#define SEEN (1.0 / 600)

enum { LANES_MAX = 32, CATEGORIES_MAX = 32 };

/* ---- the window ---- */

struct window {
    double from_s, to_s;
    struct report_time time;
};

static enum status find_window(struct window *window, double end_s, const struct figure_wish *wish,
                               struct diag *diag)
{
    window->from_s = wish->from_s;
    window->to_s = wish->to_s > 0 ? wish->to_s : end_s;
    if (!(window->from_s < window->to_s))
        return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
                          "nothing lies between %g s and %g s: the trace ends at %g s",
                          wish->from_s, window->to_s, end_s);
    window->time = report_time_for(window->to_s - window->from_s);
    return STATUS_OK;
}

static void set_window(struct figure *figure, const struct window *window)
{
    figure_set_text(figure, "unit", window->time.name);
    figure_set_number(figure, "from", window->from_s / window->time.unit_s);
    figure_set_number(figure, "to", window->to_s / window->time.unit_s);
}

/* ---- timeline ---- */

/* What a box is coloured by: in the order of the colours. */
enum class {
    CLASS_ATTENTION = 1,
    CLASS_MATMUL,
    CLASS_OTHER_COMPUTE,
    CLASS_OPTIMIZER,
    CLASS_EXCHANGE,
    CLASS_WEIGHTS,
    CLASS_COPY,
    CLASS_WAIT,
    CLASS_COUNT,
};
static const char class_names[] = "attention matmul other_compute optimizer activations_exchanged "
                                  "weights_exchanged copies waiting";

static enum class class_of(const char *kind, const char *phase, const char *region) {
    static const struct {const char * kind; enum class class;}
kinds[] = {
    {"attention", CLASS_ATTENTION},
    {"attention_backward", CLASS_ATTENTION},
    {"matmul", CLASS_MATMUL},
    {"d2h", CLASS_COPY},
    {"h2d", CLASS_COPY},
    {"host_sync", CLASS_WAIT},
    {"barrier", CLASS_WAIT},
    {"all_to_all", CLASS_EXCHANGE},
    {"shift", CLASS_EXCHANGE},
    {"send", CLASS_EXCHANGE},
    {"recv", CLASS_EXCHANGE},
    {"all_gather", CLASS_EXCHANGE},
    {"all_reduce", CLASS_EXCHANGE},
    {"reduce_scatter", CLASS_EXCHANGE},
    {"broadcast", CLASS_EXCHANGE},
};
for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (strcmp(kind, kinds[i].kind) == 0)
        return kinds[i].class == CLASS_EXCHANGE && strcmp(region, "weights") == 0 ? CLASS_WEIGHTS
                                                                                  : kinds[i].class;
return strcmp(phase, "optimizer") == 0 ? CLASS_OPTIMIZER : CLASS_OTHER_COMPUTE;
}

struct box {
    double start_s, end_s;
    enum class class;
};

/* One BINS-th of the window on one lane: how long each class runs in it, and between which times
 * anything does. */
struct bin {
    double busy_s[CLASS_COUNT]; /* all 0: idle */
    double first_s, last_s;
};

/* Adds what of start_s..end_s lies in the window to the bins of a lane. */
static void fill(struct bin *bin, const struct window *window, double start_s, double end_s,
                 enum class class)
{
    double bin_s = (window->to_s - window->from_s) / BINS;
    start_s = fmax(start_s, window->from_s);
    end_s = fmin(end_s, window->to_s);
    for (size_t i = (size_t)((start_s - window->from_s) / bin_s); i < BINS; i++) {
        double first_s = fmax(start_s, window->from_s + (double)i * bin_s);
        double last_s = fmin(end_s, window->from_s + (double)(i + 1) * bin_s);
        if (!(first_s < end_s))
            break;
        if (!(first_s < last_s)) /* it begins at the end of its bin, but for rounding */
            continue;
        bool idle = !(bin[i].first_s < bin[i].last_s);
        bin[i].first_s = idle ? first_s : fmin(bin[i].first_s, first_s);
        bin[i].last_s = idle ? last_s : fmax(bin[i].last_s, last_s);
        bin[i].busy_s[class] += last_s - first_s;
    }
}

/* The boxes of a lane, in order of time and apart from each other. A bin has the class that fills
 * most of it; neighbours of one class are one box, with the edges that it has in the trace where
 * they border on idle time. box: BINS. */
static size_t find_boxes(struct box *box, const struct bin *bin, const struct window *window)
{
    double bin_s = (window->to_s - window->from_s) / BINS;
    size_t count = 0;
    for (size_t i = 0; i < BINS; i++) {
        enum class most = CLASS_ATTENTION;
        for (enum class c = most; c < CLASS_COUNT; c++)
            if (bin[i].busy_s[c] > bin[i].busy_s[most])
                most = c;
        if (!(bin[i].busy_s[most] > 0))
            continue;
        struct box *last = count > 0 ? &box[count - 1] : NULL;
        if (last != NULL && last->class == most && bin[i].first_s - last->end_s < bin_s)
            last->end_s = bin[i].last_s;
        else
            box[count++] = (struct box){bin[i].first_s, bin[i].last_s, most};
    }
    return count;
}

/* Narrow boxes grow to what is seen, into idle time alone. */
static void widen(struct box *box, size_t count, const struct window *window)
{
    for (size_t i = 0; i < count; i++) {
        double room_s = i + 1 < count ? box[i + 1].start_s : window->to_s;
        double wish_s = box[i].start_s + (window->to_s - window->from_s) * SEEN;
        box[i].end_s = fmax(box[i].end_s, fmin(wish_s, room_s));
    }
}

/* Compute on top, then the others as they come. lane[i]: label of a stream. */
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

static enum status no_rows(const struct figure_wish *wish, const char *what, struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = "--rank"}, STATUS_BAD_INPUT,
                      "the trace has no %s of rank %ld; one rank of each class is written", what,
                      wish->rank);
}

enum status figure_timeline(struct figure *figure, const struct trace *trace,
                            const struct figure_wish *wish, struct diag *diag)
{
    uint16_t lane[LANES_MAX];
    uint32_t rank = (uint32_t)wish->rank;
    size_t lanes = find_lanes(trace, rank, lane), count = 0;
    double end_s = 0;
    struct window window;
    if (lanes == 0)
        return no_rows(wish, "op", diag);
    for (size_t i = 0; i < trace->ops.count; i++)
        if (trace->ops.rank[i] == rank)
            end_s = fmax(end_s, trace->ops.end_s[i]);
    enum status status = find_window(&window, end_s, wish, diag);
    if (status != STATUS_OK)
        return status;
    struct bin *bin = heap_zalloc(lanes * BINS, sizeof *bin);
    struct box *box = heap_alloc(BINS, sizeof *box);
    for (size_t i = 0; i < trace->ops.count; i++) {
        const struct trace_ops *t = &trace->ops;
        if (t->rank[i] != rank || t->end_s[i] <= window.from_s || t->start_s[i] >= window.to_s)
            continue;
        size_t k = 0;
        while (k < lanes && lane[k] != t->stream[i])
            k++;
        if (k < lanes)
            fill(&bin[k * BINS], &window, t->start_s[i], t->end_s[i],
                 class_of(trace->label[t->kind[i]], trace->label[t->phase[i]],
                          trace->label[t->region[i]]));
    }
    for (size_t k = lanes; k-- > 0;) {
        size_t boxes = find_boxes(box, &bin[k * BINS], &window);
        widen(box, boxes, &window);
        for (size_t i = 0; i < boxes; i++)
            text_printf(&figure->data, "%zu,%u,%.9g,%.9g\n", lanes - 1 - k, box[i].class,
                        box[i].start_s / window.time.unit_s, box[i].end_s / window.time.unit_s);
        count += boxes;
    }
    free(bin);
    free(box);
    if (count == 0)
        return no_rows(wish, "op in that window", diag);

    struct text names = {0}, title = {0};
    for (size_t k = lanes; k-- > 0;)
        text_printf(&names, "%s%s", trace->label[lane[k]], k == 0 ? "" : " ");
    text_printf(&title, "Streams of rank %ld", wish->rank);
    figure->script = "timeline";
    figure->wide = 1000;
    figure->high = 170 + 42 * (int)lanes;
    figure_set_text(figure, "title", wish->title != NULL ? wish->title : title.data);
    figure_set_text(figure, "lanes", names.data);
    figure_set_text(figure, "classes", class_names);
    set_window(figure, &window);
    text_release(&names);
    text_release(&title);
    return STATUS_OK;
}

/* ---- memory ---- */

#define GIB (1024.0 * 1024 * 1024)

struct levels {
    uint16_t category[CATEGORIES_MAX];
    double bytes[CATEGORIES_MAX];
    size_t count;
};

static void put_level(struct text *out, const struct levels *levels, double time)
{
    double sum = 0;
    text_printf(out, "%.9g", time);
    for (size_t k = 0; k < levels->count; k++) {
        sum += levels->bytes[k] / GIB;
        text_printf(out, ",%.6g", sum);
    }
    text_putc(out, '\n');
}

static double level(const struct levels *levels)
{
    double sum = 0;
    for (size_t k = 0; k < levels->count; k++)
        sum += levels->bytes[k];
    return sum;
}

static bool is_of(const struct trace *trace, size_t row, uint32_t rank, const char *memory)
{
    return trace->memory.rank[row] == rank &&
           strcmp(trace->label[trace->memory.memory[row]], memory) == 0;
}

/* Steps, thinned out: of each finest interval the fullest state is drawn. */
static double put_levels(struct figure *figure, const struct trace *trace, uint32_t rank,
                         const char *memory, struct levels *levels, const struct window *window)
{
    double unit = window->time.unit_s, finest_s = (window->to_s - window->from_s) * FINEST;
    double top = 0, slot_s = window->from_s;
    struct levels fullest = *levels;
    bool changed = false;
    for (size_t i = 0; i < trace->memory.count; i++) {
        if (!is_of(trace, i, rank, memory))
            continue;
        double time_s = trace->memory.time_s[i];
        if (changed && time_s > window->from_s && time_s - slot_s > finest_s) {
            put_level(&figure->data, &fullest, fmax(slot_s, window->from_s) / unit);
            put_level(&figure->data, levels, fmin(time_s, window->to_s) / unit);
            fullest = *levels;
            slot_s = time_s;
            changed = false;
        }
        if (time_s > window->to_s)
            break;
        for (size_t k = 0; k < levels->count; k++)
            if (levels->category[k] == trace->memory.category[i])
                levels->bytes[k] = trace->memory.bytes[i];
        bool same_time = i + 1 < trace->memory.count && trace->memory.time_s[i + 1] == time_s;
        if (!same_time && (!changed || level(levels) > level(&fullest)))
            fullest = *levels;
        changed = true;
        top = fmax(top, level(&fullest));
    }
    put_level(&figure->data, &fullest, fmax(slot_s, window->from_s) / unit);
    put_level(&figure->data, levels, window->to_s / unit);
    return top;
}

enum status figure_memory(struct figure *figure, const struct trace *trace,
                          const struct figure_wish *wish, struct diag *diag)
{
    const char *memory = wish->memory != NULL ? wish->memory : "hbm";
    uint32_t rank = (uint32_t)wish->rank;
    struct levels levels = {0};
    struct window window;
    double most[CATEGORIES_MAX] = {0}, all = 0;
    struct text names = {0}, text = {0};
    double end_s = 0, limit = 0;
    for (size_t i = 0; i < trace->memory.count; i++) {
        size_t k = 0;
        if (!is_of(trace, i, rank, memory))
            continue;
        end_s = fmax(end_s, trace->memory.time_s[i]);
        while (k < levels.count && levels.category[k] != trace->memory.category[i])
            k++;
        if (k == levels.count && k < CATEGORIES_MAX)
            levels.category[levels.count++] = trace->memory.category[i];
        if (k < CATEGORIES_MAX)
            most[k] = fmax(most[k], trace->memory.bytes[i]);
    }
    for (size_t k = 0; k < levels.count; k++)
        all = fmax(all, most[k]);
    size_t kept = 0;
    for (size_t k = 0; k < levels.count; k++) /* thinner than a line */
        if (most[k] > all * 2e-3)
            levels.category[kept++] = levels.category[k];
    levels.count = kept;
    if (levels.count == 0)
        return diag_error(diag, (struct loc){.name = "--memory"}, STATUS_BAD_INPUT,
                          "the trace has no rows of memory '%s' of rank %ld", memory, wish->rank);
    const char *step = trace_get(trace, "step_s");
    double step_s;
    if (step != NULL && parse_double(step, strlen(step), &step_s))
        end_s = fmax(end_s, step_s);
    enum status status = find_window(&window, end_s, wish, diag);
    if (status != STATUS_OK)
        return status;
    double top = put_levels(figure, trace, rank, memory, &levels, &window) / GIB;

    for (size_t k = 0; k < levels.count; k++)
        text_printf(&names, "%s%s", k == 0 ? "" : " ", trace->label[levels.category[k]]);
    text_printf(&text, "available_bytes.%s", memory);
    const char *available = trace_get(trace, text.data);
    if (available != NULL && parse_double(available, strlen(available), &limit))
        limit /= GIB;
    figure->script = "memory";
    figure->wide = 1000;
    figure->high = 420;
    text.size = 0;
    text_printf(&text, "Live bytes of rank %ld by category: %s", wish->rank, memory);
    figure_set_text(figure, "title", wish->title != NULL ? wish->title : text.data);
    figure_set_text(figure, "categories", names.data);
    figure_set_text(figure, "memory_name", memory);
    figure_set_number(figure, "limit", limit);
    /* a limit far above the figure would flatten it */
    figure_set_number(figure, "top", 1.12 * (limit < 3 * top ? fmax(top, limit) : top));
    text.size = 0;
    text_printf(&text, "usable: %.1f GiB", limit);
    figure_set_text(figure, "limit_name", text.data);
    set_window(figure, &window);
    text_release(&names);
    text_release(&text);
    return STATUS_OK;
}
