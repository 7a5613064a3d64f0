/* tests/schedule/test_verify.c: the smallest wrong schedules break their own rule and no other, and random schedules
 * are judged as by brute force. */
#include "schedule/verify/verify.h"

#include "base/text.h"
#include "schedule/analysis/liveness.h"
#include "schedule/ir/ir_text.h"
#include "schedule/memory_plan/plan_offsets.h"
#include "tests/check.h"
#include "tests/schedule/random_schedule.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t index_of_verify_rule(const char *name)
{
    for (size_t i = 0; i < VERIFY_RULE_COUNT; i++)
        if (strcmp(verify_rule_name(i), name) == 0)
            return i;
    CHECK(name, !"a rule of that name");
    return 0;
}

/* --- the smallest wrong schedules: bad/RULE.ir or bad/RULE.CASE.ir --- */

/* All files are checked against 1 MiB of device memory. */
static const struct verify_arena_limits small_limits = {.bytes = {[MEMORY_HBM] = 1 << 20}};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list_bad_schedule_files(struct arena *arena, const char *names[], size_t max)
{
    size_t count = 0;
    DIR *folder = opendir(check_path("schedule/bad"));
    if (!CHECK("schedule/bad", folder != NULL))
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) && count < max;) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".ir") == 0)
            names[count++] = arena_text(arena, entry->d_name, (size_t)(end - entry->d_name));
    }
    closedir(folder);
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

static void wrong_schedules_fail_their_rule_and_no_other(void)
{
    struct arena arena = {0};
    const char *names[256];
    size_t count = list_bad_schedule_files(&arena, names, ARRAY_LEN(names));
    bool has_case[VERIFY_RULE_COUNT] = {false};
    for (size_t i = 0; i < count; i++) {
        size_t rule = index_of_verify_rule(
            arena_text(&arena, names[i], strcspn(names[i], "."))); /* up to the '.' */
        has_case[rule] = true;
        struct ir ir = {0};
        struct diag diag = {0};
        struct verify_report report = {0};
        const char *file = arena_printf(&arena, "schedule/bad/%s.ir", names[i]);
        if (CHECK_INT(names[i], ir_load(&ir, check_path(file), &diag), STATUS_OK)) {
            const char *name = arena_printf(&arena, "%s.ir", names[i]);
            CHECK_INT(names[i], verify(&ir, &small_limits, name, &report, &diag), STATUS_NO);
            CHECK_GOLDEN(arena_printf(&arena, "schedule/bad/%s.err", names[i]), diag.text);
            for (size_t r = 0; r < VERIFY_RULE_COUNT; r++)
                CHECK_INT(arena_printf(&arena, "%s: %s", names[i], verify_rule_name(r)),
                          report.result[r].failure_count > 0, r == rule);
        } else {
            fputs(diag.text, stderr);
        }
        diag_release(&diag);
        ir_release(&ir);
    }
    for (size_t rule = 0; rule < VERIFY_RULE_COUNT; rule++)
        CHECK(verify_rule_name(rule), has_case[rule]);
    arena_release(&arena);
}

/* --- a right schedule without one of its waits, and faults that have no file --- */

static void a_right_schedule_passes_and_needs_its_waits(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    struct verify_report report;
    if (!CHECK_INT("verified.ir", ir_load(&ir, check_path("schedule/verified.ir"), &diag),
                   STATUS_OK))
        return;
    CHECK_INT("verified.ir", verify(&ir, NULL, "verified.ir", &report, &diag), STATUS_OK);
    CHECK_TEXT("verified.ir", diag.text ? diag.text : "", "");
    for (size_t rule = 0; rule < VERIFY_RULE_COUNT; rule++)
        CHECK(verify_rule_name(rule), report.result[rule].what_was_checked_text[0] != '\0');
    for (uint32_t op = 0; op < ir.op.count; op++)
        for (uint32_t k = 0; k < ir.op.wait_count[op]; k++) {
            op_id *wait = ir.wait + ir.op.wait_begin[op];
            uint32_t last = --ir.op.wait_count[op];
            op_id dropped = wait[k];
            wait[k] = wait[last];
            char label[64];
            snprintf(label, sizeof label, "op %u without its wait for op %u", (unsigned)op,
                     (unsigned)dropped.i);
            CHECK_INT(label, verify(&ir, NULL, "", NULL, NULL), STATUS_NO);
            wait[k] = dropped;
            ir.op.wait_count[op]++;
        }
    /* A host_sync of another stream orders nothing here. */
    uint32_t other = ir_find_by_name(&ir, IR_STREAM, "comm.cp", strlen("comm.cp"));
    for (uint32_t op = 0; op < ir.op.count; op++)
        if (ir.op.kind[op] == WORK_HOST_SYNC) {
            ir.op.stream[op] = (uint8_t)other;
            verify(&ir, NULL, "", &report, NULL);
            CHECK("without host_sync",
                  report.result[index_of_verify_rule("race")].failure_count > 0);
        }
    diag_release(&diag);
    ir_release(&ir);
}

