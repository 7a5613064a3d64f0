/* longhaul plot: draws figures of files that other commands wrote. */
#include "base/file_set.h"
#include "base/path.h"
#include "cli/command.h"

#include "cli/figure/figure.h"
#include "cli/folder/stored.h"

#include <stdlib.h>
#include <string.h>

static const char *const memory_choices[] = {"hbm", "pinned", "pageable"};

static const struct option rows[] = {
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.svg|FILE.png",
     .help = "the file of the figure, .svg or .png; or a folder (created if missing) for the "
             "figure's data and gnuplot program"},
    {.name = "x",
     .kind = OPTION_TEXT,
     .value_name = "KEY",
     .unset_text = "the last that varies",
     .help = "sweep and heatmap: what varies along the x axis, a key of --vary"},
    {.name = "y",
     .kind = OPTION_TEXT,
     .value_name = "COLUMN",
     .unset_text = "tokens_per_s_gpu",
     .help = "the column that is drawn; in mfu figures mfu_CONVENTION or hfu, in error figures the "
             "metric"},
    {.name = "only",
     .kind = OPTION_REPEATABLE,
     .value_name = "COLUMN=VALUE,...",
     .help = "sweep, heatmap, mfu and error: draw only rows that have one of these values in this "
             "column; may be repeated, and rows must match all of them"},
    {.name = "y-range",
     .kind = OPTION_TEXT,
     .value_name = "LOW..HIGH",
     .unset_text = "all that is drawn",
     .help = "sweep, mfu, memory, heatmap (its colours) and error (both axes): the range of the y "
             "axis, in the unit of its label; LOW.. and ..HIGH leave an end open"},
    {.name = "y-log",
     .kind = OPTION_FLAG,
     .help = "sweep, mfu and heatmap: a logarithmic y axis (the colours, in a heatmap)"},
    {.name = "rank",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 0,
     .high = 1 << 30,
     .default_text = "0",
     .help = "timeline and memory: the rank that is drawn"},
    {.name = "memory",
     .kind = OPTION_CHOICE,
     .names = memory_choices,
     .name_count = ARRAY_LEN(memory_choices),
     .unset_text = "hbm",
     .help = "which memory of a rank is drawn"},
    {.name = "from",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "S",
     .unset_text = "0",
     .help = "timeline, pipeline and memory: start of the plotted interval, in seconds from the "
             "step's start"},
    {.name = "to",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "S",
     .unset_text = "the end of the step",
     .help = "timeline, pipeline and memory: end of the plotted interval, in seconds from the "
             "step's start"},
    {.name = "window",
     .kind = OPTION_TEXT,
     .value_name = "OPS",
     .unset_text = "all ops",
     .help =
         "timeline, pipeline and memory: plot from the first to the last op of a phase, op=N..M, "
         "layer=N, chunk=N, step=N, or several of them: backward:layer=1"},
    {.name = "title",
     .kind = OPTION_TEXT,
     .value_name = "TEXT",
     .unset_text = "what is drawn",
     .help = "title of the figure"},
    {.name = "dark", .kind = OPTION_FLAG, .help = "use light colours on a dark background"},
};
const struct option_set plot_options = {"figure", rows, ARRAY_LEN(rows)};

/* ---- the figures ---- */

/* Loads the table of a trace that is drawn: that of memory if `memory`, else that of ops. If memory is drawn in a
 * window of ops, loads both; `path` must then be a folder. */
static enum status load_trace(struct trace *trace, const char *path,
                              const struct figure_options *wanted, bool memory, struct diag *diag)
{
    enum status status = stored_load_trace(trace, path, memory, diag);
    if (status != STATUS_OK || !memory || wanted->op_window_text == NULL)
        return status;
    if (!path_is_folder(path))
        return diag_error(diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
                          "selects ops, but '%s' is a file without ops: give the folder that "
                          "predict -o or run -o wrote",
                          path);
    return stored_load_trace(trace, path, false, diag);
}

static enum status
figure_from_trace(struct figure *figure, const char *path, const struct figure_options *wanted,
                  enum status (*make)(struct figure *, const struct trace *,
                                      const struct figure_options *, struct diag *),
                  bool memory, struct diag *diag)
{
    struct trace trace = {0};
    enum status status = load_trace(&trace, path, wanted, memory, diag);
    if (status == STATUS_OK)
        status = make(figure, &trace, wanted, diag);
    trace_release(&trace);
    return status;
}

