/* The statement of an op. */
#include "models/work_operands.h"
#include "schedule/ir/ir_index.h"
#include "schedule/ir/ir_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* the most reads, or writes, that any kind has */
enum { OPERANDS_MAX = WORK_OPERANDS_MAX };

/* The keys of an op's labels; other keys are parameters of its kind. */
enum { PHASE, REGION, LAYER, CHUNK, STEP, MICRO, TAGS };
static const char *const tag_names[TAGS] = {"phase", "region", "layer", "chunk", "step", "micro"};

const char *const clause_names[CLAUSE_COUNT] = {"reads", "writes", "waits", "guard"};

/* An op line as it is read. */
struct op_line {
    struct op_desc desc;
    const struct work_kind_info *info;
    uint32_t id;
    const char *start;       /* start of the op's id */
    uint32_t given_key_mask; /* bit mask of the parameters, then of the labels, that were given */
    uint32_t given_clause_mask; /* bit mask of the clauses that were given */
    struct view read[OPERANDS_MAX], write[OPERANDS_MAX];
};

static bool parse_kind(struct parser *p, struct op_line *line)
{
    struct word word;
    if (!parse_required_word(p, &word, "a kind of work"))
        return false;
    enum work_kind kind;
    if (work_kind_find(word.at, word.size, &kind)) {
        line->info = work_kind_info(kind);
        line->desc.work.kind = (uint8_t)kind;
        return true;
    }
    const char *names[WORK_KIND_COUNT];
    for (int i = 0; i < WORK_KIND_COUNT; i++)
        names[i] = work_kind_info((enum work_kind)i)->name;
    return parse_report_unknown_word(p, word, "kind of work", names, WORK_KIND_COUNT);
}

static bool parse_op_stream(struct parser *p, struct op_line *line)
{
    struct word word;
    uint16_t found;
    if (!parse_required_word(p, &word, "a stream") ||
        !parse_row_name(p, IR_STREAM, word, "stream", &found))
        return false;
    enum stream_class class = (enum stream_class)p->ir->stream[found].stream_class;
    if (!work_may_run_on((enum work_kind)line->desc.work.kind, class))
        return parse_error(p, word.at, "%s runs on streams of class %s, and '%s' is of class %s",
                           line->info->name,
                           stream_class_name((enum stream_class)line->info->stream),
                           p->ir->stream[found].name, stream_class_name(class));
    line->desc.stream = (uint8_t)found;
    return true;
}

static bool parse_param(struct parser *p, struct op_line *line, uint32_t i, struct word value)
{
    const struct work_param *param = &line->info->param[i];
    int64_t *target = &line->desc.work.p[i];
    if (param->is_value_group_id) {
        uint16_t group;
        if (!parse_row_name(p, IR_GROUP, value, "group", &group))
            return false;
        *target = group + param->optional;
        return true;
    }
    if (!param->value_names)
        return parse_number(p, value, param->name,
                            param->is_signed  ? INT64_MIN
                            : param->optional ? 0
                                              : 1,
                            INT64_MAX, target);
    uint8_t choice = 0;
    if (!parse_name_in_table(p, value, param->name, param->value_names, param->value_count,
                             &choice))
        return false;
    *target = choice;
    return true;
}

static bool parse_label(struct parser *p, struct op_line *line, int tag, struct word value)
{
    struct op_tags *tags = &line->desc.tags;
    uint16_t *label[TAGS] = {[LAYER] = &tags->layer,
                             [CHUNK] = &tags->chunk,
                             [STEP] = &tags->step,
                             [MICRO] = &tags->micro_batch};
    if (tag == PHASE)
        return parse_name_in_table(p, value, "phase", phase_names, PHASE_COUNT, &tags->phase);
    if (tag == REGION)
        return parse_name_in_table(p, value, "region", region_names, REGION_COUNT, &tags->region);
    int64_t number;
    if (!parse_number(p, value, tag_names[tag], 0, IR_NONE16 - 1, &number))
        return false;
    *label[tag] = (uint16_t)number;
    return true;
}

/* Parses KEY=VALUE, where KEY is a parameter of the kind or a label. */
static bool parse_param_or_label(struct parser *p, struct op_line *line, struct word key,
                                 struct word value)
{
    const uint32_t params = line->info->param_count;
    uint32_t i = 0;
    while (i < params && !word_is(key, line->info->param[i].name))
        i++;
    while (i >= params && i < params + TAGS && !word_is(key, tag_names[i - params]))
        i++;
    if (i < params + TAGS) {
        if (line->given_key_mask >> i & 1)
            return parse_error(p, key.at, "'%.*s' is given twice", (int)key.size, key.at);
        line->given_key_mask |= 1u << i;
        return i < params ? parse_param(p, line, i, value)
                          : parse_label(p, line, (int)(i - params), value);
    }
    const char *names[WORK_PARAMS_MAX + TAGS];
    char what[64];
    for (i = 0; i < params; i++)
        names[i] = line->info->param[i].name;
    memcpy(names + params, tag_names, sizeof tag_names);
    snprintf(what, sizeof what, "parameter of %s", line->info->name);
    return parse_report_unknown_word(p, key, what, names, params + TAGS);
}

