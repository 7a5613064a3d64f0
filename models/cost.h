/* models/cost.h: seconds for one piece of work, by device and implementation.
 *
 * A device's parameters are one JSON file, models/presets/devices/NAME.json. Every number in it has its source beside
 * it, and every family of numbers (matmul, memory-bound work, host, cpu, each attention implementation forward and
 * backward) says over which sizes it was calibrated and how large the error of its fit was. docs/costs.md derives every
 * formula. Times are seconds of the device by itself: the simulator adds contention for links and the slowdown of
 * kernels by communication.
 *
 * Rates of tensor-core work are those of short runs, at the highest clock. After about a second the power limit lowers
 * the clock, and steps last longer: cost_power_limited_rate_share(). All texts live in the arena given to
 * cost_load(). */
#ifndef MODELS_COST_H
#define MODELS_COST_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"
#include "base/units.h"
#include "models/number_origin.h"
#include "models/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum attention_direction { ATTENTION_FORWARD_PASS, ATTENTION_BACKWARD_PASS, ATTENTION_PASS_COUNT };
enum cost_family { COST_DEVICE, COST_MATMUL, COST_MEMORY, COST_HOST, COST_CPU, COST_FAMILY_COUNT };

/* The clock at which tensor cores run. SUSTAINED: the clock that the power limit allows during a step. BURST: the
 * highest clock, which runs of less than about a second have. */
enum cost_clock_kind { COST_SUSTAINED, COST_BURST };

/* The sizes of work. A time is extrapolated if one of them lies outside the calibrated range. */
enum cost_size {
    COST_SIZE_M, /* m, n and k of a product */
    COST_SIZE_N,
    COST_SIZE_K,
    COST_SIZE_Q,             /* queries of attention */
    COST_SIZE_KV,            /* keys of attention */
    COST_SIZE_Q_TIMES_HEADS, /* number of queries times number of query heads, of attention */
    COST_SIZE_DIM,           /* width of a head of q and k */
    COST_SIZE_BYTES,         /* bytes that memory-bound work and work on the host moves */
    COST_SIZE_COUNT
};

/* The range of sizes in which a family of numbers was calibrated. */
struct cost_calibrated_range {
    bool is_calibrated; /* false: numbers are estimates; always extrapolated */
    /* smallest_size[i] and largest_size[i] both 0: size i does not matter */
    double smallest_size[COST_SIZE_COUNT];
    double largest_size[COST_SIZE_COUNT];
    /* root mean square of the relative errors over the points. If is_calibrated is false, there are no points, and it
     * is the error that the device file states for its estimates. */
    double rms_relative_error;
    const char *source; /* the points, or why there are none */
};

enum { COST_MAX_DIMS = 8 };

/* The kernels of one implementation of attention in one direction. A thread block owns `tile_rows` rows and loops over
 * the other side in steps of `step_columns`. In the forward, rows are queries and the loop is over keys; in the
 * backward, rows are keys and the loop is over queries. A head dim is padded to the next one that is listed. */
struct cost_attention {
    bool is_family_present;
    double tile_rows, step_columns;
    double ramp_s; /* prologue and epilogue of one block */
    size_t dim_count;
    int64_t head_dim[COST_MAX_DIMS];  /* ascending */
    double flop_per_s[COST_MAX_DIMS]; /* padded flops, all multiprocessors, highest clock */
    /* if heads of V have another width than those of Q and K: the share of flop_per_s that the kernels reach; 0: all of
     * it */
    double unequal_dims_rate_share;
    struct cost_calibrated_range calibration;
};

/* One number of a device and its source, for `longhaul list`. */
struct cost_fact {
    const char *name; /* "matmul.ramp_s", "attention.fa2.forward.rates.128" */
    double value;     /* in SI units */
    /* the range of values on machines with this device, where they differ; 0, 0: unknown */
    double low, high;
    /* relative spread of a number that `calibrate` fitted on this machine; 0: the number was not fitted */
    double spread;
    enum unit_kind unit;
    const char *meaning;
    const char *source;
    enum number_origin origin;
    struct loc at; /* the file and line that say so */
};

struct cost_facts {
    size_t count, capacity;
    struct cost_fact *row; /* in the order of the files; an overridden number stands once */
};

/* The kernels by which an implementation does a piece of work for which others have one fused kernel: kernels that work
 * on single elements, reduce, gather rows or scatter rows, one after another. */
