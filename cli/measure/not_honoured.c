#include "cli/measure/not_honoured.h"

#include "base/arena.h"
#include "models/work.h"
#include "schedule/choices/chains.h"
#include "schedule/choices/profile.h"

static bool chooses_attention_not_executed(const struct choices *c, bool host)
{
    return c->attention_impl != (host ? ATTENTION_CPU : ATTENTION_CUDNN);
}

static bool chooses_kernel_chains(const struct choices *c, bool host)
{
    (void)host;
    return chains_framework_of_choices(c->profile, c) != CHAINS_FUSED ||
           (c->kernels != KERNELS_COMPILED && c->profile->chunk_ffn_is_eager);
}

static bool chooses_compiled_kernels(const struct choices *c, bool host)
{
    (void)host;
    return c->kernels == KERNELS_COMPILED;
}

/* True if the profile's framework takes time on the host at certain places of a step, which a run does not spend. */
static bool chooses_framework_host_time(const struct choices *c, bool host)
{
    (void)host;
    return c->profile->host_before_optimizer_s > 0 ||
           c->profile->host_per_tensor_list_exchange_s > 0 ||
           c->profile->host_per_checkpoint_copy_s > 0;
}

static bool chooses_ideal_profile(const struct choices *c, bool host)
{
    (void)host;
    return c->profile->is_ideal;
}

static const struct {
    bool (*applies)(const struct choices *choices, bool host);
    const char *words; /* NULL: words that name the kernels of attention */
} rows[] = {
    {chooses_attention_not_executed, NULL},
    {chooses_compiled_kernels,
     "nothing is compiled: kernels are this program's and its libraries'"},
    {chooses_kernel_chains,
     "norms, rotary embeddings and activations are one kernel each, not the framework's "
     "chains of kernels"},
    {chooses_framework_host_time, "the time that the framework takes on the host is not spent"},
    {chooses_ideal_profile, "the host takes its own time to issue operations"},
};

void put_clauses_of_not_honoured_choices(struct text *out, const struct choices *c, bool host)
{
    const char *before = "";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!rows[i].applies(c, host))
            continue;
        if (rows[i].words != NULL)
            text_printf(out, "%s%s", before, rows[i].words);
        else
            text_printf(
                out, "%sattention is computed by %s, not %s, for which its workspaces are planned",
                before, host ? "the processor's kernels" : "cuDNN or tiles",
                attention_impl_name((enum attention_impl)c->attention_impl));
        before = "; ";
    }
}
