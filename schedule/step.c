/* The training step: micro-batches of embedding, layers, head and loss, and back. */
#include "schedule/layers.h"

void saved_init(struct emit *e)
{
    const struct choices *c = e->choices;
    size_t layers = (size_t)c->model->layers;
    e->saved = arena_array(&e->arena, layers, sizeof *e->saved);
    for (size_t l = 0; l < layers; l++) {
        struct layer_saved *saved = &e->saved[l];
        saved->attention = arena_array(&e->arena, (size_t)c->micro_batch, sizeof *saved->attention);
        saved->up = arena_array(&e->arena, c->ffn_chunks, sizeof *saved->up);
        saved->act = arena_array(&e->arena, c->ffn_chunks, sizeof *saved->act);
    }
}

void emit_step(struct emit *e)
{
    const struct choices *c = e->choices;
    uint32_t layers = (uint32_t)c->model->layers;
    saved_init(e);
    for (uint32_t micro = 0; micro < c->accumulation; micro++) {
        e->tags = (struct op_tags){PHASE_FORWARD, REGION_NONE, IR_NONE16,
                                   IR_NONE16,     IR_NONE16,   (uint16_t)micro};
        weights_begin_micro_batch(e, micro);
        buffer_id x = embedding_forward(e, micro);
        for (uint32_t l = 0; l < layers; l++) {
            e->tags.layer = (uint16_t)l;
            x = layer_forward(e, l, x);
        }
        e->tags.layer = IR_NONE16;
        buffer_id dx = head(e, micro, x);
        e->tags.phase = PHASE_BACKWARD;
        for (uint32_t l = layers; l-- > 0;) {
            e->tags.layer = (uint16_t)l;
            dx = layer_backward(e, l, dx);
        }
        e->tags.layer = IR_NONE16;
        embedding_backward(e, micro, dx);
    }
}
