/* longhaul plan: the longest sequence of a configuration, or the best configuration. */
#include "cli/command.h"

#include "base/digest.h"
#include "base/interrupt.h"
#include "cli/common/idle_options.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/folder/trace_folder.h"
#include "cli/folder/traces_out.h"
#include "cli/page/pages.h"
#include "cli/plan/cache.h"
#include "cli/plan/longest_report.h"
#include "cli/plan/report.h"
#include "cli/plan/winner_settings.h"
#include "cli/setup/documents_options.h"
#include "cli/setup/options.h"
#include "cli/setup/read_setup.h"
#include "predict/launch/launch.h"
#include "predict/plan/best.h"
#include "predict/setup/choice_rows.h"
#include "predict/setup/core_plan_option.h"
#include "schedule/config/resolve_config.h"

#include <string.h>

static const char *const goal_names[GOAL_COUNT] = {"speed", "gpus", "longest"};

static const struct option rows[] = {
    {.name = "goal",
     .kind = OPTION_CHOICE,
     .names = goal_names,
     .name_count = GOAL_COUNT,
     .unset_text = "speed",
     .help = "what is searched for: the most tokens/s/GPU at --seq, the fewest GPUs that hold "
             "--seq, or the longest sequence"},
    {.name = "top",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = 1000,
     .default_text = "5",
     .help = "how many configurations are shown"},
    {.name = "batches",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = 4096,
     .default_text = "8",
     .help = "with --documents: packed steps on which the best configurations are compared, by the "
             "median of their times"},
    {.name = "longest",
     .kind = OPTION_FLAG,
     .help = "print the longest sequence of this configuration that fits, what the next longer one "
             "lacks, and which other options, one at a time, make a longer one fit"},
    {.name = "within",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "SECONDS",
     .unset_text = "until the best is known",
     .help = "end the search for the fastest configuration after that many seconds, and print the "
             "best so far and by how much another one may be faster"},
    {.name = "gap",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "PERCENT",
     .unset_text = "until none can be faster",
     .help = "end the search for the fastest configuration once no other one can be faster by more "
             "than that"},
    {.name = "fits-probability",
     .kind = OPTION_POSITIVE_NUMBER,
     .value_name = "P",
     .default_text = "0.9",
     .help = "take what fits with this probability, from 0.5 to 0.99; a faster configuration that "
             "fits with less is shown beside it, with its odds"},
    {.name = "emit",
     .kind = OPTION_CHOICE,
     .names = framework_names,
     .name_count = FRAMEWORK_COUNT,
     .help = "print only the settings of a framework, for the best configuration that it can "
             "express exactly"},
    {.name = "emit-winner",
     .kind = OPTION_FLAG,
     .help = "with --emit: print the settings of the overall winner, even if the framework cannot "
             "express some of its options, which are then comments"},
    {.name = "only",
     .kind = OPTION_CHOICE,
     .names = framework_names,
     .name_count = FRAMEWORK_COUNT,
     .unset_text = "all",
     .help = "search only configurations that this framework can express, predicted as its own "
             "implementation unless --profile says another"},
    {.name = "all",
     .kind = OPTION_FLAG,
     .help = "after the summary of one screen, print every detail: each row's options and step, "
             "why each other "
             "strategy lost, and what other machines would change"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print JSON"},
    {.name = "o",
     .kind = OPTION_TEXT,
     .value_name = "DIR",
     .help = "write the winner's ops.csv, memory.csv, trace.json, prediction.json, "
             "plan.json and report.html into a folder; what was found out about each configuration "
             "is kept beside it in DIR.cache, so that a later plan with the same -o is faster"},
};
const struct option_set plan_options = {"plan", rows, ARRAY_LEN(rows)};

static enum framework framework_to_emit(const struct options *options)
{
    return (enum framework)options_index_of_choice(options, "emit");
}

static enum status print_unless_failed(struct text *out, enum status status, struct diag *diag)
{
    if (status != STATUS_OK && status != STATUS_NO)
        return status;
    enum status printed = command_print(out, diag);
    return printed == STATUS_OK ? status : printed;
}

/* Notes the options that were given but that no examined configuration uses. */
static void note_options_idle_in_all_rows(const struct options *options, const struct best *best)
{
    struct idle_options idle = {0};
    struct diag note = {0};
    for (size_t i = 0; i < best->row_count && is_possibly_idle_option_given(options); i++) {
        struct choices choices;
        const struct request *request = &best->row[i].request;
        if (resolve_choices(&choices, request, NULL, NULL) == STATUS_OK)
            idle_options_add_configuration(&idle, options, request, &choices);
        if (idle.given_bits != 0 && idle_options_are_all_used(&idle))
            break;
    }
    idle_options_add_notes(&idle, &note);
    command_print_notes(&note);
    diag_release(&note);
}

/* Warns of tokens that packing dropped. All steps of a search have sequences of one length, so the first packed set is
 * typical of all. */
static void note_dropped_tokens(const struct packed_sets *packed_sets)
{
    struct diag note = {0};
    struct text dropped = {0};
    if (packed_sets->set_count > 0)
        packing_put_dropped_tokens(&dropped, packed_sets->packed_set[0]->batch,
                                   packed_sets->packed_set[0]->batch_count,
                                   packed_sets->packed_set[0]->packing_options.sequence_tokens);
    if (dropped.size > 0)
        diag_warning(&note, (struct loc){.name = "--documents"}, "%s", dropped.data);
    command_print_notes(&note);
    text_release(&dropped);
    diag_release(&note);
}

static void note_idle_options_of_request(const struct options *options,
                                         const struct request *request)
{
    struct choices choices;
    struct diag note = {0};
    if (resolve_choices(&choices, request, NULL, NULL) == STATUS_OK)
        note_idle_options_of_prediction(options, request, &choices, &note);
    command_print_notes(&note);
    diag_release(&note);
}

static enum status plan_longest(struct setup *setup, const struct options *options,
                                struct diag *diag)
{
    setup->fits_probability = options_number(options, "fits-probability");
    struct longest_certificate report = {.wants_length_only = is_option_given(options, "emit")};
    struct text out = {0};
    const struct screen screen = screen_make(&out);
    struct interrupt interrupt;
    interrupt_catch(&interrupt);
    enum status status = longest_certificate_make(&report, setup, diag);
    struct request request = report.request;
    request.seq = report.longest.tokens;
    if (report.longest.is_interrupted && status == STATUS_OK && is_option_given(options, "emit"))
        text_printf(&out, "# the search was ended by %s: longer sequences may fit\n",
                    interrupt_describe_signal());
    if (status == STATUS_OK && is_option_given(options, "emit"))
        status = plan_print_settings_of_request(&out, framework_to_emit(options), &request, diag);
    else if (is_option_given(options, "json"))
        longest_report_print_json(&out, &report);
    else
        longest_report_print(&screen, &report, is_option_given(options, "all"));
    status = print_unless_failed(&out, status, diag);
    interrupt_release(&interrupt);
    if (interrupt_caught_signal_number() != 0)
        status = longest_report_add_interrupt_error(&report, diag);
    if (status == STATUS_OK)
        note_idle_options_of_request(options, &request);
    text_release(&out);
    longest_certificate_release(&report);
    return status;
}

/* Returns whether all rows of the ranking share the option of a choice. The options that differ are printed with
 * each row. For an alias of another option it returns false. */
static bool is_choice_shared_by_plan_rows(const struct choice_row *row)
{
    return !row->is_alias && !choice_row_is_printed(row);
}

/* Appends the command "longhaul predict --model ..." with the options that all rows of the ranking share. Followed by
 * the options of a row, it predicts that row. With GOAL_GPUS it also needs --gpus, and with GOAL_LONGEST --seq, whose
 * values the search finds. */
static void put_command_shared_by_rows(struct text *out, const struct options *options,
                                       enum plan_goal goal)
{
    static const char *const none[] = {NULL}, *const size[] = {"nodes", "gpus", NULL};
    text_puts(out, "longhaul predict");
    setup_put_given_options(out, options, &plan_options, is_choice_shared_by_plan_rows,
                            goal == GOAL_GPUS ? size : none);
    if (is_option_given(options, "documents") && options_whole_number(options, "batches") > 1)
        text_printf(out, " --batches %lld", (long long)options_whole_number(options, "batches"));
}

/* The packed batches of the winner. documents: those of the first batch, to which the setup's request points; times:
 * the predicted times of the steps with each batch, if there are several batches. */
struct batches_of_winner {
    struct documents documents;
    struct arena arena;
    struct batch_times times;
};

static void set_request_to_first_batch(struct batches_of_winner *b, struct setup *setup,
                                       const struct packed_set *packed_set)
{
    if (packed_set == NULL)
        return;
    packed_batch_fill_documents(&packed_set->batch[0], packed_set->packing_options.sequence_tokens,
                                &b->documents, &b->arena);
    setup->request.documents = &b->documents;
    setup->padding_tokens = packed_set->batch[0].padding_tokens;
}

static enum status predict_batch_times(struct batches_of_winner *b, struct report *report,
                                       const struct packed_set *packed_set, struct diag *diag)
{
    if (packed_set == NULL)
        return STATUS_OK;
    report->packed_batch = packed_set->batch;
    if (packed_set->batch_count == 1)
        return STATUS_OK;
    report->batch_times = &b->times;
    report->packed_batches = packed_set->batch;
    return batch_times_make(&b->times, report->prediction, packed_set->batch,
                            packed_set->batch_count, diag);
}

static void batches_of_winner_release(struct batches_of_winner *b)
{
    batch_times_release(&b->times);
    arena_release(&b->arena);
}

/* Predicts the winner again, and writes its traces, plan.json and its page to the folder of -o. If `brief`, skips the
 * search for an alternative that the report would suggest. */
static enum status write_files_of_winner(const struct options *options, struct setup *setup,
                                         const struct plan_report *search, bool brief,
                                         struct diag *diag)
{
    const struct best *best = search->best;
    const struct outcome *winner = &best->row[0];
    const char *folder = options_text(options, "o");
    struct request *request = &setup->request;
    const struct prediction_question question = {.setup = setup};
    struct prediction p = {0};
    struct alternative other = {0};
    struct batches_of_winner batches = {0};
    struct diag note = {0};
    struct text command = {0}, path = {0}, ranking = {0};
    struct page page = {0};
    *request = winner->request;
    request->seq = winner->sequence_tokens;
    set_request_to_first_batch(&batches, setup, winner->packed_set);
    text_puts(&command, search->base_command);
    if (best->goal == GOAL_GPUS)
        text_printf(&command, " --gpus %zu", best->gpu_count);
    if (best->goal == GOAL_LONGEST)
        text_printf(&command, " --seq %lld", (long long)request->seq);
    text_putc(&command, ' ');
    request_put_options(&command, request);
    struct report report = {.prediction = &p,
                            .profile = request->profile,
                            .best_alternative = brief ? NULL : &other,
                            .command = command.data,
                            .model = options_text(options, "model"),
                            .cluster = options_text(options, "cluster"),
                            .costs = options_text(options, "costs")};
    enum status status = STATUS_OK;
    plan_report_print_json(&ranking, search);
    progress_show_running_part_seconds("predicting the winner");
    if (setup->cluster.gpus != request->ranks)
        status = cluster_resize(&setup->cluster, &setup->arena, 0, request->ranks, diag);
    if (status == STATUS_OK)
        status = prediction_make(&p, &question, diag);
    if (status == STATUS_OK)
        status = predict_batch_times(&batches, &report, winner->packed_set, diag);
    if (status == STATUS_OK && !brief)
        status = alternatives_find_best(&other, &p, diag);
    if (status == STATUS_OK)
        status = traces_write(
            &report, folder, (struct traces_requested_files){.search_json = &ranking}, &note, diag);
    if (status == STATUS_OK)
        status = page_of_prediction(&page, folder, NULL, diag);
    text_printf(&path, "%s/" TRACE_FOLDER_PAGE, folder);
    if (status == STATUS_OK)
        status = file_set_write_single_file(path.data, page.html.data, page.html.size, diag);
    progress_show_running_part_seconds(NULL);
    command_print_notes(&note);
    diag_release(&note);
    text_release(&page.html);
    text_release(&ranking);
    text_release(&path);
    text_release(&command);
    batches_of_winner_release(&batches);
    prediction_release(&p);
    return status;
}

/* Searches for the best configuration, prints the result and, with -o, writes the files of the
 * winner. files: the digest of the files that the setup was loaded from. */
static enum status plan_best(struct setup *setup, const struct options *options, uint64_t files,
                             struct diag *diag)
{
    struct plan_cache cache;
    struct best best = {
        .limits = {.time_limit_s = options_number(options, "within"),
                   .rate_gap_share = options_number(options, "gap") / 100,
                   .kept_jobs = plan_cache_open(&cache, options, &plan_options, files)}};
    struct fits_probabilities_of_winner fits_probabilities;
    struct text out = {0}, given = {0};
    const struct screen screen = screen_make(&out);
    struct packed_sets packed_sets = {.request = documents_read_set_request(options)};
    enum framework only = (enum framework)options_index_of_choice(options, "only");
    bool published = strcmp(options_text(options, "profile"), "published") == 0;
    struct space_open open = {
        .strategy = !is_option_given(options, "strategy"),
        .placement = !is_option_given(options, "placement"),
        .stage_placement = !is_option_given(options, "stage-placement"),
        .ring_layout = !is_option_given(options, "layout"),
        .mla_exchange = !is_option_given(options, "mla-exchange"),
        .are_core_plans_open = core_plan_option_is_all(setup->request.core_plan),
        .packed_sets = packed_sets.request.lengths_text != NULL ? &packed_sets : NULL,
        .only_framework = is_option_given(options, "only") ? &only : NULL,
        .uses_own_profile = published || !is_option_given(options, "profile")};
    enum plan_goal goal = is_option_given(options, "goal")
                              ? (enum plan_goal)options_index_of_choice(options, "goal")
                              : GOAL_SPEED;
    put_command_shared_by_rows(&given, options, goal);
    struct plan_report report = {
        .best = &best,
        .fits_probabilities = &fits_probabilities,
        .setup = setup,
        .base_command = given.data,
        .shown_row_count = (size_t)options_whole_number(options, "top"),
        .has_details = is_option_given(options, "all") || is_option_given(options, "json"),
        .only_framework = open.only_framework != NULL ? framework_names[only] : NULL};
    struct interrupt interrupt;
    interrupt_catch(&interrupt);
    if (open.are_core_plans_open)
        setup->request.core_plan = NULL;
    enum status status = probable_find(&fits_probabilities, &best, goal, setup, open,
                                       options_number(options, "fits-probability"), diag);
    if (best_end_reason(&best) != NULL && is_option_given(options, "emit") &&
        (status == STATUS_OK || status == STATUS_NO)) {
        status = plan_print_settings_if_interrupted(&out, framework_to_emit(options), &best, open,
                                                    is_option_given(options, "emit-winner"), diag);
    } else if (status == STATUS_OK && is_option_given(options, "emit")) {
        status = is_option_given(options, "emit-winner")
                     ? plan_print_settings_of_winner(&out, framework_to_emit(options), &best, diag)
                     : plan_print_best_expressible_settings(&out, framework_to_emit(options), &best,
                                                            setup, open, diag);
    } else {
        if (status == STATUS_OK)
            status = plan_report_make(&report, diag);
        if (is_option_given(options, "json"))
            plan_report_print_json(&out, &report);
        else
            plan_report_print(&screen, &report);
    }
    status = print_unless_failed(&out, status, diag);
    interrupt_release(&interrupt);
    int ended = interrupt_take_caught_signal();
    bool writes = status == STATUS_OK && is_option_given(options, "o");
    if (writes)
        status = write_files_of_winner(options, setup, &report, ended != 0, diag);
    interrupt_put_back_caught_signal(ended);
    if (interrupt_caught_signal_number() != 0)
        status = diag_error(diag, (struct loc){.name = "plan"}, STATUS_SYSTEM,
                            "ended by %s; %zu of %zu configurations were not searched%s%s",
                            interrupt_describe_signal(),
                            best.outcome_count_of_kind[OUTCOME_NOT_SEARCHED], best.row_count,
                            writes && status == STATUS_OK ? "; the best of the others is in " : "",
                            writes && status == STATUS_OK ? options_text(options, "o") : "");
    if (status == STATUS_OK || status == STATUS_NO)
        note_options_idle_in_all_rows(options, &best);
    note_dropped_tokens(&packed_sets);
    plan_cache_close(&cache);
    text_release(&out);
    text_release(&given);
    best_release(&best);
    packed_sets_release(&packed_sets);
    return status;
}

/* Checks that the options either give a length or ask for the longest one, and that the options for what is printed and
 * written go together. */
static enum status check_length_options(const struct options *options, struct diag *diag)
{
    bool longest = is_option_given(options, "longest") ||
                   (is_option_given(options, "goal") &&
                    options_index_of_choice(options, "goal") == GOAL_LONGEST);
    if (longest && is_option_given(options, "seq"))
        return diag_error(diag, (struct loc){.name = "--seq"}, STATUS_BAD_INPUT,
                          "cannot be combined with %s, which searches for the longest sequence",
                          is_option_given(options, "longest") ? "--longest" : "--goal longest");
    if (!longest && !is_option_given(options, "seq"))
        return diag_error(diag, (struct loc){.name = "--seq"}, STATUS_BAD_INPUT,
                          "is missing: tokens of one sequence, such as 128K; or --goal longest");
    enum status status = options_refuse_both(options, "longest", "goal", diag);
    if (status == STATUS_OK && is_option_given(options, "o") && is_option_given(options, "longest"))
        return diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                          "is for the winner of a search, but --longest takes one given "
                          "configuration; `longhaul predict -o` writes its files");
    if (status == STATUS_OK && is_option_given(options, "o") && is_option_given(options, "emit"))
        return diag_error(diag, (struct loc){.name = "-o"}, STATUS_BAD_INPUT,
                          "writes the winner's prediction, but --emit prints only settings; leave "
                          "one of the two out");
    if (status == STATUS_OK && is_option_given(options, "o"))
        status = trace_folder_check_can_write(options_text(options, "o"), diag);
    return status == STATUS_OK ? options_refuse_both(options, "emit", "json", diag) : status;
}

