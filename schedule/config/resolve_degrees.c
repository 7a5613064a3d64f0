#include "schedule/config/resolve_degrees.h"

#include "base/c_locale.h"
#include "schedule/choices/profile.h"
#include "schedule/choices/strategies.h"
#include "schedule/choices/tensor_share.h"

#include <stdarg.h>
#include <stdio.h>

enum { SPLITS_MAX = 16 };

/* ---- texts of messages ---- */

static const char *list_separator(int i, int count)
{
    return i == 0 ? "" : i + 1 == count ? " or " : ", ";
}

void resolve_append_numbers(struct text *out, const int64_t *number, int count)
{
    for (int i = 0; i < count; i++)
        text_printf(out, "%s%lld", list_separator(i, count), (long long)number[i]);
}

void resolve_append_divisors(struct text *out, int64_t n, int64_t other)
{
    int64_t kept[SPLITS_MAX]; /* filled from its end, so that the largest comes last */
    int count = 0;
    for (int64_t d = n < 65536 ? n : 65536; d >= 1 && count < SPLITS_MAX; d--)
        if (n % d == 0 && (other == 0 || other % d == 0))
            kept[SPLITS_MAX - ++count] = d;
    resolve_append_numbers(out, kept + SPLITS_MAX - count, count);
}

void resolve_append_multiples(struct text *out, int64_t n, int64_t unit)
{
    int64_t below = n / unit * unit;
    if (below > 0)
        text_printf(out, "%lld or ", (long long)below);
    text_printf(out, "%lld", (long long)(below + unit));
}

enum status resolve_refuse(struct diag *diag, const char *option, const char *what, ...)
{
    va_list args;
    va_start(args, what);
    diag_verror(diag, (struct loc){.name = option}, STATUS_BAD_INPUT, what, args);
    va_end(args);
    return STATUS_BAD_INPUT;
}

enum status resolve_refuse_value_with_hint(struct diag *diag, const char *option,
                                           struct text *would, const char *what, ...)
{
    if (diag != NULL) {
        char text[200];
        va_list args;
        va_start(args, what);
        c_vsnprintf(text, sizeof text, what, args);
        va_end(args);
        resolve_refuse(diag, option, "%s; %s would do", text,
                       would->size > 0 ? would->data : "no value near it");
    }
    text_release(would);
    return STATUS_BAD_INPUT;
}

enum status resolve_refuse_first_broken_rule(const struct rule *rule, size_t count,
                                             struct diag *diag)
{
    for (size_t i = 0; i < count; i++)
        if (rule[i].is_broken)
            return resolve_refuse(diag, rule[i].option, "%s", rule[i].reason);
    return STATUS_OK;
}

/* ---- divisions of a sequence over context and head ranks ---- */

static bool hp_divides_heads(const struct transformer *m, int64_t hp)
{
    return m->heads % hp == 0 && (m->kv_heads % hp == 0 || hp % m->kv_heads == 0);
}

/* True if each context rank has two slices of the sequence, or two of each document (zigzag). */
static bool is_zigzag(const struct request *r)
{
    return r->core_plan == NULL &&
           (r->ring_layout == RING_ZIGZAG || r->ring_layout == RING_ZIGZAG_DOCUMENTS);
}

/* Returns the number of tokens of which the length of a sequence must be a multiple, if it is on cp x hp ranks with
 * r->tp tensor ranks each. */
static int64_t sequence_length_unit(const struct request *r, int64_t cp, int64_t hp)
{
    return (cp > 1 && is_zigzag(r) ? 2 * cp * hp : cp * hp) * r->tp;
}

/* True if the head ranks can divide the two slices of a context rank: in a zigzag, half of the head ranks take each
 * slice. */
static bool head_ranks_divide_zigzag_slices(const struct request *r, int64_t cp, int64_t hp)
{
    return cp == 1 || hp == 1 || hp % 2 == 0 || !is_zigzag(r);
}

