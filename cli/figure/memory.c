/* cli/figure/memory.c: figures of what memories hold over time: of one trace by category, and of several traces by
 * their sums. */
#include "cli/figure/window.h"

#include "base/c_locale.h"
#include "schedule/ir/ir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest interval whose states are merged, as a share of the window. Of the states that begin in such an interval
 * only two are drawn, the fullest and the last one; a figure could not show more of them apart. */
#define MERGED_STATES_WINDOW_SHARE (1.0 / 1000)

enum { CATEGORIES_MAX = 32 };

#define GIB (1024.0 * 1024 * 1024)

/* A state of a memory: the bytes of each category. */
struct memory_state {
    uint16_t category_label_index[CATEGORIES_MAX];
    double bytes_of_category[CATEGORIES_MAX];
    size_t count;
};

/* The parameters by which a state of memory is drawn. draws_sum_only: only the sum of its categories is drawn;
 * otherwise each category is stacked on those before it. */
struct memory_state_drawing {
    struct text *out;
    const struct figure_window *window;
    double origin_s; /* the time at the 0 of the axis */
    bool draws_sum_only;
};

static void put_memory_state(const struct memory_state_drawing *d, const struct memory_state *state,
                             double time_s)
{
    double sum = 0;
    text_printf(d->out, "%.9g", (time_s - d->origin_s) / d->window->time_format.seconds_per_unit);
    for (size_t k = 0; k < state->count; k++) {
        sum += state->bytes_of_category[k] / GIB;
        if (!d->draws_sum_only || k + 1 == state->count)
            text_printf(d->out, ",%.6g", sum);
    }
    text_putc(d->out, '\n');
}

static double total_state_bytes(const struct memory_state *state)
{
    double sum = 0;
    for (size_t k = 0; k < state->count; k++)
        sum += state->bytes_of_category[k];
    return sum;
}

static bool is_row_of_memory(const struct trace *trace, size_t row, uint32_t rank,
                             const char *memory)
{
    return trace->memory.rank[row] == rank &&
           strcmp(trace->labels[trace->memory.memory[row]], memory) == 0;
}

/* An interval that is too short to show all states of memory in it. It is drawn as two states, the fullest and the
 * last one. */
struct merged_states_interval {
    bool has_any_state;     /* a state was added to it (add_state_to_interval()) */
    double start_s, last_s; /* when its first and its last state begin */
    struct memory_state fullest, last;
};

static void put_merged_states_interval(const struct memory_state_drawing *d,
                                       const struct merged_states_interval *slot, double until_s)
{
    double start_s = fmax(slot->start_s, d->window->from_s);
    put_memory_state(d, &slot->fullest, start_s);
    if (slot->last_s > start_s) {
        put_memory_state(d, &slot->fullest, slot->last_s);
        put_memory_state(d, &slot->last, slot->last_s);
    }
    put_memory_state(d, &slot->last, until_s);
}

/* Adds the state of memory from time_s on, which must not be after the end of the window. States that are close
 * together (MERGED_STATES_WINDOW_SHARE) are collected in *slot. When a state comes that is too far from the first of
 * them, they are drawn, and it begins a new interval. A state that begins before the window, or with it, replaces the
 * one in *slot. */
static void add_state_to_interval(const struct memory_state_drawing *d,
                                  struct merged_states_interval *slot,
                                  const struct memory_state *state, double time_s)
{
    const struct figure_window *window = d->window;
    double finest_s = (window->to_s - window->from_s) * MERGED_STATES_WINDOW_SHARE;
    bool before = time_s <= window->from_s;
    if (slot->has_any_state && !before && time_s - slot->start_s <= finest_s) {
        if (total_state_bytes(state) > total_state_bytes(&slot->fullest))
            slot->fullest = *state;
    } else {
        if (slot->has_any_state && !before)
            put_merged_states_interval(d, slot, time_s);
        *slot = (struct merged_states_interval){
            .has_any_state = true, .start_s = time_s, .fullest = *state};
    }
    slot->last = *state;
    slot->last_s = time_s;
}

/* Draws the memory of a rank as steps, and leaves in *levels its state at the end of the window. States that are
 * close together (MERGED_STATES_WINDOW_SHARE) are drawn as two, the fullest and the last one. Returns the bytes of the
 * fullest state in the window, in which the state at its beginning counts, too. */
