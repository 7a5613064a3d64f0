/* exec/cuda/cupti.h: the times of ops, from CUPTI's activity records of their kernels and copies.
 *
 * The thread that launches pushes the op's id before each call and pops it afterwards. The record of a kernel carries
 * the number of the call that launched it, and another record ties that number to the op. Times are on the host's
 * monotonic clock. The library is opened on request, before the first CUDA context of the process. Only one tool may
 * use CUPTI at a time, so it cannot be used under nsys or ncu. */
#ifndef EXEC_CUDA_CUPTI_H
#define EXEC_CUDA_CUPTI_H

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins to record; does nothing if it records already. Returns STATUS_SYSTEM if CUPTI or the loader failed, with its
 * text in the message, and STATUS_BAD_INPUT if the program was built without CUPTI. */
enum status cupti_open(struct diag *diag);
/* Returns the version of CUPTI's API; 0: it is not open. */
int cupti_version(void);

/* Between cupti_push_op() and cupti_pop_op(), everything that the calling thread launches counts for the op `id`. */
void cupti_push_op(uint64_t id);
void cupti_pop_op(void);

/* The time from the first start to the last end of everything that an op launched. */
struct cupti_span {
    uint64_t op_id;
    double start_s, end_s; /* CLOCK_MONOTONIC */
    uint32_t record_count;
};

enum { CUPTI_WHY = 256 }; /* bytes of a reason */
/* Sets *span to an array with the span of each op that was launched since the last call, sorted by op id. The caller
 * frees the array. All launched work must have ended. An op with a record that has no times gets no span. If CUPTI is
 * not open, there are no spans. If records were lost, the spans of any ops may be wrong: then it returns false, *span
 * is NULL, and `why` (CUPTI_WHY bytes) has the reason. */
bool cupti_take_spans(struct cupti_span **span, size_t *spans, char *why);

/* The computation of cupti_take_spans(), which tests call with records of their own: fills span, which has room for
 * `records` spans, and returns their number. Sorts both arrays of records in place. A record without times has start 0
 * and end 0, or an end before its start. */
struct cupti_record {
    uint32_t call_id;
    uint64_t start_ns, end_ns;
};
struct cupti_op_of_call {
    uint32_t call_id;
    uint64_t op_id;
};
size_t cupti_join_records_into_spans(struct cupti_record *record, size_t records,
                                     struct cupti_op_of_call *tie, size_t ties,
                                     struct cupti_span *span);

#endif
