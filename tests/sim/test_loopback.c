/* tests/sim/test_loopback.c: every kind of communication between ranks that share a GPU, by hand: 4 ranks, 4 GB
 * each, copies of 100 GB/s for all of them together. */
#include "base/text.h"
#include "schedule/ir/ir_text.h"
#include "tests/sim/machine.h"

/* GB that all members copy; bytes that a kernel reads and writes count half. 0: the kind is not tested here. */
static const double copied[WORK_KIND_COUNT] = {
    [WORK_ALL_TO_ALL] = 4 * 4,
    [WORK_ALL_GATHER] = 4 * 4 * 4,
    [WORK_REDUCE_SCATTER] = 4 * (4 + 1) / 2.0,
    [WORK_ALL_REDUCE] = 4 * ((4 + 1) / 2.0 + 3),
    [WORK_REDUCE] = (4 * 4 + 4) / 2.0,
    [WORK_BROADCAST] = 3 * 4,
    [WORK_SCATTER] = 4 * 1,
    [WORK_EXCHANGE] =
        2 + 3 + 1, /* of 4 documents, the second to the fourth begin on an earlier rank */
    [WORK_SHIFT] = 4 * 4,
    [WORK_SEND] = 4,
    [WORK_RECV] = 4,
};

static void write_schedule(struct text *text, enum work_kind kind)
{
    /* rank 1 needs tokens 2 and 3, rank 2 tokens 5 to 7, rank 3 token 11 */
    text_puts(text, "longhaul schedule 1\nmesh cp=4\n"
                    "tokens layout=contiguous cp=4 seq=16 batch=1 dtype=bf16\n"
                    "documents lengths=2,3,6,5\ngroup g axes=cp\n"
                    "stream compute compute\nstream comm comm\n"
                    "buffer a0 hbm u8 [16000000000] workspace persistent\n"
                    "buffer b0 hbm u8 [16000000000] workspace persistent\n");
    if (kind == WORK_SEND || kind == WORK_RECV)
        text_puts(text, "op 0 send comm group=g by=+1 bytes=4000000000 guard g<1 reads a0\n"
                        "op 1 recv comm group=g by=-1 bytes=4000000000 guard g==1 writes b0\n");
    else if (kind == WORK_EXCHANGE)
        text_puts(text, "op 0 exchange comm group=g rows=4 to=4 parts=1 width=1000000000 reads "
                        "a0[:4000000000] writes b0[:4000000000]\n");
    else
        text_printf(text, "op 0 %s comm group=g%s bytes=4000000000 reads a0 writes b0\n",
                    work_kind_info(kind)->name, kind == WORK_SHIFT ? " by=+1" : "");
}

static void every_kind_of_communication_takes_its_copies(void)
{
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        const struct work_kind_info *info = work_kind_info((enum work_kind)kind);
        struct text text = {0};
        struct diag diag = {0};
        struct ir ir = {0};
        if (info->stream != STREAM_COMM || !CHECK(info->name, copied[kind] > 0))
            continue;
        write_schedule(&text, (enum work_kind)kind);
        if (!CHECK_INT(info->name, ir_parse(&ir, info->name, text.data, text.size, &diag),
                       STATUS_OK))
            CHECK_TEXT(info->name, diag.text, "");
        struct cluster cluster = make_round_number_cluster(1);
        cluster.fabric.kind = FABRIC_LOOPBACK;
        cluster.loopback.bytes_per_s = 100e9;
        struct toy_sim_costs costs = toy_sim_costs_make(&ir, 0);
        for (int exact = 0; exact < 2 && diag.error_count == 0; exact++) {
            struct sim_result result = {0};
            if (simulate_or_fail_check(info->name, &ir, &cluster, &costs.costs,
                                       (struct sim_options){.simulates_every_rank_and_op = exact},
                                       &result))
                CHECK_CLOSE(info->name, result.step_s, copied[kind] / 100, 1e-9);
            sim_result_release(&result);
        }
        toy_sim_costs_release(&costs);
        diag_release(&diag);
        ir_release(&ir);
        text_release(&text);
    }
}

static const struct check_case cases[] = {
    {"every kind of communication takes its copies", every_kind_of_communication_takes_its_copies},
};
CHECK_MAIN("sim/loopback", cases)