static void many_faults_are_counted(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    struct verify_report report;
    struct buffer_desc desc = {.stem = "x",
                               .number = IR_NONE,
                               .layer = IR_NONE16,
                               .binding = IR_NONE16,
                               .dims = {.count = 1, .size = {1}}};
    ir_add_role(&ir, "all", NULL, 0);
    for (int i = 0; i < 25; i++)
        ir_add_buffer(&ir, &desc);
    CHECK_INT("status", verify(&ir, NULL, "t.ir", &report, &diag), STATUS_NO);
    CHECK_INT("failures", (int64_t)report.result[index_of_verify_rule("leak")].failure_count, 25);
    CHECK_INT("messages", (int64_t)diag.error_count, VERIFY_MESSAGES_SHOWN_MAX);
    CHECK("the rest is a note",
          strstr(diag.text, "t.ir: note: leak: there are 15 more faults of this rule\n") != NULL);
    diag_release(&diag);
    ir_release(&ir);
}

/* Faults that the text form cannot express, so bad/ has no files of them. */
static void misplaced_ops_are_reported(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    ir.mesh = (struct mesh){.axis_count = 1, .axis = {{"pp", 2}}};
    static const uint32_t ends[2] = {0, 1};
    ir_add_role(&ir, "first", &(struct axis_coordinate_set){.count = 1, .coordinates = &ends[0]},
                1);
    uint8_t h2d = ir_add_stream(&ir, "h2d", STREAM_H2D);
    struct buffer_desc desc = {.stem = "x",
                               .number = IR_NONE,
                               .dtype = DTYPE_F32,
                               .layer = IR_NONE16,
                               .binding = IR_NONE16,
                               .flags = BUFFER_PERSISTENT,
                               .dims = {.count = 1, .size = {4}}};
    struct view x = ir_whole_view(&ir, ir_add_buffer(&ir, &desc));
    ir_add_role(&ir, "last", &(struct axis_coordinate_set){.count = 1, .coordinates = &ends[1]}, 1);
    struct op_desc op = {.work = {.kind = WORK_FILL, .elements = {4}},
                         .stream = h2d,
                         .write_count = 1,
                         .guard = IR_NONE16,
                         .write = &x};
    ir_add_op(&ir, &op);
    CHECK_INT("status", verify(&ir, NULL, "t.ir", NULL, &diag), STATUS_NO);
    CHECK_TEXT(
        "messages", diag.text,
        "t.ir: error: placement: op 0 (fill on h2d) runs on a stream of class h2d, but this kind "
        "of op belongs on class compute\n"
        "t.ir: error: placement: op 0 (fill on h2d) of role last writes x0 of role first\n");
    diag_release(&diag);
    ir_release(&ir);
}

/* --- many ranks --- */

