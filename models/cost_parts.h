/* models/cost_parts.h: types and functions that the files of models/cost*.c share; private to them.
 *
 * Formulas return device seconds of one op. docs/costs.md has the derivations. */
#ifndef MODELS_COST_PARTS_H
#define MODELS_COST_PARTS_H

#include "models/cost.h"

typedef double cost_function(const struct device_cost *cost, enum attention_impl impl,
                             const struct work *work, enum cost_clock_kind clock);

/* The formulas of products, of attention and of memory-bound work: they return device seconds without the corrections
 * by measured points. */
cost_function cost_matmul_s, cost_attention_s, cost_memory_s;

/* Returns the seconds, by the formula, of an attention whose mask leaves these pieces. */
double cost_attention_pieces_s(const struct device_cost *cost, enum attention_impl impl,
                               const struct work *work, const struct attention_piece *piece,
                               size_t count);

/* Returns the chain of kernels that does the work; NULL: one kernel does it. */
const struct cost_elementwise_chain *cost_elementwise_chain_of_work(const struct device_cost *cost,
                                                                    const struct work *work);

/* The work that a matrix product or an attention gives to the tensor cores, and the rest of its time. The power limit
 * slows only the former. */
struct cost_tensor_work {
    /* The seconds that the work would take if all multiprocessors computed without a pause at the highest clock. */
    double seconds;
    /* The watts that the device would draw while it computes at the highest clock; 0: the limit never slows the op. */
    double watts;
    /* The seconds of the op without tensor cores: the start of its kernel and, for an attention backward, the small
     * kernels before and after it. */
    double other_kernels_s;
};
struct cost_tensor_work cost_matmul_tensor_work(const struct device_cost *cost,
                                                const struct work *work);
struct cost_tensor_work cost_attention_tensor_work(const struct device_cost *cost,
                                                   enum attention_impl impl,
                                                   const struct work *work);

/* Returns the seconds that a product or an attention takes in a training step, where the power limit may lower the
 * clock. burst_s: the seconds that it takes in a short run; 0: the result is the least that it can take in a step
 * (docs/costs.md, "What the power limit leaves"). */
double cost_sustained_s(const struct device_cost *cost, const struct cost_tensor_work *busy,
                        double burst_s);

/* Returns the share of device_memory_bytes_per_s that work reaches; 0 for work that is not memory-bound. */
double cost_bandwidth_share(const struct device_cost *cost, const struct work *work);
/* Returns the name of the number that is the bandwidth share of a kind's class: "memory.stream_fraction". All kinds of
 * a class get the same pointer. NULL: the kind is not memory-bound, or is OPAQUE. */
const char *cost_memory_class_name(enum work_kind kind);

/* Returns the bytes that the small kernels before and after an attention backward move. */
double cost_memory_around_attention_bytes(const struct work *work);

/* Returns the seconds in which memory moves `bytes` at the share `fraction` of its bandwidth, plus those of the ramp to
 * that rate; the start of a kernel is not included. */
double cost_memory_s_for_bytes(const struct device_cost *cost, double fraction, double bytes);

/* Sets *attention to the parameters of an attention op, and *row to the first row of head_dim[] that is at least as
 * large as `dim` and `vdim` of the op. Returns false if no row is. */
bool cost_attention_find(const struct device_cost *cost, enum attention_impl impl,
                         const struct work *work, const struct cost_attention **attention,
                         size_t *row);

/* Sets the sizes that a kind of work has (enum cost_size); the other elements of sizes[] do not change. */
void cost_get_sizes_of_work(const struct device_cost *cost, enum attention_impl impl,
                            const struct work *work, double sizes[COST_SIZE_COUNT]);

/* Records the source of a number; it replaces an earlier fact of the same name. */
void cost_record_fact(struct device_cost *cost, struct arena *arena, const struct cost_fact *fact);

/* A row of models/cost_params.def. */
struct cost_param {
    const char *family, *field;
    enum cost_family cost_family_of_param;
    enum unit_kind unit;
    double low, high;
    const char *meaning;
    size_t offset; /* offset of the number, a double, in struct device_cost */
};
extern const struct cost_param cost_params[];
extern const size_t cost_param_count;
/* The numbers of one direction of an attention; their offsets are offsets in struct cost_attention. */
enum { COST_PASS_PARAMS = 4 };
extern const struct cost_param cost_pass_params[COST_PASS_PARAMS];
extern const char *const cost_family_names[COST_FAMILY_COUNT];
extern const char *const cost_size_names[COST_SIZE_COUNT];
extern const char *const cost_pass_names[ATTENTION_PASS_COUNT];

#endif
