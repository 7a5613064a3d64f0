/* Prints what a recorded program could try: its choices are its own, so no command can be proposed, but the causes of
 * the step's time and of its memory say what would help, and how much at most. */
#include "cli/report/report.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

/* The least share of the step for which something is proposed, and how many proposals are shown. */
static const double SHARE_SHOWN = 0.05;
enum { SHOWN = 3 };

#define BIT(cause) (1u << (cause))

/* Changes of a program, each with the causes whose time it could save. It saves at most all of that time. */
static const struct {
    unsigned cause_bits;
    bool is_for_uncompiled_only; /* only where no region of the program was compiled */
    const char *what, *change;
} rows[] = {
    {BIT(CAUSE_HOST), false, "the GPU waits for the CPU",
     "torch.compile makes fewer kernels, CUDA graphs launch them at once, and more tokens for each "
     "rank make them longer"},
    {BIT(CAUSE_WEIGHT_COLLECTIVES), false,
     "gathers and reductions of weights and gradients are not hidden",
     "more tokens for each rank hide them, or fully_shard(reshard_after_forward=False) and earlier "
     "prefetching (set_modules_to_forward_prefetch) where memory allows; with DDP, larger buckets"},
    {BIT(CAUSE_OTHER_COLLECTIVES), false,
     "collectives of activations, or of all ranks, are not hidden",
     "fewer tensor-parallel ranks, all in one node, or torch.compile's asynchronous tensor "
     "parallelism"},
    {BIT(CAUSE_ALL_TO_ALL), false, "all-to-alls are not hidden",
     "fewer ranks that share experts or heads, or computing another micro-batch meanwhile"},
    {BIT(CAUSE_RING), false, "messages of a ring are not hidden",
     "more tokens for each rank, or heads in place of tokens divided over ranks"},
    {BIT(CAUSE_PIPELINE_FILL) | BIT(CAUSE_PIPELINE_DRAIN) | BIT(CAUSE_PIPELINE_IMBALANCE), false,
     "stages wait for each other",
     "more micro-batches, an interleaved or zero-bubble schedule, or layers moved away from the "
     "slowest stage"},
    {BIT(CAUSE_OFFLOAD), false, "copies between device and host are not hidden",
     "pinned memory and non_blocking=True on a stream of their own"},
    {BIT(CAUSE_RECOMPUTE), false, "checkpoints compute again",
     "selective checkpoints, or checkpoints in fewer layers, where memory allows"},
    {BIT(CAUSE_MEMORY_BOUND), true, "kernels wait for memory",
     "torch.compile makes one kernel of neighbouring pointwise operators and reductions"},
    {BIT(CAUSE_OPTIMIZER), false, "the optimizer", "fused=True, or states divided over more ranks"},
    {BIT(CAUSE_INEFFICIENCY), false, "products and attention are slower than the GPU's peak",
     "more tokens for each rank make products larger; float8 has another peak"},
};

/* True if a compiled region made kernels of several operators. */
static bool has_compiled_region(const struct prediction *p)
{
    for (uint32_t i = 0; i < p->recorded.count; i++)
        for (uint32_t e = 0; e < p->recorded.recording[i].event_count; e++)
            if (strcmp(p->recorded.recording[i].event[e].op_name, "fused") == 0 ||
                strncmp(p->recorded.recording[i].event[e].op_name, "triton_", 7) == 0)
                return true;
    return false;
}

struct possible_saving {
    double seconds;
    size_t row;
};

static int compare_savings(const void *left, const void *right)
{
    const struct possible_saving *a = left, *b = right;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Prints the changes that could save the most time, at most SHOWN of them, each with the time that it saves at most. */
static void print_time_savings(struct sheet *sheet, const struct prediction *p)
{
    const struct waterfall *w = &p->waterfall;
    const bool compiled = has_compiled_region(p);
    struct possible_saving possible_savings[ARRAY_LEN(rows)];
    struct text text = {0};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double seconds = 0;
        for (int cause = 0; cause < CAUSE_COUNT; cause++)
            if (rows[i].cause_bits & BIT(cause))
                seconds += w->cause_s[cause];
        if (seconds >= SHARE_SHOWN * w->step_s && !(rows[i].is_for_uncompiled_only && compiled))
            possible_savings[count++] = (struct possible_saving){seconds, i};
    }
    if (count > 0)
        qsort(possible_savings, count, sizeof *possible_savings, compare_savings);
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        text.size = 0;
        text_printf(&text, "%.0f %% of the step at most, ",
                    100 * possible_savings[i].seconds / w->step_s);
        report_put_time(&text, possible_savings[i].seconds, w->step_s);
        text_printf(&text, ": %s. What helps: %s.", rows[possible_savings[i].row].what,
                    rows[possible_savings[i].row].change);
        sheet_put_text(sheet, text.data);
    }
    text_release(&text);
}

/* Prints a change that could reduce the memory of a step that does not fit or may not fit. It is chosen by what
 * takes the most memory: activations, states, or unused cache. */
static void print_memory_savings(struct sheet *sheet, const struct prediction *p)
{
    const uint64_t *bytes = prediction_device_memory_peak(p)->category_bytes;
    const struct {
        double bytes;
        const char *what, *change;
    } parts[] = {
        {(double)bytes[CATEGORY_ACTIVATION], "activations",
         "torch.utils.checkpoint around layers, a smaller micro-batch, or tokens divided over more "
         "ranks"},
        {(double)(bytes[CATEGORY_PARAMETER] + bytes[CATEGORY_GRADIENT] + bytes[CATEGORY_OPTIMIZER]),
         "parameters, gradients and optimizer states",
         "fully_shard over more ranks, states of fewer bits, or fully_shard's CPUOffloadPolicy"},
        {(double)p->reserved.bytes[RESERVED_CACHE], "unused cache of the allocator",
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    };
    struct text text = {0};
    size_t most = 0;
    for (size_t i = 1; i < ARRAY_LEN(parts); i++)
        if (parts[i].bytes > parts[most].bytes)
            most = i;
    units_put_gib(&text, parts[most].bytes);
    text_printf(&text, " of the memory are %s. What helps: %s.", parts[most].what,
                parts[most].change);
    sheet_put_text(sheet, text.data);
    text_release(&text);
}

void report_print_recorded_next(struct sheet *sheet, const struct report *r)
{
    static const double LIKELY = 0.9;
    const struct prediction *p = r->prediction;
    if (!p->verdict.fits || p->verdict.fits_probability < LIKELY)
        print_memory_savings(sheet, p);
    print_time_savings(sheet, p);
}
