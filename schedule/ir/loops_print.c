/* A schedule as text with loops: the lines of the flat form, rolled.
 *
 * A line inside loops is printed once, for all iterations. Its numbers change from iteration to iteration by fixed
 * strides, and are printed as expressions of the loops' variables ("{2*L+1}"). An op to which a line refers, by a wait
 * or a free set, is printed by its number if it is outside loops, and as .ROW if it is in the loops around the line and
 * always in the same iteration. Else it is LOOP.ROW[ITERATION, ...] if the strides are whole iterations of the loops
 * around that op: "B.3[L+1]" is row 3 of loop B in the iteration whose variable is L + 1. Otherwise it is "@" and the
 * op's number in the flat list.
 *
 * The op may lie before the first iteration of its loop or after the last one, where other lines are.
 * Such an op gets an alias, the name that it would have in the loop. Aliases are printed after all lines ("alias
 * B[-1] .3=17"). */
#include "schedule/ir/loops_roll.h"

#include <assert.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

/* A loop to be printed. The loops inside one top-level node have consecutive rows, an outer loop before its inner
 * ones. */
struct named_loop {
    uint32_t parent; /* row; UINT32_MAX: none */
    uint32_t trip_count;
    uint32_t ops_per_iteration; /* number of ops of an iteration */
    /* number of the first op of the loop's first iteration, while all loops around it are in their first iteration */
    uint64_t first_op;
    int64_t first_value; /* value of its variable in the first iteration */
    int step;            /* change of the value from one iteration to the next: 1 or -1 */
    char variable[4];
};

/* An op to which a reference leads although it comes before the first or after the last iteration of its loop. For a
 * loop inside other loops, there is such an op in each of their iterations. */
struct alias {
    uint32_t loop, row;
    int64_t value; /* value of the loop's variable */
    uint64_t op;   /* number of the op, in the first iterations of the loops around */
};

struct loops_printer {
    struct text *out;
    struct loops loops;
    struct named_loop *named_loops;
    uint32_t named_loop_count;
    size_t named_loop_capacity;
    uint64_t *ops_before_each_node;   /* [top-level nodes + 1] number of ops before each */
    uint32_t *loops_before_each_node; /* [top-level nodes + 1] number of loops before each */
    struct alias *alias;
    size_t alias_count, alias_capacity;
};

/* The loops around a line, the outermost first: their rows, and the strides of the line's numbers in each. */
struct enclosing_loops {
    uint32_t depth;
    uint32_t loop[DEPTH_MAX];
    const int64_t *stride[DEPTH_MAX];
};

/* ---- names and variables of loops ---- */

/* Appends the name of a loop: "A" to "Z", "AA" and on. */
static void print_loop_name(struct text *out, uint32_t loop)
{
    char name[8];
    int at = (int)sizeof name;
    name[--at] = '\0';
    for (uint64_t left = (uint64_t)loop + 1; left > 0; left = (left - 1) / 26)
        name[--at] = (char)('A' + (left - 1) % 26);
    text_puts(out, name + at);
}

/* Chooses the first value and step of the loop's variable by a label such as "layer=". Each line of the body outside
 * inner loops that has the label, with a number that grows or falls by one per iteration, gives a first value and a
 * step; the ones that most lines give are taken. Returns false if no line gives any. */
static bool choose_values_by_label(const struct loops *l, const struct loops_shape *loop,
                                   const int64_t *number, const char *label,
                                   struct named_loop *named)
{
    enum { MOST = 64 };
    struct {
        int64_t value, step;
        uint32_t times;
    } seen[MOST];
    uint32_t count = 0, most = 0;
    const int64_t *stride = loop->stride;
    for (uint32_t i = 0; i < loop->body_length; i++) {
        const struct loops_shape *line = &l->shape[loop->body[i]];
        uint32_t index = loops_number_index_of_label(line, label), k = 0;
        if (index != UINT32_MAX && (stride[index] == 1 || stride[index] == -1)) {
            while (k < count && (seen[k].value != number[index] || seen[k].step != stride[index]))
                k++;
            if (k == count && count < MOST) {
                seen[count].value = number[index];
                seen[count].step = stride[index];
                seen[count++].times = 0;
            }
            if (k < count)
                seen[k].times++;
        }
        number += line->number_count;
        stride += line->number_count;
    }
    if (count == 0)
        return false;
    for (uint32_t k = 1; k < count; k++)
        if (seen[k].times > seen[most].times)
            most = k;
    named->first_value = seen[most].value;
    named->step = (int)seen[most].step;
    return true;
}

