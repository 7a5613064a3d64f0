/* tests/fuzz/fuzz_hf_config.c: whatever the text, either a model is read that passes its check and has
 * parameters, or there is exactly one message. The same bytes are read as a Hugging Face file, with and without
 * ignored keys, and as our own schema. */
#include "models/hf_config.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>

static void check_config(const struct transformer *t, enum status status, struct diag *diag)
{
    assert((status == STATUS_OK) == (diag->error_count == 0));
    assert(diag->error_count <= 1);
    if (status == STATUS_OK) {
        struct tensor_spec tensors[TRANSFORMER_MAX_TENSORS];
        assert(transformer_check(t, (struct loc){0}, NULL) == STATUS_OK);
        assert(transformer_list_layer_tensors(t, 0, tensors, ARRAY_LEN(tensors)) <=
               ARRAY_LEN(tensors));
        assert(transformer_parameters(t) > transformer_active_matrix_parameters(t));
        assert(transformer_layer_linear_flops_per_token(t) > 0);
        assert(transformer_layer_attention_flops(t, 1 << 20, true) > 0);
    }
    diag_clear(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct arena arena = {0};
    struct diag diag = {0};
    struct transformer t;
    check_config(&t, hf_config_parse(&t, &arena, "fuzz.json", text, size, NULL, &diag), &diag);
    check_config(
        &t,
        hf_config_parse(&t, &arena, "fuzz.json", text, size, "rope_scaling,sliding_window", &diag),
        &diag);
    struct json json = {0};
    enum status status = json_parse(&json, "fuzz.json", text, size, &diag);
    if (status == STATUS_OK)
        status = hf_config_read(&t, &arena, "fuzz.json", json_root(&json), NULL, true, &diag);
    if (status == STATUS_OK)
        status = transformer_check(&t, (struct loc){.name = "fuzz.json"}, &diag);
    json_release(&json);
    check_config(&t, status, &diag);
    check_config(&t, transformer_parse(&t, &arena, "fuzz.json", text, size, &diag), &diag);
    diag_release(&diag);
    arena_release(&arena);
    return 0;
}