/* A pipeline of 8 stages over 512 replicas, whose stages differ only by guards. */
static void ranks_that_look_the_same_are_checked_once(void)
{
    struct ir ir = {0};
    struct diag diag = {0};
    struct verify_report report;
    struct text text = {0};
    text_puts(&text, "longhaul schedule 1\nmesh dp=512 pp=8\ngroup pp axes=pp\ngroup dp axes=dp\n"
                     "stream compute compute\nstream comm comm\nstream dp comm\n"
                     "buffer x0 hbm f32 [4] activation free=5\n"
                     "op 0 fill compute count=4 guard pp<1 writes x0\n"
                     "op 1 recv comm group=pp by=-1 bytes=16 guard pp>=1 waits 0 writes x0\n"
                     "op 2 send comm group=pp by=1 bytes=16 guard pp<7 reads x0\n"
                     "op 3 host_sync comm\n"
                     "op 4 barrier comm group=pp\n"
                     "op 5 all_reduce dp group=dp bytes=16 reads x0 writes x0\n");
    CHECK_INT("parse", ir_parse(&ir, "t.ir", text.data, text.size, &diag), STATUS_OK);
    CHECK_INT("status", verify(&ir, NULL, "t.ir", &report, &diag), STATUS_OK);
    CHECK_TEXT("messages", diag.text ? diag.text : "", "");
    CHECK_TEXT("messages looked at",
               report.result[index_of_verify_rule("unmatched-message")].what_was_checked_text,
               "14 messages of 8 ranks that stand for 4096");
    CHECK_TEXT("ranks run", report.result[index_of_verify_rule("deadlock")].what_was_checked_text,
               "run of 8 ranks that stand for 4096");
    diag_release(&diag);
    text_release(&text);
    ir_release(&ir);
}

/* --- against brute force --- */

static bool does_some_rank_run_both_ops(const struct ir *ir, uint32_t a, uint32_t b)
{
    for (uint32_t rank = 0; rank < mesh_rank_count(&ir->mesh); rank++) {
        bool runs = true;
        for (int i = 0; i < 2; i++) {
            uint16_t guard = ir->op.guard[i ? a : b];
            runs &=
                guard == IR_NONE16 || guard_passes(&ir->mesh, ir->group, &ir->guard[guard], rank);
        }
        if (runs)
            return true;
    }
    return false;
}

static bool operands_conflict(const struct ir *ir, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < (uint32_t)ir->op.read_count[a] + ir->op.write_count[a]; i++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[b] + ir->op.write_count[b]; k++) {
            struct view x = ir_read_view(ir, a, i), y = ir_read_view(ir, b, k);
            if ((i >= ir->op.read_count[a] || k >= ir->op.read_count[b]) &&
                x.buffer.i == y.buffer.i && x.begin < y.begin + y.count &&
                y.begin < x.begin + x.count)
                return true;
        }
    return false;
}

static bool is_partly_in_place(const struct ir *ir, uint32_t op)
{
    for (uint32_t i = 0; i < ir->op.read_count[op]; i++)
        for (uint32_t k = 0; k < ir->op.write_count[op]; k++) {
            struct view x = ir_read_view(ir, op, i), y = ir_write_view(ir, op, k);
            if (x.buffer.i == y.buffer.i && x.begin < y.begin + y.count &&
                y.begin < x.begin + x.count && (x.begin != y.begin || x.count != y.count))
                return true;
        }
    return false;
}

static bool has_race_by_brute_force(const struct ir *ir)
{
    bool *before = order_by_closure(ir, 0), has_conflict = false;
    uint32_t n = ir->op.count;
    for (uint32_t b = 0; b < n; b++) {
        has_conflict |= is_partly_in_place(ir, b);
        for (uint32_t a = 0; a < b; a++)
            has_conflict |= !before[(size_t)a * n + b] && operands_conflict(ir, a, b) &&
                            does_some_rank_run_both_ops(ir, a, b);
    }
    free(before);
    return has_conflict;
}

/* True if some rank reads an element that no earlier op of that rank has written. */
static bool reads_unwritten_element(const struct ir *ir)
{
    bool found = false;
    bool **written = heap_zalloc(ir->buffer.count, sizeof *written);
    for (uint32_t rank = 0; rank < mesh_rank_count(&ir->mesh); rank++) {
        for (uint32_t b = 0; b < ir->buffer.count; b++)
            written[b] = heap_zalloc(ir_buffer_elements(ir, (buffer_id){b}), sizeof **written);
        for (uint32_t op = 0; op < ir->op.count; op++) {
            uint16_t guard = ir->op.guard[op];
            if (guard != IR_NONE16 && !guard_passes(&ir->mesh, ir->group, &ir->guard[guard], rank))
                continue;
            for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op];
                 k++) {
                struct view view = ir_read_view(ir, op, k);
                for (uint64_t e = view.begin; e < view.begin + view.count; e++) {
                    found |= k < ir->op.read_count[op] && !written[view.buffer.i][e];
                    written[view.buffer.i][e] = true; /* each element is reported once */
                }
            }
        }
        for (uint32_t b = 0; b < ir->buffer.count; b++)
            free(written[b]);
    }
    free(written);
    return found;
}

