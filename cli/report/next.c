/* Prints what to try after a prediction, as commands that can be pasted. */
#include "cli/report/report.h"

#include "base/arena.h"
#include "base/units.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Pairs of options of which only one may be given: if the first is added to a command, the second is left out. */
static const char *const replaced[][2] = {
    {"zero", "weights"},           {"zero", "shard"},
    {"weights", "zero"},           {"weights", "shard"},
    {"checkpoint", "activations"}, {"checkpoint", "offload-ratio"},
    {"activations", "checkpoint"},
};

static bool is_option_with_name(const char *word, const char *name, size_t size)
{
    return strncmp(word, name, size) == 0 && (word[size] == '\0' || word[size] == '=');
}

/* True if `option`, "--name" or "--name=value", has the name of one of the options in word[], or
 * contradicts one. */
static bool is_option_replaced(const char *option, char *const *word, int count)
{
    for (int i = 0; i < count; i++) {
        if (strncmp(word[i], "--", 2) != 0)
            continue;
        const char *name = word[i] + 2;
        if (is_option_with_name(option + 2, name, strlen(name)))
            return true;
        for (size_t k = 0; k < ARRAY_LEN(replaced); k++)
            if (strcmp(name, replaced[k][0]) == 0 &&
                is_option_with_name(option + 2, replaced[k][1], strlen(replaced[k][1])))
                return true;
    }
    return false;
}

void report_put_command_with_options(struct text *out, const char *command, const char *options)
{
    struct arena arena = {0};
    struct diag diag = {0};
    char **word, **new_word;
    int count, new_count;
    const struct loc at = {.name = "command"};
    if (options_split_words(&word, &count, &arena, command, at, &diag) == STATUS_OK &&
        options_split_words(&new_word, &new_count, &arena, options, at, &diag) == STATUS_OK) {
        text_puts(out, count > 0 ? word[0] : "");
        for (int i = 1; i < count; i++) {
            if (strncmp(word[i], "--", 2) == 0 &&
                is_option_replaced(word[i], new_word, new_count)) {
                bool has_value = strchr(word[i], '=') != NULL;
                i += !has_value && i + 1 < count && strncmp(word[i + 1], "--", 2) != 0;
                continue;
            }
            options_put_quoted_word(out, word[i]);
        }
        text_printf(out, " %s", options);
    }
    diag_release(&diag);
    arena_release(&arena);
}

/* Appends "15.1 % less time: a step of 5.665 s; a GPU needs 32.1 GiB of 79.1 GiB:". If the report's step does not fit,
 * appends first whether the alternative does. */
static void put_alternative_gain(struct text *out, const struct report *r)
{
    const struct prediction *p = r->prediction;
    const struct alternative *best = r->best_alternative;
    const struct verdict *v = &best->verdict;
    if (!p->verdict.fits)
        text_puts(out, v->fits ? "This fits" : "This lacks less memory, but does not fit either");
    if (best->step_s > 0) {
        text_printf(out, p->verdict.fits ? "%.1f %% less time: a step of " : "; a step takes ",
                    100 * (1 - best->step_s / p->sim.step_s));
        report_put_time(out, best->step_s, p->sim.step_s);
    }
    text_puts(out, best->step_s > 0 || !p->verdict.fits ? "; " : "");
    text_puts(out, v->limiting_memory == LIMIT_HOST ? "the host of a node needs " : "a GPU needs ");
    units_put_gib(out, (double)v->needed_bytes[v->limiting_memory]);
    if (verdict_margin_bytes(v, v->limiting_memory) < DBL_MAX) {
        text_puts(out, " of ");
        units_put_gib(out, (double)v->available_bytes[v->limiting_memory]);
    }
    struct text odds = {0};
    verdict_put_probability(&odds, v->fits_probability);
    if (v->fits && odds.size > 0)
        text_printf(out, ", which fits %s", odds.data);
    text_release(&odds);
    text_putc(out, ':');
}

/* Prints the options that gain most, or the sentence that none of them helps, and how many were not tried. */
static void print_best_alternative(struct sheet *sheet, const struct report *r)
{
    const struct alternative *best = r->best_alternative;
    bool fits = r->prediction->verdict.fits;
    struct text text = {0}, command = {0};
    if (best->options[0] == '\0') {
        text_printf(&text,
                    fits ? "None of %zu other options is faster."
                         : "None of %zu other options makes it fit.",
                    best->tried_count);
    } else {
        put_alternative_gain(&text, r);
        report_put_command_with_options(&command, r->command, best->options);
    }
    sheet_put_text(sheet, text.data);
    if (command.size > 0)
        sheet_put_command(sheet, command.data);
    text.size = 0;
    if (best->skipped_count > 0) {
        text_printf(&text,
                    "%zu more options were not tried: each would take as long as this prediction.",
                    best->skipped_count);
        sheet_put_text(sheet, text.data);
    }
    text_release(&command);
    text_release(&text);
}

void report_print_commands_to_try(struct sheet *sheet, const struct report *r)
{
    const bool recorded = prediction_is_recorded(r->prediction);
    if (r->best_alternative == NULL && r->plan_command == NULL && r->shows_all && !recorded)
        return;
    sheet_begin_section(sheet, SHEET_SECTION_SUGGESTIONS, "What to try next");
    if (r->best_alternative != NULL)
        print_best_alternative(sheet, r);
    if (recorded)
        report_print_recorded_next(sheet, r);
    if (r->plan_command != NULL) {
        sheet_put_text(sheet, r->prediction->verdict.fits
                                  ? "Search all layouts for the fastest:"
                                  : "Search all layouts for one that fits:");
        sheet_put_command(sheet, r->plan_command);
    }
}