static bool variable_is_used(const struct loops_printer *p, const struct named_loop *named,
                             const char *variable)
{
    for (uint32_t outer = named->parent; outer != UINT32_MAX; outer = p->named_loops[outer].parent)
        if (strcmp(p->named_loops[outer].variable, variable) == 0)
            return true;
    return false;
}

static void choose_variable(const struct loops_printer *p, const struct loops_shape *loop,
                            const int64_t *number, struct named_loop *named)
{
    static const char *const of_label[LOOPS_LABELS] = {"L", "c", "t", "u"};
    for (int i = 0; i < LOOPS_LABELS; i++)
        if (!variable_is_used(p, named, of_label[i]) &&
            choose_values_by_label(&p->loops, loop, number, loops_labels[i], named)) {
            strcpy(named->variable, of_label[i]);
            return;
        }
    named->first_value = 0;
    named->step = 1;
    /* DEPTH_MAX names: one of them is not that of a loop around */
    static const char *const others[] = {"i", "j", "k", "l", "m", "n", "o", "p"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        strcpy(named->variable, others[i]);
        if (!variable_is_used(p, named, others[i]))
            return;
    }
}

/* Adds a row for each loop of a node. first_op: the number of the node's first op. */
static void add_named_loops(struct loops_printer *p, uint32_t shape, const int64_t *number,
                            uint64_t first_op, uint32_t parent)
{
    const struct loops_shape *loop = &p->loops.shape[shape];
    if (loop->text)
        return;
    p->named_loops = heap_grow(p->named_loops, &p->named_loop_capacity, p->named_loop_count + 1u,
                               sizeof *p->named_loops);
    uint32_t row = p->named_loop_count++;
    p->named_loops[row] =
        (struct named_loop){.parent = parent,
                            .trip_count = loop->trip_count,
                            .ops_per_iteration = loop->op_line_count / loop->trip_count,
                            .first_op = first_op};
    choose_variable(p, loop, number, &p->named_loops[row]);
    for (uint32_t i = 0; i < loop->body_length; i++) {
        add_named_loops(p, loop->body[i], number, first_op, row);
        number += p->loops.shape[loop->body[i]].number_count;
        first_op += p->loops.shape[loop->body[i]].op_line_count;
    }
}

static void name_all_loops(struct loops_printer *p)
{
    struct loops *l = &p->loops;
    uint64_t op = 0;
    p->ops_before_each_node = heap_alloc(l->count + 1, sizeof *p->ops_before_each_node);
    p->loops_before_each_node = heap_alloc(l->count + 1, sizeof *p->loops_before_each_node);
    for (uint64_t i = 0; i < l->count; i++) {
        p->ops_before_each_node[i] = op;
        p->loops_before_each_node[i] = p->named_loop_count;
        add_named_loops(p, l->node[i].shape, l->number + l->node[i].index_of_first_number, op,
                        UINT32_MAX);
        op += l->shape[l->node[i].shape].op_line_count;
    }
    p->ops_before_each_node[l->count] = op;
    p->loops_before_each_node[l->count] = p->named_loop_count;
}

/* ---- where an op is in the loops ---- */

struct op_place {
    uint32_t depth; /* number of loops around the op; 0: it is a top-level line */
    uint32_t loop[DEPTH_MAX];
    int64_t iteration[DEPTH_MAX]; /* number of the iteration, from 0 */
    /* number of the op's line among the op lines of the innermost loop */
    uint32_t row;
};

