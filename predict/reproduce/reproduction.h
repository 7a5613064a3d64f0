/* predict/reproduce/reproduction.h: the points of all figures of a catalogue, the predictions that they need, and the
 * results.
 *
 * Each prediction is a job. Figures that show the same configuration share its job, so a job is done once. The caller
 * does the jobs that reproduction_mark_entry_jobs_wanted() has marked, in child processes (reproduction_do_job()),
 * passes their answers to reproduction_store_answer(), and then has the points judged. Answers are plain bytes. */
#ifndef PREDICT_REPRODUCE_REPRODUCTION_H
#define PREDICT_REPRODUCE_REPRODUCTION_H

#include "predict/reproduce/catalogue.h"
#include "predict/validate/validation.h"
#include "traces/external.h"

#include <stdbool.h>
#include <stddef.h>

enum job_kind {
    JOB_PREDICT_VALIDATION_RUN, /* predicts a run of the validation, for rows of measurements */
    JOB_PREDICT_CELL,           /* predicts a cell, for grids */
    JOB_TRACE,                  /* draws a timeline; the caller does these jobs by itself */
};

struct reproduction_job {
    enum job_kind kind;
    const char *key;  /* a text of all that the answer depends on, apart from the program */
    const char *args; /* for JOB_PREDICT_CELL and JOB_TRACE: options of `predict` */
    /* JOB_PREDICT_VALIDATION_RUN: index of the validation's run; JOB_PREDICT_CELL: index in cell_answer[]; JOB_TRACE:
     * number of the timeline in its entry */
    size_t index_among_jobs_of_kind;
    enum cell_question question; /* for JOB_PREDICT_CELL: what is asked about the cell */
    bool simulates_unfit; /* for JOB_PREDICT_CELL: a step that does not fit is simulated, too */
    size_t entry;         /* for JOB_TRACE: the entry that shows the timeline */
    bool is_wanted, is_done;
};

struct reproduction_point {
    size_t entry, job;              /* their indices; job SIZE_MAX: the point has none of its own */
    const char *panel, *series, *x; /* never NULL */
    double x_value;                 /* x as a number; NAN: it is none */
    double published, predicted;    /* NAN: there is no value, or it is no number */
    const char *published_text,
        *predicted_text;              /* the text shown for a value that is not a number; or NULL */
    double error;                     /* predicted / published - 1; NAN: there is none */
    enum measurement_outcome outcome; /* OUTCOME_OK also if there is nothing to compare */
    bool counts_in_means;             /* the error counts in the means */
    /* why there is no value, why the error does not count, or another remark for the reader; NULL: none */
    const char *reason;
    /* the row of the measurements; SIZE_MAX: the point is of a grid */
    size_t row;
    enum measure measure; /* the measure, if the point is of a grid */
    bool is_done;         /* its job, or those of its cases, have ended */
    /* for a point of a combined series: its grid, and the point of its first case; for other points NULL and 0 */
    const struct catalogue_grid *grid_of_combined_series;
    size_t point_of_first_case;
};

struct reproduction {
    struct arena arena;
    struct catalogue catalogue;
    struct external_runs rows;
    struct validation validation;
    run_setup_function *setup_loader;
    struct reproduction_job *job;
    /* [runs of the validation] the job that predicts the run; SIZE_MAX: no figure shows it */
    size_t *job_index_of_each_run;
    struct cell_answer *cell_answer;
    struct reproduction_point *point; /* in the order of the entries */
    size_t job_count, job_capacity, cell_count, point_count, point_capacity;
};

/* Reads the catalogue and the measurements that ship with the program, and plans all points. path: the file of the
 * catalogue, or NULL for the one that ships. Release *r in either case. */
enum status reproduction_open(struct reproduction *r, const char *path, run_setup_function *load,
                              struct diag *diag);
void reproduction_release(struct reproduction *r);

/* Marks as wanted the jobs that an entry needs: for its points, for points that its claims refer to, and for its
 * timelines. */
enum status reproduction_mark_entry_jobs_wanted(struct reproduction *r, size_t entry,
                                                struct diag *diag);

/* Returns the size of the answer to a job, at most REPRODUCTION_ANSWER_MAX bytes; 0 for a JOB_TRACE. */
size_t reproduction_answer_size(const struct reproduction *r, size_t job);
enum { REPRODUCTION_ANSWER_MAX = 8192 };
/* reproduction_do_job() does a job that is no JOB_TRACE; `answer` has room for its bytes, zeroed.
 * reproduction_store_answer() stores the answer, and marks the job as done. */
void reproduction_do_job(const struct reproduction *r, size_t job, void *answer);
void reproduction_store_answer(struct reproduction *r, size_t job, const void *answer);

/* Fills in the values and outcomes of all points whose jobs are done. */
void reproduction_judge_points(struct reproduction *r);

#endif
