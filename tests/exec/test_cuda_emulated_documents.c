/* tests/exec/test_cuda_emulated_documents.c: the cases of document_cases.h by the CUDA backend on the emulated device:
 * its attention takes the keys that each row sees from a table, or documents go to fused attention in one call. */
#include "exec/cuda/cuda.h"
#include "exec/cuda/fused.h"
#include "exec/number.h"
#include "tests/exec/document_cases.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/hand.h"

#ifdef HAVE_CUDNN
/* Latent attention: heads of v are narrower than those of q and k, so a document begins at another element of v than of
 * q and k. */
static const struct transformer narrow_values = {.name = "narrow-values",
                                                 .layers = 1,
                                                 .hidden = 32,
                                                 .heads = 4,
                                                 .kv_heads = 4,
                                                 .head_dim = 24,
                                                 .ffn = 40,
                                                 .vocab = 29,
                                                 .rope_theta = 1e4,
                                                 .norm_eps = 1e-5,
                                                 .q_latent = 12,
                                                 .kv_latent = 8,
                                                 .rope_dim = 8,
                                                 .v_dim = 16};

/* With --attention-by fused the backend computes attention by fused kernels or refuses it. They take whole documents,
 * which a rank has alone or with ranks that share a sequence by heads, but not with ranks of a ring. */
static const struct {
    struct document_configuration use;
    const struct transformer *model;
    const char *refusal; /* NULL: it is computed */
} fused_uses[] = {
    {{.strategy = "local", .ranks = 1, .batch = 3}, &shapes[1], NULL},
    {{.strategy = "local", .ranks = 1, .batch = 2}, &narrow_values, NULL},
    {{.strategy = "ulysses", .ranks = 2, .hp = 2, .batch = 2}, &shapes[1], NULL},
    {{.strategy = "megatron-sp", .ranks = 2, .tp = 2, .batch = 2}, &shapes[1], NULL},
    {{.strategy = "upipe", .ranks = 2, .hp = 2, .batch = 2}, &shapes[1], NULL},
    {{.strategy = "sppo", .ranks = 2, .tp = 2, .subsequences = 3, .batch = 2}, &shapes[1], NULL},
    {{.strategy = "ring", .ranks = 2, .cp = 2, .batch = 1, .layout = RING_STRIPED},
     &shapes[1],
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
        struct request request = request_of(&fused_uses[i].use, fused_uses[i].model, i);
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

/* cuDNN warns of a causal mask of one query; a document of one token needs none. */
static void documents_of_one_token_need_no_mask(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh cp=1\n"
        "tokens layout=contiguous cp=1 hp=1 seq=8 batch=1 micro_batch=1 dtype=bf16\n"
        "documents lengths=%s\nstream compute compute\n"
        "buffer q0 hbm bf16 [64] activation persistent\n"
        "buffer o0 hbm bf16 [64] activation persistent\n"
        "buffer l0 hbm f32 [8] activation persistent\n"
        "op 0 attention compute q=8 kv=8 heads=1 kv_heads=1 dim=8 mask=documents "
        "reads q0 q0 q0 writes o0 l0\n";
    static const char *const lengths[] = {"1,1,1,1,1,1,1,1", "1,3,1,3"};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        char schedule[1024];
        struct hand h;
        snprintf(schedule, sizeof schedule, text, lengths[i]);
        if (hand_load(&h, schedule)) {
            h.options.attention = EXEC_ATTENTION_FUSED;
            hand_run_and_check_message(lengths[i], &h, STATUS_OK, "");
        }
        hand_release(&h);
    }
}

enum { ROWS = 4, HEAD = 8 };

static enum status fill_ones(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)user;
    (void)diag;
    for (uint64_t i = 0; i < buffer->element_count; i++)
        number_write_element(buffer->data, buffer->dtype, i, 1);
    return STATUS_OK;
}

/* Checks that the first row of o, the only one that sees keys, is 1, and that the others are 0. Skips other buffers. */
static enum status check_only_first_row_of_o_is_set(void *user, const struct exec_buffer *buffer,
                                                    struct diag *diag)
{
    (void)diag;
    if (strcmp(buffer->ir->bundle[buffer->buffer_binding->bundle].name, "o") != 0)
        return STATUS_OK;
    for (uint64_t i = 0; i < ROWS * HEAD; i++)
        CHECK_CLOSE("o", number_read_element(buffer->data, buffer->dtype, i), i < HEAD ? 1 : 0, 0);
    ++*(uint32_t *)user;
    return STATUS_OK;
}