static struct op_place find_place_of_op(const struct loops_printer *p, uint64_t op)
{
    uint64_t low = 0, high = p->loops.count;
    while (high - low > 1) { /* nodes without ops come before the node that has the op */
        uint64_t middle = low + (high - low) / 2;
        if (p->ops_before_each_node[middle] <= op)
            low = middle;
        else
            high = middle;
    }
    struct op_place place = {0};
    uint64_t rest =
        op - p->ops_before_each_node
                 [low]; /* the op's number in its node, and then in each loop around it */
    uint32_t loop = p->loops_before_each_node[low];
    const struct loops_shape *s = &p->loops.shape[p->loops.node[low].shape];
    while (!s->text) {
        uint64_t ops = s->op_line_count / s->trip_count;
        assert(place.depth < DEPTH_MAX);
        place.loop[place.depth] = loop++;
        place.iteration[place.depth++] = (int64_t)(rest / ops);
        rest %= ops;
        place.row = 0;
        const struct loops_shape *child;
        for (uint32_t i = 0; rest >= (child = &p->loops.shape[s->body[i]])->op_line_count; i++) {
            rest -= child->op_line_count;
            loop += child->loop_count;
            place.row += child->text != NULL && child->op_line_count > 0;
        }
        s = child;
    }
    return place;
}

/* ---- numbers of lines ---- */

static void print_expression_term(struct loops_printer *p, const struct enclosing_loops *a,
                                  uint32_t d, int64_t factor, bool any)
{
    if (factor < 0)
        text_putc(p->out, '-');
    else if (any)
        text_putc(p->out, '+');
    if (factor != 1 && factor != -1) {
        text_put_i64(p->out, factor < 0 ? -factor : factor);
        text_putc(p->out, '*');
    }
    text_puts(p->out, p->named_loops[a->loop[d]].variable);
}

/* Appends "2*L+1" or "31-L": a constant plus multiples of the variables of the enclosing loops; positive terms come
 * first. */
static void print_expression(struct loops_printer *p, const struct enclosing_loops *a,
                             int64_t constant, const int64_t *factor)
{
    bool any = false;
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t d = 0; d < a->depth; d++)
            if (factor[d] * sign > 0) {
                print_expression_term(p, a, d, factor[d], any);
                any = true;
            }
        if (constant * sign > 0) {
            text_puts(p->out, any && sign > 0 ? "+" : "");
            text_put_i64(p->out, constant);
            any = true;
        }
    }
    if (!any)
        text_putc(p->out, '0');
}

/* Splits a number into a constant and multiples of loop variables: sets factor[] to the multiples and returns the
 * constant. first: the number's value in the first iterations; stride: what the number grows by in each loop. */
static int64_t split_into_loop_multiples(const struct loops_printer *p,
                                         const struct enclosing_loops *a, int64_t first,
                                         const int64_t *stride, int64_t *factor)
{
    for (uint32_t d = 0; d < a->depth; d++) {
        const struct named_loop *named = &p->named_loops[a->loop[d]];
        factor[d] = stride[d] * named->step;
        first -= factor[d] * named->first_value;
    }
    return first;
}

static void print_number(struct loops_printer *p, const struct enclosing_loops *a, int64_t first,
                         uint32_t at)
{
    int64_t factor[DEPTH_MAX], stride[DEPTH_MAX];
    bool varies = false;
    for (uint32_t d = 0; d < a->depth; d++) {
        stride[d] = a->stride[d][at];
        varies = varies || stride[d] != 0;
    }
    if (!varies) {
        text_put_i64(p->out, first);
        return;
    }
    int64_t constant = split_into_loop_multiples(p, a, first, stride, factor);
    text_putc(p->out, '{');
    print_expression(p, a, constant, factor);
    text_putc(p->out, '}');
}

/* ---- names of ops ---- */

/* The movement of the op to which a line refers (the target) as the loops around the line run. While all of these are
 * in their first iteration, the target is at `op_place`. One more iteration of loop d around the line moves it by
 * strides[m][d] iterations of loop m around the target. Example: in "B.3[L+1]", L is the variable of the only loop
 * around the line and begins at 0; then op_place is row 3 of B in iteration 1, and strides[0][0] is 1. */
struct strided_reference {
    struct op_place op_place;
    int64_t strides[DEPTH_MAX][DEPTH_MAX];
};

/* Finds how the target of a reference moves. first: its number in the flat list while the loops around the line are in
 * their first iterations; stride[d]: what the number grows by per iteration of loop d. The target may lie outside its
 * loop in some iterations of the line. So the loops around it are those around the target of the line's first
 * iterations or, with `last`, of its last iterations. Returns false if the target does not move by whole iterations of
 * these loops. */
