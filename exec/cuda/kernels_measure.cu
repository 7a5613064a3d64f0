/* Kernels for measurements: an empty one, and one that occupies multiprocessors. */
#include "exec/cuda/device.cuh"

static __global__ void empty_kernel(int nothing)
{
    (void)nothing;
}

int cuda_launch_empty_kernel(cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(empty_kernel, 1, WARP, stream, 0);
}

/* SM_HOG_THREADS: the threads of a block of sm_hog_kernel(). SM_HOG_SHARED: the bytes of its dynamic shared memory.
 * With the shared variable `stopped` they are nearly 48 KiB, the most for which no cudaFuncSetAttribute() is needed. */
enum { SM_HOG_THREADS = 512, SM_HOG_SHARED = (48 << 10) - 16 };

#ifdef CUDA_EMULATED
int cuda_sm_hog(void *to, const void *from, size_t bytes, int blocks, uint64_t nanoseconds,
                const int32_t *stop, cudaStream_t stream)
{
    int error = emulator::launch_error_of_device({"sm_hog_kernel", nullptr}, (unsigned)blocks,
                                                 SM_HOG_THREADS, SM_HOG_SHARED);
    if (error)
        return error;
    return emulator::submit(stream, [=] {
        memcpy(to, from, bytes);
        emulator::wait_for_stop_flag(stop, nanoseconds);
    });
}
#else
static __device__ __forceinline__ uint64_t now(void)
{
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/* Copies memory until *stop, which is in the host's memory, is not 0, and for at most `nanoseconds`. Only one thread of
 * a block reads *stop. When all threads read it, other kernels took up to thirteen times as long at the same time
 * (measured on an H200); a library's communication has no such effect. */
static __global__ void __launch_bounds__(SM_HOG_THREADS)
    sm_hog_kernel(uint4 *to, const uint4 *from, size_t count, uint64_t nanoseconds,
                  const volatile int32_t *stop)
{
    __shared__ int32_t stopped;
    uint64_t begin = now();
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    do {
        for (int k = 0; k < 64; k++, at += (size_t)gridDim.x * blockDim.x) {
            while (at >= count)
                at -= count;
            to[at] = from[at];
        }
        __syncthreads(); /* every thread has read the last value */
        if (threadIdx.x == 0)
            stopped = *stop != 0 || now() - begin >= nanoseconds;
        __syncthreads();
    } while (!stopped);
}

int cuda_sm_hog(void *to, const void *from, size_t bytes, int blocks, uint64_t nanoseconds,
                const int32_t *stop, cudaStream_t stream)
{
    return LAUNCH(sm_hog_kernel, (unsigned)blocks, SM_HOG_THREADS, SM_HOG_SHARED, stream,
                  (uint4 *)to, (const uint4 *)from, bytes / sizeof(uint4), nanoseconds, stop);
}
#endif
