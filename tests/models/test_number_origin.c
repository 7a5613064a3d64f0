/* tests/models/test_number_origin.c: the member "how" of a number's object says how the number was
 * obtained; words in its source do not. */
#include "models/number_origin.h"

#include "models/cluster.h"
#include "tests/check.h"

#include <string.h>

static const struct {
    const char *object, *message; /* message: of a fault; NULL: none */
    enum number_origin how;
    bool unstated;
} objects[] = {
    {"{\"source\": \"assumed by nobody: an estimate in words\"}", NULL, NUMBER_STATED, false},
    {"{\"how\": \"measured\"}", NULL, NUMBER_MEASURED, false},
    {"{\"how\": \"inferred\"}", NULL, NUMBER_INFERRED, true},
    {"{\"how\": \"assumed\"}", NULL, NUMBER_ASSUMED, true},
    {"{\"how\": \"estimated\"}", NULL, NUMBER_ESTIMATED, true},
    {"{\"how\": \"guessed\"}",
     "f:1: error: how: expected stated, measured, inferred, assumed or estimated, not 'guessed'\n",
     NUMBER_STATED, false},
};

static void origin_member_sets_number_origin(void)
{
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        struct json json = {0};
        struct diag diag = {0};
        enum number_origin how;
        const char *text = objects[i].object;
        CHECK_INT(text, json_parse(&json, "f", text, strlen(text), &diag), STATUS_OK);
        enum status status = number_origin_read_json(json_root(&json), &how, &diag);
        CHECK_INT(text, status, objects[i].message == NULL ? STATUS_OK : STATUS_BAD_INPUT);
        CHECK_TEXT(text, diag.text, objects[i].message == NULL ? "" : objects[i].message);
        CHECK_INT(text, how, objects[i].how);
        CHECK_INT(text, number_origin_is_guessed(how), objects[i].unstated);
        json_release(&json);
        diag_release(&diag);
    }
}

static void source_words_do_not_mean_measured(void)
{
    struct cluster_fact fact = {.source = "measured on ours: fitted to 8 points"};
    CHECK("words", !cluster_fact_is_measured(&fact));
    fact.spread = 0.1;
    CHECK("a spread", cluster_fact_is_measured(&fact));
    fact = (struct cluster_fact){.source = "ours", .origin = NUMBER_MEASURED};
    CHECK("its member", cluster_fact_is_measured(&fact));
    CHECK("none", !cluster_fact_is_measured(NULL));
}

static const struct check_case cases[] = {
    {"words of a source do not make it measured", source_words_do_not_mean_measured},
    {"a member says how", origin_member_sets_number_origin},
};
CHECK_MAIN("number_origin", cases)