static bool cp_and_hp_fit(const struct request *r, int64_t cp, int64_t hp)
{
    return hp_divides_heads(r->model, hp) && head_ranks_divide_zigzag_slices(r, cp, hp) &&
           r->seq % sequence_length_unit(r, cp, hp) == 0;
}

struct context_and_head_split {
    int64_t cp, hp;
};

/* Fills split[] with the possible divisions of `ranks` into context and head ranks, those with most head ranks first
 * and at most SPLITS_MAX, and returns their number. */
static int list_context_and_head_splits(const struct request *r, struct attention_axes axes,
                                        int64_t ranks,
                                        struct context_and_head_split split[SPLITS_MAX])
{
    int count = 0;
    for (int64_t hp = axes.hp ? ranks : 1; hp >= 1 && count < SPLITS_MAX; hp--) {
        if (ranks % hp != 0 || (!axes.cp && hp != ranks) || hp > r->model->heads)
            continue;
        if (cp_and_hp_fit(r, ranks / hp, hp))
            split[count++] = (struct context_and_head_split){ranks / hp, hp};
    }
    return count;
}

/* Appends the possible divisions, for example "hp 1, 2 or 4"; with a context axis "cp x hp 4 x 1 or 2 x 2", or nothing
 * if there is none. */
static void append_context_and_head_splits(struct text *out, const struct request *r,
                                           struct attention_axes axes, int64_t ranks)
{
    struct context_and_head_split split[SPLITS_MAX];
    if (!axes.cp) {
        text_puts(out, "hp ");
        resolve_append_divisors(out, r->ranks, axes.hp ? r->model->heads : 1);
        return;
    }
    int count = list_context_and_head_splits(r, axes, ranks, split);
    if (count == 0)
        return;
    text_puts(out, "cp x hp ");
    for (int i = 0; i < count; i++)
        text_printf(out, "%s%lld x %lld", list_separator(i, count), (long long)split[i].cp,
                    (long long)split[i].hp);
}

/* On entry *s has the degrees that the user gave; 0 or less: not given. Replaces it by a possible division of `ranks`
 * into context and head ranks that has them. Returns false, and leaves *s unchanged, if there is none. It takes the
 * division with most head ranks. If the user gave neither degree, it takes the one with most head ranks that fit in a
 * node, so that their all-to-alls stay there (LoongTrain, section 4.4); if none fits, the one with fewest. */
static bool choose_context_and_head_split(const struct request *r, struct attention_axes axes,
                                          int64_t ranks, struct context_and_head_split *s)
{
    struct context_and_head_split split[SPLITS_MAX];
    int count = list_context_and_head_splits(r, axes, ranks, split), last = -1;
    for (int i = 0; i < count; i++) {
        bool given = (s->cp <= 0 || s->cp == split[i].cp) && (s->hp <= 0 || s->hp == split[i].hp);
        bool is_open = axes.cp && s->cp <= 0 && s->hp <= 0;
        if (!given)
            continue;
        last = i;
        if (!is_open || split[i].hp <= r->gpus_per_node)
            break;
    }
    if (last >= 0)
        *s = split[last];
    return last >= 0;
}

/* ---- the degrees of ranks that share a sequence ---- */

/* Sets the open degrees so that as many ranks as possible share a sequence. If no division is possible, it sets them so
 * that a message can say what is wrong; a degree for which there is no value stays 0. */
