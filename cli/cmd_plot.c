/* longhaul plot: figures of what other commands wrote. */
#include "cli/command.h"

#include "cli/figure.h"
#include "cli/stored.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const memory_choices[] = {"hbm", "pinned", "pageable"};

static const struct option rows[] = {
    {.name = "o",
     .kind = OPTION_TEXT,
     .value = "FILE.svg|FILE.png",
     .help = "where the figure goes; a folder, made when it is not there, takes the data and the "
             "gnuplot program instead"},
    {.name = "x",
     .kind = OPTION_TEXT,
     .value = "KEY",
     .unset = "the last that varies",
     .help = "of sweep and heatmap: the option along the axis"},
    {.name = "y",
     .kind = OPTION_TEXT,
     .value = "COLUMN",
     .unset = "tokens_per_s_gpu",
     .help = "the column that is drawn; of mfu: mfu_CONVENTION or hfu; of error: the metric"},
    {.name = "rank",
     .kind = OPTION_COUNT,
     .value = "N",
     .low = 0,
     .high = 1 << 30,
     .fallback = "0",
     .help = "of timeline and memory"},
    {.name = "memory",
     .kind = OPTION_CHOICE,
     .names = memory_choices,
     .name_count = ARRAY_LEN(memory_choices),
     .unset = "hbm",
     .help = "which of a rank's memories"},
    {.name = "from",
     .kind = OPTION_NUMBER,
     .value = "S",
     .unset = "0",
     .help = "of timeline and memory: seconds of the step at which the figure begins"},
    {.name = "to",
     .kind = OPTION_NUMBER,
     .value = "S",
     .unset = "the end of the step",
     .help = "and ends"},
    {.name = "window",
     .kind = OPTION_TEXT,
     .value = "OPS",
     .unset = "all ops",
     .help = "of timeline and memory: from the first to the last op of a phase, op=N..M, layer=N, "
             "chunk=N, step=N, or several of them: backward:layer=1"},
    {.name = "title",
     .kind = OPTION_TEXT,
     .value = "TEXT",
     .unset = "what is drawn",
     .help = "above the figure"},
    {.name = "dark", .kind = OPTION_FLAG, .help = "light on dark"},
};
const struct option_set plot_options = {"figure", rows, ARRAY_LEN(rows)};

/* ---- figures, a row each ---- */

/* A window of ops needs both tables. */
static enum status load_trace(struct trace *trace, const char *path, const struct figure_wish *wish,
                              bool memory, struct diag *diag)
{
    struct stat info;
    enum status status = stored_trace(trace, path, memory, diag);
    if (status != STATUS_OK || !memory || wish->window == NULL)
        return status;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return diag_error(diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
                          "names ops, and '%s' has none: give the folder of predict -o or run -o",
                          path);
    return stored_trace(trace, path, false, diag);
}

static enum status of_trace(struct figure *figure, const char *path, const struct figure_wish *wish,
                            enum status (*make)(struct figure *, const struct trace *,
                                                const struct figure_wish *, struct diag *),
                            bool memory, struct diag *diag)
{
    struct trace trace = {0};
    enum status status = load_trace(&trace, path, wish, memory, diag);
    if (status == STATUS_OK)
        status = make(figure, &trace, wish, diag);
    trace_release(&trace);
    return status;
}

static enum status of_table(struct figure *figure, const char *path, const struct figure_wish *wish,
                            enum status (*make)(struct figure *, const struct table *,
                                                const struct figure_wish *, struct diag *),
                            struct diag *diag)
{
    struct table table = {0};
    enum status status = table_load(&table, path, diag);
    if (status == STATUS_OK)
        status = make(figure, &table, wish, diag);
    table_release(&table);
    return status;
}

static enum status plot_timeline(struct figure *f, const char *path, const struct figure_wish *wish,
                                 struct diag *diag)
{
    return of_trace(f, path, wish, figure_timeline, false, diag);
}

static enum status plot_memory(struct figure *f, const char *path, const struct figure_wish *wish,
                               struct diag *diag)
{
    return of_trace(f, path, wish, figure_memory, true, diag);
}

