#include "models/presets.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXECUTABLE_MAX = 4096 };

/* The installed presets of the running program, or NULL when it is not installed. */
static const char *installed_root(struct arena *arena)
{
    char self[EXECUTABLE_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0)
        return NULL;
    self[size] = '\0';
    for (int up = 0; up < 2; up++) { /* .../bin/longhaul -> ... */
        char *slash = strrchr(self, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
    }
    const char *root = arena_printf(arena, "%s/share/longhaul/presets", self);
    struct stat st;
    return stat(root, &st) == 0 && S_ISDIR(st.st_mode) ? root : NULL;
}

/* models/presets of the tree this file was compiled from. */
static const char *source_root(struct arena *arena)
{
    const char *file = __FILE__;
    const char *slash = strrchr(file, '/');
    int size = slash ? (int)(slash - file) : 1;
    return arena_printf(arena, "%.*s/presets", size, slash ? file : ".");
}

const char *presets_folder(struct arena *arena, const char *kind)
{
    const char *root = getenv("LONGHAUL_PRESETS");
    if (!root || !root[0])
        root = installed_root(arena);
    if (!root)
        root = source_root(arena);
    return arena_printf(arena, "%s/%s", root, kind);
}

const char *presets_path(struct arena *arena, const char *kind, const char *name)
{
    return arena_printf(arena, "%s/%s.json", presets_folder(arena, kind), name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum status presets_list(const char *kind, const char *const **names, size_t *count,
                         struct arena *arena, struct diag *diag)
{
    *names = NULL;
    *count = 0;
    const char *folder = presets_folder(arena, kind);
    DIR *dir = opendir(folder);
    if (!dir)
        return diag_error(diag, (struct loc){.name = folder}, STATUS_SYSTEM,
                          "cannot read the folder of presets: %s; $LONGHAUL_PRESETS names another",
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
        qsort(found, used, sizeof *found, by_name);
    const char **kept = arena_array(arena, used, sizeof *kept);
    for (size_t i = 0; i < used; i++)
        kept[i] = found[i];
    free(found);
    *names = kept;
    *count = used;
    return STATUS_OK;
}

enum status presets_find(const char *kind, const char *what, const char *name, struct loc at,
                         const char **path, struct arena *arena, struct diag *diag)
{
    const char *const *names;
    size_t count;
    enum status status = presets_list(kind, &names, &count, arena, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *path = presets_path(arena, kind, name);
            return STATUS_OK;
        }
    }
    const char *near = diag_nearest(name, names, count);
    if (near)
        return diag_error(diag, at, STATUS_BAD_INPUT, "no %s '%s'; did you mean '%s'?", what, name,
                          near);
    return diag_error(diag, at, STATUS_BAD_INPUT, "no %s '%s' in %s; `longhaul list %s` names all",
                      what, name, presets_folder(arena, kind), kind);
}