static void fill_degrees(const struct request *r, struct attention_axes axes, int64_t *dp,
                         struct context_and_head_split *s)
{
    int64_t ranks = r->ranks;
    if (*dp > 0)
        ranks = ranks % *dp == 0 ? ranks / *dp : 0;
    bool found = ranks > 0 && choose_context_and_head_split(r, axes, ranks, s);
    for (int64_t fewer = ranks - 1; !found && *dp <= 0 && fewer > 0; fewer--)
        found = ranks % fewer == 0 && choose_context_and_head_split(r, axes, fewer, s);
    if (!found) {
        if (s->cp <= 0)
            s->cp = !axes.cp ? 1 : s->hp <= 0 ? ranks : ranks % s->hp == 0 ? ranks / s->hp : 0;
        if (s->hp <= 0)
            s->hp = axes.hp && s->cp > 0 && ranks % s->cp == 0 ? ranks / s->cp : !axes.hp;
    }
    if (*dp <= 0 && s->cp > 0 && s->hp > 0)
        *dp = r->ranks / (s->cp * s->hp);
}

/* Appends the names of the strategies that cut a sequence by context ranks (`cp` set), or by head ranks (not set). */
static void append_strategies_with_cp_or_hp(struct text *out, bool cp)
{
    size_t count;
    const struct strategy *strategy = strategies_list(&count);
    for (size_t i = 0; i < count; i++) {
        struct attention_axes axes = attention_axes[strategy[i].attention];
        if (cp ? axes.cp : axes.hp)
            text_printf(out, "%s%s", out->size > 0 ? ", " : "", strategy[i].name);
    }
}

static enum status check_cp_and_hp_are_allowed(const struct request *r,
                                               const struct strategy *strategy, struct diag *diag)
{
    struct attention_axes axes = attention_axes[strategy->attention];
    bool context = !axes.cp && r->cp > 1, heads = !axes.hp && r->hp > 1;
    if (!context && !heads)
        return STATUS_OK;
    struct text which = {0};
    append_strategies_with_cp_or_hp(&which, context);
    resolve_refuse(
        diag, context ? "--cp" : "--hp",
        "strategy '%s' %s: %s is %lld; 1 would do, or one of the strategies that have %s ranks: %s",
        strategy->name,
        context   ? "has no context-parallel axis"
        : axes.cp ? "keeps all heads on every rank"
                  : "keeps a sequence on one rank",
        context ? "cp" : "hp", (long long)(context ? r->cp : r->hp), context ? "context" : "head",
        which.data);
    text_release(&which);
    return STATUS_BAD_INPUT;
}

static enum status check_context_and_head_split(const struct request *r, struct attention_axes axes,
                                                struct context_and_head_split s, struct diag *diag)
{
    struct text would = {0};
    int64_t ranks = s.cp * s.hp, unit = sequence_length_unit(r, s.cp, s.hp);
    const struct transformer *m = r->model;
    bool fit = hp_divides_heads(m, s.hp);
    if (!fit && m->heads % s.hp == 0 && !axes.cp) {
        text_puts(&would, "hp ");
        resolve_append_divisors(&would, m->kv_heads, r->ranks);
    } else if (!fit || !head_ranks_divide_zigzag_slices(r, s.cp, s.hp)) {
        append_context_and_head_splits(&would, r, axes, ranks);
    }
    if (m->heads % s.hp != 0)
        return resolve_refuse_value_with_hint(diag, "--hp", &would,
                                              "%lld heads do not divide over hp %lld",
                                              (long long)m->heads, (long long)s.hp);
    if (!fit)
        return resolve_refuse_value_with_hint(
            diag, "--hp", &would,
            "%lld kv heads neither divide over hp %lld nor can be copied to it",
            (long long)m->kv_heads, (long long)s.hp);
    if (!head_ranks_divide_zigzag_slices(r, s.cp, s.hp))
        return resolve_refuse_value_with_hint(
            diag, "--hp", &would,
            "hp %lld is odd: half of the head ranks takes each slice of a zigzag pair",
            (long long)s.hp);
    if (r->seq % unit == 0)
        return STATUS_OK;
    resolve_append_multiples(&would, r->seq, unit);
    text_puts(&would, " tokens");
    if (axes.cp && list_context_and_head_splits(
                       r, axes, ranks, (struct context_and_head_split[SPLITS_MAX]){{0}}) > 0) {
        text_puts(&would, ", or ");
        append_context_and_head_splits(&would, r, axes, ranks);
    }
    return resolve_refuse_value_with_hint(
        diag, "--seq", &would, "%lld tokens do not divide %s %lld ranks", (long long)r->seq,
        unit == ranks * r->tp ? "over" : "into 2 zigzag slices for each of",
        (long long)(ranks * r->tp));
}

