#include "cli/report/kernels.h"

#include <string.h>

void kernels_release(struct rows_by_attention_kernels *kernels)
{
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        text_release(&kernels->row_names_by_attention_impl[i]);
    *kernels = (struct rows_by_attention_kernels){0};
}

static bool list_has_name(const struct text *list, const char *who)
{
    size_t size = strlen(who);
    const char *at = list->data;
    while (at != NULL && (at = strstr(at, who)) != NULL) {
        bool begins = at == list->data || at[-1] == ' ', ends = at[size] == '\0' || at[size] == ',';
        if (begins && ends)
            return true;
        at += size;
    }
    return false;
}

void kernels_add_row_of_attention_impl(struct rows_by_attention_kernels *kernels,
                                       enum attention_impl impl, const char *who)
{
    struct text *list = &kernels->row_names_by_attention_impl[impl];
    if (!list_has_name(list, who))
        text_printf(list, "%s%s", list->size > 0 ? ", " : "", who);
}

bool do_attention_kernels_differ(const struct rows_by_attention_kernels *kernels)
{
    int used = 0;
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        used += kernels->row_names_by_attention_impl[i].size > 0;
    return used > 1;
}

void put_attention_kernels_if_differ(struct text *out,
                                     const struct rows_by_attention_kernels *kernels,
                                     enum attention_impl suggested)
{
    if (!do_attention_kernels_differ(kernels))
        return;
    text_puts(out, "attention's differ: ");
    for (int i = 0; i < ATTENTION_IMPL_COUNT; i++)
        if (kernels->row_names_by_attention_impl[i].size > 0)
            text_printf(out, "%s of %s; ", attention_impl_name((enum attention_impl)i),
                        kernels->row_names_by_attention_impl[i].data);
    text_printf(out, "--attention %s makes them alike", attention_impl_name(suggested));
}
