#include "exec/cpu/kernels.h"

#include <math.h>
#include <string.h>

size_t cpu_rope_scratch_floats(const struct work *work)
{
    return 2 * (size_t)work->rope.dim; /* at most dim / 2 doubles; dim / 2 cosines and sines */
}

/* Rotates the last r columns of every head, where r is dim or fewer: the columns j and j + r / 2 turn by the angle
 * position * theta^(-2 j / r). direction: 1, or -1 for the inverse. The columns of a head before these, and the columns
 * of a row after its heads, are copied. */
static void rotate_pairs(const struct call *call, float *scratch, float direction)
{
    const struct work *work = call->work;
    const int64_t heads = work->rope.heads, dim = work->rope.dim;
    const int64_t rotated = work->rope.rotated ? work->rope.rotated : dim, half = rotated / 2;
    const int64_t stride = work->rope.stride ? work->rope.stride : heads * dim;
    const int32_t *position = call->read[1].data;
    double *frequency = (double *)(void *)scratch;
    float *cosine = scratch + dim, *sine = cosine + half;
    for (int64_t j = 0; j < half; j++)
        frequency[j] = pow(call->model.rope_theta, -2.0 * (double)j / (double)rotated);
    for (int64_t i = 0; i < work->rope.rows; i++) {
        for (int64_t j = 0; j < half; j++) {
            cosine[j] = (float)cos(position[i] * frequency[j]);
            sine[j] = direction * (float)sin(position[i] * frequency[j]);
        }
        for (int64_t h = 0; h < heads; h++) {
            const float *x = (const float *)call->read[0].data + i * stride + h * dim;
            float *y = (float *)call->write[0].data + i * stride + h * dim;
            memmove(y, x, (size_t)(dim - rotated) * sizeof *y);
            x += dim - rotated;
            y += dim - rotated;
            for (int64_t j = 0; j < half; j++) {
                float a = x[j], b = x[j + half];
                y[j] = a * cosine[j] - b * sine[j];
                y[j + half] = b * cosine[j] + a * sine[j];
            }
        }
        memmove((float *)call->write[0].data + i * stride + heads * dim,
                (const float *)call->read[0].data + i * stride + heads * dim,
                (size_t)(stride - heads * dim) * sizeof(float));
    }
}

const char *cpu_rope(const struct call *call, float *scratch)
{
    rotate_pairs(call, scratch, 1);
    return NULL;
}

const char *cpu_rope_backward(const struct call *call, float *scratch)
{
    rotate_pairs(call, scratch, -1);
    return NULL;
}
