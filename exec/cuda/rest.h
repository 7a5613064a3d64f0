/* exec/cuda/rest.h: how a thread of the host waits for the device. */
#ifndef EXEC_CUDA_REST_H
#define EXEC_CUDA_REST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Pauses a thread that polls the device or another thread and has waited since `since_s`. It yields during the first
 * 20 us, and then sleeps for 1/500 of the time waited, at most 50 us, but at least cuda_shortest_pause_s: so the thread
 * notices an end soon, and a long wait uses little processor time. */
void cuda_pause_polling(double since_s);
/* The shortest of these sleeps, 5 us in seconds. It is longer where threads of this processor emulate the device, since
 * each poll takes processor time from them. */
extern double cuda_shortest_pause_s;

#ifdef __cplusplus
}
#endif
#endif
