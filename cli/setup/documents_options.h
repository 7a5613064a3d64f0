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

/* Checks the options before any size is known: --documents can be read, and without it no other option of the set is
 * given. */
enum status documents_check(const struct options *options, struct diag *diag);

/* All-zero is empty. */
struct packed_documents {
    struct packed_batch *batch; /* [count], heap; count 0: no --documents */
    size_t count;
    struct documents first; /* those of batch 0, to which the setup's request points */
    struct arena arena;
};

/* Packs `count` batches as the options say, for the sizes that the setup's request resolves to, and stores the first
 * batch's documents in the request. from_file: the schedule comes from a file, which has its own documents. */
enum status documents_load(struct packed_documents *packed, struct setup *setup,
                           const struct options *options, bool from_file, size_t count,
                           struct diag *diag);
/* Returns the batches on which a search compares configurations, from the options; --documents must be given. */
struct packed_sets_request documents_samples(const struct options *options);

void packed_documents_release(struct packed_documents *packed);

#endif
