/* tests/schedule/test_ir_text.c: a schedule's text form reads and prints the same schedule; the first fault is reported
 * with its place. */
#include "schedule/ir/ir_text.h"

#include "models/work_operands.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- reading and printing ---- */

/* Parses a text, prints it into *out, and checks that this parses and prints the same. Returns
 * false, with a failed check, if the text has a fault. */
static bool round_trip(const char *label, const char *data, size_t size, struct text *out)
{
    struct ir ir = {0}, again = {0};
    struct diag diag = {0};
    struct text second = {0};
    bool parsed = ir_parse(&ir, label, data, size, &diag) == STATUS_OK;
    CHECK_TEXT(label, diag.text ? diag.text : "", "");
    if (parsed) {
        ir_print(out, &ir);
        CHECK(label, ir_parse(&again, label, out->data, out->size, &diag) == STATUS_OK);
        CHECK_TEXT(label, diag.text ? diag.text : "", "");
        ir_print(&second, &again);
        CHECK_TEXT(label, second.data, out->data);
    }
    text_release(&second);
    ir_release(&ir);
    ir_release(&again);
    diag_release(&diag);
    return parsed;
}

static void the_example_prints_canonically(void)
{
    struct text example = {0}, printed = {0};
    struct diag diag = {0};
    CHECK("read", text_read(&example, check_path("schedule/example.ir"), &diag) == STATUS_OK);
    CHECK("parsed", round_trip("example.ir", example.data, example.size, &printed));
    CHECK_GOLDEN("schedule/golden/example.ir", printed.data);
    text_release(&example);
    text_release(&printed);
    diag_release(&diag);
}

static void the_example_means_what_it_says(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    if (!CHECK("load", ir_load(&ir, check_path("schedule/example.ir"), &diag) == STATUS_OK))
        return;
    CHECK_INT("ranks", mesh_rank_count(&ir.mesh), 8);
    CHECK_INT("layout", ir.layout.kind, LAYOUT_ZIGZAG_2D);
    CHECK_INT("tokens", ir.layout.sequence_tokens, 131072);
    CHECK_INT("ops", ir.op.count, 16);
    CHECK_INT("roles", ir.role_count, 1);

    const struct work *tile = ir_work(&ir, 12);
    CHECK_INT("kind", tile->kind, WORK_ATTENTION);
    CHECK_INT("q", tile->attention.q, 16384);
    CHECK_INT("mask", tile->attention.mask, MASK_FULL);
    CHECK_INT("in", tile->in, DTYPE_BF16);
    struct view q = ir_read_view(&ir, 12, 0), k = ir_read_view(&ir, 12, 1);
    CHECK_INT("q begins", (int64_t)q.begin, 33554432);
    CHECK_INT("q ends with the buffer", (int64_t)(q.begin + q.count), 67108864);
    CHECK_INT("k begins", (int64_t)k.begin, 0);
    CHECK_INT("k ends", (int64_t)k.count, 16777216);
    const struct guard *guard = &ir.guard[ir.op.guard[12]];
    CHECK("guard", guard->comparison_kind == GUARD_LT && guard->value == 1);
    CHECK_INT("step", ir.op.step[12], 1);
    CHECK_INT("no chunk", ir.op.chunk[12], IR_NONE16);
    CHECK_INT("waits", ir.wait[ir.op.wait_begin[8] + 1].i, 6);

    buffer_id w = ir_find_buffer(&ir, "w0", 2);
    const struct binding *binding = &ir.binding[ir.buffer.binding[w.i]];
    CHECK_INT("bound", binding->kind, BINDING_PARAM);
    CHECK("bound is persistent", ir.buffer.flags[w.i] & BUFFER_PERSISTENT);
    CHECK_TEXT("bundle", ir.bundle[binding->bundle].name, "layer0");

    /* Both variants of ring step 1 do the same work: the zigzag balances. */
    CHECK_CLOSE("flops", work_flops(ir_work(&ir, 12)), work_flops(ir_work(&ir, 11)), 0);
    ir_release(&ir);
    diag_release(&diag);
}

