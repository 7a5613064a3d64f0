/* The page of a prediction: a folder of predict -o. */
#include "cli/page/pages.h"

#include "base/units.h"
#include "cli/folder/stored.h"
#include "cli/page/sources.h"
#include "cli/report/report.h"
#include "models/mfu.h"
#include "predict/intervals.h"
#include "predict/result_names.h"
#include "schedule/choices/profile.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Values of prediction.json; a missing value is 0 or "". */
static double number(struct json_node object, const char *key)
{
    double value = 0;
    struct json_node node = json_find(object, key);
    if (json_is_number(node))
        json_as_double(node, -DBL_MAX, DBL_MAX, &value, NULL);
    return value;
}

static const char *words(struct json_node object, const char *key)
{
    const char *value = "";
    struct json_node node = json_find(object, key);
    if (json_is_string(node))
        json_as_string(node, &value, NULL);
    return value;
}

static const char *words_or_null(struct json_node object, const char *key)
{
    const char *value = words(object, key);
    return value[0] == '\0' ? NULL : value;
}

/* Appends "device memory needs 46.4 GiB of 79.1 GiB a GPU (32.7 GiB free)": of the memory that decides. */
static void put_need(struct text *out, struct json_node verdict)
{
    const char *limit = words(verdict, "limit");
    bool host = strcmp(limit, "host") == 0;
    double needed = number(verdict, host ? "host_needed_bytes" : "device_needed_bytes");
    double there = number(verdict, host ? "host_available_bytes" : "device_available_bytes");
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
    const double probability = number(verdict, "fits_probability");
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
        text_printf(&text, "%.*f", shown[i].decimals, number(training, shown[i].key));
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
    if (number(interval, high) > 0) {
        text_puts(&text, " (90 %: ");
        intervals_put_ends(&text, number(interval, low) / unit, number(interval, high) / unit);
        text_putc(&text, ')');
    }
    page_number(page, value, text.data);
    text_release(&text);
}

static void put_numbers(struct page *page, struct json_node root)
{
    struct text text = {0};
    double step_s = number(root, "step_s");
    page_begin_numbers(page);
    put_time(&text, step_s);
    put_sure(page, text.data, "a step", root, "step_low_s", "step_high_s",
             report_time_for(step_s).unit_s);
    text.size = 0;
    text_printf(&text, "%.1f", number(root, "tokens_per_s_gpu"));
    put_sure(page, text.data, "tokens/s/GPU", root, "tokens_per_s_gpu_low", "tokens_per_s_gpu_high",
             1);
    struct json_node mfu = json_find(root, "mfu");
    if (json_members(mfu) > 0) {
        text.size = 0;
        text_printf(&text, "%.1f %%", 100 * number(mfu, "mfu_longhaul"));
        put_sure(page, text.data, "MFU, convention longhaul", root, "mfu_longhaul_low",
                 "mfu_longhaul_high", 0.01);
    }
    if (number(json_find(root, "interval_90"), "device_needed_high_bytes") > 0) {
        double needed = number(json_find(root, "verdict"), "device_needed_bytes");
        text.size = 0;
        units_put_gib(&text, needed);
        put_sure(page, text.data, "needed of a GPU", root, "device_needed_low_bytes",
                 "device_needed_high_bytes", 0x1p30);
    }
    put_training(page, json_find(root, "training"));
    page_end_numbers(page);
    text_release(&text);
}

/* Appends how sure the figures are, and warnings about misreading them, in the report's words. */
static void put_warnings(struct page *page, struct json_node root)
{
    struct text text = {0};
    const char *from = words(json_find(root, "interval_90"), "from");
    if (from[0] == '\0' && words(root, "beware")[0] == '\0')
        return;
    page_heading(page, "How sure this is");
    if (from[0] != '\0') {
        text_printf(&text, "9 of 10 measured steps would lie within %s.", from);
        page_text(page, text.data);
        text.size = 0;
    }
    if (words(root, "beware")[0] != '\0') {
        text_printf(&text, "Beware: %s.", words(root, "beware"));
        page_warning(page, text.data);
    }
    text_release(&text);
}

static enum status put_waterfall(struct page *page, const char *path, struct stored *stored,
                                 struct diag *diag)
{
    struct figure figure = {0};
    struct waterfall waterfall;
    const struct figure_options wanted = {0};
    enum status status = stored_waterfall(stored, &waterfall, diag);
    if (status == STATUS_OK)
        status =
            page_draw(page, &figure, figure_waterfall(&figure, path, &waterfall, &wanted, diag),
                      "Every instant of rank 0 has one cause. Green: flops that the model "
                      "needs; orange: other work; blue: waiting for data; grey: the host.",
                      diag);
    figure_release(&figure);
    return status;
}

