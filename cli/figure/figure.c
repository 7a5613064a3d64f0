#define _XOPEN_SOURCE 700 /* for realpath() */

#include "cli/figure/figure.h"

#include "base/data_path.h"
#include "base/file_set.h"
#include "base/open_file.h"
#include "base/process.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void figure_release(struct figure *figure)
{
    text_release(&figure->csv);
    text_release(&figure->gnuplot_settings);
    *figure = (struct figure){0};
}

void figure_put_quoted(struct text *out, const char *text)
{
    text_putc(out, '\'');
    size_t from = out->size;
    utf8_append_repaired(out, text);
    struct text quoted = {0};
    for (size_t i = from; i < out->size; i++) {
        char c = out->data[i];
        if (c == '\'')
            text_putc(&quoted, c);
        text_putc(&quoted, (unsigned char)c < ' ' || c == 0x7f ? ' ' : c);
    }
    out->size = from;
    text_append(out, quoted.data, quoted.size);
    text_release(&quoted);
    text_putc(out, '\'');
}

void figure_set_text(struct figure *figure, const char *name, const char *text)
{
    text_printf(&figure->gnuplot_settings, "%s = ", name);
    figure_put_quoted(&figure->gnuplot_settings, text);
    text_putc(&figure->gnuplot_settings, '\n');
}

void figure_set_number(struct figure *figure, const char *name, double value)
{
    text_printf(&figure->gnuplot_settings, "%s = %.17g\n", name, value);
}

void figure_put_name_in_list(struct text *list, const char *name)
{
    if (list->size > 0)
        text_putc(list, ' ');
    for (const char *c = name; *c != '\0'; c++)
        text_putc(list, *c == ' ' ? '_' : *c);
}

void figure_put_subject(struct text *title, const struct trace *trace)
{
    const char *model = trace_get_key(trace, "model"), *cluster = trace_get_key(trace, "cluster"),
               *strategy = trace_get_key(trace, "strategy");
    const char *before = ": ";
    if (model != NULL) {
        text_printf(title, ": %s", model);
        before = " ";
    }
    if (cluster != NULL) {
        text_printf(title, "%son %s", before, cluster);
        before = ", ";
    }
    if (strategy != NULL)
        text_printf(title, "%s%s", model != NULL || cluster != NULL ? ", " : before, strategy);
}

/* Sizes in points, as the scripts draw them. KEY_LINE: the height of a line of the key; KEY_AROUND: the height of
 * the figure above and below the key; KEY_LETTER: the width of a letter of the key; LINES_WIDE: the width of the
 * figure without the letters of the key. */
enum { KEY_LINE = 18, KEY_LETTER = 8, KEY_AROUND = 130, LINES_WIDE = 640 };

void figure_set_series_names(struct figure *figure, const char *const *name, size_t count)
{
    size_t longest = 0;
    figure_set_number(figure, "series", (double)count);
    for (size_t i = 0; i < count; i++) {
        char variable[32];
        snprintf(variable, sizeof variable, "name%zu", i + 1);
        figure_set_text(figure, variable, name[i]);
        longest = strlen(name[i]) > longest ? strlen(name[i]) : longest;
    }
    int high = KEY_AROUND + KEY_LINE * (int)(count + 2);
    int wide = LINES_WIDE + KEY_LETTER * (int)longest;
    figure->height = figure->height > high ? figure->height : high;
    figure->width = figure->width > wide ? figure->width : wide;
}

void figure_set_y_axis(struct figure *figure, const struct figure_options *wanted)
{
    figure_set_number(figure, "y_log", wanted->is_y_log);
    if (wanted->y_range.has_low)
        figure_set_number(figure, "y_low", wanted->y_range.low);
    if (wanted->y_range.has_high)
        figure_set_number(figure, "y_high", wanted->y_range.high);
}

