/* tests/schedule/test_recorded.c: schedules that are made of recorded steps. Texts of one event each show what an
 * operator costs, what a collective sends, on which mesh groups lie and what is refused; pairs of texts, how sends and
 * receives of stages are matched; whole recordings, that memory and collectives are those that were recorded. */
#include "base/text.h"
#include "schedule/recorded/recorded.h"
#include "schedule/reserved/replay.h"
#include "schedule/schedule_file.h"
#include "schedule/verify/verify.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static enum status parse_recording(struct step_recording *recording, const char *name,
                                   const struct text *text, struct diag *diag)
{
    return step_recording_parse(recording, name, check_json_from_single_quotes(text->data),
                                text->size, diag);
}

/* ---- one event at a time ---- */

/* A recording of one event, a forward in layer 5. To be filled in: the numbers of ranks, the rank,
 * groups, and the event's members: op, k (kind of kernel), rd and wr (bytes read and written), in
 * and out (tensors). A tensor is [storage, sizes, type] or, if it is not contiguous, [storage,
 * sizes, type, strides]; storage 0 is the only one, -1 is on the host. */
static const char head[] =
    "{'format':'longhaul-step','version':1,'torch':'2','world':%d,'rank':%d,'groups':{%s},'modules'"
    ":['','model.layers.5.mlp'],'guessed':{},'peak':0,'storages':[[4096,-1,-1,'given']],'events':[{"
    "%s,'ph':'f','m':1,'n':0,'s':0}]}";

/* Makes a schedule of one event and verifies it. Returns the messages, "" without any. The caller releases *ir and
 * *diag. */
static const char *schedule_one_recorded_event(struct ir *ir, struct diag *diag, int world,
                                               int rank, const char *groups, const char *event)
{
    struct text text = {0};
    struct step_recording recording = {0};
    text_printf(&text, head, world, rank, groups, event);
    enum status status = parse_recording(&recording, "one.json", &text, diag);
    if (status == STATUS_OK)
        status = recorded_make_schedule(ir, &recording, 1, NULL, diag);
    if (status == STATUS_OK)
        verify(ir, NULL, "one.json", NULL, diag);
    step_recording_release(&recording);
    text_release(&text);
    return diag->text ? diag->text : "";
}

