/* Statements about ranks, tokens and streams: mesh, tokens, documents, routing, arena, group, role, stream, ops. */
#include "schedule/ir/ir_index.h"
#include "schedule/ir/ir_parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Finds an axis that is not yet in the mask *seen, and adds it there. */
static bool parse_unrepeated_axis_name(struct parser *p, struct word word, uint32_t *seen,
                                       uint8_t *axis)
{
    const char *names[MESH_AXES_MAX];
    for (uint32_t a = 0; a < p->ir->mesh.axis_count; a++)
        names[a] = p->ir->mesh.axis[a].name;
    if (!parse_name_in_table(p, word, "axis of the mesh", names, p->ir->mesh.axis_count, axis))
        return false;
    if (*seen >> *axis & 1)
        return parse_error(p, word.at, "the axis '%s' is given twice", names[*axis]);
    *seen |= 1u << *axis;
    return true;
}

bool parse_mesh(struct parser *p)
{
    struct mesh *mesh = &p->ir->mesh;
    struct word word;
    if (p->has_mesh)
        return parse_error(p, p->cursor.line_first_char, "a second mesh: there is only one");
    if (p->ir->group_count > 0 || p->ir->role_count > 0 || p->ir->tensor_count > 0)
        return parse_error(p, p->cursor.line_first_char,
                           "the mesh must come before groups, roles, tensors and ops");
    p->has_mesh = true;
    if (!parse_required_word(p, &word, "an axis such as cp=4"))
        return false;
    for (; word.size > 0; word = parse_next_word(p)) {
        struct word size = word_split_at(&word, '=');
        if (!parse_check_is_name(p, "mesh axis", true, &word))
            return false;
        if (!size.at)
            return parse_error(p, word.at, "the axis needs a size: %.*s=SIZE", (int)word.size,
                               word.at);
        if (mesh->axis_count == MESH_AXES_MAX)
            return parse_error(p, word.at, "a mesh has at most %d axes", MESH_AXES_MAX);
        struct mesh_axis *axis = &mesh->axis[mesh->axis_count];
        memcpy(axis->name, word.at, word.size);
        axis->name[word.size] = '\0';
        if (mesh_find_axis(mesh, axis->name) >= 0)
            return parse_error(p, word.at, "the axis '%s' is given twice", axis->name);
        int64_t value, ranks = mesh_rank_count(mesh);
        if (!parse_number(p, size, axis->name, 1, MESH_RANKS_MAX, &value))
            return false;
        if (ranks * value > MESH_RANKS_MAX)
            return parse_error(p, size.at, "a mesh has at most %u ranks", MESH_RANKS_MAX);
        axis->size = (uint32_t)value;
        mesh->axis_count++;
    }
    return true;
}

static uint32_t count_list_items(struct word list, char separator)
{
    uint32_t count = 1;
    for (size_t i = 0; i < list.size; i++)
        count += list.at[i] == separator;
    return count;
}

/* Parses a list of numbers in low..high into *number, which lives in the ir's arena. */
static bool parse_numbers(struct parser *p, struct word list, const char *what, int64_t low,
                          int64_t high, const int64_t **number, uint32_t *count)
{
    *count = count_list_items(list, ',');
    int64_t *next = arena_array(&p->ir->arena, *count, sizeof *next);
    *number = next;
    for (struct word item; word_take_item(&list, ',', &item);)
        if (!parse_number(p, item, what, low, high, next++))
            return false;
    return true;
}

/* Parses one length for each of the layout's chunks. */
static bool parse_chunk_lengths(struct parser *p, struct word list)
{
    struct token_layout *layout = &p->ir->layout;
    uint32_t count = count_list_items(list, ',');
    if (count != layout->chunk_count)
        return parse_error(p, list.at, "%" PRIu32 " lengths of %" PRIu32 " chunks", count,
                           layout->chunk_count);
    return parse_numbers(p, list, "a length of a chunk", 1, INT64_MAX, &layout->tokens_by_chunk,
                         &count);
}