/* Appends the program for gnuplot: the variables and the data that the script needs, and then the script. */
static enum status put_gnuplot_program(struct text *out, const struct figure *figure,
                                       struct figure_look look, const char *data,
                                       const char *output, struct diag *diag)
{
    static const char *const names[] = {"svg", "png"};
    struct text folder = {0};
    enum status status = data_path(&folder, "plots", diag);
    if (status == STATUS_OK) {
        char *whole = realpath(folder.data, NULL); /* gnuplot may run in another folder */
        text_printf(out, "format = '%s'\ndark = %d\nwide = %d\nhigh = %d\n", names[look.format],
                    look.is_dark, look.is_narrow ? FIGURE_NARROW : figure->width,
                    look.is_narrow && figure->narrow_height > 0 ? figure->narrow_height
                                                                : figure->height);
        if (look.follows_theme)
            text_puts(out, "themed = 1\n");
        text_puts(out, "folder = ");
        figure_put_quoted(out, whole != NULL ? whole : folder.data);
        free(whole);
        text_puts(out, "\ndata = ");
        figure_put_quoted(out, data);
        text_puts(out, "\noutput = ");
        figure_put_quoted(out, output);
        text_putc(out, '\n');
        text_append(out, figure->gnuplot_settings.data, figure->gnuplot_settings.size);
        text_printf(out, "load folder.'/%s.gp'\n", figure->script_name);
    }
    text_release(&folder);
    return status;
}

/* ---- gnuplot ---- */

/* The files through which data go to gnuplot and come back. They have no names, and exist only as long as some
 * process has them open, so that an interrupt leaves no file. The values are the descriptors under which gnuplot has
 * the files. */
enum gnuplot_channel {
    CHANNEL_PROGRAM,
    CHANNEL_PICTURE,
    CHANNEL_MESSAGES,
    CHANNEL_DATA,
    CHANNEL_COUNT
};
#define DATA_PATH "/dev/fd/3"
#define GNUPLOT_PICTURE_PATH "/dev/fd/1"

static bool write_channel_and_rewind(int fd, const struct text *text)
{
    return open_file_write_all_to_fd(fd, text->data, text->size) && lseek(fd, 0, SEEK_SET) == 0;
}

static _Noreturn void exec_gnuplot(const int channel[CHANNEL_COUNT], pid_t parent)
{
    process_end_with_parent(parent);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (dup2(channel[i], i) < 0)
            _exit(126);
    setenv("LC_ALL", "C.UTF-8", 1);
    execlp("gnuplot", "gnuplot", "-", (char *)NULL);
    _exit(errno == ENOENT ? 127 : 126);
}

static enum status run_gnuplot(const int channel[CHANNEL_COUNT], int *code, struct diag *diag)
{
    struct loc at = {.name = "gnuplot"};
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        exec_gnuplot(channel, parent);
    int state = 0;
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    if (*code == 127)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "draws the figures and is not installed: try `apt-get install "
                          "gnuplot-nox fonts-dejavu-core`");
    if (WIFSIGNALED(state))
        return diag_error(diag, at, STATUS_SYSTEM, "was ended by signal %d (%s)", WTERMSIG(state),
                          strsignal(WTERMSIG(state)));
    return STATUS_OK;
}

/* Returns the last line of gnuplot's messages (*words), which says what is wrong; the lines before it quote the script.
 * If there is no message, returns a text that says whether the picture was cut off. drawn: the bytes of the picture.
 * Removes blanks and line ends at the end of *words. */
static const char *last_line_of_gnuplot_messages(struct text *words, size_t drawn)
{
    while (words->size > 0 && strchr("\n ", words->data[words->size - 1]) != NULL)
        words->data[--words->size] = '\0';
    if (words->size == 0)
        return drawn > 0 ? "the picture was cut off" : "it says nothing";
    const char *line = strrchr(words->data, '\n');
    line = line == NULL ? words->data : line + 1;
    return line + strspn(line, " ");
}

/* Returns whether a picture is complete. gnuplot does not report that it could not write all of it. */
static bool is_complete_picture(const struct text *picture, enum figure_format format)
{
    static const struct {
        const char *text;
        size_t size;
    } ends[] = {{"</svg>", 6}, {"IEND\xae\x42\x60\x82", 8}};
    size_t size = picture->size, ending = ends[format].size;
    while (size > 0 && picture->data[size - 1] == '\n')
        size--;
    return size > ending && memcmp(picture->data + size - ending, ends[format].text, ending) == 0;
}

