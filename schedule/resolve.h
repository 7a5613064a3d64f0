/* schedule/resolve.h: the part of compose_resolve() that cuts a sequence over ranks, and what both
 * parts put into messages. */
#ifndef SCHEDULE_RESOLVE_H
#define SCHEDULE_RESOLVE_H

#include "base/text.h"
#include "schedule/compose.h"

/* "1, 2, 4 or 8" */
void resolve_put_numbers(struct text *out, const int64_t *number, int count);
/* The divisors of n that divide `other` too (0: any), at most `most` of them, the largest. */
void resolve_put_divisors(struct text *out, int64_t n, int64_t other, int most);

/* "WHAT; WOULD would do"; releases would. */
enum status resolve_bad_size(struct diag *diag, const char *what, struct text *would);

/* Degrees, placement, layout and window of the sequence, filled and checked; the attention choice
 * becomes what is left of it where a degree is 1. ranks and seq of *c are set. */
enum status resolve_degrees(struct choices *c, const struct request *r,
                            const struct strategy *strategy, struct diag *note, struct diag *diag);

#endif
