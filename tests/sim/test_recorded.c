/* tests/sim/test_recorded.c: recorded programs of two streams whose overlap is known: products of 1 s and 2 s on the
 * default stream, and a gather of 3 s; and pipelines of two stages that send messages of 2 s. A program is the text of
 * its events (check_json_from_single_quotes()); the macro of each event ends with a comma, which the last one loses
 * when the text is put together. */
#include "schedule/recorded/recorded.h"
#include "schedule/verify/verify.h"
#include "tests/sim/machine.h"

#include <string.h>

/* clang-format off */
#define HEAD                                                                                       \
    "{'format':'longhaul-step','version':1,'torch':'2','world':4,'rank':1,"                        \
    "'groups':{'g':{'ranks':[0,1,2,3]}},'modules':[''],'guessed':{},'peak':1600,"                  \
    "'storages':[[1600,-1,-1,'given']],'events':["
/* 2 x 1000 x 1000 x 500000 flops are 1 s at 1e12 flop/s */
#define PRODUCT(k)                                                                                 \
    "{'op':'mm','k':'mm','ph':'f','m':0,'n':1,'s':0,"                                              \
    "'in':[[0,[1000," k "],'bfloat16'],[0,[" k ",1000],'bfloat16']],"                              \
    "'out':[[0,[1000,1000],'bfloat16']],'rd':1,'wr':1},"
#define ONE PRODUCT("500000")
#define TWO PRODUCT("1000000")
/* 3 s: of 4 ranks each sends its 100 GB to 3 others, at 100 GB/s. more: further JSON members */
#define EVENT_ALL_GATHER(op, stream, more)                                                                \
    "{'op':'" op "','k':'comm','ph':'f','m':0,'n':-1,'s':" stream ",'in':[],"                      \
    "'out':[[0,[1],'bfloat16']],'rd':1,'wr':1,'g':'g','full':400000000000" more "},"
#define EVENT_ALL_GATHER_BASE(stream) EVENT_ALL_GATHER("c10d._allgather_base_", stream, "")
#define EVENT_FUNCTIONAL_ALL_GATHER EVENT_ALL_GATHER("_c10d_functional.all_gather_into_tensor", "0", "")
#define EVENT_WAIT_TENSOR                                                                                       \
    "{'op':'_c10d_functional.wait_tensor','k':'comm','ph':'f','m':0,'n':-1,'s':0,"                 \
    "'in':[[0,[1],'bfloat16']],'out':[],'rd':0,'wr':0,'g':'g','full':1},"
/* a message of a batch, of rank 1 in a ring of 4 */
#define EVENT_BATCHED_MESSAGE(op, peer)                                                                          \
    "{'op':'c10d." op "','k':'comm','ph':'f','m':0,'n':-1,'s':0,'in':[],'out':[],"                 \
    "'rd':1,'wr':1,'g':'g','full':100000000000,'async':true,'batch':7,'peer':" peer "},"
/* the default stream waits for the work of event number `on` */
#define EVENT_WORK_WAIT(on) "{'op':'work_wait','s':0,'on':" on "},"
/* a stream records a CUDA event; a stream, or the host, waits for it */
#define EVENT_RECORD(stream, event) "{'op':'record','s':" stream ",'e':" event "},"
#define EVENT_STREAM_WAIT(stream, event) "{'op':'wait','s':" stream ",'e':" event "},"
#define EVENT_HOST_WAIT(event) "{'op':'host_wait','s':0,'e':" event "},"
#define EVENT_ITEM_SYNC "{'op':'item','s':0},"