static enum status put_traces(struct page *page, const char *path, struct diag *diag)
{
    static const struct {
        bool memory;
        const char *caption;
        enum status (*make)(struct figure *, const struct trace *, const struct figure_options *,
                            struct diag *);
    } of_traces[] = {
        {false, "What each stream of rank 0 does. Boxes closer than the paper can show are one.",
         figure_timeline},
        {true, "Live bytes of rank 0's device by category, and what the device has.",
         figure_memory},
    };
    const struct figure_options wanted = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_LEN(of_traces) && status == STATUS_OK; i++) {
        struct trace trace = {0};
        struct figure one = {0};
        status = stored_trace(&trace, path, of_traces[i].memory, diag);
        if (status == STATUS_OK)
            status = page_draw(page, &one, of_traces[i].make(&one, &trace, &wanted, diag),
                               of_traces[i].caption, diag);
        figure_release(&one);
        trace_release(&trace);
    }
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
        double value = number(object, part[i].key.text);
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
              CAUSE_COUNT, false, number(root, "step_s"));
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
              RESERVED_PART_COUNT, true, number(memory, "reserved_bytes"));
    put_parts(page, NULL, json_find(memory, "at_peak"), "live at the peak", peak, CATEGORY_COUNT,
              true, number(memory, "peak_bytes"));
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
            double is = number(object, key);
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
        fraction[i] = number(mfu, result_name_of_mfu((enum mfu_convention)i).text);
        page_cell(page, mfu_table[i].name);
        page_cellf(page, "%.1f", 100 * fraction[i]);
        page_end_row(page);
    }
    page_cell(page, "HFU: recomputed flops counted");
    page_cellf(page, "%.1f", 100 * number(root, "hfu"));
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
    const char *options = words(next, "options");
    const char *profile = words(json_find(root, "configuration"), "profile");
    double step_s = number(root, "step_s"), ideal_s = number(root, "ideal_step_s");
    double next_s = number(next, "step_s");
    bool fits = false;
    struct text text = {0};
    if (!json_is_object(next))
        return;
    page_heading(page, "What to try next");
    if (options[0] == '\0') {
        text_printf(&text, "None of %.0f other options is better.", number(next, "tried"));
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
    if (ideal_s > 0 && strcmp(profile, PROFILE_IDEAL) != 0) {
        text_puts(&text, " With profile ideal the step would take ");
        put_time(&text, ideal_s);
        text_puts(&text, fabs(ideal_s / step_s - 1) < 5e-4
                             ? ", as long: this implementation adds nothing."
                         : ideal_s < step_s ? ": the rest is this implementation."
                                            : ", more than with this implementation.");
    }
    page_text(page, text.data);
    if (words(next, "command")[0] != '\0')
        page_code(page, words(next, "command"));
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
                number(packed, "documents"), 100 * number(packed, "padding_share"),
                100 * number(packed, "visible_share"));
    if (json_is_object(batches)) {
        text_printf(&text, " %zu steps of other documents: median ",
                    json_count(json_find(batches, "by_batch")));
        put_time(&text, number(batches, "median_step_s"));
        text_puts(&text, ", 90 % at most ");
        put_time(&text, number(batches, "high_step_s"));
        text_puts(&text, ", worst ");
        put_time(&text, number(batches, "worst_step_s"));
        text_printf(&text, "; %.1f tokens/s/GPU.", number(batches, "mean_tokens_per_s_gpu"));
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
                words(what, "model")[0] != '\0' ? words(what, "model") : "a schedule",
                number(what, "sequences"));
    units_put_tokens(&text, (int64_t)number(what, "sequence_tokens"));
    text_printf(&text, " tokens, %.0f GPU%s of %s%s%s", number(what, "gpus"),
                number(what, "gpus") == 1 ? "" : "s", words(what, "cluster"),
                words(what, "strategy")[0] != '\0' ? ", " : "", words(what, "strategy"));
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
        put_next(page, root);
        page_heading(page, "Over time");
        status = put_traces(page, path, diag);
    }
    if (status == STATUS_OK) {
        page_heading(page, "Utilisation");
        put_mfu(page, root);
        page_heading(page, "What was predicted");
        put_object(page, what, "choice");
        page_put_sources(page, words_or_null(made_by, "model"), words_or_null(made_by, "cluster"),
                         words_or_null(made_by, "costs"), words_or_null(what, "profile"));
        page_heading(page, "Made by");
        page_code(page, words(made_by, "command"));
        page_text(page, words(made_by, "versions"));
        page_end(page);
    }
    text_release(&text);
    stored_release(&stored);
    return status;
}