static void races_and_unwritten_reads_agree_with_brute_force(void)
{
    struct check_random random = check_random_make();
    size_t race_rule = index_of_verify_rule("race"),
           unwritten = index_of_verify_rule("read-before-write");
    int races = 0, reads = 0;
    for (int round = 0; round < 600; round++) {
        struct ir ir = {0};
        struct verify_report report;
        add_mesh_of_three_ranks(&ir);
        ir_add_role(&ir, "all", NULL, 0);
        add_random_role(
            &ir, &random,
            (struct random_sizes){.ops = check_random_i64(&random, 2, 12),
                                  .buffers = check_random_i64(&random, 4, 16),
                                  .next_wait_percent = check_random_i64(&random, 60, 95),
                                  .host_sync_op_percent = 10,
                                  .range_percent = 40,
                                  .guard_percent = 40,
                                  .prefilled_buffer_percent = check_random_i64(&random, 0, 130)});
        verify(&ir, NULL, "", &report, NULL);
        bool has = has_race_by_brute_force(&ir), reads_too_early = reads_unwritten_element(&ir);
        CHECK_INT("race", report.result[race_rule].failure_count > 0, has);
        CHECK_INT("read before write", report.result[unwritten].failure_count > 0, reads_too_early);
        races += has;
        reads += reads_too_early;
        ir_release(&ir);
    }
    CHECK("both answers came", races > 30 && races < 590 && reads > 30 && reads < 590);
}

/* --- deadlock --- */

enum { TALKERS = 3 };

/* Makes a schedule of three ranks, each with a list of its own: messages on two streams, whose order each rank
 * changes a little, with barriers and host_syncs between them. */
static void make_random_message_schedule(struct ir *ir, struct check_random *random)
{
    struct {
        int from, to; /* equal: a barrier */
    } talk[12];
    int talks = (int)check_random_i64(random, 2, 12);
    for (int i = 0; i < talks; i++) {
        talk[i].from = (int)check_random_i64(random, 0, TALKERS - 1);
        talk[i].to = (talk[i].from + (int)check_random_i64(random, 0, 9) % TALKERS) % TALKERS;
    }
    static const uint32_t places[TALKERS] = {0, 1, 2};
    ir->mesh = (struct mesh){.axis_count = 1, .axis = {{"pp", TALKERS}}};
    ir_add_group(ir, "pp", &(struct axis_coordinate_set){.axis = 0}, 1);
    for (int rank = 0; rank < TALKERS; rank++) {
        char name[] = {'r', (char)('0' + rank), '\0'};
        ir_add_role(ir, name,
                    &(struct axis_coordinate_set){.count = 1, .coordinates = &places[rank]}, 1);
        uint8_t stream[2] = {ir_add_stream(ir, "a", STREAM_COMM),
                             ir_add_stream(ir, "b", STREAM_COMM)};
        struct buffer_desc desc = {.stem = "x",
                                   .number = IR_NONE,
                                   .dtype = DTYPE_F32,
                                   .role = (uint16_t)rank,
                                   .layer = IR_NONE16,
                                   .binding = IR_NONE16,
                                   .dims = {.count = 1, .size = {1}}};
        struct view x = ir_whole_view(ir, ir_add_buffer(ir, &desc));
        int order[12];
        for (int i = 0; i < talks; i++)
            order[i] = i;
        for (int i = 1; i < talks; i++)
            if (check_random_i64(random, 0, 5) == 0) {
                order[i] = order[i - 1];
                order[i - 1] = i;
            }
        uint32_t begin = ir->op.count;
        for (int i = 0; i < talks; i++) {
            int from = talk[order[i]].from, to = talk[order[i]].to;
            bool barrier = from == to, sends = from == rank;
            if (!barrier && !sends && to != rank)
                continue;
            op_id wait = {ir->op.count - 1};
            struct op_desc op = {.guard = IR_NONE16, .read = &x, .write = &x, .wait = &wait};
            op.stream = stream[check_random_i64(random, 0, 1)];
            op.work.kind = barrier ? WORK_BARRIER : sends ? WORK_SEND : WORK_RECV;
            op.read_count = !barrier && sends;
            op.write_count = !barrier && !sends;
            if (!barrier) {
                op.work.p2p.by = sends ? to - from : from - to;
                op.work.p2p.bytes = 4;
            }
            op.wait_count = ir->op.count > begin && check_random_i64(random, 0, 3) == 0;
            ir_add_op(ir, &op);
            struct op_desc sync = {.work = {.kind = WORK_HOST_SYNC}, .guard = IR_NONE16};
            sync.stream = stream[check_random_i64(random, 0, 1)];
            if (check_random_i64(random, 0, 9) == 0)
                ir_add_op(ir, &sync);
        }
    }
}