static enum status resolve_ring_window(struct choices *c, const struct request *r,
                                       struct diag *diag)
{
    int64_t window = r->ring_window > 0 ? r->ring_window : 1;
    if (c->cp % window != 0) {
        struct text would = {0};
        text_puts(&would, "--window ");
        resolve_append_divisors(&would, c->cp, 0);
        return resolve_refuse_value_with_hint(diag, "--window", &would,
                                              "windows of %lld do not divide a ring of %u ranks",
                                              (long long)window, c->cp);
    }
    c->ring_window = (uint32_t)window;
    return STATUS_OK;
}

/* Resolves whether windows are interleaved. They can be if the ranks of a ring are neighbours that fill whole nodes or
 * are in one node, and if the even ranks of a node form whole windows of several ranks. If the user did not choose, the
 * profile decides, and interleaves with context-first placement only. */
static enum status resolve_ring_window_interleaving(struct choices *c, const struct request *r,
                                                    struct diag *diag)
{
    bool neighbours = c->hp == 1 || c->placement == PLACEMENT_CONTEXT_FIRST;
    int64_t node = c->cp < r->gpus_per_node ? c->cp : r->gpus_per_node;
    bool fits = neighbours && node > 1 && node % 2 == 0 && c->cp % node == 0 &&
                c->ring_window > 1 && node / 2 % c->ring_window == 0;
    bool unasked = c->profile->interleaves_ring_windows && c->placement == PLACEMENT_CONTEXT_FIRST;
    if (fits && (r->windows == WINDOWS_INTERLEAVED || (r->windows == WINDOWS_PROFILE && unasked)))
        c->ring_ranks_per_node = (uint32_t)node;
    if (fits || r->windows != WINDOWS_INTERLEAVED)
        return STATUS_OK;
    if (!neighbours)
        return resolve_refuse(diag, "--windows",
                              "interleaved windows need the ranks of a ring to be neighbours in a "
                              "node; choose --placement context-first");
    return resolve_refuse(
        diag, "--windows",
        "windows of %u do not divide the even ranks of a node of %lld with cp %u; "
        "--windows contiguous would do",
        c->ring_window, (long long)node, c->cp);
}

/* Reports that the given degrees are not possible, for example "hp 16 does not divide 8 ranks". Degrees that were not
 * given are not named. */
static enum status refuse_degrees(const struct request *r, struct attention_axes axes,
                                  struct diag *diag)
{
    const struct {
        const char *option;
        int64_t degree;
        bool is_open;
    } rows[] = {
        {"--dp", r->dp, r->dp <= 0},
        {"--cp", r->cp, axes.cp && r->cp <= 0},
        {"--hp", r->hp, axes.hp && r->hp <= 0},
        {"--tp", r->tp > 1 ? r->tp : 0, false},
    };
    const char *option = "--gpus"; /* the first option that was given */
    if (diag == NULL)
        return STATUS_BAD_INPUT; /* a search calls this often and needs no message */
    struct text what = {0}, would = {0};
    int given = 0, is_open = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        is_open += rows[i].is_open;
        if (rows[i].degree > 0 && given == 0)
            option = rows[i].option;
        if (rows[i].degree > 0)
            text_printf(&what, "%s%s %lld", given++ > 0 ? " x " : "", rows[i].option + 2,
                        (long long)rows[i].degree);
    }
    text_printf(&what, " does not %s %lld ranks", is_open > 0 ? "divide" : "make",
                (long long)(r->ranks * r->tp));
    int64_t split = (r->cp > 0 ? r->cp : 1) * (r->hp > 0 ? r->hp : 1);
    if (r->dp > 0 && is_open == 0 && r->ranks % split == 0) {
        text_printf(&would, "dp %lld", (long long)(r->ranks / split));
    } else if (given == 1 && r->dp > 0) {
        text_puts(&would, "dp ");
        resolve_append_divisors(&would, r->ranks, 0);
    } else {
        append_context_and_head_splits(
            &would, r, axes, r->dp > 0 && r->ranks % r->dp == 0 ? r->ranks / r->dp : r->ranks);
    }
    resolve_refuse_value_with_hint(diag, option, &would, "%s", what.data);
    text_release(&what);
    return STATUS_BAD_INPUT;
}

