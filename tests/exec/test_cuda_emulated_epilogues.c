/* tests/exec/test_cuda_emulated_epilogues.c: products whose call computes the next op, too: which ops may be, that a step
 * is right with them and without, and what a run says of them. */
#include "exec/cuda/epilogues.h"
#include "tests/exec/emulator/emulator.h"
#include "tests/exec/hand.h"
#include "tests/exec/step.h"

/* ---- which ops may be ---- */

#define HEAD                                                                                       \
    "longhaul schedule 1\nmesh g=1\nstream compute compute\nstream h2d h2d\n"                      \
    "arena hbm=65536\n"                                                                            \
    "buffer x0 hbm bf16 [32,16] activation persistent at=0\n"                                      \
    "buffer w0 hbm bf16 [24,16] activation persistent at=1024\n"                                   \
    "buffer b0 hbm bf16 [24] activation persistent at=2048\n"                                      \
    "buffer up0 hbm bf16 [32,24] activation persistent at=4096\n"                                  \
    "buffer act0 hbm bf16 [32,24] activation persistent at=8192\n"                                 \
    "buffer over0 hbm bf16 [32,24] activation persistent at=512\n"                                 \
    "buffer act1 hbm f32 [32,24] activation persistent at=12288\n"                                 \
    "buffer dw0 hbm f32 [24,16] activation persistent at=20480\n"                                  \
    "buffer db0 hbm f32 [24] activation persistent at=24576\n"                                     \
    "buffer dw1 hbm bf16 [24,16] activation persistent at=28672\n"                                 \
    "buffer db1 hbm bf16 [24] activation persistent at=30720\n"                                    \
    "buffer c0 pinned bf16 [24] activation persistent at=0\n"
#define PRODUCT "op 0 matmul compute m=32 n=24 k=16 epilogue=bias reads x0 w0 b0 writes up0\n"
#define GRADIENT "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw0\n"
#define GELU "op 1 gelu compute rows=32 cols=24 reads up0 writes act0\n"
#define SUM "op 1 column_sum compute rows=32 cols=24 reads up0 writes db0\n"

