#include "schedule/ir/routing.h"

#include "base/ascending.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void routing_init(struct routing *r, struct arena *arena, uint32_t experts, uint32_t copies,
                  uint32_t layers)
{
    assert(experts > 0 && copies > 0 && copies <= experts);
    *r = (struct routing){
        .expert_count = experts, .copies_per_token = copies, .layer_count = layers};
    r->expert_shares_by_list = arena_array(arena, layers + 1u, sizeof *r->expert_shares_by_list);
    r->share_list_by_layer = arena_array(arena, layers + 1u, sizeof *r->share_list_by_layer);
    for (uint32_t l = 0; l < layers; l++)
        r->share_list_by_layer[l] = ROUTING_NO_SHARE_LIST;
}

void routing_init_even(struct routing *r, struct arena *arena, uint32_t experts, uint32_t copies,
                       uint32_t layers)
{
    int64_t *share = heap_alloc(experts, sizeof *share);
    for (uint32_t e = 0; e < experts; e++)
        share[e] = 1;
    routing_init(r, arena, experts, copies, layers);
    for (uint32_t l = 0; l < layers; l++)
        routing_set_shares(r, arena, l, share);
    free(share);
}

void routing_set_shares(struct routing *r, struct arena *arena, uint32_t layer,
                        const int64_t *share)
{
    const size_t bytes = r->expert_count * sizeof *share;
    uint32_t list = 0;
    assert(layer < r->layer_count);
    while (list < r->list_count && memcmp(r->expert_shares_by_list[list], share, bytes) != 0)
        list++;
    if (list == r->list_count) {
        int64_t *copy = arena_array(arena, r->expert_count, sizeof *copy);
        memcpy(copy, share, bytes);
        r->expert_shares_by_list[r->list_count++] = copy;
    }
    r->share_list_by_layer[layer] = list;
}

void routing_copy(struct routing *to, struct arena *arena, const struct routing *from)
{
    if (from->expert_count == 0) {
        *to = (struct routing){0};
        return;
    }
    routing_init(to, arena, from->expert_count, from->copies_per_token, from->layer_count);
    to->capacity = from->capacity;
    to->deals_experts_in_shuffled_order = from->deals_experts_in_shuffled_order;
    for (uint32_t l = 0; l < from->layer_count; l++)
        if (from->share_list_by_layer[l] != ROUTING_NO_SHARE_LIST)
            routing_set_shares(to, arena, l,
                               from->expert_shares_by_list[from->share_list_by_layer[l]]);
}

/* Returns the sum of the shares of those experts that have fewer than `full` copies; 0 if none of these has a share. */
static int64_t sum_of_unfilled_shares(const int64_t *share, const int64_t *count, int64_t full,
                                      uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t e = 0; e < n; e++)
        sum += count[e] == full ? 0 : share[e];
    return sum;
}

/* Fills count[experts] with the number of copies of `rows` tokens that are dealt to each expert. */
static void deal_token_copies_to_experts(const struct routing *r, uint32_t list, int64_t rows,
                                         int64_t *count)
{
    const int64_t *share = r->expert_shares_by_list[list];
    int64_t left = rows * r->copies_per_token, sum,
            *rest = heap_zalloc(r->expert_count, sizeof *rest);
    bool again = true;
    memset(count, 0, r->expert_count * sizeof *count);
    /* an expert whose exact share is `rows` copies or more gets one copy of every token, and the others divide the
     * rest */
    while (again) {
        again = false;
        sum = sum_of_unfilled_shares(share, count, rows, r->expert_count);
        for (uint32_t e = 0; e < r->expert_count && sum > 0; e++)
            if (count[e] < rows &&
                share[e] * (left / sum) + share[e] * (left % sum) / sum >= rows) {
                count[e] = rows;
                again = true;
            }
        left = rows * r->copies_per_token;
        for (uint32_t e = 0; e < r->expert_count; e++)
            left -= count[e];
    }
    const int64_t all = left;
    for (uint32_t e = 0; e < r->expert_count && sum > 0; e++)
        if (count[e] < rows) {
            const int64_t part = share[e] * (all % sum);
            count[e] = share[e] * (all / sum) + part / sum;
            rest[e] = part % sum;
            left -= count[e];
        }
    if (sum == 0 &&
        left > 0) { /* experts of share 0 take in equal parts what the others have no room for */
        int64_t open = 0;
        for (uint32_t e = 0; e < r->expert_count; e++)
            open += count[e] < rows;
        const int64_t each = left / open;
        for (uint32_t e = 0; e < r->expert_count; e++)
            if (count[e] < rows) {
                count[e] = each;
                left -= each;
            }
    }
    /* what is left goes to the experts with the largest remainders, a copy each */
    while (left > 0) {
        uint32_t most = r->expert_count;
        for (uint32_t e = 0; e < r->expert_count; e++)
            if (count[e] < rows && (most == r->expert_count || rest[e] > rest[most]))
                most = e;
        count[most]++;
        rest[most] = -1 - count[most];
        left--;
    }
    free(rest);
}

