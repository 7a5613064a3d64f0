#include "sim/memory/memory_periods.h"
#include "sim/memory/blocks.h"
#include "sim/memory/memory.h"
#include "sim/memory/memory_changes.h"
#include "sim/memory/writers.h"

#include "base/arena.h"
#include "schedule/ir/id_map.h"
#include "schedule/passes/lifetimes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what comes and goes ---- */

/* A buffer that comes or goes with an op of the short list; IR_NONE: it does that with another. */
struct stay {
    uint32_t buffer, birth, death; /* ops of the short list */
};

/* A class of ranks. */
struct maker {
    const struct ir *ir;
    const struct memory_periods *from;
    struct sim_result *result;
    const struct sim_class *class;
    const double *start_s, *end_s;             /* of the short list */
    const double *whole_start_s, *whole_end_s; /* of the whole one */
    double same_s;
    struct writers writers;
    const bool *is_kept;             /* per op of the whole list */
    const struct periods_part *part; /* that was looked at last */
    uint64_t *elements;              /* per row of ir.dims */
    uint64_t dtype_bytes[DTYPE_COUNT];
    uint64_t *sign;        /* per op of the whole list: of all that comes and goes with it */
    uint64_t *block_sign;  /* per buffer of a block: its sign; */
    uint32_t *block_large; /* those that may be among the largest */
    struct stay *stay;
    uint32_t stay_count;
    struct changes changes;
    struct jump *jump;
    uint32_t jump_count;
};

/* In the short list, of an op that it has. Most lie in the part of the one before. */
static uint32_t image(struct maker *m, uint32_t op)
{
    const struct periods *p = m->from->periods;
    if (op - m->part->op >= m->part->ops) {
        uint32_t low = 0, high = p->part_count - 1;
        while (low < high) {
            uint32_t middle = low + (high - low + 1) / 2;
            if (p->part[middle].op <= op)
                low = middle;
            else
                high = middle - 1;
        }
        m->part = &p->part[low];
    }
    return m->part->image + (op - m->part->op);
}

/* What is alike of buffers that stand for each other in two periods. */
static uint64_t sign_of(const struct buffer_table *t, uint32_t buffer)
{
    uint64_t word = (uint64_t)t->dims[buffer] << 32 | (uint64_t)t->dtype[buffer] << 16 |
                    (uint64_t)t->memory[buffer] << 8 | (uint64_t)t->category[buffer];
    return hash_word(hash_word(0x10c6, word), word);
}

#define GOES UINT64_C(0xd6e8feb86659fd93) /* times the sign of what comes */

/* sign: of the buffer. */
static inline void note_stay(struct maker *m, uint32_t buffer, uint64_t sign)
{
    const struct buffer_table *t = &m->ir->buffer;
    uint32_t birth = m->writers.first[buffer], death = IR_NONE;
    if (birth == IR_NONE)
        return;
    if (t->free_count[buffer] == 1) /* nearly all are, and few stay: its date is not looked up */
        death = t->free_op[buffer].i;
    else
        (void)changes_free_date_s(m->ir, m->whole_end_s, buffer, m->same_s, &death);
    bool born_here = m->is_kept[birth], dies_here = death != IR_NONE && m->is_kept[death];
    m->sign[birth] += sign;
    if (death != IR_NONE)
        m->sign[death] += sign * GOES;
    if (!born_here && !dies_here)
        return;
    if (death != IR_NONE && m->whole_end_s[death] <= m->whole_start_s[birth] + m->same_s)
        return; /* gone at the date it came */
    m->stay[m->stay_count++] = (struct stay){buffer, born_here ? image(m, birth) : IR_NONE,
                                             dies_here ? image(m, death) : IR_NONE};
}

static void find_stays(struct maker *m)
{
    const struct ir *ir = m->ir;
    memset(m->sign, 0, m->class->op_count * sizeof *m->sign);
    m->stay_count = 0;
    for (struct blocks b = blocks_begin(ir); blocks_next(&b);) {
        for (uint32_t i = 0; i < b.buffers; i++)
            m->block_sign[i] = sign_of(&ir->buffer, b.buffer + i);
        for (uint32_t p = 0; p < b.times; p++)
            for (uint32_t i = 0; i < b.buffers; i++)
                note_stay(m, b.buffer + p * b.buffers + i, m->block_sign[i]);
    }
}