/* Appends why not more ranks share a sequence, if the cause is not its length: ": 12 heads (12 kv) do not divide over 8
 * or 16". Appends nothing if the user gave the degrees. */
static void append_why_fewer_ranks_share(struct text *out, const struct request *r,
                                         struct attention_axes axes,
                                         struct context_and_head_split s)
{
    int64_t ranks[SPLITS_MAX];
    int count = 0;
    bool asked = (!axes.cp || r->cp > 0) && (!axes.hp || r->hp > 0);
    for (int64_t n = s.cp * s.hp + 1; n <= r->ranks && !asked && count < SPLITS_MAX; n++)
        if (r->ranks % n == 0)
            ranks[count++] = n;
    if (count == 0)
        return;
    if (axes.cp)
        text_puts(out, ": no slices and heads fit ");
    else
        text_printf(out, ": %lld heads (%lld kv) do not divide over ", (long long)r->model->heads,
                    (long long)r->model->kv_heads);
    resolve_append_numbers(out, ranks, count);
}

/* Appends which ranks share a sequence, for example "2 context x 4 head ranks share a sequence"; if none do, appends
 * "every rank has sequences of its own". */
static void append_sequence_ranks(struct text *out, const struct request *r,
                                  struct context_and_head_split s)
{
    const struct {
        const char *what;
        int64_t ranks;
    } axes[] = {{"tensor", r->tp}, {"context", s.cp}, {"head", s.hp}};
    for (size_t i = 0; i < ARRAY_LEN(axes); i++)
        if (axes[i].ranks > 1)
            text_printf(out, "%s%lld %s", out->size > 0 ? " x " : "", (long long)axes[i].ranks,
                        axes[i].what);
    text_puts(out,
              out->size > 0 ? " ranks share a sequence" : "every rank has sequences of its own");
}

static void add_note_on_dp(const struct request *r, struct attention_axes axes,
                           struct context_and_head_split s, int64_t dp, struct diag *note)
{
    struct text sharers = {0}, why = {0};
    append_sequence_ranks(&sharers, r, s);
    append_why_fewer_ranks_share(&why, r, axes, s);
    /* no context or head ranks share a sequence, although that is what the strategy is for */
    bool idle = why.size > 0 && s.cp * s.hp == 1;
    if (idle)
        text_printf(&sharers, " (%s 1), as with --strategy local",
                    axes.cp && axes.hp ? "cp and hp"
                    : axes.cp          ? "cp"
                                       : "hp");
    (idle ? diag_warning : diag_note)(note, (struct loc){0},
                                      "%s%s; dp is set to %lld, so that all GPUs are used",
                                      sharers.data, why.size > 0 ? why.data : "", (long long)dp);
    text_release(&sharers);
    text_release(&why);
}

/* Returns the number of tokens of which the length of a sequence on n ranks must be a multiple. They are context ranks
 * if the strategy has such ranks, else head ranks. */
static int64_t length_unit_on_ranks(const struct request *r, struct attention_axes axes, int64_t n)
{
    return sequence_length_unit(r, axes.cp ? n : 1, axes.cp ? 1 : n);
}

