/* longhaul sweep: a grid of options, one row of CSV per point. */
#include "cli/command.h"

#include "base/interrupt.h"
#include "cli/common/output.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/options.h"
#include "cli/sweep/predictor.h"
#include "cli/sweep/remote.h"
#include "cli/sweep/summary.h"
#include "cli/sweep/sweep.h"

#include <stdio.h>
#include <string.h>

static const struct option rows[] = {
    {.name = "vary",
     .kind = OPTION_REPEATABLE,
     .value_name = "KEY=VALUES",
     .help = "an option and its values (zero=1,2,3 or seq=64K..1M:x2 or hp=1..8:+1), or a number "
             "of the cluster's description and its values (nic.bandwidth=100,200,400Gb/s); may be "
             "repeated, and "
             "the first changes slowest"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "FILE.csv",
     .unset_text = "standard output, and nothing is kept of a sweep that ends early",
     .help = "the file to which rows are written; the same command resumes a sweep that ended "
             "early"},
    OPTIONS_JOBS_INITIALIZER,
    {.name = "part",
     .kind = OPTION_TEXT,
     .value_name = "K/N",
     .help = "predict only every N-th point, from the K-th on; the same command without --part "
             "joins the parts"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "with -o: print the summary of the sweep to standard output as JSON"},
};
const struct option_set sweep_options = {"sweep", rows, ARRAY_LEN(rows)};

static const struct option_set *const point_sets[] = {
    &setup_model_options,     &setup_cluster_options, &setup_choice_options,
    &setup_documents_options, &sweep_point_options,   NULL};

/* Parses --part: "2/8" is the second of eight parts of a sweep. */
static enum status parse_sweep_part_of_parts(struct sweep_options *sweep, const char *text,
                                             struct diag *diag)
{
    int64_t part, parts;
    const char *slash = text == NULL ? NULL : strchr(text, '/');
    if (text == NULL)
        return STATUS_OK;
    if (slash == NULL || !parse_i64(text, (size_t)(slash - text), &part) ||
        !parse_i64(slash + 1, strlen(slash + 1), &parts) || part < 1 || parts < part ||
        parts > GRID_POINTS_MAX)
        return diag_error(diag, (struct loc){.name = "--part"}, STATUS_BAD_INPUT,
                          "'%s' is not K/N with K from 1 to N, such as 2/8", text);
    sweep->part_number = (size_t)part;
    sweep->parts = (size_t)parts;
    return STATUS_OK;
}

static enum status check_option_conflicts(const struct options *options, struct diag *diag)
{
    static const char *const of_files[] = {"part", "json"};
    for (size_t i = 0; i < ARRAY_LEN(of_files); i++)
        if (is_option_given(options, of_files[i]) && !is_option_given(options, "o"))
            return diag_error(diag, (struct loc){.name = i == 0 ? "--part" : "--json"},
                              STATUS_BAD_INPUT, "needs -o, the file to write the rows to");
    return STATUS_OK;
}

/* Returns the verdict of a sweep whose rows went to standard output: that of sweep_summary_exit_status() for these
 * rows. */
static enum status verdict_of_printed_rows(const struct sweep_journal *journal, struct diag *diag)
{
    struct text text = {0};
    struct table table = {0};
    struct sweep_summary summary = {0};
    sweep_journal_put_csv(journal, &text);
    enum status status = table_parse(&table, "sweep", &text, diag);
    if (status == STATUS_OK)
        status = sweep_summary_make(&summary, &table, diag);
    if (status == STATUS_OK)
        status = sweep_summary_exit_status(&summary, &table, diag);
    sweep_summary_release(&summary);
    table_release(&table);
    text_release(&text);
    return status;
}

/* Ends a sweep, or a part of one (--part), whose points are all predicted. For a part, prints a line that says where
 * its rows are, unless an earlier run wrote the whole sweep. For a whole sweep, writes the rows in the order of the
 * grid, unless an earlier run wrote them; prints the summary if they are in a file; and returns the verdict. */
static enum status finish_sweep(struct sweep_journal *journal, const struct sweep_options *sweep,
                                const struct options *options, struct diag *diag)
{
    struct text out = {0};
    const char *path = options_text(options, "o");
    bool json = is_option_given(options, "json");
    enum status status = STATUS_OK;
    if (sweep->parts > 0 && !journal->is_complete) {
        text_printf(&out,
                    "part %zu of %zu is done: %zu rows in %s; when all parts are, the command "
                    "without --part joins them\n",
                    sweep->part_number, sweep->parts, journal->known_row_count,
                    journal->journal_path.data);
        status = command_print(&out, diag);
    } else {
        if (!journal->is_complete)
            status = sweep_journal_write_sweep_file(journal, diag);
        if (status == STATUS_OK && path != NULL)
            status = sweep_print_summary(path, journal->resumed_row_count, journal->is_complete,
                                         json, diag);
        else if (status == STATUS_OK)
            status = verdict_of_printed_rows(journal, diag);
    }
    text_release(&out);
    return status;
}

enum status cmd_sweep(const struct options *options, struct diag *diag)
{
    struct sweep_grid grid = {0};
    struct sweep_journal journal = {0};
    struct sweep_options sweep = {
        .worker_count = (size_t)options_whole_number(options, "jobs"),
    };
    struct launcher launcher = {0};
    struct diag note = {0};
    size_t count;
    const char *const *vary = options_list(options, "vary", &count);
    enum status status = check_option_conflicts(options, diag);
    if (status == STATUS_OK)
        status = parse_sweep_part_of_parts(&sweep, options_text(options, "part"), diag);
    if (status == STATUS_OK)
        status = sweep_grid_make(&grid, point_sets, options, vary, count, diag);
    if (status == STATUS_OK)
        status = sweep_check_setup(&grid, diag);
    if (status == STATUS_OK)
        status = launcher_load_if_started_by_mpirun(&launcher, diag);
    if (status == STATUS_OK && launcher.process_count > 1 && sweep.parts > 0)
        status = diag_error(diag, (struct loc){.name = "--part"}, STATUS_BAD_INPUT,
                            "the launcher already distributes all points over its processes; "
                            "leave --part out");
    if (status == STATUS_OK && launcher.rank > 0) {
        status = sweep_predict_points_for_rank_0(&grid, sweep.worker_count, &launcher, diag);
        goto out;
    }
    if (status == STATUS_OK)
        status = sweep_journal_open(&journal, &grid, options_text(options, "o"), sweep.part_number,
                                    sweep.parts, diag);
    if (status == STATUS_OK && (!journal.is_complete || launcher.process_count > 1))
        status = sweep_run(&grid, &sweep, &journal, &launcher, diag);
    if (status == STATUS_OK)
        status = finish_sweep(&journal, &sweep, options, diag);
    if (status == STATUS_OK || status == STATUS_NO) {
        sweep_note_idle_options(&grid, &note);
        command_print_notes(&note);
    }
out:
    diag_release(&note);
    sweep_journal_release(&journal);
    sweep_grid_release(&grid);
    command_exit_if_interrupted(diag);
    return status;
}
