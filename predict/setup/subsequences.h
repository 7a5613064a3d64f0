/* predict/setup/subsequences.h: the defaults of strategies that cut a sequence by themselves. */
#ifndef PREDICT_SETUP_SUBSEQUENCES_H
#define PREDICT_SETUP_SUBSEQUENCES_H

#include "predict/setup/setup.h"

/* For a strategy that cuts sequences by itself (sppo), sets --partition to flops-full and the offload ratio to
 * adaptive, each unless the user has chosen it; the ratio also stays if the user has chosen activations. Does nothing
 * for other strategies. */
void subsequences_set_open_choices(struct request *request, const struct setup *setup);

#endif
