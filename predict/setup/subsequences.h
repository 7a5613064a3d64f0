/* predict/setup/subsequences.h: the defaults of strategies that cut a sequence by themselves. */
#ifndef PREDICT_SETUP_SUBSEQUENCES_H
#define PREDICT_SETUP_SUBSEQUENCES_H

#include "predict/setup/setup.h"

/* Marks as open how strategy sppo cuts a sequence and what it offloads, each unless the user has chosen it. */
void subsequences_open(struct request *request, const struct setup *setup);

#endif