static uint64_t bytes_of(const struct maker *m, uint32_t buffer)
{
    const struct buffer_table *t = &m->ir->buffer;
    return m->elements[t->dims[buffer]] * m->dtype_bytes[t->dtype[buffer]];
}

static inline void add(struct maker *m, size_t at, uint32_t buffer, double time_s, uint32_t op,
                       bool goes)
{
    int64_t bytes = (int64_t)bytes_of(m, buffer);
    m->changes.row[at] = (struct change){.time_s = time_s,
                                         .bytes = goes ? -bytes : bytes,
                                         .op = op,
                                         .row = buffer,
                                         .memory = m->ir->buffer.memory[buffer],
                                         .category = m->ir->buffer.category[buffer]};
}

/* Stays by the op that they begin (end) with, in the order of buffers. */
struct by_op {
    uint32_t *first; /* per op: a row of stay; IR_NONE */
    uint32_t *next;  /* per row */
};

static struct by_op by_op_make(const struct maker *m, bool ends)
{
    uint32_t ops = m->from->periods->ops;
    struct by_op by = {heap_alloc(ops + 1u, sizeof *by.first),
                       heap_alloc(m->stay_count + 1u, sizeof *by.next)};
    memset(by.first, 0xff, ops * sizeof *by.first);
    for (uint32_t i = m->stay_count; i-- > 0;) {
        uint32_t op = ends ? m->stay[i].death : m->stay[i].birth;
        if (op == IR_NONE)
            continue;
        by.next[i] = by.first[op];
        by.first[op] = i;
    }
    return by;
}

/* Stream by stream, in the order of the list: sorted runs. */
static size_t add_stays(struct maker *m, size_t at, const uint8_t *stream, bool ends)
{
    struct by_op by = by_op_make(m, ends);
    const double *time_s = ends ? m->end_s : m->start_s;
    size_t *place = heap_zalloc(m->ir->stream_count + 1u, sizeof *place);
    for (uint32_t i = 0; i < m->stay_count; i++) {
        uint32_t op = ends ? m->stay[i].death : m->stay[i].birth;
        if (op != IR_NONE)
            place[stream[op] + 1]++;
    }
    for (uint32_t k = 1; k <= m->ir->stream_count; k++)
        place[k] += place[k - 1];
    size_t behind = at + place[m->ir->stream_count];
    for (uint32_t op = 0; op < m->from->periods->ops; op++)
        for (uint32_t i = by.first[op]; i != IR_NONE; i = by.next[i])
            add(m, at + place[stream[op]]++, m->stay[i].buffer, time_s[op], op, ends);
    free(place);
    free(by.first);
    free(by.next);
    return behind;
}

static void make_changes(struct maker *m)
{
    const struct writers *w = &m->writers;
    const uint8_t *stream = m->from->cut[m->from->cuts - 1].ir.op.stream;
    size_t at = 0;
    changes_reserve(&m->changes, w->persistent_count + 2 * (size_t)m->stay_count + 1);
    for (uint32_t i = 0; i < w->persistent_count; i++)
        add(m, at++, w->persistent[i], 0, IR_NONE, false);
    at = add_stays(m, at, stream, false);
    m->changes.count = add_stays(m, at, stream, true);
    changes_sort(&m->changes, m->result);
}

/* ---- where periods were left out ---- */

/* Behind changes [window, cut) the same come so many times more. */
struct jump {
    size_t window, cut;
    uint32_t times;
    uint32_t ops_on; /* so far on in the whole list lies what comes behind all of them */
    enum depth_level level;
};

/* Does the same come and go with every op of the whole list as with that of the period before? */
static bool same_signs(const struct maker *m, const struct periods_gap *gap, uint32_t first)
{
    const uint64_t *sign = m->sign + gap->whole_begin + (size_t)first * gap->whole_ops;
    size_t ops = (size_t)(gap->before + gap->left_out - first) * gap->whole_ops;
    return memcmp(sign, sign + gap->whole_ops, ops * sizeof *sign) == 0;
}

