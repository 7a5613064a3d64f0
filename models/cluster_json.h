/* models/cluster_json.h: clusters in JSON files. */
#ifndef MODELS_CLUSTER_JSON_H
#define MODELS_CLUSTER_JSON_H

#include "models/cluster.h"

/* Reads the one-line form of a cluster, which a file may name as its base: cluster_parse_line(). It is passed because a
 * line, too, may begin with a preset, which is a file. */
typedef enum status cluster_line_reader(struct cluster *cluster, struct arena *arena,
                                        const char *line, size_t size, struct diag *diag);

/* Reads a cluster from the text of the file `name`. Names of other files in the text are relative to that file's
 * folder. */
enum status cluster_read_json(struct cluster *cluster, struct arena *arena, const char *name,
                              const char *text, size_t size, cluster_line_reader *read_line,
                              struct diag *diag);

/* Reads a cluster from a file. */
enum status cluster_read_json_file(struct cluster *cluster, struct arena *arena, const char *path,
                                   cluster_line_reader *read_line, struct diag *diag);

/* Reads the cluster of a preset's name, or of the path of a file (models/cluster_line.c). */
enum status cluster_load_named(struct cluster *cluster, struct arena *arena, const char *name,
                               struct diag *diag);

#endif
