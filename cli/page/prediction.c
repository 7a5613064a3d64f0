/* The page of a prediction: a folder of predict -o. */
#include "cli/page/pages.h"

#include "base/units.h"
#include "cli/folder/stored.h"
#include "cli/page/context.h"
#include "cli/page/sources.h"
#include "cli/page/values.h"
#include "cli/report/report.h"
#include "models/mfu.h"
#include "predict/intervals.h"
#include "predict/result_names.h"
#include "schedule/choices/profile.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char *words_or_null(struct json_node object, const char *key)
{
    const char *value = page_words_of(object, key);
    return value[0] == '\0' ? NULL : value;
}

/* Appends "device memory needs 46.4 GiB of 79.1 GiB a GPU (32.7 GiB free)": of the memory that decides. */
static void put_need(struct text *out, struct json_node verdict)
{
    const char *limit = page_words_of(verdict, "limit");
    bool host = strcmp(limit, "host") == 0;
    double needed = page_number_of(verdict, host ? "host_needed_bytes" : "device_needed_bytes");
    double there =
        page_number_of(verdict, host ? "host_available_bytes" : "device_available_bytes");
    text_printf(out, "%s memory needs ", host ? "host" : "device");
    units_put_gib(out, needed);
    if (there > 0) {
        text_puts(out, " of ");
        units_put_gib(out, there);
    } else {
        text_puts(out, " of infinite memory");
    }
    text_puts(out, host ? " a node" : " a GPU");
    if (there > 0) {
        text_puts(out, " (");
        units_put_gib(out, fabs(there - needed));
        text_puts(out, needed <= there ? " free)" : " too much)");
    }
}

static void put_verdict(struct page *page, struct json_node root)
{
    struct json_node verdict = json_find(root, "verdict");
    const double probability = page_number_of(verdict, "fits_probability");
    const enum verdict_word word = verdict_word(probability);
    struct text text = {0}, odds = {0};
    verdict_put_odds(&odds, probability);
    text_printf(&text, "%s%s%s: ", verdict_words[word],
                odds.size == 0           ? ""
                : word == VERDICT_HARDLY ? ", only "
                                         : ", ",
                odds.size == 0 ? "" : odds.data);
    put_need(&text, verdict);
    text_putc(&text, '.');
    page_verdict(page,
                 word == VERDICT_FITS       ? PAGE_GOOD
                 : word == VERDICT_PROBABLY ? PAGE_CLOSE
                                            : PAGE_BAD,
                 text.data);
    text_release(&odds);
    text_release(&text);
}

static void put_time(struct text *out, double seconds)
{
    struct report_time time = report_time_for(seconds);
    text_printf(out, "%.*f %s", time.decimals, seconds / time.unit_s, time.name);
}

/* Appends the section of a training run (predict --tokens). */
static void put_training(struct page *page, struct json_node training)
{
    static const struct {
        const char *key, *what;
        int decimals;
    } shown[] = {
        {"days", "days of training", 2}, {"gpu_hours", "GPU-hours", 0}, {"cost", "cost", 0}};
    struct text text = {0};
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        if (!json_is_object(training) || !json_is_number(json_find(training, shown[i].key)))
            continue;
        text.size = 0;
        text_printf(&text, "%.*f", shown[i].decimals, page_number_of(training, shown[i].key));
        page_number(page, text.data, shown[i].what);
    }
    text_release(&text);
}

/* Appends a number with its interval, in multiples of unit, where there is one: "a step (90 %: 54.3 to 80.6)". */
static void put_sure(struct page *page, const char *value, const char *what, struct json_node root,
                     const char *low, const char *high, double unit)
{
    struct json_node interval = json_find(root, "interval_90");
    struct text text = {0};
    text_puts(&text, what);
    if (page_number_of(interval, high) > 0) {
        text_puts(&text, " (90 %: ");
        intervals_put_ends(&text, page_number_of(interval, low) / unit,
                           page_number_of(interval, high) / unit);
        text_putc(&text, ')');
    }
    page_number(page, value, text.data);
    text_release(&text);
}

