/* Runs the threads of a kernel's blocks on the processor, as fibers; device.hpp says in which order.
 *
 * run_block() is the scheduler. It lets each fiber run that can (go_on()). A fiber that has to wait (pause()) switches
 * to the next fiber, or back to the scheduler if that one cannot run. When all fibers of a warp or of the block wait
 * for the same, resume_if_all_wait() lets them go on. */
#include "tests/exec/emulator/device.hpp"

#include "tests/exec/emulator/order.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <ucontext.h>
#include <vector>

__thread dim3 threadIdx, blockIdx, blockDim, gridDim;
int emulator_backwards, emulator_dry;

namespace emulator
{
namespace
{

enum { STACK_BYTES = 128 * 1024, WARP = 32, MOST_THREADS = 1024 };

/* Returns the index of the block or thread that runs k-th of n. */
unsigned index_of_kth_in_run_order(unsigned k, unsigned n)
{
    return emulator_backwards ? n - 1 - k : k;
}

/* The threads for which a fiber waits. Over: it has run its thread to the end. */
enum class Waits : unsigned char { Nothing, Warp, Block, Over };

/* The point at which a fiber or the scheduler continues. Switches use the compiler's __builtin_setjmp() and
 * __builtin_longjmp(), which compile to a few moves and no call. The address sanitizer replaces the C library's
 * longjmp() by one that assumes that frames are abandoned: it clears the shadow memory of all stacks at every switch,
 * by two system calls. Here no frame is abandoned: each fiber returns from every function that it enters. For the same
 * reason the functions that switch are not instrumented. And the compiler must not assume that such a function changes
 * only what its own code changes, since other fibers run before it returns. */
struct ResumePoint {
    void *words[5];
};
#ifdef __clang__
#define NOT_INLINED_NOR_SANITIZED __attribute__((noinline, no_sanitize("address")))
#else
#define NOT_INLINED_NOR_SANITIZED __attribute__((noipa, no_sanitize("address")))
#endif

/* A fiber runs one thread of a block, and then the same thread of the next block. makecontext() starts it on a stack of
 * its own; after that it continues from its place. */
struct Fiber {
    ucontext_t start;
    std::unique_ptr<char[]> stack;
};

/* The fibers on which one thread of the program runs the threads of a block. They are reused for the next block. The
 * fields that a switch reads are in arrays of their own, so that a line of the cache holds those of several fibers. */
struct Fibers {
    Fiber fiber[MOST_THREADS];
    ResumePoint here[MOST_THREADS]; /* where each fiber that has started goes on */
    Waits waits[MOST_THREADS];
    bool started[MOST_THREADS];
    /* the number that each lane gives to the others of its warp (exchange()) */
    float value[2]
               [MOST_THREADS]; /* two, since lanes may be an exchange ahead of the slowest lane */
    /* parity of the number of exchange() calls of the fiber; the next call uses value[exchange_parity] */
    unsigned char exchange_parity[MOST_THREADS];
    ResumePoint scheduler;                       /* where run_block() goes on */
    const std::function<void()> *body = nullptr; /* what one thread of the kernel does */
    unsigned current = 0;                        /* the fiber that runs */
    unsigned threads = 0;                        /* number of threads of the block */
    unsigned over = 0;                           /* number of threads that have ended */
    std::vector<float> shared;                   /* the dynamic shared memory of the block */
};

/* Streams come and go with each step; the fibers of one that has ended serve the next, whose stacks then need no new
 * pages. */
std::mutex idle_lock;
std::vector<std::unique_ptr<Fibers>> idle;

/* The fibers of one thread of the program: taken from idle[], or made, when it runs its first block, and put into
 * idle[] when it ends. */
struct Own {
    std::unique_ptr<Fibers> fibers;
    Own()
    {
        std::lock_guard<std::mutex> guard(idle_lock);
        if (idle.empty()) {
            fibers = std::make_unique<Fibers>();
            return;
        }
        fibers = std::move(idle.back());
        idle.pop_back();
        /* a fiber never goes on in another thread, where its thread_local variables have other addresses */
        memset(fibers->started, 0, sizeof fibers->started);
    }
    ~Own()
    {
        std::lock_guard<std::mutex> guard(idle_lock);
        idle.push_back(std::move(fibers));
    }
};

/* The fibers of the calling thread, from its first block on. It is a pointer, since each use of a thread_local object
 * checks whether the object has been constructed. */
__thread Fibers *fibers;
/* no fiber runs: the threads of a kernel run one after the other, or no kernel runs */
__thread bool alone = true;

/* Goes on at a place. It is a function of its own: if the compiler sees no call after a __builtin_setjmp(), it leaves
 * out what follows the second return. */
[[noreturn]] NOT_INLINED_NOR_SANITIZED void jump(ResumePoint &place)
{
    __builtin_longjmp(place.words, 1);
}

/* Returns where the program goes on when the current fiber pauses: in the next fiber if that one can run, else in the
 * scheduler. */
NOT_INLINED_NOR_SANITIZED ResumePoint &next_place()
{
    unsigned next = emulator_backwards ? fibers->current - 1 : fibers->current + 1;
    if (next >= fibers->threads || !fibers->started[next] || fibers->waits[next] != Waits::Nothing)
        return fibers->scheduler;
    fibers->current = next;
    return fibers->here[next];
}

/* Lets others run until the current fiber can go on. */
NOT_INLINED_NOR_SANITIZED void pause(Waits waits)
{
    unsigned number = fibers->current;
    fibers->waits[number] = waits;
    if (__builtin_setjmp(fibers->here[number].words) == 0)
        jump(next_place());
    threadIdx = dim3(number);
}

/* Runs a fiber: its thread of one block after another. */
void fiber_main()
{
    for (;;) {
        (*fibers->body)();
        fibers->over++;
        pause(Waits::Over);
    }
}

/* Lets a fiber run, and then those after it. Returns when one pauses and the next one cannot run. */
NOT_INLINED_NOR_SANITIZED void go_on(unsigned number)
{
    fibers->current = number;
    threadIdx = dim3(number);
    if (__builtin_setjmp(fibers->scheduler.words) != 0)
        return;
    if (fibers->started[number])
        jump(fibers->here[number]);
    fibers->started[number] = true;
    setcontext(&fibers->fiber[number].start);
}

/* If all fibers of [begin, end) that are not over wait for `waits`, lets them go on, and returns true if there is
 * any. */
bool resume_if_all_wait(unsigned begin, unsigned end, Waits waits)
{
    unsigned waiting = 0;
    for (unsigned i = begin; i < end; i++) {
        if (fibers->waits[i] == Waits::Over)
            continue;
        if (fibers->waits[i] != waits)
            return false;
        waiting++;
    }
    for (unsigned i = begin; i < end; i++)
        if (fibers->waits[i] == waits)
            fibers->waits[i] = Waits::Nothing;
    return waiting > 0;
}

/* Makes the context that starts a fiber, and its stack. Stacks begin at different lines of a page: if all began at the
 * same line, their frames would compete for the same few sets of the cache. */
void make_fiber_context(unsigned number)
{
    enum { LINE = 64, LINES = 64 };
    Fiber &fiber = fibers->fiber[number];
    if (!fiber.stack)
        fiber.stack.reset(new char[STACK_BYTES]);
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.get();
    fiber.start.uc_stack.ss_size = STACK_BYTES - number * 5 % LINES * LINE;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, fiber_main, 0);
}

void run_block(unsigned threads)
{
    if (threads % WARP != 0) {
        fprintf(stderr, "emulator: a block of %u threads, which are no whole warps\n", threads);
        abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        fibers->waits[i] = Waits::Nothing;
        fibers->exchange_parity[i] = 0;
        if (!fibers->started[i])
            make_fiber_context(i);
    }
    fibers->threads = threads;
    for (fibers->over = 0; fibers->over < threads;) {
        bool went_on = false;
        for (unsigned k = 0; k < threads; k++) {
            unsigned i = index_of_kth_in_run_order(k, threads);
            if (fibers->waits[i] == Waits::Nothing) {
                go_on(i);
                k = index_of_kth_in_run_order(fibers->current, threads);
                went_on = true;
            }
        }
        for (unsigned w = 0; w < threads; w += WARP)
            went_on |= resume_if_all_wait(w, w + WARP, Waits::Warp);
        went_on |= resume_if_all_wait(0, threads, Waits::Block);
        if (!went_on && fibers->over < threads) {
            fprintf(stderr, "emulator: the threads of a block wait for different things\n");
            abort();
        }
    }
}

} // namespace

