/* Launches kernels, and refuses launches as a device would: too many blocks or threads, too few registers, too much
 * shared memory. */
#include "tests/exec/emulator/device.hpp"

#include "tests/exec/emulator/order.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace emulator
{
namespace
{

/* Values of cudaError_t. */
enum { INVALID_VALUE = 1, INVALID_CONFIGURATION = 9, OUT_OF_RESOURCES = 701 };

/* Limits that hold on every device of compute capability 8.0 or later; some have more than SHARED_MOST. */
enum : size_t { SHARED_FREE = 48 << 10, SHARED_MOST = 99 << 10 };
enum : unsigned { GRID_X = 0x7fffffff, GRID_YZ = 65535, BLOCK = 1024 };

/* A row of kernels.def: the bytes of static shared memory, and the most threads of a block. */
struct Row {
    const char *name;
    size_t shared;
    unsigned threads;
};

const Row rows[] = {
#define KERNEL(name, shared, threads) {#name, shared, threads},
#include "tests/exec/emulator/kernels.def"
#undef KERNEL
};

/* Returns the row of a kernel, whose name may be in parentheses and have arguments in angle brackets. */
const Row &row_of(const char *kernel)
{
    const char *begin = kernel + strspn(kernel, "(");
    size_t length = strcspn(begin, "<)");
    for (const Row &row : rows)
        if (strlen(row.name) == length && strncmp(row.name, begin, length) == 0)
            return row;
    fprintf(stderr, "emulator: %s is not in tests/exec/emulator/kernels.def\n", kernel);
    abort();
}

std::mutex lock;
/* the bytes of dynamic shared memory for which a kernel asked */
std::map<void (*)(), size_t> allowed;

} // namespace

int allow_shared(Kernel kernel, size_t bytes)
{
    if (bytes + row_of(kernel.name).shared > SHARED_MOST)
        return INVALID_VALUE;
    std::lock_guard<std::mutex> guard(lock);
    allowed[kernel.address] = bytes;
    return 0;
}

int launch_error_of_device(Kernel kernel, dim3 grid, dim3 block, size_t shared)
{
    const Row &row = row_of(kernel.name);
    if (grid.x - 1 >= GRID_X || grid.y - 1 >= GRID_YZ || grid.z - 1 >= GRID_YZ ||
        block.x - 1 >= BLOCK || block.y != 1 || block.z != 1)
        return INVALID_CONFIGURATION;
    if (block.x > row.threads)
        return OUT_OF_RESOURCES;
    std::lock_guard<std::mutex> guard(lock);
    auto own = allowed.find(kernel.address);
    return shared > (own != allowed.end() ? own->second : SHARED_FREE - row.shared) ? INVALID_VALUE
                                                                                    : 0;
}

int launch(Kernel kernel, dim3 grid, dim3 block, size_t shared, bool apart, cudaStream_t stream,
           const std::function<void()> &body)
{
    int error = launch_error_of_device(kernel, grid, block, shared);
    if (error != 0)
        return error;
    load(reinterpret_cast<const void *>(kernel.address), 0);
    return submit(stream, [=] { run_blocks(grid, block, shared, apart, body); });
}

void check_aligned_to_16_bytes(const void *address)
{
    /* so that the compiler does not take the alignment that is checked here for given */
    asm volatile("" : "+r"(address));
    if (((uintptr_t)address & 15) == 0)
        return;
    fprintf(stderr, "emulator: 16 bytes at once at %p, which is not aligned to 16\n", address);
    abort();
}

} // namespace emulator

/* ---- for tests ---- */

/* Returns a kernel of that name without an address. All such kernels share the limit that emulator_allow_shared()
 * sets. */
static emulator::Kernel kernel_of(const char *name)
{
    return {name, nullptr};
}

int emulator_launch_error(const char *kernel, const unsigned blocks[3], unsigned threads,
                          size_t shared)
{
    return emulator::launch_error_of_device(kernel_of(kernel),
                                            dim3(blocks[0], blocks[1], blocks[2]), threads, shared);
}

int emulator_allow_shared(const char *kernel, size_t bytes)
{
    return emulator::allow_shared(kernel_of(kernel), bytes);
}

void emulator_copy_16_bytes(void *to, const void *from)
{
    *static_cast<uint4 *>(to) = *static_cast<const uint4 *>(from);
}