/* The first change of the date at which the first of the ops behind `op` is heard of. */
static size_t first_behind(const struct changes *c, uint32_t op)
{
    size_t at = 0;
    while (at < c->count && (c->row[at].op == IR_NONE || c->row[at].op < op))
        at++;
    while (at > 0 && at < c->count && c->row[at - 1].time_s == c->row[at].time_s)
        at--;
    return at;
}

/* The first change at a date or behind it, none of those from `end` on. */
static size_t before_date(const struct changes *c, size_t end, double date_s)
{
    while (end > 0 && c->row[end - 1].time_s >= date_s)
        end--;
    return end;
}

/* Changes among which are all that come or go with ops [begin, end), and the window. */
static void bracket(const struct maker *m, const struct jump *jump, uint32_t begin, uint32_t end,
                    size_t *first, size_t *behind)
{
    const struct changes *c = &m->changes;
    double from_s = INFINITY, to_s = 0, near_s = 2 * m->same_s;
    for (uint32_t op = begin; op < end; op++) {
        from_s = m->start_s[op] < from_s ? m->start_s[op] : from_s;
        to_s = m->end_s[op] > to_s ? m->end_s[op] : to_s;
    }
    *first = before_date(c, jump->window, from_s - near_s);
    *behind = jump->cut;
    while (*behind < c->count && c->row[*behind].time_s <= to_s + near_s)
        ++*behind;
}

/* Are the changes of the window, in some order, those of the period behind the gap? */
static bool is_one_period(const struct maker *m, const struct jump *jump, uint32_t begin,
                          uint32_t end)
{
    const struct changes *c = &m->changes;
    int64_t bytes[MEMORY_COUNT][CATEGORY_COUNT] = {{0}}, count = 0;
    size_t first, behind;
    bracket(m, jump, begin, end, &first, &behind);
    for (size_t i = first; i < behind; i++) {
        const struct change *row = &c->row[i];
        int inside = i >= jump->window && i < jump->cut;
        int own = row->op != IR_NONE && row->op >= begin && row->op < end;
        bytes[row->memory][row->category] += (inside - own) * row->bytes;
        count += inside - own;
    }
    for (int memory = 0; memory < MEMORY_COUNT; memory++)
        for (int k = 0; k < CATEGORY_COUNT; k++)
            if (bytes[memory][k] != 0)
                return false;
    return count == 0;
}

/* All that comes and goes in the time of one period before the first that is not of the run does so
 * once more in each that was left out. */
static bool jump_of(struct jump *jump, const struct maker *m, const struct periods_gap *gap)
{
    uint32_t first, begin = gap->begin + gap->before * gap->ops, end = begin + gap->ops;
    const struct changes *c = &m->changes;
    double period_s, near_s = 2 * m->same_s;
    *jump = (struct jump){
        .times = gap->left_out, .ops_on = gap->left_out * gap->whole_ops, .level = gap->level};
    if (!periods_steady(gap, m->start_s, m->end_s, m->same_s, &first, &period_s) ||
        !same_signs(m, gap, first))
        return false;
    jump->cut = first_behind(c, end);
    if (jump->cut < c->count) {
        jump->window = before_date(c, jump->cut, c->row[jump->cut].time_s - period_s - near_s);
    } else { /* nothing comes or goes behind the run */
        jump->window = first_behind(c, begin);
        if (jump->window == c->count)
            return true;
        jump->cut = before_date(c, jump->cut, c->row[jump->window].time_s + period_s - near_s);
    }
    for (size_t i = jump->window; i < c->count; i++)
        if (c->row[i].op == IR_NONE || c->row[i].op < gap->begin + first * gap->ops)
            return false;
    return is_one_period(m, jump, begin, end);
}

/* A jump's window holds others whole, which are of the level within, or none. */
static bool are_nested(const struct jump *jump, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = 0; i < k; i++) {
            if (jump[i].cut > jump[k].cut)
                return false;
            if (jump[i].cut > jump[k].window &&
                (jump[i].window < jump[k].window || jump[i].level <= jump[k].level))
                return false;
        }
    return true;
}

