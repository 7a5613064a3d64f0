/* tests/schedule/test_loops.c: loops of a schedule's text are written out as the flat list, which prints as loops
 * again. */
#include "schedule/analysis/liveness.h"
#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/schedule/composed.h"

#include <string.h>

/* Reads a text and prints it without loops into *out. Returns false, with the message in *out, when the text
 * cannot be read. */
static bool flatten(struct text *out, const char *text, size_t size)
{
    struct ir ir = {0};
    struct diag diag = {0};
    bool is_parsed = ir_parse(&ir, "t.ir", text, size, &diag) == STATUS_OK;
    if (is_parsed)
        ir_print(out, &ir);
    else
        text_puts(out, diag.text);
    text_putc(out, '\0');
    out->size--;
    diag_release(&diag);
    ir_release(&ir);
    return is_parsed;
}

/* ---- written by hand ---- */

#define HEAD                                                                                       \
    "longhaul schedule 2\n"                                                                        \
    "mesh g=1\n"                                                                                   \
    "stream compute compute\n"                                                                     \
    "stream d2h d2h\n"

#define FLAT_SCHEDULE_HEAD                                                                         \
    "longhaul schedule 1\n"                                                                        \
    "mesh g=1\n"                                                                                   \
    "stream compute compute\n"                                                                     \
    "stream d2h d2h\n"

/* A loop over layers 1 and 2, each of two ops. By the alias, ops 7 and 9 outside the loop stand for the two ops of
 * layer 0: layer 1 waits for op 7, and the buffer of layer 0 is free after op 9. */
static const char looped[] =
    HEAD "buffer y0 pinned u8 [8] workspace persistent\n"
         "loop B L=0..2\n"
         "  buffer x{2*L} hbm u8 [8] activation layer={L} free=A.1[L]\n"
         "end\n"
         "op 7 fill compute count=8 writes x0\n"
         "loop A L=1..2 # layers\n"
         "  op .0 fill compute count=8 waits A.0[L-1] writes x{2*L} layer={L}\n"
         "  op .1 d2h d2h bytes=8 waits .0 reads x{2*L} writes y0 layer={L}\n"
         "end\n"
         "op 9 fill compute count=8 waits A.1[2],@2 writes x0\n"
         "alias A[0] .0=7 .1=9\n";

static const char flat[] =
    FLAT_SCHEDULE_HEAD "buffer y0 pinned u8 [8] workspace persistent\n"
                       "buffer x0 hbm u8 [8] activation layer=0 free=5\n"
                       "buffer x2 hbm u8 [8] activation layer=1 free=2\n"
                       "buffer x4 hbm u8 [8] activation layer=2 free=4\n"
                       "op 0 fill compute count=8 writes x0\n"
                       "op 1 fill compute count=8 waits 0 writes x2 layer=1\n"
                       "op 2 d2h d2h bytes=8 waits 1 reads x2 writes y0 layer=1\n"
                       "op 3 fill compute count=8 waits 1 writes x4 layer=2\n"
                       "op 4 d2h d2h bytes=8 waits 3 reads x4 writes y0 layer=2\n"
                       "op 5 fill compute count=8 waits 4,2 writes x0\n";

static void loops_are_written_out(void)
{
    struct text out = {0};
    CHECK("read", flatten(&out, looped, sizeof looped - 1));
    CHECK_TEXT("flat", out.data, flat);
    text_release(&out);
}

/* A loop of steps in a loop over layers that counts down; the first step of each layer refers to the op before
 * the inner loop. */