static void put_numbers(struct page *page, struct json_node root)
{
    struct text text = {0};
    double step_s = page_number_of(root, "step_s");
    page_begin_numbers(page);
    put_time(&text, step_s);
    put_sure(page, text.data, "a step", root, "step_low_s", "step_high_s",
             report_time_for(step_s).unit_s);
    text.size = 0;
    text_printf(&text, "%.1f", page_number_of(root, "tokens_per_s_gpu"));
    put_sure(page, text.data, "tokens/s/GPU", root, "tokens_per_s_gpu_low", "tokens_per_s_gpu_high",
             1);
    struct json_node mfu = json_find(root, "mfu");
    if (json_members(mfu) > 0) {
        text.size = 0;
        text_printf(&text, "%.1f %%", 100 * page_number_of(mfu, "mfu_longhaul"));
        put_sure(page, text.data, "MFU, convention longhaul", root, "mfu_longhaul_low",
                 "mfu_longhaul_high", 0.01);
    }
    if (page_number_of(json_find(root, "interval_90"), "device_needed_high_bytes") > 0) {
        double needed = page_number_of(json_find(root, "verdict"), "device_needed_bytes");
        text.size = 0;
        units_put_gib(&text, needed);
        put_sure(page, text.data, "needed of a GPU", root, "device_needed_low_bytes",
                 "device_needed_high_bytes", 0x1p30);
    }
    put_training(page, json_find(root, "training"));
    page_end_numbers(page);
    text_release(&text);
}

/* Appends what an interval rests on, of the text "time -22 to +58 %, never measured: ...; memory -26 to +35 %, ..."
 * (intervals_put_from()). */
static void put_evidence(struct text *out, const char *from, bool memory)
{
    const char *of_memory = strncmp(from, "memory ", 7) == 0 ? from : strstr(from, "; memory ");
    const char *begin = memory ? of_memory : from;
    begin = begin != NULL ? strstr(begin, " %, ") : NULL;
    if (begin == NULL)
        return;
    begin += strlen(" %, ");
    if (!memory && of_memory != NULL && begin > of_memory)
        return; /* a text that is not longhaul's */
    text_append(out, begin,
                !memory && of_memory != NULL ? (size_t)(of_memory - begin) : strlen(begin));
}

/* Appends "A measured step takes 5.16 to 10.4 s in 9 of 10 cases; never measured: ...", if there is an interval. */
static void put_sure_of(struct page *page, struct json_node interval, bool memory,
                        const char *begin, const char *low, const char *high, double unit,
                        const char *unit_name)
{
    struct text text = {0};
    if (page_number_of(interval, high) > 0) {
        text_puts(&text, begin);
        intervals_put_ends(&text, page_number_of(interval, low) / unit,
                           page_number_of(interval, high) / unit);
        text_printf(&text, " %s in 9 of 10 cases; ", unit_name);
        put_evidence(&text, page_words_of(interval, "from"), memory);
        text_putc(&text, '.');
        page_text(page, text.data);
    }
    text_release(&text);
}

/* Appends how sure the figures are, and warnings about misreading them. */
static void put_warnings(struct page *page, struct json_node root)
{
    struct json_node interval = json_find(root, "interval_90");
    const struct report_time time = report_time_for(page_number_of(root, "step_s"));
    const char *beware = page_words_of(root, "beware");
    if (page_words_of(interval, "from")[0] == '\0' && beware[0] == '\0')
        return;
    page_heading(page, "How sure this is");
    put_sure_of(page, interval, false, "A measured step takes ", "step_low_s", "step_high_s",
                time.unit_s, time.name);
    put_sure_of(page, interval, true, "A GPU needs ", "device_needed_low_bytes",
                "device_needed_high_bytes", 0x1p30, "GiB");
    if (beware[0] != '\0') {
        struct text text = {0};
        text_printf(&text, "Beware: %s.", beware);
        page_warning(page, text.data);
        text_release(&text);
    }
}

