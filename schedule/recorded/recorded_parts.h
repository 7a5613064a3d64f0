/* schedule/recorded/recorded_parts.h: the steps in which a schedule is made of a recording; private to the folder. */
#ifndef SCHEDULE_RECORDED_PARTS_H
#define SCHEDULE_RECORDED_PARTS_H

#include "schedule/recorded/recorded.h"

/* A schedule that is being made. */
struct recorded_schedule_builder {
    struct ir *ir;
    const struct step_recording *recordings; /* [recording_count] one of each stage */
    uint32_t recording_count;
    struct diag *diag;

    /* ---- the recording whose ops are added ---- */
    const struct step_recording *recording; /* recordings[role] */
    uint16_t role;
    uint16_t *schedule_group_by_program_group; /* [groups] the group of the schedule */

    uint32_t event;        /* the event whose op is added; IR_NONE: none */
    uint32_t *event_of_op; /* by op: its event; IR_NONE: none */
    size_t event_capacity;
    struct recorded_streams *streams; /* recorded_streams.h */

    /* ---- storages ---- */
    buffer_id *buffer; /* [storages] IR_NONE: the storage has no buffer yet, or no bytes */
    /* [storages] the op that writes it first; IR_NONE: none yet */
    uint32_t *first_writing_op_of_storage;
    /* [storages] the last op of the events that name it; IR_NONE: none */
    uint32_t *last_op_of_storage;
    uint32_t *storages_by_first_event; /* [storages] storages in the order of their first events */
    /* rows of storages_by_first_event whose storages have been written */
    uint32_t written_storage_count;
    uint32_t *ops_before; /* [events + 1] ops that were added before each event */
};

/* Adds an error about an event: "step.json.gz: error: event 12 (mm): ...". */
enum status recorded_report_event_error(const struct recorded_schedule_builder *m, uint32_t event,
                                        const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { RECORDED_WRITES_MAX = 8 }; /* the most storages that one op writes first */
/* Storages that are written first by the same op. */
struct recorded_first_written_storages {
    struct view view[RECORDED_WRITES_MAX];
    uint32_t storage[RECORDED_WRITES_MAX];
    uint8_t count;
};

/* Adds an op without cost, which writes these storages first, to the stream of computation. Returns the op's id. */
uint32_t recorded_add_first_writing_op(struct recorded_schedule_builder *m,
                                       const struct recorded_first_written_storages *first_writes);
/* Returns the layer of an event: the first number in the path of its module; IR_NONE16: there is none. */
uint16_t recorded_layer_of_event(const struct recorded_schedule_builder *m, uint32_t event);

/* ---- memory (recorded_memory.c) ---- */
void recorded_make_storage_tables(struct recorded_schedule_builder *m);
void recorded_release_storage_tables(struct recorded_schedule_builder *m);
/* Makes the buffers of the storages whose first event is event `number` or an earlier one, if they have bytes and no
 * buffer yet. The op of the event is to write at most `room` of them first: sets *with_op to these. Adds ops without
 * cost that write the others. */
void recorded_make_buffers_up_to_event(struct recorded_schedule_builder *m, uint32_t number,
                                       struct recorded_first_written_storages *with_op,
                                       uint8_t room);
/* Records that `op` writes these storages first. */
void recorded_set_first_writing_op(struct recorded_schedule_builder *m,
                                   const struct recorded_first_written_storages *first_writes,
                                   uint32_t op);
/* Records `op` as the last op so far that uses the storages which an event names. */
void recorded_set_last_op_of_storages(struct recorded_schedule_builder *m, uint32_t number,
                                      uint32_t op);
/* Sets the free sets of all storages except those that exist during the whole step. One that the recording does not
 * free is free after the last op. */
void recorded_set_free_sets(struct recorded_schedule_builder *m);
/* A buffer for the bytes that a collective or a copy moves on one stream of the schedule. In the program these bytes
 * are part of storages, so the buffer takes no memory of its own. */
struct recorded_transfer_buffer {
    const char *stem;
    uint64_t bytes;
    uint8_t stream, memory, dtype, category;
};
/* Returns a view of the whole buffer of a wire. Makes the buffer if there is none yet. */
struct view recorded_make_transfer_buffer(struct recorded_schedule_builder *m,
                                          const struct recorded_transfer_buffer *wire);

/* ---- mesh, groups and roles (recorded_mesh.c) ---- */
/* Lays the ranks on a mesh. Every group of all recordings must consist of whole axes of this mesh, and so must the
 * ranks that were recorded; otherwise it is an error. */
enum status recorded_make_mesh(struct recorded_schedule_builder *m);
/* Sets m->schedule_group_by_program_group for the groups of the current recording. Adds to the schedule those groups
 * that no earlier recording has. */
void recorded_add_groups(struct recorded_schedule_builder *m);
/* Adds the role of the current recording: the ranks that it represents. A single recording represents all ranks, and
 * adds no role. */
void recorded_add_role(struct recorded_schedule_builder *m);

/* ---- messages (recorded_messages.c) ---- */
bool recorded_is_message(const struct step_event *event);
bool recorded_is_send(const struct step_event *event);
/* True if a message is between two recorded ranks, so that it is a send or a receive of the schedule. */
bool recorded_is_between_stages(const struct recorded_schedule_builder *m,
                                const struct step_event *event);
/* Returns the index of a global rank in a group; -1: it is no member. */
int64_t recorded_index_of_rank_in_group(const struct step_group *group, int64_t rank);
/* Checks that the recordings are of different ranks of one world, and that sends and receives between them match. */
enum status recorded_match_messages(struct recorded_schedule_builder *m);
/* Sets *work to the work of a message. It is an error if the message is neither part of a shift in a ring nor between
 * recorded ranks. */
enum status recorded_set_work_of_message(const struct recorded_schedule_builder *m, uint32_t event,
                                         struct work *work);

/* ---- the work and the tensors of events ---- */
/* Sets *work to the work of an operator that is no collective; an error if a product or an attention has other tensors
 * than are expected. */
enum status recorded_set_work_of_operator(const struct recorded_schedule_builder *m, uint32_t event,
                                          struct work *work);

/* If the event is half of a shift in a ring, which is a send and a receive of one batch, returns the event that is the
 * other half; else IR_NONE. */
uint32_t recorded_other_half_of_ring_shift(const struct recorded_schedule_builder *m,
                                           uint32_t event);

/* Sets *work to the work of a collective or a message; an error if its kind is not predicted, or if it has no group. */
enum status recorded_set_work_of_collective(const struct recorded_schedule_builder *m,
                                            uint32_t event, struct work *work);

/* Returns the dtype of the operands that a recorded collective has in the schedule. A reduction has the dtype of its
 * data if that is a floating-point dtype of 16 bits or more, else fp32. All other collectives move bytes (DTYPE_U8). */
enum dtype recorded_dtype_of_collective(const struct recorded_schedule_builder *m,
                                        const struct step_event *event, enum work_kind kind);

/* True if the event only joins the stream with a collective that was issued before. */
bool recorded_only_joins_collective(const struct step_event *event);

/* Return the i-th tensor that an event reads, or that it writes; NULL if it has fewer. */
const struct step_tensor *recorded_tensor_read_by_event(const struct recorded_schedule_builder *m,
                                                        const struct step_event *event, uint32_t i);
const struct step_tensor *
recorded_tensor_written_by_event(const struct recorded_schedule_builder *m,
                                 const struct step_event *event, uint32_t i);

#endif
