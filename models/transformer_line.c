/* A transformer given by its fields on one line: reads and prints it. */
#include "base/text.h"
#include "models/transformer.h"
#include "models/transformer_fields.h"

#include <string.h>

/* Sets the values that depend on other fields: kv_heads and head_dim if they are 0 (head_dim only if `heads` divides
 * `hidden`), and rope_theta, which becomes 0 if positions are not rotary. The other defaults are set before the line is
 * read. */
static void fill_defaults_of_line(struct transformer *t)
{
    if (t->kv_heads == 0)
        t->kv_heads = t->heads;
    if (t->head_dim == 0 && t->heads > 0 && t->hidden % t->heads == 0)
        t->head_dim = t->hidden / t->heads;
    if (t->positions != POSITIONS_ROPE)
        t->rope_theta = 0;
}

enum status transformer_read_line(struct transformer *t, struct arena *arena, const char *line,
                                  struct diag *diag)
{
    static const char *const needed[] = {"layers", "hidden", "heads", "ffn", "vocab"};
    const struct loc at = {.name = "--model"};
    *t = (struct transformer){.name = at.name, .norm_eps = 1e-5, .rope_theta = 10000};
    while (*line != '\0') {
        size_t size = strcspn(line, ",");
        char *field = arena_text(arena, line, size), *equals = strchr(field, '=');
        if (equals == NULL)
            return diag_error(diag, at, STATUS_BAD_INPUT, "'%s' is not FIELD=VALUE", field);
        *equals = '\0';
        bool proxy = strcmp(field, "proxy") == 0;
        if (proxy)
            t->proxy_lacks = equals + 1;
        enum status status = proxy ? STATUS_OK : transformer_set_field(t, field, equals + 1, diag);
        if (status != STATUS_OK)
            return status;
        line += size;
        line += *line == ',';
    }
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (*transformer_field_integer_pointer(t, transformer_field_find(needed[i])) == 0)
            return diag_error(diag, at, STATUS_BAD_INPUT,
                              "a model that is given by its fields needs %s: --set %s=N would do",
                              needed[i], needed[i]);
    fill_defaults_of_line(t);
    t->name = arena_printf(arena, "%lldx%lld%s", (long long)t->layers, (long long)t->hidden,
                           t->proxy_lacks != NULL ? " (dense proxy)" : "");
    t->source = "given";
    return transformer_check(t, at, diag);
}

void transformer_put_line(struct text *out, const struct transformer *t, bool has_vocab)
{
    struct transformer usual = {.heads = t->heads,
                                .hidden = t->hidden,
                                .positions = t->positions,
                                .norm_eps = 1e-5,
                                .rope_theta = 10000};
    fill_defaults_of_line(&usual);
    usual.positions = POSITIONS_ROPE;
    const char *comma = "";
    for (size_t i = 0; i < TRANSFORMER_FIELD_COUNT; i++) {
        const struct transformer_field *f = &transformer_fields[i];
        bool needed = strcmp(f->name, "hidden") == 0 || strcmp(f->name, "heads") == 0;
        if (strcmp(f->name, "vocab") == 0 && !has_vocab)
            continue;
        const size_t before = out->size;
        text_printf(out, "%s%s=", comma, f->name);
        const size_t value = out->size;
        transformer_field_append_to_text(out, t, f);
        struct text other = {0};
        transformer_field_append_to_text(&other, &usual, f);
        bool differs = needed || strcmp(out->data + value, other.data) != 0;
        text_release(&other);
        if (!differs) {
            out->size = before;
            out->data[before] = '\0';
        } else {
            comma = ",";
        }
    }
    if (t->proxy_lacks != NULL)
        text_printf(out, ",proxy=%s", t->proxy_lacks);
}