static enum status
figure_from_table(struct figure *figure, const char *path, const struct figure_options *wanted,
                  enum status (*make)(struct figure *, const struct table *,
                                      const struct figure_options *, struct diag *),
                  struct diag *diag)
{
    struct table table = {0};
    enum status status = table_load(&table, path, diag);
    for (size_t i = 0; i < wanted->row_condition_count && status == STATUS_OK; i++)
        status = table_drop_other_rows(&table, wanted->row_conditions[i],
                                       (struct loc){.name = "--only"}, diag);
    if (status == STATUS_OK)
        status = make(figure, &table, wanted, diag);
    table_release(&table);
    return status;
}

static enum status plot_timeline(struct figure *f, const char *path,
                                 const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_trace(f, path, wanted, figure_timeline, false, diag);
}

static enum status plot_pipeline(struct figure *f, const char *path,
                                 const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_trace(f, path, wanted, figure_pipeline, false, diag);
}

static enum status plot_memory(struct figure *f, const char *path,
                               const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_trace(f, path, wanted, figure_memory, true, diag);
}

/* Returns the last part of a path, which names a trace in the figure: "block-2" of "out/block-2". A path that ends in
 * '/' is returned whole. */
static const char *last_path_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

static enum status plot_memory_of_several_traces(struct figure *f, const char *const *path,
                                                 size_t count, const struct figure_options *wanted,
                                                 struct diag *diag)
{
    struct trace *trace = heap_zalloc(count, sizeof *trace);
    struct figure_trace *named = heap_zalloc(count, sizeof *named);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        named[i] = (struct figure_trace){last_path_part(path[i]), &trace[i]};
        status = load_trace(&trace[i], path[i], wanted, true, diag);
    }
    if (status == STATUS_OK)
        status = figure_memory_of_several_traces(f, named, count, wanted, diag);
    for (size_t i = 0; i < count; i++)
        trace_release(&trace[i]);
    free(trace);
    free(named);
    return status;
}

/* Appends the model, the cluster and the strategy of a prediction: "llama3-8b on dgx-h100, ulysses". Those that its
 * JSON lacks are left out. */
static void put_subject(struct text *out, struct json_node root)
{
    static const char *const keys[] = {"model", "cluster", "strategy"};
    static const char *const before[] = {"", " on ", ", "};
    text_puts(out, "");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *value = "";
        struct json_node node = json_find_member(json_find_member(root, "configuration"), keys[i]);
        if (json_is_string(node))
            json_as_string(node, &value, NULL);
        if (value[0] != '\0')
            text_printf(out, "%s%s", out->size > 0 ? before[i] : "", value);
    }
}

static enum status plot_waterfall(struct figure *f, const char *path,
                                  const struct figure_options *wanted, struct diag *diag)
{
    struct stored_prediction stored = {0};
    struct waterfall waterfall;
    struct text subject = {0};
    enum status status = stored_prediction_load(&stored, path, diag);
    if (status == STATUS_OK)
        put_subject(&subject, json_root(&stored.json));
    if (status == STATUS_OK)
        status = stored_read_waterfall(&stored, &waterfall, diag);
    if (status == STATUS_OK)
        status = figure_waterfall(f, path, subject.data, &waterfall, wanted, diag);
    text_release(&subject);
    stored_prediction_release(&stored);
    return status;
}

static enum status plot_sweep(struct figure *f, const char *path,
                              const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_table(f, path, wanted, figure_sweep, diag);
}

static enum status plot_heatmap(struct figure *f, const char *path,
                                const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_table(f, path, wanted, figure_heatmap, diag);
}

static enum status plot_mfu(struct figure *f, const char *path, const struct figure_options *wanted,
                            struct diag *diag)
{
    return figure_from_table(f, path, wanted, figure_mfu, diag);
}

static enum status plot_error(struct figure *f, const char *path,
                              const struct figure_options *wanted, struct diag *diag)
{
    return figure_from_table(f, path, wanted, figure_error, diag);
}

/* The scales that the y axis of a figure can have. SCALE_NONE: the figure has no y axis of numbers. SCALE_EITHER:
 * linear, or logarithmic with --y-log. */
enum y_scale { SCALE_NONE, SCALE_LINEAR, SCALE_EITHER, SCALE_LOGARITHMIC };