static bool find_jumps(struct maker *m)
{
    const struct periods *p = m->from->periods;
    m->jump_count = 0;
    for (uint32_t g = 0; g < p->gap_count; g++)
        if (!jump_of(&m->jump[m->jump_count++], m, &p->gap[g]))
            return false;
    return are_nested(m->jump, m->jump_count);
}

/* ---- peaks ---- */

/* A memory at its fullest, behind a change, whose op lies so far on in the whole list: as far as the
 * periods that were left out and are over by then. In front of them, the period behind the gap stands for
 * the first that was left out. */
struct fullest {
    uint64_t bytes, category_bytes[CATEGORY_COUNT];
    size_t at;
    uint32_t ops_on;
};

struct levels {
    uint64_t bytes[MEMORY_COUNT], category[MEMORY_COUNT][CATEGORY_COUNT];
};

struct walk {
    const struct maker *m;
    struct levels now;
    struct fullest *fullest; /* [MEMORY_COUNT] */
};

static void add_levels(struct levels *to, const struct levels *more, uint64_t times)
{
    for (int m = 0; m < MEMORY_COUNT; m++) {
        to->bytes[m] += times * more->bytes[m];
        for (int k = 0; k < CATEGORY_COUNT; k++)
            to->category[m][k] += times * more->category[m][k];
    }
}

/* The first of the jumps before `jump` that its window holds. */
static uint32_t first_within(const struct maker *m, uint32_t jump)
{
    uint32_t first = jump;
    while (first > 0 && m->jump[first - 1].cut > m->jump[jump].window)
        first--;
    return first;
}

/* What comes and goes in a window, all that was left out in it included. */
static struct levels sum_of(const struct maker *m, uint32_t jump)
{
    struct levels sum = {.bytes = {0}};
    for (size_t i = m->jump[jump].window; i < m->jump[jump].cut; i++) {
        const struct change *change = &m->changes.row[i];
        sum.bytes[change->memory] += (uint64_t)change->bytes;
        sum.category[change->memory][change->category] += (uint64_t)change->bytes;
    }
    for (uint32_t k = first_within(m, jump); k < jump; k++) {
        struct levels within = sum_of(m, k);
        add_levels(&sum, &within, m->jump[k].times);
    }
    return sum;
}

static void walk_to(struct walk *w, size_t begin, size_t end, uint32_t ops_on)
{
    for (size_t i = begin; i < end; i++) {
        const struct change *change = &w->m->changes.row[i];
        uint8_t m = change->memory;
        w->now.bytes[m] += (uint64_t)change->bytes;
        w->now.category[m][change->category] += (uint64_t)change->bytes;
        if (w->now.bytes[m] <= w->fullest[m].bytes || change->bytes <= 0)
            continue;
        w->fullest[m] = (struct fullest){.bytes = w->now.bytes[m], .at = i, .ops_on = ops_on};
        memcpy(w->fullest[m].category_bytes, w->now.category[m], sizeof w->now.category[m]);
    }
}

/* Of the times that a window comes again only the last is looked at: live bytes rise from each to the
 * next by the same, and then it is the fullest, or they do not, and none is fuller than the first. */
static void walk(struct walk *w, size_t begin, size_t end, uint32_t jump, uint32_t jumps,
                 uint32_t ops_on)
{
    for (; jump < jumps; jump++) {
        const struct jump *j = &w->m->jump[jump];
        struct levels sum = sum_of(w->m, jump);
        uint32_t within = first_within(w->m, jump), again = ops_on + j->ops_on;
        walk_to(w, begin, j->cut, ops_on);
        add_levels(&w->now, &sum, j->times - 1u);
        for (uint32_t k = within; k < jump; k++)
            again -= w->m->jump[k].ops_on;
        walk(w, j->window, j->cut, within, jump, again);
        begin = j->cut;
        ops_on += j->ops_on;
    }
    walk_to(w, begin, end, ops_on);
}

/* ---- the largest buffers ---- */

/* When the change that gave its date to a peak's came. */
static double date_of(const struct maker *m, const struct fullest *f)
{
    const struct change *change = &m->changes.row[f->at];
    if (change->dated_by == IR_NONE)
        return 0;
    uint32_t op = change->dated_by + f->ops_on;
    return change->dated_by_end ? m->whole_end_s[op] : m->whole_start_s[op];
}

