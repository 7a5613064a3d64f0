/* predict/setup/partition_option.h: --partition: the lengths of subsequences (predict/setup/resolved.h). */
#ifndef PREDICT_SETUP_PARTITION_OPTION_H
#define PREDICT_SETUP_PARTITION_OPTION_H

/* How a sequence is cut into the subsequences of a pipeline (--partition; struct request's length_rule). */
enum partition_option {
    SUBSEQUENCES_OF_EQUAL_LENGTH,
    SUBSEQUENCES_OF_EQUAL_FLOPS,      /* attention counts the pairs that its causal mask leaves */
    SUBSEQUENCES_OF_EQUAL_FULL_FLOPS, /* attention counts in full, as in SPPO's Figure 5 */
    SUBSEQUENCES_OF_EQUAL_TIME,       /* by the cluster's costs */
    PARTITION_OPTION_COUNT
};
extern const char *const partition_option_names[PARTITION_OPTION_COUNT];

#endif