bool parse_tokens(struct parser *p)
{
    enum { LAYOUT, CP, HP, CHUNKS, CHUNK, SEQ, BATCH, MICRO_BATCH, LENGTHS, DTYPE, COUNT };
    static const char *const keys[COUNT] = {"layout", "cp",    "hp",          "chunks",  "chunk",
                                            "seq",    "batch", "micro_batch", "lengths", "dtype"};
    const char *start = p->cursor.line_first_char;
    struct word value[COUNT];
    if (p->has_tokens)
        return parse_error(p, start, "a second tokens line: there is only one");
    p->has_tokens = true;
    if (!parse_attributes(p, "tokens line", keys, COUNT, 1u << DTYPE, value))
        return false;
    enum dtype dtype;
    if (!dtype_find(value[DTYPE].at, value[DTYPE].size, &dtype) ||
        !dtype_is_compute_type(dtype)) /* ops compute only in these dtypes */
        return parse_error(p, value[DTYPE].at,
                           "unknown dtype '%.*s': expected bf16, f16, f32 or f64",
                           value[DTYPE].size < 60 ? (int)value[DTYPE].size : 60, value[DTYPE].at);
    p->ir->dtype = (uint8_t)dtype;

    int64_t number[COUNT] = {[CP] = 1, [HP] = 1, [CHUNKS] = 1};
    for (int i = CP; i <= MICRO_BATCH; i++) {
        int64_t high = i <= CHUNKS ? UINT32_MAX : INT64_MAX;
        if (value[i].at && !parse_number(p, value[i], keys[i], 1, high, &number[i]))
            return false;
        if (i <= SEQ && value[i].at && !value[LAYOUT].at)
            return parse_error(p, value[i].at, "%s is of a layout: give layout=KIND too", keys[i]);
    }
    p->ir->global_batch = number[BATCH];
    p->ir->micro_batch = number[MICRO_BATCH];
    if (!value[LAYOUT].at)
        return true;
    if (!value[SEQ].at)
        return parse_error(p, value[LAYOUT].at, "a layout needs seq=TOKENS");
    uint8_t kind = 0;
    if (!parse_name_in_table(p, value[LAYOUT], "layout", layout_names, LAYOUT_KIND_COUNT, &kind))
        return false;
    p->ir->layout = (struct token_layout){.kind = kind,
                                          .cp = (uint32_t)number[CP],
                                          .hp = (uint32_t)number[HP],
                                          .chunk_count = (uint32_t)number[CHUNKS],
                                          .chunk_tokens = number[CHUNK],
                                          .sequence_tokens = number[SEQ]};
    if (value[LENGTHS].at && !parse_chunk_lengths(p, value[LENGTHS]))
        return false;
    struct loc at = {p->cursor.name, p->cursor.line, (uint32_t)(value[LAYOUT].at - start) + 1};
    return layout_check(&p->ir->layout, at, p->diag) == STATUS_OK;
}

/* Parses the runs of a sequence and their owners. */
static bool parse_deal(struct parser *p, struct word rows, struct word owners,
                       const struct token_deal **deal)
{
    const struct token_layout *layout = &p->ir->layout;
    const int64_t *number, *owner;
    uint32_t runs, count;
    int64_t left = layout->sequence_tokens;
    if (layout->kind != LAYOUT_DEALT)
        return parse_error(p, rows.at, "rows and owners are of layout dealt, and the layout is %s",
                           layout_names[layout->kind]);
    if (!parse_numbers(p, rows, "tokens of a run", 1, INT64_MAX, &number, &runs) ||
        !parse_numbers(p, owners, "a context rank", 0, layout->cp - 1, &owner, &count))
        return false;
    if (runs != count)
        return parse_error(p, owners.at, "%" PRIu32 " runs have %" PRIu32 " owners", runs, count);
    struct token_share *share = arena_array(&p->ir->arena, runs, sizeof *share);
    for (uint32_t i = 0; i < runs && left >= 0; i++) {
        share[i] = (struct token_share){number[i], (uint32_t)owner[i]};
        left = number[i] > left ? -1 : left - number[i];
    }
    if (left != 0)
        return parse_error(p, rows.at,
                           "the runs have %s tokens than the sequence, which has %" PRId64,
                           left > 0 ? "fewer" : "more", layout->sequence_tokens);
    *deal = deal_make_from_shares(&p->ir->arena, layout->cp, share, runs);
    return true;
}

/* Parses a list of tiles, six numbers each, and appends them to *tile, as tiles of the backward if `backward`. Appends
 * nothing if the line has no such list. */
