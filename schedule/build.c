/* compose_build(): mesh and groups, emission, passes. */
#include "schedule/attention/attention.h"
#include "schedule/program.h"
#include "schedule/weights/weights.h"

#include <stdlib.h>

const struct attention_emitter attention_emitters[CHOICE_ATTENTION_COUNT] = {
    [CHOICE_ATTENTION_LOCAL] = {projected_forward, projected_backward, local_forward,
                                local_backward  },
    [CHOICE_ATTENTION_ULYSSES] = {projected_forward, projected_backward, ulysses_forward,
                                ulysses_backward},
};

static void add_axis(struct ir *ir, const char *name, uint32_t size)
{
    struct mesh_axis *axis = &ir->mesh.axis[ir->mesh.axis_count++];
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < sizeof axis->name; i++)
        axis->name[i] = name[i];
    axis->name[i] = '\0';
    axis->size = size;
}

/* Axes begin..end of the mesh as a group; IR_NONE16 when it has one rank. */
static uint16_t add_group(struct ir *ir, const char *name, uint32_t begin, uint32_t end)
{
    struct axis_set set[MESH_AXES_MAX] = {{0}};
    uint32_t size = 1;
    for (uint32_t i = begin; i < end; i++) {
        set[i - begin].axis = (uint8_t)i;
        size *= ir->mesh.axis[i].size;
    }
    return size > 1 ? ir_add_group(ir, name, set, end - begin) : IR_NONE16;
}

static uint32_t mask(uint32_t begin, uint32_t end)
{
    return (1u << end) - (1u << begin);
}

/* Ranks lie on dp x hp, hp fastest. HSDP's group of neighbouring ranks cuts one of the axes in two.
 * The groups are ranges of axes: hp the last ones, the shard group the last ones too. */
static void make_mesh(struct emit *e)
{
    const struct choices *c = e->choices;
    struct ir *ir = e->ir;
    uint32_t shard = c->weights == CHOICE_WEIGHTS_REPLICATED ? 1 : c->shard;
    uint32_t hp_begin, shard_begin, end;

    if (shard > c->hp && shard < c->ranks) {
        add_axis(ir, "dp_out", c->ranks / shard);
        add_axis(ir, "dp_in", shard / c->hp);
    } else {
        add_axis(ir, "dp", c->dp);
    }
    hp_begin = ir->mesh.axis_count;
    if (shard > 1 && shard < c->hp) {
        add_axis(ir, "hp_out", c->hp / shard);
        add_axis(ir, "hp_in", shard);
    } else {
        add_axis(ir, "hp", c->hp);
    }
    end = ir->mesh.axis_count;
    for (shard_begin = end; shard_begin > 0; shard_begin--) {
        uint32_t size = 1;
        for (uint32_t i = shard_begin; i < end; i++)
            size *= ir->mesh.axis[i].size;
        if (size >= shard)
            break;
    }
    if (shard == c->ranks)
        shard_begin = 0;
    e->all_axes = mask(0, end);
    e->shard_axes = mask(shard_begin, end);
    e->hp_group = add_group(ir, "hp", hp_begin, end);
    e->shard_group = add_group(ir, "shard", shard_begin, end);
    e->replica_group = add_group(ir, "replica", 0, shard_begin);
    e->shard_size = shard;
    e->replica_size = c->ranks / shard;
}

static buffer_id input(struct emit *e, const char *stem, enum binding_kind kind, uint16_t gathered,
                       enum dtype dtype, int64_t count)
{
    struct buffer_desc desc = {
        .stem = stem,
        .number = IR_NONE,
        .memory = MEMORY_HBM,
        .dtype = (uint8_t)dtype,
        .category = CATEGORY_INPUT,
        .flags = BUFFER_PERSISTENT,
        .layer = IR_NONE16,
        .binding = ir_add_binding(
            e->ir, (struct binding){.kind = (uint8_t)kind,
                                    .bundle = IR_NONE16,
                                    .shard = IR_NONE16,
                                    .gathered = gathered,
                                    .partial = kind == BINDING_LOSS ? e->all_axes : 0}
              ),
        .dims = {.count = 1,  .size = {count}},
    };
    return ir_add_buffer(e->ir, &desc);
}