/* Fills order[experts] with the experts in the order in which slots are dealt to them: by number or, if
 * deals_experts_in_shuffled_order, shuffled by a fixed generator (splitmix64), so that the experts of a token are a
 * sample of all. */
static void fill_expert_deal_order(const struct routing *r, uint32_t *order)
{
    uint64_t state = r->expert_count;
    for (uint32_t e = 0; e < r->expert_count; e++)
        order[e] = e;
    for (uint32_t e = r->expert_count; r->deals_experts_in_shuffled_order && e-- > 1;) {
        uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        const uint32_t other = (uint32_t)((z ^ z >> 31) % (e + 1u)), moved = order[e];
        order[e] = order[other];
        order[other] = moved;
    }
}

void routing_deal_copies(const struct routing *r, uint32_t list, int64_t rows, int64_t *dealt,
                         int64_t *first)
{
    uint32_t *order = heap_alloc(r->expert_count, sizeof *order);
    int64_t slot = 0;
    deal_token_copies_to_experts(r, list, rows, dealt);
    fill_expert_deal_order(r, order);
    for (uint32_t i = 0; i < r->expert_count; i++) {
        first[order[i]] = slot;
        slot += dealt[order[i]];
    }
    free(order);
}

int64_t routing_expert_capacity(const struct routing *r, int64_t rows)
{
    const __int128 all = (__int128)rows * r->copies_per_token *
                         r->capacity.capacity_factor_millionths,
                   unit = (__int128)r->expert_count * CAPACITY_UNIT;
    const __int128 most = (all + unit - 1) / unit;
    return (int64_t)(most < rows ? most : rows);
}

bool routing_keeps_copy(const struct routing *r, int64_t rows, int64_t dealt, int64_t first,
                        int64_t index)
{
    const int64_t most = routing_expert_capacity(r, rows);
    if (r->capacity.capacity_factor_millionths == 0 || dealt <= most)
        return true;
    if (r->capacity.drop_policy == TOKEN_DROP_PROBABILITY) /* `most` of them, evenly spread */
        return (index + 1) * most / dealt > index * most / dealt;
    /* An expert's slots may pass the last token and go on with the first one. It keeps the slots of the earliest
     * tokens: first those that went on, `wrapped` slots, then the `before` slots before them. */
    const int64_t before = rows - first % rows, wrapped = dealt > before ? dealt - before : 0;
    return (index < before ? wrapped + index : index - before) < most;
}

void routing_rows_of_experts(const struct routing *r, uint32_t list, int64_t rows, int64_t *count)
{
    deal_token_copies_to_experts(r, list, rows, count);
    const int64_t most =
        r->capacity.capacity_factor_millionths > 0 ? routing_expert_capacity(r, rows) : rows;
    for (uint32_t e = 0; e < r->expert_count; e++)
        if (count[e] > most || (r->capacity.capacity_factor_millionths > 0 && r->capacity.pads))
            count[e] = most;
}

int64_t routing_kept_rows(const struct routing *r, uint32_t list, int64_t rows)
{
    int64_t *count = heap_zalloc(r->expert_count, sizeof *count), sum = 0;
    routing_rows_of_experts(r, list, rows, count);
    for (uint32_t e = 0; e < r->expert_count; e++)
        sum += count[e];
    free(count);
    return sum;
}

