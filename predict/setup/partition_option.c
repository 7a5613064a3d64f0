#include "predict/setup/partition_option.h"

const char *const partition_option_names[PARTITION_OPTION_COUNT] = {"length", "flops", "flops-full",
                                                                    "time"};