static bool find_reference_strides(const struct loops_printer *p, const struct enclosing_loops *a,
                                   int64_t first, const int64_t *stride, bool last,
                                   struct strided_reference *r)
{
    int64_t op = first;
    for (uint32_t d = 0; d < a->depth; d++)
        op += last ? stride[d] * (p->named_loops[a->loop[d]].trip_count - 1) : 0;
    if (op < 0 || (uint64_t)op >= p->ops_before_each_node[p->loops.count])
        return false; /* a wait for an op that never comes: the verifier says so */
    *r = (struct strided_reference){.op_place = find_place_of_op(p, (uint64_t)op)};
    for (uint32_t d = 0; d < a->depth; d++) {
        uint32_t m = 0;
        while (stride[d] != 0 && m < r->op_place.depth &&
               stride[d] % (int64_t)p->named_loops[r->op_place.loop[m]].ops_per_iteration != 0)
            m++;
        if (stride[d] != 0 && m == r->op_place.depth)
            return false;
        if (stride[d] == 0)
            continue;
        r->strides[m][d] =
            stride[d] / (int64_t)p->named_loops[r->op_place.loop[m]].ops_per_iteration;
        if (last)
            r->op_place.iteration[m] -=
                r->strides[m][d] * (p->named_loops[a->loop[d]].trip_count - 1);
    }
    return true;
}

/* Let `outer` be the loop around level m of a place: loop m - 1. Sets [*begin, *end) to the ops of the iteration of
 * `outer` in which the place is, and *first to the number of the first op of `outer` while all loops around it are in
 * their first iterations. For m = 0 these are all ops, and 0. */
static void find_ops_of_outer_iteration(const struct loops_printer *p, const struct op_place *place,
                                        uint32_t m, uint64_t *begin, uint64_t *end, uint64_t *first)
{
    *begin = *first = 0;
    *end = p->ops_before_each_node[p->loops.count];
    if (m == 0)
        return;
    const struct named_loop *outer = &p->named_loops[place->loop[m - 1]];
    *begin = *first = outer->first_op;
    for (uint32_t k = 0; k < m; k++)
        *begin += (uint64_t)place->iteration[k] * p->named_loops[place->loop[k]].ops_per_iteration;
    *end = *begin + outer->ops_per_iteration;
}

/* Records an alias for each op that a reference reaches before the first or after the last iteration of the innermost
 * loop around its target. Returns false where no alias is possible: the reference leaves an outer loop of the target;
 * or it depends on more than one loop variable where it leaves the innermost one; or it reaches an op outside
 * the current iteration of the loop around the innermost one. */
static bool add_aliases_for_reference(struct loops_printer *p, const struct enclosing_loops *a,
                                      const struct strided_reference *r, int64_t first,
                                      const int64_t *stride)
{
    for (uint32_t m = 0; m < r->op_place.depth; m++) {
        const struct named_loop *named = &p->named_loops[r->op_place.loop[m]];
        int64_t low = r->op_place.iteration[m], high = low;
        uint32_t by = a->depth, moves = 0;
        for (uint32_t d = 0; d < a->depth; d++) {
            int64_t most = r->strides[m][d] * (p->named_loops[a->loop[d]].trip_count - 1);
            low += most < 0 ? most : 0;
            high += most > 0 ? most : 0;
            by = most != 0 ? d : by;
            moves += most != 0;
        }
        if (low >= 0 && high < (int64_t)named->trip_count)
            continue;
        if (m + 1 < r->op_place.depth || moves > 1)
            return false;
        uint64_t begin, end, of_first;
        find_ops_of_outer_iteration(p, &r->op_place, m, &begin, &end, &of_first);
        int64_t iteration_count = by < a->depth ? p->named_loops[a->loop[by]].trip_count : 1;
        for (int64_t k = 0; k < iteration_count; k++) {
            int64_t at = r->op_place.iteration[m] + (by < a->depth ? r->strides[m][by] * k : 0);
            uint64_t op = (uint64_t)(first + (by < a->depth ? stride[by] * k : 0));
            if (at >= 0 && at < (int64_t)named->trip_count)
                continue;
            if (op < begin || op >= end)
                return false;
            p->alias =
                heap_grow(p->alias, &p->alias_capacity, p->alias_count + 1, sizeof *p->alias);
            p->alias[p->alias_count++] =
                (struct alias){r->op_place.loop[m], r->op_place.row,
                               named->first_value + named->step * at, op - begin + of_first};
        }
    }
    return true;
}

