/* tests/schedule/test_kept.c: what the schedule of a layer keeps for its backward, and the most that its backward
 * holds, compared with what PyTorch does (tests/data/pytorch/kept.csv, which tests/scripts/kept_bytes.py recorded), and
 * with PEFT, autocast and nanotron. */
#include "base/text.h"
#include "tests/schedule/composed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tokens of the sequence; the layer of which bytes are counted, in the middle of LAYERS equal ones */
enum { TOKENS = 1024, LAYER = 1, LAYERS = 3 };

/* Returns a model with the recorded sizes; h, f, heads and head dim are those of kept_bytes.py. */
static struct transformer recorded_model_of(const char *name)
{
    struct transformer m = {.name = "recorded",
                            .layers = LAYERS,
                            .hidden = 640,
                            .heads = 8,
                            .kv_heads = 2,
                            .head_dim = 64,
                            .ffn = 1792,
                            .vocab = 64,
                            .activation = ACTIVATION_SWIGLU,
                            .norm = NORM_RMSNORM,
                            .norm_eps = 1e-5,
                            .rope_theta = 10000};
    m.fused_products = strcmp(name, "phi3") == 0;
    if (strcmp(name, "qwen3") == 0 || strcmp(name, "gemma3") == 0)
        m.qk_norm = true;
    if (strcmp(name, "gemma3") == 0) {
        m.norm_place = NORM_BOTH;
        m.activation = ACTIVATION_GEGLU;
    }
    if (strcmp(name, "gpt2") == 0) {
        m.norm = NORM_LAYERNORM;
        m.bias_qkv = m.bias_o = m.bias_ffn = true;
        m.activation = ACTIVATION_GELU;
        m.heads = m.kv_heads = 10;
        m.positions = POSITIONS_LEARNED;
        m.max_positions = TOKENS;
    }
    return m;
}

/* The first op that touches a buffer, and the last of its free set. */
struct live_span {
    uint32_t first, last;
};

/* Returns the spans of all buffers, by number, on the heap. */
static struct live_span *live_spans_of(const struct ir *ir)
{
    struct live_span *live_span = calloc(ir->buffer.count + 1, sizeof *live_span);
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        live_span[b].first = IR_NONE;
    for (uint32_t op = ir->op.count; op-- > 0;)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++)
            live_span[ir_touched_buffer(ir, op, k)].first = op;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        for (uint32_t k = 0; k < ir->buffer.free_count[b]; k++) {
            uint32_t at = ir_free_set(ir, b)[k].i;
            live_span[b].last = at > live_span[b].last ? at : live_span[b].last;
        }
    return live_span;
}

/* True for parameters, gradients and buffers that are never freed: they belong to no layer's pass. */
static bool is_state_buffer(const struct ir *ir, uint32_t b)
{
    return ir->buffer.free_count[b] == 0 || ir->buffer.category[b] == CATEGORY_GRADIENT ||
           ir->buffer.category[b] == CATEGORY_PARAMETER;
}

static bool runs_in_backward(const struct ir *ir, uint32_t op)
{
    return ir->op.phase[op] == PHASE_BACKWARD || ir->op.phase[op] == PHASE_RECOMPUTE;
}

/* Returns the bytes per token that the middle layer's forward leaves for any layer's backward. As all layers are equal,
 * that is what one layer keeps: this one makes the next one's input in place of its own. */
static double kept(const struct ir *ir, const struct live_span *live_span)
{
    double bytes = 0;
    for (uint32_t b = 0; b < ir->buffer.count; b++)
        if (!is_state_buffer(ir, b) && live_span[b].first != IR_NONE &&
            ir->op.layer[live_span[b].first] == LAYER &&
            ir->op.phase[live_span[b].first] == PHASE_FORWARD &&
            runs_in_backward(ir, live_span[b].last))
            bytes += (double)ir_buffer_bytes(ir, (buffer_id){b});
    return bytes / TOKENS;
}

/* Returns the most bytes per token that the middle layer's backward holds above those that live when it begins,
 * gradients of its weights in 16 bits included. */
