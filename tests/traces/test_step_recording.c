/* tests/traces/test_step_recording.c: recorded steps are read, and what is damaged, foreign or of another version gets
 * one message. */
#include "traces/step_recording.h"

#include "base/text.h"
#include "tests/check.h"

#include <string.h>

#define RECORDING_START                                                                            \
    "{'format':'longhaul-step','version':1,'torch':'2.15','world':2,'rank':1,"                     \
    "'groups':{'3':{'ranks':[1,0],'desc':'dp'}},'modules':['','a.b'],"
#define PEAK_MEMBER "'guessed':{'item':2},'peak':150,"
#define STORAGES_MEMBER "'storages':[[100,-1,-1,'param a.b'],[50,0,1,''],[40,1,-1,'grad']],"
#define MM                                                                                         \
    "{'op':'mm','k':'mm','ph':'b','m':1,'n':3,'s':7,'in':[[0,[2,3],"                               \
    "'bfloat16',[1,2]]],'out':[[-1,[],'int64']],'fl':12,'rd':5,'wr':6}"
#define WAIT "{'op':'wait','s':7,'e':9}"
#define WHOLE RECORDING_START PEAK_MEMBER STORAGES_MEMBER "'events':[" MM "," WAIT "]}"

/* Reads a recording from a text (check_json_from_single_quotes()). */
static enum status parse(struct step_recording *r, const char *recording, struct diag *diag)
{
    const char *text = check_json_from_single_quotes(recording);
    return step_recording_parse(r, "step.json", text, strlen(text), diag);
}

static void every_recording_member_is_read(void)
{
    struct step_recording r = {0};
    struct diag diag = {0};
    if (CHECK_INT("parses", parse(&r, WHOLE, &diag), STATUS_OK)) {
        const struct step_event *mm = &r.event[0], *wait = &r.event[1];
        CHECK_TEXT("torch", r.torch_version, "2.15");
        CHECK_INT("ranks", r.world_size, 2);
        CHECK_INT("rank", r.rank, 1);
        CHECK_INT("ranks of the group, in order", r.group[0].ranks[0], 0);
        CHECK_TEXT("its name", r.group[0].name, "dp");
        CHECK_TEXT("what was guessed", r.guess[0].description, "item");
        CHECK_INT("how often", r.guess[0].count, 2);
        CHECK_INT("storages", r.storage_count, 3);
        CHECK_TEXT("role", r.storage[0].role, "param a.b");
        CHECK_INT("kind", mm->kind, STEP_PRODUCT);
        CHECK_INT("phase", mm->phase, STEP_BACKWARD);
        CHECK_TEXT("module", r.module[mm->module], "a.b");
        CHECK_INT("stream", mm->stream, 7);
        CHECK_CLOSE("flops", mm->flops, 12, 0);
        CHECK_CLOSE("read", mm->read_bytes, 5, 0);
        CHECK_CLOSE("written", mm->written_bytes, 6, 0);
        CHECK_INT("dims", r.tensor[mm->in_begin].dim_count, 2);
        CHECK_INT("size", r.tensor[mm->in_begin].size[1], 3);
        CHECK_INT("dtype", r.tensor[mm->in_begin].dtype, STEP_DTYPE_BF16);
        CHECK("strided", r.tensor[mm->in_begin].is_strided);
        CHECK_INT("of the host", r.tensor[mm->out_begin].storage, -1);
        CHECK_INT("a scalar", r.tensor[mm->out_begin].dim_count, 0);
        CHECK_INT("wait", wait->kind, STEP_STREAM_WAIT_FOR_EVENT);
        CHECK_INT("its event", wait->cuda_event, 9);
        /* 100 bytes live throughout, 50 during event 0, and 40 from event 1 on */
        CHECK_INT("peak", (int64_t)step_recording_peak_bytes(&r), 150);
    }
    CHECK_TEXT("no message", diag.text ? diag.text : "", "");
    diag_release(&diag);
    step_recording_release(&r);
}