static const struct {
    const char *label, *events;
    double step_s;
} rows[] = {
    {"a stream of its own: 1 + max(3, 2) + 1",
     ONE EVENT_RECORD("0", "5") EVENT_STREAM_WAIT("7", "5") EVENT_ALL_GATHER_BASE("7") EVENT_RECORD("7", "6") TWO EVENT_STREAM_WAIT("0", "6") ONE, 5},
    {"a stream that does not wait for the first product: max(3, 1 + 2) + 1",
     ONE EVENT_ALL_GATHER_BASE("7") EVENT_RECORD("7", "6") TWO EVENT_STREAM_WAIT("0", "6") ONE, 4},
    {"in the order of the default stream: 1 + 3 + 2 + 1",
     ONE EVENT_ALL_GATHER_BASE("0") TWO ONE, 7},
    {"functional, joined before the last product: 1 + max(3, 2) + 1",
     ONE EVENT_FUNCTIONAL_ALL_GATHER TWO EVENT_WAIT_TENSOR ONE, 5},
    {"functional, never joined: max(1 + 3, 1 + 2 + 1)",
     ONE EVENT_FUNCTIONAL_ALL_GATHER TWO ONE, 4},
    {"asynchronous, waited for at once: 1 + 3 + 2",
     ONE EVENT_ALL_GATHER("c10d._allgather_base_", "0", ",'async':true") EVENT_WORK_WAIT("1") TWO, 6},
    {"the host reads a value before it issues the gather of another stream: 1 + 3",
     ONE EVENT_ITEM_SYNC EVENT_ALL_GATHER_BASE("7"), 4},
    {"it waits for an event of another stream: 3 + 2",
     EVENT_ALL_GATHER_BASE("7") EVENT_RECORD("7", "6") EVENT_HOST_WAIT("6") TWO, 5},
    {"a batch of a send and a receive is one shift of 100 GB at 50 GB/s, waited for: max(2, 1)",
     EVENT_BATCHED_MESSAGE("send", "2") EVENT_BATCHED_MESSAGE("recv_", "0") ONE EVENT_WORK_WAIT("1") EVENT_WORK_WAIT("0"), 2},
    {"a wait for an event that is recorded only later waits for nothing: max(3, 1)",
     EVENT_ALL_GATHER_BASE("7") EVENT_STREAM_WAIT("0", "6") ONE EVENT_RECORD("7", "6"), 3},
};
/* clang-format on */

/* Reads a recording: a head, events without the comma after the last one, and the end. */
static enum status parse_events(struct step_recording *recording, const char *name,
                                const char *head, const char *events, struct diag *diag)
{
    struct text text = {0};
    text_printf(&text, "%s%.*s]}", head, (int)strlen(events) - 1, events);
    enum status status = step_recording_parse(
        recording, name, check_json_from_single_quotes(text.data), text.size, diag);
    text_release(&text);
    return status;
}

static void streams_overlap_as_recorded(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct step_recording recording = {0};
        struct diag diag = {0};
        struct ir ir = {0};
        struct sim_result result = {0};
        enum status status = parse_events(&recording, "two.json", HEAD, rows[i].events, &diag);
        if (status == STATUS_OK)
            status = recorded_make_schedule(&ir, &recording, 1, NULL, &diag);
        if (status == STATUS_OK)
            status = verify(&ir, NULL, "two.json", NULL, &diag);
        CHECK_TEXT(rows[i].label, diag.text ? diag.text : "", "");
        if (CHECK_INT(rows[i].label, status, STATUS_OK)) {
            const struct cluster cluster = make_round_number_cluster(1);
            struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
            if (simulate_or_fail_check(rows[i].label, &ir, &cluster, &costs.costs,
                                       (struct sim_options){0}, &result))
                CHECK_CLOSE(rows[i].label, result.step_s, rows[i].step_s, 1e-9);
            toy_sim_costs_release(&costs);
        }
        sim_result_release(&result);
        ir_release(&ir);
        diag_release(&diag);
        step_recording_release(&recording);
    }
}

/* ---- stages of a pipeline ---- */

/* clang-format off */
#define STAGE(rank)                                                                                \
    "{'format':'longhaul-step','version':1,'torch':'2','world':2,'rank':" rank ","                 \
    "'groups':{'g':{'ranks':[0,1]}},'modules':[''],'guessed':{},'peak':1600,"                      \
    "'storages':[[1600,-1,-1,'given']],'events':["
