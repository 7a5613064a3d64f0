#include "traces/pickle.h"

#include <stdlib.h>
#include <string.h>

/* The opcodes of Python's Lib/pickle.py that plain data needs. */
enum opcode {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINFLOAT = 'G',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_EMPTY_LIST = ']',
    OP_APPEND = 'a',
    OP_APPENDS = 'e',
    OP_LIST = 'l',
    OP_EMPTY_TUPLE = ')',
    OP_TUPLE = 't',
    OP_EMPTY_DICT = '}',
    OP_DICT = 'd',
    OP_SETITEM = 's',
    OP_SETITEMS = 'u',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2,
    OP_TUPLE3,
    OP_NEWTRUE,
    OP_NEWFALSE,
    OP_LONG1,
    OP_LONG4,
    OP_SHORT_BINUNICODE,
    OP_BINUNICODE8,
    OP_BINBYTES8,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

struct reader {
    struct arena *arena;
    const char *name;
    const unsigned char *start, *position, *end;
    struct pickle_value **stack; /* an entry that is NULL is a mark */
    size_t depth, capacity;
    struct pickle_value **memo;
    size_t memo_count, memo_capacity;
    struct diag *diag;
};

static enum status report_fault(const struct reader *r, const char *what)
{
    return diag_error(r->diag, (struct loc){.name = r->name}, STATUS_BAD_INPUT,
                      "byte %zu of the pickle: %s", (size_t)(r->position - r->start), what);
}

static enum status report_cut_off(const struct reader *r)
{
    return report_fault(r, "the data ends in the middle of a value");
}

/* Reads `size` little-endian bytes, at most 8. */
static bool read_number(struct reader *r, size_t size, uint64_t *value)
{
    if ((size_t)(r->end - r->position) < size)
        return false;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)r->position[i] << (8 * i);
    r->position += size;
    return true;
}

static void push(struct reader *r, struct pickle_value *value)
{
    if (r->depth == r->capacity) {
        r->capacity = heap_next_capacity(r->capacity, r->depth + 1);
        r->stack = heap_realloc((void *)r->stack, r->capacity, sizeof(struct pickle_value *));
    }
    r->stack[r->depth++] = value;
}

static struct pickle_value *push_new_value(struct reader *r, enum pickle_kind kind)
{
    struct pickle_value *value = arena_alloc(r->arena, sizeof *value);
    value->kind = kind;
    push(r, value);
    return value;
}

static void push_int(struct reader *r, int64_t number)
{
    push_new_value(r, PICKLE_INT)->int_value = number;
}

static enum status push_text(struct reader *r, size_t size_bytes)
{
    uint64_t size;
    if (!read_number(r, size_bytes, &size) || size > (uint64_t)(r->end - r->position))
        return report_cut_off(r);
    struct pickle_value *value = push_new_value(r, PICKLE_TEXT);
    value->text = arena_text(r->arena, (const char *)r->position, (size_t)size);
    value->byte_or_item_count = (size_t)size;
    r->position += size;
    return STATUS_OK;
}

static enum status push_float(struct reader *r)
{
    uint64_t bits = 0;
    if (r->end - r->position < 8)
        return report_cut_off(r);
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | r->position[i];
    r->position += 8;
    memcpy(&push_new_value(r, PICKLE_FLOAT)->float_value, &bits, sizeof bits);
    return STATUS_OK;
}

/* Reads and pushes a whole number of any length: the number of its bytes, which itself has size_bytes bytes, and then
 * the bytes of the number, little-endian, in two's complement. A number that does not fit 64 bits becomes the nearest
 * one that does. */
static enum status push_long(struct reader *r, size_t size_bytes)
{
    uint64_t size, value = 0;
    if (!read_number(r, size_bytes, &size) || size > (uint64_t)(r->end - r->position))
        return report_cut_off(r);
    const unsigned char *at = r->position;
    r->position += size;
    if (size == 0) {
        push_int(r, 0);
        return STATUS_OK;
    }
    bool negative = (at[size - 1] & 0x80) != 0;
    bool large = size > 8 && !(size == 9 && at[8] == 0 && (at[7] & 0x80) == 0);
    for (size_t i = 0; i < 8; i++)
        value |= (uint64_t)(i < size ? at[i] : negative ? 0xff : 0) << (8 * i);
    if (large)
        push_int(r, negative ? INT64_MIN : INT64_MAX);
    else
        push_int(r, (int64_t)value);
    return STATUS_OK;
}

