/* Reads YAML: makes settings of the events of libyaml. */
#include "predict/launch/settings.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 32 };

struct yaml_reader {
    struct settings *settings;
    const char *name;
    struct diag *diag;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event;
    struct text path;
    unsigned nesting_depth;
};

static enum status next_event(struct yaml_reader *y)
{
    if (y->has_event)
        yaml_event_delete(&y->event);
    y->has_event = false;
    if (yaml_parser_parse(&y->parser, &y->event) == 0)
        return diag_error(y->diag,
                          (struct loc){.name = y->name,
                                       .line = (uint32_t)y->parser.problem_mark.line + 1,
                                       .column = (uint32_t)y->parser.problem_mark.column + 1},
                          STATUS_BAD_INPUT, "this is not YAML: %s",
                          y->parser.problem != NULL ? y->parser.problem : "it cannot be read");
    y->has_event = true;
    return STATUS_OK;
}

static struct loc present_location(const struct yaml_reader *y)
{
    return (struct loc){.name = y->name, .line = (uint32_t)y->event.start_mark.line + 1};
}

/* Returns the text of the present event, a scalar, up to its first NUL. */
static const char *scalar_text(const struct yaml_reader *y)
{
    return (const char *)y->event.data.scalar.value;
}

static bool is_null(const struct yaml_reader *y)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (y->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(scalar_text(y), nulls[i]) == 0)
            return true;
    return false;
}

/* Appends the present scalar. A whole number without quotes, which may be octal, hexadecimal or binary, is appended in
 * decimal digits. */
static void put_scalar(const struct yaml_reader *y, struct text *out)
{
    const char *word = scalar_text(y), *digits = word + (*word == '-' || *word == '+');
    bool plain = y->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    size_t before = out->size;
    unsigned base = digits[0] != '0'    ? 10
                    : digits[1] == 'x'  ? 16
                    : digits[1] == 'b'  ? 2
                    : digits[1] == '\0' ? 10
                                        : 8;
    digits += base == 16 || base == 2 ? 2 : 0;
    if (plain && *word == '-')
        text_putc(out, '-');
    if (plain && settings_put_decimal(out, digits, base))
        return;
    out->size = before;
    text_puts(out, word);
}

static enum status refuse_alias(const struct yaml_reader *y)
{
    return diag_error(y->diag, present_location(y), STATUS_BAD_INPUT,
                      "aliases (*name) are not read: write the value out");
}

static enum status refuse_deep_nesting(const struct yaml_reader *y)
{
    return diag_error(y->diag, present_location(y), STATUS_BAD_INPUT,
                      "mappings and sequences are nested deeper than %d levels, the most that are "
                      "read",
                      DEPTH_MAX);
}

/* Skips the value whose first event is the present one. Fails if the value is nested too deep, since libyaml's time
 * grows with the square of the depth. */
static enum status skip_value(struct yaml_reader *y)
{
    unsigned open = 0;
    do {
        yaml_event_type_t type = y->event.type;
        if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
            open++;
        if (y->nesting_depth + open > DEPTH_MAX)
            return refuse_deep_nesting(y);
        if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
            open--;
        if (open == 0)
            return STATUS_OK;
    } while (next_event(y) == STATUS_OK);
    return STATUS_BAD_INPUT;
}

/* Reads the elements of a sequence, separated by blanks; a nested sequence or mapping becomes "...". */
static enum status read_sequence(struct yaml_reader *y, struct text *value)
{
    enum status status = next_event(y);
    while (status == STATUS_OK && y->event.type != YAML_SEQUENCE_END_EVENT) {
        if (value->size > 0)
            text_putc(value, ' ');
        if (y->event.type == YAML_SCALAR_EVENT)
            put_scalar(y, value);
        else if (y->event.type == YAML_ALIAS_EVENT)
            return refuse_alias(y);
        else {
            text_puts(value, "...");
            status = skip_value(y);
        }
        if (status == STATUS_OK)
            status = next_event(y);
    }
    return status;
}

static enum status read_mapping(struct yaml_reader *y);

/* Reads the value whose first event is the present one, and adds it as a setting with the name y->path. A mapping adds
 * its members instead, and a null nothing. */
static enum status read_value(struct yaml_reader *y, struct loc at)
{
    struct text value = {0};
    enum status status = STATUS_OK;
    text_puts(&value, "");
    switch (y->event.type) {
    case YAML_SCALAR_EVENT:
        put_scalar(y, &value);
        if (!is_null(y))
            settings_add(y->settings, y->path.data, value.data, at);
        break;
    case YAML_SEQUENCE_START_EVENT:
        status = read_sequence(y, &value);
        if (status == STATUS_OK)
            settings_add(y->settings, y->path.data, value.data, at)->is_list = true;
        break;
    case YAML_MAPPING_START_EVENT:
        status = read_mapping(y);
        break;
    default:
        status = refuse_alias(y);
    }
    text_release(&value);
    return status;
}

