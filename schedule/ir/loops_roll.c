#include "schedule/ir/loops_roll.h"

#include "base/c_locale.h"

#include <string.h>

enum {
    ITERATIONS_MIN = 3,         /* fewer iterations are easier to read unrolled */
    CANDIDATE_PERIODS_MAX = 24, /* the most lengths of an iteration that are tried at one place */
    NUMBER_DIGITS_MAX = 18,     /* digits of a number; longer ones are kept as text */
};

/* The most nodes of an iteration, for each pass over the nodes. The first passes find short iterations only, so that
 * inner loops are rolled before outer ones. */
static const uint32_t periods[] = {24, 160, 1200, 20000};

void loops_release(struct loops *l)
{
    free(l->shape);
    id_map_release(&l->shape_map);
    free(l->number);
    free(l->node);
    arena_release(&l->arena);
    *l = (struct loops){0};
}

/* ---- the shapes of lines and loops ---- */

static uint32_t add_shape(struct loops *l, uint64_t hash, struct loops_shape shape)
{
    l->shape = heap_grow(l->shape, &l->shape_capacity, l->shape_count + 1u, sizeof *l->shape);
    l->shape[l->shape_count] = shape;
    id_map_add(&l->shape_map, hash, l->shape_count);
    return l->shape_count++;
}

static uint32_t intern_line_shape(struct loops *l, const char *text, size_t size, uint32_t numbers,
                                  bool is_op)
{
    uint64_t hash = hash_text(text, size);
    for (struct id_probe at = id_map_begin_probe(&l->shape_map, hash);
         id_map_next_row_with_hash(&l->shape_map, &at);) {
        const char *other = l->shape[at.row].text;
        if (other && strncmp(other, text, size) == 0 && other[size] == '\0')
            return at.row;
    }
    struct loops_shape line = {.text = arena_text(&l->arena, text, size), .trip_count = 1};
    line.number_count = numbers;
    line.op_line_count = is_op;
    return add_shape(l, hash, line);
}

static bool loops_are_equal(const struct loops_shape *a, const struct loops_shape *b)
{
    return a->text == NULL && a->body_length == b->body_length && a->trip_count == b->trip_count &&
           a->number_count == b->number_count &&
           memcmp(a->body, b->body, a->body_length * sizeof *a->body) == 0 &&
           memcmp(a->stride, b->stride, a->number_count * sizeof *a->stride) == 0;
}

/* Returns the row of a loop's shape, which is added if it is new. Its arrays must be in the arena. */
static uint32_t intern_loop_shape(struct loops *l, const struct loops_shape *loop)
{
    uint64_t hash = hash_word(loop->trip_count, loop->body_length);
    for (uint32_t i = 0; i < loop->body_length; i++)
        hash = hash_word(hash, loop->body[i]);
    for (uint32_t i = 0; i < loop->number_count; i++)
        hash = hash_word(hash, (uint64_t)loop->stride[i]);
    for (struct id_probe at = id_map_begin_probe(&l->shape_map, hash);
         id_map_next_row_with_hash(&l->shape_map, &at);)
        if (loops_are_equal(&l->shape[at.row], loop))
            return at.row;
    return add_shape(l, hash, *loop);
}

/* ---- lines ---- */

static void add_number(struct loops *l, int64_t value)
{
    l->number = heap_grow(l->number, &l->number_capacity, l->number_count + 1, sizeof *l->number);
    l->number[l->number_count++] = value;
}

/* True if the numbers in the word that begins here are names of ops: the word is an op's id, follows `waits`, or begins
 * with `free=`. */
static bool word_names_ops(const char *word, const char *before, bool is_op)
{
    if (strncmp(word, "free=", 5) == 0)
        return true;
    return is_op && before && (strncmp(before, "op ", 3) == 0 || strncmp(before, "waits ", 6) == 0);
}