static const struct figure_kind {
    const char *name;
    enum status (*make)(struct figure *figure, const char *path,
                        const struct figure_options *wanted, struct diag *diag);
    /* draws a figure from several files; NULL: the figure is drawn from one file */
    enum status (*make_many)(struct figure *figure, const char *const *path, size_t count,
                             const struct figure_options *wanted, struct diag *diag);
    bool can_filter_rows; /* the figure is drawn from rows, from which --only can choose */
    enum y_scale scale;
} plots[] = {
    {"timeline", plot_timeline, NULL, false, SCALE_NONE},
    {"pipeline", plot_pipeline, NULL, false, SCALE_NONE},
    {"memory", plot_memory, plot_memory_of_several_traces, false, SCALE_LINEAR},
    {"waterfall", plot_waterfall, NULL, false, SCALE_NONE},
    {"sweep", plot_sweep, NULL, true, SCALE_EITHER},
    {"heatmap", plot_heatmap, NULL, true, SCALE_EITHER},
    {"mfu", plot_mfu, NULL, true, SCALE_EITHER},
    {"error", plot_error, NULL, true, SCALE_LOGARITHMIC},
};

const char *plot_figure_kind_name_at(size_t i)
{
    return i < ARRAY_LEN(plots) ? plots[i].name : NULL;
}

static enum status find_figure_kind(const struct figure_kind **plot, const char *name,
                                    struct diag *diag)
{
    const char *names[ARRAY_LEN(plots)];
    struct text all = {0};
    for (size_t i = 0; i < ARRAY_LEN(plots); i++) {
        names[i] = plots[i].name;
        text_printf(&all, "%s%s", i == 0 ? "" : ", ", names[i]);
        if (strcmp(names[i], name) == 0) {
            *plot = &plots[i];
            text_release(&all);
            return STATUS_OK;
        }
    }
    enum status status = diag_error(diag, (struct loc){.name = "plot"}, STATUS_BAD_INPUT,
                                    "there is no figure '%s'; there are %s", name, all.data);
    text_release(&all);
    return status;
}

/* ---- the options of a figure ---- */

/* Parses a range such as "2..8", "2.." or "..8". text NULL: the option was not given, and *range
 * stays as it is. */
static enum status parse_figure_range(struct figure_axis_range *range, const char *text,
                                      struct diag *diag)
{
    const char *dots = text != NULL ? strstr(text, "..") : NULL;
    if (text == NULL)
        return STATUS_OK;
    bool good = dots != NULL;
    if (good) {
        const char *high = dots + 2;
        range->has_low = dots > text;
        range->has_high = *high != '\0';
        good = (range->has_low || range->has_high) &&
               (!range->has_low || parse_double(text, (size_t)(dots - text), &range->low)) &&
               (!range->has_high || parse_double(high, strlen(high), &range->high)) &&
               !(range->has_low && range->has_high && !(range->low < range->high));
    }
    return good
               ? STATUS_OK
               : diag_error(diag, (struct loc){.name = "--y-range"}, STATUS_BAD_INPUT,
                            "'%s' is no range: expected LOW..HIGH, LOW.. or ..HIGH, numbers in the "
                            "unit of the label, the lower one first",
                            text);
}

/* Checks that each condition of --only has the form COLUMN=VALUE,..., such as "zero=1,3". */
static enum status check_only_conditions(const struct figure_options *wanted, struct diag *diag)
{
    for (size_t i = 0; i < wanted->row_condition_count; i++) {
        const char *equals = strchr(wanted->row_conditions[i], '=');
        if (equals == NULL || equals == wanted->row_conditions[i] || equals[1] == '\0')
            return diag_error(diag, (struct loc){.name = "--only"}, STATUS_BAD_INPUT,
                              "'%s' is no choice of rows: expected COLUMN=VALUE,...",
                              wanted->row_conditions[i]);
    }
    return STATUS_OK;
}

static enum status refuse_option_of_other_figure(const char *option, const struct figure_kind *plot,
                                                 struct diag *diag)
{
    return diag_error(diag, (struct loc){.name = option}, STATUS_BAD_INPUT,
                      "does not apply to %s; `longhaul help plot` says which figures take it",
                      plot->name);
}

static enum status check_y_scale(const struct figure_kind *plot,
                                 const struct figure_options *wanted, struct diag *diag)
{
    bool given = wanted->y_range.has_low || wanted->y_range.has_high;
    bool log = wanted->is_y_log || plot->scale == SCALE_LOGARITHMIC;
    if (wanted->row_condition_count > 0 && !plot->can_filter_rows)
        return refuse_option_of_other_figure("--only", plot, diag);
    if (given && plot->scale == SCALE_NONE)
        return refuse_option_of_other_figure("--y-range", plot, diag);
    if (wanted->is_y_log && plot->scale == SCALE_LOGARITHMIC)
        return diag_error(diag, (struct loc){.name = "--y-log"}, STATUS_BAD_INPUT,
                          "the y axis of %s figures is always logarithmic", plot->name);
    if (wanted->is_y_log && plot->scale != SCALE_EITHER)
        return refuse_option_of_other_figure("--y-log", plot, diag);
    if (log && ((wanted->y_range.has_low && !(wanted->y_range.low > 0)) ||
                (wanted->y_range.has_high && !(wanted->y_range.high > 0))))
        return diag_error(diag, (struct loc){.name = "--y-range"}, STATUS_BAD_INPUT,
                          "a logarithmic axis needs limits above 0");
    return STATUS_OK;
}

