/* predict/setup/partition_option.h: --partition: the lengths of subsequences (predict/setup/resolved.h). */
#ifndef PREDICT_SETUP_PARTITION_OPTION_H
#define PREDICT_SETUP_PARTITION_OPTION_H

/* Values of a request's `length_rule`: pieces of equal length; of equal flops, with attention halved by the causal mask
 * or counted in full (as in SPPO's Figure 5); or of equal time by the cluster's costs. */
enum partition_option {
    SUBSEQUENCES_OF_EQUAL_LENGTH,
    SUBSEQUENCES_OF_EQUAL_FLOPS,
    SUBSEQUENCES_OF_EQUAL_FULL_FLOPS,
    SUBSEQUENCES_OF_EQUAL_TIME,
    PARTITION_OPTION_COUNT
};
extern const char *const partition_option_names[PARTITION_OPTION_COUNT];

#endif
