/* schedule/emit/process_groups.h: the ranks of a schedule on a device mesh, its process groups and its roles. */
#ifndef SCHEDULE_EMIT_PROCESS_GROUPS_H
#define SCHEDULE_EMIT_PROCESS_GROUPS_H

#include "schedule/emit/emit.h"
#include "schedule/pipeline/multiplex.h"

/* Lays the ranks on a mesh and makes the groups (schedule/emit/process_groups.c). */
void emit_mesh(struct emit *e);
/* Begins the role of a stage: ops and buffers that are made from now on belong to its ranks. Forgets the state of the
 * role before. Stages must be begun in order. */
void emit_begin_role(struct emit *e, uint32_t stage);

/* Returns the group of the ranks that differ only in their stage, over the stages of `share`. Its name is `what` and
 * the stages. A group's collectives run in one order on all members, so each stream needs a group of its own: callers
 * give each stream another `what`. */
uint16_t multiplex_group_of_sharing_stages(struct emit *e, const char *what,
                                           struct stages_sharing_subsequence share);

#endif