void run_blocks(dim3 grid, dim3 block, size_t shared, bool apart, const std::function<void()> &body)
{
    thread_local Own own;
    fibers = own.fibers.get();
    gridDim = grid;
    blockDim = block;
    fibers->body = &body;
    if (fibers->shared.size() * sizeof(float) < shared)
        fibers->shared.resize(shared / sizeof(float) + 1);
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx =
                dim3(index_of_kth_in_run_order(x, grid.x), index_of_kth_in_run_order(y, grid.y));
            if (!apart) {
                alone = false;
                run_block(block.x);
                alone = true;
            }
            for (unsigned i = 0; apart && i < block.x; i++) {
                threadIdx = dim3(index_of_kth_in_run_order(i, block.x));
                body();
            }
        }
}

void *dynamic_shared()
{
    return fibers->shared.data();
}

static void abort_if_block_threads_cannot_meet()
{
    if (alone) {
        fprintf(stderr, "emulator: threads of a kernel launched apart want to meet\n");
        abort();
    }
}

void wait_for_block()
{
    abort_if_block_threads_cannot_meet();
    pause(Waits::Block);
}

float exchange(float value, unsigned from)
{
    abort_if_block_threads_cannot_meet();
    unsigned own = fibers->current, slot = fibers->exchange_parity[own];
    fibers->exchange_parity[own] = !slot;
    fibers->value[slot][own] = value;
    pause(Waits::Warp);
    return fibers->value[slot][own / WARP * WARP + from];
}

} // namespace emulator