/* ---- collections ---- */

static void add_item(struct reader *r, struct pickle_value *to, struct pickle_value *key,
                     struct pickle_value *value)
{
    struct pickle_item *item = arena_alloc(r->arena, sizeof *item);
    *item = (struct pickle_item){.key = key, .value = value};
    if (to->last_item == NULL)
        to->first_item = item;
    else
        to->last_item->next = item;
    to->last_item = item;
    to->byte_or_item_count++;
}

/* Adds the values on the stack, from index `from` on, to a collection. They stay on the stack: the caller removes
 * them. */
static void copy_stack_items_to_collection(struct reader *r, struct pickle_value *to, size_t from)
{
    bool dict = to->kind == PICKLE_DICT;
    for (size_t i = from; i < r->depth; i += dict ? 2 : 1)
        add_item(r, to, dict ? r->stack[i] : NULL, dict ? r->stack[i + 1] : r->stack[i]);
}

/* Sets *from to the index of the first value after the last mark on the stack; returns false if there is no mark. */
static bool find_mark(const struct reader *r, size_t *from)
{
    for (*from = r->depth; *from > 0; --*from)
        if (r->stack[*from - 1] == NULL)
            return true;
    return false;
}

/* Moves values from the top of the stack into the collection below them: with `marked`, all values after the last mark;
 * else the last value or, for a dictionary, the last key and value. */
static enum status append_to_collection(struct reader *r, enum pickle_kind kind, bool marked)
{
    size_t from, below, each = kind == PICKLE_DICT ? 2 : 1;
    if (marked && !find_mark(r, &from))
        return report_fault(r, "items without a mark");
    if (!marked && r->depth < each)
        return report_fault(r, "an item of nothing");
    from = marked ? from : r->depth - each;
    below = from - (marked ? 1 : 0);
    if (below == 0 || r->stack[below - 1] == NULL || r->stack[below - 1]->kind != kind ||
        (r->depth - from) % each != 0)
        return report_fault(r, "items of what is no list or dictionary");
    for (size_t i = from; i < r->depth; i++)
        if (r->stack[i] == NULL)
            return report_fault(r, "a mark among items");
    copy_stack_items_to_collection(r, r->stack[below - 1], from);
    r->depth = below;
    return STATUS_OK;
}

/* Replaces the last mark on the stack and all values after it by a new collection of these values. */
static enum status collect_since_mark(struct reader *r, enum pickle_kind kind)
{
    size_t from;
    if (!find_mark(r, &from) || (kind == PICKLE_DICT && (r->depth - from) % 2 != 0))
        return report_fault(r, "a collection without a mark");
    struct pickle_value *value = arena_alloc(r->arena, sizeof *value);
    value->kind = kind;
    copy_stack_items_to_collection(r, value, from);
    r->depth = from - 1;
    push(r, value);
    return STATUS_OK;
}

static enum status collect_last_values(struct reader *r, size_t count)
{
    if (r->depth < count)
        return report_fault(r, "a tuple of more than there is");
    for (size_t i = r->depth - count; i < r->depth; i++)
        if (r->stack[i] == NULL)
            return report_fault(r, "a mark in a tuple");
    struct pickle_value *value = arena_alloc(r->arena, sizeof *value);
    value->kind = PICKLE_LIST;
    copy_stack_items_to_collection(r, value, r->depth - count);
    r->depth -= count;
    push(r, value);
    return STATUS_OK;
}

/* ---- values that the pickle uses more than once ---- */

static enum status store_top_value_in_memo(struct reader *r, uint64_t slot)
{
    if (r->depth == 0 || r->stack[r->depth - 1] == NULL)
        return report_fault(r, "nothing to remember");
    /* A pickle has no more values than bytes, so a higher slot is invalid. */
    if (slot > (uint64_t)(r->end - r->start))
        return report_fault(r, "a number of a value that is too large");
    if (slot >= r->memo_capacity) {
        size_t capacity = heap_next_capacity(r->memo_capacity, (size_t)slot + 1);
        r->memo = heap_realloc((void *)r->memo, capacity, sizeof(struct pickle_value *));
        memset((void *)(r->memo + r->memo_capacity), 0,
               (capacity - r->memo_capacity) * sizeof(struct pickle_value *));
        r->memo_capacity = capacity;
    }
    r->memo[slot] = r->stack[r->depth - 1];
    return STATUS_OK;
}

