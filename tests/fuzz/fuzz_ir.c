/* tests/fuzz/fuzz_ir.c: whatever the text, ir_parse() ends in a schedule that prints, reads back and prints the same
 * bytes again, or in exactly one message. Texts whose loops, if all were nested, would have more than 20,000 iterations
 * are skipped. */
#include "schedule/ir/ir_text.h"
#include "schedule/ir/visible.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Computes for every op what readers of a schedule ask: flops, bytes, workspace, group, role and operands. */
static void compute_properties_of_all_ops(const struct ir *ir)
{
    double sum = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        bool fits = !work_pairs_depend_on_rank(work) || (visible_why_schedule_unfit(ir) == NULL &&
                                                         visible_why_work_unfit(ir, work) == NULL);
        sum += fits ? ir_work_flops_on_rank(ir, work, mesh_rank_count(&ir->mesh) - 1) : 0;
        sum += work_memory_bytes(work) + (double)work_payload_bytes(work);
        sum += (double)work_workspace_bytes(ATTENTION_CUDNN, 80, work);
        assert(work_comm_group(work) < (int64_t)ir->group_count);
        assert(ir_role_of_op(ir, op) < ir->role_count);
        for (uint32_t k = 0; k < ir->op.read_count[op]; k++)
            assert(ir_read_view(ir, op, k).count > 0);
        if (ir->op.guard[op] != IR_NONE16)
            (void)guard_passes(&ir->mesh, ir->group, &ir->guard[ir->op.guard[op]], 0);
    }
    for (uint32_t g = 0; g < ir->group_count; g++) {
        const struct group *group = &ir->group[g];
        uint32_t rank = group_global_rank_of_member(&ir->mesh, group,
                                                    group_instance_count(&ir->mesh, group) - 1,
                                                    group_rank_count(&ir->mesh, group) - 1);
        uint32_t instance, index;
        assert(group_find_member(&ir->mesh, group, rank, &instance, &index));
        assert(index == group_rank_count(&ir->mesh, group) - 1);
    }
    assert(sum >= 0);
}

/* True if the loops of a text, taken as nested in each other, have more than UNROLLED_LINES_MAX iterations together. */
static bool loops_expand_too_far(const uint8_t *data, size_t size)
{
    enum { UNROLLED_LINES_MAX = 20000 };
    double product = 1;
    for (size_t i = 0; i + 1 < size; i++) {
        if (data[i] != '.' || data[i + 1] != '.')
            continue;
        long first = 0, last = 0, place = 1;
        for (size_t k = i; k-- > 0 && data[k] >= '0' && data[k] <= '9' && place < 1000000;) {
            first += (data[k] - '0') * place;
            place *= 10;
        }
        for (size_t k = i + 2; k < size && data[k] >= '0' && data[k] <= '9' && last < 1000000; k++)
            last = 10 * last + (data[k] - '0');
        product *= (double)labs(last - first) + 1;
    }
    return product > UNROLLED_LINES_MAX;
}

/* Checks that the schedule, printed with loops and read back, is the same list except for offsets. */
static void check_loops_round_trip(struct ir *ir)
{
    struct ir again = {0};
    struct diag diag = {0};
    struct text loops = {0}, before = {0}, after = {0};
    memset(ir->planned_bytes, 0, sizeof ir->planned_bytes);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        ir->buffer.offset[b] = UINT64_MAX;
    ir_print(&before, ir);
    ir_print_loops(&loops, ir);
    enum status status = ir_parse(&again, "loops.ir", loops.data, loops.size, &diag);
    assert(status == STATUS_OK);
    ir_print(&after, &again);
    assert(before.size == after.size && memcmp(before.data, after.data, after.size) == 0);
    text_release(&loops);
    text_release(&before);
    text_release(&after);
    diag_release(&diag);
    ir_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ir ir = {0}, again = {0};
    struct diag diag = {0};
    struct text first = {0}, second = {0};
    if (loops_expand_too_far(data, size))
        return 0;
    enum status status = ir_parse(&ir, "fuzz.ir", (const char *)data, size, &diag);
    assert((status == STATUS_OK) == (diag.error_count == 0));
    assert(diag.error_count <= 1);
    if (status == STATUS_OK) {
        compute_properties_of_all_ops(&ir);
        ir_print(&first, &ir);
        status = ir_parse(&again, "again.ir", first.data, first.size, &diag);
        assert(status == STATUS_OK);
        ir_print(&second, &again);
        assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        check_loops_round_trip(&ir);
    }
    text_release(&first);
    text_release(&second);
    ir_release(&ir);
    ir_release(&again);
    diag_release(&diag);
    return 0;
}