static double peak(const struct ir *ir, const struct live_span *live_span)
{
    double before = -1, most = 0, gradients = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        double live = 0, made = 0;
        if (ir->op.layer[op] != LAYER || !runs_in_backward(ir, op) ||
            ir->op.region[op] == REGION_WEIGHT_COLLECTIVES)
            continue;
        for (uint32_t b = 0; b < ir->buffer.count; b++) {
            const double bytes = (double)ir_buffer_bytes(ir, (buffer_id){b});
            if (is_state_buffer(ir, b) || live_span[b].last < op || live_span[b].first > op)
                continue;
            live += bytes;
            made += live_span[b].first == op ? bytes : 0;
        }
        before = before < 0 ? live - made : before;
        const struct work *work = ir_work(ir, op);
        if (work->kind == WORK_MATMUL && work->matmul.form == MATMUL_TN)
            gradients += 2 * (double)work->matmul.m * (double)work->matmul.n;
        most = fmax(most, live - before + gradients);
    }
    return most / TOKENS;
}

/* The columns of kept.csv. The last two are bytes a token; one of them may be empty. */
enum { LAYER_NAME, DTYPE, KERNELS, ACTIVATIONS, KEPT, PEAK, COLUMNS };

/* Fills the request of a row. torchtitan computes in bf16 where FSDP shards weights, under autocast where none does. */
static struct request request_of(char *const column[COLUMNS], const struct transformer *model)
{
    const bool titan = strcmp(column[LAYER_NAME], "titan") == 0;
    const bool autocast = strcmp(column[DTYPE], "autocast") == 0;
    struct request r = composed_request(0, titan && !autocast ? 2 : 1);
    r.model = model;
    r.strategy = "local";
    r.seq = TOKENS;
    r.weights = titan && !autocast ? CHOICE_WEIGHTS_ZERO3 : CHOICE_WEIGHTS_REPLICATED;
    r.profile = titan ? "torchtitan" : autocast ? "hf-ddp" : "hf";
    r.kernels = strcmp(column[KERNELS], "eager") == 0 ? KERNELS_PROFILE : KERNELS_COMPILED;
    r.activations = strcmp(column[ACTIVATIONS], "keep") == 0   ? CHOICE_ACTIVATIONS_KEEP
                    : strcmp(column[ACTIVATIONS], "full") == 0 ? CHOICE_ACTIVATIONS_FULL
                                                               : CHOICE_ACTIVATIONS_SELECTIVE_OP;
    return r;
}

enum { RECORDED_ROWS = 64 };

/* A row of kept.csv: as it is, for messages, and cut into columns. */
struct kept_csv_row {
    char line[96], cut[96];
    char *column[COLUMNS];
};

/* Reads the rows of kept.csv after its first line, and returns their number. */
static size_t read_recorded_rows(struct kept_csv_row row[RECORDED_ROWS])
{
    struct text csv = {0};
    struct diag diag = {0};
    size_t count = 0;
    CHECK_INT("csv", text_read(&csv, check_path("data/pytorch/kept.csv"), &diag), STATUS_OK);
    for (char *line = strchr(csv.data, '\n') + 1, *end;
         count < RECORDED_ROWS && (end = strchr(line, '\n')) != NULL; line = end + 1, count++) {
        struct kept_csv_row *r = &row[count];
        snprintf(r->line, sizeof r->line, "%.*s", (int)(end - line), line);
        snprintf(r->cut, sizeof r->cut, "%s", r->line);
        char *at = r->cut;
        for (int i = 0; i < COLUMNS; i++) {
            r->column[i] = at;
            at += strcspn(at, ",");
            if (*at == ',')
                *at++ = '\0';
        }
    }
    text_release(&csv);
    diag_release(&diag);
    return count;
}

/* Returns what PyTorch keeps in row i. A row that has only a peak keeps what the row with the same
 * layer, dtype, kernels and activations does. */
static double kept_bytes_of_pytorch(const struct kept_csv_row *row, size_t count, size_t i)
{
    for (size_t k = 0; k < count && row[i].column[KEPT][0] == '\0'; k++) {
        bool same = row[k].column[KEPT][0] != '\0';
        for (int c = LAYER_NAME; c <= ACTIVATIONS; c++)
            same = same && strcmp(row[k].column[c], row[i].column[c]) == 0;
        if (same)
            return strtod(row[k].column[KEPT], NULL);
    }
    return strtod(row[i].column[KEPT], NULL);
}

/* Peaks are compared after what is kept is added to them: a schedule may keep a part that PyTorch
 * makes again in the backward. */