/* ---- writing the figure, and the command ---- */

static bool ends_in(const char *path, const char *ending)
{
    size_t size = strlen(path), length = strlen(ending);
    return size > length && strcmp(path + size - length, ending) == 0;
}

/* True if the last part of a path has an extension, as "e.jpg" has, and ".figures" and "../e" have not. */
static bool has_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    return *name != '\0' && strchr(name + 1, '.') != NULL;
}

/* Refuses a path that exists and is no folder, and a path that does not exist but has an extension, since it is
 * probably meant as a file. Any other path is a folder, or one that may be created. */
static enum status check_figure_folder(const char *path, struct diag *diag)
{
    if (path_is_folder(path))
        return STATUS_OK;
    if (has_extension(path))
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is neither FILE.svg nor FILE.png; to write the data and the gnuplot "
                          "program into a folder, give '%s/'",
                          path);
    if (path_exists(path))
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is neither FILE.svg nor FILE.png nor a folder");
    return STATUS_OK;
}

static enum status write_figure(const struct figure *figure, const char *path, bool dark,
                                struct diag *diag)
{
    bool png = ends_in(path, ".png");
    struct text picture = {0};
    enum status status;
    if (!png && !ends_in(path, ".svg")) {
        status = check_figure_folder(path, diag);
        return status == STATUS_OK
                   ? figure_save(figure, (struct figure_look){.is_dark = dark}, path, diag)
                   : status;
    }
    status = figure_draw(
        figure, (struct figure_look){.format = png ? FIGURE_PNG : FIGURE_SVG, .is_dark = dark},
        &picture, diag);
    if (status == STATUS_OK)
        status = file_set_write_single_file(path, picture.data, picture.size, diag);
    text_release(&picture);
    return status;
}

enum status cmd_plot(const struct options *options, struct diag *diag)
{
    const struct figure_kind *plot = NULL;
    struct figure figure = {0};
    struct figure_options wanted = {
        .title = options_text(options, "title"),
        .x_column = options_text(options, "x"),
        .y_column = options_text(options, "y"),
        .shown_from_s = options_number(options, "from"),
        .shown_to_s = options_number(options, "to"),
        .op_window_text = options_text(options, "window"),
        .rank = (long)options_whole_number(options, "rank"),
        .memory_name = options_text(options, "memory"),
        .is_y_log = is_option_given(options, "y-log"),
    };
    wanted.row_conditions = options_list(options, "only", &wanted.row_condition_count);
    const char *path = options_text(options, "o");
    enum status status = find_figure_kind(&plot, options->positional_arguments[0], diag);
    if (status == STATUS_OK && path == NULL)
        status = diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                            "is missing: the figure's FILE.svg or FILE.png");
    if (status == STATUS_OK)
        status = parse_figure_range(&wanted.y_range, options_text(options, "y-range"), diag);
    if (status == STATUS_OK)
        status = check_only_conditions(&wanted, diag);
    if (status == STATUS_OK)
        status = check_y_scale(plot, &wanted, diag);
    size_t files = options->argument_count - 1;
    if (status == STATUS_OK && files > 1 && plot->make_many == NULL)
        status =
            diag_error(diag, (struct loc){.name = "plot"}, STATUS_BAD_INPUT,
                       "a %s figure shows one file, but %zu files are given", plot->name, files);
    if (status == STATUS_OK && wanted.op_window_text != NULL &&
        (wanted.shown_from_s > 0 || wanted.shown_to_s > 0))
        status = diag_error(
            diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
            "and --from or --to choose different intervals: give --window, or --from and --to");
    if (status == STATUS_OK)
        status = files > 1 ? plot->make_many(&figure, options->positional_arguments + 1, files,
                                             &wanted, diag)
                           : plot->make(&figure, options->positional_arguments[1], &wanted, diag);
    if (status == STATUS_OK)
        status = write_figure(&figure, path, is_option_given(options, "dark"), diag);
    figure_release(&figure);
    return status;
}
