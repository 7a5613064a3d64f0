/* tests/predict/test_locale.c: the library reads and writes the same in a program that uses a locale with a decimal
 * comma, or one in which 'i' is not the small letter of 'I'.
 *
 * The locales are made here, by localedef from the sources of Debian's package `locales`, since a machine need not
 * have any. Without them the cases fail: a check that is left out shows nothing. */
#include "base/c_locale.h"
#include "base/units.h"
#include "models/presets.h"
#include "predict/longhaul.h"
#include "schedule/ir/ir_text.h"
#include "tests/check.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *source, *letters;
} locales[] = {
    {"de_DE.UTF-8", "de_DE", "UTF-8"},           /* 1.5 is 1,5 */
    {"tr_TR.ISO-8859-9", "tr_TR", "ISO-8859-9"}, /* 1,5; the capital of i has a dot */
};

/* Makes the locales in a folder and lets the C library look there. Returns false if one cannot be
 * made. */
static bool make_locales(void)
{
    bool made = setenv("LOCPATH", check_temp_dir(), 1) == 0;
    for (size_t i = 0; made && i < ARRAY_LEN(locales); i++) {
        char command[400];
        snprintf(command, sizeof command,
                 "localedef -c --quiet -i %s -f %s '%s/%s' 2>/dev/null; test -e '%s/%s/LC_NUMERIC'",
                 locales[i].source, locales[i].letters, check_temp_dir(), locales[i].name,
                 check_temp_dir(), locales[i].name);
        made = CHECK("localedef, with the sources of Debian's package locales",
                     system(command) == 0); /* NOLINT(cert-env33-c) */
    }
    return made;
}

/* Appends what the library makes of numbers: presets that it reads, units, a prediction, a schedule, a message. */
static void append_all_printed_results(struct text *out)
{
    struct setup setup = {0};
    struct prediction prediction = {0};
    struct prediction_result r = {0};
    struct arena arena = {0};
    struct diag diag = {0};
    double rate = 0;
    const char *const *name = NULL;
    size_t count = 0;

    CHECK_INT("rate", units_parse("1.9GB/s", 7, UNIT_BYTES_PER_S, &rate, (struct loc){0}, &diag),
              STATUS_OK);
    text_printf(out, "%.17g ", rate);
    units_put(out, UNIT_BYTES_PER_S, rate);
    CHECK_INT("tokens", units_parse("1,9GB/s", 7, UNIT_BYTES_PER_S, &rate, (struct loc){0}, &diag),
              STATUS_BAD_INPUT);
    CHECK_INT("clusters", presets_list_names("clusters", &name, &count, &arena, &diag), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        struct setup each = {0};
        struct diag fault = {0};
        text_printf(out, "\n%s: %d", name[i], setup_load_cluster(&each, name[i], 0, 0, &fault));
        CHECK_TEXT(name[i], fault.text, "");
        setup_release(&each);
        diag_release(&fault);
    }
    CHECK_INT("model", setup_load_model(&setup, "gpt2", NULL, "rope_theta=12.5,layers=2", &diag),
              STATUS_OK);
    CHECK_INT("cluster", setup_load_cluster(&setup, "dgx-h100", 1, 2, &diag), STATUS_OK);
    setup_leave_request_open(&setup);
    setup.request.strategy = "ulysses";
    setup.request.profile = "neutral";
    setup.request.seq = 1024;
    const struct prediction_question question = {.setup = &setup};
    if (CHECK_INT("prediction", prediction_make(&prediction, &question, &diag), STATUS_OK)) {
        struct ir again = {0};
        struct text text = {0};
        prediction_fill_result(&r, &prediction);
        text_printf(out, "\n%.17g s, %.17g, %.3f tokens/s\n", r.step_s, r.mfu[MFU_LONGHAUL],
                    r.tokens_per_s_gpu);
        text_put_double(out, r.step_s);
        ir_print(&text, &prediction.ir);
        CHECK_INT("schedule", ir_parse(&again, "printed", text.data, text.size, &diag), STATUS_OK);
        text_append(out, text.data, text.size);
        text_release(&text);
        ir_release(&again);
    }
    text_puts(out, diag.text != NULL ? diag.text : "");
    prediction_release(&prediction);
    setup_release(&setup);
    arena_release(&arena);
    diag_release(&diag);
}

static void results_do_not_depend_on_the_locale(void)
{
    struct text want = {0};
    append_all_printed_results(&want);
    if (!make_locales())
        return;
    for (size_t i = 0; i < ARRAY_LEN(locales); i++) {
        struct text got = {0};
        if (!CHECK(locales[i].name, setlocale(LC_ALL, locales[i].name) != NULL))
            continue;
        CHECK_TEXT(locales[i].name, localeconv()->decimal_point, ",");
        append_all_printed_results(&got);
        CHECK_TEXT(locales[i].name, localeconv()->decimal_point, ",");
        setlocale(LC_ALL, "C");
        CHECK_TEXT(locales[i].name, got.data, want.data);
        text_release(&got);
    }
    text_release(&want);
}

static const struct check_case cases[] = {
    {"presets, predictions, schedules and messages do not depend on the locale",
     results_do_not_depend_on_the_locale},
};
CHECK_MAIN("locale", cases)
