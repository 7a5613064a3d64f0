/* schedule/schedule_file.h: a schedule from a file, ready to be verified, run and predicted. */
#ifndef SCHEDULE_SCHEDULE_FILE_H
#define SCHEDULE_SCHEDULE_FILE_H

#include "base/diag.h"
#include "schedule/ir/ir.h"

/* ir_load(), and where the file gives no buffer an offset (text with loops never does), offsets are planned
 * as compose_build() plans them. Not where ops wait for later ones: the verifier says so. */
enum status schedule_load(struct ir *ir, const char *path, struct diag *diag);

#endif
