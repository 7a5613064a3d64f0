/* schedule/pipeline/ratios.h: the part of each unit's activations that is offloaded to the host.
 *
 * Units 0 .. N-1 run forward one after the other, and backward in the opposite order. The offloaded activations of unit
 * i - 1 can be copied while unit i runs; the computation of one unit hides M_thr = rate x time bytes (SPPO, arXiv
 * 2503.10377, section 5.2). If units take equal time, later units have fewer tokens, because attention sees more keys,
 * and so fewer bytes; their ratios are equal or larger. The backward of the last unit follows its forward at once, so
 * nothing of it is offloaded.
 *
 * The paper prints sizes and ratios in reverse order, and its formula of M_max lacks the sum. What is said here agrees
 * with the paper's figures. */
#ifndef SCHEDULE_PIPELINE_RATIOS_H
#define SCHEDULE_PIPELINE_RATIOS_H

/* Returns min(1, hidden / bytes): the part of `bytes` that is offloaded if a computation hides `hidden` bytes. */
static inline double ratio_of_hidden_bytes(double bytes, double hidden)
{
    return bytes <= hidden ? 1 : hidden / bytes;
}

#endif
