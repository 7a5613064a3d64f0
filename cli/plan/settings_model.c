/* The model in the settings of a framework. */
#include "cli/plan/settings.h"

#include <stdlib.h>

/* ---- torchtitan: flavors of its llama3 (torchtitan/models/llama3/__init__.py) ---- */

static const struct flavor {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, ffn;
} flavors[] = {
    {"debugmodel", 6, 256, 16, 16, 768},
    {"8B", 32, 4096, 32, 8, 14336},
    {"70B", 80, 8192, 64, 8, 28672},
    {"405B", 126, 16384, 128, 8, 53248},
};

static const struct flavor *find_flavor(const struct transformer *m)
{
    for (size_t i = 0; i < ARRAY_LEN(flavors); i++) {
        const struct flavor *f = &flavors[i];
        if (f->layers == m->layers && f->hidden == m->hidden && f->heads == m->heads &&
            f->kv_heads == m->kv_heads && f->ffn == m->ffn)
            return f;
    }
    return NULL;
}

/* The nearest by its width: what a new flavor is best made from. */
static const struct flavor *nearest_flavor(const struct transformer *m)
{
    const struct flavor *nearest = &flavors[0];
    for (size_t i = 1; i < ARRAY_LEN(flavors); i++)
        if (llabs(flavors[i].hidden - m->hidden) < llabs(nearest->hidden - m->hidden))
            nearest = &flavors[i];
    return nearest;
}

void settings_put_torchtitan_model(struct text *out, const struct choices *c)
{
    const struct transformer *m = c->model;
    const struct flavor *flavor = find_flavor(m);
    text_puts(out, "[model]\nname = \"llama3\"\n");
    if (flavor != NULL) {
        text_printf(out, "flavor = \"%s\"\n", flavor->name);
    } else {
        text_printf(
            out,
            "# %s is none of its flavors; one has to be added to "
            "torchtitan/models/llama3/__init__.py:\n"
            "#   dim=%lld, n_layers=%lld, n_heads=%lld, n_kv_heads=%lld, rope_theta=%g, and "
            "a feed-forward part of %lld (ffn_dim_multiplier, multiple_of)\n"
            "flavor = \"%s\" # the nearest\n",
            m->name, (long long)m->hidden, (long long)m->layers, (long long)m->heads,
            (long long)m->kv_heads, m->rope_theta, (long long)m->ffn, nearest_flavor(m)->name);
    }
    text_printf(out, "# its vocabulary is the tokenizer's: %lld tokens are predicted\n",
                (long long)m->vocab);
}

/* ---- the Megatrons ---- */

/* What their arguments have in common. */
static void put_sizes(struct text *out, const struct transformer *m)
{
    text_printf(out, "--num-layers %lld\n--hidden-size %lld\n--num-attention-heads %lld\n",
                (long long)m->layers, (long long)m->hidden, (long long)m->heads);
    if (m->heads * m->head_dim != m->hidden)
        text_printf(out, "--kv-channels %lld\n", (long long)m->head_dim);
    text_printf(out, "--ffn-hidden-size %lld\n", (long long)m->ffn);
    if (m->activation == ACTIVATION_SWIGLU)
        text_puts(out, "--swiglu\n");
    if (!m->bias_o && !m->bias_ffn)
        text_puts(out, "--disable-bias-linear\n");
    if (!m->tied_head)
        text_puts(out, "--untie-embeddings-and-output-weights\n");
}

/* megatron/training/arguments.py */
void settings_put_megatron_model(struct text *out, const struct choices *c)
{
    static const char *const positions[POSITIONS_COUNT] = {"rope", "learned_absolute", "none"};
    const struct transformer *m = c->model;
    put_sizes(out, m);
    if (m->kv_heads != m->heads)
        text_printf(out, "--group-query-attention\n--num-query-groups %lld\n",
                    (long long)m->kv_heads);
    if (m->bias_qkv && !m->bias_o && !m->bias_ffn)
        text_puts(out, "--add-qkv-bias\n");
    if (m->qk_norm)
        text_puts(out, "--qk-layernorm\n");
    text_printf(out, "--normalization %s\n--norm-epsilon %g\n",
                m->norm == NORM_RMSNORM ? "RMSNorm" : "LayerNorm", m->norm_eps);
    text_printf(out, "--position-embedding-type %s\n", positions[m->positions]);
    if (m->positions == POSITIONS_ROPE)
        text_printf(out, "--rotary-base %.0f\n", m->rope_theta);
    if (m->attention_window > 0) /* keys before the query's own, keys after it */
        text_printf(out, "--window-size %lld,0\n", (long long)m->attention_window - 1);
    if (m->attention_window > 0 && m->full_attention_every > 0)
        text_printf(out, "--window-attn-skip-freq %lld\n", (long long)m->full_attention_every);
    text_printf(out, "--vocab-size %lld\n", (long long)m->vocab);
}

/* Megatron-DeepSpeed, megatron/arguments.py: the vocabulary is the tokenizer's. */
void settings_put_deepspeed_model(struct text *out, const struct choices *c)
{
    const struct transformer *m = c->model;
    put_sizes(out, m);
    if (m->kv_heads != m->heads)
        text_printf(out, "--num-key-value-heads %lld\n", (long long)m->kv_heads);
    if (m->norm == NORM_RMSNORM)
        text_puts(out, "--normalization rmsnorm\n");
    text_printf(out, "--layernorm-epsilon %g\n", m->norm_eps);
    if (m->positions == POSITIONS_ROPE)
        text_printf(out,
                    "--use-rotary-position-embeddings\n"
                    "--rotary-position-embeddings-theta %.0f\n",
                    m->rope_theta);
    text_printf(out, "# the vocabulary is the tokenizer's: %lld tokens are predicted\n",
                (long long)m->vocab);
}
