/* predict/setup/choice_walk.c: walks the table of choices: reads and sets members of structs by row, and makes values,
 * notes, lists and options. */
#include "predict/setup/choice_rows.h"

#include "base/digest.h"
#include "base/units.h"

#include <assert.h>
#include <string.h>

/* ---- members of structs ---- */

/* Returns the value of a row's member of a request. Members of 4 and 8 bytes are signed, since -1 stands for an open
 * choice. */
static int64_t request_member_value(const struct choice_row *row, const struct request *r)
{
    const char *at = (const char *)r + row->request.offset;
    int value = 0;
    int64_t wide = 0;
    bool truth = false;
    switch (row->request.size) {
    case sizeof truth:
        memcpy(&truth, at, sizeof truth);
        return truth;
    case sizeof value:
        memcpy(&value, at, sizeof value);
        return value;
    default:
        assert(row->request.size == sizeof wide);
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

/* Returns the value of a row's member of the choices. Its members of 1 and of 4 bytes are unsigned. */
static int64_t choices_member_value(const struct choice_row *row, const struct choices *c)
{
    const char *at = (const char *)c + row->chosen_member.offset;
    uint8_t narrow = 0;
    uint32_t value = 0;
    int64_t wide = 0;
    switch (row->chosen_member.size) {
    case sizeof narrow:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case sizeof value:
        memcpy(&value, at, sizeof value);
        return value;
    default:
        assert(row->chosen_member.size == sizeof wide);
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

void choice_row_store(const struct choice_row *row, struct request *r, int64_t value,
                      const char *text)
{
    char *at = (char *)r + row->request.offset;
    const int narrow = (int)value;
    const bool truth = value != 0;
    if (row->option->kind == OPTION_TEXT) {
        assert(row->request.size == sizeof text);
        memcpy(at, &text, sizeof text);
    } else if (row->request.size == sizeof truth) {
        memcpy(at, &truth, sizeof truth);
    } else if (row->request.size == sizeof narrow) {
        memcpy(at, &narrow, sizeof narrow);
    } else {
        assert(row->request.size == sizeof value);
        memcpy(at, &value, sizeof value);
    }
}

_Static_assert(sizeof(bool) == sizeof(uint8_t), "members of one byte are numbers");

/* ---- values, notes and options of rows ---- */

const char *choice_value_name(const struct choice_value *value)
{
    if (value->form == CHOICE_TRUTH)
        return value->whole_number != 0 ? "true" : "false";
    return value->name != NULL ? value->name : value->text;
}

size_t choice_row_fill_values(const struct choice_row *row, struct choice_value *value,
                              const struct choices *c)
{
    const bool known =
        c != NULL && (row->is_always_in_json_and_sweeps || row->matters == NULL || row->matters(c));
    for (size_t i = 0; i < CHOICE_VALUES_MAX; i++)
        value[i] = (struct choice_value){
            .key = row->key,
            .description = row->description != NULL ? row->description : row->option->help};
    if (row->values == NULL && row->chosen_member.size == 0)
        return 0;
    size_t count = 1;
    if (row->values != NULL) {
        count = row->values(value, c);
    } else {
        value->form = row->value_form;
        value->whole_number = c != NULL ? choices_member_value(row, c) : 0;
        value->name = row->value_names != NULL ? row->value_names[value->whole_number] : NULL;
    }
    for (size_t i = 0; i < count; i++)
        value[i].has_value = known;
    return count;
}

bool choice_row_note_applies(const struct choice_row *row, size_t note, const struct request *r,
                             const struct choices *c)
{
    if (row->note[note].text == NULL)
        return false;
    return !(row->note[note].applies_to != NULL ? row->note[note].applies_to(r, c)
                                                : row->matters(c));
}

/* Returns a digest of the values of a row that has no member of struct choices. */
static int64_t digest_of_row_values(const struct choice_row *row, const struct choices *c)
{
    struct choice_value value[CHOICE_VALUES_MAX];
    const size_t count = choice_row_fill_values(row, value, c);
    uint64_t digest = DIGEST_OF_NO_BYTES;
    for (size_t i = 0; i < count; i++) {
        const char *name = value[i].form == CHOICE_NAMED ? choice_value_name(&value[i]) : "";
        digest = digest_add(digest, &value[i].whole_number, sizeof value[i].whole_number);
        digest = digest_add(digest, &value[i].real_number, sizeof value[i].real_number);
        digest = digest_add(digest, name, strlen(name) + 1);
    }
    return (int64_t)digest;
}

void choices_fill_identity(int64_t identity[CHOICE_NAME_COUNT], const struct choices *c)
{
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        const struct choice_row *row = &choice_rows[i];
        identity[i] = 0;
        if (row->matters != NULL && !row->matters(c))
            continue;
        if (row->chosen_member.size > 0)
            identity[i] = choices_member_value(row, c);
        else if (row->values != NULL && !row->only_names_other_choices)
            identity[i] = digest_of_row_values(row, c);
    }
}

void choices_put_all_as_text(struct text *out, const struct choices *c)
{
    const size_t begin = out->size;
    for (size_t i = 0; i < CHOICE_NAME_COUNT; i++) {
        struct choice_value value[CHOICE_VALUES_MAX];
        const size_t count = choice_row_fill_values(&choice_rows[i], value, c);
        for (size_t k = 0; k < count && value[k].has_value; k++) {
            text_puts(out, out->size > begin ? ", " : "");
            for (const char *at = value[k].key; *at != '\0'; at++)
                text_putc(out, *at == '_' ? ' ' : *at);
            text_putc(out, ' ');
            if (value[k].form == CHOICE_NAMED || value[k].form == CHOICE_TRUTH)
                text_puts(out, choice_value_name(&value[k]));
            else if (value[k].form == CHOICE_NUMBER)
                text_put_double(out, value[k].real_number);
            else
                text_put_i64(out, value[k].whole_number);
        }
    }
}

/* Appends the value of a row's option. Returns false if the request does not need the option. */
static bool put_option_value_of_row(struct text *out, const struct choice_row *row,
                                    const struct request *r)
{
    if (row->show != NULL)
        return row->show(out, r);
    const int64_t value = request_member_value(row, r);
    if (value <= row->printed_if_value_above)
        return false;
    if (row->option->kind == OPTION_CHOICE)
        text_puts(out, row->option->names[value]);
    else if (row->option->kind == OPTION_TOKENS)
        units_put_tokens(out, value);
    else if (row->option->kind != OPTION_FLAG)
        text_put_i64(out, value);
    return true;
}

void request_put_options(struct text *out, const struct request *r)
{
    /* These options say the most about a configuration, so they are printed first. The others follow in the order of
     * the table. */
    static const uint8_t first[] = {
        CHOICE_NAME_strategy,
        CHOICE_NAME_profile,
        CHOICE_NAME_tp,
        CHOICE_NAME_cp,
        CHOICE_NAME_hp,
        CHOICE_NAME_dp,
        CHOICE_NAME_pp,
        CHOICE_NAME_pipeline,
        CHOICE_NAME_virtual_stages,
        CHOICE_NAME_subsequences,
        CHOICE_NAME_partition,
        CHOICE_NAME_helper_weights,
        CHOICE_NAME_share_units,
        CHOICE_NAME_window,
        CHOICE_NAME_windows,
        CHOICE_NAME_rotation,
        CHOICE_NAME_ring_layout,
        CHOICE_NAME_placement,
        CHOICE_NAME_stage_placement,
        CHOICE_NAME_kernels,
        CHOICE_NAME_weights,
        CHOICE_NAME_shard,
        CHOICE_NAME_activations,
        CHOICE_NAME_offload_ratio,
        CHOICE_NAME_optimizer,
        CHOICE_NAME_states,
        CHOICE_NAME_attention_dropout,
        CHOICE_NAME_micro_batch,
        CHOICE_NAME_chunk_tokens,
        CHOICE_NAME_kv_offload,
        CHOICE_NAME_fetch,
        CHOICE_NAME_chunk_order,
        CHOICE_NAME_sparsity,
    };
    bool put[CHOICE_NAME_COUNT] = {false};
    const size_t begin = out->size;
    for (size_t i = 0; i < ARRAY_LEN(first) + CHOICE_NAME_COUNT; i++) {
        const size_t name = i < ARRAY_LEN(first) ? first[i] : i - ARRAY_LEN(first);
        const struct choice_row *row = &choice_rows[name];
        struct text value = {0};
        if (!put[name] && row->option != NULL && put_option_value_of_row(&value, row, r)) {
            text_printf(out, "%s--%s", out->size > begin ? " " : "", row->option->name);
            text_printf(out, "%s%s", value.size > 0 ? " " : "", value.size > 0 ? value.data : "");
        }
        put[name] = true;
        text_release(&value);
    }
}