static void nested_ir_loops_are_expanded(void)
{
    static const char text[] = HEAD "buffer y0 pinned u8 [8] workspace persistent\n"
                                    "loop A L=1..0\n"
                                    "  op .5 fill compute count=8 writes y0 layer={L}\n"
                                    "  loop B t=1..2\n"
                                    "    op .0 fill compute count=8 waits B.0[L,t-1] writes y0 "
                                    "layer={L} step={t}\n"
                                    "  end\n"
                                    "end\n"
                                    "op 0 fill compute count=8 waits B.0[0,2],A.5[1] writes y0\n"
                                    "alias B[0] .0=.5\n";
    struct text out = {0};
    CHECK("read", flatten(&out, text, sizeof text - 1));
    CHECK_TEXT("flat", out.data,
               FLAT_SCHEDULE_HEAD "buffer y0 pinned u8 [8] workspace persistent\n"
                                  "op 0 fill compute count=8 writes y0 layer=1\n"
                                  "op 1 fill compute count=8 waits 0 writes y0 layer=1 step=1\n"
                                  "op 2 fill compute count=8 waits 1 writes y0 layer=1 step=2\n"
                                  "op 3 fill compute count=8 writes y0 layer=0\n"
                                  "op 4 fill compute count=8 waits 3 writes y0 layer=0 step=1\n"
                                  "op 5 fill compute count=8 waits 4 writes y0 layer=0 step=2\n"
                                  "op 6 fill compute count=8 waits 5,0 writes y0\n");
    text_release(&out);
}

/* A line added to the loop of layers adds an op to each layer and changes no other name. */
static void a_layer_is_edited_once(void)
{
    struct text text = {0}, out = {0};
    const char *at = strstr(looped, "  op .1");
    text_append(&text, looped, (size_t)(at - looped));
    text_puts(&text, "  op .9 fill compute count=8 waits .0 writes x{2*L} layer={L}\n");
    text_puts(&text, at);
    CHECK("read", flatten(&out, text.data, text.size));
    CHECK("seen in each", strstr(out.data, "op 2 fill compute count=8 waits 1 writes x2") != NULL &&
                              strstr(out.data, "op 5 fill compute count=8 waits 4 writes x4"));
    CHECK("what is behind goes on",
          strstr(out.data, "op 7 fill compute count=8 waits 6,2") != NULL);
    text_release(&text);
    text_release(&out);
}

#define FILL "fill compute count=8 writes y0\n"
#define HEAD_WITH_BUFFER HEAD "buffer y0 hbm u8 [8] workspace persistent\n"

/* clang-format off */
static const struct {
    const char *text, *message;
} wrong[] = {
    {HEAD "end\n", "t.ir:5: error: 'end' without a loop\n"},
    {HEAD "loop A L=0..2\n", "t.ir:5: error: loop 'A' has no 'end'\n"},
    {HEAD "loop A L=0-2\nend\n",
     "t.ir:5: error: expected 'loop NAME VARIABLE=FIRST..LAST', names of up to 7 letters, such as 'loop A L=0..31'\n"},
    {HEAD "loop A L=0..2\nend\nloop A L=0..2\nend\n", "t.ir:7: error: there is a loop 'A' already\n"},
    {HEAD "loop A L=0..2\nloop B L=0..2\nend\nend\n",
     "t.ir:6: error: 'L' is the variable of a loop around this one\n"},
    {HEAD_WITH_BUFFER "loop A L=0..2\nop 0 " FILL "end\n",
     "t.ir:7: error: in a loop an op is named by a point and a number, such as '.3', not '0'\n"},
    {HEAD_WITH_BUFFER "loop A L=0..2\nop .0 " FILL "op .0 " FILL "end\n",
     "t.ir:8: error: loop 'A' has an op .0 already\n"},
    {HEAD_WITH_BUFFER "op .0 " FILL, "t.ir:6: error: outside loops an op is named by a number, not '.0'\n"},
    {HEAD_WITH_BUFFER "op 3 " FILL "op 3 " FILL, "t.ir:7: error: there is an op 3 already\n"},
    {HEAD_WITH_BUFFER "loop A L=0..1\nop .0 fill compute count=8 waits A.0[L-1] writes y0\nend\n",
     "t.ir:7: error: A.0[-1] is outside the loop and no alias\n"},
    {HEAD_WITH_BUFFER "loop A L=0..1\nop .0 fill compute count=8 waits A.1[L] writes y0\nend\n",
     "t.ir:7: error: loop 'A' has no op .1\n"},
    {HEAD_WITH_BUFFER "loop A L=0..1\nop .0 fill compute count=8 waits A.0[L writes y0\nend\n",
     "t.ir:7: error: 'A.0[L' names no op of a loop\n"},
    {HEAD_WITH_BUFFER "op 0 fill compute count=8 waits 4 writes y0\n", "t.ir:6: error: there is no op '4'\n"},
    {HEAD_WITH_BUFFER "loop A L=0..1\nop .0 fill compute count={2*M} writes y0\nend\n",
     "t.ir:7: error: expected a sum of numbers and variables of loops around, such as {2*L+1}, not '{2*M}'\n"},
    {HEAD_WITH_BUFFER "loop A L=0..1\nop .0 fill compute count={L} writes y0\nend\n",
     "t.ir:7:25: error: count: expected a whole number of at least 1 that fits 63 bits, not '0'\n"},
    {HEAD "alias A[0] .0=1\n", "t.ir:5: error: there is no loop 'A'\n"},
    {HEAD "loop A L=0..1\nend\nalias A[0] 0=1\n", "t.ir:7: error: expected '.ROW=OP', not '0'\n"},
    {HEAD_WITH_BUFFER "loop A i=0..4000000000\nloop B j=0..4000000000\nop .0 " FILL "end\nend\n",
     "t.ir:6: error: more than 4294967294 lines\n"},
};
/* clang-format on */