/* The work that the last op of the schedule must be. */
static const struct {
    const char *label, *event;
    struct work work;
} operators[] = {
    {"mm",
     "'op':'mm','k':'mm','rd':1,'wr':1,'in':[[0,[1024,640],'bfloat16'],[0,[640,256],'bfloat16']],'"
     "out':[[0,[1024,256],'bfloat16']]",
     {.opaque = {.as = OPAQUE_MATMUL, .m = 1024, .n = 256, .k = 640}}},
    {"addmm: the bias is first",
     "'op':'addmm','k':'mm','rd':1,'wr':1,'in':[[0,[256],'float32'],[0,[8,640],'float32'],[0,[640,"
     "256],'float32']],'out':[[0,[8,256],'float32']]",
     {.opaque = {.as = OPAQUE_MATMUL,
                 .m = 8,
                 .n = 256,
                 .k = 640,
                 .dtype = DTYPE_F32,
                 .out_dtype = DTYPE_F32}}},
    {"bmm: a group for each of the batch",
     "'op':'bmm','k':'mm','rd':1,'wr':1,'in':[[0,[4,16,32],'bfloat16'],[0,[4,32,64],'bfloat16']],'"
     "out':[[0,[4,16,64],'bfloat16']]",
     {.opaque = {.as = OPAQUE_MATMUL, .m = 64, .n = 64, .k = 32, .groups = 4}}},
    {"experts",
     "'op':'_grouped_mm','k':'mm','rd':1,'wr':1,'in':[[0,[4096,32],'bfloat16'],[0,[8,32,64],'"
     "bfloat16'],[0,[8],'int32']],'out':[[0,[4096,64],'bfloat16']]",
     {.opaque = {.as = OPAQUE_MATMUL, .m = 4096, .n = 64, .k = 32, .groups = 8}}},
    {"gradients of experts",
     "'op':'_grouped_mm','k':'mm','rd':1,'wr':1,'in':[[0,[32,4096],'bfloat16'],[0,[4096,64],'"
     "bfloat16'],[0,[8],'int32']],'out':[[0,[8,32,64],'bfloat16']]",
     {.opaque = {.as = OPAQUE_MATMUL_TN, .m = 32, .n = 64, .k = 4096, .groups = 8}}},
    {"attention of cuDNN, causal",
     "'op':'_scaled_dot_product_cudnn_attention','k':'sdpa','rd':1,'wr':1,'in':[[0,[2,8,512,128],'"
     "bfloat16'],[0,[2,4,768,128],'bfloat16'],[0,[2,4,768,128],'bfloat16']],'out':[[0,[2,8,512,128]"
     ",'bfloat16']],'arg':{'is_causal':true,'dropout_p':0.0}",
     {.opaque = {.as = OPAQUE_ATTENTION,
                 .m = 512,
                 .n = 768,
                 .k = 128,
                 .heads = 16,
                 .kv_heads = 8,
                 .causal = 1,
                 .kernels = ATTENTION_CUDNN}}},
    {"the backward of flash attention, whose gradient is first",
     "'op':'_scaled_dot_product_flash_attention_backward','k':'sdpa','rd':1,'wr':1,'in':[[0,[2,8,"
     "512,128],'bfloat16'],[0,[2,8,512,128],'bfloat16'],[0,[2,4,768,128],'bfloat16'],[0,[2,4,768,"
     "128],'bfloat16']],'out':[],'arg':{'is_causal':false}",
     {.opaque = {.as = OPAQUE_ATTENTION_BACKWARD,
                 .m = 512,
                 .n = 768,
                 .k = 128,
                 .heads = 16,
                 .kv_heads = 8,
                 .kernels = ATTENTION_FA2}}},
    {"a sum of two",
     "'op':'add.Tensor','k':'elementwise','in':[],'out':[],'rd':200,'wr':100",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 300}}},
    {"a product of alike tensors in another order of dimensions",
     "'op':'mul.Tensor','k':'elementwise','rd':8,'wr':4,'in':[[0,[1,4,8],'float32',[32,1,4]],[0,[4,"
     "8],'float32',[1,4]]],'out':[[0,[1,4,8],'float32',[32,1,4]]]",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 12}}},
    {"a product with a row",
     "'op':'mul.Tensor','k':'elementwise','rd':8,'wr':4,'in':[[0,[4,8],'float32'],[0,[8],'float32']"
     "],'out':[[0,[4,8],'float32']]",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 12, .slow = 32}}},
    {"a sum of two types",
     "'op':'add.Tensor','k':'elementwise','rd':8,'wr':4,'in':[[0,[4,8],'float32'],[0,[4,8],'"
     "bfloat16']],'out':[[0,[4,8],'float32']]",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 12, .slow = 32}}},
    {"a part of each row",
     "'op':'neg','k':'elementwise','rd':4,'wr':4,'in':[[0,[4,8],'float32',[16,1]]],'out':[[0,[4,8],"
     "'float32']]",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 8, .slow = 32}}},
    {"a product with a number of the host",
     "'op':'mul.Tensor','k':'elementwise','rd':4,'wr':4,'in':[[0,[4,8],'float32'],[-1,[],'float32']"
     "],'out':[[0,[4,8],'float32']]",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 8}}},
    {"halves of each row are joined",
     "'op':'cat','k':'copy','rd':4,'wr':4,'in':[[0,[4,4],'float32',[8,1]],[0,[4,4],'float32',[8,1]]"
     "],'out':[[0,[4,8],'float32']]",
     {.opaque = {.as = OPAQUE_PERMUTE, .bytes = 8, .slow = 32}}},
    {"the log-softmax of long rows",
     "'op':'_log_softmax','k':'reduction','rd':4,'wr':4,'in':[[0,[2,20000],'float32']],'out':[]",
     {.opaque = {.as = OPAQUE_REDUCE, .bytes = 8, .slow = 40000}}},
    {"its backward",
     "'op':'_log_softmax_backward_data','k':'reduction','rd':4,'wr':4,'in':[[0,[2,20000],'float32']"
     "],'out':[]",
     {.opaque = {.as = OPAQUE_REDUCE, .bytes = 8, .slow = 46000}}},
    {"the log-softmax of short rows",
     "'op':'_log_softmax','k':'reduction','rd':4,'wr':4,'in':[[0,[2,2000],'float32']],'out':[]",
     {.opaque = {.as = OPAQUE_REDUCE, .bytes = 8}}},
    {"a reduction",
     "'op':'sum.dim_IntList','k':'reduction','in':[],'out':[],'rd':200,'wr':2",
     {.opaque = {.as = OPAQUE_REDUCE, .bytes = 202}}},
    {"a gather of rows",
     "'op':'embedding','k':'index','in':[],'out':[],'rd':200,'wr':200",
     {.opaque = {.as = OPAQUE_GATHER, .bytes = 400}}},
    {"a scatter of rows",
     "'op':'embedding_dense_backward','k':'index','in':[],'out':[],'rd':1,'wr':2",
     {.opaque = {.as = OPAQUE_SCATTER, .bytes = 3}}},
    {"a copy",
     "'op':'clone','k':'copy','in':[[0,[64],'bfloat16']],'out':[],'rd':1,'wr':1",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 2}}},
    {"a copy into another order",
     "'op':'clone','k':'copy','in':[[0,[8,8],'bfloat16',[1,8]]],'out':[],'rd':1,'wr':1",
     {.opaque = {.as = OPAQUE_PERMUTE, .bytes = 2}}},
    {"a kernel of which only its bytes are known",
     "'op':'mine.scan','k':'opaque','in':[],'out':[],'rd':5,'wr':1",
     {.opaque = {.as = OPAQUE_STREAM, .bytes = 6}}},
};

