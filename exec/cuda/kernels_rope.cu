/* RoPE, and RoPE together with the pack or the unpack beside it, which then needs no pass over memory of its own. */
#include "exec/cuda/device.cuh"

/* PAIRS_MAX: the most pairs of columns of a head whose angles a block keeps at once. */
enum { THREADS = 256, PAIRS_MAX = CUDA_ROTATED_PAIRS_MAX };

/* Computes the cosines and sines of a row's angles, for the pairs of columns [begin..begin + pairs) of every head. It
 * computes angles in fp64, since positions reach millions and fp32 has only seven digits. The threads of the block
 * synchronise before and after. */
static __device__ __forceinline__ void compute_angles(float *cosine, float *sine, int32_t position,
                                                      int begin, int pairs, int rotated,
                                                      double log2_theta, float direction)
{
    const double turn = 6.283185307179586476925;
    __syncthreads();
    for (int j = threadIdx.x; j < pairs; j += blockDim.x) {
        double angle = position * exp2(-2.0 * (begin + j) / rotated * log2_theta);
        float rest = (float)(angle - turn * rint(angle / turn));
        sincosf(rest, &sine[j], &cosine[j]);
        sine[j] *= direction;
    }
    __syncthreads();
}

/* ---- RoPE ---- */

/* Rotates rows; a block works on one row at a time. It computes each angle once, and uses it for one pair of columns in
 * every head. */
static __global__ void rope_kernel(struct array y, struct array x, const int32_t *position,
                                   int64_t rows, int heads, int dim, int rotated, int64_t stride,
                                   double log2_theta, float direction)
{
    __shared__ float cosine[PAIRS_MAX], sine[PAIRS_MAX];
    int half = rotated / 2, kept = dim - rotated;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int begin = 0; begin < half; begin += PAIRS_MAX) {
            int pairs = half - begin < PAIRS_MAX ? half - begin : PAIRS_MAX;
            compute_angles(cosine, sine, position[row], begin, pairs, rotated, log2_theta,
                           direction);
            int per_head = (pairs + EIGHT - 1) / EIGHT;
            for (int k = threadIdx.x; k < heads * per_head; k += blockDim.x) {
                int j = k % per_head * EIGHT, n = at_most_eight(pairs - j);
                int64_t at = row * stride + (int64_t)(k / per_head) * dim + kept + begin + j;
                struct stored8 sa = fetch8(x, at, n), sb = fetch8(x, at + half, n);
                struct eight_floats a = unpack8(sa, x.dtype), b = unpack8(sb, x.dtype), c, d;
#pragma unroll
                for (int i = 0; i < EIGHT; i++) {
                    int pair = i < n ? j + i : 0;
                    c.x[i] = a.x[i] * cosine[pair] - b.x[i] * sine[pair];
                    d.x[i] = b.x[i] * cosine[pair] + a.x[i] * sine[pair];
                }
                store8(y, at, n, c);
                store8(y, at + half, n, d);
            }
        }
        int kept_groups = (kept + EIGHT - 1) / EIGHT;
        if (y.data != x.data)
            for (int k = threadIdx.x; k < heads * kept_groups; k += blockDim.x) {
                int c = k % kept_groups * EIGHT, n = at_most_eight(kept - c);
                int64_t at = row * stride + (int64_t)(k / kept_groups) * dim + c;
                store8(y, at, n, load8(x, at, n));
            }
        if (y.data != x.data)
            for (int64_t c = (int64_t)heads * dim + threadIdx.x * EIGHT; c < stride;
                 c += blockDim.x * EIGHT) {
                int n = at_most_eight(stride - c);
                store8(y, row * stride + c, n, load8(x, row * stride + c, n));
            }
    }
}

int cuda_rope(struct cuda_array y, struct cuda_array x, const int32_t *position,
              struct cuda_rope_shape turn, cudaStream_t stream)
{
    struct array to = kernel_array_of_rows(y, turn.stride),
                 from = kernel_array_of_rows(x, turn.stride);
    const bool wide = turn.rotated / 2 % EIGHT == 0 && turn.dim % EIGHT == 0;
    to.is_aligned16 = to.is_aligned16 && wide;
    from.is_aligned16 = from.is_aligned16 && wide;
    return LAUNCH(rope_kernel, blocks_for(turn.rows, 1),
                  threads_for_row(turn.heads * turn.dim / 2, THREADS), 0, stream, to, from,
                  position, turn.rows, (int)turn.heads, (int)turn.dim, (int)turn.rotated,
                  turn.stride, log2(turn.theta), (float)turn.rotation_sign);
}

/* ---- RoPE together with a pack ---- */

/* The operands of cuda_rotated_pack(). All blocks have the type and the alignment of `blocks`, whose data is not
 * used. */
struct rotated_pack {
    struct array whole, blocks;
    char *block[3];
    int64_t rows, cols;
    uint32_t parts, w[3];
    int heads, dim, rotated;
    const int32_t *position;
    double log2_theta;
    float direction;
};

/* The place of a group of columns: an array, and the index of the group's first element in it. */
struct column_group_address {
    struct array in;
    int64_t at;
};

