/* sim/plan/replicas.h: parts of the machine that all do the same are planned once.
 *
 * A rotation along an axis of the mesh is an automorphism of a simulation if it maps whole fabric domains (and leaf
 * switches, where these limit) onto such, nothing tells the axis's coordinates apart (roles, guards, explicit
 * sets, packed documents), and only collectives whose flows do not depend on the order of their members cross it.
 * Then the orbits of
 * ranks, channels, flows and links are an equitable partition (sim/plan/fold.h), and a link of one replica is crossed
 * by flows of that replica and of the collectives between replicas only: one replica is planned.
 *
 * What is planned is a mesh of as many axes, shorter along those that rotate. Its groups keep their real members where
 * bytes, latencies and algorithms depend on them (plan_channels.c). */
#ifndef SIM_REPLICAS_H
#define SIM_REPLICAS_H

#include "models/cluster.h"
#include "schedule/ir/ir.h"

/* The mesh of the ranks that are planned: the schedule's own where nothing repeats. */
struct mesh replicas_mesh(const struct ir *ir, const struct cluster *cluster);

/* The rank of the mesh `all` that a rank of the mesh `planned` is, and the planned one that does what a rank does. */
uint32_t replicas_rank(const struct mesh *all, const struct mesh *planned, uint32_t row);
uint32_t replicas_row(const struct mesh *all, const struct mesh *planned, uint32_t rank);

#endif
