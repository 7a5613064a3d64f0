/* tests/exec/test_poison.c: a run with poisoned memory reports the first element that an op reads before anything has
 * written it. */
#include "tests/exec/hand.h"

#define HEAD                                                                                       \
    "longhaul schedule 1\nmesh g=2\ngroup g axes=g\nstream compute compute\nstream comm comm\n"

static const struct {
    const char *label, *text, *message;
} rows[] = {
    {"nothing wrong",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm bf16 [4] activation\n"
     "op 0 fill compute count=4 writes a0\n"
     "op 1 cast compute count=4 reads a0 writes b0\n",
     ""},
    {"read before it is written",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [4] activation\n"
     "op 0 cast compute count=4 reads a0 writes b0\n",
     "reads element 0 of buffer a0, which nothing has written"},
    {"half of it written",
     "buffer a0 hbm f32 [8] activation\nbuffer b0 hbm f32 [8] activation\n"
     "op 0 fill compute count=5 writes a0[0:5]\n"
     "op 1 cast compute count=8 reads a0 writes b0\n",
     "reads element 5 of buffer a0, which nothing has written"},
    {"half of it written, in 16 bits",
     "buffer a0 hbm bf16 [8] activation\nbuffer b0 hbm f32 [8] activation\n"
     "op 0 fill compute count=5 writes a0[0:5]\n"
     "op 1 cast compute count=6 reads a0[2:] writes b0[0:6]\n",
     "reads element 5 of buffer a0, which nothing has written"},
    {"memory taken by another buffer",
     "arena hbm=64\n"
     "buffer a0 hbm f32 [8] activation persistent at=0\n"
     "buffer b0 hbm f32 [4] activation persistent at=16\n"
     "buffer c0 hbm f32 [8] activation persistent at=32\n"
     "op 0 fill compute count=8 writes a0\n"
     "op 1 fill compute count=4 writes b0\n"
     "op 2 cast compute count=8 reads a0 writes c0\n",
     "reads element 4 of buffer a0, over which buffer b0 has been written since"},
    {"guarded out on one rank",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [4] activation\n"
     "op 0 fill compute count=4 guard g<1 writes a0\n"
     "op 1 cast compute count=4 reads a0 writes b0\n",
     "rank 1: op 1 (cast, stream compute) reads element 0 of buffer a0, which nothing has written"},
    {"a broadcast is read at its root alone",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [4] activation\n"
     "op 0 fill compute count=4 guard g==1 writes a0\n"
     "op 1 broadcast comm group=g bytes=16 root=1 waits 0 reads a0 writes b0\n",
     ""},
    {"a scatter is read at its root alone",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [2] activation\n"
     "op 0 fill compute count=4 guard g==1 writes a0\n"
     "op 1 scatter comm group=g bytes=16 root=1 waits 0 reads a0 writes b0\n",
     ""},
    {"a sum at the root is written there",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [4] activation\n"
     "buffer c0 hbm f32 [4] activation\n"
     "op 0 fill compute count=4 writes a0\n"
     "op 1 reduce comm group=g bytes=16 root=1 waits 0 reads a0 writes b0\n"
     "op 2 cast compute count=4 guard g==1 waits 1 reads b0 writes c0\n",
     ""},
    {"a sum at the root is written nowhere else",
     "buffer a0 hbm f32 [4] activation\nbuffer b0 hbm f32 [4] activation\n"
     "buffer c0 hbm f32 [4] activation\n"
     "op 0 fill compute count=4 writes a0\n"
     "op 1 reduce comm group=g bytes=16 root=1 waits 0 reads a0 writes b0\n"
     "op 2 cast compute count=4 guard g<1 waits 1 reads b0 writes c0\n",
     "reads element 0 of buffer b0, which nothing has written"},
    {"a sum of what was not written",
     "buffer a0 hbm f32 [4] activation\n"
     "op 0 all_reduce comm group=g bytes=16 reads a0 writes a0\n",
     "reads element 0 of buffer a0, which nothing has written"},
};

static void poison_reveals_unwritten_reads(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct hand h;
        char text[1024];
        snprintf(text, sizeof text, "%s%s", HEAD, rows[i].text);
        if (hand_load(&h, text)) {
            h.options.finds_unwritten_reads = true;
            h.options.measured_steps = 2; /* poison fills memory before the second step, too */
            bool wrong = rows[i].message[0] != '\0';
            CHECK_INT(rows[i].label, hand_run(&h), wrong ? STATUS_NO : STATUS_OK);
            const char *said = h.diag.text ? h.diag.text : "";
            if (!CHECK(rows[i].label, wrong ? strstr(said, rows[i].message) != NULL : *said == 0))
                fputs(said, stderr);
        }
        hand_release(&h);
    }
}

static void unpoisoned_run_reports_no_reads(void)
{
    struct hand h;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", HEAD, rows[1].text);
    if (hand_load(&h, text))
        hand_run_and_check_message("no poison", &h, STATUS_OK, "");
    hand_release(&h);
}

static const struct check_case cases[] = {
    {"reads before writes are found", poison_reveals_unwritten_reads},
    {"without poison nothing is said", unpoisoned_run_reports_no_reads},
};
CHECK_MAIN("poison", cases)
