/* tests/base/test_units.c: quantities and token counts are read with their units and print short; a wrong unit gets a
 * message with those that fit. */
#include "base/units.h"
#include "tests/check.h"

#include <string.h>

static const struct loc at = {"x.json", 3, 0};

static void quantities_parse_to_si_units(void)
{
    static const struct {
        const char *text;
        enum unit_kind kind;
        double want;
    } rows[] = {
        {"900 GB/s", UNIT_BYTES_PER_S, 900e9},
        {"50GiB/s", UNIT_BYTES_PER_S, 50 * 1073741824.0},
        {"200 Gb/s", UNIT_BYTES_PER_S, 25e9},
        {"141 GiB", UNIT_BYTES, 141 * 1073741824.0},
        {"80 GB", UNIT_BYTES, 80e9},
        {"80gb", UNIT_BYTES, 80e9},
        {"141 gib", UNIT_BYTES, 141 * 1073741824.0},
        {"5 b", UNIT_BYTES, 5},
        {"1e3 B", UNIT_BYTES, 1000},
        {"1.5 us", UNIT_SECONDS, 1.5e-6},
        {".5 ms", UNIT_SECONDS, 0.5e-3},
        {"3 s", UNIT_SECONDS, 3},
        {"312 TFLOP/s", UNIT_FLOP_PER_S, 312e12},
        {"0.62", UNIT_NONE, 0.62},
        {"0 B", UNIT_BYTES, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        double value = -1;
        const char *text = rows[i].text;
        CHECK_INT(text, units_parse(text, strlen(text), rows[i].kind, &value, at, &diag),
                  STATUS_OK);
        CHECK_CLOSE(text, value, rows[i].want, 0);
        diag_release(&diag);
    }
}

static void a_wrong_quantity_names_the_right_units(void)
{
    static const char seconds[] = ": expected a number and one of s, ms, us, ns\n";
    static const struct {
        const char *text;
        const char *what;
    } rows[] = {
        {"3", "'3' has no unit"},
        {"3 ", "'3 ' has no unit"},
        {"", "'' does not start with a number"},
        {"ms", "'ms' does not start with a number"},
        {"-3 s", "'-3 s' is negative"},
        {"3 GB", "'3 GB' has a unit that does not fit"},
        {"3 S", "'3 S' has a unit that does not fit"},
        {"3 s ", "'3 s ' has a unit that does not fit"},
        {"1e999 s", "'1e999 s' is no number or is too large"},
        {"1.2.3 s", "'1.2.3 s' is no number or is too large"},
        {"nan s", "'nan s' does not start with a number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        struct text want = {0};
        double value;
        const char *text = rows[i].text;
        text_printf(&want, "x.json:3: error: %s%s", rows[i].what, seconds);
        enum status status = units_parse(text, strlen(text), UNIT_SECONDS, &value, at, &diag);
        CHECK_INT(text, status, STATUS_BAD_INPUT);
        CHECK_TEXT(text, diag.text, want.data);
        text_release(&want);
        diag_release(&diag);
    }
    struct diag diag = {0};
    double value;
    units_parse("1e308 TB", 8, UNIT_BYTES, &value, at, &diag);
    CHECK_TEXT("overflow by the unit", diag.text,
               "x.json:3: error: '1e308 TB' is too large: expected a number and one of B, KB, MB, "
               "GB, TB, KiB, MiB, GiB, TiB\n");
    diag_clear(&diag);
    units_parse("3 s", 3, UNIT_NONE, &value, at, &diag);
    CHECK_TEXT("unit not wanted", diag.text,
               "x.json:3: error: '3 s' has a unit and should not: expected a plain number\n");
    diag_release(&diag);
}

/* A unit must have the right case. Only units of bytes may be written in lower case, too. */
static void case_tells_bits_from_bytes_and_milli_from_mega(void)
{
    static const struct {
        const char *text;
        enum unit_kind kind;
        double want; /* 0: refused */
    } rows[] = {
        {"1 Gb/s", UNIT_BYTES_PER_S, 1e9 / 8},
        {"1 GB/s", UNIT_BYTES_PER_S, 1e9},
        {"1 gb/s", UNIT_BYTES_PER_S, 0},
        {"1 gB/s", UNIT_BYTES_PER_S, 0},
        {"1 Gb", UNIT_BYTES, 0},
        {"1 gB", UNIT_BYTES, 0},
        {"1 Ms", UNIT_SECONDS, 0},
        {"1 m", UNIT_SECONDS, 0},
        {"1 MS", UNIT_SECONDS, 0},
        {"1 tflop/s", UNIT_FLOP_PER_S, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double value = 0;
        const char *text = rows[i].text;
        enum status status = units_parse(text, strlen(text), rows[i].kind, &value, at, NULL);
        CHECK_INT(text, status, rows[i].want > 0 ? STATUS_OK : STATUS_BAD_INPUT);
        CHECK_CLOSE(text, value, rows[i].want, 0);
    }
}

static void token_counts_are_whole_and_binary(void)
{
    static const struct {
        const char *text;
        int64_t want; /* 0: the text is refused with the message `what` */
        const char *what;
    } rows[] = {
        {"131072", 131072, NULL},
        {"128K", 131072, NULL},
        {"1M", 1048576, NULL},
        {"1.5M", 1572864, NULL},
        {"2G", INT64_C(2147483648), NULL},
        {"1", 1, NULL},
        {"0", 0, "'0' is less than one token"},
        {"-5", 0, "'-5' is less than one token"},
        {"1.3K", 0, "'1.3K' is not a whole number"},
        {"1e6", 0, "'1e6' is no number of tokens"},
        {"128k", 131072, NULL},
        {"1.5m", 1572864, NULL},
        {"2g", INT64_C(2147483648), NULL},
        {"512kk", 0, "'512kk' is no number of tokens"},
        {"1t", 0, "'1t' is no number of tokens"},
        {"512 K", 0, "'512 K' is no number of tokens"},
        {"K", 0, "'K' is no number of tokens"},
        {"", 0, "'' is no number of tokens"},
        {"9007199254740993", 0, "is 2^53 tokens or more"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        int64_t value = 0;
        const char *text = rows[i].text;
        enum status status = units_parse_tokens(text, strlen(text), &value, at, &diag);
        CHECK_INT(text, status, rows[i].want ? STATUS_OK : STATUS_BAD_INPUT);
        CHECK_INT(text, value, rows[i].want);
        CHECK(text, !rows[i].what || (diag.text && strstr(diag.text, rows[i].what)));
        diag_release(&diag);
    }
}

static void quantities_print_with_three_digits(void)
{
    static const struct {
        enum unit_kind kind;
        double value;
        const char *want;
    } rows[] = {
        {UNIT_BYTES, 1.02e12, "1.02 TB"},
        {UNIT_BYTES, 80e9, "80.0 GB"},
        {UNIT_BYTES, 512, "512 B"},
        {UNIT_BYTES, 0, "0 B"},
        {UNIT_BYTES, 999.6e9, "1.00 TB"},
        {UNIT_BYTES, 12345e12, "12345 TB"},
        {UNIT_BYTES, -1.5e9, "-1.50 GB"},
        {UNIT_SECONDS, 0.0123, "12.3 ms"},
        {UNIT_SECONDS, 9.996, "10.0 s"},
        {UNIT_SECONDS, 1234, "1234 s"},
        {UNIT_SECONDS, 0.5e-9, "0.5 ns"},
        {UNIT_BYTES_PER_S, 25e9, "25.0 GB/s"},
        {UNIT_FLOP_PER_S, 312e12, "312 TFLOP/s"},
        {UNIT_FLOP_PER_S, 1.5e15, "1.50 PFLOP/s"},
        {UNIT_NONE, 0.4567, "0.457"},
        {UNIT_NONE, 3, "3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        units_put(&text, rows[i].kind, rows[i].value);
        CHECK_TEXT(rows[i].want, text.data, rows[i].want);
        text_release(&text);
    }
    struct text text = {0};
    units_put_gib(&text, 80.0 * 1073741824);
    text_putc(&text, ' ');
    units_put_gib(&text, 1536.0 * 1073741824);
    text_putc(&text, ' ');
    units_put_gib(&text, 1.5 * 1048576);
    CHECK_TEXT("binary", text.data, "80.0 GiB 1536 GiB 1.50 MiB");
    text_release(&text);
}

static void token_counts_print_short_when_whole(void)
{
    static const struct {
        int64_t tokens;
        const char *want;
    } rows[] = {
        {524288, "512K"}, {1048576, "1M"}, {1572864, "1536K"}, {1073741824, "1G"},
        {1000, "1000"},   {1, "1"},        {0, "0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct text text = {0};
        units_put_tokens(&text, rows[i].tokens);
        CHECK_TEXT(rows[i].want, text.data, rows[i].want);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"quantities become SI", quantities_parse_to_si_units},
    {"a wrong quantity names the right units", a_wrong_quantity_names_the_right_units},
    {"case tells bits from bytes and milli from mega",
     case_tells_bits_from_bytes_and_milli_from_mega},
    {"token counts are whole and binary", token_counts_are_whole_and_binary},
    {"quantities print with three digits", quantities_print_with_three_digits},
    {"token counts print short when whole", token_counts_print_short_when_whole},
};
CHECK_MAIN("units", cases)
