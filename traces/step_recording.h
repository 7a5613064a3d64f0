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
    /* operators, by the member "k" */
    STEP_PRODUCT,   /* "mm": matrix products */
    STEP_ATTENTION, /* "sdpa" */
    STEP_CONVOLUTION,
    STEP_ELEMENTWISE,
    STEP_REDUCTION,
    STEP_COPY,
    STEP_INDEX,
    STEP_FILL,
    STEP_COLLECTIVE, /* "comm" */
    STEP_OPAQUE,     /* a kernel of which only the bytes are known */
    /* what has no "k", by the member "op" */
    STEP_RECORD,    /* stream `s` records event `e` */
    STEP_WAIT,      /* stream `s` waits for event `e` */
    STEP_HOST_WAIT, /* the host waits for event `e`, or for stream `s` */
    STEP_ITEM,      /* the host reads a value of the device: it waits for stream `s` */
    STEP_WORK_WAIT, /* stream `s` waits for the collective of event number `awaited_event` */
    STEP_EVENT_KIND_COUNT
};

enum step_phase { STEP_FORWARD, STEP_BACKWARD, STEP_RECOMPUTE, STEP_OPTIMIZER, STEP_PHASE_COUNT };

/* The element types of PyTorch that a recording may name. */
enum step_dtype {
    STEP_BF16,
    STEP_F16,
    STEP_F32,
    STEP_F64,
    STEP_E4M3,
    STEP_E5M2,
    STEP_OTHER, /* integers, booleans, complex numbers and narrower types: no product has them */
};

/* Returns PyTorch's name of an element type, "other" for STEP_OTHER; and the element type of a name. */
const char *step_dtype_name(enum step_dtype dtype);
enum step_dtype step_dtype_of(const char *name);

enum { STEP_DIMS_MAX = 8 };

/* A tensor that an operator reads or writes: a view of a storage, whose offset is not recorded. */
struct step_tensor {
    int64_t storage;     /* row of storage[]; -1: memory of the host */
    uint8_t dims, dtype; /* dtype: enum step_dtype */
    bool strided;        /* not contiguous */
    int64_t size[STEP_DIMS_MAX];
    int64_t stride[STEP_DIMS_MAX]; /* in elements */
};

struct step_event {
    uint8_t kind, phase;   /* enum step_event_kind, enum step_phase */
    bool causal, is_async; /* of attention; of a collective of c10d */
    const char *op;        /* "mm", "c10d._allgather_base_" */
    uint32_t module;       /* row of module[] */
    int64_t stream;        /* a handle of CUDA; 0: the default stream */
    int64_t event;         /* of records and waits: the event's number; -1: the whole stream */
    /* of WORK_WAIT: the number of the earlier event for which it waits; -1: unknown */
    int64_t awaited_event;
    uint32_t group; /* of collectives: row of group[]; UINT32_MAX: none */
    double flops, read_bytes, written_bytes;
    /* of collectives: bytes of the whole tensor that is gathered, scattered or reduced */
    double whole_bytes;
    /* of an uneven all-to-all: the most bytes that go to one rank, and, if only one gets any, its index in the group; 0
     * and -1: every rank gets the same, or several get some */
    double sent_most_bytes;
    int64_t sent_to;
    int64_t peer,
        batch; /* of sends and receives: the global rank, and the batch that they are in; -1: none */
    uint32_t in_begin, in_count, out_begin, out_count; /* rows of tensor[] */
};

/* Memory that lives from before event `first_event` until before event `last_event`; first_event -1: from the start
 * of the step; last_event -1: beyond its end. */
struct step_storage {
    uint64_t bytes;
    int64_t first_event, last_event;
    const char *role; /* "param NAME", "grad", "optimizer", "given", "unsharded", "" */
};

struct step_group {
    const char *key, *name;
    uint32_t count;
    int64_t *rank;    /* ascending; the recorded rank is among them */
    bool is_shuffled; /* the program has them in another order */
};

/* A recorded step. All-zero is empty. */
struct step_recording {
    struct arena arena;
    const char *name;  /* of its text, in messages */
    const char *torch; /* the version of PyTorch */
    const char
        *device;    /* whose kernels PyTorch chose among, as the recorder names it; "": not given */
    int64_t tokens; /* that the recorded rank reads in the step; 0: not given */
    uint32_t world, rank;
    /* the most bytes that lived at once, by the recorder's own count; 0: not given */
    uint64_t peak;
    const char *const *module;
    uint32_t modules;
    struct step_group *group;
    uint32_t groups;
    struct step_storage *storage;
    uint32_t storages;
    struct step_event *event;
    uint32_t events;
    struct step_tensor *tensor;
    uint32_t tensors;
    /* values that the recorder guessed, as the program asked for them: "item of an unknown value", 3 times */
    struct step_guess {
        const char *description;
        int64_t count;
    } * guess;
    uint32_t guess_count;
    const char *const *note; /* sentences about the recording */
    uint32_t notes;
};

/* True if a text is a recorded step, by its first member; a damaged one counts. */
bool step_recording_recognise(const struct text *text);

/* True if there is a regular file with a recorded step, packed or not. */
bool step_recording_is_at(const char *path);

/* Reads a recording. name stands for the text in messages. *recording must be all-zero; release it in either case.
 * Other formats, other versions, and members that contradict each other are errors. */
enum status step_recording_parse(struct step_recording *recording, const char *name,
                                 const char *data, size_t size, struct diag *diag);
void step_recording_release(struct step_recording *recording);

/* Returns the most bytes that live at once by the storages of a recording. Between two events memory is given back
 * before it is taken. */
uint64_t step_recording_peak(const struct step_recording *recording);

#endif