static const struct {
    const char *label, *text, *canonical; /* without the first line */
} same[] = {
    {"nothing", "", ""},
    {"comments and blank lines", "# a\n\n  \t # b\nmesh dp=2 # c\n", "mesh dp=2\n"},
    {"lines of Windows", "mesh dp=2\r\nstream s comm\r\n", "mesh dp=2\nstream s comm\n"},
    {"no line end at the end", "mesh dp=2", "mesh dp=2\n"},
    {"defaults that are given",
     "mesh cp=2\ngroup cp axes=cp\nstream c compute\nbuffer x0 hbm f32 [8] kv\n"
     "op 0 matmul c m=2 n=2 k=2 form=nt epilogue=none accumulate=0 reads x0[0:4] x0[4:8] writes "
     "x0[0:8] phase=forward region=none\n",
     "mesh cp=2\ngroup cp axes=cp\nstream c compute\nbuffer x0 hbm f32 [8] kv\n"
     "op 0 matmul c m=2 n=2 k=2 reads x0[0:4] x0[4:8] writes x0\n"},
    {"clauses in any order",
     "stream c compute\nbuffer x0 hbm f32 [8] kv\nop 0 fill c step=1 writes x0 waits 0 count=8 "
     "phase=backward\n",
     "stream c compute\nbuffer x0 hbm f32 [8] kv\nop 0 fill c count=8 waits 0 writes x0 "
     "phase=backward step=1\n"},
    {"open ranges",
     "stream c compute\nbuffer x0 hbm f32 [8] kv\nop 0 cast c count=4 reads x0[:4] writes x0[4:]\n"
     "op 1 cast c count=8 reads x0[:] writes x0\n",
     "stream c compute\nbuffer x0 hbm f32 [8] kv\nop 0 cast c count=4 reads x0[0:4] writes "
     "x0[4:8]\nop 1 cast c count=8 reads x0 writes x0\n"},
    {"signs",
     "mesh cp=4\ngroup cp axes=cp\nstream s comm\nbuffer x hbm u8 [8] kv\n"
     "op 0 shift s group=cp by=+1 bytes=8 reads x writes x\n"
     "op 1 shift s group=cp by=-1 bytes=8 reads x writes x\n",
     "mesh cp=4\ngroup cp axes=cp\nstream s comm\nbuffer x hbm u8 [8] kv\n"
     "op 0 shift s group=cp by=1 bytes=8 reads x writes x\n"
     "op 1 shift s group=cp by=-1 bytes=8 reads x writes x\n"},
    {"tokens", "tokens dtype=f32 seq=96 chunks=3 hp=4 layout=rank_ordinal micro_batch=2 batch=4\n",
     "tokens layout=rank_ordinal cp=1 hp=4 chunks=3 seq=96 batch=4 micro_batch=2 dtype=f32\n"},
    {"chunks of several lengths",
     "tokens dtype=bf16 seq=28 lengths=8,4,16 hp=2 layout=rank_ordinal chunks=3\n",
     "tokens layout=rank_ordinal cp=1 hp=2 chunks=3 lengths=8,4,16 seq=28 dtype=bf16\n"},
    {"documents of all sequences",
     "tokens dtype=bf16 layout=contiguous seq=8 batch=2\ndocuments of=1,0 lengths=3,5\n",
     "tokens layout=contiguous cp=1 hp=1 chunks=1 seq=8 batch=2 dtype=bf16\n"
     "documents lengths=3,5\n"},
    {"documents that differ",
     "tokens dtype=bf16 layout=contiguous seq=8 batch=4\ndocuments of=2 lengths=8\ndocuments "
     "lengths=1,7 of=1,3\n"
     "documents of=0 lengths=8\n",
     "tokens layout=contiguous cp=1 hp=1 chunks=1 seq=8 batch=4 dtype=bf16\n"
     "documents of=0,2 lengths=8\ndocuments of=1,3 lengths=1,7\n"},
    {"tokens that are dealt",
     "tokens dtype=bf16 layout=dealt cp=2 seq=8 batch=2\n"
     "documents rows=2,1,1,3,1 owners=1,0,0,0,1 of=1 lengths=8\n"
     "documents of=0 owners=1,0,1 rows=2,5,1 lengths=8\n",
     "tokens layout=dealt cp=2 hp=1 chunks=1 seq=8 batch=2 dtype=bf16\n"
     "documents lengths=8 rows=2,5,1 owners=1,0,1\n"},
    {"only a dtype", "tokens dtype=f16\n", "tokens dtype=f16\n"},
    {"arenas", "arena pinned=1024 hbm=4096\n", "arena hbm=4096 pinned=1024\n"},
    {"weights",
     "mesh dp=2 tp=2\ngroup dp axes=dp\ntensor a [4,6] cut_rows=tp\ntensor b [4,1] cut_cols=tp,dp\n"
     "bundle l first=a count=2 elements=16\n"
     "buffer w0 hbm bf16 [8] parameter bind=param bundle=l shard=dp at=512\n"
     "buffer g0 hbm bf16 [16] gradient layer=0 bind=grad bundle=l partial=dp persistent\n"
     "buffer p hbm i32 [4] input bind=positions gathered=dp\n",
     "mesh dp=2 tp=2\ngroup dp axes=dp\ntensor a [4,6] cut_rows=tp\ntensor b [4,1] cut_cols=dp,tp\n"
     "bundle l first=a count=2 elements=16\n"
     "buffer w0 hbm bf16 [8] parameter bind=param bundle=l shard=dp at=512\n"
     "buffer g0 hbm bf16 [16] gradient layer=0 bind=grad bundle=l partial=dp\n"
     "buffer p hbm i32 [4] input bind=positions gathered=dp\n"},
    {"a free set names ops to come",
     "stream c compute\nbuffer x0 hbm f32 [8] kv free=1\nop 0 fill c count=8 writes x0\n"
     "op 1 fill c count=8 writes x0\n",
     "stream c compute\nbuffer x0 hbm f32 [8] kv free=1\nop 0 fill c count=8 writes x0\n"
     "op 1 fill c count=8 writes x0\n"},
    {"waits on what never comes are the verifier's",
     "stream c compute\nop 0 host_sync c waits 0,7,4294967294\n",
     "stream c compute\nop 0 host_sync c waits 0,7,4294967294\n"},
    {"the only role may be named", "role all\nstream c compute\nops all\nop 0 host_sync c\n",
     "stream c compute\nop 0 host_sync c\n"},
    {"roles without ops",
     "mesh pp=4\nrole a axes=pp:0\nrole b axes=pp:1+2\nrole c axes=pp:3\nstream c compute\n"
     "buffer x hbm f32 [1] kv role=b\nops b\nop 0 fill c count=1 writes x\n",
     "mesh pp=4\nrole a axes=pp:0\nrole b axes=pp:1+2\nrole c axes=pp:3\nstream c compute\n"
     "buffer x hbm f32 [1] kv role=b\nops b\nop 0 fill c count=1 writes x\n"},
    {"adamw on the host",
     "stream h host\nbuffer g pinned f32 [8] gradient\nbuffer m pinned f32 [8] optimizer\n"
     "op 0 adamw h count=8 reads g m m m writes m m m\n",
     "stream h host\nbuffer g pinned f32 [8] gradient\nbuffer m pinned f32 [8] optimizer\n"
     "op 0 adamw h count=8 reads g m m m writes m m m\n"},
};

