#include "tests/exec/emulator/device.hpp"

#include "tests/exec/emulator/order.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <vector>

__thread dim3 threadIdx, blockIdx, blockDim, gridDim;
int emulator_backwards, emulator_dry;

namespace emulator
{
namespace
{

enum { STACK_BYTES = 128 * 1024, WARP = 32, MOST_THREADS = 1024 };

/* The k-th of n to run. */
unsigned turn(unsigned k, unsigned n)
{
    return emulator_backwards ? n - 1 - k : k;
}

enum class Waits { Nothing, Warp, Block, Over };

/* The point at which a fiber or the scheduler continues. Switches use the compiler's __builtin_setjmp() and
 * __builtin_longjmp(), which compile to a few moves and no call. The address sanitizer replaces the C library's
 * longjmp() by one that assumes that frames are abandoned: it clears the shadow memory of all stacks at every switch,
 * by two system calls. Here no frame is abandoned: each fiber returns from every function that it enters. For the same
 * reason the functions that switch are not instrumented; and the compiler must not conclude from what they do themselves
 * what has changed when they return. */
struct Place {
    void *words[5];
};
#ifdef __clang__
#define SWITCHES __attribute__((noinline, no_sanitize("address")))
#else
#define SWITCHES __attribute__((noipa, no_sanitize("address")))
#endif

/* A fiber, which runs one thread of a block, and then the same thread of the next block. makecontext() starts it on a
 * stack of its own; after that it continues from its place. */
struct Fiber {
    ucontext_t start;
    Place here;
    bool started = false;
    Waits waits = Waits::Nothing;
    float value[2] = {0, 0}; /* two, since a warp may be an exchange ahead of its slowest lane */
    unsigned exchanges = 0;
    std::unique_ptr<char[]> stack;
};

/* The fibers of a thread of the program, kept from block to block. */
struct Fibers {
    Fiber fiber[MOST_THREADS]; /* started where they stand: they do not move */
    Place scheduler;
    const std::function<void()> *body = nullptr;
    unsigned current = 0;
    std::vector<float> shared;
};

/* The caller's, from its first block on. A pointer: a thread_local with a constructor is asked at every use whether it is
 * set up yet. */
__thread Fibers *fibers;
__thread bool alone = true; /* no fiber runs */

/* In a function of its own: where the compiler sees no call after a __builtin_setjmp() it leaves out what follows the
 * second return. */
[[noreturn]] SWITCHES void jump(Place &place)
{
    __builtin_longjmp(place.words, 1);
}

/* Runs the scheduler until it lets the current fiber go on. */
SWITCHES void pause(Waits waits)
{
    Fiber &fiber = fibers->fiber[fibers->current];
    unsigned number = fibers->current;
    fiber.waits = waits;
    if (__builtin_setjmp(fiber.here.words) == 0)
        jump(fibers->scheduler);
    threadIdx = dim3(number);
}

void enter()
{
    for (;;) {
        (*fibers->body)();
        pause(Waits::Over);
    }
}

/* Lets a fiber run until it pauses or is over. */
SWITCHES void go_on(unsigned number)
{
    Fiber &fiber = fibers->fiber[number];
    fibers->current = number;
    threadIdx = dim3(number);
    if (__builtin_setjmp(fibers->scheduler.words) != 0)
        return;
    if (fiber.started)
        jump(fiber.here);
    fiber.started = true;
    setcontext(&fiber.start);
}

/* Whether all of [begin, end) that are not over wait for the same; then lets them go on. */
bool release(unsigned begin, unsigned end, Waits waits)
{
    unsigned waiting = 0;
    for (unsigned i = begin; i < end; i++) {
        if (fibers->fiber[i].waits == Waits::Over)
            continue;
        if (fibers->fiber[i].waits != waits)
            return false;
        waiting++;
    }
    for (unsigned i = begin; i < end; i++)
        if (fibers->fiber[i].waits == waits)
            fibers->fiber[i].waits = Waits::Nothing;
    return waiting > 0;
}

void run_block(unsigned threads)
{
    if (threads % WARP != 0) {
        fprintf(stderr, "emulator: a block of %u threads, which are no whole warps\n", threads);
        abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        Fiber &fiber = fibers->fiber[i];
        fiber.waits = Waits::Nothing;
        fiber.exchanges = 0;
        if (fiber.stack)
            continue;
        fiber.stack.reset(new char[STACK_BYTES]);
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.get();
        fiber.start.uc_stack.ss_size = STACK_BYTES;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, enter, 0);
    }
    for (unsigned over = 0; over < threads;) {
        bool went_on = false;
        for (unsigned k = 0; k < threads; k++) {
            unsigned i = turn(k, threads);
            if (fibers->fiber[i].waits == Waits::Nothing) {
                go_on(i);
                over += fibers->fiber[i].waits == Waits::Over;
                went_on = true;
            }
        }
        for (unsigned w = 0; w < threads; w += WARP)
            went_on |= release(w, w + WARP, Waits::Warp);
        went_on |= release(0, threads, Waits::Block);
        if (!went_on && over < threads) {
            fprintf(stderr, "emulator: the threads of a block wait for different things\n");
            abort();
        }
    }
}

} // namespace

void run_blocks(dim3 grid, dim3 block, size_t shared, bool apart, const std::function<void()> &body)
{
    thread_local std::unique_ptr<Fibers> own;
    if (!own)
        own = std::make_unique<Fibers>();
    fibers = own.get();
    gridDim = grid;
    blockDim = block;
    fibers->body = &body;
    if (fibers->shared.size() * sizeof(float) < shared)
        fibers->shared.resize(shared / sizeof(float) + 1);
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(turn(x, grid.x), turn(y, grid.y));
            if (!apart) {
                alone = false;
                run_block(block.x);
                alone = true;
            }
            for (unsigned i = 0; apart && i < block.x; i++) {
                threadIdx = dim3(turn(i, block.x));
                body();
            }
        }
}

void *dynamic_shared()
{
    return fibers->shared.data();
}

static void must_not_be_alone()
{
    if (alone) {
        fprintf(stderr, "emulator: threads of a kernel launched apart want to meet\n");
        abort();
    }
}

void meet_block()
{
    must_not_be_alone();
    pause(Waits::Block);
}

float exchange(float value, unsigned from)
{
    must_not_be_alone();
    Fiber &own = fibers->fiber[fibers->current];
    unsigned slot = own.exchanges++ % 2;
    own.value[slot] = value;
    pause(Waits::Warp);
    return fibers->fiber[fibers->current / WARP * WARP + from].value[slot];
}

} // namespace emulator
