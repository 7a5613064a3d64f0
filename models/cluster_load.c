/* Loads a cluster: a preset, a file, or a line. */
#include "models/cluster_json.h"
#include "models/presets.h"

#include <string.h>

enum status cluster_parse(struct cluster *cluster, struct arena *arena, const char *name,
                          const char *text, size_t size, struct diag *diag)
{
    return cluster_read_json(cluster, arena, name, text, size, cluster_parse_line, diag);
}

enum status cluster_load(struct cluster *cluster, struct arena *arena, const char *what,
                         struct diag *diag)
{
    *cluster = (struct cluster){0};
    if (cluster_is_file(what))
        return cluster_read_json_file(cluster, arena, what, cluster_parse_line, diag);
    if (cluster_is_one_line(what))
        return cluster_parse_line(cluster, arena, what, strlen(what), diag);
    const char *path, *preset = cluster_line_preset(what);
    if (preset != NULL && strcmp(preset, what) != 0)
        return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                          "'%s' is a device, no cluster; did you mean '%s', or NODESxGPUSxDEVICE "
                          "such as 1x8x%s?",
                          what, preset, what);
    enum status status =
        presets_find_path("clusters", "cluster", what, (struct loc){0}, &path, arena, diag);
    return status == STATUS_OK
               ? cluster_read_json_file(cluster, arena, path, cluster_parse_line, diag)
               : status;
}