static enum status put_waterfall(struct page *page, const char *path, struct stored *stored,
                                 struct diag *diag)
{
    struct figure figure = {0};
    struct waterfall waterfall;
    const struct figure_options wanted = {.title = ""};
    enum status status = stored_waterfall(stored, &waterfall, diag);
    if (status == STATUS_OK)
        status =
            page_draw(page, &figure, figure_waterfall(&figure, path, "", &waterfall, &wanted, diag),
                      "Every instant of rank 0 has one cause. Green: flops that the model "
                      "needs; orange: other work; blue: waiting for data; grey: the host.",
                      diag);
    figure_release(&figure);
    return status;
}

/* Appends what happens over time; rank: the one that needs most memory. */
static enum status put_traces(struct page *page, const char *path, double rank, struct diag *diag)
{
    struct trace ops = {0}, memory = {0};
    struct figure figure = {0};
    struct text caption = {0};
    struct figure_options wanted = {.title = ""};
    enum status status = stored_trace(&ops, path, false, diag);
    if (status == STATUS_OK && trace_get(&ops, "stages") != NULL)
        status = page_draw(page, &figure, figure_pipeline(&figure, &ops, &wanted, diag),
                           "What each pipeline stage does. A number is that of a micro-batch or "
                           "subsequence, from 0; recomputation is part of the backward.",
                           diag);
    if (status == STATUS_OK)
        status = page_draw(page, &figure, figure_timeline(&figure, &ops, &wanted, diag),
                           "What each stream of rank 0 does. Where more alternates than can be "
                           "shown, colours share the height as they share the time.",
                           diag);
    if (status == STATUS_OK)
        status = stored_trace(&memory, path, true, diag);
    if (status == STATUS_OK) {
        wanted.rank = (long)rank;
        wanted.needed = true;
        text_printf(&caption,
                    "The memory of rank %ld, which needs most. Reserved, not live: what the "
                    "allocator's cache, NCCL and the CUDA context hold.",
                    wanted.rank);
        status = page_draw(page, &figure, figure_memory(&figure, &memory, &wanted, diag),
                           caption.data, diag);
    }
    figure_release(&figure);
    text_release(&caption);
    trace_release(&ops);
    trace_release(&memory);
    return status;
}

/* A member of an object, and its label on the page. */
struct labelled_member {
    struct result_name key;
    const char *label;
};

/* Appends a table of the parts of a whole, in seconds or bytes: those that are not 0. */
static void put_parts(struct page *page, const char *details, struct json_node object,
                      const char *what, const struct labelled_member *part, size_t count,
                      bool bytes, double whole)
{
    const char *const heads[] = {what, "", "share", NULL};
    page_begin_table(page, details, heads);
    for (size_t i = 0; i < count; i++) {
        double value = page_number_of(object, part[i].key.text);
        struct text shown = {0};
        if (bytes)
            units_put_gib(&shown, value);
        else
            text_printf(&shown, "%.6g", value);
        if (value > 0) {
            page_cell(page, part[i].label);
            page_cell(page, shown.data);
            page_cellf(page, "%.1f %%", 100 * value / whole);
            page_end_row(page);
        }
        text_release(&shown);
    }
    page_end_table(page);
}

static void put_causes(struct page *page, struct json_node root)
{
    struct labelled_member part[CAUSE_COUNT];
    for (int i = 0; i < CAUSE_COUNT; i++)
        part[i] = (struct labelled_member){result_name_of_cause((enum cause)i),
                                           cause_label((enum cause)i)};
    put_parts(page, "The causes as numbers", json_find(root, "waterfall"), "cause (s)", part,
              CAUSE_COUNT, false, page_number_of(root, "step_s"));
}

