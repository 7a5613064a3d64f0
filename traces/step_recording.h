/* traces/step_recording.h: reads a recorded training step of a PyTorch program (docs/schema/step.json).
 *
 * longhaul.record writes such a file without a GPU: every operator that one rank issued, with its shapes, bytes, flops
 * and stream; collectives with their ranks; records and waits of streams; every storage with the events between which
 * it lived. Events are in the order of issue. Sizes are bytes; a recording has no times. */
#ifndef TRACES_STEP_RECORDING_H
#define TRACES_STEP_RECORDING_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STEP_RECORDING_VERSION = 1 };

enum step_event_kind {
    /* the kinds of operators, which the member "k" names */
    STEP_PRODUCT,   /* "mm": matrix products */
    STEP_ATTENTION, /* "sdpa" */
    STEP_CONVOLUTION,
    STEP_ELEMENTWISE,
    STEP_REDUCTION,
    STEP_COPY,
    STEP_INDEXING,
    STEP_FILL,
    STEP_COLLECTIVE, /* "comm" */
    STEP_OPAQUE,     /* a kernel of no other kind, such as one of the program itself */
    /* the kinds of other events, which have no "k" and which the member "op" names */
    STEP_RECORD_CUDA_EVENT,     /* stream `s` records event `e` */
    STEP_STREAM_WAIT_FOR_EVENT, /* stream `s` waits for event `e` */
    STEP_HOST_WAIT_FOR_EVENT,   /* the host waits for event `e`, or for stream `s` */
    /* the host reads a value of the device ("item", "nonzero"): it waits for stream `s` */
    STEP_HOST_READS_VALUE,
    STEP_WAIT_FOR_COLLECTIVE, /* stream `s` waits for the collective event[index_of_awaited_collective] */
    STEP_EVENT_KIND_COUNT
};

enum step_phase { STEP_FORWARD, STEP_BACKWARD, STEP_RECOMPUTE, STEP_OPTIMIZER, STEP_PHASE_COUNT };

/* The element types of PyTorch that a recording may name. */
enum step_dtype {
    STEP_DTYPE_BF16,
    STEP_DTYPE_F16,
    STEP_DTYPE_F32,
    STEP_DTYPE_F64,
    STEP_DTYPE_E4M3,
    STEP_DTYPE_E5M2,
    STEP_DTYPE_OTHER, /* all others: integers, booleans, complex numbers, other floats */
};

/* step_dtype_name() returns PyTorch's name of an element type, "other" for STEP_DTYPE_OTHER; step_dtype_of() returns
 * the element type of a name, STEP_DTYPE_OTHER for unknown names. */
const char *step_dtype_name(enum step_dtype dtype);
enum step_dtype step_dtype_of(const char *name);

enum { STEP_DIMS_MAX = 8 };

/* A tensor that an operator reads or writes: a view of a storage, whose offset is not recorded. */
struct step_tensor {
    int64_t storage;          /* row of storage[]; -1: memory of the host */
    uint8_t dim_count, dtype; /* dtype: enum step_dtype */
    bool is_strided;          /* not contiguous */
    int64_t size[STEP_DIMS_MAX];
    int64_t stride[STEP_DIMS_MAX]; /* in elements */
};

struct step_event {
    uint8_t kind, phase;      /* enum step_event_kind, enum step_phase */
    bool is_causal, is_async; /* the attention is causal; the collective of c10d is asynchronous */
    const char *op_name;      /* "mm", "c10d._allgather_base_" */
    uint32_t module;          /* row of module[] */
    int64_t stream;           /* a handle of CUDA; 0: the default stream */
    /* for records and waits: the number of the CUDA event. The host waits for the whole stream if
     * this is -1 or an event that the step has not recorded, such as 0. */
    int64_t cuda_event;
    /* for STEP_WAIT_FOR_COLLECTIVE: the index in event[] of the collective for which it waits; -1: unknown */
    int64_t index_of_awaited_collective;
    uint32_t group; /* of collectives: row of group[]; UINT32_MAX: none */
    double flops, read_bytes, written_bytes;
    /* of collectives: bytes of the whole tensor that is gathered, scattered or reduced */
    double full_tensor_bytes;
    /* for an uneven all-to-all: the bytes that this rank sends to the rank that gets most of it; 0: every rank gets the
     * same */
    double most_bytes_sent_to_one_rank;
    /* for an uneven all-to-all that sends to one rank only: the index of that rank in the group; -1: no rank or several
     * ranks get bytes, or the group has_ranks_in_other_order */
    int64_t group_index_of_only_receiver;
    /* of sends and receives: the global rank of the other side; the number of the batch of messages that are started
     * together; -1: none */
    int64_t peer_rank, batch_number;
    uint32_t in_begin, in_count, out_begin, out_count; /* rows of tensor[] */
};

/* Memory that lives from just before event `first_event` until just before event `last_event`. first_event -1: it lives
 * from the start of the step; last_event -1: it lives beyond the end of the step. */
struct step_storage {
    uint64_t bytes;
    int64_t first_event, last_event;
    /* "param NAME", "buffer NAME", "grad", "optimizer", "given", "unsharded", "" */
    const char *role;
};

struct step_group {
    const char *key, *name;
    uint32_t rank_count;
    int64_t *ranks;                /* ascending; the recorded rank is among them */
    bool has_ranks_in_other_order; /* the program lists the ranks in another order */
};

/* A recorded step. All-zero is empty. */
struct step_recording {
    struct arena arena;
    const char *name;          /* names the recording in messages */
    const char *torch_version; /* the version of PyTorch */
    /* the GPU for which PyTorch chose kernels, as the recorder names it; "": not given */
    const char *device_name;
    int64_t token_count; /* tokens that the recorded rank reads in the step; 0: not given */
    uint32_t world_size, rank;
    /* the most bytes that lived at once, by the recorder's own count; 0: not given */
    uint64_t recorded_peak_bytes;
    const char *const *module;
    uint32_t module_count;
    struct step_group *group;
    uint32_t group_count;
    struct step_storage *storage;
    uint32_t storage_count;
    struct step_event *event;
    uint32_t event_count;
    struct step_tensor *tensor;
    uint32_t tensor_count;
    /* values of tensors that the program read on the host and that the recorder had to guess, since it computes none:
     * what was read, and how often */
    struct step_guess {
        const char *description;
        int64_t count;
    } * guess;
    uint32_t guess_count;
    const char *const *note; /* sentences about the recording */
    uint32_t note_count;
};

/* True if a text begins like a recorded step, with the member "format": "longhaul-step". The rest may be damaged. */
bool step_recording_recognise(const struct text *text);

/* True if `path` is a regular file that step_recording_recognise() accepts, compressed or not. */
bool step_recording_is_file_at(const char *path);

/* Reads a recording. name stands for the text in messages. *recording must be all-zero; release it in either case.
 * Other formats, other versions, and members that contradict each other are errors. */
enum status step_recording_parse(struct step_recording *recording, const char *name,
                                 const char *data, size_t size, struct diag *diag);
void step_recording_release(struct step_recording *recording);

/* Returns the most bytes of storages that live at once. Between two events, storages that end are freed before new
 * ones begin. */
uint64_t step_recording_peak_bytes(const struct step_recording *recording);

#endif
