/* schedule/config/derived.h: facts that follow from the choices, for all code that builds a schedule.
 *
 * The folder schedule/config/ turns the choices that a user made into a complete configuration, or says which of them
 * contradict each other. */
#ifndef SCHEDULE_CONFIG_DERIVED_H
#define SCHEDULE_CONFIG_DERIVED_H

#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* True if ranks hold parts of the parameters: with ZeRO-3 and HSDP, where several ranks share the weights. */
bool weights_shard_params(const struct choices *choices);
/* Returns the enum dtype in which whole weight gradients accumulate and are reduced: that of --gradients, if given;
 * else the profile's. With --states bf16 it is the dtype of compute instead, unless FSDP reduces in fp32 with these
 * states, too. */
uint8_t weights_grad_dtype(const struct choices *choices);
/* Returns whether gradients are reduced in every micro-batch, since no rank keeps whole gradients. That is so with
 * ZeRO-2, ZeRO-3 and HSDP if several ranks share the weights, unless gradients accumulate whole (GRAD_SYNC_LAST). */
bool weights_reduce_each_micro_batch(const struct choices *choices);
/* True if whole gradients are zeroed before the step and checked for infinities before they are reduced, each in a
 * pass over memory of its own, as Megatron-LM does. */
bool weights_have_gradient_passes(const struct choices *choices);
/* Returns how many layers are gathered, or reduced, as one bundle. */
int64_t weights_layers_per_bundle(const struct choices *choices);
/* True if embedding, final norm and head are gathered and reduced together, as FSDP does with sharded parameters. With
 * pipeline stages they are not, since no stage has both the embedding and the head. */
bool weights_have_root_unit(const struct choices *choices);
/* True if each gradient of a step is allocated only when the backward reaches its weight. False with several
 * micro-batches, subsequences or stages, where gradients of the first backward exist during the others. */
bool weights_allocate_gradients_in_backward(const struct choices *c);
/* True if the step clips gradients by the norm of all of them. */
bool weights_clip_gradients(const struct choices *choices);
/* True if each sequence is cut over the ranks in its own way, by its documents or because it is dealt; then positions
 * are bound for each sequence. */
bool derived_binds_positions_by_sequence(const struct choices *choices);
/* True if FPDT keeps on the host the tensors of a chunk that other chunks read: there are several chunks, and
 * --kv-offload is on, its default. */
bool fpdt_offloads(const struct choices *choices);
/* True if latents are sent among head ranks, or stored on the host, and keys and values are made from them afterwards:
 * mla_exchange chooses latents, and there are several head ranks or chunks on the host. */
bool derived_sends_latents(const struct choices *choices);
/* True if one rank of the head group stores and fetches a chunk for all of them (FETCH_ONE). */
bool fpdt_one_rank_fetches(const struct choices *choices);

#endif