struct cost_elementwise_chain {
    /* The bytes of device memory that the chain's kernels move for each element; 0: there is no chain, but one kernel
     * that reads or writes each operand once. Work that may be a chain: a norm, a rotation, an activation, a sum, a
     * loss, a look-up in a divided table, the copies of tokens for experts, a square sum, a clip, AdamW. */
    double bytes_per_element;
    int kernel_count;
    /* The slow kernels of the chain: those that access elements one by one, at the device's memory_element_rate.
     * slow_kernel_passes: how many times they access each element (0.5: half of the elements once). slow_bytes: the
     * part of bytes_per_element that slow kernels move. */
    double slow_kernel_passes, slow_bytes;
    /* two parts of bytes_per_element: what kernels that gather rows move, and what kernels that scatter rows move */
    double gathered_bytes, scattered_bytes;
    /* for unpermute: the chain that applies instead if copies have no weights; NULL: it is then one kernel */
    const struct cost_elementwise_chain *chain_without_copy_weights;
};

/* The measured time of a matrix product or of attention. */
struct cost_point {
    struct work work;
    double seconds;
    uint8_t impl; /* for attention: the kernels, enum attention_impl */
    /* measured at the clock of steps; false: in a short run, whose clock may be higher */
    bool is_at_step_clock;
};

/* The measured times of shapes that a device file has; they replace or correct formulas (models/cost_points.h). */
struct cost_points {
    const char *file, *source; /* NULL: there are no points */
    size_t count;
    struct cost_point *row;
};

struct device_cost {
    const char *name, *note;
    bool is_ideal; /* work takes flops / device_peak_flop_per_s, everything else nothing */

    /* A member for each row of models/cost_params.def, named FAMILY_FIELD: the row (matmul, ramp_s) makes
     * matmul_ramp_s. */
#define COST_MEMBER(family, field, unit, low, high, meaning) double family##_##field;
#include "models/cost_params.def"
#undef COST_MEMBER
    struct cost_calibrated_range calibration[COST_FAMILY_COUNT];
    struct cost_attention attention[ATTENTION_IMPL_COUNT][ATTENTION_PASS_COUNT];
    /* [implementations] bytes that a merge moves for each element of a tile's output */
    double merge_bytes_per_element[ATTENTION_IMPL_COUNT];
    /* [implementations] watts that the kernels would draw at their highest rate; 0: device_tensor_power */
    double watts_by_attention_impl[ATTENTION_IMPL_COUNT];
    /* The share of device_memory_bytes_per_s that one kind of work reaches; 0: it is not known, and the share of the
     * kind's class applies (memory_stream_fraction and the like). */
    double kind_bandwidth_share[WORK_KIND_COUNT];

    /* The chain of kernels for each kind of work. It depends on the implementation and not on the device, so the caller
     * sets it (docs/costs.md, "Chains of kernels"). */
    struct cost_elementwise_chain chain[WORK_KIND_COUNT];
    struct cost_points points;

    /* The seconds of memory-bound kernels in a step for each second of its products and attention at the highest clock;
     * 0: there are none. The caller sets it for the step whose costs it asks for. */
    double memory_s_per_tensor_s;

    struct cost_facts facts;
};

/* Loads a device's costs by the name of a preset ("a100-80g") or of a file (a name that ends in .json). A file may name
 * another preset as its "base"; it then has only what differs. */
enum status cost_load(struct device_cost *cost, struct arena *arena, const char *what,
                      struct diag *diag);

/* Reads a device's costs from a text. name: the text's name in messages. */
enum status cost_parse(struct device_cost *cost, struct arena *arena, const char *name,
                       const char *text, size_t size, struct diag *diag);

/* Lists the names of all presets, sorted. */
enum status cost_presets(const char *const **names, size_t *count, struct arena *arena,
                         struct diag *diag);

/* True if the device multiplies operands that have scales of this kind, and for SCALING_NONE. True
 * for an ideal device. */
bool cost_supports_scaling(const struct device_cost *cost, enum scaling scaling);

/* Returns 1 + the implementation of attention, if the device has costs of only one in 16 bits;
 * implementations in 8 bits do not count. Returns 0 for none, for several, and for an ideal
 * device. */
int cost_only_attention_impl_plus_1(const struct device_cost *cost);

/* Fails unless the device has costs for an implementation of attention at a head dim, forward and backward. The message
 * names the largest head dim that it has costs for or, if it has none for the implementation, the implementations that
 * it has. An ideal device never fails. Call it before costing attention. */
enum status cost_check_attention(const struct device_cost *cost, enum attention_impl impl,
                                 int64_t dim, struct loc at, struct diag *diag);

/* Fails if the device cannot multiply operands that have scales of this kind. what: the name that the user knows
 * ("mxfp8"). */
enum status cost_check_scaling(const struct device_cost *cost, enum scaling scaling,
                               const char *what, struct loc at, struct diag *diag);