static enum status check_probability_option(const struct options *options, struct diag *diag)
{
    const double probability = options_number(options, "fits-probability");
    if (probability >= 0.5 && probability <= 0.99)
        return STATUS_OK;
    return diag_error(diag, (struct loc){.name = "--fits-probability"}, STATUS_BAD_INPUT,
                      "%g is not from 0.5 to 0.99: 0.5 takes what is predicted to fit, 0.9 what "
                      "fits in 9 of 10 cases",
                      probability);
}

/* Refuses combinations of --only, --emit, --emit-winner and --longest that contradict each other. */
static enum status check_framework_options(const struct options *options, struct diag *diag)
{
    if (is_option_given(options, "emit-winner") && !is_option_given(options, "emit"))
        return diag_error(diag, (struct loc){.name = "--emit-winner"}, STATUS_BAD_INPUT,
                          "needs --emit, the framework whose settings are written");
    if (is_option_given(options, "only") && is_option_given(options, "longest"))
        return diag_error(diag, (struct loc){.name = "--only"}, STATUS_BAD_INPUT,
                          "is for a search, but --longest takes one given configuration; --goal "
                          "longest searches for the longest sequence");
    if (is_option_given(options, "emit-winner") && is_option_given(options, "longest"))
        return diag_error(diag, (struct loc){.name = "--emit-winner"}, STATUS_BAD_INPUT,
                          "is for a search, but --longest takes one given configuration; --emit "
                          "without it writes that configuration's settings");
    if (is_option_given(options, "only") && is_option_given(options, "emit") &&
        options_index_of_choice(options, "only") != options_index_of_choice(options, "emit"))
        return diag_error(diag, (struct loc){.name = "--only"}, STATUS_BAD_INPUT,
                          "is %s, but --emit asks for settings of %s; leave it out, or give the "
                          "same",
                          options_text(options, "only"), options_text(options, "emit"));
    return STATUS_OK;
}

