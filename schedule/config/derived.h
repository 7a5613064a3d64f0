/* schedule/config/derived.h: facts that follow from the choices and that several parts of schedule building need.
 *
 * The folder schedule/config/ turns the choices that a user made into a complete configuration, or says which of them
 * contradict each other. */
#ifndef SCHEDULE_CONFIG_DERIVED_H
#define SCHEDULE_CONFIG_DERIVED_H

#include "schedule/choices/choices.h"

#include <stdbool.h>
#include <stdint.h>

/* True if each rank holds only a part of the parameters: with ZeRO-3 and HSDP, if several ranks share the weights. */
bool weights_shard_params(const struct choices *choices);
/* Returns the enum dtype in which whole weight gradients accumulate and are reduced: that of --gradients, if it is
 * given. Else it is fp32 if the profile's grad_dtype is fp32, and otherwise the dtype of compute. With --states bf16 or
 * 8bit-bf16 it is the dtype of compute, unless parameters are sharded and the profile has the switch
 * reduces_bf16_states_in_grad_dtype. */
uint8_t weights_grad_dtype(const struct choices *choices);
/* Returns whether gradients are reduced in every micro-batch, because no rank keeps whole gradients. That is so with
 * ZeRO-2, ZeRO-3 and HSDP, if several ranks share the weights and gradients do not accumulate whole
 * (GRAD_SYNC_LAST). */
bool weights_reduce_each_micro_batch(const struct choices *choices);
/* True if whole gradients are zeroed before the step, and checked for NaN before they are reduced, each in a pass over
 * memory of its own, as in Megatron-LM. */
bool weights_have_zeroing_and_nan_checks(const struct choices *choices);
/* Returns the number of layers that are gathered, or reduced, as one bundle. */
int64_t weights_layers_per_bundle(const struct choices *choices);
/* True if embedding, final norm and head are gathered and reduced together, as FSDP does with sharded parameters. False
 * with pipeline stages, and if not the whole step is predicted. */
bool weights_have_root_unit(const struct choices *choices);
/* True if each gradient of a step is allocated only when the backward reaches its weight. False with several
 * micro-batches, subsequences or stages: there the gradients of the first backward exist during the others. */
bool weights_allocate_gradients_in_backward(const struct choices *c);
/* True if the step clips gradients by the norm of all of them. */
bool weights_clip_gradients(const struct choices *choices);
/* True if each sequence has positions of its own, because it is cut over the ranks in its own way: by its documents, or
 * as a core plan deals it. Positions are then bound for each sequence; else all sequences have the same ones. */
bool derived_binds_positions_by_sequence(const struct choices *choices);
/* True if FPDT keeps on the host the tensors of a chunk that other chunks read: --kv-offload is on, its default, and
 * there are several chunks. */
bool fpdt_offloads(const struct choices *choices);
/* True if latents are sent or stored in place of keys and values, which are made from them afterwards. That is so if
 * the model has latent attention, mla_exchange is MLA_EXCHANGE_LATENT, and there are several head ranks or chunks on
 * the host. */
bool derived_sends_latents(const struct choices *choices);
/* True if one rank of the head group stores and fetches each chunk for all of them (FETCH_ONE). */
bool fpdt_one_rank_fetches_for_all(const struct choices *choices);

#endif