/* True if the target is in the loops around the line, and always in the same iteration as the line. */
static bool is_of_same_iteration(const struct enclosing_loops *a, const struct strided_reference *r)
{
    if (r->op_place.depth != a->depth)
        return false;
    for (uint32_t m = 0; m < a->depth; m++) {
        if (r->op_place.loop[m] != a->loop[m] || r->op_place.iteration[m] != 0)
            return false;
        for (uint32_t d = 0; d < a->depth; d++)
            if (r->strides[m][d] != (m == d))
                return false;
    }
    return true;
}

static void print_dot_and_row_number(struct text *out, uint32_t row)
{
    text_putc(out, '.');
    text_put_i64(out, row);
}

static void print_reference(struct loops_printer *p, const struct enclosing_loops *a, int64_t first,
                            uint32_t at)
{
    struct strided_reference r;
    int64_t stride[DEPTH_MAX] = {0}, factor[DEPTH_MAX];
    for (uint32_t d = 0; d < a->depth; d++)
        stride[d] = a->stride[d][at];
    bool by_place = (find_reference_strides(p, a, first, stride, true, &r) &&
                     add_aliases_for_reference(p, a, &r, first, stride)) ||
                    (find_reference_strides(p, a, first, stride, false, &r) &&
                     add_aliases_for_reference(p, a, &r, first, stride));
    if (!by_place) { /* the target is printed by its number in the flat list */
        text_putc(p->out, '@');
        print_number(p, a, first, at);
        return;
    }
    if (r.op_place.depth == 0) {
        text_put_i64(p->out, first);
        return;
    }
    if (is_of_same_iteration(a, &r)) {
        print_dot_and_row_number(p->out, r.op_place.row);
        return;
    }
    print_loop_name(p->out, r.op_place.loop[r.op_place.depth - 1]);
    print_dot_and_row_number(p->out, r.op_place.row);
    for (uint32_t m = 0; m < r.op_place.depth; m++) {
        const struct named_loop *named = &p->named_loops[r.op_place.loop[m]];
        int64_t of[DEPTH_MAX];
        for (uint32_t d = 0; d < a->depth; d++)
            of[d] = r.strides[m][d] * named->step;
        int64_t constant = split_into_loop_multiples(
            p, a, named->first_value + named->step * r.op_place.iteration[m], of, factor);
        text_putc(p->out, m == 0 ? '[' : ',');
        print_expression(p, a, constant, factor);
    }
    text_putc(p->out, ']');
}

/* ---- lines ---- */

static void print_indent(struct text *out, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        text_puts(out, "  ");
}

/* Appends a line. at: the index of its first number in the strides of the loops around. *row: the row of the next op of
 * the innermost loop; a line of an op counts it up. */
static void print_line(struct loops_printer *p, const char *text, const int64_t *number,
                       const struct enclosing_loops *a, uint32_t at, uint32_t *row)
{
    bool own = strncmp(text, "op ", 3) == 0;
    print_indent(p->out, a->depth);
    for (const char *c = text; *c; c++) {
        if (*c == LOOPS_NUMBER) {
            print_number(p, a, *number++, at++);
        } else if (*c == LOOPS_OP && own) { /* a line "op ..." first has its own number */
            if (a->depth > 0)
                print_dot_and_row_number(p->out, (*row)++);
            else
                text_put_i64(p->out, *number);
            number++;
            at++;
            own = false;
        } else if (*c == LOOPS_OP) {
            print_reference(p, a, *number++, at++);
        } else {
            text_putc(p->out, *c);
        }
    }
    text_putc(p->out, '\n');
    text_flush_to_file_if_long(p->out);
}