static void layers_keep_what_pytorch_keeps(void)
{
    static struct kept_csv_row rows[RECORDED_ROWS];
    const size_t count = read_recorded_rows(rows);
    int kept_rows = 0, peak_rows = 0;
    for (size_t i = 0; i < count; i++) {
        const struct kept_csv_row *row = &rows[i];
        const struct transformer model = recorded_model_of(row->column[LAYER_NAME]);
        const struct request request = request_of(row->column, &model);
        struct choices c;
        struct ir ir;
        if (composed_build(&ir, &c, &request, row->line)) {
            struct live_span *live_span = live_spans_of(&ir);
            const double ours = kept(&ir, live_span), held = peak(&ir, live_span);
            const double theirs = kept_bytes_of_pytorch(rows, count, i);
            if (row->column[KEPT][0] != '\0') {
                CHECK_CLOSE(row->line, ours, theirs, 0.1 / theirs);
                kept_rows++;
            }
            if (row->column[PEAK][0] != '\0') {
                CHECK_CLOSE(row->line, ours + held, theirs + strtod(row->column[PEAK], NULL),
                            0.001);
                peak_rows++;
            }
            free(live_span);
            ir_release(&ir);
        }
    }
    CHECK_INT("rows of kept bytes", kept_rows, 48);
    CHECK_INT("rows of peaks", peak_rows, 36);
}

/* Returns the bits of adapter_targets of names that blanks separate. */
static int64_t parse_adapter_target_mask(const char *names)
{
    int64_t target_mask = 0;
    for (int i = 0; i < ADAPTER_TARGET_COUNT; i++)
        for (const char *name = names; name != NULL; name = strchr(name, ' ')) {
            name += *name == ' ';
            if (strcspn(name, " ") == strlen(adapter_target_names[i]) &&
                strncmp(name, adapter_target_names[i], strlen(adapter_target_names[i])) == 0)
                target_mask |= 1 << i;
        }
    return target_mask;
}

/* Frozen layers with adapters keep what those of PEFT do (tests/data/pytorch/adapters.csv, which
 * tests/scripts/adapter_bytes.py recorded). */
static void adapters_keep_what_peft_keeps(void)
{
    struct text csv = {0};
    struct diag diag = {0};
    int rows = 0;
    CHECK_INT("csv", text_read(&csv, check_path("data/pytorch/adapters.csv"), &diag), STATUS_OK);
    for (char *line = strchr(csv.data, '\n') + 1, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        char layer[16], targets[64], label[96];
        int size = 0;
        struct choices c;
        struct ir ir;
        snprintf(label, sizeof label, "%.*s", (int)(end - line), line);
        if (!CHECK_INT(label, sscanf(label, "%15[^,],%63[^,],%n", layer, targets, &size), 2))
            break;
        const double theirs = strtod(label + size, NULL);
        struct transformer model = recorded_model_of(layer);
        model.adapter_rank = 16;
        model.adapter_targets = parse_adapter_target_mask(targets);
        char *const column[COLUMNS] = {layer, "bf16", "eager", "keep", "", ""};
        const struct request request = request_of(column, &model);
        if (composed_build(&ir, &c, &request, label)) {
            struct live_span *live_span = live_spans_of(&ir);
            CHECK_CLOSE(label, kept(&ir, live_span), theirs, 0.1 / theirs);
            free(live_span);
            ir_release(&ir);
        }
        rows++;
    }
    CHECK_INT("rows", rows, 9);
    text_release(&csv);
    diag_release(&diag);
}

/* Writes the parts of the model that have 16-bit copies just before an op: layers, and "head". */
static void write_layers_with_16_bit_copies(const struct ir *ir, const struct live_span *live_span,
                                            uint32_t at, char text[32])
{
    size_t size = 0;
    bool head = false;
    text[0] = '\0';
    for (uint32_t layer = 0; layer <= LAYERS; layer++)
        for (uint32_t b = 0; b < ir->buffer.count; b++) {
            const uint32_t op = live_span[b].first;
            if (op == IR_NONE || ir->op.kind[op] != WORK_CAST ||
                ir->op.region[op] != REGION_WEIGHT_COLLECTIVES || op >= at ||
                live_span[b].last < at)
                continue;
            if (ir->op.layer[op] == layer)
                size +=
                    (size_t)snprintf(text + size, 32 - size, "%s%u", size > 0 ? " " : "", layer);
            head |= ir->op.layer[op] == IR_NONE16;
        }
    if (head)
        snprintf(text + size, 32 - size, "%shead", size > 0 ? " " : "");
}