void loops_add_line(struct loops *l, const char *line, size_t size, bool is_op)
{
    char *text = heap_alloc(size + 1, 1);
    struct loops_node node = {.index_of_first_number = l->number_count};
    const char *word = line, *before = NULL;
    size_t out = 0;
    for (size_t i = 0; i < size;) {
        if (i > 0 && line[i - 1] == ' ') {
            before = word;
            word = line + i;
        }
        size_t digits = 0;
        uint64_t value = 0;
        for (; i + digits < size && c_is_digit(line[i + digits]); digits++)
            value = 10 * value + (uint64_t)(line[i + digits] - '0');
        bool padded = digits > 1 && line[i] == '0';
        if (digits == 0 || digits > NUMBER_DIGITS_MAX || padded) {
            size_t copied = digits > 0 ? digits : 1;
            memcpy(text + out, line + i, copied);
            out += copied;
            i += copied;
            continue;
        }
        add_number(l, (int64_t)value);
        text[out++] = word_names_ops(word, before, is_op) ? LOOPS_OP : LOOPS_NUMBER;
        i += digits;
    }
    node.shape = intern_line_shape(l, text, out,
                                   (uint32_t)(l->number_count - node.index_of_first_number), is_op);
    l->node = heap_grow(l->node, &l->capacity, l->count + 1, sizeof *l->node);
    l->node[l->count++] = node;
    free(text);
}

/* ---- loops ---- */

/* A loop that was found: number of nodes of an iteration, and number of iterations. */
struct found_loop_lengths {
    uint32_t period, iteration_count;
};

static const int64_t *numbers_of_node(const struct loops *l, uint64_t node)
{
    return l->number + l->node[node].index_of_first_number;
}

/* True if `period` nodes at `b` have the shapes of those at `a`. */
static bool shapes_are_equal(const struct loops *l, uint64_t a, uint64_t b, uint32_t period)
{
    for (uint32_t i = 0; i < period; i++)
        if (l->node[a + i].shape != l->node[b + i].shape)
            return false;
    return true;
}

/* The iterations at nodes a, b and c follow each other. True if each number changes by the same amount from b to c as
 * from a to b. */
static bool numbers_change_evenly(const struct loops *l, uint64_t a, uint64_t b, uint64_t c,
                                  uint32_t period)
{
    for (uint32_t i = 0; i < period; i++) {
        uint32_t numbers = l->shape[l->node[a + i].shape].number_count;
        const int64_t *x = numbers_of_node(l, a + i), *y = numbers_of_node(l, b + i),
                      *z = numbers_of_node(l, c + i);
        for (uint32_t k = 0; k < numbers; k++)
            if (z[k] - y[k] != y[k] - x[k])
                return false;
    }
    return true;
}

static uint32_t count_iterations(const struct loops *l, uint64_t at, uint32_t period, uint64_t end)
{
    uint32_t iteration_count = 1;
    while (at + (uint64_t)(iteration_count + 1) * period <= end) {
        uint64_t next = at + (uint64_t)iteration_count * period;
        if (!shapes_are_equal(l, at, next, period) ||
            (iteration_count > 1 &&
             !numbers_change_evenly(l, next - 2 * period, next - period, next, period)))
            break;
        iteration_count++;
    }
    return iteration_count;
}

const char *const loops_labels[] = {"layer=\1", "chunk=\1", "step=\1", "micro=\1"};

uint32_t loops_number_index_of_label(const struct loops_shape *shape, const char *label)
{
    const char *found = shape->text ? strstr(shape->text, label) : NULL;
    uint32_t index = 0;
    for (const char *c = shape->text; found && c < found; c++)
        index += *c == LOOPS_NUMBER || *c == LOOPS_OP;
    return found ? index : UINT32_MAX;
}

/* True if two lines, whose shapes may differ, have different labels, or if one node is a line and the other a loop.
 * Loops have no labels, so two loops do not differ. */
static bool labels_differ(const struct loops *l, uint64_t a, uint64_t b)
{
    const struct loops_shape *x = &l->shape[l->node[a].shape], *y = &l->shape[l->node[b].shape];
    if (!x->text != !y->text)
        return true;
    for (int i = 0; i < LOOPS_LABELS; i++) {
        uint32_t index_x = loops_number_index_of_label(x, loops_labels[i]),
                 index_y = loops_number_index_of_label(y, loops_labels[i]);
        if ((index_x == UINT32_MAX) != (index_y == UINT32_MAX) ||
            (index_x != UINT32_MAX &&
             numbers_of_node(l, a)[index_x] != numbers_of_node(l, b)[index_y]))
            return true;
    }
    return false;
}