/* Removes the attribute that makes boxes begin and end at whole pixels, with which narrow boxes of equal width look
 * different. */
static void remove_pixel_snapping(struct text *svg)
{
    static const char snap[] = " shape-rendering=\'crispEdges\'";
    for (char *at = svg->data; at != NULL && (at = strstr(at, snap)) != NULL;) {
        const size_t size = strlen(snap);
        memmove(at, at + size, svg->size - (size_t)(at - svg->data) - size + 1);
        svg->size -= size;
    }
}

static enum status run_gnuplot_and_read_picture(const struct figure *figure,
                                                enum figure_format format,
                                                const struct text *program,
                                                const int channel[CHANNEL_COUNT],
                                                struct text *picture, struct diag *diag)
{
    struct text words = {0}, got = {0};
    int code = 0;
    if (!write_channel_and_rewind(channel[CHANNEL_PROGRAM], program) ||
        !write_channel_and_rewind(channel[CHANNEL_DATA], &figure->csv))
        return diag_error(diag, (struct loc){.name = "gnuplot"}, STATUS_SYSTEM,
                          "cannot write the program of the figure to its standard input: %s",
                          strerror(errno));
    enum status status = run_gnuplot(channel, &code, diag);
    if (status == STATUS_OK &&
        (code != 0 || !open_file_read_all_from_fd(channel[CHANNEL_PICTURE], &got) ||
         !is_complete_picture(&got, format))) {
        open_file_read_all_from_fd(channel[CHANNEL_MESSAGES], &words);
        status = diag_error(diag, (struct loc){.name = "gnuplot"}, STATUS_SYSTEM,
                            "cannot draw plots/%s.gp: %s", figure->script_name,
                            last_line_of_gnuplot_messages(&words, got.size));
    }
    if (status == STATUS_OK && format == FIGURE_SVG)
        remove_pixel_snapping(&got);
    if (status == STATUS_OK)
        text_append(picture, got.data, got.size);
    text_release(&words);
    text_release(&got);
    return status;
}

enum status figure_draw(const struct figure *figure, struct figure_look look, struct text *picture,
                        struct diag *diag)
{
    struct text program = {0};
    int channel[CHANNEL_COUNT];
    bool made = true;
    for (int i = 0; i < CHANNEL_COUNT; i++) {
        /* the descriptor is above those under which gnuplot gets the files */
        channel[i] = process_create_memory_file(CHANNEL_COUNT);
        made = made && channel[i] >= 0;
    }
    enum status status = STATUS_OK;
    if (!made)
        status = diag_error(diag, (struct loc){.name = "gnuplot"}, STATUS_SYSTEM,
                            "cannot write the program of the figure to its standard input: %s",
                            strerror(errno));
    if (status == STATUS_OK)
        status = put_gnuplot_program(&program, figure, look, DATA_PATH, GNUPLOT_PICTURE_PATH, diag);
    if (status == STATUS_OK)
        status =
            run_gnuplot_and_read_picture(figure, look.format, &program, channel, picture, diag);
    for (int i = 0; i < CHANNEL_COUNT; i++)
        if (channel[i] >= 0)
            close(channel[i]);
    text_release(&program);
    return status;
}

enum status figure_save(const struct figure *figure, struct figure_look look, const char *folder,
                        struct diag *diag)
{
    struct text program = {0};
    struct file_set files = {.folder = folder};
    enum status status =
        put_gnuplot_program(&program, figure, look, "data.csv",
                            look.format == FIGURE_SVG ? "figure.svg" : "figure.png", diag);
    if (status == STATUS_OK)
        status = file_set_begin(&files, diag);
    if (status == STATUS_OK)
        status = file_set_add(&files, "data.csv", figure->csv.data, figure->csv.size, diag);
    if (status == STATUS_OK)
        status = file_set_add(&files, "figure.gp", program.data, program.size, diag);
    if (status == STATUS_OK)
        status = file_set_end(&files, diag);
    file_set_release(&files);
    text_release(&program);
    return status;
}