static double put_memory_states(const struct memory_state_drawing *d, const struct trace *trace,
                                uint32_t rank, const char *memory, struct memory_state *state)
{
    struct merged_states_interval slot = {.fullest = *state, .last = *state};
    double top = 0; /* the bytes of the fullest state in the window so far */
    /* the time of the last row that was read; all rows of one time make one state */
    double now_s = -INFINITY;
    bool more = false; /* a row was read, so *levels is a state that is not drawn yet */
    for (size_t i = 0; i < trace->memory.count && trace->memory.time_s[i] <= d->window->to_s; i++) {
        if (!is_row_of_memory(trace, i, rank, memory))
            continue;
        if (more && trace->memory.time_s[i] > now_s) {
            add_state_to_interval(d, &slot, state, now_s);
            top = now_s > d->window->from_s ? fmax(top, total_state_bytes(state))
                                            : total_state_bytes(state);
        }
        now_s = trace->memory.time_s[i];
        more = true;
        for (size_t k = 0; k < state->count; k++)
            if (state->category_label_index[k] == trace->memory.category[i])
                state->bytes_of_category[k] = trace->memory.bytes[i];
    }
    if (more) {
        add_state_to_interval(d, &slot, state, now_s);
        top = now_s > d->window->from_s ? fmax(top, total_state_bytes(state))
                                        : total_state_bytes(state);
    }
    put_merged_states_interval(d, &slot, d->window->to_s);
    return top;
}

/* Finds the categories of a memory of a rank, at most CATEGORIES_MAX of them, the most bytes of each, and the end of
 * the step. It is an error if the trace has no row of that memory and rank. */
static enum status find_categories_and_largest_bytes(struct memory_state *state,
                                                     double most[CATEGORIES_MAX], double *end_s,
                                                     const struct trace *trace, uint32_t rank,
                                                     const char *memory, struct diag *diag)
{
    *state = (struct memory_state){0};
    *end_s = 0;
    for (size_t i = 0; i < trace->memory.count; i++) {
        size_t k = 0;
        if (!is_row_of_memory(trace, i, rank, memory))
            continue;
        *end_s = fmax(*end_s, trace->memory.time_s[i]);
        while (k < state->count && state->category_label_index[k] != trace->memory.category[i])
            k++;
        if (k == state->count && k < CATEGORIES_MAX) {
            most[k] = 0;
            state->category_label_index[state->count++] = trace->memory.category[i];
        }
        if (k < CATEGORIES_MAX)
            most[k] = fmax(most[k], trace->memory.bytes[i]);
    }
    if (state->count == 0)
        return diag_error(diag, (struct loc){.name = "--memory"}, STATUS_BAD_INPUT,
                          "the trace has no rows of memory '%s' of rank %u", memory, rank);
    const char *step = trace_get_key(trace, "step_s");
    double step_s;
    if (step != NULL && parse_double(step, strlen(step), &step_s))
        *end_s = fmax(*end_s, step_s);
    return STATUS_OK;
}

/* Leaves out categories that would be thinner than a line: those with less than 1/500 of the most bytes of any
 * category. */
static void drop_thin_categories(struct memory_state *state, const double most[CATEGORIES_MAX])
{
    double all = 0;
    size_t kept = 0;
    for (size_t k = 0; k < state->count; k++)
        all = fmax(all, most[k]);
    for (size_t k = 0; k < state->count; k++)
        if (most[k] > all * 2e-3)
            state->category_label_index[kept++] = state->category_label_index[k];
    state->count = kept;
}

/* Returns the words for a category of a schedule; the name itself if it is no such category. */
static const char *category_label(const char *category)
{
    for (int c = 0; c < CATEGORY_COUNT; c++)
        if (strcmp(category_names[c], category) == 0)
            return category_labels[c];
    return category;
}

/* Returns the number of GiB that the trace's header has for a memory under a name such as "available_bytes"; 0:
 * unknown. */
static double header_gib(const struct trace *trace, const char *name, const char *memory)
{
    struct text key = {0};
    double bytes = 0;
    text_printf(&key, "%s.%s", name, memory);
    const char *value = trace_get_key(trace, key.data);
    if (value == NULL || !parse_double(value, strlen(value), &bytes))
        bytes = 0;
    text_release(&key);
    return bytes / GIB;
}

/* Sets the variables that the scripts of both figures need, of one trace and of several. top: the
 * most GiB that the figure shows; limit: the usable GiB, which are drawn as a line; 0: they are not
 * known. */
static void set_memory_figure_variables(struct figure *figure, const char *memory, double top,
                                        double limit, const struct figure_options *wanted,
                                        const char *title)
{
    char name[64];
    figure->width = 1000;
    figure->height = 420;
    figure->narrow_height = 480;
    figure_set_text(figure, "title", wanted->title != NULL ? wanted->title : title);
    figure_set_text(figure, "memory_name", strcmp(memory, "hbm") == 0 ? "memory of a GPU" : memory);
    figure_set_number(figure, "limit", limit);
    /* the axis does not extend to a limit far above the memory in use, which would flatten the figure */
    figure_set_number(figure, "top", 1.12 * (limit < 3 * top ? fmax(top, limit) : top));
    figure_set_y_axis(figure, wanted);
    c_snprintf(name, sizeof name, "usable: %.1f GiB", limit);
    figure_set_text(figure, "limit_name", name);
}

