/* predict/longhaul.h: longhaul as a library: all that a program needs to predict a training step.
 *
 *     struct setup setup = {0};
 *     struct prediction prediction = {0};
 *     struct prediction_result result;
 *     struct diag diag = {0};
 *
 *  1. Load:    setup_load_model(&setup, "llama3-8b", NULL, NULL, &diag)
 *              setup_load_cluster(&setup, "dgx-h100", 1, 8, &diag)
 *  2. Choose:  setup_leave_request_open(&setup), then members of setup.request (struct request,
 *              schedule/choices/choices.h). A member that stays open is resolved; prediction.choices says how. A
 *              profile that stays NULL is the one of the strategy's paper; `longhaul predict` takes "neutral".
 *              subsequences_set_open_choices() sets the further defaults of strategy "sppo".
 *  3. Ask:     struct prediction_question question = {.setup = &setup}
 *              prediction_make(&prediction, &question, &diag)
 *  4. Read:    prediction_fill_result(&result, &prediction)
 *  5. Release: prediction_release(&prediction), setup_release(&setup), diag_release(&diag)
 *
 * A call that fails returns a status other than STATUS_OK, and diag has one message (base/diag.h), in which options of
 * the command stand for the arguments: "--model: error: ...". A step that does not fit in memory is no failure:
 * result.verdict says so. Release in either case. examples/predict.c is a whole program.
 *
 * What a caller should know:
 *  - Nothing is printed, no option is read, no signal is caught.
 *  - A prediction forks: each simulation runs in a child process that prediction_time() waits for, because SimGrid
 *    cannot be started twice in one process. The child makes no use of the caller's threads and ends with its
 *    parent. stdout is flushed before.
 *  - Running out of memory ends the process with exit code 2 and one line on stderr (base/arena.h). A fault of
 *    longhaul's own is an assert.
 *  - The locale of the program does not matter: numbers are read and written with a decimal point. Only reasons that
 *    the operating system gives are in its language.
 *  - The same input gives the same result. A setup may serve any number of predictions, one after the other.
 *  - Presets are files; base/data_path.h says where they are looked for.
 *
 * A program includes headers from the root of the source tree and links the CMake target `predict`. The first
 * prediction loads longhaul_simgrid.so from the program's folder, from ../lib/longhaul/ beside it, or from the
 * build. */
#ifndef PREDICT_LONGHAUL_H
#define PREDICT_LONGHAUL_H

#include "models/mfu.h"
#include "predict/intervals.h"
#include "predict/prediction.h"
#include "predict/setup/setup.h"
#include "predict/setup/subsequences.h"

/* The figures of a prediction. They stay valid after the prediction is released. */
struct prediction_result {
    /* ---- memory, in bytes: known before the simulation ---- */
    /* whether the step fits, with the bytes that it needs and those that are available, on a device and on a host */
    struct verdict verdict;
    uint64_t arena_bytes;    /* of one device: what the schedule's plan of memory needs */
    uint64_t reserved_bytes; /* of one device: what the profile's framework would hold */

    /* The members below need prediction_time(); without it they are 0. */
    bool has_times; /* prediction_time() has succeeded */
    /* live bytes of tensors, at the peak of the device whose peak is highest; the next member divides them by
     * category */
    uint64_t peak_bytes;
    uint64_t peak_category_bytes[CATEGORY_COUNT];
    /* seconds of the step, or of the part of it that request.scope names (elapsed_s of operator_times.h) */
    double step_s;
    double tokens_per_s_gpu;

    /* the prediction is of a whole step; only then are mfu, hfu and intervals known */
    bool is_whole_step;
    /* MFU as a fraction, by each convention; 0 if the schedule came from a file */
    double mfu[MFU_CONVENTION_COUNT];
    /* utilisation of the peak by executed flops, as a fraction; MFU counts the model's flops */
    double hfu;
    /* The uncertainty of time and memory, from measured runs of the same class. On machines with measured or estimated
     * numbers the time has an interval only after spreads_find() (struct intervals). */
    struct intervals intervals;

    /* the seconds of rank 0 by cause, which add up to step_s. They are known for a whole step, and for the scopes
     * `layers` and `layers:fwd` */
    bool has_causes;
    double cause_s[CAUSE_COUNT];
    struct prediction_products products; /* of a whole step */
};

/* Fills *result with the figures of a prediction. It may be called after prediction_make(), or after
 * prediction_memory(), with or without prediction_time(). */
void prediction_fill_result(struct prediction_result *result, const struct prediction *prediction);

#endif