#define RECORDING_OF_EVENTS(text) RECORDING_START PEAK_MEMBER STORAGES_MEMBER "'events':[" text "]}"
#define OPERATOR(op, kind, more)                                                                   \
    "{'op':'" op "','k':'" kind "','ph':'f','m':0,'n':0,'s':0,'in':[],"                            \
    "'out':[],'rd':0,'wr':0" more "}"

static const struct {
    const char *label, *text, *message;
} wrong[] = {
    {"no object", "[1]", "step.json:1: error: expected an object: {\"format\": ...}\n"},
    {"of another program", "{'traceEvents':[]}",
     "step.json:1: error: has no member 'format', so this is no recorded step: longhaul.record "
     "writes \"format\": \"longhaul-step\" first\n"},
    {"another format", "{'format':'chakra','version':1}",
     "step.json:1: error: format: 'chakra' is not 'longhaul-step': this is no recorded step\n"},
    {"another version", "{'format':'longhaul-step','version':2}",
     "step.json:1: error: version: 2 is another version of the format than 1, which this program "
     "reads: record the step again with the longhaul.record of this version\n"},
    {"cut short", RECORDING_START PEAK_MEMBER "'storages':[[100,",
     "step.json:1:186: error: expected a value, but the text ends here\n"},
    {"a rank beyond the ranks", "{'format':'longhaul-step','version':1,'world':2,'rank':2}",
     "step.json:1: error: rank: 2 is out of range: expected 0 to 1\n"},
    {"a group without the recorded rank",
     "{'format':'longhaul-step','version':1,'world':4,'rank':3,'modules':[],'groups':{'3':{'ranks':"
     "[1,0]}}}",
     "step.json:1: error: groups.3.ranks: lacks rank 3, whose step was recorded\n"},
    {"a rank twice",
     "{'format':'longhaul-step','version':1,'world':4,'rank':1,'modules':[],'groups':{'3':{'ranks':"
     "[1,0,1]}}}",
     "step.json:1: error: groups.3.ranks: rank 1 is there twice\n"},
    {"no events", RECORDING_START PEAK_MEMBER STORAGES_MEMBER "'events':[]}",
     "step.json:1: error: events: has no events: nothing was recorded\n"},
    {"a storage that dies before its birth",
     RECORDING_START PEAK_MEMBER "'storages':[[100,1,0,'']],'events':[" WAIT "]}",
     "step.json:1: error: storages[0]: died at event 0, before it was born at event 1\n"},
    {"a storage that dies after the end",
     RECORDING_START PEAK_MEMBER "'storages':[[100,0,2,'']],'events':[" WAIT "]}",
     "step.json:1: error: storages[0][2]: 2 is out of range: expected -1 to 1\n"},
    {"an unknown kind of operator", RECORDING_OF_EVENTS(OPERATOR("x", "spmv", "")),
     "step.json:1: error: events[0].k: 'spmv' is no kind of operator that this version knows\n"},
    {"an unknown event", RECORDING_OF_EVENTS("{'op':'signal','s':0}"),
     "step.json:1: error: events[0].op: 'signal' is no event that this version knows\n"},
    {"a record without its event", RECORDING_OF_EVENTS("{'op':'record','s':0}"),
     "step.json:1: error: events[0]: has no member 'e', the event of the stream\n"},
    {"an unknown group",
     RECORDING_OF_EVENTS(OPERATOR("c10d.allreduce_", "comm", ",'g':'9','full':8")),
     "step.json:1: error: events[0].g: there is no group '9' among the groups\n"},
    {"an unknown phase",
     RECORDING_OF_EVENTS("{'op':'mm','k':'mm','ph':'x','in':[],'out':[],'rd':0,'wr':0}"),
     "step.json:1: error: events[0].ph: 'x' is no phase: f, b, r or o\n"},
    {"a tensor of a storage that there is not",
     RECORDING_OF_EVENTS("{'op':'mm','k':'mm','in':[[3,[1],'bfloat16']],'out':[],'rd':0,'wr':0}"),
     "step.json:1: error: events[0].in[0][0]: 3 is out of range: expected -1 to 2\n"},
    {"a tensor without a dtype",
     RECORDING_OF_EVENTS("{'op':'mm','k':'mm','in':[[0,[1]]],'out':[],'rd':0,'wr':0}"),
     "step.json:1: error: events[0].in[0]: expected [storage, [sizes], dtype] and, if it is not "
     "contiguous, [strides]\n"},
    {"a collective beyond 2^50 bytes",
     RECORDING_OF_EVENTS(OPERATOR("c10d.allreduce_", "comm", ",'full':1125899906842625")),
     "step.json:1: error: events[0].full: 1125899906842625 is out of range: expected 0 to "
     "1125899906842624\n"},
    {"an all-to-all beyond 2^50 bytes",
     RECORDING_OF_EVENTS(
         OPERATOR("c10d.alltoall_", "comm", ",'g':'3','full':8,'sent':[0,562949953421313]")),
     "step.json:1: error: events[0].sent: 2 times the largest piece, 562949953421313, is more than "
     "2^50 bytes\n"},
    {"storages beyond 2^50 bytes",
     RECORDING_START PEAK_MEMBER
     "'storages':[[1125899906842624,-1,-1,''],[1,-1,-1,'']],'events':[" WAIT "]}",
     "step.json:1: error: storages: all storages have more than 2^50 bytes\n"},
    {"a wait for a later collective", RECORDING_OF_EVENTS("{'op':'work_wait','s':0,'on':0}"),
     "step.json:1: error: events[0].on: 0 is out of range: expected -1 to -1\n"},
};