/* Returns the op of another rank that a message pairs with: the n-th send between two ranks pairs with the n-th
 * receive. */
static uint32_t partner_by_search(const struct ir *ir, uint32_t op)
{
    int rank = (int)ir_role_of_op(ir, op), peer = rank + (int)ir_work(ir, op)->p2p.by, number = 0;
    for (uint32_t o = ir->role[rank].op_begin; o < op; o++)
        number += ir->op.kind[o] == ir->op.kind[op] && ir_work(ir, o)->p2p.by == peer - rank;
    enum work_kind other = ir->op.kind[op] == WORK_SEND ? WORK_RECV : WORK_SEND;
    for (uint32_t o = ir->role[peer].op_begin;; o++)
        if (ir->op.kind[o] == other && ir_work(ir, o)->p2p.by == rank - peer && number-- == 0)
            return o;
}

static bool is_ready_by_search(const struct ir *ir, const bool *done, uint32_t op)
{
    uint32_t begin = ir->role[ir_role_of_op(ir, op)].op_begin;
    bool on_host = ir->op.kind[op] == WORK_BARRIER || ir->op.kind[op] == WORK_HOST_SYNC;
    for (uint32_t o = begin; o < op; o++) {
        bool other_on_host = ir->op.kind[o] == WORK_BARRIER || ir->op.kind[o] == WORK_HOST_SYNC;
        bool holds = other_on_host;
        if (!other_on_host && (!on_host || ir->op.kind[op] == WORK_HOST_SYNC))
            holds |= ir->op.stream[o] == ir->op.stream[op];
        for (uint32_t k = 0; k < ir->op.wait_count[op]; k++)
            holds |= ir->wait[ir->op.wait_begin[op] + k].i == o;
        if (holds && !done[o])
            return false;
    }
    return true;
}

static bool deadlock_by_search(const struct ir *ir)
{
    bool *done = heap_zalloc(ir->op.count, sizeof *done), moved = true, is_stuck = false;
    while (moved) {
        moved = false;
        uint32_t barrier[TALKERS], at_barrier = 0;
        for (uint32_t op = 0; op < ir->op.count; op++) {
            if (done[op] || !is_ready_by_search(ir, done, op))
                continue;
            enum work_kind kind = ir->op.kind[op];
            if (kind == WORK_BARRIER) {
                barrier[at_barrier++] = op; /* a rank is at one barrier at a time */
                continue;
            }
            uint32_t partner = kind == WORK_HOST_SYNC ? op : partner_by_search(ir, op);
            if (partner == op || is_ready_by_search(ir, done, partner))
                done[op] = done[partner] = moved = true;
        }
        for (uint32_t i = 0; at_barrier == TALKERS && i < TALKERS; i++)
            done[barrier[i]] = moved = true;
    }
    for (uint32_t op = 0; op < ir->op.count; op++)
        is_stuck |= !done[op];
    free(done);
    return is_stuck;
}

static void deadlocks_agree_with_brute_force(void)
{
    struct check_random random = check_random_make();
    int stuck_count = 0;
    for (int round = 0; round < 1000; round++) {
        struct ir ir = {0};
        struct verify_report report;
        make_random_message_schedule(&ir, &random);
        verify(&ir, NULL, "", &report, NULL);
        CHECK_INT("messages",
                  (int64_t)report.result[index_of_verify_rule("unmatched-message")].failure_count,
                  0);
        bool is_stuck = deadlock_by_search(&ir);
        CHECK_INT("deadlock", report.result[index_of_verify_rule("deadlock")].failure_count > 0,
                  is_stuck);
        stuck_count += is_stuck;
        ir_release(&ir);
    }
    CHECK("both answers came", stuck_count > 100 && stuck_count < 900);
}