/* Parses a guard such as "cp>=3". */
static bool parse_guard(struct parser *p, struct op_line *line)
{
    struct word word;
    if (!parse_required_word(p, &word, "a guard such as cp>=3"))
        return false;
    size_t name_size = 0, sign_size = 0;
    while (name_size < word.size && !memchr("<>=!", word.at[name_size], 4))
        name_size++;
    struct word rest = {word.at + name_size, word.size - name_size};
    struct guard guard = {0};
    for (; guard.comparison_kind < GUARD_COMPARISON_COUNT; guard.comparison_kind++) {
        sign_size = strlen(guard_signs[guard.comparison_kind]);
        if (rest.size >= sign_size &&
            memcmp(rest.at, guard_signs[guard.comparison_kind], sign_size) == 0)
            break;
    }
    if (guard.comparison_kind == GUARD_COMPARISON_COUNT)
        return parse_error(p, rest.at, "a guard is GROUP<N, GROUP>=N or GROUP==N");
    struct word number = {rest.at + sign_size, rest.size - sign_size};
    int64_t value;
    if (!parse_row_name(p, IR_GROUP, (struct word){word.at, name_size}, "group", &guard.group) ||
        !parse_number(p, number, "guard", 0, UINT32_MAX, &value))
        return false;
    guard.value = (uint32_t)value;
    if (p->ir->guard_count == IR_NONE16 - 1)
        return parse_error(p, word.at, "more than %d different guards", IR_NONE16 - 1);
    line->desc.guard = ir_add_guard(p->ir, guard);
    return true;
}

static bool parse_waits(struct parser *p, struct op_line *line)
{
    struct word word;
    if (!parse_required_word(p, &word, "op ids such as 12,14") || !parse_op_list(p, word, "waits"))
        return false;
    if ((uint64_t)p->ir->wait_count + p->list_count >= IR_NONE)
        return parse_error(p, word.at, "more than %" PRIu32 " waits", IR_NONE - 1);
    line->desc.wait_count = (uint16_t)p->list_count;
    return true;
}

static bool refuse_unknown_buffer(struct parser *p, struct word name)
{
    enum { LOOKED_AT = 10000 };
    const struct ir *ir = p->ir;
    uint32_t first = ir->buffer.count > LOOKED_AT ? ir->buffer.count - LOOKED_AT : 0;
    uint32_t count = ir->buffer.count - first;
    const char **names = arena_array(&p->scratch, count, sizeof *names);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = ir_buffer_name(ir, (buffer_id){first + i}, NULL, 0);
        char *text = arena_alloc(&p->scratch, size + 1);
        ir_buffer_name(ir, (buffer_id){first + i}, text, size + 1);
        names[i] = text;
    }
    return parse_report_unknown_word(p, name, "buffer", names, count);
}

/* Parses a buffer or a range of its elements, "kv1" or "kv1[0:4096]"; either end of the range may be left out. */
static bool parse_view(struct parser *p, struct word word, struct view *view)
{
    struct word name = word, range = word_split_at(&name, '[');
    buffer_id buffer = ir_find_buffer(p->ir, name.at, name.size);
    if (buffer.i == IR_NONE)
        return refuse_unknown_buffer(p, name);
    if (p->ir->buffer.role[buffer.i] != p->ir->index->role_that_gets_new_ops)
        return parse_error(p, name.at, "buffer '%.*s' is of role '%s', this op of role '%s'",
                           (int)name.size, name.at, p->ir->role[p->ir->buffer.role[buffer.i]].name,
                           p->ir->role[p->ir->index->role_that_gets_new_ops].name);
    *view = ir_whole_view(p->ir, buffer);
    if (!range.at)
        return true;
    struct word end = range.size > 0 && range.at[range.size - 1] == ']'
                          ? (struct word){range.at, range.size - 1}
                          : (struct word){0};
    struct word begin = end;
    if (end.at)
        end = word_split_at(&begin, ':');
    if (!end.at)
        return parse_error(p, range.at - 1, "expected a range such as [0:4096]");
    int64_t elements = (int64_t)view->count, from = 0, to = elements;
    if (begin.size > 0 && !parse_number(p, begin, "begin of a range", 0, elements - 1, &from))
        return false;
    if (end.size > 0 && !parse_number(p, end, "end of a range", from + 1, elements, &to))
        return false;
    view->begin = (uint64_t)from;
    view->count = (uint64_t)(to - from);
    return true;
}

