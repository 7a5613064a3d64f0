/* longhaul reproduce: figures and tables of papers, by name. */
#include "cli/command.h"

#include "base/data_path.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/common/table.h"
#include "cli/reproduce/output.h"
#include "cli/reproduce/run.h"
#include "cli/validate/external_setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMN = 24 }; /* the width of the column of names in text */

static const struct option rows[] = {
    {.name = "list",
     .kind = OPTION_FLAG,
     .help = "print the name of every figure and table, what it shows, and how well predictions "
             "matched it when the program was made"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .help = "the folder into which rows (CSV), figures (SVG, light and dark), a text that says "
             "which predictions agree with the paper and, for several entries, a page (index.html) "
             "are written; the same command resumes an interrupted one"},
    OPTIONS_JOBS_INITIALIZER,
    {.name = "catalogue",
     .kind = OPTION_TEXT,
     .value_name = "FILE.json",
     .unset_text = "the one that ships",
     .help = "file of figures and tables, in the format of docs/reproducing.md"},
};
const struct option_set reproduce_options = {"reproduction", rows, ARRAY_LEN(rows)};

/* ---- --list ---- */

/* Returns the row of an entry in the table of states, traces/published/reproduced.csv, which says how well the
 * predictions of each entry matched when the program was made; SIZE_MAX: the table has no such row. */
static size_t find_state_row(const struct table *states, const char *name)
{
    size_t column = table_find_column(states, "name");
    for (size_t i = 0; column != SIZE_MAX && i < states->row_count; i++)
        if (strcmp(states->cells[i][column], name) == 0)
            return i;
    return SIZE_MAX;
}

static void put_entry_state(struct text *out, const struct catalogue_entry *entry,
                            const struct table *states)
{
    size_t row = find_state_row(states, entry->name[0]), state = table_find_column(states, "state"),
           what = table_find_column(states, "what");
    if (entry->kind == ENTRY_NOT_SIMULABLE) {
        text_printf(out, "%s: %s", outcome_state_names[STATE_NOT_SIMULABLE], entry->reason);
        return;
    }
    if (row == SIZE_MAX || state == SIZE_MAX || what == SIZE_MAX) {
        text_puts(out, "not run yet");
        return;
    }
    text_puts(out, states->cells[row][state]);
    if (states->cells[row][what][0] != '\0')
        text_printf(out, ": %s", states->cells[row][what]);
    if (entry->reason != NULL && strcmp(states->cells[row][state], "off") == 0)
        text_printf(out, "; %s", entry->reason);
}

static void put_entry(struct text *out, const struct catalogue_entry *entry,
                      const struct table *states)
{
    struct text shows = {0}, state = {0};
    text_puts(&shows, entry->subject);
    for (size_t i = 1; i < entry->name_count; i++)
        text_printf(&shows, "%s%s%s", i == 1 ? " (also " : ", ", entry->name[i],
                    i + 1 == entry->name_count ? ")" : "");
    put_entry_state(&state, entry, states);
    text_printf(out, "%-*s", COLUMN - 1, entry->name[0]);
    text_putc(out, ' ');
    screen_wrap(out, shows.data, COLUMN, COLUMN, screen_width(STDOUT_FILENO));
    text_printf(out, "%*s", COLUMN, "");
    screen_wrap(out, state.data, COLUMN, COLUMN, screen_width(STDOUT_FILENO));
    text_release(&shows);
    text_release(&state);
}

static enum status print_catalogue_list(const char *path, struct diag *diag)
{
    struct catalogue catalogue = {0};
    struct table states = {0};
    struct text out = {0}, found = {0};
    enum status status = catalogue_load(&catalogue, path, diag);
    if (status == STATUS_OK)
        status = data_path(&found, "traces/published/reproduced.csv", diag);
    if (status == STATUS_OK)
        status = table_load(&states, found.data, diag);
    for (size_t e = 0; status == STATUS_OK && e < catalogue.entry_count; e++)
        put_entry(&out, &catalogue.entry[e], &states);
    if (status == STATUS_OK)
        status = command_print(&out, diag);
    text_release(&out);
    text_release(&found);
    table_release(&states);
    catalogue_release(&catalogue);
    return status;
}

/* ---- running and writing entries, and the command ---- */

