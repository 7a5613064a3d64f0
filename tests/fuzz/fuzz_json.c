/* tests/fuzz/fuzz_json.c: whatever the text, json_parse() ends in a document of which every value can be reached and
 * has a line, or in exactly one message. */
#include "base/json.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

/* Reads a value and all values in it. */
static void visit(struct json_node node)
{
    const char *key, *string;
    double number;
    int64_t whole;
    (void)json_as_string(node, &string, NULL);
    (void)json_as_double(node, -1, 1, &number, NULL);
    (void)json_as_i64(node, -1, 1, &whole, NULL);
    assert(json_loc(node).line >= 1);
    for (size_t i = 0; i < json_member_count(node); i++)
        visit(json_member_at(node, i, &key));
    for (size_t i = 0; i < json_element_count(node); i++)
        visit(json_element_at(node, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json json;
    struct diag diag = {0};
    enum status status = json_parse(&json, "fuzz.json", (const char *)data, size, &diag);
    assert((status == STATUS_OK) == (diag.error_count == 0));
    assert(diag.error_count <= 1);
    if (status == STATUS_OK) {
        static const char *const known[] = {"name", "nodes"};
        visit(json_root(&json));
        (void)json_reject_unknown_keys(json_root(&json), known, ARRAY_LEN(known), &diag);
        json_release(&json);
    }
    diag_release(&diag);
    return 0;
}