static void wrong_recordings_get_one_message(void)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct step_recording r = {0};
        struct diag diag = {0};
        CHECK_INT(wrong[i].label, parse(&r, wrong[i].text, &diag), STATUS_BAD_INPUT);
        CHECK_TEXT(wrong[i].label, diag.text ? diag.text : "", wrong[i].message);
        diag_release(&diag);
        step_recording_release(&r);
    }
}

/* At most 65536 groups are read, because their numbers are parts of names of bounded length. */
static void too_many_groups_are_refused(void)
{
    struct step_recording r = {0};
    struct diag diag = {0};
    struct text text = {0};
    text_puts(&text,
              "{'format':'longhaul-step','version':1,'world':1,'rank':0,'modules':[],'groups':{");
    for (int i = 0; i <= 65536; i++)
        text_printf(&text, "%s'%d':{'ranks':[0]}", i > 0 ? "," : "", i);
    text_puts(&text, "},'storages':[],'events':[" WAIT "]}");
    CHECK_INT("status", parse(&r, text.data, &diag), STATUS_BAD_INPUT);
    CHECK_TEXT("message", diag.text ? diag.text : "",
               "step.json:1: error: groups: has 65537 groups, and at most 65536 are read\n");
    text_release(&text);
    diag_release(&diag);
    step_recording_release(&r);
}

/* Every text that a good one begins with, but the whole, is refused with one message. */
static void truncated_recordings_are_refused(void)
{
    const char *text = check_json_from_single_quotes(WHOLE);
    for (size_t size = 0; size < sizeof WHOLE - 1; size++) {
        struct step_recording r = {0};
        struct diag diag = {0};
        CHECK_INT("cut", step_recording_parse(&r, "step.json", text, size, &diag),
                  STATUS_BAD_INPUT);
        CHECK_INT("one message", (int64_t)diag.error_count, 1);
        diag_release(&diag);
        step_recording_release(&r);
    }
}

static void step_recordings_are_recognised(void)
{
    static const struct {
        const char *text;
        bool is_one;
    } texts[] = {{WHOLE, true},
                 {" {\n 'format' : 'longhaul-step'", true},
                 {"{'format':'longhaul-ste", false},
                 {"{'version':1}", false},
                 {"", false}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct text text = {0};
        text_puts(&text, check_json_from_single_quotes(texts[i].text));
        CHECK(texts[i].text, step_recording_recognise(&text) == texts[i].is_one);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"every member is read", every_recording_member_is_read},
    {"what is wrong gets one message", wrong_recordings_get_one_message},
    {"too many groups are refused", too_many_groups_are_refused},
    {"what is cut short is refused", truncated_recordings_are_refused},
    {"recordings are recognised", step_recordings_are_recognised},
};
CHECK_MAIN("step_recording", cases)
