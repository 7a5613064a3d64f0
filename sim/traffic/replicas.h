/* sim/traffic/replicas.h: replicas are parts of the machine whose ranks do the same at the same times; only one of them
 * is planned.
 *
 * A rotation along an axis of the mesh is an automorphism of the simulation if three things hold: it maps whole
 * fabric domains onto whole fabric domains (and leaf switches onto leaf switches, where these limit the network);
 * nothing distinguishes the axis's coordinates (roles, guards, explicit sets, packed documents); and the only
 * communication across the axis is collectives whose flows do not depend on the order of their members. Then the
 * orbits of ranks, channels, flows and links are an equitable partition (sim/traffic/fold.h), and a link of one replica
 * is crossed only by flows of that replica and of the collectives between replicas, so planning one replica is exact.
 *
 * The planned mesh has the same axes, shorter along those that rotate. Its groups keep their real members where
 * bytes, latencies and algorithms depend on them (traffic_channels.c). */
#ifndef SIM_REPLICAS_H
#define SIM_REPLICAS_H

#include "models/cluster.h"
#include "schedule/ir/ir.h"

/* Returns the mesh of the ranks that are planned: the schedule's own mesh where nothing repeats. */
struct mesh replicas_planned_mesh(const struct ir *ir, const struct cluster *cluster);

/* The planned ranks are one replica; `planned` is its mesh, `all` the mesh of all ranks. replicas_rank_in_full_mesh()
 * returns the rank in `all` of planned rank `row`; replicas_rank_in_planned_mesh() returns the planned rank that does
 * the same as `rank` of `all`. */
uint32_t replicas_rank_in_full_mesh(const struct mesh *all, const struct mesh *planned,
                                    uint32_t row);
uint32_t replicas_rank_in_planned_mesh(const struct mesh *all, const struct mesh *planned,
                                       uint32_t rank);

#endif
