#include "cli/figure/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_OP, KEY_LAYER, KEY_CHUNK, KEY_STEP, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {"op", "layer", "chunk", "step"};

/* The ops that a window selects, by phase and by ranges of op, layer, chunk and step. */
struct op_selection {
    const char *phase; /* the name of the phase, of phase_length characters; NULL: any phase */
    size_t phase_length;
    bool is_given[KEY_COUNT];
    long low[KEY_COUNT], high[KEY_COUNT];
};

static bool parse_whole_number(const char **text, long *value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *value = strtol(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* Parses a number N, or a range N..M, which must end at `end`. */
static bool parse_range(const char *text, const char *end, long *low, long *high)
{
    if (!parse_whole_number(&text, low))
        return false;
    *high = *low;
    if (end - text > 2 && strncmp(text, "..", 2) == 0) {
        text += 2;
        if (!parse_whole_number(&text, high))
            return false;
    }
    return text == end && *low <= *high;
}

static bool parse_condition(struct op_selection *s, const char *part, const char *end)
{
    const char *equals = memchr(part, '=', (size_t)(end - part));
    if (equals == NULL) {
        bool first = s->phase == NULL && end > part;
        s->phase = part;
        s->phase_length = (size_t)(end - part);
        return first;
    }
    for (int k = 0; k < KEY_COUNT; k++)
        if (strlen(key_names[k]) == (size_t)(equals - part) &&
            strncmp(part, key_names[k], (size_t)(equals - part)) == 0) {
            bool first = !s->is_given[k];
            s->is_given[k] = true;
            return first && parse_range(equals + 1, end, &s->low[k], &s->high[k]);
        }
    return false;
}

static enum status parse_selection(struct op_selection *s, const char *text, struct diag *diag)
{
    for (const char *part = text, *end;; part = end + 1) {
        end = part + strcspn(part, ":");
        if (!parse_condition(s, part, end))
            return diag_error(
                diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
                "'%.*s' is neither a phase nor op=, layer=, chunk= or step= with N or "
                "N..M, once each: backward:layer=1",
                (int)(end - part), part);
        if (*end == '\0')
            return STATUS_OK;
    }
}

static bool selects_row(const struct op_selection *s, const struct trace *trace, size_t row)
{
    const struct trace_ops *t = &trace->ops;
    const char *phase = trace->labels[t->phase[row]];
    long value[KEY_COUNT] = {
        [KEY_OP] = (long)t->op[row],
        [KEY_LAYER] = t->layer[row],
        [KEY_CHUNK] = t->chunk[row],
        [KEY_STEP] = t->step[row],
    };
    if (s->phase != NULL &&
        !(strncmp(phase, s->phase, s->phase_length) == 0 && phase[s->phase_length] == '\0'))
        return false;
    for (int k = 0; k < KEY_COUNT; k++)
        if (s->is_given[k] && !(s->low[k] <= value[k] && value[k] <= s->high[k]))
            return false;
    return true;
}

static enum status find_interval_of_ops(struct figure_window *window, const struct trace *trace,
                                        const struct figure_options *wanted, struct diag *diag)
{
    struct op_selection selection = {0};
    enum status status = parse_selection(&selection, wanted->op_window_text, diag);
    if (status != STATUS_OK)
        return status;
    window->from_s = INFINITY;
    window->to_s = -INFINITY;
    for (size_t i = 0; i < trace->ops.count; i++) {
        if (trace->ops.rank[i] != (uint32_t)wanted->rank || !selects_row(&selection, trace, i))
            continue;
        window->from_s = fmin(window->from_s, trace->ops.start_s[i]);
        window->to_s = fmax(window->to_s, trace->ops.end_s[i]);
    }
    if (!(window->from_s < window->to_s))
        return diag_error(diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
                          "rank %ld has no op that is '%s', or those that are take no time",
                          wanted->rank, wanted->op_window_text);
    return STATUS_OK;
}

enum status figure_window_find(struct figure_window *window, const struct trace *trace,
                               double end_s, const struct figure_options *wanted, struct diag *diag)
{
    if (wanted->op_window_text != NULL) {
        enum status status = find_interval_of_ops(window, trace, wanted, diag);
        if (status != STATUS_OK)
            return status;
    } else {
        window->from_s = wanted->shown_from_s;
        window->to_s = wanted->shown_to_s > 0 ? wanted->shown_to_s : end_s;
        if (!(window->from_s < window->to_s))
            return diag_error(diag, (struct loc){.name = "--from"}, STATUS_BAD_INPUT,
                              "nothing lies between %g s and %g s: the trace ends at %g s",
                              wanted->shown_from_s, window->to_s, end_s);
    }
    window->time_format = report_time_format_for(window->to_s - window->from_s);
    return STATUS_OK;
}

void figure_window_set_script_variables(struct figure *figure, const struct figure_window *window)
{
    figure_set_text(figure, "unit", window->time_format.name);
    figure_set_number(figure, "from", window->from_s / window->time_format.seconds_per_unit);
    figure_set_number(figure, "to", window->to_s / window->time_format.seconds_per_unit);
}
