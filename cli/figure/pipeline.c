/* cli/figure/pipeline.c: the figure of a pipeline, which shows what each stage does, unit by unit. */
#include "cli/figure/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The classes of boxes, in the order of the script's colours. BOX_x_OTHER_LAYERS is the same work as BOX_x, on layers
 * that are drawn in a lighter colour (dark_or_light_box_class()). */
enum box_class {
    BOX_FORWARD = 1,
    BOX_FORWARD_OTHER_LAYERS,
    BOX_BACKWARD,
    BOX_BACKWARD_OTHER_LAYERS,
    BOX_WEIGHT_GRADIENTS,
    BOX_WEIGHT_GRADIENTS_OTHER_LAYERS,
    BOX_OPTIMIZER,
    BOX_WORK_WITHOUT_UNIT,
    BOX_CLASS_COUNT
};
static const char *const class_names[BOX_CLASS_COUNT] = {
    [BOX_FORWARD] = "forward",
    [BOX_FORWARD_OTHER_LAYERS] = "forward, other layers",
    [BOX_BACKWARD] = "backward",
    [BOX_BACKWARD_OTHER_LAYERS] = "backward, other layers",
    [BOX_WEIGHT_GRADIENTS] = "weight gradients",
    [BOX_WEIGHT_GRADIENTS_OTHER_LAYERS] = "weight gradients, other layers",
    [BOX_OPTIMIZER] = "optimizer",
    [BOX_WORK_WITHOUT_UNIT] = "weights gathered, reduced",
};

enum { STAGES_MAX = 64, CHUNKS_MAX = 1024 };
/* The shortest wait that is drawn, as a share of the window: a shorter one does not divide the box of a unit's passage.
 * Work between units (is_work_between_units()) lengthens the box that it follows at once; elsewhere it is not drawn if
 * it takes less than this. */
#define DRAWN_WAIT_MIN_SHARE (1.0 / 300)

/* A part of a unit's passage through a chunk of layers, between two waits. */
struct stage_box {
    double start_s, end_s;
    int32_t micro_batch; /* -1: none */
    int32_t layer_chunk; /* the chunk of layers; -1: not known */
    /* BOX_FORWARD, BOX_BACKWARD, BOX_WEIGHT_GRADIENTS, BOX_OPTIMIZER or BOX_WORK_WITHOUT_UNIT; the box may be drawn in
     * the light class (dark_or_light_box_class()) */
    uint8_t box_class;
};

/* The chunks of layers of a stage, in the order in which units first pass through them. */
struct stage_chunks {
    size_t count;
    int32_t layer_chunks[CHUNKS_MAX];
};

struct pipeline_trace {
    const struct trace *trace;
    uint32_t stage_count;
    uint32_t rank_of_stage[STAGES_MAX]; /* [stage_count] the rank that represents each stage */
    int32_t first_layer_of_chunk[CHUNKS_MAX]; /* [chunk_count] the first layer of each chunk */
    size_t chunk_count;                       /* 0: not known */
    uint16_t compute_stream_label;            /* label of the stream `compute` */
};

static enum status find_stages(struct pipeline_trace *p, struct diag *diag)
{
    const struct loc at = {.name = "pipeline"};
    const char *stages = trace_get_key(p->trace, "stages");
    int64_t count = 0, stage;
    if (stages == NULL || !parse_i64(stages, strlen(stages), &count) || count < 2)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the trace has no pipeline stages: it is of a step without --pp, or of a "
                          "version before this one; a timeline shows its streams");
    if (count > STAGES_MAX)
        return diag_error(diag, at, STATUS_BAD_INPUT, "%lld stages are more than the %d drawn",
                          (long long)count, STAGES_MAX);
    p->stage_count = (uint32_t)count;
    for (uint32_t s = 0; s < p->stage_count; s++)
        p->rank_of_stage[s] = UINT32_MAX;
    for (size_t i = 0; i < p->trace->header_count; i++) {
        const char *key = p->trace->header_keys[i].key, *value = p->trace->header_keys[i].value;
        int64_t rank;
        if (strncmp(key, "stage_of.", 9) == 0 && parse_i64(key + 9, strlen(key + 9), &rank) &&
            parse_i64(value, strlen(value), &stage) && 0 <= stage && stage < count && 0 <= rank &&
            rank < p->rank_of_stage[stage])
            p->rank_of_stage[stage] = (uint32_t)rank;
    }
    for (uint32_t s = 0; s < p->stage_count; s++)
        if (p->rank_of_stage[s] == UINT32_MAX)
            return diag_error(diag, at, STATUS_BAD_INPUT, "the trace has no rank of stage %u", s);
    return STATUS_OK;
}

