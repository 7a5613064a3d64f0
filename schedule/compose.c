#include "schedule/compose.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct loc nowhere = {0};

/* ---- names ---- */

static const struct strategy *find_strategy(const char *name, uint8_t *row, struct diag *diag)
{
    size_t count;
    const struct strategy *table = compose_strategies(&count);
    const char *names[16];
    for (size_t i = 0; i < count; i++) {
        names[i] = table[i].name;
        if (strcmp(table[i].name, name) == 0) {
            *row = (uint8_t)i;
            return &table[i];
        }
    }
    const char *near = diag_nearest(name, names, count);
    diag_error(diag, nowhere, STATUS_BAD_INPUT,
               "unknown strategy '%s'%s%s%s; `longhaul list strategies` has them all", name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

/* "published" stands for the row's implementation, else for the strategy's own. */
static const struct profile *find_profile(const char *name, const char *published,
                                          struct diag *diag)
{
    size_t count;
    const struct profile *table = compose_profiles(&count);
    const char *names[17];
    if (strcmp(name, "published") == 0)
        name = published;
    for (size_t i = 0; i < count; i++) {
        names[i] = table[i].name;
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    names[count] = "published";
    const char *near = diag_nearest(name, names, count + 1);
    diag_error(diag, nowhere, STATUS_BAD_INPUT,
               "unknown profile '%s'%s%s%s; `longhaul list profiles` has them all", name,
               near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

/* ---- sizes ---- */

/* "1, 2, 4 or 8": the divisors of n that also pass `fits`, at most `most` of them, largest last. */
static void put_divisors(struct text *out, int64_t n, int64_t other, int most)
{
    int64_t kept[32];
    int count = 0;
    for (int64_t d = 1; d <= n && d <= 65536; d++)
        if (n % d == 0 && (other == 0 || other % d == 0)) {
            if (count == (most < 32 ? most : 32)) {
                memmove(kept, kept + 1, (size_t)(count - 1) * sizeof *kept);
                count--;
            }
            kept[count++] = d;
        }
    for (int i = 0; i < count; i++)
        text_printf(out, "%s%lld",
                    i == 0           ? ""
                    : i + 1 == count ? " or "
                                     : ", ",
                    (long long)kept[i]);
}

static enum status bad_size(struct diag *diag, const char *what, struct text *would)
{
    enum status status = diag_error(diag, nowhere, STATUS_BAD_INPUT, "%s; %s would do", what,
                                    would->size > 0 ? would->data : "nothing near");
    text_release(would);
    return status;
}

static enum status positive(int64_t value, int64_t most, const char *what, struct diag *diag)
{
    if (value >= 1 && value <= most)
        return STATUS_OK;
    return diag_error(diag, nowhere, STATUS_BAD_INPUT, "%s is %lld; 1 to %lld would do", what,
                      (long long)value, (long long)most);
}

/* The largest degree that divides ranks, heads and tokens, and that kv heads can be copied to. */
static int64_t largest_head_degree(const struct request *r)
{
    for (int64_t d = r->ranks < r->model->heads ? r->ranks : r->model->heads; d > 1; d--)
        if (r->ranks % d == 0 && r->model->heads % d == 0 && r->seq % d == 0 &&
            (r->model->kv_heads % d == 0 || d % r->model->kv_heads == 0))
            return d;
    return 1;
}

static enum status resolve_degrees(struct choices *c, const struct request *r,
                                   const struct strategy *strategy, struct diag *note,
                                   struct diag *diag)
{
    char what[160];
    struct text would = {0};
    int64_t hp = r->hp, dp = r->dp, cp = r->cp > 0 ? r->cp : 1;
    if (cp != 1)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "strategy '%s' has no context-parallel axis: cp is %lld; 1 would do",
                          strategy->name, (long long)cp);
    if (hp <= 0 && strategy->attention == CHOICE_ATTENTION_LOCAL)
        hp = 1;
    if (hp <= 0 && dp > 0)
        hp = r->ranks % dp == 0 ? r->ranks / dp : 0;
    if (hp <= 0 && dp <= 0)
        hp = largest_head_degree(r);
    if (hp > 0 && dp <= 0) {
        dp = r->ranks / hp;
        if (dp > 1 && note)
            diag_note(note, nowhere,
                      "%lld ranks hold one sequence over %lld head ranks; dp is filled to %lld",
                      (long long)r->ranks, (long long)hp, (long long)dp);
    }
    if (hp <= 0 || dp <= 0 || dp > r->ranks || hp > r->ranks || hp * dp != r->ranks) {
        snprintf(what, sizeof what, "dp %lld x hp %lld does not make %lld ranks", (long long)dp,
                 (long long)hp, (long long)r->ranks);
        text_puts(&would, "hp ");
        put_divisors(&would, r->ranks,
                     strategy->attention == CHOICE_ATTENTION_LOCAL ? 1 : r->model->heads, 16);
        return bad_size(diag, what, &would);
    }
    if (strategy->attention == CHOICE_ATTENTION_LOCAL && hp != 1)
        return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                          "strategy 'local' keeps a sequence on one rank: hp is %lld; 1 would do, "
                          "or --strategy ulysses",
                          (long long)hp);
    if (r->model->heads % hp != 0) {
        snprintf(what, sizeof what, "%lld heads do not divide over hp %lld",
                 (long long)r->model->heads, (long long)hp);
        text_puts(&would, "hp ");
        put_divisors(&would, r->model->heads, r->ranks, 16);
        return bad_size(diag, what, &would);
    }
    if (r->model->kv_heads % hp != 0 && hp % r->model->kv_heads != 0) {
        snprintf(what, sizeof what,
                 "%lld kv heads neither divide over hp %lld nor can be copied to it",
                 (long long)r->model->kv_heads, (long long)hp);
        text_puts(&would, "hp ");
        put_divisors(&would, r->model->kv_heads, r->ranks, 16);
        return bad_size(diag, what, &would);
    }
    if (r->seq % hp != 0) {
        snprintf(what, sizeof what, "%lld tokens do not divide over %lld ranks", (long long)r->seq,
                 (long long)hp);
        text_printf(&would, "%lld or %lld tokens",
                    (long long)(r->seq / hp * hp > 0 ? r->seq / hp * hp : hp),
                    (long long)((r->seq / hp + 1) * hp));
        return bad_size(diag, what, &would);
    }
    c->hp = (uint32_t)hp;
    c->dp = (uint32_t)dp;
    c->cp = 1;
    if (hp == 1) /* nothing to exchange */
        c->attention = CHOICE_ATTENTION_LOCAL;
    return STATUS_OK;
}

static enum status resolve_batch(struct choices *c, const struct request *r, struct diag *diag)
{
    char what[160];
    struct text would = {0};
    c->micro_batch = r->micro_batch > 0 ? r->micro_batch : 1;
    int64_t unit = (int64_t)c->dp * c->micro_batch;
    c->global_batch = r->global_batch > 0 ? r->global_batch : unit;
    if (c->global_batch % unit != 0) {
        snprintf(what, sizeof what,
                 "a batch of %lld sequences does not divide over dp %u x micro-batch %lld",
                 (long long)c->global_batch, c->dp, (long long)c->micro_batch);
        int64_t below = c->global_batch / unit * unit;
        if (below > 0)
            text_printf(&would, "%lld or ", (long long)below);
        text_printf(&would, "%lld", (long long)(below + unit));
        return bad_size(diag, what, &would);
    }
    int64_t accumulation = c->global_batch / unit;
    if (positive(accumulation, 4096, "the number of micro-batches per step", diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    c->accumulation = (uint32_t)accumulation;
    return STATUS_OK;
}

/* HSDP's group is a run of neighbouring ranks: it takes all head ranks and some of dp, or some of
 * the head ranks. */
static enum status resolve_shard(struct choices *c, const struct request *r, struct diag *diag)
{
    char what[160];
    struct text would = {0};
    if (c->weights != CHOICE_WEIGHTS_HSDP) {
        if (r->shard > 0)
            return diag_error(diag, nowhere, STATUS_BAD_INPUT,
                              "--shard is for --weights hsdp; weights are '%s'",
                              weights_names[c->weights]);
        c->shard = c->ranks;
        return STATUS_OK;
    }
    int64_t shard = r->shard > 0                           ? r->shard
                    : r->gpus_per_node < (int64_t)c->ranks ? r->gpus_per_node
                                                           : c->ranks;
    bool ok = shard >= 1 && c->ranks % shard == 0 && (shard % c->hp == 0 || c->hp % shard == 0);
    if (!ok) {
        snprintf(what, sizeof what,
                 "weights cannot be sharded over runs of %lld of %u ranks with hp %u",
                 (long long)shard, c->ranks, c->hp);
        text_puts(&would, "--shard ");
        put_divisors(&would, c->ranks, 0, 16);
        return bad_size(diag, what, &would);
    }
    c->shard = (uint32_t)shard;
    return STATUS_OK;
}

static enum status resolve_chunks(uint32_t *chunks, int64_t asked, int64_t rows, const char *what,
                                  struct diag *diag)
{
    *chunks = 1;
    if (asked <= 0)
        return STATUS_OK;
    if (positive(asked, rows < 65535 ? rows : 65535, what, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    *chunks = (uint32_t)asked;
    /* pieces are equal but for a shorter last one: no piece may be empty */
    int64_t size = (rows + asked - 1) / asked;
    *chunks = (uint32_t)((rows + size - 1) / size);
    return STATUS_OK;
}

static uint8_t choose(int asked, uint8_t otherwise)
{
    return asked >= 0 ? (uint8_t)asked : otherwise;
}

/* ---- the table of products ---- */

struct rule {
    bool (*broken)(const struct choices *c);
    const char *why;
};

static bool host_optimizer_unsharded(const struct choices *c)
{
    return c->optimizer == CHOICE_OPTIMIZER_HOST && c->weights == CHOICE_WEIGHTS_REPLICATED &&
           c->ranks > 1;
}

static bool learned_positions_too_long(const struct choices *c)
{
    return c->model->positions == POSITIONS_LEARNED && c->seq > c->model->max_positions;
}

/* Every product of the registries is legal except these. */
/* clang-format off */
static const struct rule rules[] = {
    {host_optimizer_unsharded,
     "the optimizer on the host with replicated weights would update every parameter on every rank's share of one "
     "processor; choose --weights zero1, zero2, zero3 or hsdp"},
    {learned_positions_too_long,
     "the sequence is longer than the model's table of learned positions; choose a shorter --seq, or raise "
     "max_positions with --set"},
};
/* clang-format on */

static enum status check_rules(const struct choices *c, struct diag *diag)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].broken(c))
            return diag_error(diag, nowhere, STATUS_BAD_INPUT, "%s", rules[i].why);
    return STATUS_OK;
}

enum status compose_resolve(struct choices *c, const struct request *r, struct diag *note,
                            struct diag *diag)
{
    *c = (struct choices){.model = r->model};
    const struct strategy *strategy =
        find_strategy(r->strategy ? r->strategy : "ulysses", &c->strategy, diag);
    if (!strategy)
        return STATUS_BAD_INPUT;
    c->profile = find_profile(r->profile ? r->profile : "published",
                              r->impl ? r->impl : strategy->profile, diag);
    if (!c->profile)
        return STATUS_BAD_INPUT;
    c->attention = strategy->attention;
    c->pipeline = strategy->pipeline;
    c->weights = choose(r->weights, strategy->weights);
    c->activations = choose(r->activations, strategy->activations);
    c->optimizer = choose(r->optimizer, CHOICE_OPTIMIZER_DEVICE);
    c->dtype = choose(r->dtype, DTYPE_BF16);
    c->sm = r->sm;
    c->attention_impl = choose(r->attention_impl, r->sm >= 90 ? c->profile->attention_impl_90
                                                              : c->profile->attention_impl);
    if (positive(r->ranks, 1 << 20, "the number of ranks", diag) != STATUS_OK ||
        positive(r->seq, (int64_t)1 << 40, "the sequence length", diag) != STATUS_OK ||
        positive(r->global_batch > 0 ? r->global_batch : 1, 1 << 20, "the batch", diag) !=
            STATUS_OK ||
        positive(r->micro_batch > 0 ? r->micro_batch : 1, 1024, "the micro-batch", diag) !=
            STATUS_OK)
        return STATUS_BAD_INPUT;
    c->ranks = (uint32_t)r->ranks;
    c->seq = r->seq;
    if (resolve_degrees(c, r, strategy, note, diag) != STATUS_OK ||
        resolve_batch(c, r, diag) != STATUS_OK || resolve_shard(c, r, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    int64_t rows = c->seq / c->hp * c->micro_batch;
    if (resolve_chunks(&c->loss_chunks, r->loss_chunks, rows, "--loss-chunks", diag) != STATUS_OK ||
        resolve_chunks(&c->ffn_chunks, r->ffn_chunks, rows, "--ffn-chunks", diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    return check_rules(c, diag);
}