static const struct {
    const char *label, *ops;
    enum product_epilogue want;
} pairs[] = {
    {"GELU of a product", PRODUCT GELU, PRODUCT_GELU},
    {"and without a bias", "op 0 matmul compute m=32 n=24 k=16 reads x0 w0 writes up0\n" GELU,
     PRODUCT_GELU},
    {"another function",
     PRODUCT "op 1 gelu compute rows=32 cols=24 function=relu2 reads up0 writes act0\n",
     PRODUCT_ALONE},
    {"into another type", PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes act1\n",
     PRODUCT_ALONE},
    {"of half of the result",
     PRODUCT "op 1 gelu compute rows=16 cols=24 reads up0[0:384] writes act0[0:384]\n",
     PRODUCT_ALONE},
    {"of something else", PRODUCT "op 1 gelu compute rows=32 cols=24 reads act0 writes up0\n",
     PRODUCT_ALONE},
    {"over a factor, which the product still reads",
     PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes over0\n", PRODUCT_ALONE},
    {"over its own input", PRODUCT "op 1 gelu compute rows=32 cols=24 reads up0 writes up0\n",
     PRODUCT_ALONE},
    {"after an op of another stream",
     "op 0 h2d h2d bytes=48 reads c0 writes b0\n"
     "op 1 matmul compute m=32 n=24 k=16 reads x0 w0 writes up0\n"
     "op 2 gelu compute rows=32 cols=24 reads up0 writes act0 waits 0\n",
     PRODUCT_ALONE},
    {"one that the product waits for",
     "op 0 h2d h2d bytes=48 reads c0 writes b0\n"
     "op 1 matmul compute m=32 n=24 k=16 epilogue=bias reads x0 w0 b0 writes up0 waits 0\n"
     "op 2 gelu compute rows=32 cols=24 reads up0 writes act0\n",
     PRODUCT_GELU},
    {"another op between",
     PRODUCT "op 1 h2d h2d bytes=48 reads c0 writes b0\n"
             "op 2 gelu compute rows=32 cols=24 reads up0 writes act0\n",
     PRODUCT_ALONE},
    {"a sum that is added to",
     "op 0 matmul compute m=32 n=24 k=16 accumulate=1 reads x0 w0 up0 writes up0\n" GELU,
     PRODUCT_ALONE},
    {"gradient of a bias", GRADIENT SUM, PRODUCT_COLUMN_SUM},
    {"and added to one before",
     GRADIENT "op 1 column_sum compute rows=32 cols=24 accumulate=1 reads up0 db0 writes db0\n",
     PRODUCT_COLUMN_SUM},
    {"in 16 bits",
     "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw1\n"
     "op 1 column_sum compute rows=32 cols=24 reads up0 writes db1\n",
     PRODUCT_COLUMN_SUM},
    {"added up in 16 bits, which would round twice",
     "op 0 matmul compute m=24 n=16 k=32 form=tn reads up0 x0 writes dw1\n"
     "op 1 column_sum compute rows=32 cols=24 accumulate=1 reads up0 db1 writes db1\n",
     PRODUCT_ALONE},
    {"of another type than the weight's",
     GRADIENT "op 1 column_sum compute rows=32 cols=24 reads up0 writes db1\n", PRODUCT_ALONE},
    {"of the other factor",
     GRADIENT "op 1 column_sum compute rows=32 cols=16 reads x0 writes db0[0:16]\n", PRODUCT_ALONE},
    {"of a forward's factor", "op 0 matmul compute m=32 n=16 k=24 reads up0 w0 writes x0\n" SUM,
     PRODUCT_ALONE},
    {"of each group",
     "op 0 matmul compute m=24 n=16 k=32 form=tn groups=2 reads up0 x0 writes act0[0:768]\n" SUM,
     PRODUCT_ALONE},
    {"the last op", PRODUCT, PRODUCT_ALONE},
};

static void neighbours_are_joined_where_nothing_separates_them(void)
{
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        char text[4096];
        struct ir ir = {0};
        struct diag diag = {0};
        snprintf(text, sizeof text, "%s%s", HEAD, pairs[i].ops);
        if (CHECK_INT(pairs[i].label, ir_parse(&ir, "pair.ir", text, strlen(text), &diag),
                      STATUS_OK)) {
            uint32_t product = 0;
            while (ir.op.kind[product] != WORK_MATMUL)
                product++;
            CHECK_INT(pairs[i].label, epilogue_of(&ir, product), pairs[i].want);
        } else {
            fputs(diag.text, stderr);
        }
        ir_release(&ir);
        diag_release(&diag);
    }
}

/* ---- whole steps ---- */

struct step_row {
    const char *label, *strategy, *profile, *by_products;
    enum dtype dtype;
    int64_t ranks, batch;
    int activations; /* enum activations_choice; -1: the strategy's */
    double tolerance;
};

/* A sum that is added to one in 16 bits is apart. So is, with tensor ranks, that of a bias after a scatter, which is
 * over other rows than the product's, and a GELU of 12 columns, which is no multiple of 8. FPDT adds up gradients of
 * pieces by ops of their own, and has a GELU that waits for a copy. */
static const struct step_row steps[] = {
    {"one rank", "local", "neutral", "gelu 4 of 4, column_sum 8 of 8", DTYPE_F32, 1, 1, -1, 2e-4},
    {"bf16", "local", "neutral", "gelu 4 of 4, column_sum 8 of 8", DTYPE_BF16, 1, 1, -1, 4e-2},
    {"bf16 gradients", "local", "internevo", "gelu 12 of 12, column_sum 8 of 24", DTYPE_BF16, 1, 3,
     -1, 4e-2},
    {"three micro-batches", "local", "neutral", "gelu 12 of 12, column_sum 24 of 24", DTYPE_F32, 1,
     3, -1, 2e-4},
    {"sharded", "ulysses", "deepspeed", "gelu 4 of 4, column_sum 8 of 8", DTYPE_F32, 2, 1, -1,
     2e-4},
    {"tensor ranks", "megatron-sp", "megatron", "gelu 0 of 4, column_sum 4 of 8", DTYPE_F32, 2, 1,
     -1, 2e-4},
    {"chunks", "fpdt", "deepspeed", "gelu 10 of 12, column_sum 2 of 12", DTYPE_F32, 2, 1, -1, 2e-4},
};