/* Parses operands up to the next clause, the next KEY=VALUE or the end of the line. There must be at least one. */
static bool parse_operands(struct parser *p, struct op_line *line, bool write)
{
    struct view *view = write ? line->write : line->read;
    uint8_t *count = write ? &line->desc.write_count : &line->desc.read_count;
    uint8_t most = write ? line->info->writes_max : line->info->reads_max;
    for (;;) {
        struct cursor before = p->cursor;
        struct word word = parse_next_word(p);
        bool end = word.size == 0 || memchr(word.at, '=', word.size);
        for (size_t i = 0; i < CLAUSE_COUNT && !end; i++)
            end = word_is(word, clause_names[i]);
        if (end && *count == 0)
            return parse_error(p, word.at, "expected a buffer that the op %s",
                               write ? "writes" : "reads");
        if (end) {
            p->cursor = before;
            return true;
        }
        if (*count == most)
            return parse_error(p, word.at, "%s %s at most %d operands", line->info->name,
                               write ? "writes" : "reads", most);
        if (!parse_view(p, word, &view[(*count)++]))
            return false;
    }
}

/* Parses one clause of an op line after the stream. word: its first word, which has been read. */
static bool parse_clause(struct parser *p, struct op_line *line, struct word word)
{
    struct word key = word, value = word_split_at(&key, '=');
    if (value.at)
        return parse_param_or_label(p, line, key, value);
    uint8_t clause;
    if (!parse_name_in_table(p, word, "clause of an op", clause_names, CLAUSE_COUNT, &clause))
        return false;
    if (line->given_clause_mask >> clause & 1)
        return parse_error(p, word.at, "'%s' is given twice", clause_names[clause]);
    line->given_clause_mask |= 1u << clause;
    switch ((enum clause)clause) {
    case CLAUSE_READS:
        return parse_operands(p, line, false);
    case CLAUSE_WRITES:
        return parse_operands(p, line, true);
    case CLAUSE_WAITS:
        return parse_waits(p, line);
    default:
        return parse_guard(p, line);
    }
}

/* Checks that a line has all parameters and operands that its kind needs, and that the tables have room for them. */
static bool check_op_line(struct parser *p, const struct op_line *line)
{
    const struct work_kind_info *info = line->info;
    for (uint32_t i = 0; i < info->param_count; i++)
        if (!info->param[i].optional && !(line->given_key_mask >> i & 1))
            return parse_error(p, p->cursor.at, "op %" PRIu32 ": %s needs %s=", line->id,
                               info->name, info->param[i].name);
    bool few_reads = line->desc.read_count < info->reads_min;
    if (few_reads || line->desc.write_count < info->writes_min)
        return parse_error(p, p->cursor.at, "op %" PRIu32 ": %s %s at least %d operands, not %d",
                           line->id, info->name, few_reads ? "reads" : "writes",
                           few_reads ? info->reads_min : info->writes_min,
                           few_reads ? line->desc.read_count : line->desc.write_count);
    if ((uint64_t)p->ir->operand_count + 2 * OPERANDS_MAX >= IR_NONE ||
        p->ir->range_count >= IR_OPERAND_IS_RANGE_ROW - 2 * OPERANDS_MAX)
        return parse_error(p, line->start, "more operands than 32 bits can count");
    return true;
}

bool parse_op(struct parser *p)
{
    struct op_line line = {.desc = {.guard = IR_NONE16,
                                    .tags = {.layer = IR_NONE16,
                                             .chunk = IR_NONE16,
                                             .step = IR_NONE16,
                                             .micro_batch = IR_NONE16}}};
    struct ir *ir = p->ir;
    struct word word;
    int64_t id;
    if (!parse_required_word(p, &word, "the id of the op"))
        return false;
    line.start = word.at;
    if (ir->role_count > 0 && !p->has_ops_line && ir->op.count == 0)
        return parse_error(p, word.at, "where there are roles, an 'ops ROLE' line must come first");
    if (!parse_number(p, word, "the id of the op", 0, (int64_t)IR_NONE - 1, &id))
        return false;
    if (id != ir->op.count || ir->op.count == IR_NONE - 1)
        return parse_error(p, word.at,
                           "op %" PRId64 ": ops are numbered from 0 without gaps; "
                           "the next one is %" PRIu32,
                           id, ir->op.count);
    line.id = (uint32_t)id;
    if (ir->role_count == 0) {
        ir_add_role(ir, "all", NULL, 0);
        p->has_ops_line = true;
    }
    if (!parse_kind(p, &line) || !parse_op_stream(p, &line))
        return false;
    while ((word = parse_next_word(p)).size > 0)
        if (!parse_clause(p, &line, word))
            return false;
    if (!check_op_line(p, &line))
        return false;
    line.desc.read = line.read;
    line.desc.write = line.write;
    line.desc.wait = p->op_list;
    ir_add_op(ir, &line.desc);
    return true;
}
