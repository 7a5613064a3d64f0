/* tests/exec/test_bindings.c: parameters, tokens and gradients are put into the buffers of ranks and gathered from
 * them, as the bindings of a schedule say. */
#include "tests/exec/hand.h"

#include "exec/bindings.h"

#include <stdlib.h>

/* The test's parameters on a 3 x 2 mesh. Over tp, w is cut by rows and u by columns; v is whole. They lie end to end,
 * padded to 18 elements. The parameters are cut into equal ranges over the 3 ranks of dp. */
static const char parts[] =
    "longhaul schedule 1\n"
    "mesh dp=3 tp=2\n"
    "tokens layout=contiguous cp=1 hp=1 seq=4 batch=6 micro_batch=1 dtype=f32\n"
    "group f axes=dp\n"
    "stream compute compute\n"
    "tensor w [4,3] cut_rows=tp\n"
    "tensor u [2,4] cut_cols=tp\n"
    "tensor v [5,1]\n"
    "bundle all first=w count=3 elements=18\n" /* 6 + 4 + 5, 3 more */
    "buffer param hbm f32 [6] parameter bind=param bundle=all shard=f\n"
    "buffer master hbm f32 [18] parameter bind=master bundle=all\n"
    "buffer grad hbm f32 [18] gradient bind=grad bundle=all partial=dp\n"
    "buffer tokens hbm i32 [8] input bind=tokens\n"
    "buffer loss hbm f32 [1] input bind=loss partial=dp\n"
    "op 0 fill compute count=18 writes master\n"
    "op 1 add compute count=6 reads param param writes grad[0:6]\n";

static void tensors_go_out_in_parts_and_come_back(void)
{
    struct hand h;
    if (hand_load(&h, parts)) {
        double w[12], u[8], v[5], got_w[12], got_u[8], got_v[5], g_w[12], g_u[8], g_v[5];
        const double *param[] = {w, u, v};
        double *got[] = {got_w, got_u, got_v}, *grad[] = {g_w, g_u, g_v};
        int32_t tokens[24];
        for (int i = 0; i < 24; i++)
            tokens[i] = i;
        for (int i = 0; i < 12; i++)
            w[i] = 1 + i;
        for (int i = 0; i < 8; i++)
            u[i] = 101 + i;
        for (int i = 0; i < 5; i++)
            v[i] = 201 + i;
        struct bindings b = {.ir = &h.ir, .params = param, .tokens = tokens};
        b.collected[BINDING_PARAM] = got;
        b.collected[BINDING_GRAD] = grad;
        CHECK_INT("check", bindings_check(&b, "hand.ir", &h.diag), STATUS_OK);
        h.io = (struct exec_io){&b, bindings_fill_buffer, bindings_collect_buffer,
                                0,  UINT32_MAX,           NULL};
        hand_run_and_check_message("run", &h, STATUS_OK, "");
        CHECK("w", memcmp(w, got_w, sizeof w) == 0);
        CHECK("u", memcmp(u, got_u, sizeof u) == 0);
        CHECK("v", memcmp(v, got_v, sizeof v) == 0);
        /* The first 6 elements of grad are each rank's half of w. Op 1 writes there twice the rank's shard of all
         * parameters, and the three ranks of dp add up theirs. Their shards begin with w[0], u[0] and v[2]. */
        CHECK_CLOSE("partial sums are added", g_w[0], 2 * (1 + 101 + 203), 0);
        CHECK_INT("replicas", (int64_t)b.differing_replica_elements, 0);
    }
    hand_release(&h);
}

/* ---- tokens, and cuts that are refused ---- */

struct seen {
    const char *name;
    int32_t value[8][64]; /* (rank, element) */
};

static enum status check_collected_buffer(void *user, const struct exec_buffer *buffer,
                                          struct diag *diag)
{
    struct seen *seen = user;
    char name[32];
    (void)diag;
    ir_buffer_name(buffer->ir, (buffer_id){buffer->buffer}, name, sizeof name);
    if (strcmp(name, seen->name) == 0)
        memcpy(seen->value[buffer->rank], buffer->data, buffer->element_count * sizeof(int32_t));
    return STATUS_OK;
}

static struct bindings *filling;

static enum status fill_buffer(void *user, const struct exec_buffer *buffer, struct diag *diag)
{
    (void)user;
    return bindings_fill_buffer(filling, buffer, diag);
}

static void run_and_record_bound_elements(const char *text, struct seen *seen)
{
    struct hand h;
    if (hand_load(&h, text)) {
        int32_t tokens[64];
        for (int i = 0; i < 64; i++)
            tokens[i] = 1000 + i;
        struct bindings b = {.ir = &h.ir, .tokens = tokens};
        CHECK_INT("check", bindings_check(&b, "hand.ir", &h.diag), STATUS_OK);
        filling = &b;
        h.io = (struct exec_io){seen, fill_buffer, check_collected_buffer, 0, UINT32_MAX, NULL};
        hand_run_and_check_message("run", &h, STATUS_OK, "");
    }
    hand_release(&h);
}