/* "out/block-2" is "block-2" in the figure. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

static enum status plot_memories(struct figure *f, const char *const *path, size_t count,
                                 const struct figure_wish *wish, struct diag *diag)
{
    struct trace *trace = heap_zalloc(count, sizeof *trace);
    struct figure_trace *named = heap_zalloc(count, sizeof *named);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        named[i] = (struct figure_trace){last_part(path[i]), &trace[i]};
        status = load_trace(&trace[i], path[i], wish, true, diag);
    }
    if (status == STATUS_OK)
        status = figure_memories(f, named, count, wish, diag);
    for (size_t i = 0; i < count; i++)
        trace_release(&trace[i]);
    free(trace);
    free(named);
    return status;
}

static enum status plot_waterfall(struct figure *f, const char *path,
                                  const struct figure_wish *wish, struct diag *diag)
{
    struct stored stored = {0};
    struct waterfall waterfall;
    enum status status = stored_load(&stored, path, diag);
    if (status == STATUS_OK)
        status = stored_waterfall(&stored, &waterfall, diag);
    if (status == STATUS_OK)
        status = figure_waterfall(f, path, &waterfall, wish, diag);
    stored_release(&stored);
    return status;
}

static enum status plot_sweep(struct figure *f, const char *path, const struct figure_wish *wish,
                              struct diag *diag)
{
    return of_table(f, path, wish, figure_sweep, diag);
}

static enum status plot_heatmap(struct figure *f, const char *path, const struct figure_wish *wish,
                                struct diag *diag)
{
    return of_table(f, path, wish, figure_heatmap, diag);
}

static enum status plot_mfu(struct figure *f, const char *path, const struct figure_wish *wish,
                            struct diag *diag)
{
    return of_table(f, path, wish, figure_mfu, diag);
}

static enum status plot_error(struct figure *f, const char *path, const struct figure_wish *wish,
                              struct diag *diag)
{
    return of_table(f, path, wish, figure_error, diag);
}

static const struct plot {
    const char *name;
    enum status (*make)(struct figure *figure, const char *path, const struct figure_wish *wish,
                        struct diag *diag);
    /* of several files; NULL: takes one */
    enum status (*make_many)(struct figure *figure, const char *const *path, size_t count,
                             const struct figure_wish *wish, struct diag *diag);
} plots[] = {
    {"timeline", plot_timeline, NULL},   {"memory", plot_memory, plot_memories},
    {"waterfall", plot_waterfall, NULL}, {"sweep", plot_sweep, NULL},
    {"heatmap", plot_heatmap, NULL},     {"mfu", plot_mfu, NULL},
    {"error", plot_error, NULL},
};

static enum status find_plot(const struct plot **plot, const char *name, struct diag *diag)
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

/* ---- where it goes ---- */

static bool ends_in(const char *path, const char *ending)
{
    size_t size = strlen(path), length = strlen(ending);
    return size > length && strcmp(path + size - length, ending) == 0;
}

/* "e.jpg", but not ".figures" or "../e" */
static bool has_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    return *name != '\0' && strchr(name + 1, '.') != NULL;
}

/* Makes the folder of a figure where there is none. */
static enum status make_folder(const char *path, struct diag *diag)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return STATUS_OK;
    if (has_extension(path))
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is neither FILE.svg nor FILE.png; '%s/' would be a folder of data and "
                          "program",
                          path);
    if (mkdir(path, 0777) == 0)
        return STATUS_OK;
    if (errno == EEXIST)
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is neither FILE.svg nor FILE.png nor a folder");
    return diag_error(diag, (struct loc){.name = path}, STATUS_SYSTEM,
                      "cannot make the folder of data and program: %s", strerror(errno));
}

static enum status write_figure(const struct figure *figure, const char *path, bool dark,
                                struct diag *diag)
{
    bool png = ends_in(path, ".png");
    struct text picture = {0};
    enum status status;
    if (!png && !ends_in(path, ".svg")) {
        status = make_folder(path, diag);
        return status == STATUS_OK ? figure_save(figure, FIGURE_SVG, dark, path, diag) : status;
    }
    status = figure_draw(figure, png ? FIGURE_PNG : FIGURE_SVG, dark, &picture, diag);
    if (status == STATUS_OK)
        status = text_save(path, picture.data, picture.size, diag);
    text_release(&picture);
    return status;
}

enum status cmd_plot(const struct options *options, struct diag *diag)
{
    const struct plot *plot = NULL;
    struct figure figure = {0};
    struct figure_wish wish = {
        .title = options_text(options, "title"),
        .x = options_text(options, "x"),
        .y = options_text(options, "y"),
        .from_s = options_number(options, "from"),
        .to_s = options_number(options, "to"),
        .window = options_text(options, "window"),
        .rank = (long)options_count(options, "rank"),
        .memory = options_text(options, "memory"),
    };
    const char *path = options_text(options, "o");
    enum status status = find_plot(&plot, options->argument[0], diag);
    if (status == STATUS_OK && path == NULL)
        status = diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                            "is missing: the figure's FILE.svg or FILE.png");
    size_t files = options->argument_count - 1;
    if (status == STATUS_OK && files > 1 && plot->make_many == NULL)
        status = diag_error(diag, (struct loc){.name = "plot"}, STATUS_BAD_INPUT,
                            "%s is drawn of one file, and there are %zu", plot->name, files);
    if (status == STATUS_OK && wish.window != NULL && (wish.from_s > 0 || wish.to_s > 0))
        status = diag_error(diag, (struct loc){.name = "--window"}, STATUS_BAD_INPUT,
                            "is one window, and --from or --to another: give one");
    if (status == STATUS_OK)
        status = files > 1 ? plot->make_many(&figure, options->argument + 1, files, &wish, diag)
                           : plot->make(&figure, options->argument[1], &wish, diag);
    if (status == STATUS_OK)
        status = write_figure(&figure, path, options_given(options, "dark"), diag);
    figure_release(&figure);
    return status;
}