static bool parse_tiles(struct parser *p, struct word list, bool backward, struct core_tile **tile,
                        size_t *count)
{
    enum { Q, TILE_ROWS, K, KEYS, RANK, ROUND, NUMBERS };
    const int64_t tokens = p->ir->layout.sequence_tokens;
    const int64_t *n;
    uint32_t tile_number_count;
    size_t capacity = *count;
    if (list.at == NULL)
        return true;
    if (!parse_numbers(p, list, "a number of a tile", 0, INT64_MAX, &n, &tile_number_count))
        return false;
    if (tile_number_count % NUMBERS != 0)
        return parse_error(p, list.at,
                           "a tile has six numbers: query,rows,key,keys,rank,round; there are "
                           "%" PRIu32 " numbers",
                           tile_number_count);
    *tile = heap_grow(*tile, &capacity, *count + tile_number_count / NUMBERS, sizeof **tile);
    for (uint32_t i = 0; i < tile_number_count / NUMBERS; i++, n += NUMBERS) {
        bool fits = n[Q] < tokens && n[TILE_ROWS] >= 1 && n[TILE_ROWS] <= tokens - n[Q] &&
                    n[K] < tokens && n[KEYS] >= 1 && n[KEYS] <= tokens - n[K];
        const int64_t cp = p->ir->layout.cp, rounds = TILE_PARTS_MAX / cp;
        if (!fits || n[RANK] >= cp || n[ROUND] >= rounds)
            return parse_error(p, list.at,
                               "tile %" PRIu32 " does not have queries and keys of the sequence, a "
                               "context rank and a round below %" PRId64,
                               i, rounds);
        (*tile)[(*count)++] = (struct core_tile){
            n[Q], n[TILE_ROWS], n[K], n[KEYS], (uint32_t)n[RANK], (uint32_t)n[ROUND], backward};
    }
    return true;
}

/* Parses "documents [of=SEQUENCE,...] lengths=TOKENS,... [rows=TOKENS,... owners=RANK,... [tiles=N,...
 * [backward_tiles=N,...] [window=N]]]". */
bool parse_documents(struct parser *p)
{
    enum { OF, LENGTHS, ROWS, OWNERS, TILES, BACKWARD, WINDOW, COUNT, SEQUENCES_MAX = 1 << 20 };
    static const char *const keys[COUNT] = {"of",    "lengths",        "rows",  "owners",
                                            "tiles", "backward_tiles", "window"};
    struct document_list list = {0};
    struct core_tile *tile = NULL;
    struct ir *ir = p->ir;
    struct word value[COUNT];
    const int64_t *length, *sequence = NULL;
    int64_t sum = 0, window = 0;
    uint32_t sequences = 0;
    size_t tiles = 0;
    if (!parse_attributes(p, "documents line", keys, COUNT, 1u << LENGTHS, value))
        return false;
    if (ir->layout.sequence_tokens == 0 || ir->global_batch > SEQUENCES_MAX)
        return parse_error(
            p, p->cursor.line_first_char,
            "documents need a tokens line before them with layout=, seq= and a batch of "
            "at most %d sequences",
            SEQUENCES_MAX);
    if (!parse_numbers(p, value[LENGTHS], "tokens of a document", 1, INT64_MAX, &length,
                       &list.document_count))
        return false;
    if (value[OF].at && !parse_numbers(p, value[OF], "a sequence of the batch", 0,
                                       ir->global_batch - 1, &sequence, &sequences))
        return false;
    int64_t *end = arena_array(&ir->arena, list.document_count, sizeof *end);
    list.document_end = end;
    for (uint32_t i = 0; i < list.document_count && sum <= ir->layout.sequence_tokens; i++)
        end[i] = sum = length[i] > ir->layout.sequence_tokens ? length[i] : sum + length[i];
    if (sum != ir->layout.sequence_tokens)
        return parse_error(
            p, value[LENGTHS].at, "the documents have %" PRId64 " tokens%s, the sequence %" PRId64,
            sum, sum > ir->layout.sequence_tokens ? " or more" : "", ir->layout.sequence_tokens);
    if ((value[ROWS].at == NULL) != (value[OWNERS].at == NULL))
        return parse_error(p, value[value[ROWS].at ? ROWS : OWNERS].at,
                           "rows and owners are given together");
    if (value[ROWS].at && !parse_deal(p, value[ROWS], value[OWNERS], &list.deal))
        return false;
    if (value[WINDOW].at &&
        !parse_number(p, value[WINDOW], "a window of tokens", 1, INT64_MAX, &window))
        return false;
    if (!value[TILES].at && (value[BACKWARD].at || value[WINDOW].at))
        return parse_error(p, value[value[BACKWARD].at ? BACKWARD : WINDOW].at,
                           "backward_tiles and window are of tiles: give tiles=N,... too");
    if (value[TILES].at && list.deal == NULL)
        return parse_error(p, value[TILES].at, "tiles need rows and owners");
    bool read = parse_tiles(p, value[TILES], false, &tile, &tiles) &&
                parse_tiles(p, value[BACKWARD], true, &tile, &tiles);
    if (read && tiles > 0)
        list.tiles = tile_plan_make(&ir->arena, list.deal, list.document_end, list.document_count,
                                    tile, (uint32_t)tiles, window);
    free(tile);
    if (!read)
        return false;
    if (ir->documents.sequence_count == 0)
        documents_init(&ir->documents, &ir->arena, (uint32_t)ir->global_batch);
    uint32_t count = value[OF].at ? sequences : ir->documents.sequence_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = value[OF].at ? (uint32_t)sequence[i] : i;
        if (documents_of_sequence(&ir->documents, number) != NULL)
            return parse_error(p, value[value[OF].at ? OF : LENGTHS].at,
                               "the documents of sequence %" PRIu32 " are given twice", number);
        documents_set_list(&ir->documents, &ir->arena, number, list);
    }
    return true;
}

