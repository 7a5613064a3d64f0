/* traces/explain_part.h: the parts into which an explanation (traces/explain.h) divides a rank's step. */
#ifndef TRACES_EXPLAIN_PART_H
#define TRACES_EXPLAIN_PART_H

/* The parts: EXPLAIN(symbol of the enumerator, name that is printed). */
#define EXPLAIN_PARTS(EXPLAIN)                                                                     \
    EXPLAIN(PRODUCTS, "products")                                                                  \
    EXPLAIN(ATTENTION, "attention")                                                                \
    EXPLAIN(MEMORY_BOUND, "memory-bound work")                                                     \
    EXPLAIN(OPTIMIZER, "optimizer")                                                                \
    EXPLAIN(STRAY, "work that the schedule does not have")                                         \
    EXPLAIN(MESSAGES, "messages")                                                                  \
    EXPLAIN(COPIES, "copies")                                                                      \
    EXPLAIN(WAITS, "waits for other ranks")                                                        \
    EXPLAIN(IDLE, "nothing runs")

enum explain_part {
#define EXPLAIN(symbol, name) EXPLAIN_##symbol,
    EXPLAIN_PARTS(EXPLAIN)
#undef EXPLAIN
        EXPLAIN_PART_COUNT,
    EXPLAIN_KERNEL_PARTS = EXPLAIN_STRAY + 1 /* number of the first parts, in which a kernel runs */
};

const char *explain_part_name(enum explain_part part);

#endif
