/* The keys and values of latent attention. Those of all heads are made from their up-projection, (rows, heads, plain +
 * vdim), and from the key columns that all heads share, (rows, rotated). */
#include "exec/cpu/kernels.h"

#include <string.h>

/* The columns of a head. plain: those of k that the up-projection gives. rotated: those of k that all heads share.
 * vdim: those of v. */
struct head_widths {
    size_t plain, rotated, vdim;
};

static struct head_widths latent_widths_of(const struct work *work)
{
    return (struct head_widths){(size_t)work->latent_keys.plain, (size_t)work->latent_keys.rotated,
                                (size_t)work->latent_keys.vdim};
}

const char *cpu_latent_keys(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct head_widths w = latent_widths_of(call->work);
    const float *up = call->read[0].data, *shared = call->read[1].data;
    float *k = call->write[0].data, *v = call->write[1].data;
    for (int64_t i = 0; i < call->work->latent_keys.rows; i++, shared += w.rotated)
        for (int64_t h = 0; h < call->work->latent_keys.heads; h++) {
            memcpy(k, up, w.plain * sizeof *k);
            memcpy(k + w.plain, shared, w.rotated * sizeof *k);
            memcpy(v, up + w.plain, w.vdim * sizeof *v);
            k += w.plain + w.rotated;
            v += w.vdim;
            up += w.plain + w.vdim;
        }
    return NULL;
}

const char *cpu_latent_keys_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct head_widths w = latent_widths_of(call->work);
    const float *dk = call->read[0].data, *dv = call->read[1].data;
    float *d_up = call->write[0].data, *d_shared = call->write[1].data;
    for (int64_t i = 0; i < call->work->latent_keys.rows; i++, d_shared += w.rotated) {
        memset(d_shared, 0, w.rotated * sizeof *d_shared);
        for (int64_t h = 0; h < call->work->latent_keys.heads; h++) {
            memcpy(d_up, dk, w.plain * sizeof *d_up);
            memcpy(d_up + w.plain, dv, w.vdim * sizeof *d_up);
            for (size_t j = 0; j < w.rotated; j++)
                d_shared[j] += dk[w.plain + j];
            dk += w.plain + w.rotated;
            dv += w.vdim;
            d_up += w.plain + w.vdim;
        }
    }
    return NULL;
}