static void equal_schedules_print_the_same(void)
{
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        struct text text = {0}, want = {0}, got = {0};
        text_printf(&text, "longhaul schedule 1\n%s", same[i].text);
        text_printf(&want, "longhaul schedule 1\n%s", same[i].canonical);
        if (round_trip(same[i].label, text.data, text.size, &got))
            CHECK_TEXT(same[i].label, got.data, want.data);
        text_release(&text);
        text_release(&want);
        text_release(&got);
    }
}

/* ---- random schedules, and files ---- */

static int64_t pick(struct check_random *random, int64_t count)
{
    return check_random_i64(random, 0, count - 1);
}

static uint16_t random_index_or_none(struct check_random *random)
{
    return pick(random, 2) ? (uint16_t)pick(random, IR_NONE16) : IR_NONE16;
}

static struct view random_view(const struct ir *ir, struct check_random *random)
{
    struct view view = ir_whole_view(ir, (buffer_id){(uint32_t)pick(random, ir->buffer.count)});
    if (pick(random, 2)) {
        view.begin = (uint64_t)pick(random, (int64_t)view.count);
        view.count = 1 + (uint64_t)pick(random, (int64_t)(view.count - view.begin));
    }
    return view;
}

static void add_random_buffer(struct ir *ir, struct check_random *random)
{
    static const char *const stems[] = {"x", "kv", "layers.0/w:", "_"};
    struct buffer_desc desc = {.stem = stems[pick(random, ARRAY_LEN(stems))],
                               .number = IR_NONE,
                               .memory = (uint8_t)pick(random, MEMORY_COUNT),
                               .dtype = (uint8_t)pick(random, DTYPE_COUNT),
                               .category = (uint8_t)pick(random, CATEGORY_COUNT),
                               .flags = (uint8_t)pick(random, 4), /* persistent, part */
                               .layer = random_index_or_none(random),
                               .binding = IR_NONE16};
    desc.dims.count = (uint8_t)check_random_i64(random, 1, 4);
    for (uint32_t i = 0; i < desc.dims.count; i++)
        desc.dims.size[i] = check_random_i64(random, 1, 9);
    if (pick(random, 4) == 0)
        desc.binding =
            ir_add_binding(ir, (struct binding){BINDING_GRAD, 0, pick(random, 2) ? 0 : IR_NONE16,
                                                IR_NONE16, (uint32_t)pick(random, 4)});
    buffer_id id = ir_add_buffer(ir, &desc);
    if (pick(random, 2))
        ir->buffer.offset[id.i] = (uint64_t)pick(random, INT64_C(1) << 40);
}

static int64_t random_param(const struct ir *ir, struct check_random *random,
                            const struct work_param *param)
{
    if (param->is_value_group_id)
        return pick(random, ir->group_count + param->optional);
    if (param->value_names)
        return pick(random, param->value_count);
    if (param->optional && pick(random, 2))
        return 0;
    int64_t value = check_random_i64(random, 1, pick(random, 2) ? 100 : INT64_MAX);
    return param->is_signed && pick(random, 2) ? -value : value;
}