static enum status push_memo(struct reader *r, uint64_t slot)
{
    if (slot >= r->memo_capacity || r->memo[slot] == NULL)
        return report_fault(r, "a value that was not met before");
    push(r, r->memo[slot]);
    return STATUS_OK;
}

/* ---- opcodes, and the whole pickle ---- */

static enum status read_number_then_call(struct reader *r, size_t size,
                                         enum status (*act)(struct reader *, uint64_t))
{
    uint64_t number;
    return read_number(r, size, &number) ? act(r, number) : report_cut_off(r);
}

static enum status push_unsigned(struct reader *r, uint64_t number)
{
    push_int(r, (int64_t)number);
    return STATUS_OK;
}

static enum status push_signed(struct reader *r, uint64_t number)
{
    push_int(r, (int32_t)(uint32_t)number);
    return STATUS_OK;
}

static enum status ignore_number(struct reader *r, uint64_t number)
{
    (void)r;
    (void)number;
    return STATUS_OK;
}

static enum status push_value_without_items(struct reader *r, enum pickle_kind kind, int64_t number)
{
    push_new_value(r, kind)->int_value = number;
    return STATUS_OK;
}

static enum status run_opcode(struct reader *r, int opcode)
{
    switch (opcode) {
    case OP_PROTO:
        return read_number_then_call(r, 1, ignore_number);
    case OP_FRAME:
        return read_number_then_call(r, 8, ignore_number);
    case OP_MARK:
        push(r, NULL);
        return STATUS_OK;
    case OP_NONE:
        return push_value_without_items(r, PICKLE_NONE, 0);
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push_value_without_items(r, PICKLE_BOOL, opcode == OP_NEWTRUE);
    case OP_BININT:
        return read_number_then_call(r, 4, push_signed);
    case OP_BININT1:
        return read_number_then_call(r, 1, push_unsigned);
    case OP_BININT2:
        return read_number_then_call(r, 2, push_unsigned);
    case OP_LONG1:
        return push_long(r, 1);
    case OP_LONG4:
        return push_long(r, 4);
    case OP_BINFLOAT:
        return push_float(r);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINBYTES:
    case OP_SHORT_BINUNICODE:
        return push_text(r, 1);
    case OP_BINSTRING:
    case OP_BINBYTES:
    case OP_BINUNICODE:
        return push_text(r, 4);
    case OP_BINBYTES8:
    case OP_BINUNICODE8:
        return push_text(r, 8);
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE:
        return push_value_without_items(r, PICKLE_LIST, 0);
    case OP_EMPTY_DICT:
        return push_value_without_items(r, PICKLE_DICT, 0);
    case OP_APPEND:
    case OP_APPENDS:
        return append_to_collection(r, PICKLE_LIST, opcode == OP_APPENDS);
    case OP_SETITEM:
    case OP_SETITEMS:
        return append_to_collection(r, PICKLE_DICT, opcode == OP_SETITEMS);
    case OP_LIST:
    case OP_TUPLE:
        return collect_since_mark(r, PICKLE_LIST);
    case OP_DICT:
        return collect_since_mark(r, PICKLE_DICT);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return collect_last_values(r, (size_t)(opcode - OP_TUPLE1) + 1);
    case OP_BINPUT:
        return read_number_then_call(r, 1, store_top_value_in_memo);
    case OP_LONG_BINPUT:
        return read_number_then_call(r, 4, store_top_value_in_memo);
    case OP_MEMOIZE:
        return store_top_value_in_memo(r, r->memo_count++);
    case OP_BINGET:
        return read_number_then_call(r, 1, push_memo);
    case OP_LONG_BINGET:
        return read_number_then_call(r, 4, push_memo);
    case OP_POP:
        if (r->depth == 0)
            return report_fault(r, "nothing to drop");
        r->depth--;
        return STATUS_OK;
    case OP_POP_MARK: {
        size_t from;
        if (!find_mark(r, &from))
            return report_fault(r, "nothing to drop");
        r->depth = from - 1;
        return STATUS_OK;
    }
    default:
        r->position--;
        return diag_error(
            r->diag, (struct loc){.name = r->name}, STATUS_BAD_INPUT,
            "byte %zu of the pickle: opcode 0x%02x is not read: only plain data is, no "
            "classes and no calls",
            (size_t)(r->position - r->start), (unsigned)opcode);
    }
}

