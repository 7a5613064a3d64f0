/* predict/plan/space.h: the configurations that a plan may choose from, and the bounds of each.
 *
 * Bounds are closed forms that no schedule can beat (predict/bounds.h): the time of the computation at
 * the highest rates, and the bytes of states and saved activations that must be in device memory.
 * docs/planning.md derives them. */
#ifndef PREDICT_PLAN_SPACE_H
#define PREDICT_PLAN_SPACE_H

#include "base/diag.h"
#include "predict/documents/packed_sets.h"
#include "predict/plan/expressible.h"
#include "predict/setup/setup.h"

#include <stdbool.h>
#include <stddef.h>

struct candidate {
    /* the request with all its degrees set; its documents are those of the packed set's typical batch */
    struct request request;
    const struct packed_set *packed_set; /* NULL: each sequence is one document */
    uint8_t strategy;                    /* row of strategies_list() */
    double step_tokens;                  /* tokens of a step, without padding */
    double step_lower_bound_s;           /* no step is shorter */
    double gpu_lower_bound_bytes;        /* no GPU needs less */
    /* the part of gpu_lower_bound_bytes that does not grow with the length */
    double length_independent_bytes;
    /* the part of gpu_lower_bound_bytes that is not on the device if the optimizer runs on the host */
    double bytes_saved_by_host_optimizer;
};

struct space {
    struct candidate *row;
    size_t candidate_count, capacity;
};

/* The options that the user left open, and what restricts the space. A member whose comment begins with "open:" is
 * true if the user left an option open; the comment says what the search then tries. All other options keep their
 * values in the request. */
struct space_open {
    /* open: all strategies; the placements of context and head ranks; the placements of pipeline stages */
    bool strategy, placement, stage_placement;
    bool length; /* open: the longest sequence is searched for, and only memory counts */
    /* open: latent attention is tried with expanded keys and values sent, and with latents sent */
    bool mla_exchange;
    /* open: rings are tried with rules of core plans, and with all keys or only the needed ones sent (--rotate); set
     * only if the request names no core plan */
    bool are_core_plans_open;
    /* open: rings over packed documents are tried with zigzag slices of whole sequences and with those of each
     * document */
    bool ring_layout;
    struct packed_sets *packed_sets;      /* packs the documents of each size of step; NULL: none */
    const enum framework *only_framework; /* only what this framework expresses; NULL: all */
    /* with only_framework: each strategy has the profile of that framework; else all have the profile of the request */
    bool uses_own_profile;
};

/* True if a request is part of the space: its choices resolve, and open->only_framework can express them. */
bool space_allows_request(const struct space_open *open, const struct request *request);

/* Adds the configurations of setup->request on `gpus` GPUs that are legal and that open->only_framework can express. If
 * no configuration is legal, an error says why. Returns STATUS_NO if some are, but the framework can express none. */
enum status space_add_candidates_of_gpus(struct space *space, const struct setup *setup,
                                         int64_t gpus, struct space_open open, struct diag *diag);
void space_release(struct space *space);

#endif