static void find_layer_chunks(struct pipeline_trace *p)
{
    const char *at = trace_get_key(p->trace, "chunk_layers");
    while (at != NULL && *at != '\0' && p->chunk_count < CHUNKS_MAX) {
        p->first_layer_of_chunk[p->chunk_count++] = (int32_t)strtol(at, NULL, 10);
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    for (size_t i = 0; i < p->trace->label_count; i++)
        if (strcmp(p->trace->labels[i], "compute") == 0)
            p->compute_stream_label = (uint16_t)i;
}

static int32_t chunk_of_layer(const struct pipeline_trace *p, int32_t layer)
{
    size_t chunk = p->chunk_count;
    while (layer >= 0 && chunk > 0 && p->first_layer_of_chunk[chunk - 1] > layer)
        chunk--;
    return layer < 0 ? -1 : (int32_t)chunk - 1;
}

static uint8_t box_class_of_row(const struct trace *trace, size_t row)
{
    static const struct {
        const char *phase;
        enum box_class pass;
    } passes[] = {{"forward", BOX_FORWARD},
                  {"recompute", BOX_BACKWARD},
                  {"backward", BOX_BACKWARD},
                  {"weight_gradient", BOX_WEIGHT_GRADIENTS},
                  {"optimizer", BOX_OPTIMIZER}};
    const char *phase = trace->labels[trace->ops.phase[row]];
    for (size_t i = 0; i < ARRAY_LEN(passes); i++)
        if (strcmp(phase, passes[i].phase) == 0 &&
            (trace->ops.micro[row] >= 0 || passes[i].pass == BOX_OPTIMIZER))
            return (uint8_t)passes[i].pass;
    return BOX_WORK_WITHOUT_UNIT;
}

/* Returns whether a row is work without a unit of its own, which is issued between units, such as casts for gathers of
 * weights. */
static bool is_work_between_units(const struct trace *trace, size_t row)
{
    return strcmp(trace->labels[trace->ops.region[row]], "weights") == 0 ||
           trace->ops.micro[row] < 0;
}

static bool is_same_unit_and_chunk(const struct stage_box *a, const struct stage_box *b)
{
    return a->box_class == b->box_class && a->micro_batch == b->micro_batch &&
           (a->layer_chunk == b->layer_chunk || a->layer_chunk < 0 || b->layer_chunk < 0);
}

/* Finds the boxes of a stage in the order of time. They are on the heap. */
static struct stage_box *find_stage_boxes(const struct pipeline_trace *p, uint32_t stage,
                                          const struct figure_window *window, size_t *count)
{
    const struct trace_ops *t = &p->trace->ops;
    const double shortest_s = (window->to_s - window->from_s) * DRAWN_WAIT_MIN_SHARE;
    struct stage_box *piece = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->rank[i] != p->rank_of_stage[stage] || t->stream[i] != p->compute_stream_label ||
            t->end_s[i] <= window->from_s || t->start_s[i] >= window->to_s)
            continue;
        struct stage_box is = {fmax(t->start_s[i], window->from_s), fmin(t->end_s[i], window->to_s),
                               t->micro[i], chunk_of_layer(p, t->layer[i]),
                               box_class_of_row(p->trace, i)};
        struct stage_box *last = *count > 0 ? &piece[*count - 1] : NULL;
        bool near = last != NULL && is.start_s - last->end_s <= shortest_s;
        if (is.box_class != BOX_OPTIMIZER && is_work_between_units(p->trace, i)) {
            if (near) {
                last->end_s = fmax(last->end_s, is.end_s);
                continue;
            }
            if (is.end_s - is.start_s <= shortest_s)
                continue;
            is.box_class = BOX_WORK_WITHOUT_UNIT;
            is.micro_batch = is.layer_chunk = -1;
        }
        if (near && is_same_unit_and_chunk(last, &is)) {
            last->end_s = fmax(last->end_s, is.end_s);
            last->layer_chunk = last->layer_chunk < 0 ? is.layer_chunk : last->layer_chunk;
            continue;
        }
        if (*count == capacity) {
            capacity = heap_next_capacity(capacity, *count + 1);
            piece = heap_realloc(piece, capacity, sizeof *piece);
        }
        piece[(*count)++] = is;
    }
    return piece;
}

