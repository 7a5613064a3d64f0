#include "models/hf_reader.h"

#include "models/transformer_fields.h"

#include <assert.h>
#include <string.h>

const char *hf_next_ignored_key(const char **list, size_t *size)
{
    const char *at = *list;
    while (at != NULL && (*at == ',' || *at == ' '))
        at++;
    if (at == NULL || *at == '\0')
        return NULL;
    *size = strcspn(at, ",");
    *list = at + *size;
    while (*size > 0 && at[*size - 1] == ' ')
        (*size)--;
    return at;
}

bool hf_is_ignored(const struct hf_reader *r, const char *key)
{
    const char *list = r->ignored_keys, *word;
    size_t size;
    while ((word = hf_next_ignored_key(&list, &size)) != NULL)
        if (strlen(key) == size && memcmp(word, key, size) == 0)
            return true;
    return false;
}

bool hf_is_present_or_null(const struct hf_reader *r, const char *key)
{
    const char *name;
    for (size_t i = 0; i < json_member_count(r->root); i++) {
        json_member_at(r->root, i, &name);
        if (strcmp(name, key) == 0)
            return true;
    }
    return false;
}

bool hf_has_value(const struct hf_reader *r, const char *key)
{
    return json_find_member(r->root, key).value != NULL;
}

bool hf_has_value_to_read(const struct hf_reader *r, const char *key)
{
    return hf_has_value(r, key) && !hf_is_ignored(r, key);
}

enum status hf_read_size(const struct hf_reader *r, const char *key, const char *name)
{
    const struct transformer_field *field = transformer_field_find(name);
    assert(field != NULL);
    return json_get_i64(r->root, key, 1, (int64_t)field->high,
                        transformer_field_integer_pointer(r->t, field), r->diag);
}

struct json_node hf_rope_parameters_of_full_layers(struct json_node parameters)
{
    struct json_node own = json_find_member(parameters, "full_attention");
    return json_is_object(own) ? own : parameters;
}

enum status hf_find_rope_theta_holder(const struct hf_reader *r, struct json_node *holder)
{
    *holder = r->root;
    if (hf_has_value(r, "rope_theta") || !hf_has_value(r, "rope_parameters"))
        return STATUS_OK;
    enum status status = json_get_object(r->root, "rope_parameters", holder, r->diag);
    if (status == STATUS_OK)
        *holder = hf_rope_parameters_of_full_layers(*holder);
    return status;
}

enum status hf_read_rope_theta(const struct hf_reader *r)
{
    struct json_node holder;
    r->t->rope_theta = r->family->rope_theta > 0 ? r->family->rope_theta : 10000;
    enum status status = hf_find_rope_theta_holder(r, &holder);
    if (status == STATUS_OK && json_find_member(holder, "rope_theta").value != NULL)
        status = json_get_double(holder, "rope_theta", 1e-3, 1e15, &r->t->rope_theta, r->diag);
    return status;
}
