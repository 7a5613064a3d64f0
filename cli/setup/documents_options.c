#include "cli/setup/documents_options.h"

#include "predict/documents/packed_sets.h"
#include "schedule/config/resolve_config.h"

#include <stdlib.h>
#include <string.h>

static const struct option rows[] = {
    {.name = "documents",
     .kind = OPTION_TEXT,
     .value_name = "FILE|DIST",
     .unset_text = "each sequence is one document",
     .help = "pack documents into the sequences; a token attends only to its own document. The "
             "lengths in tokens come from a file (one a line, or CSV with the columns "
             "batch,length), lognormal:MEDIAN,SIGMA, zipf:S,MAX, or histogram:FILE (CSV with the "
             "columns from,upto,share)"},
    {.name = "seed",
     .kind = OPTION_INTEGER,
     .value_name = "N",
     .low = 1,
     .high = INT32_MAX,
     .unset_text = "1; a file keeps its order",
     .help = "random seed with which the lengths of --documents are drawn, or those of a file "
             "are shuffled"},
    {.name = "packing",
     .kind = OPTION_CHOICE,
     .names = packing_names,
     .name_count = PACKING_COUNT,
     .default_text = "first-fit",
     .help = "how documents are packed: into the first sequence with room, into the fullest with "
             "room (best-fit), with documents of about the same length (buckets), or one after the "
             "other and cut at the end of each sequence (truncate)"},
    {.name = "balance",
     .kind = OPTION_CHOICE,
     .names = balance_names,
     .name_count = BALANCE_COUNT,
     .default_text = "none",
     .help = "how packed sequences are ordered to balance attention. pairs: each data-parallel "
             "rank distributes its sequences over its micro-batches so that these have equally "
             "many visible pairs; ranks: sequences are first distributed over the ranks in the "
             "same way; dynamic-cp, more context ranks for long documents, is refused: it is not "
             "modelled"},
};
const struct option_set setup_documents_options = {"documents", rows, ARRAY_LEN(rows)};

void batches_of_packed_documents_release(struct batches_of_packed_documents *packed)
{
    for (size_t i = 0; i < packed->count; i++)
        packed_batch_release(&packed->packed_batches[i]);
    free(packed->packed_batches);
    arena_release(&packed->arena);
    *packed = (struct batches_of_packed_documents){0};
}

static enum status refuse_without_documents(const struct options *options, struct diag *diag)
{
    for (size_t i = 1; i < ARRAY_LEN(rows); i++)
        if (is_option_given(options, rows[i].name))
            return diag_error(
                diag, (struct loc){.name = options_name_with_dashes(rows[i].name).text},
                STATUS_BAD_INPUT, "needs --documents, which gives the lengths of the documents");
    return STATUS_OK;
}

static enum status open_document_lengths(struct lengths *lengths, const struct options *options,
                                         struct diag *diag)
{
    if (options_index_of_choice(options, "balance") == BALANCE_DYNAMIC_CP)
        return diag_error(
            diag, (struct loc){.name = "--balance"}, STATUS_BAD_INPUT,
            "dynamic-cp gives long documents more context ranks than short ones in one step "
            "(ByteScale, Megatron's --dynamic-context-parallel), which is not modelled: all "
            "sequences of a step have the same --cp. Choose ranks, or let `longhaul plan "
            "--documents` find the one --cp that is fastest");
    return lengths_open(lengths, options_text(options, "documents"),
                        (uint64_t)options_whole_number(options, "seed"), diag);
}

enum status documents_check_options(const struct options *options, struct diag *diag)
{
    struct lengths lengths = {0};
    if (!is_option_given(options, "documents"))
        return refuse_without_documents(options, diag);
    enum status status = open_document_lengths(&lengths, options, diag);
    lengths_release(&lengths);
    return status;
}

/* Finds the sizes of a step, and the multiple to which its layout rounds documents up. */
static enum status find_packing_sizes(struct packing_options *sizes, const struct setup *setup,
                                      const struct options *options, struct diag *diag)
{
    struct choices choices;
    enum status status = resolve_choices(&choices, &setup->request, NULL, diag);
    *sizes = (struct packing_options){
        .policy = (enum packing_policy)options_index_of_choice(options, "packing"),
        .balance = (enum packing_balance_policy)options_index_of_choice(options, "balance"),
    };
    return status == STATUS_OK ? packing_fill_sizes(sizes, &setup->request, &choices, diag)
                               : status;
}

struct packed_sets_request documents_read_set_request(const struct options *options)
{
    return (struct packed_sets_request){
        .lengths_text = options_text(options, "documents"),
        .seed = (uint64_t)options_whole_number(options, "seed"),
        .policy = (enum packing_policy)options_index_of_choice(options, "packing"),
        .balance = (enum packing_balance_policy)options_index_of_choice(options, "balance"),
        .batch_count = (size_t)options_whole_number(options, "batches"),
    };
}

enum status documents_pack_batches(struct batches_of_packed_documents *packed, struct setup *setup,
                                   const struct options *options, bool from_file, size_t count,
                                   struct diag *diag)
{
    struct packing_options sizes;
    struct lengths lengths = {0};
    setup->padding_tokens = 0;
    if (!is_option_given(options, "documents"))
        return refuse_without_documents(options, diag);
    if (setup->request.documents != NULL)
        return diag_error(diag, (struct loc){.name = "--documents"}, STATUS_BAD_INPUT,
                          "the core plan '%s' already has the documents of its sequences",
                          setup->request.core_plan);
    if (from_file)
        return diag_error(diag, (struct loc){.name = "--documents"}, STATUS_BAD_INPUT,
                          "applies to schedules that longhaul builds; the schedule of a file "
                          "already holds its documents");
    enum status status = open_document_lengths(&lengths, options, diag);
    if (status == STATUS_OK)
        status = find_packing_sizes(&sizes, setup, options, diag);
    if (status == STATUS_OK)
        packed->packed_batches = heap_zalloc(count, sizeof *packed->packed_batches);
    while (status == STATUS_OK && packed->count < count)
        status = packing_pack_next_step(&packed->packed_batches[packed->count++], &lengths, &sizes,
                                        diag);
    if (status == STATUS_OK) {
        packed_batch_fill_documents(&packed->packed_batches[0], sizes.sequence_tokens,
                                    &packed->documents_of_first_batch, &packed->arena);
        setup->request.documents = &packed->documents_of_first_batch;
        setup->padding_tokens = packed->packed_batches[0].padding_tokens;
    }
    lengths_release(&lengths);
    return status;
}