static void add_random_op(struct ir *ir, struct check_random *random)
{
    struct view read[WORK_OPERANDS_MAX], write[WORK_OPERANDS_MAX];
    op_id wait[3];
    struct op_desc desc = {.guard = IR_NONE16, .read = read, .write = write, .wait = wait};
    const struct work_kind_info *info;
    do {
        desc.work.kind = (uint8_t)pick(random, WORK_KIND_COUNT);
        desc.stream = (uint8_t)pick(random, ir->stream_count);
    } while (!work_may_run_on((enum work_kind)desc.work.kind,
                              (enum stream_class)ir->stream[desc.stream].stream_class));
    info = work_kind_info((enum work_kind)desc.work.kind);
    for (uint32_t i = 0; i < info->param_count; i++)
        desc.work.p[i] = random_param(ir, random, &info->param[i]);
    desc.read_count = (uint8_t)check_random_i64(random, info->reads_min, info->reads_max);
    desc.write_count = (uint8_t)check_random_i64(random, info->writes_min, info->writes_max);
    for (uint32_t i = 0; i < desc.read_count; i++)
        read[i] = random_view(ir, random);
    for (uint32_t i = 0; i < desc.write_count; i++)
        write[i] = random_view(ir, random);
    desc.wait_count = (uint16_t)pick(random, 4);
    for (uint32_t i = 0; i < desc.wait_count; i++)
        wait[i].i = (uint32_t)pick(random, 1000);
    if (pick(random, 3) == 0)
        desc.guard = ir_add_guard(ir, (struct guard){(uint16_t)pick(random, ir->group_count),
                                                     (uint8_t)pick(random, GUARD_COMPARISON_COUNT),
                                                     (uint32_t)pick(random, 5)});
    desc.tags =
        (struct op_tags){(uint8_t)pick(random, PHASE_COUNT), (uint8_t)pick(random, REGION_COUNT),
                         random_index_or_none(random),       random_index_or_none(random),
                         random_index_or_none(random),       random_index_or_none(random)};
    ir_add_op(ir, &desc);
}

static void make_random_schedule(struct ir *ir, struct check_random *random)
{
    static const uint32_t some[] = {1, 2};
    static const struct axis_coordinate_set axes[] = {{1, 0, NULL}, {0, 2, some}};
    ir->mesh = (struct mesh){2, {{"cp", 4}, {"hp", 2}}};
    ir->layout = (struct token_layout){LAYOUT_ZIGZAG, 4, 2, 1, 128, 0, NULL};
    ir->dtype = DTYPE_F32;
    ir_add_group(ir, "hp", axes, 1);
    ir_add_group(ir, "some", axes, 2);
    for (int i = 0; i < STREAM_SYNC; i++)
        ir_add_stream(ir, stream_class_name((enum stream_class)i), (enum stream_class)i);
    ir_add_tensor(ir, (struct tensor){"w", 3, 4, {1, 2}, 5, 7});
    ir_add_bundle(ir, (struct bundle){"layer", 0, 1, 12, 0});
    for (int i = 0; i < 30; i++)
        add_random_buffer(ir, random);
    int64_t ops = pick(random, 60);
    for (int64_t i = 0; i < ops; i++)
        add_random_op(ir, random);
    for (uint32_t b = 0; b < ir->buffer.count && ops > 0; b++) {
        const op_id free_after[2] = {{(uint32_t)pick(random, ops)}, {(uint32_t)pick(random, ops)}};
        ir_set_free_set(ir, (buffer_id){b}, free_after, (uint16_t)pick(random, 3));
    }
}

#define CHECK_SAME_COLUMN(label, a, b, count) CHECK(label, memcmp(a, b, (count) * sizeof *(a)) == 0)

static void check_equal_tables(const struct ir *a, const struct ir *b)
{
    uint32_t ops = a->op.count, buffers = a->buffer.count;
    if (!CHECK_INT("ops", b->op.count, ops) || !CHECK_INT("buffers", b->buffer.count, buffers) ||
        !CHECK_INT("shapes", b->shape_count, a->shape_count))
        return;
    if (ops > 0) {
        CHECK_SAME_COLUMN("kind", a->op.kind, b->op.kind, ops);
        CHECK_SAME_COLUMN("stream", a->op.stream, b->op.stream, ops);
        CHECK_SAME_COLUMN("phase", a->op.phase, b->op.phase, ops);
        CHECK_SAME_COLUMN("region", a->op.region, b->op.region, ops);
        CHECK_SAME_COLUMN("layer", a->op.layer, b->op.layer, ops);
        CHECK_SAME_COLUMN("chunk", a->op.chunk, b->op.chunk, ops);
        CHECK_SAME_COLUMN("step", a->op.step, b->op.step, ops);
        CHECK_SAME_COLUMN("micro", a->op.micro, b->op.micro, ops);
        CHECK_SAME_COLUMN("guard", a->op.guard, b->op.guard, ops);
        CHECK_SAME_COLUMN("shape", a->op.shape, b->op.shape, ops);
        CHECK_SAME_COLUMN("operands", a->op.operand_begin, b->op.operand_begin, ops);
        CHECK_SAME_COLUMN("wait_begin", a->op.wait_begin, b->op.wait_begin, ops);
    }
    CHECK_SAME_COLUMN("memory", a->buffer.memory, b->buffer.memory, buffers);
    CHECK_SAME_COLUMN("dtype", a->buffer.dtype, b->buffer.dtype, buffers);
    CHECK_SAME_COLUMN("flags", a->buffer.flags, b->buffer.flags, buffers);
    CHECK_SAME_COLUMN("binding", a->buffer.binding, b->buffer.binding, buffers);
    CHECK_SAME_COLUMN("dims", a->buffer.dims, b->buffer.dims, buffers);
    CHECK_SAME_COLUMN("stem", a->buffer.stem, b->buffer.stem, buffers);
    CHECK_SAME_COLUMN("number", a->buffer.number, b->buffer.number, buffers);
    CHECK_SAME_COLUMN("offset", a->buffer.offset, b->buffer.offset, buffers);
    CHECK_SAME_COLUMN("free_count", a->buffer.free_count, b->buffer.free_count, buffers);
    for (uint32_t i = 0; i < a->shape_count; i++)
        CHECK("shape", memcmp(a->shape[i].p, b->shape[i].p, sizeof a->shape[i].p) == 0 &&
                           a->shape[i].in == b->shape[i].in && a->shape[i].out == b->shape[i].out);
    for (uint32_t op = 0; op < ops; op++)
        for (uint32_t k = 0; k < (uint32_t)a->op.read_count[op] + a->op.write_count[op]; k++) {
            struct view x = ir_view_of_operand(a, a->operand[a->op.operand_begin[op] + k]);
            struct view y = ir_view_of_operand(b, b->operand[b->op.operand_begin[op] + k]);
            CHECK("view", x.buffer.i == y.buffer.i && x.begin == y.begin && x.count == y.count);
        }
}

