#include "cli/common/idle_options.h"

#include "predict/setup/choice_rows.h"

#include <assert.h>
#include <stdio.h>

/* Returns the bit of note number `note` of row `row` (struct idle_options). */
static uint64_t bit_of_choice_row_note(size_t row, size_t note)
{
    static const uint64_t one = 1;
    unsigned bit = 0;
    for (size_t i = 0; i <= row; i++)
        for (size_t k = 0; k < (i < row ? CHOICE_NOTES_MAX : note); k++)
            bit += choice_rows[i].note[k].text != NULL;
    assert(bit < 64);
    return one << bit;
}

/* Returns whether a row has notes and the user gave its option. */
static bool is_option_of_choice_row_given(const struct options *options,
                                          const struct choice_row *row)
{
    return row->note[0].text != NULL && is_option_given(options, row->option->name);
}

bool is_possibly_idle_option_given(const struct options *options)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++)
        if (is_option_of_choice_row_given(options, &choice_rows[i]))
            return true;
    return false;
}

void idle_options_add_configuration(struct idle_options *idle, const struct options *options,
                                    const struct request *r, const struct choices *c)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++)
        for (size_t k = 0;
             k < CHOICE_NOTES_MAX && is_option_of_choice_row_given(options, &choice_rows[i]); k++) {
            if (choice_rows[i].note[k].text == NULL)
                continue;
            idle->given_bits |= bit_of_choice_row_note(i, k);
            if (!choice_row_note_applies(&choice_rows[i], k, r, c))
                idle->used_bits |= bit_of_choice_row_note(i, k);
        }
}

bool idle_options_are_all_used(const struct idle_options *idle)
{
    return idle->given_bits == idle->used_bits;
}

void idle_options_add_notes(const struct idle_options *idle, struct diag *note)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++)
        for (size_t k = 0; k < CHOICE_NOTES_MAX; k++) {
            const char *text = choice_rows[i].note[k].text;
            if (text == NULL ||
                ((idle->given_bits & ~idle->used_bits) & bit_of_choice_row_note(i, k)) == 0)
                continue;
            const struct option_name_with_dashes name =
                options_name_with_dashes(choice_rows[i].option->name);
            diag_note(note, (struct loc){.name = name.text}, "%s", text);
        }
}

void note_idle_options_of_prediction(const struct options *options, const struct request *r,
                                     const struct choices *c, struct diag *note)
{
    struct idle_options idle = {0};
    idle_options_add_configuration(&idle, options, r, c);
    idle_options_add_notes(&idle, note);
}