struct routing_fullest_rank routing_find_fullest_rank(const struct routing *r, uint32_t list,
                                                      int64_t rows, uint32_t ranks)
{
    const uint32_t own = r->expert_count / ranks;
    int64_t *count = heap_zalloc(r->expert_count, sizeof *count);
    int64_t *of_rank = heap_zalloc(ranks, sizeof *of_rank);
    struct routing_fullest_rank fullest = {0};
    routing_rows_of_experts(r, list, rows, count);
    for (uint32_t e = 0; e < own * ranks; e++)
        of_rank[e / own] += count[e];
    for (uint32_t k = 0; k < ranks; k++)
        fullest.rank = of_rank[k] > of_rank[fullest.rank] ? k : fullest.rank;
    fullest.copies = of_rank[fullest.rank];
    qsort(of_rank, ranks, sizeof *of_rank, ascending_i64);
    fullest.median = of_rank[ranks / 2];
    free(of_rank);
    free(count);
    return fullest;
}

/* Consecutive tokens, begin .. end - 1, that have a copy at one expert. */
struct token_interval {
    int64_t begin, end;
};

static int compare_intervals_by_begin(const void *a, const void *b)
{
    const struct token_interval *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

int64_t routing_count_arrived_tokens(const struct routing *r, uint32_t list, int64_t rows,
                                     uint32_t ranks, int64_t *tokens)
{
    const uint32_t own = r->expert_count / ranks;
    int64_t *dealt = heap_zalloc(2 * (size_t)r->expert_count, sizeof *dealt),
            *first = dealt + r->expert_count;
    struct token_interval *run = heap_zalloc(2 * (size_t)own + 1, sizeof *run);
    int64_t most = 0;
    routing_deal_copies(r, list, rows, dealt, first);
    for (uint32_t k = 0; k < ranks; k++) {
        size_t runs = 0;
        int64_t covered = 0, end = 0;
        for (uint32_t e = k * own; e < (k + 1) * own; e++) {
            const int64_t begin = first[e] % rows, last = begin + dealt[e];
            if (dealt[e] > 0)
                run[runs++] = (struct token_interval){begin, last < rows ? last : rows};
            if (last > rows)
                run[runs++] = (struct token_interval){0, last - rows};
        }
        qsort(run, runs, sizeof *run, compare_intervals_by_begin);
        for (size_t i = 0; i < runs; i++) {
            const int64_t begin = run[i].begin > end ? run[i].begin : end;
            covered += run[i].end > begin ? run[i].end - begin : 0;
            end = run[i].end > end ? run[i].end : end;
        }
        if (tokens != NULL)
            tokens[k] = covered;
        most = covered > most ? covered : most;
    }
    free(run);
    free(dealt);
    return most;
}

/* Returns the number of rows for which the work has room; 0 if works of its kind never have rows of experts. */
static int64_t expert_row_capacity_of_work(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return work->matmul.form == MATMUL_TN ? work->matmul.k : work->matmul.m;
    case WORK_COLUMN_SUM:
        return work->column_sum.rows;
    case WORK_QUANTISE:
        return work->quantise.rows;
    case WORK_SWIGLU:
    case WORK_SWIGLU_BACKWARD:
        return work->activation.rows;
    case WORK_PACK:
    case WORK_UNPACK:
        return work->pack.rows;
    case WORK_PERMUTE:
    case WORK_UNPERMUTE:
    case WORK_UNPERMUTE_BACKWARD:
    case WORK_PERMUTE_WEIGHTS:
    case WORK_PERMUTE_WEIGHTS_BACKWARD:
        return work->permute.to;
    default:
        return 0;
    }
}

static const char *const why_dropped_once_unfit = "rows that are sent once cannot be dropped";
static const char *const no_room_for_fullest = "it has no room for the rows of the fullest rank";
static const char *const no_room_for_arrived = "it has no room for the rows that arrive";

