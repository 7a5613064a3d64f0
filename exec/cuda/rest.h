/* exec/cuda/rest.h: how a thread of the host waits for the device. */
#ifndef EXEC_CUDA_REST_H
#define EXEC_CUDA_REST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Pauses a thread that polls the device or another thread and has waited since `since_s`. In the first 20 us of its
 * wait it yields. After that it sleeps for 1/500 of the time waited, at most 50 us, but never less than
 * cuda_shortest_pause_s. So the thread notices an end soon, and a long wait takes little processor time. */
void cuda_pause_polling(double since_s);
/* The shortest sleep in seconds, as a rule 5e-6. Tests whose threads emulate the device make it longer, since each poll
 * takes processor time from those threads. */
extern double cuda_shortest_pause_s;

#ifdef __cplusplus
}
#endif
#endif
