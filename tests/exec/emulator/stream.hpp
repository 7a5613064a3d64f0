/* tests/exec/emulator/stream.hpp: streams and events of the emulated device.
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

/* Puts work behind what is on a stream already; a null stream does it at once. Returns 0, as a
 * launch that was taken. */
int submit(cudaStream_t stream, std::function<void()> work);
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