/* Returns the class in which a box is drawn: its own, BOX_x, which is dark, or the light BOX_x_OTHER_LAYERS. If each
 * stage has one chunk of layers, that chunk is dark, and a chunk of another stage that the stage computes is light. If
 * stages have several chunks, they are dark and light in turn, in the order in which units first pass through them.
 * *seen has the chunks in that order, and gets a chunk that it lacks. A box of the optimizer or of work without a unit,
 * or of an unknown chunk, keeps its class. */
static uint8_t dark_or_light_box_class(const struct pipeline_trace *p, uint32_t stage,
                                       const struct stage_box *piece, struct stage_chunks *seen)
{
    size_t k = 0;
    if (p->chunk_count == p->stage_count && piece->layer_chunk >= 0 &&
        piece->box_class <= BOX_WEIGHT_GRADIENTS)
        return (uint8_t)(piece->box_class + (piece->layer_chunk != (int32_t)stage));
    while (k < seen->count && seen->layer_chunks[k] != piece->layer_chunk)
        k++;
    if (piece->layer_chunk < 0 || piece->box_class > BOX_WEIGHT_GRADIENTS)
        return piece->box_class;
    if (k == seen->count && k < CHUNKS_MAX)
        seen->layer_chunks[seen->count++] = piece->layer_chunk;
    return (uint8_t)(piece->box_class + k % 2);
}

/* Appends the boxes of a stage, and sets found[class] for each class that has one. */
static void put_boxes_of_stage(struct text *data, const struct pipeline_trace *p, uint32_t stage,
                               const struct figure_window *window, bool found[BOX_CLASS_COUNT])
{
    const double unit_s = window->time_format.seconds_per_unit;
    struct stage_chunks seen = {0};
    size_t count;
    struct stage_box *piece = find_stage_boxes(p, stage, window, &count);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1, widest = i;
        for (; end < count && is_same_unit_and_chunk(&piece[i], &piece[end]); end++) {
            piece[end].layer_chunk = piece[i].layer_chunk =
                piece[i].layer_chunk < 0 ? piece[end].layer_chunk : piece[i].layer_chunk;
            if (piece[end].end_s - piece[end].start_s > piece[widest].end_s - piece[widest].start_s)
                widest = end;
        }
        const uint8_t class = dark_or_light_box_class(p, stage, &piece[i], &seen);
        for (; i < end; i++) {
            char number[16] = "";
            if (piece[i].micro_batch >= 0 && i == widest)
                snprintf(number, sizeof number, "%d", (int)piece[i].micro_batch);
            found[class] = true;
            text_printf(data, "%u,%u,%.9g,%.9g,%s\n", p->stage_count - 1 - stage, class,
                        piece[i].start_s / unit_s, piece[i].end_s / unit_s, number);
        }
    }
    free(piece);
}

enum status figure_pipeline(struct figure *figure, const struct trace *trace,
                            const struct figure_options *wanted, struct diag *diag)
{
    struct pipeline_trace p = {.trace = trace};
    struct figure_window window;
    struct text names = {0}, numbers = {0}, title = {0};
    bool seen[BOX_CLASS_COUNT] = {false};
    double end_s = 0;
    int shown = 0;
    enum status status = find_stages(&p, diag);
    for (size_t i = 0; i < trace->ops.count; i++)
        end_s = fmax(end_s, trace->ops.end_s[i]);
    if (status == STATUS_OK)
        status = figure_window_find(&window, trace, end_s, wanted, diag);
    if (status != STATUS_OK)
        return status;
    find_layer_chunks(&p);
    for (uint32_t stage = 0; stage < p.stage_count; stage++)
        put_boxes_of_stage(&figure->csv, &p, stage, &window, seen);
    for (int c = 1; c < BOX_CLASS_COUNT; c++) {
        if (!seen[c])
            continue;
        figure_put_name_in_list(&names, class_names[c]);
        text_printf(&numbers, "%s%d", shown++ == 0 ? "" : " ", c);
    }
    text_puts(&title, "Pipeline");
    figure_put_subject(&title, trace);
    figure->script_name = "pipeline";
    figure->width = 1000;
    figure->height = 130 + 34 * (int)p.stage_count;
    figure->narrow_height = 120 + 26 * (int)p.stage_count + 9 * shown;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : title.data);
    figure_set_number(figure, "stages", p.stage_count);
    figure_set_text(figure, "classes", names.data);
    figure_set_text(figure, "class_numbers", numbers.data);
    figure_window_set_script_variables(figure, &window);
    text_release(&names);
    text_release(&numbers);
    text_release(&title);
    return STATUS_OK;
}
