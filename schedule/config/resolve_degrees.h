/* schedule/config/resolve_degrees.h: the parts of resolve_choices() that set the degrees of parallelism, the chunks of
 * a sequence, the loss and the pipeline, and the message texts that all parts share. */
#ifndef SCHEDULE_CONFIG_RESOLVE_DEGREES_H
#define SCHEDULE_CONFIG_RESOLVE_DEGREES_H

#include "base/text.h"
#include "schedule/choices/choices.h"
#include "schedule/choices/strategies.h"

/* Appends the numbers as a list, for example "1, 2, 4 or 8". */
void resolve_append_numbers(struct text *out, const int64_t *number, int count);
/* Appends the 16 largest divisors of n or, if `other` is not 0, the 16 largest common divisors of n and `other`; none
 * above 65536. */
void resolve_append_divisors(struct text *out, int64_t n, int64_t other);
/* Appends the two multiples of `unit` nearest to n, for example "8 or 16"; only the larger one if the smaller is 0. n
 * must not be a multiple of `unit`. */
void resolve_append_multiples(struct text *out, int64_t n, int64_t unit);

/* Reports "OPTION: error: WHAT" to diag, and returns STATUS_BAD_INPUT. */
enum status resolve_refuse(struct diag *diag, const char *option, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports "OPTION: error: WHAT; WOULD would do" to diag, releases `would`, and returns STATUS_BAD_INPUT. If `would` is
 * empty, WOULD is "no value near it". If diag is NULL, nothing is reported. */
enum status resolve_refuse_value_with_hint(struct diag *diag, const char *option,
                                           struct text *would, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* A rule that choices must keep. resolve_refuse_first_broken_rule() reports the first broken rule, by its option and
 * reason. */
struct rule {
    bool is_broken;
    const char *option; /* the option that would have to change */
    const char *reason;
};
enum status resolve_refuse_first_broken_rule(const struct rule *rule, size_t count,
                                             struct diag *diag);

/* Sets the degree of tensor parallelism, and checks it. Sets *share to the part of the model that a tensor rank has,
 * and *inside to the request of one tensor rank: with that model, and with the numbers of ranks and of GPUs in a node
 * divided by tp. With tp 1 *inside is the request, and *share is not set. */
enum status resolve_tensor_ranks(struct choices *c, const struct request *r,
                                 const struct strategy *strategy, struct request *inside,
                                 struct transformer *share, struct diag *diag);

/* Returns the largest tp that the model allows, that divides the ranks which the given degrees leave, and that fits in
 * a node, so that its collectives stay there. tokens: tp must also divide the length of the sequence. */
int64_t resolve_largest_tp(const struct request *r, bool tokens);

/* Sets dp, cp and hp, and the layout, rotation and windows of rings and the tensor plan, and checks them. If there is
 * one rank along an axis, the attention choice becomes a simpler equivalent one, if the strategy has one. tp, profile,
 * placement and attention of *c must be set. */
enum status resolve_degrees(struct choices *c, const struct request *r,
                            const struct strategy *strategy, struct diag *note, struct diag *diag);

/* The numbers of pieces into which the loss and the feed-forward part are cut; 0: not given. */
struct resolve_piece_counts {
    int64_t loss_pieces, ffn_pieces;
};
/* Returns the numbers of pieces that FPDT's public code uses. The chunks of *c must be set. */
struct resolve_piece_counts resolve_default_fpdt_piece_counts(const struct choices *c);
/* Returns the number of pieces into which Liger's fused loss cuts the tokens of resolved choices. */
int64_t resolve_liger_loss_piece_count(const struct choices *c);
/* Sets the chunks of the sequence, and checks the choices about them; without fpdt it refuses options about chunks.
 * Sets *pieces to the numbers that the user gave. A number that the user did not give becomes a usual one with fpdt,
 * and stays 0 otherwise. */
enum status resolve_sequence_chunks(struct choices *c, const struct request *r,
                                    struct resolve_piece_counts *pieces, struct diag *diag);

/* Sets how the loss is computed. If that determines the number of its pieces, and the user gave none, also sets
 * pieces->loss_pieces. rows: the rows of a unit on a rank. */
enum status resolve_loss(struct choices *c, const struct request *r, int64_t rows,
                         struct resolve_piece_counts *pieces, struct diag *diag);

/* Sets the choices of a pipeline, and checks them: its name, virtual stages, subsequences and their lengths, and the
 * subsequences that stages share. */
enum status pipeline_resolve(struct choices *choices, const struct request *request,
                             struct diag *diag);

#endif