static void operators_cost_what_their_shapes_say(void)
{
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        CHECK_TEXT(operators[i].label,
                   schedule_one_recorded_event(&ir, &diag, 1, 0, "", operators[i].event), "");
        if (CHECK(operators[i].label, ir.op.count == 2)) { /* the first writes what is given */
            const struct work *work = ir_work(&ir, 1);
            const struct op_table *op = &ir.op;
            CHECK_INT(operators[i].label, work->kind, WORK_OPAQUE);
            for (int k = 0; k < WORK_PARAMS_MAX; k++)
                CHECK_INT(operators[i].label, work->p[k], operators[i].work.p[k]);
            CHECK_INT(operators[i].label, op->layer[1], 5);
        }
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* The handles of streams may be addresses, which are longer than a name. */
static void streams_are_named_by_their_order(void)
{
#define KERNEL(s) "'op':'neg','k':'elementwise','in':[],'out':[],'rd':1,'wr':1,'s':" s "},{"
    static const char *const names[] = {"compute", "compute.1", "compute.2"};
    struct ir ir = {0};
    struct diag diag = {0};
    CHECK_TEXT("verified",
               schedule_one_recorded_event(
                   &ir, &diag, 1, 0, "",
                   KERNEL("0") KERNEL("9223372036854775807") KERNEL("-9223372036854775808")
                       KERNEL("9223372036854775807") "'op':'neg','k':'elementwise','"
                                                     "in':[],'out':[],'rd':1,'wr':1"),
               "");
    CHECK_INT("streams", ir.stream_count, ARRAY_LEN(names));
    for (uint32_t i = 0; i < ir.stream_count && i < ARRAY_LEN(names); i++)
        CHECK_TEXT("name", ir.stream[i].name, names[i]);
    diag_release(&diag);
    ir_release(&ir);
}

/* ---- collectives and meshes ---- */

#define COLLECTIVE(op, full)                                                                       \
    "'op':'" op "','k':'comm','rd':1,'wr':1,'in':[[0,[8],'float32']],'out':[],"                    \
    "'g':'7','full':" full

static const struct {
    const char *label, *event;
    enum work_kind kind;
    int64_t bytes; /* what a rank sends */
} collectives[] = {
    {"all-gather: a part of the whole", COLLECTIVE("c10d._allgather_base_", "1049088"),
     WORK_ALL_GATHER, 131136},
    {"reduce-scatter", COLLECTIVE("c10d._reduce_scatter_base_", "2098176"), WORK_REDUCE_SCATTER,
     2098176},
    {"all-reduce", COLLECTIVE("_c10d_functional.all_reduce", "84"), WORK_ALL_REDUCE, 84},
    {"all-to-all", COLLECTIVE("_c10d_functional.all_to_all_single", "800"), WORK_ALL_TO_ALL, 800},
    {"broadcast", COLLECTIVE("c10d.broadcast_", "400"), WORK_BROADCAST, 400},
    {"a ring by an all-to-all that sends all to one",
     COLLECTIVE("_c10d_functional.all_to_all_single", "800,'sent':[0,0,0,0,800,0,0,0]"), WORK_SHIFT,
     800},
    {"an uneven all-to-all: the largest piece for each",
     COLLECTIVE("_c10d_functional.all_to_all_single", "800,'sent':[0,100,0,0,400,300,0,0]"),
     WORK_ALL_TO_ALL, 3200},
    {"bytes that do not cut are filled up", COLLECTIVE("c10d._reduce_scatter_base_", "33"),
     WORK_REDUCE_SCATTER, 64},
};

static void collectives_move_the_recorded_bytes(void)
{
    for (size_t i = 0; i < ARRAY_LEN(collectives); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        CHECK_TEXT(collectives[i].label,
                   schedule_one_recorded_event(&ir, &diag, 8, 3,
                                               "'7':{'ranks':[0,1,2,3,4,5,6,7],'desc':'all'}",
                                               collectives[i].event),
                   "");
        uint32_t op = ir.op.count - 1;
        CHECK_INT(collectives[i].label, ir.op.kind[op], collectives[i].kind);
        CHECK_INT(collectives[i].label, work_payload_bytes(ir_work(&ir, op)), collectives[i].bytes);
        CHECK_INT(collectives[i].label, group_rank_count(&ir.mesh, &ir.group[0]), 8);
        diag_release(&diag);
        ir_release(&ir);
    }
}

static const struct {
    const char *label, *groups;
    int world, rank;
    /* the members of the first group's instance that has the rank, in order; NULL: refused */
    const char *ranks;
} meshes[] = {
    /* label, groups, world, rank, ranks */
    {"the whole", "'7':{'ranks':[0,1,2,3]}", 4, 2, "0 1 2 3"},
    {"alone", "'7':{'ranks':[2]}", 4, 2, "2"},
    {"neighbours", "'7':{'ranks':[4,5,6,7]}", 64, 5, "4 5 6 7"},
    {"strides", "'7':{'ranks':[1,5,9,13]},'8':{'ranks':[0,1,2,3]}", 16, 1, "1 5 9 13"},
    {"the outer and the inner axis of three", "'7':{'ranks':[0,1,8,9]},'8':{'ranks':[0,2,4,6]}", 16,
     0, "0 1 8 9"},
    {"two axes that are one progression",
     "'7':{'ranks':[0,4,8,12,16,20,24,28]},'8':{'ranks':[0,4]}", 32, 0, "0 4 8 12 16 20 24 28"},
    {"no progression", "'7':{'ranks':[0,1,3]}", 8, 0, NULL},
    {"progressions that cross", "'7':{'ranks':[0,1,2]},'8':{'ranks':[0,1]}", 6, 0, NULL},
    {"one that does not divide the ranks", "'7':{'ranks':[0,1,2]}", 8, 0, NULL},
};

static void groups_lie_on_a_mesh(void)
{
    for (size_t i = 0; i < ARRAY_LEN(meshes); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        char groups[256];
        snprintf(groups, sizeof groups, "%s", meshes[i].groups);
        /* the recorded rank is in all groups */
        const char *message =
            schedule_one_recorded_event(&ir, &diag, meshes[i].world, meshes[i].rank, groups,
                                        COLLECTIVE("c10d.allreduce_", "8"));
        if (meshes[i].ranks == NULL) {
            CHECK(meshes[i].label, strstr(message, "is no group of a mesh of") != NULL);
        } else {
            struct text ranks = {0};
            uint32_t instance, index;
            CHECK_TEXT(meshes[i].label, message, "");
            CHECK_INT(meshes[i].label, mesh_rank_count(&ir.mesh), meshes[i].world);
            CHECK(meshes[i].label, group_find_member(&ir.mesh, &ir.group[0],
                                                     (uint32_t)meshes[i].rank, &instance, &index));
            for (uint32_t k = 0; k < group_rank_count(&ir.mesh, &ir.group[0]); k++)
                text_printf(&ranks, "%s%u", k == 0 ? "" : " ",
                            group_global_rank_of_member(&ir.mesh, &ir.group[0], instance, k));
            CHECK_TEXT(meshes[i].label, ranks.data, meshes[i].ranks);
            text_release(&ranks);
        }
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* ---- copies to the device, and what is refused ---- */

static const struct {
    const char *label, *event, *message;
} refused[] = {
    {"a product of one matrix",
     "'op':'mm','k':'mm','in':[[0,[8,8],'bfloat16']],'out':[[0,[8,8],'bfloat16']],'rd':1,'wr':1",
     "one.json: error: event 0 (mm): a product reads two matrices and writes one\n"},
    {"attention without heads",
     "'op':'_flash_attention_forward','k':'sdpa','rd':1,'wr':1,'in':[[0,[8,8],'bfloat16'],[0,[8,8],"
     "'bfloat16']],'out':[]",
     "one.json: error: event 0 (_flash_attention_forward): attention of this form is not priced: q "
     "and k of (batch, heads, tokens, width) are expected\n"},
    {"a collective that is not known",
     "'op':'c10d.gossip_','k':'comm','rd':1,'wr':1,'in':[],'out':[],'full':8",
     "one.json: error: event 0 (c10d.gossip_): this collective is not predicted from a recording: "
     "gathers, reductions, all-to-alls, broadcasts and barriers are\n"},
    {"a message of a pipeline",
     "'op':'c10d.send','k':'comm','rd':1,'wr':1,'in':[],'out':[],'full':8,'peer':0",
     "one.json: error: event 0 (c10d.send): a message to rank 0, whose step is not given: of a "
     "pipeline give one recording of each stage, as in predict stage-*.json.gz, each recorded with "
     "its --rank; without them only sends and receives of a ring, in one batch, are predicted\n"},
    {"a collective without a group",
     "'op':'c10d.allreduce_','k':'comm','rd':1,'wr':1,'in':[],'out':[],'full':8",
     "one.json: error: event 0 (c10d.allreduce_): has no member 'g', the group of its ranks\n"},
};

static void batches_come_from_the_host(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    CHECK_TEXT("verified",
               schedule_one_recorded_event(
                   &ir, &diag, 1, 0, "",
                   "'op':'_to_copy','k':'copy','rd':64,'wr':64,'in':[[-1,[8],'int64']],'"
                   "out':[[0,[8],'int64']]"),
               "");
    CHECK_INT("a copy to the device", ir.op.count > 0 ? ir.op.kind[ir.op.count - 1] : -1, WORK_H2D);
    diag_release(&diag);
    ir_release(&ir);
}

static void what_has_no_cost_is_refused_by_name(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        CHECK_TEXT(refused[i].label,
                   schedule_one_recorded_event(&ir, &diag, 1, 0, "", refused[i].event),
                   refused[i].message);
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* ---- stages of a pipeline ---- */

#define SEND(peer, bytes)                                                                          \
    "{'op':'c10d.send','k':'comm','in':[],'out':[],'rd':1,'wr':1,'g':'7',"                         \
    "'async':true,'full':" bytes ",'peer':" peer "}"
#define RECV_IN_GROUP(group, peer, bytes)                                                          \
    "{'op':'c10d.recv_','k':'comm','in':[],'out':[],'rd':1,'wr':1,'g':'" group                     \
    "','async':true,'full':" bytes ",'peer':" peer "}"
#define RECV(peer, bytes) RECV_IN_GROUP("7", peer, bytes)

/* The recordings of two stages, a and b, and the message about them; "": they match. ranks: those
 * of group 7, over which the stages send. */
static const struct {
    const char *label;
    int world[2], rank[2];
    const char *ranks, *events[2], *message;
    /* JSON of the groups that only b has; NULL: it has no such group */
    const char *groups_only_of_b;
} stages[] = {
    /* label, world, rank, ranks, events, message, more */
    {"one sends what the other receives",
     {2, 2},
     {0, 1},
     "0,1",
     {SEND("1", "8") "," RECV("1", "4"), RECV("0", "8") "," SEND("0", "4")},
     "",
     NULL},
    {"each for two ranks", {4, 4}, {0, 2}, "0,2", {SEND("2", "8"), RECV("0", "8")}, "", NULL},
    {"other worlds",
     {2, 4},
     {0, 1},
     "0,1",
     {SEND("1", "8"), RECV("0", "8")},
     "b.json: error: was recorded with 4 ranks, and a.json with 2: record every stage with the "
     "same --world-size\n",
     NULL},
    {"one rank twice",
     {2, 2},
     {1, 1},
     "0,1",
     {SEND("0", "8"), RECV("0", "8")},
     "b.json: error: is of rank 1, as a.json is: give one recording of each stage, recorded with "
     "its --rank\n",
     NULL},
    {"a stage is missing",
     {4, 4},
     {0, 1},
     "0,1,2,3",
     {SEND("1", "8"), RECV("0", "8") "," SEND("2", "8")},
     "b.json: error: event 1 (c10d.send): a message to rank 2, whose step is not given: of a "
     "pipeline give one recording of each stage, as in predict stage-*.json.gz, each recorded with "
     "its --rank; without them only sends and receives of a ring, in one batch, are predicted\n",
     NULL},
    {"ranks that are no axis",
     {8, 8},
     {0, 3},
     "0,1,2,3,4,5,6,7",
     {SEND("3", "8"), RECV("0", "8")},
     "a.json: error: ranks 0, 3, ... of the recordings are no group of a mesh of 8 ranks on which "
     "the other groups lie: record one rank of every stage, each in the same place of its stage\n",
     NULL},
    {"a send without a receive",
     {2, 2},
     {0, 1},
     "0,1",
     {SEND("1", "8") "," SEND("1", "8"), RECV("0", "8")},
     "a.json: error: event 1 (c10d.send): is send 2 to rank 1 in group 'pp', and b.json has 1 "
     "receive from rank 0 there\n",
     NULL},
    {"a receive without a send",
     {2, 2},
     {0, 1},
     "0,1",
     {RECV("1", "8"), RECV("0", "8")},
     "b.json: error: event 0 (c10d.recv_): is receive 1 from rank 0 in group 'pp', and a.json has "
     "0 sends to rank 1 there\n",
     NULL},
    {"a receive in a group that only the receiver has",
     {2, 2},
     {0, 1},
     "0,1",
     {SEND("1", "8"), RECV("0", "8") "," RECV_IN_GROUP("8", "0", "8")},
     "b.json: error: event 1 (c10d.recv_): is receive 1 from rank 0 in group 'other', and a.json "
     "has no such group\n",
     ",'8':{'ranks':[0,1],'desc':'other'}"},
    {"a group that only one has and nobody uses",
     {2, 2},
     {0, 1},
     "0,1",
     {SEND("1", "8"), RECV("0", "8")},
     "",
     ",'8':{'ranks':[0,1],'desc':'other'}"},
    {"other bytes",
     {2, 2},
     {0, 1},
     "0,1",
     {SEND("1", "8") "," SEND("1", "8"), RECV("0", "8") "," RECV("0", "4")},
     "a.json: error: event 1 (c10d.send): sends 8 bytes to rank 1, and its receive, event 1 of "
     "b.json, is of 4 bytes\n",
     NULL},
};

static void messages_of_stages_are_matched(void)
{
    static const char *const names[] = {"a.json", "b.json"};
    for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
        struct step_recording recording[2] = {{.rank = 0}, {.rank = 0}};
        struct ir ir = {0};
        struct diag diag = {0};
        enum status status = STATUS_OK;
        for (int k = 0; k < 2 && status == STATUS_OK; k++) {
            struct text text = {0};
            text_printf(&text,
                        "{'format':'longhaul-step','version':1,'torch':'2','world':%d,'rank':%d,'"
                        "groups':{'7':{'ranks':[%s],'desc':'pp'}%s},'modules':[''],'guessed':{},'"
                        "peak':0,'storages':[],'events':[%s]}",
                        stages[i].world[k], stages[i].rank[k], stages[i].ranks,
                        k == 1 && stages[i].groups_only_of_b != NULL ? stages[i].groups_only_of_b
                                                                     : "",
                        stages[i].events[k]);
            status = parse_recording(&recording[k], names[k], &text, &diag);
            text_release(&text);
        }
        if (status == STATUS_OK)
            status = recorded_make_schedule(&ir, recording, 2, NULL, &diag);
        if (status == STATUS_OK)
            verify(&ir, NULL, "a.json", NULL, &diag);
        CHECK_TEXT(stages[i].label, diag.text ? diag.text : "", stages[i].message);
        if (stages[i].message[0] == '\0')
            CHECK_INT(stages[i].label, ir.role_count, 2);
        diag_release(&diag);
        ir_release(&ir);
        step_recording_release(&recording[0]);
        step_recording_release(&recording[1]);
    }
}

/* ---- whole recordings ---- */

/* Loads a recording of tests/data/recordings/ and the schedule that is made of it. */
static bool load_recording(struct step_recording *recording, struct ir *ir, const char *name)
{
    char recording_path[80];
    struct text text = {0};
    struct diag diag = {0};
    snprintf(recording_path, sizeof recording_path, "data/recordings/%s.json.gz", name);
    enum status status = text_read(&text, check_path(recording_path), &diag);
    if (status == STATUS_OK)
        status = step_recording_parse(recording, name, text.data, text.size, &diag);
    if (status == STATUS_OK)
        status = recorded_make_schedule(ir, recording, 1, NULL, &diag);
    if (status == STATUS_OK)
        status = verify(ir, NULL, name, NULL, &diag);
    CHECK_TEXT(name, diag.text ? diag.text : "", "");
    text_release(&text);
    diag_release(&diag);
    return CHECK_INT(name, status, STATUS_OK);
}

static const char *const whole[] = {"llama-one", "llama-fsdp", "llama-hsdp-tp"};

/* Returns the most bytes that the replay of a schedule holds at once, without rounding. */
static int64_t replayed_peak(const struct replayed_buffer_lifetimes *replay)
{
    int64_t *change = heap_zalloc(2 * (size_t)replay->op_count + 2, sizeof *change), now = 0,
            peak = 0;
    for (uint32_t i = 0; i < replay->row_count; i++) {
        const struct replay_stay *row = &replay->row[i];
        int64_t bytes = (int64_t)ir_buffer_bytes(replay->ir, (buffer_id){row->buffer});
        change[2 * row->first_op] += bytes;
        if (row->last_op != IR_NONE)
            change[2 * row->last_op + 1] -= bytes;
    }
    for (size_t i = 0; i < 2 * (size_t)replay->op_count + 2; i++) {
        now += change[i];
        peak = now > peak ? now : peak;
    }
    free(change);
    return peak;
}

/* The storages rebuild the peak that the recorder counted, and so does the replay of the schedule. */
static void memory_is_that_of_the_storages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        struct step_recording recording = {0};
        struct ir ir = {0};
        if (load_recording(&recording, &ir, whole[i])) {
            struct replayed_buffer_lifetimes replay;
            CHECK_INT(whole[i], (int64_t)step_recording_peak_bytes(&recording),
                      (int64_t)recording.recorded_peak_bytes);
            replay_list_buffers_of_role(&replay, &ir, &ir.role[0], (struct replay_options){0});
            CHECK_INT(whole[i], replayed_peak(&replay), (int64_t)recording.recorded_peak_bytes);
            replay_release(&replay);
        }
        ir_release(&ir);
        step_recording_release(&recording);
    }
}

/* Returns the payload of all ops of the kind, and their number in *count. */
static int64_t moved_bytes_of_kind(const struct ir *ir, enum work_kind kind, uint32_t *count)
{
    int64_t bytes = 0;
    *count = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind) {
            bytes += work_payload_bytes(ir_work(ir, op));
            ++*count;
        }
    return bytes;
}

