/* tests/schedule/shapes.h: small dense transformers, and random requests over them. */
#ifndef TESTS_SCHEDULE_SHAPES_H
#define TESTS_SCHEDULE_SHAPES_H

#include "schedule/choices/choices.h"
#include "tests/check.h"

#define SHAPE_COUNT 6
extern const struct transformer shapes[SHAPE_COUNT];

/* Returns a random legal request: shape, strategy, profile, weights, activations, optimizer, ranks (at most max_ranks),
 * batch and chunks are drawn. Its dtype is f32 when f32 is set; else it is left open. */
struct request shapes_random_request(struct check_random *random, int64_t max_ranks, bool f32);

/* Writes a label such as "gqa ulysses deepspeed zero3 offload device ranks 4 ..." into text and returns it. */
const char *shapes_request_label(const struct request *request, char *text, size_t size);

#endif