enum status figure_memory(struct figure *figure, const struct trace *trace,
                          const struct figure_options *wanted, struct diag *diag)
{
    const char *memory = wanted->memory_name != NULL ? wanted->memory_name : "hbm";
    uint32_t rank = (uint32_t)wanted->rank;
    struct memory_state state;
    struct figure_window window;
    double most[CATEGORIES_MAX], end_s;
    struct text names = {0}, title = {0};
    enum status status =
        find_categories_and_largest_bytes(&state, most, &end_s, trace, rank, memory, diag);
    if (status == STATUS_OK)
        status = figure_window_find(&window, trace, end_s, wanted, diag);
    if (status != STATUS_OK)
        return status;
    drop_thin_categories(&state, most);
    struct memory_state_drawing drawing = {.out = &figure->csv, .window = &window};
    double top = put_memory_states(&drawing, trace, rank, memory, &state) / GIB;
    for (size_t k = 0; k < state.count; k++)
        figure_put_name_in_list(&names,
                                category_label(trace->labels[state.category_label_index[k]]));
    /* 0: the script draws no line for the needed memory */
    const double needed =
        wanted->shows_needed_bytes ? header_gib(trace, "needed_bytes", memory) : 0;
    text_printf(&title, "Live bytes of rank %ld by category (%s)", wanted->rank, memory);
    figure_put_subject(&title, trace);
    figure->script_name = "memory";
    set_memory_figure_variables(figure, memory, fmax(top, needed),
                                header_gib(trace, "available_bytes", memory), wanted, title.data);
    figure_set_number(figure, "needed", needed);
    title.size = 0;
    text_printf(&title, "a GPU needs %.1f GiB", needed);
    figure_set_text(figure, "needed_name", title.data);
    figure_set_text(figure, "categories", names.data);
    figure_window_set_script_variables(figure, &window);
    text_release(&names);
    text_release(&title);
    return STATUS_OK;
}

enum status figure_memory_of_several_traces(struct figure *figure,
                                            const struct figure_trace *traces, size_t count,
                                            const struct figure_options *wanted, struct diag *diag)
{
    const char *memory = wanted->memory_name != NULL ? wanted->memory_name : "hbm";
    uint32_t rank = (uint32_t)wanted->rank;
    struct figure_window whole = {.from_s = 0, .to_s = 0};
    struct figure_window *window = heap_zalloc(count, sizeof *window);
    double top = 0, limit = 0, end_s, most[CATEGORIES_MAX];
    const char *shown[FIGURE_SERIES_MAX];
    struct memory_state state;
    struct text text = {0};
    struct arena names = {0};
    enum status status = STATUS_OK;
    if (count > FIGURE_SERIES_MAX)
        status =
            diag_error(diag, (struct loc){.name = "plot"}, STATUS_BAD_INPUT,
                       "%zu traces are given, and a memory figure shows at most %d: leave out %zu",
                       count, FIGURE_SERIES_MAX, count - FIGURE_SERIES_MAX);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct trace *trace = traces[i].trace;
        status = find_categories_and_largest_bytes(&state, most, &end_s, trace, rank, memory, diag);
        if (status == STATUS_OK)
            status = figure_window_find(&window[i], trace, end_s, wanted, diag);
        if (status != STATUS_OK)
            break;
        whole.to_s = fmax(whole.to_s, window[i].to_s - window[i].from_s);
        limit = i == 0 || header_gib(trace, "available_bytes", memory) == limit
                    ? header_gib(trace, "available_bytes", memory)
                    : 0;
    }
    whole.time_format = report_time_format_for(whole.to_s);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct trace *trace = traces[i].trace;
        window[i].time_format = whole.time_format;
        struct memory_state_drawing drawing = {&figure->csv, &window[i], window[i].from_s, true};
        find_categories_and_largest_bytes(&state, most, &end_s, trace, rank, memory, diag);
        text_puts(&figure->csv, i == 0 ? "" : "\n\n");
        double peak = put_memory_states(&drawing, trace, rank, memory, &state) / GIB;
        top = fmax(top, peak);
        shown[i] = arena_printf(&names, "%s: %.2f GiB", traces[i].name, peak);
    }
    if (status == STATUS_OK) {
        text.size = 0;
        text_printf(&text, "Live bytes of rank %ld%s%s: %s", wanted->rank,
                    wanted->op_window_text != NULL ? ", " : "",
                    wanted->op_window_text != NULL ? wanted->op_window_text : "", memory);
        figure->script_name = "memories";
        set_memory_figure_variables(figure, memory, top, limit, wanted, text.data);
        figure_set_series_names(figure, shown, count);
        figure_set_text(figure, "origin",
                        wanted->op_window_text != NULL || wanted->shown_from_s > 0
                            ? "time since the window began"
                            : "time in the step");
        figure_window_set_script_variables(figure, &whole);
    }
    text_release(&text);
    arena_release(&names);
    free(window);
    return status;
}
