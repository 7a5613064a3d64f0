/* tests/base/test_diag.c: a message is one clean line that says where the fault is, and suggests the nearest word for a
 * misspelt one. */
#include "base/diag.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static void a_message_says_where_as_far_as_known(void)
{
    static const struct {
        const char *label;
        struct loc at;
        const char *want;
    } rows[] = {
        {"column", {"ring.ir", 14, 9}, "ring.ir:14:9: error: bad 'x'\n"},
        {"line", {"ring.ir", 14, 0}, "ring.ir:14: error: bad 'x'\n"},
        {"file", {"ring.ir", 0, 0}, "ring.ir: error: bad 'x'\n"},
        {"nowhere", {NULL, 0, 0}, "error: bad 'x'\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        enum status status = diag_error(&diag, rows[i].at, STATUS_BAD_INPUT, "bad '%s'", "x");
        CHECK_INT(rows[i].label, status, STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text, rows[i].want);
        diag_release(&diag);
    }
}

static void messages_are_kept_in_order_and_counted(void)
{
    struct diag diag = {0};
    struct loc at = {"f", 1, 0};
    diag_warning(&diag, at, "w");
    diag_note(&diag, at, "n");
    diag_error(&diag, at, STATUS_SYSTEM, "e");
    CHECK_TEXT("all", diag.text, "f:1: warning: w\nf:1: note: n\nf:1: error: e\n");
    CHECK_INT("errors", (int64_t)diag.error_count, 1);
    CHECK_INT("warnings", (int64_t)diag.warning_count, 1);
    diag_clear(&diag);
    CHECK_TEXT("cleared", diag.text, "");
    CHECK_INT("no errors", (int64_t)diag.error_count, 0);
    diag_release(&diag);
    CHECK_INT("dropped", diag_error(NULL, at, STATUS_NO, "x"), STATUS_NO);
}

static void a_message_stays_one_clean_line(void)
{
    struct diag diag = {0};
    struct loc at = {"a\nb", 1, 0};
    diag_error(&diag, at, STATUS_BAD_INPUT, "bad '%s'", "x\ny\x1b[2J\x7f");
    CHECK_TEXT("escapes", diag.text, "a\\x0ab:1: error: bad 'x\\x0ay\\x1b[2J\\x7f'\n");
    diag_clear(&diag);
    char *huge = heap_zalloc(1 << 20, 1);
    memset(huge, 'x', (1 << 20) - 1);
    diag_error(&diag, at, STATUS_BAD_INPUT, "%s", huge);
    CHECK("clipped", diag.size < 5000 && strstr(diag.text, "x...\n"));
    free(huge);
    diag_release(&diag);
}

static void the_nearest_word_is_a_likely_misspelling(void)
{
    static const char *const words[] = {"attention", "matmul", "all_to_all", "d2h", "h2d"};
    static const struct {
        const char *word, *want;
    } rows[] = {
        {"atention", "attention"},
        {"attentoin", "attention"},
        {"MATMUL", "matmul"},
        {"mat_mul", "matmul"},
        {"alltoall", "all_to_all"},
        {"d2g", "d2h"},
        {"softmax", NULL},
        {"", NULL},
        {"x", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_TEXT(rows[i].word, diag_nearest(rows[i].word, words, ARRAY_LEN(words)), rows[i].want);
    char longer[200] = {0};
    memset(longer, 'a', sizeof longer - 1);
    CHECK("long words", diag_nearest(longer, words, ARRAY_LEN(words)) == NULL);
    CHECK("no candidates", diag_nearest("x", NULL, 0) == NULL);
}

static const struct check_case cases[] = {
    {"a message says where as far as known", a_message_says_where_as_far_as_known},
    {"messages are kept in order and counted", messages_are_kept_in_order_and_counted},
    {"a message stays one clean line", a_message_stays_one_clean_line},
    {"the nearest word is a likely misspelling", the_nearest_word_is_a_likely_misspelling},
};
CHECK_MAIN("diag", cases)