static void wrong_loops_are_explained(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct text out = {0};
        CHECK(wrong[i].text, !flatten(&out, wrong[i].text, strlen(wrong[i].text)));
        CHECK_TEXT(wrong[i].text, out.data, wrong[i].message);
        text_release(&out);
    }
}

/* ---- printed ---- */

static size_t line_count(const struct text *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->size; i++)
        lines += text->data[i] == '\n';
    return lines;
}

/* Checks that the schedule, printed with loops, read back and planned, prints the same flat text, byte for
 * byte. Returns the number of lines of the text with loops, divided by that of the flat text. */
static double round_trip(const char *label, const struct ir *ir)
{
    struct text loops = {0}, before = {0}, after = {0};
    struct ir again = {0};
    struct diag diag = {0};
    ir_print(&before, ir);
    ir_print_loops(&loops, ir);
    if (CHECK_INT(label, ir_parse(&again, "loops", loops.data, loops.size, &diag), STATUS_OK)) {
        offsets_plan(&again, NULL);
        ir_print(&after, &again);
        CHECK(label, before.size == after.size && memcmp(before.data, after.data, after.size) == 0);
    }
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    double share = (double)line_count(&loops) / (double)line_count(&before);
    diag_release(&diag);
    ir_release(&again);
    text_release(&loops);
    text_release(&before);
    text_release(&after);
    return share;
}

static void printed_loops_are_the_flat_list(void)
{
    struct check_random random = check_random_make();
    int short_ones = 0;
    enum { WORLDS = 80 };
    for (int i = 0; i < WORLDS; i++) {
        struct request request = shapes_random_request(&random, 8, false);
        struct transformer model = *request.model;
        struct choices choices;
        struct ir ir;
        char label[256];
        model.layers = check_random_i64(&random, 1, 24);
        shapes_request_label(&request, label, sizeof label);
        request.model = &model;
        if (composed_build(&ir, &choices, &request, label))
            short_ones += round_trip(label, &ir) < 0.5;
        ir_release(&ir);
    }
    CHECK("a third have fewer than half the lines", 3 * short_ones > WORLDS);
}

static void thirty_two_layers_are_as_long_as_a_few(void)
{
    struct transformer deep = shapes[1];
    struct request request = composed_request(1, 4);
    size_t lines[2];
    for (int i = 0; i < 2; i++) {
        struct ir ir;
        struct choices choices;
        struct text text = {0};
        deep.layers = i == 0 ? 16 : 32;
        request.model = &deep;
        composed_build(&ir, &choices, &request, "deep");
        ir_print_loops(&text, &ir);
        lines[i] = line_count(&text);
        text_release(&text);
        ir_release(&ir);
    }
    CHECK_INT("lines", (int64_t)lines[1], (int64_t)lines[0]);
}

static const struct check_case cases[] = {
    {"loops are written out", loops_are_written_out},
    {"loops nest", nested_ir_loops_are_expanded},
    {"a layer is edited once", a_layer_is_edited_once},
    {"wrong loops are explained", wrong_loops_are_explained},
    {"printed loops are the flat list", printed_loops_are_the_flat_list},
    {"32 layers are as long as a few", thirty_two_layers_are_as_long_as_a_few},
};
CHECK_MAIN("loops", cases)
