#include "base/units.h"

#include "base/arena.h"
#include "base/c_locale.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct unit {
    const char *name;
    double si_factor;
};

/* The units of each kind, in the order in which messages list them. */
static const struct unit byte_units[] = {
    {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};
static const struct unit rate_units[] = {
    {"B/s", 1},        {"KB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},     {"TB/s", 1e12},
    {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40}, {"Gb/s", 1e9 / 8},
};
static const struct unit second_units[] = {
    {"s", 1},
    {"ms", 1e-3},
    {"us", 1e-6},
    {"ns", 1e-9},
};
static const struct unit flop_units[] = {
    {"FLOP/s", 1},
    {"GFLOP/s", 1e9},
    {"TFLOP/s", 1e12},
    {"PFLOP/s", 1e15},
};

static const struct unit watt_units[] = {
    {"W", 1},
    {"kW", 1e3},
};

static const struct {
    const struct unit *units;
    size_t count;
} kinds[UNIT_KIND_COUNT] = {
    [UNIT_BYTES] = {byte_units, ARRAY_LEN(byte_units)},
    [UNIT_BYTES_PER_S] = {rate_units, ARRAY_LEN(rate_units)},
    [UNIT_SECONDS] = {second_units, ARRAY_LEN(second_units)},
    [UNIT_FLOP_PER_S] = {flop_units, ARRAY_LEN(flop_units)},
    [UNIT_WATTS] = {watt_units, ARRAY_LEN(watt_units)},
    [UNIT_NONE] = {NULL, 0},
};

static enum status report_bad_quantity(const char *text, size_t size, enum unit_kind kind,
                                       const char *what, struct loc at, struct diag *diag)
{
    struct text right = {0};
    if (kind == UNIT_NONE)
        text_puts(&right, "a plain number");
    else
        text_puts(&right, "a number and one of");
    for (size_t i = 0; i < kinds[kind].count; i++)
        text_printf(&right, "%s%s", i == 0 ? " " : ", ", kinds[kind].units[i].name);
    enum status status = diag_error(diag, at, STATUS_BAD_INPUT, "'%.*s' %s: expected %s",
                                    (int)(size < 80 ? size : 80), text, what, right.data);
    text_release(&right);
    return status;
}

/* Returns the length of the number with which the text starts. An 'e' belongs to the number only if a digit follows,
 * so that a unit may start with one. */
static size_t number_length(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (c_is_digit(text[i]) || text[i] == '.' || text[i] == '-' || text[i] == '+'))
        i++;
    if (i > 0 && i < size && (text[i] == 'e' || text[i] == 'E')) {
        size_t sign = i + 1 < size && (text[i + 1] == '-' || text[i + 1] == '+');
        size_t end = i + 1 + sign;
        while (end < size && c_is_digit(text[end]))
            end++;
        if (end > i + 1 + sign)
            i = end;
    }
    return i;
}

/* True if text[0..size) is the unit `name`. A unit of bytes may also be all in lower case, but not in a mixture of
 * cases: "Gb" would be bits. */
static bool is_unit(enum unit_kind kind, const char *name, const char *text, size_t size)
{
    bool same = true, lower = kind == UNIT_BYTES;
    if (strlen(name) != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        same = same && text[i] == name[i];
        lower = lower && text[i] == c_lower(name[i]);
    }
    return same || lower;
}

enum status units_parse(const char *text, size_t size, enum unit_kind kind, double *value,
                        struct loc at, struct diag *diag)
{
    assert(kind < UNIT_KIND_COUNT);
    size_t digits = number_length(text, size);
    double number;
    if (digits == 0)
        return report_bad_quantity(text, size, kind, "does not start with a number", at, diag);
    if (!parse_double(text, digits, &number))
        return report_bad_quantity(text, size, kind, "is no number or is too large", at, diag);
    if (number < 0)
        return report_bad_quantity(text, size, kind, "is negative", at, diag);

    size_t start = digits;
    while (start < size && text[start] == ' ')
        start++;
    size_t left = size - start;
    double factor = 1;
    if (kind == UNIT_NONE) {
        if (digits != size)
            return report_bad_quantity(text, size, kind, "has a unit and should not", at, diag);
    } else {
        if (left == 0)
            return report_bad_quantity(text, size, kind, "has no unit", at, diag);
        const struct unit *unit = NULL;
        for (size_t i = 0; i < kinds[kind].count && !unit; i++) {
            const struct unit *row = &kinds[kind].units[i];
            if (is_unit(kind, row->name, text + start, left))
                unit = row;
        }
        if (!unit)
            return report_bad_quantity(text, size, kind, "has a unit that does not fit", at, diag);
        factor = unit->si_factor;
    }
    /* A number in a small unit is divided by a power of ten, which is an exact double, so that "1.5 us" is the double
     * 1.5e-6. */
    double scaled = factor < 1 ? number / round(1 / factor) : number * factor;
    if (!isfinite(scaled))
        return report_bad_quantity(text, size, kind, "is too large", at, diag);
    *value = scaled;
    return STATUS_OK;
}

static const struct unit token_units[] = {
    {"G", 0x1p30},
    {"M", 0x1p20},
    {"K", 0x1p10},
};

static enum status report_bad_token_count(const char *text, size_t size, const char *what,
                                          struct loc at, struct diag *diag)
{
    return diag_error(diag, at, STATUS_BAD_INPUT,
                      "'%.*s' %s: expected a count of tokens such as 131072, 128K or 1.5M "
                      "(K = 1024, M = 1024K, G = 1024M)",
                      (int)(size < 80 ? size : 80), text, what);
}

enum status units_parse_tokens(const char *text, size_t size, int64_t *value, struct loc at,
                               struct diag *diag)
{
    double factor = 1;
    size_t digits = size;
    for (size_t i = 0; i < ARRAY_LEN(token_units) && size > 0; i++) {
        if (c_upper(text[size - 1]) == token_units[i].name[0]) {
            factor = token_units[i].si_factor;
            digits = size - 1;
        }
    }
    /* "1e6" would leave open whether 1000 or 1024 is meant. */
    for (size_t i = 0; i < digits; i++) {
        if (!c_is_digit(text[i]) && text[i] != '.' && !(i == 0 && text[i] == '-'))
            return report_bad_token_count(text, size, "is no number of tokens", at, diag);
    }
    double number;
    if (!parse_double(text, digits, &number))
        return report_bad_token_count(text, size, "is no number of tokens", at, diag);
    double tokens = number * factor;
    if (tokens < 1)
        return report_bad_token_count(text, size, "is less than one token", at, diag);
    if (tokens >= 0x1p53)
        return report_bad_token_count(text, size, "is 2^53 tokens or more", at, diag);
    if (tokens != floor(tokens))
        return report_bad_token_count(text, size, "is not a whole number of tokens", at, diag);
    *value = (int64_t)tokens;
    return STATUS_OK;
}

/* Appends a number with three significant digits. A number of 1000 or more keeps all digits before the point. With
 * `whole` the number has no decimals, and is printed without any. */
static void append_three_digits(struct text *out, double number, bool whole)
{
    double size = fabs(number);
    int decimals = whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    if (size < 0.995 && size > 0 && !whole)
        text_printf(out, "%.3g", number);
    else
        text_printf(out, "%.*f", decimals, number);
}

/* Appends a value in the largest unit in which it is at least 1, or would be if it were rounded to a whole number of
 * the next smaller unit: 999.5 KB are "1.00 MB". Units are in ascending order. */
static void append_number_with_largest_unit(struct text *out, const struct unit *units,
                                            size_t count, double value)
{
    const struct unit *unit = &units[0];
    for (size_t i = 1; i < count; i++) {
        double step = units[i].si_factor / units[i - 1].si_factor;
        if (fabs(value) >= (step - 0.5) * units[i - 1].si_factor)
            unit = &units[i];
    }
    double number = value / unit->si_factor;
    bool whole = unit == &units[0] && number == floor(number);
    append_three_digits(out, number, whole);
    text_printf(out, " %s", unit->name);
}

void units_put(struct text *out, enum unit_kind kind, double value)
{
    static const struct unit bytes[] = {
        {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
    };
    static const struct unit rates[] = {
        {"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12},
    };
    static const struct unit seconds[] = {
        {"ns", 1e-9},
        {"us", 1e-6},
        {"ms", 1e-3},
        {"s", 1},
    };
    static const struct {
        const struct unit *units;
        size_t count;
    } scales[UNIT_KIND_COUNT] = {
        [UNIT_BYTES] = {bytes, ARRAY_LEN(bytes)},
        [UNIT_BYTES_PER_S] = {rates, ARRAY_LEN(rates)},
        [UNIT_SECONDS] = {seconds, ARRAY_LEN(seconds)},
        [UNIT_FLOP_PER_S] = {flop_units, ARRAY_LEN(flop_units)},
        [UNIT_WATTS] = {watt_units, 1},
    };
    assert(kind < UNIT_KIND_COUNT);
    if (kind == UNIT_NONE)
        append_three_digits(out, value, value == floor(value));
    else if (value == 0)
        text_puts(out, kind == UNIT_BYTES         ? "0 B"
                       : kind == UNIT_BYTES_PER_S ? "0 B/s"
                       : kind == UNIT_SECONDS     ? "0 s"
                       : kind == UNIT_WATTS       ? "0 W"
                                                  : "0 FLOP/s");
    else
        append_number_with_largest_unit(out, scales[kind].units, scales[kind].count, value);
}

void units_put_gib(struct text *out, double bytes)
{
    static const struct unit binary[] = {
        {"B", 1},
        {"KiB", 0x1p10},
        {"MiB", 0x1p20},
        {"GiB", 0x1p30},
    };
    append_number_with_largest_unit(out, binary, ARRAY_LEN(binary), bytes);
}

void units_put_tokens(struct text *out, int64_t tokens)
{
    for (size_t i = 0; i < ARRAY_LEN(token_units); i++) {
        int64_t factor = (int64_t)token_units[i].si_factor;
        if (tokens != 0 && tokens % factor == 0) {
            text_put_i64(out, tokens / factor);
            text_puts(out, token_units[i].name);
            return;
        }
    }
    text_put_i64(out, tokens);
}