static void what_is_printed_reads_back_the_same(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 200; i++) {
        struct ir ir = {0}, again = {0};
        struct text first = {0}, second = {0};
        struct diag diag = {0};
        make_random_schedule(&ir, &random);
        ir_print(&first, &ir);
        bool parsed = ir_parse(&again, "random", first.data, first.size, &diag) == STATUS_OK;
        CHECK_TEXT("parsed", diag.text ? diag.text : "", "");
        if (parsed) {
            check_equal_tables(&ir, &again);
            ir_print(&second, &again);
            CHECK_TEXT("printed again", second.data, first.data);
        }
        text_release(&first);
        text_release(&second);
        diag_release(&diag);
        ir_release(&ir);
        ir_release(&again);
        if (!parsed)
            return;
    }
}

static void files_are_saved_and_loaded(void)
{
    struct ir ir = {0}, again = {0};
    struct diag diag = {0};
    struct text path = {0}, a = {0}, b = {0};
    struct check_random random = check_random_make();
    text_printf(&path, "%s/step.ir", check_temp_dir());
    make_random_schedule(&ir, &random);
    CHECK("save", ir_save(&ir, path.data, IR_TEXT_FLAT, &diag) == STATUS_OK);
    CHECK("load", ir_load(&again, path.data, &diag) == STATUS_OK);
    ir_print(&a, &ir);
    ir_print(&b, &again);
    CHECK_TEXT("the same", b.data, a.data);
    ir_release(&again);
    CHECK("no file", ir_load(&again, "no/such.ir", &diag) == STATUS_SYSTEM);
    CHECK_TEXT("message", diag.text, "no/such.ir: error: cannot open: No such file or directory\n");
    ir_release(&ir);
    ir_release(&again);
    text_release(&path);
    text_release(&a);
    text_release(&b);
    diag_release(&diag);
}

/* ---- bad text ---- */

#define HEAD                                                                                       \
    "longhaul schedule 1\nmesh cp=4 hp=2\ngroup cp axes=cp\nstream compute compute\n"              \
    "stream comm.cp comm\nbuffer x0 hbm bf16 [8] kv\n"