/* The keys of one mapping, and their lines, for finding a key that is given twice. */
struct yaml_mapping_keys {
    struct yaml_key {
        const char *name;
        struct loc at;
    } * key; /* heap */
    size_t count, capacity;
};

static int compare_keys(const void *a, const void *b)
{
    const struct yaml_key *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->at.line > y->at.line) - (x->at.line < y->at.line);
}

/* Fails if two keys are equal: some readers of YAML use the last one, and others refuse the file. */
static enum status check_keys(const struct yaml_reader *y, struct yaml_mapping_keys *keys)
{
    if (keys->count > 1)
        qsort(keys->key, keys->count, sizeof *keys->key, compare_keys);
    for (size_t i = 1; i < keys->count; i++)
        if (strcmp(keys->key[i - 1].name, keys->key[i].name) == 0)
            return diag_error(y->diag, keys->key[i].at, STATUS_BAD_INPUT,
                              "duplicate key '%s', which line %u has too", keys->key[i].name,
                              keys->key[i - 1].at.line);
    return STATUS_OK;
}

static void add_key(struct yaml_reader *y, struct yaml_mapping_keys *keys, struct loc at)
{
    const char *name = scalar_text(y);
    keys->key = heap_grow(keys->key, &keys->capacity, keys->count + 1, sizeof *keys->key);
    keys->key[keys->count++] =
        (struct yaml_key){arena_text(&y->settings->arena, name, strlen(name)), at};
}

static enum status read_mapping_members(struct yaml_reader *y, struct yaml_mapping_keys *keys);

/* Reads a mapping from the event of its start to that of its end. */
static enum status read_mapping(struct yaml_reader *y)
{
    struct yaml_mapping_keys keys = {0};
    enum status status = read_mapping_members(y, &keys);
    if (status == STATUS_OK)
        status = check_keys(y, &keys);
    free(keys.key);
    return status;
}

static enum status read_mapping_members(struct yaml_reader *y, struct yaml_mapping_keys *keys)
{
    size_t before = y->path.size;
    if (++y->nesting_depth > DEPTH_MAX)
        return refuse_deep_nesting(y);
    enum status status = next_event(y);
    while (status == STATUS_OK && y->event.type != YAML_MAPPING_END_EVENT) {
        if (y->event.type != YAML_SCALAR_EVENT)
            return diag_error(y->diag, present_location(y), STATUS_BAD_INPUT,
                              "a key is expected here: a plain word");
        struct loc at = present_location(y);
        if (strcmp(scalar_text(y), "<<") == 0)
            return diag_error(y->diag, at, STATUS_BAD_INPUT,
                              "merge keys (<<) are not read: write the keys out");
        if (y->settings->setting_count == SETTINGS_MAX)
            return settings_refuse_too_many(at, y->diag);
        text_printf(&y->path, "%s%s", before > 0 ? "." : "", scalar_text(y));
        add_key(y, keys, at);
        status = next_event(y);
        if (status == STATUS_OK)
            status = read_value(y, at);
        y->path.size = before;
        y->path.data[before] = '\0';
        if (status == STATUS_OK)
            status = next_event(y);
    }
    y->nesting_depth--;
    return status;
}

enum status settings_read_yaml(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag)
{
    struct yaml_reader y = {.settings = settings, .name = name, .diag = diag};
    if (yaml_parser_initialize(&y.parser) == 0)
        heap_out_of_memory();
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, size);
    text_puts(&y.path, "");
    enum status status = next_event(&y); /* the start of the stream */
    if (status == STATUS_OK)
        status = next_event(&y); /* the start of the document */
    if (status == STATUS_OK && y.event.type == YAML_DOCUMENT_START_EVENT)
        status = next_event(&y);
    if (status == STATUS_OK && y.event.type != YAML_MAPPING_START_EVENT)
        status =
            diag_error(diag, present_location(&y), STATUS_BAD_INPUT, "expected keys with values");
    if (status == STATUS_OK)
        status = read_mapping(&y);
    if (status == STATUS_OK)
        status = next_event(&y); /* the end of the document */
    if (status == STATUS_OK)
        status = next_event(&y);
    if (status == STATUS_OK && y.event.type != YAML_STREAM_END_EVENT)
        status = diag_error(diag, present_location(&y), STATUS_BAD_INPUT,
                            "a second document begins here; a file has one");
    if (y.has_event)
        yaml_event_delete(&y.event);
    yaml_parser_delete(&y.parser);
    text_release(&y.path);
    return status;
}