bool pickle_recognise(const char *data, size_t size)
{
    return size > 2 && (unsigned char)data[0] == OP_PROTO && data[1] >= 2 && data[1] <= 5;
}

enum status pickle_parse(struct pickle_value **root, struct arena *arena, const char *name,
                         const char *data, size_t size, struct diag *diag)
{
    struct reader r = {.arena = arena,
                       .name = name,
                       .start = (const unsigned char *)data,
                       .position = (const unsigned char *)data,
                       .end = (const unsigned char *)data + size,
                       .diag = diag};
    enum status status = STATUS_OK;
    bool stopped = false;
    if (!pickle_recognise(data, size))
        status = report_fault(&r, "it does not begin like a pickle of protocol 2 to 5");
    while (status == STATUS_OK && !stopped) {
        if (r.position == r.end) {
            status = report_cut_off(&r);
            break;
        }
        int opcode = *r.position++;
        stopped = opcode == OP_STOP;
        if (!stopped)
            status = run_opcode(&r, opcode);
    }
    if (status == STATUS_OK && (r.depth != 1 || r.stack[0] == NULL))
        status = report_fault(&r, "it does not end with one value");
    if (status == STATUS_OK)
        *root = r.stack[0];
    free((void *)r.stack);
    free((void *)r.memo);
    return status;
}

const struct pickle_value *pickle_find(const struct pickle_value *dict, const char *key)
{
    if (dict == NULL || dict->kind != PICKLE_DICT)
        return NULL;
    for (const struct pickle_item *item = dict->first_item; item != NULL; item = item->next)
        if (item->key->kind == PICKLE_TEXT && strcmp(item->key->text, key) == 0)
            return item->value;
    return NULL;
}

int64_t pickle_int_or(const struct pickle_value *value, int64_t otherwise)
{
    return value != NULL && (value->kind == PICKLE_INT || value->kind == PICKLE_BOOL)
               ? value->int_value
               : otherwise;
}

const char *pickle_text_or(const struct pickle_value *value, const char *otherwise)
{
    return value != NULL && value->kind == PICKLE_TEXT ? value->text : otherwise;
}

/* ---- writing ---- */

static void append_little_endian(struct text *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text_putc(out, (char)(value >> (8 * i) & 0xff));
}

void pickle_begin(struct text *out)
{
    text_putc(out, (char)OP_PROTO);
    text_putc(out, 2);
}

void pickle_end(struct text *out)
{
    text_putc(out, OP_STOP);
}

void pickle_put_int(struct text *out, int64_t value)
{
    if (value >= INT32_MIN && value <= INT32_MAX) {
        text_putc(out, OP_BININT);
        append_little_endian(out, (uint64_t)value, 4);
    } else {
        text_putc(out, (char)OP_LONG1);
        text_putc(out, 8);
        append_little_endian(out, (uint64_t)value, 8);
    }
}

void pickle_put_bool(struct text *out, bool value)
{
    text_putc(out, (char)(value ? OP_NEWTRUE : OP_NEWFALSE));
}

void pickle_put_text(struct text *out, const char *text)
{
    size_t size = strlen(text);
    text_putc(out, OP_BINUNICODE);
    append_little_endian(out, size, 4);
    text_append(out, text, size);
}

void pickle_begin_list(struct text *out)
{
    text_putc(out, OP_EMPTY_LIST);
    text_putc(out, OP_MARK);
}

void pickle_end_list(struct text *out)
{
    text_putc(out, OP_APPENDS);
}

void pickle_begin_dict(struct text *out)
{
    text_putc(out, OP_EMPTY_DICT);
    text_putc(out, OP_MARK);
}

void pickle_end_dict(struct text *out)
{
    text_putc(out, OP_SETITEMS);
}
