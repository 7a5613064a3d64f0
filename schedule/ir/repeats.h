/* schedule/ir/repeats.h: short lists: a list with few iterations that represents the whole list with all of them.
 *
 * Layers and micro-batches repeat each other, so a short list is a schedule with only a few of them. It has runs of
 * equal iterations in a row. In the whole list, each run has copies_per_gap more iterations, at the run's gap:
 *
 *   short list   F0 F1 F2 F3 | F4 F5 F6 F7 ... B7 B6 B5 B4 | B3 B2 B1 B0
 *   whole    F0 F1 F2 F3 F F F F F4 F5 F6 F7 ...       (F, copies of F3, come in the gap)
 *
 * Each iteration has a value, which grows or falls by one along the run: the number of its unit or of its layer. If
 * only periods of several consecutive layers repeat, an iteration is one period, and its value is the period's number.
 * In the whole list, the copies have the values from `iteration_value_of_first_copy` on, and the short list's values
 * from `iteration_value_of_first_copy` on are greater by copies_per_gap. An iteration of the short list refers to
 * another by the distance of their values, if that is at most `max_iteration_distance_of_refs`, and otherwise by the
 * other's place. The ids of ops in the whole list follow from that.
 *
 * schedule/analysis/find_repeats.h finds the runs and proves that iterations around each gap are isomorphic. */
#ifndef SCHEDULE_REPEATS_H
#define SCHEDULE_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

struct repeat_run {
    uint32_t role;
    /* first_op: the first op of the first iteration */
    uint32_t first_op, ops_per_iteration;
    /* number of iterations; the gap is before iteration gap_before_iteration, and the whole list has there copies of
     * the iteration before it */
    uint32_t iteration_count, gap_before_iteration;
    /* the value of the first iteration; from each iteration to the next, the value changes by value_step, which is 1 or
     * -1 */
    int32_t first_value, value_step;
    uint32_t ops_left_out_before; /* number of ops that earlier runs leave out */
};

/* All-zero: the list is whole. The runs are in list order, and live in the arena of the ir. */
struct repeats {
    uint32_t copies_per_gap; /* number of copies in each gap */
    /* the value of the first iteration that the short list leaves out */
    int32_t iteration_value_of_first_copy;
    /* a reference is by distance if values differ by no more than this, else by place */
    int32_t max_iteration_distance_of_refs;
    /* iterations are units; false: they are layers, and bundles repeat too */
    bool iterations_are_units;
    int32_t layers_per_period; /* number of layers of an iteration; 1 if iterations are units */
    uint32_t run_count;
    struct repeat_run *run;
};

/* The place of an op of the short list. run NULL: the op is in no run. */
struct repeat_place {
    const struct repeat_run *run;
    /* op_in_iteration: index of the op among those of its iteration */
    uint32_t iteration, op_in_iteration;
    int32_t value_of_iteration;
};

/* Returns the last run that begins at this op or before it; NULL if there is none. */
const struct repeat_run *repeats_last_run_up_to_op(const struct repeats *repeats, uint32_t op);

struct repeat_place repeats_place_of_op(const struct repeats *repeats, uint32_t op);

/* Returns the id that an op of the short list has in the whole list. */
uint32_t repeats_op_id_in_whole_list(const struct repeats *repeats, uint32_t op);

/* Translates a reference from the short list to the whole list. In the short list, op `from` refers to op `op`. copy:
 * 0: the reference of `from` itself; n > 0: that of its n-th copy in the whole list. Returns the place of the op to
 * which this reference leads in the whole list; its `iteration` is counted there. run NULL: `op` is in no run. */
struct repeat_place repeats_whole_list_place_of_ref(const struct repeats *repeats, uint32_t from,
                                                    uint32_t copy, uint32_t op);

/* Returns the id, in the whole list, of the op whose place repeats_whole_list_place_of_ref() returns for these
 * arguments; if `op` is in no run, the id of `op` itself. */
uint32_t repeats_whole_list_op_id_of_ref(const struct repeats *repeats, uint32_t from,
                                         uint32_t copy, uint32_t op);

/* True if two references correspond: one to `op` from an iteration with the value `value`, and one to `other` from the
 * iteration with the value value + step. They correspond if both lead to the same op of an iteration at the same
 * distance of values. References that are not by distance (max_iteration_distance_of_refs) correspond if they lead to
 * the same op. */
bool repeats_refs_match_over_iterations(const struct repeats *repeats, uint32_t op, int32_t value,
                                        uint32_t other, int32_t step);

/* Returns the number of times that an op of the short list occurs in the whole list: 1, or 1 + copies_per_gap. */
uint32_t repeats_occurrence_count(const struct repeats *repeats, uint32_t op);

#define REPEATS_ALL_ROLES UINT32_MAX
/* Returns the number of ops that a role, or with REPEATS_ALL_ROLES all roles, have in the whole list. ops: their number
 * in the short list. */
uint32_t repeats_whole_op_count(const struct repeats *repeats, uint32_t role, uint32_t ops);

/* One row of a table of the whole list that is sorted by ops, such as the table of buffers by first use. It corresponds
 * to row number `row` of the short list's table. copy 0: it is that row itself; from 1 on: it is a copy of the row for
 * an iteration that the short list leaves out. */
struct whole_list_row {
    uint32_t row, copy;
    /* for a copy: how many rows before this one the previous copy of the row is, or, for the first copy, the row
     * itself */
    uint32_t rows_since_previous_copy;
};

/* Returns the rows that a table of one role has in the whole list, as an array on the heap, and sets *rows to its
 * length. op[count]: the op of each row of the short list's table, ascending. */
struct whole_list_row *repeats_expand_rows_to_whole_list(const struct repeats *repeats,
                                                         uint32_t role, const uint32_t *op,
                                                         uint32_t count, uint32_t *rows);

#endif