/* Reads the attributes of a routing line that may be left out. value[] and keys[] have them in this order: "capacity",
 * "pad", "positions", "spread". */
static bool parse_routing_rules(struct parser *p, const struct word *value, const char *const *keys,
                                struct routing *to)
{
    static const int64_t most[] = {CAPACITY_MAX, 1, 1, 1};
    int64_t number[ARRAY_LEN(most)] = {0};
    for (size_t i = 0; i < ARRAY_LEN(most); i++)
        if (value[i].at && !parse_number(p, value[i], keys[i], 1, most[i], &number[i]))
            return false;
    if (number[0] == 0 && number[1] + number[2] > 0)
        return parse_error(p, value[number[1] > 0 ? 1 : 2].at,
                           "pad and positions are about a capacity, which is missing");
    to->capacity = (struct expert_capacity){number[0], number[1], number[2]};
    to->deals_experts_in_shuffled_order = number[3] > 0;
    return true;
}

static bool routing_rules_are_equal(const struct routing *a, const struct routing *b)
{
    return a->capacity.capacity_factor_millionths == b->capacity.capacity_factor_millionths &&
           a->capacity.pads == b->capacity.pads &&
           a->capacity.drop_policy == b->capacity.drop_policy &&
           a->deals_experts_in_shuffled_order == b->deals_experts_in_shuffled_order;
}

/* Parses "routing experts=N copies=N layers=N [of=LAYER,...] [capacity=N [pad=1] [positions=1]] [spread=1]
 * shares=N,...". */