/* Token 4 is of the document of the keys 0 .. 3; tokens 5 .. 7 are of another, and their rows become 0. */
static void rows_that_see_no_document_are_cleared(void)
{
    static const char text[] =
        "longhaul schedule 1\nmesh cp=1\n"
        "tokens layout=contiguous cp=1 hp=1 seq=8 batch=1 micro_batch=1 dtype=bf16\n"
        "documents lengths=5,3\nstream compute compute\n"
        "tensor x [1,32]\nbundle x first=x count=1 elements=32\n"
        "tensor o [1,32]\nbundle o first=o count=1 elements=32\n"
        "buffer x0 hbm bf16 [32] activation bind=param bundle=x\n"
        "buffer o0 hbm bf16 [32] activation bind=param bundle=o\n"
        "buffer l0 hbm f32 [4] activation persistent\n"
        "op 0 attention compute q=4 kv=4 heads=1 kv_heads=1 dim=8 mask=documents q_first=4 "
        "reads x0 x0 x0 writes o0 l0\n";
    struct hand h;
    uint32_t looked = 0;
    if (hand_load(&h, text)) {
        h.io = (struct exec_io){&looked, fill_ones,  check_only_first_row_of_o_is_set,
                                0,       UINT32_MAX, NULL};
        h.options.attention = EXEC_ATTENTION_FUSED;
        CHECK_INT("run", hand_run(&h), STATUS_OK);
        CHECK_TEXT("without a message", h.diag.text ? h.diag.text : "", "");
        CHECK_INT("looked", looked, 1);
    }
    hand_release(&h);
}

/* Backwards of documents are refused for the same versions and shapes as those of one sequence. */
static void backwards_of_documents_keep_the_rules_of_versions(void)
{
    static const struct {
        const char *label;
        int version;
        struct attention_documents documents;
        const char *why; /* NULL: it is computed */
    } rows[] = {
        {"9.15.0, keys of any number",
         91500,
         {.count = 2, .most_q = 256, .most_kv = 256, .mask = FUSED_MASK_CAUSAL_FROM_START},
         "touches memory that is not its own in attention's backward when the keys are no multiple "
         "of 128"},
        {"9.15.0, whole tiles",
         91500,
         {.count = 2, .most_q = 256, .most_kv = 256, .has_whole_kv_tiles = true},
         NULL},
        {"9.15.1", 91501, {.count = 2, .most_q = 96, .most_kv = 96}, NULL},
        {"one token each",
         91501,
         {.count = 2, .most_q = 1, .most_kv = 1},
         "cuDNN has no backward of one query and one key"},
    };
    static _Alignas(16) float memory[4];
    struct work work = {.kind = WORK_ATTENTION_BACKWARD,
                        .attention = {512, 512, 4, 2, 64, MASK_DOCUMENTS, 0, 0}};
    struct call call = {.work = &work, .op = 7, .read_count = 6, .write_count = 3};
    for (uint32_t k = 0; k < CALL_OPERANDS_MAX; k++)
        call.read[k] = call.write[k] = (struct operand){memory, 1, DTYPE_BF16};
    const int version = emulator_versions.cudnn;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag diag = {0};
        emulator_versions.cudnn = rows[i].version;
        struct products *products = products_new(cublaslt_open(&diag), &diag);
        struct attentions *all = attentions_new(products, EXEC_ATTENTION_FUSED, &diag);
        CHECK_INT(rows[i].label, attention_new(all, &call, &rows[i].documents, &diag) == NULL,
                  rows[i].why != NULL);
        CHECK(rows[i].label,
              rows[i].why == NULL || (diag.text != NULL && strstr(diag.text, rows[i].why) != NULL));
        attentions_free(all);
        products_free(products);
        diag_release(&diag);
    }
    emulator_versions.cudnn = version;
}
#endif

static const struct check_case cases[] = {
    {"windows in tiles compute the reference", windows_in_tiles_compute_the_reference},
    {"documents compute the reference", documents_compute_the_reference},
#ifdef HAVE_CUDNN
    {"fused attention takes whole documents", fused_attention_takes_whole_documents},
    {"documents of one token need no mask", documents_of_one_token_need_no_mask},
    {"rows that see no document are cleared", rows_that_see_no_document_are_cleared},
    {"backwards of documents keep the rules of versions",
     backwards_of_documents_keep_the_rules_of_versions},
#endif
};

int main(int argc, char **argv)
{
    emulator_use();
    matrix_backend = hand_backend = "cuda";
    return check_run("cuda emulated documents", cases, ARRAY_LEN(cases), argc, argv);
}