#define NO_ALGORITHM(what, count)                                                                  \
    "epilogues: note: cuBLASLt computes " what " with " count                                      \
    " products; for the others it has no algorithm, and a kernel of its own computes it\n"

/* Checks that ops which a product computes end with it. Returns how many there are. */
static uint32_t check_times(const char *label, const struct executed_step *step)
{
    const struct trace_ops *ops = &step->result.trace.ops;
    uint32_t count = 0;
    for (size_t i = 0; i < ops->count; i++) {
        const uint32_t op = ops->op[i];
        if (op == 0 || step->ir.op.kind[op - 1] != WORK_MATMUL ||
            epilogue_of(&step->ir, op - 1) == PRODUCT_ALONE)
            continue;
        for (size_t k = 0; k < ops->count; k++)
            if (ops->rank[k] == ops->rank[i] && ops->op[k] == op - 1) {
                CHECK(label, ops->start_s[i] == ops->end_s[i] && ops->end_s[i] == ops->end_s[k]);
                count++;
            }
    }
    return count;
}

static void run_step(const struct step_row *row, bool fused, const char *by_products,
                     const char *notes)
{
    struct executed_step step;
    struct diag noted = {0};
    struct request request = step_request(&small_gpt, row->ranks, 16);
    request.strategy = row->strategy;
    request.profile = row->profile;
    request.dtype = (int)row->dtype;
    request.activations = row->activations;
    request.global_batch = row->batch;
    if (step_make(&step, row->label, &request)) {
        step.options.backend = "cuda";
        step.options.uses_epilogues = fused;
        step.options.trace = true;
        step.options.attention = EXEC_ATTENTION_TILES;
        step.options.notes = &noted;
        step_check(&step, row->label, row->tolerance);
        const char *said = trace_get(&step.result.trace, "by_products");
        CHECK_TEXT(row->label, said ? said : "", by_products);
        CHECK_TEXT(row->label, noted.text ? noted.text : "", notes);
        if (fused && notes[0] == '\0')
            CHECK(row->label, check_times(row->label, &step) > 0);
    }
    step_release(&step);
    diag_release(&noted);
}

static void steps_are_right_with_epilogues_and_without(void)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const bool narrow = strcmp(steps[i].label, "tensor ranks") == 0;
        run_step(&steps[i], true, steps[i].by_products,
                 narrow ? NO_ALGORITHM("GELU", "0 of 4") : "");
        run_step(&steps[i], false, "", "");
    }
}

static void what_the_library_cannot_has_kernels_of_its_own(void)
{
    emulator_epilogues = 0;
    run_step(&steps[0], true, "gelu 0 of 4, column_sum 0 of 8",
             NO_ALGORITHM("GELU", "0 of 4") NO_ALGORITHM("the gradient of a bias", "0 of 8"));
    emulator_epilogues = 1;
}

static const struct check_case cases[] = {
    {"neighbours are joined where nothing separates them",
     neighbours_are_joined_where_nothing_separates_them},
    {"steps are right with epilogues and without", steps_are_right_with_epilogues_and_without},
    {"what the library cannot has kernels of its own",
     what_the_library_cannot_has_kernels_of_its_own},
};

int main(int argc, char **argv)
{
    emulator_use();
    hand_backend = "cuda";
    return check_run("cuda emulated epilogues", cases, ARRAY_LEN(cases), argc, argv);
}