/* Returns the largest number of ranks that could share a sequence of another length, but not one of this length. 0: it
 * is not larger than the number of ranks that share the sequence, or the user gave the degrees. */
static int64_t most_ranks_with_other_length(const struct request *r, struct attention_axes axes,
                                            struct context_and_head_split s)
{
    bool asked = (!axes.cp || r->cp > 0) && (!axes.hp || r->hp > 0);
    for (int64_t n = asked ? 0 : r->ranks; n > s.cp * s.hp; n--)
        if (r->ranks % n == 0 && r->seq % length_unit_on_ranks(r, axes, n) != 0 &&
            (axes.cp || hp_divides_heads(r->model, n)))
            return n;
    return 0;
}

/* Refuses a sequence length that does not divide over `over` ranks, although other lengths would. If fewer ranks were
 * taken instead, a token more or less would silently change what every rank does. Callers do not refuse it if the user
 * gave the degrees. unit: the length must be a multiple of it. */
static enum status refuse_sequence_length(const struct request *r, int64_t over, int64_t unit,
                                          const char *options, struct diag *diag)
{
    struct text would = {0};
    resolve_append_multiples(&would, r->seq, unit);
    text_printf(&would, " tokens, or %s for sequences on fewer ranks,", options);
    return resolve_refuse_value_with_hint(diag, "--seq", &would,
                                          "%lld tokens do not divide over %lld ranks",
                                          (long long)r->seq, (long long)over);
}

/* ---- the degree of tensor parallelism ---- */

/* True if tp tensor ranks divide the ranks, the tokens and the model of a request. */
static bool tensor_ranks_fit(const struct request *r, int64_t tp)
{
    return r->ranks % tp == 0 && r->seq % tp == 0 && tensor_share_fits(r->model, tp);
}

int64_t resolve_largest_tp(const struct request *r, bool tokens)
{
    int64_t given = (r->dp > 0 ? r->dp : 1) * (r->cp > 0 ? r->cp : 1) * (r->hp > 0 ? r->hp : 1);
    int64_t most = r->ranks / given;
    if (r->gpus_per_node > 0 && most > r->gpus_per_node)
        most = r->gpus_per_node;
    for (int64_t tp = most; tp > 1; tp--)
        if (r->ranks % (tp * given) == 0 && tensor_share_fits(r->model, tp) &&
            (!tokens || r->seq % tp == 0))
            return tp;
    return 1;
}

static enum status refuse_tensor_ranks(const struct request *r, int64_t tp, struct diag *diag)
{
    const struct transformer *m = r->model;
    struct text would = {0};
    int64_t fits[SPLITS_MAX];
    int count = 0;
    for (int64_t d = 1; d <= r->ranks && count < SPLITS_MAX; d++)
        if (tensor_ranks_fit(r, d))
            fits[count++] = d;
    text_puts(&would, "tp ");
    resolve_append_numbers(&would, fits, count);
    if (r->ranks % tp != 0)
        return resolve_refuse_value_with_hint(diag, "--tp", &would,
                                              "tp %lld does not divide %lld ranks", (long long)tp,
                                              (long long)r->ranks);
    if (r->seq % tp != 0)
        return resolve_refuse_value_with_hint(diag, "--tp", &would,
                                              "%lld tokens do not divide over tp %lld",
                                              (long long)r->seq, (long long)tp);
    if (m->qk_norm_wide)
        return resolve_refuse_value_with_hint(
            diag, "--tp", &would,
            "the model's norms of q and k go over all heads (qk_norm_wide), "
            "which no tensor rank has");
    return resolve_refuse_value_with_hint(
        diag, "--tp", &would,
        "%lld heads (%lld kv) and a feed-forward width of %lld do not divide over tp %lld",
        (long long)m->heads, (long long)m->kv_heads, (long long)m->ffn, (long long)tp);
}

