/* schedule/emit/process_groups.h: the ranks of a schedule on a device mesh, its process groups and its roles. */
#ifndef SCHEDULE_EMIT_PROCESS_GROUPS_H
#define SCHEDULE_EMIT_PROCESS_GROUPS_H

#include "schedule/emit/emit.h"
#include "schedule/pipeline/multiplex.h"

/* Lays the ranks on a mesh and makes the groups (schedule/emit/process_groups.c). */
void emit_mesh(struct emit *e);
/* From now on ops and buffers are of a stage's ranks; stages come in order. */
void emit_role(struct emit *e, uint32_t stage);

/* The stages as a group, of ranks that have the same place in each: a communicator for each stream, since
 * members of a group say all in one order. */
uint16_t multiplex_group(struct emit *e, const char *what, struct share share);

#endif