#define NOT_A_SCHEDULE                                                                             \
    "neither a recorded step of `python -m longhaul.record` nor a schedule, which `longhaul "      \
    "schedule` writes: after empty lines and comments it begins with 'longhaul schedule 1', or 2 " \
    "if it has loops\n"

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"empty", "", "t.ir:1:1: error: " NOT_A_SCHEDULE},
    {"something else", "\n{\"layers\": 32}\n", "t.ir:2:1: error: " NOT_A_SCHEDULE},
    {"no version", "longhaul schedule",
     "t.ir:1:18: error: expected the version of the schedule format at the end of the line\n"},
    {"other version", "longhaul schedule 3\n",
     "t.ir:1:19: error: version 3 of the schedule format: this program reads versions 1 and 2\n"},
    {"statement", HEAD "bufer x1 hbm\n",
     "t.ir:7:1: error: unknown statement 'bufer'; did you mean 'buffer'?\n"},
    {"two meshes", HEAD "mesh dp=2\n", "t.ir:7:1: error: a second mesh: there is only one\n"},
    {"mesh too late", "longhaul schedule 1\ngroup all\nmesh dp=2\n",
     "t.ir:3:1: error: the mesh must come before groups, roles, tensors and ops\n"},
    {"axis twice", "longhaul schedule 1\nmesh dp=2 dp=2\n",
     "t.ir:2:11: error: the axis 'dp' is given twice\n"},
    {"axis of nothing", "longhaul schedule 1\nmesh dp=0\n",
     "t.ir:2:9: error: dp: expected a whole number in 1..1048576, not '0'\n"},
    {"too many ranks", "longhaul schedule 1\nmesh dp=1024 tp=2048\n",
     "t.ir:2:17: error: a mesh has at most 1048576 ranks\n"},
    {"unknown axis", HEAD "group g axes=cp,hq\n",
     "t.ir:7:17: error: unknown axis of the mesh 'hq': expected cp or hp\n"},
    {"coordinates that descend", HEAD "group g axes=cp:2+1\n",
     "t.ir:7:19: error: coordinates of an axis must ascend\n"},
    {"coordinate outside", HEAD "group g axes=cp:4\n",
     "t.ir:7:17: error: cp: expected a whole number in 0..3, not '4'\n"},
    {"group twice", HEAD "group cp axes=hp\n", "t.ir:7:7: error: a second group named 'cp'\n"},
    {"long name", HEAD "group a23456789012345678901234\n",
     "t.ir:7:7: error: the name 'a23456789012345678901234' of a group is longer than 23 letters\n"},
    {"name", HEAD "stream 0 compute\n",
     "t.ir:7:8: error: '0' cannot name a stream: names are a letter or '_', then letters, digits "
     "and any of _ . - / :\n"},
    {"class", HEAD "stream s sync\n",
     "t.ir:7:10: error: unknown class of stream 'sync': expected compute, comm, h2d, d2h or "
     "host\n"},
    {"layout", HEAD "tokens layout=zigzag_2d cp=4 hp=2 seq=100 dtype=bf16\n",
     "t.ir:7:15: error: a sequence of 100 tokens does not divide over layout zigzag_2d, which "
     "needs a multiple of 16: 96 or 112 would do\n"},
    {"documents before tokens", "longhaul schedule 1\ndocuments lengths=4\n",
     "t.ir:2:1: error: documents need a tokens line before them with layout=, seq= and a batch of "
     "at most 1048576 "
     "sequences\n"},
    {"documents too short",
     HEAD "tokens layout=contiguous seq=8 batch=2 dtype=bf16\ndocuments lengths=3,4\n",
     "t.ir:8:19: error: the documents have 7 tokens, the sequence 8\n"},
    {"documents too long",
     HEAD "tokens layout=contiguous seq=8 batch=2 dtype=bf16\ndocuments lengths=3,9,1\n",
     "t.ir:8:19: error: the documents have 9 tokens or more, the sequence 8\n"},
    {"documents twice",
     HEAD "tokens layout=contiguous seq=8 batch=2 dtype=bf16\ndocuments of=1,1 lengths=8\n",
     "t.ir:8:14: error: the documents of sequence 1 are given twice\n"},
    {"documents of a sequence that is not there",
     HEAD "tokens layout=contiguous seq=8 batch=2 dtype=bf16\ndocuments of=2 lengths=8\n",
     "t.ir:8:14: error: a sequence of the batch: expected a whole number in 0..1, not '2'\n"},
    {"dealt in another layout",
     HEAD "tokens layout=contiguous seq=8 batch=1 dtype=bf16\n"
          "documents lengths=8 rows=8 owners=0\n",
     "t.ir:8:26: error: rows and owners are of layout dealt, and the layout is contiguous\n"},
    {"rows without owners",
     HEAD "tokens layout=dealt cp=2 seq=8 batch=1 dtype=bf16\ndocuments lengths=8 rows=4,4\n",
     "t.ir:8:26: error: rows and owners are given together\n"},
    {"dealt to a rank that is not there",
     HEAD "tokens layout=dealt cp=2 seq=8 batch=1 dtype=bf16\n"
          "documents lengths=8 rows=4,4 owners=0,2\n",
     "t.ir:8:39: error: a context rank: expected a whole number in 0..1, not '2'\n"},
    {"runs without an owner",
     HEAD "tokens layout=dealt cp=2 seq=8 batch=1 dtype=bf16\n"
          "documents lengths=8 rows=4,4 owners=0\n",
     "t.ir:8:37: error: 2 runs have 1 owners\n"},
    {"runs that are too short",
     HEAD "tokens layout=dealt cp=2 seq=8 batch=1 dtype=bf16\n"
          "documents lengths=8 rows=4,3 owners=0,1\n",
     "t.ir:8:26: error: the runs have fewer tokens than the sequence, which has 8\n"},
    {"runs that are too long",
     HEAD "tokens layout=dealt cp=2 seq=8 batch=1 dtype=bf16\n"
          "documents lengths=8 rows=4,5,9 owners=0,1,0\n",
     "t.ir:8:26: error: the runs have more tokens than the sequence, which has 8\n"},
    {"layout without length", HEAD "tokens layout=zigzag dtype=bf16\n",
     "t.ir:7:15: error: a layout needs seq=TOKENS\n"},
    {"dtype that nothing is computed in", HEAD "tokens dtype=i32\n",
     "t.ir:7:14: error: unknown dtype 'i32': expected bf16, f16, f32 or f64\n"},
    {"dtype left out", HEAD "tokens batch=4\n", "t.ir:7:15: error: a tokens line needs dtype=\n"},
    {"buffer twice", HEAD "buffer x0 hbm f32 [8] kv\n",
     "t.ir:7:8: error: a second buffer named 'x0'\n"},
    {"a word of ops", HEAD "buffer reads hbm f32 [8] kv\n",
     "t.ir:7:8: error: 'reads' cannot name a buffer: ops have that word\n"},
    {"memory", HEAD "buffer x1 hbn f32 [8] kv\n",
     "t.ir:7:11: error: unknown memory 'hbn'; did you mean 'hbm'?\n"},
    {"no shape", HEAD "buffer x1 hbm f32 kv\n",
     "t.ir:7:19: error: expected a shape such as [4096,128], not 'kv'\n"},
    {"overflow", HEAD "buffer x1 hbm f32 [4294967296,4294967296] kv\n",
     "t.ir:7:19: error: the shape [4294967296,4294967296] has more than 1152921504606846975 "
     "elements\n"},
    {"a size that is none", HEAD "buffer x1 hbm f32 [8,] kv\n",
     "t.ir:7:22: error: a size of a shape: expected a whole number of at least 1 that fits 63 "
     "bits, not ''\n"},
    {"attribute", HEAD "buffer x1 hbm f32 [8] kv layr=3\n",
     "t.ir:7:26: error: unknown attribute of a buffer 'layr'; did you mean 'layer'?\n"},
    {"attribute twice", HEAD "buffer x1 hbm f32 [8] kv layer=3 layer=3\n",
     "t.ir:7:34: error: 'layer' is given twice\n"},
    {"attribute without value", HEAD "buffer x1 hbm f32 [8] kv layer\n",
     "t.ir:7:26: error: 'layer' needs '=VALUE'\n"},
    {"flag with value", HEAD "buffer x1 hbm f32 [8] kv persistent=1\n",
     "t.ir:7:26: error: 'persistent' takes no value\n"},
    {"shard of nothing", HEAD "buffer x1 hbm f32 [8] kv shard=cp\n",
     "t.ir:7:32: error: shard is of a binding: give bind=KIND too\n"},
    {"parameters of nothing", HEAD "buffer x1 hbm f32 [8] kv bind=param\n",
     "t.ir:7:31: error: a buffer bound to param needs bundle=\n"},
    {"unknown bundle", HEAD "buffer x1 hbm f32 [8] kv bind=param bundle=b\n",
     "t.ir:7:44: error: there is no bundle 'b' above this line\n"},
    {"padded to fewer rows", HEAD "tensor t [4,2] padded=3\n",
     "t.ir:7:23: error: padded: expected a whole number in 4..1152921504606846975, not '3'\n"},
    {"bundle longer than the tensors", HEAD "tensor t [2,2]\nbundle b first=t count=2 elements=8\n",
     "t.ir:8:24: error: count: expected a whole number in 1..1, not '2'\n"},
    {"free after what never comes",
     HEAD "buffer x1 hbm f32 [8] kv free=0,3\nop 0 host_sync compute\n",
     "t.ir:7:31: error: free: there is no op 3; the schedule has 1 ops\n"},
    {"op number", HEAD "op 1 host_sync compute\n",
     "t.ir:7:4: error: op 1: ops are numbered from 0 without gaps; the next one is 0\n"},
    {"kind", HEAD "op 0 atention compute\n",
     "t.ir:7:6: error: unknown kind of work 'atention'; did you mean 'attention'?\n"},
    {"stream", HEAD "op 0 host_sync comput\n",
     "t.ir:7:16: error: unknown stream 'comput'; did you mean 'compute'?\n"},
    {"class of stream", HEAD "op 0 matmul comm.cp\n",
     "t.ir:7:13: error: matmul runs on streams of class compute, and 'comm.cp' is of class comm\n"},
    {"parameter", HEAD "op 0 fill compute cout=8 writes x0\n",
     "t.ir:7:19: error: unknown parameter of fill 'cout'; did you mean 'count'?\n"},
    {"parameter twice", HEAD "op 0 fill compute count=8 count=9 writes x0\n",
     "t.ir:7:27: error: 'count' is given twice\n"},
    {"parameter left out", HEAD "op 0 fill compute writes x0\n",
     "t.ir:7:28: error: op 0: fill needs count=\n"},
    {"size of nothing", HEAD "op 0 fill compute count=0 writes x0\n",
     "t.ir:7:25: error: count: expected a whole number of at least 1 that fits 63 bits, not '0'\n"},
    {"parameter too large", HEAD "op 0 fill compute count=9223372036854775808 writes x0\n",
     "t.ir:7:25: error: count: expected a whole number of at least 1 that fits 63 bits, not "
     "'9223372036854775808'\n"},
    {"value", HEAD "op 0 attention compute mask=causl\n",
     "t.ir:7:29: error: unknown mask 'causl'; did you mean 'causal'?\n"},
    {"group", HEAD "op 0 shift comm.cp group=pp by=1 bytes=16 reads x0 writes x0\n",
     "t.ir:7:26: error: unknown group 'pp': expected cp\n"},
    {"too few operands", HEAD "op 0 add compute count=8 reads x0 writes x0\n",
     "t.ir:7:44: error: op 0: add reads at least 2 operands, not 1\n"},
    {"too many operands", HEAD "op 0 cast compute count=8 reads x0 x0 writes x0\n",
     "t.ir:7:36: error: cast reads at most 1 operands\n"},
    {"no operands", HEAD "op 0 cast compute count=8 reads writes x0\n",
     "t.ir:7:33: error: expected a buffer that the op reads\n"},
    {"buffer", HEAD "op 0 fill compute count=8 writes x1\n",
     "t.ir:7:34: error: unknown buffer 'x1': expected x0\n"},
    {"range outside", HEAD "op 0 fill compute count=8 writes x0[0:9]\n",
     "t.ir:7:39: error: end of a range: expected a whole number in 1..8, not '9'\n"},
    {"range of nothing", HEAD "op 0 fill compute count=8 writes x0[3:3]\n",
     "t.ir:7:39: error: end of a range: expected a whole number in 4..8, not '3'\n"},
    {"no range", HEAD "op 0 fill compute count=8 writes x0[3]\n",
     "t.ir:7:36: error: expected a range such as [0:4096]\n"},
    {"guard", HEAD "op 0 fill compute count=8 guard cp>3 writes x0\n",
     "t.ir:7:35: error: a guard is GROUP<N, GROUP>=N or GROUP==N\n"},
    {"guard's group", HEAD "op 0 fill compute count=8 guard hp<3 writes x0\n",
     "t.ir:7:33: error: unknown group 'hp': expected cp\n"},
    {"waits", HEAD "op 0 host_sync compute waits 1,\n",
     "t.ir:7:32: error: waits: expected a whole number in 0..4294967294, not ''\n"},
    {"clause", HEAD "op 0 host_sync compute wait 1\n",
     "t.ir:7:24: error: unknown clause of an op 'wait'; did you mean 'waits'?\n"},
    {"clause twice", HEAD "op 0 cast compute count=8 reads x0 reads x0\n",
     "t.ir:7:36: error: 'reads' is given twice\n"},
    {"label", HEAD "op 0 host_sync compute layer=65535\n",
     "t.ir:7:30: error: layer: expected a whole number in 0..65534, not '65535'\n"},
    {"role too late", HEAD "role a\n", "t.ir:7:1: error: roles must come before buffers and ops\n"},
    {"ops without role", "longhaul schedule 1\nrole a\nstream c compute\nop 0 host_sync c\n",
     "t.ir:4:4: error: where there are roles, an 'ops ROLE' line must come first\n"},
    {"roles in disorder", "longhaul schedule 1\nrole a\nrole b\nops b\nops a\n",
     "t.ir:5:5: error: the ops of role 'a' must come once, in the order of the role lines\n"},
    {"buffer of no role", "longhaul schedule 1\nrole a\nrole b\nbuffer x hbm f32 [1] kv\n",
     "t.ir:4:8: error: where there are several roles, a buffer needs role=\n"},
    {"buffer of another role",
     "longhaul schedule 1\nrole a\nrole b\nstream c compute\nbuffer x hbm f32 [1] kv role=b\n"
     "ops a\nop 0 fill c count=1 writes x\n",
     "t.ir:7:28: error: buffer 'x' is of role 'b', this op of role 'a'\n"},
    {"escapes", HEAD "op 0 \x1b[31m compute\n",
     "t.ir:7:6: error: unknown kind of work '\\x1b[31m'\n"},
};

