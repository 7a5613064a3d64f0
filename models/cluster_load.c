/* Loads a cluster: a preset, a file, or a line. */
#include "models/cluster_json.h"

#include <string.h>

enum status cluster_parse(struct cluster *cluster, struct arena *arena, const char *name,
                          const char *text, size_t size, struct diag *diag)
{
    return cluster_read_json(cluster, arena, name, text, size, cluster_parse_line, diag);
}

enum status cluster_load(struct cluster *cluster, struct arena *arena, const char *what,
                         struct diag *diag)
{
    if (!cluster_is_file(what) && cluster_is_in_line_form(what))
        return cluster_parse_line(cluster, arena, what, strlen(what), diag);
    return cluster_load_named(cluster, arena, what, diag);
}
