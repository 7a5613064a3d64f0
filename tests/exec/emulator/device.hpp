/* tests/exec/emulator/device.hpp: replaces CUDA's headers when the kernels of exec/cuda are compiled for the
 * processor.
 *
 * The threads of a block are fibers of one thread of the program. Each runs until it waits for others (at a barrier of
 * the block, or in an exchange within its warp) and continues when all of these have arrived or have ended. If threads
 * wait for different things, so that none can continue, the program ends with a message, as such a block would hang. A
 * kernel launched by LAUNCH_INDEPENDENT_THREADS needs no fibers, as its threads never wait. Kernels run in the order of
 * their stream (stream.hpp), the blocks of a kernel one after the other. order.h can reverse the order of threads and
 * blocks, so that a kernel that relies on one order fails in the other. */
#ifndef TESTS_EXEC_EMULATOR_DEVICE_HPP
#define TESTS_EXEC_EMULATOR_DEVICE_HPP

#include "tests/exec/emulator/numbers.h"
#include "tests/exec/emulator/stream.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulator
{

/* Ends the program unless the address, at which 16 bytes are read or written at once, is a multiple of 16. */
void check_aligned_to_16_bytes(const void *address);

/* Four numbers, as CUDA's types of that size. */
template <class NUMBER> struct alignas(16) Four {
    NUMBER x, y, z, w;
    Four() = default;
    Four(NUMBER a, NUMBER b, NUMBER c, NUMBER d) : x(a), y(b), z(c), w(d)
    {
    }
    Four(const Four &from)
    {
        *this = from;
    }
    Four &operator=(const Four &from)
    {
        check_aligned_to_16_bytes(this);
        check_aligned_to_16_bytes(&from);
        x = from.x;
        y = from.y;
        z = from.z;
        w = from.w;
        return *this;
    }
};

} // namespace emulator

typedef emulator::Four<uint32_t> uint4;
typedef emulator::Four<float> float4;

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

/* These are __thread, whose initial values are constants. A thread_local variable may need an initialisation, for which
 * each use of it would check. */
extern __thread dim3 threadIdx, blockIdx, blockDim, gridDim;

/* The two of CUDA's functions that kernels' launchers call. */
extern "C" int cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
extern "C" int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                               cudaStream_t stream);
enum { cudaMemcpyDeviceToDevice = 3 };

namespace emulator
{

/* Runs body for every thread of every block: the threads of a block are fibers or, if `apart`, run one after the
 * other. shared: bytes of dynamic shared memory. */
void run_blocks(dim3 grid, dim3 block, size_t shared, bool apart,
                const std::function<void()> &body);
void *dynamic_shared();

/* A kernel: its name as in kernels.def, perhaps followed by template arguments in angle brackets, and its address. */
struct Kernel {
    const char *name;
    void (*address)();
};
/* Returns the device's answer to a launch with `shared` bytes of dynamic shared memory: 0, or the cudaError_t. */
int launch_error_of_device(Kernel kernel, dim3 grid, dim3 block, size_t shared);
/* Does what cudaFuncSetAttribute() does with the limit of dynamic shared memory. Returns 0 or the cudaError_t. */
int allow_shared(Kernel kernel, size_t bytes);
/* Puts run_blocks() on a stream, unless the launch is refused. Returns 0 or the cudaError_t. */
int launch(Kernel kernel, dim3 grid, dim3 block, size_t shared, bool apart, cudaStream_t stream,
           const std::function<void()> &body);

void wait_for_block();
/* Every thread of the warp puts down a value and gets the one of lane `from`. */
float exchange(float value, unsigned from);

} // namespace emulator

#define EMULATED_KERNEL(kernel) (emulator::Kernel{#kernel, reinterpret_cast<void (*)()>(kernel)})
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    emulator::launch(EMULATED_KERNEL(kernel), grid, block, shared, false, stream,                  \
                     [=] { kernel(__VA_ARGS__); })
#define LAUNCH_INDEPENDENT_THREADS(kernel, grid, block, stream, ...)                               \
    emulator::launch(EMULATED_KERNEL(kernel), grid, block, 0, true, stream,                        \
                     [=] { kernel(__VA_ARGS__); })
#define ALLOW_DYNAMIC_SHARED_BYTES(kernel, bytes) emulator::allow_shared(EMULATED_KERNEL(kernel), bytes)
#define DYNAMIC_SHARED(name) float *name = (float *)emulator::dynamic_shared()

static inline void __syncthreads()
{
    emulator::wait_for_block();
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
static inline uint32_t __float_as_uint(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return uint4(x, y, z, w);
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4(x, y, z, w);
}
#define __expf expf /* glibc has a function of that name too */

#endif