/* a message to the other stage or from it: 100 GB, 2 s */
#define EVENT_STAGE_MESSAGE(op, peer, more)                                                                       \
    "{'op':'c10d." op "','k':'comm','ph':'f','m':0,'n':-1,'s':0,'in':[],'out':[],"                 \
    "'rd':1,'wr':1,'g':'g','full':100000000000,'async':true,'peer':" peer more "},"
#define SEND(peer) EVENT_STAGE_MESSAGE("send", peer, "")
#define RECV(peer) EVENT_STAGE_MESSAGE("recv_", peer, "")
#define EVENT_SEND_IN_BATCH(batch, peer) EVENT_STAGE_MESSAGE("send", peer, ",'batch':" batch)
#define EVENT_RECV_IN_BATCH(batch, peer) EVENT_STAGE_MESSAGE("recv_", peer, ",'batch':" batch)

static const struct {
    const char *label, *events[2]; /* of the stages, which are ranks 0 and 1 */
    double step_s;
} pipelines[] = {
    {"the second stage waits for the first: 1 + 2 + 1",
     {ONE SEND("1") EVENT_WORK_WAIT("1"),
      RECV("0") EVENT_WORK_WAIT("0") ONE}, 4},
    {"a send hides the next product: 1 + max(2, 2)",
     {ONE SEND("1") TWO,
      RECV("0") EVENT_WORK_WAIT("0")}, 3},
    {"a batch sends and receives at the same time: 2 + 1",
     {EVENT_SEND_IN_BATCH("7", "1") EVENT_RECV_IN_BATCH("7", "1") EVENT_WORK_WAIT("0") EVENT_WORK_WAIT("1") ONE,
      EVENT_SEND_IN_BATCH("3", "0") EVENT_RECV_IN_BATCH("3", "0")}, 3},
    {"two batches are one after the other: 2 + 2",
     {EVENT_SEND_IN_BATCH("7", "1") EVENT_RECV_IN_BATCH("8", "1"),
      EVENT_RECV_IN_BATCH("3", "0") EVENT_SEND_IN_BATCH("4", "0")}, 4},
    {"and so are messages between two ranks that are no batch: 2 + 2",
     {SEND("1") RECV("1"),
      RECV("0") SEND("0")}, 4},
};
/* clang-format on */

static void stages_wait_for_their_messages(void)
{
    for (size_t i = 0; i < ARRAY_LEN(pipelines); i++) {
        static const char *const heads[] = {STAGE("0"), STAGE("1")};
        struct step_recording recording[2] = {{.rank = 0}, {.rank = 0}};
        struct diag diag = {0};
        struct ir ir = {0};
        struct sim_result result = {0};
        enum status status = STATUS_OK;
        for (int k = 0; k < 2 && status == STATUS_OK; k++)
            status =
                parse_events(&recording[k], "stage.json", heads[k], pipelines[i].events[k], &diag);
        if (status == STATUS_OK)
            status = recorded_make_schedule(&ir, recording, 2, NULL, &diag);
        if (status == STATUS_OK)
            status = verify(&ir, NULL, "stage.json", NULL, &diag);
        CHECK_TEXT(pipelines[i].label, diag.text ? diag.text : "", "");
        if (CHECK_INT(pipelines[i].label, status, STATUS_OK)) {
            const struct cluster cluster = make_round_number_cluster(1);
            struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
            if (simulate_or_fail_check(pipelines[i].label, &ir, &cluster, &costs.costs,
                                       (struct sim_options){0}, &result))
                CHECK_CLOSE(pipelines[i].label, result.step_s, pipelines[i].step_s, 1e-9);
            toy_sim_costs_release(&costs);
        }
        sim_result_release(&result);
        ir_release(&ir);
        diag_release(&diag);
        step_recording_release(&recording[0]);
        step_recording_release(&recording[1]);
    }
}

static const struct check_case cases[] = {
    {"stages wait for their messages", stages_wait_for_their_messages},
    {"streams overlap as recorded", streams_overlap_as_recorded},
};
CHECK_MAIN("sim/recorded", cases)