static void make_inputs(struct emit *e)
{
    const struct choices *c = e->choices;
    int64_t local = e->rows * (int64_t)c->accumulation;
    e->tokens = input(e, "tokens", BINDING_TOKENS, IR_NONE16, DTYPE_I32, local);
    e->labels = input(e, "labels", BINDING_LABELS, IR_NONE16, DTYPE_I32, local);
    e->positions = input(e, "positions", BINDING_POSITIONS, IR_NONE16, DTYPE_I32, e->n);
    e->positions_gathered = e->positions;
    if (e->hp_group != IR_NONE16)
        e->positions_gathered =
            input(e, "all_positions", BINDING_POSITIONS, e->hp_group, DTYPE_I32, c->seq);
    e->loss = input(e, "loss", BINDING_LOSS, IR_NONE16, DTYPE_F32, 1);
}

static void make_streams(struct emit *e)
{
    e->compute = ir_add_stream(e->ir, "compute", STREAM_COMPUTE);
    e->comm = ir_add_stream(e->ir, "comm.hp", STREAM_COMM);
    e->gather = ir_add_stream(e->ir, "comm.gather", STREAM_COMM);
    e->reduce = ir_add_stream(e->ir, "comm.reduce", STREAM_COMM);
    e->h2d = ir_add_stream(e->ir, "h2d", STREAM_H2D);
    e->d2h = ir_add_stream(e->ir, "d2h", STREAM_D2H);
    e->host = ir_add_stream(e->ir, "host", STREAM_HOST);
}

/* An upper bound of the ops that emission and passes make, per layer and micro-batch. */
enum { OPS_PER_LAYER_MAX = 160, OPS_PER_CHUNK_MAX = 20 };

static enum status check_size(const struct choices *c, struct diag *diag)
{
    double layer =
        OPS_PER_LAYER_MAX * (double)c->micro_batch + OPS_PER_CHUNK_MAX * (double)c->ffn_chunks;
    double ops = ((double)c->model->layers * layer + OPS_PER_CHUNK_MAX * (double)c->loss_chunks) *
                 c->accumulation;
    if (ops < 2e8 && c->model->layers < 65000)
        return STATUS_OK;
    return diag_error(diag, (struct loc){0}, STATUS_BAD_INPUT,
                      "the schedule would have about %.2g ops per rank, more than the 2e8 that it "
                      "can number; fewer "
                      "layers, micro-batches or chunks would do",
                      ops);
}

int64_t compose_bucket_bytes(const struct choices *c)
{
    bool held = c->profile->holds_bucket && weights_sharded_params(c);
    return held ? c->profile->bucket_elements * (int64_t)dtype_bytes(c->dtype) : 0;
}

enum status compose_build(struct ir *out, const struct choices *c, struct diag *diag)
{
    if (check_size(c, diag) != STATUS_OK)
        return STATUS_BAD_INPUT;
    struct ir draft = {0};
    struct emit e = {
        .ir = &draft,
        .choices = c,
        .n = c->seq / c->hp,
        .rows = c->seq / c->hp * c->micro_batch,
        .tags = {PHASE_FORWARD, REGION_NONE, IR_NONE16, IR_NONE16, IR_NONE16, IR_NONE16},
        .sync = {IR_NONE   },
        .grad_dtype = c->profile->grad_dtype == DTYPE_F32 ? DTYPE_F32 : c->dtype,
    };
    draft.layout = (struct token_layout){LAYOUT_CONTIGUOUS, 1, c->hp, 1, c->seq};
    draft.global_batch = c->global_batch;
    draft.micro_batch = c->micro_batch;
    draft.dtype = c->dtype;
    make_mesh(&e);
    make_streams(&e);
    weights_setup(&e);
    make_inputs(&e);
    emit_step(&e);

    struct program program;
    program_init(&program, &draft);
    if (c->activations != CHOICE_ACTIVATIONS_KEEP)
        pass_recompute(&e, &program);
    if (c->activations == CHOICE_ACTIVATIONS_OFFLOAD)
        pass_offload(&e, &program);
    pass_weights(&e, &program);
    finish(&e, &program, out);

    program_release(&program);
    free(e.hold);
    free(e.hold_back);
    arena_release(&e.arena);
    ir_release(&draft);
    return STATUS_OK;
}