static void print_node(struct loops_printer *p, uint32_t shape, const int64_t *number,
                       const struct enclosing_loops *a, uint32_t at, uint32_t loop, uint32_t *row)
{
    const struct loops_shape *s = &p->loops.shape[shape];
    if (s->text) {
        print_line(p, s->text, number, a, at, row);
        return;
    }
    const struct named_loop *named = &p->named_loops[loop];
    print_indent(p->out, a->depth);
    text_puts(p->out, "loop ");
    print_loop_name(p->out, loop);
    text_printf(p->out, " %s=%lld..%lld\n", named->variable, (long long)named->first_value,
                (long long)(named->first_value + named->step * ((int64_t)named->trip_count - 1)));
    struct enclosing_loops inner = *a;
    assert(inner.depth < DEPTH_MAX);
    for (uint32_t d = 0; d < inner.depth; d++)
        inner.stride[d] += at;
    inner.stride[inner.depth] = s->stride;
    inner.loop[inner.depth++] = loop++;
    uint32_t rows = 0, offset = 0;
    for (uint32_t i = 0; i < s->body_length; i++) {
        const struct loops_shape *child = &p->loops.shape[s->body[i]];
        print_node(p, s->body[i], number + offset, &inner, offset, loop, &rows);
        offset += child->number_count;
        loop += child->loop_count;
    }
    print_indent(p->out, a->depth);
    text_puts(p->out, "end\n");
}

/* Appends the op of an alias, by the name by which a line of the loop around the aliased loop would refer to it. */
static void print_alias_op(struct loops_printer *p, const struct alias *alias)
{
    struct op_place place = find_place_of_op(p, alias->op);
    uint32_t depth = 0; /* number of loops around the aliased one */
    for (uint32_t outer = p->named_loops[alias->loop].parent; outer != UINT32_MAX;
         outer = p->named_loops[outer].parent)
        depth++;
    if (place.depth == 0) {
        text_put_i64(p->out, (int64_t)alias->op);
        return;
    }
    if (place.depth > depth)
        print_loop_name(p->out, place.loop[place.depth - 1]);
    print_dot_and_row_number(p->out, place.row);
    for (uint32_t m = 0; m < place.depth && place.depth > depth; m++) {
        const struct named_loop *named = &p->named_loops[place.loop[m]];
        text_putc(p->out, m == 0 ? '[' : ',');
        if (m < depth)
            text_puts(p->out, named->variable);
        else
            text_put_i64(p->out, named->first_value + named->step * place.iteration[m]);
    }
    if (place.depth > depth)
        text_putc(p->out, ']');
}

static int compare_aliases(const void *left, const void *right)
{
    const struct alias *a = left, *b = right;
    if (a->loop != b->loop)
        return a->loop < b->loop ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void print_aliases(struct loops_printer *p)
{
    if (p->alias_count > 0)
        qsort(p->alias, p->alias_count, sizeof *p->alias, compare_aliases);
    for (size_t i = 0; i < p->alias_count; i++) {
        const struct alias *alias = &p->alias[i], *before = i > 0 ? alias - 1 : NULL;
        if (before && compare_aliases(before, alias) == 0)
            continue;
        if (!before || before->loop != alias->loop || before->value != alias->value) {
            text_puts(p->out, before ? "\nalias " : "alias ");
            print_loop_name(p->out, alias->loop);
            text_putc(p->out, '[');
            text_put_i64(p->out, alias->value);
            text_putc(p->out, ']');
        }
        text_putc(p->out, ' ');
        print_dot_and_row_number(p->out, alias->row);
        text_putc(p->out, '=');
        print_alias_op(p, alias);
    }
    if (p->alias_count > 0)
        text_putc(p->out, '\n');
}

void loops_print(struct text *out, struct loops *loops)
{
    struct loops_printer p = {.out = out, .loops = *loops};
    const struct enclosing_loops none = {0};
    name_all_loops(&p);
    for (uint64_t i = 0; i < p.loops.count; i++) {
        const struct loops_node *node = &p.loops.node[i];
        uint32_t rows = 0;
        print_node(&p, node->shape, p.loops.number + node->index_of_first_number, &none, 0,
                   p.loops_before_each_node[i], &rows);
    }
    print_aliases(&p);
    free(p.named_loops);
    free(p.ops_before_each_node);
    free(p.loops_before_each_node);
    free(p.alias);
}