#define ZIGZAG                                                                                     \
    "longhaul schedule 1\nmesh dp=2 cp=2 hp=2\n"                                                   \
    "tokens layout=zigzag cp=2 hp=2 seq=8 batch=4 micro_batch=1 dtype=f32\n"                       \
    "group hp axes=hp\nstream compute compute\n"                                                   \
    "buffer tokens hbm i32 [4] input bind=tokens\n"                                                \
    "buffer labels hbm i32 [4] input bind=labels\n"                                                \
    "buffer positions hbm i32 [2] input bind=positions\n"                                          \
    "buffer all_positions hbm i32 [4] input bind=positions gathered=hp\n"                          \
    "buffer a0 hbm f32 [4] activation persistent\nop 0 fill compute count=4 writes a0\n"

/* Context rank 0 owns tokens 0 1 6 7 of 8 and context rank 1 owns 2 3 4 5; each of its two head ranks has two of the
 * four. dp rank 0 has sequences 0 and 1, dp rank 1 has 2 and 3. A rank's number is 4 dp + 2 cp + hp. */
static void tokens_follow_the_layout(void)
{
    struct seen seen = {.name = "tokens"};
    run_and_record_bound_elements(ZIGZAG, &seen);
    static const int32_t first[] = {1000, 1001, 1008, 1009}, last[] = {1020, 1021, 1028, 1029};
    CHECK("rank 0", memcmp(seen.value[0], first, sizeof first) == 0);
    CHECK("rank 7", memcmp(seen.value[7], last, sizeof last) == 0);

    seen = (struct seen){.name = "labels"};
    run_and_record_bound_elements(ZIGZAG, &seen);
    static const int32_t ends[] = {1007, -1, 1015, -1}; /* after tokens 6 and 7 */
    CHECK("the last label is ignored", memcmp(seen.value[1], ends, sizeof ends) == 0);

    seen = (struct seen){.name = "positions"};
    run_and_record_bound_elements(ZIGZAG, &seen);
    CHECK("own", seen.value[1][0] == 6 && seen.value[1][1] == 7 && seen.value[2][0] == 2);

    seen = (struct seen){.name = "all_positions"};
    run_and_record_bound_elements(ZIGZAG, &seen);
    static const int32_t gathered[] = {0, 1, 6, 7};
    CHECK("gathered, on both", memcmp(seen.value[0], gathered, sizeof gathered) == 0 &&
                                   memcmp(seen.value[1], gathered, sizeof gathered) == 0);
}

static void chunks_are_gathered_in_sequence(void)
{
    struct seen seen = {.name = "all"};
    run_and_record_bound_elements(
        "longhaul schedule 1\nmesh hp=2\n"
        "tokens layout=rank_ordinal cp=1 hp=2 chunks=2 seq=8 batch=1 micro_batch=1 dtype=f32\n"
        "group hp axes=hp\nstream compute compute\n"
        "buffer own hbm i32 [4] input bind=positions\n"
        "buffer all hbm i32 [8] input bind=positions gathered=hp\n"
        "buffer a0 hbm f32 [4] activation persistent\nop 0 fill compute count=4 writes a0\n",
        &seen);
    for (int32_t i = 0; i < 8; i++)
        CHECK_INT("in order", seen.value[1][i], i);
}

static void indivisible_tensor_cuts_are_refused(void)
{
    struct hand h;
    if (hand_load(&h, "longhaul schedule 1\nmesh tp=2\n"
                      "tokens layout=contiguous cp=1 hp=1 seq=4 batch=1 micro_batch=1 dtype=f32\n"
                      "stream compute compute\ntensor w [4,3] cut_cols=tp\n"
                      "bundle all first=w count=1 elements=6\n"
                      "buffer a hbm f32 [6] parameter bind=param bundle=all\n")) {
        struct bindings b = {.ir = &h.ir};
        CHECK_INT("check", bindings_check(&b, "hand.ir", &h.diag), STATUS_BAD_INPUT);
        CHECK_TEXT("message", h.diag.text,
                   "hand.ir: error: dimension 1 of tensor w, 3, is cut over 2 ranks, which do not "
                   "divide it\n");
    }
    hand_release(&h);
}

static const struct check_case cases[] = {
    {"tensors go out in parts and come back", tensors_go_out_in_parts_and_come_back},
    {"tokens follow the layout", tokens_follow_the_layout},
    {"chunks are gathered in sequence", chunks_are_gathered_in_sequence},
    {"what does not fit is refused", indivisible_tensor_cuts_are_refused},
};
CHECK_MAIN("bindings", cases)
