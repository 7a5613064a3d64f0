/* tests/exec/emulator/stream.hpp: streams and events of the emulated devices.
 *
 * Each thread has a current device, at first device 0. A stream, an event, an allocation and a handle
 * belong to the device that was current when they were made, and what a GPU refuses to mix is refused.
 *
 * A stream is a thread that does what is put on it, in order. An event is a number that counts its
 * records; a stream that waits for it waits for the record that was the last when the wait was
 * issued, as cudaStreamWaitEvent() does. */
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
/* Whether kernels on a device may use an address: memory of that device, or of the host. */
void own(void *memory, size_t bytes); /* an allocation of the current device */
void disown(void *memory);
bool reaches(int device, const void *address);
/* Called by whatever makes a context on the current device. */
void touch();
/* How many devices have a context. */
int devices_touched();

/* Launches a kernel: puts work behind what is on a stream already; a null stream does it at once.
 * Returns 0, or WRONG_DEVICE when the stream is not of the current device. */
int submit(cudaStream_t stream, std::function<void()> work);
/* The same of copies, which any device may be current for. */
int submit_copy(cudaStream_t stream, std::function<void()> work);
/* The same of what is no kernel, copy or fill: CUPTI has no record of it. */
int submit_unrecorded(cudaStream_t stream, std::function<void()> work);
/* Called for what submit() is given, before it is put on its stream; returns what is put there
 * instead. Null: nobody records. */
typedef std::function<void()> recorder(std::function<void()> work);
void record_by(recorder *next);

/* Until *stop is not 0, or so long. */
void wait_for(const int32_t *stop, uint64_t nanoseconds);

cudaStream_t stream_new();
void stream_free(cudaStream_t stream); /* when it has done all */
bool stream_done(cudaStream_t stream);
void stream_wait(cudaStream_t stream);

cudaEvent_t event_new();
void event_free(cudaEvent_t event);
void event_record(cudaEvent_t event, cudaStream_t stream);
void event_hold(cudaStream_t stream, cudaEvent_t event); /* the stream waits for it */
bool event_done(cudaEvent_t event);
void event_wait(cudaEvent_t event);
double event_time_s(cudaEvent_t event); /* of the last record that has been reached */

} // namespace emulator

#endif
