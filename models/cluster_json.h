/* models/cluster_json.h: clusters in JSON files. */
#ifndef MODELS_CLUSTER_JSON_H
#define MODELS_CLUSTER_JSON_H

#include "models/cluster.h"

/* The type of cluster_parse_line(). A file may have a line as its base, and a line may begin with the name of a preset,
 * which is a file. So the two readers call each other; this one gets the other as an argument, so that its source does
 * not depend on the other's. */
typedef enum status cluster_line_reader(struct cluster *cluster, struct arena *arena,
                                        const char *line, size_t size, struct diag *diag);

/* Reads a cluster from the text of the file `name`. Paths in the text are relative to that file's folder. The result
 * has passed cluster_check(). */
enum status cluster_read_json(struct cluster *cluster, struct arena *arena, const char *name,
                              const char *text, size_t size, cluster_line_reader *read_line,
                              struct diag *diag);

/* Does what cluster_read_json() does with the text of a file. */
enum status cluster_read_json_file(struct cluster *cluster, struct arena *arena, const char *path,
                                   cluster_line_reader *read_line, struct diag *diag);

/* Reads the cluster in the file of a preset, or in a file by its path (cluster_is_file()). It stands in
 * models/cluster_line.c. */
enum status cluster_load_named(struct cluster *cluster, struct arena *arena, const char *name,
                               struct diag *diag);

#endif
