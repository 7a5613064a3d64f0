#include "models/states.h"

#include <assert.h>

const char *const states_names[STATES_COUNT] = {"fp32", "bf16", "8bit", "8bit-bf16"};

static const struct {
    uint8_t master, moment; /* enum dtype */
} rows[STATES_COUNT] = {
    [STATES_FP32] = {DTYPE_F32, DTYPE_F32},
    [STATES_BF16] = {DTYPE_BF16, DTYPE_BF16},
    [STATES_8BIT] = {DTYPE_F32, DTYPE_U8},
    [STATES_8BIT_BF16] = {DTYPE_BF16, DTYPE_U8},
};

bool states_are_bf16(enum states states)
{
    return states_master_dtype(states) == DTYPE_BF16;
}

bool states_have_8bit_moments(enum states states)
{
    return states_moment_dtype(states) == DTYPE_U8;
}

enum dtype states_master_dtype(enum states states)
{
    assert(states < STATES_COUNT);
    return (enum dtype)rows[states].master;
}

enum dtype states_moment_dtype(enum states states)
{
    assert(states < STATES_COUNT);
    return (enum dtype)rows[states].moment;
}

uint64_t states_moment_elements(enum states states, uint64_t count)
{
    if (!states_have_8bit_moments(states))
        return count;
    uint64_t blocks = count / STATES_BLOCK + (count % STATES_BLOCK > 0);
    return count + blocks * dtype_bytes(DTYPE_F32);
}

static double moment_bytes(enum states states, uint64_t count)
{
    return (double)states_moment_elements(states, count) *
           (double)dtype_bytes(states_moment_dtype(states));
}

double states_bytes_per_parameter(enum states states, enum dtype dtype)
{
    enum dtype master = states_master_dtype(states);
    return (master != dtype ? (double)dtype_bytes(master) : 0) +
           2 * moment_bytes(states, STATES_BLOCK) / STATES_BLOCK;
}

double states_traffic_bytes(enum states states, uint64_t count)
{
    double master = (double)count * (double)dtype_bytes(states_master_dtype(states));
    return 2 * (master + 2 * moment_bytes(states, count));
}