bool parse_routing(struct parser *p)
{
    enum { EXPERTS, COPIES, LAYERS, OF, SHARES, RULES, COUNT = RULES + 4, LAYERS_MAX = 65000 };
    static const char *const keys[COUNT] = {"experts",  "copies", "layers",    "of",    "shares",
                                            "capacity", "pad",    "positions", "spread"};
    static const int64_t most[COUNT] = {ROUTING_EXPERTS_MAX, ROUTING_EXPERTS_MAX, LAYERS_MAX};
    struct routing *r = &p->ir->routing, rules = {0};
    struct word value[COUNT];
    int64_t number[COUNT];
    const int64_t *share, *layer = NULL;
    uint32_t shares, layers = 0, positive = 0;
    if (!parse_attributes(p, "routing line", keys, COUNT,
                          1u << EXPERTS | 1u << COPIES | 1u << LAYERS | 1u << SHARES, value))
        return false;
    for (int i = EXPERTS; i <= LAYERS; i++)
        if (!parse_number(p, value[i], keys[i], 1, most[i], &number[i]))
            return false;
    if (number[COPIES] > number[EXPERTS])
        return parse_error(p, value[COPIES].at, "a token has at most as many copies as experts");
    if (!parse_numbers(p, value[SHARES], "the share of an expert", 0, ROUTING_SHARE_MAX, &share,
                       &shares))
        return false;
    if (shares != number[EXPERTS])
        return parse_error(p, value[SHARES].at, "%" PRIu32 " shares of %" PRId64 " experts", shares,
                           number[EXPERTS]);
    for (uint32_t i = 0; i < shares; i++)
        positive += share[i] > 0;
    if (positive == 0)
        return parse_error(p, value[SHARES].at, "the shares of all experts are 0");
    if (value[OF].at &&
        !parse_numbers(p, value[OF], "a layer", 0, number[LAYERS] - 1, &layer, &layers))
        return false;
    if (!parse_routing_rules(p, value + RULES, keys + RULES, &rules))
        return false;
    if (r->expert_count == 0) {
        routing_init(r, &p->ir->arena, (uint32_t)number[EXPERTS], (uint32_t)number[COPIES],
                     (uint32_t)number[LAYERS]);
        r->capacity = rules.capacity;
        r->deals_experts_in_shuffled_order = rules.deals_experts_in_shuffled_order;
    }
    if (!routing_rules_are_equal(r, &rules))
        return parse_error(p, value[EXPERTS].at,
                           "all routing lines have the same capacity, pad, positions and spread");
    if (r->expert_count != number[EXPERTS] || r->copies_per_token != number[COPIES] ||
        r->layer_count != number[LAYERS])
        return parse_error(p, value[EXPERTS].at,
                           "all routing lines have the same experts, copies and layers");
    for (uint32_t i = 0; i < (value[OF].at ? layers : r->layer_count); i++) {
        const uint32_t number_of = value[OF].at ? (uint32_t)layer[i] : i;
        if (r->share_list_by_layer[number_of] != ROUTING_NO_SHARE_LIST)
            return parse_error(p, value[value[OF].at ? OF : SHARES].at,
                               "the shares of layer %" PRIu32 " are given twice", number_of);
        routing_set_shares(r, &p->ir->arena, number_of, share);
    }
    return true;
}

bool parse_arena(struct parser *p)
{
    struct word value[MEMORY_COUNT];
    if (p->has_arena)
        return parse_error(p, p->cursor.line_first_char, "a second arena line: there is only one");
    p->has_arena = true;
    if (!parse_attributes(p, "arena line", memory_names, MEMORY_COUNT, 0, value))
        return false;
    for (int m = 0; m < MEMORY_COUNT; m++)
        if (value[m].at) {
            int64_t bytes;
            if (!parse_number(p, value[m], memory_names[m], 1, INT64_MAX, &bytes))
                return false;
            p->ir->planned_bytes[m] = (uint64_t)bytes;
        }
    return true;
}

/* Parses the ascending coordinates of an axis, "0+3". */
static bool parse_axis_coordinate_set(struct parser *p, struct word word,
                                      struct axis_coordinate_set *set)
{
    const struct mesh_axis *axis = &p->ir->mesh.axis[set->axis];
    uint32_t *coordinate =
        arena_array(&p->scratch, count_list_items(word, '+'), sizeof *coordinate);
    set->coordinates = coordinate;
    for (struct word item; word_take_item(&word, '+', &item);) {
        int64_t value;
        if (!parse_number(p, item, axis->name, 0, (int64_t)axis->size - 1, &value))
            return false;
        if (set->count > 0 && value <= coordinate[set->count - 1])
            return parse_error(p, item.at, "coordinates of an axis must ascend");
        coordinate[set->count++] = (uint32_t)value;
    }
    return true;
}

/* Parses axes, "pp:0+3,tp"; each has all coordinates or a set of them. */
static bool parse_axes(struct parser *p, struct word word, struct axis_coordinate_set *axes,
                       uint32_t *count)
{
    uint32_t seen = 0;
    for (struct word item; word_take_item(&word, ',', &item);) {
        struct word set = word_split_at(&item, ':');
        struct axis_coordinate_set axis = {0};
        if (!parse_unrepeated_axis_name(p, item, &seen, &axis.axis) ||
            (set.at && !parse_axis_coordinate_set(p, set, &axis)))
            return false;
        axes[(*count)++] = axis;
    }
    return true;
}