/* Returns the op before which a moment of tests/data/pytorch/autocast.csv lies. */
static uint32_t op_after_autocast_moment(const struct ir *ir, const char *name)
{
    static const char backward[] = "backward ";
    const size_t size = sizeof backward - 1;
    uint32_t region_end = 0, updates = ir->op.count;
    int64_t layer = -1;
    const bool of_layer =
        strncmp(name, backward, size) == 0 && parse_i64(name + size, strlen(name + size), &layer);
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (of_layer && ir->op.layer[op] == layer && runs_in_backward(ir, op))
            return op;
        if (ir->op.phase[op] == PHASE_FORWARD)
            region_end = op;
        if (ir->op.phase[op] == PHASE_OPTIMIZER && updates == ir->op.count)
            updates = op;
    }
    return strcmp(name, "region") == 0 ? region_end
           : strcmp(name, "loss") == 0 ? region_end + 1
                                       : updates;
}

/* The copies that autocast makes of weights live as long as PyTorch's (tests/scripts/autocast_copies.py). */
static void copies_of_autocast_live_as_pytorchs(void)
{
    struct text csv = {0};
    struct diag diag = {0};
    const struct transformer model = recorded_model_of("llama");
    int rows = 0;
    CHECK_INT("csv", text_read(&csv, check_path("data/pytorch/autocast.csv"), &diag), STATUS_OK);
    for (char *line = strchr(csv.data, '\n') + 1, *end; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        char row[64], activations[8], at[16], *alive, ours[32];
        struct request r = composed_request(0, 1);
        struct choices c;
        struct ir ir;
        snprintf(row, sizeof row, "%.*s", (int)(end - line), line);
        if (sscanf(row, "%7[^,],%15[^,],", activations, at) != 2)
            continue;
        alive = strrchr(row, ',') + 1;
        r.model = &model;
        r.strategy = "local";
        r.profile = "hf-ddp";
        r.seq = TOKENS;
        r.weights = CHOICE_WEIGHTS_REPLICATED;
        r.activations =
            strcmp(activations, "keep") == 0 ? CHOICE_ACTIVATIONS_KEEP : CHOICE_ACTIVATIONS_FULL;
        if (!composed_build(&ir, &c, &r, row))
            continue;
        struct live_span *live_span = live_spans_of(&ir);
        write_layers_with_16_bit_copies(&ir, live_span, op_after_autocast_moment(&ir, at), ours);
        CHECK_TEXT(row, ours, alive);
        free(live_span);
        ir_release(&ir);
        rows++;
    }
    CHECK_INT("moments", rows, 12);
    text_release(&csv);
    diag_release(&diag);
}

/* Under autocast the residual stream is in fp32, also where a stage receives it: its buffers have room for it. */
static void stages_keep_a_residual_in_fp32(void)
{
    struct transformer model = recorded_model_of("llama");
    model.layers = 4;
    for (int64_t pp = 1; pp <= 2; pp++) {
        struct request r = composed_request(0, pp);
        struct choices c;
        struct ir ir;
        uint32_t wide = 0;
        r.model = &model;
        r.strategy = "local";
        r.profile = "torchtitan";
        r.seq = TOKENS;
        r.pp = pp;
        r.pipeline = pp > 1 ? CHOICE_PIPELINE_1F1B : CHOICE_PIPELINE_NONE;
        r.activations = CHOICE_ACTIVATIONS_KEEP;
        if (!composed_build(&ir, &c, &r, "stages"))
            continue;
        for (uint32_t b = 0; b < ir.buffer.count; b++) {
            char name[64];
            ir_buffer_name(&ir, (buffer_id){b}, name, sizeof name);
            wide += name[0] == 'x' &&
                    ir_buffer_elements(&ir, (buffer_id){b}) == 2u * TOKENS * (uint64_t)model.hidden;
        }
        /* what the embedding makes, what each layer makes, and what the later stage receives */
        CHECK_INT("buffers of an fp32 residual", wide, 1 + model.layers + (pp - 1));
        ir_release(&ir);
    }
}

/* nanotron's layer, by its code. With a key head for each query head, q is a view of a copy of q, k
 * and v, so that k and v of the copy are kept, too. The product after attention of several
 * sequences reads a copy. Tensor ranks keep gathered inputs. With h 640, q 512, k and v 512 or 128
 * and f 1792, one sequence keeps 8h + 4q + 4kv + 8f + 4 heads + 8 bytes a token; the view adds 4kv,
 * the copy 2q. */
