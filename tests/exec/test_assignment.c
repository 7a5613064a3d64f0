/* tests/exec/test_assignment.c: a schedule that cannot run is refused before anything runs, with a message that names
 * the fault; sends and receives of a channel are matched in order. */
#include "exec/assignment.h"
#include "tests/exec/hand.h"

#define HEAD                                                                                       \
    "longhaul schedule 1\nmesh g=2\ngroup g axes=g\ngroup half axes=g:0\n"                         \
    "stream compute compute\nstream comm comm\nstream h2d h2d\n"                                   \
    "buffer a0 hbm f32 [12] activation persistent\nbuffer b0 hbm f32 [12] activation persistent\n" \
    "buffer h0 hbm bf16 [12] activation persistent\nbuffer i0 hbm i32 [12] input persistent\n"

static const struct {
    const char *label, *op, *message;
} rows[] = {
    {"a view of another size", "op 0 fill compute count=8 writes a0\n",
     "hand.ir: error: op 0 (fill): write 0 is 12 elements of f32 in a0; its shape needs 8 of a "
     "floating-point type\n"},
    {"an index that is none", "op 0 rope compute rows=3 heads=1 dim=4 reads a0 b0[0:3] writes b0\n",
     "hand.ir: error: op 0 (rope): read 1 is 3 elements of f32 in b0; its shape needs 3 of i32\n"},
    {"a number that is an index", "op 0 add compute count=12 reads a0 i0 writes b0\n",
     "hand.ir: error: op 0 (add): read 1 is 12 elements of i32 in i0; its shape needs 12 of a "
     "floating-point type\n"},
    {"operands that the shape does not ask for",
     "op 0 matmul compute m=3 n=4 k=4 reads a0 b0[0:4] b0[0:4] writes a0\n",
     "hand.ir: error: op 0 (matmul) has 3 reads and 1 writes; its shape needs 2 and 1\n"},
    {"an odd rotation", "op 0 rope compute rows=4 heads=1 dim=3 reads a0 i0[0:4] writes b0\n",
     "hand.ir: error: op 0 (rope) cannot be executed: it needs heads of an even dim\n"},
    {"heads that do not divide",
     "op 0 attention compute q=1 kv=1 heads=3 kv_heads=2 dim=4 mask=full reads a0 b0[0:8] b0[0:8] "
     "writes a0 b0[0:3]\n",
     "hand.ir: error: op 0 (attention) cannot be executed: the heads of keys must divide those of "
     "queries\n"},
    {"a copy that would convert", "op 0 pack compute rows=3 parts=2 w0=2 reads a0 writes h0\n",
     "hand.ir: error: op 0 (pack) moves f32 into bf16; a cast would convert it\n"},
    {"pieces that do not divide",
     "op 0 all_to_all comm group=g bytes=12 reads a0[0:3] writes b0[0:3]\n",
     "hand.ir: error: op 0 (all_to_all) cannot be executed: every member must get whole "
     "elements\n"},
    {"a gather into too little", "op 0 all_gather comm group=g bytes=48 reads a0 writes b0\n",
     "hand.ir: error: op 0 (all_gather): write 0 is 12 elements of f32 in b0; its shape needs 96 "
     "bytes of any type\n"},
    {"a count of bytes that is not the operand's",
     "op 0 h2d h2d bytes=16 reads a0[0:3] writes b0[0:3]\n",
     "hand.ir: error: op 0 (h2d): read 0 is 3 elements of f32 in a0; its shape needs 16 bytes of "
     "any type\n"},
    {"a loss that adds to nothing",
     "op 0 cross_entropy compute rows=1 vocab=4 count=1 reads a0[0:4] i0[0:1] b0[0:1] writes "
     "b0[0:1] "
     "b0[1:2]\n",
     "hand.ir: error: op 0 (cross_entropy) has 3 reads and 2 writes; its shape needs 2 and 2 to "
     "4\n"},
    {"moments in 8 bits",
     "buffer m0 hbm u8 [16] optimizer persistent\n"
     "op 0 adamw compute count=12 states=8bit reads a0 b0 m0 m0 writes b0 m0 m0\n",
     "hand.ir: error: op 0 (adamw) keeps its moments in 8 bits, which no backend computes; a "
     "schedule of --states fp32 or bf16 would do\n"},
    {"a group without the rank", "op 0 all_reduce comm group=half bytes=48 reads a0 writes a0\n",
     "hand.ir: error: op 0 is in group half, in which rank 1 is not\n"},
    {"a root that is not there", "op 0 broadcast comm group=g bytes=48 root=2 reads a0 writes b0\n",
     "hand.ir: error: op 0 has root=2, but group g has only 2 members\n"},
    {"a send past the end", "op 0 send comm group=g by=+1 bytes=48 reads a0\n",
     "hand.ir: error: op 0 (send) on rank 1 reaches past the end of group g\n"},
};