bool parse_axis_mask(struct parser *p, struct word word, uint32_t *mask)
{
    uint8_t axis;
    *mask = 0;
    for (struct word item; word_take_item(&word, ',', &item);)
        if (!parse_unrepeated_axis_name(p, item, mask, &axis))
            return false;
    return true;
}

/* Parses a group or a role (a new name and its axes), and adds it. rows: the number of rows that the table has. */
static bool parse_group_or_role(struct parser *p, const char *what, enum ir_table_with_names table,
                                uint32_t rows,
                                uint16_t add(struct ir *ir, const char *name,
                                             const struct axis_coordinate_set *axes,
                                             uint32_t count))
{
    static const char *const keys[] = {"axes"};
    char name[MESH_NAME_MAX] = "";
    struct axis_coordinate_set axes[MESH_AXES_MAX];
    uint32_t count = 0;
    if (rows == IR_NONE16 - 1)
        return parse_error(p, p->cursor.line_first_char, "more than %d %ss", IR_NONE16 - 1, what);
    struct word value, word = parse_next_word(p);
    if (!parse_check_is_name(p, what, true, &word))
        return false;
    if (ir_find_by_name(p->ir, table, word.at, word.size) != IR_NONE)
        return parse_error(p, word.at, "a second %s named '%.*s'", what, (int)word.size, word.at);
    memcpy(name, word.at, word.size);
    if (!parse_attributes(p, what, keys, 1, 0, &value) ||
        (value.at && !parse_axes(p, value, axes, &count)))
        return false;
    add(p->ir, name, axes, count);
    return true;
}

bool parse_group(struct parser *p)
{
    return parse_group_or_role(p, "group", IR_GROUP, p->ir->group_count, ir_add_group);
}

bool parse_role(struct parser *p)
{
    if (p->ir->buffer.count > 0 || p->ir->op.count > 0 || p->has_ops_line)
        return parse_error(p, p->cursor.line_first_char, "roles must come before buffers and ops");
    if (!parse_group_or_role(p, "role", IR_ROLE, p->ir->role_count, ir_add_role))
        return false;
    p->ir->index->role_that_gets_new_ops = 0;
    return true;
}

bool parse_stream(struct parser *p)
{
    const char *names[STREAM_SYNC]; /* there are no streams of class SYNC */
    char name[MESH_NAME_MAX] = "";
    uint8_t class = 0;
    struct word word = parse_next_word(p), class_word;
    if (!parse_check_is_name(p, "stream", true, &word) ||
        !parse_required_word(p, &class_word, "the class of the stream"))
        return false;
    if (ir_find_by_name(p->ir, IR_STREAM, word.at, word.size) != IR_NONE)
        return parse_error(p, word.at, "a second stream named '%.*s'", (int)word.size, word.at);
    if (p->ir->stream_count == IR_STREAMS_MAX)
        return parse_error(p, word.at, "more than %d streams", IR_STREAMS_MAX);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        names[i] = stream_class_name((enum stream_class)i);
    if (!parse_name_in_table(p, class_word, "class of stream", names, ARRAY_LEN(names), &class))
        return false;
    memcpy(name, word.at, word.size);
    ir_add_stream(p->ir, name, (enum stream_class) class);
    return true;
}

bool parse_ops(struct parser *p)
{
    struct ir *ir = p->ir;
    struct word word;
    uint16_t role;
    if (!parse_required_word(p, &word, "the name of a role"))
        return false;
    if (!p->has_ops_line && ir->op.count > 0)
        return parse_error(p, word.at, "ops before the first 'ops' line have no role");
    if (!parse_row_name(p, IR_ROLE, word, "role", &role))
        return false;
    uint32_t next = p->has_ops_line ? ir->index->role_that_gets_new_ops + 1 : 0;
    if (role < next)
        return parse_error(p, word.at,
                           "the ops of role '%s' must come once, in the order of the role lines",
                           ir->role[role].name);
    for (uint32_t r = next; r <= role; r++)
        ir->role[r].op_begin = ir->op.count;
    ir->index->role_that_gets_new_ops = role;
    p->has_ops_line = true;
    return true;
}