static void the_first_fault_is_reported_with_its_place(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        enum status status = ir_parse(&ir, "t.ir", wrong[i].text, strlen(wrong[i].text), &diag);
        CHECK(wrong[i].label, status == STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text ? diag.text : "", wrong[i].message);
        ir_release(&ir);
        diag_release(&diag);
    }
}

static void a_nul_is_reported_with_its_place(void)
{
    static const char text[] = "longhaul schedule 1\n# a\nmesh cp=\0002\n";
    struct ir ir = {0};
    struct diag diag = {0};
    CHECK_INT("nul", ir_parse(&ir, "t.ir", text, sizeof text - 1, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("nul", diag.text ? diag.text : "",
               "t.ir:3:9: error: a NUL byte: this is not text\n");
    ir_release(&ir);
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"the example prints canonically", the_example_prints_canonically},
    {"a NUL is told with its place", a_nul_is_reported_with_its_place},
    {"the example means what it says", the_example_means_what_it_says},
    {"equal schedules print the same", equal_schedules_print_the_same},
    {"what is printed reads back the same", what_is_printed_reads_back_the_same},
    {"files are saved and loaded", files_are_saved_and_loaded},
    {"the first fault is told with its place", the_first_fault_is_reported_with_its_place},
};
CHECK_MAIN("ir_text", cases)
