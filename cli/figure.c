#define _DEFAULT_SOURCE /* mkdtemp */

#include "cli/figure.h"

#include "base/data_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void figure_release(struct figure *figure)
{
    text_release(&figure->data);
    text_release(&figure->set);
    *figure = (struct figure){0};
}

/* A text of gnuplot in single quotes, where only the quote itself means something. */
static void put_quoted(struct text *out, const char *text)
{
    text_putc(out, '\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            text_puts(out, "''");
        else
            text_putc(out, (unsigned char)*text < ' ' ? ' ' : *text);
    text_putc(out, '\'');
}

void figure_set_text(struct figure *figure, const char *name, const char *text)
{
    text_printf(&figure->set, "%s = ", name);
    put_quoted(&figure->set, text);
    text_putc(&figure->set, '\n');
}

void figure_set_number(struct figure *figure, const char *name, double value)
{
    text_printf(&figure->set, "%s = %.17g\n", name, value);
}

/* Everything that the script needs, and then the script. */
static enum status put_program(struct text *out, const struct figure *figure,
                               enum figure_format format, bool dark, const char *data,
                               const char *output, struct diag *diag)
{
    static const char *const names[] = {"svg", "png"};
    struct text folder = {0};
    enum status status = data_path(&folder, "plots", diag);
    if (status == STATUS_OK) {
        text_printf(out, "format = '%s'\ndark = %d\nwide = %d\nhigh = %d\n", names[format], dark,
                    figure->wide, figure->high);
        text_puts(out, "folder = ");
        put_quoted(out, folder.data);
        text_puts(out, "\ndata = ");
        put_quoted(out, data);
        text_puts(out, "\noutput = ");
        put_quoted(out, output);
        text_putc(out, '\n');
        text_append(out, figure->set.data, figure->set.size);
        text_printf(out, "load folder.'/%s.gp'\n", figure->script);
    }
    text_release(&folder);
    return status;
}

static enum status save_in(const char *folder, const char *name, const struct text *text,
                           struct diag *diag)
{
    struct text path = {0};
    text_printf(&path, "%s/%s", folder, name);
    enum status status =
        text_save(path.data, text->data == NULL ? "" : text->data, text->size, diag);
    text_release(&path);
    return status;
}

/* Runs `gnuplot figure.gp` in the folder. What it says goes to the file "words" there. */
static enum status run_gnuplot(const char *folder, int *code, struct diag *diag)
{
    struct loc at = {.name = "gnuplot"};
    pid_t pid = fork();
    if (pid < 0)
        return diag_error(diag, at, STATUS_SYSTEM, "cannot fork: %s", strerror(errno));
    if (pid == 0) {
        if (chdir(folder) != 0 || freopen("words", "w", stderr) == NULL ||
            freopen("words", "a", stdout) == NULL || freopen("/dev/null", "r", stdin) == NULL)
            _exit(126);
        setenv("LC_ALL", "C.UTF-8", 1);
        execlp("gnuplot", "gnuplot", "figure.gp", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    int state = 0;
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    if (*code == 127)
        return diag_error(diag, at, STATUS_SYSTEM,
                          "is not installed, and draws the figures: apt-get install gnuplot-nox "
                          "fonts-dejavu-core, or the like");
    return STATUS_OK;
}

/* gnuplot shows the place in its program first, and then says what is wrong. */
static const char *last_line(const char *words)
{
    const char *line = strrchr(words, '\n');
    return line == NULL ? words : line + 1;
}

static enum status draw_in(const char *folder, const struct figure *figure,
                           enum figure_format format, bool dark, struct text *picture,
                           struct diag *diag)
{
    struct text program = {0}, path = {0}, words = {0}, got = {0};
    int code = 0;
    enum status status = put_program(&program, figure, format, dark, "data.csv", "picture", diag);
    if (status == STATUS_OK)
        status = save_in(folder, "data.csv", &figure->data, diag);
    if (status == STATUS_OK)
        status = save_in(folder, "figure.gp", &program, diag);
    if (status == STATUS_OK)
        status = run_gnuplot(folder, &code, diag);
    text_printf(&path, "%s/picture", folder);
    if (status == STATUS_OK &&
        (code != 0 || text_read(&got, path.data, NULL) != STATUS_OK || got.size == 0)) {
        path.size = 0;
        text_printf(&path, "%s/words", folder);
        if (text_read(&words, path.data, NULL) == STATUS_OK)
            while (words.size > 0 && strchr("\n ", words.data[words.size - 1]) != NULL)
                words.data[--words.size] = '\0';
        status = diag_error(diag, (struct loc){.name = "gnuplot"}, STATUS_SYSTEM,
                            "cannot draw plots/%s.gp: %s", figure->script,
                            words.size > 0 ? last_line(words.data) : "it says nothing");
    }
    if (status == STATUS_OK)
        text_append(picture, got.data, got.size);
    text_release(&program);
    text_release(&path);
    text_release(&words);
    text_release(&got);
    return status;
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"data.csv", "figure.gp", "picture", "words"};
    struct text path = {0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        path.size = 0;
        text_printf(&path, "%s/%s", folder, names[i]);
        unlink(path.data);
    }
    rmdir(folder);
    text_release(&path);
}

enum status figure_draw(const struct figure *figure, enum figure_format format, bool dark,
                        struct text *picture, struct diag *diag)
{
    struct text folder = {0};
    const char *where = getenv("TMPDIR");
    text_printf(&folder, "%s/longhaul-XXXXXX", where != NULL && where[0] != '\0' ? where : "/tmp");
    enum status status;
    if (mkdtemp(folder.data) == NULL) {
        status = diag_error(diag, (struct loc){.name = folder.data}, STATUS_SYSTEM,
                            "cannot make a folder for a figure: %s", strerror(errno));
    } else {
        status = draw_in(folder.data, figure, format, dark, picture, diag);
        remove_folder(folder.data);
    }
    text_release(&folder);
    return status;
}

enum status figure_save(const struct figure *figure, enum figure_format format, bool dark,
                        const char *folder, struct diag *diag)
{
    struct text program = {0};
    enum status status = put_program(&program, figure, format, dark, "data.csv",
                                     format == FIGURE_SVG ? "figure.svg" : "figure.png", diag);
    if (status == STATUS_OK)
        status = save_in(folder, "data.csv", &figure->data, diag);
    if (status == STATUS_OK)
        status = save_in(folder, "figure.gp", &program, diag);
    text_release(&program);
    return status;
}
