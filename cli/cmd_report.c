/* longhaul report: one page of HTML about what another command wrote. */
#include "base/file_set.h"
#include "base/path.h"
#include "cli/command.h"

#include "cli/common/output.h"
#include "cli/folder/trace_folder.h"
#include "cli/page/pages.h"

#include <stdint.h>
#include <string.h>

static const struct option rows[] = {
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.html",
     .unset_text = "report.html in the last folder given, or the last file's name with .html",
     .help = "the HTML file to which the page is written; - is standard output"},
    {.name = "title",
     .kind = OPTION_TEXT,
     .value_name = "TEXT",
     .unset_text = "what is reported",
     .help = "title of the page"},
};
const struct option_set report_options = {"page", rows, ARRAY_LEN(rows)};

static bool has_file(const char *folder, const char *name)
{
    struct text path = {0};
    text_printf(&path, "%s/%s", folder, name);
    bool file_exists = path_exists(path.data);
    text_release(&path);
    return file_exists;
}

/* Makes the page of a folder that has a prediction.json, as those of `predict -o` and `plan -o` have. Refuses the
 * folder of a run, which has only measured ops, and any other folder. */
static enum status page_of_folder(struct page *page, const char *path, const char *title,
                                  struct diag *diag)
{
    const struct loc at = {.name = path};
    if (has_file(path, "prediction.json"))
        return page_of_prediction(page, path, title, diag);
    if (has_file(path, "ops.csv"))
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "holds the ops of a run (run -o) and no prediction; `longhaul report "
                          "PREDICTION %s` makes a page of both, where PREDICTION is a folder of "
                          "predict -o, and `longhaul compare PREDICTION %s` prints it",
                          path, path);
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "is a folder without prediction.json, which predict -o leaves in its own");
}

/* Makes the page of a CSV file. Its columns show which command wrote it. */
static enum status page_of_rows(struct page *page, const char *path, const char *title,
                                struct diag *diag)
{
    struct table table = {0};
    size_t size = strlen(path);
    if (size > 5 && strcmp(path + size - 5, ".json") == 0)
        return diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                          "is JSON; a page is made of a folder of predict -o (give the folder), or "
                          "of the CSV rows of sweep or validate -o");
    enum status status = table_load(&table, path, diag);
    if (status == STATUS_OK && table_find_column(&table, "predicted") != SIZE_MAX)
        status = page_of_validation(page, &table, title, diag);
    else if (status == STATUS_OK && table_find_column(&table, "tokens_per_s_gpu") != SIZE_MAX)
        status = page_of_sweep(page, &table, title, diag);
    else if (status == STATUS_OK)
        status = diag_error(diag, (struct loc){.name = path}, STATUS_BAD_INPUT,
                            "is neither a folder of predict -o nor rows of sweep or validate -o");
    table_release(&table);
    return status;
}

/* Appends the path of the page for a command without -o: report.html in the folder that is read, or the path of the
 * file that is read with .html as its extension. If standard input is read, the path is "-", standard output. */
static void put_default_page_path(struct text *out, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t size = strlen(path);
    if (path_is_folder(path)) {
        while (size > 1 && path[size - 1] == '/')
            size--;
        text_append(out, path, size);
        text_puts(out, "/" TRACE_FOLDER_PAGE);
        return;
    }
    if (strcmp(path, "-") == 0) {
        text_puts(out, path);
        return;
    }
    if (dot != NULL && dot > path && (slash == NULL || dot > slash + 1))
        size = (size_t)(dot - path);
    text_append(out, path, size);
    text_puts(out, ".html");
}

/* Writes the page. Says where it is, unless the user gave the path or it is standard output. */
static enum status write_page(const struct page *page, const struct options *options,
                              struct diag *diag)
{
    struct text path = {0}, said = {0};
    bool given = is_option_given(options, "o");
    if (given)
        text_puts(&path, options_text(options, "o"));
    else
        put_default_page_path(&path, options->positional_arguments[options->argument_count - 1]);
    enum status status =
        file_set_write_single_file(path.data, page->html.data, page->html.size, diag);
    text_printf(&said, "The page is in %s.\n", path.data);
    if (status == STATUS_OK && !given && strcmp(path.data, "-") != 0)
        status = command_print(&said, diag);
    text_release(&path);
    text_release(&said);
    return status;
}

enum status cmd_report(const struct options *options, struct diag *diag)
{
    struct page page = {0};
    const char *first = options->positional_arguments[0], *title = options_text(options, "title");
    enum status status;
    if (options->argument_count == 2)
        status = page_of_comparison(&page, first, options->positional_arguments[1], title, diag);
    else if (path_is_folder(first))
        status = page_of_folder(&page, first, title, diag);
    else
        status = page_of_rows(&page, first, title, diag);
    if (status == STATUS_OK)
        status = write_page(&page, options, diag);
    text_release(&page.html);
    return status;
}
