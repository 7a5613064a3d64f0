/* cli/setup/documents_options.h: the options that say which documents sequences are packed of, read and packed. */
#ifndef CLI_SETUP_DOCUMENTS_OPTIONS_H
#define CLI_SETUP_DOCUMENTS_OPTIONS_H

#include "cli/common/options.h"
#include "predict/documents/packing.h"
#include "predict/setup/setup.h"

extern const struct option_set setup_documents_options;

/* Whether the options make sense before any size is known: lengths are there, and no option is without them. */
enum status documents_check(const struct options *options, struct diag *diag);

/* All-zero is empty. */
struct packed_documents {
    struct packed_batch *batch; /* [count], heap; count 0: no --documents */
    size_t count;
    struct documents first; /* of batch 0, which the setup's request has */
    struct arena arena;
};

/* Packs `count` batches as the options say, for the sizes that the setup's request resolves to, and gives the request
 * the first of them. from_file: the schedule is a file's, which has its own documents. */
enum status documents_load(struct packed_documents *packed, struct setup *setup,
                           const struct options *options, bool from_file, size_t count,
                           struct diag *diag);
void packed_documents_release(struct packed_documents *packed);

#endif
