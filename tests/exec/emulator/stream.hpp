/* tests/exec/emulator/stream.hpp: streams and events of the emulated devices, and the device to which each address
 * belongs.
 *
 * Each thread has a current device, at first device 0. A stream, an event, an allocation and a handle belong to the
 * device that was current when they were made, and mixing devices is refused as a GPU refuses it.
 *
 * A stream is a thread that does its work in order. The legacy stream (a null handle) is not ordered with the other
 * streams, which are all non-blocking: its work is done when a caller waits for it or for the whole device, or else
 * in the middle of the other streams' work, once any of them has done a kernel or a copy. An event is a number that
 * counts its records; a stream that waits for it waits for the record that was the last when the wait was issued, as
 * with cudaStreamWaitEvent(). */
#ifndef TESTS_EXEC_EMULATOR_STREAM_HPP
#define TESTS_EXEC_EMULATOR_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <functional>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

namespace emulator
{

enum { WRONG_DEVICE = 400 }; /* cudaErrorInvalidResourceHandle */

/* The calling thread's current device. */
int current_device();
void set_current_device(int device);
/* The device of a stream; of a null stream, the current one. */
int device_of(cudaStream_t stream);
int device_of(cudaEvent_t event);
/* Memory of the program that is neither pinned nor of a device is pageable. */
enum class Memory { Pageable, Pinned, Device };
void own(void *memory, size_t bytes, Memory kind); /* adds an allocation of the current device */
void forget_allocation(void *memory);
Memory memory_kind_at(const void *address);
/* True if kernels on a device may use an address: one in that device's memory, or in the host's. */
bool can_device_access(int device, const void *address);
/* Called by whatever makes a context on the current device. */
void touch();
/* Returns the number of devices that have a context. */
int devices_touched();

/* Called before a kernel is launched: the first launch on a device loads it, and waits until the device is idle (unless
 * emulator_lazy is 0 or emulator_dry is not). A kernel is its code and a number that tells its variants apart. */
void load(const void *code, uint64_t variant);
/* Launches a kernel: appends work to a stream or, with emulator_dry, does nothing. Returns 0, or WRONG_DEVICE if the
 * stream is not on the current device. */
int submit(cudaStream_t stream, std::function<void()> work);
/* Appends a copy to a stream, as submit() does a kernel; any device may be current. */
int submit_copy(cudaStream_t stream, std::function<void()> work);
/* Appends other work than a kernel, copy or fill to a stream: CUPTI has no record of it. */
int submit_unrecorded(cudaStream_t stream, std::function<void()> work);
/* A recorder is called with the work that submit() or submit_copy() is given for a stream other than the legacy
 * stream, and returns the work to append instead. set_launch_recorder(nullptr): nothing is recorded. */
typedef std::function<void()> recorder(std::function<void()> work);
void set_launch_recorder(recorder *next);

/* Waits until *stop is not 0, at most for this many nanoseconds. */
void wait_for_stop_flag(const int32_t *stop, uint64_t nanoseconds);

cudaStream_t stream_new();
void stream_free(cudaStream_t stream); /* once it has done all its work */
bool stream_done(cudaStream_t stream);
void stream_synchronize(cudaStream_t stream);
void device_synchronize(); /* for all streams of the current device */

cudaEvent_t event_new();
void event_free(cudaEvent_t event);
void event_record(cudaEvent_t event, cudaStream_t stream);
void stream_wait_event(cudaStream_t stream, cudaEvent_t event); /* the stream waits for it */
bool event_done(cudaEvent_t event);
void event_synchronize(cudaEvent_t event);
double event_time_s(cudaEvent_t event); /* of the last record that has been reached */

/* Copies on a stream. If the source is pageable memory and the target is on the device, the source is read now,
 * before earlier work of the stream is done: the driver stages it. */
int copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

} // namespace emulator

#endif