/* Is a buffer there behind the change that makes the peak? At one date those that go have gone, and
 * others come in the order of ops and, of one op, of buffers. */
static bool is_live(const struct maker *m, const struct sim_peak *peak, uint32_t peak_buffer,
                    uint32_t buffer)
{
    uint32_t birth = m->writers.first[buffer], death;
    double until_s = peak->time_s + m->same_s; /* one date with the peak */
    if (birth == IR_NONE)
        return lifetimes_held(m->ir, buffer) && (peak->op != IR_NONE || buffer <= peak_buffer);
    if (peak->op == IR_NONE || m->whole_start_s[birth] > until_s)
        return false;
    if (m->whole_start_s[birth] >= peak->time_s &&
        (birth > peak->op || (birth == peak->op && buffer > peak_buffer)))
        return false;
    double death_s = changes_free_date_s(m->ir, m->whole_end_s, buffer, m->same_s, &death);
    return death == IR_NONE || (death_s > until_s && death_s > m->whole_start_s[birth] + m->same_s);
}

static inline bool is_large(const struct sim_peak *peak, uint64_t bytes)
{
    return peak->top_count < SIM_TOP_BUFFERS || bytes > peak->top[SIM_TOP_BUFFERS - 1].bytes;
}

/* What is too small in the first of the periods is too small in all. */
static void find_tops(const struct maker *m, const uint32_t peak_buffer[MEMORY_COUNT],
                      struct sim_peak peaks[MEMORY_COUNT])
{
    const struct buffer_table *t = &m->ir->buffer;
    for (struct blocks b = blocks_begin(m->ir); blocks_next(&b);) {
        uint32_t large = 0;
        for (uint32_t i = b.buffer; i < b.buffer + b.buffers; i++) {
            const struct sim_peak *peak = &peaks[t->memory[i]];
            if (peak->bytes > 0 && is_large(peak, bytes_of(m, i)))
                m->block_large[large++] = i;
        }
        for (uint32_t p = 0; p < b.times; p++)
            for (uint32_t i = 0; i < large; i++) {
                uint32_t buffer = m->block_large[i] + p * b.buffers, memory = t->memory[buffer];
                uint64_t bytes = bytes_of(m, buffer);
                if (is_large(&peaks[memory], bytes) &&
                    is_live(m, &peaks[memory], peak_buffer[memory], buffer))
                    memory_keep_top(&peaks[memory], (struct sim_live){buffer, bytes});
            }
    }
}

/* The buffer that comes with a peak: that of its change, or the one that is in its place so many ops on.
 * False: nobody can tell. */
static bool buffer_of(const struct maker *m, const struct change *change, uint32_t op,
                      uint32_t *buffer)
{
    const struct ir *ir = m->ir;
    *buffer = change->row;
    if (op == IR_NONE || m->writers.first[*buffer] == op)
        return true;
    for (uint32_t from = m->writers.first[*buffer], k = ir->op.reads[op];
         k < (uint32_t)ir->op.reads[op] + ir->op.writes[op]; k++)
        if (ir_touched(ir, from, k) == change->row) {
            *buffer = ir_touched(ir, op, k);
            return m->writers.first[*buffer] == op;
        }
    return false;
}

static bool fill_peaks(const struct maker *m, struct sim_peak peak[MEMORY_COUNT])
{
    struct fullest fullest[MEMORY_COUNT] = {{.bytes = 0}};
    struct walk w = {.m = m, .fullest = fullest};
    uint32_t buffer[MEMORY_COUNT] = {0};
    walk(&w, 0, m->changes.count, 0, m->jump_count, 0);
    for (int k = 0; k < MEMORY_COUNT; k++) {
        const struct fullest *f = &fullest[k];
        const struct change *change = &m->changes.row[f->at];
        peak[k] = (struct sim_peak){.op = IR_NONE};
        if (f->bytes == 0)
            continue;
        peak[k].bytes = f->bytes;
        peak[k].time_s = date_of(m, f);
        if (change->op != IR_NONE)
            peak[k].op = change->op + f->ops_on;
        memcpy(peak[k].category_bytes, f->category_bytes, sizeof f->category_bytes);
        if (!buffer_of(m, change, peak[k].op, &buffer[k]))
            return false;
    }
    find_tops(m, buffer, peak);
    return true;
}

