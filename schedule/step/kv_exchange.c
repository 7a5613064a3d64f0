/* The exchange of keys and values between stages that share subsequences (schedule/pipeline/multiplex.h). A stage sends
 * the keys and values of all subsequences but its last, shared ones to the stages before it, which will share those.
 * The gradients of these keys and values are summed over the stages; the stage that sent them gets the sum.
 *
 * Keys and values are sent from stage to stage as soon as a unit is done, long before they are needed: if they were
 * sent all at once when the first shared subsequence starts, they would take as long as several units. The gradients of
 * a subsequence are returned UNITS_AHEAD units before the owner needs them, and not all at once, so that the gradients
 * of one chunk do not delay those of another. Until then the owner keeps the gradients of its own queries apart. */
#include "schedule/attention/attention.h"
#include "schedule/emit/emit.h"
#include "schedule/emit/process_groups.h"
#include "schedule/step/stage.h"

/* The gradients of a subsequence are summed at the owner this many units before the owner's backward of it. */
enum { UNITS_AHEAD = 2 };

static void emit_kv_message(struct stage *s, enum work_kind kind, int64_t by, struct view x)
{
    enum { CHANNEL_KEYS = 1 };
    uint8_t stream = kind == WORK_SEND ? s->kv_to_stage_stream : s->kv_from_stage_stream;
    emit_message(s->e, kind, stream, by, x, CHANNEL_KEYS);
}

/* Returns the part of a cache that belongs to one subsequence. */
static struct view view_of_subsequence_in_kv_cache(const struct stage *s, struct view cache,
                                                   uint32_t part, int64_t width)
{
    int64_t begin = pipeline_tokens_before_subsequence(s->choices, part),
            end = pipeline_tokens_before_subsequence(s->choices, part + 1);
    return view_slice(cache, begin * width, (end - begin) * width);
}

void stage_send_kv(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, e->stage, action->chunk);
    uint32_t part = action->unit % s->choices->subsequences;
    struct layer_range layers = pipeline_layers_of_chunk(s->choices, chunk);
    stage_set_unit(s, chunk, action->unit, PHASE_FORWARD);
    for (uint32_t l = layers.first; l < layers.end; l++) {
        struct kv_widths width;
        struct prefix *prefix = prefix_open_kv_caches(e, l, &width);
        struct view kv[] = {view_of_subsequence_in_kv_cache(s, prefix->k, part, width.k_width),
                            view_of_subsequence_in_kv_cache(s, prefix->v, part, width.v_width)};
        for (int i = 0; i < 2; i++) {
            if (e->stage < chunk)
                emit_kv_message(s, WORK_RECV, 1, kv[i]);
            if (e->stage > 0)
                emit_kv_message(s, WORK_SEND, -1, kv[i]);
        }
    }
}

/* Emits the sum of x over the stages 0 to `chunk`. Only the owner, stage `chunk`, gets the result, in place. */
static void emit_sum_at_owner(struct stage *s, uint32_t chunk, struct view x)
{
    struct emit *e = s->e;
    uint16_t group = multiplex_group_of_sharing_stages(
        e, "keys", (struct stages_sharing_subsequence){0, chunk + 1});
    struct work work = {.kind = WORK_REDUCE, .broadcast = {group, bytes_of_view(e, x), chunk}};
    emit_op(e, s->kv_grads_stream, &work, &x, 1, &x, e->stage == chunk);
}

void stage_return_kv(struct stage *s, const struct action *action)
{
    struct emit *e = s->e;
    uint32_t chunk = pipeline_chunk_of_stage(s->choices, e->stage, action->chunk);
    uint32_t unit = action->unit % s->choices->subsequences;
    bool first = unit == multiplex_first_of_back_subsequences(s->choices, chunk);
    struct layer_range layers = pipeline_layers_of_chunk(s->choices, chunk);
    stage_set_unit(s, chunk, action->unit, PHASE_BACKWARD);
    /* At the first unit, the owner puts the gradients that the stages computed in shared units aside, and starts new
     * sums for its own units. */
    for (uint32_t l = layers.first; first && l < layers.end; l++) {
        struct prefix *prefix = &e->prefix[l];
        prefix->given_dk = prefix->dk;
        prefix->given_dv = prefix->dv;
        prefix->dk = prefix->dv = view_none();
    }
    for (uint32_t ahead = first ? 1 : UNITS_AHEAD; ahead <= UNITS_AHEAD && ahead <= unit; ahead++)
        for (uint32_t l = layers.end; l-- > layers.first;) {
            struct kv_widths width;
            struct prefix *prefix = prefix_open_kv_caches(e, l, &width);
            emit_sum_at_owner(
                s, chunk,
                view_of_subsequence_in_kv_cache(s, prefix->given_dk, unit - ahead, width.k_width));
            emit_sum_at_owner(
                s, chunk,
                view_of_subsequence_in_kv_cache(s, prefix->given_dv, unit - ahead, width.v_width));
        }
}