/* FSDP2 of 8 ranks gathers the parameters in bf16, the root's once and the layers' twice, and
 * reduces all gradients in fp32. root and layers are the bytes of one rank's parameters, in fp32,
 * which the recording has as storages. */
static void collectives_of_fsdp2_move_the_parameters(void)
{
    struct step_recording recording = {0};
    struct ir ir = {0};
    if (load_recording(&recording, &ir, "llama-fsdp")) {
        uint32_t gathers, scatters, reductions;
        int64_t root = 0, layers = 0;
        for (uint32_t s = 0; s < recording.storage_count; s++) {
            const struct step_storage *storage = &recording.storage[s];
            if (strncmp(storage->role, "param ", 6) == 0)
                *(strstr(storage->role, ".layers.") != NULL ? &layers : &root) +=
                    (int64_t)storage->bytes;
        }
        CHECK_INT("bytes gathered", moved_bytes_of_kind(&ir, WORK_ALL_GATHER, &gathers),
                  root / 2 + layers);
        CHECK_INT("bytes reduced", moved_bytes_of_kind(&ir, WORK_REDUCE_SCATTER, &scatters),
                  8 * (root + layers));
        moved_bytes_of_kind(&ir, WORK_ALL_REDUCE, &reductions);
        CHECK_INT("gathers: root, 2 layers forward, 2 backward", gathers, 5);
        CHECK_INT("scatters: root and 2 layers", scatters, 3);
        CHECK_INT("the norm of the gradients", reductions, 1);
    }
    ir_release(&ir);
    step_recording_release(&recording);
}

static const struct check_case cases[] = {
    {"operators cost what their shapes say", operators_cost_what_their_shapes_say},
    {"streams are named by their order", streams_are_named_by_their_order},
    {"collectives move the recorded bytes", collectives_move_the_recorded_bytes},
    {"groups lie on a mesh", groups_lie_on_a_mesh},
    {"batches come from the host", batches_come_from_the_host},
    {"what has no cost is refused by name", what_has_no_cost_is_refused_by_name},
    {"messages of stages are matched", messages_of_stages_are_matched},
    {"memory is that of the storages", memory_is_that_of_the_storages},
    {"collectives of FSDP2 move the parameters", collectives_of_fsdp2_move_the_parameters},
};
CHECK_MAIN("schedule/recorded", cases)
