/* tests/exec/emulator/device.hpp: stands in for CUDA's headers when the kernels of exec/cuda are
 * compiled for the processor.
 *
 * The threads of a block are fibers of one thread: each runs until it meets the others (a barrier
 * of the block, an exchange within its warp) and goes on when all of these have come. Threads that
 * never all come end the program with a message, as a block that hangs would. Blocks run one after
 * the other, in the order of the stream they were launched on (stream.hpp); order.h turns it round,
 * so that what takes one thread's haste for granted fails either way or the other. */
#ifndef TESTS_EXEC_EMULATOR_DEVICE_HPP
#define TESTS_EXEC_EMULATOR_DEVICE_HPP

#include "tests/exec/emulator/numbers.h"
#include "tests/exec/emulator/stream.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

struct uint4 {
    uint32_t x, y, z, w;
};
struct float4 {
    float x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

/* The two of CUDA's functions that kernels' launchers call. */
extern "C" int cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
extern "C" int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                               cudaStream_t stream);
enum { cudaMemcpyDeviceToDevice = 3 };

namespace emulator
{

/* Runs body for every thread of every block, those of a block as fibers or (apart) one after the
 * other. shared: bytes of dynamic shared memory. */
void run_blocks(dim3 grid, dim3 block, size_t shared, bool apart,
                const std::function<void()> &body);
void *dynamic_shared();
void meet_block();
/* Every thread of the warp puts down a value and gets the one of lane `from`. */
float exchange(float value, unsigned from);

} // namespace emulator

#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    emulator::submit(stream, [=] {                                                                 \
        emulator::run_blocks(grid, block, shared, false, [=] { kernel(__VA_ARGS__); });            \
    })
#define LAUNCH_APART(kernel, grid, block, stream, ...)                                             \
    emulator::submit(                                                                              \
        stream, [=] { emulator::run_blocks(grid, block, 0, true, [=] { kernel(__VA_ARGS__); }); })
#define DYNAMIC_SHARED(name) float *name = (float *)emulator::dynamic_shared()

static inline void __syncthreads()
{
    emulator::meet_block();
}
static inline float __shfl_xor_sync(unsigned, float value, int mask)
{
    return emulator::exchange(value, (threadIdx.x % 32) ^ (unsigned)mask);
}
static inline int32_t atomicAdd(int32_t *to, int32_t value)
{
    int32_t before = *to;
    *to += value;
    return before;
}

static inline float __uint_as_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
#define __expf expf /* glibc has a function of that name too */

#endif