static __device__ __forceinline__ struct column_group_address in_block(const struct rotated_pack &p,
                                                                       int64_t row, uint32_t c)
{
    const uint32_t first = p.parts * p.w[0], second = first + p.parts * p.w[1];
    struct column_group_address place = {p.blocks, 0};
    uint32_t w = p.w[0];
    place.in.data = p.block[0];
    if (c >= second) {
        c -= second;
        w = p.w[2];
        place.in.data = p.block[2];
    } else if (c >= first) {
        c -= first;
        w = p.w[1];
        place.in.data = p.block[1];
    }
    const uint32_t part = c / w;
    place.at = (part * p.rows + row) * w + (c - part * w);
    return place;
}

static __device__ __forceinline__ struct column_group_address in_whole(const struct rotated_pack &p,
                                                                       int64_t row, uint32_t c)
{
    struct column_group_address place = {p.whole, row * p.cols + c};
    return place;
}

template <bool PACK>
static __device__ __forceinline__ void move8(const struct rotated_pack &p, int64_t row, uint32_t c)
{
    const struct column_group_address whole = in_whole(p, row, c), block = in_block(p, row, c);
    const struct column_group_address &from = PACK ? whole : block, &to = PACK ? block : whole;
    store8(to.in, to.at, EIGHT, load8(from.in, from.at, EIGHT));
}

/* Rotates rows as rope_kernel() does. With PACK it then packs them, else it unpacks them first. The whole head lies in
 * one part of a block, so the place of a pair's second column follows from that of the first without another
 * division. */
template <bool PACK> static __global__ void rotated_pack_kernel(struct rotated_pack p)
{
    __shared__ float cosine[PAIRS_MAX], sine[PAIRS_MAX];
    const int half = p.rotated / 2, kept = p.dim - p.rotated;
    const int per_head = half / EIGHT, kept_groups = kept / EIGHT;
    for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        compute_angles(cosine, sine, p.position[row], 0, half, p.rotated, p.log2_theta,
                       p.direction);
        for (int k = threadIdx.x; k < p.heads * per_head; k += blockDim.x) {
            const int j = k % per_head * EIGHT;
            const uint32_t at = (uint32_t)(k / per_head * p.dim + kept + j);
            const struct column_group_address whole = in_whole(p, row, at),
                                              block = in_block(p, row, at);
            const struct column_group_address &from = PACK ? whole : block,
                                              &to = PACK ? block : whole;
            struct stored8 sa = fetch8(from.in, from.at, EIGHT),
                           sb = fetch8(from.in, from.at + half, EIGHT);
            struct eight_floats a = unpack8(sa, from.in.dtype), b = unpack8(sb, from.in.dtype), c,
                                d;
#pragma unroll
            for (int i = 0; i < EIGHT; i++) {
                c.x[i] = a.x[i] * cosine[j + i] - b.x[i] * sine[j + i];
                d.x[i] = b.x[i] * cosine[j + i] + a.x[i] * sine[j + i];
            }
            store8(to.in, to.at, EIGHT, c);
            store8(to.in, to.at + half, EIGHT, d);
        }
        for (int k = threadIdx.x; k < p.heads * kept_groups; k += blockDim.x)
            move8<PACK>(p, row, (uint32_t)(k / kept_groups * p.dim + k % kept_groups * EIGHT));
        for (uint32_t c = (uint32_t)(p.heads * p.dim) + threadIdx.x * EIGHT; c < p.cols;
             c += blockDim.x * EIGHT)
            move8<PACK>(p, row, c);
    }
}

template <bool PACK>
static int launch_rotated_pack(const struct cuda_rotated_pack *r, cudaStream_t stream)
{
    const struct cuda_array whole = {r->pack.whole, r->dtype};
    struct rotated_pack p = {};
    p.whole = p.blocks = kernel_array_of(whole);
    p.rows = r->pack.rows;
    p.parts = (uint32_t)r->pack.parts;
    for (int i = 0; i < 3; i++) {
        p.block[i] = (char *)r->pack.block[i];
        p.w[i] = (uint32_t)r->pack.block_cols[i];
        p.cols += r->pack.parts * r->pack.block_cols[i];
        p.blocks.is_aligned16 =
            (i == 0 || p.blocks.is_aligned16) && ((uintptr_t)p.block[i] & 15) == 0;
    }
    p.heads = (int)r->rope_shape.heads;
    p.dim = (int)r->rope_shape.dim;
    p.rotated = (int)r->rope_shape.rotated;
    p.position = r->position;
    p.log2_theta = log2(r->rope_shape.theta);
    p.direction = (float)r->rope_shape.rotation_sign;
    return LAUNCH(rotated_pack_kernel<PACK>, blocks_for(p.rows, 1),
                  threads_for_row(r->rope_shape.heads * r->rope_shape.dim / 2, THREADS), 0, stream,
                  p);
}

int cuda_rotated_pack(const struct cuda_rotated_pack *r, bool packs, cudaStream_t stream)
{
    return packs ? launch_rotated_pack<true>(r, stream) : launch_rotated_pack<false>(r, stream);
}
