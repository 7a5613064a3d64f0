/* The streams and events of the emulated devices; stream.hpp says what they do.
 *
 * A stream is a queue of functions and a thread that calls them in order. The legacy stream has a queue and no thread:
 * whoever waits for it calls its functions (run_legacy_stream_queue()), and so does each other stream after a kernel or
 * a copy. A record of an event is a function in the queue of a stream: it counts the event up. A wait for an event is a
 * function that returns when the event has counted so far. */
#include "tests/exec/emulator/stream.hpp"

#include "tests/exec/emulator/order.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

int emulator_lazy = 1;

struct CUstream_st {
    std::mutex lock; /* guards the members up to `quit` */
    std::condition_variable changed;
    std::deque<std::function<void()>> queue; /* the work that has not begun */
    bool at_work = false; /* the thread does a piece of work, which is no longer in the queue */
    bool quit = false;    /* the thread ends when the queue is empty */
    int device = 0;
    std::thread thread; /* work() */
};

/* The records of an event. The event shares them with the records in the queues of streams, which may outlive it. */
struct EventRecords {
    std::mutex lock;
    std::condition_variable changed;
    uint64_t issued = 0;  /* number of records that were appended to streams */
    uint64_t reached = 0; /* number of the last record that a stream has done, from 1; 0: none */
    bool legacy = false;  /* the last record that was issued is on the legacy stream */
    double time_s = 0;    /* when the last record was reached */
};

struct CUevent_st {
    int device = 0;
    std::shared_ptr<EventRecords> records = std::make_shared<EventRecords>();
};