/* Returns the share of its highest rate that work sustains in a step, if it would draw `watts` at
 * that rate; 1 if watts is 0 or the device has no power limit. Power goes with the square of the
 * rate, and the limit holds for the mean power of a step. So the share, at most 1, solves watts
 * share^2 - (limit - memory_power) memory_s_per_tensor_s share = limit (docs/costs.md, "What the
 * power limit leaves"). */
double cost_power_limited_rate_share(const struct device_cost *cost, double watts);

/* Return the MHz at which products, or attention, run in a step: device.clock_mhz, reduced by the power limit; 0:
 * unknown. */
double cost_product_mhz(const struct device_cost *cost, enum dtype dtype);
double cost_attention_mhz(const struct device_cost *cost, enum attention_impl impl);

/* Return the most flop/s that a step sustains: of products of operands in a dtype or, unless it is SCALING_NONE, in 8
 * or 4 bits with such scales; of attention in one direction with the head dim head_dim[i] of struct cost_attention. */
double cost_product_flop_per_s(const struct device_cost *cost, enum dtype dtype,
                               enum scaling scaling);
double cost_attention_flop_per_s(const struct device_cost *cost, enum attention_impl impl,
                                 enum attention_direction pass, size_t i);

/* Returns the device seconds of one op in a training step, without the host's issue. If the work
 * is attention, impl must have passed cost_check_attention(). Communication, copies and kinds of
 * STREAM_SYNC are 0 here: their time is that of links and of the issuing thread. */
double cost_work_s(const struct device_cost *cost, enum attention_impl impl,
                   const struct work *work);

/* Returns the seconds of an attention op with mask DOCUMENTS, CHUNKS or PLAN in a training step. piece[0..count): the
 * parts of the score matrix that the mask leaves on the rank. If the device file has measured times, the formula is
 * multiplied by the ratio of measured time to formula of a dense attention as large as the largest piece. */
double cost_document_attention_s(const struct device_cost *cost, enum attention_impl impl,
                                 const struct work *work, const struct attention_piece *piece,
                                 size_t count);

/* Returns the seconds of the work in a run of less than about a second, at the highest clock, as a microbenchmark
 * measures it: the power limit does not slow it. */
double cost_work_burst_s(const struct device_cost *cost, enum attention_impl impl,
                         const struct work *work);

/* Returns the seconds of `kernels` elementwise kernels, which together move `bytes` bytes. */
double cost_elementwise_s(const struct device_cost *cost, double kernels, double bytes);

/* Returns the seconds for which the issuing thread of an eager framework is busy with one op. For HOST_SYNC they are
 * the seconds from the end of the awaited op until the thread continues. The factor of a profile is not in them. */
double cost_host_issue_s(const struct device_cost *cost, const struct work *work);

/* Returns the seconds of an op on a host stream (AdamW, fills, adds) while no other op uses the
 * host's memory: cpu_start_s, and its bytes at the rate cpu_stream_fraction *
 * host_memory_bytes_per_s. An ideal device takes 0 seconds. */
double cost_host_work_s(const struct device_cost *cost, double host_memory_bytes_per_s,
                        const struct work *work);

/* Returns the bytes that an op on a host stream moves through host memory, for callers that model it as a shared
 * link. */
double cost_host_work_bytes(const struct work *work);

/* Returns flops / peak: the seconds of the work at a peak rate, which cost_work_s() returns for an ideal device. */
double cost_ideal_s(double peak_flop_per_s, const struct work *work);

/* Returns the calibration of the formula that gives the time of this work; NULL if none does, as
 * for communication, copies and kinds of STREAM_SYNC. */
const struct cost_calibrated_range *cost_calibration_of_work(const struct device_cost *cost,
                                                             enum attention_impl impl,
                                                             const struct work *work);

/* True if the time of the work is extrapolated: one of its sizes lies outside the calibrated range,
 * or the numbers of its family are estimates (is_calibrated is false). Then a clause that says why
 * is appended to `reason`: "matmul k = 64 is under the calibrated 512..32768". reason may be NULL.
 * False for an ideal device, and for a recorded operator whose time was measured. */
bool cost_is_extrapolated(const struct device_cost *cost, enum attention_impl impl,
                          const struct work *work, struct text *reason);

/* Returns the bytes that device memory moves for an op. Usually these are work_memory_bytes(). For a merge they are
 * those of the implementation's passes; for a chain of kernels, those of the chain; for an attention backward, the
 * bytes of the small kernels before and after it are added. */
double cost_memory_traffic_bytes(const struct device_cost *cost, enum attention_impl impl,
                                 const struct work *work);

/* Appends the device as text: every number with its source, one per line. */
void cost_print_numbers_and_sources(struct text *out, const struct device_cost *cost);

#endif
