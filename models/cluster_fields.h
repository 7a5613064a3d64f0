/* models/cluster_fields.h: the numbers of a cluster file as one table.
 *
 * A row ties a path ("nic.bandwidth") to a member of struct cluster, its unit and its limits. The
 * JSON reader, the one-line form, cluster_check() and `list --json` all walk it. */
#ifndef MODELS_CLUSTER_FIELDS_H
#define MODELS_CLUSTER_FIELDS_H

#include "models/cluster.h"

enum field_type {
    FIELD_BYTES,
    FIELD_BYTES_PER_S,
    FIELD_SECONDS,
    FIELD_FLOP_PER_S,
    FIELD_NUMBER,
    FIELD_WHOLE_NUMBER,
    FIELD_BOOL,
    FIELD_FABRIC, /* a fabric kind's name */
    FIELD_TABLE,  /* integers */
    FIELD_TYPE_COUNT
};

/* The condition under which a file must give a field. */
enum field_required_if {
    NEED_ALWAYS,
    NEED_NICS,    /* if nic.count is not 0 */
    NEED_LINKS,   /* if the fabric is not pcie */
    NEED_SOCKETS, /* if there is more than one socket */
    NEED_NEVER,
    FIELD_NEED_COUNT
};

struct cluster_field {
    const char *section, *key; /* section NULL: at the top of the file */
    const char *path;          /* "section.key" */
    enum field_type type;
    enum field_required_if need;
    size_t offset;    /* of the member in struct cluster */
    double low, high; /* limits of the value; with is_low_limit_excluded it must be above low */
    bool is_low_limit_excluded;
};

enum { CLUSTER_FIELD_COUNT = 58 };
extern const struct cluster_field cluster_fields[CLUSTER_FIELD_COUNT];

/* Returns the row of a path; NULL: there is none. */
const struct cluster_field *cluster_field_find(const char *path);

/* True if the file of this cluster must give the field. */
bool cluster_field_is_required(const struct cluster *cluster, const struct cluster_field *field);

/* Sets a field from text ("200 Gb/s", "8", "true", "mesh"; "infinite" in an ideal cluster) and records its fact (struct
 * cluster_fact). Refuses a value beyond the field's limits, and a field that is a table. */
enum status cluster_field_set_text(struct cluster *cluster, struct arena *arena,
                                   const struct cluster_field *field, const char *text, size_t size,
                                   const char *source, struct loc at, struct diag *diag);

/* Sets a table and records its fact. The cluster keeps the array `entries`. */
void cluster_field_set_table(struct cluster *cluster, struct arena *arena,
                             const struct cluster_field *field, const int64_t *entries,
                             size_t count, const char *source, struct loc at);

/* Sets a bandwidth that was computed, and records its fact. The caller checks the limits. */
void cluster_field_set_rate(struct cluster *cluster, struct arena *arena,
                            const struct cluster_field *field, double bytes_per_s,
                            const char *source, struct loc at);

/* Records how the value of a field was obtained, and its spread (0: none). The field must have been set before. */
void cluster_field_set_origin(struct cluster *cluster, const struct cluster_field *field,
                              enum number_origin how, double spread);

/* Refuses a value beyond the field's limits; tables and the kind of fabric always pass. */
enum status cluster_field_check(const struct cluster *cluster, const struct cluster_field *field,
                                struct loc at, struct diag *diag);

/* Returns the value of a field that is not a table, as a number. */
double cluster_field_value_as_double(const struct cluster *cluster,
                                     const struct cluster_field *field);

/* Appends the value of a field that is not a table, as text with its unit. */
void cluster_field_append_to_text(struct text *out, const struct cluster *cluster,
                                  const struct cluster_field *field);

/* Returns the file and line from which the cluster got a field; if they are unknown, a place with only the cluster's
 * name. */
struct loc cluster_field_loc(const struct cluster *cluster, const struct cluster_field *field);

/* Appends " (FILE:LINE)", the place from which the cluster got the field. Appends nothing if `at` is in the same
 * file, or if the place is unknown. It is for messages at one field that also name another: the other one may come
 * from the file of a base. */
void cluster_field_append_origin_to_text(struct text *out, const struct cluster *cluster,
                                         const struct cluster_field *field, struct loc at);

/* Adapts the numbers that a cluster took over from *base to those in which it differs: the
 * bandwidth that software reaches is scaled with the nominal one (but not in a fabric of another
 * kind), and if the number of NICs differs, NICs are spread evenly over the GPUs. given[i] is true
 * if the file or its board (or the one-line form) sets field i; such a field does not change. The
 * source of an adapted number names the change. */
void cluster_adapt_base_numbers(struct cluster *cluster, struct arena *arena,
                                const struct cluster *base, const bool given[CLUSTER_FIELD_COUNT]);

/* Sets device.usable_bytes and gpus, which follow from other members; without NICs, sets their tables to NULL. */
void cluster_set_derived_members(struct cluster *cluster);

/* The names of the values of enum fabric_kind. */
extern const char *const fabric_kind_names[FABRIC_KIND_COUNT];

#endif
