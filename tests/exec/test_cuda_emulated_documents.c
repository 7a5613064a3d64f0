/* tests/exec/test_cuda_emulated_documents.c: the cases of document_cases.h by the CUDA backend on the emulated device:
 * its attention takes the keys that each row sees from a table, or documents go to fused attention in one call. */
#include "tests/exec/document_cases.h"
#include "tests/exec/emulator/emulator.h"

#ifdef HAVE_CUDNN
static const struct transformer wide_heads = {
    .name = "wide-heads",
    .layers = 2,
    .hidden = 32,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 8,
    .ffn = 40,
    .vocab = 29,
    .activation = ACTIVATION_SWIGLU,
    .norm = NORM_RMSNORM,
    .positions = POSITIONS_ROPE,
    .rope_theta = 10000,
    .norm_eps = 1e-5,
};

/* With --attention-by fused attention is fused or refused; a rank, or ranks that share a sequence by heads, have whole
 * documents. Ranks that share the emulated GPU have one sequence each. */
static const struct {
    struct document_use use;
    const char *refusal; /* NULL: it is computed */
} fused_uses[] = {
    {{.strategy = "local", .ranks = 1, .batch = 3}, NULL},
    {{.strategy = "ulysses", .ranks = 2, .hp = 2, .batch = 2}, NULL},
    {{.strategy = "megatron-sp", .ranks = 2, .tp = 2, .batch = 2}, NULL},
    {{.strategy = "upipe", .ranks = 2, .hp = 2, .batch = 2}, NULL},
    {{.strategy = "ring", .ranks = 2, .cp = 2, .batch = 1, .layout = RING_STRIPED},
     "cuDNN: error: does not take the attention of op "},
};

static void fused_attention_takes_whole_documents(void)
{
    struct check_random random = check_random_make();
    matrix_attention = EXEC_ATTENTION_FUSED;
    for (size_t i = 0; i < ARRAY_LEN(fused_uses); i++) {
        struct arena arena = {0};
        struct documents documents;
        struct diag diag = {0};
        struct choices choices;
        struct request request = request_of(&fused_uses[i].use, &wide_heads, i);
        request.dtype = DTYPE_BF16;
        pack(&documents, &arena, &request, &random);
        request.documents = &documents;
        const char *label = fused_uses[i].use.strategy;
        if (!CHECK_INT(label, resolve_choices(&choices, &request, NULL, &diag), STATUS_OK)) {
            fputs(diag.text, stderr);
        } else if (fused_uses[i].refusal == NULL) {
            check_choices(&choices, true);
        } else {
            struct ir ir = {0};
            struct exec_result result = {0};
            const struct exec_options options = {
                .backend = "cuda", .attention = EXEC_ATTENTION_FUSED, .stall_limit_s = 60};
            CHECK_INT(label, step_build(&ir, &choices, &diag), STATUS_OK);
            CHECK(label, exec_run(&ir, label, &options, NULL, &result, &diag) != STATUS_OK);
            CHECK(label, diag.text != NULL && strstr(diag.text, fused_uses[i].refusal) != NULL &&
                             strstr(diag.text, "; --attention-by tiles would do") != NULL);
            exec_result_release(&result);
            ir_release(&ir);
        }
        diag_release(&diag);
        arena_release(&arena);
    }
    matrix_attention = EXEC_ATTENTION_AUTO;
}
#endif

static const struct check_case cases[] = {
    {"windows in tiles compute the reference", windows_in_tiles_compute_the_reference},
    {"documents compute the reference", documents_compute_the_reference},
#ifdef HAVE_CUDNN
    {"fused attention takes whole documents", fused_attention_takes_whole_documents},
#endif
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = "cuda";
    return check_run("cuda emulated documents", cases, ARRAY_LEN(cases), argc, argv);
}
