/* predict/result_names.h: the names of figures that JSON members and CSV columns share, in snake_case with their
 * unit. */
#ifndef PREDICT_RESULT_NAMES_H
#define PREDICT_RESULT_NAMES_H

#include "models/mfu.h"
#include "schedule/ir/ir.h"
#include "schedule/reserved/reserved.h"
#include "sim/waterfall.h"

struct result_name {
    char text[64];
};

struct result_name result_name_of_mfu(enum mfu_convention convention); /* "mfu_longhaul" */
struct result_name result_name_of_cause(enum cause cause);             /* "all_to_all_s" */
struct result_name result_name_of_peak(enum category category);        /* "peak_kv_bytes" */
struct result_name result_name_of_reserved(enum reserved_part part);   /* "reserved_nccl_bytes" */

/* Returns words joined into one name: "does not fit" gives "does_not_fit". */
struct result_name result_name_of_words(const char *words);

#endif
