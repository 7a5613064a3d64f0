/* schedule/pipeline/ratios.h: which part of each unit's activations is offloaded to the host.
 *
 * Units 0 .. N-1 run forward one after the other, and backward in the opposite order. The activations of unit i - 1
 * that are offloaded can be copied while unit i runs; one unit's computation hides M_thr = rate x time bytes (SPPO,
 * arXiv 2503.10377, section 5.2). Where units take equal time, later units are shorter, because attention grows, and
 * have fewer bytes: so ratios do not fall. The backward of the last unit follows at once, and nothing of it is
 * offloaded. (The paper prints sizes and ratios in reverse, and its M_max drops the sum: the reading here is the one
 * that its figures follow.) */
#ifndef SCHEDULE_PIPELINE_RATIOS_H
#define SCHEDULE_PIPELINE_RATIOS_H

/* Returns min(1, hidden / bytes): the part of `bytes` that is offloaded if a computation hides `hidden` bytes. */
static inline double ratio_of_hidden_bytes(double bytes, double hidden)
{
    return bytes <= hidden ? 1 : hidden / bytes;
}

#endif