/* --- arena plans --- */

static bool memory_plan_is_right(const struct ir *ir)
{
    bool *before = order_by_closure(ir, 0), right = true;
    uint32_t n = ir->op.count;
    for (uint32_t a = 0; a < ir->buffer.count; a++)
        for (uint32_t b = 0; b < ir->buffer.count; b++) {
            if (a == b || ir->buffer.memory[a] != ir->buffer.memory[b] ||
                ir->buffer.offset[a] == UINT64_MAX || ir->buffer.offset[b] == UINT64_MAX ||
                ir->buffer.offset[a] + ir_buffer_bytes(ir, (buffer_id){a}) <=
                    ir->buffer.offset[b] ||
                ir->buffer.offset[b] + ir_buffer_bytes(ir, (buffer_id){b}) <= ir->buffer.offset[a])
                continue;
            /* One must be dead before any op accesses the other. */
            bool one_is[2] = {true, true};
            for (int side = 0; side < 2; side++) {
                uint32_t x = side ? b : a, y = side ? a : b;
                one_is[side] = !liveness_is_persistent(ir, x) && !liveness_is_persistent(ir, y);
                for (uint32_t k = 0; k < ir->buffer.free_count[x]; k++)
                    for (uint32_t op = 0; op < n; op++)
                        for (uint32_t i = 0;
                             i < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; i++)
                            one_is[side] &= ir_read_view(ir, op, i).buffer.i != y ||
                                            before[(size_t)ir_free_set(ir, x)[k].i * n + op];
            }
            right &= one_is[0] || one_is[1];
        }
    free(before);
    return right;
}

static void plans_agree_with_brute_force(void)
{
    struct check_random random = check_random_make();
    size_t overlap = index_of_verify_rule("arena-overlap"),
           after = index_of_verify_rule("use-after-free");
    int wrong = 0;
    for (int round = 0; round < 200; round++) {
        struct ir ir = {0};
        struct verify_report report;
        add_mesh_of_three_ranks(&ir);
        ir_add_role(&ir, "all", NULL, 0);
        add_random_role(&ir, &random,
                        (struct random_sizes){.ops = 40,
                                              .buffers = 20,
                                              .next_wait_percent = 60,
                                              .host_sync_op_percent = 5,
                                              .range_percent = 20});
        liveness_compute_free_sets(&ir);
        offsets_plan(&ir, NULL);
        verify(&ir, NULL, "", &report, NULL);
        CHECK_INT("a plan of ours overlaps", (int64_t)report.result[overlap].failure_count, 0);
        CHECK_INT("a free set of ours is early", (int64_t)report.result[after].failure_count, 0);
        uint32_t b = (uint32_t)check_random_i64(&random, 0, 19);
        uint64_t *room = &ir.planned_bytes[ir.buffer.memory[b]];
        *room *= 3; /* so that a random offset may be free */
        if (ir.buffer.offset[b] != UINT64_MAX)
            ir.buffer.offset[b] = (uint64_t)check_random_i64(
                &random, 0, (int64_t)(*room - ir_buffer_bytes(&ir, (buffer_id){b})));
        verify(&ir, NULL, "", &report, NULL);
        bool right = memory_plan_is_right(&ir);
        CHECK_INT("overlap", report.result[overlap].failure_count > 0, !right);
        wrong += !right;
        ir_release(&ir);
    }
    CHECK("both answers came", wrong > 20 && wrong < 180);
}

static const struct check_case cases[] = {
    {"wrong schedules fail their rule and no other", wrong_schedules_fail_their_rule_and_no_other},
    {"a right schedule passes and needs its waits", a_right_schedule_passes_and_needs_its_waits},
    {"many faults are counted", many_faults_are_counted},
    {"misplaced ops are reported", misplaced_ops_are_reported},
    {"ranks that look the same are checked once", ranks_that_look_the_same_are_checked_once},
    {"races and unwritten reads agree with brute force",
     races_and_unwritten_reads_agree_with_brute_force},
    {"deadlocks agree with brute force", deadlocks_agree_with_brute_force},
    {"plans agree with brute force", plans_agree_with_brute_force},
};
CHECK_MAIN("verify", cases)