namespace emulator
{
namespace
{

double now_s()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

thread_local int device_of_this_thread; /* the device of this thread */
std::atomic<unsigned> touched;          /* a bit for each device that has a context */

struct Allocation {
    size_t bytes;
    int device;
    Memory kind;
};
std::mutex allocations_lock;
std::map<const char *, Allocation> allocations; /* by their first address */

/* The thread of a stream. */
void work(CUstream_st *stream)
{
    std::unique_lock<std::mutex> lock(stream->lock);
    for (;;) {
        stream->changed.wait(lock, [&] { return stream->quit || !stream->queue.empty(); });
        if (stream->queue.empty())
            return;
        std::function<void()> next = std::move(stream->queue.front());
        stream->queue.pop_front();
        stream->at_work = true;
        lock.unlock();
        next();
        next = nullptr;
        lock.lock();
        stream->at_work = false;
        stream->changed.notify_all();
    }
}

struct LegacyStreamQueue {
    std::mutex lock;           /* of the queue */
    std::recursive_mutex turn; /* held by the thread that does the work of the queue */
    std::deque<std::function<void()>> queue;
};

LegacyStreamQueue legacy;
std::mutex streams_lock;
std::set<CUstream_st *> streams; /* all but the legacy stream */

/* Does the work of the legacy stream until its queue is empty. */
void run_legacy_stream_queue()
{
    std::lock_guard<std::recursive_mutex> turn(legacy.turn);
    for (;;) {
        std::function<void()> next;
        {
            std::lock_guard<std::mutex> lock(legacy.lock);
            if (legacy.queue.empty())
                return;
            next = std::move(legacy.queue.front());
            legacy.queue.pop_front();
        }
        next();
    }
}

bool is_last_record_on_legacy_stream(EventRecords &records)
{
    std::lock_guard<std::mutex> lock(records.lock);
    return records.legacy;
}

/* Waits until record `number` of an event is reached. */
void wait_for_event_record(EventRecords &records, uint64_t number)
{
    if (is_last_record_on_legacy_stream(records))
        run_legacy_stream_queue();
    std::unique_lock<std::mutex> lock(records.lock);
    records.changed.wait(lock, [&] { return records.reached >= number; });
}

uint64_t last_issued_record(EventRecords &records)
{
    std::lock_guard<std::mutex> lock(records.lock);
    return records.issued;
}

} // namespace

static std::atomic<recorder *> recording{nullptr};

void set_launch_recorder(recorder *next)
{
    recording = next;
}

int current_device()
{
    return device_of_this_thread;
}

void set_current_device(int device)
{
    device_of_this_thread = device;
}

int device_of(cudaStream_t stream)
{
    return stream != nullptr ? stream->device : device_of_this_thread;
}

int device_of(cudaEvent_t event)
{
    return event->device;
}

void own(void *memory, size_t bytes, Memory kind)
{
    std::lock_guard<std::mutex> guard(allocations_lock);
    allocations[static_cast<const char *>(memory)] = {bytes, device_of_this_thread, kind};
}

void forget_allocation(void *memory)
{
    std::lock_guard<std::mutex> guard(allocations_lock);
    allocations.erase(static_cast<const char *>(memory));
}

/* Returns the allocation that contains the address; one of 0 bytes of pageable memory if none does. */
static Allocation allocation_containing(const void *address)
{
    const char *byte = static_cast<const char *>(address);
    std::lock_guard<std::mutex> guard(allocations_lock);
    auto next = allocations.upper_bound(byte);
    if (next != allocations.begin()) {
        auto before = std::prev(next);
        if (byte < before->first + before->second.bytes)
            return before->second;
    }
    return {0, 0, Memory::Pageable};
}

Memory memory_kind_at(const void *address)
{
    return allocation_containing(address).kind;
}

bool can_device_access(int device, const void *address)
{
    Allocation allocation = allocation_containing(address);
    return allocation.kind != Memory::Device || allocation.device == device;
}

void touch()
{
    touched |= 1u << device_of_this_thread;
}

int devices_touched()
{
    return __builtin_popcount(touched);
}

int submit(cudaStream_t stream, std::function<void()> work)
{
    return device_of(stream) != device_of_this_thread ? WRONG_DEVICE
                                                      : submit_copy(stream, std::move(work));
}

int submit_copy(cudaStream_t stream, std::function<void()> work)
{
    if (emulator_dry)
        return 0;
    if (stream == nullptr)
        return submit_unrecorded(stream, std::move(work));
    recorder *record = recording;
    return submit_unrecorded(
        stream, [work = record != nullptr ? record(std::move(work)) : std::move(work)] {
            work();
            run_legacy_stream_queue();
        });
}

void load(const void *code, uint64_t variant)
{
    static std::mutex loading;
    static std::set<std::tuple<int, const void *, uint64_t>> loaded;
    if (!emulator_lazy || emulator_dry)
        return;
    {
        std::lock_guard<std::mutex> guard(loading);
        if (!loaded.insert({device_of_this_thread, code, variant}).second)
            return;
    }
    device_synchronize();
}

void wait_for_stop_flag(const int32_t *stop, uint64_t nanoseconds)
{
    double until_s = now_s() + 1e-9 * (double)nanoseconds;
    while (__atomic_load_n(stop, __ATOMIC_ACQUIRE) == 0 && now_s() < until_s)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

int submit_unrecorded(cudaStream_t stream, std::function<void()> work)
{
    if (stream == nullptr) {
        std::lock_guard<std::mutex> lock(legacy.lock);
        legacy.queue.push_back(std::move(work));
        return 0;
    }
    std::lock_guard<std::mutex> lock(stream->lock);
    stream->queue.push_back(std::move(work));
    stream->changed.notify_all();
    return 0;
}

cudaStream_t stream_new()
{
    CUstream_st *stream = new CUstream_st;
    touch();
    stream->device = device_of_this_thread;
    stream->thread = std::thread(work, stream);
    std::lock_guard<std::mutex> lock(streams_lock);
    streams.insert(stream);
    return stream;
}

void stream_free(cudaStream_t stream)
{
    {
        std::lock_guard<std::mutex> lock(streams_lock);
        streams.erase(stream);
    }
    {
        std::lock_guard<std::mutex> lock(stream->lock);
        stream->quit = true;
        stream->changed.notify_all();
    }
    stream->thread.join();
    delete stream;
}

bool stream_done(cudaStream_t stream)
{
    if (stream == nullptr) {
        run_legacy_stream_queue(); /* a caller that asks again and again must see the work end */
        return true;
    }
    std::lock_guard<std::mutex> lock(stream->lock);
    return stream->queue.empty() && !stream->at_work;
}

void stream_synchronize(cudaStream_t stream)
{
    if (stream == nullptr) {
        run_legacy_stream_queue();
        return;
    }
    std::unique_lock<std::mutex> lock(stream->lock);
    stream->changed.wait(lock, [&] { return stream->queue.empty() && !stream->at_work; });
}

void device_synchronize()
{
    run_legacy_stream_queue();
    std::lock_guard<std::mutex> lock(streams_lock);
    for (CUstream_st *stream : streams)
        if (stream->device == device_of_this_thread)
            stream_synchronize(stream);
}

cudaEvent_t event_new()
{
    CUevent_st *event = new CUevent_st;
    touch();
    event->device = device_of_this_thread;
    return event;
}

void event_free(cudaEvent_t event)
{
    delete event;
}

void event_record(cudaEvent_t event, cudaStream_t stream)
{
    std::shared_ptr<EventRecords> records = event->records;
    uint64_t number;
    {
        std::lock_guard<std::mutex> lock(records->lock);
        number = ++records->issued;
        records->legacy = stream == nullptr;
    }
    submit_unrecorded(stream, [records, number] {
        std::lock_guard<std::mutex> lock(records->lock);
        records->reached = number;
        records->time_s = now_s();
        records->changed.notify_all();
    });
}

void stream_wait_event(cudaStream_t stream, cudaEvent_t event)
{
    std::shared_ptr<EventRecords> records = event->records;
    uint64_t number = last_issued_record(*records);
    submit_unrecorded(stream, [records, number] { wait_for_event_record(*records, number); });
}

bool event_done(cudaEvent_t event)
{
    if (is_last_record_on_legacy_stream(*event->records))
        run_legacy_stream_queue();
    std::lock_guard<std::mutex> lock(event->records->lock);
    return event->records->reached >= event->records->issued;
}

void event_synchronize(cudaEvent_t event)
{
    wait_for_event_record(*event->records, last_issued_record(*event->records));
}

double event_time_s(cudaEvent_t event)
{
    std::lock_guard<std::mutex> lock(event->records->lock);
    return event->records->time_s;
}

/* Sleeps if the environment has EMULATED_COPY_S=0.3: a copy between host and device then takes at least 0.3 s. (A copy
 * from pageable memory to the device does not call this.) */
static void sleep_for_emulated_copy(const void *to, const void *from)
{
    const char *text = getenv("EMULATED_COPY_S");
    if (text != nullptr &&
        (memory_kind_at(to) == Memory::Device) != (memory_kind_at(from) == Memory::Device))
        std::this_thread::sleep_for(std::chrono::duration<double>(strtod(text, nullptr)));
}

int copy(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    if (memory_kind_at(from) != Memory::Pageable || memory_kind_at(to) != Memory::Device)
        return submit_copy(stream, [=] {
            sleep_for_emulated_copy(to, from);
            memmove(to, from, bytes);
        });
    const char *begin = static_cast<const char *>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    return submit_copy(stream, [=] { memcpy(to, staged->data(), bytes); });
}

} // namespace emulator

extern "C" void emulator_device_synchronize(void)
{
    emulator::device_synchronize();
}

extern "C" int cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    if (!emulator::can_device_access(emulator::device_of(stream), to))
        return emulator::WRONG_DEVICE;
    return emulator::submit(stream, [=] { memset(to, value, bytes); });
}

extern "C" int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                               cudaStream_t stream)
{
    (void)kind;
    return emulator::copy(to, from, bytes, stream);
}