/* True if a loop with iterations of `period` nodes may begin at node `at`; `from` is the first node that is rolled.
 * Iterations of layers, chunks, steps or micro-batches begin where a label changes. If the first two iterations have
 * the same labels, node for node, they may begin anywhere. */
static bool may_begin_iteration(const struct loops *l, uint64_t from, uint64_t at, uint32_t period)
{
    if (at == from || labels_differ(l, at - 1, at))
        return true;
    for (uint32_t i = 0; i < period; i++)
        if (labels_differ(l, at + i, at + i + period))
            return false;
    return true;
}

/* Returns the loop from node `at` on that covers most nodes; all-zero if there is none. again: for each node from
 * `from` on, the next node of the same shape; UINT64_MAX: none. */
static struct found_loop_lengths find_loop(const struct loops *l, const uint64_t *again,
                                           uint64_t from, uint64_t at, uint64_t end,
                                           uint32_t period_max)
{
    struct found_loop_lengths best = {0};
    uint64_t candidate = again[at - from];
    for (int tries = 0;
         tries < CANDIDATE_PERIODS_MAX && candidate < end && candidate - at <= period_max;
         tries++, candidate = again[candidate - from]) {
        uint32_t period = (uint32_t)(candidate - at);
        uint32_t iteration_count = count_iterations(l, at, period, end);
        if (iteration_count >= ITERATIONS_MIN && may_begin_iteration(l, from, at, period) &&
            (uint64_t)iteration_count * period > (uint64_t)best.iteration_count * best.period)
            best = (struct found_loop_lengths){period, iteration_count};
    }
    return best;
}

/* Makes the node of a loop whose iterations are nodes from `at` on. */
static struct loops_node make_loop(struct loops *l, uint64_t at, struct found_loop_lengths found)
{
    struct loops_shape loop = {
        .body_length = found.period, .trip_count = found.iteration_count, .loop_count = 1};
    uint32_t *body = loop.body = arena_array(&l->arena, found.period, sizeof *body);
    struct loops_node node = {.index_of_first_number = l->number_count};
    for (uint32_t i = 0; i < found.period; i++) {
        const struct loops_shape *shape = &l->shape[l->node[at + i].shape];
        body[i] = l->node[at + i].shape;
        loop.number_count += shape->number_count;
        loop.op_line_count += shape->op_line_count * found.iteration_count;
        loop.loop_count += shape->loop_count;
    }
    int64_t *next = loop.stride = arena_array(&l->arena, loop.number_count, sizeof *next);
    for (uint32_t i = 0; i < found.period; i++)
        for (uint32_t k = 0; k < l->shape[body[i]].number_count; k++) {
            int64_t first = numbers_of_node(l, at + i)[k];
            *next++ = numbers_of_node(l, at + i + found.period)[k] - first;
            add_number(l, first);
        }
    node.shape = intern_loop_shape(l, &loop);
    return node;
}

static uint64_t *list_next_node_of_same_shape(const struct loops *l, uint64_t from)
{
    uint64_t *again = heap_alloc(l->count - from + 1, sizeof *again);
    uint64_t *last = heap_alloc(l->shape_count + 1u, sizeof *last);
    memset(last, 0xff, (l->shape_count + 1u) * sizeof *last);
    for (uint64_t i = l->count; i-- > from;) {
        again[i - from] = last[l->node[i].shape];
        last[l->node[i].shape] = i;
    }
    free(last);
    return again;
}

static void roll_loops_of_period_up_to(struct loops *l, uint64_t from, uint32_t period_max)
{
    uint64_t end = l->count, out = from;
    uint64_t *again = list_next_node_of_same_shape(l, from);
    for (uint64_t at = from; at < end;) {
        struct found_loop_lengths found = find_loop(l, again, from, at, end, period_max);
        if (found.iteration_count == 0) {
            l->node[out++] = l->node[at++];
            continue;
        }
        struct loops_node node = make_loop(l, at, found);
        at += (uint64_t)found.iteration_count * found.period;
        l->node[out++] = node;
    }
    l->count = out;
    free(again);
}

void loops_roll(struct loops *l, uint64_t from)
{
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++)
        roll_loops_of_period_up_to(l, from, periods[i]);
}