static void unexecutable_ops_are_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hand h;
        char text[1024];
        snprintf(text, sizeof text, "%s%s", HEAD, rows[i].op);
        if (hand_load(&h, text))
            hand_run_and_check_message(rows[i].label, &h, STATUS_BAD_INPUT, rows[i].message);
        hand_release(&h);
    }
}

static void arenas_must_be_planned_and_hold_their_buffers(void)
{
    static const struct {
        const char *label, *buffer, *message;
    } arenas[] = {
        {"no place", "buffer a0 hbm f32 [4] activation persistent\n",
         "hand.ir: error: op 0 uses buffer a0, which has no place in an arena; plan the arenas "
         "first\n"},
        {"behind the end", "buffer a0 hbm f32 [4] activation persistent at=64\n",
         "hand.ir: error: buffer a0, 16 bytes at byte 64, ends after its arena of 64 bytes\n"},
        {"not aligned", "buffer a0 hbm f32 [4] activation persistent at=4\n",
         "hand.ir: error: buffer a0 lies at byte 4 of its arena; a multiple of 16 would do\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(arenas); i++) {
        struct hand h;
        char text[512];
        snprintf(text, sizeof text,
                 "longhaul schedule 1\narena hbm=64\nstream compute compute\n%s"
                 "op 0 fill compute count=4 writes a0\n",
                 arenas[i].buffer);
        if (hand_load(&h, text))
            hand_run_and_check_message(arenas[i].label, &h, STATUS_BAD_INPUT, arenas[i].message);
        hand_release(&h);
    }
}

static void messages_match_first_in_first_out(void)
{
    struct hand h;
    struct assignment assignment;
    if (hand_load(&h, HEAD "op 0 send comm group=g by=+1 bytes=16 guard g<1 reads a0[0:4]\n"
                           "op 1 send comm group=g by=+1 bytes=16 channel=7 guard g<1 "
                           "reads a0[0:4]\n"
                           "op 2 send comm group=g by=+1 bytes=16 guard g<1 reads a0[4:8]\n"
                           "op 3 recv comm group=g by=-1 bytes=16 guard g>=1 writes b0[0:4]\n"
                           "op 4 recv comm group=g by=-1 bytes=16 guard g>=1 writes b0[4:8]\n")) {
        CHECK_INT("plan", assignment_init(&assignment, &h.ir, "hand.ir", &h.diag), STATUS_OK);
        CHECK_INT("messages", assignment.message_count, 3);
        CHECK_INT("first", assignment_message_index(&assignment, 0, 0),
                  assignment_message_index(&assignment, 1, 3));
        CHECK_INT("second", assignment_message_index(&assignment, 0, 2),
                  assignment_message_index(&assignment, 1, 4));
        CHECK_INT("the other channel has no receiver",
                  assignment.messages[assignment_message_index(&assignment, 0, 1)].recv_op,
                  IR_NONE);
        assignment_release(&assignment);
    }
    hand_release(&h);
}

static const struct check_case cases[] = {
    {"what cannot run is refused", unexecutable_ops_are_refused},
    {"arenas must be planned and hold their buffers",
     arenas_must_be_planned_and_hold_their_buffers},
    {"messages match first in first out", messages_match_first_in_first_out},
};
CHECK_MAIN("plan", cases)
