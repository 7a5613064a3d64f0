/* models/points.h: measured times of single pieces of work, which `bench` writes and `calibrate` reads.
 *
 * A file is a header of "# key=value" lines (device, date, versions, threads, ...), the line of
 * column names, and one row per point:
 *
 *   measured   what was timed, a name of enum point_role
 *   kind       a kind of work (models/work_kinds.def)
 *   params     its parameters as in the text form of schedules, "m=512 n=512 k=64 form=tn"; a
 *              group is the number of its members, "group=8"
 *   in, out    dtypes (work.in, work.out); both are empty if the work neither reads nor writes
 *   reads, writes   numbers of operands
 *   impl       of attention kinds and merges: "fa2", "cpu"; else empty
 *   median_s, p10_s, p90_s, repeats    median, 10th and 90th percentile over the repeats
 *
 * A header key may be the name of a number of a device file ("device.sm_count", "attention.cpu.forward.tile"). Its
 * value is then that number: a backend states what it knows about itself, and `calibrate` does not fit it. Texts live
 * in the arena of struct points. */
#ifndef MODELS_POINTS_H
#define MODELS_POINTS_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "models/work.h"

#include <stddef.h>
#include <stdint.h>

/* Applies POINT_ROLE_ROW(symbol, name, meaning) to every role of a point. The role says what the point's time is. */
#define POINT_ROLES(POINT_ROLE_ROW)                                                                \
    POINT_ROLE_ROW(WORK, "work", "the op on its stream, from its start to its end")                \
    POINT_ROLE_ROW(START, "start", "what lies between two ends of ops that wait in a full queue")  \
    POINT_ROLE_ROW(ISSUE, "issue", "the issuing thread, per op")                                   \
    POINT_ROLE_ROW(HOST, "host", "the op on a host stream")                                        \
    POINT_ROLE_ROW(PAGEABLE, "pageable", "a copy from or to pageable memory")                      \
    POINT_ROLE_ROW(BOTH_WAYS, "both_ways", "a copy while others of its size go the other way")     \
    POINT_ROLE_ROW(BESIDE, "beside_copies", "the op while copies go both ways")                    \
    POINT_ROLE_ROW(SM_HOG, "robbed",                                                               \
                   "the op while a kernel keeps POINT_HOG_SMS multiprocessors busy")               \
    POINT_ROLE_ROW(SUSTAINED, "sustained", "the op once it has been repeated for seconds")         \
    POINT_ROLE_ROW(STEP, "step", "the op in recorded steps, at the clock that they ran at")        \
    POINT_ROLE_ROW(LAUNCH, "launch",                                                               \
                   "the issuing thread's call that launches one kernel, in recorded steps")

enum point_role {
#define POINT_ROLE_ROW(symbol, name, meaning) POINT_##symbol,
    POINT_ROLES(POINT_ROLE_ROW)
#undef POINT_ROLE_ROW
        POINT_ROLE_COUNT
};

enum { POINT_NO_IMPL = ATTENTION_IMPL_COUNT, POINT_HOG_SMS = 16 };

struct point {
    struct loc at;          /* the row's place; zero if the point was not read from a file */
    uint8_t role;           /* enum point_role */
    uint8_t attention_impl; /* enum attention_impl, or POINT_NO_IMPL */
    /* for communication: the number of nodes on which the members are */
    uint16_t nodes;
    bool loopback;                 /* the members share one GPU */
    struct work work;              /* its group is the number of members */
    double median_s, p10_s, p90_s; /* > 0 */
    int64_t repeats;
};

struct points_header_line {
    struct loc at;
    const char *key, *value;
};

struct points {
    struct arena arena;
    struct points_header_line *header_line;
    size_t header_count, header_capacity;
    struct point *row;
    size_t count, capacity;
};

void points_release(struct points *points);

/* Appends a line of the header. The key and the value are copied. */
void points_add_header_line(struct points *points, struct loc at, const char *key,
                            const char *value);
/* Appends a row, a copy of *point. Its place borrows the file's name. */
void points_add(struct points *points, const struct point *point);

/* Returns the value of a header key, that of the first file if several files have it; NULL: no file has it. */
const char *points_header_value(const struct points *points, const char *key);

/* Adds the header lines and the rows of data[0..size). name: the text's name in messages, which is copied. For
 * communication, the header key "nodes" says on how many nodes the members are (1 without it), and the key "loopback"
 * says that they share one GPU. */
enum status points_parse(struct points *points, const char *name, const char *data, size_t size,
                         struct diag *diag);
enum status points_load(struct points *points, const char *path, struct diag *diag);

/* Appends header and rows, times with six digits; points_parse() reads them back. */
void points_print(const struct points *points, struct text *out);

/* Appends the parameters of a work as in the column `params`: "m=512 n=512 k=64". */
void points_print_params(const struct work *work, struct text *out);

const char *point_role_name(enum point_role role);

/* True if the point is the time of an op that runs with nothing beside it: its role is POINT_WORK or POINT_STEP. */
bool point_is_of_op_running_alone(const struct point *point);

#endif