static void put_memory(struct page *page, struct json_node memory)
{
    struct labelled_member reserved[RESERVED_PART_COUNT], peak[CATEGORY_COUNT];
    for (int i = 0; i < RESERVED_PART_COUNT; i++)
        reserved[i] = (struct labelled_member){result_name_of_reserved((enum reserved_part)i),
                                               reserved_part_label((enum reserved_part)i)};
    for (int i = 0; i < CATEGORY_COUNT; i++)
        peak[i] =
            (struct labelled_member){result_name_of_peak((enum category)i), category_labels[i]};
    put_parts(page, NULL, json_find(memory, "reserved_parts"), "reserved", reserved,
              RESERVED_PART_COUNT, true, page_number_of(memory, "reserved_bytes"));
    put_parts(page, NULL, json_find(memory, "at_peak"), "live at the peak", peak, CATEGORY_COUNT,
              true, page_number_of(memory, "peak_bytes"));
}

/* Appends a table of an object's members: names and values. */
static void put_object(struct page *page, struct json_node object, const char *what)
{
    const char *const heads[] = {what, "", NULL};
    page_begin_table(page, NULL, heads);
    for (size_t i = 0; i < json_members(object); i++) {
        const char *key, *text = "";
        struct json_node node = json_member(object, i, &key);
        page_cell(page, key);
        if (json_is_string(node)) {
            json_as_string(node, &text, NULL);
            page_cell(page, text);
        } else if (json_is_number(node)) {
            double is = page_number_of(object, key);
            page_cellf(page, is == floor(is) && fabs(is) < 1e15 ? "%.0f" : "%.6g", is);
        } else {
            page_cell(page, "-");
        }
        page_end_row(page);
    }
    page_end_table(page);
}

static void put_mfu(struct page *page, struct json_node root)
{
    static const char *const heads[] = {"MFU by convention", "% of the device's dense peak", NULL};
    struct json_node mfu = json_find(root, "mfu");
    double fraction[MFU_CONVENTION_COUNT] = {0};
    struct text excess = {0};
    page_begin_table(page, NULL, heads);
    for (int i = 0; i < MFU_CONVENTION_COUNT && json_members(mfu) > 0; i++) {
        fraction[i] = page_number_of(mfu, result_name_of_mfu((enum mfu_convention)i).text);
        page_cell(page, mfu_table[i].name);
        page_cellf(page, "%.1f", 100 * fraction[i]);
        page_end_row(page);
    }
    page_cell(page, "HFU: recomputed flops counted");
    page_cellf(page, "%.1f", 100 * page_number_of(root, "hfu"));
    page_end_row(page);
    page_end_table(page);
    mfu_put_excess(&excess, fraction);
    if (excess.size > 0) {
        text_putc(&excess, '.');
        page_text(page, excess.data);
    }
    text_release(&excess);
}

static void put_next(struct page *page, struct json_node root)
{
    struct json_node next = json_find(root, "next");
    const char *options = page_words_of(next, "options");
    const char *profile = page_words_of(json_find(root, "configuration"), "profile");
    double step_s = page_number_of(root, "step_s"), ideal_s = page_number_of(root, "ideal_step_s");
    double next_s = page_number_of(next, "step_s");
    bool fits = false;
    struct text text = {0};
    if (!json_is_object(next))
        return;
    page_heading(page, "What to try next");
    if (options[0] == '\0') {
        text_printf(&text, "None of %.0f other options is better.", page_number_of(next, "tried"));
    } else {
        text_printf(&text, "%s: ", options);
        if (next_s > 0) {
            text_puts(&text, "a step of ");
            put_time(&text, next_s);
            text_printf(&text, " (%+.1f %%), ", 100 * (next_s / step_s - 1));
        }
        put_need(&text, next);
        json_get_bool(next, "fits", &fits, NULL);
        text_puts(&text, fits ? "." : "; still too much.");
    }
    if (ideal_s > 0 && strcmp(profile, PROFILE_IDEAL) != 0 && fabs(ideal_s / step_s - 1) >= 5e-4) {
        text_puts(&text, " With profile ideal the step would take ");
        put_time(&text, ideal_s);
        text_puts(&text, ideal_s < step_s ? ": the rest is this implementation."
                                          : ", more than with this implementation.");
    }
    page_text(page, text.data);
    if (page_words_of(next, "command")[0] != '\0')
        page_code(page, page_words_of(next, "command"));
    text_release(&text);
}

