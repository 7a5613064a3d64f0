/* predict/setup/unit_rates.h: the seconds of one layer of a unit on one rank of a stage, per token and per pair of
 * tokens, at the rates of large work. Subsequences are balanced by them (--partition time), and estimates use them
 * before a schedule is built. */
#ifndef PREDICT_SETUP_UNIT_RATES_H
#define PREDICT_SETUP_UNIT_RATES_H

#include "predict/setup/setup.h"

/* The seconds that one rank takes in one layer, for each token and for each pair. */
struct unit_rates {
    /* seconds for each token in the products of the forward; the backward takes twice that */
    double products_s_per_token;
    /* seconds of attention's forward for a query and a key that it sees */
    double attention_s_per_pair;
    double backward_attention_s_per_pair;
};

/* Returns the rates. The device must have costs for attention_impl of the choices. */
struct unit_rates unit_rates_of(const struct setup *setup, const struct choices *choices);

#endif
