/* schedule/ir/expression.h: numbers that depend on the variables of loops, "2*L+1" or "31-L". */
#ifndef SCHEDULE_EXPRESSION_H
#define SCHEDULE_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

struct expression_variable {
    const char *name; /* letters only */
    int64_t value;
};

/* Reads the text [at, end): sums and differences of whole numbers, variables, and products of a number and a
 * variable, without blanks. Returns false if the text is not such an expression or its value does not fit 64 bits. */
bool expression_read(const char *at, const char *end, const struct expression_variable *variable,
                     uint32_t count, int64_t *value);

/* Reads the digits at *at into *value, and moves *at past them. Returns false if there are none, or if the number does
 * not fit 64 bits. */
bool expression_read_digits(const char **at, const char *end, int64_t *value);

#endif