/* Appends how documents were packed into sequences, and the times of steps with other documents; nothing without
 * --documents. */
static void put_documents(struct page *page, struct json_node root)
{
    struct json_node packed = json_find(root, "packed"), batches = json_find(root, "batches");
    struct text text = {0};
    if (!json_is_object(packed))
        return;
    page_heading(page, "Packed documents");
    text_printf(&text, "%.0f documents, padding %.1f %%, visible pairs %.2f %% of causal.",
                page_number_of(packed, "documents"), 100 * page_number_of(packed, "padding_share"),
                100 * page_number_of(packed, "visible_share"));
    if (json_is_object(batches)) {
        text_printf(&text, " %zu steps of other documents: median ",
                    json_count(json_find(batches, "by_batch")));
        put_time(&text, page_number_of(batches, "median_step_s"));
        text_puts(&text, ", 90 % at most ");
        put_time(&text, page_number_of(batches, "high_step_s"));
        text_puts(&text, ", worst ");
        put_time(&text, page_number_of(batches, "worst_step_s"));
        text_printf(&text, "; %.1f tokens/s/GPU.",
                    page_number_of(batches, "mean_tokens_per_s_gpu"));
    }
    page_text(page, text.data);
    text_release(&text);
}

enum status page_of_prediction(struct page *page, const char *path, const char *title,
                               struct diag *diag)
{
    struct stored stored = {0};
    struct text text = {0};
    enum status status = stored_load(&stored, path, diag);
    if (status != STATUS_OK) {
        stored_release(&stored);
        return status;
    }
    struct json_node root = json_root(&stored.json), what = json_find(root, "configuration");
    struct json_node made_by = json_find(root, "made_by"), memory = json_find(root, "memory");
    text_printf(&text, "%s, %.0f x ",
                page_words_of(what, "model")[0] != '\0' ? page_words_of(what, "model")
                                                        : "a schedule",
                page_number_of(what, "sequences"));
    units_put_tokens(&text, (int64_t)page_number_of(what, "sequence_tokens"));
    text_printf(&text, " tokens, %.0f GPU%s of %s%s%s", page_number_of(what, "gpus"),
                page_number_of(what, "gpus") == 1 ? "" : "s", page_words_of(what, "cluster"),
                page_words_of(what, "strategy")[0] != '\0' ? ", " : "",
                page_words_of(what, "strategy"));
    page_begin(page, title != NULL ? title : "One training step, predicted", text.data);
    put_verdict(page, root);
    put_numbers(page, root);
    put_documents(page, root);
    page_heading(page, "Where the step goes");
    status = put_waterfall(page, path, &stored, diag);
    if (status == STATUS_OK) {
        put_causes(page, root);
        page_heading(page, "What fills a GPU's memory");
        put_memory(page, memory);
        put_warnings(page, root);
        page_put_measured(page, root);
        put_next(page, root);
        page_put_ranking(page, path, root);
    }
    if (status == STATUS_OK) {
        page_heading(page, "Over time");
        status = put_traces(page, path, page_number_of(memory, "peak_rank"), diag);
    }
    if (status == STATUS_OK) {
        page_heading(page, "Utilisation");
        put_mfu(page, root);
        page_heading(page, "What was predicted");
        put_object(page, what, "choice");
        page_put_sources(page, words_or_null(made_by, "model"), words_or_null(made_by, "cluster"),
                         words_or_null(made_by, "costs"), words_or_null(what, "profile"));
        page_heading(page, "Made by");
        page_code(page, page_words_of(made_by, "command"));
        page_text(page, page_words_of(made_by, "versions"));
        page_end(page);
    }
    text_release(&text);
    stored_release(&stored);
    return status;
}