enum status resolve_tensor_ranks(struct choices *c, const struct request *r,
                                 const struct strategy *strategy, struct request *inside,
                                 struct transformer *share, struct diag *diag)
{
    int64_t tp = r->tp > 0 ? r->tp : strategy->fills_tp ? resolve_largest_tp(r, true) : 1;
    int64_t wanted =
        r->tp > 0 || r->dp > 0 || !strategy->fills_tp ? tp : resolve_largest_tp(r, false);
    if (wanted > tp)
        return refuse_sequence_length(r, wanted, wanted, "--tp or --dp", diag);
    *inside = *r;
    inside->tp = tp;
    c->tp = (uint32_t)tp;
    if (tp == 1)
        return STATUS_OK;
    if (!tensor_ranks_fit(r, tp))
        return refuse_tensor_ranks(r, tp, diag);
    *share = tensor_share_of_model(r->model, tp, tensor_vocabulary_unit(c));
    inside->model = share;
    inside->ranks = r->ranks / tp;
    inside->gpus_per_node = r->gpus_per_node > tp ? r->gpus_per_node / tp : 1;
    return STATUS_OK;
}

/* ---- dp, cp and hp, and what follows from them ---- */

enum status resolve_degrees(struct choices *c, const struct request *r,
                            const struct strategy *strategy, struct diag *note, struct diag *diag)
{
    struct attention_axes axes = attention_axes[strategy->attention];
    struct context_and_head_split s = {r->cp, r->hp};
    int64_t dp = r->dp;
    if (check_cp_and_hp_are_allowed(r, strategy, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    fill_degrees(r, axes, &dp, &s);
    if (s.hp <= 0 || s.cp <= 0 || dp <= 0 || s.hp > r->ranks || s.cp > r->ranks || dp > r->ranks ||
        s.hp * s.cp * dp != r->ranks)
        return refuse_degrees(r, axes, diag);
    if (check_context_and_head_split(r, axes, s, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    int64_t more = r->dp > 0 ? 0 : most_ranks_with_other_length(r, axes, s);
    if (more > 0)
        return refuse_sequence_length(r, more * r->tp, length_unit_on_ranks(r, axes, more), "--dp",
                                      diag);
    if (r->dp <= 0 && dp > 1 && note)
        add_note_on_dp(r, axes, s, dp, note);
    c->hp = (uint32_t)s.hp;
    c->cp = (uint32_t)s.cp;
    c->dp = (uint32_t)dp;
    c->core_plan = c->cp > 1 ? r->core_plan : NULL;
    c->ring_layout = (uint8_t)(c->core_plan != NULL ? RING_BY_CORE_PLAN : r->ring_layout);
    c->tensor_plan =
        (uint8_t)(r->tensor_plan != TENSOR_PLAN_PROFILE            ? r->tensor_plan
                  : c->profile->tensor_plan != TENSOR_PLAN_PROFILE ? c->profile->tensor_plan
                                                                   : TENSOR_PLAN_MEGATRON);
    c->sequence_parallel_ranks = c->tensor_plan == TENSOR_PLAN_REPLICATED ? 1 : c->tp;
    c->rotation = (uint8_t)(r->rotation != ROTATE_PROFILE ? r->rotation : c->profile->rotation);
    /* [cp > 1][hp > 1]: the attention that is left if there is one rank along an axis */
    static const uint8_t simpler_attention[2][2] = {
        {CHOICE_ATTENTION_LOCAL, CHOICE_ATTENTION_ULYSSES},
        {CHOICE_ATTENTION_RING, CHOICE_ATTENTION_2D},
    };
    if (axes.simpler_at_one && ((axes.cp && c->cp == 1) || (axes.hp && c->hp == 1)))
        c->attention = simpler_attention[c->cp > 1][c->hp > 1];
    if (resolve_ring_window(c, r, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    return resolve_ring_window_interleaving(c, r, diag);
}
