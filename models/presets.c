#include "models/presets.h"

#include "base/data_path.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *presets_folder(struct arena *arena, const char *kind)
{
    struct text path = {0};
    const char *relative = arena_printf(arena, "models/presets/%s", kind);
    /* a missing folder is reported when it is read */
    (void)data_path(&path, relative, NULL);
    const char *folder = arena_text(arena, path.data, path.size);
    text_release(&path);
    return folder;
}

const char *presets_path(struct arena *arena, const char *kind, const char *name)
{
    return arena_printf(arena, "%s/%s.json", presets_folder(arena, kind), name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status presets_list_names(const char *kind, const char *const **names, size_t *count,
                               struct arena *arena, struct diag *diag)
{
    *names = NULL;
    *count = 0;
    const char *folder = presets_folder(arena, kind);
    DIR *dir = opendir(folder);
    if (!dir)
        return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM,
                          "cannot read the folder of presets: %s; $LONGHAUL_DATA names the folder "
                          "that holds models/presets",
                          strerror(errno));
    const char **found = NULL;
    size_t used = 0, capacity = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (size <= 5 || entry->d_name[0] == '.' || strcmp(entry->d_name + size - 5, ".json") != 0)
            continue;
        if (used == capacity) {
            capacity = heap_next_capacity(capacity, used + 1);
            found = heap_realloc(found, capacity, sizeof *found);
        }
        found[used++] = arena_text(arena, entry->d_name, size - 5);
    }
    closedir(dir);
    if (used > 0)
        qsort(found, used, sizeof *found, compare_names);
    const char **kept = arena_array(arena, used, sizeof *kept);
    for (size_t i = 0; i < used; i++)
        kept[i] = found[i];
    free(found);
    *names = kept;
    *count = used;
    return STATUS_OK;
}

/* Returns the shortest preset name that contains `name` ("dgx-h100" for "h100"), which must have at least two letters.
 * If none does, returns the preset that a misspelt name most likely means; NULL: none is near. */
static const char *presets_nearest(const char *name, const char *const *names, size_t count)
{
    const char *shortest = NULL;
    for (size_t i = 0; i < count; i++)
        if (name[0] != '\0' && name[1] != '\0' && strstr(names[i], name) != NULL &&
            (shortest == NULL || strlen(names[i]) < strlen(shortest)))
            shortest = names[i];
    return shortest != NULL ? shortest : diag_nearest(name, names, count);
}

enum status presets_find_path(const char *kind, const char *what, const char *name, struct loc at,
                              const char **path, struct arena *arena, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = presets_list_names(kind, &names, &count, arena, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *path = presets_path(arena, kind, name);
            return STATUS_OK;
        }
    }
    const char *near = presets_nearest(name, names, count);
    if (near)
        return diag_error(diag, at, STATUS_BAD_INPUT, "no %s '%s'; did you mean '%s'?", what, name,
                          near);
    return diag_error(diag, at, STATUS_BAD_INPUT, "no %s '%s' in %s; `longhaul list %ss` names all",
                      what, name, presets_folder(arena, kind), what);
}
