/* models/calibrate_links.h: fits latency and bandwidth of links to measured copies and messages.
 *
 * Each class of links is one fit of
 *
 *     seconds = steps * latency + bytes over the busiest link / bandwidth
 *
 * where a ring over n ranks takes n - 1 steps, and an all-reduce 2 (n - 1); a reduce-scatter takes as many as an
 * all-reduce with options.reduce_scatter_as_all_reduce. An all-to-all, a scatter, a shift or a copy takes one step.
 * Between ranks that share a GPU, a step is a copy or a kernel of the busiest member, and the bytes are those of all
 * members. docs/measuring.md, "Links", has the table of steps and bytes. */
#ifndef MODELS_CALIBRATE_LINKS_H
#define MODELS_CALIBRATE_LINKS_H

#include "models/calibrate.h"
#include "models/cluster.h"

/* Applies LINK_CLASS_ROW(symbol, name, description) to every class of links. */
#define CALIBRATE_FOR_EACH_LINK_CLASS(LINK_CLASS_ROW)                                              \
    LINK_CLASS_ROW(H2D, "h2d", "copies to a device")                                               \
    LINK_CLASS_ROW(D2H, "d2h", "copies from a device")                                             \
    LINK_CLASS_ROW(BOTH_WAYS, "both_ways", "copies to and from a device at once")                  \
    LINK_CLASS_ROW(FROM_PAGEABLE, "from_pageable", "copies from pageable memory")                  \
    LINK_CLASS_ROW(TO_PAGEABLE, "to_pageable", "copies to pageable memory")                        \
    LINK_CLASS_ROW(LOOPBACK, "loopback", "copies between ranks that share a GPU")                  \
    LINK_CLASS_ROW(RING, "ring", "rings within a node")                                            \
    LINK_CLASS_ROW(EXCHANGE, "all_to_all", "all-to-alls within a node")                            \
    LINK_CLASS_ROW(PEER, "peer", "one sender and one receiver within a node")                      \
    LINK_CLASS_ROW(NETWORK_RING, "network_ring", "rings over nodes")                               \
    LINK_CLASS_ROW(NETWORK_EXCHANGE, "network_all_to_all", "all-to-alls over nodes")               \
    LINK_CLASS_ROW(NETWORK_PEER, "network_peer", "one sender and one receiver in two nodes")

enum calibrate_link_class {
#define LINK_CLASS_ROW(symbol, name, what) CALIBRATE_##symbol,
    CALIBRATE_FOR_EACH_LINK_CLASS(LINK_CLASS_ROW)
#undef LINK_CLASS_ROW
        CALIBRATE_LINK_COUNT
};

struct calibrated_link {
    size_t point_count; /* 0: no points, or the fit was refused; the other members are not set */
    /* the fitted numbers and their standard errors, which are absolute, in the same units */
    double latency_s, latency_error_s, bytes_per_s, bytes_per_s_error;
    /* errors of the fitted times as shares of the measured times */
    double rms_error, worst_error, leave_one_out_error;
    double smallest_bytes, largest_bytes; /* payload of the smallest and of the largest point */
    const char *worst_point_text, *source;
};

struct link_calibration {
    struct arena arena;
    struct calibrated_link link_by_class[CALIBRATE_LINK_COUNT];
    /* the classes whose first fit was refused (struct calibrate_fallback); the base is a cluster here */
    size_t fallback_count;
    struct calibrate_fallback fallback[CALIBRATE_LINK_COUNT];
};

void link_calibration_release(struct link_calibration *links);

const char *calibrate_link_name(enum calibrate_link_class link);

/* Returns true and sets *link if the point measures a class of links; else false. */
bool calibrate_find_link_class_of_point(const struct point *point, enum calibrate_link_class *link);

/* Fits every class that has points. Reports each refused fit and returns STATUS_NO if there is one. With
 * options.falls_back_if_disturbed, a fit that is refused because other programs disturbed the points is not reported
 * and does not count; links->fallback lists it. */
enum status calibrate_links(struct link_calibration *links, const struct points *points,
                            const struct calibrate_options *options, struct diag *diag);

/* Appends the table of the fits. */
void link_calibration_print_report(const struct link_calibration *links, struct text *out);

/* Appends a cluster file that has the fitted numbers and takes all others from its base. device:
 * the file of the device's costs; NULL: those of the base. base: the name that the file gives its
 * base; cluster: that base, loaded. The numbers of messages between the GPUs of a node are written only if
 * the fabric is a switch, those of a network only if the base has NICs. Returns STATUS_NO if the file
 * would have neither a fitted number nor a device. */
enum status link_calibration_print_cluster(const struct link_calibration *links, const char *name,
                                           const char *device, const char *base,
                                           const struct cluster *cluster, struct text *out,
                                           struct diag *diag);

#endif