/* ---- all classes ---- */

static void size_up(struct maker *m)
{
    m->elements = heap_alloc(m->ir->dims_count + 1u, sizeof *m->elements);
    for (uint32_t d = 0; d < m->ir->dims_count; d++)
        (void)dims_elements(&m->ir->dims[d], &m->elements[d]);
    for (int d = 0; d < DTYPE_COUNT; d++)
        m->dtype_bytes[d] = dtype_bytes((enum dtype)d);
}

static bool *find_kept(const struct periods *p, uint32_t ops)
{
    bool *is_kept = heap_zalloc(ops + 1u, sizeof *is_kept);
    for (uint32_t i = 0; i < p->part_count; i++)
        memset(is_kept + p->part[i].op, true, p->part[i].ops);
    return is_kept;
}

/* Ranks of one class alone on each node hold together what one does, so many times. False: there are nodes
 * of several classes that hold something. */
static bool fill_hosts(const struct cluster *cluster, struct sim_result *result)
{
    struct sim_node_peak host[MEMORY_COUNT] = {{0}};
    uint32_t per_node = (uint32_t)cluster->gpus_per_node;
    for (uint32_t first = 0; first < result->rank_count; first += per_node) {
        uint32_t end = first + per_node, class = result->class_of_rank[first];
        end = end < result->rank_count ? end : result->rank_count;
        for (uint32_t m = 0; m < MEMORY_COUNT; m++) {
            const struct sim_peak *peak = &result->peak[class][m];
            if (m == MEMORY_HBM)
                continue;
            for (uint32_t rank = first; rank < end; rank++)
                if (result->class_of_rank[rank] != class &&
                    (peak->bytes > 0 || result->peak[result->class_of_rank[rank]][m].bytes > 0))
                    return false;
            if ((end - first) * peak->bytes > host[m].bytes)
                host[m] = (struct sim_node_peak){(end - first) * peak->bytes, peak->time_s,
                                                 first / per_node};
        }
    }
    memcpy(result->host, host, sizeof host);
    return true;
}

bool memory_peaks_of_periods(const struct ir *ir, const struct cluster *cluster,
                             const struct memory_periods *from, struct sim_result *result)
{
    const struct periods *periods = from->periods;
    uint32_t block = blocks_largest(ir);
    bool *is_kept = find_kept(periods, ir->op.count), holds = true;
    struct maker m = {
        .ir = ir,
        .from = from,
        .result = result,
        .same_s = changes_same_date_s(result),
        .is_kept = is_kept,
        .part = periods->part,
        .sign = heap_alloc(ir->op.count + 1u, sizeof *m.sign),
        .block_sign = heap_alloc(block + 1u, sizeof *m.block_sign),
        .block_large = heap_alloc(block + 1u, sizeof *m.block_large),
        .stay = heap_alloc(ir->buffer.count + 1u, sizeof *m.stay),
        .jump = heap_alloc(periods->gap_count + 1u, sizeof *m.jump),
    };
    size_t row = 0;
    size_up(&m);
    writers_init(&m.writers, ir);
    for (uint32_t c = 0; holds && c < result->class_count; c++) {
        m.class = &result->classes[c];
        for (int k = 0; k < MEMORY_COUNT; k++)
            result->peak[c][k] = (struct sim_peak){.op = IR_NONE};
        if (m.class->role == IR_NONE)
            continue;
        m.start_s = from->start_s + row;
        m.end_s = from->end_s + row;
        m.whole_start_s = result->start_s + m.class->row;
        m.whole_end_s = result->end_s + m.class->row;
        row += periods->ops;
        find_stays(&m);
        make_changes(&m);
        result->counts.changes += m.changes.count;
        holds = find_jumps(&m) && fill_peaks(&m, result->peak[c]);
    }
    if (holds && !fill_hosts(cluster, result))
        memory_hosts(ir, cluster, result);
    writers_release(&m.writers);
    free(is_kept);
    free(m.elements);
    free(m.sign);
    free(m.block_sign);
    free(m.block_large);
    free(m.stay);
    free(m.jump);
    free(m.changes.row);
    return holds;
}