static enum status select_entries(struct reproduction *r, bool *wanted,
                                  const struct options *options, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < options->argument_count; i++) {
        size_t entry;
        if (strcmp(options->positional_arguments[i], "all") == 0) {
            memset(wanted, true, r->catalogue.entry_count * sizeof *wanted);
            continue;
        }
        status = catalogue_find(&r->catalogue, options->positional_arguments[i], &entry, diag);
        if (status == STATUS_OK)
            wanted[entry] = true;
    }
    for (size_t e = 0; status == STATUS_OK && e < r->catalogue.entry_count; e++)
        if (wanted[e])
            status = reproduction_mark_entry_jobs_wanted(r, e, diag);
    return status;
}

static enum status make_folder(const char *folder, struct diag *diag)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "-o"}, STATUS_SYSTEM,
                      "cannot make the folder '%s': %s", folder, strerror(errno));
}

static enum status run_entries(struct reproduction *r, const char *folder, size_t jobs,
                               struct diag *diag)
{
    struct text path = {0};
    struct answers answers = {0};
    enum status status = make_folder(folder, diag);
    text_printf(&path, "%s/answers", folder);
    if (status == STATUS_OK)
        status = answers_open(&answers, path.data, r, diag);
    if (status == STATUS_OK)
        status = reproduce_run_pending_jobs(r, &answers, folder, jobs, diag);
    answers_release(&answers);
    text_release(&path);
    return status;
}

static enum status write_entries(const struct reproduction *r, const bool *wanted,
                                 const char *folder, struct text *out, struct diag *diag)
{
    size_t entries = 0;
    enum status status = STATUS_OK;
    for (size_t e = 0; status == STATUS_OK && e < r->catalogue.entry_count; e++) {
        if (!wanted[e])
            continue;
        entries++;
        status = output_write_entry(r, e, folder, diag);
        text_printf(out, "%s%s: %s\n", entries > 1 ? "\n" : "", r->catalogue.entry[e].name[0],
                    r->catalogue.entry[e].subject);
        outcome_put_paragraph(out, r, e);
    }
    if (status == STATUS_OK && entries > 1)
        status = output_write_page(r, wanted, folder, diag);
    return status;
}

/* Prints `lines`, wrapped at the width of the terminal if standard output is one. Overwrites their
 * line ends. */
static enum status print_wrapped(struct text *lines, struct diag *diag)
{
    struct text out = {0};
    size_t width = screen_width(STDOUT_FILENO);
    for (char *line = lines->data; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        screen_wrap(&out, line, 2, 0, width);
        line = end == NULL ? NULL : end + 1;
    }
    enum status status = command_print(&out, diag);
    text_release(&out);
    return status;
}

static enum status reproduce_selected_entries(const struct options *options, struct diag *diag)
{
    struct reproduction r = {0};
    struct text out = {0};
    const char *folder = options_text(options, "o");
    enum status status =
        reproduction_open(&r, options_text(options, "catalogue"), external_setup_read_args, diag);
    bool *wanted = heap_zalloc(r.catalogue.entry_count + 1, sizeof *wanted);
    if (status == STATUS_OK)
        status = select_entries(&r, wanted, options, diag);
    if (status == STATUS_OK)
        status = run_entries(&r, folder, (size_t)options_whole_number(options, "jobs"), diag);
    if (status == STATUS_OK) {
        reproduction_judge_points(&r);
        status = write_entries(&r, wanted, folder, &out, diag);
    }
    if (status == STATUS_OK)
        status = print_wrapped(&out, diag);
    text_release(&out);
    free(wanted);
    reproduction_release(&r);
    command_exit_if_interrupted(diag);
    return status;
}

enum status cmd_reproduce(const struct options *options, struct diag *diag)
{
    const struct loc at = {.name = "reproduce"};
    bool list = is_option_given(options, "list");
    if (list && (options->argument_count > 0 || is_option_given(options, "o")))
        return diag_error(
            diag, (struct loc){.name = "--list"}, STATUS_BAD_INPUT,
            "prints all figures and tables: it cannot be combined with the name of one or with -o");
    if (list)
        return print_catalogue_list(options_text(options, "catalogue"), diag);
    if (options->argument_count == 0)
        return diag_error(diag, at, STATUS_BAD_INPUT,
                          "the name of a figure or table is missing: `longhaul reproduce --list` "
                          "prints the names; 'all' is all of them");
    if (!is_option_given(options, "o"))
        return diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                          "is missing: the folder that takes rows, figures and text");
    return reproduce_selected_entries(options, diag);
}