static enum status check_documents_options(const struct options *options, struct diag *diag)
{
    if (!is_option_given(options, "documents") && is_option_given(options, "batches"))
        return diag_error(diag, (struct loc){.name = "--batches"}, STATUS_BAD_INPUT,
                          "needs --documents: without documents all batches are equal");
    if (is_option_given(options, "documents") && !is_option_given(options, "seq"))
        return diag_error(diag, (struct loc){.name = "--documents"}, STATUS_BAD_INPUT,
                          "changes times and no memory, and only memory decides which sequence is "
                          "the longest that fits: leave it out");
    return documents_check_options(options, diag);
}

enum status cmd_plan(const struct options *options, struct diag *diag)
{
    struct setup setup = {0};
    uint64_t files = DIGEST_OF_NO_BYTES;
    enum status status = check_probability_option(options, diag);
    if (status == STATUS_OK)
        status = check_framework_options(options, diag);
    if (status == STATUS_OK)
        status = check_length_options(options, diag);
    if (status == STATUS_OK)
        status = check_documents_options(options, diag);
    text_add_files_read_to_digest(&files);
    if (status == STATUS_OK)
        status = setup_load_without_length(&setup, options, diag);
    text_add_files_read_to_digest(NULL);
    if (status == STATUS_OK && is_option_given(options, "emit"))
        status = launch_check_model(framework_to_emit(options), &setup.model, diag);
    if (status == STATUS_OK && is_option_given(options, "longest"))
        status = plan_longest(&setup, options, diag);
    else if (status == STATUS_OK)
        status = plan_best(&setup, options, files, diag);
    setup_release(&setup);
    command_exit_if_interrupted(diag);
    return status;
}
