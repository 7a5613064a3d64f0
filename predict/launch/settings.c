#include "predict/launch/settings.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

void settings_release(struct settings *settings)
{
    free(settings->row);
    arena_release(&settings->arena);
    *settings = (struct settings){0};
}

struct setting *settings_add(struct settings *settings, const char *name, const char *value,
                             struct loc at)
{
    settings->row = heap_grow(settings->row, &settings->capacity, settings->setting_count + 1,
                              sizeof *settings->row);
    struct setting *setting = &settings->row[settings->setting_count++];
    *setting = (struct setting){
        .name = arena_text(&settings->arena, name, strlen(name)),
        .value = value == NULL ? NULL : arena_text(&settings->arena, value, strlen(value)),
        .place = at,
    };
    return setting;
}

const struct setting *settings_find(const struct settings *settings, const char *name)
{
    for (size_t i = settings->setting_count; i-- > 0;)
        if (strcmp(settings->row[i].name, name) == 0)
            return &settings->row[i];
    return NULL;
}

bool settings_put_decimal(struct text *out, const char *digits, unsigned base)
{
    int64_t value = 0;
    bool any = false;
    for (; *digits != '\0'; digits++) {
        char c = *digits;
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
        if (c == '_' && any)
            continue;
        if (!letter && (c < '0' || c > '9'))
            return false;
        unsigned digit = (unsigned)(letter ? (c | 0x20) - 'a' + 10 : c - '0');
        if (digit >= base || value > (INT64_MAX - (int64_t)digit) / (int64_t)base)
            return false;
        value = value * (int64_t)base + (int64_t)digit;
        any = true;
    }
    if (any)
        text_put_i64(out, value);
    return any;
}

enum status settings_refuse_too_many(struct loc at, struct diag *diag)
{
    return diag_error(diag, at, STATUS_BAD_INPUT, "a launch file has at most %d settings",
                      SETTINGS_MAX);
}

const char *settings_find_open_part(const char *value, struct arena *arena)
{
    const char *open = value == NULL ? NULL : strchr(value, SETTING_OPEN_PART_BEGIN);
    if (open == NULL)
        return NULL;
    open += strspn(open, "\001\002");
    return arena_text(arena, open, strcspn(open, "\001\002"));
}

const char *settings_known_last_path_part(const char *value)
{
    const char *slash = value == NULL ? NULL : strrchr(value, '/');
    const char *close = value == NULL ? NULL : strrchr(value, SETTING_OPEN_PART_END);
    return slash != NULL && close != NULL && slash > close && slash[1] != '\0' ? slash + 1 : NULL;
}

/* ---- JSON ---- */

struct json_to_settings {
    struct settings *settings;
    struct json_node root;
    struct diag *diag;
    struct text path;
};

static enum status add_json_settings(struct json_to_settings *w, struct json_node node);

static enum status put_scalar(struct json_to_settings *w, struct json_node node, struct text *out)
{
    const char *string;
    double number;
    bool flag;
    enum status status = STATUS_OK;
    if (json_is_string(node)) {
        status = json_as_string(node, &string, w->diag);
        if (status == STATUS_OK)
            text_puts(out, string);
    } else if (json_is_number(node)) {
        status = json_as_double(node, -1e300, 1e300, &number, w->diag);
        if (status == STATUS_OK)
            text_put_double(out, number);
    } else {
        status = json_as_bool(node, &flag, w->diag);
        if (status == STATUS_OK)
            text_puts(out, flag ? "true" : "false");
    }
    return status;
}

static enum status put_array_elements_as_text(struct json_to_settings *w, struct json_node array,
                                              struct text *out)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < json_element_count(array) && status == STATUS_OK; i++) {
        struct json_node element = json_element_at(array, i);
        if (i > 0)
            text_putc(out, ' ');
        if (json_is_object(element) || element.value == NULL)
            text_puts(out, "...");
        else if (json_is_array(element))
            status = put_array_elements_as_text(w, element, out);
        else
            status = put_scalar(w, element, out);
    }
    return status;
}

static enum status add_member_settings(struct json_to_settings *w, struct json_node object)
{
    size_t before = w->path.size;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < json_member_count(object) && status == STATUS_OK; i++) {
        const char *name;
        struct json_node member = json_member_at(object, i, &name);
        text_printf(&w->path, "%s%s", before > 0 ? "." : "", name);
        status = add_json_settings(w, member);
        w->path.size = before;
        w->path.data[before] = '\0';
    }
    return status;
}

static enum status add_json_settings(struct json_to_settings *w, struct json_node node)
{
    if (json_is_object(node))
        return add_member_settings(w, node);
    struct text value = {0};
    enum status status = STATUS_OK;
    text_puts(&value, "");
    if (json_is_array(node))
        status = put_array_elements_as_text(w, node, &value);
    else if (node.value != NULL)
        status = put_scalar(w, node, &value);
    struct loc at = {.name = w->root.document->name, .line = json_loc(node).line};
    if (status == STATUS_OK && w->settings->setting_count == SETTINGS_MAX)
        status = settings_refuse_too_many(at, w->diag);
    if (status == STATUS_OK && node.value != NULL)
        settings_add(w->settings, w->path.data, value.data, at)->is_list = json_is_array(node);
    text_release(&value);
    return status;
}

enum status settings_read_json(struct settings *settings, const char *name, const char *text,
                               size_t size, struct diag *diag)
{
    struct json json = {0};
    struct json_to_settings w = {.settings = settings, .diag = diag};
    enum status status = json_parse(&json, name, text, size, diag);
    if (status == STATUS_OK) {
        w.root = json_root(&json);
        text_puts(&w.path, "");
        status = json_is_object(w.root)
                     ? add_json_settings(&w, w.root)
                     : json_error(w.root, diag, "expected an object: a configuration of DeepSpeed");
    }
    text_release(&w.path);
    json_release(&json);
    return status;
}