/* Does what routing_why_work_unfit() does for rows that are sent to the ranks of their experts, or back. */
static const char *why_sent_rows_unfit(const struct routing *r, const struct work *work,
                                       uint32_t list, int64_t rows, uint32_t ranks)
{
    const bool once = work->all_to_all.once > 0;
    const int64_t cols = work->all_to_all.cols;
    const int64_t moved = work->all_to_all.ahead + work->all_to_all.back;
    if (once && r->capacity.capacity_factor_millionths > 0)
        return why_dropped_once_unfit;
    if (moved != (once ? rows : routing_kept_rows(r, list, rows)) * cols)
        return "the elements that a rank sends are not those of its copies";
    const int64_t needed = once ? routing_count_arrived_tokens(r, list, rows, ranks, NULL)
                                : routing_find_fullest_rank(r, list, rows, ranks).copies;
    const int64_t room = work->all_to_all.bytes / (int64_t)dtype_bytes((enum dtype)work->in) / cols;
    if (room < needed * ranks)
        return once ? no_room_for_arrived : no_room_for_fullest;
    return NULL;
}

/* Does what routing_why_work_unfit() does for rows that are copied in the order of experts, or back. */
static const char *why_permuted_rows_unfit(const struct routing *r, const struct work *work,
                                           uint32_t list, int64_t rows, uint32_t ranks)
{
    if (work->permute.of == PERMUTE_ARRIVED && r->capacity.capacity_factor_millionths > 0)
        return why_dropped_once_unfit;
    if (work->kind == WORK_PERMUTE && work->permute.weights > 0)
        return "rows are multiplied by their weights before experts only where routing is even";
    switch ((enum permute_source)work->permute.of) {
    case PERMUTE_OWN:
        return work->permute.rows != rows || work->permute.to < routing_kept_rows(r, list, rows)
                   ? "its rows are not those that a rank deals"
                   : NULL;
    case PERMUTE_GATHERED:
        if (work->permute.rows != rows * ranks)
            return "its rows are not those of all ranks";
        break;
    default:
        if (work->permute.rows < routing_count_arrived_tokens(r, list, rows, ranks, NULL) * ranks)
            return no_room_for_arrived;
    }
    return expert_row_capacity_of_work(work) <
                   routing_find_fullest_rank(r, list, rows, ranks).copies * ranks
               ? no_room_for_fullest
               : NULL;
}

const char *routing_why_work_unfit(const struct routing *r, const struct work *work, uint32_t group,
                                   uint32_t ranks)
{
    const int64_t list = work_routing_list_index(work), dealt = work_routed_copies_per_rank(work);
    if (list < 0)
        return NULL;
    if (list >= r->list_count)
        return "its route is no list of a routing line";
    if (dealt < 1 || dealt % r->copies_per_token != 0 || dealt / r->copies_per_token > INT32_MAX)
        return "its dealt copies are no multiple of those of a token";
    if (r->expert_count % ranks != 0)
        return "the experts do not divide over the ranks of group ep";
    if (work->kind == WORK_ROUTE || work->kind == WORK_ROUTE_BACKWARD)
        return work->route.experts != r->expert_count || work->route.copies != r->copies_per_token
                   ? "its experts or copies are not those of the routing line"
                   : NULL;
    if ((work->kind == WORK_MATMUL || work->kind == WORK_COLUMN_SUM ||
         work->kind == WORK_QUANTISE) &&
        work_row_group_count(work) != r->expert_count / ranks)
        return "its groups are not the experts of a rank";
    if ((work->kind == WORK_PACK || work->kind == WORK_UNPACK) &&
        (work->pack.parts != 1 || work->pack.w[1] != 0 || work->pack.w[2] != 0))
        return "it moves rows of experts in more than one part";
    if (work->kind == WORK_ALL_TO_ALL && (uint32_t)work->all_to_all.group != group)
        return "its group is not ep";
    if (work->kind == WORK_ALL_TO_ALL &&
        (work->all_to_all.ahead > 0) == (work->all_to_all.back > 0))
        return "it goes neither ahead nor back, or both";
    const int64_t rows = dealt / r->copies_per_token;
    if (work->kind == WORK_ALL_TO_ALL)
        return why_sent_rows_unfit(r, work, (uint32_t)list, rows, ranks);
    if (work_is_permutation(work))
        return why_permuted_rows_unfit(r, work, (uint32_t)list, rows, ranks);
    const struct routing_fullest_rank fullest =
        routing_find_fullest_rank(r, (uint32_t)list, rows, ranks);
    return expert_row_capacity_of_work(work) < fullest.copies * ranks ? no_room_for_fullest : NULL;
}