static void nanotrons_layers_keep_views_and_gathered_inputs(void)
{
    static const struct {
        const char *label;
        int64_t kv_heads, micro_batch, tp;
        double kept;
    } rows[] = {
        /* label, kv_heads, micro_batch, tp, kept */
        {"a key head for each query head, one sequence", 8, 1, 1,
         5120 + 2048 + 2048 + 14336 + 32 + 8 + 2048},
        {"a key head for each query head", 8, 2, 1,
         5120 + 2048 + 2048 + 14336 + 32 + 8 + 2048 + 1024},
        {"grouped queries, one sequence", 2, 1, 1, 5120 + 2048 + 512 + 14336 + 32 + 8},
        {"grouped queries", 2, 2, 1, 5120 + 2048 + 512 + 14336 + 32 + 8 + 1024},
        {"tensor ranks", 8, 2, 2, 2560 + (2560 + 2048 + 2048 + 14336 + 32 + 8 + 2048 + 1024) / 2.0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct transformer model = recorded_model_of("llama");
        model.kv_heads = rows[i].kv_heads;
        struct request r = composed_request(0, rows[i].tp);
        struct choices c;
        struct ir ir;
        r.model = &model;
        r.strategy = rows[i].tp > 1 ? "megatron-sp" : "local";
        r.profile = "nanotron-2024";
        r.seq = TOKENS / rows[i].micro_batch;
        r.micro_batch = r.global_batch = rows[i].micro_batch;
        r.tp = rows[i].tp;
        r.weights = CHOICE_WEIGHTS_REPLICATED;
        r.activations = CHOICE_ACTIVATIONS_KEEP;
        if (!composed_build(&ir, &c, &r, rows[i].label))
            continue;
        struct live_span *live_span = live_spans_of(&ir);
        CHECK_CLOSE(rows[i].label, kept(&ir, live_span), rows[i].kept, 1e-9);
        free(live_span);
        ir_release(&ir);
    }
}

/* nanotron adds gradients of weights to those in fp32 when the backward of a micro-batch has ended. */
static void nanotrons_gradients_are_added_after_the_backward(void)
{
    const struct transformer model = recorded_model_of("llama");
    struct request r = composed_request(0, 1);
    struct choices c;
    struct ir ir;
    r.model = &model;
    r.strategy = "local";
    r.profile = "nanotron-2024";
    r.seq = TOKENS;
    r.weights = CHOICE_WEIGHTS_REPLICATED;
    r.activations = CHOICE_ACTIVATIONS_KEEP;
    if (!composed_build(&ir, &c, &r, "gradients"))
        return;
    struct live_span *live_span = live_spans_of(&ir);
    uint32_t last_product = 0, first_update = ir.op.count, found = 0;
    for (uint32_t op = 0; op < ir.op.count; op++) {
        if (ir.op.kind[op] == WORK_MATMUL)
            last_product = op;
        if (ir.op.phase[op] == PHASE_OPTIMIZER && first_update == ir.op.count)
            first_update = op;
    }
    for (uint32_t b = 0; b < ir.buffer.count; b++) {
        char name[64];
        ir_buffer_name(&ir, (buffer_id){b}, name, sizeof name);
        if (strncmp(name, "grad_16bit", 10) != 0)
            continue;
        found++;
        CHECK("after the last product", live_span[b].last > last_product);
        CHECK("before the optimizer", live_span[b].last < first_update);
    }
    CHECK_INT("four products of each layer, and the head", found, 4 * model.layers + 1);
    free(live_span);
    ir_release(&ir);
}

static const struct check_case cases[] = {
    {"nanotron's layers keep views and gathered inputs",
     nanotrons_layers_keep_views_and_gathered_inputs},
    {"nanotron's gradients are added after the backward",
     nanotrons_gradients_are_added_after_the_backward},
    {"layers keep what PyTorch keeps", layers_keep_what_pytorch_keeps},
    {"adapters keep what PEFT keeps", adapters_keep_what_peft_keeps},
    {"copies of autocast live as PyTorch's", copies_of_autocast_live_as_pytorchs},
    {"stages keep a residual in fp32", stages_keep_a_residual_in_fp32},
};

CHECK_MAIN("kept", cases)
