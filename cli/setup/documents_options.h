/* cli/setup/documents_options.h: reads the options that describe documents, and packs the documents into
 * sequences.
 *
 * The folder cli/setup/ reads the options of a model, a cluster and choices into a setup. */
#ifndef CLI_SETUP_DOCUMENTS_OPTIONS_H
#define CLI_SETUP_DOCUMENTS_OPTIONS_H

#include "cli/common/options.h"
#include "predict/documents/packed_sets.h"
#include "predict/setup/setup.h"

extern const struct option_set setup_documents_options;

/* Checks the options before any size is known: that --documents can be read, that --balance is
 * modelled, and that no other option of the set is given without --documents. */
enum status documents_check_options(const struct options *options, struct diag *diag);

/* The packed steps. All-zero is empty. */
struct batches_of_packed_documents {
    /* [count] on the heap; count 0: --documents was not given */
    struct packed_batch *packed_batches;
    size_t count;
    /* the documents of batch 0, to which the setup's request points */
    struct documents documents_of_first_batch;
    struct arena arena;
};

/* Packs `count` batches as the options say, into sequences of the sizes that follow from the setup's request. Makes
 * the request point to the documents of the first batch. Without --documents packs nothing, and refuses the other
 * options of the set. It is an error if the schedule has documents already: those of its file (from_file), or of a
 * core plan. */
enum status documents_pack_batches(struct batches_of_packed_documents *packed, struct setup *setup,
                                   const struct options *options, bool from_file, size_t count,
                                   struct diag *diag);
/* Returns what the options say about the batches on which a search compares configurations. Without --documents its
 * lengths_text is NULL. */
struct packed_sets_request documents_read_set_request(const struct options *options);

void batches_of_packed_documents_release(struct batches_of_packed_documents *packed);

#endif
